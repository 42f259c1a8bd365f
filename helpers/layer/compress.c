/* A stream in chunks of one size, each compressed by itself, so that it does not matter how many threads there are or
 * which of them was faster: the bytes are the same. The tar's hash, the compressed bytes' hash and the writing are done
 * on the way. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "helpers/layer/layer.h"

enum { SLOTS = 8, THREADS_MAX = 4 };

struct slot {
    size_t length, packed;
    bool done;
    uint8_t *in, *out;
};

struct squeeze {
    int fd;
    enum px_compression how;
    unsigned threads;
    pthread_t thread[THREADS_MAX];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t made, begun, written;      /* chunks, counted from the start */
    bool writing, stop;
    struct px_err err;          /* the first failure; code 0: none */
    size_t fill;                /* of the slot that is being filled */
    struct slot slot[SLOTS];
    void *state;                /* of the compressor, without threads */
    struct px_hash tar_hash, blob_hash;
    uint64_t tar_size, size;
};

/* ---- output, by one thread at a time ---- */

static void put_out(struct squeeze *s, const void *data, size_t size)
{
    px_hash_add(&s->blob_hash, data, size);
    s->size += size;
    int r = px_write_full(s->fd, data, size);
    if (r < 0 && !s->err.code)
        px_fail(&s->err, PX_E_STORE_WRITE, r, "cannot write the layer");
}

static void compress_slot(struct squeeze *s, struct slot *slot, void *state)
{
    slot->packed = squeeze_chunk(s->how, state, slot->in, slot->length, slot->out, squeeze_bound(s->how));
}

static void write_slot(struct squeeze *s, const struct slot *slot)
{
    if (slot->packed == 0 && !s->err.code)
        px_fail(&s->err, PX_E_INTERNAL, 0, "the compressor failed");
    if (!s->err.code)
        put_out(s, s->how == PX_COMPRESS_NONE ? slot->in : slot->out, slot->packed);
}

/* What is done, in order. With the lock held, which is left while bytes are written. */
static void drain(struct squeeze *s)
{
    while (!s->writing && s->written < s->begun && s->slot[s->written % SLOTS].done) {
        struct slot *slot = &s->slot[s->written % SLOTS];
        s->writing = true;
        (void)pthread_mutex_unlock(&s->lock);
        write_slot(s, slot);
        (void)pthread_mutex_lock(&s->lock);
        slot->done = false;
        s->written++;
        s->writing = false;
        (void)pthread_cond_broadcast(&s->changed);
    }
}

static void *work(void *user)
{
    struct squeeze *s = user;
    void *state = squeeze_state(s->how);
    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->stop && s->begun == s->made)
            (void)pthread_cond_wait(&s->changed, &s->lock);
        if (s->begun == s->made)
            break;
        struct slot *slot = &s->slot[s->begun++ % SLOTS];
        (void)pthread_mutex_unlock(&s->lock);
        slot->packed = 0;
        if (state)
            compress_slot(s, slot, state);
        (void)pthread_mutex_lock(&s->lock);
        slot->done = true;
        drain(s);
    }
    (void)pthread_mutex_unlock(&s->lock);
    squeeze_state_free(s->how, state);
    return NULL;
}

/* ---- input ---- */

static int start(struct squeeze *s, struct px_err *e)
{
    for (size_t i = 0; i < SLOTS; i++) {
        bool out = s->fd >= 0 && s->how != PX_COMPRESS_NONE;
        s->slot[i].in = malloc(CHUNK);
        s->slot[i].out = out ? malloc(squeeze_bound(s->how)) : NULL;
        if (!s->slot[i].in || (out && !s->slot[i].out))
            return px_no_memory(e);
    }
    if (s->threads == 0 && s->fd >= 0 && !(s->state = squeeze_state(s->how)))
        return px_no_memory(e);
    unsigned wanted = s->threads;
    for (s->threads = 0; s->threads < wanted; s->threads++) {
        int r = pthread_create(&s->thread[s->threads], NULL, work, s);  /* banned: a program of its own */
        if (r != 0)
            return px_fail(e, PX_E_CLONE, r, "cannot start a thread");
    }
    return 0;
}

