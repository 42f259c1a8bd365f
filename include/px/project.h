/* px/project.h - a Python project: its manifest, lock, environment and state.
 *
 *     struct px_project *p = NULL;
 *     if (px_project_open(NULL, NULL, &p, &e) < 0 || px_project_sync(p, &(struct px_sync){0}, &json, &e) < 0)
 *         return complain(&e);
 *
 * Rules as in px/px.h. Answers are JSON objects {"status","message","details"}, yours to free(). Only
 * px_project_init, px_project_sync and px_project_update write files of the project, each atomically.
 *
 * Owns:    answers are yours to free(). A px_launch borrows its project; free it before px_project_close.
 * Threads: as in px/px.h. */
#pragma once

#include <px/px.h>

#ifdef __cplusplus
extern "C" {
#endif

struct px_project;

/* The project or workspace that dir (NULL: the working directory) belongs to. home NULL: PX_HOME, else HOME/.px.
 * PX100 if there is none. */
PX_API int px_project_open(const char *dir, const char *home, struct px_project **ret_project, struct px_err *e);
PX_API void px_project_close(struct px_project *project);
/* As px_sandbox_progress. */
PX_API void px_project_progress(struct px_project *project,
                                void (*tell)(void *user, const char *what, uint64_t done, uint64_t total), void *user);
/* The quoted output of uv or pip when they failed to resolve; NULL: they did not fail. Borrowed. */
PX_API const char *px_project_said(const struct px_project *project);
PX_API const char *px_project_root(const struct px_project *project);           /* borrowed */

/* Makes dir (NULL: the working directory) a project: writes a pyproject.toml, or adds [tool.px] to the existing one. */
PX_API int px_project_init(const char *dir, const char *name, char **ret_json, struct px_err *e);

/* Its state. The members of details are at the top as well. *ret_consistent: whether run, test and pack would work. */
PX_API int px_project_status(struct px_project *project, char **ret_json, bool *ret_consistent, struct px_err *e);

struct px_sync {
    bool frozen;                /* the lock is not written: PX120 if it does not fit */
    bool dry_run;               /* only report what would be done */
};
PX_API int px_project_sync(struct px_project *project, const struct px_sync *how, char **ret_json, struct px_err *e);

struct px_update {
    const char *const *names;   /* only these packages, NULL-terminated; NULL: all */
    bool system;                /* update the packages of the base and of the capabilities instead */
};
/* Updates the pins of px.lock to the current packages of the index or the archive. PX120 for another tool's lock, or if
 * CI is set. */
PX_API int px_project_update(struct px_project *project, const struct px_update *how, char **ret_json,
                             struct px_err *e);

/* The guard of commands that use the environment. A state that is not consistent is refused, repaired or built again,
 * as in the table of px-sync(1); PX120 and PX201 with details.reason. CI in the environment counts as frozen. */
struct px_ready {
    const char *command;        /* "run", "test" or "pack" */
    bool frozen;
    bool terminal;              /* stdin and stdout are terminals */
};
PX_API int px_project_ready(struct px_project *project, const struct px_ready *how, char **ret_json, struct px_err *e);

/* ---- its sandbox ---- */

/* The members of details are at the top of these answers as well. */

/* The image that `px run --sandbox` uses, made now:
 * {"sbx_id","base","base_os_oid","capabilities","profile_oid","image_digest",...}. base and capabilities of `how` are
 * ignored: the project's are used. */
struct px_image_build;
PX_API int px_project_sandbox_build(struct px_project *project, const struct px_image_build *how, char **ret_json,
                                    struct px_err *e);
/* What it is or would be, and why: "reasons" has every capability with its source, including unused ones. Writes
 * nothing. */
PX_API int px_project_sandbox_explain(struct px_project *project, char **ret_json, struct px_err *e);
/* Adds or removes capabilities in pyproject.toml (of a workspace, its root's): comments and order stay. names:
 * NULL-terminated. Removing one that the lock needs sets it to false. */
PX_API int px_project_sandbox_edit(struct px_project *project, bool adding, const char *const *names, char **ret_json,
                                   struct px_err *e);

/* ---- its dependencies ---- */

struct px_depend {
    bool adding;                /* false: remove them */
    const char *const *requirements;            /* "six", "six>=1.2"; for removal only names. Ends with a NULL */
    const char *group;          /* of [dependency-groups]; NULL: [project] dependencies */
};
/* Changes pyproject.toml in place (of a workspace, that of the member that the project was opened in), and syncs.
 * Requirements of the same name are replaced. On failure manifest and lock are restored. PX002, PX102, and errors of
 * px_project_sync. */
PX_API int px_project_depend(struct px_project *project, const struct px_depend *how, char **ret_json,
                             struct px_err *e);

/* ---- handed on ---- */

struct px_project_pack {
    const char *tag;            /* NULL: px.local/NAME:VERSION, or the profile's first digits */
    const char *out, *format, *compression;     /* as in struct px_image_build */
    bool push;                  /* push to the tag, which must be given */
    bool allow_dirty;           /* also pack uncommitted changes */
    bool check_repro;           /* build everything again and compare */
};
/* An image with the project at /app: its files that git does not ignore, its environment, its sandbox. Writes nothing
 * in the project. PX201 if the project is not consistent; PX903 with details.reason dirty_worktree, missing_tag,
 * registry_auth_missing, unauthorized, git_unreadable; PX904 if something in the store has changed (digest_mismatch),
 * or the second build differs (not_reproducible). */
PX_API int px_project_pack(struct px_project *project, const struct px_project_pack *how, char **ret_json, struct px_err *e);

/* ---- running ---- */

/* A program of the project, ready to be started: found, its environment made, its sandbox built. Writes no file of the
 * project, except through an interactive px_project_ready. */
struct px_launch;

struct px_project_run {
    const char *command;        /* "run" or "test" */
    const char *const *argv;    /* run: the target and its arguments; test: arguments of the tests. Ends with a NULL */
    bool frozen, terminal;      /* as in px_ready */
    bool sandbox;               /* in a box on the project's image, with the working tree at /app */
    bool read_only;             /* ... ... read-only; also by [tool.px.sandbox] working-tree */
    const struct px_policy *policy;             /* of the box; NULL: px_project_policy */
    const char *const *extra;   /* extra capabilities for this run, ends with a NULL; NULL: none */
    bool capture;               /* capture its output: at most PX_MAX_CAPTURE_BYTES (1 MiB) of each stream */
    bool plan;                  /* only report what would be run: nothing is built or written */
};
/* The initial policy of a project's boxes: the preset "project". The image is added later. */
PX_API int px_project_policy(struct px_policy **ret_policy, struct px_err *e);
/* Errors of px_project_ready, PX003, PX030, PX031 (the target), PX202 (tests), PX900 to PX904 (the sandbox). The
 * project must stay open at least as long. */
PX_API int px_project_launch(struct px_project *project, const struct px_project_run *how,
                             struct px_launch **ret_launch, struct px_err *e);
PX_API void px_launch_free(struct px_launch *launch);           /* after its box; NULL is fine */

/* How it ended. Texts are borrowed from the launch or the box. */
struct px_launch_end {
    int code;                   /* its own, 124, or 128 + signal */
    const char *reason;         /* "ok", "nonzero", "signalled", "timeout", ... */
    struct px_bytes out, err;   /* the captured output: the first and the last bytes */
    uint64_t out_total, err_total;
};

/* In its box. */
PX_API int px_launch_box(struct px_launch *launch, const struct px_io *io, struct px_box **ret_box, struct px_err *e);
PX_API void px_launch_box_end(const struct px_box *box, struct px_launch_end *ret_end);
/* Runs it on the host until it ends, on the caller's streams or, with `capture`, without input and with captured
 * output. signals: a signalfd whose signals are passed on, but for those of the terminal, which reach it anyway; -1:
 * none. Dies with this process. */
PX_API int px_launch_host(struct px_launch *launch, int signals, struct px_launch_end *ret_end, struct px_err *e);

/* Whether a program of the sandbox failed because of a missing system library that a capability has: true, and
 * *ret_error is PX902 with the fix. It is derived from the program's output, so it is only a hint. *ret_capability: its
 * name for px_project_run.extra, if the project allows automatic capabilities and nothing is frozen; else NULL. */
PX_API bool px_launch_missing(const struct px_launch *launch, const struct px_launch_end *end,
                              const char **ret_capability, struct px_err *ret_error);

/* {"status","message","details":{"target","code","stdout","stderr",...}} */
PX_API int px_launch_answer(const struct px_launch *launch, const struct px_launch_end *end, char **ret_json,
                            struct px_err *e);
/* The same for a launch that was only planned: {"details":{"schema_version":1,"engine","argv","workdir",...}}. */
PX_API int px_launch_explain(const struct px_launch *launch, char **ret_json, struct px_err *e);
/* The time before the start, and whether the sandbox already existed. */
PX_API uint64_t px_launch_ready_nsec(const struct px_launch *launch);
PX_API bool px_launch_cached(const struct px_launch *launch);

#ifdef __cplusplus
}
#endif
