/* Trees: tmp/NAME/tree/{root/,complete} is renamed to trees/ID. `complete` is one canonical object: the tree's hash and
 * sizes, and the builder's description. A directory without `complete` is not a tree. */
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
#include "base/time.h"
#include "store/canonical.h"
#include "store/document.h"
#include "store/store_internal.h"

enum { COMPLETE_VERSION = 1, BUILD_MSEC_MAX = 30 * 60 * 1000, CHECKED_NSEC = 1000000000 };

struct px_tree_build {
    struct px_store *store;
    struct px_oid id;
    struct px_store_lock *lock;
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
        px_hash_oid_parse(px_document_text(document, "listing"), false, &c.listing) < 0)
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
    int r = root < 0 ? root : px_store_small_read(tree, "complete", &text);
    if (r < 0)                  /* a lack of memory or descriptors says nothing about the tree */
        return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? -EINVAL : r;
    return parse_complete(px_buf_text(&text), text.len, ret_complete, about);
}

bool px_tree_there(const struct px_store *store, const struct px_oid *id)
{
    return px_tree_look(store, id, NULL, NULL) == 0;
}

/* ---- whether it is what was stored ---- */

static int cannot_look(const struct px_oid *id, int err, struct px_err *e)
{
    return px_fail(e, err == -ENOMEM ? PX_E_MEMORY : PX_E_OBJECT, err, "cannot look at tree %s", id->hex);
}

int px_tree_lost(const struct px_oid *id, int found, struct px_err *e)
{
    if (found == 1)
        return px_fail(e, PX_E_OBJECT, 0, "tree %s is not in the store", id->hex);
    (void)px_fail(e, PX_E_OBJECT, 0, "the files of tree %s are not what px stored", id->hex);
    return px_why(e, "Something else has changed them. The tree was moved to 'corrupt' in the store, and is not used.");
}

/* 0 and the listing, 1: the content differs, -1. If the content matches, the seal is written again. */
static int read_again(const struct px_store *store, int tree, const struct px_oid *listing,
                      struct px_listing *ret_listing, struct px_err *e)
{
    px_auto_buf struct px_buf paths = PX_BUF(PX_PATHS_MAX);
    px_auto_fd int root = open_dir(tree, "root", O_RDONLY);
    struct px_err said = {0};
    struct timespec now;
    int r = root < 0 ? px_fail(&said, PX_E_OBJECT, root, "cannot open a tree") : 0;

    if (r == 0)
        r = clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (r == 0)
        r = px_listing_make(root, false, NULL, &paths, ret_listing, &said);
    if (r < 0 && px_store_lacks(&said)) {
        if (e)
            *e = said;
        return -1;
    }
    if (r < 0 || !px_hash_oid_equal(&ret_listing->oid, listing))
        return 1;
    px_seal_put(store, tree, &paths, &now);
    return 0;
}

/* Moves away only the tree that was checked: 1 if it is gone, or another process has replaced it by a good one; else
 * 2. */
static int set_aside(const struct px_store *store, const struct px_oid *id, int tree)
{
    px_auto_fd int guard = px_store_guard_take(store, true, NULL);
    px_auto_fd int now = open_dir(store->place[PX_PLACE_TREES], id->hex, O_PATH);
    struct stat a, b;

    if (now < 0 || fstat(tree, &a) < 0 || fstat(now, &b) < 0 || a.st_ino != b.st_ino || a.st_dev != b.st_dev)
        return 1;
    if (guard >= 0)
        px_store_quarantine(store, PX_PLACE_TREES, id->hex);
    return 2;
}

static void tell(struct px_store *store, const struct px_oid *id)
{
    char line[160];

    store->asides++;
    (void)px_fmt(line, sizeof line, "tree %.16s is not what px stored: it is set aside", id->hex);
    if (store->aside.tell)
        store->aside.tell(store->aside.user, line);
}

void px_store_on_aside(struct px_store *store, struct px_store_aside aside)
{
    store->aside = aside;
}

