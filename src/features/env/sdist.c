/* Builds source archives in a box without a network, on the base with a compiler, the development packages of the
 * project's capabilities, and the archive's [build-system] requirements (tools.c). Only the wheel is taken from the
 * box, and it is checked like any other. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/px.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "distro/layer.h"
#include "env/env_internal.h"
#include "env/messages.h"
#include "env/part.h"
#include "env/sdist_script.inc"
#include "image/oci.h"
#include "kernel/copy.h"
#include "start/buildbox.h"

enum { NAME_LINE_MAX = 256 };
static const char toolchain[] =
    "python3-pip python3-setuptools python3-wheel python3-dev gcc g++ libc6-dev make pkg-config";

/* ---- the root that it is built on ---- */

static int take_set(const struct px_env_package *p, struct px_capability_set *ret_set, struct px_err *e)
{
    const char *names[PX_CAPABILITIES_MAX + 1] = {NULL};
    size_t count = 0;
    px_auto_free char *words = strdup(p->capabilities ? p->capabilities : "");
    if (!words)
        return px_no_memory(e);
    for (char *at = words; *at && count < PX_CAPABILITIES_MAX;) {
        names[count++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
    }
    return px_capability_set_make(names, ret_set, e);
}

static int make_root(struct px_env_work *w, const struct px_env_package *p, struct px_oid *ret_tree,
                     struct px_oid *ret_packages, struct px_err *e)
{
    struct px_base base = {0};
    struct px_capability_set set = {0};
    struct px_capability_layer layer = {0};
    const struct px_base_row *row = px_bases_find(w->runtime->base);
    if (!row || !row->suite) {
        (void)px_fail(e, PX_E_BUILD, 0, "%s %s comes as a source archive, which px cannot build for the base '%s'",
                      p->name, p->version, w->runtime->base);
        return px_fix(e, "Give a wheel of it by --find-links, or use base = \"debian-12\".");
    }
    if (take_set(p, &set, e) < 0 || px_catalog_base_need(w->s->store, w->runtime->base, &base, e) < 0)
        return -1;
    const struct px_capability_ask ask = {
        .base = &base, .row = row, .set = &set, .compression = PX_COMPRESS_ZSTD, .build = toolchain};
    int r = px_capability_layer_make(w->s, &ask, &layer, e);
    struct px_image *image = r < 0 ? NULL : calloc(1, sizeof *image);
    if (r == 0 && !image)
        r = px_no_memory(e);
    if (r == 0) {
        image->layers[image->layer_count++] = base.layer;
        if (layer.any)
            image->layers[image->layer_count++] = layer.layer;
        *ret_packages = layer.any ? layer.key : base.oid;
        r = px_image_tree(w->s->store, image, w->s->progress, ret_tree, e);
    }
    free(image);
    px_capability_layer_done(&layer);
    px_catalog_base_done(&base);
    return r;
}

int px_sdist_root(struct px_env_work *w, const struct px_env_package *p, struct px_oid *ret_tree,
                  struct px_oid *ret_packages, struct px_err *e)
{
    struct px_env_root *root = w->ask->root;
    if (root && *root->tree.hex && px_equal(root->capabilities, p->capabilities) && px_tree_has(w->s->store, &root->tree)) {
        *ret_tree = root->tree;
        *ret_packages = root->packages;
        return 0;
    }
    if (make_root(w, p, ret_tree, ret_packages, e) < 0)
        return -1;
    if (root && px_fmt(root->capabilities, sizeof root->capabilities, "%s", p->capabilities) >= 0) {
        root->tree = *ret_tree;
        root->packages = *ret_packages;
    }
    return 0;
}

/* ---- the box ---- */

/* Gives the archive its own name, because pip parses it. */
static int offer(struct px_env_work *w, const struct px_env_package *p, int scratch, struct px_err *e)
{
    px_auto_fd int fd = -EBADF, dir = -EBADF;
    char link[64];
    uint64_t size;
    if (strchr(p->file, '/') || p->file[0] == '.' || p->file[0] == '-')
        return px_fail(e, PX_E_LOCK_FORMAT, 0, "'%.100s' is not the name of a file", p->file);
    if (px_blob_open(w->s->store, &p->sha256, &fd, &size, e) < 0)
        return -1;
    (void)px_fmt(link, sizeof link, "/proc/self/fd/%d", fd);
    if (mkdirat(scratch, "in", 0755) < 0 || mkdirat(scratch, "changes", 0700) < 0 ||
        (dir = openat(scratch, "in", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 || fchmod(dir, 0755) < 0 ||
        linkat(AT_FDCWD, link, dir, p->file, AT_SYMLINK_FOLLOW) < 0)
        return px_fail(e, PX_E_STORE_WRITE, errno, "cannot lay out the source of %s", p->name);
    return 0;
}

bool px_env_has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words ? words : ""; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, word, n) == 0)
            return true;
        at += length;
    }
    return false;
}

