/* Reads and writes px.lock version 1. Of other versions it reads only the metadata. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "lock/lock_internal.h"
#include "pep/marker.h"
#include "pep/version.h"

/* "name==1.2 ; marker" -> the version; NULL if it is not exactly pinned. */
static const char *pinned_version(struct px_lock_reading *r, const char *specifier, const char **ret_name, const char **ret_marker)
{
    struct px_requirement q;
    if (!specifier || px_marker_requirement_parse(specifier, &q) < 0 || q.range_length < 3 || memcmp(q.range, "==", 2) != 0)
        return NULL;
    const char *version = q.range + (q.range[2] == '=' ? 3 : 2);
    size_t length = q.range_length - (size_t)(version - q.range);
    version += strspn(version, " ");
    length -= strspn(q.range + q.range_length - length, " ");
    if (memchr(version, ',', length) || memchr(version, '*', length))
        return NULL;
    *ret_name = px_lock_keep(r, q.name, q.name_length);
    *ret_marker = px_lock_keep(r, q.marker, q.marker_length);
    return px_lock_keep(r, version, length);
}

static int read_artifact(struct px_lock_reading *r, uint32_t table)
{
    uint32_t artifact = px_toml_get(r->toml, table, "artifact");
    uint64_t size = 0;
    if (!artifact)
        return 0;
    const char *hash = px_lock_text(r, artifact, "sha256");
    char with_kind[80];
    if (px_lock_number(r, artifact, "size", &size) < 0)
        return -1;
    if (!hash || px_fmt(with_kind, sizeof with_kind, "sha256:%s", hash) < 0)
        return px_lock_wrong(r, artifact, "an artifact without a sha256");
    if (px_lock_add_file(r, artifact, px_lock_text(r, artifact, "filename"), px_lock_text(r, artifact, "url"), with_kind, size) < 0)
        return -1;
    r->pins->items[r->pins->count - 1].build_options_hash = px_lock_text(r, artifact, "build_options_hash");
    return 0;
}

static int read_dependency(struct px_lock_reading *r, uint32_t node)
{
    const char *text = px_toml_text(r->toml, node);
    const char *specifier = text ? px_lock_keep(r, text, strlen(text)) : px_lock_text(r, node, "specifier");
    const char *name = NULL, *marker = NULL;
    const char *version = pinned_version(r, specifier, &name, &marker);
    if (!version)
        return px_lock_wrong(r, node, "a dependency that is not pinned to one version");
    const char *said = text ? NULL : px_lock_text(r, node, "name");
    struct px_lock_pin *pin = px_lock_add(r, node, said ? said : name, version);
    if (!pin)
        return -1;
    pin->specifier = specifier;
    pin->marker = marker;
    if (text)
        return 0;
    const char *own_marker = px_lock_text(r, node, "marker");
    uint32_t direct = px_toml_get(r->toml, node, "direct");
    pin->marker = own_marker ? own_marker : marker;
    pin->direct = !direct || px_toml_at(r->toml, direct)->truth;
    pin->source = px_lock_text(r, node, "source");
    if (px_lock_texts(r, node, "extras", &pin->extras, &pin->extras_count) < 0 ||
        px_lock_texts(r, node, "requires", &pin->requires, &pin->requires_count) < 0)
        return -1;
    return read_artifact(r, node);
}

static int read_build(struct px_lock_reading *r, uint32_t node)
{
    struct px_build_pins *list =
        px_lock_grow(r, r->pins->builds, &r->pins->build_count, sizeof *list, PX_PIN_BUILDS_MAX);
    uint32_t at = 0;
    if (!list)
        return -1;
    r->pins->builds = list;
    struct px_build_pins *build = &list[r->pins->build_count - 1];
    struct px_lock_reading own = *r;
    own.pins = &build->pins;
    build->pins = (struct px_lock){.format = PX_PINS_PX, .version = 1};
    if (px_lock_texts(r, node, "requires", &build->requires, &build->requires_count) < 0 ||
        px_lock_array(r, node, "packages", &at) < 0)
        return -1;
    for (; at; at = px_toml_at(r->toml, at)->next)
        if (read_dependency(&own, at) < 0 || own.lost)
            return -1;
    return 0;
}

