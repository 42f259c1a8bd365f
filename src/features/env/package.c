/* One package as a tree of the store. Its key is its input (the archive, the Python, the builder). Its description has
 * what environments and inference need, so that a package is unpacked, checked and searched once. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "env/env_internal.h"
#include "env/libraries.h"
#include "pep/wheel.h"
#include "store/canonical.h"
#include "store/document.h"
#include "transfer/layer.h"

enum { TEXT_MAX = 4 << 20, FILE_NAME_MAX = 256 };
#define SDIST_BUILDER "px-sdist-3+" PX_WHEEL_BUILDER

static void free_texts(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

void px_env_package_done(struct px_env_package *p)
{
    free(p->name);
    free(p->version);
    free(p->file);
    free(p->capabilities);
    json_decref(p->tools);
    free_texts(p->needed, p->needed_count);
    free_texts(p->scripts, p->script_count);
    *p = (struct px_env_package){0};
}

static const char *builder_of(const struct px_env_package *p)
{
    return p->wheel ? PX_WHEEL_BUILDER : SDIST_BUILDER;
}

/* ---- objects ---- */

/* Takes the object. */
static int put_object(struct px_env_work *w, const char *kind, json_t *payload, struct px_oid *ret_oid,
                      struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *mine = payload;
    if (!mine || px_canonical(mine, &text) < 0)
        return px_no_memory(e);
    return px_object_put(w->s->store, kind, px_buf_text(&text), ret_oid, e);
}

/* Does not include the address: the same file from a mirror is the same source. */
static int put_source(struct px_env_work *w, struct px_env_package *p, struct px_err *e)
{
    return put_object(
        w, "source",
        json_pack("{ssssssss}", "filename", p->file, "name", p->name, "sha256", p->sha256.hex, "version", p->version),
        &p->source, e);
}

static int put_build(struct px_env_work *w, struct px_env_package *p, const struct px_listing *listing,
                     struct px_err *e)
{
    return put_object(w, "pkg-build",
                      json_pack("{ssssssssss}", "build_options_hash", p->options.hex, "builder_id", builder_of(p),
                                "fs_tree", listing->oid.hex, "runtime_abi", w->abi, "source_oid", p->source.hex),
                      &p->build, e);
}

/* The key of a source archive includes its build tools, as far as they are known before the build. */
static int key_of_build(struct px_env_work *w, const struct px_env_package *p, json_t *key)
{
    const struct px_lock *lock = w->ask->builds;
    struct px_oid builds;
    if (json_object_set_new(key, "capabilities", json_string(p->capabilities)) < 0)
        return -1;
    if (!lock || lock->build_count == 0)
        return 0;
    return px_lock_builds_id(lock, &builds) < 0 ? -1 : json_object_set_new(key, "builds", json_string(builds.hex));
}

static int key_of(struct px_env_work *w, const struct px_env_package *p, struct px_oid *ret_key, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *key = json_pack("{ssssssss}", "kind", "pkg-build key", "builder_id", builder_of(p),
                                                 "runtime_abi", w->abi, "source_oid", p->source.hex);
    if (!key || (!p->wheel && key_of_build(w, p, key) < 0) || px_canonical(key, &text) < 0 || px_hash_bytes(text.data, text.len, ret_key) < 0)
        return px_no_memory(e);
    return 0;
}

int px_env_package_fits(struct px_env_work *w, const struct px_env_package *p, struct px_err *e)
{
    struct px_oid key;
    return key_of(w, p, &key, e) < 0 ? -1 : px_hash_oid_equal(&key, &p->tree);
}

/* ---- what is known about it ---- */

