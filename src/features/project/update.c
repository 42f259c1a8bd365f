/* project/update.c - updates the pins of a lock to current versions. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "pep/marker.h"
#include "project/env.h"
#include "project/image.h"
#include "project/snapshot.h"
#include "project/system_pins.h"
#include "store/document.h"

enum { NAME_BYTES = 256 };

/* ---- what changed ---- */

/* One of the two may be NULL. */
static int add_change(json_t *list, const char *name, const char *from, const char *to)
{
    if (from && to && px_equal(from, to))
        return 0;
    return json_array_append_new(list, json_pack("{s:s, s:s?, s:s?}", "name", name, "from", from, "to", to));
}

/* "px update: six 1.16.0 -> 1.17.0" */
static int answer(const struct px_project *p, const struct px_snapshot *l, const char *action, json_t *changes,
                  char **ret_json, struct px_err *e)
{
    size_t count = json_array_size(changes);
    char message[256];
    json_t *first = json_array_get(changes, 0);
    const char *from = px_document_text(first, "from"), *to = px_document_text(first, "to");
    if (count == 1)
        (void)px_fmt(message, sizeof message, "%.80s %.60s -> %.60s", px_document_text(first, "name"),
                     from ? from : "not there", to ? to : "not needed");
    else if (count > 0)
        (void)px_fmt(message, sizeof message, "%zu packages changed", count);
    else
        (void)px_fmt(message, sizeof message, "nothing is newer than what %s has", l->lock_file);
    json_t *details = json_pack("{s:s, s:s, s:s, s:b, s:o}", "action", action, "root", p->site.root, "lock", l->lock_file,
                                "wrote_lock", (int)(count > 0), "changed", changes);
    return px_project_answer("update", "ok", message, details, false, ret_json, e);
}

/* ---- packages of the environment ---- */

static const struct px_lock_pin *find_pin(const struct px_lock *pins, const char *name)
{
    for (size_t i = 0; i < pins->count; i++)
        if (px_equal(pins->items[i].name, name))
            return &pins->items[i];
    return NULL;
}

static bool is_named(const char *const *names, const char *package)
{
    char canonical[NAME_BYTES];
    for (size_t i = 0; names[i]; i++)
        if (px_marker_package_name(names[i], strlen(names[i]), canonical, sizeof canonical) == 0 &&
            px_equal(canonical, package))
            return true;
    return false;
}

static int check_names(const struct px_snapshot *l, const char *const *names, struct px_err *e)
{
    char canonical[NAME_BYTES];
    for (size_t i = 0; names[i]; i++)
        if (px_marker_package_name(names[i], strlen(names[i]), canonical, sizeof canonical) < 0 ||
            !find_pin(&l->pins, canonical)) {
            (void)px_fail(e, PX_E_VALUE, 0, "'%.100s' is not a package of %s", names[i], l->lock_file);
            return px_fix(e, "Write the name of a package that the lock has.\n"
                             "What pyproject.toml asks for since: px sync.");
        }
    return 0;
}

/* "name==version" of all but the named. */
static int list_kept(const struct px_snapshot *l, const char *const *names, struct px_names *keep, struct px_err *e)
{
    keep->items = calloc(l->pins.count + 1, sizeof *keep->items);
    if (!keep->items)
        return px_no_memory(e);
    for (size_t i = 0; i < l->pins.count; i++)
        if (l->pins.items[i].specifier && !l->pins.items[i].own && !is_named(names, l->pins.items[i].name))
            keep->items[keep->count++] = l->pins.items[i].specifier;
    return 0;
}

static json_t *changes_of(const struct px_lock *before, const struct px_lock *after)
{
    json_t *list = json_array();
    int r = list ? 0 : -1;
    for (size_t i = 0; r == 0 && i < after->count; i++) {
        const struct px_lock_pin *was = find_pin(before, after->items[i].name);
        r = add_change(list, after->items[i].name, was ? was->version : NULL, after->items[i].version);
    }
    for (size_t i = 0; r == 0 && i < before->count; i++)
        if (!find_pin(after, before->items[i].name))
            r = add_change(list, before->items[i].name, before->items[i].version, NULL);
    if (r == 0)
        return list;
    json_decref(list);
    return NULL;
}

static int update_packages(struct px_project *p, const struct px_snapshot *before, const struct px_update *how,
                           char **ret_json, struct px_err *e)
{
    struct px_names keep = {0};
    struct px_snapshot l;
    bool built = false, some = how->names && how->names[0];
    if (some && (check_names(before, how->names, e) < 0 || list_kept(before, how->names, &keep, e) < 0))
        return -1;
    px_auto_free const char **items = keep.items;
    if (px_snapshot_at(p, &l, e) < 0)
        return -1;
    int r = px_snapshot_relock(p, &l, some ? &keep : NULL, e);
    if (r == 0 && l.state == PX_STATE_NEEDS_ENV)
        r = px_project_env_sync(p, &l, false, &built, e);
    json_t *changes = r < 0 ? NULL : changes_of(&before->pins, &l.pins);
    if (r == 0)
        r = changes ? answer(p, &l, "update", changes, ret_json, e) : px_no_memory(e);
    px_snapshot_done(&l);
    return r;
}

