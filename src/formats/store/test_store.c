#include "store/store.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "harness/test.h"
#include "store/fixture.h"

/* ---- opening ---- */

STORE_TEST(open_makes_what_is_not_there)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct stat st;

    ASSERT_EQ(fstatat(home, "store", &st, 0), 0);
    ASSERT_EQ(st.st_mode & 07777, 0700);
    ASSERT_EQ(fstatat(home, "sandbox/images", &st, 0), 0);
    ASSERT_EQ(st.st_mode & 07777, 0700);
    ASSERT_STR(file_text(home, "store/version"), "px-store 1\n");
    px_store_close(store);
    px_store_close(open_store());
}

static void refused(int code)
{
    struct px_store *store = NULL;
    struct px_err e;

    ASSERT_FAILS(px_store_open(px_test_dir_path(), &store, &e), e, code);
    ASSERT(!store);
}

STORE_TEST(a_store_that_others_can_enter_is_refused)
{
    px_auto_fd int home = px_test_dir();

    px_store_close(open_store());
    ASSERT_OK(fchmodat(home, "store", 0750, 0));
    refused(PX_E_STORE_WRITE);
    ASSERT_OK(fchmodat(home, "store", 0700, 0));
    ASSERT_OK(fchmodat(home, "store/trees", 0701, 0));
    refused(PX_E_STORE_WRITE);
    ASSERT_OK(fchmodat(home, "store/trees", 0700, 0));
    ASSERT_OK(fchmodat(home, "sandbox", 0770, 0));
    refused(PX_E_STORE_WRITE);
    ASSERT_OK(fchmodat(home, "sandbox", 0700, 0));
    ASSERT_OK(fchmod(home, 0775));
    refused(PX_E_STORE_WRITE);
    ASSERT_OK(fchmod(home, 0755));
    px_store_close(open_store());
    if (geteuid() != 0)
        return;
    ASSERT_OK(fchownat(home, "store", 12345, 12345, 0));
    refused(PX_E_STORE_WRITE);
}

STORE_TEST(a_link_is_never_a_directory_of_the_store)
{
    static const char *const paths[] = {"store",        "sandbox", "store/tmp", "store/blobs", "store/blobs/sha256",
                                        "sandbox/bases"};
    px_auto_fd int home = px_test_dir();

    ASSERT_OK(mkdirat(home, "elsewhere", 0700));
    for (size_t i = 0; i < PX_COUNT_OF(paths); i++) {
        px_store_close(open_store());
        ASSERT_OK(renameat(home, paths[i], home, "away"));
        ASSERT_OK(symlinkat("/tmp", home, paths[i]));
        refused(PX_E_STORE_WRITE);
        ASSERT_OK(unlinkat(home, paths[i], 0));
        ASSERT_OK(renameat(home, "away", home, paths[i]));
    }
    px_store_close(open_store());
}

STORE_TEST(a_home_may_be_a_link_and_must_be_a_path)
{
    px_auto_fd int home = px_test_dir();
    char path[4096];
    struct px_store *store = NULL;
    struct px_err e;

    ASSERT_OK(mkdirat(home, "real", 0700));
    ASSERT_OK(symlinkat("real", home, "link"));
    ASSERT_OK(px_fmt(path, sizeof path, "%s/link", px_test_dir_path()));
    e = (struct px_err){0};
    ASSERT_PX(px_store_open(path, &store, &e), e);
    px_store_close(store);
    ASSERT(is_there("real/store/version"));
    ASSERT_FAILS(px_store_open("relative", &store, &e), e, PX_E_STORE_WRITE);
    ASSERT_FAILS(px_store_open("/proc/px", &store, &e), e, PX_E_STORE_WRITE);
}

