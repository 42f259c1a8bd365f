/* Trees: tmp/NAME/tree/{root/,complete} becomes trees/ID. `complete` is one canonical object: what the tree is, as
 * far as it can be checked, and what its builder says about it. No `complete`, no tree. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "store/canonical.h"
#include "store/document.h"
#include "store/inside.h"

enum { COMPLETE_VERSION = 1, BUILD_MSEC_MAX = 30 * 60 * 1000 };

struct px_tree_build {
    struct px_store *store;
    struct px_oid id;
    struct px_lock *lock;
    struct px_tmp tmp;
    int tree, root;
};

/* ---- looking ---- */

static int parse_complete(const char *text, size_t len, struct px_tree_complete *ret, struct px_buf *about)
{
    px_auto(px_document) json_t *document = NULL;
    struct px_err e = {0};
    uint64_t version = 0;
    struct px_tree_complete c;

    if (px_document_read(text, len, "", PX_E_OBJECT, &document, &e) < 0)
        return e.code == PX_E_MEMORY ? -ENOMEM : -EINVAL;
    if (px_document_number(document, "version", 1 << 30, &version) != 1 || version != COMPLETE_VERSION ||
        px_document_number(document, "files", UINT64_MAX >> 1, &c.files) != 1 ||
        px_document_number(document, "bytes", UINT64_MAX >> 1, &c.bytes) != 1 ||
        px_oid_parse(px_document_text(document, "listing"), false, &c.listing) < 0)
        return -EINVAL;
    const json_t *said = json_object_get(document, "about");
    int r = about && said && !json_is_null(said) ? px_canonical(said, about) : 0;
    if (r >= 0 && ret)
        *ret = c;
    return r;
}

static int open_dir(int parent, const char *name, int flags)
{
    return (int)px_sys(SYS_openat, parent, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | flags);
}

int px_tree_look(const struct px_store *store, const struct px_oid *id, struct px_tree_complete *ret_complete,
                 struct px_buf *about)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_SMALL_MAX);
    px_auto_fd int tree = open_dir(store->place[PX_PLACE_TREES], id->hex, O_PATH);
    px_auto_fd int root = tree < 0 ? tree : open_dir(tree, "root", O_PATH);

    if (tree == -ENOENT)
        return 1;
    int r = root < 0 ? root : px_small_read(tree, "complete", &text);
    if (r < 0)                  /* no memory or no descriptor left says nothing about the tree */
        return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? -EINVAL : r;
    return parse_complete(px_buf_text(&text), text.len, ret_complete, about);
}

bool px_tree_there(const struct px_store *store, const struct px_oid *id)
{
    return px_tree_look(store, id, NULL, NULL) == 0;
}

/* 0 and kept, 1 if not there, -1. What only looks like a tree goes out of the way. */
static int find_tree(struct px_store *store, const struct px_oid *id, struct px_err *e)
{
    px_auto_fd int guard = px_guard_take(store, false, e);

    if (guard < 0)
        return -1;
    int r = px_tree_look(store, id, NULL, NULL);
    if (r == -EINVAL)
        px_quarantine(store, PX_PLACE_TREES, id->hex);
    else if (r < 0)
        return px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_OBJECT, r, "cannot look at tree %s", id->hex);
    return r != 0 ? 1 : px_session_keep(store, PX_USE_TREE, id, e);
}

bool px_tree_has(struct px_store *store, const struct px_oid *id)
{
    return find_tree(store, id, NULL) == 0;
}

static int not_there(const struct px_oid *id, struct px_err *e)
{
    return px_fail(e, PX_E_OBJECT, 0, "tree %s is not in the store", id->hex);
}

int px_tree_open(struct px_store *store, const struct px_oid *id, int *ret_fd, struct px_err *e)
{
    int r = find_tree(store, id, e);

    if (r != 0)
        return r < 0 ? -1 : not_there(id, e);
    px_auto_fd int tree = open_dir(store->place[PX_PLACE_TREES], id->hex, O_PATH);
    int root = tree < 0 ? tree : open_dir(tree, "root", O_PATH);
    if (root < 0)
        return not_there(id, e);
    *ret_fd = root;
    return 0;
}

int px_tree_path(struct px_store *store, const struct px_oid *id, char *out, size_t size, struct px_err *e)
{
    int r = find_tree(store, id, e);

    if (r != 0)
        return r < 0 ? -1 : not_there(id, e);
    r = px_fmt(out, size, "%s/trees/%s/root", store->path, id->hex);
    return r < 0 ? px_fail(e, PX_E_LIMIT, r, "the path of tree %s is too long", id->hex) : 0;
}

