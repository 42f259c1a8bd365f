/* base/test_node.c - a mode is changed by descriptor: what a name leads to stays as it is. */
#include "base/node.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "harness/test.h"

static mode_t mode_of(int dir, const char *name)
{
    struct stat st;
    ASSERT_OK(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW));
    return st.st_mode & 07777;
}

static void make_file(int dir, const char *name, mode_t mode)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ASSERT(fd >= 0);
    ASSERT_OK(fchmod(fd, mode));
}

TEST(mode_by_any_descriptor)
{
    px_auto_fd int dir = px_test_dir();
    make_file(dir, "file", 0);
    px_auto_fd int held = openat(dir, "file", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    px_auto_fd int top = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT(held >= 0 && top >= 0);
    ASSERT_OK(px_node_chmod(held, 0640));
    ASSERT_EQ(mode_of(dir, "file"), 0640);
    ASSERT_OK(px_node_chmod(top, 0710));
    ASSERT_EQ(mode_of(dir, "."), 0710);
    ASSERT_EQ(px_node_chmod(-1, 0700), -EBADF);
}

TEST(mode_of_a_name_follows_no_link)
{
    px_auto_fd int dir = px_test_dir();
    make_file(dir, "victim", 0644);
    ASSERT_OK(mkdirat(dir, "d", 0755));
    make_file(dir, "d/inside", 0644);
    ASSERT_OK(symlinkat("victim", dir, "link"));
    ASSERT_OK(symlinkat("d", dir, "way"));
    px_auto_fd int held = openat(dir, "link", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    ASSERT_EQ(px_node_chmod(held, 0700), -ELOOP);
    ASSERT_EQ(px_node_chmod_at(dir, "link", S_IFREG, 0700), -ELOOP);
    ASSERT_EQ(px_node_chmod_at(dir, "way/inside", S_IFREG, 0700), -ELOOP);
    ASSERT_EQ(px_node_chmod_at(dir, "victim", S_IFDIR, 0700), -ESTALE);
    ASSERT_EQ(px_node_chmod_at(dir, "none", S_IFREG, 0700), -ENOENT);
    ASSERT_EQ(mode_of(dir, "victim"), 0644);
    ASSERT_EQ(mode_of(dir, "d/inside"), 0644);
    ASSERT_OK(px_node_chmod_at(dir, "d/inside", S_IFREG, 0700));
    ASSERT_EQ(mode_of(dir, "d/inside"), 0700);
}

TEST(closed_directories_are_opened)
{
    static const mode_t modes[] = {0, 0055, 0444, 0300, 0500, 01755};
    px_auto_fd int dir = px_test_dir();
    ASSERT_OK(mkdirat(dir, "d", 0700));
    make_file(dir, "d/file", 0600);
    ASSERT_OK(symlinkat("d", dir, "link"));
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        mode_t was = 0;
        ASSERT_OK(fchmodat(dir, "d", modes[i], 0));
        px_auto_fd int fd = px_node_open_dir(dir, "d", &was);
        ASSERT_OK(fd);
        ASSERT_EQ(was, modes[i]);
        ASSERT_EQ(mode_of(dir, "d"), modes[i] | 0700);
        ASSERT_OK(faccessat(fd, "file", F_OK, 0));
    }
    mode_t was = 0;
    ASSERT_OK(fchmodat(dir, "d", 0, 0));
    ASSERT_EQ(px_node_open_dir(dir, "link", &was), -ENOTDIR);
    ASSERT_EQ(px_node_open_dir(dir, "none", &was), -ENOENT);
    ASSERT_EQ(mode_of(dir, "d"), 0);
    ASSERT_OK(fchmodat(dir, "d", 0700, 0));
}
