#include <stdint.h>

#include "store/fixture.h"

static struct px_oid put_in_pieces(struct px_store *store)
{
    struct px_blob_writer *w = NULL;
    struct px_err e = {0};
    struct px_oid oid;
    uint64_t size = 0;

    ASSERT_PX(px_blob_begin(store, 11, &w, &e), e);
    ASSERT_PX(px_blob_write(w, "hello ", 6, &e), e);
    ASSERT_PX(px_blob_write(w, "world", 5, &e), e);
    ASSERT_PX(px_blob_commit(w, NULL, &oid, &size, &e), e);
    ASSERT_EQ(size, 11);
    return oid;
}

static char *blob_path(const struct px_oid *oid)
{
    static char path[128];

    ASSERT_OK(px_fmt(path, sizeof path, "store/blobs/sha256/%s", oid->hex));
    return path;
}

STORE_TEST(what_is_put_is_found_by_its_hash)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid oid = put_in_pieces(store), expected = oid_of("hello world"), none = oid_of("none");
    px_auto_buf struct px_buf text = PX_BUF(100);
    struct px_err e = {0};
    struct stat st;

    ASSERT_STR(oid.hex, expected.hex);
    ASSERT(px_blob_has(store, &oid));
    ASSERT(!px_blob_has(store, &none));
    ASSERT_PX(px_blob_read(store, &oid, 11, &text, &e), e);
    ASSERT_STR(px_buf_text(&text), "hello world");
    ASSERT_EQ(fstatat(home, blob_path(&oid), &st, AT_SYMLINK_NOFOLLOW), 0);
    ASSERT_EQ(st.st_mode, S_IFREG | 0444);
    ASSERT_FAILS(px_blob_read(store, &oid, 10, &text, &e), e, PX_E_LIMIT);
    ASSERT_FAILS(px_blob_verify(store, &none, &e), e, PX_E_OBJECT);
    put_in_pieces(store);                       /* once more: the same */
    ASSERT_EQ(entries_of("store/blobs/sha256"), 1);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    px_store_close(store);
}

STORE_TEST(an_empty_blob_is_a_blob)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid oid = put_text(store, "");

    ASSERT_STR(oid.hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ASSERT(px_blob_has(store, &oid));
    px_store_close(store);
}

STORE_TEST(a_blob_that_is_not_what_was_announced_is_not_stored)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_blob_writer *w = NULL;
    struct px_oid expected = oid_of("other"), oid;
    struct px_err e = {0};

    ASSERT_PX(px_blob_begin(store, 100, &w, &e), e);
    ASSERT_PX(px_blob_write(w, "text", 4, &e), e);
    ASSERT_FAILS(px_blob_commit(w, &expected, &oid, NULL, &e), e, PX_E_OBJECT);
    ASSERT_PX(px_blob_begin(store, 3, &w, &e), e);
    ASSERT_FAILS(px_blob_write(w, "text", 4, &e), e, PX_E_OBJECT);
    px_blob_drop(w);
    ASSERT_PX(px_blob_begin(store, 3, &w, &e), e);
    ASSERT_OK(px_write_full(px_blob_writer_fd(w), "text", 4));
    ASSERT_FAILS(px_blob_commit(w, NULL, &oid, NULL, &e), e, PX_E_OBJECT);
    ASSERT_EQ(entries_of("store/blobs/sha256"), 0);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    px_store_close(store);
}

STORE_TEST(somebody_else_may_write_it)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_blob_writer *w = NULL;
    struct px_oid expected = oid_of("written elsewhere"), oid;
    struct px_err e = {0};
    uint64_t size = 0;

    ASSERT_PX(px_blob_begin(store, UINT64_MAX, &w, &e), e);
    int fd = px_blob_writer_fd(w);
    pid_t child = fork();
    if (child == 0)
        _exit(px_write_full(fd, "written elsewhere", 17) < 0);
    reap(child);
    ASSERT_PX(px_blob_commit(w, &expected, &oid, &size, &e), e);
    ASSERT_EQ(size, 17);
    px_store_close(store);
}

