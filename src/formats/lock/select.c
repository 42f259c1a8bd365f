/* Selects the packages of a lock for an environment, and one file of each. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "lock/lock.h"
#include "lock/names.h"
#include "pep/marker.h"
#include "pep/tags.h"
#include "pep/version.h"

enum { EXTRAS_MAX = 1000 };

struct choice {
    const struct px_lock *pins;
    const struct px_marker_env *env;
    const struct px_tags *tags;
    const char *const *groups;
    bool *wanted;               /* for each pin */
    struct px_name_index index; /* only for locks with a graph */
    struct px_err *e;
};

static int wrong_marker(const struct choice *c, const struct px_lock_pin *pin, const char *marker)
{
    px_fail(c->e, PX_E_LOCK_FORMAT, 0, "the marker of '%s' cannot be read", pin->name);
    return px_why(c->e, "'%.200s' does not follow the grammar of environment markers (PEP 508).", marker);
}

/* ---- by markers alone ---- */

static int choose_by_markers(struct choice *c)
{
    for (size_t i = 0; i < c->pins->count; i++) {
        const struct px_lock_pin *pin = &c->pins->items[i];
        int holds = px_marker_holds(pin->marker, c->env);
        if (holds < 0)
            return wrong_marker(c, pin, pin->marker);
        c->wanted[i] = holds && !pin->own;
    }
    return 0;
}

/* ---- by walking from the project (uv) ---- */

struct step {                   /* a package, with one extra of it or none */
    size_t pin;
    const char *extra;
    size_t before;              /* index + 1 of the previous step of the same package; 0: none */
};

struct walk {
    struct choice *c;
    struct step *steps;         /* all steps, done and pending, without duplicates */
    size_t count, at;
    size_t *last;               /* for each pin, index + 1 of its latest step */
};

static int add_step(struct walk *w, size_t pin, const char *extra)
{
    size_t others = 0;
    for (size_t i = w->last[pin]; i; i = w->steps[i - 1].before, others++)
        if (px_equal(w->steps[i - 1].extra, extra))
            return 0;
    if (others > EXTRAS_MAX)
        return px_fail(w->c->e, PX_E_LOCK_FORMAT, 0, "the lock asks for more than %d extras of one package", EXTRAS_MAX);
    if (w->count >= 4 * (size_t)PX_PINS_MAX)
        return px_fail(w->c->e, PX_E_LOCK_FORMAT, 0, "the lock's graph is too large");
    if ((w->count & (w->count - 1)) == 0) {
        struct step *steps = realloc(w->steps, (w->count ? w->count * 2 : 1) * sizeof *steps);
        if (!steps)
            return px_no_memory(w->c->e);
        w->steps = steps;
    }
    w->steps[w->count++] = (struct step){pin, extra, w->last[pin]};
    w->last[pin] = w->count;
    return 0;
}

static bool group_wanted(const struct choice *c, const char *group)
{
    if (!group || !c->groups)
        return true;
    for (const char *const *g = c->groups; *g; g++)
        if (px_equal(*g, group))
            return true;
    return false;
}

static int find_pin(const struct choice *c, const struct px_pin_need *need, size_t *ret_pin)
{
    char name[256];
    size_t found = 0;
    if (px_marker_package_name(need->name, strlen(need->name), name, sizeof name) < 0)
        return px_fail(c->e, PX_E_LOCK_FORMAT, 0, "the lock needs '%.100s', which is no package's name", need->name);
    const struct px_name_at *end = c->index.items + c->index.count;
    for (const struct px_name_at *at = px_names_find(&c->index, name); at && at < end && px_equal(at->name, name) && found < 2; at++)
        if (!need->version || px_equal(c->pins->items[at->at].version, need->version)) {
            *ret_pin = at->at;
            found++;
        }
    if (found != 1)
        return px_fail(c->e, PX_E_LOCK_FORMAT, 0, "the lock needs '%s' and has %s of it", name, found ? "more than one" : "none");
    return 0;
}

