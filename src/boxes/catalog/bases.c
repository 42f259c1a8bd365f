#include "catalog/bases.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

static const struct px_base_row bases[] = {
#define PX_BASE(column, ...) {PX_BASE_##column, __VA_ARGS__},
#include "bases.def"
#undef PX_BASE
};

const struct px_base_row *px_bases_at(size_t index)
{
    return index < PX_COUNT_OF(bases) ? &bases[index] : NULL;
}

const struct px_base_row *px_bases_find(const char *name)
{
    for (size_t i = 0; i < PX_COUNT_OF(bases); i++)
        if (px_equal(bases[i].name, name))
            return &bases[i];
    return NULL;
}

const char *px_bases_names(bool built, const char *written, struct px_buf *out)
{
    struct px_near near = {.written = written};
    for (size_t i = 0; i < PX_COUNT_OF(bases); i++)
        if (!built || bases[i].suite) {
            px_near_try(&near, bases[i].name);
            px_buf_printf(out, "%s%s", out->len ? ", " : "", bases[i].name);
        }
    return near.found;
}

/* "3.20.3" is a point release of "3.20". */
static bool same_release(const char *have, const char *want)
{
    size_t n = strlen(want);
    return have && strncmp(have, want, n) == 0 && (have[n] == '\0' || have[n] == '.');
}

const struct px_base_row *px_bases_for(const char *os_id, const char *os_release)
{
    for (size_t i = 0; i < PX_COUNT_OF(bases); i++)
        if (px_equal(bases[i].os_id, os_id) && same_release(os_release, bases[i].os_release))
            return &bases[i];
    return NULL;
}
