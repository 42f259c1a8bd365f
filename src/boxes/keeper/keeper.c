/* The keeper of a named box: makes it, serves its users, ends it and cleans up. One process, one loop, no thread. */
#include "named/named_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "keeper/keeper_internal.h"
#include "start/start_internal.h"

enum { MSEC = 1000000, GRACE_SLICE_MSEC = 20, END_SLICES = 500 };

static uint64_t limit_nsec(uint64_t msec)
{
    return px_policy_limited(msec) ? msec * MSEC : 0;
}

/* ---- making ---- */

/* The container itself has neither a timeout nor streams: the keeper enforces idle time and lifetime. */
static int make_home(struct px_keeper *k, struct px_err *e)
{
    struct px_policy policy = *k->policy;
    policy.timeout_msec = 0;
    policy.tty = policy.interactive = policy.timings = false;
    return px_start_stay(&policy, true, &k->home, e);
}

static int write_defaults(struct px_keeper *k, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_KEEP_TEXT_MAX);
    struct px_policy policy = *k->policy;
    policy.tty = policy.interactive = false;
    px_named_pack(&policy, !k->home->has_cgroup, &text);
    k->defaults = text.err < 0 ? text.err : px_named_text_file(text.data, text.len);
    return k->defaults < 0 ? px_fail(e, PX_E_LIMIT, k->defaults, "cannot write down what commands of the box start from") : 0;
}

static int open_door(struct px_keeper *k, struct px_err *e)
{
    k->listener = px_named_listen(k->place.dir);
    return k->listener < 0 ? px_fail(e, PX_E_IO, k->listener, "box '%s' cannot be made reachable", k->place.name) : 0;
}

PX_API int px_keeper_new(const char *home, const struct px_policy *policy, struct px_keeper **ret_keeper, struct px_err *e)
{
    PX_ERR(e);
    struct px_keeper *k = calloc(1, sizeof *k);
    if (!k)
        return px_no_memory(e);
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *k = (struct px_keeper){.place = PX_KEEP_NOWHERE, .policy = policy, .listener = -EBADF, .defaults = -EBADF,
                            .starter = -EBADF, .started_sec = now.tv_sec, .idle_nsec = limit_nsec(policy->idle_msec),
                            .max_life_nsec = limit_nsec(policy->max_life_msec)};
    k->started_nsec = k->idle_since_nsec = px_now_nsec();
    if (px_named_claim(home, policy->name, &k->place, e) < 0 || make_home(k, e) < 0 || write_defaults(k, e) < 0 ||
        open_door(k, e) < 0) {
        px_keeper_free(k);
        return -1;
    }
    *ret_keeper = k;
    return 0;
}

PX_API const char *px_keeper_name(const struct px_keeper *keeper)
{
    return keeper->place.name;
}

PX_API const char *px_keeper_id(const struct px_keeper *keeper)
{
    return keeper->home->id;
}

/* ---- users ---- */

static void on_door(struct px_keeper *k)
{
    px_auto_fd int socket = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0 || px_named_trusts(socket, false) <= 0)
        return;
    struct px_keeper_user *u = calloc(1, sizeof *u);
    if (!u)
        return;
    *u = (struct px_keeper_user){.next = k->users, .socket = px_fd_take(&socket)};
    k->users = u;
    k->users_count++;
}

/* ---- the end ---- */

static size_t anybody_left(const struct px_keeper *k)
{
    px_auto_free struct px_keeper_process *list = NULL;
    return px_keeper_processes(k->home->pid, &list) + k->guests_count + px_keeper_command_running(k);
}

void px_keeper_begin_end(struct px_keeper *k, const char *why)
{
    if (k->why[0])
        return;
    if (px_fmt(k->why, sizeof k->why, "%s", why) < 0)
        (void)px_fmt(k->why, sizeof k->why, "ended");
    k->kill_nsec = px_now_nsec();
    if (k->home->reaped || !anybody_left(k))
        return;
    k->kill_nsec += (uint64_t)PX_KEEP_GRACE_MSEC * MSEC;
    (void)px_keeper_signal_commands(k, 0, SIGTERM);
    (void)px_keeper_signal_inside(k->home->pid, k->home->pidfd, 0, SIGTERM);
    /* a stopped process cannot handle SIGTERM */
    (void)px_keeper_signal_inside(k->home->pid, k->home->pidfd, 0, SIGCONT);
}

static void drop_user(struct px_keeper_user *u)
{
    (void)px_fd_close(u->socket);
    free(u);
}

