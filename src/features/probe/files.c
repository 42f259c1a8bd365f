/* probe/files.c - mounts in a mount namespace: read-only, size limits, hidden paths and id maps. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "kernel/mount.h"
#include "kernel/privs.h"
#include "probe/probe_internal.h"

#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

enum { PLAIN = PX_MOUNT_NOSUID | PX_MOUNT_NODEV, OWN_MOUNTS = PX_CLONE_NEWUSER | PX_CLONE_NEWNS };

/* ---- a place to work in ---- */

/* Mounts on top of "/"; absolute paths still reach the host's files. */
bool px_probe_own_root(struct px_probe_ctx *c)
{
    const struct px_mount_option options[] = {{"size", "1m"}, {"nr_inodes", "100"}, {"mode", "0755"}, {NULL, NULL}};
    long r = px_mount_private();
    int tree = r < 0 ? (int)r : px_mount_new("tmpfs", options, PLAIN);
    r = tree < 0 ? tree : px_sys(SYS_move_mount, tree, "", AT_FDCWD, "/", PX_MOVE_MOUNT_F_EMPTY_PATH);
    if (r >= 0)
        r = px_sys(SYS_fchdir, tree);
    if (r < 0)
        px_probe_say(c->row->why, "a tmpfs cannot be mounted in a namespace (%s)", px_probe_errno(r).text);
    return r >= 0;
}

