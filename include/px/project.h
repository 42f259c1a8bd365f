/* px/project.h - a Python project: what it says, its lock, its environment, and where it stands.
 *
 *     struct px_project *p = NULL;
 *     if (px_project_open(NULL, NULL, &p, &e) < 0 || px_project_sync(p, &(struct px_sync){0}, &json, &e) < 0)
 *         return complain(&e);
 *
 * Answers are JSON objects {"status","message","details"}. Only px_project_init, px_project_sync, px_project_update,
 * px_project_depend, px_project_sandbox_edit and, for a person, px_project_ready write files of the project, and each of
 * them whole or not at all.
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
/* All that uv or pip said when they could not resolve, quoted, in lines; NULL: they did not fail. Borrowed. */
PX_API const char *px_project_said(const struct px_project *project);
PX_API const char *px_project_root(const struct px_project *project);           /* borrowed */

/* Makes dir (NULL: the working directory) a project: a pyproject.toml, or [tool.px] at the end of the one that is
 * there. */
PX_API int px_project_init(const char *dir, const char *name, char **ret_json, struct px_err *e);

/* Where it stands. The members of details are at the top as well. *ret_consistent: whether run, test and pack would
 * go on. */
PX_API int px_project_status(struct px_project *project, char **ret_json, bool *ret_consistent, struct px_err *e);

struct px_sync {
    bool frozen;                /* the lock is not to be written: PX120 if it does not fit */
    bool dry_run;               /* say what would be done */
};
PX_API int px_project_sync(struct px_project *project, const struct px_sync *how, char **ret_json, struct px_err *e);

struct px_update {
    const char *const *names;   /* these packages alone, NULL-terminated; NULL: all */
    bool system;                /* not those of the environment: the packages of the base and of the capabilities */
};
/* Moves what px.lock pins to what the index, or the archive, has now. PX120 if that is another tool's lock, or if CI is
 * set. */
PX_API int px_project_update(struct px_project *project, const struct px_update *how, char **ret_json,
                             struct px_err *e);

/* What a command that uses the environment asks first. Anything but consistent is refused, mended or built again, as
 * the table in
 * px-sync(1) says; PX120 and PX201 with details.reason. CI in the environment counts as frozen. */
struct px_ready {
    const char *command;        /* "run", "test" or "pack" */
    bool frozen;
    bool terminal;              /* a person is at stdin and stdout */
};
PX_API int px_project_ready(struct px_project *project, const struct px_ready *how, char **ret_json, struct px_err *e);

/* ---- its sandbox ---- */

/* The members of details are at the top of these answers as well. */

/* The image that `px run --sandbox` uses, made now: {"sbx_id","base","base_os_oid","capabilities","profile_oid","image_digest",...}. Of
 * `how`, base and capabilities do not count: they are the project's. */
struct px_image_build;
PX_API int px_project_sandbox_build(struct px_project *project, const struct px_image_build *how, char **ret_json,
                                    struct px_err *e);
/* What it is or would be, and why: "reasons" has every capability with its source, also those that are set aside. Writes nothing. */
PX_API int px_project_sandbox_explain(struct px_project *project, char **ret_json, struct px_err *e);
/* Capabilities said yes to, or not any more, in pyproject.toml, of a workspace in its root's: comments and order stay. names:
 * NULL-terminated. Taken away, one that the lock asks for is set to false. */
PX_API int px_project_sandbox_edit(struct px_project *project, bool adding, const char *const *names, char **ret_json,
                                   struct px_err *e);

/* ---- its dependencies ---- */

struct px_depend {
    bool adding;                /* else they are taken away */
    const char *const *requirements;            /* "six", "six>=1.2"; to take away, names alone. Ends with a NULL */
    const char *group;          /* of [dependency-groups]; NULL: [project] dependencies */
};
/* Changes pyproject.toml in place, of a workspace that of the member that the project was opened in, and syncs. What is
 * of the same name is replaced. If anything fails, manifest and lock are as they were. PX002, PX102, and what
 * px_project_sync says. */
PX_API int px_project_depend(struct px_project *project, const struct px_depend *how, char **ret_json,
                             struct px_err *e);

/* ---- handed on ---- */

