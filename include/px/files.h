/* px/files.h - a file sandbox: named directories, and what may be read and written below them.
 *
 *     struct px_files_root roots[] = {{.name = "portfolio", .dir = "./portfolio", .writable = true},
 *                                     {.name = "pipeline", .dir = "./pipeline"}};
 *     struct px_files *files = NULL;
 *     struct px_files_text text = {0};
 *     if (px_files_new(roots, 2, &files, &e) < 0 || px_files_read(files, "portfolio/a.md", 0, 1000, &text, &e) < 0)
 *         return complain(&e);
 *     fwrite(text.data, 1, text.len, stdout);
 *     px_files_text_done(&text);
 *     px_files_free(files);
 *
 * A path is `name/relative`, or `name:relative` where the name has no slash; a leading `./` is ignored, and a name
 * alone is the root's directory. The kernel keeps every access below that directory, which is held open: "..",
 * absolute paths and links that lead out are refused, also when they appear between the check and the access. Text
 * is UTF-8. Errors name what is allowed instead and never show a path of the host; px_files_message has the exact
 * words for a model.
 *
 * Beyond the rules of px/px.h: a px_files is immutable, so several threads may use it at once.
 *
 * Owns:    a px_files owns the descriptors of its directories; what functions give is freed as each of them says.
 * Threads: a px_files never changes once it is made: several threads may use one at once. */
#pragma once

#include <px/px.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PX_FILES_BYTES_MAX = 64 << 20,      /* of a file, where a root has no limit of its own */
    PX_FILES_CHARS = 200000,            /* of one read, by default */
    PX_FILES_RESULTS = 10000,           /* of a list or a search, by default */
    PX_FILES_RESULTS_MAX = 100000,
    PX_FILES_ROOTS_MAX = 64,
    PX_FILES_EDITS_MAX = 256,
    PX_FILES_EXCLUDE_MAX = 16,
};

/* ---- the roots ---- */

struct px_files;

struct px_files_root {
    const char *name; /* "portfolio"; letters, digits and _ . - ; "a/b" lies inside "a", the longest name wins */
    const char *dir;            /* on the host; relative ones are below the working directory */
    bool use_fd;                /* use this directory instead; the caller keeps it */
    int fd;
    bool writable;
    bool create;                /* create the directory if it is missing */
    bool git_writable;          /* git directories, whose settings the host's git uses, can be written as well */
    const char *const *suffixes;        /* NULL-terminated: ".md", ".pdf"; case-insensitive. NULL: any file */
    uint64_t max_file_bytes;    /* 0: PX_FILES_BYTES_MAX */
};

/* Directories must not overlap: one inside another would have two sets of rules. */
PX_API int px_files_new(const struct px_files_root *roots, size_t count, struct px_files **ret_files, struct px_err *e);
/* The same from the command line's strings: NAME=DIR[:ro|rw][:create][:suffixes=.md,.pdf][:max=10m]; git_writable holds
 * for all of them. */
PX_API int px_files_parse(const char *const *words, size_t count, bool git_writable, struct px_files **ret_files,
                          struct px_err *e);

/* A child with fewer rights. Only the named paths are allowed; a path is a directory of the parent. A writable one is
 * created if it is missing, unless the child is read-only. */
struct px_files_narrow {
    const char *const *read;    /* NULL-terminated, or NULL */
    const char *const *write;   /* may also be read */
    bool inherit;               /* all of the parent's roots, as they are */
    bool read_only;             /* nothing may be written */
    bool protect_git;           /* nothing in a git directory may be written */
};
PX_API int px_files_derive(const struct px_files *parent, const struct px_files_narrow *narrow,
                           struct px_files **ret_files, struct px_err *e);
PX_API void px_files_free(struct px_files *files);              /* NULL is fine */

/* One root, borrowed: its directory is a descriptor, not a path of the host; -1 past the end. */
PX_API int px_files_root_at(const struct px_files *files, size_t index, struct px_files_root *ret_root);
/* Restricts the calling thread permanently to these roots: a second layer, for a program that does nothing else. 1 if
 * it is in force, 0 if the kernel has no Landlock. */
