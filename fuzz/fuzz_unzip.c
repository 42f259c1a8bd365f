/* fuzz/fuzz_unzip.c - zip archives from anywhere: reading is bounded, names are clean and each there once, entries
 * do not overlap, and nothing is made but below the one directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "helpers/layer/layer.h"
#include "kernel/tree.h"

enum { OUTPUT_MAX = 1 << 20, ENTRIES_MAX = 200, ARCHIVE_MAX = 8 << 10 };

static const struct px_unpack_limits limits = {.bytes = OUTPUT_MAX, .entries = ENTRIES_MAX, .ratio = 200};

/* top/in is unpacked into; nothing may appear beside it. */
static struct place {
    char top[64];
    int fd, in;
} place = {.fd = -1};

static void leave(void)
{
    (void)px_kernel_tree_empty(place.fd);
    (void)rmdir(place.top);
}

static void enter(void)
{
    for (int i = 0; i < 2 && place.fd < 0; i++) {
        (void)snprintf(place.top, sizeof place.top, "%s/px-unzip-XXXXXX", i ? "/tmp" : "/dev/shm");
        if (mkdtemp(place.top))
            place.fd = open(place.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    CHECK(place.fd >= 0 && mkdirat(place.fd, "in", 0755) == 0);
    place.in = openat(place.fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(place.in >= 0 && atexit(leave) == 0);
}

static void check_list(const struct zip *z)
{
    uint64_t end = 0, sum = 0;
    CHECK(z->count <= ENTRIES_MAX);
    for (size_t i = 0; i < z->count; i++) {
        const char *name = z->names + z->entries[i].name;
        CHECK(strlen(name) == z->entries[i].name_length && name[0] != '/' && name[0] && !strstr(name, "//"));
        CHECK(strncmp(name, "../", 3) != 0 && !strstr(name, "/../") && strcmp(name, "..") != 0);
        CHECK(z->entries[i].at >= end && z->entries[i].packed < z->size);
        end = z->entries[i].at + 1 + z->entries[i].packed;
        sum += z->entries[i].size;
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(name, z->names + z->entries[k].name) != 0);
    }
    CHECK(sum <= OUTPUT_MAX);
}

static void try_archive(const uint8_t *data, size_t size)
{
    struct unzip_job job = {.dir = place.in, .size = size, .limits = limits};
    struct px_unpacked done;
    struct px_err e = {0};
    struct stat st;
    struct zip z;
    job.archive = px_fd_memory("archive", data, size, 0);
    CHECK(job.archive >= 0);
    if (zip_open(job.archive, size, &limits, &z, &e) == 0) {
        check_list(&z);
        zip_done(&z);
        int r = unzip(&job, &done, &e);
        CHECK(r == 0 ? done.bytes <= OUTPUT_MAX && done.entries <= ENTRIES_MAX : e.code != 0);
        CHECK(fstat(place.fd, &st) == 0 && st.st_nlink == 3);
        CHECK(px_kernel_tree_empty(place.in) == 0);
    } else {
        CHECK(e.code != 0 && e.what[0] && e.fix[0]);
    }
    (void)px_fd_close(job.archive);
}

/* ---- archives that are almost right: three bytes of the input choose an entry, a fourth what is wrong with it ---- */

struct draft {
    uint8_t bytes[ARCHIVE_MAX];
    size_t size;
};

static void put(struct draft *d, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes && d->size < ARCHIVE_MAX; i++, value >>= 8)
        d->bytes[d->size++] = (uint8_t)value;
}

static void put_text(struct draft *d, const char *text)
{
    for (; *text; text++)
        put(d, (uint8_t)*text, 1);
}

static const char *const names[] = {"a", "a/", "a/b", "b",   "../x", "/x",   "a/../b", "c",
                                    "d", "e",  "f/g", "\\x", "f/",   "x//y", ".",      "h"};

/* Signature, what both headers have in common, name. `wrong` spoils a field in one of them. */
static void put_header(struct draft *d, const uint8_t *b, bool listed, uint32_t at, unsigned wrong)
{
    const char *name = names[b[0] % 16];
    bool lazy = b[1] & 1, stored = name[strlen(name) - 1] == '/';
    unsigned size = stored ? 0 : 1;
    put(d, listed ? 0x02014b50 : 0x04034b50, 4);
    put(d, listed ? 0x0314 : 20, listed ? 2 : 0);
    put(d, 20, 2);
    put(d, (lazy ? 8U : 0) ^ (wrong == 1 ? 0x800U : 0), 2);
    put(d, wrong == 2 ? 8 : 0, 2);
    put(d, 0x210000, 4);
    put(d, (lazy && !listed ? 0 : size ? 0xe8b7be43 : 0) + (wrong == 3), 4);    /* of "a" */
    put(d, (lazy && !listed ? 0 : size) + (wrong == 4), 4);
    put(d, (lazy && !listed ? 0 : size) + (wrong == 5 ? b[2] : 0), 4);
    put(d, strlen(name), 2);
    put(d, 0, 2);
    if (listed) {
        put(d, 0, 6);
        put(d, (uint32_t)(stored ? 0040755 : wrong == 6 ? 0120777 : 0100644) << 16, 4);
        put(d, at + (wrong == 7), 4);
    }
    put_text(d, name);
}

static void make_archive(struct draft *d, const uint8_t *data, size_t size)
{
    uint32_t at[16];
    size_t count = size / 4 < 16 ? size / 4 : 16;
    d->size = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *b = data + 4 * i;
        bool empty = names[b[0] % 16][strlen(names[b[0] % 16]) - 1] == '/';
        at[i] = (uint32_t)d->size;
        put_header(d, b, false, 0, b[3] % 32);
        put_text(d, empty ? "" : "a");
        if (b[1] & 1) {
            put(d, empty ? 0 : 0xe8b7be43, 4);
            put(d, !empty, 4);
            put(d, !empty, 4);
        }
    }
    size_t list = d->size;
    for (size_t i = 0; i < count; i++)
        put_header(d, data + 4 * i, true, at[i], data[4 * i + 3] / 32);
    size_t length = d->size - list;
    put(d, 0x06054b50, 4);
    put(d, 0, 4);
    put(d, count, 2);
    put(d, count, 2);
    put(d, length, 4);
    put(d, list, 4);
    put(d, 0, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct draft d;
    if (place.fd < 0)
        enter();
    try_archive(data, size);
    make_archive(&d, data, size);
    try_archive(d.bytes, d.size);
    for (size_t i = 0; i + 1 < size && i < 8 && d.size > 0; i += 2)
        d.bytes[(data[i] * 37U + data[i + 1]) % d.size] ^= data[i];
    try_archive(d.bytes, d.size);
    return 0;
}
