/* The formats an archive may be compressed with, each as one row; every one of them in bounded memory. */
#include <bzlib.h>
#include <isa-l/igzip_lib.h>
#include <limits.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "helpers/layer/layer.h"

static bool begins(const uint8_t *head, size_t length, const char *magic, size_t magic_length)
{
    return length >= magic_length && memcmp(head, magic, magic_length) == 0;
}

/* ---- gzip ---- */

static bool is_gzip(const uint8_t *head, size_t length)
{
    return begins(head, length, "\x1f\x8b", 2);
}

static void *open_gzip(void)
{
    struct inflate_state *s = malloc(sizeof *s);
    if (s) {
        isal_inflate_init(s);
        s->crc_flag = ISAL_GZIP;        /* the header is read, the checksum and length behind are compared */
    }
    return s;
}

static enum step step_gzip(void *state, struct bytes *b)
{
    struct inflate_state *s = state;
    const uint32_t in = b->in_left > UINT32_MAX ? UINT32_MAX : (uint32_t)b->in_left;
    const uint32_t out = b->out_left > UINT32_MAX ? UINT32_MAX : (uint32_t)b->out_left;
    s->next_in = (uint8_t *)(uintptr_t)b->in;
    s->avail_in = in;
    s->next_out = b->out;
    s->avail_out = out;
    int r = isal_inflate(s);
    b->in += in - s->avail_in;
    b->in_left -= in - s->avail_in;
    b->out += out - s->avail_out;
    b->out_left -= out - s->avail_out;
    if (r < 0 || r == ISAL_NEED_DICT)
        return STEP_BAD;
    return s->block_state == ISAL_BLOCK_FINISH ? STEP_END : STEP_MORE;
}

/* ---- zstd ---- */

static bool is_zstd(const uint8_t *head, size_t length)
{
    /* A frame, or one that is to be skipped, of which the format has sixteen. */
    return begins(head, length, "\x28\xb5\x2f\xfd", 4) ||
           (length >= 4 && (head[0] & 0xf0) == 0x50 && begins(head + 1, length - 1, "\x2a\x4d\x18", 3));
}

static void *open_zstd(void)
{
    ZSTD_DCtx *d = ZSTD_createDCtx();
    if (d && ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
        (void)ZSTD_freeDCtx(d);
        return NULL;
    }
    return d;
}

static enum step step_zstd(void *state, struct bytes *b)
{
    ZSTD_inBuffer in = {b->in, b->in_left, 0};
    ZSTD_outBuffer out = {b->out, b->out_left, 0};
    size_t r = ZSTD_decompressStream(state, &out, &in);
    b->in += in.pos;
    b->in_left -= in.pos;
    b->out += out.pos;
    b->out_left -= out.pos;
    return ZSTD_isError(r) ? STEP_BAD : r == 0 ? STEP_END : STEP_MORE;
}

static void close_zstd(void *state)
{
    (void)ZSTD_freeDCtx(state);
}

/* ---- xz ---- */

static bool is_xz(const uint8_t *head, size_t length)
{
    return begins(head, length, "\xfd" "7zXZ\0", 6);
}

static void *open_xz(void)
{
    lzma_stream *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(s, XZ_MEMORY_MAX, 0) != LZMA_OK) {
        free(s);
        return NULL;
    }
    return s;
}

static enum step step_xz(void *state, struct bytes *b)
{
    lzma_stream *s = state;
    s->next_in = b->in;
    s->avail_in = b->in_left;
    s->next_out = b->out;
    s->avail_out = b->out_left;
    lzma_ret r = lzma_code(s, b->last ? LZMA_FINISH : LZMA_RUN);
    b->in = s->next_in;
    b->in_left = s->avail_in;
    b->out = s->next_out;
    b->out_left = s->avail_out;
    return r == LZMA_STREAM_END ? STEP_END : r == LZMA_OK || r == LZMA_BUF_ERROR ? STEP_MORE : STEP_BAD;
}

static void close_xz(void *state)
{
    if (state)
        lzma_end(state);
    free(state);
}

/* ---- bzip2 ---- */

static bool is_bzip2(const uint8_t *head, size_t length)
{
    return begins(head, length, "BZh", 3) && length >= 4 && head[3] >= '1' && head[3] <= '9';
}

static void *open_bzip2(void)
{
    bz_stream *s = calloc(1, sizeof *s);
    if (s && BZ2_bzDecompressInit(s, 0, 0) != BZ_OK) {
        free(s);
        return NULL;
    }
    return s;
}

static enum step step_bzip2(void *state, struct bytes *b)
{
    bz_stream *s = state;
    const unsigned in = b->in_left > UINT_MAX ? UINT_MAX : (unsigned)b->in_left;
    const unsigned out = b->out_left > UINT_MAX ? UINT_MAX : (unsigned)b->out_left;
    s->next_in = (char *)(uintptr_t)b->in;
    s->avail_in = in;
    s->next_out = (char *)b->out;
    s->avail_out = out;
    int r = BZ2_bzDecompress(s);
    b->in += in - s->avail_in;
    b->in_left -= in - s->avail_in;
    b->out += out - s->avail_out;
    b->out_left -= out - s->avail_out;
    return r == BZ_STREAM_END ? STEP_END : r == BZ_OK ? STEP_MORE : STEP_BAD;
}

static void close_bzip2(void *state)
{
    if (state)
        (void)BZ2_bzDecompressEnd(state);
    free(state);
}

/* ---- none ---- */

static bool is_plain(const uint8_t *head, size_t length)
{
    static const uint8_t zero[BLOCK];
    if (length < BLOCK)
        return false;
    if (memcmp(head, zero, BLOCK) == 0)
        return true;            /* a tar with nothing in it */
    unsigned sum = 8 * ' ', said = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? 0 : head[i];
    for (int i = 148; i < 156; i++)
        said = head[i] >= '0' && head[i] <= '7' ? said * 8 + (head[i] - '0') : said;
    return sum == said;
}

static void *open_plain(void)
{
    return malloc(1);           /* it has no state, but NULL means failure */
}

static enum step step_plain(void *state, struct bytes *b)
{
    (void)state;
    size_t n = b->in_left < b->out_left ? b->in_left : b->out_left;
    memcpy(b->out, b->in, n);
    b->in += n;
    b->in_left -= n;
    b->out += n;
    b->out_left -= n;
    return b->last && b->in_left == 0 ? STEP_END : STEP_MORE;
}

const struct codec codecs[] = {
    {"gzip", is_gzip, open_gzip, step_gzip, free},
    {"zstd", is_zstd, open_zstd, step_zstd, close_zstd},
    {"xz", is_xz, open_xz, step_xz, close_xz},
    {"bzip2", is_bzip2, open_bzip2, step_bzip2, close_bzip2},
    {"tar", is_plain, open_plain, step_plain, free},
    {NULL, NULL, NULL, NULL, NULL},
};
