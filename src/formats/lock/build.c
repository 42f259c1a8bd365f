/* The build requirements of source archives in px.lock: for each list of requirements, the packages found for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "lock/lock_internal.h"

enum { TEXT_MAX = 4 << 20 };

static int compare_lists(const char *const *a, size_t a_count, const char *const *b, size_t b_count)
{
    for (size_t i = 0; i < a_count && i < b_count; i++) {
        int order = strcmp(a[i], b[i]);
        if (order)
            return order;
    }
    return a_count < b_count ? -1 : a_count > b_count;
}

const struct px_lock *px_lock_build_find(const struct px_lock *pins, const char *const *requires, size_t count)
{
    for (size_t i = 0; i < pins->build_count; i++) {
        const struct px_build_pins *b = &pins->builds[i];
        if (compare_lists(b->requires, b->requires_count, requires, count) == 0)
            return &b->pins;
    }
    return NULL;
}

int px_lock_copy(const struct px_lock *from, struct px_lock *ret_pins, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    if (px_lock_write(from, &text) < 0)
        return px_fail(e, PX_E_LIMIT, text.err, "the packages of a build");
    return px_lock_parse(PX_PINS_PX, px_buf_text(&text), text.len, "the packages of a build", ret_pins, e);
}

static int keep_texts(struct px_lock_reading *r, struct px_build_pins *b, const char *const *requires, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char **bigger = px_lock_grow(r, b->requires, &b->requires_count, sizeof *bigger, PX_PIN_FILES_MAX);
        if (!bigger)
            return -1;
        b->requires = bigger;
        bigger[i] = px_lock_keep(r, requires[i], strlen(requires[i]));
        if (!bigger[i])
            return -1;
    }
    return 0;
}

int px_lock_build_add(struct px_lock *pins, const char *const *requires, size_t count, const struct px_lock *found,
                      struct px_err *e)
{
    struct px_lock_reading r = {.pins = pins, .shown = "the lock", .e = e};
    struct px_build_pins *list = px_lock_grow(&r, pins->builds, &pins->build_count, sizeof *list, PX_PIN_BUILDS_MAX);
    if (!list)
        return -1;
    pins->builds = list;
    struct px_build_pins *b = &list[pins->build_count - 1];
    return keep_texts(&r, b, requires, count) < 0 ? -1 : px_lock_copy(found, &b->pins, e);
}

static int compare_builds(const void *a, const void *b)
{
    const struct px_build_pins *x = a, *y = b;
    return compare_lists(x->requires, x->requires_count, y->requires, y->requires_count);
}

static int compare_pins(const void *a, const void *b)
{
    const struct px_lock_pin *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void px_lock_builds_sort(struct px_lock *pins)
{
    if (pins->build_count)
        qsort(pins->builds, pins->build_count, sizeof *pins->builds, compare_builds);
    for (size_t i = 0; i < pins->build_count; i++)
        if (pins->builds[i].pins.count)
            qsort(pins->builds[i].pins.items, pins->builds[i].pins.count, sizeof(struct px_lock_pin), compare_pins);
}

int px_lock_hash_builds(struct px_hash *h, const struct px_lock *pins)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < pins->build_count; i++) {
        px_hash_add(h, "build", sizeof "build");
        r = px_lock_hash_texts(h, pins->builds[i].requires, pins->builds[i].requires_count);
        if (r >= 0)
            r = px_lock_hash_list(h, &pins->builds[i].pins);
    }
    return r;
}

int px_lock_builds_id(const struct px_lock *pins, struct px_oid *ret_id)
{
    struct px_hash h;
    px_hash_begin(&h);
    int r = px_lock_hash_builds(&h, pins);
    if (r >= 0)
        return px_hash_end(&h, ret_id);
    px_hash_drop(&h);
    return r;
}
