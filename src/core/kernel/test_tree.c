/* kernel/test_tree.c - trees made to harm whoever walks them. */
#include "kernel/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
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
    return px_kernel_tree_strip(dir, 0);
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
    ASSERT_EQ(px_kernel_tree_strip(dir, 0), 4);
    ASSERT_EQ(mode_of(dir, "plain"), 0755);
    ASSERT_EQ(mode_of(dir, "setuid"), 0755);
    ASSERT_EQ(mode_of(dir, "setgid"), 0755);
    ASSERT_EQ(mode_of(dir, "locking"), 02644);
    ASSERT_EQ(mode_of(sub, "both"), 0777);
    ASSERT_EQ(mode_of(sub, "setuid-data"), 0600);
    ASSERT_EQ(px_kernel_tree_strip(dir, 0), 0);
}

TEST(strip_leaves_directories_and_old_files_alone)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int sub = make_dir(dir, "sub");

    ASSERT_EQ(fchmod(sub, 02755), 0);
    make_file(dir, "setuid", 04755);
    ASSERT_EQ(px_kernel_tree_strip(dir, time(NULL) + 1000), 0);
    ASSERT_EQ(mode_of(dir, "setuid"), 04755);
    ASSERT_EQ(px_kernel_tree_strip(dir, 0), 1);
    ASSERT_EQ(mode_of(dir, "sub"), 02755);
}

/* A file's own times can be set back; the kernel's change stamp cannot. */
TEST(strip_is_not_fooled_by_an_old_mtime)
{
    px_auto_fd int dir = px_test_dir();
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    make_file(dir, "setuid", 04755);
    ASSERT_EQ(utimensat(dir, "setuid", old, 0), 0);
    ASSERT_EQ(px_kernel_tree_strip(dir, time(NULL) - 3600), 1);
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
    ASSERT_EQ(px_kernel_tree_strip(dir, 0), 0);
    ASSERT_EQ(mode_of(outside, "victim"), 04755);
}

/* As setcap does; with the root of a user namespace, as the root in there does. */
static void give_capability(int dir, const char *name, bool of_namespace)
{
    const uint32_t data[] = {of_namespace ? 0x03000001 : 0x02000001, 1 << 7, 0, 0, 0, 70000};
    px_auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    ASSERT(fd >= 0);
    ASSERT_EQ(fsetxattr(fd, "security.capability", data, of_namespace ? 24 : 20, 0), 0);
}

static bool has_capability(int dir, const char *name)
{
    px_auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    ASSERT(fd >= 0);
    return fgetxattr(fd, "security.capability", NULL, 0) >= 0;
}

