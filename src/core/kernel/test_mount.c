/* kernel/test_mount.c - detached trees, their attributes, and where they may be attached; in namespaces of their own. */
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "harness/test.h"
#include "kernel/abi.h"
#include "kernel/idmap.h"

/* Runs fn in a child with its own user and mount namespaces, mapped as a box is; the working directory is a tmpfs. */
static void in_namespaces(void (*fn)(void))
{
    struct px_idmap map;
    int ready[2], go[2], status;
    char byte = 0;

    if (px_idmap_choose(1000, 1000, false, &map) < 0)
        SKIP("no ids can be had here");
    px_auto_fd int dir = px_test_dir();
    ASSERT_EQ(fchmod(dir, 0777), 0); /* the ids of the namespace are strangers outside */
    ASSERT_OK(px_pipe(ready));
    ASSERT_OK(px_pipe(go));
    pid_t pid = fork();
    if (pid == 0) {
        byte = unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(3);
        if (map.kind != PX_IDMAP_SINGLE &&
            (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
            _exit(4);
        ASSERT_OK(px_mount_private());
        const struct px_mount_option options[] = {{"size", "1048576"}, {NULL, NULL}};
        px_auto_fd int tree = px_mount_new("tmpfs", options, PX_MOUNT_NODEV);
        ASSERT_OK(tree);
        ASSERT_EQ(chdir(px_test_dir_path()), 0);
        ASSERT_OK(px_mount_attach(tree, AT_FDCWD, "."));
        ASSERT_EQ(fchdir(tree), 0);
        fn();
        _exit(0);
    }
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    bool made = byte == 'y';
    int mapped = made ? px_idmap_apply(&map, pid) : 0;
    int *const ends[] = {&ready[0], &ready[1], &go[0]};
    for (size_t i = 0; i < PX_COUNT_OF(ends); i++)
        (void)px_fd_close(*ends[i]);
    if (made && mapped >= 0)
        ASSERT_EQ(write(go[1], "g", 1), 1);
    (void)px_fd_close(go[1]);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    px_idmap_done(&map);
    if (!made)
        SKIP("no namespaces can be made here");
    ASSERT_OK(mapped);
    ASSERT_EQ(status, 0);
}

static int touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0)
        return -errno;
    (void)close(fd);
    return 0;
}

static int new_tmpfs(unsigned attributes)
{
    return px_mount_new("tmpfs", NULL, attributes);
}

static void attach_tmpfs(const char *target)
{
    px_auto_fd int tree = new_tmpfs(0);

    ASSERT_OK(tree);
    ASSERT_OK(px_mount_attach(tree, AT_FDCWD, target));
}

static unsigned long flags_of(const char *path)
{
    struct statvfs st;

    ASSERT_EQ(statvfs(path, &st), 0);
    return st.f_flag;
}

/* ---- new file systems ---- */

static void check_new(void)
{
    struct statvfs st;

    ASSERT_EQ(mkdir("m", 0755), 0);
    const struct px_mount_option options[] = {
        {"size", "65536"}, {"nr_inodes", "16"}, {"mode", "0751"}, {NULL, NULL}};
    px_auto_fd int tree = px_mount_new("tmpfs", options, PX_MOUNT_NOSUID | PX_MOUNT_NODEV | PX_MOUNT_NOEXEC);
    ASSERT_OK(tree);
    ASSERT_EQ(fcntl(tree, F_GETFD), FD_CLOEXEC);
    ASSERT(access("m/x", F_OK) < 0);
    ASSERT_OK(px_mount_attach(tree, AT_FDCWD, "m"));
    ASSERT_EQ(statvfs("m", &st), 0);
    ASSERT_EQ(st.f_blocks * st.f_frsize, 65536);
    ASSERT_EQ(st.f_files, 16);
    ASSERT_EQ(st.f_flag & (ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_RDONLY), ST_NOSUID | ST_NODEV | ST_NOEXEC);
    ASSERT_EQ(touch("m/file"), 0);
    struct stat dir;
    ASSERT_EQ(stat("m", &dir), 0);
    ASSERT_EQ(dir.st_mode & 07777, 0751);
}

