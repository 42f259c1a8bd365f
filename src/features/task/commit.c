/* Changes a workspace: stages all files next to it, writes a record, then carries it out. The record is a list of
 * fields, each with its NUL: "p 644 17 a/b" puts the staged file 17 to a/b. The last one is a MAC of all before it, so
 * that only records written by px are carried out. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/node.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "changes/layer_write.h"
#include "kernel/tree.h"
#include "state/state.h"
#include "task/journal.h"
#include "task/workspace.h"

enum { RECORD_MAX = 256 << 20, FILE_MODE = 0777, DIRECTORY_MODE = 01777, NUMBER = 24 };

static const char record_head[] = "px-redo 2";

/* ---- doing what a record says ---- */

struct op {
    char what;      /* d: remove, m: make a directory, p: put, c: change the mode, n: a new layer, l: the list,
                     * j: the journal, s: the MAC */
    unsigned mode;
    size_t number;
    const char *text;
};

struct redo {
    struct px_workspace *space;
    int tree, stage;
};

static int parse_op(const char *field, struct op *ret)
{
    char number[2][NUMBER];
    uint64_t value[2];
    const char *p = field + 2;
    if (field[0] == '\0' || field[1] != ' ')
        return -EINVAL;
    for (int i = 0; i < 2; i++) {
        const char *blank = strchr(p, ' ');
        if (!blank || px_fmt(number[i], NUMBER, "%.*s", (int)(blank - p < NUMBER ? blank - p : NUMBER), p) < 0 ||
            px_parse_u64(number[i], UINT32_MAX, &value[i]) < 0)
            return -EINVAL;
        p = blank + 1;
    }
    *ret = (struct op){.what = field[0], .mode = (unsigned)value[0], .number = (size_t)value[1], .text = p};
    return 0;
}