/* The owner of a file may not remove the attribute, and px takes it away all the same. */
TEST(strip_takes_capabilities_away)
{
    if (geteuid() != 0)
        SKIP("only root can give a file capabilities");
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int sub = make_dir(dir, "sub");

    make_file(dir, "plain", 0755);
    make_file(dir, "tool", 0755);
    make_file(sub, "theirs", 0100);
    make_file(sub, "both", 0755);
    give_away(px_test_dir_path());
    ASSERT_EQ(fchmodat(sub, "both", 04755, 0), 0);
    give_capability(dir, "tool", false);
    give_capability(sub, "theirs", true);
    give_capability(sub, "both", false);
    ASSERT_EQ(fsetxattr(sub, "user.note", "x", 1, 0), 0);
    ASSERT_EQ(as_nobody(strip_all, dir), 3);
    ASSERT(!has_capability(dir, "tool") && !has_capability(sub, "theirs") && !has_capability(sub, "both"));
    ASSERT_EQ(mode_of(sub, "both"), 0755);
    ASSERT_EQ(mode_of(sub, "theirs"), 0100);
    ASSERT_EQ(as_nobody(strip_all, dir), 0);
    give_capability(dir, "tool", true);
    px_auto_fd int tool = openat(dir, "tool", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(px_kernel_tree_search_file(tool), PX_TREE_CAPABILITY);
    ASSERT_EQ(px_kernel_tree_strip_file(tool), 1);
    ASSERT_EQ(px_kernel_tree_search_file(tool), PX_TREE_NOTHING);
}

/* A box has its caller's id, so it can close a directory to px and leave it open for others. */
TEST(strip_looks_into_closed_directories)
{
    static const mode_t modes[] = {0055, 0, 0111, 0444, 0300, 0755};
    px_auto_fd int dir = px_test_dir();
    char name[16];

    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name, "d%d", i);
        px_auto_fd int sub = make_dir(dir, name);
        px_auto_fd int below = make_dir(sub, "below");
        make_file(below, "setuid", 0);
    }
    give_away(px_test_dir_path());
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name, "d%d", i);
        px_auto_fd int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ASSERT_EQ(fchmodat(sub, "below/setuid", 04755, 0), 0);
        ASSERT_EQ(fchmodat(sub, "below", modes[i], 0), 0);
        ASSERT_EQ(fchmod(sub, modes[5 - i]), 0);
    }
    ASSERT_EQ(fchmod(dir, 0055), 0); /* the top as well */
    ASSERT_EQ(as_nobody(strip_all, dir), 6);
    struct stat st;
    ASSERT_EQ(fstat(dir, &st), 0);
    ASSERT_EQ(st.st_mode & 07777, 0055);
    ASSERT_EQ(fchmod(dir, 0755), 0);
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name, "d%d", i);
        ASSERT_EQ(mode_of(dir, name), modes[5 - i]);
        ASSERT_EQ(fchmodat(dir, name, 0755, 0), 0);
        px_auto_fd int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ASSERT_EQ(mode_of(sub, "below"), modes[i]);
        ASSERT_EQ(fchmodat(sub, "below", 0755, 0), 0);
        ASSERT_EQ(mode_of(sub, "below/setuid"), 0755);
    }
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
    int r = px_kernel_tree_strip(dir, 0);
    mode_t mode = mode_of(deep, "setuid");
    scrub(px_test_dir_path());
    if (r >= 0 && mode & 06000)
        FAIL("a set-id file %d levels down was passed over in silence: %d", DEEP, r);
}

/* ---- search ---- */

static struct px_kernel_tree_search last;

static int search(int dir)
{
    return px_kernel_tree_search(dir, &last);
}

TEST(search_finds_what_a_box_must_not_write)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int sub = make_dir(dir, "sub");

    make_file(dir, "plain", 0755);
    make_file(sub, "locking", 02644);
    ASSERT_EQ(mkfifoat(sub, "pipe", 0644), 0);
    ASSERT_EQ(symlinkat("/usr/bin/su", sub, "link"), 0);
    ASSERT_EQ(fchmod(sub, 02755), 0);
    ASSERT_EQ(search(dir), PX_TREE_NOTHING);
    make_file(sub, "setgid", 02710);
    ASSERT_EQ(search(dir), PX_TREE_SET_ID);
    ASSERT_STR(last.name, "setgid");
    ASSERT_EQ(unlinkat(sub, "setgid", 0), 0);
    if (geteuid() != 0)
        return;
    ASSERT_EQ(fchmod(dir, 0755), 0);
    give_capability(sub, "locking", true); /* who may write it can make it executable */
    ASSERT_EQ(search(dir), PX_TREE_CAPABILITY);
    ASSERT_STR(last.name, "locking");
    ASSERT_EQ(as_nobody(search, dir), PX_TREE_CAPABILITY);
}

TEST(search_is_not_kept_out_of_the_callers_directories)
{
    static const mode_t modes[] = {0, 0055, 0111, 0444, 0300};
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int sub = make_dir(dir, "sub");

    make_file(sub, "file", 0644);
    give_away(px_test_dir_path());
    px_auto_fd int file = openat(sub, "file", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 10; i++) {
        struct stat st;
        ASSERT_EQ(fchmod(file, i % 2 ? 04755 : 0755), 0);
        ASSERT_EQ(fchmod(sub, modes[i / 2]), 0);
        ASSERT_EQ(fchmod(dir, modes[(i + 3) / 2 % 5]), 0);
        ASSERT_EQ(as_nobody(search, dir), i % 2 ? PX_TREE_SET_ID : PX_TREE_NOTHING);
        ASSERT_EQ(fstat(sub, &st), 0);
        ASSERT_EQ(st.st_mode & 07777, modes[i / 2]);
        ASSERT_EQ(fstat(dir, &st), 0);
        ASSERT_EQ(st.st_mode & 07777, modes[(i + 3) / 2 % 5]);
    }
    ASSERT_EQ(fchmod(dir, 0755), 0);
}

