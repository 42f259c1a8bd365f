/* The engine's side: boxes made ahead of time, and cleaned up after their users have let go of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <px/engine.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "box/home.h"
#include "box/policy.h"
#include "box/supervise.h"
#include "engine/pool.h"
#include "engine/stay.h"

/* What an event is about: each watched thing begins with one of these. */
enum kind { USER, QUEUE, BOX };

struct watched {
    enum kind kind;
};

struct pool {
    struct watched watched;
    struct pool *next;
    struct px_policy *policy;
    int queue;
    unsigned wanted;            /* how many are still to be made */
    bool gone;                  /* its user has left; freed at the end of the round */
};

struct made {
    struct watched watched;
    struct made *next, **at;
    struct px_box *home;
};

struct factory {
    int user, epoll;
    struct watched watched;
    struct pool *pools;
    struct made *made;
    bool done;
};

static int watch(struct factory *f, int fd, struct watched *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* ---- boxes ---- */

static void forget(struct made *m)
{
    *m->at = m->next;
    if (m->next)
        m->next->at = m->at;
    px_box_free(m->home);
    free(m);
}

/* The user has the control socket now, and only the user: when it is closed there, pid 1 ends. */
static int hand_out(struct factory *f, struct pool *pool, struct px_box *home)
{
    struct made *m = calloc(1, sizeof *m);
    if (!m || px_home_send(pool->queue, home) < 0) {
        free(m);
        px_box_free(home);
        return -1;
    }
    home->control = px_fd_close(home->control);
    *m = (struct made){.watched = {BOX}, .next = f->made, .at = &f->made, .home = home};
    if (f->made)
        f->made->at = &m->next;
    f->made = m;
    return watch(f, px_box_fd(home), &m->watched);
}

/* One at a time, so that a question is never kept waiting by more than one box. */
static bool make_one(struct factory *f)
{
    for (struct pool *p = f->pools; p; p = p->next) {
        struct px_box *home = NULL;
        struct px_err e = {0};
        if (p->wanted == 0 || p->gone)
            continue;
        p->wanted--;
        if (px_stay(p->policy, true, &home, &e) < 0) {
            (void)px_home_refuse(p->queue, &e);
            return true;
        }
        (void)hand_out(f, p, home);
        return true;
    }
    return false;
}

static void on_box(struct made *m)
{
    struct px_err e = {0};
    if (px_box_step(m->home, &e) <= 0)
        forget(m);
}

/* ---- orders ---- */

static struct px_policy *read_policy(const char *text, size_t length, struct px_err *e)
{
    struct px_policy *policy = NULL;
    const char *end = text + length, *field = NULL;
    if (length == 0 || end[-1] != '\0' || px_policy_new(text, &policy, e) < 0)
        return NULL;
    for (const char *p = text + strlen(text) + 1; p < end; p += strlen(p) + 1) {
        if (!field) {
            field = p;
            continue;
        }
        if (px_policy_set(policy, field, p, e) < 0) {
            px_policy_free(policy);
            return NULL;
        }
        field = NULL;
    }
    return policy;
}

static void add_pool(struct factory *f, const struct px_pool_order *order, const char *text, int queue)
{
    struct px_err e = {0};
    struct pool *p = calloc(1, sizeof *p);
    struct px_policy *policy = p ? read_policy(text, order->length, &e) : NULL;
    if (!policy || watch(f, queue, &p->watched) < 0) {
        if (e.code == 0)
            px_fail(&e, PX_E_MEMORY, ENOMEM, "pool");
        (void)px_home_refuse(queue, &e);
        (void)px_fd_close(queue);
        px_policy_free(policy);
        free(p);
        return;
    }
    *p = (struct pool){.watched = {QUEUE}, .next = f->pools, .policy = policy, .queue = queue, .wanted = order->ready};
    f->pools = p;
}

static void on_user(struct factory *f)
{
    static const size_t room = sizeof(struct px_pool_order) + PX_POOL_TEXT_MAX;
    char *message = malloc(room);
    if (!message)
        return;
    int queue = px_launch_receive_fd(f->user, message, room);
    const struct px_pool_order *order = (const void *)message;
    if (queue == -EPROTO)       /* a hang-up, or nonsense: its user is gone either way */
        f->done = true;
    else if (order->version == PX_POOL_VERSION && order->length > 0 && order->length <= PX_POOL_TEXT_MAX &&
             order->ready <= PX_POOL_READY_MAX)
        add_pool(f, order, message + sizeof *order, queue);
    else
        (void)px_fd_close(queue);
    free(message);
}

static void on_queue(struct pool *p)
{
    char byte;
    for (;;) {
        long n = px_sys(SYS_recvfrom, p->queue, &byte, 1, MSG_DONTWAIT, 0, 0);
        if (n == -EAGAIN || n == -EINTR)
            return;
        if (n <= 0) {
            p->gone = true;
            return;
        }
        p->wanted += p->wanted < PX_POOL_READY_MAX;
    }
}

static void drop_pools(struct factory *f, bool all)
{
    for (struct pool **at = &f->pools; *at;) {
        struct pool *p = *at;
        if (!all && !p->gone) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        (void)px_fd_close(p->queue);
        px_policy_free(p->policy);
        free(p);
    }
}

/* ---- the loop ---- */

static void round_of(struct factory *f, int wait_msec)
{
    struct epoll_event events[32];
    int n = epoll_wait(f->epoll, events, 32, wait_msec);
    for (int i = 0; i < n; i++) {
        struct watched *what = events[i].data.ptr;
        if (what->kind == USER)
            on_user(f);
        else if (what->kind == QUEUE)
            on_queue((struct pool *)(void *)what);
        else
            on_box((struct made *)(void *)what);
    }
    drop_pools(f, false);
}

PX_API int px_engine_serve(int socket, struct px_err *e)
{
    struct factory f = {.user = socket, .epoll = epoll_create1(EPOLL_CLOEXEC), .watched = {USER}};
    if (f.epoll < 0 || watch(&f, socket, &f.watched) < 0) {
        (void)px_fd_close(f.epoll);
        return px_fail(e, PX_E_IO, errno, "the engine cannot watch its socket");
    }
    bool busy = false;
    while (!f.done) {
        round_of(&f, busy ? 0 : -1);
        busy = !f.done && make_one(&f);
    }
    drop_pools(&f, true);
    while (f.made)
        forget(f.made);
    (void)px_fd_close(f.epoll);
    return 0;
}
