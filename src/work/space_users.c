/* Who needs a layer, and what a killed process has left of that. Whoever is about to change it for a workspace puts the name of
 * that workspace into .px/unsettled first, and takes it out when all is as it should be. A name that is there while nobody holds
 * the workspace's lock was left by a process that was killed: the lists of layers say who needs what, and the rest goes. */
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
#include "work/space.h"

enum { SWEEP_MAX = 1 << 20 };

static int open_own(const struct px_space_root *root, const char *name)
{
    return px_open_in_root(root->own, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* ---- users of a layer ---- */

static int add_user(int dir, const char *layer, const char *id)
{
    char path[PATH_MAX];
    if (px_fmt(path, sizeof path, "%s/users/%s", layer, id) < 0)
        return -ENAMETOOLONG;
    px_auto_fd int fd = px_open_in_root(dir, path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
    return fd < 0 ? fd : 0;
}

static int new_name(const char *id, char out[PATH_MAX])
{
    return px_fmt(out, PATH_MAX, ".new-%s", id);
}

/* A layer is never seen without a user: one without is one that is being removed. */
static int make_layer(int layers, const char *layer, const char *id)
{
    char made[PATH_MAX], users[PATH_MAX];
    int r = new_name(id, made);
    if (r < 0 || (r = px_fmt(users, sizeof users, "%s/users", made)) < 0)
        return r;
    if ((mkdirat(layers, made, 0700) < 0 && errno != EEXIST) || (mkdirat(layers, users, 0700) < 0 && errno != EEXIST))
        return -errno;
    r = add_user(layers, made, id);
    return r < 0 ? r : renameat(layers, made, layers, layer) < 0 ? -errno : 0;
}

int px_space_use(const struct px_space_root *root, const char *layer, const char *id)
{
    px_auto_fd int layers = open_own(root, "layers");
    int r = layers < 0 ? layers : add_user(layers, layer, id);
    return r == -ENOENT ? make_layer(layers, layer, id) : r;
}

/* The directory of users can be removed by the last one only, and who removes it removes the layer. */
static void drop_unused(const struct px_space_root *root, int layers, const char *layer)
{
    char path[PATH_MAX];
    if (px_fmt(path, sizeof path, "%s/users", layer) >= 0 && (unlinkat(layers, path, AT_REMOVEDIR) == 0 || errno == ENOENT))
        px_space_drop(root, layers, layer);
}

static int remove_user(int layers, const char *layer, const char *id)
{
    char path[PATH_MAX];
    int r = px_fmt(path, sizeof path, "%s/users/%s", layer, id);
    return r < 0 ? r : unlinkat(layers, path, 0) < 0 ? -errno : 0;
}

void px_space_let_go(const struct px_space_root *root, const char *layer, const char *id)
{
    px_auto_fd int layers = open_own(root, "layers");
    if (layers >= 0 && remove_user(layers, layer, id) == 0)
        drop_unused(root, layers, layer);
}

/* ---- what is not settled ---- */

static int unsettled_path(const char *id, char out[PATH_MAX])
{
    return px_fmt(out, PATH_MAX, "unsettled/%s", id);
}

int px_space_unsettle(const struct px_space_root *root, const char *id)
{
    char path[PATH_MAX];
    int r = unsettled_path(id, path);
    px_auto_fd int fd = r < 0 ? r : px_open_in_root(root->own, path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
    return fd < 0 ? fd : 0;
}

void px_space_settle(const struct px_space_root *root, const char *id)
{
    char path[PATH_MAX];
    if (unsettled_path(id, path) >= 0)
        (void)unlinkat(root->own, path, 0);
}

/* Every name of a directory but those of itself and its parent; some at a time, for what is listed may go meanwhile. */
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
    const struct px_space *space;
    int layers;
    char made[PATH_MAX];
};

static void look_at_layer(void *user, const char *name)
{
    const struct leftover *l = user;
    const struct px_space *s = l->space;
    if (px_equal(name, l->made)) {
        px_space_drop(s->root, l->layers, name);
    } else if (name[0] != '.' && !px_space_has_layer(&s->stack, name) && !px_space_has_layer(&s->origin, name)) {
        (void)remove_user(l->layers, name, s->id);
        drop_unused(s->root, l->layers, name);
    }
}

static void settle_one(void *user, const char *id)
{
    const struct px_space_root *root = user;
    struct px_space s = {.root = root, .own = px_space_check_id(id, NULL) < 0 ? -EINVAL : px_space_lock(root, id)};
    struct leftover l = {.space = &s};
    if (s.own < 0)
        return; /* somebody is at it */
    memcpy(s.id, id, strlen(id) + 1);
    if (new_name(id, l.made) >= 0 && px_space_recover(&s, NULL) >= 0 && px_space_read_stack(&s, NULL) >= 0) {
        l.layers = open_own(root, "layers");
        each_name(l.layers, look_at_layer, &l);
        (void)px_fd_close(l.layers);
        px_space_settle(root, id);
    }
    px_space_forget(&s);
}

void px_space_sweep(const struct px_space_root *root)
{
    px_auto_fd int unsettled = open_own(root, "unsettled");
    each_name(unsettled, settle_one, (void *)(uintptr_t)root);
}
