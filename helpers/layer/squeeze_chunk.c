/* One chunk, compressed by itself: raw deflate that ends on a byte and refers to nothing before it, or one zstd frame.
 * Levels are fixed: they are part of what a layer's bytes are. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "helpers/layer/layer.h"

enum { GZIP_LEVEL = 1, MEMORY_LEVEL = 9, ZSTD_LEVEL = 3, SLACK = 4096 };

size_t squeeze_bound(enum px_compression how)
{
    return how == PX_COMPRESS_ZSTD ? ZSTD_compressBound(CHUNK) : CHUNK + CHUNK / 8 + SLACK;
}

void *squeeze_state(enum px_compression how)
{
    if (how == PX_COMPRESS_GZIP) {
        z_stream *z = calloc(1, sizeof *z);
        if (z && deflateInit2(z, GZIP_LEVEL, Z_DEFLATED, -MAX_WBITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
            free(z);
            return NULL;
        }
        return z;
    }
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
    if (how == PX_COMPRESS_ZSTD) {
        (void)ZSTD_freeCCtx(state);
        return;
    }
    if (how == PX_COMPRESS_GZIP && state)
        (void)deflateEnd(state);
    free(state);
}

/* zlib and not one of the faster libraries: of thousands of chunks, one came out of ISA-L as other bytes of the same meaning. */
static size_t squeeze_gzip(z_stream *z, const uint8_t *in, size_t size, uint8_t *out, size_t room)
{
    if (deflateReset(z) != Z_OK)
        return 0;
    z->next_in = (uint8_t *)(uintptr_t)in;
    z->avail_in = (uInt)size;
    z->next_out = out;
    z->avail_out = (uInt)room;
    if (deflate(z, Z_FULL_FLUSH) != Z_OK || z->avail_in != 0 || z->avail_out == 0)
        return 0;
    return room - z->avail_out;
}

size_t squeeze_chunk(enum px_compression how, void *state, const uint8_t *in, size_t size, uint8_t *out, size_t room)
{
    if (how == PX_COMPRESS_NONE)
        return size;            /* its writer takes the input */
    if (how == PX_COMPRESS_GZIP)
        return squeeze_gzip(state, in, size, out, room);
    size_t n = ZSTD_compress2(state, out, room, in, size);
    return ZSTD_isError(n) ? 0 : n;
}