TEST(a_new_file_system_has_its_options_and_attributes)
{
    in_namespaces(check_new);
}

static void check_new_errors(void)
{
    const struct px_mount_option bad_key[] = {{"no-such-option", "1"}, {NULL, NULL}};
    const struct px_mount_option bad_value[] = {{"size", "much"}, {NULL, NULL}};
    const struct px_mount_option flag[] = {{"size", NULL}, {NULL, NULL}};

    ASSERT_EQ(px_mount_new("no-such-type", NULL, 0), -ENODEV);
    ASSERT_EQ(px_mount_new("tmpfs", bad_key, 0), -EINVAL);
    ASSERT_EQ(px_mount_new("tmpfs", bad_value, 0), -EINVAL);
    ASSERT_EQ(px_mount_new("tmpfs", flag, 0), -EINVAL);
    ASSERT_EQ(px_mount_new("tmpfs", NULL, 0x40000000), -EINVAL);
}

TEST(what_the_kernel_does_not_know_is_an_error)
{
    in_namespaces(check_new_errors);
}

/* ---- copies ---- */

static void check_clone(void)
{
    ASSERT_EQ(mkdir("a", 0755), 0);
    ASSERT_EQ(mkdir("b", 0755), 0);
    ASSERT_EQ(mkdir("a/sub", 0755), 0);
    attach_tmpfs("a/sub");
    ASSERT_EQ(touch("a/file"), 0);
    ASSERT_EQ(touch("a/sub/file"), 0);

    px_auto_fd int tree = px_mount_clone(AT_FDCWD, "a", PX_MOUNT_RDONLY | PX_MOUNT_NOSUID | PX_MOUNT_NODEV);
    ASSERT_OK(tree);
    ASSERT_EQ(fcntl(tree, F_GETFD), FD_CLOEXEC);
    ASSERT_OK(px_mount_attach(tree, AT_FDCWD, "b"));
    ASSERT_EQ(access("b/sub/file", F_OK), 0);
    ASSERT_EQ(touch("b/new"), -EROFS);
    ASSERT_EQ(touch("b/sub/new"), -EROFS); /* a submount too: MS_BIND would have left it writable */
    ASSERT_EQ(flags_of("b/sub") & (ST_RDONLY | ST_NOSUID | ST_NODEV), ST_RDONLY | ST_NOSUID | ST_NODEV);
    ASSERT_EQ(touch("a/new"), 0); /* the original is as it was */
    ASSERT_EQ(touch("a/sub/new"), 0);
    ASSERT_EQ(access("b/new", F_OK), 0);
}

TEST(a_copy_is_read_only_in_depth)
{
    in_namespaces(check_clone);
}

static void check_clone_by_fd(void)
{
    ASSERT_EQ(touch("file"), 0);
    ASSERT_EQ(touch("target"), 0);
    px_auto_fd int file = open("file", O_PATH | O_CLOEXEC);
    px_auto_fd int tree = px_mount_clone(file, "", PX_MOUNT_RDONLY);
    ASSERT_OK(tree);
    ASSERT_OK(px_mount_attach(tree, AT_FDCWD, "target"));
    ASSERT_EQ(open("target", O_WRONLY | O_CLOEXEC), -1);
    ASSERT_EQ(errno, EROFS);
    ASSERT_EQ(px_mount_clone(AT_FDCWD, "nothing", 0), -ENOENT);
    ASSERT_EQ(px_mount_clone(-1, "", 0), -EBADF);
}

TEST(a_copy_of_one_file)
{
    in_namespaces(check_clone_by_fd);
}