PX_API int px_files_confine(const struct px_files *files, struct px_err *e);
/* The same, and also allows only the system calls for these files and for open descriptors, and no privilege except
 * over files. For a server that reads untrusted input; call it before starting threads. 1, or 0 without Landlock. */
PX_API int px_files_seal(const struct px_files *files, struct px_err *e);
/* Binds each root into a box, at TARGET/NAME (NULL: its path on the host) with its mode. The policy must not outlive
 * `files`. */
PX_API int px_files_bind(const struct px_files *files, const char *target, struct px_policy *policy, struct px_err *e);

/* ---- questions ---- */

/* Whether the rules allow it; the file need not exist. Never an error. */
PX_API bool px_files_can_read(const struct px_files *files, const char *path);
PX_API bool px_files_can_write(const struct px_files *files, const char *path);

enum px_files_kind { PX_FILES_NONE, PX_FILES_FILE, PX_FILES_DIRECTORY, PX_FILES_LINK, PX_FILES_OTHER };
PX_API const char *px_files_kind_name(enum px_files_kind kind);

struct px_files_stat {
    enum px_files_kind kind;    /* PX_FILES_NONE: nothing is there (px_files_resolve only) */
    bool readable, writable;    /* by the rules */
    uint64_t size;
    unsigned mode;              /* permission bits */
    int64_t modified, accessed, created;        /* seconds since 1970; created 0: not known */
};
/* The path with its links resolved, as `name/relative`; free() it. It need not exist. */
PX_API int px_files_resolve(const struct px_files *files, const char *path, char **ret_path,
                            struct px_files_stat *ret_stat, struct px_err *e);
PX_API int px_files_stat(const struct px_files *files, const char *path, struct px_files_stat *ret_stat,
                         struct px_err *e);

/* ---- reading ---- */

/* Opens the file for reading, with the checks of px_files_read except that it is text; close() it. */
PX_API int px_files_open(const struct px_files *files, const char *path, int *ret_fd, struct px_err *e);

struct px_files_text {
    char *data;                 /* NUL-terminated, may contain NULs */
    size_t len;
    uint64_t offset, chars;     /* in characters: its offset, its length */
    uint64_t total_chars;       /* in the file */
    bool truncated;             /* the file continues after it */
};
PX_API int px_files_read(const struct px_files *files, const char *path, uint64_t offset, uint64_t max_chars,
                         struct px_files_text *ret_text, struct px_err *e);
PX_API void px_files_text_done(struct px_files_text *text);

struct px_files_entry {
    char *path;                 /* name/relative; the bytes of the file system */
    enum px_files_kind kind;
    uint64_t size;
    int64_t modified;
    uint64_t version;           /* changes when the file is changed or replaced */
    uint64_t line;              /* of a match, from 1; 0: none was asked for */
    char *text;                 /* that line, cut to a readable length; NULL */
};

struct px_files_entries {
    struct px_files_entry *items;
    size_t count;
    const char *truncated;      /* why the list is incomplete; NULL: it is complete */
    uint64_t files_searched, files_skipped;     /* of a search; skipped: not text, too large, or not allowed */
};

struct px_files_query {
    const char *path;           /* a directory; NULL or ".": all roots */
    const char *pattern;        /* NULL: every file, "**" and "/" and "*". Also ? and [a-z] */
    const char *const *exclude; /* NULL-terminated patterns; what matches is left out with everything below it */
    const char *text;           /* px_files_search: lines that contain it */
    bool ignore_case;           /* of the letters a-z */
    bool directories;           /* px_files_list: also list directories; a pattern that ends with a slash lists only
                                 * those */
    bool names_only;            /* px_files_list: without sizes, times and versions, which take most of its time */
    uint64_t max_results;       /* 0: PX_FILES_RESULTS */
};
/* Sorted. Hidden files are listed, links if they lead to a file inside; no link to a directory is entered. */
PX_API int px_files_list(const struct px_files *files, const struct px_files_query *query,
                         struct px_files_entries *ret_entries, struct px_err *e);
