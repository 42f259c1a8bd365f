/* One entry of a zip archive: its own header, its data, and what may stand behind them. */
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "helpers/layer/zip.h"

enum { LOCAL_SIZE = 30, DESCRIPTOR_MAX = 24, EXTRA_64 = 0x0001, EXTRA_NAME = 0x7075, PIECE = 128 << 10 };
#define SIGN_LOCAL 0x04034b50U
#define SIGN_DESCRIPTOR 0x08074b50U

/* ---- headers ---- */

/* The numbers that say "look there" with all bits set, in the order of the format; all of the field has to be used.
 * Writers to a stream put both lengths there in any case: then they have to be the same. */
static const char *take_64(const uint8_t *b, size_t length, bool large, uint64_t *const numbers[3])
{
    if (!large && length == 16 && zip_u64(b) == *numbers[0] && zip_u64(b + 8) == *numbers[1])
        return NULL;
    for (int i = 0; i < 3; i++) {
        if (!numbers[i] || *numbers[i] != UINT32_MAX)
            continue;
        if (length < 8)
            return "its large lengths are missing";
        *numbers[i] = zip_u64(b);
        b += 8;
        length -= 8;
    }
    return length != 0 ? "it has large lengths that it does not need" : NULL;
}

const char *zip_extra(const uint8_t *b, size_t length, uint64_t *size, uint64_t *packed, uint64_t *at)
{
    uint64_t *const numbers[3] = {size, packed, at};
    bool large = *size == UINT32_MAX || *packed == UINT32_MAX || (at && *at == UINT32_MAX), taken = false;
    while (length >= 4) {
        uint16_t id = zip_u16(b), n = zip_u16(b + 2);
        if (n > length - 4)
            return "its extra fields are damaged";
        const char *reason = NULL;
        if (id == EXTRA_NAME)
            reason = "it has a second name";
        else if (id == EXTRA_64 && taken)
            reason = "it has its large lengths twice";
        else if (id == EXTRA_64)
            reason = take_64(b + 4, n, large, numbers);
        if (reason)
            return reason;
        taken |= id == EXTRA_64;
        b += 4 + n;
        length -= 4U + n;
    }
    return length != 0 ? "its extra fields are damaged" : large && !taken ? "its large lengths are missing" : NULL;
}

/* Where the data begins, which only the local header says: behind a name and extra fields of its own. */
static int data_at(const struct zip *z, const struct zip_entry *entry, uint8_t b[LOCAL_SIZE], uint64_t *ret_at,
                   struct px_err *e)
{
    if (zip_read(z, entry->at, b, LOCAL_SIZE, e) < 0)
        return -1;
    if (zip_u32(b) != SIGN_LOCAL)
        return zip_refuse(z, entry, "its header is damaged", e);
    *ret_at = entry->at + LOCAL_SIZE + zip_u16(b + 26) + zip_u16(b + 28);
    return 0;
}

static int check_local(const struct zip *z, const struct zip_entry *entry, const uint8_t *b, struct px_err *e)
{
    uint16_t name_length = zip_u16(b + 26), extra_length = zip_u16(b + 28);
    uint64_t packed = zip_u32(b + 18), size = zip_u32(b + 22);
    uint8_t *text = malloc((size_t)name_length + extra_length + 1);
    if (!text)
        return px_no_memory(e);
    int r = zip_read(z, entry->at + LOCAL_SIZE, text, (size_t)name_length + extra_length, e);
    const char *reason = r < 0 ? NULL : zip_extra(text + name_length, extra_length, &size, &packed, NULL);
    bool same = r == 0 && !reason && name_length == entry->name_length &&
                memcmp(text, z->names + entry->name, name_length) == 0 &&
                ((zip_u16(b + 6) ^ entry->flags) & ~ZIP_LEVEL) == 0 && zip_u16(b + 8) == entry->method;
    /* With a descriptor behind the data these may be left empty. */
    bool later = entry->flags & ZIP_DESCRIPTOR && size == 0 && packed == 0 && zip_u32(b + 14) == 0;
    if (same && !later)
        same = size == entry->size && packed == entry->packed && zip_u32(b + 14) == entry->crc;
    free(text);
    if (r < 0)
        return -1;
    return reason ? zip_refuse(z, entry, reason, e)
           : same ? 0
                  : zip_refuse(z, entry, "its header and the list differ", e);
}

/* The sum and both lengths again; with or without a sign in front, in 32 or 64 bits: whichever fills the room. */
static bool is_descriptor(const struct zip_entry *entry, const uint8_t *b, size_t size)
{
    bool sign = size == 16 || size == 24, wide = size >= 20;
    if (size != 12 && size != 16 && size != 20 && size != 24)
        return false;
    if (sign && zip_u32(b) != SIGN_DESCRIPTOR)
        return false;
    b += sign ? 4 : 0;
    uint64_t packed = wide ? zip_u64(b + 4) : zip_u32(b + 4), unpacked = wide ? zip_u64(b + 12) : zip_u32(b + 8);
    return zip_u32(b) == entry->crc && packed == entry->packed && unpacked == entry->size;
}

