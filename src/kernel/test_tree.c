/* kernel/test_tree.c - trees made to harm whoever walks them. */
#include "kernel/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "harness/test.h"

enum { NOBODY = 1200, DEEP = 2000 };

static void make_file(int dir, const char *name, mode_t mode)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    ASSERT(fd >= 0);
    ASSERT_EQ(fchmod(fd, mode), 0);
}

static mode_t mode_of(int dir, const char *name)
{
    struct stat st;

    ASSERT_EQ(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static bool exists(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int entries_of(int dir)
{
    DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *entry;
    int n = 0;

    ASSERT(d != NULL);
    while ((entry = readdir(d)))
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(d);
    return n;
}

static int make_dir(int dir, const char *name)
{
    ASSERT_EQ(mkdirat(dir, name, 0755), 0);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT(fd >= 0);
    return fd;
}

/* dir/d/d/d/...; the innermost directory. */
static int make_deep(int dir, int levels)
{
    int at = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < levels; i++) {
        int next = make_dir(at, "d");
        (void)px_fd_close(at);
        at = next;
    }
    return at;
}

static void make_socket(const char *dir_path, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    px_auto_fd int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", dir_path, name);
    ASSERT_EQ(bind(s, (struct sockaddr *)&address, sizeof address), 0);
}

static void run_tool(const char *const argv[])
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    (void)waitpid(pid, &status, 0);
}

/* What a failed walk left must not stay on the machine, however deep or closed it is. */
static void scrub(const char *path)
{
    run_tool((const char *[]){"/bin/chmod", "-R", "u+rwx", path, NULL});
    run_tool((const char *[]){"/bin/rm", "-rf", path, NULL});
    ASSERT_EQ(mkdir(path, 0700), 0);
}

/* The walk by a caller who is not root: permissions stop only such a one. */
static int as_nobody(int (*walk)(int dirfd), int dir)
{
    int ends[2], result = -ECHILD, status;

    if (geteuid() != 0)
        return walk(dir);
    ASSERT_OK(px_pipe(ends));
    pid_t pid = fork();
    if (pid == 0) {
        int r = setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
                        setresuid(NOBODY, NOBODY, NOBODY) == 0
                    ? walk(dir)
                    : -ENOEXEC;
        _exit(write(ends[1], &r, sizeof r) == sizeof r ? 0 : 1);
    }
    (void)px_fd_close(ends[1]);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(px_read_full(ends[0], &result, sizeof result), sizeof result);
    (void)px_fd_close(ends[0]);
    return result;
}

/* Everything below path belongs to the one who walks. */
static void give_away(const char *path)
{
    char owner[32];

    (void)snprintf(owner, sizeof owner, "%d:%d", NOBODY, NOBODY);
    if (geteuid() == 0)
        run_tool((const char *[]){"/bin/chown", "-hR", owner, path, NULL});
}

static int strip_all(int dir)
{
    return px_tree_strip(dir, 0);
}

/* ---- strip ---- */

TEST(strip_clears_the_bits_that_count)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int sub = make_dir(dir, "sub");

    make_file(dir, "plain", 0755);
    make_file(dir, "setuid", 04755);
    make_file(dir, "setgid", 02755);
    make_file(dir, "locking",
              02644); /* setgid without execution means something else and gives nobody a group */
    make_file(sub, "both", 06777);
    make_file(sub, "setuid-data", 04600);
    ASSERT_EQ(px_tree_strip(dir, 0), 4);
    ASSERT_EQ(mode_of(dir, "plain"), 0755);
    ASSERT_EQ(mode_of(dir, "setuid"), 0755);
    ASSERT_EQ(mode_of(dir, "setgid"), 0755);
    ASSERT_EQ(mode_of(dir, "locking"), 02644);
    ASSERT_EQ(mode_of(sub, "both"), 0777);
    ASSERT_EQ(mode_of(sub, "setuid-data"), 0600);
    ASSERT_EQ(px_tree_strip(dir, 0), 0);
}

TEST(strip_leaves_directories_and_old_files_alone)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int sub = make_dir(dir, "sub");

    ASSERT_EQ(fchmod(sub, 02755), 0);
    make_file(dir, "setuid", 04755);
    ASSERT_EQ(px_tree_strip(dir, time(NULL) + 1000), 0);
    ASSERT_EQ(mode_of(dir, "setuid"), 04755);
    ASSERT_EQ(px_tree_strip(dir, 0), 1);
    ASSERT_EQ(mode_of(dir, "sub"), 02755);
}

