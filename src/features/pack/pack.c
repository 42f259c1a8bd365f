/* pack/pack.c - a project becomes an image: guard, clean tree, sandbox, application, name. */
#include "pack/pack.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "compose/compose.h"
#include "pack/pack_internal.h"
#include "project/image.h"

#define APP_PREFIX "app/"

static void packing_done(struct px_pack_job *k)
{
    px_worktree_done(&k->files);
    px_project_image_done(&k->sandbox);
    px_image_done(&k->image);
    json_decref(k->record);
}

/* ---- before anything is built ---- */

static int refuse(const char *reason, const char *what, const char *why, const char *fix, struct px_err *e)
{
    (void)px_fail(e, PX_E_BUILD, 0, "%s", what);
    (void)px_detail(e, "reason", reason);
    (void)px_why(e, "%s", why);
    return px_fix(e, "%s", fix);
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static int check_push(const struct px_project_pack *how, struct px_err *e)
{
    if (!how->push)
        return 0;
    if (!how->tag)
        return refuse("missing_tag", "the image cannot be pushed: it is not said where", "A name below px.local is for this machine.",
                      "Add --tag REGISTRY/NAME:VERSION.", e);
    if (is_set("PX_REGISTRY_USERNAME") != is_set("PX_REGISTRY_PASSWORD"))
        return refuse("registry_auth_missing", "the image cannot be pushed: only half of the credentials is there",
                      "One of PX_REGISTRY_USERNAME and PX_REGISTRY_PASSWORD is set.", "Set both, or neither.", e);
    return 0;
}

static int check_words(struct px_pack_job *k, struct px_err *e)
{
    px_auto_free struct px_compose *words = calloc(1, sizeof *words);
    if (!words)
        return px_no_memory(e);
    words->how = &k->build;
    if (check_push(k->how, e) < 0 || px_compose_words(words, e) < 0)
        return -1;
    k->compression = words->compression;
    return 0;
}

/* Requires hashes for all files: others must get the same image from the lock, even if the environment was made without
 * hashes. */
static int check_hashes(const struct px_snapshot *look, struct px_err *e)
{
    px_auto_free struct px_chosen *list = NULL;
    size_t count = 0;
    if (px_lock_select(&look->pins, &look->target.env, &look->target.tags, NULL, &list, &count, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (px_env_need_hash(&list[i], e) < 0)
            return -1;
    return 0;
}

static int check_state(struct px_pack_job *k, struct px_err *e)
{
    px_auto_free struct px_snapshot *look = calloc(1, sizeof *look);
    if (!look)
        return px_no_memory(e);
    if (px_project_base_bring(k->p, true, e) < 0 || px_snapshot_at(k->p, look, e) < 0)
        return -1;
    int r = px_snapshot_ready(k->p, look, &k->ready, e);
    r = r < 0 ? r : check_hashes(look, e);
    px_snapshot_done(look);
    return r;
}

/* ---- its files ---- */

/* The message has the first lines, the details as many as fit. */
static int refuse_dirty(const struct px_worktree *w, struct px_err *e)
{
    enum { SHOWN = 8, ROOM = 300 };
    px_auto_buf struct px_buf shown = PX_BUF(1 << 16);
    px_auto_buf struct px_buf told = PX_BUF(1 << 16);
    for (size_t i = 0; i < w->dirty.count && i < SHOWN; i++) {
        px_buf_puts(&shown, i ? "\n" : "");
        px_buf_quote(&shown, w->dirty.items[i], strnlen(w->dirty.items[i], 60));
        if (shown.len < ROOM) {
            (void)px_buf_printf(&told, "%s", i ? "\n" : "");
            px_buf_quote(&told, w->dirty.items[i], strnlen(w->dirty.items[i], 60));
        }
    }
    if (w->dirty.count > SHOWN)
        px_buf_printf(&shown, "\nand %zu more", w->dirty.count - SHOWN);
    (void)px_fail(e, PX_E_BUILD, 0, "the project has changes that are not committed: %zu", w->dirty.count);
    (void)px_detail(e, "reason", "dirty_worktree");
    (void)px_detail(e, "lines", px_buf_text(&told));
    (void)snprintf(e->why, sizeof e->why, "%s", px_buf_text(&shown));
    return px_fix(e, "Commit or stash them.\nOr pack the project as it is: px pack image --allow-dirty.");
}

/* An archive that an earlier pack wrote into the project is left out. */
static void leave_out_archive(struct px_pack_job *k)
{
    const char *root = k->p->site.root, *slash = strrchr(k->how->out, '/');
    char dir[PATH_MAX], real[PATH_MAX], path[PATH_MAX];
    size_t n = strlen(root);
    int length = slash ? (int)(slash - k->how->out) : 0;
    if (px_fmt(dir, sizeof dir, "%.*s%s", length, k->how->out, length ? "" : slash ? "/" : ".") < 0 || !realpath(dir, real) ||
        strncmp(real, root, n) != 0 || (real[n] && real[n] != '/'))
        return;
    if (px_fmt(path, sizeof path, "%s%s%s", real[n] ? real + n + 1 : "", real[n] ? "/" : "", slash ? slash + 1 : k->how->out) > 0)
        px_worktree_leave_out(&k->files, path);
}

int px_pack_files(struct px_pack_job *k, bool status, struct px_err *e)
{
    if (px_worktree_look(k->p->site.root, status, &k->files, e) < 0)
        return -1;
    if (k->how->out)
        leave_out_archive(k);
    return 0;
}

static bool has_version(const struct px_pack_job *k)
{
    const char *version = k->p->site.manifest.version;
    return version && *version;
}

/* Without a version the tag shows whether the tree has uncommitted changes. */
static int find_files(struct px_pack_job *k, struct px_err *e)
{
    if (px_pack_files(k, !k->how->allow_dirty || !has_version(k), e) < 0)
        return -1;
    if (k->files.dirty.count > 0 && !k->how->allow_dirty)
        return refuse_dirty(&k->files, e);
    return 0;
}

int px_pack_app(struct px_pack_job *k, enum px_compression compression, struct px_layer *ret_layer, struct px_err *e)
{
    px_auto_fd int list = px_worktree_list(&k->files);
    if (list < 0)
        return px_fail(e, PX_E_MEMORY, list, "the list of the project's files");
    const struct px_pack pack = {.dirfd = k->p->site.dir, .prefix = APP_PREFIX, .compression = compression, .listed = true, .list = list};
    return px_layer_pack(k->s->store, &pack, k->s->progress, ret_layer, e);
}

/* ---- its sandbox ---- */

/* Hashes the shipped image again: others trust its digest. */
static int verify(struct px_pack_job *k, struct px_err *e)
{
    if (px_image_verify(k->s->store, &k->sandbox.image, e) == 0)
        return 0;
    if (e->code != PX_E_OBJECT)
        return -1;
    e->code = PX_E_SANDBOX_FORMAT;
    (void)px_detail(e, "reason", "digest_mismatch");
    (void)px_detail(e, "sbx_id", k->sandbox.sbx_id.hex);
    return px_fix(e, "Pack it again: what was damaged has been set aside, and is made anew.");
}

static int make_sandbox(struct px_pack_job *k, struct px_err *e)
{
    const struct px_project_image_ask ask = {.ready = &k->ready, .shipped = true};
    return px_project_sandbox(k->p, &k->s, e) < 0 || px_project_image_make(k->p, &ask, &k->sandbox, e) < 0 ? -1 : verify(k, e);
}

/* ---- the whole ---- */

static void choose_words(struct px_pack_job *k)
{
    const struct px_manifest *m = &k->p->site.manifest;
    char commit[PX_GIT_COMMIT_SIZE + 8];
    (void)px_fmt(commit, sizeof commit, "%s%s", k->files.commit, *k->files.commit && k->files.dirty.count ? "-dirty" : "");
    px_pack_name(px_locate_name(&k->p->site), has_version(k) ? m->version : commit, k->sandbox.env.profile.hex, k->name);
    k->build.tag = k->how->tag ? k->how->tag : k->name;
    px_pack_command(m->name, &k->files, k->sandbox.env.project, &k->command);
    k->app.command = k->command.words;
}

/* A refused push fails the pack, with the registry's error. */
static int ship(struct px_pack_job *k, struct px_err *e)
{
    if (px_project_image_ship(k->p, &k->sandbox, &k->app, &k->build, &k->image, &k->record, e) == 0)
        return 0;
    if (e->code == PX_E_REGISTRY) {
        e->code = PX_E_BUILD;
        if (!strstr(e->details, "\"reason\""))
            (void)px_detail(e, "reason", "push_failed");
    }
    return -1;
}

static int pack(struct px_pack_job *k, struct px_err *e)
{
    if (check_words(k, e) < 0 || check_state(k, e) < 0 || find_files(k, e) < 0 || make_sandbox(k, e) < 0)
        return -1;
    choose_words(k);
    if (px_pack_app(k, k->compression, &k->app.layer, e) < 0 || (k->how->check_repro && px_pack_check(k, e) < 0))
        return -1;
    return ship(k, e);
}

int px_project_pack(struct px_project *project, const struct px_project_pack *how, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_free struct px_pack_job *k = calloc(1, sizeof *k);
    if (!k)
        return px_no_memory(e);
    k->p = project;
    k->how = how;
    k->ready = (struct px_ready){.command = "pack", .frozen = true};
    k->build = (struct px_image_build){.out = how->out, .format = how->format, .compression = how->compression, .tag = how->tag,
                                       .push = how->push};
    int r = pack(k, e) < 0 ? -1 : px_pack_answer(k, ret_json, e);
    packing_done(k);
    return r;
}
