#include "project/system_pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "compose/compose.h"
#include "distro/fetch.h"
#include "project/image.h"
#include "project/snapshot.h"

enum { LOCK_MAX = PX_TOML_BYTES_MAX };

/* The base of the project, if px builds it from packages. */
static const struct px_base_row *row_of(const struct px_project *p)
{
    const struct px_base_row *row = px_bases_find(px_project_base(p));
    return row && row->suite ? row : NULL;
}

/* ---- reading ---- */

static int wrong(const struct px_snapshot *look, const char *what, const char *name, struct px_err *e)
{
    (void)px_fail(e, PX_E_LOCK_FORMAT, 0, "%s: [system] %s '%.100s'", look->lock_file, what, name);
    (void)px_detail(e, "reason", "lock_invalid");
    return px_fix(e, "Take the file from the project's history.\nOr let px write the table anew: px update --system.");
}

static int take_packages(const struct px_snapshot *look, const struct px_pin_system *list, size_t count,
                         struct px_packages *out, struct px_err *e)
{
    for (size_t i = 0; i < count; i++) {
        const struct px_pin_system *p = &list[i];
        const struct px_package package = {.name = (char *)p->name,
                                           .version = (char *)p->version,
                                           .arch = (char *)p->arch,
                                           .sha256 = p->sha256,
                                           .size = p->size};
        int r = px_packages_add(out, &package);
        if (r < 0)
            return r == -EINVAL ? wrong(look, "has a package that is none:", p->name, e) : px_no_memory(e);
    }
    return px_packages_sort(out) < 0 ? wrong(look, "names a package twice, of", look->pins.system.base, e) : 0;
}

static int take_capabilities(const struct px_snapshot *look, struct px_pinned *pinned, struct px_err *e)
{
    const struct px_pins_system *system = &look->pins.system;
    for (size_t i = 0; i < system->capability_count; i++) {
        const struct px_capability *c = px_capability_find(system->capabilities[i]);
        if (!c || i == PX_CAPABILITIES_MAX)
            return wrong(look, "names a capability that px does not know:", system->capabilities[i], e);
        pinned->capabilities[i] = c->name;
    }
    return 0;
}

int px_system_pins_read(const struct px_project *p, const struct px_snapshot *look, struct px_pinned *ret_pinned,
                   struct px_err *e)
{
    const struct px_pins_system *system = &look->pins.system;
    const struct px_base_row *row = row_of(p);
    struct px_pinned pinned = {.whole = true};
    *ret_pinned = (struct px_pinned){0};
    if (!look->lock_read || !row || !px_equal(system->base, row->name) || !px_equal(system->arch, px_distro_fetch_arch()))
        return 0;
    if (take_packages(look, system->base_packages, system->base_count, &pinned.base, e) < 0 ||
        take_packages(look, system->packages, system->count, &pinned.packages, e) < 0 ||
        take_capabilities(look, &pinned, e) < 0) {
        px_compose_pinned_done(&pinned);
        return -1;
    }
    *ret_pinned = pinned;
    return 0;
}

/* ---- writing ---- */

static struct px_pin_system *rows_of(const struct px_packages *list)
{
    struct px_pin_system *rows = calloc(list->count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < list->count; i++)
        rows[i] = (struct px_pin_system){list->items[i].name, list->items[i].version, list->items[i].arch,
                                         list->items[i].sha256, list->items[i].size};
    return rows;
}

/* The lock's own text with the table in it. */
static int new_text(const struct px_project *p, const struct px_snapshot *look, const struct px_pins_system *system,
                    struct px_buf *out, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(LOCK_MAX);
    struct px_lock again;
    int r = px_buf_read_file(p->site.dir, look->lock_file, LOCK_MAX, &text);
    if (r != 0)
        return px_fail(e, PX_E_LOCK_FORMAT, r < 0 ? r : -ENOENT, "cannot read '%s'", look->lock_file);
    r = px_lock_replace_system(px_buf_text(&text), text.len, system, out);
    if (r == -EEXIST)
        return wrong(look, "is not a table that px wrote, in", look->lock_file, e);
    if (r < 0)
        return px_fail(e, PX_E_LIMIT, r, "the lock is too long");
    if (px_lock_parse(PX_PINS_PX, px_buf_text(out), out->len, look->lock_file, &again, e) < 0)
        return -1;
    px_lock_done(&again);
    return 0;
}