int px_lock_read_px(struct px_lock_reading *r)
{
    struct px_lock *pins = r->pins;
    uint32_t metadata = px_toml_get(r->toml, 0, "metadata"), project = px_toml_get(r->toml, 0, "project");
    uint32_t python = px_toml_get(r->toml, 0, "python"), version = px_toml_get(r->toml, 0, "version"), at;
    if (!version || px_toml_at(r->toml, version)->type != PX_TOML_INTEGER)
        return px_lock_wrong(r, 0, "the lock does not say its version");
    pins->version = px_toml_at(r->toml, version)->number;
    if (metadata) {
        pins->mode = px_lock_text(r, metadata, "mode");
        pins->fingerprint = px_lock_text(r, metadata, "manifest_fingerprint");
        pins->lock_id = px_lock_text(r, metadata, "lock_id");
    }
    if (project)
        pins->project = px_lock_text(r, project, "name");
    if (python)
        pins->python = px_lock_text(r, python, "requirement");
    if (pins->version != 1)
        return 0;               /* the project's state reports the version; the packages are not read */
    if (px_lock_array(r, 0, "dependencies", &at) < 0)
        return -1;
    for (; at; at = px_toml_at(r->toml, at)->next)
        if (read_dependency(r, at) < 0)
            return -1;
    if (px_lock_array(r, 0, "build", &at) < 0)
        return -1;
    for (; at; at = px_toml_at(r->toml, at)->next)
        if (read_build(r, at) < 0)
            return -1;
    return px_lock_read_system(r);
}

/* ---- writing ---- */

static void put_text(struct px_buf *out, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    px_buf_printf(out, "%s = ", key);
    px_toml_put_string(out, text);
    px_buf_putc(out, '\n');
}

static void put_texts(struct px_buf *out, const char *key, const char *const *list, size_t count)
{
    if (count == 0)
        return;
    px_buf_printf(out, "%s = [", key);
    for (size_t i = 0; i < count; i++) {
        px_buf_puts(out, i ? ", " : "");
        px_toml_put_string(out, list[i]);
    }
    px_buf_puts(out, "]\n");
}

static void put_file(struct px_buf *out, const char *table, const struct px_lock_pin *pin)
{
    const struct px_pin_file *file = &pin->files[0];
    px_buf_printf(out, "\n[%s.artifact]\n", table);
    put_text(out, "filename", file->name);
    put_text(out, "url", file->url);
    put_text(out, "sha256", file->sha256.hex);
    px_buf_printf(out, "size = %llu\n", (unsigned long long)file->size);
    put_text(out, "build_options_hash", pin->build_options_hash);
}

static void put_pin(struct px_buf *out, const char *table, const struct px_lock_pin *pin)
{
    px_buf_printf(out, "\n[[%s]]\n", table);
    put_text(out, "name", pin->name);
    put_text(out, "specifier", pin->specifier);
    put_texts(out, "extras", pin->extras, pin->extras_count);
    put_text(out, "marker", pin->marker);
    px_buf_printf(out, "direct = %s\n", pin->direct ? "true" : "false");
    put_text(out, "source", pin->source);
    put_texts(out, "requires", pin->requires, pin->requires_count);
    if (pin->file_count)
        put_file(out, table, pin);
}

static void put_build(struct px_buf *out, const struct px_build_pins *build)
{
    px_buf_puts(out, "\n[[build]]\n");
    put_texts(out, "requires", build->requires, build->requires_count);
    for (size_t i = 0; i < build->pins.count; i++)
        put_pin(out, "build.packages", &build->pins.items[i]);
}

int px_lock_write(const struct px_lock *pins, struct px_buf *out)
{
    px_buf_puts(out, "version = 1\n\n[metadata]\n");
    put_text(out, "px_version", PX_VERSION);
    put_text(out, "mode", "p0-pinned");
    put_text(out, "manifest_fingerprint", pins->fingerprint);
    put_text(out, "lock_id", pins->lock_id);
    px_buf_puts(out, "\n[project]\n");
    put_text(out, "name", pins->project);
    px_buf_puts(out, "\n[python]\n");
    put_text(out, "requirement", pins->python);
    for (size_t i = 0; i < pins->count; i++)
        put_pin(out, "dependencies", &pins->items[i]);
    for (size_t i = 0; i < pins->build_count; i++)
        put_build(out, &pins->builds[i]);
    return out->err;
}
