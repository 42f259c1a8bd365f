/* files/files.h - the inside of a px_files, and what its parts share.
 *
 * Why:     a root is an open directory and its rules; a place is a path whose root is known and whose links are gone.
 *          Every operation turns a text into a place once, and works on descriptors from then on.
 * Owns:    the roots' descriptors.
 * Mustn't: join a path with a name of the host, or open anything but through base/path.h below a root's descriptor. */
#pragma once

#include <limits.h>
#include <px/files.h>
#include <sys/stat.h>

#include "base/err.h"

struct px_root {
    char *name;
    size_t name_len;
    int fd;                     /* O_PATH */
    bool writable, protect_git;
    char **suffixes;            /* lower case; NULL: any */
    uint64_t max_bytes;
};

struct px_files {
    struct px_root *roots;
    size_t count;
};

/* ---- roots.c ---- */

/* The root whose name is the longest that the text is or begins with (up to a slash); NULL. */
const struct px_root *px_roots_match(const struct px_files *f, const char *text, size_t len);
bool px_roots_suffix_ok(const struct px_root *root, const char *path);
/* Takes the root's parts; -ENOMEM. */
int px_roots_add(struct px_files *f, const char *name, int fd, const struct px_root *like, struct px_err *e);

/* ---- resolve.c ---- */

struct px_place {
    const struct px_root *root;
    bool asked_git;             /* the text has a part .git, wherever its links lead */
    char rel[PATH_MAX];         /* below the root, without "." or ".."; "" is the root itself */
};

/* Text to place, by the text alone; 0, -EXDEV (outside) or -ENAMETOOLONG. */
int px_files_resolve_split(const struct px_files *f, const char *path, struct px_place *ret);
/* Whether a part is "..": the text goes up from where a link lies, the kernel from where it leads. */
bool px_files_resolve_goes_up(const char *path);
/* The same text without "." and "..", with slashes alone between the parts; -EXDEV or -ENAMETOOLONG. */
int px_files_resolve_normal(const struct px_files *f, const char *path, char out[PATH_MAX]);
enum px_resolve_flags {
    PX_RESOLVE_KEEP_LAST = 1 << 0,      /* a link in the last part is meant itself */
};
/* Also follows the links, all of which must stay inside. A last part (or more) that is missing stays as it is. */
int px_files_resolve_place(const struct px_files *f, const char *path, unsigned flags, struct px_place *ret);
/* The links of a place whose text is known; the same errors. */
int px_files_resolve_links(struct px_place *place, bool keep_last);
/* Opens the file of a path for reading, after every check of a read; fills e. */
int px_files_resolve_open(const struct px_files *f, const char *path, struct px_place *ret, struct stat *ret_st,
                    struct px_err *e);
/* "name/relative"; the caller's to free. NULL: no memory. */
char *px_files_resolve_name(const struct px_place *place);
/* rel, or "." for the root itself. */
const char *px_files_resolve_rel(const struct px_place *place);

/* ---- words.c: each fills e and returns -1 ---- */

/* The path may have a NUL in it. */
int px_files_error_outside(const struct px_files *f, const char *path, size_t len, struct px_err *e);
int px_files_error_read_only(const struct px_files *f, const char *path, struct px_err *e);
/* Read-only, or in a .git that is protected. */
int px_files_error_not_writable(const struct px_files *f, const struct px_place *place, const char *path, struct px_err *e);
/* Something shall be written below what is no directory. */
int px_files_error_below_file(const struct px_files *f, const struct px_root *root, const char *path, struct px_err *e);
int px_files_error_suffix(const struct px_root *root, const char *path, struct px_err *e);
int px_files_error_too_large(const char *verb, const char *path, uint64_t size, uint64_t limit, struct px_err *e);
int px_files_error_not_text(const char *verb, const char *path, struct px_err *e);
int px_files_error_memory(struct px_err *e);
/* By the errno: outside, not found, not a file, exists, or the system's own words: "Cannot read 'a/b': ...". */
int px_files_error_sys(const struct px_files *f, const char *verb, const char *path, int err, struct px_err *e);
/* A text of the caller for a message: quoted, and cut so that the words around it stay. */
enum { PX_WORDS_SHORT = 304 };
const char *px_files_error_short(const char *text, size_t len, size_t max, char out[PX_WORDS_SHORT]);

/* ---- place.c: a name in a directory that is held open ---- */

struct px_files_target {
    int dir;
    char name[NAME_MAX + 1];
    bool exists;
    struct stat st;             /* of the name itself */
};
void px_files_target_done(struct px_files_target *spot);
#define px_auto_spot __attribute__((cleanup(px_files_target_done)))
/* The directory of a place, made if need be; 0 or -errno. */
int px_files_target_open(const struct px_place *place, bool make, struct px_files_target *ret);
/* A directory, unless it is there; 0 or -errno. */
int px_files_target_make_dir(int dir, const char *name);
/* Whether the rules let a place be written, whatever lies there. */
bool px_files_target_writable(const struct px_place *place);
/* All checks of a place that shall be written; fills e. */
int px_files_target_allow(const struct px_files *f, const char *path, unsigned flags, struct px_place *ret, struct px_err *e);

/* ---- git.c ---- */

struct px_git_target {
    char rel[PATH_MAX];         /* below the root */
    char common[PATH_MAX];      /* what several work trees share, or the same */
    bool linked;                /* the .git, or something on the way, is a link */
};
/* Whether a part of it is .git, in any case of letters. */
bool px_git_named(const char *rel);
bool px_git_is_directory(int dir);
/* Where the .git of a directory leads, if it is a link or a file; -errno, also if that is outside the root. */
int px_git_leads_to(const struct px_root *root, const char *dir, struct px_git_target *ret);
/* Whether the first is, or lies below, the second. */
bool px_git_within(const char *rel, const char *dir);
bool px_git_protects(const struct px_place *place);

struct px_files_temp {
    int fd;
    char name[40];
};
/* A new file beside the spot's name, and its end: in the name's place, or gone. */
int px_files_temp_open(const struct px_files_target *spot, mode_t mode, struct px_files_temp *ret);
int px_files_temp_commit(struct px_files_temp *temp, const struct px_files_target *spot, bool replace);
void px_files_temp_drop(struct px_files_temp *temp, const struct px_files_target *spot);

/* ---- read.c ---- */

struct px_window {
    size_t begin, end;          /* bytes */
    uint64_t offset, chars, total;
};
/* The bytes of the characters from offset, at most max of them; -EILSEQ if the whole is not UTF-8. */
int px_files_window_find(const char *data, size_t len, uint64_t offset, uint64_t max, struct px_window *ret);
/* All of an open file, whose size by fstat is given; -EFBIG if it has more than max bytes. */
int px_read_whole(int fd, uint64_t size, uint64_t max, char **ret_data, size_t *ret_len);

/* ---- write.c ---- */

/* New content for a place that was checked; `was` is what it must still be, or NULL. */
int px_files_write_place(const struct px_files *f, const char *path, const struct px_place *place, const struct stat *was,
                   const char *data, size_t len, struct px_err *e);
