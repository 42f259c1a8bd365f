/* fuzz/fuzz_manifest.c - any text as a pyproject.toml; what is read has a fingerprint, and the same one twice. */
#include <string.h>

#include "base/err.h"
#include "fuzz.h"
#include "project/manifest.h"

static void check_lists(const struct px_manifest *m)
{
    struct px_names list;
    struct px_err e = {0};
    CHECK(px_manifest_requirements(m, true, &list, &e) == 0);
    for (size_t i = 1; i < list.count; i++)
        CHECK(strcmp(list.items[i - 1], list.items[i]) != 0);
    free(list.items);
    for (size_t i = 1; i < m->env.count; i++)
        CHECK(strcmp(m->env.items[i - 1].key, m->env.items[i].key) <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct px_manifest m;
    struct px_err e = {0};
    struct px_oid first, second;
    if (px_manifest_parse(text, size, "pyproject.toml", &m, &e) == 0) {
        CHECK(px_manifest_fingerprint(&m, &first, &e) == 0 && px_manifest_fingerprint(&m, &second, &e) == 0);
        CHECK(strcmp(first.hex, second.hex) == 0);
        check_lists(&m);
        px_manifest_done(&m);
    } else {
        CHECK(e.code != 0 && e.what[0]);
    }
    free(text);
    return 0;
}
