#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "store/fixture.h"

static struct px_tree_build *begin(struct px_store *store, const struct px_oid *id)
{
    struct px_tree_build *build = NULL;
    struct px_err e = {0};
    int r = px_tree_begin(store, id, &build, &e);

    ASSERT_PX(r, e);
    ASSERT_EQ(r, 0);
    return build;
}

STORE_TEST(a_tree_is_there_when_it_is_committed)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("a tree");
    struct px_tree_build *build = begin(store, &id);
    px_auto_buf struct px_buf about = PX_BUF(100);
    struct px_err e = {0};
    char path[4096], expected[4096];

    fill_tree(px_tree_build_fd(build), "text");
    ASSERT(!px_tree_has(store, &id));
    ASSERT_PX(px_tree_commit(build, "{ \"b\": 1, \"a\": [2] }", &e), e);
    ASSERT(px_tree_has(store, &id));
    ASSERT_EQ(px_tree_begin(store, &id, &build, &e), 1);
    ASSERT_PX(px_tree_about(store, &id, &about, &e), e);
    ASSERT_STR(px_buf_text(&about), "{\"a\":[2],\"b\":1}");
    ASSERT_PX(px_tree_path(store, &id, path, sizeof path, &e), e);
    ASSERT_OK(px_fmt(expected, sizeof expected, "%s/store/trees/%s/root", px_test_dir_path(), id.hex));
    ASSERT_STR(path, expected);
    int fd = -1;
    ASSERT_PX(px_tree_open(store, &id, &fd, &e), e);
    ASSERT_STR(file_text(fd, "usr/file"), "text");
    (void)px_fd_close(fd);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    px_store_close(store);
}

STORE_TEST(a_dropped_tree_was_never_there)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("a tree");
    struct px_tree_build *build = begin(store, &id);
    struct px_err e;
    char path[64];
    int fd = -1;

    fill_tree(px_tree_build_fd(build), "text");
    px_tree_drop(build);
    px_tree_drop(NULL);
    ASSERT(!px_tree_has(store, &id));
    ASSERT_FAILS(px_tree_open(store, &id, &fd, &e), e, PX_E_OBJECT);
    ASSERT_FAILS(px_tree_path(store, &id, path, sizeof path, &e), e, PX_E_OBJECT);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    put_tree(store, &id, "text");
    ASSERT(px_tree_has(store, &id));
    px_store_close(store);
}

STORE_TEST(what_is_not_complete_is_no_tree)
{
    static const char *const completes[] = {"", "{}", "nonsense",
                                            "{\"bytes\":1,\"files\":1,\"listing\":\"x\",\"version\":1}", NULL};
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("a tree");

    for (size_t i = 0; i < PX_COUNT_OF(completes); i++) {
        char path[128];
        put_tree(store, &id, "text");
        ASSERT_OK(px_fmt(path, sizeof path, "store/trees/%s/complete", id.hex));
        ASSERT_OK(unlinkat(home, path, 0));
        if (completes[i])
            write_text(home, path, completes[i]);
        ASSERT(!px_tree_has(store, &id));
        ASSERT_EQ(entries_of("store/corrupt"), (int)i + 1);
    }
    px_store_close(store);
}

STORE_TEST(a_tree_has_files_directories_and_links_only)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("a tree");
    struct px_tree_build *build = begin(store, &id);
    struct px_err e;

    ASSERT_OK(mkfifoat(px_tree_build_fd(build), "the\nfifo", 0600));
    ASSERT_FAILS(px_tree_commit(build, NULL, &e), e, PX_E_OBJECT);
    ASSERT(strstr(e.what, "the\\x0afifo"));
    ASSERT(!px_tree_has(store, &id));
    ASSERT_EQ(entries_of("store/tmp"), 0);
    px_store_close(store);
}

STORE_TEST(modes_are_normal_when_it_is_committed)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("a tree");
    struct px_tree_build *build = begin(store, &id);
    int dir = px_tree_build_fd(build), fd = -1;
    struct px_err e = {0};
    struct stat st;

    fill_tree(dir, "text");
    write_text(dir, "program", "text");
    ASSERT_OK(mkdirat(dir, "shut", 0700));
    write_text(dir, "shut/file", "text");
    ASSERT_OK(fchmodat(dir, "shut/file", 0, 0));
    ASSERT_OK(fchmodat(dir, "shut", 03000, 0));
    ASSERT_OK(fchmodat(dir, "program", 06755, 0));
    ASSERT_PX(px_tree_commit(build, NULL, &e), e);
    ASSERT_PX(px_tree_open(store, &id, &fd, &e), e);
    ASSERT_EQ(fstatat(fd, "program", &st, 0), 0);
    ASSERT_EQ(st.st_mode & 07777, 0755);
    ASSERT_EQ(fstatat(fd, "shut", &st, 0), 0);
    ASSERT_EQ(st.st_mode & 07777, 01700);
    ASSERT_EQ(fstatat(fd, "shut/file", &st, 0), 0);
    ASSERT_EQ(st.st_mode & 07777, 0400);
    (void)px_fd_close(fd);
    px_store_close(store);
}

