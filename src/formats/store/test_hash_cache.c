#include <time.h>

#include "store/fixture.h"

/* A file whose ctime is as old as the test needs. ctime cannot be set, so this waits. */
static void settle(int fd)
{
    struct stat st;
    struct timespec now;

    ASSERT_EQ(fstat(fd, &st), 0);
    do {
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        ASSERT_OK(clock_gettime(CLOCK_REALTIME, &now));
    } while (now.tv_sec - st.st_ctim.tv_sec < 4);
}

static int settled_file(int dir, const char *text)
{
    write_text(dir, "file", text);
    int fd = openat(dir, "file", O_RDONLY | O_CLOEXEC);
    ASSERT(fd >= 0);
    settle(fd);
    return fd;
}

static struct px_oid seen(struct px_store *store, int fd)
{
    struct px_oid oid;
    struct px_err e = {0};
    uint64_t size = 0;

    ASSERT_PX(px_hash_cache_file(store, fd, &oid, &size, &e), e);
    return oid;
}

static void only_entry(char *out, size_t size)
{
    px_auto_fd int dir = at_home("store/seen");
    DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *entry;

    ASSERT(d);
    while ((entry = readdir(d)))
        if (entry->d_name[0] != '.')
            ASSERT_OK(px_fmt(out, size, "store/seen/%s", entry->d_name));
    (void)closedir(d);
}

STORE_TEST(a_settled_file_is_read_once)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    px_auto_fd int fd = settled_file(home, "text");
    struct px_oid oid = seen(store, fd), expected = oid_of("text"), lie = oid_of("lie");
    char path[128], text[512], *at;

    ASSERT_STR(oid.hex, expected.hex);
    ASSERT_EQ(entries_of("store/seen"), 1);
    only_entry(path, sizeof path);
    ASSERT_OK(px_fmt(text, sizeof text, "%s", file_text(home, path)));
    at = strstr(text, expected.hex);
    ASSERT(at);
    memcpy(at, lie.hex, 64);                    /* the cached hash is returned: the file was not read again */
    write_text(home, path, text);
    oid = seen(store, fd);
    ASSERT_STR(oid.hex, lie.hex);
    write_text(home, path, "damaged");
    oid = seen(store, fd);
    ASSERT_STR(oid.hex, expected.hex);
    px_store_close(store);
}

STORE_TEST(a_changed_file_is_read_again)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    px_auto_fd int fd = settled_file(home, "text");
    struct px_oid oid = seen(store, fd), expected = oid_of("tex!");
    struct stat st;

    ASSERT_EQ(fstat(fd, &st), 0);
    px_auto_fd int out = openat(home, "file", O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(pwrite(out, "!", 1, 3), 1);
    ASSERT_OK(futimens(out, (struct timespec[2]){st.st_atim, st.st_mtim}));     /* the same size and time of change */
    settle(fd);
    oid = seen(store, fd);
    ASSERT_STR(oid.hex, expected.hex);
    px_store_close(store);
}

STORE_TEST(a_fresh_file_is_not_remembered)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_err e;
    struct px_oid oid;
    uint64_t size;
    struct stat st;
    struct timespec now;

    write_text(home, "fresh", "text");
    px_auto_fd int fd = openat(home, "fresh", O_RDONLY | O_CLOEXEC);
    oid = seen(store, fd);
    ASSERT_OK(clock_gettime(CLOCK_REALTIME, &now));
    ASSERT_EQ(fstat(fd, &st), 0);
    if (now.tv_sec - st.st_ctim.tv_sec < 2)     /* otherwise this machine was too slow to see it as recent */
        ASSERT_EQ(entries_of("store/seen"), 0);
    ASSERT_FAILS(px_hash_cache_file(store, home, &oid, &size, &e), e, PX_E_IO);
    px_store_close(store);
}
