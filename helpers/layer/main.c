/* px-layer: unpacks one archive into one directory, or packs one directory. It is started by transfer/layer.c, which gives
 * it a socket (3) and the descriptors that transfer/layer_wire.h names; nothing else of the machine is in its reach once
 * it is confined. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "helpers/confine.h"
#include "helpers/layer/layer.h"
#include "kernel/abi.h"
#include "transfer/layer_wire.h"

enum { SOCKET = 3, FIRST = 4, SECOND = 5, THIRD = 6, USAGE = 2, THREADS = 2 };
enum { CAP_DAC_READ_SEARCH_BIT = 2, CAP_SYS_ADMIN_BIT = 21 };
#define MEMORY_MAX (1ULL << 30)
#define FILES_MAX 512

/* ---- what each can do ---- */

#define LOOKS                                                                                                   \
    CONFINE_ALLOW(SYS_openat) CONFINE_ALLOW(SYS_openat2) CONFINE_ALLOW(SYS_newfstatat) CONFINE_ALLOW(SYS_fstat) \
    CONFINE_ALLOW(SYS_getdents64) CONFINE_ALLOW(SYS_lseek) CONFINE_ALLOW(SYS_fcntl)

static const struct sock_filter unpack_filter[] = {
    CONFINE_HEAD CONFINE_COMMON LOOKS
    CONFINE_ALLOW(SYS_pread64) CONFINE_ALLOW(SYS_mkdirat) CONFINE_ALLOW(SYS_unlinkat) CONFINE_ALLOW(SYS_symlinkat)
    CONFINE_ALLOW(SYS_linkat) CONFINE_ALLOW(SYS_utimensat) CONFINE_ALLOW(SYS_fchmod) CONFINE_ALLOW(SYS_fchmodat)
    CONFINE_TAIL
};
static const struct sock_filter receive_filter[] = {
    CONFINE_HEAD CONFINE_COMMON LOOKS
    CONFINE_ALLOW(SYS_pread64) CONFINE_ALLOW(SYS_pwrite64) CONFINE_ALLOW(SYS_ftruncate) CONFINE_ALLOW(SYS_mkdirat)
    CONFINE_ALLOW(SYS_utimensat)
    CONFINE_TAIL
};
static const struct sock_filter pack_filter[] = {
    CONFINE_HEAD CONFINE_COMMON LOOKS
    CONFINE_ALLOW(SYS_readlinkat) CONFINE_ALLOW(SYS_fgetxattr)
    CONFINE_TAIL
};

#define UNPACK_RIGHTS                                                                                           \
    (PX_LL_WRITE_FILE | PX_LL_READ_DIR | PX_LL_REMOVE_DIR | PX_LL_REMOVE_FILE | PX_LL_MAKE_DIR | PX_LL_MAKE_REG | \
     PX_LL_MAKE_SYM | PX_LL_REFER)
#define RECEIVE_RIGHTS \
    (PX_LL_READ_FILE | PX_LL_WRITE_FILE | PX_LL_TRUNCATE | PX_LL_READ_DIR | PX_LL_MAKE_DIR | PX_LL_MAKE_REG)
#define PACK_RIGHTS (PX_LL_READ_FILE | PX_LL_READ_DIR)

static int confine_unpack(int dir, uint64_t bytes)
{
    const struct confine_path path = {dir, UNPACK_RIGHTS};
    const struct confine c = {.paths = &path, .path_count = 1, .filter = unpack_filter,
                              .filter_length = PX_COUNT_OF(unpack_filter),
                              .memory_bytes = MEMORY_MAX, .file_bytes = bytes, .files = FILES_MAX};
    return confine(&c);
}

/* The files are the user's: his umask stays. */
static int confine_receive(int dir, uint64_t bytes)
{
    const struct confine_path path = {dir, RECEIVE_RIGHTS};
    const struct confine c = {.paths = &path, .path_count = 1, .filter = receive_filter,
                              .filter_length = PX_COUNT_OF(receive_filter), .umask = umask(0), /* banned: a program of its own */
                              .memory_bytes = MEMORY_MAX, .file_bytes = bytes, .files = FILES_MAX};
    return confine(&c);
}

