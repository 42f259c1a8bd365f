/* The server's side: boxes made in advance, and cleaned up when their users have freed them. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <px/engine.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/sys.h"
#include "base/text.h"
#include "box/handover.h"
#include "box/supervise.h"
#include "kernel/pidfd.h"
#include "policy/policy.h"
#include "pool/builders.h"
#include "pool/client.h"

/* The source of an event: each watched struct begins with one of these. */
enum kind { USER, QUEUE, BOX, MAKERS };

struct watched {
    enum kind kind;
};

enum { AGAIN_MSEC = 200 };

enum fullness { ROOM, QUEUE_FULL, OUT_OF_ROOM };

struct pool {
    struct watched watched;
    struct pool *next;
    struct px_policy *policy;
    struct px_stock stock[PX_MAKERS_MAX];       /* of that policy, one for each thread */
    unsigned under_way;         /* jobs that a thread has */
    int queue;
    uint64_t wanted;            /* how many are still to be made */
    struct px_box *spare[PX_MAKERS_MAX];        /* made, but the queue had no room for them */
    unsigned spares;
    enum fullness full;         /* while the queue is full, none are made */
    bool gone;                  /* its user has left; freed at the end of a round, when no job runs */
};

struct made {
    struct watched watched;
    struct made *next, **at;
    struct px_box *home;
};

struct factory {
    int user, epoll;
    int image;                  /* of px-init, shared by all boxes */
    struct px_builders *makers;
    struct watched watched, makers_watched;
    struct pool *pools;
    struct made *made;
    bool done;
};

