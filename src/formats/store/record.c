/* Records: sandbox/bases|images/ID/manifest.json. A record is written completely, and only when everything that it
 * needs exists. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "store/document.h"
#include "store/store_internal.h"

static const char manifest[] = "manifest.json";

static enum px_place place_of(enum px_record_kind kind)
{
    return (enum px_place)(PX_PLACE_BASES + (int)kind);
}

static enum px_use use_of(enum px_record_kind kind)
{
    return (enum px_use)(PX_USE_BASE + (int)kind);
}

/* ---- what a record needs ---- */

void px_record_refs_done(struct px_refs *refs)
{
    free(refs->blobs);
    free(refs->trees);
    *refs = (struct px_refs){0};
}

static int read_ids(const json_t *list, struct px_oid **ret_ids, size_t *ret_count)
{
    size_t count = json_array_size(list);       /* 0 if it is not an array */
    struct px_oid *ids = calloc(count + 1, sizeof *ids);

    if (!ids)
        return -ENOMEM;
    *ret_ids = ids;
    *ret_count = count;
    for (size_t i = 0; i < count; i++)
        if (px_hash_oid_parse(json_string_value(json_array_get(list, i)), false, &ids[i]) < 0)
            return -EINVAL;
    return 0;
}

static int read_refs(const json_t *document, struct px_refs *refs)
{
    const json_t *said = json_object_get(document, "refs");
    const json_t *blobs = json_object_get(said, "blobs"), *trees = json_object_get(said, "trees");
    bool good = json_is_object(said) && (!blobs || json_is_array(blobs)) && (!trees || json_is_array(trees));
    int r = good ? read_ids(blobs, &refs->blobs, &refs->blob_count) : -EINVAL;

    return r < 0 ? r : read_ids(trees, &refs->trees, &refs->tree_count);
}

int px_record_refs_parse(const char *text, size_t len, struct px_refs *ret_refs, char *ret_why, size_t why_size)
{
    px_auto(px_document) json_t *document = NULL;
    struct px_refs refs = {0};
    struct px_err e = {0};

    if (px_document_read(text, len, "the manifest", PX_E_RECORD, &document, &e) < 0) {
        (void)px_fmt(ret_why, why_size, "%.150s", e.why);
        return e.code == PX_E_MEMORY ? -ENOMEM : -EINVAL;
    }
    int r = read_refs(document, &refs);
    if (r < 0) {
        (void)px_fmt(ret_why, why_size, "%s",
                     r == -ENOMEM ? "There is no memory for it." : "Its \"refs\" do not list what it needs.");
        px_record_refs_done(&refs);
        return r;
    }
    *ret_refs = refs;
    return 0;
}

static int unreadable(const struct px_store *store, enum px_record_kind kind, const struct px_oid *id, int err,
                      const char *why, struct px_err *e)
{
    size_t home = strlen(store->path) - strlen("/store");

    (void)px_fail(e, err == -ENOMEM ? PX_E_MEMORY : PX_E_RECORD, err, "cannot read '%.*s/sandbox/%s/%s'", (int)home,
                  store->path, px_store_place_name(place_of(kind)), id->hex);
    if (e && e->code == PX_E_RECORD)
        (void)px_fix(e, "Remove it: px sandbox delete %s.\nWhat it stands for is built again when it is needed.", id->hex);
    return *why ? px_why(e, "%s", why) : -1;
}

