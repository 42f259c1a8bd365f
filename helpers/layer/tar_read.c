/* A tar as a list of entries. Everything that two readers could understand differently is an error: what px unpacks is
 * what a scanner saw. Known: the old format, ustar, GNU's long names and large numbers, pax. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "helpers/layer/layer.h"

/* The fields of a header: where, how long. */
enum {
    AT_NAME = 0, NAME_LENGTH = 100, AT_MODE = 100, MODE_LENGTH = 8, AT_SIZE = 124, SIZE_LENGTH = 12, AT_MTIME = 136,
    MTIME_LENGTH = 12, AT_SUM = 148, SUM_LENGTH = 8, AT_TYPE = 156, AT_LINK = 157, LINK_LENGTH = 100, AT_MAGIC = 257,
    MAGIC_LENGTH = 8, AT_PREFIX = 345, PREFIX_LENGTH = 155,
};
enum { LONG_MAX_SIZE = NAME_SIZE };     /* of a GNU long name, with its NUL */

static const uint8_t zeros[BLOCK];

void tar_init(struct tar *t, long (*next)(void *, const uint8_t **, struct px_err *), void *user)
{
    memset(t, 0, sizeof *t);
    t->next = next;
    t->user = user;
    px_hash_begin(&t->hash);
}

void tar_done(struct tar *t)
{
    px_hash_drop(&t->hash);
    free(t->text);
    t->text = NULL;
}

int tar_end(struct tar *t, struct px_oid *ret_diff_id)
{
    return px_hash_end(&t->hash, ret_diff_id);
}

/* The name that an error gives to the present entry. */
static int refuse(struct px_err *e, const char *name, size_t length, const char *why)
{
    if (length > 0)
        px_fail(e, PX_E_ARCHIVE, 0, "the archive's entry '%s' was refused: %s", show(name, length).text, why);
    else
        px_fail(e, PX_E_ARCHIVE, 0, "the archive was refused: %s", why);
    return -1;
}

static int refuse_header(struct px_err *e, const uint8_t *h, const char *why)
{
    const char *name = (const char *)h + AT_NAME;
    return refuse(e, name, strnlen(name, NAME_LENGTH), why);
}

/* ---- bytes ---- */

/* 1 if there is something in the slot, 0 at the end, -1. */
static int fill(struct tar *t, struct px_err *e)
{
    if (t->left > 0)
        return 1;
    long n = t->next(t->user, &t->at, e);
    if (n <= 0)
        return (int)n;
    if (n % BLOCK != 0)
        return refuse(e, "", 0, "it ends in the middle of a block");
    px_hash_add(&t->hash, t->at, (size_t)n);
    t->left = (size_t)n;
    t->bytes += (uint64_t)n;
    return 1;
}

static void advance(struct tar *t, size_t n)
{
    t->at += n;
    t->left -= n;
}

static int block(struct tar *t, const uint8_t **ret_block, struct px_err *e)
{
    int r = fill(t, e);
    if (r <= 0)
        return r;
    *ret_block = t->at;         /* slots are whole blocks */
    advance(t, BLOCK);
    return 1;
}

long tar_data(struct tar *t, const uint8_t **ret_data, struct px_err *e)
{
    if (t->data_left == 0)
        return 0;
    int r = fill(t, e);
    if (r <= 0)
        return r < 0 ? -1 : refuse(e, "", 0, "it ends in the middle of a file");
    size_t n = t->left < t->data_left ? t->left : (size_t)t->data_left;
    *ret_data = t->at;
    advance(t, n);
    t->data_left -= n;
    return (long)n;
}

static int skip_rest(struct tar *t, struct px_err *e)
{
    const uint8_t *data;
    long n;
    while ((n = tar_data(t, &data, e)) > 0)
        ;
    if (n < 0)
        return -1;
    t->data_left = t->pad_left;         /* what fills the last block counts as data nobody wants */
    t->pad_left = 0;
    while ((n = tar_data(t, &data, e)) > 0)
        ;
    return n < 0 ? -1 : 0;
}

static void expect_data(struct tar *t, uint64_t size)
{
    t->data_left = size;
    t->pad_left = (BLOCK - size % BLOCK) % BLOCK;
}

/* ---- numbers ---- */

static int octal(const uint8_t *field, size_t length, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;
    while (i < length && field[i] == ' ')
        i++;
    for (; i < length && field[i] >= '0' && field[i] <= '7'; i++)
        value = value * 8 + (uint64_t)(field[i] - '0');
    for (; i < length; i++)
        if (field[i] != ' ' && field[i] != '\0')
            return -1;
    *ret_value = value;         /* twelve digits at most: no overflow */
    return 0;
}

/* Octal, or GNU's binary form, of which only what a file can have is accepted. */
static int number(const uint8_t *field, size_t length, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (!(field[0] & 0x80))
        return octal(field, length, ret_value);
    if (field[0] != 0x80)
        return -1;              /* negative, or larger than anything */
    for (size_t i = 1; i < length; i++) {
        if (value >> 55)
            return -1;
        value = value << 8 | field[i];
    }
    *ret_value = value;
    return 0;
}

