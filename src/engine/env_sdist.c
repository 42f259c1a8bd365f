/* Source archives: what they run when they are built runs in a box without a network, on the base with a compiler,
 * pip's usual backends and the development packages of the capabilities that the package is known for. Only the
 * wheel comes out, and is looked at like any other. */
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
#include "engine/env_inside.h"
#include "engine/sandbox_box.h"
#include "engine/sandbox_layer.h"
#include "engine/sdist_script.inc"
#include "image/oci.h"
#include "infer/messages.h"
#include "infer/tables.h"
#include "kernel/copy.h"

enum { NAME_LINE_MAX = 256 };
static const char toolchain[] =
    "python3-pip python3-setuptools python3-wheel python3-dev gcc g++ libc6-dev make pkg-config";

/* ---- the root that it is built on ---- */

/* The capabilities that the package is known to need. */
static int known_needs(const struct px_env_package *p, struct px_capability_set *ret_set, struct px_err *e)
{
    const struct px_dist *dist = px_dist_find(p->name);
    const char *names[PX_CAPABILITIES_MAX + 1] = {NULL};
    char words[512];
    size_t count = 0;
    (void)px_fmt(words, sizeof words, "%s", dist ? dist->capabilities : "");
    for (char *at = words; *at && count < PX_CAPABILITIES_MAX;) {
        at += strspn(at, " ");
        size_t n = strcspn(at, " ");
        if (n)
            names[count++] = at;
        at += n;
        if (*at)
            *at++ = '\0';
    }
    return px_capability_set_make(names, ret_set, e);
}

static int make_root(struct px_env_work *w, struct px_env_package *p, struct px_oid *ret_tree, struct px_err *e)
{
    struct px_base base = {0};
    struct px_capability_set set = {0};
    struct px_capability_layer layer = {0};
    const struct px_base_row *row = px_base_row_find(w->runtime->base);
    if (!row || !row->suite) {
        (void)px_fail(e, PX_E_BUILD, 0, "%s %s comes as a source archive, which px cannot build for the base '%s'",
                      p->name, p->version, w->runtime->base);
        return px_fix(e, "Give a wheel of it by --find-links, or use base = \"debian-12\".");
    }
    if (known_needs(p, &set, e) < 0 || px_base_need(w->s->store, w->runtime->base, &base, e) < 0)
        return -1;
    const struct px_capability_ask ask = {
        .base = &base, .row = row, .set = &set, .compression = PX_COMPRESS_ZSTD, .build = toolchain};
    int r = px_capability_layer_make(w->s, &ask, &layer, e);
    struct px_image *image = r < 0 ? NULL : calloc(1, sizeof *image);
    if (r == 0 && !image)
        r = px_fail(e, PX_E_MEMORY, ENOMEM, "building %s", p->name);
    if (r == 0) {
        image->layers[image->layer_count++] = base.layer;
        if (layer.any)
            image->layers[image->layer_count++] = layer.layer;
        p->options = layer.any ? layer.key : base.oid;
        r = px_image_tree(w->s->store, image, w->s->progress, ret_tree, e);
    }
    free(image);
    px_capability_layer_done(&layer);
    px_base_done(&base);
    return r;
}

/* ---- the box ---- */

/* The archive under its own name, which pip looks at. */
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

static int failed(const struct px_env_package *p, struct px_err *e)
{
    struct px_missing missing;
    char why[sizeof e->why];
    if (!e || e->code != PX_E_BUILD)
        return -1;
    (void)px_fmt(why, sizeof why, "%s", e->why);
    (void)px_fail(e, PX_E_BUILD, 0, "cannot build %s %s from its source", p->name, p->version);
    (void)px_why(e, "%s", why);
    (void)px_detail(e, "reason", "sdist_build_failed");
    if (px_message_missing(why, strlen(why), &missing))
        return px_fix(e,
                      "Its build misses %s, which the capability '%s' brings.\n"
                      "Take a wheel of it, by --find-links or another version.",
                      missing.what, missing.capability);
    return px_fix(
        e,
        "Take a wheel of it: another version, or one built elsewhere (`pip wheel %s==%s`) and given by --find-links.",
        p->name, p->version);
}

static int run_box(struct px_env_work *w, const struct px_env_package *p, const struct px_oid *tree, int scratch,
                   int out, struct px_err *e)
{
    char script[sizeof sdist_script + 1] = {0}, root[PATH_MAX], changes[PATH_MAX], in[PATH_MAX];
    memcpy(script, sdist_script, sizeof sdist_script);
    const char *const argv[] = {"/bin/sh", "-c", script, "px-sdist", p->file, NULL};
    struct px_build_box box = {.out_fd = -EBADF};
    char what[128];
    if (px_tree_path(w->s->store, tree, root, sizeof root, e) < 0 ||
        px_build_path(scratch, "changes", changes, sizeof changes, e) < 0 ||
        px_build_path(scratch, "in", in, sizeof in, e) < 0)
        return -1;
    (void)px_fmt(what, sizeof what, "building %.60s %.40s", p->name, p->version);
    if (w->s->progress.tell)
        w->s->progress.tell(w->s->progress.user, what, 0, 0);
    int r = px_build_box_setup(&box, "building a package", root, changes, e);
    r = r < 0 ? r : px_build_box_show(&box, in, "/px/in", false, e);
    /* Packages are written by anybody: what one can take of the disk is bounded, in one file and in all. */
    r = r < 0 ? r : px_policy_set(box.policy, "output-limit", "unlimited", e);
    r = r < 0 ? r : px_policy_set(box.policy, "file-size", "2g", e);
    r = r < 0 ? r : px_policy_set(box.policy, "disk", "8g", e);
    box.out_fd = out;
    r = r < 0 ? r : px_build_box_run(&box, argv, e);
    px_build_box_done(&box);
    return r < 0 ? failed(p, e) : 0;
}

/* ---- what came out ---- */

/* The name, then the wheel itself as a file of its own. */
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

int px_env_sdist(struct px_env_work *w, struct px_env_package *p, int *ret_wheel, char *file_name, size_t size,
                 struct px_err *e)
{
    struct px_tree_build *room = NULL;
    struct px_oid tree, id;
    char words[128];
    (void)px_fmt(words, sizeof words, "build sdist %s", p->source.hex);
    if (px_hash_bytes(words, strlen(words), &id) < 0)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "building %s", p->name);
    if (make_root(w, p, &tree, e) < 0 || px_tree_begin(w->s->store, &id, &room, e) < 0)
        return -1;
    int scratch = px_tree_build_fd(room);
    px_auto_fd int out = openat(scratch, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    int r = out < 0 ? px_fail(e, PX_E_STORE_WRITE, errno, "cannot make a file in the store") : offer(w, p, scratch, e);
    r = r < 0 ? r : run_box(w, p, &tree, scratch, out, e);
    r = r < 0 ? r : take_wheel(w, p, scratch, out, ret_wheel, file_name, size, e);
    px_tree_drop(room);
    return r;
}
