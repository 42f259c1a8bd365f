/* Headers of a tar, always the same for the same entry: ustar, and an extended header only for what does not fit. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "helpers/layer/layer.h"

/* ustar, as POSIX lays it out. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6], version[2], uname[32],
        gname[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

#define OCTAL_SIZE_MAX 077777777777ULL

static void put_octal(char *field, size_t length, uint64_t value)
{
    field[length - 1] = '\0';
    for (size_t i = length - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

static void put_sum(struct header *h)
{
    unsigned sum = 0;
    memset(h->sum, ' ', sizeof h->sum);
    for (size_t i = 0; i < sizeof *h; i++)
        sum += ((const uint8_t *)h)[i];
    put_octal(h->sum, 7, sum);          /* six digits, a NUL, a space */
}

/* Whether the name fits, in two parts if need be; then it is there. */
static bool put_name(struct header *h, const char *name)
{
    size_t n = strlen(name);
    if (n <= sizeof h->name) {
        memcpy(h->name, name, n);
        return true;
    }
    if (n > sizeof h->prefix + 1 + sizeof h->name)
        return false;
    /* The earliest slash that leaves a name short enough, and never the one at the end. */
    for (size_t i = n - sizeof h->name - 1; i < n - 1 && i <= sizeof h->prefix; i++)
        if (name[i] == '/' && i > 0) {
            memcpy(h->prefix, name, i);
            memcpy(h->name, name + i + 1, n - i - 1);
            return true;
        }
    return false;
}

static void begin_header(struct header *h, char type, uint32_t mode, uint64_t size, uint64_t mtime)
{
    memset(h, 0, sizeof *h);
    put_octal(h->mode, sizeof h->mode, mode);
    put_octal(h->uid, sizeof h->uid, 0);
    put_octal(h->gid, sizeof h->gid, 0);
    put_octal(h->size, sizeof h->size, size);
    put_octal(h->mtime, sizeof h->mtime, mtime);
    put_octal(h->major, sizeof h->major, 0);
    put_octal(h->minor, sizeof h->minor, 0);
    h->type = type;
    memcpy(h->magic, "ustar", sizeof h->magic);
    memcpy(h->version, "00", sizeof h->version);
}

/* "LENGTH KEY=VALUE\n", where the length counts its own digits. */
static void add_record(struct px_buf *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, length = rest + 1, digits = 1;
    for (size_t limit = 10; length >= limit; limit *= 10)
        length = rest + ++digits;
    px_buf_printf(out, "%zu %s=", length, key);
    px_buf_add(out, value, strlen(value));
    px_buf_putc(out, '\n');
}

static int put_extended(struct squeeze *to, const struct px_buf *records, struct px_err *e)
{
    struct header h;
    if (records->err < 0)
        return px_fail(e, PX_E_LIMIT, records->err, "an entry's name is too long for a layer");
    begin_header(&h, 'x', 0644, records->len, 0);
    memcpy(h.name, "pax", 3);
    put_sum(&h);
    if (squeeze_add(to, &h, sizeof h, e) < 0 || squeeze_add(to, records->data, records->len, e) < 0)
        return -1;
    return entar_pad(to, records->len, e);
}

/* ---- GNU's form ---- */

static void make_gnu(struct header *h)
{
    memcpy(h->magic, "ustar ", sizeof h->magic);
    memcpy(h->version, " ", sizeof h->version);
    put_sum(h);
}

/* A text that its field has no room for goes ahead as the content of an entry of its own. */
static int put_long(struct squeeze *to, char type, const char *text, struct px_err *e)
{
    struct header h;
    size_t n = strlen(text) + 1;
    if (n <= sizeof h.name)
        return 0;
    begin_header(&h, type, 0644, n, 0);
    memcpy(h.name, "././@LongLink", 13);
    make_gnu(&h);
    if (squeeze_add(to, &h, sizeof h, e) < 0 || squeeze_add(to, text, n, e) < 0)
        return -1;
    return entar_pad(to, n, e);
}

static int put_gnu(struct squeeze *to, const struct entar_entry *entry, struct px_err *e)
{
    struct header h;
    if (put_long(to, 'K', entry->target, e) < 0 || put_long(to, 'L', entry->name, e) < 0)
        return -1;
    begin_header(&h, entry->type, entry->mode, entry->size, entry->mtime);
    memcpy(h.name, entry->name, strnlen(entry->name, sizeof h.name));
    memcpy(h.link, entry->target, strnlen(entry->target, sizeof h.link));
    if (entry->size > OCTAL_SIZE_MAX) {         /* in binary */
        uint64_t value = entry->size;
        for (size_t i = sizeof h.size; i-- > 1; value >>= 8)
            h.size[i] = (char)(value & 0xff);
        h.size[0] = (char)0x80;
    }
    make_gnu(&h);
    return squeeze_add(to, &h, sizeof h, e);
}

/* ---- */

int entar_header(struct squeeze *to, const struct entar_entry *entry, struct px_err *e)
{
    if (entry->gnu)
        return put_gnu(to, entry, e);
    px_auto_buf struct px_buf records = PX_BUF((size_t)4 * NAME_SIZE);
    struct header h;
    bool large = entry->size > OCTAL_SIZE_MAX;
    size_t target = strlen(entry->target);
    begin_header(&h, entry->type, entry->mode, large ? 0 : entry->size, entry->mtime);
    if (!put_name(&h, entry->name)) {
        add_record(&records, "path", entry->name);
        memcpy(h.name, entry->name, sizeof h.name);     /* for those who know no more */
    }
    if (target > sizeof h.link)
        add_record(&records, "linkpath", entry->target);
    memcpy(h.link, entry->target, target < sizeof h.link ? target : sizeof h.link);
    if (large) {
        char digits[24];
        (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)entry->size);
        add_record(&records, "size", digits);
    }
    put_sum(&h);
    if (records.len > 0 && put_extended(to, &records, e) < 0)
        return -1;
    return squeeze_add(to, &h, sizeof h, e);
}

int entar_pad(struct squeeze *to, uint64_t size, struct px_err *e)
{
    static const uint8_t zeros[BLOCK];
    return squeeze_add(to, zeros, (BLOCK - size % BLOCK) % BLOCK, e);
}

int entar_end(struct squeeze *to, struct px_err *e)
{
    static const uint8_t zeros[2 * BLOCK];
    return squeeze_add(to, zeros, sizeof zeros, e);
}
