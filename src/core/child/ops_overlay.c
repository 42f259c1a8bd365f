/* Stage 1: the root as an overlay. While it is made, the working directory is the skeleton, a tmpfs. The parts of
 * the overlay are mounted on two directories of the skeleton, /proc and /sys: the overlay takes one mount only, and
 * so does not see them. They are detached with the skeleton; the overlay holds references to what it needs. */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>

#include "base/path.h"
#include "child/ops.h"
#include "kernel/abi.h"
#include "kernel/mount.h"

enum { FD_PATH = 48, O_PATH_DIRECTORY = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* Sets whose files pid 1 makes: the payload's, or its own again. The files that an overlay writes by itself belong
 * to the user who mounts it. So nothing on the caller's disk gets another owner. */
int px_op_file_ids(struct px_child *c, const struct px_step *s)
{
    enum { NO_SETUID_FIXUP = 1 << 2 }; /* capabilities stay when the file system ids change */
    const bool owned = s->flags & PX_STEP_OWNED;
    uint32_t uid = owned ? c->plan->owner.uid : (uint32_t)px_sys(SYS_getuid);
    uint32_t gid = owned ? c->plan->owner.gid : (uint32_t)px_sys(SYS_getgid);
    long r = px_sys(SYS_prctl, PR_SET_SECUREBITS, NO_SETUID_FIXUP, 0, 0, 0);
    if (r < 0)
        return (int)r;
    (void)px_sys(SYS_setfsgid, gid);
    (void)px_sys(SYS_setfsuid, uid);
    if ((uint32_t)px_sys(SYS_setfsgid, -1) != gid || (uint32_t)px_sys(SYS_setfsuid, -1) != uid)
        return -EPERM;
    if (!owned && (r = px_sys(SYS_prctl, PR_SET_SECUREBITS, 0, 0, 0, 0)) < 0)
        return (int)r;
    r = px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0); /* the kernel resets both at every change of ids */
    return r < 0 ? (int)r : px_op_die_with_parent(c);
}

/* Without user extended attributes the overlay could not mark a removed directory, and the lower one would be
 * visible again. */
static int check_attributes(int fd)
{
    static const char name[] = "user.px";
    long r = px_sys(SYS_fsetxattr, fd, name, "", 0, 0);
    if (r >= 0)
        r = px_sys(SYS_fremovexattr, fd, name);
    return (int)r;
}