void px_store_look_only(struct px_store *store, bool look_only)
{
    store->look_only = look_only;
}

unsigned px_store_asides(const struct px_store *store)
{
    return store->asides;
}

static bool checked_just_now(struct px_store *store, const struct px_oid *id)
{
    uint64_t now = px_now_nsec();

    if (now - store->checked_nsec > CHECKED_NSEC) {
        store->checked.count = 0;
        store->checked_nsec = now;
    }
    return px_lease_used_has(&store->checked, PX_USE_TREE, id);
}

/* Checks an existing tree; by its seal first, unless `ret_bytes` is wanted. */
static int check(struct px_store *store, const struct px_oid *id, const struct px_oid *listing, uint64_t *ret_bytes,
                 struct px_err *e)
{
    struct px_listing again = {0};
    px_auto_fd int tree = open_dir(store->place[PX_PLACE_TREES], id->hex, O_PATH);

    if (tree < 0)
        return tree == -ENOENT ? 1 : cannot_look(id, tree, e);
    int r = !ret_bytes && px_seal_end(px_seal_begin(tree)) ? 0 : read_again(store, tree, listing, &again, e);
    if (ret_bytes)
        *ret_bytes = again.bytes;
    return r == 1 ? set_aside(store, id, tree) : r;
}

static int check_once(struct px_store *store, const struct px_oid *id, const struct px_oid *listing, struct px_err *e)
{
    if (store->look_only || checked_just_now(store, id))
        return 0;
    int r = check(store, id, listing, NULL, e);
    if (r == 0)
        (void)px_lease_used_add(&store->checked, PX_USE_TREE, id);
    if (r == 2)
        tell(store, id);
    return r;
}

static int whole(struct px_store *store, const struct px_oid *id, uint64_t *ret_bytes, struct px_err *e)
{
    struct px_tree_complete complete;
    int r = px_tree_look(store, id, &complete, NULL);

    if (r == 0)
        return ret_bytes ? check(store, id, &complete.listing, ret_bytes, e)
                         : check_once(store, id, &complete.listing, e);
    if (r == -EINVAL)
        px_store_quarantine(store, PX_PLACE_TREES, id->hex);
    return r == 1 ? 1 : r == -EINVAL ? 2 : cannot_look(id, r, e);
}

int px_tree_whole(struct px_store *store, const struct px_oid *id, struct px_err *e)
{
    return whole(store, id, NULL, e);
}

int px_tree_read_again(struct px_store *store, const struct px_oid *id, uint64_t *ret_bytes, struct px_err *e)
{
    return whole(store, id, ret_bytes, e);
}

/* 0 and kept; 1 and 2: px_tree_whole's; -1. An incomplete tree is moved away. */
static int find_tree(struct px_store *store, const struct px_oid *id, struct px_err *e)
{
    struct px_tree_complete complete;
    px_auto_fd int guard = px_store_guard_take(store, false, e);

    if (guard < 0)
        return -1;
    int r = px_tree_look(store, id, &complete, NULL);
    if (r == -EINVAL)
        px_store_quarantine(store, PX_PLACE_TREES, id->hex);
    else if (r < 0)
        return cannot_look(id, r, e);
    if (r != 0)
        return 1;
    if (px_lease_session_keep(store, PX_USE_TREE, id, e) < 0)
        return -1;
    guard = px_fd_close(guard);         /* reading everything can take long */
    return check_once(store, id, &complete.listing, e);
}

bool px_tree_has(struct px_store *store, const struct px_oid *id)
{
    return find_tree(store, id, NULL) == 0;
}

struct px_seal *px_tree_look_begin(struct px_store *store, const struct px_oid *id)
{
    px_auto_fd int tree = open_dir(store->place[PX_PLACE_TREES], id->hex, O_PATH);

    return tree < 0 ? NULL : px_seal_begin(tree);
}

bool px_tree_known(struct px_store *store, const struct px_oid *id)
{
    return px_tree_there(store, id);
}

