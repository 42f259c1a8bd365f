#include "project/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <px/sandbox.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "compose/compose.h"
#include "distro/base.h"
#include "project/env.h"
#include "project/system_pins.h"
#include "store/document.h"

enum { TRIES = 4 };

void px_project_image_done(struct px_project_image *image)
{
    px_snapshot_done(&image->look);
    px_compose_pinned_done(&image->pinned);
    px_env_done(&image->env);
    px_infer_done(&image->inferred);
    px_image_done(&image->image);
    px_lease_drop(image->lease);
    free(image->base);
    free(image->root);
    free(image->inside);
    *image = (struct px_project_image){0};
}

/* ---- what it is made of ---- */

/* Checked first: an environment for an unknown base would be made for another Python. */
static int take_base(struct px_project *p, bool plan, struct px_project_image *image, struct px_err *e)
{
    image->base = strdup(px_project_base_said(p));
    return image->base ? px_project_base_bring(p, plan, e) : px_no_memory(e);
}

/* The known capabilities; names point into the table. */
static int choose(struct px_project_image *image, const char *const *extra, struct px_capability_set *ret_set,
                  struct px_err *e)
{
    const char *names[2 * PX_INFER_NAMES_MAX + 1];
    size_t count = 0;
    for (; count < image->inferred.effective_count; count++)
        names[count] = image->inferred.effective[count];
    for (size_t i = 0; extra && extra[i]; i++) {
        if (count == PX_COUNT_OF(names) - 1)
            return px_fail(e, PX_E_LIMIT, E2BIG, "too many capabilities");
        names[count++] = extra[i];
    }
    names[count] = NULL;
    if (px_capability_set_make(names, ret_set, e) < 0)
        return -1;
    for (size_t i = 0; i < ret_set->count; i++)
        image->capabilities[i] = ret_set->items[i]->name;
    return 0;
}

static int infer(const struct px_project *p, struct px_project_image *image, const char *const *extra, struct px_err *e)
{
    struct px_capability_set set;
    const struct px_env *env = image->env.runtime ? &image->env : NULL;
    const struct px_lock none = {0};
    const struct px_lock *pins = image->look.lock_read ? &image->look.pins : &none;
    return px_env_infer(&p->site.manifest, pins, px_project_python(p), env, &image->inferred, e) < 0 ||
                   choose(image, extra, &set, e) < 0
               ? -1
               : 0;
}

static int look_and_load(struct px_project *p, const struct px_project_image_ask *ask, struct px_project_image *image,
                         struct px_err *e)
{
    p->by_image = true;
    int r = take_base(p, ask->plan, image, e) < 0 ? -1 : px_snapshot_at(p, &image->look, e);
    p->by_image = false;
    if (r < 0 || (!ask->renew && px_system_pins_read(p, &image->look, &image->pinned, e) < 0))
        return -1;
    if (ask->plan)
        return px_project_env_box_recall(p, &image->look, &image->env, e) < 0 ? -1 : 0;
    return px_snapshot_box_ready(p, &image->look, ask->ready, e) < 0 ||
                   px_project_env_box_need(p, &image->look, ask->ready->frozen, &image->env, e) < 0
               ? -1
               : 0;
}

/* ---- what of it is shipped ---- */

static int add_names(struct px_names *list, const struct px_names *more)
{
    if (more->count == 0)
        return 0;
    const char **items = realloc(list->items, (list->count + more->count) * sizeof *items);
    if (!items)
        return -ENOMEM;
    memcpy(items + list->count, more->items, more->count * sizeof *items);
    list->items = items;
    list->count += more->count;
    return 0;
}

static bool is_named(const struct px_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (px_equal(names->items[i], name))
            return true;
    return false;
}

/* Groups in include-groups belong to the project; without that key all groups are for development. */
static int sort_requirements(const struct px_manifest *m, struct px_names *needed, struct px_names *development)
{
    int r = add_names(needed, &m->dependencies);
    if (r == 0)
        r = add_names(needed, &m->extra_requirements);
    for (size_t i = 0; r == 0 && i < m->group_count; i++)
        r = add_names(is_named(&m->active_groups, m->groups[i].name) ? needed : development, &m->groups[i].requirements);
    return r;
}

