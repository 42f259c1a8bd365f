/* Reads the locks of other tools, all TOML: pylock.toml (PEP 751), uv.lock, poetry.lock. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "lock/lock_internal.h"

static uint32_t next_of(struct px_lock_reading *r, uint32_t node)
{
    return px_toml_at(r->toml, node)->next;
}

/* ---- pylock.toml ---- */

static int pylock_file(struct px_lock_reading *r, uint32_t node)
{
    uint32_t hashes = px_toml_get(r->toml, node, "hashes");
    const char *hex = hashes ? px_lock_text(r, hashes, "sha256") : NULL;
    const char *url = px_lock_text(r, node, "url"), *path = px_lock_text(r, node, "path");
    char hash[80];
    uint64_t size = 0;
    if (px_lock_number(r, node, "size", &size) < 0)
        return -1;
    if (hex && px_fmt(hash, sizeof hash, "sha256:%s", hex) < 0)
        return px_lock_wrong(r, node, "a sha256 has 64 digits 0-9a-f");
    return px_lock_add_file(r, node, px_lock_text(r, node, "name"), url ? url : path, hex ? hash : NULL, size);
}

static int pylock_package(struct px_lock_reading *r, uint32_t node)
{
    struct px_lock_pin *pin = px_lock_add(r, node, px_lock_text(r, node, "name"), px_lock_text(r, node, "version"));
    static const char *const single[] = {"sdist", "archive"};
    uint32_t at;
    if (!pin)
        return -1;
    const char *marker = px_lock_text(r, node, "marker");
    uint32_t directory = px_toml_get(r->toml, node, "directory"), vcs = px_toml_get(r->toml, node, "vcs");
    pin->marker = marker ? marker : "";
    pin->requires_python = px_lock_text(r, node, "requires-python");
    pin->source = directory ? "directory" : vcs ? "vcs" : NULL;
    if (px_lock_array(r, node, "wheels", &at) < 0)
        return -1;
    for (; at; at = next_of(r, at))
        if (pylock_file(r, at) < 0)
            return -1;
    for (size_t i = 0; i < PX_COUNT_OF(single); i++) {
        at = px_toml_get(r->toml, node, single[i]);
        if (at && pylock_file(r, at) < 0)
            return -1;
    }
    return 0;
}

int px_lock_read_pylock(struct px_lock_reading *r)
{
    const char *version = px_lock_text(r, 0, "lock-version");
    uint32_t at;
    if (!version || (!px_equal(version, "1") && !px_starts_with(version, "1.")))
        return px_lock_wrong(r, 0, "the lock does not say a lock-version 1");
    r->pins->version = 1;
    r->pins->python = px_lock_text(r, 0, "requires-python");
    if (px_lock_array(r, 0, "packages", &at) < 0)
        return -1;
    for (; at; at = next_of(r, at))
        if (pylock_package(r, at) < 0)
            return -1;
    return 0;
}

/* ---- uv.lock ---- */

static int uv_file(struct px_lock_reading *r, uint32_t node)
{
    uint64_t size = 0;
    const char *url = px_lock_text(r, node, "url"), *path = px_lock_text(r, node, "path");
    if (px_lock_number(r, node, "size", &size) < 0)
        return -1;
    return px_lock_add_file(r, node, px_lock_text(r, node, "filename"), url ? url : path, px_lock_text(r, node, "hash"), size);
}

static int uv_need(struct px_lock_reading *r, uint32_t node, const char *of_extra, const char *of_group, const char *extra)
{
    struct px_lock_pin *pin = &r->pins->items[r->pins->count - 1];
    struct px_pin_need *needs = px_lock_grow(r, pin->needs, &pin->need_count, sizeof *needs, PX_PIN_FILES_MAX);
    if (!needs)
        return -1;
    pin->needs = needs;
    const char *marker = px_lock_text(r, node, "marker");
    needs[pin->need_count - 1] = (struct px_pin_need){
        .name = px_lock_text(r, node, "name"), .version = px_lock_text(r, node, "version"), .marker = marker ? marker : "",
        .extra = extra, .of_extra = of_extra, .of_group = of_group,
    };
    return needs[pin->need_count - 1].name ? 0 : px_lock_wrong(r, node, "a dependency without a name");
}

static int uv_needs(struct px_lock_reading *r, uint32_t first, const char *of_extra, const char *of_group)
{
    for (; first; first = next_of(r, first)) {
        uint32_t extra;
        if (px_lock_array(r, first, "extra", &extra) < 0 || uv_need(r, first, of_extra, of_group, NULL) < 0)
            return -1;
        for (; extra; extra = next_of(r, extra)) {
            const char *text = px_toml_text(r->toml, extra);
            if (!text || uv_need(r, first, of_extra, of_group, px_lock_keep(r, text, strlen(text))) < 0)
                return px_lock_wrong(r, extra, "an extra is a string");
        }
    }
    return 0;
}

