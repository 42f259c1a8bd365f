/* px/task.h - tasks: a directory for each, allow-listed commands in boxes, and their changes.
 *
 *     struct px_tasks *tasks = NULL;
 *     struct px_task_run *run = NULL;
 *     const struct px_task_file files[] = {{"main.py", "print(1)\n", 9}};
 *     const struct px_task_action action = {.command = (const char *const[]){"python", "main.py", NULL}};
 *
 *     if (px_tasks_new(NULL, &tasks, &e) < 0 || px_task_prepare(tasks, "t1", files, 1, NULL, NULL, &e) < 0 ||
 *         px_task_apply(tasks, "t1", &action, &run, &e) < 0)
 *         return complain(&e);
 *     const struct px_task_result *r = px_task_result(run);
 *     printf("exit %d\n%s", r->exit_code, r->diff.data ? r->diff.data : "");
 *     px_task_run_free(run);
 *
 * Each action runs on an overlay over the workspace: the upper layer is the change. It is merged atomically, or
 * dropped. Where no overlay is possible the action runs on a copy, with the same results. Every action is one line
 * of the task's journal, LOGS_DIR/ID.jsonl. A workspace is used by one action at a time: PX405 if it is in use.
 *
 * Owns:    a run owns its result; it is freed before its px_tasks.
 * Threads: a px_tasks may be used by several threads at once, a run by one at a time. */
#pragma once

#include <px/px.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- configuration ---- */

struct px_tasks;

struct px_tasks_config {
    const char *work_root;      /* ".sandbox" */
    const char *logs_dir;       /* "logs/sandbox" */
    uint64_t timeout_msec;      /* default_timeout_sec: 30 */
    uint64_t cpu_time_msec;     /* cpu_time_sec: 20 */
    uint64_t memory_bytes;      /* mem_limit_mb: 4096 */
    const char *const *allowed; /* allowed_binaries: ast-grep, sg, python, pytest; ends with NULL */
    uint64_t log_bytes_max;     /* log_max_mb: 64 */
    bool overlay;               /* false: every action runs on a copy */
    bool jail;                  /* enable_jail: true; false: no box, only rlimits, on a copy; the result reports it
                                 * (tier, missing) */
    const char *base;           /* of the store, as in the policy; NULL: the host's /usr */
    const char *project;        /* a directory of a px project, whose environment actions have; NULL: none */
    /* Lists that end with NULL; empty by default. */
    const char *const *path;    /* directories before the box's PATH; the box shows them read-only where they are */
    const char *const *binds;   /* more paths to show */
    const char *const *env;     /* "NAME=VALUE" */
};

/* file: YAML; NULL: configs/sandbox.yaml, if it is there. That one may only restrict the defaults: a field that
 * would weaken them is PX050. Without a file everything has its default. Relative paths are those of the working directory. */
PX_API int px_tasks_new(const char *file, struct px_tasks **ret_tasks, struct px_err *e);
PX_API void px_tasks_free(struct px_tasks *tasks);
PX_API const struct px_tasks_config *px_tasks_config(const struct px_tasks *tasks);
/* Checks that actions can run: `px sync` must have made the environment of `project`. It is looked up once, here or by
 * the first action; nothing is made, fetched or run for it. PX100, PX120, PX201 or PX900 if something is missing. For
 * callers that clear the environment before the first action: PATH and PX_HOME are read here. */
PX_API int px_tasks_ready(const struct px_tasks *tasks, struct px_err *e);

/* ---- workspaces ---- */

struct px_task_file {
    const char *path;           /* relative, without ".." */
    const char *data;
    size_t len;
};

/* Creates the workspace, or adds to it: a copy of the directory `source` (may be NULL), then the files. All or nothing.
 * ret_path may be NULL; free() it. */
PX_API int px_task_prepare(const struct px_tasks *tasks, const char *id, const struct px_task_file *files, size_t count,
                           const char *source, char **ret_path, struct px_err *e);
/* Removes it; not an error if there is none. */
PX_API int px_task_cleanup(const struct px_tasks *tasks, const char *id, struct px_err *e);

/* ---- branches ---- */

/* Makes a branch `to` of `from` in constant time. From then on both are stored as layers, without a directory in
 * work_root. */
PX_API int px_task_fork(const struct px_tasks *tasks, const char *from, const char *to, struct px_err *e);

struct px_task_changes {
    struct px_change *changes;
    size_t count;
    struct px_bytes diff;       /* unified, with lines for modes, as `git apply` and `patch -p1` read it */
    bool truncated;             /* files whose diff did not fit are left out of it */
    void *own;
};
/* From a to b; b NULL: from the fork of the branch to its current state. */
PX_API int px_task_diff(const struct px_tasks *tasks, const char *a, const char *b, struct px_task_changes *ret_changes,
                        struct px_err *e);
/* Applies the changes of `from` since its fork to `to`; PX406 if `to` has changed the same files differently. */
PX_API int px_task_apply_from(const struct px_tasks *tasks, const char *from, const char *to, struct px_task_changes *ret_changes,
                              struct px_err *e);
PX_API void px_task_changes_done(struct px_task_changes *changes);

/* ---- files ---- */