int squeeze_open(int fd, enum px_compression how, unsigned threads, struct squeeze **ret_squeeze, struct px_err *e)
{
    struct squeeze *s = calloc(1, sizeof *s);
    if (!s)
        return px_no_memory(e);
    s->fd = fd;
    s->how = how;
    s->threads = fd < 0 ? 0 : threads < THREADS_MAX ? threads : THREADS_MAX;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    px_hash_begin(&s->tar_hash);
    px_hash_begin(&s->blob_hash);
    if (start(s, e) < 0) {
        squeeze_free(s);
        return -1;
    }
    *ret_squeeze = s;
    return 0;
}

uint8_t *squeeze_room(struct squeeze *s, size_t *ret_size)
{
    *ret_size = CHUNK - s->fill;
    return s->slot[s->made % SLOTS].in + s->fill;
}

/* The slot is full, or the last: to the threads with it, and on to the next as soon as that is free. */
static int submit(struct squeeze *s, struct px_err *e)
{
    struct slot *slot = &s->slot[s->made % SLOTS];
    slot->length = s->fill;
    px_hash_add(&s->tar_hash, slot->in, slot->length);
    s->tar_size += slot->length;
    s->fill = 0;
    if (s->threads == 0) {
        if (s->fd >= 0) {
            compress_slot(s, slot, s->state);
            write_slot(s, slot);
        }
        s->made++;
    } else {
        (void)pthread_mutex_lock(&s->lock);
        s->made++;
        (void)pthread_cond_broadcast(&s->changed);
        while (s->made - s->written == SLOTS)
            (void)pthread_cond_wait(&s->changed, &s->lock);
        struct px_err now = s->writing ? (struct px_err){0} : s->err;
        (void)pthread_mutex_unlock(&s->lock);
        if (now.code) {
            *e = now;
            return -1;
        }
        return 0;
    }
    if (s->err.code)
        *e = s->err;
    return s->err.code ? -1 : 0;
}

int squeeze_took(struct squeeze *s, size_t size, struct px_err *e)
{
    s->fill += size;
    return s->fill == CHUNK ? submit(s, e) : 0;
}

int squeeze_add(struct squeeze *s, const void *data, size_t size, struct px_err *e)
{
    const uint8_t *from = data;
    while (size > 0) {
        size_t room;
        uint8_t *to = squeeze_room(s, &room);
        size_t n = size < room ? size : room;
        memcpy(to, from, n);
        from += n;
        size -= n;
        if (squeeze_took(s, n, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- the end ---- */

static void join(struct squeeze *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    while (s->threads > 0)
        (void)pthread_join(s->thread[--s->threads], NULL);
}

int squeeze_finish(struct squeeze *s, struct px_layer *ret_layer, struct px_err *e)
{
    struct px_layer layer = {.compression = s->how};
    if (s->fill > 0 && submit(s, e) < 0)
        return -1;
    join(s);
    if (s->err.code) {
        *e = s->err;
        return -1;
    }
    int r = px_hash_end(&s->tar_hash, &layer.diff_id);
    if (r == 0)
        r = px_hash_end(&s->blob_hash, &layer.digest);
    if (r < 0)
        return px_fail(e, PX_E_INTERNAL, r, "cannot hash the layer");
    layer.size = s->size;
    layer.tar_size = s->tar_size;
    *ret_layer = layer;
    return 0;
}

void squeeze_free(struct squeeze *s)
{
    if (!s)
        return;
    join(s);
    for (size_t i = 0; i < SLOTS; i++) {
        free(s->slot[i].in);
        free(s->slot[i].out);
    }
    squeeze_state_free(s->how, s->state);
    px_hash_drop(&s->tar_hash);
    px_hash_drop(&s->blob_hash);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->changed);
    free(s);
}
