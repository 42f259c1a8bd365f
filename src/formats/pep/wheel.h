/* pep/wheel.h - the rules of wheels: from an unpacked archive to the tree of a package that any environment can
 * use.
 *
 *     site-packages/...       what Python imports, with a RECORD that names every file of the tree
 *     bin/...                 scripts; they run the `python` next to the path by which they are called
 *     include/..., share/...  headers and data
 *
 * Why:     installing needs no Python, runs nothing of the package, and gives the same tree everywhere (anchors:
 *          wheels natively).
 * Owns:    nothing: the directory is the caller's, and its content is undefined after an error.
 * Mustn't: follow a link, trust a name or a hash of a wheel, or write a path of this machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/hash.h"

struct px_err;
struct px_buf;

/* Changes when the same wheel would give another tree. */
#define PX_WHEEL_BUILDER "px-wheel-1"

struct px_wheel_ask {
    const char *file_name;      /* NAME-VERSION-...whl */
    const char *name, *version; /* what the lock says; name canonical */
};

/* root/site-packages holds the unpacked wheel, and nothing else is in root. Checks everything and moves the files to
 * their places. */
int px_wheel_install(int root, const struct px_wheel_ask *ask, struct px_err *e);

/* ---- the texts in a wheel (wheel_text.c); all bounded by what was read ---- */

/* The value of the n-th header of that name, without blanks around it, into out. 0, 1: there is none, -EINVAL: not
 * printable or too long. Ends at the first empty line. */
int px_wheel_header(const char *text, size_t length, const char *name, unsigned n, char *out, size_t size);

struct px_record_line {
    char *path;                 /* without quotes */
    struct px_oid sha256;       /* "": none given */
    uint64_t size;
    bool has_size;
};
struct px_record_lines {
    struct px_record_line *items;               /* sorted by path, each once */
    size_t count;
};
/* A RECORD. 0, -EINVAL (with the line's number), -ENOMEM. Hashes must be sha256. */
int px_wheel_record(const char *text, size_t length, struct px_record_lines *ret_lines, size_t *ret_line);
void px_wheel_record_done(struct px_record_lines *lines);
const struct px_record_line *px_wheel_record_find(const struct px_record_lines *lines, const char *path);
/* One line of a RECORD; the hash of an oid as RECORD writes it. */
void px_wheel_record_write(struct px_buf *out, const char *path, const struct px_oid *sha256, uint64_t size);

struct px_script {
    char name[256];             /* of the file */
    char module[512], object[512];
};
/* Called for each entry of [console_scripts] and [gui_scripts]; a non-zero return stops. 0, -EINVAL (with the line's
 * number), what was returned. */
typedef int px_script_seen(void *user, const struct px_script *script);
int px_wheel_scripts(const char *text, size_t length, px_script_seen *seen, void *user, size_t *ret_line);
void px_wheel_script_write(struct px_buf *out, const struct px_script *script);
/* Whether a script's name would replace the interpreter: "python", "python3", "python3.11". */
bool px_wheel_is_python(const char *name);
/* The first lines of a Python script, which start the python next to it. */
extern const char px_wheel_shebang[];

/* ---- files (wheel_tree.c) ---- */

enum { PX_WHEEL_FILES_MAX = 200000, PX_WHEEL_DEPTH_MAX = 64, PX_WHEEL_PATH_MAX = 2048 };
struct px_paths {
    char **items;               /* relative, sorted by bytes */
    size_t count;
};
/* Every file below dir/below; anything but files and directories is -EINVAL. -errno. */
int px_wheel_paths_list(int dir, const char *below, struct px_paths *ret_paths);
void px_wheel_paths_done(struct px_paths *paths);
/* Moves the content of from/name to to/target and merges directories; an existing file is -EEXIST. Removes
 * from/name. */
int px_wheel_paths_move(int from, const char *name, int to, const char *target);
/* Creates the missing directories of a path. -errno. */
int px_wheel_paths_make(int dir, const char *path);
/* Reads a file of at most max bytes; -errno. */
int px_wheel_paths_read(int dir, const char *path, size_t max, struct px_buf *out);
/* Creates a file. */
int px_wheel_paths_write(int dir, const char *path, const void *data, size_t size, unsigned mode);