int px_probe_write(int dirfd, const char *name, const char *text)
{
    int fd = (int)px_sys(SYS_openat, dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return fd;
    int r = px_write_full(fd, text, strlen(text));
    (void)px_fd_close(fd);
    return r;
}

static int make_dir(const char *name)
{
    return (int)px_sys(SYS_mkdirat, AT_FDCWD, name, 0755);
}

static bool holds(const char *file, const char *text)
{
    char found[64];
    return px_read_file(AT_FDCWD, file, found, sizeof found) >= 0 && px_equal(found, text);
}

/* ---- read-only ---- */

static void inside_read_only(struct px_probe_ctx *c)
{
    if (!px_probe_own_root(c) || make_dir("tree") < 0)
        return;
    int tree = px_mount_clone(AT_FDCWD, "tree", PLAIN | PX_MOUNT_RDONLY);
    if (!px_probe_works(c, tree, "making a detached read-only copy of a tree"))
        return;
    if (px_probe_works(c, px_probe_write(AT_FDCWD, "tree/twin", "x"), "writing to the tree itself") &&
        px_probe_refused(c, px_probe_write(tree, "file", "x"), EROFS, 0, "writing to its read-only copy"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_read_only(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = OWN_MOUNTS, .inside = inside_read_only});
}

/* ---- a root of its own ---- */

static long opened(const char *path)
{
    long fd = px_sys(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC);
    if (fd >= 0)
        (void)px_sys(SYS_close, fd);
    return fd < 0 ? fd : 0;
}

static void inside_pivot(struct px_probe_ctx *c)
{
    const char *outer = opened("/usr") == 0 ? "/usr" : "/proc";
    if (opened(outer) < 0 || !px_probe_own_root(c) || px_probe_write(AT_FDCWD, "mine", "x") < 0)
        return;
    char act[64];
    (void)px_fmt(act, sizeof act, "opening the host's %s from the new root", outer);
    if (px_probe_works(c, px_mount_pivot(), "changing the root") &&
        px_probe_works(c, opened("/mine"), "opening a file of the new root") &&
        px_probe_refused(c, opened(outer), ENOENT, 0, act))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_pivot(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = OWN_MOUNTS, .inside = inside_pivot});
}

/* ---- tmpfs ---- */

enum { TMPFS_PAGES = 16, TMPFS_INODES = 8 };

/* How many pages of one file fit, up to twice the bound; the error that ended it in *ret_error. */
static int fill_file(const char *name, int pages_max, long *ret_error)
{
    char page[4096] = {1};
    int done = 0;
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    *ret_error = fd;
    while (fd >= 0 && done < pages_max && (*ret_error = px_sys(SYS_write, fd, page, sizeof page)) == sizeof page)
        done++;
    (void)px_fd_close(fd);
    return done;
}

static long fill_inodes(void)
{
    long r = 0;
    for (int i = 0; i < 4 * TMPFS_INODES && r >= 0; i++) {
        char name[16];
        (void)px_fmt(name, sizeof name, "t/%d", i);
        r = px_sys(SYS_mknodat, AT_FDCWD, name, S_IFREG | 0600, 0);
    }
    return r;
}

static void inside_tmpfs(struct px_probe_ctx *c)
{
    char options[64];
    long error = 0;
    (void)px_fmt(options, sizeof options, "size=%dk,nr_inodes=%d", TMPFS_PAGES * 4, TMPFS_INODES);
    if (!px_probe_own_root(c) || make_dir("t") < 0 ||
        !px_probe_works(c, px_mount_at("tmpfs", "t", PLAIN, options), "mounting it"))
        return;
    int few = fill_file("t/few", 2, &error);
    if (!px_probe_works(c, few == 2 ? 0 : error, "writing 8 of 64 KiB"))
        return;
    (void)fill_file("t/many", 2 * TMPFS_PAGES, &error);
    if (px_probe_refused(c, error, ENOSPC, 0, "writing more") &&
        px_probe_refused(c, fill_inodes(), ENOSPC, 0, "writing beyond 64 KiB failed with ENOSPC; making a 9th file"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_tmpfs(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = OWN_MOUNTS, .inside = inside_tmpfs});
}

/* ---- procfs ---- */

static ssize_t read_count(const char *path)
{
    char text[4096];
    ssize_t n = px_read_file(AT_FDCWD, path, text, sizeof text);
    return n == -EFBIG ? (ssize_t)sizeof text : n;
}

/* Whether a process without privileges sees itself and not process 1. The row is shared, so the copy can write it. */
static bool hides_process_1(struct px_probe_ctx *c)
{
    px_auto_fd int pidfd = -EBADF;
    const struct px_idmap *map = &c->host->map;
    int status = -1;
    (void)px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    long pid = px_fork(&pidfd);
    if (pid == 0) {
        int r = px_privs_bound();
        if (r >= 0)
            r = px_privs_drop(map->uid, map->gid, map->kind != PX_IDMAP_SINGLE, 1);
        bool right = px_probe_works(c, r, "giving up privileges") &&
                     px_probe_works(c, read_count("proc/self/stat"), "reading its own entry in its own /proc") &&
                     px_probe_refused(c, read_count("proc/1/stat"), ENOENT, 0, "reading the entry of process 1");
        px_fork_exit(right ? 0 : 1);
    }
    if (pid < 0)
        px_probe_no_process(c, pid);
    return pid > 0 && px_fork_reap(pidfd, &status) >= 0 && status == 0;
}

static void inside_procfs(struct px_probe_ctx *c)
{
    if (!px_probe_own_root(c) || make_dir("proc") < 0)
        return;
    int r = px_mount_at("proc", "proc", PLAIN | PX_MOUNT_NOEXEC, "hidepid=ptraceable");
    if (!px_probe_works(c, r, "mounting a procfs with hidepid")) {
        c->row->raise = r == -EPERM ? PX_RAISE_PROC : PX_RAISE_KERNEL;
        return;
    }
    if (!px_probe_works(c, read_count("proc/version") > 0 ? 0 : -ENODATA, "reading its version before it is masked"))
        return;
    r = px_mount_copy("/dev/null", "proc/version");
    if (!px_probe_works(c, r, "masking a file with the null device"))
        return;
    if (read_count("proc/version") != 0) {
        px_probe_say(c->row->why, "a masked file of /proc can still be read");
        return;
    }
    px_probe_say(c->row->found, "hidepid, masks");
    if (hides_process_1(c))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_procfs(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = OWN_MOUNTS | PX_CLONE_NEWPID, .inside = inside_procfs});
}

/* ---- overlay ---- */

static void inside_overlay(struct px_probe_ctx *c)
{
    static const char *const names[] = {"lower", "upper", "work", "merged"};
    if (!px_probe_own_root(c))
        return;
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        (void)make_dir(names[i]);
    int r = px_probe_write(AT_FDCWD, "lower/file", "old");
    if (r >= 0)
        r = px_mount_at("overlay", "merged", PLAIN, "lowerdir=lower,upperdir=upper,workdir=work,userxattr");
    if (!px_probe_works(c, r, "mounting an overlay in a user namespace")) {
        c->row->raise = r == -ENODEV ? PX_RAISE_OVERLAY : PX_RAISE_KERNEL;
        return;
    }
    r = px_probe_write(AT_FDCWD, "merged/file", "new");
    if (!px_probe_works(c, r >= 0 && !holds("upper/file", "new") ? -ENODATA : r, "writing to the upper layer"))
        return;
    if (holds("lower/file", "old")) {
        px_probe_say(c->row->forbidden, "the file below did not change");
        c->row->state = PX_PROBE_ENFORCED;
    } else {
        px_probe_say(c->row->why, "a write to the overlay changed the layer below");
    }
}

void px_probe_overlay(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = OWN_MOUNTS, .inside = inside_overlay});
}