static int watch(struct factory *f, int fd, struct watched *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Called before the close: a child that another thread has just cloned has the descriptor too until its exec, so the
 * event would stay. */
static void unwatch(struct factory *f, int fd)
{
    (void)epoll_ctl(f->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- boxes ---- */

static void forget(struct factory *f, struct made *m)
{
    unwatch(f, px_box_fd(m->home));
    *m->at = m->next;
    if (m->next)
        m->next->at = m->at;
    px_box_free(m->home);
    free(m);
}

/* The queue gets room when the user takes a box, which an order reports, or when poll reports it. Other causes (too
 * many descriptors in flight, no kernel memory) are tried again after a while. */
static void set_full(struct factory *f, struct pool *p, enum fullness full)
{
    struct epoll_event event = {.events = full == QUEUE_FULL ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = &p->watched};
    if (p->full != full && epoll_ctl(f->epoll, EPOLL_CTL_MOD, p->queue, &event) < 0 && full == QUEUE_FULL)
        full = OUT_OF_ROOM;
    p->full = full;
}

/* A queue that takes nothing now loses nothing. */
static void came_back(struct factory *f, struct pool *p, int err)
{
    if (err == -EPIPE || err == -ECONNRESET)
        p->gone = true;
    else
        set_full(f, p, err == -EAGAIN ? QUEUE_FULL : OUT_OF_ROOM);
}

/* From now on only the user has the control socket. The box is watched before it is sent: a box that is not watched
 * would never be cleaned up. */
static int hand_out(struct factory *f, struct pool *p, struct px_box *home)
{
    struct made *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    *m = (struct made){.watched = {BOX}, .next = f->made, .at = &f->made, .home = home};
    int r = watch(f, px_box_fd(home), &m->watched);
    if (r >= 0 && (r = px_handover_send(p->queue, home)) < 0)
        unwatch(f, px_box_fd(home));
    if (r < 0) {
        free(m);
        return r;
    }
    home->control = px_fd_close(home->control);
    home->notes = px_fd_close(home->notes);
    if (f->made)
        f->made->at = &m->next;
    f->made = m;
    return 0;
}

static void give(struct factory *f, struct pool *p, struct px_box *home)
{
    int r = hand_out(f, p, home);
    if (r < 0) {
        /* nothing is begun while there are any, so there are at most as many as threads */
        p->spare[p->spares++] = home;
        came_back(f, p, r);
    }
}

static void refuse(struct factory *f, struct pool *p, const struct px_err *why)
{
    int r = px_handover_refuse(p->queue, why);
    if (r < 0) {
        p->wanted++;            /* tried again, and reported then */
        came_back(f, p, r);
    }
}

/* Each pool in turn, as many jobs at once as there are threads. */
static bool begin_one(struct factory *f)
{
    int maker = px_builders_idle(f->makers);
    for (struct pool **at = &f->pools; maker >= 0 && *at; at = &(*at)->next) {
        struct pool *p = *at;
        if (p->wanted == 0 || p->full != ROOM || p->gone)
            continue;
        *at = p->next;          /* moves to the end of the line */
        struct pool **end = at;
        while (*end)
            end = &(*end)->next;
        p->next = NULL;
        *end = p;
        p->wanted--;
        p->under_way++;
        px_builders_give(f->makers, maker, p->stock, p);
        return true;
    }
    return false;
}

static void on_makers(struct factory *f)
{
    struct px_made made;
    while (px_builders_take(f->makers, &made)) {
        struct pool *p = made.user;
        p->under_way--;
        if (p->gone)
            px_box_free(made.home);
        else if (made.home)
            give(f, p, made.home);
        else
            refuse(f, p, &made.why);
    }
    f->done = f->done || px_builders_lost(f->makers);
}

static void on_box(struct factory *f, struct made *m)
{
    struct px_err e = {0};
    if (px_box_step(m->home, &e) <= 0)
        forget(f, m);
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

/* A box waits for its command without a limit: the timeout is the command's. */
static struct px_policy *policy_of_homes(const char *text, size_t length, struct px_err *e)
{
    struct px_policy *policy = read_policy(text, length, e);
    if (policy && px_policy_set(policy, "timeout", "unlimited", e) < 0) {
        px_policy_free(policy);
        return NULL;
    }
    return policy;
}

static void add_pool(struct factory *f, const struct px_pool_order *order, const char *text, int queue)
{
    struct px_err e = {0};
    struct pool *p = calloc(1, sizeof *p);
    struct px_policy *policy = p ? policy_of_homes(text, order->length, &e) : NULL;
    if (!policy || watch(f, queue, &p->watched) < 0) {
        if (e.code == 0)
            px_no_memory(&e);
        (void)px_handover_refuse(queue, &e);
        (void)px_fd_close(queue);
        px_policy_free(policy);
        free(p);
        return;
    }
    *p = (struct pool){.watched = {QUEUE}, .next = f->pools, .policy = policy, .queue = queue, .wanted = order->ready};
    for (size_t i = 0; i < PX_COUNT_OF(p->stock); i++)
        p->stock[i].policy = policy;
    f->pools = p;
}

/* An order comes with its queue. One without it, or a truncated one, is dropped: its user sees the queue hang up. */
static void on_user(struct factory *f)
{
    static const size_t room = sizeof(struct px_pool_order) + PX_POOL_TEXT_MAX;
    px_auto_free char *message = calloc(1, room);
    px_auto_fd int queue = -EBADF;
    long n = px_pass_receive(f->user, message, message ? room : 0, MSG_DONTWAIT, &queue, 1, NULL);
    if (n == 0 || (n < 0 && n != -EAGAIN && n != -ENOMEM))
        f->done = true;
    const struct px_pool_order *order = (const void *)message;
    if (message && queue >= 0 && n >= (long)sizeof *order && order->version == PX_POOL_VERSION &&
        order->ready <= PX_POOL_READY_MAX && n == (long)(sizeof *order + order->length))
        add_pool(f, order, message + sizeof *order, px_fd_take(&queue));
}

static void try_again(struct factory *f, struct pool *p)
{
    struct px_box *spare[PX_MAKERS_MAX];
    unsigned spares = p->spares;
    memcpy(spare, p->spare, sizeof spare);
    p->spares = 0;
    set_full(f, p, ROOM);
    for (unsigned i = 0; i < spares; i++)
        give(f, p, spare[i]);
}

/* The user orders more, the queue has room again, or the user has left. */
static void on_queue(struct factory *f, struct pool *p)
{
    uint32_t more = 0;
    long n;
    while ((n = px_sys(SYS_recvfrom, p->queue, &more, sizeof more, MSG_DONTWAIT, 0, 0)) == sizeof more)
        p->wanted += more;
    if (n == -EAGAIN || n == -EINTR)
        try_again(f, p);
    else
        p->gone = true;
}

static void drop_pools(struct factory *f, bool all)
{
    for (struct pool **at = &f->pools; *at;) {
        struct pool *p = *at;
        if (!all && (!p->gone || p->under_way > 0)) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        for (unsigned i = 0; i < p->spares; i++)
            px_box_free(p->spare[i]);
        unwatch(f, p->queue);
        (void)px_fd_close(p->queue);
        for (size_t i = 0; i < PX_COUNT_OF(p->stock); i++)
            px_stock_done(&p->stock[i]);
        px_policy_free(p->policy);
        free(p);
    }
}

/* ---- the loop ---- */

static void dispatch(struct factory *f, struct watched *what)
{
    if (what->kind == USER)
        on_user(f);
    else if (what->kind == QUEUE)
        on_queue(f, (struct pool *)(void *)what);
    else if (what->kind == MAKERS)
        on_makers(f);
    else
        on_box(f, (struct made *)(void *)what);
}

static void round_of(struct factory *f)
{
    struct epoll_event events[32];
    int wait_msec = -1;
    for (struct pool *p = f->pools; p && wait_msec < 0; p = p->next)
        if (p->full == OUT_OF_ROOM)
            wait_msec = AGAIN_MSEC;
    int n = epoll_wait(f->epoll, events, 32, wait_msec);
    for (int i = 0; i < n; i++)
        dispatch(f, events[i].data.ptr);
    for (struct pool *p = f->pools; p && n == 0; p = p->next)
        if (p->full == OUT_OF_ROOM)
            try_again(f, p);
    drop_pools(f, false);
}

/* All boxes that were sent are ended before the threads: a box dies with the thread that made it (PR_SET_PDEATHSIG),
 * without a report. */
static void close_down(struct factory *f)
{
    for (struct made *m = f->made; m; m = m->next)      /* all at once, then one after the other */
        (void)px_pidfd_signal(m->home->pidfd, SIGKILL);
    while (f->made)
        forget(f, f->made);
    px_builders_free(f->makers);  /* before the pools, whose stocks they use */
    drop_pools(f, true);
    (void)px_fd_close(f->image);
    (void)px_fd_close(f->epoll);
}

PX_API int px_engine_serve(int socket, struct px_err *e)
{
    PX_ERR(e);
    struct factory f = {.user = socket, .epoll = epoll_create1(EPOLL_CLOEXEC), .image = px_launch_image(), .watched = {USER},
                        .makers_watched = {MAKERS}};
    int r = px_builders_new(f.image >= 0 ? &f.image : NULL, &f.makers, e);
    if (r >= 0 && (f.epoll < 0 || watch(&f, socket, &f.watched) < 0 || watch(&f, px_builders_fd(f.makers), &f.makers_watched) < 0))
        r = px_fail(e, PX_E_IO, errno, "the engine cannot watch its socket");
    while (r >= 0 && !f.done) {
        while (begin_one(&f))
            ;
        round_of(&f);
    }
    close_down(&f);
    return r;
}