static int open_in(int dir, const char *name, int flags)
{
    return (int)px_sys(SYS_openat, dir, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Makes the two directories of an upper layer in a new tmpfs. */
static int make_parts(const char *at)
{
    int dir = open_in(AT_FDCWD, at, O_PATH);
    long r = dir < 0 ? dir : px_sys(SYS_mkdirat, dir, "upper", 0755);
    if (r >= 0)
        r = px_sys(SYS_mkdirat, dir, "work", 0700);
    int upper = r < 0 ? (int)r : open_in(dir, "upper", O_RDONLY);
    r = upper < 0 ? upper : check_attributes(upper);
    if (upper >= 0)
        (void)px_sys(SYS_close, upper);
    if (dir >= 0)
        (void)px_sys(SYS_close, dir);
    return (int)r;
}

/* What takes changes: a directory of the caller with "upper" and "work" in it, a tmpfs of its own, or a part of the
 * box's tmpfs. */
int px_op_upper(struct px_child *c, const struct px_step *s)
{
    const char *target = px_op_text(c, s->dst), *source = px_op_text(c, s->src);
    if (s->src && !(s->flags & PX_STEP_INSIDE)) {
        int tree = s->fd >= 0 ? s->fd : px_op_check_source(s, px_mount_clone(AT_FDCWD, source, s->attr));
        return px_op_attach(tree, target);
    }
    int r = s->src ? px_op_attach(px_mount_clone(AT_FDCWD, px_op_below(source), s->attr), target)
                   : px_op_mount_owned(c, s, px_op_below(target));
    return r < 0 ? r : make_parts(px_op_below(target));
}

/* Writes "/proc/self/fd/N"; returns its end. */
static char *fd_path(int fd, char out[FD_PATH])
{
    static const char prefix[] = "/proc/self/fd/";
    char number[21];
    const char *d = px_op_digits((uint64_t)fd, number);
    uint32_t n = 0;
    for (; prefix[n]; n++)
        out[n] = prefix[n];
    for (; *d && n < FD_PATH - 1; d++)
        out[n++] = *d;
    out[n] = '\0';
    return out + n;
}

/* The parts of an overlay, as descriptors in this mount namespace; -1 for none. */
struct parts {
    int skeleton, given, upper, work;
    const int *layers; /* below the given directory */
    int layers_count;
};

static int open_directory(const char *path)
{
    return (int)px_sys(SYS_openat, AT_FDCWD, path, O_PATH_DIRECTORY);
}

/* Opens the given directory: the parent's id-mapped tree, which must be attached somewhere for a moment, or the
 * directory itself. */
static int open_given(struct px_child *c, const struct px_step *s, const char *hook)
{
    if (s->fd < 0)
        return px_op_check_source(s, (int)px_sys(SYS_openat, AT_FDCWD, px_op_text(c, s->src), O_PATH | O_CLOEXEC));
    int r = px_op_attach(s->fd, hook);
    return r < 0 ? r : open_directory(px_op_below(hook));
}

static int open_upper(const char *at, struct parts *p)
{
    int dir = open_in(AT_FDCWD, at, O_PATH);
    if (dir < 0)
        return dir;
    p->upper = open_in(dir, "upper", O_PATH);
    p->work = p->upper < 0 ? p->upper : open_in(dir, "work", O_PATH);
    (void)px_sys(SYS_close, dir);
    return p->work < 0 ? p->work : 0;
}

static int open_parts(struct px_child *c, const struct px_step *s, struct parts *p)
{
    p->skeleton = open_directory(px_op_below(px_op_text(c, s->dst)));
    p->given = p->skeleton < 0 ? p->skeleton : open_given(c, s, "/proc");
    if (p->given < 0)
        return p->given;
    return s->flags & PX_STEP_UPPER ? open_upper("sys", p) : 0;
}

static void close_all(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        if (fds[i] >= 0)
            (void)px_sys(SYS_close, fds[i]);
}

static void close_parts(const struct parts *p)
{
    const int all[] = {p->skeleton, p->given, p->upper, p->work};
    close_all(all, 4);
    close_all(p->layers, p->layers_count);
}

/* Special attributes in a layer that another user made have no effect: no redirects, no metadata-only files. */
static int make_overlay(const struct px_step *s, const struct parts *p)
{
    char lower[(2 + PX_LAYERS_MAX) * FD_PATH], upper[FD_PATH], work[FD_PATH];
    char *end = lower;
    if (p->skeleton >= 0) {
        end = fd_path(p->skeleton, lower);
        *end++ = ':';
    }
    end = fd_path(p->given, end);
    for (int i = 0; i < p->layers_count; i++) {
        *end++ = ':';
        end = fd_path(p->layers[i], end);
    }
    if (p->upper >= 0) {
        (void)fd_path(p->upper, upper);
        (void)fd_path(p->work, work);
    }
    struct px_mount_option options[] = {
        {"lowerdir", lower},          {"upperdir", upper}, {"workdir", work},
        {"redirect_dir", "nofollow"}, {"metacopy", "off"}, {"index", "off"},
        {"userxattr", NULL},          {"volatile", NULL},  {NULL, NULL},
    };
    if (p->upper < 0)
        options[1].key = NULL;
    if (!(s->flags & PX_STEP_VOLATILE))
        options[7].key = NULL;
    return px_mount_new("overlay", options, s->attr);
}

/* Kept changes lie on top of the skeleton. A link in them must not redirect a mount. The mount itself finds
 * everything else that may be wrong with a path. */
static int check_places(const struct px_child *c)
{
    for (uint32_t i = 0; i < c->plan->payload_from; i++) {
        const struct px_step *s = &c->plan->steps[i];
        if (s->op != PX_OP_BIND && s->op != PX_OP_TMPFS && s->op != PX_OP_PROC && s->op != PX_OP_DEVPTS &&
            s->op != PX_OP_UPPER)
            continue;
        int at = px_open_in_root(AT_FDCWD, px_op_below(px_op_text(c, s->dst)), O_PATH, 0);
        if (at == -ELOOP)
            return at;
        if (at >= 0)
            (void)px_sys(SYS_close, at);
    }
    return 0;
}

/* Detaches the skeleton, which the overlay itself holds. If it stayed attached, the pivot would detach only it, and
 * the host's root would stay below ours, reachable by "..". */
static int change_root(struct px_child *c, const struct px_step *s, int tree)
{
    int dev = px_mount_clone(AT_FDCWD, "dev", s->attr | PX_MOUNT_RDONLY);
    if (dev >= 0 && s->flags & PX_STEP_SHARED && (c->upper_tree = px_mount_clone(AT_FDCWD, "sys", 0)) < 0)
        return c->upper_tree;
    long r = dev < 0 ? dev : px_sys(SYS_umount2, ".", 2 /* MNT_DETACH */);
    if (r >= 0)
        r = px_op_enter_tree(tree);
    if (r >= 0 && s->flags & PX_STEP_UPPER)
        r = check_places(c);
    /* Our /dev as a mount of its own: in the overlay the given root's entries would show through. */
    return r < 0 ? (int)r : px_op_attach(dev, "/dev");
}

/* The given directory below our skeleton (the working directory, or a directory of the root for dst). Mount points
 * and files of /etc lie on top, and nothing is ever created in the caller's tree. */
int px_op_overlay(struct px_child *c, const struct px_step *s)
{
    struct parts parts = {-1, -1, -1, -1, NULL, 0};
    int r = open_parts(c, s, &parts);
    int tree = r < 0 ? r : make_overlay(s, &parts);
    close_parts(&parts);
    if (tree < 0 || s->dst)
        return px_op_attach(tree, px_op_text(c, s->dst));
    return change_root(c, s, tree);
}

/* Passes the upper directory to the parent, which reads it when the box has ended. */
static int lend_upper(struct px_child *c, const char *at)
{
    int dir = open_in(AT_FDCWD, at, O_PATH), upper = dir < 0 ? dir : open_in(dir, "upper", O_RDONLY);
    int r = upper < 0 ? upper : px_op_send_fd(c->control_fd, upper);
    if (upper >= 0)
        (void)px_sys(SYS_close, upper);
    if (dir >= 0)
        (void)px_sys(SYS_close, dir);
    return r;
}

/* Opens one more directory below the one of CHANGES. Trees that the parent made are attached over each other until
 * the overlay has them all. */
int px_op_layer(struct px_child *c, const struct px_step *s)
{
    if (c->layers_count == PX_LAYERS_MAX)
        return -E2BIG;
    int layer = open_given(c, s, "/sys");
    if (layer < 0)
        return layer;
    c->layers[c->layers_count++] = layer;
    c->layers_hung += s->fd >= 0;
    return 0;
}

/* The caller's directory as a copy. It is the lower layer and stays as it is. UPPER mounted what takes the changes
 * at the same path, and the overlay replaces it there. */
int px_op_changes(struct px_child *c, const struct px_step *s)
{
    struct parts parts = {-1, -1, -1, -1, c->layers, c->layers_count};
    const char *target = px_op_text(c, s->dst), *at = px_op_below(target);
    int r = parts.given = open_given(c, s, "/sys");
    if (r >= 0)
        r = open_upper(at, &parts);
    if (r >= 0)
        r = lend_upper(c, at);
    int tree = r < 0 ? r : make_overlay(s, &parts);
    close_parts(&parts);
    if (tree < 0)
        return tree;
    long gone = 0;
    for (int hung = c->layers_hung + (s->fd >= 0); hung > 0 && gone >= 0; hung--)
        gone = px_sys(SYS_umount2, "sys", 2 /* MNT_DETACH */);
    if (gone >= 0)
        gone = px_sys(SYS_umount2, at, 2 /* MNT_DETACH */);
    return gone < 0 ? (int)gone : px_op_attach(tree, target);
}
