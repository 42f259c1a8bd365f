/* fuzz/fuzz_manifest.c - any text as a pyproject.toml; what is read has a fingerprint, and the same one twice; its own
 * packages name no directory outside of the project, and no program that is none. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "fuzz.h"
#include "layout/locate.h"
#include "layout/own.h"

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

static int check_script(void *user, const char *name)
{
    (void)user;
    CHECK(*name && *name != '.' && *name != '-' && !strchr(name, '/') && strncmp(name, "python", 7) != 0);
    return 0;
}

static void check_own(const struct px_manifest *m)
{
    struct px_located site = {.root = "/", .dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), .manifest_exists = true, .manifest = *m};
    struct px_own own = {0};
    struct px_err e = {0};
    const json_t *path;
    size_t i;
    if (px_own_find(&site, &own, &e) < 0)
        CHECK(e.code != 0 && e.what[0]);
    json_array_foreach(json_object_get(own.facts, "paths"), i, path) {
        char framed[1 << 13];
        const char *text = json_string_value(path);
        CHECK(text && *text && *text != '/' && !strpbrk(text, "\n\r'\"\\"));
        (void)snprintf(framed, sizeof framed, "/%s/", text);
        CHECK(!strstr(framed, "/../"));
    }
    CHECK(px_own_scripts(own.facts, check_script, NULL) == 0);
    px_own_done(&own);
    close(site.dir);
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
        check_own(&m);
        px_manifest_done(&m);
    } else {
        CHECK(e.code != 0 && e.what[0]);
    }
    free(text);
    return 0;
}