/* The box has no more rights there than its caller. */
TEST(search_passes_over_directories_of_others)
{
    if (geteuid() != 0)
        SKIP("only root can leave a directory that its owner's neighbour cannot enter");
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int foreign = make_dir(dir, "foreign");
    px_auto_fd int listed = make_dir(dir, "listed");

    make_file(foreign, "setuid", 04755);
    make_file(listed, "setuid", 04755);
    ASSERT_EQ(fchown(dir, NOBODY, NOBODY), 0);
    ASSERT_EQ(fchmod(foreign, 0700), 0);
    ASSERT_EQ(fchmod(listed, 0744), 0);
    ASSERT_EQ(as_nobody(search, dir), PX_TREE_NOTHING);
    ASSERT_EQ(fchown(dir, 0, 0), 0);
    ASSERT_EQ(fchmod(dir, 0755), 0);
    ASSERT_EQ(as_nobody(search, dir), PX_TREE_CLOSED); /* as the owner of all of it, whose rights root lends to a box */
}

TEST(search_finds_a_directory_in_use)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int sub = make_dir(dir, "sub");

    make_file(sub, ".mark", 0600);
    last.mark = ".mark";
    ASSERT_EQ(search(dir), PX_TREE_NOTHING);
    ASSERT_EQ(flock(sub, LOCK_EX | LOCK_NB), 0);
    ASSERT_EQ(search(dir), PX_TREE_IN_USE);
    ASSERT_EQ(flock(sub, LOCK_UN), 0);
    ASSERT_EQ(search(dir), PX_TREE_NOTHING);
    ASSERT_EQ(flock(sub, LOCK_EX | LOCK_NB), 0); /* the search holds nothing */
}

/* ---- trees by chance, and a walk as anybody would write it ---- */

enum { TREES = 32, NODES = 40, DIRS = 8 };

static uint32_t chance(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % below;
}

static void add_file(int dir, const char *name, uint32_t *state)
{
    static const mode_t modes[] = {0644, 0755, 0, 0111, 02644, 04755, 02755, 06711, 04000};
    mode_t mode = modes[chance(state, chance(state, 3) == 0 ? 9 : 5)];

    make_file(dir, name, 0600);
    ASSERT_EQ(fchownat(dir, name, NOBODY, NOBODY, AT_SYMLINK_NOFOLLOW), 0);
    ASSERT_EQ(fchmodat(dir, name, mode, 0), 0);
    if (chance(state, 12) == 0)
        give_capability(dir, name, chance(state, 2));
    px_auto_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (chance(state, 8) == 0)
        ASSERT_EQ(fsetxattr(fd, "user.note", "x", 1, 0), 0);
}

static void add_node(int dir, uint32_t number, uint32_t *state)
{
    static const char *const targets[] = {"/", "..", "n0", "/etc/passwd", "nowhere"};
    char name[16];

    (void)snprintf(name, sizeof name, "n%u", number);
    uint32_t kind = chance(state, 8);
    if (kind == 0)
        ASSERT_EQ(symlinkat(targets[chance(state, 5)], dir, name), 0);
    else if (kind == 1)
        ASSERT_EQ(mkfifoat(dir, name, 0600), 0);
    else
        add_file(dir, name, state);
}

