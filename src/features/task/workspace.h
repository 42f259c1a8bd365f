/* task/workspace.h - the workspaces of tasks: WORK_ROOT/ID, and their state in WORK_ROOT/.px.
 *
 * Why:     an action's changes are applied completely or not at all, even after kill -9, and a branch stores only
 *          differences.
 * Owns:    WORK_ROOT/.px, and the lock on a workspace while it is open.
 * Mustn't: follow a link of a workspace, wait for a lock, or change a layer that others may share.
 *
 * A workspace is plain (WORK_ROOT/ID is its tree) or a branch: a list of frozen layers, the uppermost first. Forking makes
 * a layer of the plain tree by a rename; from then on both are branches, and each action adds one layer to its own.
 *
 *     .px/tasks/ID/           locked (flock) while it is in use
 *     .px/tasks/ID/layers     of a branch: its layers, and those that it was forked from
 *     .px/tasks/ID/checkout   while a branch becomes plain: an existing directory is complete
 *     .px/tasks/ID/stage/     the changes of an action: the new files and then `record`
 *     .px/layers/LAYER/tree   frozen
 *     .px/layers/LAYER/users/ID   its users; the last one to leave removes it
 *     .px/unsettled/ID        while the users of layers or names change for it (layer_users.c)
 *     .px/trash/              what is being removed
 *
 * .px has a mark (state/state.h): one that came with a repository, a copy or another user is refused. A box may be
 * able to write to it nevertheless. So it is opened one path component at a time, links are not followed, and names
 * that were read are checked before use.
 *
 * (1) `record` is complete before its first step is carried out; the next open of the workspace does the rest.
 * (2) Every step of a record can be repeated. Its last step is the line of the journal. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/mac.h"
#include "changes/changes.h"
#include "changes/layers.h"

struct px_err;

enum { PX_SPACE_ID_MAX = 128, PX_SPACE_LAYER_ID = 33, PX_SPACE_DEEP = 8 };

/* The directories in .px. */
enum px_space_part { PX_SPACE_TASKS, PX_SPACE_LAYERS, PX_SPACE_TRASH, PX_SPACE_UNSETTLED, PX_SPACE_PARTS };

struct px_workspace_root {
    char path[PATH_MAX];    /* absolute */
    int dir, own, logs;     /* WORK_ROOT, WORK_ROOT/.px, LOGS_DIR */
    uint64_t log_bytes_max; /* where the journals are rotated */
    int parts[PX_SPACE_PARTS];
    uint8_t seal[PX_MAC_SIZE]; /* the key of records */
};

#define PX_SPACE_NO_ROOT \
    ((struct px_workspace_root){.dir = -EBADF, .own = -EBADF, .logs = -EBADF, .parts = {-EBADF, -EBADF, -EBADF, -EBADF}})

/* The layers of a branch by their names. */
struct px_space_stack {
    char ids[PX_LAYERS_DEPTH][PX_SPACE_LAYER_ID];
    size_t count;
};

struct px_workspace {
    const struct px_workspace_root *root;
    char id[PX_SPACE_ID_MAX + 1];
    int own;                       /* .px/tasks/ID, locked */
    bool branch;
    struct px_space_stack stack;   /* of a branch */
    struct px_space_stack origin;  /* what it was forked from */
    struct px_layers tree;         /* of a plain one its directory alone */
};

/* Makes the directories that are missing. */
int px_workspace_root_open(const char *work_root, const char *logs_dir, uint64_t log_bytes_max, struct px_workspace_root *ret,
                       struct px_err *e);
void px_workspace_root_done(struct px_workspace_root *root);

int px_workspace_check_id(const char *id, struct px_err *e);
/* Locks it and finishes what a killed process has begun. */
enum px_space_how {
    PX_SPACE_FIND,
    PX_SPACE_MAKE, /* one that is not there is made, empty */
    PX_SPACE_NEW,  /* there must be none; only its name is taken, and it has no tree */
};
int px_workspace_open(const struct px_workspace_root *root, const char *id, enum px_space_how how, struct px_workspace *ret,
                  struct px_err *e);
