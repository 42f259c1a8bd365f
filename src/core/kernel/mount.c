#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/mount.h>

#include "base/path.h"
#include "base/sys.h"
#include "kernel/abi.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#define SYS_fspick 433
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static int configure(int fs, const struct px_mount_option *options)
{
    for (const struct px_mount_option *o = options; o && o->key; o++) {
        int command = o->value ? PX_FSCONFIG_SET_STRING : PX_FSCONFIG_SET_FLAG;
        long r = px_sys(SYS_fsconfig, fs, command, o->key, o->value, 0);
        if (r < 0)
            return (int)r;
    }
    return (int)px_sys(SYS_fsconfig, fs, PX_FSCONFIG_CMD_CREATE, 0, 0, 0);
}

int px_mount_new(const char *type, const struct px_mount_option *options, unsigned attributes)
{
    int fs = (int)px_sys(SYS_fsopen, type, PX_FSOPEN_CLOEXEC);
    if (fs < 0)
        return fs;
    int r = configure(fs, options);
    if (r >= 0)
        r = (int)px_sys(SYS_fsmount, fs, PX_FSMOUNT_CLOEXEC, attributes);
    (void)px_sys(SYS_close, fs);
    return r;
}

/* The four attributes have the values of MS_RDONLY, MS_NOSUID, MS_NODEV and MS_NOEXEC. */
int px_mount_at(const char *type, const char *target, unsigned attributes, const char *data)
{
    return (int)px_sys(SYS_mount, type, target, type, attributes, data);
}

int px_mount_copy(const char *source, const char *target)
{
    return (int)px_sys(SYS_mount, source, target, 0, MS_BIND, 0);
}

int px_mount_restrict(int fd, unsigned attributes, int recursive)
{
    struct px_mount_attr attr = {.attr_set = attributes};
    unsigned flags = PX_AT_EMPTY_PATH | (recursive ? PX_AT_RECURSIVE : 0);
    return (int)px_sys(SYS_mount_setattr, fd, "", flags, &attr, sizeof attr);
}

int px_mount_close_for_writing(const char *path)
{
    int fs = (int)px_sys(SYS_fspick, AT_FDCWD, path, PX_FSPICK_CLOEXEC);
    if (fs < 0)
        return fs;
    long r = px_sys(SYS_fsconfig, fs, PX_FSCONFIG_SET_FLAG, "ro", 0, 0);
    if (r >= 0)
        r = px_sys(SYS_fsconfig, fs, PX_FSCONFIG_CMD_RECONFIGURE, 0, 0, 0);
    (void)px_sys(SYS_close, fs);
    return (int)r;
}

/* One call changes all mounts or none. If a mount below cannot be id-mapped, only the top is. */
int px_mount_idmap(int tree_fd, int userns_fd)
{
    struct px_mount_attr attr = {.attr_set = PX_MOUNT_IDMAP, .userns_fd = (uint64_t)userns_fd};
    long r = px_sys(SYS_mount_setattr, tree_fd, "", PX_AT_EMPTY_PATH | PX_AT_RECURSIVE, &attr, sizeof attr);
    return r == -EINVAL ? (int)px_sys(SYS_mount_setattr, tree_fd, "", PX_AT_EMPTY_PATH, &attr, sizeof attr) : (int)r;
}

int px_mount_of(int fd, uint64_t *ret_mount)
{
    struct statx st;
    long r = px_sys(SYS_statx, fd, "", PX_AT_EMPTY_PATH, STATX_MNT_ID, &st);
    if (r < 0 || !(st.stx_mask & STATX_MNT_ID))
        return r < 0 ? (int)r : -EOPNOTSUPP;
    *ret_mount = st.stx_mnt_id;
    return 0;
}

int px_mount_clone(int dirfd, const char *path, unsigned attributes)
{
    unsigned flags = PX_OPEN_TREE_CLONE | PX_OPEN_TREE_CLOEXEC | PX_AT_RECURSIVE | (*path ? 0 : PX_AT_EMPTY_PATH);
    int tree = (int)px_sys(SYS_open_tree, dirfd, path, flags);
    if (tree < 0 || attributes == 0)
        return tree;
    int r = px_mount_restrict(tree, attributes, 1);
    if (r < 0) {
        (void)px_sys(SYS_close, tree);
        return r;
    }
    return tree;
}

int px_mount_attach(int tree_fd, int dirfd, const char *target)
{
    int at = px_open_in_root(dirfd, target, O_PATH, 0);
    if (at < 0)
        return at;
    long r = px_sys(SYS_move_mount, tree_fd, "", at, "", PX_MOVE_MOUNT_F_EMPTY_PATH | PX_MOVE_MOUNT_T_EMPTY_PATH);
    (void)px_sys(SYS_close, at);
    return (int)r;
}

int px_mount_attach_own(int tree_fd, const char *target)
{
    return (int)px_sys(SYS_move_mount, tree_fd, "", AT_FDCWD, target, PX_MOVE_MOUNT_F_EMPTY_PATH);
}

int px_mount_private(void)
{
    return (int)px_sys(SYS_mount, 0, "/", 0, MS_REC | MS_PRIVATE, 0);
}

int px_mount_pivot(void)
{
    /* With put_old equal to new_root the old root is stacked on the new one, so it needs no directory of its own. */
    long r = px_sys(SYS_pivot_root, ".", ".");
    if (r >= 0)
        r = px_sys(SYS_umount2, ".", MNT_DETACH);
    if (r >= 0)
        r = px_sys(SYS_chdir, "/");
    return (int)r;
}