/* What a box wrote belongs to ids of the box, and the marks of an overlay are the administrator's: root keeps what
 * reads them. The filter has no call that would make more of it. */
static int confine_pack(int dir, bool upper)
{
    const struct confine_path path = {dir, PACK_RIGHTS};
    const struct confine c = {.paths = &path, .path_count = 1, .filter = pack_filter,
                              .filter_length = PX_COUNT_OF(pack_filter), .memory_bytes = MEMORY_MAX, .files = FILES_MAX,
                              .keep_caps = 1ULL << CAP_DAC_READ_SEARCH_BIT | (upper ? 1ULL << CAP_SYS_ADMIN_BIT : 0)};
    return confine(&c);
}

/* ---- answers ---- */

static void say(struct px_layer_message *m, int flags)
{
    long r;
    do
        r = send(SOCKET, m, sizeof *m, MSG_NOSIGNAL | flags);
    while (r < 0 && errno == EINTR);
}

static void tell(void *user, uint64_t done, uint64_t total)
{
    struct px_layer_message m = {.kind = PX_LAYER_PROGRESS, .done = done, .total = total};
    (void)user;
    say(&m, MSG_DONTWAIT);      /* progress messages are dropped if the parent is slow */
}

static int answer(int r, struct px_layer_message *m, const struct px_err *e)
{
    m->kind = r < 0 ? PX_LAYER_FAILED : PX_LAYER_DONE;
    m->err = *e;
    say(m, 0);
    return r < 0 ? 1 : 0;
}

static int not_confined(int r)
{
    struct px_layer_message m = {0};
    struct px_err e = {0};
    px_fail(&e, PX_E_PRIVS, r, "px-layer cannot confine itself");
    return answer(-1, &m, &e);
}

/* ---- verbs ---- */

static int numbers(char **argv, int count, uint64_t *out)
{
    for (int i = 0; i < count; i++)
        if (px_parse_u64(argv[i], UINT64_MAX, &out[i]) < 0)
            return -1;
    return 0;
}

static int do_unpack(int argc, char **argv)
{
    struct px_layer_message m = {0};
    struct px_unpacked done = {0};
    struct px_err e = {0};
    uint64_t n[5];
    if (argc != 5 || numbers(argv, 5, n) < 0)
        return USAGE;
    const struct unpack_job job = {.archive = FIRST, .dir = SECOND, .size = n[0], .whiteouts = n[1] != 0,
                                   .limits = {.bytes = n[2], .entries = n[3], .ratio = (uint32_t)n[4]},
                                   .told = {tell, NULL}};
    int r = confine_unpack(SECOND, job.limits.bytes);
    if (r < 0)
        return not_confined(r);
    r = unpack(&job, &done, &e);
    m.packed = done.packed;
    m.diff_id = done.diff_id;
    m.packed_bytes = done.packed_bytes;
    m.bytes = done.bytes;
    m.entries = done.entries;
    m.dropped = done.dropped;
    return answer(r, &m, &e);
}

/* Like unpack, of a zip. */
static int do_unzip(int argc, char **argv)
{
    struct px_layer_message m = {0};
    struct px_unpacked done = {0};
    struct px_err e = {0};
    uint64_t n[4];
    if (argc != 4 || numbers(argv, 4, n) < 0)
        return USAGE;
    const struct unzip_job job = {.archive = FIRST, .dir = SECOND, .size = n[0],
                                  .limits = {.bytes = n[1], .entries = n[2], .ratio = (uint32_t)n[3]},
                                  .told = {tell, NULL}};
    int r = confine_unpack(SECOND, job.limits.bytes);
    if (r < 0)
        return not_confined(r);
    r = unzip(&job, &done, &e);
    m.packed = m.diff_id = done.packed;
    m.packed_bytes = done.packed_bytes;
    m.bytes = done.bytes;
    m.entries = done.entries;
    return answer(r, &m, &e);
}

