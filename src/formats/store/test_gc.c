#include <sys/file.h>
#include <time.h>

#include "store/fixture.h"

static struct px_gc collect(struct px_store *store, struct px_gc how)
{
    struct px_err e = {0};

    ASSERT_PX(px_store_gc(store, &how, &e), e);
    return how;
}

/* Reopens the store: a handle keeps what it has put. */
static struct px_gc collect_elsewhere(struct px_gc how)
{
    struct px_store *store = open_store();
    struct px_gc done = collect(store, how);

    px_store_close(store);
    return done;
}

static struct px_store *reopen(struct px_store *store)
{
    px_store_close(store);
    return open_store();
}

/* ---- what stays and what goes ---- */

STORE_TEST(what_nothing_refers_to_goes)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid blob = put_text(store, "blob"), other = put_text(store, "other blob"), tree = oid_of("tree"),
                  second = oid_of("second");
    struct px_oid id = oid_of("record");

    put_tree(store, &tree, "text");
    put_tree(store, &second, "more text");
    put_record(store, PX_RECORD_IMAGE, &id, &blob, &tree);
    store = reopen(store);
    struct px_gc would = collect(store, (struct px_gc){.dry_run = true});
    ASSERT(is_there("store/blobs/sha256") && entries_of("store/blobs/sha256") == 2 && entries_of("store/trees") == 2);
    struct px_gc did = collect(store, (struct px_gc){0});
    ASSERT_EQ(did.blobs, 1);
    ASSERT_EQ(did.trees, 1);
    ASSERT_EQ(did.records, 0);
    ASSERT_EQ(did.bytes, 10 + 9);
    ASSERT_EQ(would.bytes, did.bytes);
    ASSERT(px_blob_has(store, &blob) && !px_blob_has(store, &other));
    ASSERT(px_tree_has(store, &tree) && !px_tree_has(store, &second));
    ASSERT_EQ(entries_of("store/trash"), 0);
    ASSERT_EQ(entries_of("store/locks"), 0);
    did = collect_elsewhere((struct px_gc){0});
    ASSERT_EQ(did.blobs + did.trees + did.records, 0);
    px_store_close(store);
}

STORE_TEST(what_a_handle_has_put_or_found_stays_until_it_is_closed)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid blob = put_text(store, "blob"), tree = oid_of("tree"), id = oid_of("record");

    put_tree(store, &tree, "text");
    (void)collect_elsewhere((struct px_gc){0});
    put_record(store, PX_RECORD_BASE, &id, &blob, &tree);
    (void)collect_elsewhere((struct px_gc){.unnamed = true});
    ASSERT_EQ(entries_of("sandbox/bases"), 1);
    store = reopen(store);
    ASSERT(px_blob_has(store, &blob) && px_tree_has(store, &tree));             /* finding it keeps it again */
    struct px_gc did = collect_elsewhere((struct px_gc){.unnamed = true});
    ASSERT_EQ(did.records, 1);
    ASSERT_EQ(did.blobs + did.trees, 0);
    px_store_close(store);
    did = collect_elsewhere((struct px_gc){0});
    ASSERT_EQ(did.blobs, 1);
    ASSERT_EQ(did.trees, 1);
}

STORE_TEST(clean_removes_records_without_a_name)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid shared = put_text(store, "shared"), own = put_text(store, "own"), named = oid_of("named"),
                  unnamed = oid_of("unnamed");
    struct px_oid found;
    struct px_err e = {0};

    put_record(store, PX_RECORD_IMAGE, &named, &shared, NULL);
    put_record(store, PX_RECORD_BASE, &unnamed, &own, NULL);
    put_record(store, PX_RECORD_IMAGE, &unnamed, &shared, NULL);
    ASSERT_PX(px_name_put(store, PX_RECORD_IMAGE, "kept", &named, &e), e);
    px_store_close(store);
    struct px_gc did = collect_elsewhere((struct px_gc){.unnamed = true, .min_age_sec = 3600});
    ASSERT_EQ(did.records, 0);                  /* too young */
    did = collect_elsewhere((struct px_gc){.unnamed = true});
    ASSERT_EQ(did.records, 2);
    ASSERT_EQ(did.blobs, 1);
    store = open_store();
    ASSERT_EQ(px_name_get(store, PX_RECORD_IMAGE, "kept", &found, &e), 0);
    ASSERT(px_blob_has(store, &shared) && !px_blob_has(store, &own));
    px_store_close(store);
}

