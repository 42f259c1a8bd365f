/* Reading tar from a box: ustar, with GNU's and pax's long names and sizes. Everything in it is hostile. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "named/tar.h"

enum { EXTRA_MAX = 64 << 10, NAME_SIZE = 100, PREFIX_SIZE = 155 };
/* Where the fields of a header are. */
enum { NAME = 0, MODE = 100, SIZE = 124, MTIME = 136, CHECKSUM = 148, TYPE = 156, LINK = 157, MAGIC = 257, PREFIX = 345 };

void px_tar_reader_init(struct px_tar_reader *r, const struct px_tar_sink *sink)
{
    *r = (struct px_tar_reader){.sink = *sink, .extra = PX_BUF(EXTRA_MAX)};
}

void px_tar_reader_done(struct px_tar_reader *r)
{
    px_buf_done(&r->extra);
}

static int bad(struct px_err *e, const char *what)
{
    px_fail(e, PX_E_IO, 0, "the archive that came from the box is not right: %s", what);
    return px_why(e, "tar in the box is broken, or something in the box means harm.");
}

/* ---- fields ---- */

/* Octal digits, or GNU's binary form for what does not fit. */
static int number(const char *field, size_t size, uint64_t *ret)
{
    uint64_t value = 0;
    const unsigned char *p = (const unsigned char *)field;
    if (p[0] & 0x80) {
        for (size_t i = 1; i < size; i++) {
            if (value >> 55)
                return -ERANGE;
            value = value << 8 | p[i];
        }
        if (p[0] != 0x80 || value >> 62)
            return -ERANGE;
        *ret = value;
        return 0;
    }
    size_t i = 0;
    while (i < size && p[i] == ' ')
        i++;
    for (; i < size && p[i] >= '0' && p[i] <= '7'; i++)
        value = value << 3 | (p[i] - '0');
    if (i < size && p[i] != ' ' && p[i] != '\0')
        return -EINVAL;
    *ret = value;
    return 0;
}

static int check_sum(const char *block)
{
    uint64_t want = 0, sum = 0;
    for (int i = 0; i < PX_TAR_BLOCK; i++)
        sum += i >= CHECKSUM && i < CHECKSUM + 8 ? ' ' : (unsigned char)block[i];
    return number(block + CHECKSUM, 8, &want) == 0 && want == sum ? 0 : -EINVAL;
}

