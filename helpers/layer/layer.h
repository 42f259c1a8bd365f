/* helpers/layer/layer.h - the parts of px-layer: bytes of an archive, a tar in them, a tree on disk, and the way back.
 *
 * Why:     each part can be driven alone, by a test or a fuzzer; main.c puts them behind the confinement.
 * Owns:    what its structs say.
 * Mustn't: trust a length, a name or an order that an archive gives. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <px/px.h>

#include "store/hash.h"
#include "transfer/layer.h"

enum {
    BLOCK = 512,
    SLOT = 256 << 10,           /* of the tar, handed from the thread that decompresses to the one that writes */
    NAME_SIZE = 4096,           /* with its NUL */
    PART_MAX = 255,
    DEPTH_MAX = 128,
    PAX_MAX = 1 << 20,
    XATTR_MAX = 64 << 10,
    WINDOW_LOG_MAX = 27,        /* zstd: 128 MiB */
    XZ_MEMORY_MAX = 128 << 20,
    RATIO_FROM = 64 << 20,
};

/* ---- source.c: an archive's bytes, decompressed ---- */

struct source;
/* size: all that may be read of fd. ratio 0: no bound. */
int source_open(int fd, uint64_t size, uint32_t ratio, struct source **ret_source, struct px_err *e);
void source_free(struct source *s);
/* Fills out but at the end of the tar; -1. The end is one only if the archive ended there too. */
long source_read(struct source *s, uint8_t *out, size_t size, struct px_err *e);
uint64_t source_consumed(const struct source *s);
int source_end(struct source *s, struct px_oid *ret_packed);    /* what was read hashes to; 0 or -errno */

/* codec.c: how each format is undone. */
enum step { STEP_MORE, STEP_END, STEP_BAD };
struct bytes {
    const uint8_t *in;
    size_t in_left;
    uint8_t *out;
    size_t out_left;
    bool last;                  /* nothing comes after `in` */
};
struct codec {
    const char *name;
    bool (*is)(const uint8_t *head, size_t length);     /* whether a member begins so */
    void *(*open)(void);                                /* for one member; NULL: no memory */
    enum step (*step)(void *state, struct bytes *b);
    void (*close)(void *state);
};
extern const struct codec codecs[];                     /* ends with a NULL name; the last one is plain tar */

/* ---- pipe.c: reading ahead on a second thread ---- */

struct pipeline;
/* The source is read by the pipeline's thread until pipeline_free. */
int pipeline_start(struct source *s, struct pipeline **ret_pipeline, struct px_err *e);
/* The next SLOT bytes, fewer only at the end, 0 after it; -1. They stay until the next call. */
long pipeline_next(void *pipeline, const uint8_t **ret_data, struct px_err *e);
void pipeline_free(struct pipeline *p);

/* ---- name.c ---- */

/* The one place where a name of an archive becomes one of ours: parts without "." parts, "" for the root itself.
 * Absolute names, "..", empty parts, a NUL, parts over PART_MAX, more than DEPTH_MAX of them: -1 with the reason. A
 * slash at the end is for directories. */
int name_clean(const char *raw, size_t length, bool directory, char out[NAME_SIZE], const char **ret_reason);
/* For a message: no byte that a terminal obeys, not too long. */
struct shown {
    char text[160];
};
struct shown show(const char *name, size_t length);

/* ---- untar.c and pax.c: a strict reader ---- */

enum kind { KIND_FILE, KIND_DIRECTORY, KIND_SYMLINK, KIND_HARDLINK, KIND_DROPPED };
struct entry {
    enum kind kind;
    char name[NAME_SIZE], target[NAME_SIZE];            /* cleaned; a symlink's target as it is */
    uint32_t mode;              /* 07777 at most */
    uint64_t size;
    int64_t mtime;              /* seconds; 0: none that could be read */
};
struct pax {
    char path[NAME_SIZE], linkpath[NAME_SIZE];
    size_t path_length, linkpath_length;
    bool has_path, has_linkpath, has_size;
    uint64_t size;
};
/* Records of one extended header; `global` ones may not say what an entry is called or how long it is. The reason, or
 * NULL. */
