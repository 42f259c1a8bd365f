#include "lock/drift.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "lock/names.h"
#include "pep/marker.h"
#include "pep/version.h"

enum { LINE_BYTES = 320, NAME_BYTES = 256, RANGE_BYTES = 1024 };

#define MODE "p0-pinned"

struct search {
    const struct px_drift_asked *asked;
    const struct px_lock *pins;
    struct px_drift *drift;
    struct px_name_index pinned, asked_for;     /* names of the pins, names of the requirements */
    char (*names)[NAME_BYTES];                  /* the names in `asked_for` */
};

__attribute__((format(printf, 2, 3))) static int add(struct search *s, const char *fmt, ...)
{
    char line[LINE_BYTES];
    va_list args;
    if (s->drift->count == PX_DRIFT_MAX)
        return 0;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    for (char *p = line; *p; p++)       /* strings of a file may contain control bytes */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    char *copy = strdup(line);
    if (!copy)
        return -ENOMEM;
    s->drift->items[s->drift->count++] = copy;
    return 0;
}

/* ---- the lock's own head ---- */

static int check_head(struct search *s)
{
    const struct px_lock *pins = s->pins;
    int r = 0;
    if (pins->format != PX_PINS_PX)
        return 0;
    if (pins->version != 1 && pins->version != 2)
        return add(s, "the lock has version %lld, and px knows 1 and 2", (long long)pins->version);
    if (!px_equal(pins->mode, MODE))
        r = add(s, "the lock's mode is '%.64s' and not '" MODE "'", pins->mode ? pins->mode : "");
    if (r == 0 && s->asked->project && !px_equal(pins->project, s->asked->project))
        r = add(s, "the lock is of '%.100s' and not of '%.100s'", pins->project ? pins->project : "",
                s->asked->project);
    if (r == 0 && s->asked->python && !px_equal(pins->python ? pins->python : "", s->asked->python))
        r = add(s, "the lock is for Python '%.64s', the manifest says '%.64s'", pins->python ? pins->python : "",
                s->asked->python);
    return r;
}

/* ---- requirements ---- */

static const struct px_lock_pin *find_pin(const struct search *s, const char *name, size_t length)
{
    char canonical[NAME_BYTES];
    if (px_marker_package_name(name, length, canonical, sizeof canonical) < 0)
        return NULL;
    const struct px_name_at *found = px_names_find(&s->pinned, canonical);
    return found ? &s->pins->items[found->at] : NULL;
}

/* 1, with its parts, if the requirement applies in this environment. */
static int is_asked(const struct search *s, const char *text, struct px_requirement *ret_parts)
{
    char marker[RANGE_BYTES];
    if (px_marker_requirement_parse(text, ret_parts) < 0)
        return 0;
    if (px_fmt(marker, sizeof marker, "%.*s", (int)ret_parts->marker_length,
               ret_parts->marker ? ret_parts->marker : "") < 0)
        return 1;
    return px_marker_holds(marker, s->asked->env) != 0;
}

/* Any pin of that name within the range; a lock may hold one for each system. */
static bool any_fits(const struct search *s, const struct px_lock_pin *first, const struct px_requirement *q)
{
    char range[RANGE_BYTES];
    if (q->url_length || px_fmt(range, sizeof range, "%.*s", (int)q->range_length, q->range ? q->range : "") < 0)
        return true;            /* a URL has no range; the fingerprint shows whether it changed */
    const struct px_name_at *end = s->pinned.items + s->pinned.count;
    for (const struct px_name_at *at = px_names_find(&s->pinned, first->name);
         at && at < end && px_equal(at->name, first->name); at++) {
        const struct px_lock_pin *pin = &s->pins->items[at->at];
        if (!*pin->version || px_version_fits(pin->version, range) != 0)
            return true;
    }
    return false;
}

static int check_requirement(struct search *s, const char *text)
{
    struct px_requirement q;
    if (is_asked(s, text, &q) == 0)
        return 0;
    const struct px_lock_pin *pin = find_pin(s, q.name, q.name_length);
    if (!pin)
        return add(s, "%.200s is not in the lock", text);
    if (!any_fits(s, pin, &q))
        return add(s, "the lock has %.100s %.60s, the manifest asks for %.120s", pin->name, pin->version, text);
    return 0;
}

/* Builds both indices. A requirement that cannot be parsed has no name and is never found. */
static int make_indices(struct search *s)
{
    const struct px_names *list = s->asked->requirements;
    s->names = calloc(list->count + 1, sizeof *s->names);
    s->asked_for.items = calloc(list->count + 1, sizeof *s->asked_for.items);
    if (!s->names || !s->asked_for.items)
        return -ENOMEM;
    for (size_t i = 0; i < list->count; i++) {
        struct px_requirement q;
        if (px_marker_requirement_parse(list->items[i], &q) == 0 &&
            px_marker_package_name(q.name, q.name_length, s->names[i], NAME_BYTES) == 0)
            s->asked_for.items[s->asked_for.count++] = (struct px_name_at){s->names[i], i};
    }
    px_names_sort(&s->asked_for);
    return px_names_of_pins(s->pins, &s->pinned);
}

static void drop_indices(struct search *s)
{
    px_names_done(&s->pinned);
    px_names_done(&s->asked_for);
    free(s->names);
}

/* ---- pins ---- */

static int check_pin(struct search *s, const struct px_lock_pin *pin)
{
    int r = pin->direct && !px_names_find(&s->asked_for, pin->name)
                ? add(s, "%.200s is in the lock, and nothing asks for it", pin->name)
                : 0;
    for (size_t i = 0; r == 0 && i < pin->requires_count; i++) {
        struct px_requirement q;
        if (is_asked(s, pin->requires[i], &q) && !find_pin(s, q.name, q.name_length))
            r = add(s, "%.100s needs %.120s, which is not in the lock", pin->name, pin->requires[i]);
    }
    return r;
}

int px_drift_find(const struct px_drift_asked *asked, const struct px_lock *pins, struct px_drift *ret_drift,
                  struct px_err *e)
{
    struct px_drift drift = {0};
    struct search s = {.asked = asked, .pins = pins, .drift = &drift};
    int r = make_indices(&s);
    if (r == 0)
        r = check_head(&s);
    bool readable = pins->format != PX_PINS_PX || pins->version == 1;
    for (size_t i = 0; r == 0 && readable && i < asked->requirements->count; i++)
        r = check_requirement(&s, asked->requirements->items[i]);
    for (size_t i = 0; r == 0 && pins->format == PX_PINS_PX && readable && i < pins->count; i++)
        r = check_pin(&s, &pins->items[i]);
    drop_indices(&s);
    if (r < 0) {
        px_drift_done(&drift);
        return px_fail(e, PX_E_MEMORY, r, "the lock's differences");
    }
    *ret_drift = drift;
    return 0;
}

void px_drift_done(struct px_drift *drift)
{
    for (size_t i = 0; i < drift->count; i++)
        free(drift->items[i]);
    *drift = (struct px_drift){0};
}
