/* From pins to the bytes of px.lock, and the tables that a workspace adds. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "lock/lock_internal.h"
#include "pep/marker.h"
#include "resolve/resolved.h"

enum { NAME_BYTES = 256 };

/* ---- what the pins do not say themselves ---- */

static bool names_package(const char *requirement, const char *name)
{
    char canonical[NAME_BYTES];
    struct px_requirement q;
    return px_marker_requirement_parse(requirement, &q) == 0 &&
           px_marker_package_name(q.name, q.name_length, canonical, sizeof canonical) == 0 && px_equal(canonical, name);
}

static bool is_asked(const struct px_names *requirements, const char *name)
{
    for (size_t i = 0; i < requirements->count; i++)
        if (names_package(requirements->items[i], name))
            return true;
    return false;
}

static int compare_pins(const void *a, const void *b)
{
    const struct px_lock_pin *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->specifier, y->specifier);
}

static int settle(const struct px_located *site, struct px_lock *pins, struct px_err *e)
{
    struct px_lock_reading r = {.pins = pins, .shown = "the lock", .e = e};
    struct px_names requirements;
    struct px_oid fingerprint, id;
    if (px_locate_fingerprint(site, &fingerprint, e) < 0 || px_locate_requirements(site, &requirements, e) < 0)
        return -1;
    for (size_t i = 0; i < pins->count; i++)
        pins->items[i].direct = is_asked(&requirements, pins->items[i].name);
    free(requirements.items);
    if (pins->count)
        qsort(pins->items, pins->count, sizeof *pins->items, compare_pins);
    px_lock_builds_sort(pins);
    const char *name = site->workspace ? site->manifest.workspace_name : site->manifest.name;
    pins->project = name ? px_lock_keep(&r, name, strlen(name)) : NULL;
    pins->python = px_lock_keep(&r, px_locate_python(site), strlen(px_locate_python(site)));
    pins->fingerprint = px_lock_keep(&r, fingerprint.hex, strlen(fingerprint.hex));
    if (!pins->fingerprint || !pins->python || (name && !pins->project) || px_lock_compute_id(pins, &id) < 0)
        return px_no_memory(e);
    pins->mode = "p0-pinned";
    pins->lock_id = px_lock_keep(&r, id.hex, strlen(id.hex));
    return pins->lock_id ? 0 : px_no_memory(e);
}

/* ---- a workspace ---- */

static void put_pair(struct px_buf *out, const char *key, const char *text)
{
    if (!text)
        return;
    px_buf_printf(out, "%s = ", key);
    px_toml_put_string(out, text);
    px_buf_putc(out, '\n');
}

static const char *member_name(const struct px_member *m)
{
    return m->manifest.name ? m->manifest.name : m->path;
}

static int put_member(const struct px_member *m, struct px_buf *out, struct px_err *e)
{
    struct px_oid fingerprint;
    struct px_names requirements;
    if (px_manifest_fingerprint(&m->manifest, &fingerprint, e) < 0 ||
        px_manifest_requirements(&m->manifest, false, &requirements, e) < 0)
        return -1;
    px_buf_puts(out, "\n[[workspace.members]]\n");
    put_pair(out, "name", member_name(m));
    put_pair(out, "path", m->path);
    put_pair(out, "manifest_fingerprint", fingerprint.hex);
    px_buf_puts(out, "dependencies = [");
    for (size_t i = 0; i < requirements.count; i++) {
        px_buf_puts(out, i ? ", " : "");
        px_toml_put_string(out, requirements.items[i]);
    }
    px_buf_puts(out, "]\n");
    free(requirements.items);
    return 0;
}

/* The members that require a package directly. */
static int put_owners(const struct px_located *site, const char *package, struct px_buf *out, struct px_err *e)
{
    bool any = false;
    px_buf_puts(out, "\n[[workspace.owners]]\n");
    put_pair(out, "name", package);
    px_buf_puts(out, "owners = [");
    for (size_t i = 0; i < site->member_count; i++) {
        struct px_names requirements;
        if (px_manifest_requirements(&site->members[i].manifest, false, &requirements, e) < 0)
            return -1;
        if (is_asked(&requirements, package)) {
            px_buf_puts(out, any ? ", " : "");
            px_toml_put_string(out, member_name(&site->members[i]));
            any = true;
        }
        free(requirements.items);
    }
    px_buf_puts(out, "]\n");
    return 0;
}

static int put_workspace(const struct px_located *site, const struct px_lock *pins, struct px_buf *out, struct px_err *e)
{
    for (size_t i = 0; i < site->member_count; i++)
        if (put_member(&site->members[i], out, e) < 0)
            return -1;
    for (size_t i = 0; i < pins->count; i++)
        if (pins->items[i].direct && put_owners(site, pins->items[i].name, out, e) < 0)
            return -1;
    return 0;
}

/* ---- the whole ---- */

/* Parses the text before it is written: strings of other tools may contain anything and must not break the lock. */
static int prove(const struct px_lock *pins, const struct px_buf *out, const char *shown, struct px_err *e)
{
    struct px_lock again;
    if (px_lock_parse(PX_PINS_PX, px_buf_text(out), out->len, shown, &again, e) < 0)
        return -1;
    struct px_oid id = {0};
    bool same = px_lock_compute_id(&again, &id) == 0 && px_equal(id.hex, pins->lock_id) && again.count == pins->count;
    px_lock_done(&again);
    return same ? 0 : px_fail(e, PX_E_INTERNAL, 0, "the lock would not read as it was written");
}

int px_resolved_write(const struct px_located *site, struct px_lock *pins, struct px_buf *out, struct px_err *e)
{
    if (settle(site, pins, e) < 0)
        return -1;
    (void)px_lock_write(pins, out);
    if (site->workspace && put_workspace(site, pins, out, e) < 0)
        return -1;
    if (out->err < 0)
        return px_fail(e, PX_E_LIMIT, out->err, "the lock is too long");
    return prove(pins, out, px_locate_lock_file(site), e);
}