/* ---- one builder ---- */

STORE_TEST(of_many_builders_one_builds)
{
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("a tree");
    pid_t children[8];
    int *built = mmap(NULL, sizeof *built, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    for (size_t i = 0; i < PX_COUNT_OF(children); i++) {
        children[i] = fork();
        if (children[i] != 0)
            continue;
        struct px_store *store = open_store();
        struct px_tree_build *build = NULL;
        struct px_err e = {0};
        int r = px_tree_begin(store, &id, &build, &e);
        ASSERT_PX(r, e);
        if (r == 0) {
            __atomic_add_fetch(built, 1, __ATOMIC_SEQ_CST);
            fill_tree(px_tree_build_fd(build), "text");
            ASSERT_PX(px_tree_commit(build, NULL, &e), e);
        }
        ASSERT(px_tree_has(store, &id));
        px_store_close(store);
        _exit(0);
    }
    for (size_t i = 0; i < PX_COUNT_OF(children); i++)
        reap(children[i]);
    ASSERT_EQ(*built, 1);
    ASSERT_OK(munmap(built, sizeof *built));
}

STORE_TEST(a_dead_builder_is_followed_by_another)
{
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("a tree");
    int ends[2];
    char byte;

    ASSERT_OK(px_pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        struct px_store *store = open_store();
        fill_tree(px_tree_build_fd(begin(store, &id)), "half");
        (void)!write(ends[1], "x", 1);
        (void)pause();
        _exit(1);
    }
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    struct px_store *store = open_store();
    struct px_store_lock *lock = NULL;
    struct px_err e;
    ASSERT_FAILS(px_store_lock_take(store, &id, 50, &lock, &e), e, PX_E_STORE_BUSY);
    ASSERT(strstr(e.why, "process "));          /* who holds it */
    ASSERT_OK(kill(child, SIGKILL));
    ASSERT_EQ(waitpid(child, NULL, 0), child);
    put_tree(store, &id, "text");
    ASSERT(px_tree_has(store, &id));
    px_store_close(store);
    px_store_close(open_store());
    ASSERT_EQ(entries_of("store/tmp"), 0);
    (void)px_fd_close(ends[0]);
    (void)px_fd_close(ends[1]);
}

/* Called when the store waits for the holder; ends the holder. */
static void end_holder(void *user, const char *line)
{
    char expected[128];

    ASSERT_OK(px_fmt(expected, sizeof expected, "waiting for process %d, which makes the same", (int)*(pid_t *)user));
    ASSERT_STR(line, expected);
    ASSERT_OK(kill(*(pid_t *)user, SIGKILL));
}

STORE_TEST(who_waits_says_for_whom)
{
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("a tree");
    int ends[2];
    char byte;

    ASSERT_OK(px_pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        struct px_store *store = open_store();
        (void)begin(store, &id);
        (void)!write(ends[1], "x", 1);
        (void)pause();
        _exit(1);
    }
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    struct px_store *store = open_store();
    struct px_store_lock *lock = NULL;
    struct px_err e = {0};
    px_store_on_aside(store, (struct px_store_aside){end_holder, &child});
    ASSERT_PX(px_store_lock_take(store, &id, 0, &lock, &e), e);       /* without the callback it would wait for ever */
    ASSERT_EQ(waitpid(child, NULL, 0), child);
    px_store_lock_drop(lock);
    px_store_close(store);
    (void)px_fd_close(ends[0]);
    (void)px_fd_close(ends[1]);
}

STORE_TEST(only_a_regular_file_is_a_lock)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid id = oid_of("a tree");
    char path[128];

    ASSERT_OK(px_fmt(path, sizeof path, "store/locks/%s", id.hex));
    write_text(home, "elsewhere", "text");
    for (int kind = 0; kind < 4; kind++) {
        struct px_store_lock *lock = NULL;
        struct px_err e;
        ASSERT_OK(kind == 0   ? symlinkat("../../elsewhere", home, path)
                  : kind == 1 ? mkfifoat(home, path, 0600)
                  : kind == 2 ? mkdirat(home, path, 0700)
                              : symlinkat("../../made", home, path));
        ASSERT_FAILS(px_store_lock_take(store, &id, 1000, &lock, &e), e, PX_E_STORE_WRITE);
        ASSERT_OK(unlinkat(home, path, kind == 2 ? AT_REMOVEDIR : 0));
    }
    ASSERT_STR(file_text(home, "elsewhere"), "text");
    ASSERT(!is_there("made"));
    px_store_close(store);
}
