/* base/buf.h - bytes that grow up to a stated maximum and remember their first failure.
 *
 * Why:     build freely, check once: `if (b.err < 0)`.
 * Owns:    its memory. Zero-initialised but for max is a valid empty buffer; data is always NUL-terminated once allocated.
 * Mustn't: grow beyond max (-E2BIG) or lose the first error. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;                 /* never more than this many bytes */
    int err;                    /* 0, -ENOMEM or -E2BIG; once set, nothing is added any more */
};

#define PX_BUF(maximum) ((struct px_buf){.max = (maximum)})
#define px_auto_buf __attribute__((cleanup(px_buf_done)))

void px_buf_done(struct px_buf *b);
int px_buf_add(struct px_buf *b, const void *data, size_t len);
int px_buf_puts(struct px_buf *b, const char *text);
int px_buf_putc(struct px_buf *b, char c);
int px_buf_printf(struct px_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds text with a backslash before every byte that stands in `special`. */
int px_buf_escape(struct px_buf *b, const char *text, const char *special);
/* Text for a person: control characters, marks that reorder text, and invalid UTF-8 become \xNN, so that no terminal
 * interprets them and a line stays one line. Only this function does it; px_words (px/px.h) is a printf that calls
 * it. */
int px_buf_quote(struct px_buf *b, const char *text, size_t len);
/* "" if empty, never NULL. */
const char *px_buf_text(const struct px_buf *b);
/* Gives the memory to the caller (free with free()); the buffer is empty afterwards. NULL after an error. */
char *px_buf_take(struct px_buf *b);

/* The first `head` and the last `tail` bytes of a stream of any length, in fixed memory: allocated as it fills. */
struct px_headtail {
    struct px_buf head;
    char *ring;                 /* the last bytes, allocated when the head is full */
    size_t tail_max;
    size_t ring_at;             /* where the next byte goes */
    uint64_t total;             /* all bytes ever offered */
};

void px_headtail_init(struct px_headtail *h, size_t head_max, size_t tail_max);
void px_headtail_done(struct px_headtail *h);
int px_headtail_add(struct px_headtail *h, const void *data, size_t len);
bool px_headtail_truncated(const struct px_headtail *h);
/* Head, then tail in order, into out (no marker between them). */
int px_headtail_join(const struct px_headtail *h, struct px_buf *out);

/* A regular file in an open directory, at most `max` bytes: 0, 1 if there is none, -errno. */
int px_buf_read_file(int dir, const char *name, size_t max, struct px_buf *out);