/* A file's own times can be set back; the kernel's change stamp cannot. */
TEST(strip_is_not_fooled_by_an_old_mtime)
{
    px_auto_fd int dir = px_test_dir();
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    make_file(dir, "setuid", 04755);
    ASSERT_EQ(utimensat(dir, "setuid", old, 0), 0);
    ASSERT_EQ(px_tree_strip(dir, time(NULL) - 3600), 1);
}

TEST(strip_follows_no_link_and_waits_for_no_pipe)
{
    px_auto_fd int outside = px_test_dir();
    make_file(outside, "victim", 04755);
    char path[300];
    (void)snprintf(path, sizeof path, "%s/victim", px_test_dir_path());
    px_auto_fd int dir = px_test_dir();

    ASSERT_EQ(symlinkat(path, dir, "file"), 0);
    *strrchr(path, '/') = '\0';
    ASSERT_EQ(symlinkat(path, dir, "directory"), 0);
    ASSERT_EQ(symlinkat("..", dir, "up"), 0);
    ASSERT_EQ(symlinkat("loop", dir, "loop"), 0);
    ASSERT_EQ(symlinkat("/nowhere/at/all", dir, "dangling"), 0);
    ASSERT_EQ(mkfifoat(dir, "pipe", 0777), 0);
    ASSERT_EQ(fchmodat(dir, "pipe", 06777, 0),
              0); /* no regular file: not opened at all, or this would hang */
    make_socket(px_test_dir_path(), "socket");
    ASSERT_EQ(px_tree_strip(dir, 0), 0);
    ASSERT_EQ(mode_of(outside, "victim"), 04755);
}

TEST(strip_says_when_it_could_not_look)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int closed = make_dir(dir, "closed");

    make_file(closed, "setuid", 0755);
    make_file(dir, "other", 0755);
    give_away(px_test_dir_path());
    ASSERT_EQ(fchmodat(closed, "setuid", 04755, 0), 0); /* afterwards: giving a file away clears the bit */
    ASSERT_EQ(fchmodat(dir, "other", 04755, 0), 0);
    ASSERT_EQ(fchmod(closed, 0), 0);
    int r = as_nobody(strip_all, dir);
    ASSERT_EQ(fchmod(closed, 0755), 0);
    ASSERT_EQ(mode_of(dir, "other"), 0755); /* one failure does not save the rest */
    if (r >= 0 && mode_of(closed, "setuid") == 04755)
        FAIL("a directory that cannot be read was passed over in silence: %d", r);
}

TEST(strip_says_when_a_file_kept_its_bits)
{
    px_auto_fd int dir = px_test_dir();

    make_file(dir, "unreadable", 0111);
    give_away(px_test_dir_path());
    ASSERT_EQ(fchmodat(dir, "unreadable", 04111, 0), 0);
    int r = as_nobody(strip_all, dir);
    if (r >= 0 && mode_of(dir, "unreadable") & 06000)
        FAIL("the bit is still there and nobody says so: %d", r);
}

TEST(strip_reaches_or_reports_what_lies_deep)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int deep = make_deep(dir, DEEP);

    make_file(deep, "setuid", 04755);
    int r = px_tree_strip(dir, 0);
    mode_t mode = mode_of(deep, "setuid");
    scrub(px_test_dir_path());
    if (r >= 0 && mode & 06000)
        FAIL("a set-id file %d levels down was passed over in silence: %d", DEEP, r);
}

TEST(strip_of_something_else)
{
    px_auto_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ASSERT_EQ(px_tree_strip(null, 0), -ENOTDIR);
    ASSERT_EQ(px_tree_strip(-1, 0), -EBADF);
}

/* ---- empty ---- */

TEST(empty_removes_everything_and_keeps_the_directory)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int sub = make_dir(dir, "sub");
    px_auto_fd int closed = make_dir(dir, "closed");
    char name[32];

    make_file(dir, "file", 0);
    make_file(sub, "setuid", 06777);
    make_file(dir, "-rf", 0644);
    make_file(dir, "a\nb \x1b[2J\xff", 0644);
    ASSERT_EQ(mkfifoat(dir, "pipe", 0), 0);
    make_socket(px_test_dir_path(), "socket");
    make_file(closed, "inside", 0);
    for (int i = 0; i < 3000; i++) { /* more than one getdents holds, removed while it is read */
        (void)snprintf(name, sizeof name, "n%d", i);
        make_file(sub, name, 0600);
    }
    ASSERT_EQ(fchmod(closed, 0), 0);
    ASSERT_EQ(px_tree_empty(dir), 0);
    ASSERT_EQ(entries_of(dir), 0);
    ASSERT_EQ(px_tree_empty(dir), 0);
}