STORE_TEST(a_bound_on_the_size_takes_the_oldest_first)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    static const char *const names[] = {"old", "middle", "new", "named"};
    struct px_oid ids[4];
    struct px_err e = {0};

    for (size_t i = 0; i < 4; i++) {
        char path[128], text[101];
        memset(text, 'a' + (int)i, 100);
        text[100] = '\0';
        struct px_oid blob = put_text(store, text);
        ids[i] = oid_of(names[i]);
        put_record(store, PX_RECORD_IMAGE, &ids[i], &blob, NULL);
        ASSERT_OK(px_fmt(path, sizeof path, "sandbox/images/%s/manifest.json", ids[i].hex));
        ASSERT_OK(utimensat(home, path,
                            (struct timespec[2]){{.tv_sec = 1000}, {.tv_sec = i == 3 ? 1 : 1000 + (time_t)i}}, 0));
    }
    ASSERT_PX(px_name_put(store, PX_RECORD_IMAGE, "kept", &ids[3], &e), e);
    px_store_close(store);
    struct px_gc did = collect_elsewhere((struct px_gc){.max_bytes = 400});
    ASSERT_EQ(did.records, 0);
    did = collect_elsewhere((struct px_gc){.max_bytes = 399});
    ASSERT_EQ(did.records, 1);
    ASSERT_EQ(did.bytes, 100);
    px_auto_buf struct px_buf text = PX_BUF(1024);
    store = open_store();
    ASSERT_EQ(px_record_get(store, PX_RECORD_IMAGE, &ids[0], &text, &e), 1);
    ASSERT_EQ(px_record_get(store, PX_RECORD_IMAGE, &ids[1], &text, &e), 0);
    px_store_close(store);
    did = collect_elsewhere((struct px_gc){.max_bytes = 1});
    ASSERT_EQ(did.records, 2);                  /* the one with a name stays */
    ASSERT_EQ(entries_of("sandbox/images"), 1);
}

struct list {
    char text[4096];
};

static void add_to_list(void *user, const char *what, const char *id, uint64_t bytes)
{
    struct list *list = user;
    size_t n = strlen(list->text);

    ASSERT_OK(px_fmt(list->text + n, sizeof list->text - n, "%s %.8s %llu\n", what, id, (unsigned long long)bytes));
}

STORE_TEST(a_dry_run_says_what_a_real_one_does)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid tree = oid_of("tree"), blob = put_text(store, "kept"), id = oid_of("record");
    struct list would = {""}, did = {""};
    char text[16];

    for (int i = 0; i < 20; i++) {
        ASSERT_OK(px_fmt(text, sizeof text, "blob %d", i));
        (void)put_text(store, text);
    }
    put_tree(store, &tree, "text");
    put_record(store, PX_RECORD_BASE, &id, &blob, NULL);
    px_store_close(store);
    (void)collect_elsewhere((struct px_gc){.dry_run = true, .unnamed = true, .tell = add_to_list, .user = &would});
    (void)collect_elsewhere((struct px_gc){.unnamed = true, .tell = add_to_list, .user = &did});
    ASSERT_STR(would.text, did.text);
    ASSERT(strstr(did.text, "base ") == did.text && strstr(did.text, "tree "));
    ASSERT_EQ(entries_of("store/blobs/sha256"), 0);
}

/* ---- leases ---- */