STORE_TEST(a_future_or_damaged_version_is_left_alone)
{
    static const char *const texts[] = {"px-store 2\n", "px-store 10\n", "", "px-store 1", "nonsense"};
    px_auto_fd int home = px_test_dir();

    px_store_close(open_store());
    ASSERT_OK(unlinkat(home, "store/seen", AT_REMOVEDIR));
    for (size_t i = 0; i < PX_COUNT_OF(texts); i++) {
        write_text(home, "store/version", texts[i]);
        refused(PX_E_STORE_FORMAT);
    }
    ASSERT(!is_there("store/seen"));            /* nothing was made in a store that is not understood */
    ASSERT_OK(unlinkat(home, "store/version", 0));
    ASSERT_OK(mkfifoat(home, "store/version", 0600));
    refused(PX_E_STORE_FORMAT);
    ASSERT_OK(unlinkat(home, "store/version", 0));
    ASSERT_OK(symlinkat("/etc/passwd", home, "store/version"));
    refused(PX_E_STORE_FORMAT);
}

/* ---- what the dead left ---- */

static void make_rubbish(int dir)
{
    ASSERT_OK(mkdirat(dir, "a", 0700));
    ASSERT_OK(mkdirat(dir, "a/b", 0700));
    write_text(dir, "a/b/file", "text");
    ASSERT_OK(symlinkat("../../../keep", dir, "a/link"));
    ASSERT_OK(symlinkat("/", dir, "a/b/root"));
    ASSERT_OK(mkfifoat(dir, "a/fifo", 0600));
    ASSERT_OK(mkdirat(dir, "a/closed", 0700));
    write_text(dir, "a/closed/file", "text");
    ASSERT_OK(fchmodat(dir, "a/closed", 0, 0));
    ASSERT_OK(fchmodat(dir, "a/b", 0, 0));
}

STORE_TEST(what_a_dead_process_left_is_swept)
{
    px_auto_fd int home = px_test_dir();

    px_store_close(open_store());
    px_auto_fd int tmp = at_home("store/tmp");
    px_auto_fd int trash = at_home("store/trash");
    write_text(home, "keep", "text");
    for (int i = 0; i < 2; i++) {
        int dir = i ? trash : tmp;
        ASSERT_OK(mkdirat(dir, "dead", 0700));
        px_auto_fd int dead = openat(dir, "dead", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        make_rubbish(dead);
        ASSERT_OK(mkdirat(dir, "shut", 0));
        ASSERT_OK(symlinkat("../../keep", dir, "link"));
        ASSERT_OK(mkfifoat(dir, "fifo", 0600));
        write_text(dir, "file", "text");
    }
    px_store_close(open_store());
    ASSERT_EQ(entries_of("store/tmp"), 0);
    ASSERT_EQ(entries_of("store/trash"), 0);
    ASSERT_STR(file_text(home, "keep"), "text");
}

STORE_TEST(what_the_living_have_is_left)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_blob_writer *w = NULL;
    struct px_oid oid, expected = oid_of("one two");
    struct px_err e = {0};

    ASSERT_PX(px_blob_begin(store, 100, &w, &e), e);
    ASSERT_PX(px_blob_write(w, "one ", 4, &e), e);
    px_store_close(open_store());               /* another process starts */
    ASSERT_EQ(entries_of("store/tmp"), 1);
    ASSERT_PX(px_blob_write(w, "two", 3, &e), e);
    ASSERT_PX(px_blob_commit(w, &expected, &oid, NULL, &e), e);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    ASSERT(px_blob_has(store, &oid));
    px_store_close(store);
    ASSERT_EQ(entries_of("store/leases"), 0);
}

STORE_TEST(many_may_make_one_store_at_once)
{
    px_auto_fd int home = px_test_dir();
    pid_t children[8];

    for (size_t i = 0; i < PX_COUNT_OF(children); i++) {
        children[i] = fork();
        if (children[i] == 0) {
            px_store_close(open_store());
            _exit(0);
        }
    }
    for (size_t i = 0; i < PX_COUNT_OF(children); i++)
        reap(children[i]);
    ASSERT_STR(file_text(home, "store/version"), "px-store 1\n");
    ASSERT_EQ(entries_of("store/tmp"), 0);
}

STORE_TEST(no_memory_is_an_error_and_nothing_leaks)
{
    px_auto_fd int home = px_test_dir();
    bool failed = true;

    px_store_close(open_store());
    for (unsigned n = 1; failed; n++) {
        struct px_store *store = NULL;
        struct px_err e = {0};
        px_test_fail_alloc(n);
        int r = px_store_open(px_test_dir_path(), &store, &e);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r == 0 || e.code != 0);
        px_store_close(store);
    }
}
