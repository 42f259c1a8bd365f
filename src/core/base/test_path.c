/* base/test_path.c - no way out of a directory, and the shape of path texts. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

/* in/ with a file and links of every kind, and a secret beside it. */
struct tree {
    int top, in;
};

static struct tree tree_make(void)
{
    struct tree t = {.top = px_test_dir()};
    px_auto_fd int secret = openat(t.top, "secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ASSERT(secret >= 0);
    ASSERT_EQ(mkdirat(t.top, "in", 0700), 0);
    t.in = openat(t.top, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT(t.in >= 0);
    ASSERT_EQ(mkdirat(t.in, "dir", 0700), 0);
    px_auto_fd int file = openat(t.in, "dir/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT(file >= 0);
    ASSERT_EQ(symlinkat("dir/file", t.in, "link-inside"), 0);
    ASSERT_EQ(symlinkat("../dir/file", t.in, "dir/link-up-inside"), 0);
    ASSERT_EQ(symlinkat("../secret", t.in, "link-out"), 0);
    ASSERT_EQ(symlinkat("/etc/passwd", t.in, "link-absolute"), 0);
    ASSERT_EQ(symlinkat("/dir/file", t.in, "link-absolute-inside"), 0);
    ASSERT_EQ(symlinkat("..", t.in, "link-dotdot"), 0);
    ASSERT_EQ(symlinkat("dir", t.in, "link-dir"), 0);
    ASSERT_EQ(symlinkat("loop", t.in, "loop"), 0);
    return t;
}

static void tree_done(struct tree *t)
{
    px_fd_done(&t->in);
    px_fd_done(&t->top);
}

/* Opens and closes at once: 0 or -errno. */
static int try_beneath(int dir, const char *path)
{
    int fd = px_open_beneath(dir, path, O_RDONLY, 0);

    (void)px_fd_close(fd);
    return fd < 0 ? fd : 0;
}

static int try_in_root(int dir, const char *path)
{
    int fd = px_open_in_root(dir, path, O_RDONLY, 0);

    (void)px_fd_close(fd);
    return fd < 0 ? fd : 0;
}

TEST(beneath_opens_what_is_inside)
{
    struct tree t = tree_make();

    ASSERT_OK(try_beneath(t.in, "dir/file"));
    ASSERT_OK(try_beneath(t.in, "."));
    ASSERT_OK(try_beneath(t.in, "dir/../dir/file"));
    ASSERT_OK(try_beneath(t.in, "link-inside"));
    ASSERT_OK(try_beneath(t.in, "dir/link-up-inside"));
    ASSERT_OK(try_beneath(t.in, "link-dir/file"));
    ASSERT_EQ(try_beneath(t.in, "none"), -ENOENT);
    ASSERT_EQ(try_beneath(t.in, ""), -ENOENT);
    ASSERT_EQ(try_beneath(t.in, "dir/file/"), -ENOTDIR);
    tree_done(&t);
}

TEST(beneath_refuses_every_way_out)
{
    struct tree t = tree_make();

    ASSERT_EQ(try_beneath(t.in, ".."), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "../secret"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "dir/../../secret"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "../in/dir/file"), -EXDEV);     /* out and back in is out */
    ASSERT_EQ(try_beneath(t.in, "/"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "/etc/passwd"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "link-out"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "link-absolute"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "link-absolute-inside"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "link-dotdot"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "link-dotdot/secret"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "link-dir/../../secret"), -EXDEV);
    ASSERT_EQ(try_beneath(t.in, "loop"), -ELOOP);
    tree_done(&t);
}

TEST(beneath_refuses_magic_links)
{
    px_auto_fd int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    px_auto_fd int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT(proc >= 0 && root >= 0);
    ASSERT_EQ(try_beneath(proc, "root"), -ELOOP);
    ASSERT_EQ(try_beneath(proc, "cwd"), -ELOOP);
    ASSERT_EQ(try_beneath(proc, "exe"), -ELOOP);
    ASSERT_EQ(try_beneath(proc, "fd/0"), -ELOOP);
    ASSERT_EQ(try_beneath(root, "proc/thread-self/root"), -ELOOP);
    ASSERT_OK(try_beneath(proc, "status"));
}

TEST(beneath_is_close_on_exec_and_creates_inside_only)
{
    struct tree t = tree_make();
    px_auto_fd int fd = px_open_beneath(t.in, "dir/new", O_WRONLY | O_CREAT | O_EXCL, 0640);
    struct stat st;

    ASSERT(fd >= 0);
    ASSERT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ASSERT_EQ(fstat(fd, &st), 0);
    ASSERT(S_ISREG(st.st_mode));
    ASSERT_EQ(px_open_beneath(t.in, "../new", O_WRONLY | O_CREAT, 0600), -EXDEV);
    ASSERT_EQ(faccessat(t.top, "new", F_OK, 0), -1);
    ASSERT_EQ(px_open_beneath(t.in, "dir/file", O_RDONLY, 0600), -EINVAL);      /* a mode without O_CREAT */
    ASSERT_EQ(px_open_beneath(-1, "x", O_RDONLY, 0), -EBADF);
    tree_done(&t);
}

TEST(in_root_takes_the_directory_for_slash)
{
    struct tree t = tree_make();

    ASSERT_OK(try_in_root(t.in, "/dir/file"));
    ASSERT_OK(try_in_root(t.in, "dir/file"));
    ASSERT_OK(try_in_root(t.in, "/"));
    ASSERT_OK(try_in_root(t.in, "/../../dir/file"));    /* ".." at the root stays at the root */
    ASSERT_EQ(try_in_root(t.in, "../secret"), -ENOENT);
    ASSERT_EQ(try_in_root(t.in, "/etc/passwd"), -ENOENT);
    tree_done(&t);
}

TEST(in_root_follows_no_link)
{
    struct tree t = tree_make();
    px_auto_fd int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT_EQ(try_in_root(t.in, "link-inside"), -ELOOP);
    ASSERT_EQ(try_in_root(t.in, "link-dir/file"), -ELOOP);
    ASSERT_EQ(try_in_root(t.in, "link-out"), -ELOOP);
    ASSERT_EQ(try_in_root(t.in, "link-absolute-inside"), -ELOOP);
    ASSERT_EQ(try_in_root(t.in, "link-dotdot/secret"), -ELOOP);
    ASSERT_EQ(try_in_root(proc, "root"), -ELOOP);
    px_auto_fd int fd = px_open_in_root(t.in, "dir/file", O_RDONLY, 0);
    ASSERT(fd >= 0);
    ASSERT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    tree_done(&t);
}

TEST(errno_is_left_alone)
{
    errno = 1234;
    ASSERT_EQ(try_beneath(AT_FDCWD, "/x"), -EXDEV);
    ASSERT_EQ(errno, 1234);
}

TEST(clean)
{
    static const struct {
        const char *text, *expected;            /* NULL: -EINVAL */
    } cases[] = {
        // clang-format off
        { "/", "/" }, { "//", "/" }, { "/.", "/" }, { "/./", "/" }, { "/a", "/a" }, { "/a/", "/a" }, { "//a", "/a" },
        { "/a//b/./c/", "/a/b/c" }, { "/a/.b", "/a/.b" }, { "/...", "/..." }, { "/a/..b/c..", "/a/..b/c.." }, { "/./a/././b/.", "/a/b" },
        { "/a b/\xc3\xbc", "/a b/\xc3\xbc" },
        { "", NULL }, { "a", NULL }, { ".", NULL }, { "./a", NULL }, { "..", NULL }, { "/..", NULL }, { "/a/..", NULL },
        { "/a/../b", NULL }, { "/../a", NULL }, { "a/b", NULL }, { " /a", NULL }, { "/a//..//", NULL },
        // clang-format on
    };
    for (size_t i = 0; i < PX_COUNT_OF(cases); i++) {
        char out[64] = "untouched";
        int r = px_path_clean(cases[i].text, out, sizeof out);

        if (r != (cases[i].expected ? 0 : -EINVAL))
            FAIL("'%s' gives %d", cases[i].text, r);
        ASSERT_STR(out, cases[i].expected ? cases[i].expected : "untouched");
    }
}

TEST(clean_and_size)
{
    char out[5] = "old";

    ASSERT_OK(px_path_clean("/a/b", out, 5));
    ASSERT_STR(out, "/a/b");
    ASSERT_EQ(px_path_clean("/a/b", out, 4), -ENAMETOOLONG);
    ASSERT_EQ(px_path_clean("/a/bc", out, 5), -ENAMETOOLONG);
    ASSERT_STR(out, "/a/b");
    ASSERT_OK(px_path_clean("//a//./b//", out, 5));     /* the result counts, not the text */
    ASSERT_EQ(px_path_clean("/", out, 0), -ENAMETOOLONG);
    ASSERT_EQ(px_path_clean("/", out, 1), -ENAMETOOLONG);
    ASSERT_OK(px_path_clean("/", out, 2));
    ASSERT_EQ(px_path_clean("/..", out, 0), -EINVAL);
}

TEST(clean_in_place)
{
    char path[] = "//a/.//bcd/./e/";

    ASSERT_OK(px_path_clean(path, path, sizeof path));
    ASSERT_STR(path, "/a/bcd/e");
}

TEST(within)
{
    ASSERT(px_path_within("/a", "/a"));
    ASSERT(px_path_within("/a/b", "/a"));
    ASSERT(px_path_within("/a", "/"));
    ASSERT(px_path_within("/", "/"));
    ASSERT(!px_path_within("/", "/a"));
    ASSERT(!px_path_within("/ab", "/a"));
    ASSERT(!px_path_within("/a", "/a/b"));
    ASSERT(!px_path_within("/b", "/a"));
}