/* ---- damage ---- */

static void damage(int home, const struct px_oid *oid, const char *text)
{
    ASSERT_OK(unlinkat(home, blob_path(oid), 0));
    write_text(home, blob_path(oid), text);
}

STORE_TEST(a_damaged_blob_is_named_and_set_aside)
{
    static const char *const texts[] = {"hello worle", "hello", "", "hello world and more"};
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();

    for (size_t i = 0; i < PX_COUNT_OF(texts); i++) {
        struct px_oid oid = put_in_pieces(store);
        px_auto_buf struct px_buf text = PX_BUF(100);
        struct px_err e;
        damage(home, &oid, texts[i]);
        if (i % 2)
            ASSERT_FAILS(px_blob_read(store, &oid, 100, &text, &e), e, PX_E_OBJECT);
        else
            ASSERT_FAILS(px_blob_verify(store, &oid, &e), e, PX_E_OBJECT);
        ASSERT(strstr(e.what, oid.hex));
        ASSERT(!px_blob_has(store, &oid));
        ASSERT_EQ(entries_of("store/corrupt"), (int)i + 1);
    }
    px_store_close(store);
}

STORE_TEST(what_is_put_replaces_what_was_damaged)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid oid = put_in_pieces(store);
    struct px_err e = {0};

    damage(home, &oid, "hello worle");
    put_in_pieces(store);
    ASSERT_PX(px_blob_verify(store, &oid, &e), e);
    ASSERT_EQ(entries_of("store/corrupt"), 1);
    px_store_close(store);
}

STORE_TEST(only_a_regular_file_is_a_blob)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();

    write_text(home, "same", "hello world");
    for (int kind = 0; kind < 4; kind++) {
        struct px_oid oid = put_in_pieces(store);
        const char *path = blob_path(&oid);
        struct px_err e;
        uint64_t size;
        int fd = -1;
        ASSERT_OK(unlinkat(home, path, 0));
        ASSERT_OK(kind == 0   ? symlinkat("../../../same", home, path)
                  : kind == 1 ? mkfifoat(home, path, 0600)
                  : kind == 2 ? mkdirat(home, path, 0700)
                              : symlinkat("/dev/tty", home, path));
        ASSERT(!px_blob_has(store, &oid));
        ASSERT_FAILS(px_blob_open(store, &oid, &fd, &size, &e), e, PX_E_OBJECT);
        ASSERT_EQ(fd, -1);
        ASSERT_EQ(entries_of("store/corrupt"), kind + 1);
    }
    px_store_close(store);
}

STORE_TEST(an_object_is_a_canonical_blob)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    px_auto_buf struct px_buf text = PX_BUF(100);
    struct px_oid oid, expected = oid_of("{\"kind\":\"meta\",\"payload\":{\"a\":1,\"b\":[]}}");
    struct px_err e = {0};

    ASSERT_PX(px_object_put(store, "meta", "{ \"b\": [], \"a\": 1 }", &oid, &e), e);
    ASSERT_STR(oid.hex, expected.hex);
    ASSERT_PX(px_blob_read(store, &oid, 100, &text, &e), e);
    ASSERT_EQ(px_object_put(store, "meta", "{\"a\":1.5}", &oid, &e), -1);
    ASSERT_EQ(px_object_put(store, "meta", "{\"a\":", &oid, &e), -1);
    px_store_close(store);
}

STORE_TEST(no_memory_leaves_no_half_blob)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        struct px_oid oid;
        struct px_err e = {0};
        px_test_fail_alloc(n);
        int r = px_blob_put(store, "text", 4, &oid, &e);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r == 0 || e.code == PX_E_MEMORY);
        px_store_close(open_store());           /* without memory, files may be left in tmp/ */
        ASSERT_EQ(entries_of("store/tmp"), 0);
        ASSERT_EQ(entries_of("store/corrupt"), 0);
    }
    px_store_close(store);
}
