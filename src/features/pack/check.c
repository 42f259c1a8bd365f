/* pack/check.c - builds the same image again and compares it. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "distro/base.h"
#include "image/differ.h"
#include "pack/pack_internal.h"
#include "project/env.h"
#include "store/document.h"

/* The functions that rebuild and compare fill their own errors. A failed download has its own reason. */
static int is_another(struct px_err *e)
{
    if ((e->code == PX_E_BUILD && !strstr(e->details, "\"reason\"")) || e->code == PX_E_OBJECT)
        e->code = PX_E_SANDBOX_FORMAT;
    return e->code == PX_E_SANDBOX_FORMAT ? px_detail(e, "reason", "not_reproducible") : -1;
}

/* Packs the project's files again. */
static int check_app(struct px_pack_job *k, struct px_app *first, struct px_err *e)
{
    struct px_layer second;
    first->layer = k->app.layer;
    if (k->compression != PX_COMPRESS_GZIP && px_pack_app(k, PX_COMPRESS_GZIP, &first->layer, e) < 0)
        return -1;
    px_worktree_done(&k->files);
    if (px_pack_files(k, false, e) < 0 || px_pack_app(k, PX_COMPRESS_GZIP, &second, e) < 0)
        return -1;
    if (px_hash_oid_equal(&second.digest, &first->layer.digest))
        return 0;
    (void)px_fail(e, PX_E_SANDBOX_FORMAT, 0, "the project's files gave another layer the second time");
    (void)px_why(e, "Something writes in the project.");
    (void)px_differ(k->s->store, "application", &first->layer, &second, e);
    return is_another(e);
}

/* Rebuilds the base from its packages; missing ones are fetched. An imported base cannot be rebuilt. */
static int check_base(struct px_pack_job *k, struct px_err *e)
{
    struct px_base base = {0};
    if (px_catalog_base_need(k->s->store, k->sandbox.base_os_oid.hex, &base, e) < 0)
        return -1;
    int r = px_distro_base_again(k->s, &base, e);
    px_catalog_base_done(&base);
    k->base_is_given = r == 1;
    return r < 0 && e->code == PX_E_SANDBOX_FORMAT ? is_another(e) : r < 0 ? -1 : 0;
}

/* Installs the capabilities again, assembles the layers again, and compares the image. */
static int check_image(struct px_pack_job *k, const struct px_app *app, bool again, struct px_oid *ret_manifest, struct px_err *e)
{
    const struct px_image_build how = {.force = again};
    px_auto_free struct px_image *image = calloc(1, sizeof *image);
    px_auto(px_document) json_t *record = NULL;
    if (!image)
        return px_no_memory(e);
    if (px_project_image_ship(k->p, &k->sandbox, app, &how, image, &record, e) < 0)
        return again ? is_another(e) : -1;
    *ret_manifest = image->manifest;
    px_image_done(image);
    return 0;
}

/* An archive is unpacked or built only once. Only a second build shows whether other machines get the same package. */
static int check_packages(struct px_pack_job *k, struct px_err *e)
{
    return px_project_env_compare(k->p, &k->sandbox.look, &k->sandbox.env, e);
}

int px_pack_check(struct px_pack_job *k, struct px_err *e)
{
    struct px_app app = {.command = k->app.command};
    struct px_oid first, second;
    if (check_app(k, &app, e) < 0 || check_image(k, &app, false, &first, e) < 0 ||
        check_image(k, &app, true, &second, e) < 0 || check_base(k, e) < 0 || check_packages(k, e) < 0)
        return -1;
    if (px_hash_oid_equal(&first, &second))
        return 0;
    (void)px_fail(e, PX_E_SANDBOX_FORMAT, 0, "the image is another the second time: %s instead of %s", second.hex, first.hex);
    return is_another(e);
}
