/* lock/lock.h - the content of a lock: exact packages, with the files that may be used for each.
 *
 * Why:     px.lock, uv.lock, pylock.toml, poetry.lock and a pinned requirements.txt describe the same in five
 *          formats; callers see one struct.
 * Owns:    its texts.
 * Mustn't: choose packages and files (px_lock_select does); or accept a hash that it cannot parse. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/hash.h"

struct px_err;
struct px_buf;
struct px_marker_env;
struct px_tags;

enum px_pins_format { PX_PINS_PX, PX_PINS_UV, PX_PINS_PYLOCK, PX_PINS_POETRY, PX_PINS_REQUIREMENTS, PX_PINS_FORMATS };
extern const char *const px_lock_files[PX_PINS_FORMATS];        /* "px.lock", "uv.lock", ... in order of preference */

enum { PX_PINS_MAX = 20000, PX_PIN_FILES_MAX = 2000, PX_PIN_BUILDS_MAX = 2000,
       PX_PIN_SYSTEM_MAX = 4096 };

struct px_pin_file {
    const char *name;           /* "psycopg2-2.9.9-cp311-cp311-linux_x86_64.whl" */
    const char *url;            /* NULL: not given; a path for files next to the lock */
    struct px_oid sha256;       /* "" if the lock has none, or another kind of hash */
    uint64_t size;              /* 0: not given */
};

/* An edge of the dependency graph in uv.lock. */
struct px_pin_need {
    const char *name, *version, *marker;        /* version NULL: the only one there is */
    const char *extra;          /* NULL, or the extra of the needed package; one edge an extra */
    const char *of_extra;       /* NULL, or the extra of this package that adds the edge */
    const char *of_group;       /* the same for a group */
};

struct px_lock_pin {
    const char *name, *version; /* canonical name */
    const char *marker;         /* "" if none */
    const char *requires_python;
    const char *specifier;      /* of px.lock, as written; else NULL */
    const char **extras;        /* of px.lock */
    size_t extras_count;
    const char **requires;
    size_t requires_count;
    bool direct, own;           /* own: the project itself, nothing to install */
    const char *source;         /* NULL: an index; else git, a directory, an url, as written */
    const char *build_options_hash;
    struct px_pin_file *files;
    size_t file_count;
    struct px_pin_need *needs;
    size_t need_count;
};

/* A package of the system: of the base, or of the capabilities. */
struct px_pin_system {
    const char *name, *version, *arch;
    struct px_oid sha256;
    uint64_t size;
};

/* [system] of px.lock: the base, and the exact packages of the base and of the capabilities. */
struct px_pins_system {
    const char *base, *arch;    /* NULL: nothing is pinned */
    const char *from;           /* "debian bookworm": the archive, not a machine's mirror */
    const char **capabilities;  /* those that `packages` are for; sorted */
    size_t capability_count;
    struct px_pin_system *base_packages, *packages;
    size_t base_count, count;
};

struct px_lock {
    enum px_pins_format format;
    struct px_lock_pin *items;
    size_t count;
    int64_t version;            /* of the format */
    const char *mode, *fingerprint, *lock_id, *project, *python;        /* of px.lock; NULL elsewhere */
    struct px_build_pins *builds;               /* of px.lock: what source archives are built with */
    size_t build_count;
    struct px_pins_system system;               /* of px.lock; not part of the lock_id: no environment depends on it */
    bool graph;                 /* pins are selected by the graph in `needs` (uv), not by markers alone */
    struct px_oid bytes;        /* sha256 of the file */
    void *arena;                /* the memory of the strings */
};

/* The requirements of a source archive's build, and the packages found for them. */
struct px_build_pins {
    const char **requires;      /* sorted */
    size_t requires_count;
    struct px_lock pins;
};

/* PX121 with file and line. */
int px_lock_parse(enum px_pins_format format, const char *text, size_t length, const char *shown, struct px_lock *ret_pins,
                  struct px_err *e);
void px_lock_done(struct px_lock *pins);

/* The id of the lock: its own lock_id, else the hash of its bytes. */
const char *px_lock_id(const struct px_lock *pins);
/* The lock_id computed from its content (px.lock). */
int px_lock_compute_id(const struct px_lock *pins, struct px_oid *ret_id);

/* A package and the file that this environment uses: the best wheel, else the source archive. */
struct px_chosen {
    const struct px_lock_pin *pin;
    const struct px_pin_file *file;             /* NULL: nothing fits */
    bool wheel;
};
/* Sorted by name. groups NULL: all. Of the project's extras, those in env. The caller frees the list. */
int px_lock_select(const struct px_lock *pins, const struct px_marker_env *env, const struct px_tags *tags, const char *const *groups,
                   struct px_chosen **ret_list, size_t *ret_count, struct px_err *e);

/* Writes px.lock version 1 without [system]; the pins must be complete. */
int px_lock_write(const struct px_lock *pins, struct px_buf *out);
/* Writes the table [system], for the end of the file; nothing if nothing is pinned. */
void px_lock_put_system(const struct px_pins_system *system, struct px_buf *out);
/* Replaces the table [system] in the text of a px.lock. -EEXIST: the text has one that px did not write. */
int px_lock_replace_system(const char *text, size_t length, const struct px_pins_system *system, struct px_buf *out);

/* ---- builds (pins_build.c) ---- */

/* The packages for exactly these sorted requirements; NULL if the lock has no such list. */
const struct px_lock *px_lock_build_find(const struct px_lock *pins, const char *const *requires, size_t count);
int px_lock_build_add(struct px_lock *pins, const char *const *requires, size_t count, const struct px_lock *found,
                      struct px_err *e);
void px_lock_builds_sort(struct px_lock *pins);
/* The hash of all of them. */
int px_lock_builds_id(const struct px_lock *pins, struct px_oid *ret_id);
/* Copies pins of px.lock. */
int px_lock_copy(const struct px_lock *from, struct px_lock *ret_pins, struct px_err *e);