/* The capabilities are those of the sandbox, because the lock pins their packages. */
static int leave_out_groups(struct px_project *p, struct px_project_image *image, struct px_err *e)
{
    struct px_names needed = {0}, development = {0};
    struct px_target target;
    struct px_sandbox *s = NULL;
    const struct px_located *site = &p->site;
    int r = px_project_sandbox(p, &s, e);
    if (r == 0 && sort_requirements(&site->manifest, &needed, &development) < 0)
        r = px_no_memory(e);
    for (size_t i = 0; r == 0 && i < site->member_count; i++)
        if (sort_requirements(&site->members[i].manifest, &needed, &development) < 0)
            r = px_no_memory(e);
    if (r == 0 && development.count) {
        size_t before = image->env.count;
        px_target_for(image->env.runtime, &target);
        px_infer_done(&image->inferred);     /* its strings belong to the packages */
        r = px_env_ship(s, &needed, &development, &target.env, &image->env, e);
        image->narrowed = image->env.count != before;
    }
    free(needed.items);
    free(development.items);
    return r;
}

/* ---- building ---- */

/* The name of the base that the lock pins: that of the lock file. */
static int name_base(const struct px_project *p, char *out, size_t size, struct px_err *e)
{
    return px_fmt(out, size, "%s/%s", p->site.root, px_locate_lock_file(&p->site)) < 0
               ? px_fail(e, PX_E_LIMIT, ENAMETOOLONG, "the path of the project is too long")
               : 0;
}

/* The paths that a box needs, and a lease on everything. */
static int hold(struct px_compose *b, struct px_project_image *image, struct px_err *e)
{
    char root[PATH_MAX], inside[PATH_MAX];
    struct px_oid trees[] = {b->root, b->part.tree}, blobs[PX_IMAGE_LAYERS_MAX + 2];
    size_t count = 0;
    blobs[count++] = b->image.manifest;
    blobs[count++] = b->image.config_digest;
    for (size_t i = 0; i < b->image.layer_count; i++)
        blobs[count++] = b->image.layers[i].digest;
    if (px_lease_take(b->s->store, trees, PX_COUNT_OF(trees), blobs, count, &image->lease, e) < 0 ||
        px_tree_path(b->s->store, &b->root, root, sizeof root, e) < 0 ||
        px_tree_path(b->s->store, &b->part.tree, inside, sizeof inside, e) < 0)
        return -1;
    image->root = strdup(root);
    image->inside = strdup(inside);
    return image->root && image->inside ? 0 : px_no_memory(e);
}

/* A name after the project keeps it from being cleaned as unnamed. A shipped image that differs has a second name,
 * valid as long as the project exists. */
static int keep_name(const struct px_project *p, const struct px_project_image *image, const struct px_compose *b, struct px_err *e)
{
    px_auto_buf struct px_buf name = PX_BUF(PATH_MAX + 32);
    struct px_oid now;
    px_buf_printf(&name, "%s%s", p->site.root, image->narrowed ? "/" PX_MANIFEST_FILE : "");
    if (name.err < 0)
        return px_no_memory(e);
    int r = px_name_get(b->s->store, PX_RECORD_IMAGE, px_buf_text(&name), &now, e);
    if (r < 0 || (r == 0 && px_hash_oid_equal(&now, &b->id)))
        return r;
    return px_name_put(b->s->store, PX_RECORD_IMAGE, px_buf_text(&name), &b->id, e);
}

/* What the lock could pin; nothing for an imported base. */
static int learn(const struct px_compose *b, bool whole, struct px_pinned *out, struct px_err *e)
{
    if (!out || !b->base.record)
        return 0;
    int r = px_distro_base_packages(b->s, &b->base, &out->base, e);
    if (r != 0 || !whole)
        return r < 0 ? -1 : 0;
    for (size_t i = 0; i < b->set.count; i++)
        out->capabilities[i] = b->set.items[i]->name;
    out->whole = true;
    return px_packages_copy(&b->lock, &out->packages) < 0 ? px_no_memory(e) : 0;
}

static void take_ids(const struct px_compose *b, struct px_project_image *image)
{
    image->base_os_oid = b->base.oid;
    image->is_pinned = px_compose_is_pinned(b);
    image->system = b->system;
    if (image->env.runtime)
        image->sbx_id = b->sbx_id;
}

/* Only known members: a missing base, unresolved packages or a missing environment have no id yet. */
static int plan(struct px_compose *b, struct px_project_image *image, struct px_pinned *learned, struct px_err *e)
{
    px_auto(px_document) json_t *record = NULL;
    int r = px_compose_find(b, true, e);
    if (r < 0 || learn(b, r == 0, learned, e) < 0)
        return -1;
    image->base_os_oid = b->base.oid;
    if (r > 0)
        return 0;
    take_ids(b, image);
    struct px_err ignored = {0};
    image->cached = image->env.runtime && px_catalog_image_find(b->s->store, b->id.hex, &record, &image->image.manifest, &ignored) == 0;
    return 0;
}

