/* Stage 1: the namespaces and mounts of pid 1. From ROOT on, the working directory is the new root. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "child/ops.h"
#include "kernel/abi.h"
#include "kernel/mount.h"

static const char *put_octal(unsigned value, char out[21])
{
    char *p = out + 20;
    *p = '\0';
    do
        *--p = (char)('0' + value % 8);
    while ((value /= 8));
    return p;
}

int px_op_private(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return px_mount_private();
}

int px_op_cgroupns(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return (int)px_sys(SYS_unshare, CLONE_NEWCGROUP);
}

/* Notes what this kernel, this caller or this host does not allow. The box runs without it, and the parent reports
 * it. */
static int note_lack(struct px_child *c, int r, unsigned what)
{
    if (r < 0)
        c->lacks |= what;
    return 0;
}

/* The seccomp filter of most containers refuses sethostname, and no other call that a box needs. */
int px_op_hostname(struct px_child *c, const struct px_step *s)
{
    const char *name = px_op_text(c, s->src);
    long n = 0;
    while (name[n])
        n++;
    int r = (int)px_sys(SYS_sethostname, name, n);
    return r == -EPERM || r == -ENOSYS ? note_lack(c, r, PX_LACKS_HOSTNAME) : r;
}

/* Writes a number into a file of the host's /proc/sys that concerns our own user or pid namespace. */
int px_op_setting(struct px_child *c, const struct px_step *s)
{
    char room[21];
    const char *value = px_op_digits(s->num, room);
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, px_op_text(c, s->src), O_WRONLY | O_CLOEXEC);
    long r = fd < 0 ? fd : px_sys(SYS_write, fd, value, room + 20 - value);
    if (fd >= 0)
        (void)px_sys(SYS_close, fd);
    if (s->op == PX_OP_NO_MEMFD)
        return note_lack(c, (int)r, PX_LACKS_NO_MEMFD);
    if (s->op == PX_OP_COUNTS && r == -ENOENT)  /* a kernel without inotify has no such counter */
        return 0;
    return r < 0 ? (int)r : 0;
}

int px_op_enter_tree(int tree)
{
    long r = px_sys(SYS_move_mount, tree, "", AT_FDCWD, "/", PX_MOVE_MOUNT_F_EMPTY_PATH);
    if (r >= 0)
        r = px_sys(SYS_fchdir, tree);
    (void)px_sys(SYS_close, tree);
    return (int)r;
}

int px_op_attach(int tree, const char *target)
{
    int r = tree < 0 ? tree : px_mount_attach_own(tree, px_op_below(target));
    if (tree >= 0)
        (void)px_sys(SYS_close, tree);
    return r;
}

/* Where another process may have put a link on the path, no link is followed. */
static int attach_at(struct px_child *c, const struct px_step *s, int tree)
{
    if (!(s->flags & PX_STEP_FOREIGN))
        return px_op_attach(tree, px_op_text(c, s->dst));
    int r = tree < 0 ? tree : px_mount_attach(tree, AT_FDCWD, px_op_below(px_op_text(c, s->dst)));
    if (tree >= 0)
        (void)px_sys(SYS_close, tree);
    return r;
}

/* "size=1,mode=755": the options of mount(2). out holds 256 bytes, more than five names and numbers need. */
static void option_text(const struct px_mount_option *options, char out[256])
{
    uint32_t n = 0;
    for (const struct px_mount_option *o = options; o->key; o++) {
        const char *const parts[] = {n ? "," : "", o->key, "=", o->value};
        for (int i = 0; i < 4; i++)
            for (const char *p = parts[i]; *p && n < 255; p++)
                out[n++] = *p;
    }
    out[n] = '\0';
}

/* In the skeleton, one mount call. Elsewhere a detached tree is made and attached, so that no link is followed. */
static int mount_new(struct px_child *c, const struct px_step *s, const char *type, const struct px_mount_option *options)
{
    char data[256];
    if (s->flags & PX_STEP_FOREIGN)
        return attach_at(c, s, px_mount_new(type, options, s->attr));
    option_text(options, data);
    return px_mount_at(type, px_op_below(px_op_text(c, s->dst)), s->attr, data);
}

struct tmpfs_options {
    char size[21], inodes[21], mode[21], uid[21], gid[21];
    struct px_mount_option list[6];
};

static void fill_tmpfs(struct tmpfs_options *o, const struct px_step *s, unsigned mode, uint32_t uid, uint32_t gid)
{
    const struct px_mount_option list[6] = {
        {"size", px_op_digits(s->num, o->size)}, {"nr_inodes", px_op_digits(s->num2, o->inodes)}, {"mode", put_octal(mode, o->mode)},
        {"uid", px_op_digits(uid, o->uid)},      {"gid", px_op_digits(gid, o->gid)},              {NULL, NULL},
    };
    for (int i = 0; i < 6; i++)
        o->list[i] = list[i];
}