const char *pax_parse(const char *data, size_t length, bool global, struct pax *out);

struct tar {
    long (*next)(void *user, const uint8_t **ret_data, struct px_err *e);       /* whole blocks; 0 at the end */
    void *user;
    struct px_hash hash;        /* of everything read */
    const uint8_t *at;
    size_t left;                /* in the present slot */
    uint64_t bytes;
    uint64_t data_left, pad_left;       /* of the present entry */
    struct pax pax;
    bool long_name, long_link, extended;        /* what came ahead of the present header */
    char *text;                 /* PAX_MAX bytes, when needed */
};
void tar_init(struct tar *t, long (*next)(void *, const uint8_t **, struct px_err *), void *user);
void tar_done(struct tar *t);
/* 1 with an entry, 0 at a proper end, -1. What was not read of the entry before is skipped. */
int tar_next(struct tar *t, struct entry *ret_entry, struct px_err *e);
/* More of the present entry's data, 0 at its end, -1. */
long tar_data(struct tar *t, const uint8_t **ret_data, struct px_err *e);
int tar_end(struct tar *t, struct px_oid *ret_diff_id);

/* ---- extract.c, place.c and hide.c: entries to files ---- */

struct seen {                   /* inodes that this layer made or named */
    uint64_t *items;
    size_t count, size;
};
struct extract {
    int root;
    bool whiteouts;
    struct px_unpack_limits limits;
    char parent[NAME_SIZE];     /* whose descriptor is kept */
    int parent_fd;
    struct seen seen;
    uint64_t bytes, entries, dropped;
};
int extract_init(struct extract *x, int root, bool whiteouts, const struct px_unpack_limits *limits);
void extract_done(struct extract *x);
int extract_entry(struct extract *x, struct tar *t, const struct entry *entry, struct px_err *e);
/* The same without its data: the file to write, -EBADF if it is none. Without `replace` nothing may be in the way. */
int extract_open(struct extract *x, const struct entry *entry, bool replace, int *ret_fd, struct px_err *e);
/* Times, which every later entry moves. */
int extract_finish(struct extract *x, struct px_err *e);

/* The directory that `name` lies in, kept until the next call, and the last part of the name; with `make`, made if it
 * is not there. 1: it is not there. */
int place_parent(struct extract *x, const char *name, bool make, int *ret_fd, const char **ret_leaf, struct px_err *e);
int place_open(int root, const char *path, int flags);          /* >= 0 or -errno */
/* Removes what lies at leaf, with everything below; fine if nothing does. 0 or -errno. */
int place_clear(struct extract *x, int dir, const char *leaf);

int seen_add(struct seen *s, uint64_t inode);                   /* 0 or -ENOMEM */
bool seen_has(const struct seen *s, uint64_t inode);
/* A .wh. entry: 1 if this is one and was obeyed, 0 if not, -1. */
int hide_entry(struct extract *x, const struct entry *entry, struct px_err *e);

/* ---- unpack.c ---- */

struct told {                   /* where progress goes; NULL: nowhere */
    void (*tell)(void *user, uint64_t done, uint64_t total);
    void *user;
};
struct unpack_job {
    int archive, dir;
    uint64_t size;
    bool whiteouts, alone;      /* alone: without a second thread */
    struct px_unpack_limits limits;
    struct told told;
};
int unpack(const struct unpack_job *job, struct px_unpacked *ret_done, struct px_err *e);

/* ---- receive.c ---- */

struct receive_job {
    int archive, dir;           /* a stream; a new directory */
    const char *top;            /* the one name that may be made in the directory, with what is below it */
    struct px_unpack_limits limits;     /* bytes and entries */
};
int receive(const struct receive_job *job, struct px_unpacked *ret_done, struct px_err *e);

/* ---- zip.c and unzip.c: a strict reader of zip archives ---- */

struct zip_entry {
    uint64_t at;                /* of its local header */
    uint64_t packed, size;
    uint32_t crc, name;         /* where its name begins in `names` */
    uint16_t flags, method, name_length;
    bool directory, executable;
};
struct zip {
    int fd;
    uint64_t size;              /* of the archive */
    struct zip_entry *entries;  /* by their place in the archive */
    size_t count;
    char *names;                /* each with its NUL, as they stand in the archive */
};
/* The list of what is in it, checked: every byte of the archive belongs to one entry, to the list or to its end; both headers of an
 * entry say the same; no name twice, none that is a file here and a directory there. */
