/* What a box gets as its root when that is not the host or a directory: an archive, unpacked once into the store, or a
 * base by name. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "catalog/record.h"
#include "image/oci.h"
#include "store/document.h"

/* Part of a tree's id: another px that would unpack the same archive to something else has another number. */
enum { UNPACK_FORMAT = 1 };

struct px_root_lease {
    struct px_lease *lease;
    struct px_oid tree;
    struct px_seal *seal;       /* being looked at; NULL: it was */
    bool holds;
};

bool px_root_lease_look(struct px_sandbox *s, struct px_root_lease *lease)
{
    lease->seal = px_tree_look_begin(s->store, &lease->tree);
    return lease->seal != NULL;
}

bool px_root_lease_holds(struct px_root_lease *lease)
{
    if (lease->seal)
        lease->holds = px_seal_end(px_take(&lease->seal));
    return lease->holds;
}

void px_root_lease_free(struct px_root_lease *lease)
{
    if (!lease)
        return;
    (void)px_root_lease_holds(lease);
    px_lease_drop(lease->lease);
    free(lease);
}

/* The directory of a tree, and a hold on it and on the manifest of the image that it is (NULL: none). */
static int lend(struct px_sandbox *s, const struct px_oid *tree, const struct px_oid *image, char **ret_dir,
                struct px_root_lease **ret_lease, struct px_err *e)
{
    char path[4096];
    struct px_root_lease *lease = calloc(1, sizeof *lease);
    if (!lease)
        return px_no_memory(e);
    lease->tree = *tree;
    lease->holds = true;
    char *copy = NULL;
    int r = px_lease_take(s->store, tree, 1, image, image != NULL, &lease->lease, e);
    if (r == 0)
        r = px_tree_path(s->store, tree, path, sizeof path, e);
    if (r == 0 && !(copy = strdup(path)))
        r = px_no_memory(e);
    if (r < 0) {
        px_root_lease_free(lease);
        return -1;
    }
    *ret_dir = copy;
    *ret_lease = lease;
    return 0;
}

/* ---- archives ---- */

static int tree_of(const struct px_oid *archive, struct px_oid *ret_tree, struct px_err *e)
{
    char text[128];
    int r = px_fmt(text, sizeof text, "px-unpack %d\n%s\n", UNPACK_FORMAT, archive->hex);
    r = r < 0 ? r : px_hash_bytes(text, strlen(text), ret_tree);
    return r < 0 ? px_fail(e, PX_E_INTERNAL, r, "cannot name a tree") : 0;
}

static void describe(const struct px_unpacked *done, struct px_buf *out)
{
    struct px_json j = {.out = out};
    px_json_object(&j, NULL);           /* members in the order of their names: this is kept as it is */
    px_json_text(&j, "archive", done->packed.hex);
    px_json_uint(&j, "bytes", done->bytes);
    px_json_text(&j, "diff_id", done->diff_id.hex);
    px_json_uint(&j, "dropped", done->dropped);
    px_json_uint(&j, "entries", done->entries);
    px_json_text(&j, "kind", "rootfs");
    px_json_uint(&j, "unpack_format", UNPACK_FORMAT);
    px_json_end(&j);
}

/* The file's name before what the helper said, who does not know it. */
static int name_archive(const char *path, struct px_err *e)
{
    if (e->code != PX_E_ARCHIVE)
        return -1;
    struct px_err said = *e;
    px_fail(e, PX_E_ARCHIVE, 0, "'%.200s': %s", path, said.what);
    memcpy(e->why, said.why, sizeof e->why);
    memcpy(e->fix, said.fix, sizeof e->fix);
    return -1;
}

static int fill(struct px_sandbox *s, const char *path, int fd, uint64_t size, const struct px_oid *archive,
                struct px_tree_build *build, struct px_err *e)
{
    px_auto_buf struct px_buf about = PX_BUF(4096);
    struct px_unpacked done;
    if (px_layer_unpack(fd, size, px_tree_build_fd(build), false, &px_unpack_limits_default, s->progress, &done, e) < 0)
        return name_archive(path, e);
    if (!px_hash_oid_equal(&done.packed, archive))
        return px_fail(e, PX_E_ARCHIVE, 0, "'%s' changed while it was read", path);
    describe(&done, &about);
    if (about.err < 0)
        return px_fail(e, PX_E_MEMORY, about.err, "the description of a tree");
    return px_tree_commit(build, about.data, e) < 0 ? -2 : 0;
}

