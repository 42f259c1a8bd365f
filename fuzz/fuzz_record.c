/* fuzz/fuzz_record.c - what the store reads back: manifests, names, leases, and canonical JSON.
 *
 * Whatever is accepted must mean the same when it is written and read again, name only ids, and fit its bounds. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "fuzz.h"
#include "store/canonical.h"
#include "store/document.h"
#include "store/store_internal.h"

static void check_id(const struct px_oid *id)
{
    struct px_oid same;

    CHECK(px_hash_oid_parse(id->hex, false, &same) == 0 && px_hash_oid_equal(id, &same));
}

static void try_refs(const char *text, size_t size)
{
    struct px_refs refs = {0};
    char why[160] = "";

    if (px_record_refs_parse(text, size, &refs, why, sizeof why) < 0) {
        CHECK(why[0] && !refs.blobs && !refs.trees);
        return;
    }
    for (size_t i = 0; i < refs.blob_count; i++)
        check_id(&refs.blobs[i]);
    for (size_t i = 0; i < refs.tree_count; i++)
        check_id(&refs.trees[i]);
    px_record_refs_done(&refs);
}

static void try_name(const char *text, size_t size)
{
    struct px_name named;

    if (px_name_parse(text, size, &named) < 0)
        return;
    check_id(&named.id);
    CHECK(named.kind < PX_RECORD_KINDS && named.name[0] && strlen(named.name) <= PX_NAMED_MAX &&
          !strpbrk(named.name, "\n\x1b\x7f"));
}

/* What is read of a lease, and no more, makes a lease that reads the same. */
static void try_lease(const char *text, size_t size)
{
    struct px_used_list list = {0};

    if (px_lease_parse(text, size, &list) == 0)
        for (size_t i = 0; i < list.count; i++) {
            check_id(&list.items[i].oid);
            CHECK(list.items[i].use < PX_USES && px_lease_used_has(&list, list.items[i].use, &list.items[i].oid));
            CHECK(i == 0 || !(list.items[i].use == list.items[i - 1].use &&
                              px_hash_oid_equal(&list.items[i].oid, &list.items[i - 1].oid)));
        }
    px_lease_used_done(&list);
}

static void try_canonical(const char *text, size_t size)
{
    px_auto(px_document) json_t *first = NULL;
    px_auto(px_document) json_t *second = NULL;
    px_auto_buf struct px_buf once = PX_BUF(1 << 20);
    px_auto_buf struct px_buf twice = PX_BUF(1 << 20);
    struct px_err e = {0};

    if (px_document_read(text, size, "the input", PX_E_RECORD, &first, &e) < 0) {
        CHECK(e.code && e.what[0]);
        return;
    }
    if (px_canonical(first, &once) < 0)
        return;
    CHECK(px_document_read(px_buf_text(&once), once.len, "the output", PX_E_RECORD, &second, &e) == 0);
    CHECK(json_equal(first, second));
    CHECK(px_canonical(second, &twice) == 0 && once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
}

/* Forms that chance would not find: the input fills their gaps. */
static void try_shapes(const char *text)
{
    static const char id[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);

    (void)px_buf_printf(&out, "{\"refs\":{\"blobs\":[\"%s\",\"%s\"],\"trees\":[%s]}}", id, text, text);
    if (out.err == 0)
        try_refs(out.data, out.len);
    out.len = 0;
    (void)px_buf_printf(&out, "{\"id\":\"%s\",\"kind\":\"base\",\"name\":\"%s\"}", id, text);
    if (out.err == 0)
        try_name(out.data, out.len);
    out.len = 0;
    (void)px_buf_printf(&out, "px-lease 1\ntree %s\nblob %s\n%s\n", id, id, text);
    if (out.err == 0)
        try_lease(out.data, out.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    try_refs(text, size);
    try_name(text, size);
    try_lease(text, size);
    try_canonical(text, size);
    try_shapes(text);
    free(text);
    return 0;
}