int px_tree_open(struct px_store *store, const struct px_oid *id, int *ret_fd, struct px_err *e)
{
    int r = find_tree(store, id, e);

    if (r != 0)
        return r < 0 ? -1 : px_tree_lost(id, r, e);
    px_auto_fd int tree = open_dir(store->place[PX_PLACE_TREES], id->hex, O_PATH);
    int root = tree < 0 ? tree : open_dir(tree, "root", O_PATH);
    if (root < 0)
        return px_tree_lost(id, 1, e);
    *ret_fd = root;
    return 0;
}

int px_tree_path(struct px_store *store, const struct px_oid *id, char *out, size_t size, struct px_err *e)
{
    int r = find_tree(store, id, e);

    if (r != 0)
        return r < 0 ? -1 : px_tree_lost(id, r, e);
    r = px_fmt(out, size, "%s/trees/%s/root", store->path, id->hex);
    return r < 0 ? px_fail(e, PX_E_LIMIT, r, "the path of tree %s is too long", id->hex) : 0;
}

int px_tree_about(struct px_store *store, const struct px_oid *id, struct px_buf *out, struct px_err *e)
{
    struct px_tree_complete c;

    int r = px_tree_look(store, id, &c, out);
    return r == 0 ? 0 : r == 1 || r == -EINVAL ? px_tree_lost(id, 1, e) : cannot_look(id, r, e);
}

/* ---- building ---- */

void px_tree_drop(struct px_tree_build *build)
{
    if (!build)
        return;
    (void)px_fd_close(build->root);
    (void)px_fd_close(build->tree);
    px_store_tmp_done(build->store, &build->tmp);
    px_store_lock_drop(build->lock);
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
    if (px_store_tmp_make(build->store, &build->tmp, e) < 0)
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
        return px_no_memory(e);
    *build = (struct px_tree_build){.store = store, .id = *id, .tmp.fd = -EBADF, .tree = -EBADF, .root = -EBADF};
    int r = px_store_lock_take(store, id, BUILD_MSEC_MAX, &build->lock, e);
    if (r >= 0)
        r = find_tree(store, id, e);
    if (r > 0 && make_room(build, e) == 0) {
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
        return px_no_memory(e);
    int r = px_canonical(all, &text);
    if (r < 0)
        return px_fail(e, r == -EINVAL ? PX_E_INTERNAL : PX_E_MEMORY, r, "what is said about tree %s cannot be kept",
                       build->id.hex);
    r = px_store_write_new(build->tree, "complete", text.data, text.len, 0600);
    if (r >= 0)
        r = px_store_fsync(build->tree);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot write tree %s", build->id.hex) : 0;
}

static int show(struct px_tree_build *build, struct px_err *e)
{
    struct px_store *store = build->store;
    px_auto_fd int guard = px_store_guard_take(store, false, e);

    if (guard < 0 || px_lease_session_keep(store, PX_USE_TREE, &build->id, e) < 0)
        return -1;
    int r = px_store_rename_new(build->tmp.fd, "tree", store->place[PX_PLACE_TREES], build->id.hex);
    if (r >= 0 ||
        (r == -EEXIST && px_tree_there(store, &build->id))) /* made by a process without the lock; it is complete */
        r = px_store_fsync(store->place[PX_PLACE_TREES]);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot store tree %s", build->id.hex) : 0;
}

int px_tree_commit(struct px_tree_build *build, const char *about, struct px_err *e)
{
    px_auto_buf struct px_buf paths = PX_BUF(PX_PATHS_MAX);
    struct px_listing listing;
    int r = px_listing_make(build->root, true, NULL, &paths, &listing, e);

    if (r >= 0 && syncfs(build->root) < 0)
        r = px_fail(e, PX_E_STORE_WRITE, errno, "cannot write tree %s", build->id.hex);
    if (r >= 0)
        r = write_complete(build, about, &listing, e);
    if (r >= 0) {
        px_seal_put(build->store, build->tree, &paths, NULL);
        r = show(build, e);
    }
    px_tree_drop(build);
    return r;
}