static int unpack_once(struct px_sandbox *s, const char *path, int fd, struct px_oid *ret_tree, struct px_err *e)
{
    struct px_tree_build *build = NULL;
    struct px_oid archive;
    uint64_t size;
    if (px_hash_cache_file(s->store, fd, &archive, &size, e) < 0 || tree_of(&archive, ret_tree, e) < 0)
        return -1;
    if (px_tree_has(s->store, ret_tree))
        return 0;
    int r = px_tree_begin(s->store, ret_tree, &build, e);
    if (r != 0)
        return r < 0 ? -1 : 0;  /* 1: another process was faster */
    r = fill(s, path, fd, size, &archive, build, e);
    if (r == -1)
        px_tree_drop(build);    /* after a commit, failed or not, it is gone */
    return r < 0 ? -1 : 0;
}

static int root_of_file(struct px_sandbox *s, const char *path, char **ret_dir, struct px_root_lease **ret_lease,
                        struct px_err *e)
{
    struct px_oid tree;
    struct stat st;
    px_auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return px_fail(e, PX_E_ROOTFS, errno, "cannot use '%s' as a root", path);
    if (S_ISDIR(st.st_mode)) {
        *ret_dir = strdup(path);
        *ret_lease = NULL;
        return *ret_dir ? 0 : px_no_memory(e);
    }
    if (!S_ISREG(st.st_mode))
        return px_fail(e, PX_E_ROOTFS, 0, "cannot use '%s' as a root: it is neither a directory nor an archive", path);
    if (unpack_once(s, path, fd, &tree, e) < 0)
        return -1;
    return lend(s, &tree, NULL, ret_dir, ret_lease, e);
}

/* ---- bases and images ---- */

/* All layers of an image as one tree, unpacked once. 1: there is no such image. */
static int root_of_image(struct px_sandbox *s, const char *name, char **ret_dir, struct px_root_lease **ret_lease,
                         struct px_err *e)
{
    px_auto(px_document) json_t *record = NULL;
    struct px_oid manifest, tree;
    int r = px_catalog_image_find(s->store, name, &record, &manifest, e);
    if (r != 0)
        return r;
    px_auto_free struct px_image *image = calloc(1, sizeof *image);
    if (!image)
        return px_no_memory(e);
    r = px_image_load(s->store, &manifest, image, e);
    if (r == 0) {
        r = px_image_tree(s->store, image, s->progress, &tree, e);
        px_image_done(image);
    }
    return r < 0 ? -1 : lend(s, &tree, &manifest, ret_dir, ret_lease, e);
}

static int root_of_base(struct px_sandbox *s, const char *name, char **ret_dir, struct px_root_lease **ret_lease,
                        struct px_err *e)
{
    struct px_base base;
    int r = px_catalog_base_find(s->store, name, &base, e);
    if (r > 0)
        r = root_of_image(s, name, ret_dir, ret_lease, e);
    else if (r == 0) {
        r = px_catalog_base_whole(s, &base, e) < 0 ? -1 : lend(s, &base.tree, NULL, ret_dir, ret_lease, e);
        px_catalog_base_done(&base);
    }
    return r > 0 ? px_catalog_base_need(s->store, name, &base, e) : r;
}

/* A path; where there is none, the tag of an image may have slashes, too: registry.example/team/app:1. */
static int root_of_path(struct px_sandbox *s, const char *base, char **ret_dir, struct px_root_lease **ret_lease,
                        struct px_err *e)
{
    bool tag = base[0] != '/' && base[0] != '.' && faccessat(AT_FDCWD, base, F_OK, 0) < 0 && errno == ENOENT;
    int r = tag ? root_of_image(s, base, ret_dir, ret_lease, e) : 1;
    return r > 0 ? root_of_file(s, base, ret_dir, ret_lease, e) : r;
}

int px_sandbox_root(struct px_sandbox *s, const char *base, const char *rootfs, char **ret_dir,
                    struct px_root_lease **ret_lease, struct px_err *e)
{
    PX_ERR(e);
    if (rootfs)
        return root_of_file(s, rootfs, ret_dir, ret_lease, e);
    if (px_equal(base, "host")) {
        *ret_dir = NULL;        /* the host's own directories, which need no lease */
        *ret_lease = NULL;
        return 0;
    }
    if (base && (strchr(base, '/') || base[0] == '.'))
        return root_of_path(s, base, ret_dir, ret_lease, e);
    return root_of_base(s, base ? base : "debian-12", ret_dir, ret_lease, e);
}
