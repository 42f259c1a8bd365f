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
 * A path is `name/relative`, or `name:relative` where the name has no slash; a `./` in front means nothing, and a name
 * alone is the root's directory. The kernel keeps every access below that directory, which is held open: "..", absolute
 * paths and links that lead out are refused, also when they appear between the question and the access. Text is UTF-8.
 * Errors say what is allowed instead and never show a path of the host; px_files_message has the exact words for a model.
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
    PX_FILES_CHARS = 200000,            /* that one read gives, unless told otherwise */
    PX_FILES_RESULTS = 10000,           /* of a list or a search, unless told otherwise */
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
    bool use_fd;                /* take this directory instead; it stays the caller's */
    int fd;
    bool writable;
    bool create;                /* make the directory if it is not there */
    bool git_writable;          /* git directories, which the host's git obeys, can be written as well */
    const char *const *suffixes;        /* NULL-terminated: ".md", ".pdf"; in any case of letters. NULL: any file */
    uint64_t max_file_bytes;    /* 0: PX_FILES_BYTES_MAX */
};

/* Directories must not overlap: one inside another would have two sets of rules. */
PX_API int px_files_new(const struct px_files_root *roots, size_t count, struct px_files **ret_files, struct px_err *e);
/* The same from the command line's words: NAME=DIR[:ro|rw][:create][:suffixes=.md,.pdf][:max=10m]; git_writable
 * holds for all of them. */
PX_API int px_files_parse(const char *const *words, size_t count, bool git_writable, struct px_files **ret_files,
                          struct px_err *e);

/* A child that can do less. Nothing is allowed but what is named; a path is a directory of the parent. One to write is made if it is
 * not there, unless the child is read-only. */
struct px_files_narrow {
    const char *const *read;    /* NULL-terminated, or NULL */
    const char *const *write;   /* may also be read */
    bool inherit;               /* all of the parent's roots, as they are */
    bool read_only;             /* nothing of it may be written */
    bool protect_git;           /* nor what lies in a git directory */
};
PX_API int px_files_derive(const struct px_files *parent, const struct px_files_narrow *narrow,
                           struct px_files **ret_files, struct px_err *e);
PX_API void px_files_free(struct px_files *files);              /* NULL is fine */

/* One root, borrowed: its directory by its descriptor, not by its name on the host; -1 past the end. */
PX_API int px_files_root_at(const struct px_files *files, size_t index, struct px_files_root *ret_root);
/* Restricts the calling thread, for good, to these roots: a second layer below this one, for a program that does
 * nothing else. 1 if it is in force, 0 if the kernel has no Landlock. */
PX_API int px_files_confine(const struct px_files *files, struct px_err *e);
/* The same, and more of it: no system call but what working on these files and on descriptors that are open takes, no privilege
 * but over files. For a server that reads what others wrote; before it has threads. 1, or 0 without Landlock. */
PX_API int px_files_seal(const struct px_files *files, struct px_err *e);
/* Binds each root into a box, at TARGET/NAME (NULL: where it lies on the host) and with its mode. What a policy has of them holds while `files` does. */
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
/* Where a path leads once its links are followed, as `name/relative`; free() it. Nothing need be there. */
PX_API int px_files_resolve(const struct px_files *files, const char *path, char **ret_path,
                            struct px_files_stat *ret_stat, struct px_err *e);
PX_API int px_files_stat(const struct px_files *files, const char *path, struct px_files_stat *ret_stat,
                         struct px_err *e);

/* ---- reading ---- */

/* The file itself, checked as px_files_read does (but for its text) and opened for reading; close() it. */
PX_API int px_files_open(const struct px_files *files, const char *path, int *ret_fd, struct px_err *e);

struct px_files_text {
    char *data;                 /* NUL-terminated, may hold NULs of its own */
    size_t len;
    uint64_t offset, chars;     /* characters: where it begins, how many there are here */
    uint64_t total_chars;       /* in the file */
    bool truncated;             /* there is more behind it */
};
PX_API int px_files_read(const struct px_files *files, const char *path, uint64_t offset, uint64_t max_chars,
                         struct px_files_text *ret_text, struct px_err *e);