static int do_receive(int argc, char **argv)
{
    struct px_layer_message m = {0};
    struct px_unpacked done = {0};
    struct px_err e = {0};
    uint64_t n[2];
    if (argc != 3 || numbers(argv, 2, n) < 0)
        return USAGE;
    const struct receive_job job = {.archive = FIRST, .dir = SECOND, .top = argv[2],
                                    .limits = {.bytes = n[0], .entries = n[1]}};
    int r = confine_receive(SECOND, job.limits.bytes);
    if (r < 0)
        return not_confined(r);
    r = receive(&job, &done, &e);
    m.dropped = done.dropped;
    return answer(r, &m, &e);
}

static int do_pack(int argc, char **argv)
{
    struct px_layer_message m = {0};
    struct px_layer layer = {0};
    struct px_err e = {0};
    enum px_compression how;
    if (argc < 3 || px_compression_parse(argv[0], &how) < 0)
        return USAGE;
    bool upper = px_equal(argv[1], "1");
    struct pack_job job = {.dir = FIRST, .out = fcntl(SECOND, F_GETFD) < 0 ? -1 : SECOND, .prefix = argv[2],
                           .upper = upper,
                           .compression = how, .skip = (const char *const *)argv + 3, .skip_count = (size_t)argc - 3,
                           .threads = THREADS, .told = {tell, NULL}};
    int r = confine_pack(FIRST, upper);
    if (r < 0)
        return not_confined(r);
    r = pack(&job, &layer, &e);
    m.packed = layer.digest;
    m.diff_id = layer.diff_id;
    m.packed_bytes = layer.size;
    m.bytes = layer.tar_size;
    m.entries = layer.entries;
    return answer(r, &m, &e);
}

static int do_pack_listed(int argc, char **argv)
{
    struct px_layer_message m = {0};
    struct px_layer layer = {0};
    struct wanted wanted = {0};
    struct px_err e = {0};
    enum px_compression how;
    if (argc != 2 || px_compression_parse(argv[0], &how) < 0)
        return USAGE;
    int r = confine_pack(FIRST, false);
    if (r < 0)
        return not_confined(r);
    const struct pack_job job = {.dir = FIRST, .out = SECOND, .prefix = argv[1], .compression = how, .threads = THREADS,
                                 .told = {tell, NULL}, .wanted = &wanted};
    r = wanted_read(THIRD, &wanted, &e) < 0 ? -1 : pack(&job, &layer, &e);
    m.packed = layer.digest;
    m.diff_id = layer.diff_id;
    m.packed_bytes = layer.size;
    m.bytes = layer.tar_size;
    m.entries = layer.entries;
    return answer(r, &m, &e);
}

static int do_send(int argc, char **argv)
{
    struct px_layer_message m = {0};
    struct px_err e = {0};
    if (argc != 1)
        return USAGE;
    int r = confine_pack(SECOND, false);
    return r < 0 ? not_confined(r) : answer(send_tree(SECOND, argv[0], FIRST, &e), &m, &e);
}

static int do_try(int argc, char **argv)
{
    if (argc != 2)
        return USAGE;
    int r = px_equal(argv[0], "receive") ? confine_receive(FIRST, 1 << 20) : confine_unpack(FIRST, 1 << 20);
    return r < 0 ? not_confined(r) : try_act(argv[1], FIRST);
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} verbs[] = {{"unpack", do_unpack}, {"unzip", do_unzip}, {"receive", do_receive}, {"pack", do_pack},
             {"pack-listed", do_pack_listed}, {"send", do_send}, {"try", do_try}};

int main(int argc, char **argv)
{
    struct px_oid warm;
    /* Files that the library opens at its first use are opened now, before the confinement; its configuration is not
     * read. */
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
    (void)px_hash_bytes("", 0, &warm);
    for (size_t i = 0; argc > 1 && i < PX_COUNT_OF(verbs); i++)
        if (px_equal(verbs[i].name, argv[1]))
            _exit(verbs[i].run(argc - 2, argv + 2));    /* nothing is left to be flushed or freed */
    (void)fprintf(stderr, "px-layer: a part of px, not for people\n");
    return USAGE;
}