static json_t *texts_json(char *const *list, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < count; i++)
        if (json_array_append_new(array, json_string(list[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static int texts_from(const json_t *array, char ***ret_list, size_t *ret_count)
{
    size_t count = json_array_size(array);
    char **list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (!text || !(list[i] = strdup(text))) {
            free_texts(list, i);
            return -EINVAL;
        }
    }
    *ret_list = list;
    *ret_count = list ? count : 0;
    return list ? 0 : -ENOMEM;
}

static int write_about(const struct px_env_package *p, struct px_buf *out)
{
    px_auto(px_document) json_t *about =
        json_pack("{s:s,s:s,s:s,s:o,s:o,s:b,s:s,s:O*}", "kind", "pkg-build", "build_options_hash", p->options.hex,
                  "pkg_build_oid", p->build.hex, "needed", texts_json(p->needed, p->needed_count), "scripts",
                  texts_json(p->scripts, p->script_count), "pth", (int)p->has_pth, "source_oid", p->source.hex,
                  "tools", p->tools);
    return about ? px_canonical(about, out) : -ENOMEM;
}

static int recall(struct px_env_work *w, struct px_env_package *p, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *about = NULL;
    if (px_tree_about(w->s->store, &p->tree, &text, e) < 0 ||
        px_document_read(px_buf_text(&text), text.len, "the record of a package", PX_E_RECORD, &about, e) < 0)
        return -1;
    const char *options = px_document_text(about, "build_options_hash");
    if (options && options[0] && px_hash_oid_parse(options, false, &p->options) < 0)
        return px_fail(e, PX_E_RECORD, 0, "the record of the package %s is not what px writes", p->name);
    p->has_pth = json_is_true(json_object_get(about, "pth"));
    p->tools = json_incref(json_object_get(about, "tools"));
    if (px_hash_oid_parse(px_document_text(about, "pkg_build_oid"), false, &p->build) < 0 ||
        texts_from(json_object_get(about, "needed"), &p->needed, &p->needed_count) < 0 ||
        texts_from(json_object_get(about, "scripts"), &p->scripts, &p->script_count) < 0)
        return px_fail(e, PX_E_RECORD, 0, "the record of the package %s is not what px writes", p->name);
    return 0;
}

json_t *px_env_package_json(const struct px_env_package *p)
{
    return json_pack("{ss ss ss sb ss ss ss ss ss ss* so so sb ss* sO*}", "name", p->name, "version", p->version, "file", p->file, "wheel",
                     (int)p->wheel, "sha256", p->sha256.hex, "source_oid", p->source.hex, "pkg_build_oid", p->build.hex,
                     "build_options_hash", p->options.hex, "tree", p->tree.hex, "code",
                     *p->code.hex ? p->code.hex : NULL, "needed",
                     texts_json(p->needed, p->needed_count), "scripts", texts_json(p->scripts, p->script_count), "pth",
                     (int)p->has_pth, "capabilities", p->capabilities, "tools", p->tools);
}

static char *copy_text(const json_t *object, const char *name)
{
    const char *text = px_document_text(object, name);
    return text ? strdup(text) : NULL;
}

int px_env_package_read(const json_t *object, struct px_env_package *ret_package)
{
    struct px_env_package p = {.name = copy_text(object, "name"),
                               .version = copy_text(object, "version"),
                               .file = copy_text(object, "file"),
                               .capabilities = copy_text(object, "capabilities"),
                               .tools = json_incref(json_object_get(object, "tools")),
                               .wheel = json_is_true(json_object_get(object, "wheel")),
                               .has_pth = json_is_true(json_object_get(object, "pth"))};
    const char *options = px_document_text(object, "build_options_hash"), *code = px_document_text(object, "code");
    if (!p.name || !p.version || !p.file || !p.wheel == !p.capabilities || !options || (*options && px_hash_oid_parse(options, false, &p.options) < 0) ||
        px_hash_oid_parse(px_document_text(object, "sha256"), false, &p.sha256) < 0 ||
        px_hash_oid_parse(px_document_text(object, "source_oid"), false, &p.source) < 0 ||
        px_hash_oid_parse(px_document_text(object, "pkg_build_oid"), false, &p.build) < 0 ||
        px_hash_oid_parse(px_document_text(object, "tree"), false, &p.tree) < 0 ||
        (code && px_hash_oid_parse(code, false, &p.code) < 0) ||
        texts_from(json_object_get(object, "needed"), &p.needed, &p.needed_count) < 0 ||
        texts_from(json_object_get(object, "scripts"), &p.scripts, &p.script_count) < 0) {
        px_env_package_done(&p);
        return -EINVAL;
    }
    *ret_package = p;
    return 0;
}

static int list_tree(struct px_env_work *w, const struct px_oid *tree, struct px_listing *ret_listing, struct px_err *e)
{
    px_auto_fd int root = -EBADF;
    if (px_tree_open(w->s->store, tree, &root, e) < 0)
        return -1;
    px_auto_fd int dir = px_open_beneath(root, ".", O_RDONLY | O_DIRECTORY, 0);
    return px_listing_tree(dir, NULL, ret_listing, e);
}

/* GC may have removed the object meanwhile; it is small and is written again. */
static int keep_object(struct px_env_work *w, struct px_env_package *p, struct px_err *e)
{
    struct px_listing listing;
    if (px_blob_has(w->s->store, &p->build))
        return 0;
    return list_tree(w, &p->tree, &listing, e) < 0 ? -1 : put_build(w, p, &listing, e);
}

/* ---- looking at it ---- */

static int look_for_libraries(struct px_env_package *p, int root, struct px_err *e)
{
    struct px_libraries found = {0};
    int r = px_libraries_scan(root, EM_X86_64, &found);
    if (r < 0)
        return px_fail(e, PX_E_BUILD, r, "cannot look for the libraries that %s needs", p->name);
    p->needed = found.items;
    p->needed_count = found.count;
    return 0;
}

static bool is_pth(const char *path)
{
    size_t n = strlen(path);
    return !strchr(path, '/') && n > 4 && px_equal(path + n - 4, ".pth");
}

static int look_for_names(struct px_env_package *p, int root, struct px_err *e)
{
    struct px_paths bin = {0}, site = {0};
    int r = px_wheel_paths_list(root, "bin", &bin);
    r = r == -ENOENT ? 0 : r;
    if (r == 0)
        r = px_wheel_paths_list(root, "site-packages", &site);
    for (size_t i = 0; r == 0 && i < site.count; i++)
        p->has_pth |= is_pth(site.items[i]);
    p->scripts = r == 0 ? calloc(bin.count + 1, sizeof *p->scripts) : NULL;
    for (size_t i = 0; p->scripts && i < bin.count; i++)
        if (!strchr(bin.items[i], '/')) {
            p->scripts[p->script_count++] = bin.items[i];
            bin.items[i] = NULL;
        }
    px_wheel_paths_done(&bin);
    px_wheel_paths_done(&site);
    return r < 0 || !p->scripts ? px_fail(e, PX_E_BUILD, r < 0 ? r : ENOMEM, "cannot look at the files of %s", p->name)
                                : 0;
}

/* ---- building ---- */

static int unpack_wheel(struct px_env_work *w, const struct px_env_package *p, int fd, uint64_t size,
                        const char *file_name, const struct px_oid *expect, int root, struct px_err *e)
{
    const struct px_wheel_ask ask = {file_name, p->name, p->version};
    struct px_unpacked done;
    int r = px_wheel_paths_make(root, "site-packages");
    px_auto_fd int site = r < 0 ? r : px_open_beneath(root, "site-packages", O_RDONLY | O_DIRECTORY, 0);
    if (site < 0)
        return px_fail(e, PX_E_STORE_WRITE, site, "cannot make the tree of %s", p->name);
    if (px_layer_unzip(fd, size, site, NULL, w->s->progress, &done, e) < 0)
        return -1;
    if (expect && !px_hash_oid_equal(&done.packed, expect))
        return px_fail(e, PX_E_OBJECT, 0, "the archive of %s in the store is not what it is called", p->name);
    return px_wheel_install(root, &ask, e);
}

/* t NULL: it is a wheel. */
static int install(struct px_env_work *w, const struct px_env_package *p, const struct px_tools *t, int root,
                   struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    uint64_t size = 0;
    char name[FILE_NAME_MAX];
    if (!t)
        return px_blob_open(w->s->store, &p->sha256, &fd, &size, e) < 0
                   ? -1
                   : unpack_wheel(w, p, fd, size, p->file, &p->sha256, root, e);
    if (px_env_sdist(w, p, t, &fd, name, sizeof name, e) < 0)
        return -1;
    off_t end = lseek(fd, 0, SEEK_END);
    return end < 0 ? px_fail(e, PX_E_IO, errno, "cannot read the wheel of %s", p->name)
                   : unpack_wheel(w, p, fd, (uint64_t)end, name, NULL, root, e);
}

static int note_tools(struct px_env_package *p, const struct px_tools *t, struct px_err *e)
{
    if (t && px_env_tools_name(t, &p->options) < 0)
        return px_no_memory(e);
    p->tools = t && t->own ? px_env_tools_json(t) : NULL;
    return t && t->own && !p->tools ? px_no_memory(e) : 0;
}

static int build(struct px_env_work *w, struct px_env_package *p, const struct px_tools *t, struct px_tree_build *tree,
                 struct px_err *e)
{
    px_auto_buf struct px_buf about = PX_BUF(TEXT_MAX);
    struct px_listing listing;
    int root = px_tree_build_fd(tree);
    if (note_tools(p, t, e) < 0 || install(w, p, t, root, e) < 0 || look_for_libraries(p, root, e) < 0 ||
        look_for_names(p, root, e) < 0 || px_listing_tree(root, NULL, &listing, e) < 0 ||
        put_build(w, p, &listing, e) < 0 || (write_about(p, &about) < 0 && px_no_memory(e) < 0)) {
        px_tree_drop(tree);
        return -1;
    }
    return px_tree_commit(tree, px_buf_text(&about), e);
}

static int make(struct px_env_work *w, struct px_env_package *p, const struct px_tools *t, struct px_err *e)
{
    struct px_tree_build *tree = NULL;
    int r = px_tree_begin(w->s->store, &p->tree, &tree, e);
    if (r < 0)
        return -1;
    return r == 0 ? build(w, p, t, tree, e) : recall(w, p, e) < 0 ? -1 : keep_object(w, p, e);
}

/* Build tools may have to be built themselves. That happens before this tree is begun, so that no builder waits for
 * another while it holds a lock. */
static int make_source(struct px_env_work *w, struct px_env_package *p, struct px_err *e)
{
    struct px_tools tools;
    if (px_env_tools(w, p, &tools, e) < 0)
        return -1;
    int r = make(w, p, &tools, e);
    px_env_tools_done(&tools);
    return r;
}

int px_env_package_begin(struct px_env_work *w, struct px_env_package *p, struct px_err *e)
{
    if (!p->wheel && px_env_needs(w->ask, p->name, &p->capabilities, e) < 0)
        return -1;
    return put_source(w, p, e);
}

int px_env_package(struct px_env_work *w, struct px_env_package *p, struct px_err *e)
{
    if (px_env_package_begin(w, p, e) < 0 || key_of(w, p, &p->tree, e) < 0)
        return -1;
    return p->wheel || px_tree_has(w->s->store, &p->tree) ? make(w, p, NULL, e) : make_source(w, p, e);
}

/* ---- once more ---- */

/* t NULL: it is a wheel. */
static int list_anew(struct px_env_work *w, const struct px_env_package *p, const struct px_tools *t,
                     struct px_listing *ret_listing, struct px_err *e)
{
    struct px_tree_build *room = NULL;
    struct px_oid id;
    char words[128];
    (void)px_fmt(words, sizeof words, "build again %s", p->tree.hex);
    if (px_hash_bytes(words, strlen(words), &id) < 0)
        return px_no_memory(e);
    if (px_tree_begin(w->s->store, &id, &room, e) < 0)
        return -1;
    int root = px_tree_build_fd(room);
    int r = install(w, p, t, root, e) < 0 || px_listing_tree(root, NULL, ret_listing, e) < 0 ? -1 : 0;
    px_tree_drop(room);
    return r;
}

static int build_aside(struct px_env_work *w, const struct px_env_package *p, struct px_listing *ret_listing, struct px_err *e)
{
    struct px_tools tools;
    if (p->wheel)
        return list_anew(w, p, NULL, ret_listing, e);
    if (px_env_tools_again(w, p, &tools, e) < 0)
        return -1;
    int r = list_anew(w, p, &tools, ret_listing, e);
    px_env_tools_done(&tools);
    return r;
}

static int compare_build(struct px_env_work *w, const struct px_env_package *p, struct px_err *e)
{
    struct px_listing first, second;
    if (list_tree(w, &p->tree, &first, e) < 0 || build_aside(w, p, &second, e) < 0)
        return -1;
    if (px_hash_oid_equal(&first.oid, &second.oid))
        return 0;
    (void)px_fail(e, PX_E_SANDBOX_FORMAT, 0, "%s %s, %s once more, is not what it was", p->name, p->version,
                  p->wheel ? "unpacked" : "built from its source");
    (void)px_detail(e, "reason", "not_reproducible");
    (void)px_detail(e, "package", p->name);
    if (p->wheel) {
        (void)px_why(e, "Its files in the store are not those of its archive.");
        return px_fix(e, "Run `px sandbox status --verify`: it sets aside what is damaged.\n"
                         "Then run the command again.");
    }
    (void)px_why(e, "Its build writes times, names of chance or the like, or the compiler was changed since.");
    return px_fix(e, "Take a wheel of it: another version, or one built elsewhere and given by --find-links.");
}

/* GC may remove archives; the lock has their addresses. */
static int bring_archive(struct px_env_work *w, const struct px_env_package *p, struct px_err *e)
{
    px_auto_free struct px_chosen *chosen = NULL;
    struct px_env_package again = {0};
    size_t count = 0;
    if (px_blob_has(w->s->store, &p->sha256))
        return 0;
    if (px_env_select(w, &chosen, &count, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (px_equal(chosen[i].pin->name, p->name) && px_equal(chosen[i].pin->version, p->version)) {
            int r = px_env_source(w, &chosen[i], &again, e);
            px_env_package_done(&again);
            return r < 0 || px_blob_has(w->s->store, &p->sha256)
                       ? r
                       : px_fail(e, PX_E_OBJECT, 0, "the lock names another archive of %s than was installed", p->name);
        }
    return px_fail(e, PX_E_OBJECT, 0, "the lock does not say where the archive of %s is", p->name);
}

int px_env_compare_builds(struct px_sandbox *s, const struct px_env_ask *ask, const struct px_env *env,
                          struct px_err *e)
{
    struct px_env_work w = {.s = s, .ask = ask};
    int r = px_env_runtime(&w, e);
    for (size_t i = 0; r == 0 && i < env->count; i++)
        r = bring_archive(&w, &env->packages[i], e) < 0 ? -1 : compare_build(&w, &env->packages[i], e);
    px_env_source_end(&w);
    return r;
}
