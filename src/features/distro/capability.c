#include "distro/capability.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

static const struct px_capability capabilities[] = {
#define PX_CAPABILITY(name, summary, run, build, ...) \
    PX_CAPABILITY_13(name, summary, run, build, run, build, __VA_ARGS__)
#define PX_CAPABILITY_13(name, summary, run_12, build_12, run_13, build_13, alpine_run, alpine_build) \
    {name, \
     summary, \
     {[PX_BASE_DEBIAN12] = {run_12, build_12}, [PX_BASE_DEBIAN13] = {run_13, build_13}, \
      [PX_BASE_ALPINE320] = {alpine_run, alpine_build}}},
#include "capabilities.def"
#undef PX_CAPABILITY
#undef PX_CAPABILITY_13
};

const struct px_capability *px_capability_at(size_t index)
{
    return index < PX_COUNT_OF(capabilities) ? &capabilities[index] : NULL;
}

size_t px_capability_count(void)
{
    return PX_COUNT_OF(capabilities);
}

const struct px_capability *px_capability_find(const char *name)
{
    size_t low = 0, high = PX_COUNT_OF(capabilities);
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, capabilities[middle].name);
        if (order == 0)
            return &capabilities[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- sets ---- */

static int not_known(const char *name, struct px_err *e)
{
    struct px_near near = {.written = name};
    for (size_t i = 0; i < PX_COUNT_OF(capabilities); i++)
        px_near_try(&near, capabilities[i].name);
    (void)px_fail(e, PX_E_CAPABILITY, 0, "there is no capability '%.64s'", name);
    (void)px_detail(e, "capability", name);
    (void)px_why(e, "px does not know a capability of this name.");
    return near.found ? px_fix(e, "Write %s.\n`px sandbox capabilities` lists all of them.", near.found)
                      : px_fix(e, "`px sandbox capabilities` lists all of them.");
}

static int insert(struct px_capability_set *set, const struct px_capability *c)
{
    size_t at = set->count;
    for (; at > 0 && set->items[at - 1] >= c; at--)     /* the table is sorted, and so are the addresses of its rows */
        if (set->items[at - 1] == c)
            return 0;
    if (set->count == PX_CAPABILITIES_MAX)
        return -1;
    memmove(&set->items[at + 1], &set->items[at], (set->count - at) * sizeof set->items[0]);
    set->items[at] = c;
    set->count++;
    return 0;
}

int px_capability_set_make(const char *const *names, struct px_capability_set *ret_set, struct px_err *e)
{
    struct px_capability_set set = {.count = 0};
    for (; names && *names; names++) {
        const struct px_capability *c = px_capability_find(*names);
        if (!c)
            return not_known(*names, e);
        if (insert(&set, c) < 0)
            return px_fail(e, PX_E_LIMIT, 0, "more than %d capabilities", PX_CAPABILITIES_MAX);
    }
    *ret_set = set;
    return 0;
}

bool px_capability_set_has(const struct px_capability_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (px_equal(set->items[i]->name, name))
            return true;
    return false;
}

static int cannot(const char *capability, const struct px_base_row *base, struct px_err *e)
{
    (void)px_fail(e, PX_E_CAPABILITY, 0, "px cannot satisfy capability '%s' on base '%s'", capability, base->name);
    (void)px_detail(e, "capability", capability);
    return px_detail(e, "base", base->name);
}

int px_capability_set_check(const struct px_capability_set *set, const struct px_base_row *base, struct px_err *e)
{
    for (size_t i = 0; i < set->count; i++)
        if (*set->items[i]->packages[base->column].run == '\0') {
            (void)cannot(set->items[i]->name, base, e);
            return px_why(e, "%s %s has no package for it.", base->os_id, base->os_release);
        }
    if (set->count > 0 && !base->suite) {
        (void)cannot(set->items[0]->name, base, e);
        return px_why(
            e,
            "px knows its packages, but has no way yet to install them: such a base is used as it was imported.");
    }
    return 0;
}
