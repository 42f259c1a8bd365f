#include "store/fixture.h"

struct seen {
    int count;
    char last[600];
};

static int on_record(void *user, enum px_record_kind kind, const struct px_oid *id)
{
    struct seen *seen = user;

    (void)kind;
    seen->count++;
    return px_fmt(seen->last, sizeof seen->last, "%s", id->hex) < 0 ? -1 : 0;
}

static int on_name(void *user, enum px_record_kind kind, const char *name, const struct px_oid *id)
{
    struct seen *seen = user;

    (void)kind;
    (void)id;
    seen->count++;
    return px_fmt(seen->last, sizeof seen->last, "%s", name) < 0 ? -1 : 0;
}

STORE_TEST(a_record_comes_and_goes_as_a_whole)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("record"), blob = put_text(store, "blob"), tree = oid_of("tree"), none = oid_of("none");
    px_auto_buf struct px_buf text = PX_BUF(1024);
    struct px_err e = {0};
    struct seen seen = {0};
    char json[512];
    uint64_t bytes = 0;

    put_tree(store, &tree, "text");
    record_text(json, sizeof json, &blob, &tree);
    ASSERT_EQ(px_record_get(store, PX_RECORD_BASE, &id, &text, &e), 1);
    ASSERT_PX(px_record_put(store, PX_RECORD_BASE, &id, json, &e), e);
    ASSERT_EQ(px_record_get(store, PX_RECORD_BASE, &id, &text, &e), 0);
    ASSERT_STR(px_buf_text(&text), json);
    ASSERT_EQ(px_record_get(store, PX_RECORD_IMAGE, &id, &text, &e), 1);
    ASSERT_EQ(px_record_size(store, PX_RECORD_BASE, &id, &bytes, &e), 0);
    ASSERT_EQ(bytes, 8);
    record_text(json, sizeof json, &blob, NULL);        /* over the old one */
    ASSERT_PX(px_record_put(store, PX_RECORD_BASE, &id, json, &e), e);
    text.len = 0;
    ASSERT_EQ(px_record_get(store, PX_RECORD_BASE, &id, &text, &e), 0);
    ASSERT_STR(px_buf_text(&text), json);
    ASSERT_EQ(px_record_each(store, PX_RECORD_BASE, on_record, &seen, &e), 0);
    ASSERT_EQ(seen.count, 1);
    ASSERT_STR(seen.last, id.hex);
    ASSERT_PX(px_record_remove(store, PX_RECORD_BASE, &id, &e), e);
    ASSERT_PX(px_record_remove(store, PX_RECORD_BASE, &none, &e), e);
    ASSERT_EQ(px_record_get(store, PX_RECORD_BASE, &id, &text, &e), 1);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    ASSERT_EQ(entries_of("store/trash"), 0);
    px_store_close(store);
}

STORE_TEST(a_record_needs_everything_it_refers_to)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("record"), none = oid_of("none");
    struct px_err e;
    char json[512];

    record_text(json, sizeof json, &none, NULL);
    ASSERT_FAILS(px_record_put(store, PX_RECORD_IMAGE, &id, json, &e), e, PX_E_OBJECT);
    ASSERT(strstr(e.what, none.hex));
    record_text(json, sizeof json, NULL, &none);
    ASSERT_FAILS(px_record_put(store, PX_RECORD_IMAGE, &id, json, &e), e, PX_E_OBJECT);
    ASSERT_EQ(entries_of("sandbox/images"), 0);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    px_store_close(store);
}

STORE_TEST(what_is_not_a_record_is_not_put)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "{\"refs\":1}",
                                      "{\"refs\":{\"blobs\":{}}}",
                                      "{\"refs\":{\"trees\":[\"../x\"]}}",
                                      "{\"refs\":{\"blobs\":[7]}}",
                                      "{\"refs\":{},\"refs\":{}}",
                                      "{\"refs\":{}} x"};
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("record");

    for (size_t i = 0; i < PX_COUNT_OF(bad); i++) {
        struct px_err e;
        ASSERT_FAILS(px_record_put(store, PX_RECORD_BASE, &id, bad[i], &e), e, PX_E_INTERNAL);
    }
    ASSERT_EQ(entries_of("sandbox/bases"), 0);
    px_store_close(store);
}

