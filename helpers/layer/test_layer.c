/* helpers/layer/test_layer.c - the parts of px-layer by themselves; tests/archives has the whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "harness/test.h"
#include "helpers/layer/layer.h"
#include "kernel/tree.h"

/* ---- names ---- */

TEST(names_are_cleaned_or_refused)
{
    static const struct {
        const char *raw, *clean;        /* NULL: refused */
        bool directory;
    } rows[] = {
        {"a", "a", false}, {"a/b", "a/b", false}, {"./a", "a", false}, {"././a/./b/.", "a/b", false}, {".", "", true},
        {"./", "", true},
        {"a/", "a", true}, {"a..b", "a..b", false}, {"...", "...", false}, {".a", ".a", false}, {"a b", "a b", false},
        {"", NULL, true}, {"/", NULL, true}, {"/a", NULL, false}, {"a/", NULL, false}, {"a//b", NULL, false},
        {"a//", NULL, true}, {"..", NULL, true},
        {"../a", NULL, false}, {"a/..", NULL, true}, {"a/../b", NULL, false}, {"./..", NULL, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[NAME_SIZE];
        const char *reason = NULL;
        int r = name_clean(rows[i].raw, strlen(rows[i].raw), rows[i].directory, out, &reason);
        ASSERT_EQ(r, rows[i].clean ? 0 : -1);
        if (rows[i].clean)
            ASSERT_STR(out, rows[i].clean);
        else
            ASSERT(reason);
    }
}

/* ---- compression ---- */

/* Some that compresses and some that does not, more than the slots hold, and not a whole number of chunks. */
static uint8_t *stream(size_t size)
{
    uint8_t *data = malloc(size);
    uint64_t x = 88172645463325252ULL;
    ASSERT(data);
    for (size_t i = 0; i < size; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = i / 4096 % 3 ? (uint8_t)(i / 64) : (uint8_t)x;
    }
    return data;
}

static void squeeze_all(enum px_compression how, unsigned threads, const uint8_t *data, size_t size, int fd,
                        struct px_layer *ret)
{
    struct squeeze *s = NULL;
    struct px_err e = {0};
    ASSERT_PX(squeeze_open(fd, how, threads, &s, &e), e);
    for (size_t at = 0, n; at < size; at += n) {
        n = at * 7 % 100000 + 1;
        n = n < size - at ? n : size - at;
        ASSERT_PX(squeeze_add(s, data + at, n, &e), e);
    }
    ASSERT_PX(squeeze_finish(s, ret, &e), e);
    squeeze_free(s);
}

TEST_DEADLINE(bytes_do_not_depend_on_threads, 120)
{
    enum { SIZE = 11 * CHUNK + 12345 };
    uint8_t *data = stream(SIZE), *back = malloc(SIZE + 1);
    ASSERT(back);
    for (int how = 0; how < PX_COMPRESSIONS; how++) {
        struct px_layer first = {0};
        for (unsigned threads = 0; threads <= 4; threads++) {
            struct px_layer layer;
            struct source *source = NULL;
            struct px_err e = {0};
            px_auto_fd int fd = memfd_create("layer", MFD_CLOEXEC);
            squeeze_all((enum px_compression)how, threads, data, SIZE, fd, &layer);
            if (threads == 0)
                first = layer;
            ASSERT_STR(layer.digest.hex, first.digest.hex);
            ASSERT_STR(layer.diff_id.hex, first.diff_id.hex);
            ASSERT_EQ(layer.tar_size, SIZE);
            if (how == PX_COMPRESS_NONE)
                continue;       /* it is not a tar that the source would know */
            ASSERT_PX(source_open(fd, layer.size, 0, &source, &e), e);
            ASSERT_EQ(source_read(source, back, SIZE + 1, &e), SIZE);
            ASSERT(memcmp(data, back, SIZE) == 0);
            source_free(source);
        }
    }
    free(data);
    free(back);
}

TEST(full_disk_is_an_error)
{
    uint8_t *data = stream(4 * CHUNK);
    struct squeeze *s = NULL;
    struct px_layer layer;
    struct px_err e = {0};
    px_auto_fd int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        SKIP("there is no /dev/full");
    for (unsigned threads = 0; threads <= 2; threads++) {
        e = (struct px_err){0};
        int r = squeeze_open(fd, PX_COMPRESS_ZSTD, threads, &s, &e);
        if (r == 0)
            r = squeeze_add(s, data, 4 * CHUNK, &e);
        if (r == 0)
            r = squeeze_finish(s, &layer, &e);
        ASSERT_EQ(r, -1);
        ASSERT_EQ(e.code, PX_E_STORE_WRITE);
        ASSERT_EQ(e.sys, ENOSPC);
        squeeze_free(s);
        s = NULL;
    }
    free(data);
}

/* ---- headers, there and back ---- */

struct memory {
    uint8_t *data;
    size_t size;
    bool given;
};

static long give(void *user, const uint8_t **ret_data, struct px_err *e)
{
    struct memory *m = user;
    (void)e;
    *ret_data = m->data;
    long n = m->given ? 0 : (long)m->size;
    m->given = true;
    return n;
}

static void there_and_back(const struct entar_entry *given, struct entry *back)
{
    struct squeeze *s = NULL;
    struct px_layer layer;
    struct px_err e = {0};
    struct memory m = {.size = 64 << 10};
    struct tar t;
    px_auto_fd int fd = memfd_create("header", MFD_CLOEXEC);
    ASSERT_PX(squeeze_open(fd, PX_COMPRESS_NONE, 0, &s, &e), e);
    ASSERT_PX(entar_header(s, given, &e), e);
    ASSERT_PX(entar_end(s, &e), e);
    ASSERT_PX(squeeze_finish(s, &layer, &e), e);
    squeeze_free(s);
    m.data = calloc(1, m.size);
    ASSERT(m.data && pread(fd, m.data, m.size, 0) == (ssize_t)layer.size);
    tar_init(&t, give, &m);
    ASSERT_PX(tar_next(&t, back, &e), e);
    tar_done(&t);
    free(m.data);
}

TEST(names_of_every_length)
{
    struct entry *back = malloc(sizeof *back);
    char name[1200], target[400];
    ASSERT(back);
    for (size_t n = 1; n < sizeof name - 1; n += n < 280 ? 1 : 61) {
        for (size_t i = 0; i < n; i++)
            name[i] = i % 90 == 89 && i + 1 < n ? '/' : 'n';
        name[n] = '\0';
        size_t m = n % (sizeof target - 1) + 1;
        memset(target, 't', m);
        target[m] = '\0';
        const struct entar_entry link = {.name = name, .type = '2', .mode = 0777, .target = target};
        there_and_back(&link, back);
        ASSERT_STR(back->name, name);
        ASSERT_STR(back->target, target);
        ASSERT_EQ(back->kind, KIND_SYMLINK);
    }
    free(back);
}

TEST(sizes_beyond_octal)
{
    static const uint64_t sizes[] = {0, 1, 077777777777, 0100000000000, 1ULL << 40, (1ULL << 60) - 1};
    struct entry *back = malloc(sizeof *back);
    ASSERT(back);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct entar_entry file = {.name = "f", .type = '0', .mode = 0644, .size = sizes[i], .target = ""};
        there_and_back(&file, back);
        ASSERT_EQ(back->size, sizes[i]);
        ASSERT_EQ(back->mode, 0644);
    }
    free(back);
}

