#include <string.h>

#include "kernel/tree.h"
#include "store/fixture.h"

static void list(int dir, struct px_buf *out, struct px_listing *ret)
{
    struct px_err e = {0};
    struct px_oid same;

    out->len = 0;
    ASSERT_PX(px_listing_tree(dir, out, ret, &e), e);
    ASSERT_OK(px_hash_bytes(out->data, out->len, &same));
    ASSERT_STR(ret->oid.hex, same.hex);
    ASSERT_PX(px_listing_tree(dir, NULL, ret, &e), e);     /* the same without its text */
    ASSERT_STR(ret->oid.hex, same.hex);
}

#define HELLO "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

STORE_TEST(an_empty_directory_is_an_empty_list)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_buf struct px_buf out = PX_BUF(4096);
    struct px_listing listing;

    list(dir, &out, &listing);
    ASSERT_STR(px_buf_text(&out), "[]");
    ASSERT_EQ(listing.files, 0);
}

STORE_TEST(a_listing_is_canonical_and_in_the_order_of_paths)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_buf struct px_buf out = PX_BUF(1 << 16);
    struct px_listing listing;

    ASSERT_OK(mkdirat(dir, "a", 0755));
    write_text(dir, "a/x", "hello");
    write_text(dir, "a-b", "hello");
    ASSERT_OK(fchmodat(dir, "a-b", 04751, 0));
    ASSERT_OK(mkdirat(dir, "a0", 01777));
    ASSERT_OK(fchmodat(dir, "a0", 01777, 0));
    ASSERT_OK(linkat(dir, "a/x", dir, "a0/again", 0));
    ASSERT_OK(symlinkat("../\xc3\xa9", dir, "a0/link"));
    ASSERT_OK(symlinkat("\xff", dir, "b\xfe"));
    list(dir, &out, &listing);
    ASSERT_STR(
        px_buf_text(&out),
        "[{\"gid\":0,\"mode\":493,\"path\":\"a\",\"type\":\"dir\",\"uid\":0},"
        "{\"gid\":0,\"mode\":489,\"path\":\"a-b\",\"sha256\":\"" HELLO "\",\"size\":5,\"type\":\"file\",\"uid\":0},"
        "{\"gid\":0,\"mode\":420,\"path\":\"a/x\",\"sha256\":\"" HELLO "\",\"size\":5,\"type\":\"file\",\"uid\":0},"
        "{\"gid\":0,\"mode\":1023,\"path\":\"a0\",\"type\":\"dir\",\"uid\":0},"
        "{\"gid\":0,\"mode\":420,\"path\":\"a0/again\",\"target\":\"a/x\",\"type\":\"hardlink\",\"uid\":0},"
        "{\"gid\":0,\"mode\":511,\"path\":\"a0/link\",\"target\":\"../\xc3\xa9\",\"type\":\"link\",\"uid\":0},"
        "{\"gid\":0,\"mode\":511,\"path_hex\":\"62fe\",\"target_hex\":\"ff\",\"type\":\"link\",\"uid\":0}]");
    ASSERT_EQ(listing.files, 7);
    ASSERT_EQ(listing.bytes, 10);
}

STORE_TEST(times_and_owners_do_not_count)
{
    px_auto_fd int one = px_test_dir();
    px_auto_buf struct px_buf a = PX_BUF(4096);
    px_auto_buf struct px_buf b = PX_BUF(4096);
    struct px_listing first, second;

    fill_tree(one, "text");
    list(one, &a, &first);
    px_auto_fd int two = px_test_dir();
    fill_tree(two, "text");
    ASSERT_OK(utimensat(two, "usr/file", (struct timespec[2]){{.tv_sec = 1}, {.tv_sec = 2}}, 0));
    if (geteuid() == 0)
        ASSERT_OK(fchownat(two, "usr/file", 7, 7, 0));
    list(two, &b, &second);
    ASSERT_STR(px_buf_text(&a), px_buf_text(&b));
    write_text(two, "usr/file", "texu");
    list(two, &b, &second);
    ASSERT(!px_hash_oid_equal(&first.oid, &second.oid));
}

STORE_TEST(a_deep_tree_is_listed_with_few_descriptors)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_buf struct px_buf out = PX_BUF(16 << 20);
    struct px_listing listing;
    enum { DEPTH = 1500 };
    int at = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < DEPTH; i++) {
        ASSERT_OK(mkdirat(at, "d", 0755));
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)px_fd_close(at);
        at = next;
    }
    write_text(at, "file", "text");
    (void)px_fd_close(at);
    list(dir, &out, &listing);
    ASSERT_EQ(listing.files, DEPTH + 1);
    ASSERT_OK(px_kernel_tree_empty(dir));              /* too deep for the harness */
}

STORE_TEST(too_deep_is_an_error_and_no_link_is_followed)
{
    px_auto_fd int dir = px_test_dir();
    struct px_listing listing;
    struct px_err e;
    int at = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < 2100; i++) {
        ASSERT_OK(mkdirat(at, "d", 0755));
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)px_fd_close(at);
        at = next;
    }
    (void)px_fd_close(at);
    ASSERT_FAILS(px_listing_tree(dir, NULL, &listing, &e), e, PX_E_OBJECT);
    ASSERT_OK(px_kernel_tree_empty(dir));
    px_auto_fd int other = px_test_dir();
    ASSERT_OK(symlinkat("/", other, "root"));
    e = (struct px_err){0};
    ASSERT_PX(px_listing_tree(other, NULL, &listing, &e), e);
    ASSERT_EQ(listing.files, 1);
}

STORE_TEST(many_files_with_several_names)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_listing listing;
    char name[32], other[32];
    int links = 0;

    for (int i = 0; i < 700; i++) {
        ASSERT_OK(px_fmt(name, sizeof name, "a%04d", i));
        ASSERT_OK(px_fmt(other, sizeof other, "b%04d", i));
        write_text(dir, name, name);
        ASSERT_OK(linkat(dir, name, dir, other, 0));
    }
    list(dir, &out, &listing);
    for (const char *p = px_buf_text(&out); (p = strstr(p, "\"hardlink\"")); p++)
        links++;
    ASSERT_EQ(links, 700);
    ASSERT(strstr(px_buf_text(&out), "\"path\":\"b0321\",\"target\":\"a0321\",\"type\":\"hardlink\""));
}

STORE_TEST(no_memory_is_an_error)
{
    px_auto_fd int dir = px_test_dir();
    bool failed = true;

    fill_tree(dir, "text");
    ASSERT_OK(linkat(dir, "usr/file", dir, "usr/again", 0));
    for (unsigned n = 1; failed; n++) {
        struct px_listing listing;
        struct px_err e = {0};
        px_test_fail_alloc(n);
        int r = px_listing_tree(dir, NULL, &listing, &e);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r == 0 ? !failed : e.code != 0);
    }
}