static void drop_guests(struct px_keeper *k, bool all)
{
    for (struct px_keeper_client **at = &k->guests; *at;) {
        struct px_keeper_client *g = *at;
        if (!all && g->pidfd >= 0) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        k->guests_count--;
        (void)px_fd_close(g->pidfd);
        free(g->text);
        free(g);
    }
}

static void tell_waiting(struct px_keeper *k, const struct px_keeper_command *c)
{
    for (struct px_keeper_user *u = k->users; u; u = u->next)
        if (u->waits_for == c->number && !u->gone)
            px_keeper_answer_end(u, c);
}

/* Pid 1 has ended, so every command learns that from its own socket. The bound is against our own mistakes. */
static void end_commands(struct px_keeper *k)
{
    for (struct px_keeper_command *c = k->commands; c; c = c->next) {
        for (int i = 0; c->box && i < END_SLICES; i++) {
            struct pollfd ready = {.fd = px_box_fd(c->box), .events = POLLIN};
            (void)px_sys(SYS_poll, &ready, 1, i == 0 ? 0 : GRACE_SLICE_MSEC);
            (void)px_keeper_command_step(c);
        }
        if (!c->box)
            tell_waiting(k, c);
    }
}

/* From here on only the answers to users that asked for the stop are left of the box. */
static void end_box(struct px_keeper *k)
{
    if (k->home && px_box_kill(k->home, NULL) == 0 && px_box_wait(k->home, &k->stuck) == 0)
        k->stuck = (struct px_err){0};
    end_commands(k);
    while (k->commands) {
        struct px_keeper_command *c = k->commands;
        k->commands = c->next;
        px_keeper_command_free(c);
    }
    drop_guests(k, true);
    px_box_free(k->home);
    k->home = NULL;
    k->listener = px_fd_close(k->listener);
    k->defaults = px_fd_close(k->defaults);
    k->starter = px_fd_close(k->starter);
    px_named_let_go(&k->place);
}

static void say_goodbye(struct px_keeper *k)
{
    struct px_named_message bye = {.kind = PX_KEEP_BYE}, done = {.err = k->stuck};
    (void)px_fail(&bye.err, PX_E_GONE, 0, "%s", k->why[0] ? k->why : "its keeper ended");
    while (k->users) {
        struct px_keeper_user *u = k->users;
        k->users = u->next;
        if (u->took_home)
            (void)px_named_send(u->socket, &bye, -EBADF);
        if (u->wants_stop)
            px_keeper_answer(u, &done, -EBADF);
        drop_user(u);
    }
}

PX_API void px_keeper_free(struct px_keeper *keeper)
{
    if (!keeper)
        return;
    end_box(keeper);
    say_goodbye(keeper);
    free(keeper);
}

/* ---- the loop ---- */

enum kind { DOOR, STOP, STARTER, HOME, USER, GUEST, COMMAND };

struct watched {
    struct pollfd *fds;
    struct what {
        enum kind kind;
        void *who;
    } *what;
    size_t count, room;
};

static int watch(struct watched *w, int fd, enum kind kind, void *who)
{
    if (fd < 0)
        return 0;
    if (w->count == w->room) {
        size_t room = w->room ? 2 * w->room : 32;
        struct pollfd *fds = realloc(w->fds, room * sizeof *fds);
        if (!fds)
            return -ENOMEM;
        w->fds = fds;
        struct what *what = realloc(w->what, room * sizeof *what);
        if (!what)
            return -ENOMEM;
        w->what = what;
        w->room = room;
    }
    w->fds[w->count] = (struct pollfd){.fd = fd, .events = POLLIN};
    w->what[w->count++] = (struct what){kind, who};
    return 0;
}

static int watch_all(struct px_keeper *k, struct watched *w, int stop_fd)
{
    w->count = 0;
    int r = watch(w, px_box_fd(k->home), HOME, NULL);
    if (r >= 0 && !k->why[0])
        r = watch(w, stop_fd, STOP, NULL);
    if (r >= 0)
        r = watch(w, k->starter, STARTER, NULL);
    for (struct px_keeper_client *g = k->guests; g && r >= 0; g = g->next)
        r = watch(w, g->pidfd, GUEST, g);
    for (struct px_keeper_command *c = k->commands; c && r >= 0; c = c->next)
        for (int i = 0; c->box && i < 3 && r >= 0; i++)
            r = watch(w, i == 2 ? px_box_fd(c->box) : c->pipe[i], COMMAND, c);
    /* After the events: a list of what runs must not be outdated. */
    for (struct px_keeper_user *u = k->users; u && r >= 0; u = u->next)
        r = watch(w, u->socket, USER, u);
    if (r >= 0 && k->users_count < PX_KEEPER_USERS_MAX)
        r = watch(w, k->listener, DOOR, NULL);
    return r;
}

