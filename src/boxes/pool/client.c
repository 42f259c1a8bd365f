/* The user's side of a pool server. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <px/engine.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/handover.h"
#include "box/supervise.h"
#include "kernel/pidfd.h"
#include "pool/client.h"
#include "relay/relay.h"
#include "start/start_internal.h"

enum { ANSWER_MSEC_MAX = 60 * 1000, END_MSEC_MAX = 20 * 1000, SOCKET_IN_CHILD = 3 };

struct px_engine {
    int socket, pidfd;
};

struct px_pool {
    unsigned users;             /* its owner, and each of its boxes that is not freed yet */
    unsigned ready;
    int queue;
    uint32_t owed;              /* orders for which the queue had no room */
    struct px_policy *policy;   /* of the commands: a copy of the ordered one */
};

/* ---- the process ---- */

/* Relative to libpx when that is a shared object: ../bin/px. */
static int beside_library(char *out, size_t size)
{
    Dl_info info;
    if (!dladdr((const void *)(uintptr_t)px_engine_new, &info) || !info.dli_fname || info.dli_fname[0] != '/')
        return -1;
    const char *slash = strrchr(info.dli_fname, '/');
    static const char *const names[] = {"px", "../bin/px", "../../bin/px"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (px_fmt(out, size, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, names[i]) >= 0 && access(out, X_OK) == 0)
            return 0;
    return -1;
}

static int find_program(char *out, size_t size)
{
    if (beside_library(out, size) == 0)
        return 0;
    const char *path = getenv("PATH");
    for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p; p += strcspn(p, ":") + (p[strcspn(p, ":")] == ':')) {
        int n = (int)strcspn(p, ":");
        if (n > 0 && px_fmt(out, size, "%.*s/px", n, p) >= 0 && access(out, X_OK) == 0)
            return 0;
        if (p[n] == '\0')
            break;
    }
    return -1;
}

/* The server gets only those of the caller's variables that say where the store is. */
struct places {
    char text[2][4200];
    char *items[3];
};

static void keep_places(struct places *p)
{
    static const char *const names[] = {"PX_HOME", "HOME"};
    size_t count = 0;
    for (size_t i = 0; i < PX_COUNT_OF(names); i++) {
        const char *value = getenv(names[i]);
        if (value && px_fmt(p->text[count], sizeof p->text[count], "%s=%s", names[i], value) >= 0) {
            p->items[count] = p->text[count];
            count++;
        }
    }
    p->items[count] = NULL;
}

static int spawn(const char *program, int socket, pid_t *ret_pid)
{
    char *const argv[] = {(char *)"px", (char *)"engine", NULL};
    struct places places;
    keep_places(&places);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r = posix_spawn_file_actions_init(&actions);
    if (r)
        return -r;
    if ((r = posix_spawnattr_init(&attributes))) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -r;
    }
    sigset_t none_blocked, all;         /* the server blocks and ignores no signals, whatever the caller does */
    sigemptyset(&none_blocked);
    sigfillset(&all);
    (void)posix_spawnattr_setsigmask(&attributes, &none_blocked);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    r = posix_spawn_file_actions_adddup2(&actions, socket, SOCKET_IN_CHILD);
    if (r == 0)
        r = posix_spawn(ret_pid, program, &actions, &attributes, argv, places.items);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return -r;
}

