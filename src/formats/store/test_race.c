/* Swaps directories and files of the store for links that lead out, a million times, while all functions of store.h
 * run. A call may fail. Nothing outside may be read as part of the store, and nothing outside may change. */
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "store/fixture.h"

enum { TRIES = 1000000, ENOUGH = 10, EXCHANGE = 2 /* RENAME_EXCHANGE */ };

static const char mine[] = "mine", secret[] = "secret";
static const char *const outside[] = {"outside",          "outside/root",
                                      "outside/root/usr", "outside/root/usr/file",
                                      "outside/complete", "outside/file"};

/* In memory of both processes. */
struct tally {
    unsigned tries, swaps;
};

/* A path in the store, and the link that is swapped with it. */
struct target {
    char parent[192], name[80], link[32];
    const char *leads_to;
};

static size_t make_targets(struct target *t)
{
    const struct px_oid tree = oid_of("tree"), blob = oid_of(mine), record = oid_of("record");
    const struct {
        const char *parent, *hex, *behind, *name, *leads_to;
    } rows[] = {
        {"store/trees", "", "", tree.hex, "outside"},
        {"store/trees/", tree.hex, "", "root", "outside/root"},
        {"store/trees/", tree.hex, "/root", "usr", "outside/root/usr"},
        {"store/trees/", tree.hex, "/root/usr", "file", "outside/root/usr/file"},
        {"store/trees/", tree.hex, "", "complete", "outside/complete"},
        {"store/blobs/sha256", "", "", blob.hex, "outside/file"},
        {"sandbox/images", "", "", record.hex, "outside"},
        {"store", "", "", "trees", "outside"},
        {"store", "", "", "tmp", "outside"},
        {"store", "", "", "trash", "outside"},
        {"store", "", "", "corrupt", "outside"},
        {"store", "", "", "names", "outside"},
    };

    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        ASSERT_OK(
            px_fmt(t[i].parent, sizeof t[i].parent, "%s%s%s", rows[i].parent, rows[i].hex, rows[i].behind));
        ASSERT_OK(px_fmt(t[i].name, sizeof t[i].name, "%s", rows[i].name));
        ASSERT_OK(px_fmt(t[i].link, sizeof t[i].link, "evil/%zu", i));
        t[i].leads_to = rows[i].leads_to;
    }
    return PX_COUNT_OF(rows);
}

/* ---- what must stay as it is ---- */

struct kept {
    struct stat st[PX_COUNT_OF(outside)];
};

static void make_outside(int home, struct kept *k)
{
    ASSERT_OK(mkdirat(home, "evil", 0755) | mkdirat(home, "old", 0755) | mkdirat(home, "outside", 0700) |
              mkdirat(home, "outside/root", 0700) | mkdirat(home, "outside/root/usr", 0755));
    write_text(home, "outside/root/usr/file", secret);
    write_text(home, "outside/complete", "{}");
    write_text(home, "outside/file", secret);
    for (size_t i = 0; i < PX_COUNT_OF(outside); i++)
        ASSERT_OK(fstatat(home, outside[i], &k->st[i], AT_SYMLINK_NOFOLLOW));
}

/* A change of the contents, of the mode, of the owner, of the times or of the number of links sets st_ctim. */
static void look_outside(int home, const struct kept *k)
{
    for (size_t i = 0; i < PX_COUNT_OF(outside); i++) {
        struct stat st;
        ASSERT_OK(fstatat(home, outside[i], &st, AT_SYMLINK_NOFOLLOW));
        ASSERT_EQ(st.st_ino, k->st[i].st_ino);
        ASSERT_EQ(st.st_ctim.tv_sec, k->st[i].st_ctim.tv_sec);
        ASSERT_EQ(st.st_ctim.tv_nsec, k->st[i].st_ctim.tv_nsec);
    }
    ASSERT_EQ(entries_of("outside"), 3);
    ASSERT_EQ(entries_of("outside/root"), 1);
    ASSERT_EQ(entries_of("outside/root/usr"), 1);
}

/* ---- who swaps ---- */

/* The parent is opened without following a link: the swapper itself must not reach what is outside. */
static int swap(int home, const struct target *t)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    px_auto_fd int parent = (int)px_sys(SYS_openat2, home, t->parent, &how, sizeof how);

    return parent < 0 ? parent : (int)px_sys(SYS_renameat2, parent, t->name, home, t->link, EXCHANGE);
}

static void put_link(int home, const struct target *t)
{
    char leads_to[PATH_MAX];

    ASSERT_OK(px_fmt(leads_to, sizeof leads_to, "%s/%s", px_test_dir_path(), t->leads_to));
    ASSERT_OK(symlinkat(leads_to, home, t->link));
}

