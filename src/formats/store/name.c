/* Names of records: names/HASH of kind and name, a small file that holds one id. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "store/document.h"
#include "store/store_internal.h"

static const char *const kind_words[PX_RECORD_KINDS] = {"base", "image", "env"};

/* ---- the file ---- */

static bool is_name(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0, n; i < len; i += n) {
        n = px_utf8_length(name + i, len - i);
        if (n == 0 || (unsigned char)name[i] < ' ' || name[i] == 127)
            return false;
    }
    return len > 0 && len <= PX_NAMED_MAX;
}

static int file_of(enum px_record_kind kind, const char *name, struct px_oid *ret_file, struct px_err *e)
{
    px_auto_buf struct px_buf key = PX_BUF(PX_NAMED_MAX + 64);

    if (!is_name(name)) {
        (void)px_fail(e, PX_E_VALUE, 0, "that cannot be the name of a %s", kind_words[kind]);
        return px_fix(e, "Use 1 to %d bytes of text without control characters.", PX_NAMED_MAX);
    }
    (void)px_buf_printf(&key, "%s:%s", kind_words[kind], name);
    int r = key.err < 0 ? key.err : px_hash_bytes(key.data, key.len, ret_file);
    return r < 0 ? px_fail(e, PX_E_MEMORY, r, "looking for '%s'", name) : 0;
}

int px_name_parse(const char *text, size_t len, struct px_name *ret_named)
{
    px_auto(px_document) json_t *document = NULL;
    struct px_err e = {0};

    if (px_document_read(text, len, "", PX_E_RECORD, &document, &e) < 0)
        return e.code == PX_E_MEMORY ? -ENOMEM : -EINVAL;
    const char *kind = px_document_text(document, "kind"), *name = px_document_text(document, "name");
    struct px_name named = {.kind = PX_RECORD_KINDS};
    for (int k = 0; k < PX_RECORD_KINDS; k++)
        if (px_equal(kind, kind_words[k]))
            named.kind = (enum px_record_kind)k;
    if (named.kind == PX_RECORD_KINDS || !name || !is_name(name) ||
        px_hash_oid_parse(px_document_text(document, "id"), false, &named.id) < 0)
        return -EINVAL;
    memcpy(named.name, name, strlen(name) + 1);
    *ret_named = named;
    return 0;
}

/* 1: it is not there. */
int px_name_read(const struct px_store *store, const char *file, struct px_name *ret_named, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_SMALL_MAX);
    int r = px_store_small_read(store->place[PX_PLACE_NAMES], file, &text);

    if (r == -ENOENT)
        return 1;
    if (r >= 0)
        r = px_name_parse(px_buf_text(&text), text.len, ret_named);
    if (r >= 0)
        return 0;
    (void)px_fail(e, PX_E_RECORD, r == -EINVAL ? 0 : r, "cannot read '%s/names/%.80s'", store->path, file);
    return px_fix(e, "Remove that file, then run the command again.");
}

/* ---- names ---- */

static bool has_record(const struct px_store *store, enum px_record_kind kind, const struct px_oid *id)
{
    struct stat st;

    return fstatat(px_store_records(store, kind), id->hex, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

int px_name_put(struct px_store *store, enum px_record_kind kind, const char *name, const struct px_oid *id,
                struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(8 * PX_NAMED_MAX);
    struct px_json j = {.out = &text};
    struct px_oid file;

    if (file_of(kind, name, &file, e) < 0)
        return -1;
    px_json_object(&j, NULL);
    px_json_text(&j, "id", id->hex);
    px_json_text(&j, "kind", kind_words[kind]);
    px_json_text(&j, "name", name);
    px_json_end(&j);
    if (text.err < 0)
        return px_fail(e, PX_E_MEMORY, text.err, "naming '%s'", name);
    px_auto_fd int guard = px_store_guard_take(store, false, e);
    if (guard < 0)
        return -1;
    if (!has_record(store, kind, id))
        return px_fail(e, PX_E_OBJECT, 0, "%s %s is not in the store", kind_words[kind], id->hex);
    return px_store_small_put(store, PX_PLACE_NAMES, file.hex, text.data, text.len, e);
}

int px_name_get(struct px_store *store, enum px_record_kind kind, const char *name, struct px_oid *ret_id,
                struct px_err *e)
{
    struct px_oid file;
    struct px_name named;

    if (file_of(kind, name, &file, e) < 0)
        return -1;
    int r = px_name_read(store, file.hex, &named, e);
    if (r != 0)
        return r;
    if (named.kind != kind || !px_equal(named.name, name) || !has_record(store, kind, &named.id))
        return 1;
    *ret_id = named.id;
    return 0;
}

int px_name_remove(struct px_store *store, enum px_record_kind kind, const char *name, struct px_err *e)
{
    struct px_oid file;

    if (file_of(kind, name, &file, e) < 0)
        return -1;
    int r = (int)px_sys(SYS_unlinkat, store->place[PX_PLACE_NAMES], file.hex, 0);
    if (r == -ENOENT)
        return 0;
    if (r >= 0)
        r = px_store_fsync(store->place[PX_PLACE_NAMES]);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot remove the name '%s'", name) : 0;
}

struct each {
    struct px_store *store;
    px_name_seen *seen;
    void *user;
    struct px_err *e;
    int answer;
};

static int each_one(void *user, const char *file)
{
    struct each *each = user;
    struct px_name named;
    int r = px_name_read(each->store, file, &named, each->e);

    if (r == 0 && !has_record(each->store, named.kind, &named.id))     /* as in px_name_get */
        r = 1;
    each->answer = r < 0 ? -1 : r == 1 ? 0 : each->seen(each->user, named.kind, named.name, &named.id);
    return each->answer != 0;
}

int px_name_each(struct px_store *store, px_name_seen *seen, void *user, struct px_err *e)
{
    struct each each = {store, seen, user, e, 0};
    int r = px_store_entries(store, PX_PLACE_NAMES, each_one, &each);

    return r < 0 ? px_fail(e, PX_E_RECORD, r, "cannot read '%s/names'", store->path) : each.answer;
}