static int follow(struct walk *w, const struct step step)
{
    const struct px_lock_pin *pin = &w->c->pins->items[step.pin];
    for (size_t i = 0; i < pin->need_count; i++) {
        const struct px_pin_need *need = &pin->needs[i];
        size_t next = 0;
        if (!px_equal(need->of_extra, step.extra) || (need->of_group && (step.extra || !group_wanted(w->c, need->of_group))))
            continue;
        int holds = px_marker_holds(need->marker, w->c->env);
        if (holds < 0)
            return wrong_marker(w->c, pin, need->marker);
        if (holds && (find_pin(w->c, need, &next) < 0 || add_step(w, next, NULL) < 0 || (need->extra && add_step(w, next, need->extra) < 0)))
            return -1;
    }
    return 0;
}

/* The project itself, with the extras that are selected for it. */
static int add_own(struct walk *w, size_t pin)
{
    int r = add_step(w, pin, NULL);
    for (const char *const *extra = w->c->env->extras; r == 0 && extra && *extra; extra++)
        r = add_step(w, pin, *extra);
    return r;
}

static int choose_by_graph(struct choice *c)
{
    struct walk w = {.c = c, .last = calloc(c->pins->count + 1, sizeof *w.last)};
    if (!w.last || px_names_of_pins(c->pins, &c->index) < 0) {
        free(w.last);
        return px_no_memory(c->e);
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < c->pins->count; i++)
        if (c->pins->items[i].own)
            r = add_own(&w, i);
    for (; r == 0 && w.at < w.count; w.at++)
        r = follow(&w, w.steps[w.at]);
    for (size_t i = 0; r == 0 && i < w.count; i++)
        c->wanted[w.steps[i].pin] = !c->pins->items[w.steps[i].pin].own;
    px_names_done(&c->index);
    free(w.last);
    free(w.steps);
    return r;
}

/* ---- files ---- */

static bool is_source(const char *name)
{
    static const char *const ends[] = {".tar.gz", ".zip", ".tgz", ".tar.bz2"};
    size_t n = strlen(name);
    for (size_t i = 0; i < PX_COUNT_OF(ends); i++)
        if (n > strlen(ends[i]) && px_equal(name + n - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

/* The wheel with the best rank; the first of equal ones. */
static void choose_file(const struct px_tags *tags, struct px_chosen *chosen)
{
    int best = -1;
    for (size_t i = 0; i < chosen->pin->file_count; i++) {
        const struct px_pin_file *file = &chosen->pin->files[i];
        int rank = px_tags_rank(tags, file->name);
        if (rank >= 0 && (best < 0 || rank < best)) {
            best = rank;
            chosen->file = file;
            chosen->wheel = true;
        }
    }
    for (size_t i = 0; !chosen->file && i < chosen->pin->file_count; i++)
        if (is_source(chosen->pin->files[i].name))
            chosen->file = &chosen->pin->files[i];
}

static int compare_chosen(const void *a, const void *b)
{
    const struct px_lock_pin *x = ((const struct px_chosen *)a)->pin, *y = ((const struct px_chosen *)b)->pin;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->version, y->version);
}

static int fill_list(const struct choice *c, struct px_chosen **ret_list, size_t *ret_count)
{
    struct px_chosen *list = calloc(c->pins->count + 1, sizeof *list);
    size_t count = 0;
    if (!list)
        return px_no_memory(c->e);
    for (size_t i = 0; i < c->pins->count; i++)
        if (c->wanted[i]) {
            list[count].pin = &c->pins->items[i];
            choose_file(c->tags, &list[count++]);
        }
    qsort(list, count, sizeof *list, compare_chosen);
    for (size_t i = 1; i < count; i++)
        if (px_equal(list[i - 1].pin->name, list[i].pin->name)) {
            px_fail(c->e, PX_E_LOCK_FORMAT, 0, "the lock gives two versions of '%s' to one environment", list[i].pin->name);
            free(list);
            return -1;
        }
    *ret_list = list;
    *ret_count = count;
    return 0;
}

int px_lock_select(const struct px_lock *pins, const struct px_marker_env *env, const struct px_tags *tags, const char *const *groups,
                   struct px_chosen **ret_list, size_t *ret_count, struct px_err *e)
{
    px_auto_free bool *wanted = calloc(pins->count + 1, sizeof *wanted);
    struct choice c = {.pins = pins, .env = env, .tags = tags, .groups = groups, .wanted = wanted, .e = e};
    if (!wanted)
        return px_no_memory(e);
    if ((pins->graph ? choose_by_graph : choose_by_markers)(&c) < 0)
        return -1;
    return fill_list(&c, ret_list, ret_count);
}