STORE_TEST(a_manifest_that_is_no_file_of_ours_is_not_read)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("record");
    char path[128];

    write_text(home, "elsewhere", "{\"refs\":{}}");
    put_record(store, PX_RECORD_BASE, &id, NULL, NULL);
    ASSERT_OK(px_fmt(path, sizeof path, "sandbox/bases/%s/manifest.json", id.hex));
    for (int kind = 0; kind < 4; kind++) {
        px_auto_buf struct px_buf text = PX_BUF(1024);
        struct px_err e;
        ASSERT_OK(unlinkat(home, path, kind == 3 ? AT_REMOVEDIR : 0));
        if (kind < 3)
            ASSERT_OK(kind == 0   ? symlinkat("../../../elsewhere", home, path)
                      : kind == 1 ? mkfifoat(home, path, 0600)
                                  : mkdirat(home, path, 0700));
        ASSERT_FAILS(px_record_get(store, PX_RECORD_BASE, &id, &text, &e), e, PX_E_RECORD);
        ASSERT(strstr(e.what, id.hex));
    }
    px_store_close(store);
}

/* ---- names ---- */

STORE_TEST(a_name_leads_to_a_record)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("record"), other = oid_of("other"), found;
    struct px_err e = {0};
    struct seen seen = {0};

    put_record(store, PX_RECORD_BASE, &id, NULL, NULL);
    put_record(store, PX_RECORD_BASE, &other, NULL, NULL);
    ASSERT_EQ(px_name_get(store, PX_RECORD_BASE, "debian-12", &found, &e), 1);
    ASSERT_PX(px_name_put(store, PX_RECORD_BASE, "debian-12", &id, &e), e);
    ASSERT_EQ(px_name_get(store, PX_RECORD_BASE, "debian-12", &found, &e), 0);
    ASSERT_STR(found.hex, id.hex);
    ASSERT_EQ(px_name_get(store, PX_RECORD_IMAGE, "debian-12", &found, &e), 1);
    ASSERT_PX(px_name_put(store, PX_RECORD_BASE, "debian-12", &other, &e), e);
    ASSERT_EQ(px_name_get(store, PX_RECORD_BASE, "debian-12", &found, &e), 0);
    ASSERT_STR(found.hex, other.hex);
    ASSERT_EQ(px_name_each(store, on_name, &seen, &e), 0);
    ASSERT_EQ(seen.count, 1);
    ASSERT_STR(seen.last, "debian-12");
    ASSERT_PX(px_record_remove(store, PX_RECORD_BASE, &other, &e), e);         /* and its names with it */
    ASSERT_EQ(entries_of("store/names"), 0);
    ASSERT_PX(px_name_remove(store, PX_RECORD_BASE, "debian-12", &e), e);
    px_store_close(store);
}

STORE_TEST(a_name_is_a_text_of_a_record_that_is_there)
{
    static const char *const bad[] = {"", "a\nb", "\xff", "\x7f"};
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("record"), found;
    char name[600];
    struct px_err e;

    ASSERT_FAILS(px_name_put(store, PX_RECORD_BASE, "name", &id, &e), e, PX_E_OBJECT);
    put_record(store, PX_RECORD_BASE, &id, NULL, NULL);
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++)
        ASSERT_FAILS(px_name_put(store, PX_RECORD_BASE, bad[i], &id, &e), e, PX_E_VALUE);
    memset(name, 'x', sizeof name);
    name[513] = '\0';
    ASSERT_FAILS(px_name_put(store, PX_RECORD_BASE, name, &id, &e), e, PX_E_VALUE);
    name[512] = '\0';
    e = (struct px_err){0};
    ASSERT_PX(px_name_put(store, PX_RECORD_BASE, name, &id, &e), e);
    ASSERT_PX(px_name_put(store, PX_RECORD_BASE, "../../x \"\xc3\xa9\"", &id, &e), e);
    ASSERT_EQ(px_name_get(store, PX_RECORD_BASE, "../../x \"\xc3\xa9\"", &found, &e), 0);
    px_store_close(store);
}

STORE_TEST(no_memory_leaves_the_old_record)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("record"), blob = put_text(store, "blob");
    bool failed = true;
    char json[512];

    put_record(store, PX_RECORD_BASE, &id, NULL, NULL);
    record_text(json, sizeof json, &blob, NULL);
    for (unsigned n = 1; failed; n++) {
        struct px_err e = {0};
        px_auto_buf struct px_buf text = PX_BUF(1024);
        px_test_fail_alloc(n);
        int r = px_record_put(store, PX_RECORD_BASE, &id, json, &e);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r == 0 || e.code != 0);
        ASSERT_EQ(px_record_get(store, PX_RECORD_BASE, &id, &text, &e), 0);
        ASSERT(r < 0 || strcmp(px_buf_text(&text), json) == 0);
    }
    px_store_close(store);
}
