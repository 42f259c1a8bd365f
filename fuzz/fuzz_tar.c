/* fuzz/fuzz_tar.c - archives from a box: whatever they hold, what reaches the host is bounded, relative and clean. */
#include <stdbool.h>
#include <string.h>

#include <px/px.h>

#include "fuzz.h"
#include "named/tar.h"

struct seen {
    bool open;
    uint64_t left, entries;
};

static void check_name(const char *name)
{
    size_t len = strlen(name);

    CHECK(len > 0 && len < PX_TAR_NAME_MAX && name[0] != '/' && name[len - 1] != '/');
    for (const char *p = name; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL) {
        size_t n = strcspn(p, "/");

        CHECK(n > 0 && n <= 255);
        CHECK(!(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '.' && p[1] == '.'));
    }
}

static int on_begin(void *user, const struct px_tar_entry *entry, struct px_err *e)
{
    struct seen *s = user;

    (void)e;
    CHECK(!s->open);
    CHECK((entry->mode & ~0777u) == 0);
    check_name(entry->name);
    if (entry->type == PX_TAR_LINK)
        check_name(entry->target);
    s->open = entry->type == PX_TAR_FILE;
    s->left = s->open ? entry->size : 0;
    s->entries++;
    return 0;
}

static int on_data(void *user, const char *data, size_t size, struct px_err *e)
{
    struct seen *s = user;

    (void)e;
    (void)data;
    CHECK(s->open && size > 0 && size <= s->left);
    s->left -= size;
    return 0;
}

static int on_end(void *user, struct px_err *e)
{
    struct seen *s = user;

    (void)e;
    CHECK(s->open && s->left == 0);
    s->open = false;
    return 0;
}

/* Headers whose sum is right get deeper than random bytes do. */
static void correct_sums(unsigned char *data, size_t size)
{
    for (size_t at = 0; at + PX_TAR_BLOCK <= size; at += PX_TAR_BLOCK) {
        unsigned sum = 0;

        memset(data + at + 148, ' ', 8);
        for (size_t i = 0; i < PX_TAR_BLOCK; i++)
            sum += data[at + i];
        for (int i = 5; i >= 0; i--, sum >>= 3)
            data[at + 148 + (size_t)i] = (unsigned char)('0' + (sum & 7));
    }
}

/* Headers of one or two bytes each: kinds, names and sizes that matter, in any order. */
static size_t guided_archive(const uint8_t *data, size_t size, unsigned char *out, size_t room)
{
    static const char types[] = "0005L1Kx27g";
    static const char *const texts[] = {"a",  "a/b",     "../x",        "/etc",           "./a//c/",      "",
                                        "..", "a/../..", "9 path=z\n", "11 path=../\n", "10 size=3\n"};
    size_t at = 0;

    for (size_t i = 0; i + 1 < size && at + 2 * PX_TAR_BLOCK <= room; i += 2) {
        const char *text = texts[data[i] % 11];
        unsigned char *block = out + at;
        char type = types[data[i + 1] % (sizeof types - 1)];
        size_t length = strchr("LKx", type) ? strlen(text) : data[i + 1] >> 4;

        memset(block, 0, 2 * PX_TAR_BLOCK);
        memcpy(block, strchr("LKx", type) ? "long" : text, strchr("LKx", type) ? 4 : strlen(text));
        memcpy(block + 100, data[i] & 1 ? "0006755" : "0000644", 7);
        block[124 + 10] = (unsigned char)('0' + length % 8);
        block[124 + 9] = (unsigned char)('0' + length / 8);
        memset(block + 124, '0', 9);
        block[156] = (unsigned char)type;
        memcpy(block + 157, texts[data[i] / 11 % 11], strlen(texts[data[i] / 11 % 11]));
        if (strchr("LKx", type))
            memcpy(block + PX_TAR_BLOCK, text, length);
        correct_sums(block, PX_TAR_BLOCK);
        at += length && !strchr("125", type) ? 2 * PX_TAR_BLOCK : PX_TAR_BLOCK;
    }
    return at;
}

static uint64_t read_all(const unsigned char *data, size_t size, size_t step, bool *ret_good)
{
    struct seen s = {0};
    const struct px_tar_sink sink = {on_begin, on_data, on_end, &s};
    struct px_tar_reader *r = malloc(sizeof *r);
    struct px_err e = {0};
    int result = 0;

    CHECK(r != NULL);
    px_tar_reader_init(r, &sink);
    for (size_t at = 0; at < size && result == 0; at += step)
        result = px_tar_read(r, (const char *)data + at, size - at < step ? size - at : step, &e);
    if (result == 0)
        result = px_tar_read_end(r, &e);
    CHECK(result == 0 || e.code != 0);
    CHECK(result != 0 || !s.open);
    px_tar_reader_done(r);
    free(r);
    *ret_good = result == 0;
    return s.entries;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *copy = malloc(size + 1);
    size_t step = size ? data[0] % 64 + 1 : 1;
    bool one, other;

    CHECK(copy != NULL);
    memcpy(copy, data, size);
    for (int round = 0; round < 2; round++) {
        CHECK(read_all(copy, size, step, &one) == read_all(copy, size, size + 1, &other) && one == other);
        correct_sums(copy, size);
    }
    free(copy);
    static unsigned char archive[64 * PX_TAR_BLOCK];
    size_t length = guided_archive(data, size, archive, sizeof archive);
    CHECK(read_all(archive, length, step, &one) == read_all(archive, length, length + 1, &other) && one == other);
    return 0;
}
