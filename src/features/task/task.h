/* task/task.h - what the sources of px/task.h share.
 *
 * Owns:    the configuration and the descriptors of its directories.
 * Mustn't: start anything that the configuration does not list. */
#pragma once

#include <px/task.h>

#include "base/buf.h"
#include "base/json.h"
#include "task/workspace.h"

enum { PX_TASK_ALLOWED_MAX = 256, PX_TASK_LIST_MAX = 32, PX_TASK_KEY = 33, PX_TASK_LINE_MAX = 64 << 20 };

struct px_tasks {
    struct px_tasks_config config;
    char *work_root, *logs_dir, *base, *project;
    bool found; /* px found the configuration; the caller did not name it */
    char *allowed[PX_TASK_ALLOWED_MAX + 1];
    char *path[PX_TASK_LIST_MAX + 1], *binds[PX_TASK_LIST_MAX + 1]; /* absolute, without links */
    char *env[PX_TASK_LIST_MAX + 1];
    struct px_workspace_root root;
    struct px_task_project *environment; /* of `project`; NULL: none */
};

/* task/config.c */
int px_task_config_read(struct px_tasks *tasks, const char *file, struct px_err *e);
/* found: px found the file, the caller did not name it; what would weaken the defaults is PX050 (data/found.def). */
int px_task_config_parse(struct px_tasks *tasks, const char *name, bool found, const char *data, size_t len,
                         struct px_err *e);
const char *px_task_config_key(size_t index); /* NULL past the end */
void px_task_config_done(struct px_tasks *tasks);

/* task/project.c: the environment of `project`. open: where it is, nothing more. */
struct px_policy;
int px_task_project_open(struct px_tasks *tasks, struct px_err *e);
void px_task_project_done(struct px_tasks *tasks);
/* Finds it once for all threads; makes, fetches and runs nothing. PX100, PX120, PX201, PX900: not ready. */
int px_task_project_need(const struct px_tasks *tasks, struct px_err *e);
/* Afterwards: the directory of its programs, NULL without a project; and its part of an action's policy. root: the
 * workspace as the action sees it. */
const char *px_task_project_bin(const struct px_tasks *tasks);
int px_task_project_give(const struct px_tasks *tasks, struct px_policy *policy, const char *root, struct px_err *e);

/* task/journal_line.c: lines of the journal. */
void px_task_line_begin(struct px_json *j, struct px_buf *out, const char *event);
void px_task_line_end(struct px_json *j, const char *id, const char *key); /* key may be NULL */
int px_task_line_write(const struct px_tasks *tasks, const char *id, struct px_buf *line, struct px_err *e);

/* task/tree.c: a directory that becomes a workspace, or a part of one. */
/* own/NAME, new and empty. */
int px_task_scratch(const struct px_workspace *space, const char *name);
void px_task_scratch_done(const struct px_workspace *space, const char *name);
/* The directories that a walk has not visited yet. */
struct px_task_dirs {
    char **items;
    size_t count, room;
};
/* takes ownership of the path; NULL: -ENOMEM. -E2BIG: too many */
int px_task_dirs_add(struct px_task_dirs *d, char *path);
char *px_task_dirs_take(struct px_task_dirs *d); /* the caller frees it; NULL: the list is empty */
/* Everything of a tree but devices, pipes, sockets, and the directory `skip` (NULL: none). */
int px_task_copy(const struct px_layers *from, const struct stat *skip, int into);
/* Checks and normalises a path: "a/./b" is a/b. */
int px_task_path(const char *path, char out[], size_t size, struct px_err *e);
int px_task_put(int into, const struct px_layers *like, const struct px_task_file *file, struct px_err *e);

/* task/task.c: where a plain workspace is; free() it. ret_path NULL: not wanted. */
int px_task_give_path(const struct px_tasks *tasks, const char *id, char **ret_path, struct px_err *e);
/* task/task.c: the same as in px/task.h with a key for its line of the journal, or NULL. */
int px_task_cleanup_as(const struct px_tasks *tasks, const char *id, const char *key, struct px_err *e);
int px_task_prepare_as(const struct px_tasks *tasks, const char *id, const struct px_task_file *files, size_t count,
                       const char *source, const char *key, struct px_err *e);

/* task/diff_report.c */
int px_task_tell(const struct px_changes *list, enum px_diff_style style, uint64_t diff_max, struct px_task_changes *ret,
                 struct px_err *e);
