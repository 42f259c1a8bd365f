#include "box/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/supervise.h"
#include "kernel/abi.h"
#include "kernel/idmap.h"
#include "plan/plan.h"

static struct px_tree_ids ids_of_box(const struct px_box *box)
{
    return (struct px_tree_ids){px_idmap_host_uid(&box->ids), px_idmap_host_gid(&box->ids)};
}

/* Whether the box's user has these permissions (a mask of 7), by the kernel's rules. */
static bool is_open_to(const struct px_tree_ids *who, const struct stat *st, mode_t need)
{
    int shift = st->st_uid == who->uid ? 6 : st->st_gid == who->gid ? 3 : 0;
    return (st->st_mode >> shift & need) == need;
}

/* ---- refusals ---- */

static const char no_map[] = "Its file system does not support id-mapped mounts, and the box of a root caller has ids of its own";

static int refuse_closed(const char *path, struct px_err *e)
{
    px_fail(e, PX_E_BIND, 0, "cannot bind '%s' read-only: its mode closes it to the box's user", path);
    px_why(e, "%s, so it reads what every user may read.", no_map);
    return px_fix(e, "Open it: chmod -R o+rX %s.\n" PX_PLAN_ELSEWHERE, path);
}

static int refuse_owner(const char *path, const struct stat *st, struct px_err *e)
{
    px_fail(e, PX_E_BIND, 0, "cannot bind '%s' for writing: it belongs to user %u", path, st->st_uid);
    px_why(e, "%s. px lends them what belongs to the caller, and nothing else.", no_map);
    return px_fix(e, "Run px as that user: setpriv --reuid %u --regid %u --clear-groups px ...\n"
                     "Or bind it read-only: -v %s:...:ro.\n" PX_PLAN_ELSEWHERE, st->st_uid, st->st_gid, path);
}

static int refuse_lent(const char *path, struct px_err *e)
{
    px_fail(e, PX_E_BIND, 0, "cannot bind '%s' for writing: a box that runs now has it", path);
    px_why(e, "%s, to which it belongs until that box ends.", no_map);
    return px_fix(e, "Wait for the end of that box, or end it: px box stop.\n" PX_PLAN_ELSEWHERE);
}

/* ---- lending ---- */

/* Opens the object that was inspected when the plan was made. */
static int open_source(const char *path, const struct px_step *s, struct stat *ret_st, struct px_err *e)
{
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, ret_st) < 0)
        return px_fail(e, PX_E_BIND, fd < 0 ? fd : errno, "cannot bind '%s'", path);
    if (ret_st->st_dev != s->num || ret_st->st_ino != s->num2)
        return px_fail(e, PX_E_BIND, ESTALE, "cannot bind '%s'", path);
    return px_fd_take(&fd);
}

