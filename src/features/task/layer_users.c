/* The users of layers, and the cleanup after killed processes. Before the users of a workspace's layers change, the
 * workspace's name is put into .px/unsettled; it is removed when the change is complete. A name there without a holder
 * of the workspace's lock was left by a killed process: then the lists of layers decide who needs what, and the rest is
 * removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "state/state.h"
#include "task/workspace.h"

enum { SWEEP_MAX = 1 << 20 };

/* ---- users of a layer ---- */

static int touch(int dir, const char *name)
{
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 && fd != -EEXIST ? fd : 0;
}

static int add_user(int layer, const char *id, bool make)
{
    px_auto_fd int users = layer < 0 ? layer : px_state_part(layer, "users", make);
    return users < 0 ? users : touch(users, id);
}

static int new_name(const char *id, char out[PATH_MAX])
{
    return px_fmt(out, PATH_MAX, ".new-%s", id);
}

/* A layer without a user is being removed. */
static int make_layer(const struct px_workspace_root *root, const char *layer, const char *id)
{
    char made[PATH_MAX];
    int layers = root->parts[PX_SPACE_LAYERS], r = new_name(id, made);
    px_auto_fd int fd = r < 0 ? r : px_state_part(layers, made, true);
    r = add_user(fd, id, true);
    return r < 0 ? r : renameat(layers, made, layers, layer) < 0 ? -errno : 0;
}

int px_workspace_use(const struct px_workspace_root *root, const char *layer, const char *id)
{
    px_auto_fd int fd = px_workspace_open_layer(root, layer);
    int r = add_user(fd, id, false);
    return r == -ENOENT ? make_layer(root, layer, id) : r;
}

/* rmdir of the users' directory succeeds only for the last user, who then removes the layer. */
static void drop_unused(const struct px_workspace_root *root, int fd, const char *layer)
{
    if (unlinkat(fd, "users", AT_REMOVEDIR) == 0 || errno == ENOENT)
        px_workspace_drop(root, root->parts[PX_SPACE_LAYERS], layer);
}

static int remove_user(int layer, const char *id)
{
    px_auto_fd int users = px_state_part(layer, "users", false);
    return users < 0 ? users : unlinkat(users, id, 0) < 0 ? -errno : 0;
}

void px_workspace_let_go(const struct px_workspace_root *root, const char *layer, const char *id)
{
    px_auto_fd int fd = px_workspace_open_layer(root, layer);
    if (fd >= 0 && remove_user(fd, id) == 0)
        drop_unused(root, fd, layer);
}

/* ---- what is not settled ---- */

int px_workspace_unsettle(const struct px_workspace_root *root, const char *id)
{
    return touch(root->parts[PX_SPACE_UNSETTLED], id);
}

void px_workspace_settle(const struct px_workspace_root *root, const char *id)
{
    (void)unlinkat(root->parts[PX_SPACE_UNSETTLED], id, 0);
}

/* Calls back for every name but "." and ".."; reads a few at a time, because entries may be removed meanwhile. */
static void each_name(int dir, void (*each)(void *user, const char *name), void *user)
{
    int copy = dir < 0 ? dir : px_open_in_root(dir, ".", O_RDONLY | O_DIRECTORY, 0), count = 0;
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list)
        (void)px_fd_close(copy);
    for (struct dirent *entry; list && count < SWEEP_MAX && (entry = readdir(list)); count++)
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            each(user, entry->d_name);
    if (list)
        (void)closedir(list);
}

struct leftover {
    const struct px_workspace *space;
    char made[PATH_MAX];
};

static void look_at_layer(void *user, const char *name)
{
    const struct leftover *l = user;
    const struct px_workspace *s = l->space;
    if (px_equal(name, l->made)) {
        px_workspace_drop(s->root, s->root->parts[PX_SPACE_LAYERS], name);
        return;
    }
    px_auto_fd int fd = px_workspace_open_layer(s->root, name);
    if (fd >= 0 && !px_workspace_has_layer(&s->stack, name) && !px_workspace_has_layer(&s->origin, name)) {
        (void)remove_user(fd, s->id);
        drop_unused(s->root, fd, name);
    }
}

static void settle_one(void *user, const char *id)
{
    const struct px_workspace_root *root = user;
    struct px_workspace s = {.root = root, .own = px_workspace_lock(root, id)};
    struct leftover l = {.space = &s};
    if (s.own < 0)
        return; /* in use by another process */
    memcpy(s.id, id, strlen(id) + 1);
    if (new_name(id, l.made) >= 0 && px_workspace_recover(&s, NULL) >= 0 && px_workspace_read_stack(&s, NULL) >= 0) {
        px_workspace_finish_checkout(&s);
        each_name(root->parts[PX_SPACE_LAYERS], look_at_layer, &l);
        px_workspace_settle(root, id);
    }
    px_workspace_forget(&s);
}

void px_workspace_sweep(const struct px_workspace_root *root)
{
    each_name(root->parts[PX_SPACE_UNSETTLED], settle_one, (void *)(uintptr_t)root);
}