static int open_record(const struct px_store *store, enum px_record_kind kind, const struct px_oid *id)
{
    return (int)px_sys(SYS_openat, px_store_records(store, kind), id->hex,
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* 1: there is none. */
static int read_record(const struct px_store *store, enum px_record_kind kind, const struct px_oid *id,
                       struct px_buf *out, struct px_err *e)
{
    px_auto_fd int dir = open_record(store, kind, id);

    if (dir == -ENOENT)
        return 1;
    int r = dir < 0 ? dir : px_store_small_read(dir, manifest, out);
    return r < 0 ? unreadable(store, kind, id, r, "", e) : 0;
}

int px_record_refs(const struct px_store *store, enum px_record_kind kind, const struct px_oid *id,
                   struct px_refs *ret_refs, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_SMALL_MAX);
    char why[160] = "";
    int r = read_record(store, kind, id, &text, e);

    if (r != 0)
        return r;
    r = px_record_refs_parse(px_buf_text(&text), text.len, ret_refs, why, sizeof why);
    return r < 0 ? unreadable(store, kind, id, r == -ENOMEM ? r : 0, why, e) : 0;
}

/* ---- putting ---- */

static int check_refs(const struct px_store *store, const struct px_refs *refs, struct px_err *e)
{
    for (size_t i = 0; i < refs->blob_count; i++)
        if (!px_blob_there(store, &refs->blobs[i], NULL))
            return px_fail(e, PX_E_OBJECT, 0, "blob %s is not in the store", refs->blobs[i].hex);
    for (size_t i = 0; i < refs->tree_count; i++)
        if (!px_tree_there(store, &refs->trees[i]))
            return px_fail(e, PX_E_OBJECT, 0, "tree %s is not in the store", refs->trees[i].hex);
    return 0;
}

/* Creates the record's directory, or writes into the existing one. */
static int place_record(const struct px_store *store, enum px_record_kind kind, const struct px_oid *id,
                        const struct px_tmp *tmp)
{
    int records = px_store_records(store, kind);
    int r = px_store_rename_new(tmp->fd, "record", records, id->hex);

    if (r != -EEXIST)
        return r < 0 ? r : px_store_fsync(records);
    px_auto_fd int from = (int)px_sys(SYS_openat, tmp->fd, "record", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    px_auto_fd int to = open_record(store, kind, id);
    r = from < 0 ? from : to < 0 ? to : (int)px_sys(SYS_renameat, from, manifest, to, manifest);
    return r < 0 ? r : px_store_fsync(to);
}

static int write_record(const struct px_tmp *tmp, const char *json)
{
    int r = (int)px_sys(SYS_mkdirat, tmp->fd, "record", 0700);
    px_auto_fd int dir =
        r < 0 ? r : (int)px_sys(SYS_openat, tmp->fd, "record", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0)
        return dir;
    r = px_store_write_new(dir, manifest, json, strlen(json), 0600);
    return r < 0 ? r : px_store_fsync(dir);
}

static int show_record(struct px_store *store, enum px_record_kind kind, const struct px_oid *id,
                       const struct px_refs *refs, const struct px_tmp *tmp, struct px_err *e)
{
    px_auto_fd int guard = px_store_guard_take(store, false, e);

    if (guard < 0 || check_refs(store, refs, e) < 0 || px_lease_session_keep(store, use_of(kind), id, e) < 0)
        return -1;
    int r = place_record(store, kind, id, tmp);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot write '%s/%s'", px_store_place_name(place_of(kind)), id->hex) : 0;
}

int px_record_put(struct px_store *store, enum px_record_kind kind, const struct px_oid *id, const char *json,
                  struct px_err *e)
{
    struct px_tmp tmp = {.fd = -EBADF};
    struct px_refs refs = {0};
    char why[160] = "";
    int r = px_record_refs_parse(json, strlen(json), &refs, why, sizeof why);

    if (r < 0) {
        (void)px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_INTERNAL, 0, "record %s cannot be kept", id->hex);
        return px_why(e, "%s", why);
    }
    r = px_store_tmp_make(store, &tmp, e);
    if (r >= 0) {
        r = write_record(&tmp, json);
        if (r < 0)
            r = px_fail(e, PX_E_STORE_WRITE, r, "cannot write '%s/%s'", px_store_place_name(place_of(kind)), id->hex);
    }
    if (r >= 0)
        r = show_record(store, kind, id, &refs, &tmp, e);
    px_store_tmp_done(store, &tmp);
    px_record_refs_done(&refs);
    return r < 0 ? -1 : 0;
}

/* ---- getting ---- */

int px_record_get(struct px_store *store, enum px_record_kind kind, const struct px_oid *id, struct px_buf *out,
                  struct px_err *e)
{
    return read_record(store, kind, id, out, e);
}

int px_record_size(struct px_store *store, enum px_record_kind kind, const struct px_oid *id, uint64_t *ret_bytes,
                   struct px_err *e)
{
    struct px_refs refs = {0};
    struct px_tree_complete complete;
    uint64_t size = 0, bytes = 0;
    int r = px_record_refs(store, kind, id, &refs, e);

    for (size_t i = 0; r == 0 && i < refs.blob_count; i++)
        bytes += px_blob_there(store, &refs.blobs[i], &size) ? size : 0;
    for (size_t i = 0; r == 0 && i < refs.tree_count; i++)
        bytes += px_tree_look(store, &refs.trees[i], &complete, NULL) == 0 ? complete.bytes : 0;
    px_record_refs_done(&refs);
    if (r == 0)
        *ret_bytes = bytes;
    return r;
}

struct names_of {
    struct px_store *store;
    enum px_record_kind kind;
    const struct px_oid *id;
    struct px_err *e;
};

static int drop_name(void *user, enum px_record_kind kind, const char *name, const struct px_oid *id)
{
    struct names_of *n = user;

    return kind == n->kind && px_hash_oid_equal(id, n->id) ? px_name_remove(n->store, kind, name, n->e) : 0;
}

/* Removes the names first, so that no name refers to a missing record. */
int px_record_remove(struct px_store *store, enum px_record_kind kind, const struct px_oid *id, struct px_err *e)
{
    struct names_of names = {store, kind, id, e};
    px_auto_fd int guard = px_store_guard_take(store, true, e);

    if (guard < 0 || px_name_each(store, drop_name, &names, e) < 0)
        return -1;
    int r = px_store_trash(store, place_of(kind), id->hex);
    if (r >= 0)
        r = px_store_fsync(px_store_records(store, kind));
    if (r < 0 && r != -ENOENT)
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot remove '%s/%s'", px_store_place_name(place_of(kind)), id->hex);
    guard = px_fd_close(guard);
    px_store_trash_empty(store, false);
    return 0;
}

struct each {
    enum px_record_kind kind;
    px_record_seen *seen;
    void *user;
    struct px_err *e;
    int answer;
};

static int each_one(void *user, const char *name)
{
    struct each *each = user;
    struct px_oid id;

    if (px_hash_oid_parse(name, false, &id) < 0) {
        each->answer = px_fail(each->e, PX_E_RECORD, 0, "'%.80s' in sandbox/%s is not a record", name,
                               px_store_place_name(place_of(each->kind)));
        return 1;
    }
    each->answer = each->seen(each->user, each->kind, &id);
    return each->answer != 0;
}

int px_record_each(struct px_store *store, enum px_record_kind kind, px_record_seen *seen, void *user, struct px_err *e)
{
    struct each each = {kind, seen, user, e, 0};
    int r = px_store_entries(store, place_of(kind), each_one, &each);

    return r < 0 ? px_fail(e, PX_E_RECORD, r, "cannot read sandbox/%s", px_store_place_name(place_of(kind))) : each.answer;
}