PX_API int px_engine_new(const char *program, struct px_engine **ret_engine, struct px_err *e)
{
    PX_ERR(e);
    char found[4096];
    int ends[2];
    pid_t pid = 0;

    if (!program && find_program(found, sizeof found) < 0) {
        px_fail(e, PX_E_IO, ENOENT, "there is no program px for the engine");
        return px_fix(e, "Install px, or name the program: px_engine_new(\"/path/to/px\", ...).");
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return px_fail(e, PX_E_IO, errno, "cannot make the socket of an engine");
    px_auto_fd int ours = px_fd_above_stdio(ends[0]), theirs = px_fd_above_stdio(ends[1]);
    struct px_engine *engine = malloc(sizeof *engine);
    int r = engine ? spawn(program ? program : found, theirs, &pid) : -ENOMEM;
    if (r < 0) {
        free(engine);
        return px_fail(e, PX_E_CLONE, r, "cannot start the engine '%s'", program ? program : found);
    }
    engine->socket = px_fd_take(&ours);
    engine->pidfd = px_pidfd_open(pid);
    if (engine->pidfd < 0) {    /* no descriptor is left: the hang-up ends it, and it is reaped here */
        r = engine->pidfd;
        (void)px_fd_close(px_fd_take(&theirs));
        (void)px_fd_close(engine->socket);
        free(engine);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return px_fail(e, PX_E_IO, r, "cannot watch the engine");
    }
    *ret_engine = engine;
    return 0;
}

/* The server ends when its socket hangs up; after a limited time it is killed. */
PX_API void px_engine_free(struct px_engine *engine)
{
    if (!engine)
        return;
    engine->socket = px_fd_close(engine->socket);
    struct pollfd gone = {.fd = engine->pidfd, .events = POLLIN};
    uint64_t now = px_now_nsec(), end = now + (uint64_t)END_MSEC_MAX * 1000000;
    long r;
    do
        r = px_sys(SYS_poll, &gone, 1, (int)((end - now) / 1000000));
    while (r == -EINTR && (now = px_now_nsec()) < end);
    if (r <= 0)
        (void)px_pidfd_signal(engine->pidfd, SIGKILL);
    int status;
    (void)px_pidfd_wait(engine->pidfd, false, &status, NULL);
    (void)px_fd_close(engine->pidfd);
    free(engine);
}

/* ---- a pool ---- */

static int send_order(int socket, const struct px_pool_order *order, const struct px_buf *text, int queue)
{
    const struct iovec parts[2] = {{.iov_base = (void *)order, .iov_len = sizeof *order},
                                   {.iov_base = text->data, .iov_len = text->len}};
    return px_pass_send_parts(socket, parts, 2, &queue, 1, 0);
}

static int order(struct px_engine *engine, const struct px_policy *policy, unsigned ready, int *ret_queue, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_POOL_TEXT_MAX);
    int ends[2];
    px_policy_tell(policy, &text);
    if (text.err < 0)
        return px_fail(e, PX_E_LIMIT, 0, "the policy is too large for a pool");
    const struct px_pool_order head = {.version = PX_POOL_VERSION, .ready = ready, .length = (uint32_t)text.len};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return px_fail(e, PX_E_IO, errno, "cannot make the queue of a pool");
    px_auto_fd int ours = ends[0], theirs = ends[1];
    const int room = 1 << 20;   /* for as many as can be ready; what the system does not allow waits in the server */
    (void)px_sys(SYS_setsockopt, theirs, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    int r = send_order(engine->socket, &head, &text, theirs);
    if (r < 0)
        return px_fail(e, PX_E_GONE, r, "the engine has ended");
    *ret_queue = px_fd_take(&ours);
    return 0;
}

PX_API int px_pool_new(struct px_engine *engine, const struct px_policy *policy, unsigned ready, struct px_pool **ret_pool,
                       struct px_err *e)
{
    PX_ERR(e);
    if (ready == 0 || ready > PX_POOL_READY_MAX)
        return px_fail(e, PX_E_VALUE, 0, "a pool keeps 1 to %d boxes ready, not %u", PX_POOL_READY_MAX, ready);
    struct px_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return px_no_memory(e);
    pool->users = 1;
    pool->ready = ready;
    pool->queue = -EBADF;
    if (px_policy_copy(policy, &pool->policy, e) < 0 || order(engine, policy, ready, &pool->queue, e) < 0) {
        px_pool_free(pool);
        return -1;
    }
    *ret_pool = pool;
    return 0;
}

static void leave(struct px_pool *pool)
{
    if (__atomic_sub_fetch(&pool->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    (void)px_fd_close(pool->queue);
    px_policy_free(pool->policy);
    free(pool);
}

/* Boxes of the pool may still run, and keep the queue. The server must not fill it any more, and the boxes in it are
 * ended now. */
PX_API void px_pool_free(struct px_pool *pool)
{
    if (!pool)
        return;
    if (__atomic_load_n(&pool->users, __ATOMIC_ACQUIRE) > 1) {
        struct px_box *home = NULL;
        struct px_err e = {0};
        int r;
        (void)px_sys(SYS_shutdown, pool->queue, SHUT_RDWR);
        while ((r = px_handover_take(pool->queue, &home, &e)) > 0 || (r < 0 && e.code != PX_E_GONE))
            if (r > 0)
                px_supervise_free(home);
    }
    leave(pool);
}

/* ---- a box of the pool ---- */

/* Orders `more` boxes. Never blocks: an order that does not fit is added to the next one (pool->owed). */
static void tell(struct px_pool *pool, uint32_t more)
{
    more += __atomic_exchange_n(&pool->owed, 0, __ATOMIC_ACQ_REL);
    if (more > 0 && px_sys(SYS_sendto, pool->queue, &more, sizeof more, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0) < 0)
        (void)__atomic_add_fetch(&pool->owed, more, __ATOMIC_ACQ_REL);
}

/* The box may have died while it waited: the kernel was out of memory, or a process killed it. Its socket shows that
 * first. */
static bool is_dead(const struct px_box *home)
{
    struct pollfd hung_up = {.fd = home->control};
    return px_sys(SYS_poll, &hung_up, 1, 0) != 0;
}

/* Takes a box from the queue. If it is empty, more boxes are in use than are kept ready: then the next one is
 * ordered now, and not when this one is freed (*ret_ordered). 1; 0 if the box has died since, or could not be made;
 * -1. */
static int take_one(struct px_pool *pool, struct px_box **ret_home, bool *ret_ordered, struct px_err *e)
{
    int r = px_handover_take(pool->queue, ret_home, e);
    *ret_ordered = r == 0;
    if (r == 0) {
        tell(pool, 1);
        r = px_handover_receive(pool->queue, ANSWER_MSEC_MAX, ret_home, e) < 0 ? -1 : 1;
    }
    if (r > 0 && !is_dead(*ret_home))
        return 1;
    tell(pool, *ret_ordered ? 0 : 1);
    if (r > 0)
        px_supervise_free(*ret_home);
    return r > 0 || (!*ret_ordered && e->code != PX_E_GONE) ? 0 : -1;
}

static int take_home(struct px_pool *pool, struct px_box **ret_home, bool *ret_ordered, struct px_err *e)
{
    struct px_err local = {0};
    int r = 0;
    for (unsigned i = 0; r == 0 && i <= pool->ready; i++)
        r = take_one(pool, ret_home, ret_ordered, &local);
    if (r > 0) {
        if ((*ret_home)->record >= 0)   /* without it, results have no network part */
            (*ret_home)->carrier = px_relay_guest(&(*ret_home)->record);
        return 0;
    }
    if (local.code == 0)
        px_fail(&local, PX_E_GONE, 0, "every box of the pool has died while it waited");
    *e = local;
    return -1;
}

/* The server cleans up: the box itself may keep pid 1 busy, so pid 1 is killed, not asked. The next box is made once
 * this one is gone, not in parallel. */
static void let_go(struct px_box *box)
{
    struct px_pool *pool = box->pool;
    struct px_box *home = box->home ? box->home : box;
    bool ordered = box->ordered;
    (void)px_pidfd_signal(home->pidfd, SIGKILL);
    if (home != box)
        px_supervise_free(box);
    px_supervise_free(home);
    tell(pool, ordered ? 0 : 1);
    leave(pool);
}

static void join(struct px_pool *pool, struct px_box *box)
{
    (void)__atomic_add_fetch(&pool->users, 1, __ATOMIC_ACQ_REL);
    box->pool = pool;
    box->let_go = let_go;
}

/* The end of a box that another process reaps can still be waited for. */
static int watch_end(struct px_box *home, struct px_err *e)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = PX_EVENT_PIDFD};
    home->start_nsec = px_now_nsec();
    home->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (home->epoll < 0 || epoll_ctl(home->epoll, EPOLL_CTL_ADD, home->pidfd, &event) < 0)
        return px_fail(e, PX_E_IO, errno, "cannot watch the box");
    return 0;
}

PX_API int px_pool_stay(struct px_pool *pool, struct px_box **ret_home, struct px_err *e)
{
    PX_ERR(e);
    struct px_box *home = NULL;
    bool ordered = false;
    if (take_home(pool, &home, &ordered, e) < 0)
        return -1;
    tell(pool, ordered ? 0 : 1);        /* it may run for long */
    home->ordered = true;
    join(pool, home);
    if (watch_end(home, e) < 0) {
        let_go(home);
        return -1;
    }
    *ret_home = home;
    return 0;
}

PX_API int px_pool_box(struct px_pool *pool, const char *const argv[], const struct px_io *io, struct px_box **ret_box,
                       struct px_err *e)
{
    PX_ERR(e);
    struct px_box *home = NULL;
    bool ordered = false;
    if (take_home(pool, &home, &ordered, e) < 0)
        return -1;
    home->ordered = ordered;
    home->alone = true;
    join(pool, home);
    if (px_box_exec(home, pool->policy, argv, io, ret_box, e) < 0) {
        let_go(home);
        return -1;
    }
    (*ret_box)->pool = pool;
    (*ret_box)->let_go = let_go;
    (*ret_box)->ordered = ordered;
    return 0;
}
