/* fuzz/fuzz_untar.c - archives from anywhere: whatever they hold, reading is bounded, names are clean, and nothing is
 * made but below the one directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "helpers/layer/layer.h"
#include "kernel/tree.h"

enum { BLOCKS = 48, OUTPUT_MAX = 4 << 20, ENTRIES_MAX = 1000 };

/* ---- names ---- */

static void check_clean(const char *name)
{
    CHECK(strlen(name) < NAME_SIZE && name[0] != '/');
    for (const char *p = name; *p; p += strcspn(p, "/") + (p[strcspn(p, "/")] == '/')) {
        size_t n = strcspn(p, "/");
        CHECK(n > 0 && n <= PART_MAX);
        CHECK(!(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '.' && p[1] == '.'));
    }
}

static void try_name(const uint8_t *data, size_t size)
{
    char out[NAME_SIZE], again[NAME_SIZE];
    const char *reason = NULL;
    char *text = fuzz_text(data, size);
    if (name_clean(text, size, true, out, &reason) == 0) {
        check_clean(out);
        CHECK(out[0] == '\0' || (name_clean(out, strlen(out), true, again, &reason) == 0 && strcmp(out, again) == 0));
    } else {
        CHECK(reason != NULL);
    }
    free(text);
}

static void try_pax(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct pax pax = {0};
    if (!pax_parse(text, size, false, &pax)) {
        CHECK(!pax.has_path || (pax.path_length > 0 && pax.path_length < NAME_SIZE));
        CHECK(!pax.has_linkpath || (pax.linkpath_length > 0 && pax.linkpath_length < NAME_SIZE));
    }
    pax = (struct pax){0};
    CHECK(pax_parse(text, size, true, &pax) || (!pax.has_path && !pax.has_linkpath && !pax.has_size));
    free(text);
}

/* ---- the reader, over memory ---- */

struct memory {
    const uint8_t *data;
    size_t size, at, step;
};

static long next(void *user, const uint8_t **ret_data, struct px_err *e)
{
    struct memory *m = user;
    size_t n = m->size - m->at < m->step ? m->size - m->at : m->step;
    (void)e;
    *ret_data = m->data + m->at;
    m->at += n;
    return (long)n;
}

static uint64_t read_all(const uint8_t *data, size_t size, size_t step, bool *ret_good)
{
    struct memory m = {data, size, 0, step};
    struct entry *entry = malloc(sizeof *entry);
    struct tar t;
    struct px_err e = {0};
    uint64_t sum = 0;
    int r;
    CHECK(entry != NULL);
    tar_init(&t, next, &m);
    while ((r = tar_next(&t, entry, &e)) > 0) {
        check_clean(entry->name);
        CHECK(entry->name[0] || entry->kind == KIND_DIRECTORY);
        CHECK(entry->kind == KIND_FILE || entry->size == 0);
        if (entry->kind == KIND_HARDLINK)
            check_clean(entry->target);
        sum = sum * 31 + strlen(entry->name) + entry->size + entry->mode;
    }
    CHECK(r == 0 || e.code != 0);
    tar_done(&t);
    free(entry);
    *ret_good = r == 0;
    return sum;
}

/* Headers whose sum is right get deeper than random bytes do. */
static void correct_sums(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
        unsigned sum = 0;
        memset(data + at + 148, ' ', 8);
        for (size_t i = 0; i < BLOCK; i++)
            sum += data[at + i];
        for (int i = 5; i >= 0; i--, sum >>= 3)
            data[at + 148 + (size_t)i] = (uint8_t)('0' + (sum & 7));
        data[at + 154] = '\0';
    }
}

/* Each byte of the input chooses one entry: its kind, its name, where its link leads. */
static size_t guided_archive(const uint8_t *data, size_t size, uint8_t *out)
{
    static const char kinds[] = "00012255LKxg36";
    static const char *const names[] = {"a", "a/b", "a/b/c", "..", "../x", "/x", ".wh.a", "a/.wh..wh..opq", "a/.wh.b",
                                        ".", "l", "l/x", "h"};
    static const char *const records[] = {"10 path=l\n", "14 path=../../\n", "14 linkpath=a\n", "9 size=1\n",
                                          "5 a=b\n"};
    size_t at = 0;
    memset(out, 0, BLOCKS * BLOCK);
    for (size_t i = 0; i + 2 < size && at + 4 * BLOCK <= BLOCKS * BLOCK; i += 3) {
        uint8_t *h = out + at;
        char kind = kinds[data[i] % (sizeof kinds - 1)];
        const char *name = names[data[i + 1] % 13], *target = names[data[i + 2] % 13];
        bool pax = kind == 'x' || kind == 'g', longer = kind == 'L' || kind == 'K';
        const char *text = pax ? records[data[i + 2] % 5] : longer ? target : "";
        size_t length = strlen(text) + longer;
        if (kind == '0')
            length = data[i + 2] % 2;
        memcpy(h, name, strlen(name));
        memcpy(h + 100, "0000755", 7);
        h[124 + 10] = (uint8_t)('0' + length % 8);
        h[124 + 9] = (uint8_t)('0' + length / 8);
        h[156] = (uint8_t)kind;
        if (kind == '1' || kind == '2')
            memcpy(h + 157, target, strlen(target));
        memcpy(h + 257, "ustar\0" "00", 8);
        memcpy(h + BLOCK, text, strlen(text));
        correct_sums(h, BLOCK);
        at += length ? 2 * BLOCK : BLOCK;
    }
    return at + 2 * BLOCK;
}

