#include "env/messages.h"

#include <string.h>

#include "base/text.h"
#include "env/tables.h"

enum kind { LIBRARY, FLAG, HEADER, PROGRAM, MODULE };

/* The name is between the two strings, on one line. */
static const struct {
    const char *before, *after;
    enum kind kind;
} patterns[] = {
    {"error while loading shared libraries: ", ": cannot open shared object file", LIBRARY},
    {"ImportError: ", ": cannot open shared object file", LIBRARY},
    {"OSError: ", ": cannot open shared object file", LIBRARY},
    {"Error loading shared library ", ": No such file or directory", LIBRARY},
    {"fatal error: ", ": No such file or directory", HEADER},
    {"fatal error: '", "' file not found", HEADER},
    {"cannot find -l", "", FLAG},
    {"Package ", " was not found in the pkg-config search path", MODULE},
    {"No package '", "' found", MODULE},
    {"Package '", "' not found", MODULE},
    {"Dependency \"", "\" not found", MODULE},
    {"Error: ", " executable not found", PROGRAM},
    {"error: ", " executable not found", PROGRAM},
    {"", ": command not found", PROGRAM},
    {"", ": not found", PROGRAM},
    {"No such file or directory: '", "'", PROGRAM},
};

static const char *find(const char *text, size_t length, const char *what)
{
    return memmem(text, length, what, strlen(what));
}

static const char *capability_of(enum kind kind, const char *name)
{
    const struct px_soname *row;
    switch (kind) {
    case LIBRARY:
        row = px_tables_soname_find(name);
        /* the capability with fewer packages */
        return row && !px_tables_soname_in(row, "debian-13") ? row->capability : NULL;
    case FLAG:
        row = px_tables_soname_of_flag(name);
        return row ? row->capability : NULL;
    case HEADER: return px_tables_header_capability(name);
    case PROGRAM: return px_tables_probe_capability(PX_PROBE_PROGRAM, name);
    case MODULE: return px_tables_probe_capability(PX_PROBE_PKG_CONFIG, name);
    }
    return NULL;
}

/* Shared libraries and programs are in the capability's own packages; everything else is in its development
 * packages. */
static bool is_for_building(enum kind kind, const char *name)
{
    return kind == PROGRAM ? px_tables_probe_capability(PX_PROBE_TOOL, name) != NULL : kind != LIBRARY;
}

/* The name between `from` and `to`: the last word where nothing stands before it ("sh: 1: pg_config: not found"). */
static bool take_name(const char *from, const char *to, bool last_word, char *out, size_t size)
{
    if (last_word)
        for (const char *p = from; p < to; p++)
            if (*p == ' ' || *p == '/')
                from = p + 1;
    return to > from && px_fmt(out, size, "%.*s", (int)(to - from), from) >= 0;
}

static bool match_line(const char *line, size_t length, size_t pattern, struct px_missing *ret)
{
    const char *before = patterns[pattern].before, *after = patterns[pattern].after;
    const char *at = *before ? find(line, length, before) : line;
    if (!at)
        return false;
    at += strlen(before);
    size_t left = length - (size_t)(at - line);
    const char *end = *after ? find(at, left, after) : at + strcspn(at, " \t\r\n:");
    if (!end || end > at + left || !take_name(at, end, !*before, ret->what, sizeof ret->what))
        return false;
    const char *capability = capability_of(patterns[pattern].kind, ret->what);
    if (!capability || !*capability)
        return false;
    ret->capability = capability;
    ret->build = is_for_building(patterns[pattern].kind, ret->what);
    return true;
}

bool px_messages_missing(const char *text, size_t length, struct px_missing *ret_missing)
{
    const char *end = text + length;
    struct px_missing found = {.capability = NULL};
    if (length > PX_MESSAGE_BYTES_MAX)
        text = end - PX_MESSAGE_BYTES_MAX;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);
        for (size_t i = 0; i < PX_COUNT_OF(patterns); i++)
            if (match_line(text, n, i, &found)) {
                *ret_missing = found;
                return true;
            }
        text += n + 1;
    }
    return false;
}