/* ---- headers ---- */

static bool sum_is_right(const uint8_t *h)
{
    uint64_t said, sum = UINT64_C(8) * ' ';
    for (int i = 0; i < BLOCK; i++)
        sum += i >= AT_SUM && i < AT_SUM + SUM_LENGTH ? 0 : h[i];
    return octal(h + AT_SUM, SUM_LENGTH, &said) == 0 && said == sum;
}

enum format { OLD, USTAR, GNU, UNKNOWN };

static enum format format_of(const uint8_t *h)
{
    if (memcmp(h + AT_MAGIC, "ustar\0" "00", MAGIC_LENGTH) == 0)
        return USTAR;
    if (memcmp(h + AT_MAGIC, "ustar  \0", MAGIC_LENGTH) == 0)
        return GNU;
    return memcmp(h + AT_MAGIC, zeros, MAGIC_LENGTH) == 0 ? OLD : UNKNOWN;
}

/* The whole of what comes before an entry: a long name or extended records. */
static int read_text(struct tar *t, const uint8_t *h, uint64_t size, uint64_t most, struct px_err *e)
{
    if (size == 0 || size > most)
        return refuse_header(e, h, "what comes ahead of it has no length or too great a length");
    if (!t->text && !(t->text = malloc(PAX_MAX)))
        return px_no_memory(e);
    expect_data(t, size);
    const uint8_t *data;
    size_t at = 0;
    long n;
    while ((n = tar_data(t, &data, e)) > 0) {
        memcpy(t->text + at, data, (size_t)n);
        at += (size_t)n;
    }
    return n < 0 ? -1 : skip_rest(t, e);
}

static int read_long(struct tar *t, const uint8_t *h, uint64_t size, char out[NAME_SIZE], size_t *ret_length, bool *has,
                     struct px_err *e)
{
    if (*has)
        return refuse_header(e, h, "it has two long names");
    if (read_text(t, h, size, LONG_MAX_SIZE, e) < 0)
        return -1;
    size_t length = (size_t)size - (t->text[size - 1] == '\0');
    if (length == 0 || length >= NAME_SIZE || memchr(t->text, '\0', length))
        return refuse_header(e, h, "its long name has a NUL in it, or no length");
    memcpy(out, t->text, length);
    out[length] = '\0';
    *ret_length = length;
    *has = true;
    return 0;
}

static int read_pax(struct tar *t, const uint8_t *h, uint64_t size, bool global, struct px_err *e)
{
    struct pax scratch = {0};
    if (!global && t->extended)
        return refuse_header(e, h, "it has two extended headers");
    if (size > 0 && read_text(t, h, size, PAX_MAX, e) < 0)
        return -1;
    const char *reason = pax_parse(t->text, (size_t)size, global, global ? &scratch : &t->pax);
    if (!global)
        t->extended = true;
    return reason ? refuse_header(e, h, reason) : 0;
}

/* 1 if the header was one that only says something about the next; 0 if it is an entry. */
static int read_ahead(struct tar *t, const uint8_t *header, struct px_err *e)
{
    uint8_t h[BLOCK];
    uint64_t size;
    char type = (char)header[AT_TYPE];
    if (type != 'L' && type != 'K' && type != 'x' && type != 'g')
        return 0;
    memcpy(h, header, BLOCK);   /* the slot goes while its text is read */
    if (number(h + AT_SIZE, SIZE_LENGTH, &size) < 0)
        return refuse_header(e, h, "its size is not a number");
    int r;
    if (type == 'L' || type == 'K') {
        if (t->extended)
            return refuse_header(e, h, "it has an extended header and a long name");
        r = type == 'L' ? read_long(t, h, size, t->pax.path, &t->pax.path_length, &t->long_name, e)
                        : read_long(t, h, size, t->pax.linkpath, &t->pax.linkpath_length, &t->long_link, e);
    } else {
        if (type == 'x' && (t->long_name || t->long_link))
            return refuse_header(e, h, "it has an extended header and a long name");
        r = read_pax(t, h, size, type == 'g', e);
    }
    return r < 0 ? -1 : 1;
}

/* ---- entries ---- */

/* What the entry is called, before it is cleaned. */
static size_t raw_name(const struct tar *t, const uint8_t *h, char out[NAME_SIZE])
{
    if (t->pax.has_path || t->long_name) {
        memcpy(out, t->pax.path, t->pax.path_length + 1);
        return t->pax.path_length;
    }
    size_t at = 0, n = strnlen((const char *)h + AT_PREFIX, PREFIX_LENGTH);
    if (format_of(h) == USTAR && n > 0) {
        memcpy(out, h + AT_PREFIX, n);
        out[n] = '/';
        at = n + 1;
    }
    n = strnlen((const char *)h + AT_NAME, NAME_LENGTH);
    memcpy(out + at, h + AT_NAME, n);
    out[at + n] = '\0';
    return at + n;
}

