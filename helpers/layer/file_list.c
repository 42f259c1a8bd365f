/* The files that are to be packed, by name. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "helpers/layer/layer.h"

enum { TEXT_MAX = 64 << 20 };

static int bad(struct px_err *e)
{
    return px_fail(e, PX_E_INTERNAL, 0, "the list of files to pack is not one");
}

static int split(struct wanted *w, size_t size, struct px_err *e)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += w->text[i] == '\0';
    w->items = calloc(count + 1, sizeof *w->items);
    if (!w->items)
        return px_no_memory(e);
    for (const char *at = w->text; at < w->text + size; at += strlen(at) + 1) {
        char clean[NAME_SIZE];
        const char *reason;
        if (name_clean(at, strlen(at), false, clean, &reason) < 0 || !px_equal(clean, at) ||
            (w->count > 0 && strcmp(w->items[w->count - 1], at) >= 0))
            return bad(e);
        w->items[w->count++] = at;
    }
    return 0;
}

int wanted_read(int fd, struct wanted *ret_wanted, struct px_err *e)
{
    struct wanted w = {0};
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size > TEXT_MAX)
        return bad(e);
    size_t size = (size_t)st.st_size;
    w.text = malloc(size + 1);
    if (!w.text)
        return px_no_memory(e);
    int r = px_read_full(fd, w.text, size) != (ssize_t)size || (size > 0 && w.text[size - 1]) ? bad(e) : split(&w, size, e);
    if (r < 0)
        wanted_done(&w);
    else
        *ret_wanted = w;
    return r;
}

void wanted_done(struct wanted *wanted)
{
    free(wanted->items);
    free(wanted->text);
    *wanted = (struct wanted){0};
}

/* The first that is not before `path` followed by `end`. */
static size_t first_from(const struct wanted *w, const char *path, char end)
{
    size_t low = 0, high = w->count, n = strlen(path);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int r = strncmp(w->items[middle], path, n);
        bool before = r < 0 || (r == 0 && (unsigned char)w->items[middle][n] < (unsigned char)end);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

enum want wanted_find(const struct wanted *wanted, const char *path, size_t *ret_at)
{
    size_t n = strlen(path), at = first_from(wanted, path, '\0');
    if (at < wanted->count && px_equal(wanted->items[at], path)) {
        *ret_at = at;
        return WANT_FILE;
    }
    at = first_from(wanted, path, '/');
    return at < wanted->count && strncmp(wanted->items[at], path, n) == 0 && wanted->items[at][n] == '/' ? WANT_DIRECTORY
                                                                                                        : WANT_NOT;
}