/* ---- id-mapped mounts ---- */

/* Uses the root file system, as nothing is written. Boxes of root show the caller's files this way; those of an
 * ordinary user need only the id map. */
static void inside_idmapped(struct px_probe_ctx *c)
{
    struct stat plain = {0}, mapped = {0};
    const uint32_t to = px_idmap_host_uid(&c->host->map);
    long r = px_sys(SYS_newfstatat, AT_FDCWD, "/", &plain, 0);
    int tree = r < 0 ? (int)r : px_mount_clone(AT_FDCWD, "/", 0);
    if (!px_probe_works(c, tree, "making a detached copy of the root file system")) {
        c->row->raise = tree == -EPERM ? PX_RAISE_CAPABILITIES : PX_RAISE_KERNEL;
        return;
    }
    int userns = px_idmap_userns(plain.st_uid, plain.st_gid, to, to);
    r = userns < 0 ? userns : px_mount_idmap(tree, userns);
    if (!px_probe_works(c, r, "mapping the owners of the root file system"))
        return;
    r = px_sys(SYS_newfstatat, tree, "", &mapped, AT_EMPTY_PATH);
    if (r < 0 || mapped.st_uid != to) {
        px_probe_say(c->row->why, "the owner of the mapped mount is seen as %u, not as %u", mapped.st_uid, to);
        return;
    }
    px_probe_say(c->row->permitted, "the owner of / is seen as %u in the mapped mount", to);
    px_probe_say(c->row->forbidden, "it stays %u outside of it", plain.st_uid);
    c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_idmapped(struct px_probe_ctx *c)
{
    if (!c->host->root || c->host->map.kind != PX_IDMAP_RANGE) {
        px_probe_say(c->row->why, "only root can make them, and only boxes with a range of ids of root's use them");
        return;
    }
    c->row->raise = PX_RAISE_IDMAPPED;
    (void)px_probe_child(c, &(struct px_probe_job){.inside = inside_idmapped});
}

/* ---- terminals ---- */

static int open_terminal(void)
{
    return (int)px_sys(SYS_openat, AT_FDCWD, "pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static void inside_terminal(struct px_probe_ctx *c)
{
    char byte = 0;
    int unlock = 0;
    if (!px_probe_own_root(c) || make_dir("pts") < 0)
        return;
    int r = px_mount_at("devpts", "pts", PX_MOUNT_NOSUID | PX_MOUNT_NOEXEC, "ptmxmode=0666,mode=0620,max=1");
    int master = r < 0 ? r : open_terminal();
    if (!px_probe_works(c, master, "opening a terminal of its own devpts"))
        return;
    r = (int)px_sys(SYS_ioctl, master, TIOCSPTLCK, &unlock);
    int terminal = r < 0 ? r : (int)px_sys(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (!px_probe_works(c, terminal, "getting its other end by descriptor (TIOCGPTPEER)"))
        return;
    long n = px_sys(SYS_write, terminal, "x", 1);
    if (n >= 0)
        n = px_sys(SYS_read, master, &byte, 1);
    if (px_probe_works(c, n >= 0 && byte != 'x' ? -EIO : n, "writing to a terminal of its own devpts") &&
        px_probe_refused(c, open_terminal(), ENOSPC, 0, "opening one more than the bound of 1"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_terminal(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = OWN_MOUNTS, .inside = inside_terminal});
}
