/* Builders, users and collectors as separate processes, undisturbed and killed. */
#include <signal.h>
#include <time.h>

#include "store/fixture.h"

/* ---- everybody at once ---- */

enum { ROUNDS = 12, BUILDERS = 4, COLLECTORS = 3 };

/* Each round: put, build, record, name, use, read back. Everything that a call reported as stored must exist. */
static void build_and_use(int number)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct px_store *store = open_store();
        struct px_err e = {0};
        struct px_lease *lease = NULL;
        char text[64], name[32];
        int fd = -1;
        ASSERT_OK(px_fmt(text, sizeof text, "blob %d", round % 3));            /* the same as others build */
        ASSERT_OK(px_fmt(name, sizeof name, "name-%d", (number + round) % 3));
        struct px_oid blob = put_text(store, text), tree = oid_of(text), id = oid_of(name);
        put_tree(store, &tree, text);
        put_record(store, PX_RECORD_IMAGE, &id, &blob, &tree);
        if (round % 2)
            ASSERT_PX(px_name_put(store, PX_RECORD_IMAGE, name, &id, &e), e);
        else
            ASSERT_PX(px_name_remove(store, PX_RECORD_IMAGE, name, &e), e);
        ASSERT_PX(px_lease_take(store, &tree, 1, &blob, 1, &lease, &e), e);
        px_store_close(store);
        store = open_store();
        ASSERT_PX(px_blob_verify(store, &blob, &e), e);
        ASSERT_PX(px_tree_open(store, &tree, &fd, &e), e);
        char is[64] = "";
        ASSERT_OK(px_read_file(fd, "usr/file", is, sizeof is));
        ASSERT_STR(is, text);
        (void)px_fd_close(fd);
        px_lease_drop(lease);
        px_store_close(store);
    }
}

static void collect_all_the_time(void)
{
    for (;;) {
        struct px_store *store = open_store();
        struct px_gc gc = {.unnamed = true};
        struct px_err e = {0};
        ASSERT_PX(px_store_gc(store, &gc, &e), e);
        px_store_close(store);
    }
}

TEST_DEADLINE(builders_and_collectors_at_once, 600)
{
    px_auto_fd int home = px_test_dir();
    pid_t builders[BUILDERS], collectors[COLLECTORS];

    px_store_close(open_store());
    for (int i = 0; i < COLLECTORS; i++) {
        collectors[i] = fork();
        if (collectors[i] == 0)
            collect_all_the_time();
    }
    for (int i = 0; i < BUILDERS; i++) {
        builders[i] = fork();
        if (builders[i] == 0) {
            build_and_use(i);
            _exit(0);
        }
    }
    for (int i = 0; i < BUILDERS; i++)
        reap(builders[i]);
    for (int i = 0; i < COLLECTORS; i++) {
        ASSERT_OK(kill(collectors[i], SIGKILL));        /* wherever it is */
        ASSERT_EQ(waitpid(collectors[i], NULL, 0), collectors[i]);
    }
    struct px_store *store = open_store();
    struct px_store_check check = {0};
    struct px_err e = {0};
    ASSERT_PX(px_store_verify(store, &check, &e), e);
    ASSERT_EQ(check.corrupt, 0);
    ASSERT_PX(px_store_gc(store, &(struct px_gc){.unnamed = true}, &e), e);
    px_store_close(store);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    ASSERT_EQ(entries_of("store/trash"), 0);
    ASSERT_EQ(entries_of("store/corrupt"), 0);
}

/* ---- killed while others work ---- */

static unsigned next_number(uint64_t *state)    /* the same everywhere for the same seed */
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

static pid_t start(int number)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (number % 3 == 0)
            collect_all_the_time();
        for (;;)
            build_and_use(number);
    }
    ASSERT(pid > 0);
    return pid;
}

TEST_DEADLINE(killed_at_random_moments_while_others_work, 600)
{
    enum { WORKERS = 6, KILLS = 100 };
    px_auto_fd int home = px_test_dir();
    uint64_t state = 20240607;
    pid_t workers[WORKERS];

    printf("seed %llu\n", (unsigned long long)state);
    px_store_close(open_store());
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start(i);
    for (int i = 0; i < KILLS; i++) {
        int status, victim = (int)(next_number(&state) % WORKERS);
        (void)nanosleep(&(struct timespec){.tv_nsec = next_number(&state) % 40000000}, NULL);
        ASSERT_OK(kill(workers[victim], SIGKILL));
        ASSERT_EQ(waitpid(workers[victim], &status, 0), workers[victim]);
        ASSERT(WIFSIGNALED(status));            /* it had not failed before the kill */
        workers[victim] = start(victim);
    }
    for (int i = 0; i < WORKERS; i++) {
        ASSERT_OK(kill(workers[i], SIGKILL));
        ASSERT_EQ(waitpid(workers[i], NULL, 0), workers[i]);
    }
    struct px_store *store = open_store();
    struct px_store_check check = {0};
    struct px_err e = {0};
    ASSERT_PX(px_store_verify(store, &check, &e), e);
    ASSERT_EQ(check.corrupt, 0);
    ASSERT_PX(px_store_gc(store, &(struct px_gc){.unnamed = true}, &e), e);
    px_store_close(store);
    build_and_use(1);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    ASSERT_EQ(entries_of("store/trash"), 0);
    ASSERT_EQ(entries_of("store/corrupt"), 0);
    ASSERT_EQ(entries_of("store/leases"), 0);
}
