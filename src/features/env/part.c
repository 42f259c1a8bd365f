#include "env/part.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "catalog/record.h"
#include "image/differ.h"
#include "kernel/copy.h"
#include "pep/wheel.h"
#include "store/canonical.h"
#include "store/document.h"

enum { TEXT_MAX = 1 << 16, LAYOUT = 3 };

int px_env_part_name(const struct px_env *env, const struct px_base *base, struct px_oid *ret_tree, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *key =
        json_pack("{sssisisssssiss}", "kind", "env-part", "env_layout", PX_ENV_LAYOUT, "layout", LAYOUT, "profile_oid",
                  env->profile.hex, "program", env->runtime->program, "minor", (int)env->runtime->minor, "base_os_oid",
                  base ? base->oid.hex : "");
    if (!key || px_canonical(key, &text) < 0 || px_hash_bytes(text.data, text.len, ret_tree) < 0)
        return px_no_memory(e);
    return 0;
}

/* ---- its files ---- */

static int copy_file(int from, int to, const char *path)
{
    struct stat st;
    px_auto_fd int source = px_open_beneath(from, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (source < 0 || fstat(source, &st) < 0)
        return source < 0 ? source : -errno;
    px_auto_fd int target = px_open_beneath(to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    int r = target < 0 ? target : px_copy_file(source, target);
    return r < 0 ? r : fchmod(target, st.st_mode & 0777) < 0 ? -errno : 0;
}

/* A file that has as many names as the file system allows is copied. */
static int link_file(int from, int to, const char *path)
{
    long r = px_sys(SYS_linkat, from, path, to, path, 0);
    return r == -EMLINK ? copy_file(from, to, path) : (int)r;
}

int px_env_link_files(int from, int to)
{
    struct px_paths files = {0};
    char dir[PX_WHEEL_PATH_MAX], last[PX_WHEEL_PATH_MAX] = "";
    int r = px_wheel_paths_list(from, ".", &files);
    for (size_t i = 0; r == 0 && i < files.count; i++) {
        const char *end = strrchr(files.items[i], '/');
        (void)px_fmt(dir, sizeof dir, "%.*s", end ? (int)(end - files.items[i]) : 0, files.items[i]);
        if (!px_equal(dir, last))
            r = px_wheel_paths_make(to, dir);
        memcpy(last, dir, sizeof last);
        if (r == 0)
            r = link_file(from, to, files.items[i]);
    }
    px_wheel_paths_done(&files);
    return r;
}

static int add_package(struct px_sandbox *s, const struct px_env_package *p, int root, struct px_err *e)
{
    char path[128];
    px_auto_fd int from = -EBADF;
    if (px_tree_open(s->store, &p->tree, &from, e) < 0)
        return -1;
    (void)px_fmt(path, sizeof path, "store/pkg-builds/%s", p->tree.hex);
    int r = px_wheel_paths_make(root, path);
    px_auto_fd int to = r < 0 ? r : px_open_beneath(root, path, O_RDONLY | O_DIRECTORY, 0);
    r = to < 0 ? to : px_env_link_files(from, to);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot lay out the package %s", p->name) : 0;
}

static int fill(struct px_sandbox *s, const struct px_env *env, const struct px_base *base, int root, struct px_err *e)
{
    int r = px_wheel_paths_make(root, "env");
    if (r == 0)
        r = px_wheel_paths_make(root, "store/pkg-builds");
    px_auto_fd int dir = r < 0 ? r : px_open_beneath(root, "env", O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0)
        return px_fail(e, PX_E_STORE_WRITE, dir, "cannot lay out the environment");
    const struct px_env_place place = {.store = PX_INSIDE_PACKAGES, .below = "", .root = PX_INSIDE_APP};
    if (px_env_write(env, dir, &place, e) < 0)
        return -1;
    for (size_t i = 0; i < env->count; i++)
        if (add_package(s, &env->packages[i], root, e) < 0)
            return -1;
    return base ? px_env_compile(s, env, &base->tree, root, e) : 0;
}

/* ---- its layer ---- */

static int pack(struct px_sandbox *s, int dir, enum px_compression compression, struct px_layer *ret_layer,
                struct px_err *e)
{
    const struct px_pack how = {.dirfd = dir, .prefix = "px/", .compression = compression};
    return px_layer_pack(s->store, &how, s->progress, ret_layer, e);
}

/* 0: what was packed when the tree was made. */
static int recall(struct px_sandbox *s, const struct px_oid *tree, struct px_layer *ret_layer, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *about = NULL;
    if (px_tree_about(s->store, tree, &text, e) < 0 ||
        px_document_read(px_buf_text(&text), text.len, "the record of an environment", PX_E_RECORD, &about, e) < 0)
        return -1;
    if (px_catalog_layer_from_json(json_object_get(about, "layer"), ret_layer) < 0)
        return px_fail(e, PX_E_RECORD, 0, "the record of the tree %s is not what px writes", tree->hex);
    return 0;
}

static int pack_tree(struct px_sandbox *s, struct px_env_part *part, enum px_compression compression, struct px_err *e)
{
    px_auto_fd int root = -EBADF;
    if (px_tree_open(s->store, &part->tree, &root, e) < 0)
        return -1;
    px_auto_fd int dir = px_open_beneath(root, ".", O_RDONLY | O_DIRECTORY, 0);
    return pack(s, dir, compression, &part->layer, e);
}

/* Lays out the same tree again from its packages. */
static int pack_anew(struct px_sandbox *s, const struct px_env *env, const struct px_base *base, struct px_env_part *part,
                     enum px_compression compression, struct px_err *e)
{
    struct px_tree_build *scratch = NULL;
    char text[128];
    struct px_oid id;
    (void)px_fmt(text, sizeof text, "again %s", part->tree.hex);
    if (px_hash_bytes(text, strlen(text), &id) < 0)
        return px_no_memory(e);
    if (px_tree_begin(s->store, &id, &scratch, e) < 0)
        return -1;
    int root = px_tree_build_fd(scratch), r = fill(s, env, base, root, e) < 0 ? -1 : pack(s, root, compression, &part->layer, e);
    px_tree_drop(scratch);
    return r;
}

/* The tree exists. Its layer may be missing, or wanted in another format or for comparison. */
static int pack_again(struct px_sandbox *s, const struct px_env *env, const struct px_base *base,
                      struct px_env_part *part, enum px_compression compression, bool force, struct px_err *e)
{
    const struct px_layer before = part->layer;
    if ((force ? pack_anew(s, env, base, part, compression, e) : pack_tree(s, part, compression, e)) < 0)
        return -1;
    if (px_hash_oid_equal(&part->layer.diff_id, &before.diff_id))
        return 0;
    (void)px_fail(e, PX_E_SANDBOX_FORMAT, 0, "the files of the environment %s are not what they were when it was made",
                  part->tree.hex);
    (void)px_differ(s->store, "environment", &before, &part->layer, e);
    return px_fix(e, "Run `px sandbox status --verify`: it sets aside what is damaged.\nThen run the command again.");
}

static int take(struct px_sandbox *s, const struct px_env *env, const struct px_base *base, struct px_env_part *part,
                enum px_compression compression, bool force, struct px_err *e)
{
    if (recall(s, &part->tree, &part->layer, e) < 0)
        return -1;
    if (!force && part->layer.compression == compression && px_blob_has(s->store, &part->layer.digest))
        return 0;
    return pack_again(s, env, base, part, compression, force, e);
}

static int make(struct px_sandbox *s, const struct px_env *env, const struct px_base *base,
                struct px_tree_build *build, enum px_compression compression, struct px_env_part *part,
                struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    int root = px_tree_build_fd(build);
    if (fill(s, env, base, root, e) < 0 || pack(s, root, compression, &part->layer, e) < 0) {
        px_tree_drop(build);
        return -1;
    }
    px_auto(px_document) json_t *about =
        json_pack("{sssoss}", "kind", "env-part", "layer", px_catalog_layer_json(&part->layer), "profile_oid", env->profile.hex);
    if (!about || px_canonical(about, &text) < 0) {
        px_tree_drop(build);
        return px_no_memory(e);
    }
    return px_tree_commit(build, px_buf_text(&text), e);
}

int px_env_part_make(struct px_sandbox *s, const struct px_env *env, const struct px_base *base,
                     enum px_compression compression, bool force, struct px_env_part *ret_part, struct px_err *e)
{
    struct px_env_part part = {0};
    struct px_tree_build *build = NULL;
    if (px_env_part_name(env, base, &part.tree, e) < 0)
        return -1;
    int r = px_tree_begin(s->store, &part.tree, &build, e);
    if (r >= 0)
        r = r == 1 ? take(s, env, base, &part, compression, force, e)
                   : make(s, env, base, build, compression, &part, e);
    if (r == 0)
        *ret_part = part;
    return r < 0 ? -1 : 0;
}