static int build(const struct px_project *p, struct px_compose *b, struct px_project_image *image,
                 struct px_pinned *learned, struct px_err *e)
{
    if (px_compose_find(b, false, e) < 0 || px_compose_make(b, e) < 0 || keep_name(p, image, b, e) < 0 ||
        hold(b, image, e) < 0 || learn(b, true, learned, e) < 0)
        return -1;
    take_ids(b, image);
    image->cached = b->cached;
    image->image = b->image;
    b->image = (struct px_image){0};
    return 0;
}

static int find_or_build(struct px_project *p, const struct px_project_image_ask *ask, struct px_project_image *image,
                         struct px_err *e)
{
    const struct px_image_build how = {.base = px_project_base(p), .capabilities = image->capabilities, .force = ask->force};
    px_auto_free struct px_compose *b = calloc(1, sizeof *b);
    char place[PATH_MAX];
    if (!b)
        return px_no_memory(e);
    if (name_base(p, place, sizeof place, e) < 0)
        return -1;
    *b = (struct px_compose){.how = &how, .env = image->env.runtime ? &image->env : NULL, .pinned = &image->pinned,
                              .place = place, .renew = ask->renew};
    int r = px_project_sandbox(p, &b->s, e) < 0 ? -1
            : ask->plan                         ? plan(b, image, ask->learn, e)
                                                : build(p, b, image, ask->learn, e);
    px_compose_done(b);
    return r;
}

static int make_once(struct px_project *p, const struct px_project_image_ask *ask, struct px_project_image *ret_image,
                     struct px_err *e)
{
    *ret_image = (struct px_project_image){0};
    if (look_and_load(p, ask, ret_image, e) == 0 && infer(p, ret_image, ask->extra, e) == 0 &&
        (!ask->shipped || leave_out_groups(p, ret_image, e) == 0) && find_or_build(p, ask, ret_image, e) == 0)
        return 0;
    px_project_image_done(ret_image);
    return -1;
}

/* A damaged tree found during the build is moved away, and the second pass makes it again; its inputs may be damaged
 * too. */
int px_project_image_make(struct px_project *p, const struct px_project_image_ask *ask, struct px_project_image *ret_image,
                          struct px_err *e)
{
    int r = -1;
    for (int tries = 0; tries < TRIES && r < 0; tries++) {
        unsigned before = p->sandbox ? px_store_asides(p->sandbox->store) : 0;
        r = make_once(p, ask, ret_image, e);
        if (!p->sandbox || px_store_asides(p->sandbox->store) == before)
            break;
    }
    return r;
}

/* ---- with the project itself ---- */

int px_project_image_ship(struct px_project *p, const struct px_project_image *image, const struct px_app *app,
                          const struct px_image_build *how, struct px_image *ret_image, json_t **ret_json, struct px_err *e)
{
    struct px_image_build same = *how;
    px_auto_free struct px_compose *b = calloc(1, sizeof *b);
    char place[PATH_MAX];
    if (!b)
        return px_no_memory(e);
    if (name_base(p, place, sizeof place, e) < 0)
        return -1;
    same.base = px_project_base(p);
    same.capabilities = image->capabilities;
    *b = (struct px_compose){
        .how = &same, .env = &image->env, .app = app, .pinned = &image->pinned, .place = place};
    int r = px_project_sandbox(p, &b->s, e) < 0 || px_compose_words(b, e) < 0 || px_compose_find(b, false, e) < 0 || px_compose_make(b, e) < 0 ||
                    px_compose_deliver(b, e) < 0
                ? -1 : 0;
    json_t *json = r < 0 ? NULL : px_compose_json(b);
    if (r == 0 && !json)
        r = px_no_memory(e);
    if (r == 0) {
        *ret_json = json;
        *ret_image = b->image;
        b->image = (struct px_image){0};
    }
    px_compose_done(b);
    return r;
}

/* ---- telling ---- */

json_t *px_project_image_json(const struct px_project_image *image)
{
    char digest[80] = "";
    json_t *names = json_array();
    for (size_t i = 0; names && image->capabilities[i]; i++)
        (void)json_array_append_new(names, json_string(image->capabilities[i]));
    if (*image->image.manifest.hex)
        (void)px_fmt(digest, sizeof digest, "sha256:%s", image->image.manifest.hex);
    return json_pack("{ss* ss* ss ss* so ss* ss*}", "system_oid", *image->system.hex ? image->system.hex : NULL, "sbx_id",
                     *image->sbx_id.hex ? image->sbx_id.hex : NULL, "base", image->base,
                     "base_os_oid", *image->base_os_oid.hex ? image->base_os_oid.hex : NULL, "capabilities", names,
                     "profile_oid", *image->env.profile.hex ? image->env.profile.hex : NULL, "image_digest",
                     *digest ? digest : NULL);
}