static void check_restrict(void)
{
    ASSERT_EQ(mkdir("a", 0755), 0);
    attach_tmpfs("a");
    ASSERT_EQ(mkdir("a/sub", 0755), 0);
    attach_tmpfs("a/sub");
    px_auto_fd int a = open("a", O_PATH | O_DIRECTORY | O_CLOEXEC);

    ASSERT_OK(px_mount_restrict(a, PX_MOUNT_RDONLY, 0));
    ASSERT_EQ(touch("a/new"), -EROFS);
    ASSERT_EQ(touch("a/sub/new"), 0);
    ASSERT_OK(px_mount_restrict(a, PX_MOUNT_RDONLY | PX_MOUNT_NOEXEC, 1));
    ASSERT_EQ(touch("a/sub/newer"), -EROFS);
    ASSERT(flags_of("a/sub") & ST_NOEXEC);
    px_auto_fd int not_a_root = open("a/sub/new", O_PATH | O_CLOEXEC);
    ASSERT_EQ(px_mount_restrict(not_a_root, PX_MOUNT_RDONLY, 0), -EINVAL);
}

TEST(attributes_of_an_attached_tree)
{
    in_namespaces(check_restrict);
}

/* ---- where a tree may go ---- */

static void refuse(const char *target, int wanted)
{
    px_auto_fd int tree = new_tmpfs(0);

    ASSERT_OK(tree);
    int r = px_mount_attach(tree, AT_FDCWD, target);
    if (r != wanted)
        FAIL("attaching at '%s' gives %d, not %d", target, r, wanted);
}

static void check_targets(void)
{
    ASSERT_EQ(mkdir("real", 0755), 0);
    ASSERT_EQ(mkdir("real/below", 0755), 0);
    ASSERT_EQ(symlink("real", "link"), 0);
    ASSERT_EQ(symlink("/etc", "out"), 0);
    ASSERT_EQ(symlink("..", "real/up"), 0);
    ASSERT_EQ(touch("file"), 0);
    refuse("link", -ELOOP);
    refuse("link/below", -ELOOP);
    refuse("out", -ELOOP);
    refuse("real/up/real", -ELOOP);
    refuse("nothing", -ENOENT);
    refuse("file/below", -ENOTDIR);
    refuse("file", -EINVAL); /* a directory never covers a file */
    refuse("", -ENOENT);
    ASSERT_EQ(touch("real/below/still-visible"), 0);
}

TEST(a_target_is_reached_without_links)
{
    in_namespaces(check_targets);
}

/* The quick way, for places that only we have made: it must still not follow a link at the end. */
static void check_own(void)
{
    px_auto_fd int tree = new_tmpfs(0), other = new_tmpfs(0);

    ASSERT_EQ(mkdir("m", 0755), 0);
    ASSERT_EQ(mkdir("real", 0755), 0);
    ASSERT_EQ(symlink("real", "link"), 0);
    ASSERT_OK(px_mount_attach_own(tree, "m"));
    ASSERT_EQ(touch("m/here"), 0);
    ASSERT(px_mount_attach_own(other, "link") < 0);
    ASSERT_EQ(touch("real/visible"), 0);
    ASSERT_EQ(px_mount_attach_own(other, "nothing"), -ENOENT);
}

TEST(a_target_of_our_own)
{
    in_namespaces(check_own);
}

static void check_confined(void)
{
    ASSERT_EQ(mkdir("root", 0755), 0);
    ASSERT_EQ(mkdir("root/etc", 0755), 0);
    ASSERT_EQ(mkdir("outside", 0755), 0);
    px_auto_fd int root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    px_auto_fd int tree = new_tmpfs(0), other = new_tmpfs(0);

    ASSERT_OK(px_mount_attach(tree, root, "/etc")); /* absolute means below the root that was given */
    ASSERT_EQ(touch("root/etc/here"), 0);
    ASSERT(access("/etc/here", F_OK) < 0);
    ASSERT(px_mount_attach(other, root, "../outside") < 0);
}

TEST(a_target_stays_below_its_root)
{
    in_namespaces(check_confined);
}

