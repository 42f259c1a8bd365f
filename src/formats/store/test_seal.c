#include <time.h>

#include "store/fixture.h"

enum { MANY = 4000 };

static const char *path_in(const struct px_oid *id, const char *what)
{
    static char path[256];

    ASSERT_OK(px_fmt(path, sizeof path, "store/trees/%s/%s", id->hex, what));
    return path;
}

/* As another process would see it. */
static bool is_used(const struct px_oid *id)
{
    struct px_store *store = open_store();
    bool there = px_tree_has(store, id);

    px_store_close(store);
    return there;
}

static void put(const struct px_oid *id)
{
    struct px_store *store = open_store();

    put_tree(store, id, "text");
    px_store_close(store);
}

static void rewrite(int home, const struct px_oid *id)
{
    write_text(home, path_in(id, "root/usr/file"), "TEXT");
}

/* The same length, and the time put back. */
static void rewrite_and_hide(int home, const struct px_oid *id)
{
    struct stat st;

    ASSERT_OK(fstatat(home, path_in(id, "root/usr/file"), &st, 0));
    rewrite(home, id);
    ASSERT_OK(utimensat(home, path_in(id, "root/usr/file"), (struct timespec[]){st.st_atim, st.st_mtim}, 0));
}

static void add_file(int home, const struct px_oid *id)
{
    write_text(home, path_in(id, "root/usr/more"), "text");
}

static void remove_file(int home, const struct px_oid *id)
{
    ASSERT_OK(unlinkat(home, path_in(id, "root/usr/file"), 0));
}

static void change_link(int home, const struct px_oid *id)
{
    ASSERT_OK(unlinkat(home, path_in(id, "root/link"), 0));
    ASSERT_OK(symlinkat("usr", home, path_in(id, "root/link")));
}

static void change_mode(int home, const struct px_oid *id)
{
    px_auto_fd int fd = openat(home, path_in(id, "root/usr/file"), O_RDONLY | O_CLOEXEC);

    ASSERT_OK(fchmod(fd, 0755));
}

STORE_TEST(a_tree_that_was_changed_is_not_used)
{
    static void (*const changes[])(int home, const struct px_oid *id) = {rewrite,     rewrite_and_hide, add_file,
                                                                         remove_file, change_link,      change_mode};
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("a tree");

    for (size_t i = 0; i < PX_COUNT_OF(changes); i++) {
        put(&id);
        ASSERT(is_used(&id));
        changes[i](home, &id);
        ASSERT(!is_used(&id));
        ASSERT_EQ(entries_of("store/corrupt"), (int)i + 1);
        ASSERT(!is_there(path_in(&id, "complete")));
    }
    put(&id);
    ASSERT(is_used(&id));
}

STORE_TEST(it_can_be_looked_at_beside_other_work)
{
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("a tree"), none = oid_of("no tree");

    put(&id);
    struct px_store *store = open_store();
    ASSERT(px_tree_look_begin(store, &none) == NULL);
    ASSERT(!px_seal_end(NULL));
    struct px_seal *first = px_tree_look_begin(store, &id), *second = px_tree_look_begin(store, &id);
    ASSERT(first && second);
    ASSERT(px_seal_end(second) && px_seal_end(first));
    rewrite_and_hide(home, &id);
    ASSERT(!px_seal_end(px_tree_look_begin(store, &id)));
    ASSERT_EQ(entries_of("store/corrupt"), 0);          /* reading the tree decides */
    px_store_close(store);
    ASSERT(!is_used(&id));
}

static void count_line(void *user, const char *line)
{
    ASSERT(strstr(line, "not what px stored"));
    (*(int *)user)++;
}

STORE_TEST(who_opens_leases_or_builds_one_is_told)
{
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("a tree");
    char path[4096];

    for (int i = 0; i < 4; i++) {
        int fd = -1, lines = 0;
        struct px_lease *lease = NULL;
        struct px_tree_build *build = NULL;
        struct px_err e = {0};
        put(&id);
        rewrite(home, &id);
        struct px_store *store = open_store();
        px_store_on_aside(store, (struct px_store_aside){count_line, &lines});
        ASSERT_EQ(i == 0   ? px_tree_open(store, &id, &fd, &e)
                  : i == 1 ? px_tree_path(store, &id, path, sizeof path, &e)
                  : i == 2 ? px_lease_take(store, &id, 1, NULL, 0, &lease, &e)
                           : px_tree_begin(store, &id, &build, &e),
                  i < 3 ? -1 : 0);
        ASSERT(i == 3 || (e.code == PX_E_OBJECT && strstr(e.what, id.hex) && strstr(e.why, "corrupt")));
        ASSERT_EQ(lines, 1);
        ASSERT_EQ(px_store_asides(store), 1);
        px_tree_drop(build);
        px_store_close(store);
    }
}

