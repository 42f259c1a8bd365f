/* `px sandbox` in a project: build, explain and status. */
#include <stdlib.h>
#include <string.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "project/image.h"
#include "store/document.h"

enum { TEXT_MAX = 16 << 20 };

/* "base=debian-12, capabilities=postgres,xml" */
static void describe(const struct px_project_image *image, struct px_buf *out)
{
    px_buf_printf(out, "sbx_id=%s (base=%s, capabilities=", *image->sbx_id.hex ? image->sbx_id.hex : "unknown", image->base);
    for (size_t i = 0; image->capabilities[i]; i++)
        px_buf_printf(out, "%s%s", i ? "," : "", image->capabilities[i]);
    px_buf_puts(out, image->capabilities[0] ? ")" : "none)");
}

/* Takes ownership of the details; frees the image. */
static int answer(const char *command, struct px_project_image *image, json_t *details, char **ret_json, struct px_err *e)
{
    px_auto_buf struct px_buf message = PX_BUF(1 << 14);
    describe(image, &message);
    px_project_image_done(image);
    return px_project_answer(command, "ok", px_buf_text(&message), details, true, ret_json, e);
}

/* ---- build ---- */

static uint64_t size_of(const struct px_image *image)
{
    uint64_t size = image->manifest_size + image->config_size;
    for (size_t i = 0; i < image->layer_count; i++)
        size += image->layers[i].size;
    return size;
}

/* Whether another format or another output is wanted. */
static int ship(struct px_project *p, const struct px_project_image *image, const struct px_image_build *how,
                json_t *details, struct px_err *e)
{
    px_auto_free struct px_image *other = calloc(1, sizeof *other);
    px_auto(px_document) json_t *record = NULL;
    char digest[80];
    if (!how->out && !how->tag && !how->push && !how->compression)
        return 0;
    if (!other)
        return px_no_memory(e);
    if (px_project_image_ship(p, image, NULL, how, other, &record, e) < 0)
        return -1;
    (void)px_fmt(digest, sizeof digest, "sha256:%s", other->manifest.hex);
    px_auto(px_document) json_t *more = json_pack("{sssIss*ss*sb}", "image_digest", digest, "size", (json_int_t)size_of(other),
                                                  "out", how->out, "tag", how->tag, "pushed", (int)how->push);
    px_image_done(other);
    return !more || json_object_update(details, more) < 0 ? px_no_memory(e) : 0;
}

int px_project_sandbox_build(struct px_project *p, const struct px_image_build *how, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    const struct px_ready ready = {.command = "run"};
    const struct px_project_image_ask ask = {.ready = &ready, .force = how->force};
    px_auto_free struct px_project_image *image = calloc(1, sizeof *image);
    if (!image)
        return px_no_memory(e);
    if (px_project_image_make(p, &ask, image, e) < 0)
        return -1;
    px_auto(px_document) json_t *details = px_project_image_json(image);
    px_auto(px_document) json_t *more = json_pack("{sbsIss}", "cached", (int)image->cached, "size",
                                                  (json_int_t)size_of(&image->image), "root", p->site.root);
    int r = !details || !more || json_object_update(details, more) < 0 ? px_no_memory(e) : ship(p, image, how, details, e);
    if (r < 0) {
        px_project_image_done(image);
        return -1;
    }
    return answer("sandbox build", image, px_take(&details), ret_json, e);
}

/* ---- explain ---- */

static bool is_refused(const struct px_manifest *m, const char *capability)
{
    for (size_t i = 0; i < m->wish_count; i++)
        if (px_equal(m->wishes[i].name, capability) && !m->wishes[i].enabled)
            return true;
    return false;
}

/* Lists the reasons; for unused ones, why. */
static json_t *reasons(const struct px_project *p, const struct px_inferred *inferred)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    struct px_json j = {.out = &text};
    json_t *list, *item;
    size_t i;
    px_json_object(&j, NULL);
    px_env_explain(inferred, &j, "reasons");
    px_json_end(&j);
    px_auto(px_document) json_t *object = text.err < 0 ? NULL : json_loadb(px_buf_text(&text), text.len, 0, NULL);
    list = json_object_get(object, "reasons");
    json_array_foreach(list, i, item) {
        const char *name = json_string_value(json_object_get(item, "capability"));
        if (!json_is_true(json_object_get(item, "counts")) && !json_object_get(item, "set_aside"))
            (void)json_object_set_new(item, "set_aside",
                                      json_string(is_refused(&p->site.manifest, name)
                                                      ? "[tool.px.sandbox.capabilities] says false"
                                                      : "[tool.px.sandbox] says auto = false"));
    }
    return json_incref(list);
}

static const char *unknown_because(const struct px_project_image *image)
{
    if (*image->sbx_id.hex)
        return NULL;
    if (image->look.flags.lock_exists && !image->env.runtime)
        return "The environment is not there as the lock has it: `px sync` makes it. Until then the lock alone is looked at.";
    if (!image->env.runtime)
        return "There is no lock: `px sync` writes it.";
    return *image->base_os_oid.hex
               ? "The archive was not asked yet for the capabilities' packages: `px sandbox build` does it."
               : "The base is not in the store yet: `px sandbox build` makes it.";
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

static json_t *explain(const struct px_project *p, const struct px_project_image *image)
{
    const struct px_manifest *m = &p->site.manifest;
    json_t *details = px_project_image_json(image), *names = json_object_get(details, "capabilities");
    json_t *out = json_pack("{ss sb ss so so so sO so sb sb so so so sb}", "root", p->site.root, "workspace", (int)p->site.workspace, "base",
                     image->base, "base_os_oid", text_or_null(image->base_os_oid.hex), "sbx_id",
                     text_or_null(image->sbx_id.hex), "profile_oid", text_or_null(image->env.profile.hex), "capabilities",
                     names, "image_digest", text_or_null(px_document_text(details, "image_digest")), "auto",
                     (int)m->sandbox_auto, "built", (int)image->cached, "reasons", reasons(p, &image->inferred), "unknown",
                     text_or_null(unknown_because(image)), "system_oid", text_or_null(image->system.hex), "pinned",
                     (int)image->is_pinned);
    json_decref(details);
    return out;
}

int px_project_sandbox_explain(struct px_project *p, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    const struct px_project_image_ask ask = {.plan = true};
    px_auto_free struct px_project_image *image = calloc(1, sizeof *image);
    if (!image)
        return px_no_memory(e);
    if (px_project_image_make(p, &ask, image, e) < 0)
        return -1;
    return answer("sandbox explain", image, explain(p, image), ret_json, e);
}
