/* named/test_tar.c - tar in both directions, and archives that mean harm. */
#include "named/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

/* ---- a sink that writes down what it gets ---- */

struct notes {
    struct px_buf text;
    char name[PX_TAR_NAME_MAX];
    uint64_t left;
};

static int on_begin(void *user, const struct px_tar_entry *entry, struct px_err *e)
{
    struct notes *n = user;
    (void)e;
    px_buf_printf(&n->text, "%c %o %s", "fdl"[entry->type], entry->mode, entry->name);
    if (entry->type == PX_TAR_LINK)
        px_buf_printf(&n->text, " = %s", entry->target);
    px_buf_putc(&n->text, entry->type == PX_TAR_FILE ? ' ' : '\n');
    n->left = entry->size;
    return 0;
}

static int on_data(void *user, const char *data, size_t size, struct px_err *e)
{
    struct notes *n = user;
    (void)e;
    ASSERT(size <= n->left);
    n->left -= size;
    px_buf_add(&n->text, data, size);
    return 0;
}

static int on_end(void *user, struct px_err *e)
{
    struct notes *n = user;
    (void)e;
    ASSERT_EQ(n->left, 0);
    px_buf_puts(&n->text, ";\n");
    return 0;
}

/* Reads it in pieces of `step`; the notes, or NULL after an error. */
static char *notes_of(const char *data, size_t size, size_t step, uint64_t *ret_skipped, struct px_err *e)
{
    struct notes n = {.text = PX_BUF(1 << 20)};
    struct px_tar_reader *r = malloc(sizeof *r);
    const struct px_tar_sink sink = {on_begin, on_data, on_end, &n};
    ASSERT(r != NULL);
    px_tar_reader_init(r, &sink);
    int result = 0;
    for (size_t at = 0; at < size && result >= 0; at += step)
        result = px_tar_read(r, data + at, size - at < step ? size - at : step, e);
    if (result >= 0)
        result = px_tar_read_end(r, e);
    if (ret_skipped)
        *ret_skipped = r->skipped;
    px_tar_reader_done(r);
    free(r);
    px_buf_putc(&n.text, '\0');
    char *text = result < 0 ? NULL : px_buf_take(&n.text);
    px_buf_done(&n.text);
    return text;
}

/* ---- archives by hand ---- */

struct archive {
    struct px_buf bytes;
};

static void add_block(struct archive *a, const char *name, char type, const char *link, unsigned mode, uint64_t size)
{
    char block[PX_TAR_BLOCK] = {0}, text[24];
    unsigned sum = 0;
    memcpy(block, name, strnlen(name, 100));
    (void)snprintf(block + 100, 8, "%07o", mode);
    (void)snprintf(text, sizeof text, "%011llo", (unsigned long long)size);
    memcpy(block + 124, text, 12);
    memcpy(block + 136, "00000000001", 12);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 157, link, strnlen(link, 100));
    memcpy(block + 257, "ustar\00000", 8);
    for (int i = 0; i < PX_TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    (void)snprintf(block + 148, 8, "%06o", sum);
    px_buf_add(&a->bytes, block, sizeof block);
}

static void add(struct archive *a, const char *name, char type, const char *link, unsigned mode, const char *data)
{
    char zero[PX_TAR_BLOCK] = {0};
    size_t n = strlen(data);
    add_block(a, name, type, link, mode, n);
    px_buf_add(&a->bytes, data, n);
    if (n % PX_TAR_BLOCK)
        px_buf_add(&a->bytes, zero, PX_TAR_BLOCK - n % PX_TAR_BLOCK);
}

static void end_archive(struct archive *a)
{
    char zero[2 * PX_TAR_BLOCK] = {0};
    px_buf_add(&a->bytes, zero, sizeof zero);
    ASSERT_EQ(a->bytes.err, 0);
}

static void expect(struct archive *a, const char *want)
{
    static const size_t steps[] = {1, 7, 512, 4096, 1 << 20};
    end_archive(a);
    for (size_t i = 0; i < PX_COUNT_OF(steps); i++) {
        struct px_err e = {0};
        char *text = notes_of(a->bytes.data, a->bytes.len, steps[i], NULL, &e);
        if (want)
            ASSERT_STR(text, want);
        else
            ASSERT(text == NULL && e.code != 0);
        free(text);
    }
    px_buf_done(&a->bytes);
}

#define ARCHIVE() {.bytes = PX_BUF(1 << 20)}