static void check_twice(void)
{
    ASSERT_EQ(mkdir("m", 0755), 0);
    ASSERT_EQ(mkdir("n", 0755), 0);
    px_auto_fd int tree = new_tmpfs(0), null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ASSERT_OK(px_mount_attach(tree, AT_FDCWD, "m"));
    ASSERT_EQ(touch("m/a"), 0);
    attach_tmpfs("m"); /* a second one lies on top */
    ASSERT(access("m/a", F_OK) < 0);
    ASSERT(px_mount_attach(null, AT_FDCWD, "n") < 0);
    ASSERT_EQ(px_mount_attach(-1, AT_FDCWD, "n"), -EBADF);
}

TEST(trees_stack)
{
    in_namespaces(check_twice);
}

/* ---- the root ---- */

static void check_pivot(void)
{
    char where[64];

    ASSERT_EQ(mkdir("mark", 0755), 0);
    px_auto_fd int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(px_mount_pivot());
    ASSERT_EQ(access("/mark", F_OK), 0);
    ASSERT(access("/etc", F_OK) < 0 && access("/proc", F_OK) < 0 && access("/usr", F_OK) < 0);
    ASSERT(getcwd(where, sizeof where) != NULL);
    ASSERT_STR(where, "/");
    ASSERT_EQ(access("/../../..", F_OK), 0);
    struct stat root, up;
    ASSERT_EQ(stat("/", &root), 0);
    ASSERT_EQ(stat("/../..", &up), 0);
    ASSERT_EQ(root.st_ino, up.st_ino);
    ASSERT_EQ(fstat(here, &up), 0);
    ASSERT_EQ(root.st_dev, up.st_dev);
    ASSERT_EQ(umount2("/", MNT_DETACH), -1); /* and what was below it cannot be uncovered */
}

TEST(pivot_leaves_nothing_of_the_old_root)
{
    in_namespaces(check_pivot);
}

static void check_pivot_elsewhere(void)
{
    ASSERT_EQ(mkdir("not-a-mount", 0755), 0);
    ASSERT_EQ(chdir("not-a-mount"), 0);
    ASSERT_EQ(px_mount_pivot(), -EINVAL);
    ASSERT_EQ(access("/usr", F_OK), 0);
}

TEST(pivot_needs_a_mount)
{
    in_namespaces(check_pivot_elsewhere);
}

/* ---- owners ---- */

TEST(an_id_mapped_tree_shows_another_owner)
{
    if (geteuid() != 0)
        SKIP("only root may map the owners of its files");
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int userns = px_idmap_userns(0, 0, 0x70001000, 0x70001001);
    int status;

    ASSERT_OK(userns);
    ASSERT_EQ(mkdirat(dir, "source", 0755), 0);
    ASSERT_EQ(mkdirat(dir, "target", 0755), 0);
    ASSERT_EQ(fchdir(dir), 0);
    ASSERT_EQ(touch("source/mine"), 0);
    ASSERT_EQ(touch("source/other"), 0);
    ASSERT_EQ(chown("source/other", 1200, 1200), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0)
            SKIP("no mount namespace can be made here");
        ASSERT_OK(px_mount_private());
        px_auto_fd int tree = px_mount_clone(AT_FDCWD, "source", PX_MOUNT_NOSUID);
        ASSERT_OK(tree);
        int r = px_mount_idmap(tree, userns);
        if (r == -EINVAL)
            SKIP("the file system of the temporary directory knows no id-mapped mounts");
        ASSERT_OK(r);
        ASSERT(px_mount_idmap(tree, userns) < 0); /* once and for all */
        ASSERT_OK(px_mount_attach(tree, AT_FDCWD, "target"));
        struct stat st;
        ASSERT_EQ(stat("target/mine", &st), 0);
        ASSERT_EQ(st.st_uid, 0x70001000);
        ASSERT_EQ(st.st_gid, 0x70001001);
        ASSERT_EQ(stat("target/other", &st), 0);
        ASSERT_EQ(st.st_uid, 65534);                /* whoever is not in the map is nobody */
        ASSERT_EQ(touch("target/new"), -EOVERFLOW); /* and root itself is not in it */
        _exit(0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
    ASSERT_EQ(chdir("/"), 0);
}
