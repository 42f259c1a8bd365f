/* Reading text: a window of characters out of a file of bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "files/files.h"

enum { BLOCK = 256, GROWTH_MIN = 4096 };

/* ---- characters ---- */

/* A block that is all ASCII is as many characters as bytes; compilers make vector code of the loop. */
static bool block_is_ascii(const char *data)
{
    unsigned char all = 0;
    for (size_t i = 0; i < BLOCK; i++)
        all |= (unsigned char)data[i];
    return all < 0x80;
}

/* Walks at most `max` characters from *at; how many there were, or -EILSEQ. */
static int64_t walk_chars(const char *data, size_t len, size_t *at, uint64_t max)
{
    uint64_t chars = 0;
    size_t i = *at;
    while (i < len && chars < max) {
        if (len - i >= BLOCK && max - chars >= BLOCK && block_is_ascii(data + i)) {
            i += BLOCK;
            chars += BLOCK;
            continue;
        }
        for (size_t end = len - i < BLOCK ? len : i + BLOCK; i < end && chars < max; chars++) {
            size_t n = (unsigned char)data[i] < 0x80 ? 1 : px_utf8_length(data + i, len - i);
            if (n == 0)
                return -EILSEQ;
            i += n;
        }
    }
    *at = i;
    return (int64_t)chars;
}

int px_files_window_find(const char *data, size_t len, uint64_t offset, uint64_t max, struct px_window *ret)
{
    size_t at = 0;
    int64_t before = walk_chars(data, len, &at, offset);
    size_t begin = at;
    int64_t chars = before < 0 ? before : walk_chars(data, len, &at, max);
    size_t end = at;
    int64_t rest = chars < 0 ? chars : walk_chars(data, len, &at, UINT64_MAX);
    if (rest < 0)
        return (int)rest;
    *ret = (struct px_window){.begin = begin, .end = end, .offset = offset, .chars = (uint64_t)chars,
                              .total = (uint64_t)(before + chars + rest)};
    return 0;
}

/* ---- bytes ---- */

/* A file may grow while it is read, and some say 0 until then: the size is where to begin, the maximum where to end. */
int px_read_whole(int fd, uint64_t size, uint64_t max, char **ret_data, size_t *ret_len)
{
    size_t cap = (size_t)(size < max ? size : max) + 1, len = 0;
    px_auto_free char *data = malloc(cap + 1);
    if (!data)
        return -ENOMEM;
    for (;;) {
        ssize_t n = px_read_some(fd, data + len, cap - len);
        if (n < 0)
            return (int)n;
        len += (size_t)n;
        if (n == 0 || (len == size && len <= max && len < cap))
            break;
        if (len > max)
            return -EFBIG;
        if (len < cap)
            continue;
        cap = cap < GROWTH_MIN ? GROWTH_MIN : cap * 2;
        cap = cap > max ? (size_t)max + 1 : cap;
        char *more = realloc(data, cap + 1);
        if (!more)
            return -ENOMEM;
        data = more;
    }
    data[len] = '\0';
    *ret_data = px_take(&data);
    *ret_len = len;
    return 0;
}

/* ---- a window of a file ---- */

void px_files_text_done(struct px_files_text *text)
{
    free(text->data);
    *text = (struct px_files_text){0};
}

static void cut(struct px_files_text *t, const struct px_window *w)
{
    if (w->begin > 0)
        memmove(t->data, t->data + w->begin, w->end - w->begin);
    if (t->len - (w->end - w->begin) > GROWTH_MIN) {
        char *less = realloc(t->data, w->end - w->begin + 1);
        if (less)
            t->data = less;
    }
    t->len = w->end - w->begin;
    t->data[t->len] = '\0';
    t->offset = w->offset;
    t->chars = w->chars;
    t->total_chars = w->total;
    t->truncated = w->offset < w->total && w->chars < w->total - w->offset;
}

int px_files_read(const struct px_files *files, const char *path, uint64_t offset, uint64_t max_chars,
                  struct px_files_text *ret_text, struct px_err *e)
{
    PX_ERR(e);
    struct px_place place;
    struct px_window window = {0};
    struct px_files_text text = {0};
    struct stat st;
    px_auto_fd int fd = px_files_resolve_open(files, path, &place, &st, e);
    if (fd < 0)
        return -1;
    int r = px_read_whole(fd, (uint64_t)st.st_size, place.root->max_bytes, &text.data, &text.len);
    if (r == -EFBIG)
        return px_files_error_too_large("read", path, place.root->max_bytes + 1, place.root->max_bytes, e);
    if (r < 0)
        return px_files_error_sys(files, "read", path, r, e);
    if (px_files_window_find(text.data, text.len, offset, max_chars, &window) < 0) {
        px_files_text_done(&text);
        return px_files_error_not_text("read", path, e);
    }
    cut(&text, &window);
    *ret_text = text;
    return 0;
}
