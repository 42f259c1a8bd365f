/* helpers/layer/zip.h - what zip.c and zip_data.c share: numbers of the format, and how an archive is refused.
 *
 * Why:     the list at the end and the entries themselves are two parsers of one format.
 * Owns:    nothing.
 * Mustn't: be seen outside of these two. */
#pragma once

#include "helpers/layer/layer.h"

enum {
    ZIP_LEVEL = 0x0006,         /* flags: how hard the writer tried */
    ZIP_DESCRIPTOR = 0x0008,    /* lengths and sum stand behind the data */
    ZIP_UTF8 = 0x0800,
    ZIP_STORED = 0,
    ZIP_DEFLATED = 8,
};

static inline uint16_t zip_u16(const uint8_t *b)
{
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t zip_u32(const uint8_t *b)
{
    return (uint32_t)zip_u16(b) | (uint32_t)zip_u16(b + 2) << 16;
}

static inline uint64_t zip_u64(const uint8_t *b)
{
    return (uint64_t)zip_u32(b) | (uint64_t)zip_u32(b + 4) << 32;
}

/* entry NULL: the archive as a whole. -1. */
int zip_refuse(const struct zip *z, const struct zip_entry *entry, const char *reason, struct px_err *e);
/* Exactly these bytes, or the archive is refused. */
int zip_read(const struct zip *z, uint64_t at, void *out, size_t size, struct px_err *e);
/* Extra fields: numbers that did not fit take their 64 bits, in this order (at NULL: a local header). The reason to
 * refuse, or NULL. */
const char *zip_extra(const uint8_t *b, size_t length, uint64_t *size, uint64_t *packed, uint64_t *at);
/* Header, data and what is behind fill the entry's place up to `next`, and say what the list says. */
int zip_local(const struct zip *z, const struct zip_entry *entry, uint64_t next, struct px_err *e);
