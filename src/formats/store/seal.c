/* Whether the files of a tree are those that were hashed, without reading them: trees/ID/seal.
 *
 *     px-seal 1 16 digits NUL path NUL path NUL ...
 *
 * The paths are all directories and files of the tree, the digits a sum over the stat of each. Writing to a file
 * changes its ctime; adding, removing or replacing a name changes that of its directory, and a link can only be
 * replaced. A seal is only a cache: where it does not match, every byte is read again and the listing's hash
 * decides. It does not protect against the store's owner, who can write a seal too. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "store/store_internal.h"

/* A disk can corrupt data without a change in any inode: after this time everything is read again. */
enum { SEAL_MAX = PX_PATHS_MAX + 64, SEAL_DAYS = 30, HEAD = 27, TICK_TRIES = 200, THREADS_MAX = 8 };
enum { SLICE_MIN = 16 << 10 };

static const char seal_name[] = "seal";

/* ---- the sum ---- */

/* Each thread has its own descriptor: sharing one would contend on its reference count. */
struct part {
    int root;
    const char *at, *end;       /* paths, a NUL behind each */
    uint64_t sum;
    struct timespec newest;     /* ctime */
    int err;
};

/* One thread for each part; the caller continues meanwhile. */
struct sum {
    size_t count;
    struct part parts[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    bool started[THREADS_MAX];
};

static uint64_t mix(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 32;
}

static uint64_t mix_text(uint64_t sum, const char *text, size_t len)
{
    uint64_t word;

    for (; len >= sizeof word; text += sizeof word, len -= sizeof word) {
        memcpy(&word, text, sizeof word);
        sum = mix(sum, word);
    }
    word = 0;
    memcpy(&word, text, len);
    return mix(sum, word);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static int open_root(int tree)
{
    return (int)px_sys(SYS_openat, tree, "root", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void *add_part(void *arg)
{
    struct part *p = arg;
    struct stat st;

    p->err = p->root < 0 ? p->root : 0;
    for (const char *path = p->at; p->root >= 0 && path < p->end; ) {
        size_t len = strlen(path);
        if (fstatat(p->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            p->err = -errno;
            return NULL;
        }
        uint64_t sum = mix_text(mix(len, st.st_ino), path, len);
        sum = mix(mix(sum, (uint64_t)st.st_size), st.st_mode);
        sum = mix(mix(sum, (uint64_t)st.st_mtim.tv_sec), (uint64_t)st.st_mtim.tv_nsec);
        p->sum += mix(mix(sum, (uint64_t)st.st_ctim.tv_sec), (uint64_t)st.st_ctim.tv_nsec);
        if (is_later(&st.st_ctim, &p->newest))
            p->newest = st.st_ctim;
        path += len + 1;
    }
    return NULL;
}

static size_t part_count(size_t len)
{
    cpu_set_t cpus;
    size_t most = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (size_t)CPU_COUNT(&cpus) : 1;

    most = most > THREADS_MAX ? THREADS_MAX : most;
    return len / SLICE_MIN + 1 < most ? len / SLICE_MIN + 1 : most;
}

/* Slices of about one length, each of whole paths. */
static void cut(struct part *parts, size_t count, int tree, const char *paths, size_t len)
{
    const char *at = paths, *end = paths + len;

    for (size_t i = 0; i < count; i++) {
        const char *to = paths + len / count * (i + 1);
        to = i + 1 == count || to >= end ? end : to < at ? at : to + strlen(to) + 1;
        parts[i] = (struct part){.root = open_root(tree), .at = at, .end = to};
        at = to;
    }
}

/* Blocks all signals in the threads, so that the process's handlers run in its own threads. */
static bool start(pthread_t *thread, struct part *part)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    bool started = pthread_create(thread, NULL, add_part, part) == 0;   /* banned: sum_end joins it */
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* `paths` ends with a NUL and must stay valid until sum_end. */
static void sum_begin(struct sum *s, int tree, const char *paths, size_t len)
{
    s->count = part_count(len);
    cut(s->parts, s->count, tree, paths, len);
    for (size_t i = 0; i < s->count; i++)
        s->started[i] = start(&s->threads[i], &s->parts[i]);
}

static int sum_end(struct sum *s, struct part *ret_all)
{
    struct part all = {0};

    for (size_t i = 0; i < s->count; i++) {
        struct part *p = &s->parts[i];
        if (s->started[i])
            (void)pthread_join(s->threads[i], NULL);
        else
            (void)add_part(p);
        p->root = px_fd_close(p->root);
        all.sum += p->sum;
        all.err = all.err ? all.err : p->err;
        if (is_later(&p->newest, &all.newest))
            all.newest = p->newest;
    }
    *ret_all = all;
    return all.err;
}

static int write_head(char out[HEAD + 1], uint64_t sum)
{
    return px_fmt(out, HEAD + 1, "px-seal 1 %016llx", (unsigned long long)sum);
}

/* ---- holding ---- */

static bool is_young(const struct stat *st)
{
    struct timespec now;

    return clock_gettime(CLOCK_REALTIME, &now) == 0 && st->st_mtim.tv_sec <= now.tv_sec &&
           now.tv_sec - st->st_mtim.tv_sec < SEAL_DAYS * 24 * 3600;
}

static char *read_seal(int tree, size_t *ret_len)
{
    px_auto_fd int fd = px_store_open_own(tree, seal_name, O_RDONLY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !is_young(&st) || st.st_size <= HEAD || st.st_size > SEAL_MAX)
        return NULL;
    size_t len = (size_t)st.st_size;
    char *text = malloc(len);
    if (text && (px_read_full(fd, text, len) != (ssize_t)len || text[len - 1] != '\0')) {
        free(text);
        return NULL;
    }
    *ret_len = len;
    return text;
}

struct px_seal {
    char *text;
    struct sum sum;
};

struct px_seal *px_seal_begin(int tree)
{
    size_t len = 0;
    px_auto_free char *text = read_seal(tree, &len);
    size_t head = text ? strlen(text) + 1 : 0;
    struct px_seal *seal = head < len ? calloc(1, sizeof *seal) : NULL;

    if (!seal)
        return NULL;
    sum_begin(&seal->sum, tree, text + head, len - head);
    seal->text = px_take(&text);
    return seal;
}

bool px_seal_end(struct px_seal *seal)
{
    char head[HEAD + 1];
    struct part all;

    if (!seal)
        return false;
    bool holds = sum_end(&seal->sum, &all) == 0 && write_head(head, all.sum) >= 0 && px_equal(head, seal->text);
    free(seal->text);
    free(seal);
    return holds;
}

/* ---- making ---- */

/* Two changes within one tick of the clock leave the same time. */
static bool tick_passes(const struct timespec *newest)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct timespec now;

    for (int i = 0; i < TICK_TRIES && clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0; i++) {
        if (is_later(&now, newest))
            return true;
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

static int write_seal(const struct px_store *store, int tree, uint64_t sum, const struct px_buf *paths)
{
    px_auto_buf struct px_buf text = PX_BUF(SEAL_MAX);
    struct px_tmp tmp = {.fd = -EBADF};
    char head[HEAD + 1];

    if (write_head(head, sum) < 0 || px_buf_add(&text, head, strlen(head) + 1) < 0 ||
        px_buf_add(&text, paths->data, paths->len) < 0 || px_store_tmp_make(store, &tmp, NULL) < 0)
        return -ENOMEM;
    int r = px_store_write_new(tmp.fd, seal_name, text.data, text.len, 0600);
    if (r >= 0)
        r = (int)px_sys(SYS_renameat, tmp.fd, seal_name, tree, seal_name);
    px_store_tmp_done(store, &tmp);
    return r;
}

void px_seal_put(const struct px_store *store, int tree, const struct px_buf *paths, const struct timespec *hashed)
{
    struct sum sum;
    struct part all;

    if (paths->err < 0)
        return;
    sum_begin(&sum, tree, paths->data, paths->len);
    if (sum_end(&sum, &all) == 0 && (hashed ? is_later(hashed, &all.newest) : tick_passes(&all.newest)))
        (void)write_seal(store, tree, all.sum, paths);
}