STORE_TEST(a_lease_keeps_as_long_as_somebody_holds_it)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid blob = put_text(store, "blob"), tree = oid_of("tree");
    struct px_lease *lease = NULL;
    struct px_err e = {0};
    int ends[2];

    put_tree(store, &tree, "text");
    ASSERT_PX(px_lease_take(store, &tree, 1, &blob, 1, &lease, &e), e);
    px_store_close(store);
    ASSERT_EQ(collect_elsewhere((struct px_gc){0}).trees, 0);
    ASSERT_OK(px_pipe(ends));
    pid_t child = fork();                       /* the descriptor was passed on */
    if (child == 0) {
        char byte;
        (void)px_fd_close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    px_lease_drop(lease);
    ASSERT_EQ(collect_elsewhere((struct px_gc){0}).trees, 0);
    (void)px_fd_close(ends[1]);
    reap(child);
    (void)px_fd_close(ends[0]);
    struct px_gc did = collect_elsewhere((struct px_gc){0});
    ASSERT_EQ(did.trees, 1);
    ASSERT_EQ(did.blobs, 1);
    ASSERT_EQ(entries_of("store/leases"), 0);
}

STORE_TEST(a_lease_is_only_of_what_is_there)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid blob = put_text(store, "blob"), none = oid_of("none");
    struct px_lease *lease = NULL;
    struct px_err e;

    store = reopen(store);
    ASSERT_FAILS(px_lease_take(store, NULL, 0, (struct px_oid[]){blob, none}, 2, &lease, &e), e, PX_E_OBJECT);
    ASSERT_FAILS(px_lease_take(store, &none, 1, &blob, 1, &lease, &e), e, PX_E_OBJECT);
    ASSERT(!lease);
    ASSERT_EQ(entries_of("store/leases"), 0);
    px_store_close(store);
}

/* ---- when in doubt, nothing goes ---- */

static void refuses(bool unnamed)
{
    struct px_store *store = open_store();
    struct px_gc gc = {.unnamed = unnamed};
    struct px_err e;

    ASSERT_FAILS(px_store_gc(store, &gc, &e), e, PX_E_RECORD);
    px_store_close(store);
    ASSERT_EQ(entries_of("store/blobs/sha256"), 1);
    ASSERT_EQ(entries_of("store/trash"), 0);
}

STORE_TEST(what_cannot_be_read_stops_everything)
{
    static const char *const manifests[] = {"", "{", "{}", "{\"refs\":{\"blobs\":[\"x\"]}}", "{\"refs\":[]}"};
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid blob = put_text(store, "blob"), id = oid_of("record");
    char path[128], name[128];

    (void)blob;
    put_record(store, PX_RECORD_IMAGE, &id, NULL, NULL);
    px_store_close(store);
    ASSERT_OK(px_fmt(path, sizeof path, "sandbox/images/%s/manifest.json", id.hex));
    for (size_t i = 0; i < PX_COUNT_OF(manifests); i++) {
        write_text(home, path, manifests[i]);
        refuses(false);
    }
    ASSERT_OK(unlinkat(home, path, 0));
    refuses(false);                             /* a record without a manifest */
    write_text(home, path, "{\"refs\":{}}");
    ASSERT_OK(mkdirat(home, "sandbox/bases/foreign", 0700));
    refuses(true);
    ASSERT_OK(unlinkat(home, "sandbox/bases/foreign", AT_REMOVEDIR));
    ASSERT_OK(px_fmt(name, sizeof name, "store/names/%s", id.hex));
    write_text(home, name, "{\"id\":1}");
    refuses(true);
    ASSERT_OK(unlinkat(home, name, 0));
    ASSERT_OK(symlinkat("/etc/passwd", home, "store/leases/link"));
    refuses(true);
    ASSERT_OK(unlinkat(home, "store/leases/link", 0));
    write_text(home, "store/leases/held", "px-lease 2\n");
    px_auto_fd int held = openat(home, "store/leases/held", O_RDONLY | O_CLOEXEC);
    ASSERT_OK(flock(held, LOCK_SH));
    refuses(true);                              /* of a later version, and in use */
    held = px_fd_close(held);
    ASSERT_EQ(collect_elsewhere((struct px_gc){0}).blobs, 1);
    ASSERT(!is_there("store/leases/held"));
}