static void on_home_event(struct px_keeper *k)
{
    struct px_err e = {0};
    if (px_box_step(k->home, &e) > 0)
        return;
    const struct px_result *r = px_box_result(k->home);
    px_keeper_begin_end(k, e.code ? e.what : r->status == PX_STATUS_INTERNAL ? "its pid 1 was killed" : r->reason);
    k->kill_nsec = px_now_nsec();
}

/* If the starter died before it reported the box, nobody knows of the box: it is ended. */
static void on_starter(struct px_keeper *k)
{
    char byte;
    long n = px_sys(SYS_recvfrom, k->starter, &byte, 1, MSG_DONTWAIT, 0, 0);
    if (n == -EAGAIN || n == -EINTR)
        return;
    k->starter = px_fd_close(k->starter);
    if (n <= 0)
        px_keeper_begin_end(k, "its starter ended before it was there");
}

static void dispatch(struct px_keeper *k, const struct what *what)
{
    struct px_keeper_command *c = what->who;
    struct px_keeper_client *g = what->who;
    switch (what->kind) {
    case DOOR:
        on_door(k);
        break;
    case STOP:
        px_keeper_begin_end(k, "its keeper was asked to stop");
        break;
    case STARTER:
        on_starter(k);
        break;
    case HOME:
        on_home_event(k);
        break;
    case USER:
        px_keeper_serve(k, what->who);
        break;
    case GUEST:
        g->pidfd = px_fd_close(g->pidfd);
        drop_guests(k, false);
        break;
    case COMMAND:
        if (px_keeper_command_step(c))
            tell_waiting(k, c);
        break;
    }
}

/* After a round: drops users that have left, and checks the deadlines. */
static void settle(struct px_keeper *k)
{
    for (struct px_keeper_user **at = &k->users; *at;) {
        struct px_keeper_user *u = *at;
        if (!u->gone) {
            at = &u->next;
            continue;
        }
        *at = u->next;
        k->users_count--;
        drop_user(u);
    }
    px_keeper_command_forget_old(k);
    uint64_t now = px_now_nsec();
    bool busy = k->guests_count || px_keeper_command_running(k);
    k->idle_since_nsec = busy ? 0 : k->idle_since_nsec ? k->idle_since_nsec : now;
    if (k->max_life_nsec && now - k->started_nsec >= k->max_life_nsec)
        px_keeper_begin_end(k, "it has reached its max-life");
    if (k->idle_nsec && k->idle_since_nsec && now - k->idle_since_nsec >= k->idle_nsec)
        px_keeper_begin_end(k, "it was idle for too long");
}

static int next_msec(const struct px_keeper *k)
{
    const uint64_t all[] = {k->max_life_nsec ? k->started_nsec + k->max_life_nsec : 0,
                            k->idle_nsec && k->idle_since_nsec ? k->idle_since_nsec + k->idle_nsec : 0};
    uint64_t at = 0, now = px_now_nsec();
    if (k->why[0])
        return GRACE_SLICE_MSEC;
    for (size_t i = 0; i < 2; i++)
        if (all[i] && (at == 0 || all[i] < at))
            at = all[i];
    if (at == 0)
        return -1;
    uint64_t msec = at > now ? (at - now) / MSEC + 1 : 0;
    return msec < 1 << 30 ? (int)msec : 1 << 30;
}

static bool is_over(const struct px_keeper *k)
{
    return k->why[0] && (k->home->reaped || px_now_nsec() >= k->kill_nsec || !anybody_left(k));
}

PX_API int px_keeper_run(struct px_keeper *keeper, int stop_fd, int starter_fd, struct px_err *e)
{
    PX_ERR(e);
    struct watched w = {0};
    int r = 0;
    keeper->starter = starter_fd;
    while (!is_over(keeper) && (r = watch_all(keeper, &w, stop_fd)) >= 0) {
        if (px_sys(SYS_poll, w.fds, w.count, next_msec(keeper)) > 0)
            for (size_t i = 0; i < w.count; i++)
                if (w.fds[i].revents)
                    dispatch(keeper, &w.what[i]);
        settle(keeper);
    }
    free(w.fds);
    free(w.what);
    if (r < 0)
        px_fail(e, PX_E_MEMORY, r, "the keeper of box '%s' cannot go on", keeper->place.name);
    end_box(keeper);
    say_goodbye(keeper);
    return r < 0 ? -1 : 0;
}
