#include "env/infer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "env/tables.h"

const char *const px_infer_source_words[PX_INFER_SOURCES] = {"explicit", "static map", "cas"};

enum { REASONS_MAX = 20000 };

struct making {
    const struct px_infer_ask *ask;
    struct px_inferred *out;
};

/* ---- reasons ---- */

/* 1: true in the manifest, 0: false, -1: absent. */
static int wish_for(const struct px_infer_ask *ask, const char *capability)
{
    for (size_t i = 0; i < ask->wish_count; i++)
        if (px_equal(ask->wishes[i].name, capability))
            return ask->wishes[i].enabled;
    return -1;
}

static int add(struct making *m, const char *capability, size_t length, enum px_infer_source source,
               const char *package, const char *library)
{
    struct px_inferred *out = m->out;
    struct px_reason reason = {.source = source};
    if (length >= sizeof reason.capability || out->count == REASONS_MAX)
        return -E2BIG;
    if ((out->count & (out->count - 1)) == 0) {
        struct px_reason *grown = realloc(out->reasons, (out->count ? 2 * out->count : 1) * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        out->reasons = grown;
    }
    memcpy(reason.capability, capability, length);
    /* A detail that does not fit is truncated: it is only for messages. */
    (void)px_fmt(reason.detail, sizeof reason.detail, "%.80s%s%.100s", package, library ? ": " : "",
                 library ? library : "");
    int wish = wish_for(m->ask, reason.capability);
    reason.counts = source == PX_INFER_EXPLICIT ? wish == 1 : m->ask->automatic && wish != 0;
    out->reasons[out->count++] = reason;
    return 0;
}

static void set_aside(struct making *m, size_t first)
{
    for (size_t i = first; i < m->out->count; i++) {
        m->out->reasons[i].counts = false;
        m->out->reasons[i].brought = true;
    }
}

static int add_words(struct making *m, const char *words, enum px_infer_source source, const char *package,
                     const char *library)
{
    int r = 0;
    while (r == 0 && *(words += strspn(words, " "))) {
        size_t n = strcspn(words, " ");
        r = add(m, words, n, source, package, library);
        words += n;
    }
    return r;
}

/* ---- the three layers ---- */

static bool is_plain_wheel(const char *file)
{
    size_t n = strlen(file);
    static const char end[] = ".whl";
    if (n < strlen(end) || !px_equal(file + n - strlen(end), end))
        return false;
    const char *platform = strrchr(file, '-');
    return platform && px_starts_with(platform + 1, "linux_");
}

static bool is_wheel(const char *file)
{
    size_t n = strlen(file);
    return n > 4 && px_equal(file + n - 4, ".whl");
}

bool px_infer_counts(const char *canonical_name, const char *file)
{
    const struct px_dist *dist = px_tables_dist_find(canonical_name);
    if (!dist || dist->how == PX_DIST_NOTHING)
        return false;
    bool built = !file || !is_wheel(file);
    if (dist->how == PX_DIST_BUILD)
        return built;
    return dist->wheel != PX_DIST_BUNDLES || built || is_plain_wheel(file);
}

/* Also lists a reason that does not count, where a user would expect it for the package. */
static int look_at_lock(struct making *m, const struct px_infer_package *p)
{
    const struct px_dist *dist = px_tables_dist_find(p->name);
    bool counts = px_infer_counts(p->name, p->file);
    size_t first = m->out->count;
    if (!counts && (!dist || dist->how == PX_DIST_BUILD || dist->how == PX_DIST_NOTHING || dist->wheel != PX_DIST_BUNDLES))
        return 0;
    int r = add_words(m, dist->capabilities, PX_INFER_LOCK, p->name, NULL);
    if (!counts)
        set_aside(m, first);
    return r;
}

static int look_at_libraries(struct making *m, const struct px_infer_package *p)
{
    int r = 0;
    for (size_t i = 0; r == 0 && p->needed && i < p->needed_count; i++) {
        const struct px_soname *row = px_tables_soname_find(p->needed[i]);
        if (row && !px_tables_soname_in(row, m->ask->base))
            r = add_words(m, row->capability, PX_INFER_CAS, p->name, p->needed[i]);
    }
    return r;
}

static int compare_reasons(const void *a, const void *b)
{
    const struct px_reason *x = a, *y = b;
    int order = strcmp(x->capability, y->capability);
    order = order ? order : (int)x->source - (int)y->source;
    return order ? order : strcmp(x->detail, y->detail);
}

static int settle(struct px_inferred *out)
{
    if (out->count)
        qsort(out->reasons, out->count, sizeof *out->reasons, compare_reasons);
    for (size_t i = 0; i < out->count; i++) {
        const char *name = out->reasons[i].capability;
        if (!out->reasons[i].counts ||
            (out->effective_count && px_equal(out->effective[out->effective_count - 1], name)))
            continue;
        if (out->effective_count == PX_INFER_NAMES_MAX)
            return -E2BIG;
        out->effective[out->effective_count++] = name;
    }
    return 0;
}

int px_infer(const struct px_infer_ask *ask, struct px_inferred *ret_inferred)
{
    struct px_inferred out = {0};
    struct making m = {ask, &out};
    int r = 0;
    for (size_t i = 0; r == 0 && i < ask->wish_count; i++)
        r = add(&m, ask->wishes[i].name, strlen(ask->wishes[i].name), PX_INFER_EXPLICIT,
                "[tool.px.sandbox.capabilities]", NULL);
    for (size_t i = 0; r == 0 && i < ask->package_count; i++) {
        r = look_at_lock(&m, &ask->packages[i]);
        if (r == 0)
            r = look_at_libraries(&m, &ask->packages[i]);
    }
    if (r == 0)
        r = settle(&out);
    if (r < 0)
        px_infer_done(&out);
    else
        *ret_inferred = out;
    return r;
}

void px_infer_done(struct px_inferred *inferred)
{
    free(inferred->reasons);
    *inferred = (struct px_inferred){0};
}
