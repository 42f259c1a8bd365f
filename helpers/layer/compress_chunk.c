/* One chunk, compressed by itself: one gzip member or one zstd frame; one behind the other, they are a stream of either format.
 * Levels are fixed: they are part of what a layer's bytes are. */
#include <libdeflate.h>
#include <stdlib.h>
#include <zstd.h>

#include "helpers/layer/layer.h"

enum { GZIP_LEVEL = 1, ZSTD_LEVEL = 3 };

size_t squeeze_bound(enum px_compression how)
{
    return how == PX_COMPRESS_ZSTD ? ZSTD_compressBound(CHUNK) : libdeflate_gzip_compress_bound(NULL, CHUNK);
}

void *squeeze_state(enum px_compression how)
{
    if (how == PX_COMPRESS_GZIP)
        return libdeflate_alloc_compressor(GZIP_LEVEL);
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
    else if (how == PX_COMPRESS_GZIP)
        libdeflate_free_compressor(state);
    else
        free(state);
}

/* libdeflate has no code chosen by the processor but for the checksum. Not ISA-L: of thousands of chunks, one came out as other
 * bytes of the same meaning. Not zlib: it takes twice the time for more bytes. */
size_t squeeze_chunk(enum px_compression how, void *state, const uint8_t *in, size_t size, uint8_t *out, size_t room)
{
    if (how == PX_COMPRESS_NONE)
        return size;            /* its writer takes the input */
    if (how == PX_COMPRESS_GZIP)
        return libdeflate_gzip_compress(state, in, size, out, room);
    size_t n = ZSTD_compress2(state, out, room, in, size);
    return ZSTD_isError(n) ? 0 : n;
}
