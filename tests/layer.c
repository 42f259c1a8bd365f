/* tests/layer.c - layers by their C interface, for tests/archives/run.py: one verb, its words, an answer on one line.
 *
 * `ok ...` and status 0, or `PXnnn what happened` and status 1. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/sandbox.h>

#include "base/err.h"
#include "helper/helper.h"
#include "transfer/layer.h"

static int said(const struct px_err *e)
{
    (void)printf("PX%03d %s; %s\n", e->code, e->what, e->why);
    return 1;
}

static int open_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(3);
    }
    return fd;
}

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

/* unpack ARCHIVE DIR WHITEOUTS [BYTES ENTRIES RATIO [SIZE]] */
static int do_unpack(int argc, char **argv)
{
    struct px_unpack_limits limits = px_unpack_limits_default;
    struct px_unpacked done;
    struct px_err e = {0};
    struct stat st;
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    if (argc >= 6)
        limits = (struct px_unpack_limits){number(argv[3]), number(argv[4]), (uint32_t)number(argv[5])};
    if (fd < 0 || fstat(fd, &st) < 0)
        return 3;
    uint64_t size = argc >= 7 ? number(argv[6]) : (uint64_t)st.st_size;
    if (px_layer_unpack(fd, size, open_dir(argv[1]), argv[2][0] == '1', &limits, (struct px_progress_to){0}, &done,
                        &e) < 0)
        return said(&e);
    (void)printf("ok %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", done.packed.hex, done.diff_id.hex,
                 done.packed_bytes, done.bytes, done.entries, done.dropped);
    return 0;
}

/* unzip ARCHIVE DIR [BYTES ENTRIES RATIO] */
static int do_unzip(int argc, char **argv)
{
    struct px_unpack_limits limits = px_unpack_limits_default;
    struct px_unpacked done;
    struct px_err e = {0};
    struct stat st;
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    if (argc >= 5)
        limits = (struct px_unpack_limits){number(argv[2]), number(argv[3]), (uint32_t)number(argv[4])};
    if (fd < 0 || fstat(fd, &st) < 0)
        return 3;
    if (px_layer_unzip(fd, (uint64_t)st.st_size, open_dir(argv[1]), &limits, (struct px_progress_to){0}, &done, &e) < 0)
        return said(&e);
    (void)printf("ok %s %" PRIu64 " %" PRIu64 "\n", done.packed.hex, done.bytes, done.entries);
    return 0;
}

/* pack HOME DIR PREFIX UPPER FORMAT [SKIP...]; HOME "-": only its name */
static int do_pack(int argc, char **argv)
{
    struct px_pack pack = {.dirfd = open_dir(argv[1]), .prefix = argv[2][0] ? argv[2] : NULL,
                           .upper = argv[3][0] == '1',
                           .skip = argc > 5 ? (const char *const *)argv + 5 : NULL};
    struct px_layer layer = {0};
    struct px_store *store = NULL;
    struct px_err e = {0};
    if (px_compression_parse(argv[4], &pack.compression) < 0)
        return 3;
    if (strcmp(argv[0], "-") == 0) {
        if (px_layer_diff_id(&pack, &layer.diff_id, &e) < 0)
            return said(&e);
        (void)printf("ok %s\n", layer.diff_id.hex);
        return 0;
    }
    int r = px_store_open(argv[0], &store, &e);
    if (r == 0)
        r = px_layer_pack(store, &pack, (struct px_progress_to){0}, &layer, &e);
    px_store_close(store);
    if (r < 0)
        return said(&e);
    (void)printf("ok %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", layer.digest.hex, layer.diff_id.hex, layer.size,
                 layer.tar_size, layer.entries);
    return 0;
}

/* list DIR */
static int do_list(int argc, char **argv)
{
    struct px_listing listing;
    struct px_err e = {0};
    (void)argc;
    if (px_listing_tree(open_dir(argv[0]), NULL, &listing, &e) < 0)
        return said(&e);
    (void)printf("ok %s %" PRIu64 " %" PRIu64 "\n", listing.oid.hex, listing.files, listing.bytes);
    return 0;
}

/* root HOME ROOTFS: its directory; the lease ends with the input */
static int do_root(int argc, char **argv)
{
    struct px_sandbox *sandbox = NULL;
    struct px_root_lease *lease = NULL;
    struct px_err e = {0};
    char *dir = NULL, byte;
    (void)argc;
    if (px_sandbox_open(argv[0], &sandbox, &e) < 0 || px_sandbox_root(sandbox, NULL, argv[1], &dir, &lease, &e) < 0)
        return said(&e);
    px_sandbox_close(sandbox);
    (void)printf("ok %s\n", dir);
    (void)fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    px_root_lease_free(lease);
    free(dir);
    return 0;
}

/* gc HOME: how many trees went */
static int do_gc(int argc, char **argv)
{
    struct px_gc gc = {.unnamed = true};
    struct px_store *store = NULL;
    struct px_err e = {0};
    (void)argc;
    int r = px_store_open(argv[0], &store, &e);
    if (r == 0)
        r = px_store_gc(store, &gc, &e);
    px_store_close(store);
    if (r < 0)
        return said(&e);
    (void)printf("ok %" PRIu64 "\n", gc.trees);
    return 0;
}

/* try JOB ACT DIR: the errno that the act gave inside px-layer's confinement for that job */
static int do_try(int argc, char **argv)
{
    const char *const args[] = {"try", argv[0], argv[1], NULL};
    struct px_helper h;
    struct px_err e = {0};
    char byte;
    int dir = open_dir(argv[2]);
    (void)argc;
    if (px_helper_start("px-layer", args, &dir, 1, &h, &e) < 0)
        return said(&e);
    while (px_helper_receive(&h, &byte, 1, NULL, 60000) > 0)
        ;
    int status = px_helper_done(&h);
    (void)printf("ok %d\n", status);
    return 0;
}

static const struct {
    const char *name;
    int least;
    int (*run)(int argc, char **argv);
} verbs[] = {{"unpack", 3, do_unpack}, {"unzip", 2, do_unzip}, {"pack", 5, do_pack}, {"list", 1, do_list},
             {"root", 2, do_root},     {"gc", 1, do_gc},     {"try", 3, do_try}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(argv[1], verbs[i].name) == 0 && argc - 2 >= verbs[i].least)
            return verbs[i].run(argc - 2, argv + 2);
    (void)fprintf(stderr, "usage: layer unpack|unzip|pack|list|root|gc|try WORD...\n");
    return 2;
}
