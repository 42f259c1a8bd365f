/* pack/answer.c - the answer of `px pack`, for users and programs. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "pack/pack_internal.h"
#include "store/document.h"

enum { WARNINGS_MAX = 100 };

/* "libpq5=15.6-0" of each package that the capabilities brought. */
static json_t *system_deps(const json_t *record)
{
    json_t *out = json_array();
    const json_t *package, *list = json_object_get(json_object_get(record, "lock"), "packages");
    for (size_t i = 0; out && i < json_array_size(list); i++) {
        package = json_array_get(list, i);
        const char *name = px_document_text(package, "name"), *version = px_document_text(package, "version");
        if (name)
            (void)json_array_append_new(out, json_sprintf("%s%s%s", name, version ? "=" : "", version ? version : ""));
    }
    return out;
}

static json_t *warnings(const struct px_worktree *files)
{
    json_t *out = json_array();
    for (size_t i = 0; out && i < files->specials.count && i < WARNINGS_MAX; i++) {
        px_auto_buf struct px_buf text = PX_BUF(1 << 15);
        px_buf_puts(&text, "left out, as it is neither a file nor a link: ");
        px_buf_quote(&text, files->specials.items[i], strlen(files->specials.items[i]));
        (void)json_array_append_new(out, json_string(px_buf_text(&text)));
    }
    return out;
}

/* Why the same commit may give another image later; NULL: it cannot. */
static const char *unpinned(const struct px_pack_job *k)
{
    const struct px_base_row *row = px_bases_find(px_project_base(k->p));
    if (k->sandbox.is_pinned || !row || !row->suite)
        return NULL;
    return k->sandbox.look.lock_foreign
               ? "the packages of the base and of the system libraries are not pinned, so that another day may give "
                 "another image: only a px.lock can pin them"
               : "px.lock does not pin the packages of the base and of the system libraries, so that another day may "
                 "give another image: run `px sync` and commit it";
}

/* base[, system], env, packages (the list of them), app: an image found in the store does not name its layers. */
static const char *name_of(size_t at, size_t count)
{
    static const char *const last[] = {"app", "packages", "env"};
    return at == 0 ? "base" : count - 1 - at < PX_COUNT_OF(last) ? last[count - 1 - at] : "system";
}

static json_t *layers(const struct px_image *image)
{
    json_t *out = json_array();
    for (size_t i = 0; out && i < image->layer_count; i++) {
        const struct px_layer *l = &image->layers[i];
        (void)json_array_append_new(out, json_pack("{ss ss+ ss+ sI}", "name", name_of(i, image->layer_count), "digest", "sha256:",
                                                   l->digest.hex, "diff_id", "sha256:", l->diff_id.hex, "size", (json_int_t)l->size));
    }
    return out;
}

static uint64_t size_of(const struct px_image *image)
{
    uint64_t size = image->manifest_size + image->config_size;
    for (size_t i = 0; i < image->layer_count; i++)
        size += image->layers[i].size;
    return size;
}

/* What --check-repro made again from packages: NULL if it was not asked for. */
static json_t *rebuilt(const struct px_pack_job *k)
{
    json_t *out = k->how->check_repro ? json_array() : NULL;
    if (out && !k->base_is_given)
        (void)json_array_append_new(out, json_string("base"));
    if (out && k->sandbox.capabilities[0])
        (void)json_array_append_new(out, json_string("system"));
    if (out)
        (void)json_array_append_new(out, json_string("env"));
    return out;
}

/* The members of the sandbox describe the sandbox; the digest is that of the packed image. */
static json_t *details(const struct px_pack_job *k)
{
    char digest[80];
    const struct px_located *site = &k->p->site;
    (void)px_fmt(digest, sizeof digest, "sha256:%s", k->image.manifest.hex);
    json_t *out = px_project_image_json(&k->sandbox);
    px_auto(px_document) json_t *more = json_pack(
        "{so* ss* ss so ss sb sb ss ss* ss* ss* so sI so sb sb}", "rebuilt", rebuilt(k), "unpinned", unpinned(k),
        "image_digest", digest, "system_deps", system_deps(k->record), "store",
        px_store_path(k->s->store), "allow_dirty", k->how->allow_dirty, "pushed", k->how->push, "tag", k->build.tag, "out", k->how->out,
        "workspace_root", site->workspace ? site->root : NULL, "commit", *k->files.commit ? k->files.commit : NULL, "layers", layers(&k->image),
        "size", (json_int_t)size_of(&k->image), "warnings", warnings(&k->files), "cached", k->sandbox.cached, "checked",
        k->how->check_repro);
    if (out && more && json_object_update(out, more) == 0)
        return out;
    json_decref(out);
    return NULL;
}

int px_pack_answer(const struct px_pack_job *k, char **ret_json, struct px_err *e)
{
    px_auto_buf struct px_buf message = PX_BUF(1 << 14);
    const struct px_project_image *image = &k->sandbox;
    px_buf_printf(&message, "sbx_id=%s (base=%s, capabilities=", image->sbx_id.hex, image->base);
    for (size_t i = 0; image->capabilities[i]; i++)
        px_buf_printf(&message, "%s%s", i ? "," : "", image->capabilities[i]);
    px_buf_puts(&message, image->capabilities[0] ? ")" : "none)");
    json_t *members = details(k);
    return !members || message.err < 0 ? px_no_memory(e) : px_project_answer("pack image", "ok", px_buf_text(&message), members, false, ret_json, e);
}