PX_API int px_files_search(const struct px_files *files, const struct px_files_query *query,
                           struct px_files_entries *ret_entries, struct px_err *e);
PX_API void px_files_entries_done(struct px_files_entries *entries);

/* ---- writing: whole or not at all ---- */

struct px_files_done {
    char *path;                 /* the written path, as name/relative */
    uint64_t chars;             /* in it */
    uint64_t old_chars, new_chars;      /* px_files_edit: of the replaced text, and of the new text */
    char *diff;                 /* px_files_edit */
};
PX_API void px_files_done_free(struct px_files_done *done);     /* frees what it points to */

/* Creates the parent directories. An existing file keeps its mode and owner, except set-id bits. */
PX_API int px_files_write(const struct px_files *files, const char *path, const char *data, size_t len,
                          struct px_files_done *ret_done, struct px_err *e);

struct px_files_edit {
    const char *old_text, *new_text;
    size_t old_len, new_len;
};
/* Applied one after another; each old text must then occur exactly once. All or none. With dry_run only the diff is
 * made. */
PX_API int px_files_edit(const struct px_files *files, const char *path, const struct px_files_edit *edits,
                         size_t count, bool dry_run, struct px_files_done *ret_done, struct px_err *e);

/* A unified diff of a file and another one, or (`to` NULL) a new text for it; "" if equal; free() it. Changes
 * nothing. */
PX_API int px_files_diff(const struct px_files *files, const char *path, const char *to, const char *text, size_t len,
                         char **ret_diff, struct px_err *e);

/* The target must not exist; its parent directories are created. A directory can be moved within its root. */
PX_API int px_files_move(const struct px_files *files, const char *from, const char *to, struct px_err *e);
PX_API int px_files_copy(const struct px_files *files, const char *from, const char *to, struct px_err *e);
PX_API int px_files_delete(const struct px_files *files, const char *path, struct px_err *e); /* a file or a link */
PX_API int px_files_make_directory(const struct px_files *files, const char *path,
                                   struct px_err *e);           /* not an error if it exists */

/* ---- for front ends: every operation by its name, answered in words and in JSON ---- */

struct px_files_ask {
    const char *op;             /* "read": px_files_op_at lists them */
    const char *path, *to;
    const char *content;        /* of a write */
    size_t content_len;
    const struct px_files_edit *edits;
    size_t edits_count;
    struct px_files_query query;        /* its path is the one above */
    uint64_t offset;
    bool use_max_chars;
    uint64_t max_chars;
    bool dry_run;
};

struct px_files_answer {
    char *text;                 /* for a person, or the content itself */
    size_t text_len;
    char *json;                 /* one object on one line: {"ok":true,...} */
    bool no;                    /* can_read, can_write: not allowed */
};

PX_API int px_files_call(const struct px_files *files, const struct px_files_ask *ask,
                         struct px_files_answer *ret_answer, struct px_err *e);
/* The same with the request as a JSON object: {"path":..., "edits":[{"old_text":..., "new_text":...}], ...}. Not in the
 * launcher. */
PX_API int px_files_call_json(const struct px_files *files, const char *op, const char *json, size_t len,
                              struct px_files_answer *ret_answer, struct px_err *e);
PX_API void px_files_answer_done(struct px_files_answer *answer);

struct px_files_op_info {
    const char *name;           /* "can_read" */
    bool writes;                /* changes something */
    bool path, to, content, edits, text;        /* its required parameters */
};
PX_API int px_files_op_at(size_t index, struct px_files_op_info *ret_op);       /* -1 past the end */

/* "PathNotInSandboxError" and so on; NULL for other codes. */
PX_API const char *px_files_class(int code);
/* The message for a model; free() it. */
PX_API int px_files_message(const struct px_err *error, char **ret_text, struct px_err *e);
/* {"ok":false,"status":...,"message":...,"error":{...},"details":{...}} on one line; free() it. */
PX_API int px_files_error_json(const struct px_files *files, const struct px_err *error, char **ret_json,
                               struct px_err *e);

#ifdef __cplusplus
}
#endif