int px_tree_about(struct px_store *store, const struct px_oid *id, struct px_buf *out, struct px_err *e)
{
    struct px_tree_complete c;

    int r = px_tree_look(store, id, &c, out);
    return r == 0                   ? 0
           : r == 1 || r == -EINVAL ? not_there(id, e)
                                    : px_fail(e, PX_E_OBJECT, r, "cannot look at tree %s", id->hex);
}

/* ---- building ---- */

void px_tree_drop(struct px_tree_build *build)
{
    if (!build)
        return;
    (void)px_fd_close(build->root);
    (void)px_fd_close(build->tree);
    px_tmp_done(build->store, &build->tmp);
    px_lock_drop(build->lock);
    free(build);
}

static int make_dir(int parent, const char *name, mode_t mode, int *ret_fd)
{
    int r = (int)px_sys(SYS_mkdirat, parent, name, 0700);
    int fd = r < 0 ? r : open_dir(parent, name, O_RDONLY);

    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int make_room(struct px_tree_build *build, struct px_err *e)
{
    if (px_tmp_make(build->store, &build->tmp, e) < 0)
        return -1;
    int r = make_dir(build->tmp.fd, "tree", 0700, &build->tree);
    if (r >= 0)
        r = make_dir(build->tree, "root", 0755, &build->root);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot make a directory in '%s/tmp'", build->store->path) : 0;
}

int px_tree_begin(struct px_store *store, const struct px_oid *id, struct px_tree_build **ret_build, struct px_err *e)
{
    struct px_tree_build *build = calloc(1, sizeof *build);

    if (!build)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "building tree %s", id->hex);
    *build = (struct px_tree_build){.store = store, .id = *id, .tmp.fd = -EBADF, .tree = -EBADF, .root = -EBADF};
    int r = px_lock_take(store, id, BUILD_MSEC_MAX, &build->lock, e);
    if (r >= 0)
        r = find_tree(store, id, e);
    if (r == 1 && make_room(build, e) == 0) {
        *ret_build = build;
        return 0;
    }
    px_tree_drop(build);
    return r == 0 ? 1 : -1;
}

int px_tree_build_fd(const struct px_tree_build *build)
{
    return build->root;
}

static int write_complete(const struct px_tree_build *build, const char *about, const struct px_listing *listing,
                          struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_SMALL_MAX);
    px_auto(px_document) json_t *said = NULL;
    px_auto(px_document) json_t *all = NULL;

    if (about && px_document_read(about, strlen(about), "what is said about a tree", PX_E_INTERNAL, &said, e) < 0)
        return -1;
    all = json_pack("{s:s, s:I, s:I, s:i}", "listing", listing->oid.hex, "files", (json_int_t)listing->files, "bytes",
                    (json_int_t)listing->bytes, "version", COMPLETE_VERSION);
    if (!all || (said && json_object_set(all, "about", said) < 0))
        return px_fail(e, PX_E_MEMORY, ENOMEM, "building tree %s", build->id.hex);
    int r = px_canonical(all, &text);
    if (r < 0)
        return px_fail(e, r == -EINVAL ? PX_E_INTERNAL : PX_E_MEMORY, r, "what is said about tree %s cannot be kept",
                       build->id.hex);
    r = px_write_new(build->tree, "complete", text.data, text.len, 0600);
    if (r >= 0)
        r = px_fsync(build->tree);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot write tree %s", build->id.hex) : 0;
}

static int show(struct px_tree_build *build, struct px_err *e)
{
    struct px_store *store = build->store;
    px_auto_fd int guard = px_guard_take(store, false, e);

    if (guard < 0 || px_session_keep(store, PX_USE_TREE, &build->id, e) < 0)
        return -1;
    int r = px_rename_new(build->tmp.fd, "tree", store->place[PX_PLACE_TREES], build->id.hex);
    if (r >= 0 ||
        (r == -EEXIST && px_tree_there(store, &build->id))) /* somebody without the lock; what is there is whole */
        r = px_fsync(store->place[PX_PLACE_TREES]);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot store tree %s", build->id.hex) : 0;
}

int px_tree_commit(struct px_tree_build *build, const char *about, struct px_err *e)
{
    struct px_listing listing;
    int r = px_listing_make(build->root, true, NULL, &listing, e);

    if (r >= 0 && syncfs(build->root) < 0)
        r = px_fail(e, PX_E_STORE_WRITE, errno, "cannot write tree %s", build->id.hex);
    if (r >= 0)
        r = write_complete(build, about, &listing, e);
    if (r >= 0)
        r = show(build, e);
    px_tree_drop(build);
    return r;
}