PX_API void px_files_text_done(struct px_files_text *text);

struct px_files_entry {
    char *path;                 /* name/relative; the bytes of the file system */
    enum px_files_kind kind;
    uint64_t size;
    int64_t modified;
    uint64_t version;           /* another number once the file was changed or replaced */
    uint64_t line;              /* of a match, from 1; 0: none was asked for */
    char *text;                 /* that line, cut to a readable length; NULL */
};

struct px_files_entries {
    struct px_files_entry *items;
    size_t count;
    const char *truncated;      /* why this is not all; NULL: it is */
    uint64_t files_searched, files_skipped;     /* of a search; skipped: not text, too large, or not allowed */
};

struct px_files_query {
    const char *path;           /* a directory; NULL or ".": all roots */
    const char *pattern;        /* NULL: every file, "**" and "/" and "*". Also ? and [a-z] */
    const char *const *exclude; /* NULL-terminated patterns; what matches is left out with everything below it */
    const char *text;           /* px_files_search: lines that hold it */
    bool ignore_case;           /* of the letters a-z */
    bool directories;           /* px_files_list: list them as well; a pattern with a slash at its end lists them alone */
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
    char *path;                 /* what was written, as name/relative */
    uint64_t chars;             /* in it */
    uint64_t old_chars, new_chars;      /* px_files_edit: of what was replaced, and of what took its place */
    char *diff;                 /* px_files_edit */
};
PX_API void px_files_done_free(struct px_files_done *done);     /* what it points to */

/* Makes the directories above it. A file that is there keeps its mode and owner, but for set-id bits. */
PX_API int px_files_write(const struct px_files *files, const char *path, const char *data, size_t len,
                          struct px_files_done *ret_done, struct px_err *e);

struct px_files_edit {
    const char *old_text, *new_text;
    size_t old_len, new_len;
};
/* One after another; each old text must occur exactly once then. All or none. With dry_run only the diff is made. */
PX_API int px_files_edit(const struct px_files *files, const char *path, const struct px_files_edit *edits,
                         size_t count, bool dry_run, struct px_files_done *ret_done, struct px_err *e);

/* How a file differs from another one, or (`to` NULL) from a text that might be written to it; "" if it does not. A unified diff;
 * free() it. Nothing is changed. */
PX_API int px_files_diff(const struct px_files *files, const char *path, const char *to, const char *text, size_t len,
                         char **ret_diff, struct px_err *e);

/* The target must not exist; directories above it are made. A directory can be moved within its root. */
PX_API int px_files_move(const struct px_files *files, const char *from, const char *to, struct px_err *e);
PX_API int px_files_copy(const struct px_files *files, const char *from, const char *to, struct px_err *e);
PX_API int px_files_delete(const struct px_files *files, const char *path, struct px_err *e); /* a file or a link */
PX_API int px_files_make_directory(const struct px_files *files, const char *path,
                                   struct px_err *e);           /* fine if it is there */

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
    bool no;                    /* can_read, can_write: the answer is no */
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
    bool path, to, content, edits, text;        /* what it cannot do without */
};
PX_API int px_files_op_at(size_t index, struct px_files_op_info *ret_op);       /* -1 past the end */

/* "PathNotInSandboxError" and so on; NULL if the code is none of files. */
PX_API const char *px_files_class(int code);
/* What a model is told, in the words of the class; free() it. */
PX_API int px_files_message(const struct px_err *error, char **ret_text, struct px_err *e);
/* {"ok":false,"status":...,"message":...,"error":{...},"details":{...}} on one line; free() it. */
PX_API int px_files_error_json(const struct px_files *files, const struct px_err *error, char **ret_json,
                               struct px_err *e);

#ifdef __cplusplus
}
#endif
