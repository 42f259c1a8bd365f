#include "task/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "kernel/tree.h"
#include "state/state.h"
#include "task/holder.h"

enum { DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, STATE_MAX = 4096, TRIES = 100 };
enum { LIVING_MSEC = 200, DYING_MSEC = 10000 }; /* how long to wait for a lock */

static const char own_name[] = ".px"; /* state: opened by px_state_open */
static const char state_name[] = "layers", state_head[] = "px-branch 1";

/* ---- names ---- */

int px_workspace_check_id(const char *id, struct px_err *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(id);
    if (n > 0 && n <= PX_SPACE_ID_MAX && strspn(id, allowed) == n && !px_equal(id, ".") && !px_equal(id, "..") &&
        !px_equal(id, own_name))
        return 0;
    px_auto_buf struct px_buf quoted = PX_BUF(200);
    px_buf_quote(&quoted, id, n);
    return px_fail(e, PX_E_TASK_ID, 0, "'%s' is no name of a task", quoted.err < 0 ? "that" : px_buf_text(&quoted));
}

int px_workspace_new_id(char out[PX_SPACE_LAYER_ID])
{
    uint64_t random[2];
    if (px_sys(SYS_getrandom, random, sizeof random, 0) != sizeof random)
        return -EIO;
    return px_fmt(out, PX_SPACE_LAYER_ID, "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
}

bool px_workspace_is_layer(const char *id)
{
    return strspn(id, "0123456789abcdef") == PX_SPACE_LAYER_ID - 1 && id[PX_SPACE_LAYER_ID - 1] == '\0';
}

int px_workspace_state(struct px_workspace *space, int err, const char *what, struct px_err *e)
{
    return px_fail(e, PX_E_TASK_STATE, err, "the workspace '%s': %s", space->id, what);
}

/* ---- the root ---- */

/* Removes the trash of killed processes. Another process may do the same: both only remove. */
static void sweep_trash(int trash)
{
    int fd = (int)px_sys(SYS_openat, trash, ".", DIRECTORY);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list)
        (void)px_fd_close(fd);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (px_equal(entry->d_name, ".") || px_equal(entry->d_name, ".."))
            continue;
        px_auto_fd int dir = (int)px_sys(SYS_openat, dirfd(list), entry->d_name, DIRECTORY);
        if (dir >= 0)
            (void)px_kernel_tree_empty(dir);
        (void)unlinkat(dirfd(list), entry->d_name, dir >= 0 ? AT_REMOVEDIR : 0);
    }
    if (list)
        (void)closedir(list);
}

static int open_own(struct px_workspace_root *root, const char *work_root, struct px_err *e)
{
    static const char *const names[PX_SPACE_PARTS] = {"tasks", "layers", "trash", "unsettled"};
    char shown[PATH_MAX];
    struct px_state own;
    if (px_fmt(shown, sizeof shown, "%s/%s", work_root, own_name) < 0)
        return px_fail(e, PX_E_TASK_STATE, ENAMETOOLONG, "cannot use '%.200s' for workspaces", work_root);
    const struct px_state_place place = {.parent = root->dir, .name = own_name, .shown = shown, .kind = "work"};
    if (px_state_open(&place, true, &own, e) < 0)
        return -1;
    root->own = own.fd;
    memcpy(root->seal, own.seal, sizeof root->seal);
    for (size_t i = 0; i < PX_SPACE_PARTS; i++)
        if ((root->parts[i] = px_state_part(root->own, names[i], true)) < 0) {
            (void)px_fmt(shown, sizeof shown, "%s/%s/%s", work_root, own_name, names[i]);
            return px_state_refuse(shown, root->parts[i], e);
        }
    sweep_trash(root->parts[PX_SPACE_TRASH]);
    return 0;
}

/* A directory that the configuration names. */
static int open_path(const char *path, const char *use, struct px_err *e)
{
    int fd = px_state_path(path);
    if (fd != -ELOOP)
        return fd < 0 ? px_fail(e, PX_E_TASK_STATE, fd, "cannot use '%s' for %s", path, use) : fd;
    (void)px_state_refuse(path, fd, e);
    return px_fix(e, "Remove the link in '%.200s'.\n"
                     "Or name the directory by its absolute path in the configuration of tasks.", path);
}