/* A hard link elsewhere changes a file's ctime but not its content. */
STORE_TEST(a_tree_that_only_looks_changed_is_used)
{
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("a tree");

    put(&id);
    ASSERT_OK(linkat(home, path_in(&id, "root/usr/file"), home, "elsewhere", 0));
    ASSERT(is_used(&id));
    ASSERT_OK(unlinkat(home, "elsewhere", 0));
    ASSERT(is_used(&id));
    ASSERT_EQ(entries_of("store/corrupt"), 0);
}

static void no_seal(int home, const char *path)
{
    (void)home;
    (void)path;
}

static void empty_seal(int home, const char *path)
{
    write_text(home, path, "");
}

static void foreign_seal(int home, const char *path)
{
    write_text(home, path, "px-seal 1 0000000000000000 and no path");
}

static void fifo_seal(int home, const char *path)
{
    ASSERT_OK(mkfifoat(home, path, 0600));
}

static void old_seal(int home, const char *path)
{
    write_text(home, path, "px-seal 1");
    ASSERT_OK(utimensat(home, path, (struct timespec[2]){{0}}, 0));
}

/* Sealed again; not if a file was changed in the same tick in which it was read. */
static void await_seal(int home, const struct px_oid *id)
{
    struct stat st = {0};

    for (int i = 0; i < 1000 && !(S_ISREG(st.st_mode) && st.st_size > 30); i++) {
        ASSERT(is_used(id));
        (void)fstatat(home, path_in(id, "seal"), &st, AT_SYMLINK_NOFOLLOW);
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ASSERT(S_ISREG(st.st_mode) && st.st_size > 30);
}

STORE_TEST(without_a_seal_every_byte_is_read)
{
    static void (*const seals[])(int home, const char *path) = {no_seal, empty_seal, foreign_seal, fifo_seal, old_seal};
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("a tree");

    for (size_t i = 0; i < PX_COUNT_OF(seals); i++)
        for (int good = 0; good < 2; good++) {
            put(&id);
            ASSERT_OK(unlinkat(home, path_in(&id, "seal"), 0));
            seals[i](home, path_in(&id, "seal"));
            if (good) {
                await_seal(home, &id);
                continue;
            }
            rewrite(home, &id);
            ASSERT(!is_used(&id));
        }
}

/* Corruption on disk changes no time: a tree whose last full read is old is read again. */
STORE_TEST(an_old_seal_is_made_anew)
{
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("a tree");
    struct stat st = {0};

    put(&id);
    ASSERT_OK(utimensat(home, path_in(&id, "seal"), (struct timespec[2]){{.tv_sec = 1}, {.tv_sec = 1}}, 0));
    for (int i = 0; i < 1000 && st.st_mtim.tv_sec <= 1; i++) {
        ASSERT(is_used(&id));
        ASSERT_OK(fstatat(home, path_in(&id, "seal"), &st, 0));
    }
    ASSERT(st.st_mtim.tv_sec > 1);
}

STORE_TEST(one_of_many_files_is_enough)
{
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("many");
    struct px_store *store = open_store();
    struct px_tree_build *build = NULL;
    struct px_err e = {0};
    char name[64];

    ASSERT_EQ(px_tree_begin(store, &id, &build, &e), 0);
    for (int i = 0; i < MANY; i++) {
        if (i % 100 == 0 && px_fmt(name, sizeof name, "a-directory-%d", i / 100) >= 0)
            ASSERT_OK(mkdirat(px_tree_build_fd(build), name, 0755));
        ASSERT_OK(px_fmt(name, sizeof name, "a-directory-%d/a-file-with-a-long-name-%d", i / 100, i));
        write_text(px_tree_build_fd(build), name, "text");
    }
    ASSERT_PX(px_tree_commit(build, NULL, &e), e);
    px_store_close(store);
    ASSERT(is_used(&id));
    ASSERT_OK(px_fmt(name, sizeof name, "root/a-directory-%d/a-file-with-a-long-name-%d", (MANY - 1) / 100, MANY - 1));
    write_text(home, path_in(&id, name), "TEXT");
    ASSERT(!is_used(&id));
}