/* ---- on disk ---- */

/* top/in is unpacked into; top/beside must stay as it is. */
struct place {
    char top[64];
    int fd, in;
};

static const struct place *the_place(void)
{
    static struct place p = {.fd = -1};
    if (p.fd >= 0)
        return &p;
    for (int i = 0; i < 2 && p.fd < 0; i++) {
        (void)snprintf(p.top, sizeof p.top, "%s/px-untar-XXXXXX", i ? "/tmp" : "/dev/shm");
        if (mkdtemp(p.top))
            p.fd = open(p.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    CHECK(p.fd >= 0 && mkdirat(p.fd, "in", 0755) == 0);
    p.in = openat(p.fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(p.in >= 0);
    return &p;
}

static void leave(void)
{
    const struct place *p = the_place();
    (void)px_kernel_tree_empty(p->fd);
    (void)rmdir(p->top);
}

static void check_place(const struct place *p, int r, const struct px_unpacked *done, const struct px_err *e)
{
    struct stat st;
    CHECK(r == 0 || e->code != 0);
    CHECK(r < 0 || (done->bytes <= OUTPUT_MAX && done->entries <= ENTRIES_MAX));
    CHECK(fstat(p->fd, &st) == 0 && st.st_nlink == 3);  /* nothing appeared beside it */
    CHECK(px_kernel_tree_empty(p->in) == 0);
}

/* Of an image, and of a box, which may make "a" and what is below it, and no links. */
static void unpack_all(const uint8_t *data, size_t size, bool whiteouts)
{
    static bool once;
    const struct place *p = the_place();
    struct unpack_job job = {.dir = p->in, .size = size, .whiteouts = whiteouts, .alone = true,
                             .limits = {.bytes = OUTPUT_MAX, .entries = ENTRIES_MAX, .ratio = 200}};
    struct px_unpacked done;
    struct px_err e = {0};
    struct stat st;
    if (!once)
        CHECK(atexit(leave) == 0);
    once = true;
    job.archive = px_fd_memory("archive", data, size, 0);
    CHECK(job.archive >= 0);
    check_place(p, unpack(&job, &done, &e), &done, &e);
    const struct receive_job copy = {.archive = job.archive, .dir = p->in, .top = "a", .limits = job.limits};
    int r = receive(&copy, &done, &e);
    CHECK(fstatat(p->in, "a", &st, AT_SYMLINK_NOFOLLOW) < 0 || ((S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) && !(st.st_mode & 07000)));
    CHECK(fstatat(p->in, "l", &st, AT_SYMLINK_NOFOLLOW) < 0);
    check_place(p, r, &done, &e);
    (void)px_fd_close(job.archive);
}

/* ---- compressed bytes ---- */

static void try_source(const uint8_t *data, size_t size)
{
    static uint8_t out[64 << 10];
    struct source *s = NULL;
    struct px_err e = {0};
    int fd = px_fd_memory("archive", data, size, 0);
    CHECK(fd >= 0);
    if (source_open(fd, size, 200, &s, &e) == 0) {
        long n, total = 0;
        while (total < OUTPUT_MAX && (n = source_read(s, out, sizeof out, &e)) == (long)sizeof out)
            total += n;
        CHECK(source_consumed(s) <= size);
    }
    source_free(s);
    (void)px_fd_close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t archive[BLOCKS * BLOCK];
    bool one, other;
    size_t whole = size / BLOCK * BLOCK;
    uint8_t *copy = malloc(size + 1);

    CHECK(copy != NULL);
    memcpy(copy, data, size);
    try_name(data, size);
    try_pax(data, size);
    try_source(data, size);
    for (int round = 0; whole > 0 && round < 2; round++) {
        CHECK(read_all(copy, whole, BLOCK, &one) == read_all(copy, whole, whole, &other) && one == other);
        correct_sums(copy, whole);
    }
    size_t length = guided_archive(data, size, archive);
    CHECK(read_all(archive, length, BLOCK, &one) == read_all(archive, length, length, &other) && one == other);
    unpack_all(archive, length, size && data[0] & 1);
    if (size >= BLOCK)
        unpack_all(data, size, false);
    free(copy);
    return 0;
}