int zip_local(const struct zip *z, const struct zip_entry *entry, uint64_t next, struct px_err *e)
{
    uint8_t b[LOCAL_SIZE], behind[DESCRIPTOR_MAX];
    uint64_t at = 0;
    if (data_at(z, entry, b, &at, e) < 0 || check_local(z, entry, b, e) < 0)
        return -1;
    if (next < at || entry->packed > next - at)
        return zip_refuse(z, entry, "it overlaps another", e);
    uint64_t left = next - at - entry->packed;
    if (!(entry->flags & ZIP_DESCRIPTOR))
        return left == 0 ? 0 : zip_refuse(z, entry, "something is hidden behind it", e);
    if (left > sizeof behind)
        return zip_refuse(z, entry, "something is hidden behind it", e);
    if (zip_read(z, next - left, behind, (size_t)left, e) < 0)
        return -1;
    return is_descriptor(entry, behind, (size_t)left)
               ? 0
               : zip_refuse(z, entry, "what is behind its data and the list differ", e);
}

/* ---- data ---- */

struct reading {
    const struct zip *z;
    const struct zip_entry *entry;
    int fd;
    uint64_t at, left;          /* of the packed bytes */
    uint64_t made;
    uint32_t crc;
    uint8_t *in, *out;          /* PIECE each */
    struct px_err *e;
};

static int take_out(struct reading *r, const uint8_t *data, size_t size)
{
    if (size > r->entry->size - r->made)
        return zip_refuse(r->z, r->entry, "it is longer than it says", r->e);
    r->made += size;
    r->crc = crc32_gzip_refl(r->crc, data, size);
    int failed = r->fd < 0 ? 0 : px_write_full(r->fd, data, size);
    return failed < 0 ? px_fail(r->e, PX_E_STORE_WRITE, failed, "cannot write what the archive holds") : 0;
}

static long next_piece(struct reading *r)
{
    size_t n = r->left < PIECE ? (size_t)r->left : PIECE;
    if (zip_read(r->z, r->at, r->in, n, r->e) < 0)
        return -1;
    r->at += n;
    r->left -= n;
    return (long)n;
}

static int copy_stored(struct reading *r)
{
    while (r->left > 0) {
        long n = next_piece(r);
        if (n < 0 || take_out(r, r->in, (size_t)n) < 0)
            return -1;
    }
    return 0;
}

/* 1: more, 0: the end, -1. */
static int inflate_some(struct reading *r, struct inflate_state *s)
{
    if (s->avail_in == 0 && r->left > 0) {
        long n = next_piece(r);
        if (n < 0)
            return -1;
        s->next_in = r->in;
        s->avail_in = (uint32_t)n;
    }
    uint32_t in = s->avail_in;
    s->next_out = r->out;
    s->avail_out = PIECE;
    int failed = isal_inflate(s);
    if (failed < 0 || failed == ISAL_NEED_DICT)
        return zip_refuse(r->z, r->entry, "its data are damaged", r->e);
    size_t made = PIECE - s->avail_out;
    if (take_out(r, r->out, made) < 0)
        return -1;
    if (s->block_state == ISAL_BLOCK_FINISH)
        return 0;
    return made > 0 || s->avail_in < in || r->left > 0 ? 1
                                                       : zip_refuse(r->z, r->entry, "its data end in the middle", r->e);
}

static int inflate_all(struct reading *r)
{
    struct inflate_state *s = malloc(sizeof *s);
    if (!s)
        return px_no_memory(r->e);
    isal_inflate_init(s);
    s->crc_flag = ISAL_DEFLATE;
    int more;
    do
        more = inflate_some(r, s);
    while (more > 0);
    /* The library reads ahead by some bytes, of which it keeps the bits. */
    if (more == 0 && (r->left > 0 || s->avail_in > 0 || s->read_in_length >= 8))
        more = zip_refuse(r->z, r->entry, "something is hidden behind its data", r->e);
    free(s);
    return more;
}

int zip_write(const struct zip *z, const struct zip_entry *entry, int fd, struct px_err *e)
{
    uint8_t header[LOCAL_SIZE];
    struct reading r = {.z = z, .entry = entry, .fd = fd, .left = entry->packed, .e = e};
    if (data_at(z, entry, header, &r.at, e) < 0)
        return -1;
    r.in = malloc(2 * (size_t)PIECE);
    if (!r.in)
        return px_no_memory(e);
    r.out = r.in + PIECE;
    int done = entry->method == ZIP_STORED ? copy_stored(&r) : inflate_all(&r);
    free(r.in);
    if (done < 0)
        return -1;
    return r.made == entry->size && r.crc == entry->crc
               ? 0
               : zip_refuse(z, entry, "its data do not match its length or its sum", e);
}
