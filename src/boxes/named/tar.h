/* named/tar.h - as much of tar as copying into a box and out of it takes.
 *
 * Why:     tar is in nearly every box, and one stream carries a tree through a pipe.
 * Owns:    a reader nothing but its name; a writer the directories that it is in.
 * Mustn't: trust an archive: it comes from the box. Names that reach a sink are relative, clean and bounded; links but those
 *          between files of the archive, devices and the like are counted and left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct px_err;

enum { PX_TAR_BLOCK = 512, PX_TAR_NAME_MAX = 4096, PX_TAR_DEPTH_MAX = 128, PX_TAR_ENTRIES_MAX = 1 << 20 };

/* ---- reading, as the bytes come ---- */

struct px_tar_entry {
    enum { PX_TAR_FILE, PX_TAR_DIRECTORY, PX_TAR_LINK } type;
    const char *name;           /* "a/b", never "", "..", "/a" */
    const char *target;         /* LINK: the name of an earlier file */
    uint32_t mode;              /* 0777 at most */
    uint64_t size;              /* FILE */
    int64_t mtime;
};

/* Each returns 0, or -1 with the error filled, which ends the reading. */
struct px_tar_sink {
    int (*begin)(void *user, const struct px_tar_entry *entry, struct px_err *e);
    int (*data)(void *user, const char *data, size_t size, struct px_err *e);   /* of the file that was begun last */
    int (*end)(void *user, struct px_err *e);
    void *user;
};

struct px_tar_reader {
    struct px_tar_sink sink;
    char block[PX_TAR_BLOCK];
    size_t have;                /* of the block */
    enum { PX_TAR_HEADER, PX_TAR_DATA, PX_TAR_SKIP, PX_TAR_LONG_NAME, PX_TAR_LONG_LINK, PX_TAR_PAX, PX_TAR_OVER } state;
    uint64_t left, pad;         /* of what the present header announced; and up to the next block */
    struct px_buf extra;        /* a long name, or pax records */
    char name[PX_TAR_NAME_MAX], link[PX_TAR_NAME_MAX];  /* given ahead of the header; "" if not */
    bool has_size;
    uint64_t size;
    uint64_t entries, skipped;
};

void px_tar_reader_init(struct px_tar_reader *r, const struct px_tar_sink *sink);
void px_tar_reader_done(struct px_tar_reader *r);
int px_tar_read(struct px_tar_reader *r, const char *data, size_t size, struct px_err *e);
/* No more will come: -1 if something is missing. */
int px_tar_read_end(struct px_tar_reader *r, struct px_err *e);

/* ---- writing, as there is room ---- */

struct px_tar_writer;
/* fd is the file or directory that gets that name in the archive. The writer takes it, also when it fails. */
int px_tar_writer_new(int fd, const char *name, struct px_tar_writer **ret_writer, struct px_err *e);
void px_tar_writer_free(struct px_tar_writer *w);
/* The next bytes, size at most; 0 at the end, -1. */
long px_tar_write(struct px_tar_writer *w, char *out, size_t size, struct px_err *e);