TEST(empty_follows_no_link)
{
    px_auto_fd int outside = px_test_dir();
    make_file(outside, "victim", 0644);
    ASSERT_EQ(fchmod(outside, 0750), 0);
    char path[256];
    (void)snprintf(path, sizeof path, "%s", px_test_dir_path());
    px_auto_fd int dir = px_test_dir();

    ASSERT_EQ(symlinkat(path, dir, "directory"), 0);
    ASSERT_EQ(symlinkat("/", dir, "root"), 0);
    ASSERT_EQ(symlinkat("loop", dir, "loop"), 0);
    ASSERT_EQ(px_tree_empty(dir), 0);
    ASSERT_EQ(entries_of(dir), 0);
    ASSERT(exists(outside, "victim"));
    ASSERT_EQ(mode_of(outside, "."), 0750);
}

TEST(empty_of_a_hard_link_leaves_the_other_name)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int keep = make_dir(dir, "keep"), drop = make_dir(dir, "drop");

    make_file(keep, "file", 0640);
    ASSERT_EQ(linkat(keep, "file", drop, "file", 0), 0);
    ASSERT_EQ(px_tree_empty(drop), 0);
    ASSERT_EQ(entries_of(drop), 0);
    ASSERT_EQ(mode_of(keep, "file"), 0640);
}

TEST(empty_of_a_very_deep_tree)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int deep = make_deep(dir, DEEP);

    make_file(deep, "bottom", 0600);
    int r = px_tree_empty(dir), left = entries_of(dir);
    if (left > 0)
        scrub(px_test_dir_path());
    ASSERT_EQ(r, 0);
    ASSERT_EQ(left, 0);
}

/* The names that hoisting uses may be taken, by files and by directories that are full themselves. */
TEST(empty_when_the_hoisting_names_are_taken)
{
    px_auto_fd int dir = px_test_dir();
    (void)px_fd_close(make_deep(dir, 200));
    char name[48];

    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, ".px-hoisted-%d", i);
        if (i % 2 == 0) {
            make_file(dir, name, 0);
            continue;
        }
        px_auto_fd int taken = make_dir(dir, name);
        (void)px_fd_close(make_deep(taken, 100));
    }
    int r = px_tree_empty(dir), left = entries_of(dir);
    if (left > 0)
        scrub(px_test_dir_path());
    ASSERT_EQ(r, 0);
    ASSERT_EQ(left, 0);
}

/* Directories that may not be listed, entered or written, also below the depth where they are moved. */
TEST(empty_of_closed_directories_at_any_depth)
{
    px_auto_fd int dir = px_test_dir();
    int levels[140];

    levels[0] = make_dir(dir, "d");
    for (int i = 1; i < 140; i++)
        levels[i] = make_dir(levels[i - 1], "d");
    give_away(px_test_dir_path());
    for (int i = 139; i >= 0; i--) {
        ASSERT_EQ(fchmod(levels[i], 0), 0);
        (void)px_fd_close(levels[i]);
    }
    int r = as_nobody(px_tree_empty, dir), left = entries_of(dir);
    if (left > 0)
        scrub(px_test_dir_path());
    ASSERT_EQ(r, 0);
    ASSERT_EQ(left, 0);
}

TEST(empty_says_what_would_not_go)
{
    if (geteuid() != 0)
        SKIP("only root can leave a directory that its owner's neighbour cannot enter");
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int foreign = make_dir(dir, "foreign");

    make_file(foreign, "file", 0600);
    ASSERT_EQ(fchmod(foreign, 0700), 0);
    ASSERT_EQ(fchown(dir, NOBODY, NOBODY), 0);
    int r = as_nobody(px_tree_empty, dir);
    ASSERT(exists(foreign, "file"));
    if (r >= 0)
        FAIL("a directory is left and the answer is %d", r);
}

TEST(empty_of_something_else)
{
    px_auto_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ASSERT_EQ(px_tree_empty(null), -ENOTDIR);
    ASSERT_EQ(px_tree_empty(-1), -EBADF);
}