struct px_task_entry {
    const char *path;           /* relative to the workspace; that of a directory ends with '/' */
    const char *type;           /* "file", "directory", "link", "special" */
    uint64_t size;
    unsigned mode;              /* its permissions */
};
/* The entries below `path` (NULL: all), also of a branch, unsorted; `each` returns < 0 to stop. */
PX_API int px_task_list(const struct px_tasks *tasks, const char *id, const char *path,
                        int (*each)(void *user, const struct px_task_entry *entry), void *user, struct px_err *e);
/* A regular file of at most 64 MiB; no link is followed. free() its data. */
PX_API int px_task_read(const struct px_tasks *tasks, const char *id, const char *path, struct px_bytes *ret_data,
                        struct px_err *e);
/* Copies all files to `dir`, which px creates atomically. Without devices, pipes and sockets; links are copied as
 * links. */
PX_API int px_task_export(const struct px_tasks *tasks, const char *id, const char *dir, struct px_err *e);
/* Makes a branch a plain workspace again, with a directory in work_root. Its origin is forgotten. ret_path as for
 * px_task_prepare. */
PX_API int px_task_checkout(const struct px_tasks *tasks, const char *id, char **ret_path, struct px_err *e);

/* ---- actions ---- */

struct px_task_action {
    const char *const *command; /* NULL or empty: invalid_command */
    const char *timeout, *cpu_time, *memory;    /* in the grammar of px-policy(5), "10s" and "512m"; NULL: the configuration's */
    bool discard;               /* drop its changes */
    bool discard_on_timeout;    /* ... if it does not end in time */
    bool test;                  /* the result has no diff */
    const char *key;            /* of its line in the journal, up to 32 letters and digits; NULL: a random one */
};

struct px_task_result {
    const char *const *cmd;     /* resolved, ends with NULL; empty if there is none */
    int exit_code;              /* the command's; 124 timeout, 126 not allowed, 127 invalid, -N killed by a signal */
    const char *error;          /* NULL, "timeout", "not_allowed", "invalid_command" */
    struct px_bytes out, err;
    bool out_truncated, err_truncated;
    uint64_t wall_nsec;
    bool changed;               /* false: no diff and no list */
    struct px_bytes diff;       /* unified: --- a/x and +++ b/x for every file; symbolic links as git shows them */
    bool diff_truncated;
    const struct px_change *changes;
    size_t changes_count;
    bool applied;
    const struct px_result *box; /* the box's result; NULL if nothing was started */
};

struct px_task_run;
PX_API int px_task_start(const struct px_tasks *tasks, const char *id, const struct px_task_action *action,
                         struct px_task_run **ret_run, struct px_err *e);
/* As px_box_fd and px_box_step; fd -1: the run has already ended, as step reports. */
PX_API int px_task_fd(const struct px_task_run *run);
PX_API int px_task_step(struct px_task_run *run, struct px_err *e);
PX_API const struct px_task_result *px_task_result(const struct px_task_run *run);
PX_API void px_task_run_free(struct px_task_run *run);
/* Waits until it has ended. */
PX_API int px_task_apply(const struct px_tasks *tasks, const char *id, const struct px_task_action *action,
                         struct px_task_run **ret_run, struct px_err *e);
/* One object on one line; free() it. */
PX_API int px_task_json(const struct px_task_run *run, char **ret_json, struct px_err *e);

/* ---- the journal ---- */

/* Each line, the oldest first, without its newline; `each` returns < 0 to stop. PX403 if there is no journal. */
PX_API int px_task_log(const struct px_tasks *tasks, const char *id, int (*each)(void *user, const char *line, size_t len),
                       void *user, struct px_err *e);

/* ---- many actions ---- */

/* One JSON object a line: {"task": "t1", "command": ["python", "x.py"]}, and optionally "files": {"x.py": "..."}
 * (written first), "from": "base" (a missing workspace begins as a branch of that one), "timeout_sec", "cpu_time_sec",
 * "mem_limit_mb", "discard", "discard_on_timeout", "test", "cleanup" (at the end), "id" (copied to the result). Lines
 * of one task run in order, others in parallel. */
struct px_tasks_batch {
    int actions;                /* the descriptor they are read from */
    const char *name;           /* key of the run: lines that the journal has under it are skipped; NULL: none */
    unsigned jobs;              /* boxes at once, 1 to 1024 */
    /* Called with each result, one JSON object; < 0 ends the run. Callbacks are called one at a time, from any
     * thread. */
    int (*each)(void *user, const char *json, size_t len);
    void (*progress)(void *user, const char *what, uint64_t done, uint64_t total);      /* may be NULL; total 0: not known */
    void *user;
};

struct px_tasks_count {
    uint64_t lines, skipped;    /* all, and those that were skipped */
    uint64_t ok, nonzero;       /* by exit code */
    uint64_t failed;            /* could not be run; the result has the reason */
};

/* Uses a thread for each processor, at most one for each job: the caller's, and others that end before it returns. */
PX_API int px_tasks_run(const struct px_tasks *tasks, const struct px_tasks_batch *batch, struct px_tasks_count *ret_count,
                        struct px_err *e);

/* ---- reports ---- */

/* Statistics of the journals of a directory as a JSON object, and as one HTML page if `html` is not NULL; free()
 * both. */
PX_API int px_tasks_report(const char *logs_dir, char **ret_json, char **ret_html, struct px_err *e);

#ifdef __cplusplus
}
#endif