static int lacks(const struct px_missing *missing, struct px_err *e)
{
    (void)px_detail(e, "capability", missing->capability);
    (void)px_detail(e, "missing", missing->what);
    return px_fix(e,
                  "Its build misses %s, which the capability '%s' brings.\n"
                  "Run `px sandbox add %s`: builds get the development packages of the project's capabilities.\n"
                  "Or take a wheel of it, by --find-links or another version.",
                  missing->what, missing->capability, missing->capability);
}

int px_sdist_failed(const struct px_env_package *p, struct px_err *e)
{
    struct px_missing missing;
    char why[sizeof e->why];
    if (e->code != PX_E_BUILD)
        return -1;
    (void)px_fmt(why, sizeof why, "%s", e->why);
    (void)px_fail(e, PX_E_BUILD, 0, "cannot build %s %s from its source", p->name, p->version);
    (void)px_why(e, "%s", why);
    (void)px_detail(e, "reason", PX_ENV_BUILD_FAILED);
    if (px_messages_missing(why, strlen(why), &missing) && !px_env_has_word(p->capabilities, missing.capability))
        return lacks(&missing, e);
    return px_fix(
        e,
        "Take a wheel of it: another version, or one built elsewhere (`pip wheel %s==%s`) and given by --find-links.",
        p->name, p->version);
}