void px_workspace_close(struct px_workspace *space);
/* Closes it, and removes the name if it has no workspace. */
void px_workspace_forget(struct px_workspace *space);
/* Removes what killed processes left of forks, removals and merged layers; does nothing if nothing was left. */
void px_workspace_sweep(const struct px_workspace_root *root);
/* Unlike open, a missing workspace is not an error. */
bool px_workspace_exists(const struct px_workspace_root *root, const char *id);
/* The path of a layer's tree, or of a plain workspace. */
int px_workspace_path(const struct px_workspace *space, size_t layer, char *out, size_t size);

/* The journal's line of a change, written exactly once: `line` contains `key`. */
struct px_space_note {
    const char *key, *line; /* NULL: nothing */
};

/* Applies the changes to the workspace; their lower tree is the workspace (or equal in all that they change). since:
 * fails if a plain workspace was changed later; NULL: not checked. */
int px_workspace_commit(struct px_workspace *space, const struct px_changes *changes, const struct timespec *since,
                    const struct px_space_note *note, struct px_err *e);
int px_workspace_fork(struct px_workspace *from, const char *to, struct px_err *e);
/* Makes a branch plain: `copy` in its own directory, with all its files, becomes its tree. */
int px_workspace_checkout(struct px_workspace *space, const char *copy, struct px_err *e);
/* Removes it with all layers that no other workspace needs. */
int px_workspace_remove(struct px_workspace *space, struct px_err *e);

/* The differences from `from` to `to`, as changes whose lower tree is `from`; 0 or -errno. ids may be NULL: then no
 * layer is shared. */
struct px_space_view {
    const struct px_layers *tree;
    const struct px_space_stack *ids;
};
int px_workspace_compare(const struct px_space_view *from, const struct px_space_view *to, struct px_changes *ret);
/* Fails with the path in `other` that is neither as before the changes nor as after them. */
int px_workspace_conflicts(const struct px_changes *changes, const struct px_layers *other, struct px_err *e);
/* Opens the layers of a stack. */
int px_workspace_open_stack(const struct px_workspace_root *root, const struct px_space_stack *stack, struct px_layers *ret);
void px_workspace_close_layers(struct px_layers *layers);

/* ---- between the sources of this ---- */

int px_workspace_state(struct px_workspace *space, int err, const char *what, struct px_err *e); /* makes the error */
int px_workspace_read_stack(struct px_workspace *space, struct px_err *e);
int px_workspace_stack_text(const struct px_space_stack *stack, const struct px_space_stack *origin, struct px_buf *out);
int px_workspace_new_id(char out[PX_SPACE_LAYER_ID]);
bool px_workspace_is_layer(const char *id); /* 32 digits: the only names that layers have */
/* .px/layers/LAYER, or -errno. */
int px_workspace_open_layer(const struct px_workspace_root *root, const char *layer);
/* The MAC that shows that px has written a record for this workspace. */
void px_workspace_sign(const struct px_workspace *space, const void *record, size_t len, char ret[PX_MAC_HEX]);
int px_workspace_use(const struct px_workspace_root *root, const char *layer, const char *id);
void px_workspace_let_go(const struct px_workspace_root *root, const char *layer, const char *id);
bool px_workspace_has_layer(const struct px_space_stack *stack, const char *layer);
/* The descriptor of its own directory, or -errno. */
int px_workspace_lock(const struct px_workspace_root *root, const char *id);
/* Called before and after the users of layers or names change; px_workspace_sweep can finish what is between. */
int px_workspace_unsettle(const struct px_workspace_root *root, const char *id);
void px_workspace_settle(const struct px_workspace_root *root, const char *id);
void px_workspace_drop(const struct px_workspace_root *root, int dir, const char *name); /* moved to the trash first */
int px_workspace_recover(struct px_workspace *space, struct px_err *e);
/* Finishes a checkout that was killed after the directory was renamed. */
void px_workspace_finish_checkout(struct px_workspace *space);
