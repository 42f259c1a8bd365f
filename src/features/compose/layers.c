/* compose/layers.c - the layers and the config of an image. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "compose/compose.h"
#include "image/differ.h"
#include "image/documents.h"
#include "image/sbom.h"
#include "pep/wheel.h"
#include "store/document.h"

enum { SBOM_MAX = 64 << 20 };

/* A project's image runs as its sandbox does: the same user and home. */
#define USER "1000:1000"
#define HOME_NAME "home/sandbox"

/* ---- its layers ---- */

static int add_layer(struct px_compose *b, const struct px_layer *layer, const char *comment)
{
    b->image.layers[b->image.layer_count] = *layer;
    b->image.comments[b->image.layer_count++] = comment;
    return 0;
}

static int pack_base(struct px_compose *b, struct px_layer *ret_layer, struct px_err *e)
{
    px_auto_fd int root = -EBADF;
    if (px_tree_open(b->s->store, &b->base.tree, &root, e) < 0)
        return -1;
    px_auto_fd int dir = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct px_pack pack = {.dirfd = dir, .compression = b->compression};
    return px_layer_pack(b->s->store, &pack, b->s->progress, ret_layer, e);
}

/* The base's own layer, or its tree packed again: in another form, or because the layer was lost. */
static int add_base(struct px_compose *b, struct px_err *e)
{
    struct px_layer layer = b->base.layer;
    bool again = b->how->force || layer.compression != b->compression || !px_blob_has(b->s->store, &layer.digest);
    if (again && pack_base(b, &layer, e) < 0)
        return -1;
    if (px_hash_oid_equal(&layer.diff_id, &b->base.layer.diff_id))
        return add_layer(b, &layer, "base");
    (void)px_fail(e, PX_E_OBJECT, 0, "the files of base '%s' are not what they were when it was built", b->base.name);
    (void)px_differ(b->s->store, "base", &b->base.layer, &layer, e);
    return px_fix(e, "Build or import it again: px sandbox base remove %s, then px sandbox base build %s.", b->base.name, b->base.name);
}

static int add_capabilities(struct px_compose *b, struct px_err *e)
{
    struct px_capability_ask ask = {.base = &b->base, .row = b->row, .set = &b->set, .compression = b->compression,
                                    .lock = &b->lock, .force = b->how->force};
    if (px_capability_layer_make(b->s, &ask, &b->capabilities, e) < 0)
        return -1;
    return b->capabilities.any ? add_layer(b, &b->capabilities.layer, "capabilities") : 0;
}

/* The root of a box: the layers so far as one directory. Without capabilities it is the base's own. */
static int make_root(struct px_compose *b, struct px_err *e)
{
    b->root = b->base.tree;
    return b->capabilities.any ? px_image_tree(b->s->store, &b->image, b->s->progress, &b->root, e) : 0;
}

static int add_env(struct px_compose *b, struct px_err *e)
{
    if (!b->env)
        return 0;
    if (make_root(b, e) < 0 || px_env_part_make(b->s, b->env, &b->base, b->compression, b->how->force, &b->part, e) < 0)
        return -1;
    return add_layer(b, &b->part.layer, "environment");
}

/* The Python packages as the list of packages has them; NULL without memory. */
static json_t *env_packages(const struct px_env *env)
{
    json_t *out = json_array();
    for (size_t i = 0; out && env && i < env->count; i++)
        (void)json_array_append_new(out, json_pack("{ssssssss}", "arch", "any", "name", env->packages[i].name, "version",
                                                   env->packages[i].version, "sha256", env->packages[i].sha256.hex));
    return out;
}

static int sbom_text(struct px_compose *b, struct px_buf *out, struct px_err *e)
{
    px_auto_buf struct px_buf name = PX_BUF(1 << 16);
    px_auto(px_document) json_t *lock = px_packages_lock(&b->capabilities.packages, b->base.name, "");
    px_auto(px_document) json_t *python = env_packages(b->env);
    px_buf_puts(&name, b->base.name);
    for (size_t i = 0; i < b->set.count; i++)
        px_buf_printf(&name, "+%s", b->set.items[i]->name);
    struct px_sbom sbom = {
        .name = px_buf_text(&name),
        .sbx_id = b->sbx_id.hex,
        .os_id = b->row ? b->row->os_id : NULL,
        .packages = {json_object_get(b->base.record, "packages"), json_object_get(lock, "packages")},
        .python = python};
    return !lock || !python || name.err < 0 || px_sbom_write(&sbom, out) < 0 ? px_no_memory(e) : 0;
}

/* All files in layers belong to uid 0, so the directory is world-writable, like /tmp. */
static int make_home(int scratch)
{
    int r = px_wheel_paths_make(scratch, HOME_NAME);
    px_auto_fd int home = r < 0 ? r : px_open_beneath(scratch, HOME_NAME, O_RDONLY | O_DIRECTORY, 0);
    return home < 0 ? home : fchmod(home, 01777) < 0 ? -errno : 0;
}

/* A layer of one file; with an environment also the home of the user whom the image runs as. */
static int pack_sbom(struct px_compose *b, int scratch, struct px_layer *ret_layer, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(SBOM_MAX);
    struct px_pack pack = {.dirfd = scratch, .prefix = b->env ? NULL : PX_SBOM_PREFIX, .compression = b->compression};
    if (sbom_text(b, &text, e) < 0)
        return -1;
    int r = b->env ? make_home(scratch) : 0;
    if (r == 0 && b->env)
        r = px_wheel_paths_make(scratch, PX_SBOM_PREFIX);
    if (r == 0)
        r = px_wheel_paths_write(scratch, b->env ? PX_SBOM_PREFIX PX_SBOM_NAME : PX_SBOM_NAME, text.data, text.len, 0644);
    if (r < 0)
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot write the list of packages");
    return px_layer_pack(b->s->store, &pack, (struct px_progress_to){0}, ret_layer, e);
}