/* Sets everything that a build could record about time and host to fixed values. */
static int set_variables(struct px_buildbox *box, struct px_err *e)
{
    static const struct {
        const char *name, *value;
    } rows[] = {{"PATH", PX_INSIDE_ENV "/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                {"LC_ALL", "C.UTF-8"},
                {"TZ", "UTC"},
                {"HOME", "/root"},
                {"SOURCE_DATE_EPOCH", "315532800"},
                {"PYTHONHASHSEED", "0"},
                {"PYTHONDONTWRITEBYTECODE", "1"}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_buildbox_env(box, rows[i].name, rows[i].value, e) < 0)
            return -1;
    return 0;
}

/* Packages are untrusted: limits the size of one file and the total. */
static int set_bounds(struct px_buildbox *box, bool to_file, struct px_err *e)
{
    return (to_file && px_policy_set(box->policy, "output-limit", "unlimited", e) < 0) ||
                   px_policy_set(box->policy, "file-size", "2g", e) < 0 || px_policy_set(box->policy, "disk", "8g", e) < 0
               ? -1
               : 0;
}

static int show_places(struct px_buildbox *box, const struct px_tools *t, int scratch, struct px_err *e)
{
    char in[PATH_MAX], env[PATH_MAX], store[PATH_MAX];
    if (px_buildbox_path(scratch, "in", in, sizeof in, e) < 0 || px_buildbox_show(box, in, "/px/in", false, e) < 0)
        return -1;
    if (!t->own)
        return 0;
    if (px_fmt(env, sizeof env, "%s/env", t->inside) < 0 || px_fmt(store, sizeof store, "%s/store", t->inside) < 0)
        return px_fail(e, PX_E_IO, ENAMETOOLONG, "the path of the store is too long");
    return px_buildbox_show(box, env, PX_INSIDE_ENV, false, e) < 0 ||
                   px_buildbox_show(box, store, PX_INSIDE "/store", false, e) < 0
               ? -1
               : 0;
}

static int run_box(struct px_env_work *w, const struct px_env_package *p, const struct px_tools *t, const char *stage,
                   int scratch, struct px_buf *out, int out_fd, struct px_err *e)
{
    char script[sizeof sdist_script + 1] = {0}, root[PATH_MAX], changes[PATH_MAX], python[64];
    memcpy(script, sdist_script, sizeof sdist_script);
    (void)px_fmt(python, sizeof python, "%s", t->own ? PX_INSIDE_ENV "/bin/python" : w->runtime->program);
    const char *const argv[] = {python, "-I", "-c", script, stage, p->file, NULL};
    struct px_buildbox box = {.out_fd = -EBADF};
    char what[128];
    if (px_tree_path(w->s->store, &t->root, root, sizeof root, e) < 0 ||
        px_buildbox_path(scratch, "changes", changes, sizeof changes, e) < 0)
        return -1;
    (void)px_fmt(what, sizeof what, "building %.60s %.40s", p->name, p->version);
    if (w->s->progress.tell)
        w->s->progress.tell(w->s->progress.user, what, 0, 0);
    int r = px_buildbox_setup(&box, "building a package", root, changes, e);
    r = r < 0 ? r : show_places(&box, t, scratch, e);
    r = r < 0 ? r : set_variables(&box, e);
    r = r < 0 ? r : set_bounds(&box, out_fd >= 0, e);
    box.out = out;
    box.out_fd = out_fd;
    r = r < 0 ? r : px_buildbox_run(&box, argv, e);
    px_buildbox_done(&box);
    return r < 0 ? px_sdist_failed(p, e) : 0;
}

/* The stage is a temporary directory; two builds of one archive do not run at the same time. */
static int begin_stage(struct px_env_work *w, const struct px_env_package *p, struct px_tree_build **ret_room,
                       struct px_err *e)
{
    struct px_oid id;
    char words[128];
    (void)px_fmt(words, sizeof words, "build sdist %s", p->source.hex);
    if (px_hash_bytes(words, strlen(words), &id) < 0)
        return px_no_memory(e);
    return px_tree_begin(w->s->store, &id, ret_room, e);
}

int px_sdist_ask(struct px_env_work *w, const struct px_env_package *p, const struct px_tools *t, const char *stage,
                 struct px_buf *out, struct px_err *e)
{
    struct px_tree_build *room = NULL;
    if (begin_stage(w, p, &room, e) < 0)
        return -1;
    int scratch = px_tree_build_fd(room);
    int r = offer(w, p, scratch, e) < 0 ? -1 : run_box(w, p, t, stage, scratch, out, -EBADF, e);
    px_tree_drop(room);
    return r;
}

/* ---- what came out ---- */

/* Reads the wheel's name, then copies the wheel to a file. */
static int take_wheel(const struct px_env_work *w, const struct px_env_package *p, int scratch, int out, int *ret_wheel,
                      char *file_name, size_t size, struct px_err *e)
{
    char head[NAME_LINE_MAX];
    struct stat st;
    ssize_t n = pread(out, head, sizeof head - 1, 0);
    const char *end = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;
    if (!end || fstat(out, &st) < 0 || px_fmt(file_name, size, "%.*s", (int)(end - head), head) < 0 ||
        px_tags_rank(&w->tags, file_name) < 0) {
        (void)px_fail(e, PX_E_BUILD, 0, "cannot build %s %s from its source", p->name, p->version);
        return px_why(e, "What came out is not a wheel for the Python of the base.");
    }
    px_auto_fd int wheel = openat(scratch, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    off_t at = end - head + 1;
    int r = wheel < 0 ? -errno : px_copy_part(out, (uint64_t)at, (uint64_t)(st.st_size - at), wheel);
    if (r < 0)
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot keep the wheel of %s", p->name);
    *ret_wheel = px_fd_take(&wheel);
    return 0;
}

int px_env_sdist(struct px_env_work *w, const struct px_env_package *p, const struct px_tools *t, int *ret_wheel,
                 char *file_name, size_t size, struct px_err *e)
{
    struct px_tree_build *room = NULL;
    if (begin_stage(w, p, &room, e) < 0)
        return -1;
    int scratch = px_tree_build_fd(room);
    px_auto_fd int out = openat(scratch, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    int r = out < 0 ? px_fail(e, PX_E_STORE_WRITE, errno, "cannot make a file in the store") : offer(w, p, scratch, e);
    r = r < 0 ? r : run_box(w, p, t, "wheel", scratch, NULL, out, e);
    r = r < 0 ? r : take_wheel(w, p, scratch, out, ret_wheel, file_name, size, e);
    px_tree_drop(room);
    return r;
}