/* [package.optional-dependencies] and [package.dev-dependencies]: a list for each name. */
static int uv_named_needs(struct px_lock_reading *r, uint32_t package, const char *key, bool groups)
{
    uint32_t table = px_toml_get(r->toml, package, key);
    for (uint32_t c = table ? px_toml_at(r->toml, table)->first : PX_TOML_NONE; c; c = next_of(r, c)) {
        const char *name = px_lock_keep(r, px_toml_key(r->toml, c), strlen(px_toml_key(r->toml, c)));
        if (px_toml_at(r->toml, c)->type != PX_TOML_ARRAY)
            return px_lock_wrong(r, c, "an array is expected here");
        if (!name || uv_needs(r, px_toml_at(r->toml, c)->first, groups ? NULL : name, groups ? name : NULL) < 0)
            return -1;
    }
    return 0;
}

static int uv_source(struct px_lock_reading *r, uint32_t node)
{
    static const char *const own[] = {"virtual", "editable"}, *const others[] = {"git", "directory", "path", "url"};
    struct px_lock_pin *pin = &r->pins->items[r->pins->count - 1];
    uint32_t source = px_toml_get(r->toml, node, "source");
    for (size_t i = 0; source && i < PX_COUNT_OF(own); i++)
        if (px_toml_get(r->toml, source, own[i])) {
            pin->own = true;
            pin->source = own[i];
        }
    for (size_t i = 0; source && i < PX_COUNT_OF(others); i++)
        if (px_toml_get(r->toml, source, others[i]))
            pin->source = others[i];
    return 0;
}

static int uv_package(struct px_lock_reading *r, uint32_t node)
{
    uint32_t at, sdist = px_toml_get(r->toml, node, "sdist");
    if (!px_lock_add(r, node, px_lock_text(r, node, "name"), px_lock_text(r, node, "version")) || uv_source(r, node) < 0 ||
        px_lock_array(r, node, "dependencies", &at) < 0 || uv_needs(r, at, NULL, NULL) < 0 ||
        uv_named_needs(r, node, "optional-dependencies", false) < 0 || uv_named_needs(r, node, "dev-dependencies", true) < 0)
        return -1;
    if (px_lock_array(r, node, "wheels", &at) < 0)
        return -1;
    for (; at; at = next_of(r, at))
        if (uv_file(r, at) < 0)
            return -1;
    return sdist ? uv_file(r, sdist) : 0;
}

int px_lock_read_uv(struct px_lock_reading *r)
{
    uint64_t version = 0;
    uint32_t at;
    if (px_lock_number(r, 0, "version", &version) < 0)
        return -1;
    if (version != 1)
        return px_lock_wrong(r, 0, "only version 1 of uv.lock is known");
    r->pins->version = 1;
    r->pins->graph = true;
    r->pins->python = px_lock_text(r, 0, "requires-python");
    if (px_lock_array(r, 0, "package", &at) < 0)
        return -1;
    for (; at; at = next_of(r, at))
        if (uv_package(r, at) < 0)
            return -1;
    return 0;
}

/* ---- poetry.lock ---- */

/* 2.x: a text, or a table with one for each group, of which "main" counts. */
static const char *poetry_marker(struct px_lock_reading *r, uint32_t node)
{
    uint32_t markers = px_toml_get(r->toml, node, "markers");
    if (!markers)
        return "";
    if (px_toml_at(r->toml, markers)->type == PX_TOML_TABLE) {
        const char *main_marker = px_lock_text(r, markers, "main");
        return main_marker ? main_marker : "";
    }
    const char *text = px_lock_text(r, node, "markers");
    return text ? text : "";
}

static int poetry_package(struct px_lock_reading *r, uint32_t node)
{
    uint32_t at, optional = px_toml_get(r->toml, node, "optional");
    if (optional && px_toml_at(r->toml, optional)->truth)
        return 0;               /* belongs to an extra that is not selected */
    struct px_lock_pin *pin = px_lock_add(r, node, px_lock_text(r, node, "name"), px_lock_text(r, node, "version"));
    if (!pin)
        return -1;
    pin->marker = poetry_marker(r, node);
    pin->requires_python = px_lock_text(r, node, "python-versions");
    if (px_lock_array(r, node, "files", &at) < 0)
        return -1;
    for (; at; at = next_of(r, at))
        if (px_lock_add_file(r, at, px_lock_text(r, at, "file"), NULL, px_lock_text(r, at, "hash"), 0) < 0)
            return -1;
    return 0;
}

int px_lock_read_poetry(struct px_lock_reading *r)
{
    uint32_t metadata = px_toml_get(r->toml, 0, "metadata"), at;
    const char *version = metadata ? px_lock_text(r, metadata, "lock-version") : NULL;
    if (!version || !px_starts_with(version, "2."))
        return px_lock_wrong(r, 0, "only lock-version 2 of poetry.lock is known: run `poetry lock` with poetry 2");
    r->pins->version = 2;
    r->pins->python = px_lock_text(r, metadata, "python-versions");
    if (px_lock_array(r, 0, "package", &at) < 0)
        return -1;
    for (; at; at = next_of(r, at))
        if (poetry_package(r, at) < 0)
            return -1;
    return 0;
}