/* The store moves a link away that it finds. The original is then in evil/, and the link is created again. */
static void repair(int home, const struct target *t, unsigned number)
{
    char old[32];

    ASSERT_OK(px_fmt(old, sizeof old, "old/%u", number));
    (void)renameat(home, t->link, home, old);
    put_link(home, t);
}

static bool is_link(int home, const char *path)
{
    struct stat st;

    return fstatat(home, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Swaps each path for its link and back. */
static void swap_all(int home, struct tally *tally)
{
    struct target t[16];
    size_t count = make_targets(t);

    for (size_t i = 0; i < count; i++)
        put_link(home, &t[i]);
    for (unsigned i = 0;; i++) {
        const struct target *one = &t[i / 2 % count];
        bool back = i % 2 == 1;
        __atomic_store_n(&tally->tries, i, __ATOMIC_RELAXED);
        if (is_link(home, one->link) == back)
            continue;
        if (swap(home, one) == 0)
            __atomic_add_fetch(&tally->swaps, 1, __ATOMIC_RELAXED);
        else if (back)
            repair(home, one, i);
    }
}

/* ---- who works meanwhile ---- */

static void build(struct px_store *store)
{
    const struct px_oid tree = oid_of("tree"), record = oid_of("record");
    struct px_tree_build *b = NULL;
    struct px_err e = {0};
    struct px_oid blob = {0};
    char json[512];

    if (px_blob_put(store, mine, strlen(mine), &blob, &e) < 0 || px_tree_begin(store, &tree, &b, &e) < 0)
        return;
    if (b) {
        fill_tree(px_tree_build_fd(b), mine);
        (void)px_tree_commit(b, NULL, &e);
    }
    record_text(json, sizeof json, &blob, &tree);
    (void)px_record_put(store, PX_RECORD_IMAGE, &record, json, &e);
    (void)px_name_put(store, PX_RECORD_IMAGE, "name", &record, &e);
}

/* The store must return what was put there. A tree is returned as a descriptor; paths below it are swapped too, so its
 * files are not compared here. */
static bool use(struct px_store *store)
{
    const struct px_oid tree = oid_of("tree"), blob = oid_of(mine);
    px_auto_buf struct px_buf text = PX_BUF(64);
    struct px_err e = {0};
    px_auto_fd int fd = -EBADF;
    bool read = px_blob_read(store, &blob, 64, &text, &e) == 0;

    if (read)
        ASSERT_STR(px_buf_text(&text), mine);
    (void)px_tree_open(store, &tree, &fd, &e);
    return read;
}

static void collect(struct px_store *store)
{
    const struct px_oid record = oid_of("record");
    struct px_store_check check = {0};
    struct px_err e = {0};

    (void)px_store_verify(store, &check, &e);
    (void)px_name_remove(store, PX_RECORD_IMAGE, "name", &e);
    (void)px_record_remove(store, PX_RECORD_IMAGE, &record, &e);
    (void)px_store_gc(store, &(struct px_gc){.unnamed = true}, &e);
}

static bool work(void)
{
    struct px_store *store = NULL;
    struct px_err e = {0};

    if (px_store_open(px_test_dir_path(), &store, &e) < 0)
        return false;
    build(store);
    bool read = use(store);
    collect(store);
    px_store_close(store);
    return read;
}

/* Checks that opening by the path does reach the secret during a swap; otherwise the test would prove nothing. */
static bool is_led_astray(int home)
{
    char is[16] = "";

    return px_read_file(home, "store/trash/file", is, sizeof is) >= 0 && strcmp(is, secret) == 0;
}

/* Runs until there were enough swaps, and enough of them during calls of the store. */
TEST_DEADLINE(places_swapped_for_links, 600)
{
    px_auto_fd int home = px_test_dir();
    struct tally *tally =
        mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned astray = 0, reads = 0;
    struct kept kept;

    ASSERT(tally != MAP_FAILED);
    make_outside(home, &kept);
    ASSERT(work());
    pid_t swapper = fork();
    ASSERT(swapper >= 0);
    if (swapper == 0)
        swap_all(home, tally);
    while (__atomic_load_n(&tally->tries, __ATOMIC_RELAXED) < TRIES || reads < ENOUGH || astray < ENOUGH) {
        ASSERT_EQ(waitpid(swapper, NULL, WNOHANG), 0);
        reads += work();
        for (int i = 0; i < 100; i++)
            astray += is_led_astray(home);
        look_outside(home, &kept);
    }
    ASSERT_OK(kill(swapper, SIGKILL));
    ASSERT_EQ(waitpid(swapper, NULL, 0), swapper);
    look_outside(home, &kept);
    printf("%u swaps, %u reads of ours, %u times led out by the path\n", tally->swaps, reads, astray);
    ASSERT_OK(munmap(tally, sizeof *tally));
}