static const struct {
    char type;
    enum kind kind;
} kinds[] = {
    {'0', KIND_FILE}, {'\0', KIND_FILE}, {'7', KIND_FILE}, {'1', KIND_HARDLINK}, {'2', KIND_SYMLINK},
    {'5', KIND_DIRECTORY},
    {'3', KIND_DROPPED}, {'4', KIND_DROPPED}, {'6', KIND_DROPPED},
};

static const char *kind_of(const uint8_t *h, enum kind *ret_kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].type == (char)h[AT_TYPE]) {
            *ret_kind = kinds[i].kind;
            return NULL;
        }
    return h[AT_TYPE] == 'S' ? "it is a sparse file; make the archive without --sparse"
                             : "it is of a kind that px does not know";
}

/* The format before types had letters: a slash at the end says what it is. Later formats have '5' for that, and a slash
 * is an error. */
static bool is_old_directory(const uint8_t *h, const char *name, size_t length)
{
    return format_of(h) == OLD && h[AT_TYPE] == '\0' && length > 0 && name[length - 1] == '/';
}

static const char *take_target(const struct tar *t, const uint8_t *h, struct entry *entry)
{
    char raw[NAME_SIZE];
    size_t length = t->pax.linkpath_length;
    bool given = t->pax.has_linkpath || t->long_link;
    const char *reason = "";
    if (!given)
        length = strnlen((const char *)h + AT_LINK, LINK_LENGTH);
    memcpy(raw, given ? t->pax.linkpath : (const char *)h + AT_LINK, length);
    if (length == 0 || memchr(raw, '\0', length))
        return "it is a link to nothing";
    raw[length] = '\0';
    if (entry->kind == KIND_HARDLINK)
        return name_clean(raw, length, false, entry->target, &reason) == 0 ? NULL
                   : "it is a hard link to a name outside of the archive";
    memcpy(entry->target, raw, length + 1);
    return NULL;
}

static const char *take_numbers(const struct tar *t, const uint8_t *h, struct entry *entry)
{
    uint64_t mode, mtime;
    if (octal(h + AT_MODE, MODE_LENGTH, &mode) < 0)
        return "its mode is not a number";
    entry->mode = (uint32_t)mode & 07777;
    entry->mtime = number(h + AT_MTIME, MTIME_LENGTH, &mtime) < 0 || mtime > INT64_MAX ? 0 : (int64_t)mtime;
    if (number(h + AT_SIZE, SIZE_LENGTH, &entry->size) < 0)
        return "its size is not a number";
    if (t->pax.has_size)
        entry->size = t->pax.size;
    if (entry->size >> 60)
        return "its size is larger than any file";
    return entry->kind != KIND_FILE && entry->size != 0 ? "it is not a file, but has data" : NULL;
}

static int take_entry(struct tar *t, const uint8_t *h, struct entry *entry, struct px_err *e)
{
    char raw[NAME_SIZE];
    size_t length = raw_name(t, h, raw);
    const char *reason = kind_of(h, &entry->kind);
    entry->target[0] = '\0';
    if (!reason && is_old_directory(h, raw, length))
        entry->kind = KIND_DIRECTORY;
    if (!reason)
        reason = take_numbers(t, h, entry);
    if (!reason)
        (void)name_clean(raw, length, entry->kind == KIND_DIRECTORY, entry->name, &reason);
    if (!reason && entry->name[0] == '\0' && entry->kind != KIND_DIRECTORY)
        reason = "it would replace the root";
    if (!reason && (entry->kind == KIND_HARDLINK || entry->kind == KIND_SYMLINK))
        reason = take_target(t, h, entry);
    if (reason)
        return refuse(e, raw, length, reason);
    expect_data(t, entry->size);
    t->pax = (struct pax){0};
    t->long_name = t->long_link = t->extended = false;
    return 1;
}

/* Two blocks of zeros end a tar, and nothing but zeros may follow. */
static int take_end(struct tar *t, struct px_err *e)
{
    const uint8_t *b;
    int blocks = 1, r;
    if (t->extended || t->long_name || t->long_link)
        return refuse(e, "", 0, "it ends where a header announced one more entry");
    while ((r = block(t, &b, e)) > 0) {
        if (memcmp(b, zeros, BLOCK) != 0)
            return refuse(e, "", 0, "there is something behind its end, which others may read differently");
        blocks++;
    }
    if (r < 0)
        return -1;
    return blocks >= 2 ? 0 : refuse(e, "", 0, "it ends in the middle");
}

int tar_next(struct tar *t, struct entry *ret_entry, struct px_err *e)
{
    const uint8_t *h;
    int r = skip_rest(t, e);
    while (r == 0) {
        if ((r = block(t, &h, e)) <= 0)
            return r < 0 ? -1 : refuse(e, "", 0, "it ends in the middle");
        if (memcmp(h, zeros, BLOCK) == 0)
            return take_end(t, e);
        if (!sum_is_right(h))
            return refuse(e, "", 0, "a header in it is damaged");
        if (format_of(h) == UNKNOWN)
            return refuse_header(e, h, "its header is of a format that px does not know");
        r = read_ahead(t, h, e);
        if (r == 0)
            return take_entry(t, h, ret_entry, e);
        r = r < 0 ? r : 0;
    }
    return -1;
}