STORE_TEST(what_is_damaged_is_found_by_looking_at_everything)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid blob = put_text(store, "blob"), good = put_text(store, "good"), tree = oid_of("tree"),
                  second = oid_of("second");
    struct px_oid id = oid_of("record");
    struct px_store_check check = {0};
    struct px_store_size size;
    struct px_err e = {0};
    char path[128];

    put_tree(store, &tree, "text");
    put_tree(store, &second, "text");
    put_record(store, PX_RECORD_BASE, &id, &blob, &tree);
    ASSERT_PX(px_store_verify(store, &check, &e), e);
    ASSERT_EQ(check.corrupt, 0);
    ASSERT_EQ(check.blobs, 2);
    ASSERT_EQ(check.trees, 2);
    ASSERT_OK(px_fmt(path, sizeof path, "store/blobs/sha256/%s", blob.hex));
    ASSERT_OK(fchmodat(home, path, 0600, 0));
    write_text(home, path, "blub");
    ASSERT_OK(px_fmt(path, sizeof path, "store/trees/%s/root/usr/file", tree.hex));
    write_text(home, path, "teXt");
    ASSERT_PX(px_store_verify(store, &check, &e), e);
    ASSERT_EQ(check.corrupt, 4);                /* a blob, a tree, and the record needs both */
    ASSERT_EQ(check.blobs, 1);
    ASSERT_EQ(check.trees, 1);
    ASSERT(px_blob_has(store, &good) && !px_blob_has(store, &blob) && !px_tree_has(store, &tree) &&
           px_tree_has(store, &second));
    ASSERT_PX(px_store_measure(store, &size, &e), e);
    ASSERT_EQ(size.corrupt, 2);
    ASSERT_EQ(size.blobs, 1);
    ASSERT_EQ(size.blob_bytes, 4);
    ASSERT_EQ(size.tree_bytes, 4);
    ASSERT_EQ(size.bases, 1);
    ASSERT_EQ(size.leases, 1);                  /* this handle's own */
    px_store_close(store);
}

STORE_TEST(no_memory_removes_nothing_that_is_needed)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid blob = put_text(store, "blob"), tree = oid_of("tree"), id = oid_of("record");
    struct px_err e = {0};
    bool failed = true;

    put_tree(store, &tree, "text");
    put_record(store, PX_RECORD_BASE, &id, &blob, &tree);
    ASSERT_PX(px_name_put(store, PX_RECORD_BASE, "kept", &id, &e), e);
    store = reopen(store);
    for (unsigned n = 1; failed; n++) {
        struct px_gc gc = {.unnamed = true};
        px_test_fail_alloc(n);
        (void)px_store_gc(store, &gc, NULL);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT_EQ(entries_of("store/blobs/sha256"), 1);
        ASSERT_EQ(entries_of("store/trees"), 1);
        ASSERT_EQ(entries_of("sandbox/bases"), 1);
        ASSERT_EQ(entries_of("store/names"), 1);
    }
    px_store_close(store);
}

/* ---- what px sandbox clean takes as well ---- */

static bool gone_project(enum px_record_kind kind, const char *name)
{
    return kind == PX_RECORD_IMAGE && strcmp(name, "/gone") == 0;
}

static void tell_name(void *user, const char *what, const char *id, uint64_t bytes)
{
    ASSERT(strcmp(what, "name") != 0 || (strcmp(id, "/gone") == 0 && bytes == 0));
    *(int *)user += strcmp(what, "name") == 0;
}