struct px_project_pack {
    const char *tag;            /* NULL: px.local/NAME:VERSION, or the profile's first digits */
    const char *out, *format, *compression;     /* as in struct px_image_build */
    bool push;                  /* to where the tag says; it has to be given then */
    bool allow_dirty;           /* what is not committed, too */
    bool check_repro;           /* make everything again, and compare */
};
/* An image with the project in it, at /app: its files as git would hand them on, its environment, its sandbox. Nothing of the project is
 * written. PX201 if the project is not consistent; PX903 with details.reason dirty_worktree, missing_tag, registry_auth_missing,
 * unauthorized, git_unreadable; PX904 if something in the store is not what it was (digest_mismatch), or the second time was
 * another (not_reproducible). */
PX_API int px_project_pack(struct px_project *project, const struct px_project_pack *how, char **ret_json, struct px_err *e);

/* ---- running ---- */

/* A program of the project, ready to be started: found, its environment made, its sandbox built. No file of the
 * project is written for it, but by a person's px_project_ready. */
struct px_launch;

struct px_project_run {
    const char *command;        /* "run" or "test" */
    const char *const *argv;    /* run: the target and its arguments; test: arguments of the tests. Ends with a NULL */
    bool frozen, terminal;      /* as in px_ready */
    bool sandbox;               /* in a box on the project's image, with the working tree at /app */
    bool read_only;             /* ... which it cannot write in; [tool.px.sandbox] working-tree can say so, too */
    const struct px_policy *policy;             /* of the box; NULL: px_project_policy */
    const char *const *extra;   /* capabilities for this time alone, ends with a NULL; NULL: none */
    bool capture;               /* its output is an answer's: at most PX_MAX_CAPTURE_BYTES (1 MiB) of each stream */
    bool plan;                  /* only say what would be run: nothing is built or written */
};
/* The policy of a project's boxes to begin with: the preset "project". What it is to be run on is
 * added later. */
PX_API int px_project_policy(struct px_policy **ret_policy, struct px_err *e);
/* What px_project_ready says, PX003, PX030, PX031 (the target), PX202 (tests), PX900 to PX904 (the sandbox). The
 * project stays open at least as long. */
PX_API int px_project_launch(struct px_project *project, const struct px_project_run *how,
                             struct px_launch **ret_launch, struct px_err *e);
PX_API void px_launch_free(struct px_launch *launch);           /* after its box; NULL is fine */

/* How it ended. Texts are borrowed from the launch or the box. */
struct px_launch_end {
    int code;                   /* its own, 124, or 128 + signal */
    const char *reason;         /* "ok", "nonzero", "signalled", "timeout", ... */
    struct px_bytes out, err;   /* what was kept of them: the first and the last bytes */
    uint64_t out_total, err_total;
};

/* In its box. */
PX_API int px_launch_box(struct px_launch *launch, const struct px_io *io, struct px_box **ret_box, struct px_err *e);
PX_API void px_launch_box_end(const struct px_box *box, struct px_launch_end *ret_end);
/* On the host, on the caller's streams or, with `capture`, without input and its output kept; to its end. signals: a
 * signalfd whose signals are passed on, but for those of the terminal, which reach it anyway; -1: none. Dies with
 * this process. */
PX_API int px_launch_host(struct px_launch *launch, int signals, struct px_launch_end *ret_end, struct px_err *e);

/* Whether a program of the sandbox failed for want of a system library that a capability would bring: true and
 * *ret_error is PX902 with the fix. It is read from what the program wrote, so it is a hint and no more.
 * *ret_capability: its name if the project's settings leave it to px and nothing is frozen, so that
 * px_project_run.extra may have it; else NULL. */
PX_API bool px_launch_missing(const struct px_launch *launch, const struct px_launch_end *end,
                              const char **ret_capability, struct px_err *ret_error);

/* {"status","message","details":{"target","code","stdout","stderr",...}} */
PX_API int px_launch_answer(const struct px_launch *launch, const struct px_launch_end *end, char **ret_json,
                            struct px_err *e);
/* The same for a launch that was only planned: {"details":{"schema_version":1,"engine","argv","workdir",...}}. */
PX_API int px_launch_explain(const struct px_launch *launch, char **ret_json, struct px_err *e);
/* How long what came before the start took, and whether the sandbox was there already. */
PX_API uint64_t px_launch_ready_nsec(const struct px_launch *launch);
PX_API bool px_launch_cached(const struct px_launch *launch);

#ifdef __cplusplus
}
#endif