/* The directory that has the last part of a path, and that part. */
static int open_parent(int tree, const char *path, char room[PATH_MAX], const char **ret_name)
{
    int r = px_fmt(room, PATH_MAX, "%s", path);
    if (r < 0)
        return r;
    size_t n = strlen(room);
    while (n > 0 && room[n - 1] == '/')
        room[--n] = '\0';
    char *slash = strrchr(room, '/');
    *ret_name = slash ? slash + 1 : room;
    if (slash)
        *slash = '\0';
    if (px_equal(*ret_name, "") || px_equal(*ret_name, ".") || px_equal(*ret_name, ".."))
        return -EINVAL;
    return px_open_in_root(tree, slash ? room : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Another kind of file is already there. A directory that got new files meanwhile stays. */
static int redo_remove(int dir, const char *name, const struct op *op)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if ((st.st_mode & S_IFMT) != (op->mode & S_IFMT))
        return 0;
    if (unlinkat(dir, name, S_ISDIR(op->mode) ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT || errno == ENOTEMPTY)
        return 0;
    return -errno;
}

static int redo_mode(int dir, const char *name, const struct op *op)
{
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    if (fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != (op->mode & S_IFMT))
        return 0;
    return px_node_chmod(fd, op->mode & (S_ISDIR(op->mode) ? DIRECTORY_MODE : FILE_MODE));
}

static int redo_put(const struct redo *r, int dir, const char *name, const struct op *op)
{
    char staged[NUMBER];
    if (px_fmt(staged, sizeof staged, "%zu", op->number) < 0)
        return -EINVAL;
    if (renameat(r->stage, staged, dir, name) == 0 || errno == ENOENT) /* already put */
        return 0;
    return -errno;
}

static int redo_in_tree(const struct redo *r, const struct op *op)
{
    char room[PATH_MAX];
    const char *name;
    if (r->tree < 0) /* the whole workspace was removed since */
        return 0;
    px_auto_fd int dir = open_parent(r->tree, op->text, room, &name);
    if (dir < 0)
        return op->what == 'd' && (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP) ? 0 : dir;
    switch (op->what) {
    case 'd':
        return redo_remove(dir, name, op);
    case 'm':
        return mkdirat(dir, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
    case 'p':
        return redo_put(r, dir, name, op);
    default:
        return redo_mode(dir, name, op);
    }
}

static const char *const staged_trees[] = {"tree", "flat"};

static int redo_layer(const struct redo *r, const struct op *op)
{
    int done = px_workspace_is_layer(op->text) ? px_workspace_use(r->space->root, op->text, r->space->id) : -EINVAL;
    px_auto_fd int layer = done < 0 ? done : px_workspace_open_layer(r->space->root, op->text);
    if (layer < 0)
        return layer;
    return renameat(r->stage, staged_trees[op->number & 1], layer, "tree") < 0 && errno != ENOENT ? -errno : 0;
}

/* "KEY LINE": the line contains the key. */
static int redo_journal(const struct redo *r, const struct op *op, bool again)
{
    char key[64];
    const struct px_workspace_root *root = r->space->root;
    const char *blank = strchr(op->text, ' ');
    if (!blank || px_fmt(key, sizeof key, "\"%.*s\"", (int)(blank - op->text < 60 ? blank - op->text : 60), op->text) < 0)
        return -EINVAL;
    if (again && px_journal_has(root->logs, r->space->id, key))
        return 0;
    return px_journal_append(root->logs, r->space->id, blank + 1, strlen(blank + 1), root->log_bytes_max);
}

static int redo_one(const struct redo *r, const struct op *op, bool again)
{
    switch (op->what) {
    case 'd':
    case 'm':
    case 'p':
    case 'c':
        return redo_in_tree(r, op);
    case 'n':
        return redo_layer(r, op);
    case 'l':
        return px_state_write(r->space->own, "layers", op->text, strlen(op->text));
    case 'j':
        return redo_journal(r, op, again);
    case 's':
        return 0; /* checked before */
    default:
        return -EINVAL;
    }
}

/* "s 0 0 MAC" with its NUL, at the end of every record. */
static const char seal_head[] = "s 0 0 ";
enum { SEAL_LEN = sizeof seal_head - 1 + PX_MAC_HEX };

void px_workspace_sign(const struct px_workspace *space, const void *record, size_t len, char ret[PX_MAC_HEX])
{
    struct px_mac mac;
    uint8_t out[PX_MAC_SIZE];
    px_mac_begin(&mac, space->root->seal);
    px_mac_add(&mac, space->id, strlen(space->id) + 1);
    px_mac_add(&mac, record, len);
    px_mac_end(&mac, out);
    px_mac_hex(out, ret);
}

static bool is_signed(const struct px_workspace *space, const char *record, size_t len)
{
    char mac[PX_MAC_HEX];
    if (len < SEAL_LEN || memcmp(record + len - SEAL_LEN, seal_head, sizeof seal_head - 1) != 0)
        return false;
    px_workspace_sign(space, record, len - SEAL_LEN, mac);
    return px_mac_equal(mac, record + len - PX_MAC_HEX, PX_MAC_HEX);
}

/* `again`: a killed process may have done a part of it. */
static int do_record(const struct redo *r, const char *record, size_t len, bool again)
{
    const char *p = record, *end = record + len;
    if (len < sizeof record_head || record[len - 1] != '\0' || !px_equal(record, record_head))
        return -EINVAL;
    for (p += strlen(p) + 1; p < end; p += strlen(p) + 1) {
        struct op op;
        int done = parse_op(p, &op);
        if (done >= 0)
            done = redo_one(r, &op, again);
        if (done < 0)
            return done;
    }
    return 0;
}

/* ---- the stage ---- */

static int open_stage(const struct px_workspace *space)
{
    return px_state_part(space->own, "stage", true);
}

/* Removes the record first: without it the rest is unused. */
static int clear_stage(int stage)
{
    if (unlinkat(stage, "record", 0) < 0 && errno != ENOENT)
        return -errno;
    return px_kernel_tree_empty(stage);
}

static int read_record(int stage, char **ret, size_t *ret_len)
{
    struct stat st;
    px_auto_fd int fd = px_open_in_root(stage, "record", O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > RECORD_MAX)
        return -EINVAL;
    px_auto_free char *text = malloc((size_t)st.st_size + 1);
    ssize_t n = text ? px_read_full(fd, text, (size_t)st.st_size) : -ENOMEM;
    if (n < 0)
        return (int)n;
    *ret_len = (size_t)n;
    *ret = px_take(&text);
    return 0;
}

static int forged(const struct px_workspace *space, struct px_err *e)
{
    (void)px_fail(e, PX_E_STATE, 0, "the workspace '%s' has the record of an action that px has not written",
                  space->id);
    (void)px_why(e, "Nothing of it was done: it was damaged, or somebody else has put it there.");
    const char *top = space->root->path;
    return px_fix(e, "Look at it, and move it away: '%.200s/.px/tasks/%s/stage'.", /* state: only for messages */
                  top, space->id);
}

int px_workspace_recover(struct px_workspace *space, struct px_err *e)
{
    px_auto_free char *record = NULL;
    size_t len = 0;
    px_auto_fd int stage = px_state_part(space->own, "stage", false);
    if (stage < 0)
        return stage == -ENOENT ? 0 : px_workspace_state(space, stage, "cannot be recovered", e);
    int r = read_record(stage, &record, &len);
    px_auto_fd int tree = (int)px_sys(SYS_openat, space->root->dir, space->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r >= 0 && !is_signed(space, record, len))
        return forged(space, e);
    if (r >= 0)
        r = do_record(&(struct redo){space, tree, stage}, record, len, true);
    else if (r == -ENOENT)
        r = 0;
    if (r >= 0)
        r = clear_stage(stage);
    return r < 0 ? px_workspace_state(space, r, "what a killed action has begun cannot be finished", e) : 0;
}

/* ---- making a record ---- */

struct commit {
    struct px_workspace *space;
    const struct px_changes *changes;
    int stage;
    struct px_buf record;
};

static void put_op(struct commit *c, char what, unsigned mode, size_t number, const char *text)
{
    px_buf_printf(&c->record, "%c %u %zu %s", what, mode, number, text);
    px_buf_putc(&c->record, '\0');
}

/* If the caller is root, a file keeps the owner of the file it replaces, or gets that of its directory. */
static int give_owner(const struct commit *c, const char *path, const char *staged)
{
    struct stat st;
    struct px_layers_at at;
    char room[PATH_MAX];
    const char *name;
    if (geteuid() != 0)
        return 0;
    if (px_layers_find(&c->space->tree, path, &at) == 0)
        st = at.st;
    else {
        px_auto_fd int dir = open_parent(c->space->tree.fds[0], path, room, &name);
        if (dir < 0 ? fstat(c->space->tree.fds[0], &st) < 0 : fstat(dir, &st) < 0)
            return -errno;
    }
    return fchownat(c->stage, staged, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int stage_file(struct commit *c, size_t index)
{
    char staged[NUMBER];
    const struct px_changes_item *item = &c->changes->items[index];
    int from = px_changes_holder(&c->changes->upper, item->path);
    int r = from < 0 ? from : px_fmt(staged, sizeof staged, "%zu", index);
    if (r >= 0)
        r = px_changes_layer_copy(from, item->path, item->after, c->stage, staged);
    if (r >= 0)
        r = give_owner(c, item->path, staged);
    put_op(c, 'p', item->after, index, item->path);
    return r;
}

static bool is_directory(const struct px_changes_item *item)
{
    return S_ISDIR(item->after ? item->after : item->before);
}

/* A file with more than one link, perhaps outside of the workspace, is replaced even to change its mode. */
static bool has_other_names(const struct commit *c, const char *path)
{
    struct px_layers_at at;
    return px_layers_find(&c->space->tree, path, &at) < 0 || at.st.st_nlink > 1;
}

/* Order: removals, deepest first; additions, shallowest first; then modes of directories. */
static int stage_plain(struct commit *c)
{
    const struct px_changes *changes = c->changes;
    int r = 0;
    for (size_t i = changes->count; i-- > 0;)
        if (changes->items[i].kind == PX_CHANGE_DELETED)
            put_op(c, 'd', changes->items[i].before, 0, changes->items[i].path);
    for (size_t i = 0; i < changes->count && r >= 0; i++) {
        const struct px_changes_item *item = &changes->items[i];
        if (item->kind == PX_CHANGE_DELETED || item->kind == PX_CHANGE_SPECIAL)
            continue;
        if (is_directory(item) && item->kind != PX_CHANGE_MODE)
            put_op(c, 'm', 0, 0, item->path);
        else if (!is_directory(item) && item->kind == PX_CHANGE_MODE && !has_other_names(c, item->path))
            put_op(c, 'c', item->after, 0, item->path);
        else if (!is_directory(item))
            r = stage_file(c, i);
    }
    for (size_t i = changes->count; i-- > 0;)
        if (changes->items[i].kind != PX_CHANGE_DELETED && is_directory(&changes->items[i]))
            put_op(c, 'c', changes->items[i].after, 0, changes->items[i].path);
    return r;
}

static int make_tree(int stage, size_t which)
{
    if (mkdirat(stage, staged_trees[which], 0755) < 0)
        return -errno;
    px_auto_fd int fd = (int)px_sys(SYS_openat, stage, staged_trees[which], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fchmod(fd, 0755) < 0) /* the workspace's mode must not depend on the caller's umask */
        return -errno;
    return px_fd_take(&fd);
}

/* Reduces a deep stack to two layers: the changes, and the prepared files. */
static int flatten(struct commit *c, struct px_space_stack *stack)
{
    const struct px_workspace *space = c->space;
    px_auto_fd int tree = make_tree(c->stage, 1);
    int r = tree < 0 ? tree : px_workspace_unsettle(space->root, space->id); /* the old layers are released */
    if (r >= 0)
        r = px_changes_layer_merge(&space->tree, tree);
    if (r >= 0)
        r = px_workspace_new_id(stack->ids[0]);
    memcpy(stack->ids[1], space->stack.ids[space->stack.count - 1], PX_SPACE_LAYER_ID);
    stack->count = 2;
    put_op(c, 'n', 0, 1, stack->ids[0]);
    return r;
}

static int stage_layer(struct commit *c)
{
    struct px_space_stack stack = {0}, below = c->space->stack;
    px_auto_buf struct px_buf text = PX_BUF(4096);
    int r = below.count < PX_SPACE_DEEP ? 0 : flatten(c, &below);
    px_auto_fd int tree = r < 0 ? r : make_tree(c->stage, 0);
    r = tree < 0 ? tree : px_changes_layer_write(c->changes, &c->space->tree, tree);
    if (r >= 0)
        r = px_workspace_new_id(stack.ids[0]);
    if (r < 0)
        return r;
    for (size_t i = 0; i < below.count; i++)
        memcpy(stack.ids[i + 1], below.ids[i], PX_SPACE_LAYER_ID);
    stack.count = below.count + 1;
    r = px_workspace_stack_text(&stack, &c->space->origin, &text);
    put_op(c, 'n', 0, 0, stack.ids[0]);
    put_op(c, 'l', 0, 0, px_buf_text(&text));
    return r;
}

static int make_record(struct commit *c, const struct px_space_note *note)
{
    px_buf_add(&c->record, record_head, sizeof record_head);
    int r = c->changes->count == 0 ? 0 : c->space->branch ? stage_layer(c) : stage_plain(c);
    if (note && note->line) {
        px_buf_printf(&c->record, "j 0 0 %s %s", note->key, note->line);
        px_buf_putc(&c->record, '\0');
    }
    if (r >= 0)
        r = c->record.err;
    if (r < 0)
        return r;
    char mac[PX_MAC_HEX];
    px_workspace_sign(c->space, c->record.data, c->record.len, mac);
    put_op(c, 's', 0, 0, mac);
    return c->record.err < 0 ? c->record.err : px_state_write(c->stage, "record", c->record.data, c->record.len);
}

/* Reads the new list and releases the layers that only the old one had. */
static int change_stack(struct px_workspace *space, struct px_err *e)
{
    const struct px_space_stack old = space->stack;
    px_workspace_close_layers(&space->tree);
    if (px_workspace_read_stack(space, e) < 0)
        return -1;
    for (size_t i = 0; i < old.count; i++)
        if (!px_workspace_has_layer(&space->stack, old.ids[i]) && !px_workspace_has_layer(&space->origin, old.ids[i]))
            px_workspace_let_go(space->root, old.ids[i], space->id);
    if (old.count >= PX_SPACE_DEEP)
        px_workspace_settle(space->root, space->id);
    int r = px_workspace_open_stack(space->root, &space->stack, &space->tree);
    return r < 0 ? px_workspace_state(space, r, "one of its layers is missing", e) : 0;
}

static int conflict(const struct px_workspace *space, struct px_err *e)
{
    struct px_err cause = *e;
    px_fail(e, PX_E_TASK_CONFLICT, 0, "%s", cause.what);
    px_why(e, "Somebody has written to the workspace '%s' while the action ran.", space->id);
    return px_fix(e, "Leave a workspace alone while an action runs, and repeat the action.");
}

int px_workspace_commit(struct px_workspace *space, const struct px_changes *changes, const struct timespec *since,
                    const struct px_space_note *note, struct px_err *e)
{
    struct commit c = {.space = space, .changes = changes, .record = PX_BUF(RECORD_MAX)};
    if (!space->branch && since && px_changes_check(changes, since, e) < 0)
        return conflict(space, e);
    c.stage = open_stage(space);
    int r = c.stage < 0 ? c.stage : clear_stage(c.stage);
    if (r >= 0)
        r = make_record(&c, note);
    if (r < 0 && c.stage >= 0)
        (void)clear_stage(c.stage); /* nothing was done */
    else if (r >= 0)
        r = do_record(&(struct redo){space, space->branch ? -EBADF : space->tree.fds[0], c.stage}, c.record.data, c.record.len,
                      false);
    if (r >= 0)
        r = clear_stage(c.stage);
    (void)px_fd_close(c.stage);
    px_buf_done(&c.record);
    if (r < 0)
        return px_workspace_state(space, r, "the changes could not be kept", e);
    return space->branch && changes->count > 0 ? change_stack(space, e) : 0;
}
