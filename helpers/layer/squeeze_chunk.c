/* One chunk, compressed by itself: raw deflate that ends on a byte and refers to nothing before it, or one zstd frame.
 * Levels are fixed: they are part of what a layer's bytes are. */
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "helpers/layer/layer.h"

enum { GZIP_LEVEL = 1, ZSTD_LEVEL = 3, SLACK = 4096 };

struct deflate {
    struct isal_zstream stream;
    uint8_t buffer[ISAL_DEF_LVL1_DEFAULT];
};

size_t squeeze_bound(enum px_compression how)
{
    return how == PX_COMPRESS_ZSTD ? ZSTD_compressBound(CHUNK) : CHUNK + CHUNK / 8 + SLACK;
}

void *squeeze_state(enum px_compression how)
{
    if (how == PX_COMPRESS_GZIP)
        return malloc(sizeof(struct deflate));
    if (how == PX_COMPRESS_NONE)
        return malloc(1);
    ZSTD_CCtx *c = ZSTD_createCCtx();
    if (c && ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, ZSTD_LEVEL))) {
        (void)ZSTD_freeCCtx(c);
        return NULL;
    }
    return c;
}

void squeeze_state_free(enum px_compression how, void *state)
{
    if (how == PX_COMPRESS_ZSTD)
        (void)ZSTD_freeCCtx(state);
    else
        free(state);
}

static size_t deflate(struct deflate *d, const uint8_t *in, size_t size, uint8_t *out, size_t room)
{
    memset(d, 0, sizeof *d);    /* the library does not always forget what it has seen in this buffer, and then misses matches */
    isal_deflate_init(&d->stream);
    d->stream.level = GZIP_LEVEL;
    d->stream.level_buf = d->buffer;
    d->stream.level_buf_size = sizeof d->buffer;
    d->stream.flush = FULL_FLUSH;
    d->stream.next_in = (uint8_t *)(uintptr_t)in;
    d->stream.avail_in = (uint32_t)size;
    d->stream.next_out = out;
    d->stream.avail_out = (uint32_t)room;
    if (isal_deflate(&d->stream) != COMP_OK || d->stream.avail_in != 0 || d->stream.avail_out == 0)
        return 0;
    return room - d->stream.avail_out;
}

size_t squeeze_chunk(enum px_compression how, void *state, const uint8_t *in, size_t size, uint8_t *out, size_t room)
{
    if (how == PX_COMPRESS_NONE)
        return size;            /* its writer takes the input */
    if (how == PX_COMPRESS_GZIP)
        return deflate(state, in, size, out, room);
    size_t n = ZSTD_compress2(state, out, room, in, size);
    return ZSTD_isError(n) ? 0 : n;
}
