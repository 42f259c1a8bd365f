/* The user's side of an engine. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <px/engine.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "box/home.h"
#include "box/supervise.h"
#include "engine/pool.h"
#include "engine/stay.h"
#include "kernel/pidfd.h"

enum { ANSWER_MSEC_MAX = 60 * 1000, END_MSEC_MAX = 20 * 1000, SOCKET_IN_CHILD = 3 };

struct px_engine {
    int socket, pidfd;
};

struct px_pool {
    int queue;
    struct px_policy *policy;   /* of the commands: a copy of what was ordered */
};

/* ---- the process ---- */

/* Beside libpx when that is a shared object: ../bin/px. */
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

static int spawn(const char *program, int socket, pid_t *ret_pid)
{
    char *const argv[] = {(char *)"px", (char *)"engine", NULL};
    char *const none[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r = posix_spawn_file_actions_init(&actions);
    if (r == 0)
        r = posix_spawnattr_init(&attributes);
    if (r)
        return -r;
    sigset_t all;
    sigemptyset(&all);
    (void)posix_spawnattr_setsigmask(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    r = posix_spawn_file_actions_adddup2(&actions, socket, SOCKET_IN_CHILD);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(&actions, SOCKET_IN_CHILD + 1);
    if (r == 0)
        r = posix_spawn(ret_pid, program, &actions, &attributes, argv, none);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return -r;
}

PX_API int px_engine_new(const char *program, struct px_engine **ret_engine, struct px_err *e)
{
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
    engine->pidfd = (int)px_sys(434 /* pidfd_open */, pid, 0);
    *ret_engine = engine;
    return 0;
}

/* It ends by itself when its socket hangs up; a bound stands behind that. */
PX_API void px_engine_free(struct px_engine *engine)
{
    if (!engine)
        return;
    engine->socket = px_fd_close(engine->socket);
    struct pollfd gone = {.fd = engine->pidfd, .events = POLLIN};
    int status;
    if (engine->pidfd >= 0 && px_sys(SYS_poll, &gone, 1, END_MSEC_MAX) <= 0)
        (void)px_pidfd_signal(engine->pidfd, SIGKILL);
    if (engine->pidfd >= 0)
        (void)px_pidfd_wait(engine->pidfd, false, &status, NULL);
    (void)px_fd_close(engine->pidfd);
    free(engine);
}

/* ---- a pool ---- */

static int send_order(int socket, const struct px_pool_order *order, const struct px_buf *text, int queue)
{
    struct iovec iov[2] = {{.iov_base = (void *)order, .iov_len = sizeof *order}, {.iov_base = text->data, .iov_len = text->len}};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } room = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&room.header), &queue, sizeof queue);
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2, .msg_control = &room, .msg_controllen = sizeof room.room};
    long n;
    do
        n = px_sys(SYS_sendmsg, socket, &m, MSG_NOSIGNAL);
    while (n == -EINTR);
    return n < 0 ? (int)n : 0;
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
    int r = send_order(engine->socket, &head, &text, theirs);
    if (r < 0)
        return px_fail(e, PX_E_GONE, r, "the engine has ended");
    *ret_queue = px_fd_take(&ours);
    return 0;
}

PX_API int px_pool_new(struct px_engine *engine, const struct px_policy *policy, unsigned ready, struct px_pool **ret_pool,
                       struct px_err *e)
{
    if (ready == 0 || ready > PX_POOL_READY_MAX)
        return px_fail(e, PX_E_VALUE, 0, "a pool keeps 1 to %d boxes ready, not %u", PX_POOL_READY_MAX, ready);
    struct px_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "pool");
    pool->queue = -EBADF;
    if (px_policy_copy(policy, &pool->policy, e) < 0 || order(engine, policy, ready, &pool->queue, e) < 0) {
        px_pool_free(pool);
        return -1;
    }
    *ret_pool = pool;
    return 0;
}

PX_API void px_pool_free(struct px_pool *pool)
{
    if (!pool)
        return;
    (void)px_fd_close(pool->queue);
    px_policy_free(pool->policy);
    free(pool);
}

/* One more, please. */
static void used_up(int queue)
{
    (void)px_sys(SYS_sendto, queue, "n", 1, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
}

PX_API int px_pool_stay(struct px_pool *pool, struct px_box **ret_home, struct px_err *e)
{
    int r = px_home_receive(pool->queue, ANSWER_MSEC_MAX, ret_home, e);
    used_up(pool->queue);
    return r;
}

PX_API int px_pool_box(struct px_pool *pool, const char *const argv[], const struct px_io *io, struct px_box **ret_box,
                       struct px_err *e)
{
    struct px_box *home = NULL;
    int r = px_home_receive(pool->queue, ANSWER_MSEC_MAX, &home, e);
    if (r >= 0)
        r = px_box_exec(home, pool->policy, argv, io, ret_box, e);
    if (r < 0) {
        px_box_free(home);
        used_up(pool->queue);
        return -1;
    }
    (*ret_box)->owns_home = true;
    (*ret_box)->pool = pool->queue;
    return 0;
}