/* ---- memory that is not there ---- */

static void fill(int dir)
{
    ASSERT_OK(mkdirat(dir, "d", 0755));
    px_auto_fd int file = openat(dir, "d/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_OK(px_write_full(file, "hello", 5));
    ASSERT_OK(linkat(dir, "d/f", dir, "h", 0));
    ASSERT_OK(symlinkat("x", dir, "l"));
}

/* ---- listed files ---- */

static int pack_wanted(int tree, const char *list, size_t size, struct px_layer *ret_layer, struct px_err *e)
{
    struct wanted wanted = {0};
    px_auto_fd int text = px_fd_memory("list", list, size, 0), out = memfd_create("layer", MFD_CLOEXEC);
    int r = wanted_read(text, &wanted, e);
    const struct pack_job job = {.dir = tree, .out = out, .prefix = "app/", .compression = PX_COMPRESS_GZIP, .wanted = &wanted};
    r = r < 0 ? r : pack(&job, ret_layer, e);
    wanted_done(&wanted);
    return r;
}

TEST(lists_have_a_form)
{
    static const struct {
        const char *text;
        size_t size;
    } bad[] = {{"a", 1}, {"b\0a", 4}, {"a\0a", 4}, {"/a", 3}, {"a/", 3}, {"../a", 5}, {"a//b", 5}, {"", 1}, {"./a", 4}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        px_auto_fd int fd = px_fd_memory("list", bad[i].text, bad[i].size, 0);
        struct wanted wanted = {0};
        struct px_err e = {0};
        ASSERT_EQ(wanted_read(fd, &wanted, &e), -1);
        ASSERT_EQ(e.code, PX_E_INTERNAL);
    }
}

/* "a.b" is before "a/c", and after "a". */
TEST(lists_are_searched)
{
    static const char text[] = "a.b\0a/c\0a/d/e\0ab";
    px_auto_fd int fd = px_fd_memory("list", text, sizeof text, 0);
    struct wanted wanted = {0};
    struct px_err e = {0};
    size_t at = 9;
    ASSERT_PX(wanted_read(fd, &wanted, &e), e);
    ASSERT_EQ(wanted.count, 4);
    ASSERT_EQ(wanted_find(&wanted, "a", &at), WANT_DIRECTORY);
    ASSERT_EQ(wanted_find(&wanted, "a/d", &at), WANT_DIRECTORY);
    ASSERT_EQ(at, 9);
    ASSERT_EQ(wanted_find(&wanted, "a/d/e", &at), WANT_FILE);
    ASSERT_EQ(at, 2);
    ASSERT_EQ(wanted_find(&wanted, "ab", &at), WANT_FILE);
    ASSERT_EQ(wanted_find(&wanted, "a/d/e/f", &at), WANT_NOT);
    ASSERT_EQ(wanted_find(&wanted, "a.", &at), WANT_NOT);
    ASSERT_EQ(wanted_find(&wanted, "", &at), WANT_NOT);
    wanted_done(&wanted);
}

/* Modes, times and further names of a file make no difference; a file that went, or became something else, does. */
TEST(listed_files_are_packed_alike)
{
    px_auto_fd int one = px_test_dir(), two = px_test_dir();
    static const char list[] = "d/f\0l";
    struct px_layer first, second;
    struct px_err e = {0};
    fill(one);
    fill(two);
    ASSERT_OK(fchmodat(two, "d/f", 0600, 0));
    ASSERT_OK(fchmodat(two, "d", 0700, 0));
    ASSERT_OK(unlinkat(two, "h", 0));
    ASSERT_PX(pack_wanted(one, list, sizeof list, &first, &e), e);
    ASSERT_PX(pack_wanted(two, list, sizeof list, &second, &e), e);
    ASSERT_STR(first.digest.hex, second.digest.hex);
    ASSERT_EQ(first.entries, 4);
    ASSERT_OK(fchmodat(two, "d/f", 0744, 0));
    ASSERT_PX(pack_wanted(two, list, sizeof list, &second, &e), e);
    ASSERT(strcmp(first.digest.hex, second.digest.hex) != 0);
    ASSERT_OK(unlinkat(two, "d/f", 0));
    ASSERT_EQ(pack_wanted(two, list, sizeof list, &second, &e), -1);
    ASSERT(strstr(e.what, "'d/f': it is gone"));
    ASSERT_OK(mkdirat(two, "d/f", 0700));
    ASSERT_EQ(pack_wanted(two, list, sizeof list, &second, &e), -1);
    ASSERT(strstr(e.what, "changed while it was read"));
    ASSERT_OK(unlinkat(two, "d/f", AT_REMOVEDIR));
    ASSERT_OK(unlinkat(two, "d", AT_REMOVEDIR));
    ASSERT_OK(symlinkat(".", two, "d"));
    ASSERT_EQ(pack_wanted(two, list, sizeof list, &second, &e), -1);
}

/* ---- copies: a tar for a box, and one from it ---- */

static const struct px_unpack_limits copy_limits = {.bytes = 1 << 20, .entries = 100};

static int receive_all(int archive, int dir, uint64_t *ret_dropped, struct px_err *e)
{
    const struct receive_job job = {.archive = archive, .dir = dir, .top = "t", .limits = copy_limits};
    struct px_unpacked done = {0};
    ASSERT_EQ(lseek(archive, 0, SEEK_SET), 0);
    int r = receive(&job, &done, e);
    *ret_dropped = done.dropped;
    return r;
}

/* Modes, times and holes stay; a second name becomes a file of its own, and a link is left out. */
TEST(copies_come_back)
{
    px_auto_fd int tree = px_test_dir(), out = px_test_dir(), archive = memfd_create("tar", MFD_CLOEXEC);
    const struct timespec then[2] = {{.tv_sec = 1000}, {.tv_sec = 1234567}};
    struct px_err e = {0};
    struct stat st, other;
    uint64_t dropped;
    char text[8] = "";
    fill(tree);
    ASSERT_OK(mkfifoat(tree, "p", 0600));
    ASSERT_OK(fchmodat(tree, "d/f", 04700, 0));
    ASSERT_OK(utimensat(tree, "d/f", then, 0));
    px_auto_fd int holes = openat(tree, "holes", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_OK(ftruncate(holes, 900000));
    ASSERT_PX(send_tree(tree, "t", archive, &e), e);
    ASSERT_PX(receive_all(archive, out, &dropped, &e), e);
    ASSERT_EQ(dropped, 1);              /* the link; the pipe was never sent */
    ASSERT_OK(fstatat(out, "t/d/f", &st, AT_SYMLINK_NOFOLLOW));
    ASSERT_EQ(st.st_mode & 07777, 0700);
    ASSERT_EQ(st.st_mtime, 1234567);
    ASSERT_OK(fstatat(out, "t/h", &other, AT_SYMLINK_NOFOLLOW));
    ASSERT(other.st_ino != st.st_ino && other.st_size == 5);
    px_auto_fd int file = openat(out, "t/h", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(read(file, text, sizeof text), 5);
    ASSERT_STR(text, "hello");
    ASSERT_OK(fstatat(out, "t/holes", &st, AT_SYMLINK_NOFOLLOW));
    ASSERT(st.st_size == 900000 && st.st_blocks < 16);
    ASSERT_EQ(fstatat(out, "t/l", &st, AT_SYMLINK_NOFOLLOW), -1);
    ASSERT_EQ(fstatat(out, "t/p", &st, AT_SYMLINK_NOFOLLOW), -1);
}

/* What a box may send after "t/" and a file "t/f": all of this is refused, and nothing lies beside "t". */
TEST(copies_stay_below_their_name)
{
    static const struct {
        struct entar_entry entry;
        const char *says;
    } rows[] = {
        {{.name = "other/x", .type = '5'}, "nobody asked for"}, {{.name = "tt", .type = '0'}, "nobody asked for"},
        {{.name = "../x", .type = '0'}, "'..'"}, {{.name = "/x", .type = '0'}, "absolute"}, {{.name = "t/../x", .type = '0'}, "'..'"},
        {{.name = "t/f", .type = '0'}, "cannot write 't/f'"}, {{.name = "t/f/g", .type = '0'}, "a link or a file"},
        {{.name = "t/h", .type = '1', .target = "../x"}, "outside"}, {{.name = "t/h", .type = '1', .target = "x"}, "cannot write"},
        {{.name = "t/h", .type = '1', .target = "t"}, "cannot write"}, {{.name = "t/g", .type = '0', .size = 1 << 20}, "more to copy"},
        {{.name = "t/z", .type = 'Z'}, "does not know"},
    };
    px_auto_fd int out = px_test_dir();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        px_auto_fd int archive = memfd_create("tar", MFD_CLOEXEC);
        struct entar_entry entry = rows[i].entry;
        struct squeeze *s = NULL;
        struct px_layer layer;
        struct px_err e = {0};
        struct stat st;
        uint64_t dropped;
        entry.target = entry.target ? entry.target : "";
        entry.mode = 04777;
        ASSERT_PX(squeeze_open(archive, PX_COMPRESS_NONE, 0, &s, &e), e);
        ASSERT_PX(entar_header(s, &(struct entar_entry){.name = "t/", .type = '5', .mode = 0755, .target = ""}, &e), e);
        ASSERT_PX(entar_header(s, &(struct entar_entry){.name = "t/f", .type = '0', .size = 3, .target = ""}, &e), e);
        ASSERT_PX(squeeze_add(s, "abc", 3, &e), e);
        ASSERT_PX(entar_pad(s, 3, &e), e);
        ASSERT_PX(entar_header(s, &entry, &e), e);
        ASSERT_PX(entar_end(s, &e), e);
        ASSERT_PX(squeeze_finish(s, &layer, &e), e);
        squeeze_free(s);
        ASSERT_EQ(receive_all(archive, out, &dropped, &e), -1);
        ASSERT(strstr(e.what, rows[i].says));
        ASSERT_OK(unlinkat(out, "t/f", 0));
        ASSERT_OK(unlinkat(out, "t", AT_REMOVEDIR));
        ASSERT(fstat(out, &st) == 0 && st.st_nlink == 2);
    }
}

/* A stream without end, and one that ends early. */
TEST(copies_have_an_end)
{
    px_auto_fd int tree = px_test_dir(), out = px_test_dir(), archive = memfd_create("tar", MFD_CLOEXEC);
    struct px_err e = {0};
    uint64_t dropped;
    struct stat st;
    fill(tree);
    ASSERT_PX(send_tree(tree, "t", archive, &e), e);
    ASSERT_OK(fstat(archive, &st));
    ASSERT_OK(ftruncate(archive, 64 << 20));
    ASSERT_EQ(receive_all(archive, out, &dropped, &e), -1);
    ASSERT_EQ(e.code, PX_E_LIMIT);
    for (off_t size = 0; size < st.st_size; size += 100) {
        ASSERT_OK(px_kernel_tree_empty(out));
        ASSERT_OK(ftruncate(archive, st.st_size - 1024 - size > 0 ? st.st_size - 1024 - size : 0));
        ASSERT_EQ(receive_all(archive, out, &dropped, &e), -1);
        ASSERT_EQ(e.code, PX_E_ARCHIVE);
    }
}

TEST_DEADLINE(no_memory_at_any_moment, 120)
{
    px_auto_fd int tree = px_test_dir(), out = px_test_dir();
    fill(tree);
    for (unsigned n = 1;; n++) {
        px_auto_fd int archive = memfd_create("layer", MFD_CLOEXEC);
        const struct pack_job job = {.dir = tree, .out = archive, .prefix = "p/", .compression = PX_COMPRESS_GZIP};
        struct px_layer layer = {0};
        struct px_unpacked done;
        struct px_err e = {0};
        px_test_fail_alloc(n);
        int r = pack(&job, &layer, &e);
        if (r == 0) {
            const struct unpack_job back = {.archive = archive, .dir = out, .size = layer.size, .whiteouts = true,
                                            .alone = true, .limits = px_unpack_limits_default};
            r = unpack(&back, &done, &e);
        }
        if (r == 0)
            r = ftruncate(archive, 0) < 0 || lseek(archive, 0, SEEK_SET) < 0 ? -1 : send_tree(tree, "t", archive, &e);
        if (r == 0) {
            const struct receive_job copy = {.archive = archive, .dir = out, .top = "t", .limits = copy_limits};
            r = lseek(archive, 0, SEEK_SET) < 0 ? -1 : receive(&copy, &done, &e);
        }
        bool failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r == 0 || (failed && e.code != 0));
        ASSERT_OK(px_kernel_tree_empty(out));
        if (!failed)
            return;
    }
}