static int open_root(const char *work_root, const char *logs_dir, struct px_workspace_root *root, struct px_err *e)
{
    if ((root->dir = open_path(work_root, "workspaces", e)) < 0)
        return -1;
    struct stat opened, named;
    if (!realpath(work_root, root->path) || fstat(root->dir, &opened) < 0 || stat(root->path, &named) < 0)
        return px_fail(e, PX_E_TASK_STATE, errno, "cannot use '%s' for workspaces", work_root);
    if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino) /* boxes get the path */
        return px_state_refuse(work_root, -ELOOP, e);
    if (open_own(root, work_root, e) < 0)
        return -1;
    return (root->logs = open_path(logs_dir, "journals", e)) < 0 ? -1 : 0;
}

int px_workspace_root_open(const char *work_root, const char *logs_dir, uint64_t log_bytes_max, struct px_workspace_root *ret,
                       struct px_err *e)
{
    struct px_workspace_root root = PX_SPACE_NO_ROOT;
    root.log_bytes_max = log_bytes_max;
    if (open_root(work_root, logs_dir, &root, e) < 0) {
        px_workspace_root_done(&root);
        return -1;
    }
    *ret = root;
    return 0;
}

void px_workspace_root_done(struct px_workspace_root *root)
{
    for (size_t i = 0; i < PX_SPACE_PARTS; i++)
        root->parts[i] = px_fd_close(root->parts[i]);
    root->logs = px_fd_close(root->logs);
    root->own = px_fd_close(root->own);
    root->dir = px_fd_close(root->dir);
}

/* ---- small files ---- */

int px_workspace_stack_text(const struct px_space_stack *stack, const struct px_space_stack *origin, struct px_buf *out)
{
    px_buf_printf(out, "%s\n%zu %zu\n", state_head, stack->count, origin->count);
    for (size_t i = 0; i < stack->count; i++)
        px_buf_printf(out, "%s\n", stack->ids[i]);
    for (size_t i = 0; i < origin->count; i++)
        px_buf_printf(out, "%s\n", origin->ids[i]);
    return out->err;
}

/* The next line of the text, which ends there; NULL at the end. */
static char *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = '\0';
    *text = end + 1;
    return line;
}

static bool read_ids(char **text, uint64_t count, struct px_space_stack *ret)
{
    ret->count = 0;
    for (uint64_t i = 0; i < count; i++) {
        char *line = next_line(text);
        if (!line || !px_workspace_is_layer(line))
            return false;
        memcpy(ret->ids[ret->count++], line, PX_SPACE_LAYER_ID);
    }
    return true;
}

static bool parse_stack(char *text, struct px_workspace *space)
{
    uint64_t layers, origin;
    char *head = next_line(&text), *counts = head ? next_line(&text) : NULL;
    char *blank = counts ? strchr(counts, ' ') : NULL;
    if (!blank || !px_equal(head, state_head))
        return false;
    *blank = '\0';
    return px_parse_u64(counts, PX_LAYERS_DEPTH, &layers) == 0 && layers > 0 &&
           px_parse_u64(blank + 1, PX_LAYERS_DEPTH, &origin) == 0 && read_ids(&text, layers, &space->stack) &&
           read_ids(&text, origin, &space->origin);
}

int px_workspace_read_stack(struct px_workspace *space, struct px_err *e)
{
    px_auto_free char *text = calloc(1, STATE_MAX);
    ssize_t n = text ? px_state_read(space->own, state_name, text, STATE_MAX) : -ENOMEM;
    space->branch = n >= 0;
    if (n == -ENOENT)
        return 0;
    if (n < 0)
        return px_workspace_state(space, (int)n, "its list of layers cannot be read", e);
    if (parse_stack(text, space))
        return 0;
    return px_workspace_state(space, 0, "its list of layers is broken", e);
}

/* ---- layers ---- */

bool px_workspace_has_layer(const struct px_space_stack *stack, const char *layer)
{
    for (size_t i = 0; i < stack->count; i++)
        if (px_equal(stack->ids[i], layer))
            return true;
    return false;
}

void px_workspace_close_layers(struct px_layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        (void)px_fd_close(layers->fds[i]);
    layers->count = 0;
}

int px_workspace_open_layer(const struct px_workspace_root *root, const char *layer)
{
    return px_workspace_is_layer(layer) ? px_state_part(root->parts[PX_SPACE_LAYERS], layer, false) : -EINVAL;
}