static bool is_zero(const char *block)
{
    for (int i = 0; i < PX_TAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

/* "./a//b/" -> "a/b". -EINVAL for what leads out, 0 with "" for the top itself. */
static int clean_name(const char *text, char out[PX_TAR_NAME_MAX])
{
    size_t at = 0, depth = 0;
    if (*text == '/')
        return -EINVAL;
    while (*text) {
        size_t n = strcspn(text, "/");
        bool dot = n == 1 && text[0] == '.';
        if (n == 2 && text[0] == '.' && text[1] == '.')
            return -EINVAL;
        if (n > 255 || at + n + 2 > PX_TAR_NAME_MAX)
            return -ENAMETOOLONG;
        if (n > 0 && !dot) {
            if (++depth > PX_TAR_DEPTH_MAX)
                return -ENAMETOOLONG;
            if (at > 0)
                out[at++] = '/';
            memcpy(out + at, text, n);
            at += n;
        }
        text += n + (text[n] == '/');
    }
    out[at] = '\0';
    return 0;
}

/* What stood ahead of the header, or the header's own. */
static int entry_name(const struct px_tar_reader *r, const char *ahead, size_t offset, char out[PX_TAR_NAME_MAX])
{
    char text[PREFIX_SIZE + NAME_SIZE + 2];
    if (*ahead)
        return clean_name(ahead, out);
    const char *prefix = r->block + PREFIX;
    bool ustar = memcmp(r->block + MAGIC, "ustar\0", 6) == 0;   /* GNU's own form has other things there */
    int n = (int)strnlen(r->block + offset, NAME_SIZE), p = ustar && offset == NAME ? (int)strnlen(prefix, PREFIX_SIZE) : 0;
    if (px_fmt(text, sizeof text, "%.*s%s%.*s", p, prefix, p ? "/" : "", n, r->block + offset) < 0)
        return -ENAMETOOLONG;
    return clean_name(text, out);
}

/* ---- pax ---- */

/* "LENGTH KEY=VALUE\n" records; those that matter to us. */
static int pax_record(struct px_tar_reader *r, const char *key, const char *value, size_t length)
{
    char digits[24];
    bool path = px_equal(key, "path");
    if (path || px_equal(key, "linkpath")) {
        if (length >= PX_TAR_NAME_MAX || memchr(value, '\0', length))
            return -ENAMETOOLONG;
        memcpy(path ? r->name : r->link, value, length);
        (path ? r->name : r->link)[length] = '\0';
    }
    if (px_equal(key, "size")) {
        if (length >= sizeof digits)
            return -ERANGE;
        memcpy(digits, value, length);
        digits[length] = '\0';
        r->has_size = true;
        return px_parse_u64(digits, UINT64_MAX >> 2, &r->size);
    }
    return 0;
}

static int pax_records(struct px_tar_reader *r)
{
    const char *p = r->extra.data, *end = p + r->extra.len;
    while (p < end) {
        uint64_t length = 0;
        char digits[12], key[64];
        size_t n = 0;
        while (p + n < end && n < sizeof digits - 1 && p[n] >= '0' && p[n] <= '9') {
            digits[n] = p[n];
            n++;
        }
        digits[n] = '\0';
        if (px_parse_u64(digits, EXTRA_MAX, &length) < 0 || length > (uint64_t)(end - p) || length < n + 3 || p[n] != ' ' ||
            p[length - 1] != '\n')
            return -EINVAL;
        const char *word = p + n + 1, *last = p + length - 1, *equal = memchr(word, '=', (size_t)(last - word));
        if (!equal)
            return -EINVAL;
        size_t k = (size_t)(equal - word);
        int done = k < sizeof key && px_fmt(key, sizeof key, "%.*s", (int)k, word) >= 0
                       ? pax_record(r, key, equal + 1, (size_t)(last - equal - 1))
                       : 0;
        if (done < 0)
            return done;
        p += length;
    }
    return 0;
}

/* ---- entries ---- */

static int announce(struct px_tar_reader *r, uint64_t size, int state)
{
    r->left = size;
    r->pad = (PX_TAR_BLOCK - size % PX_TAR_BLOCK) % PX_TAR_BLOCK;
    r->state = size ? state : PX_TAR_HEADER;
    r->extra.len = 0;
    return 0;
}

static int begin_entry(struct px_tar_reader *r, char type, uint64_t size, struct px_err *e)
{
    char name[PX_TAR_NAME_MAX], target[PX_TAR_NAME_MAX] = "";
    uint64_t mode = 0, mtime = 0;
    struct px_tar_entry entry = {.name = name, .target = target};
    int named = entry_name(r, r->name, NAME, name);
    if (named >= 0 && type == '1')
        named = entry_name(r, r->link, LINK, target);
    r->name[0] = r->link[0] = '\0';
    r->has_size = false;
    if (named < 0)
        return bad(e, "a name leads out of its directory, or is too long");
    if (number(r->block + MODE, 8, &mode) < 0)
        return bad(e, "a mode is not a number");
    if (number(r->block + MTIME, 12, &mtime) < 0)
        mtime = 0;
    bool file = type == '0' || type == '\0' || type == '7', directory = type == '5';
    if (++r->entries > PX_TAR_ENTRIES_MAX)
        return bad(e, "it has too many entries");
    entry.type = directory ? PX_TAR_DIRECTORY : file ? PX_TAR_FILE : PX_TAR_LINK;
    entry.mode = (uint32_t)(mode & 0777);       /* set-id bits end here */
    entry.size = file ? size : 0;
    entry.mtime = (int64_t)mtime;
    if ((!file && !directory && type != '1') || (!directory && !name[0]) || (type == '1' && !target[0])) {
        r->skipped++;
        return announce(r, type >= '1' && type <= '6' ? 0 : size, PX_TAR_SKIP);
    }
    if (name[0] && r->sink.begin(r->sink.user, &entry, e) < 0)
        return -1;
    if (file && size == 0 && r->sink.end(r->sink.user, e) < 0)
        return -1;
    return announce(r, entry.size, PX_TAR_DATA);
}

static int take_header(struct px_tar_reader *r, struct px_err *e)
{
    uint64_t size = 0;
    char type = r->block[TYPE];
    if (is_zero(r->block)) {
        r->state = PX_TAR_OVER;
        return 0;
    }
    if (check_sum(r->block) < 0)
        return bad(e, "a header's sum is wrong");
    if (number(r->block + SIZE, 12, &size) < 0)
        return bad(e, "a size is not a number");
    if (type == 'L' || type == 'K' || type == 'x' || type == 'g') {
        if (size > EXTRA_MAX)
            return bad(e, "a name or what is said of a file is too long");
        return announce(r, size,
                        type == 'L'   ? PX_TAR_LONG_NAME
                        : type == 'K' ? PX_TAR_LONG_LINK
                        : type == 'x' ? PX_TAR_PAX
                                      : PX_TAR_SKIP);
    }
    return begin_entry(r, type, r->has_size ? r->size : size, e);
}

/* What was announced is all there. */
static int finish(struct px_tar_reader *r, struct px_err *e)
{
    int state = r->state;
    r->state = PX_TAR_HEADER;
    if (state == PX_TAR_DATA)
        return r->sink.end(r->sink.user, e);
    if (state == PX_TAR_LONG_NAME || state == PX_TAR_LONG_LINK) {
        char *to = state == PX_TAR_LONG_NAME ? r->name : r->link;
        size_t n = strnlen(r->extra.data, r->extra.len);
        if (n >= PX_TAR_NAME_MAX)
            return bad(e, "a name is too long");
        memcpy(to, r->extra.data, n);
        to[n] = '\0';
    }
    if (state == PX_TAR_PAX && pax_records(r) < 0)
        return bad(e, "what it says of a file cannot be read");
    return 0;
}

static int take_content(struct px_tar_reader *r, const char *data, size_t size, struct px_err *e)
{
    if (r->state == PX_TAR_DATA)
        return r->sink.data(r->sink.user, data, size, e);
    if (r->state != PX_TAR_SKIP && px_buf_add(&r->extra, data, size) < 0)
        return px_no_memory(e);
    return 0;
}

int px_tar_read(struct px_tar_reader *r, const char *data, size_t size, struct px_err *e)
{
    while (size > 0 && r->state != PX_TAR_OVER) {
        size_t n;
        if (r->left > 0) {
            n = size < r->left ? size : (size_t)r->left;
            if (take_content(r, data, n, e) < 0)
                return -1;
            r->left -= n;
            if (r->left == 0 && finish(r, e) < 0)
                return -1;
        } else if (r->pad > 0) {
            n = size < r->pad ? size : (size_t)r->pad;
            r->pad -= n;
        } else {
            n = size < PX_TAR_BLOCK - r->have ? size : PX_TAR_BLOCK - r->have;
            memcpy(r->block + r->have, data, n);
            r->have += n;
            if (r->have == PX_TAR_BLOCK) {
                r->have = 0;
                if (take_header(r, e) < 0)
                    return -1;
            }
        }
        data += n;
        size -= n;
    }
    return 0;
}

int px_tar_read_end(struct px_tar_reader *r, struct px_err *e)
{
    bool between = r->left == 0 && r->have == 0 && (r->state == PX_TAR_OVER || r->state == PX_TAR_HEADER);
    return between ? 0 : bad(e, "it ends too early");
}