static void make_random_tree(int top, uint32_t seed, bool closed)
{
    static const mode_t modes[] = {0755, 0700, 02755, 01777, 0500, 0, 0055, 0111, 0444, 0300};
    uint32_t state = seed;
    int dirs[DIRS] = {openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    char name[16];

    ASSERT_EQ(fchown(top, NOBODY, NOBODY), 0);
    for (int i = 1; i < DIRS; i++) {
        (void)snprintf(name, sizeof name, "d%d", i);
        dirs[i] = make_dir(dirs[chance(&state, (uint32_t)i)], name);
        ASSERT_EQ(fchown(dirs[i], NOBODY, NOBODY), 0);
    }
    for (uint32_t i = 0; i < NODES; i++)
        add_node(dirs[chance(&state, DIRS)], i, &state);
    for (int i = 0; i < DIRS; i++) {
        ASSERT_EQ(fchmod(dirs[i], modes[i == 0 ? 0 : chance(&state, closed ? 10 : 5)]), 0);
        (void)px_fd_close(dirs[i]);
    }
}

/* What root sees: how many files have privileges, a sum of all other modes. */
struct seen {
    int privileged;
    unsigned long modes;
};

static void look(int dir, struct seen *seen)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fdopendir(copy);
    struct dirent *entry;

    ASSERT(list != NULL);
    while ((entry = readdir(list))) {
        struct stat st;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        ASSERT_EQ(fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
        bool set_id = S_ISREG(st.st_mode) && (st.st_mode & S_ISUID || (st.st_mode & 02010) == 02010);
        bool privileged = S_ISREG(st.st_mode) && (set_id || has_capability(dir, entry->d_name));
        seen->privileged += privileged;
        seen->modes = seen->modes * 31 + (st.st_mode & (set_id ? 01777u : 07777u)) + (unsigned long)st.st_ino;
        if (!S_ISDIR(st.st_mode))
            continue;
        px_auto_fd int sub = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        look(sub, seen);
    }
    (void)closedir(list);
}

TEST_DEADLINE(random_trees, 60)
{
    if (geteuid() != 0)
        SKIP("only root can give files capabilities and another owner");
    px_auto_fd int top = px_test_dir();
    ASSERT_EQ(fchmod(top, 0755), 0);
    for (uint32_t seed = 0; seed < TREES; seed++) {
        px_auto_fd int dir = make_dir(top, "tree");
        struct seen before = {0}, after = {0};
        make_random_tree(dir, seed, seed % 2);
        look(dir, &before);
        int as_root = search(dir), as_owner = as_nobody(search, dir);
        bool found = as_root == PX_TREE_SET_ID || as_root == PX_TREE_CAPABILITY;
        if (found != (before.privileged > 0) || (as_owner == PX_TREE_NOTHING) != (before.privileged == 0))
            FAIL("tree %u: %d files with privileges; root finds %d, the owner %d", seed, before.privileged, as_root, as_owner);
        int stripped = seed % 4 < 2 ? strip_all(dir) : as_nobody(strip_all, dir);
        look(dir, &after);
        if (stripped != before.privileged || after.privileged != 0 || after.modes != before.modes)
            FAIL("tree %u: %d of %d files stripped, %d left, other modes %s", seed, stripped, before.privileged,
                 after.privileged, after.modes == before.modes ? "kept" : "changed");
        ASSERT_EQ(as_nobody(px_kernel_tree_empty, dir), 0);
        ASSERT_EQ(entries_of(dir), 0);
        ASSERT_EQ(unlinkat(top, "tree", AT_REMOVEDIR), 0);
    }
}

TEST(strip_of_something_else)
{
    px_auto_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ASSERT_EQ(px_kernel_tree_strip(null, 0), -ENOTDIR);
    ASSERT_EQ(px_kernel_tree_strip(-1, 0), -EBADF);
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
    ASSERT_EQ(px_kernel_tree_empty(dir), 0);
    ASSERT_EQ(entries_of(dir), 0);
    ASSERT_EQ(px_kernel_tree_empty(dir), 0);
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
    ASSERT_EQ(px_kernel_tree_empty(dir), 0);
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
    ASSERT_EQ(px_kernel_tree_empty(drop), 0);
    ASSERT_EQ(entries_of(drop), 0);
    ASSERT_EQ(mode_of(keep, "file"), 0640);
}

TEST(empty_of_a_very_deep_tree)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int deep = make_deep(dir, DEEP);

    make_file(deep, "bottom", 0600);
    int r = px_kernel_tree_empty(dir), left = entries_of(dir);
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
    int r = px_kernel_tree_empty(dir), left = entries_of(dir);
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
    int r = as_nobody(px_kernel_tree_empty, dir), left = entries_of(dir);
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
    int r = as_nobody(px_kernel_tree_empty, dir);
    ASSERT(exists(foreign, "file"));
    if (r >= 0)
        FAIL("a directory is left and the answer is %d", r);
}

TEST(empty_of_something_else)
{
    px_auto_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ASSERT_EQ(px_kernel_tree_empty(null), -ENOTDIR);
    ASSERT_EQ(px_kernel_tree_empty(-1), -EBADF);
}