TEST(files_and_directories)
{
    struct archive a = ARCHIVE();
    add(&a, "./top/", '5', "", 0755, "");
    add(&a, "./top/f", '0', "", 0644, "content\n");
    add(&a, "top//./g", '\0', "", 04755, "");
    add(&a, "top/h", '1', "./top/f", 0600, "");
    expect(&a, "d 755 top\nf 644 top/f content\n;\nf 755 top/g ;\nl 600 top/h = top/f\n");
}

TEST(what_is_left_out)
{
    struct archive a = ARCHIVE();
    uint64_t skipped = 0;
    struct px_err e = {0};
    add(&a, "l", '2', "/etc/passwd", 0777, "");
    add(&a, "c", '3', "", 0666, "");
    add(&a, "b", '4', "", 0666, "");
    add(&a, "p", '6', "", 0666, "");
    add(&a, "?", 'Z', "", 0666, "unknown, with content");
    add(&a, "./", '5', "", 0755, "");
    add(&a, "f", '0', "", 0600, "x");
    end_archive(&a);
    char *text = notes_of(a.bytes.data, a.bytes.len, 100, &skipped, &e);
    ASSERT_STR(text, "f 600 f x;\n");
    ASSERT_EQ(skipped, 5);
    free(text);
    px_buf_done(&a.bytes);
}

TEST(names_that_lead_out)
{
    static const char *const bad[] = {"../x", "/etc/passwd", "a/../../x", "a/..", "..", "./../x", "a/b/../c"};
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++) {
        struct archive a = ARCHIVE(), b = ARCHIVE(), c = ARCHIVE(), d = ARCHIVE();
        add(&a, bad[i], '0', "", 0644, "x");
        expect(&a, NULL);
        add(&b, "f", '0', "", 0644, "x");
        add(&b, "g", '1', bad[i], 0644, "");            /* a second name for something outside */
        expect(&b, NULL);
        add(&c, "././@LongLink", 'L', "", 0644, bad[i]);
        add(&c, "fine", '0', "", 0644, "x");
        expect(&c, NULL);
        char pax[64];
        (void)snprintf(pax, sizeof pax, "%02zu path=%s\n", strlen(bad[i]) + 9, bad[i]);
        add(&d, "PaxHeaders/x", 'x', "", 0644, pax);
        add(&d, "fine", '0', "", 0644, "x");
        expect(&d, NULL);
    }
}

TEST(long_names)
{
    char name[300], pax[400], want[800];
    memset(name, 'n', sizeof name);
    memcpy(name + 140, "/", 1);
    name[250] = '\0';
    (void)snprintf(pax, sizeof pax, "%zu path=%s\n", strlen(name) + 10, name);
    (void)snprintf(want, sizeof want, "f 644 %s x;\nf 644 %s y;\nf 644 plain z;\n", name, name);
    struct archive a = ARCHIVE();
    add(&a, "././@LongLink", 'L', "", 0644, name);
    add(&a, "short", '0', "", 0644, "x");
    add(&a, "PaxHeaders/x", 'x', "", 0644, pax);
    add(&a, "short", '0', "", 0644, "y");
    add(&a, "plain", '0', "", 0644, "z");       /* what was said ahead counted once */
    expect(&a, want);
}

TEST(archives_that_are_broken)
{
    struct archive good = ARCHIVE();
    struct px_err e = {0};
    add(&good, "f", '0', "", 0644, "0123456789");
    for (size_t i = 1; i < good.bytes.len; i += 13) {   /* cut off anywhere */
        char *text = notes_of(good.bytes.data, i, 64, NULL, &e);
        ASSERT(text == NULL || i >= 522);
        free(text);
    }
    for (int i = 0; i < PX_TAR_BLOCK; i++) {            /* any byte of a header changed */
        good.bytes.data[i] ^= 0x15;
        char *text = notes_of(good.bytes.data, good.bytes.len, 512, NULL, &e);
        ASSERT(text == NULL || (i >= 148 && i < 156));
        free(text);
        good.bytes.data[i] ^= 0x15;
    }
    px_buf_done(&good.bytes);
    struct archive a = ARCHIVE(), b = ARCHIVE(), c = ARCHIVE();
    add_block(&a, "long", 'L', "", 0644, 1ull << 32);
    expect(&a, NULL);
    add_block(&b, "f", '0', "", 0644, 1ull << 32);      /* announces more than comes */
    expect(&b, NULL);
    static const char *const pax[] = {"x",           "5 a=b\n",    "99 path=x\n",   "0 path=x\n",
                                      "11 path x\n", "10 path=xy", "12 size=-1\n\n", "13 size=1e99\n"};
    for (size_t i = 0; i < PX_COUNT_OF(pax); i++) {
        struct archive p = ARCHIVE();
        add(&p, "x", 'x', "", 0644, pax[i]);
        add(&p, "f", '0', "", 0644, "");
        expect(&p, NULL);
    }
    char deep[3000] = "";
    for (int i = 0; i < PX_TAR_DEPTH_MAX + 2; i++)
        (void)snprintf(deep + 2 * i, 4, "d/");
    add(&c, "l", 'L', "", 0644, deep);
    add(&c, "f", '5', "", 0644, "");
    expect(&c, NULL);
}

