/* Reads a requirements.txt in which every line is pinned with ==, as a lock. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "lock/lock_internal.h"
#include "pep/marker.h"

enum { LINE_BYTES = 64 << 10 };

/* One logical line: backslashes at line ends joined, comments cut off. Moves past it; returns the number of physical
 * lines. */
static uint32_t take_line(const char **p, const char *end, struct px_buf *out)
{
    uint32_t lines = 0;
    bool more = true;
    while (more && *p < end) {
        const char *stop = memchr(*p, '\n', (size_t)(end - *p));
        size_t n = (size_t)((stop ? stop : end) - *p);
        size_t use = n && (*p)[n - 1] == '\r' ? n - 1 : n;
        more = use && (*p)[use - 1] == '\\';
        px_buf_add(out, *p, more ? use - 1 : use);
        *p += n + (stop ? 1 : 0);
        lines++;
    }
    char *text = out->data;
    for (size_t i = 0; text && text[i]; i++)
        if (text[i] == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
            text[i] = '\0';
            out->len = i;
            break;
        }
    return lines;
}

static int take_hashes(struct px_lock_reading *r, uint32_t line, char *options)
{
    struct px_lock_pin *pin = &r->pins->items[r->pins->count - 1];
    for (char *word = options + strspn(options, " \t"), *next; *word; word = next) {
        size_t n = strcspn(word, " \t");
        char name[128];
        next = word + n + strspn(word + n, " \t");
        word[n] = '\0';
        if (!px_starts_with(word, "--hash="))
            return px_lock_wrong(r, line, "only --hash is understood behind a requirement");
        /* The line does not name a file; the hash identifies it. */
        if (px_fmt(name, sizeof name, "%s-%s#%zu", pin->name, pin->version, pin->file_count) < 0)
            return px_lock_wrong(r, line, "the name is too long");
        const char *hash = px_lock_keep(r, word + 7, strlen(word + 7)), *kept = px_lock_keep(r, name, strlen(name));
        if (!hash || !kept || px_lock_add_file(r, line, kept, NULL, hash, 0) < 0)
            return -1;
    }
    return 0;
}

static int take_requirement(struct px_lock_reading *r, uint32_t line, char *text)
{
    struct px_requirement q;
    char *options = strstr(text, " --");
    if (options)
        *options++ = '\0';
    if (px_marker_requirement_parse(text, &q) < 0)
        return px_lock_wrong(r, line, "this is not a requirement");
    if (q.range_length < 3 || memcmp(q.range, "==", 2) != 0 || memchr(q.range, ',', q.range_length) || memchr(q.range, '*', q.range_length))
        return px_lock_wrong(r, line, "a requirement that is not pinned with ==, so the file is not a lock");
    const char *version = q.range + 2 + (q.range[2] == '=');
    size_t length = q.range_length - (size_t)(version - q.range);
    while (length && *version == ' ') {
        version++;
        length--;
    }
    const char *name = px_lock_keep(r, q.name, q.name_length);
    struct px_lock_pin *pin = px_lock_add(r, line, name, px_lock_keep(r, version, length));
    if (!pin)
        return -1;
    pin->marker = px_lock_keep(r, q.marker, q.marker_length);
    return options ? take_hashes(r, line, options) : 0;
}

int px_lock_read_requirements(struct px_lock_reading *r, const char *text, size_t length)
{
    const char *p = text, *end = text + length;
    uint32_t line = 1;
    if (memchr(text, '\0', length))
        return px_lock_wrong(r, 1, "a NUL byte is in the file");
    r->pins->version = 1;
    while (p < end) {
        px_auto_buf struct px_buf out = PX_BUF(LINE_BYTES);
        uint32_t at = line;
        line += take_line(&p, end, &out);
        if (out.err < 0)
            return px_lock_wrong(r, at, "the line is too long");
        char *start = out.data ? out.data + strspn(out.data, " \t") : NULL;
        if (!start || !*start)
            continue;
        if (*start == '-')
            return px_lock_wrong(r, at, "options have no place in a lock: only pinned requirements with hashes");
        if (take_requirement(r, at, start) < 0)
            return -1;
    }
    return 0;
}