int px_workspace_open_stack(const struct px_workspace_root *root, const struct px_space_stack *stack, struct px_layers *ret)
{
    ret->count = 0;
    for (size_t i = 0; i < stack->count; i++) {
        px_auto_fd int layer = px_workspace_open_layer(root, stack->ids[i]);
        int fd = layer < 0 ? layer : px_open_in_root(layer, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (fd < 0) {
            px_workspace_close_layers(ret);
            return fd;
        }
        ret->fds[ret->count++] = fd;
    }
    return 0;
}

void px_workspace_drop(const struct px_workspace_root *root, int dir, const char *name)
{
    int trash = root->parts[PX_SPACE_TRASH];
    char id[PX_SPACE_LAYER_ID];
    if (px_workspace_new_id(id) < 0 || renameat(dir, name, trash, id) < 0)
        return;
    px_auto_fd int fd = (int)px_sys(SYS_openat, trash, id, DIRECTORY);
    if (fd >= 0)
        (void)px_kernel_tree_empty(fd);
    (void)unlinkat(trash, id, fd >= 0 ? AT_REMOVEDIR : 0);
}

/* ---- one workspace ---- */

/* Locks the directory and checks that it still has its name: a cleanup may have removed it. */
static int try_lock(int tasks, const char *id)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat st, now;
        px_auto_fd int fd = px_state_part(tasks, id, true);
        if (fd < 0)
            return fd;
        long r = px_sys(SYS_flock, fd, LOCK_EX | LOCK_NB);
        if (r < 0)
            return (int)r;
        if (fstat(fd, &st) == 0 && fstatat(tasks, id, &now, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == now.st_ino)
            return px_fd_take(&fd);
    }
    return -EAGAIN;
}

int px_workspace_lock(const struct px_workspace_root *root, const char *id)
{
    return px_workspace_check_id(id, NULL) < 0 ? -EINVAL : try_lock(root->parts[PX_SPACE_TASKS], id);
}

/* Children that a killed px has just forked hold its lock until they end: waits for those. Does not wait if the process
 * that took the lock is running. */
static int wait_for_lock(const struct px_workspace_root *root, const char *id)
{
    const uint64_t begin = px_now_nsec();
    const struct timespec moment = {.tv_nsec = 2000000};
    int fd;
    while ((fd = px_workspace_lock(root, id)) == -EWOULDBLOCK) {
        uint64_t waited = (px_now_nsec() - begin) / 1000000;
        if (waited > DYING_MSEC || (waited > LIVING_MSEC && px_workspace_holder_lives(root->parts[PX_SPACE_TASKS], id)))
            break;
        (void)nanosleep(&moment, NULL);
    }
    return fd;
}