STORE_TEST(a_name_that_is_gone_keeps_nothing)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store();
    struct px_oid one = put_text(store, "one"), two = put_text(store, "two"), a = oid_of("a"), b = oid_of("b"), found;
    struct px_err e = {0};
    int told = 0;
    struct px_gc how = {.unnamed = true, .gone = gone_project, .tell = tell_name, .user = &told, .dry_run = true};

    put_record(store, PX_RECORD_IMAGE, &a, &one, NULL);
    put_record(store, PX_RECORD_IMAGE, &b, &two, NULL);
    ASSERT_PX(px_name_put(store, PX_RECORD_IMAGE, "/gone", &a, &e), e);
    ASSERT_PX(px_name_put(store, PX_RECORD_IMAGE, "/there", &b, &e), e);
    store = reopen(store);
    struct px_gc would = collect(store, how);
    ASSERT_EQ(entries_of("store/names"), 2);
    how.dry_run = false;
    struct px_gc did = collect(store, how);
    ASSERT_EQ(told, 2);
    ASSERT_EQ(would.names, 1);
    ASSERT_EQ(did.names, 1);
    ASSERT_EQ(did.records, would.records);
    ASSERT_EQ(did.records, 1);
    ASSERT_EQ(entries_of("store/names"), 1);
    ASSERT_EQ(px_name_get(store, PX_RECORD_IMAGE, "/gone", &found, &e), 1);
    ASSERT(!px_blob_has(store, &one) && px_blob_has(store, &two));
    px_store_close(store);
}

STORE_TEST(a_record_that_is_none_goes_when_unnamed_ones_do)
{
    static const char *const texts[] = {"not JSON", "", "{}", NULL};
    px_auto_fd int home = px_test_dir();
    struct px_oid id = oid_of("record");
    struct px_err e = {0};
    char path[128];

    ASSERT_OK(px_fmt(path, sizeof path, "sandbox/images/%s/manifest.json", id.hex));
    for (size_t i = 0; i < PX_COUNT_OF(texts); i++) {
        struct px_store *store = open_store();
        struct px_oid blob = put_text(store, "blob");
        put_record(store, PX_RECORD_IMAGE, &id, &blob, NULL);
        ASSERT_PX(px_name_put(store, PX_RECORD_IMAGE, "a name", &id, &e), e);
        store = reopen(store);
        ASSERT_OK(unlinkat(home, path, 0));
        if (texts[i])
            write_text(home, path, texts[i]);
        struct px_gc how = {0};
        ASSERT_FAILS(px_store_gc(store, &how, &e), e, PX_E_RECORD);
        ASSERT(strstr(e.what, id.hex) && strstr(e.fix, "px sandbox delete"));
        ASSERT_EQ(entries_of("store/blobs/sha256"), 1);
        struct px_gc did = collect(store, (struct px_gc){.unnamed = true});
        ASSERT_EQ(did.records, 1);
        ASSERT_EQ(did.blobs, 1);
        ASSERT_EQ(entries_of("sandbox/images"), 0);
        px_store_close(store);
    }
}

STORE_TEST(whether_somebody_uses_it_can_be_asked)
{
    px_auto_fd int home = px_test_dir();
    struct px_store *store = open_store(), *other = open_store();
    struct px_oid tree = oid_of("tree"), blob = put_text(other, "blob");
    struct px_lease *lease = NULL;
    struct px_err e = {0};

    put_tree(other, &tree, "text");
    other = reopen(other);
    ASSERT_EQ(px_store_in_use(store, &tree, &e), 0);
    ASSERT_PX(px_lease_take(other, &tree, 1, &blob, 1, &lease, &e), e);
    ASSERT_EQ(px_store_in_use(store, &tree, &e), 1);
    ASSERT_EQ(px_store_in_use(store, &blob, &e), 1);
    px_lease_drop(lease);
    ASSERT_EQ(px_store_in_use(store, &tree, &e), 0);
    px_store_close(other);
    px_store_close(store);
}
