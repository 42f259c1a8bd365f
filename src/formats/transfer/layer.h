/* transfer/layer.h - trees from archives and archives from trees; the work is done by px-layer, a confined helper.
 *
 * Why:     the hash of a layer's bytes is its id, so the same tree must always give the same tar and the same
 *          compressed bytes. A hostile archive can only damage its own directory.
 * Owns:    nothing: descriptors are the caller's.
 * Mustn't: parse foreign bytes in this process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "helper/helper.h"
#include "store/store.h"

enum px_compression { PX_COMPRESS_GZIP, PX_COMPRESS_ZSTD, PX_COMPRESS_NONE, PX_COMPRESSIONS };
const char *px_compression_word(enum px_compression c);         /* "gzip", "zstd", "none" */
int px_compression_parse(const char *word, enum px_compression *ret_c);
const char *px_compression_media(enum px_compression c);        /* application/vnd.oci.image.layer.v1.tar[+gzip|+zstd] */

/* Called sometimes during the work; total 0: not known. May be NULL. */
typedef void px_progress(void *user, const char *what, uint64_t done, uint64_t total);
struct px_progress_to {
    px_progress *tell;
    void *user;
};

/* Bounds of what an archive may become. px_unpack_limits_default has the limits of SECURITY J10 and J11. */
struct px_unpack_limits {
    uint64_t bytes;             /* of all files, sparse ones by their logical size */
    uint64_t entries;
    uint32_t ratio;             /* unpacked : packed, after the first 64 MiB */
};
extern const struct px_unpack_limits px_unpack_limits_default;

struct px_unpacked {
    struct px_oid packed;       /* sha256 of the archive's bytes as read */
    struct px_oid diff_id;      /* and of the tar inside */
    uint64_t packed_bytes, bytes, entries;
    uint64_t dropped;           /* devices, fifos, sockets: never made */
};

/* Unpacks .tar, .tar.gz, .tar.zst, .tar.bz2 or .tar.xz (detected by its first bytes) from `archive`, read from its
 * start, into the directory. Existing files stay unless the archive replaces them or, with `whiteouts`, removes them by
 * .wh. entries. All files are in normal form (store/store.h). size: a hard bound on the archive's own bytes. The error
 * names the entry. On error the caller removes the directory. */
int px_layer_unpack(int archive, uint64_t size, int dirfd, bool whiteouts, const struct px_unpack_limits *limits,
                    struct px_progress_to progress, struct px_unpacked *ret_done, struct px_err *e);

/* The same for a zip archive (a wheel) and an empty directory. Only what every reader of zip files reads alike is
 * accepted: no duplicates, no bytes between or after the entries, no links; only stored and deflated. Files are 0755 if
 * the archive marks them as executable, else 0644. diff_id is that of the archive itself. */
int px_layer_unzip(int archive, uint64_t size, int dirfd, const struct px_unpack_limits *limits, struct px_progress_to progress,
                   struct px_unpacked *ret_done, struct px_err *e);

/* A tar as a stream of bytes, whose other end is px-layer. */
struct px_layer_stream {
    struct px_helper helper;
    int fd;
    int cancel;                 /* borrowed; readable: give up. -EBADF: none */
};
/* What is written to it becomes files and directories in `dirfd`, a new directory: `top` and what is below it. Links, devices and the
 * like are counted in dropped. */
int px_layer_receive(int dirfd, const char *top, const struct px_unpack_limits *limits, int cancel,
                     struct px_layer_stream *ret_stream, struct px_err *e);
/* -1: px-layer has refused what came, as the error says, or `cancel` is readable. */
int px_layer_write(struct px_layer_stream *s, const void *data, size_t size, struct px_err *e);
/* A file or a directory, which gets `name`. */
int px_layer_send(int fd, const char *name, int cancel, struct px_layer_stream *ret_stream, struct px_err *e);
/* The next bytes; 0 at the end, -1. */
long px_layer_read(struct px_layer_stream *s, void *out, size_t size, struct px_err *e);
/* px-layer has answered (helper.socket is readable) before the end of the stream: -1 with what it says. */
int px_layer_refused(struct px_layer_stream *s, struct px_err *e);
/* Nothing more comes: waits for the answer. */
int px_layer_finish(struct px_layer_stream *s, struct px_unpacked *ret_done, struct px_err *e);
void px_layer_drop(struct px_layer_stream *s);

/* What to pack: a directory, under a prefix, or the upper directory of an overlay, whose whiteouts become .wh. files. */
struct px_pack {
    int dirfd;
    const char *prefix;         /* "app/", "px/env/": added to every name, its directories are made; NULL: none */
    bool upper;
    enum px_compression compression;
    const char *const *skip;    /* NULL-terminated: exact paths that are left out, with what is below them; may be NULL */
    /* pack these files and links, and the directories they are in, as in a fresh clone: directories 0755, files 0755
     * or 0644, every file for itself. A missing file is an error. Not with upper or skip. */
    bool listed;
    int list;                   /* their paths, sorted by bytes, a NUL behind each */
};
struct px_layer {
    struct px_oid digest;       /* of the blob, as compressed */
    struct px_oid diff_id;      /* of the tar */
    uint64_t size, tar_size, entries;
    enum px_compression compression;
};
/* Packs in one pass into a blob of the store. */
int px_layer_pack(struct px_store *store, const struct px_pack *pack, struct px_progress_to progress, struct px_layer *ret_layer,
                  struct px_err *e);
/* The digest of the same tar, which is neither compressed nor stored. */
int px_layer_diff_id(const struct px_pack *pack, struct px_oid *ret_diff_id, struct px_err *e);
