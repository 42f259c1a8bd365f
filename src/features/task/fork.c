/* Forks a workspace by writing a list of layers, independent of its size; and makes a branch plain again. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "state/state.h"
#include "task/workspace.h"

static const char mark[] = "checkout";

static int write_stack(int own, const struct px_space_stack *stack, const struct px_space_stack *origin)
{
    px_auto_buf struct px_buf text = PX_BUF(4096);
    int r = px_workspace_stack_text(stack, origin, &text);
    return r < 0 ? r : px_state_write(own, "layers", text.data, text.len);
}

/* Writes the list first: after a kill the next open finds the tree at its old path and moves it. */
static int freeze(struct px_workspace *s)
{
    struct px_space_stack stack = {.count = 1};
    int r = px_workspace_new_id(stack.ids[0]);
    if (r >= 0)
        r = px_workspace_use(s->root, stack.ids[0], s->id);
    if (r >= 0)
        r = write_stack(s->own, &stack, &stack);
    if (r < 0)
        return r;
    px_auto_fd int layer = px_workspace_open_layer(s->root, stack.ids[0]);
    r = layer < 0 ? layer : (int)px_sys(SYS_renameat2, s->root->dir, s->id, layer, "tree", 1 /* RENAME_NOREPLACE */);
    if (r < 0) {
        (void)unlinkat(s->own, "layers", 0);
        px_workspace_let_go(s->root, stack.ids[0], s->id);
        return r;
    }
    s->branch = true;
    s->stack = s->origin = stack; /* the directory that is open is the layer now */
    return 0;
}

/* Registers the branch as a user of all its layers before it exists. */
static int make_branch(const struct px_workspace *from, struct px_workspace *to)
{
    int r = 0;
    for (size_t i = 0; i < from->stack.count && r >= 0; i++)
        r = px_workspace_use(from->root, from->stack.ids[i], to->id);
    if (r >= 0)
        r = write_stack(to->own, &from->stack, &from->stack);
    for (size_t i = 0; i < from->stack.count && r < 0; i++)
        px_workspace_let_go(from->root, from->stack.ids[i], to->id);
    return r;
}

int px_workspace_fork(struct px_workspace *from, const char *to, struct px_err *e)
{
    struct px_workspace branch;
    if (px_workspace_open(from->root, to, PX_SPACE_NEW, &branch, e) < 0)
        return -1;
    const bool plain = !from->branch;
    int r = px_workspace_unsettle(from->root, to);
    if (r >= 0 && plain)
        r = px_workspace_unsettle(from->root, from->id);
    if (r >= 0 && plain)
        r = freeze(from);
    if (r >= 0)
        r = make_branch(from, &branch);
    if (plain)
        px_workspace_settle(from->root, from->id);
    px_workspace_settle(from->root, to);
    px_workspace_forget(&branch);
    return r < 0 ? px_workspace_state(from, r, "cannot be forked", e) : 0;
}

/* ---- back to a directory ---- */

/* A workspace without a list of layers is plain. */
static int leave_layers(struct px_workspace *s)
{
    const struct px_space_stack *const stacks[] = {&s->stack, &s->origin};
    if (unlinkat(s->own, "layers", 0) < 0 && errno != ENOENT)
        return -errno;
    (void)unlinkat(s->own, mark, 0);
    for (size_t k = 0; k < PX_COUNT_OF(stacks); k++)
        for (size_t i = 0; i < stacks[k]->count; i++)
            px_workspace_let_go(s->root, stacks[k]->ids[i], s->id);
    s->branch = false;
    s->stack.count = s->origin.count = 0;
    return 0;
}

static bool is_there(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void px_workspace_finish_checkout(struct px_workspace *space)
{
    if (!is_there(space->own, mark))
        return;
    if (space->branch && is_there(space->root->dir, space->id))
        (void)leave_layers(space); /* if that fails, its layers still have all files */
    (void)unlinkat(space->own, mark, 0);
}

int px_workspace_checkout(struct px_workspace *space, const char *copy, struct px_err *e)
{
    if (is_there(space->root->dir, space->id))
        return px_workspace_state(space, -EEXIST, "something else has the name of its directory", e);
    int r = px_workspace_unsettle(space->root, space->id);
    if (r >= 0)
        r = px_state_write(space->own, mark, "", 0);
    if (r >= 0)
        r = (int)px_sys(SYS_renameat2, space->own, copy, space->root->dir, space->id, 1 /* RENAME_NOREPLACE */);
    if (r >= 0)
        r = leave_layers(space);
    (void)unlinkat(space->own, mark, 0);
    px_workspace_settle(space->root, space->id);
    return r < 0 ? px_workspace_state(space, r, "cannot get a directory", e) : 0;
}
