/* Arms a plan: opens the trees of a root caller's files, id-mapped so that the payload's user owns them. */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "kernel/abi.h"
#include "kernel/idmap.h"
#include "kernel/mount.h"
#include "plan/plan.h"

/* Errors that the kernel itself would not give here: px runs in a container, in a box of px or in another sandbox. */
int px_plan_blame_filter(int err, struct px_err *e)
{
    if ((err != -EPERM && err != -ENOSYS) || px_sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) <= 0)
        return -1;
    px_why(e, "px runs under a system call filter, of a container, of a box or of another sandbox, which refuses it.");
    return px_fix(e, "Run `px doctor`: it says what is refused here.\n"
                     "Run px outside, or start the container with --security-opt seccomp=unconfined (docker, podman).\n"
                     "Or accept the weaker tier by name: --require landlock.");
}

int px_plan_no_namespace(int err, struct px_err *e)
{
    px_fail(e, PX_E_USERNS, err, "cannot make the namespaces of the box");
    return px_plan_blame_filter(err, e);
}

/* Opens the object that was inspected, not another one that has its name now. */
static int open_source(const char *source, const struct px_step *s, struct stat *ret_st)
{
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, source, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return fd;
    if (fstat(fd, ret_st) < 0)
        return -errno;
    return ret_st->st_dev == s->num && ret_st->st_ino == s->num2 ? px_fd_take(&fd) : -ESTALE;
}

static bool is_read_only_root(const struct px_step *s)
{
    return s->op == PX_OP_OVERLAY && !(s->flags & PX_STEP_UPPER);
}

static bool is_lower(const struct px_step *s)
{
    return s->op == PX_OP_CHANGES || s->op == PX_OP_LAYER;
}

/* This file system has no id-mapped mounts (overlayfs, FUSE), or it belongs to another user namespace than the
 * caller's (in a container). */
static bool cannot_map(int r)
{
    return r == -EINVAL || r == -EPERM;
}

enum { NO_NAMESPACE = -ECANCELED };     /* and e holds the reason */

static int idmapped_tree(const char *source, struct px_step *s, const struct px_idmap *map, struct px_err *e)
{
    struct stat st;
    px_auto_fd int fd = open_source(source, s, &st);
    if (fd < 0)
        /* EPERM must mean the mount: px_plan_arm takes it for a root user that may not mount */
        return fd == -EPERM ? -EACCES : fd;
    if (is_read_only_root(s))   /* its owners do not matter; the open tree saves the box the path lookup */
        return px_mount_clone(fd, "", s->attr);
    bool root = s->op != PX_OP_BIND;
    px_auto_fd int userns = root ? px_idmap_userns_root(map, st.st_uid, st.st_gid)
                                 : px_idmap_userns_owner(map, st.st_uid, st.st_gid);
    if (userns < 0) {
        (void)px_plan_no_namespace(userns, e);
        return NO_NAMESPACE;
    }
    px_auto_fd int tree = px_mount_clone(fd, "", s->attr | (is_lower(s) ? PX_MOUNT_RDONLY : 0u));
    if (tree < 0)
        return tree;
    int r = px_mount_idmap(tree, userns);
    if (!root && cannot_map(r)) {
        s->flags |= PX_STEP_UNMAPPED;
        r = 0;
    }
    return r < 0 ? r : px_fd_take(&tree);
}

static bool needs_tree(const struct px_step *s)
{
    return (s->op == PX_OP_BIND && s->flags & PX_STEP_CALLER) ||
           (s->op == PX_OP_UPPER && s->src && !(s->flags & PX_STEP_INSIDE)) || (s->op == PX_OP_OVERLAY && !s->dst) ||
           is_lower(s);
}

static int tree_failed(const struct px_plan *plan, const struct px_step *s, int err, struct px_err *e)
{
    const char *source = px_plan_text(plan, s->src);
    if ((is_lower(s) || s->op == PX_OP_OVERLAY) && cannot_map(err))
        px_fail(e, PX_E_OVERLAY, err, "cannot lay an overlay over '%s'", source);
    else if (s->op == PX_OP_BIND || is_lower(s))
        px_fail(e, PX_E_BIND, err, "cannot bind '%s'", source);
    else
        px_fail(e, s->op == PX_OP_UPPER ? PX_E_OVERLAY : PX_E_ROOTFS, err, "cannot use '%s' %s", source,
                s->op == PX_OP_UPPER ? "for changes" : "as a root");
    if (!cannot_map(err))
        return -1;
    px_why(e, "Its file system does not support id-mapped mounts, which a root caller's files need here.");
    return px_fix(e, s->op == PX_OP_UPPER ? PX_PLAN_ELSEWHERE "\n" PX_PLAN_HOME
                                          : PX_PLAN_ELSEWHERE "\n" PX_PLAN_HOME
                                                              "\nOr run px as an ordinary user, who needs no such mounts.");
}

/* A root user that may not mount (in a container): the box opens the path itself. */
static bool finds_way(struct px_step *s)
{
    if (s->op == PX_OP_BIND)
        s->flags |= PX_STEP_UNMAPPED;
    return s->op == PX_OP_BIND || is_read_only_root(s);
}

/* The caller's /proc/sys, in which the box's child opens the settings of its new network namespace. When that
 * namespace is made, pid 1 may already have entered a root whose /proc/sys is read-only. Without it low ports stay
 * closed. */
static void arm_network(struct px_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == PX_OP_NETNS && plan->steps[i].num)
            plan->steps[i].fd = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int px_plan_arm(struct px_plan *plan, const struct px_idmap *map, struct px_err *e)
{
    struct px_idmap shown = *map;       /* the payload's id; a runtime with a kernel of its own runs under another */
    arm_network(plan);
    if (map->kind != PX_IDMAP_RANGE)
        return 0;
    shown.uid = plan->owner.uid;
    shown.gid = plan->owner.gid;
    map = &shown;
    for (uint32_t i = 0; i < plan->count; i++) {
        struct px_step *s = &plan->steps[i];
        if (!needs_tree(s))
            continue;
        int tree = idmapped_tree(px_plan_text(plan, s->src), s, map, e);
        if (tree == NO_NAMESPACE)
            return -1;
        if (tree == -EPERM && finds_way(s))
            continue;
        if (tree < 0)
            return tree_failed(plan, s, tree, e);
        s->fd = tree;
    }
    return 0;
}