/* ---- packages of the system ---- */

static const char *version_in(const struct px_packages *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (px_equal(list->items[i].name, name))
            return list->items[i].version;
    return NULL;
}

static int compare_lists(json_t *list, const struct px_packages *before, const struct px_packages *after)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < after->count; i++)
        r = add_change(list, after->items[i].name, version_in(before, after->items[i].name), after->items[i].version);
    for (size_t i = 0; r == 0 && i < before->count; i++)
        if (!version_in(after, before->items[i].name))
            r = add_change(list, before->items[i].name, before->items[i].version, NULL);
    return r;
}

static int not_built(const struct px_project *p, struct px_err *e)
{
    (void)px_fail(e, PX_E_BASE, 0, "the base '%.100s' is not made of packages that px knows", px_project_base(p));
    (void)px_why(e, "It was imported as it is.");
    return px_fix(e, "Import it again: px sandbox base remove %.100s, then px sandbox base import.",
                  px_project_base(p));
}

/* Builds first and then writes: a lock never names packages that cannot be installed. */
static int renew(struct px_project *p, const struct px_snapshot *l, struct px_project_image *image, char **ret_json,
                 struct px_err *e)
{
    const struct px_ready ready = {.command = "run"};
    struct px_pinned learned = {0}, before = {0};
    struct px_err ignored = {0};
    const struct px_project_image_ask ask = {.ready = &ready, .renew = true, .learn = &learned};
    bool wrote = false;
    if (px_project_image_make(p, &ask, image, e) < 0)
        return -1;
    (void)px_system_pins_read(p, l, &before, &ignored);
    int r = learned.base.count == 0 ? not_built(p, e) : px_system_pins_write(p, l, &learned, &wrote, e);
    json_t *changes = r < 0 ? NULL : json_array();
    if (r == 0 && (!changes || compare_lists(changes, &before.base, &learned.base) < 0 ||
                   compare_lists(changes, &before.packages, &learned.packages) < 0))
        r = px_no_memory(e);
    if (r == 0)
        r = answer(p, l, "update_system", changes, ret_json, e);
    else
        json_decref(changes);
    px_compose_pinned_done(&before);
    px_compose_pinned_done(&learned);
    return r;
}

static int update_system(struct px_project *p, const struct px_snapshot *l, char **ret_json, struct px_err *e)
{
    px_auto_free struct px_project_image *image = calloc(1, sizeof *image);
    if (!image)
        return px_no_memory(e);
    int r = renew(p, l, image, ret_json, e);
    px_project_image_done(image);
    return r;
}

/* ---- the whole ---- */

static int frozen(struct px_err *e)
{
    (void)px_fail(e, PX_E_LOCK, 0, "the lock is not changed here: CI is set");
    (void)px_detail(e, "reason", "frozen");
    (void)px_why(e, "In a pipeline nothing is used but what the lock says.");
    return px_fix(e, "Run px update where you develop, and commit the lock.\n"
                     "Or unset CI for this command: CI= px update.");
}

/* A lock of another tool has no system pins, and px does not change it. */
static int foreign(const struct px_snapshot *l, struct px_err *e)
{
    (void)px_fail(e, PX_E_LOCK, 0, "'%s' is the lock, and another tool wrote it", l->lock_file);
    (void)px_detail(e, "reason", "foreign_lock");
    return px_fix(e, "Let that tool update it.\nOr remove %s: then `px sync` writes px.lock, which px update moves.",
                  l->lock_file);
}

static int update(struct px_project *p, const struct px_snapshot *l, const struct px_update *how, char **ret_json,
                  struct px_err *e)
{
    enum px_act act;
    if (l->state == PX_STATE_UNINITIALIZED && px_snapshot_decide(p, l, PX_ASKER_SYNC_FROZEN, true, false, &act, e) < 0)
        return -1;
    if (px_project_frozen(false))
        return frozen(e);
    if (l->lock_foreign)
        return foreign(l, e);
    return how->system ? update_system(p, l, ret_json, e) : update_packages(p, l, how, ret_json, e);
}

int px_project_update(struct px_project *p, const struct px_update *how, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct px_snapshot l;
    if (px_project_base_bring(p, false, e) < 0 || px_snapshot_at(p, &l, e) < 0)
        return -1;
    int r = px_project_frozen(false) ? 0 : px_snapshot_settle(p, &l, e);
    r = r < 0 ? -1 : update(p, &l, how, ret_json, e);
    px_snapshot_done(&l);
    return r;
}