static int add_sbom(struct px_compose *b, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(256);
    struct px_tree_build *scratch = NULL;
    struct px_layer layer;
    struct px_oid id;
    px_buf_printf(&words, "sbom %s", b->sbx_id.hex);
    if (words.err < 0 || px_hash_bytes(words.data, words.len, &id) < 0)
        return px_no_memory(e);
    if (px_tree_begin(b->s->store, &id, &scratch, e) < 0)
        return -1;
    int r = pack_sbom(b, px_tree_build_fd(scratch), &layer, e);
    px_tree_drop(scratch);
    return r < 0 ? -1 : add_layer(b, &layer, "packages");
}

/* ---- its config ---- */

static int put(struct px_image_text *list, const char *name, const char *value)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 16);
    px_buf_printf(&text, "%s=%s", name, value);
    return text.err < 0 ? text.err : px_documents_text_add(list, px_buf_text(&text));
}

static int words_of(const struct px_capability_set *set, struct px_buf *out)
{
    for (size_t i = 0; i < set->count; i++)
        px_buf_printf(out, "%s%s", i ? "," : "", set->items[i]->name);
    return out->err;
}

static int label(struct px_compose *b, struct px_image_text *list)
{
    px_auto_buf struct px_buf set = PX_BUF(1 << 16);
    int r = words_of(&b->set, &set);
    r = r < 0 ? r : put(list, "px.base", b->base.name);
    r = r < 0 ? r : put(list, "px.base_os_oid", b->base.oid.hex);
    r = r < 0 ? r : put(list, "px.capabilities", px_buf_text(&set));
    r = r < 0 ? r : put(list, "px.profile_oid", b->profile.hex);
    r = r < 0 ? r : put(list, "px.sbx_id", b->sbx_id.hex);
    return r < 0 ? r : put(list, "px.sbx_version", "1");
}

#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* [tool.px.env] overrides it, except for variables that px sets itself (px_env_profile_is_own). */
static const struct variable {
    const char *name, *value;
} env_variables[] = {
    {"PATH", PX_INSIDE_ENV "/bin:" SYSTEM_PATH},
    {"HOME", "/" HOME_NAME},
    {"LANG", "C.UTF-8"},
    {"PX_PROJECT_ROOT", PX_INSIDE_APP},
    {"PX_SANDBOX", "1"},
    {"PYTHONDONTWRITEBYTECODE", "1"},           /* the same files after any number of runs */
    {"PYTHONUNBUFFERED", "1"},
    {"VIRTUAL_ENV", PX_INSIDE_ENV},
};

static const char *value_of(const struct px_compose *b, const struct variable *v)
{
    const char *said = px_env_profile_is_own(v->name) ? NULL : px_document_text(b->env->variables, v->name);
    return said ? said : v->value;
}

/* These, then the others of the project. */
static int set_variables(struct px_compose *b, struct px_image_text *list)
{
    char python[64];
    const char *name;
    json_t *value;
    (void)px_fmt(python, sizeof python, PX_INSIDE_ENV "/bin/python3.%u", b->env->runtime->minor);
    int r = 0;
    for (size_t i = 0; r == 0 && i < PX_COUNT_OF(env_variables); i++)
        r = put(list, env_variables[i].name, value_of(b, &env_variables[i]));
    r = r < 0 ? r : put(list, "PX_PYTHON", python);
    json_object_foreach(b->env->variables, name, value) {
        bool there = px_env_profile_is_own(name);
        for (size_t i = 0; i < PX_COUNT_OF(env_variables); i++)
            there |= px_equal(name, env_variables[i].name);
        if (r == 0 && !there)
            r = put(list, name, json_string_value(value));
    }
    return r;
}

static int set_command(const struct px_compose *b, struct px_image_text *list)
{
    int r = 0;
    if (!b->app)
        return px_documents_text_add(list, b->env || (b->row && b->row->suite) ? "python3" : "/bin/sh");
    for (size_t i = 0; r == 0 && b->app->command[i]; i++)
        r = px_documents_text_add(list, b->app->command[i]);
    return r;
}

static int configure(struct px_compose *b, struct px_err *e)
{
    _Static_assert(PX_SBX_VERSION == 1, "the label px.sbx_version says so");
    struct px_image_config *c = &b->image.config;
    int r = b->env ? set_variables(b, &c->env) : put(&c->env, "PATH", SYSTEM_PATH);
    r = r < 0 || b->env ? r : put(&c->env, "LANG", "C.UTF-8");
    r = r < 0 ? r : put(&c->env, "PX_SANDBOX_ID", b->sbx_id.hex);
    r = r < 0 ? r : set_command(b, &c->cmd);
    r = r < 0 ? r : label(b, &c->labels);
    r = r < 0 ? r : label(b, &b->image.annotations);
    c->workdir = r < 0 ? NULL : strdup(b->env ? PX_INSIDE_APP : "/");
    c->user = b->env ? strdup(USER) : NULL;
    return r < 0 || !c->workdir || (b->env && !c->user) ? px_no_memory(e) : 0;
}

int px_compose_assemble(struct px_compose *b, struct px_err *e)
{
    if (px_catalog_base_whole(b->s, &b->base, e) < 0 || add_base(b, e) < 0 || add_capabilities(b, e) < 0 || add_env(b, e) < 0 || add_sbom(b, e) < 0 ||
        (b->app && add_layer(b, &b->app->layer, "application") < 0) || configure(b, e) < 0)
        return -1;
    return px_image_seal(b->s->store, &b->image, e);
}