/* ---- giving ---- */

enum { BOX = 1300, BOX_GROUP = 1301 };

static void check_owner(int dir, const char *name, uint32_t uid, uint32_t gid)
{
    struct stat st;
    ASSERT_EQ(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    ASSERT_EQ(st.st_uid, uid);
    ASSERT_EQ(st.st_gid, gid);
}

/* Whose things are given, whose are not, and what lies behind a link stays as it is. */
TEST(a_tree_is_given)
{
    const struct px_tree_ids mine[2] = {{0, 0}, {0, 0}}, box[2] = {{BOX, BOX_GROUP}, {BOX, BOX_GROUP}};
    px_auto_fd int top = px_test_dir(), outside = make_dir(top, "outside"), dir = make_dir(top, "dir");
    px_auto_fd int deep = make_deep(dir, 100);
    if (geteuid() != 0)
        SKIP("only root can change owners");
    make_file(outside, "f", 0644);
    make_file(dir, "closed", 0);
    make_file(dir, "set", 0644);
    make_file(deep, "f", 0600);
    make_file(dir, "other", 0600);
    ASSERT_EQ(fchownat(dir, "other", NOBODY, NOBODY, 0), 0);
    ASSERT_EQ(symlinkat("../outside", dir, "link"), 0);
    ASSERT_EQ(symlinkat("../outside/f", dir, "file"), 0);
    ASSERT_EQ(linkat(outside, "f", dir, "hard", 0), 0);

    ASSERT_OK(px_kernel_tree_give(dir, mine, &box[0]));
    check_owner(dir, "hard", 0, 0);
    ASSERT_EQ(linkat(dir, "closed", dir, "again", 0), 0);       /* as a box could */
    check_owner(top, "dir", 0, 0);              /* the top is the caller's business */
    check_owner(dir, "closed", BOX, BOX_GROUP);
    check_owner(dir, "link", BOX, BOX_GROUP);
    check_owner(dir, "file", BOX, BOX_GROUP);
    check_owner(deep, "f", BOX, BOX_GROUP);
    check_owner(dir, "other", NOBODY, NOBODY);
    check_owner(top, "outside", 0, 0);
    check_owner(outside, "f", 0, 0);

    ASSERT_EQ(fchmodat(dir, "set", 06755, 0), 0);
    ASSERT_EQ(fchmodat(dir, "d", 0, 0), 0);
    ASSERT_OK(px_kernel_tree_give(dir, box, &mine[0]));
    check_owner(deep, "f", 0, 0);
    check_owner(dir, "link", 0, 0);
    check_owner(dir, "again", 0, 0);
    check_owner(dir, "set", 0, 0);
    ASSERT_EQ(mode_of(dir, "set"), 0755);
    ASSERT_EQ(mode_of(dir, "d"), 0);
    check_owner(dir, "other", NOBODY, NOBODY);
    ASSERT_EQ(fchmodat(dir, "d", 0755, 0), 0);

    ASSERT_OK(px_kernel_tree_give_one(dir, mine, &box[0]));
    check_owner(top, "dir", BOX, BOX_GROUP);
    check_owner(dir, "set", 0, 0);
    ASSERT_OK(px_kernel_tree_give_one(dir, box, &mine[0]));
    ASSERT_OK(px_kernel_tree_empty(top));
}

/* The user and the group each for itself; two owners may be meant. */
TEST(either_owner_is_given)
{
    const struct px_tree_ids from[2] = {{0, 0}, {NOBODY, NOBODY}}, to = {BOX, BOX_GROUP};
    px_auto_fd int dir = px_test_dir();
    if (geteuid() != 0)
        SKIP("only root can change owners");
    make_file(dir, "a", 0600);
    make_file(dir, "b", 0600);
    make_file(dir, "c", 0600);
    ASSERT_EQ(fchownat(dir, "b", NOBODY, 7, 0), 0);
    ASSERT_EQ(fchownat(dir, "c", 7, NOBODY, 0), 0);
    ASSERT_OK(px_kernel_tree_give(dir, from, &to));
    check_owner(dir, "a", BOX, BOX_GROUP);
    check_owner(dir, "b", BOX, 7);
    check_owner(dir, "c", 7, BOX_GROUP);
}