int zip_open(int fd, uint64_t size, const struct px_unpack_limits *limits, struct zip *ret_zip, struct px_err *e);
void zip_done(struct zip *z);
/* One entry's bytes to a file, checked against its length and its sum; fd -EBADF: only checked. */
int zip_write(const struct zip *z, const struct zip_entry *entry, int fd, struct px_err *e);

struct unzip_job {
    int archive, dir;
    uint64_t size;
    struct px_unpack_limits limits;
    struct told told;
};
int unzip(const struct unzip_job *job, struct px_unpacked *ret_done, struct px_err *e);

/* ---- squeeze.c: chunks of a stream, compressed at once on several threads, in order and always the same ---- */

enum { CHUNK = 1 << 20 };
struct squeeze;
/* fd -1: only hashed. Threads 0: none, for a test. */
int squeeze_open(int fd, enum px_compression how, unsigned threads, struct squeeze **ret_squeeze, struct px_err *e);
int squeeze_add(struct squeeze *s, const void *data, size_t size, struct px_err *e);
/* Where the next bytes may be put instead, at least one; squeeze_took says how many were. */
uint8_t *squeeze_room(struct squeeze *s, size_t *ret_size);
int squeeze_took(struct squeeze *s, size_t size, struct px_err *e);
int squeeze_finish(struct squeeze *s, struct px_layer *ret_layer, struct px_err *e);
void squeeze_free(struct squeeze *s);
/* The bytes for one chunk, by format; the size, or 0. */
size_t squeeze_bound(enum px_compression how);
size_t squeeze_chunk(enum px_compression how, void *state, const uint8_t *in, size_t size, uint8_t *out, size_t room);
void *squeeze_state(enum px_compression how);
void squeeze_state_free(enum px_compression how, void *state);

/* ---- wanted.c: the files that are to be packed ---- */

struct wanted {
    const char **items;         /* by their bytes, which is the order in which they are packed */
    size_t count;
    char *text;
};
/* From a file with a NUL behind each name. -1: no memory, or not names in order. */
int wanted_read(int fd, struct wanted *ret_wanted, struct px_err *e);
void wanted_done(struct wanted *wanted);
enum want { WANT_NOT, WANT_FILE, WANT_DIRECTORY };
/* What the path is to be; *ret_at is the place of a file. */
enum want wanted_find(const struct wanted *wanted, const char *path, size_t *ret_at);

/* ---- entar.c and pack.c: trees to a tar ---- */

struct entar_entry {
    const char *name;           /* a directory's ends with a slash */
    char type;                  /* '0' file, '1' hard link, '2' link, '5' directory */
    uint32_t mode;
    uint64_t size;
    const char *target;         /* "" if none */
    uint64_t mtime;             /* 0 in a layer */
    bool gnu;                   /* long names and sizes as every tar knows them; else as an extended header, which busybox passes over */
};
int entar_header(struct squeeze *to, const struct entar_entry *entry, struct px_err *e);
int entar_pad(struct squeeze *to, uint64_t size, struct px_err *e);
int entar_end(struct squeeze *to, struct px_err *e);

struct pack_job {
    int dir, out;               /* out -1: only hashed */
    const char *prefix;         /* "" or with a slash at the end */
    bool upper;
    enum px_compression compression;
    const char *const *skip;
    size_t skip_count;
    unsigned threads;
    struct told told;
    const struct wanted *wanted;        /* these files alone; NULL: all. Not with upper. */
};
int pack(const struct pack_job *job, struct px_layer *ret_layer, struct px_err *e);

/* ---- send.c ---- */

/* A file or a directory, under that name, as a tar. */
int send_tree(int fd, const char *name, int out, struct px_err *e);

/* ---- try.c ---- */

/* Does a forbidden or a permitted thing from inside the confinement: its errno, 0 if it worked. */
int try_act(const char *act, int dir);