static int write_text(const struct px_project *p, const struct px_snapshot *look, const struct px_pinned *pinned,
                      struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(LOCK_MAX);
    px_auto_free struct px_pin_system *base = rows_of(&pinned->base);
    px_auto_free struct px_pin_system *packages = rows_of(&pinned->packages);
    const struct px_base_row *row = row_of(p);
    const char *names[PX_CAPABILITIES_MAX];
    char from[64];
    (void)px_fmt(from, sizeof from, "%s %s", row->os_id, row->suite);
    struct px_pins_system system = {.base = row->name,
                                    .arch = px_distro_fetch_arch(),
                                    .from = from,
                                    .capabilities = names,
                                    .base_packages = base,
                                    .base_count = pinned->base.count,
                                    .packages = packages,
                                    .count = pinned->packages.count};
    for (; pinned->capabilities[system.capability_count]; system.capability_count++)
        names[system.capability_count] = pinned->capabilities[system.capability_count];
    if (!base || !packages)
        return px_no_memory(e);
    if (new_text(p, look, &system, &out, e) < 0)
        return -1;
    int r = px_layout_replace_file(p->site.dir, look->lock_file, out.data, out.len);
    return r < 0 ? px_fail(e, PX_E_IO, r, "cannot write '%.200s/%s'", p->site.root, look->lock_file) : 0;
}

static bool same_list(const struct px_packages *a, const struct px_packages *b)
{
    struct px_oid x, y;
    return a->count == b->count && px_packages_id(a, &x) == 0 && px_packages_id(b, &y) == 0 && px_hash_oid_equal(&x, &y);
}

static bool same_names(const struct px_pinned *a, const struct px_pinned *b)
{
    size_t i = 0;
    while (a->capabilities[i] && px_equal(a->capabilities[i], b->capabilities[i]))
        i++;
    return !a->capabilities[i] && !b->capabilities[i];
}

/* Whether the lock already has it; base packages alone add nothing to a lock with this base. */
static bool is_said(const struct px_pinned *now, const struct px_pinned *pinned)
{
    return same_list(&now->base, &pinned->base) &&
           (!pinned->whole || (same_names(now, pinned) && same_list(&now->packages, &pinned->packages)));
}

int px_system_pins_write(const struct px_project *p, const struct px_snapshot *look, const struct px_pinned *pinned,
                    bool *ret_wrote, struct px_err *e)
{
    struct px_err ignored = {0};
    struct px_pinned now;
    if (pinned->base.count == 0 || look->lock_foreign || !look->lock_read || look->pins.version != 1 || !row_of(p))
        return 0;
    /* An unreadable table is written again. */
    bool said = px_system_pins_read(p, look, &now, &ignored) == 0 && is_said(&now, pinned);
    px_compose_pinned_done(&now);
    if (said)
        return 0;
    if (write_text(p, look, pinned, e) < 0)
        return -1;
    *ret_wrote = true;
    return 0;
}

int px_system_pins_settle(struct px_project *p, const struct px_snapshot *look, bool *ret_wrote, struct px_err *e)
{
    struct px_pinned learned = {0};
    struct px_err ignored = {0};
    const struct px_project_image_ask ask = {.plan = true, .learn = &learned};
    px_auto_free struct px_project_image *image = calloc(1, sizeof *image);
    if (!image)
        return px_no_memory(e);
    if (look->lock_foreign || !row_of(p))
        return 0;
    /* An impossible sandbox is not an error of the lock: commands that use the sandbox report it. */
    int r = px_project_image_make(p, &ask, image, &ignored) < 0 ? 0 : px_system_pins_write(p, look, &learned, ret_wrote, e);
    px_project_image_done(image);
    px_compose_pinned_done(&learned);
    return r;
}
