/* px/sandbox.h - environments: bases, capability layers, images, and the store that contains them.
 *
 *     struct px_sandbox *s = NULL;
 *     if (px_sandbox_open(NULL, &s, &e) < 0 || px_sandbox_base_build(s, "debian-12", NULL, &json, &e) < 0)
 *         return complain(&e);
 *
 * Rules as in px/px.h. Answers are JSON objects on one line, yours to free(). Long operations report progress, and
 * can be ended by a signal at any moment: the next call finds everything unchanged or complete.
 *
 * Owns:    answers are yours to free(). A px_root_lease keeps a root in the store until px_root_lease_free.
 * Threads: a px_sandbox belongs to one thread at a time; several, also of other processes, may use the same store. */
#pragma once

#include <px/px.h>

#ifdef __cplusplus
extern "C" {
#endif

struct px_sandbox;

/* home NULL: PX_HOME, else HOME/.px. */
PX_API int px_sandbox_open(const char *home, struct px_sandbox **ret_sandbox, struct px_err *e);
PX_API void px_sandbox_close(struct px_sandbox *sandbox);
/* tell(user, "unpacking", 12 << 20, 107 << 20); total 0: not known. */
PX_API void px_sandbox_progress(struct px_sandbox *sandbox, void (*tell)(void *user, const char *what, uint64_t done, uint64_t total),
                                void *user);

/* ---- bases ---- */

struct px_base_build {
    bool force;                 /* build again from the packages in the base's lock, and compare */
    const char *lock;           /* the file of a base lock, of this machine or another; NULL: today's packages */
};
PX_API int px_sandbox_base_build(struct px_sandbox *s, const char *name, const struct px_base_build *how, char **ret_json, struct px_err *e);
/* source: an archive, a directory, an OCI layout or archive, a docker archive, or docker://REFERENCE. */
PX_API int px_sandbox_base_import(struct px_sandbox *s, const char *name, const char *source, char **ret_json, struct px_err *e);
PX_API int px_sandbox_base_list(struct px_sandbox *s, char **ret_json, struct px_err *e);
/* The lock that a built base keeps: every package with its version, architecture, sha256 and size. */
PX_API int px_sandbox_base_lock(struct px_sandbox *s, const char *name, char **ret_json, struct px_err *e);
PX_API int px_sandbox_base_remove(struct px_sandbox *s, const char *name, char **ret_json, struct px_err *e);

/* ---- capabilities and images ---- */

/* Capabilities px knows, and which bases have packages for them. */
PX_API int px_sandbox_capabilities(struct px_sandbox *s, char **ret_json, struct px_err *e);

struct px_image_build {
    const char *base;           /* NULL: debian-12 */
    const char *const *capabilities;            /* NULL-terminated; NULL: none */
    bool force;
    const char *out;            /* write the image there; NULL: keep it in the store */
    const char *format;         /* "oci", "oci-archive", "docker-archive"; NULL: by the name of `out` (.tar:
                                 * oci-archive) */
    const char *compression;    /* "gzip", "zstd", "none"; NULL: gzip */
    const char *tag;
    bool push;                  /* push to the tag */
};
PX_API int px_sandbox_build(struct px_sandbox *s, const struct px_image_build *how, char **ret_json, struct px_err *e);

/* Rebuilds the bases of px and the tagged images from the archive's current packages; names move to the new ones.
 * Projects keep theirs. {"updated":[{"kind","name","from","to","changed"}],"kept":[TAG]}: kept are images of projects
 * and on imported bases. */
PX_API int px_sandbox_update(struct px_sandbox *s, char **ret_json, struct px_err *e);

/* The directory of --base or --rootfs. The lease keeps it while a box uses it. */
struct px_root_lease;
PX_API int px_sandbox_root(struct px_sandbox *s, const char *base, const char *rootfs, char **ret_dir, struct px_root_lease **ret_lease,
                           struct px_err *e);
PX_API void px_root_lease_free(struct px_root_lease *lease);

/* ---- the store ---- */

struct px_gc_request {
    bool dry_run;
    uint64_t min_age_sec, max_bytes;            /* 0: no bound */
    const char *min_age, *max_size;             /* the same as strings ("7d", "10g"); NULL: the numbers apply */
};
PX_API int px_sandbox_gc(struct px_sandbox *s, const struct px_gc_request *how, char **ret_json, struct px_err *e);
PX_API int px_sandbox_clean(struct px_sandbox *s, bool dry_run, char **ret_json, struct px_err *e);
PX_API int px_sandbox_list(struct px_sandbox *s, char **ret_json, struct px_err *e);
/* Names, ids (their first digits) or digests of images, NULL-terminated: removes a name, and with its last name the
 * base, image or environment; an id with all its names. All of them, or an error and none: PX002 for a missing or
 * ambiguous one, PX813 for one in use. px_sandbox_gc removes unneeded files. */
PX_API int px_sandbox_delete(struct px_sandbox *s, const char *const *words, char **ret_json, struct px_err *e);
/* The content of the store and its size; with `verify`, every byte is hashed again. */
PX_API int px_sandbox_status(struct px_sandbox *s, bool verify, char **ret_json, struct px_err *e);

#ifdef __cplusplus
}
#endif