int px_op_mount_owned(struct px_child *c, const struct px_step *s, const char *target)
{
    struct tmpfs_options options;
    char data[256];
    fill_tmpfs(&options, s, 0755, c->plan->owner.uid, c->plan->owner.gid);
    option_text(options.list, data);
    return px_mount_at("tmpfs", target, s->attr, data);
}

int px_op_root(struct px_child *c, const struct px_step *s)
{
    const bool owned = s->flags & PX_STEP_OWNED;
    uint32_t uid = owned ? c->plan->owner.uid : (uint32_t)px_sys(SYS_getuid);
    uint32_t gid = owned ? c->plan->owner.gid : (uint32_t)px_sys(SYS_getgid);
    struct tmpfs_options options;
    fill_tmpfs(&options, s, 0755, uid, gid);
    int tree = px_mount_new("tmpfs", options.list, s->attr);
    return tree < 0 ? tree : px_op_enter_tree(tree);
}

/* Attaches a clone of the template's tree, which lies in the template namespace, from which this process was cloned. */
int px_op_tree(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    int tree = px_mount_clone(AT_FDCWD, PX_TEMPLATE_TREE, 0);
    return tree < 0 ? tree : px_op_enter_tree(tree);
}

int px_op_check_source(const struct px_step *s, int fd)
{
    struct stat st = {0};
    if (fd < 0)
        return fd;
    long r = px_sys(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH);
    if (r >= 0 && s->flags & PX_STEP_DEVICE)
        r = S_ISCHR(st.st_mode) && st.st_rdev == s->num ? 0 : -ENODEV;
    else if (r >= 0 && (st.st_dev != s->num || st.st_ino != s->num2))
        r = -ESTALE;
    if (r < 0) {
        (void)px_sys(SYS_close, fd);
        return (int)r;
    }
    return fd;
}

int px_op_mkdir(struct px_child *c, const struct px_step *s)
{
    const char *path = px_op_below(px_op_text(c, s->dst));
    long r = px_sys(SYS_mkdirat, AT_FDCWD, path, s->attr);
    if (r == -EEXIST)
        return 0;
    if (r >= 0 && s->flags & PX_STEP_OWNED)
        r = px_sys(SYS_fchownat, AT_FDCWD, path, c->plan->owner.uid, c->plan->owner.gid, AT_SYMLINK_NOFOLLOW);
    return (int)r;
}

int px_op_symlink(struct px_child *c, const struct px_step *s)
{
    return (int)px_sys(SYS_symlinkat, px_op_text(c, s->src), AT_FDCWD, px_op_below(px_op_text(c, s->dst)));
}

int px_op_file(struct px_child *c, const struct px_step *s)
{
    const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    if (s->num == 0) {          /* an empty file to mount on */
        long r = px_sys(SYS_mknodat, AT_FDCWD, px_op_below(px_op_text(c, s->dst)), S_IFREG | s->attr, 0);
        return r == -EEXIST ? 0 : (int)r;
    }
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, px_op_below(px_op_text(c, s->dst)), flags, s->attr);
    if (fd < 0)
        return fd;
    long r = px_sys(SYS_write, fd, px_op_text(c, s->src), s->num);
    (void)px_sys(SYS_close, fd);
    return r < 0 ? (int)r : (uint64_t)r == s->num ? 0 : -ENOSPC;
}

static int source_tree(struct px_child *c, const struct px_step *s)
{
    if (s->fd >= 0)             /* the parent made the tree and set its attributes */
        return s->fd;
    if (s->flags & PX_STEP_INSIDE)
        return px_mount_clone(AT_FDCWD, px_op_below(px_op_text(c, s->src)), s->attr);
    return px_op_check_source(s, px_mount_clone(AT_FDCWD, px_op_text(c, s->src), s->attr));
}

