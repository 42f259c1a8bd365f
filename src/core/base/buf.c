/* base/buf.c - bytes that grow up to a stated maximum. */
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"

enum { CAP_FIRST = 64, PIECE = 1 << 16 };

static int set_error(struct px_buf *b, int err)
{
    if (b->err == 0)
        b->err = err;
    return b->err;
}

/* Room for `more` bytes and the NUL. A buffer over a fixed array (cap > max from the start) never reaches realloc:
 * base/err.c relies on it. */
static int reserve_room(struct px_buf *b, size_t more)
{
    if (b->err < 0)
        return b->err;
    if (b->len > b->max || more > b->max - b->len)
        return set_error(b, -E2BIG);

    size_t need = b->len + more;
    if (need == SIZE_MAX)
        return set_error(b, -E2BIG);
    if (need < b->cap)
        return 0;

    size_t cap = b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;
    if (cap < CAP_FIRST)
        cap = CAP_FIRST;
    if (cap > b->max)
        cap = b->max;           /* need <= max, so the next line makes it max + 1 if it must */
    if (cap <= need)
        cap = need + 1;
    char *data = realloc(b->data, cap);
    if (!data)
        return set_error(b, -ENOMEM);
    b->data = data;
    b->cap = cap;
    return 0;
}

/* Declared in base/fd.h with the other cleanups. It is here because the child uses fd.c too, and must not link
 * free(). */
void px_free_done(void *pointer_to_pointer)
{
    void *p;

    memcpy(&p, pointer_to_pointer, sizeof p);   /* the variable may be a pointer of any type */
    free(p);
}

void px_buf_done(struct px_buf *b)
{
    if (!b)
        return;
    free(b->data);
    *b = (struct px_buf){.max = b->max};
}

int px_buf_add(struct px_buf *b, const void *data, size_t len)
{
    int r = reserve_room(b, len);

    if (r < 0)
        return r;
    if (len > 0)                /* data may be NULL then */
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = 0;
    return 0;
}

int px_buf_puts(struct px_buf *b, const char *text)
{
    return px_buf_add(b, text, strlen(text));
}

int px_buf_putc(struct px_buf *b, char c)
{
    return px_buf_add(b, &c, 1);
}

int px_buf_printf(struct px_buf *b, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        return set_error(b, -EINVAL);
    int r = reserve_room(b, (size_t)n);
    if (r < 0)
        return r;
    va_start(args, fmt);
    (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, args);
    va_end(args);
    b->len += (size_t)n;
    return 0;
}

int px_buf_escape(struct px_buf *b, const char *text, const char *special)
{
    for (; *text; text++) {
        char pair[2] = {'\\', *text};
        bool escaped = strchr(special, *text) != NULL;

        px_buf_add(b, escaped ? pair : pair + 1, escaped ? 2 : 1);
    }
    return b->err;
}

static void add_hex(struct px_buf *b, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    char out[4] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};

    px_buf_add(b, out, sizeof out);
}

/* One character at a time, so that a full buffer ends after a character, never inside one. */
int px_buf_quote(struct px_buf *b, const char *text, size_t len)
{
    for (size_t i = 0; i < len && b->err == 0;) {
        const unsigned char *at = (const unsigned char *)text + i;
        size_t n = px_utf8_length(text + i, len - i);

        if (n > 0 && !px_utf8_is_control(text + i, n)) {
            px_buf_add(b, at, n);
        } else {
            n = n ? n : 1;
            for (size_t k = 0; k < n; k++)
                add_hex(b, at[k]);
        }
        i += n;
    }
    return b->err;
}

const char *px_buf_text(const struct px_buf *b)
{
    return b->data ? b->data : "";
}

char *px_buf_take(struct px_buf *b)
{
    if (!b->data)
        (void)px_buf_add(b, NULL, 0);           /* an empty text is valid */
    char *data = b->data;
    b->data = NULL;
    b->len = b->cap = 0;
    if (b->err < 0) {
        free(data);
        return NULL;
    }
    return data;
}

void px_headtail_init(struct px_headtail *h, size_t head_max, size_t tail_max)
{
    *h = (struct px_headtail){.head = PX_BUF(head_max), .tail_max = tail_max};
}

void px_headtail_done(struct px_headtail *h)
{
    if (!h)
        return;
    px_buf_done(&h->head);
    free(h->ring);
    px_headtail_init(h, h->head.max, h->tail_max);
}

/* How many bytes of the ring are valid. What did not go into the head went through the ring. */
static size_t ring_len(const struct px_headtail *h)
{
    uint64_t passed = h->total - h->head.len;

    if (!h->ring)
        return 0;
    return passed < h->tail_max ? (size_t)passed : h->tail_max;
}

static void ring_add(struct px_headtail *h, const char *data, size_t len)
{
    if (len > h->tail_max) {    /* only the end is kept; it fills the ring wherever it starts */
        data += len - h->tail_max;
        len = h->tail_max;
    }
    size_t first = h->tail_max - h->ring_at;
    if (first > len)
        first = len;
    memcpy(h->ring + h->ring_at, data, first);
    memcpy(h->ring, data + first, len - first);
    h->ring_at = (h->ring_at + len) % h->tail_max;
}

int px_headtail_add(struct px_headtail *h, const void *data, size_t len)
{
    const char *from = data;
    size_t room = h->head.max - h->head.len;
    size_t first = len < room ? len : room;

    if (len == 0)
        return h->head.err;
    h->total += len;            /* counted even without memory: the caller reports the total */
    if (first > 0 && px_buf_add(&h->head, from, first) < 0)
        return h->head.err;
    if (h->head.err < 0 || len == first || h->tail_max == 0)
        return h->head.err;
    if (!h->ring && !(h->ring = malloc(h->tail_max)))
        return h->head.err = -ENOMEM;
    ring_add(h, from + first, len - first);
    return 0;
}

bool px_headtail_truncated(const struct px_headtail *h)
{
    return h->total > h->head.len + (uint64_t)ring_len(h);
}

int px_headtail_join(const struct px_headtail *h, struct px_buf *out)
{
    size_t len = ring_len(h);
    size_t start = len < h->tail_max ? 0 : h->ring_at;

    px_buf_add(out, px_buf_text(&h->head), h->head.len);
    if (len > 0) {
        px_buf_add(out, h->ring + start, len - start);
        px_buf_add(out, h->ring, start);
    }
    return out->err;
}

int px_buf_read_file(int dir, const char *name, size_t max, struct px_buf *out)
{
    struct stat st;
    px_auto_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? 1 : -EINVAL;
    *out = PX_BUF(max);
    px_auto_free char *piece = malloc(PIECE);
    ssize_t n = piece ? 0 : -ENOMEM;
    while (n >= 0 && out->err == 0 && (n = px_read_some(fd, piece, PIECE)) > 0)
        px_buf_add(out, piece, (size_t)n);
    int r = n < 0 ? (int)n : out->err == -E2BIG ? -EFBIG : out->err;
    if (r < 0)
        px_buf_done(out);
    return r;
}