static int add_loan(struct px_box *box, int fd, const struct px_tree_ids *owner)
{
    struct px_loan *more = realloc(box->loans, (box->loans_count + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    box->loans = more;
    box->loans[box->loans_count++] = (struct px_loan){.fd = fd, .owner = *owner};
    return 0;
}

/* Changes the owner of the top before what is below it, and back last. If px is killed in between, the owner of the
 * top shows that files below may still have an id of the box. */
static int give_to_box(const struct px_box *box, int fd, const struct stat *st, const struct px_tree_ids *owner)
{
    const struct px_tree_ids from[2] = {*owner, {st->st_uid, st->st_gid}}, to = ids_of_box(box);
    int r = px_kernel_tree_give_one(fd, from, &to);
    return r < 0 || !S_ISDIR(st->st_mode) ? r : px_kernel_tree_give(fd, from, &to);
}

/* A source that still has the id of an ended box: px was killed before it could change the owner back. */
static int lend_source(struct px_box *box, int source, const struct stat *st, const char *path, struct px_err *e)
{
    const struct px_tree_ids owner = {geteuid(), st->st_uid == geteuid() ? st->st_gid : getegid()};
    px_auto_fd int fd = source;
    int r = add_loan(box, fd, &owner);
    if (r < 0)
        return px_no_memory(e);
    fd = -EBADF;
    r = give_to_box(box, source, st, &owner);
    return r < 0 ? px_fail(e, PX_E_BIND, r, "cannot bind '%s' for writing: it cannot be lent to the box", path) : 0;
}

/* The source of a bind, open. A function that keeps the descriptor takes it from here. */
struct source {
    const char *path;
    struct stat st;
    int fd;
};

static int lend_step(struct px_box *box, struct source *s, struct px_err *e)
{
    const struct px_tree_ids box_ids = ids_of_box(box);
    int r = s->st.st_uid == geteuid() ? 1 : px_idmap_of_box(&box->ids, s->st.st_uid);
    if (r > 0)
        return lend_source(box, px_fd_take(&s->fd), &s->st, s->path, e);
    bool has_it = s->st.st_uid == box_ids.uid;  /* it lies in another bind of this box, or of the box that it joins */
    if (has_it || is_open_to(&box_ids, &s->st, S_ISDIR(s->st.st_mode) ? 7 : 6))
        return 0;
    return r == -EBUSY ? refuse_lent(s->path, e) : refuse_owner(s->path, &s->st, e);
}

static int check_readable(struct px_box *box, struct source *s, struct px_err *e)
{
    const struct px_tree_ids box_ids = ids_of_box(box);
    return is_open_to(&box_ids, &s->st, S_ISDIR(s->st.st_mode) ? 5 : 4) ? 0 : refuse_closed(s->path, e);
}

static int open_and_do(struct px_box *box, const struct px_step *step, int (*what)(struct px_box *, struct source *, struct px_err *),
                       struct px_err *e)
{
    struct source s = {.path = px_plan_text(box->plan, step->src)};
    s.fd = open_source(s.path, step, &s.st, e);
    int r = s.fd < 0 ? -1 : what(box, &s, e);
    (void)px_fd_close(s.fd);
    return r;
}

/* Writable sources first: a read-only source may lie in one of them. */
static int each_unmapped(struct px_box *box, bool writable, int (*what)(struct px_box *, struct source *, struct px_err *), struct px_err *e)
{
    int count = 0;
    for (uint32_t i = 0; i < box->plan->count; i++) {
        const struct px_step *s = &box->plan->steps[i];
        if (s->op != PX_OP_BIND || !(s->flags & PX_STEP_UNMAPPED) || writable != !(s->attr & PX_MOUNT_RDONLY))
            continue;
        if (open_and_do(box, s, what, e) < 0)
            return -1;
        count++;
    }
    return count;
}

int px_lend(struct px_box *box, struct px_err *e)
{
    int written = each_unmapped(box, true, lend_step, e);
    int read = written < 0 ? written : each_unmapped(box, false, check_readable, e);
    if (read < 0)
        return -1;
    if (written > 0)
        px_plan_lacks(box->plan, "owners: writable binds have the box's until it ends");
    if (read > 0)
        px_plan_lacks(box->plan, "owners: in read-only binds nobody's; others' rights");
    return 0;
}

bool px_lend_back(struct px_box *box)
{
    const struct px_tree_ids id = ids_of_box(box), from[2] = {id, id};
    int worst = 0;
    for (size_t i = 0; i < box->loans_count; i++) {
        const struct px_loan *loan = &box->loans[i];
        struct stat st;
        int r = fstat(loan->fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? px_kernel_tree_give(loan->fd, from, &loan->owner) : 0;
        int top = px_kernel_tree_give_one(loan->fd, from, &loan->owner);
        worst = r < 0 ? r : top < 0 ? top : worst;
        (void)px_fd_close(loan->fd);
    }
    free(box->loans);
    box->loans = NULL;
    box->loans_count = 0;
    return worst == 0;
}