bool px_workspace_exists(const struct px_workspace_root *root, const char *id)
{
    struct stat st;
    if (px_workspace_check_id(id, NULL) < 0)
        return false;
    if (fstatat(root->dir, id, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    px_auto_fd int own = px_state_part(root->parts[PX_SPACE_TASKS], id, false);
    return own >= 0 && fstatat(own, state_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int no_task(const char *id, struct px_err *e)
{
    px_fail(e, PX_E_NO_TASK, 0, "there is no workspace '%s'", id);
    return px_fix(e, "Make it: px task prepare %s.", id);
}

static int exists(const char *id, struct px_err *e)
{
    px_fail(e, PX_E_TASK_EXISTS, 0, "there is a workspace '%s' already", id);
    return px_fix(e, "Choose another name, or remove it first: px task cleanup %s.", id);
}

static int open_plain(struct px_workspace *s, enum px_space_how how, struct px_err *e)
{
    if (how == PX_SPACE_NEW)
        return px_workspace_exists(s->root, s->id) ? exists(s->id, e) : 0;
    if (how == PX_SPACE_MAKE && mkdirat(s->root->dir, s->id, 0755) < 0 && errno != EEXIST)
        return px_workspace_state(s, -errno, "cannot be made", e);
    int fd = (int)px_sys(SYS_openat, s->root->dir, s->id, DIRECTORY);
    if (fd == -ENOENT)
        return no_task(s->id, e);
    if (fd == -ELOOP || fd == -ENOTDIR)
        return px_workspace_state(s, 0, "there is something else in its place", e);
    if (fd < 0)
        return px_workspace_state(s, fd, "cannot be opened", e);
    s->tree = (struct px_layers){.fds = {fd}, .count = 1};
    return 0;
}

/* A killed fork may not have renamed the tree yet. */
static void finish_freezing(const struct px_workspace *s)
{
    const size_t n = s->stack.count;
    px_auto_fd int layer = n == 0 ? -ENOENT : px_workspace_open_layer(s->root, s->stack.ids[n - 1]);
    if (layer >= 0)
        (void)px_sys(SYS_renameat2, s->root->dir, s->id, layer, "tree", 1 /* RENAME_NOREPLACE */);
}

static int open_branch(struct px_workspace *s, struct px_err *e)
{
    int r = px_workspace_open_stack(s->root, &s->stack, &s->tree);
    if (r == -ENOENT) {
        finish_freezing(s);
        r = px_workspace_open_stack(s->root, &s->stack, &s->tree);
    }
    return r < 0 ? px_workspace_state(s, r, "one of its layers is missing", e) : 0;
}

static int open_tree(struct px_workspace *s, enum px_space_how how, struct px_err *e)
{
    if (!s->branch)
        return open_plain(s, how, e);
    return how == PX_SPACE_NEW ? exists(s->id, e) : open_branch(s, e);
}

int px_workspace_open(const struct px_workspace_root *root, const char *id, enum px_space_how how, struct px_workspace *ret,
                  struct px_err *e)
{
    struct px_workspace s = {.root = root, .own = -EBADF};
    if (px_workspace_check_id(id, e) < 0)
        return -1;
    if (how == PX_SPACE_FIND && !px_workspace_exists(root, id))
        return no_task(id, e);
    memcpy(s.id, id, strlen(id) + 1);
    s.own = wait_for_lock(root, id);
    if (s.own == -EWOULDBLOCK)
        return px_fail(e, PX_E_TASK_BUSY, 0, "somebody else works on '%s' now", id);
    if (s.own < 0)
        return px_workspace_state(&s, s.own, "cannot be locked", e);
    if (px_workspace_recover(&s, e) < 0 || px_workspace_read_stack(&s, e) < 0 || open_tree(&s, how, e) < 0) {
        px_workspace_close(&s);
        return -1;
    }
    *ret = s;
    return 0;
}

void px_workspace_close(struct px_workspace *space)
{
    px_workspace_close_layers(&space->tree);
    /* a box that another thread has just forked has a copy of the descriptor for a moment */
    if (space->own >= 0)
        (void)px_sys(SYS_flock, space->own, LOCK_UN);
    space->own = px_fd_close(space->own);
}

static void drop_own(const struct px_workspace *space)
{
    px_workspace_drop(space->root, space->root->parts[PX_SPACE_TASKS], space->id);
}

void px_workspace_forget(struct px_workspace *space)
{
    if (!px_workspace_exists(space->root, space->id))
        drop_own(space);
    px_workspace_close(space);
}

int px_workspace_path(const struct px_workspace *space, size_t layer, char *out, size_t size)
{
    if (!space->branch)
        return px_fmt(out, size, "%s/%s", space->root->path, space->id);
    const char *top = space->root->path, *id = space->stack.ids[layer];
    return px_fmt(out, size, "%s/%s/layers/%s/tree", top, own_name, id); /* state: checked by open_stack */
}

/* ---- the end ---- */

int px_workspace_remove(struct px_workspace *space, struct px_err *e)
{
    const struct px_workspace_root *root = space->root;
    struct stat st;
    int r = px_workspace_unsettle(root, space->id);
    if (r < 0)
        return px_workspace_state(space, r, "cannot be removed", e);
    if (space->branch && unlinkat(space->own, state_name, 0) < 0)
        return px_workspace_state(space, -errno, "cannot be removed", e);
    for (size_t i = 0; i < space->stack.count && space->branch; i++)
        px_workspace_let_go(root, space->stack.ids[i], space->id);
    for (size_t i = 0; i < space->origin.count && space->branch; i++)
        px_workspace_let_go(root, space->origin.ids[i], space->id);
    px_workspace_drop(root, root->dir, space->id);
    if (fstatat(root->dir, space->id, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return px_workspace_state(space, 0, "cannot be removed", e);
    drop_own(space);
    px_workspace_settle(root, space->id);
    return 0;
}