/* ---- there and back ---- */

static int write_file(int dir, const char *name, const char *text, mode_t mode)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    ASSERT(fd >= 0);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
    ASSERT_EQ(fchmod(fd, mode), 0);
    close(fd);
    return 0;
}

static char *archive_of(int fd, const char *name, size_t step, size_t *ret_size)
{
    struct px_tar_writer *w = NULL;
    struct px_err e = {0};
    px_auto_buf struct px_buf all = PX_BUF(16 << 20);
    char *chunk = malloc(step);
    long n;
    ASSERT(chunk != NULL);
    ASSERT_PX(px_tar_writer_new(fd, name, &w, &e), e);
    while ((n = px_tar_write(w, chunk, step, &e)) > 0)
        px_buf_add(&all, chunk, (size_t)n);
    ASSERT_PX(n, e);
    px_tar_writer_free(w);
    free(chunk);
    *ret_size = all.len;
    ASSERT_EQ(all.len % PX_TAR_BLOCK, 0);
    return px_buf_take(&all);
}

TEST(a_tree_there_and_back)
{
    static const size_t steps[] = {1, 100, 512, 65536};
    int dir = px_test_dir();
    char name[256];
    ASSERT_EQ(mkdirat(dir, "t", 0755), 0);
    px_auto_fd int top = openat(dir, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    memset(name, 'z', 200);
    name[200] = '\0';
    ASSERT_EQ(fchmod(top, 0755), 0);
    write_file(top, "a", "hello\n", 04711);
    ASSERT_EQ(symlinkat("/etc/passwd", top, "link"), 0);
    ASSERT_EQ(mkfifoat(top, "fifo", 0600), 0);
    ASSERT_EQ(mkdirat(top, name, 0700), 0);
    px_auto_fd int below = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    write_file(below, "b", "", 0600);
    for (size_t i = 0; i < PX_COUNT_OF(steps); i++) {
        size_t size;
        struct px_err e = {0};
        uint64_t skipped = 0;
        char *data = archive_of(openat(dir, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "new", steps[i], &size), want[1000];
        char *text = notes_of(data, size, 1000, &skipped, &e);
        (void)snprintf(want, sizeof want, "f 600 new/%s/b ;\n", name);
        ASSERT(text && strstr(text, "d 755 new\n") == text && strstr(text, "f 711 new/a hello\n;\n") && strstr(text, want));
        ASSERT_EQ(skipped, 1);          /* the link is in it, and the reader leaves it out; the pipe never was */
        free(text);
        free(data);
    }
    close(dir);
}

TEST(one_file_there_and_back)
{
    size_t size;
    struct px_err e = {0};
    int dir = px_test_dir();
    write_file(dir, "f", "just this", 0640);
    char *data = archive_of(openat(dir, "f", O_RDONLY | O_CLOEXEC), "g", 64, &size), *text = notes_of(data, size, 64, NULL, &e);
    ASSERT_STR(text, "f 640 g just this;\n");
    free(text);
    free(data);
    close(dir);
}

TEST(what_cannot_be_written)
{
    struct px_tar_writer *w = NULL;
    struct px_err e = {0};
    int ends[2];
    ASSERT_OK(px_pipe(ends));
    ASSERT_EQ(px_tar_writer_new(ends[0], "p", &w, &e), -1);     /* takes it all the same */
    close(ends[1]);
    char name[PX_TAR_NAME_MAX + 10];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    ASSERT_EQ(px_tar_writer_new(open("/etc/passwd", O_RDONLY | O_CLOEXEC), name, &w, &e), -1);
    ASSERT_EQ(e.code, PX_E_LIMIT);
    px_tar_writer_free(NULL);
}