/* Copies into the empty file that the skeleton has there. */
static int copy_file(struct px_child *c, const struct px_step *s)
{
    int from = px_op_check_source(s, (int)px_sys(SYS_openat, AT_FDCWD, px_op_text(c, s->src), O_RDONLY | O_CLOEXEC));
    if (from < 0)
        return from;
    const char *target = px_op_below(px_op_text(c, s->dst));
    int to = (int)px_sys(SYS_openat, AT_FDCWD, target, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
    long r = to < 0 ? to : 1;
    while (r > 0)
        r = px_sys(SYS_sendfile, to, from, 0, 1 << 20);
    if (to >= 0)
        (void)px_sys(SYS_close, to);
    (void)px_sys(SYS_close, from);
    return (int)r;
}

/* An inotify watch and a lock belong to an inode. On the host's own inodes a box would see which programs others
 * open, and could hold locks against them. An overlay of the tree with an empty directory, or with one of ours that
 * adds something, gives the box inodes of its own over the same pages. The kernel refuses such an overlay where
 * other file systems are mounted below, or over an overlay of overlays. */
int px_op_own_inodes(struct px_child *c, const struct px_step *s)
{
    static const char before[] = "lowerdir=", after[] = ",redirect_dir=nofollow,metacopy=off,index=off,userxattr";
    const char *const target = px_op_below(px_op_text(c, s->dst));
    const char *const parts[] = {before, target, ":", s->src ? px_op_below(px_op_text(c, s->src)) : "sys", after};
    char data[128];
    uint32_t n = 0;
    for (int i = 0; i < 5; i++)
        for (const char *p = parts[i]; *p && n < sizeof data - 1; p++)
            data[n++] = *p;
    data[n] = '\0';
    return note_lack(c, px_mount_at("overlay", target, s->attr, data), PX_LACKS_OWN_INODES);
}

int px_op_bind(struct px_child *c, const struct px_step *s)
{
    if (s->flags & PX_STEP_COPY)
        return copy_file(c, s);
    return attach_at(c, s, source_tree(c, s));
}

int px_op_tmpfs(struct px_child *c, const struct px_step *s)
{
    const bool plain = s->flags & PX_STEP_PLAIN;
    if (s->flags & PX_STEP_UPPER)
        return px_op_attach(c->upper_tree, px_op_text(c, s->dst));
    const struct px_user *user = &c->plan->owner;
    /* A shared scratch directory is sticky; a home directory belongs to the payload. */
    struct tmpfs_options options;
    fill_tmpfs(&options, s, plain || s->flags & PX_STEP_OWNED ? 0755 : 01777, plain ? 0 : user->uid, plain ? 0 : user->gid);
    return mount_new(c, s, "tmpfs", options.list);
}

int px_op_detach(struct px_child *c, const struct px_step *s)
{
    const char *path = px_op_below(px_op_text(c, s->dst));
    long r = px_sys(SYS_umount2, path, 2 /* MNT_DETACH */);
    if (r >= 0 && !(s->flags & PX_STEP_UPPER))  /* there it would be a change of the root */
        r = px_sys(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
    return r == -EROFS ? 0 : (int)r;    /* an overlay is read-only by now: an empty directory stays, which nobody may enter */
}

int px_op_proc(struct px_child *c, const struct px_step *s)
{
    const struct px_mount_option options[] = {{"hidepid", "ptraceable"}, {NULL, NULL}};
    return mount_new(c, s, "proc", s->flags & PX_STEP_PLAIN ? options + 1 : options);
}

int px_op_readonly(struct px_child *c, const struct px_step *s)
{
    const char *path = px_op_text(c, s->dst);
    int tree = px_mount_clone(AT_FDCWD, px_op_below(path), s->attr);
    return tree == -ENOENT ? 0 : px_op_attach(tree, path);
}

/* Binds the null device (checked when it was bound) over a file, and an empty directory of the root over a
 * directory. */
int px_op_mask(struct px_child *c, const struct px_step *s)
{
    const char *target = px_op_text(c, s->dst);
    int r = s->flags & PX_STEP_DIRECTORY ? px_op_attach(px_mount_clone(AT_FDCWD, "sys", s->attr), target)
                                         : px_mount_copy("dev/null", px_op_below(target));
    return r == -ENOENT ? 0 : r;
}

int px_op_devpts(struct px_child *c, const struct px_step *s)
{
    char max[21];
    const struct px_mount_option options[] = {
        {"ptmxmode", "0666"}, {"mode", "0620"}, {"max", px_op_digits(s->num, max)}, {NULL, NULL}};
    return mount_new(c, s, "devpts", options);
}

int px_op_seal(struct px_child *c, const struct px_step *s)
{
    (void)c;
    int root = (int)px_sys(SYS_openat, AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return root;
    int r = px_mount_restrict(root, s->attr, 0);
    (void)px_sys(SYS_close, root);
    return r;
}

static bool same_place(const char *a, const char *b)
{
    struct stat x = {0}, y = {0};
    return px_sys(SYS_newfstatat, AT_FDCWD, a, &x, 0) == 0 && px_sys(SYS_newfstatat, AT_FDCWD, b, &y, 0) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int px_op_pivot(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    int r = px_mount_pivot();
    /* Verifies that ".." of the new root leads nowhere else. */
    return r < 0 ? r : same_place("/", "/..") && same_place("/", ".") ? 0 : -EXDEV;
}

/* Makes the file system of a root that many boxes share read-only, for every mount of it. */
int px_op_put_aside(struct px_child *c, const struct px_step *s)
{
    (void)s;
    long r = px_mount_close_for_writing(".");
    if (r >= 0)
        r = c->aside_fd = px_mount_clone(AT_FDCWD, ".", 0);
    return (int)(r < 0 ? r : px_sys(SYS_umount2, ".", 2 /* MNT_DETACH */));
}

int px_op_put_back(struct px_child *c, const struct px_step *s)
{
    int tree = c->aside_fd;
    c->aside_fd = -EBADF;
    return px_op_attach(tree, px_op_text(c, s->dst));
}

/* Before the pivot, while the host's /proc can be reached. */
int px_op_keep_namespace(struct px_child *c, const struct px_step *s)
{
    (void)s;
    c->kept_fd = (int)px_sys(SYS_openat, AT_FDCWD, "/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return c->kept_fd < 0 ? c->kept_fd : 0;
}
