#include "env/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const struct px_dist dists[] = {
#define PX_DIST(name, capabilities, how, wheel) {name, capabilities, PX_DIST_##how, PX_DIST_##wheel},
#include "dists.def"
#undef PX_DIST
};

static const struct px_soname sonames[] = {
#define PX_SONAME(name, capability, in_base) {name, capability, in_base},
#include "sonames.def"
#undef PX_SONAME
};

struct row {
    const char *name, *capability;
};

static const struct row headers[] = {
#define PX_HEADER(name, capability) {name, capability},
#include "headers.def"
#undef PX_HEADER
};

static const struct {
    enum px_probe_kind kind;
    struct row row;
} probes[] = {
#define PX_PROBE(kind, name, capability) {PX_PROBE_##kind, {name, capability}},
#include "probes.def"
#undef PX_PROBE
};

/* Every row begins with its name. */
static int compare_name(const void *name, const void *row)
{
    return strcmp(name, *(const char *const *)row);
}

const struct px_dist *px_tables_dist_find(const char *canonical_name)
{
    return bsearch(canonical_name, dists, PX_COUNT_OF(dists), sizeof dists[0], compare_name);
}

/* How much of a soname is the library: up to and with ".so"; 0 if it has none. */
static size_t stem_length(const char *soname)
{
    const char *so = strstr(soname, ".so");
    return so && (so[3] == '\0' || so[3] == '.') ? (size_t)(so - soname) + 3 : 0;
}

const struct px_soname *px_tables_soname_find(const char *soname)
{
    const struct px_soname *row = bsearch(soname, sonames, PX_COUNT_OF(sonames), sizeof sonames[0], compare_name);
    size_t stem = stem_length(soname);
    for (size_t i = 0; !row && stem && i < PX_COUNT_OF(sonames); i++)
        if (stem_length(sonames[i].name) == stem && memcmp(sonames[i].name, soname, stem) == 0)
            row = &sonames[i];
    return row;
}

bool px_tables_soname_in(const struct px_soname *row, const char *base)
{
    return row->in_base == PX_IN_DEBIAN12 ? !px_equal(base, "debian-13") : row->in_base;
}

const struct px_soname *px_tables_soname_of_flag(const char *name)
{
    char stem[256];
    return px_fmt(stem, sizeof stem, "lib%s.so", name) < 0 ? NULL : px_tables_soname_find(stem);
}

const char *px_tables_header_capability(const char *header)
{
    const struct row *row = bsearch(header, headers, PX_COUNT_OF(headers), sizeof headers[0], compare_name);
    return row ? row->capability : NULL;
}

const char *px_tables_probe_capability(enum px_probe_kind kind, const char *name)
{
    for (size_t i = 0; i < PX_COUNT_OF(probes); i++)
        if ((probes[i].kind == kind || (probes[i].kind == PX_PROBE_TOOL && kind == PX_PROBE_PROGRAM)) &&
            px_equal(probes[i].row.name, name))
            return probes[i].row.capability;
    return NULL;
}
