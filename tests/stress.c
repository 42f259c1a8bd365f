/* tests/stress.c - living boxes and the engine under load and under attack; stress.py calls it and looks at the machine.
 *
 *     stress PX many N        N boxes that stay at once, each answering one command
 *     stress PX commands N    N commands through one engine, whose memory and descriptors stay as they are
 *     stress PX hostile       one box does its worst: its neighbours and the engine go on answering, and it can be killed
 *     stress PX hold          boxes until standard input ends, and a line for each that is lost; for somebody who kills
 *     stress attack NAME      inside a box: see stress_attack.c
 *
 * Waits are bounded so that a hang becomes a failure; no time is judged. Prints `ok NAME` or `not ok NAME: why` and last
 * "N passed, N failed, N skipped". */
#include "stress.h"

#include <dirent.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <px/engine.h>

enum { HANG_MSEC = 120 * 1000, GROWTH_KIB_MAX = 512, AT_ONCE = 100, BOXES_MAX = 4000, FDS_EACH = 8, HOLD = 3 };

static int passed, failed, skipped;

/* ---- telling ---- */

__attribute__((format(printf, 3, 4))) static bool check(const char *name, bool good, const char *fmt, ...)
{
    va_list args;
    if (good) {
        passed++;
        printf("ok %s\n", name);
        return true;
    }
    failed++;
    printf("not ok %s: ", name);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    return false;
}

static bool complain(const char *where, const struct px_err *e)
{
    printf("# %s: PX%03d %s: %s\n", where, e->code, e->what, e->why);
    return false;
}

static _Noreturn void give_up(const char *where, const struct px_err *e)
{
    printf("not ok %s: PX%03d %s: %s\n", where, e->code, e->what, e->why);
    printf("%d passed, %d failed, %d skipped\n", passed, failed + 1, skipped);
    (void)fflush(stdout);
    _exit(1);
}

static int64_t now_msec(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void moment(void)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    (void)nanosleep(&pause, NULL);
}

/* ---- what a process holds ---- */

static long count_fds(int pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
    for (int64_t end = now_msec() + HANG_MSEC; now_msec() < end; moment()) {
        DIR *dir = opendir(path);       /* closed to us for the moment in which the engine makes a box */
        long n = 0;
        while (dir && readdir(dir))
            n++;
        if (dir)
            (void)closedir(dir);
        if (n > 0)
            return n;
    }
    return -1;
}

static long private_kib(int pid)
{
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    for (int64_t end = now_msec() + HANG_MSEC; now_msec() < end; moment()) {
        long kib = -1;
        FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
            if (strncmp(line, "Private_Dirty:", 14) == 0)
                kib = strtol(line + 14, NULL, 10);
        if (f)
            (void)fclose(f);
        if (kib >= 0)
            return kib;
    }
    return -1;
}

/* The children of one thread, in the order of their birth. */
static int children_of_task(int pid, const char *task, int *ret_pids, int max)
{
    char path[320];
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%s/children", pid, task);
    FILE *f = fopen(path, "re");
    while (f && n < max && fscanf(f, "%d", &ret_pids[n]) == 1)
        n++;
    if (f)
        (void)fclose(f);
    return n;
}

/* Of all its threads: an engine has several that make boxes. */
static int children_of(int pid, int *ret_pids, int max)
{
    char path[64];
    struct dirent *task;
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    while (tasks && (task = readdir(tasks)))
        if (task->d_name[0] != '.')
            n += children_of_task(pid, task->d_name, ret_pids + n, max - n);
    if (tasks)
        (void)closedir(tasks);
    return n;
}

/* Killed, and not waited for yet; or already. */
static bool is_gone(int pid)
{
    char path[64], state = 'Z';
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    if (f)
        (void)fclose(f);
    return state == 'Z';
}

static bool comes_to_children(int pid, int count)
{
    static int pids[BOXES_MAX];
    for (int64_t end = now_msec() + HANG_MSEC; now_msec() < end && !is_gone(pid); moment())
        if (children_of(pid, pids, BOXES_MAX) == count)
            return true;
    return false;
}

/* ---- boxes ---- */

struct site {
    const char *px;
    struct px_policy *policy;
    struct px_engine *engine;
    int engine_pid;
    struct px_pool *pool;
};

static const char *own_path(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n < 0 ? 0 : n] = '\0';
    return path;
}

/* Counted: with a control group, where there is one to be had. */
static void make_policy(struct site *s, bool counted)
{
    char bind[4200];
    struct px_err e = {0};
    (void)snprintf(bind, sizeof bind, "%s:" STRESS_INSIDE ":ro", own_path());
    if (px_policy_new("default", &s->policy, &e) < 0 || px_policy_set(s->policy, "output-limit", "64k", &e) < 0 ||
        px_policy_set(s->policy, "bind", bind, &e) < 0 || (counted && px_policy_set(s->policy, "pids", "64", &e) < 0))
        give_up("policy", &e);
}

static void open_site(struct site *s, unsigned ready, bool counted)
{
    struct px_err e = {0};
    make_policy(s, counted);
    if (px_engine_new(s->px, &s->engine, &e) < 0 || px_pool_new(s->engine, s->policy, ready, &s->pool, &e) < 0)
        give_up("engine", &e);
    (void)children_of(getpid(), &s->engine_pid, 1);
}

static void close_site(struct site *s)
{
    px_pool_free(s->pool);
    px_engine_free(s->engine);
    px_policy_free(s->policy);
}

/* Until it is gone: 0, or -1 if that takes too long. */
static int finish(struct px_box *box, const char *where)
{
    struct px_err e = {0};
    int64_t end = now_msec() + HANG_MSEC;
    for (;;) {
        struct pollfd ready = {.fd = px_box_fd(box), .events = POLLIN};
        int64_t left = end - now_msec();
        if (left <= 0 || poll(&ready, 1, (int)left) == 0) {
            printf("# %s: nothing in %d s\n", where, HANG_MSEC / 1000);
            return -1;
        }
        int r = px_box_step(box, &e);
        if (r < 0)
            (void)complain(where, &e);
        if (r <= 0)
            return r;
    }
}

static bool said(struct px_box *box, long number, const char *where)
{
    bool good = finish(box, where) == 0 && px_box_result(box)->status == PX_STATUS_OK &&
                strtol(px_box_result(box)->out.data, NULL, 10) == number;
    if (!good)
        printf("# %s: %s, exit %d, %s\n", where, px_status_name(px_box_result(box)->status), px_box_result(box)->exit_code,
               px_box_result(box)->reason ? px_box_result(box)->reason : "no reason");
    return good;
}

static struct px_box *ask(const struct site *s, struct px_box *home, long number, const char *where)
{
    char text[32];
    const char *const argv[] = {"/bin/echo", text, NULL};
    struct px_err e = {0};
    struct px_box *box = NULL;
    (void)snprintf(text, sizeof text, "%ld", number);
    int r = home ? px_box_exec(home, s->policy, argv, NULL, &box, &e) : px_pool_box(s->pool, argv, NULL, &box, &e);
    if (r < 0)
        (void)complain(where, &e);
    return r < 0 ? NULL : box;
}

/* A command in the home, or in a box of its own if there is none, and its right answer. */
static bool answers(const struct site *s, struct px_box *home, long number, const char *where)
{
    struct px_box *box = ask(s, home, number, where);
    bool good = box && said(box, number, where);
    px_box_free(box);
    return good;
}

static struct px_box *stay(const struct site *s, bool own)
{
    struct px_err e = {0};
    struct px_box *home = NULL;
    if ((own ? px_box_stay(s->policy, &home, &e) : px_pool_stay(s->pool, &home, &e)) < 0)
        (void)complain("stay", &e);
    return home;
}

/* ---- many at once ---- */

static long ask_all(const struct site *s, struct px_box **homes, long count)
{
    static struct px_box *asked[AT_ONCE];
    long right = 0;
    for (long from = 0; from < count; from += AT_ONCE) {
        long n = count - from < AT_ONCE ? count - from : AT_ONCE;
        for (long i = 0; i < n; i++)
            asked[i] = homes[from + i] ? ask(s, homes[from + i], from + i, "one of many") : NULL;
        for (long i = 0; i < n; i++) {
            right += asked[i] && said(asked[i], from + i, "one of many");
            px_box_free(asked[i]);
        }
    }
    return right;
}

static long alive(struct px_box **homes, long count)
{
    struct px_err e = {0};
    long n = 0;
    for (long i = 0; i < count; i++)
        n += homes[i] && px_box_step(homes[i], &e) > 0;
    return n;
}

/* Half are this process's own, half come from an engine. */
static void many(struct site *s, long count)
{
    static struct px_box *homes[BOXES_MAX];
    long before = count_fds(getpid()), made = 0, right = 0;
    open_site(s, 8, true);
    for (long i = 0; i < count; i++) {
        homes[i] = stay(s, i % 2);
        made += homes[i] != NULL;
    }
    check("boxes that stay are made", made == count, "%ld of %ld", made, count);
    right = ask_all(s, homes, count);
    check("each of them answers", right == count, "%ld of %ld", right, count);
    right = alive(homes, count);
    check("all of them are there at once", right == count, "%ld of %ld", right, count);
    for (long i = 0; i < count; i++) {
        px_box_free(homes[i]);
        homes[i] = NULL;
    }
    check("the engine keeps only what is ready", comes_to_children(s->engine_pid, 8), "it has other children");
    close_site(s);
    long after = count_fds(getpid());
    check("many boxes leave no descriptor", after == before, "%ld, there were %ld", after, before);
    check("many boxes leave no child", comes_to_children(getpid(), 0), "a child is left");
}

/* ---- many after one another ---- */

struct state {
    long fds, engine_fds, kib, engine_kib;
};

/* Descriptors of the engine once it has made and cleaned up all that it had to: as many as each box that is ready takes. */
static long settled_fds(const struct site *s, unsigned ready)
{
    long n = 0;
    int same = 0;
    (void)comes_to_children(s->engine_pid, (int)ready);
    for (int64_t end = now_msec() + HANG_MSEC; now_msec() < end && same < 20; moment()) {
        long now = count_fds(s->engine_pid);
        same = now == n ? same + 1 : 0;
        n = now;
    }
    return n;
}

static struct state look(const struct site *s, unsigned ready)
{
    (void)malloc_trim(0);               /* what was freed but not given back is no leak */
    return (struct state){count_fds(getpid()), settled_fds(s, ready), private_kib(getpid()), private_kib(s->engine_pid)};
}

/* Some fail on their way, some are freed while they run, some share a box, some are more at once than are ready. */
static bool one_of_the_loop(const struct site *s, long i)
{
    static const char *const absent[] = {"/no/such/program", NULL}, *const endless[] = {"/bin/sleep", "1000", NULL};
    struct px_err e = {0};
    struct px_box *box = NULL, *home = NULL;
    bool good = true;
    switch (i % 50) {
    case 10:
        return px_pool_box(s->pool, absent, NULL, &box, &e) < 0 && e.code == 31;
    case 20:
        good = px_pool_box(s->pool, endless, NULL, &box, &e) == 0;
        px_box_free(box);
        return good;
    case 30:
        home = stay(s, false);
        good = home && answers(s, home, i, "in a home") && answers(s, home, i + 1, "in a home again");
        px_box_free(home);
        return good;
    case 40:
        box = ask(s, NULL, i, "beside another");
        good = box && answers(s, NULL, i + 1, "one more") && answers(s, NULL, i + 2, "another") && said(box, i, "the first");
        px_box_free(box);
        return good;
    default:
        return answers(s, NULL, i, "in the loop");
    }
}

static void commands(struct site *s, long count)
{
    enum { READY = 2 };
    struct state third = {0};
    long right = 0;
    open_site(s, READY, false);
    for (long i = 0; i < count; i++) {
        right += one_of_the_loop(s, i);
        if (i + 1 == (count + 2) / 3)
            third = look(s, READY);
    }
    struct state end = look(s, READY);
    check("commands through one engine", right == count, "%ld of %ld ended as they should", right, count);
    check("they leave no descriptor here", end.fds == third.fds, "%ld, there were %ld", end.fds, third.fds);
    for (int64_t late = now_msec() + HANG_MSEC; end.engine_fds > third.engine_fds && now_msec() < late;)
        end.engine_fds = settled_fds(s, READY);         /* a loaded machine may take longer than it looked */
    check("they leave no descriptor in the engine", end.engine_fds <= third.engine_fds, "%ld, there were %ld", end.engine_fds,
          third.engine_fds);
    check("memory is flat here", end.kib <= third.kib + GROWTH_KIB_MAX, "%ld KiB, there were %ld", end.kib, third.kib);
    check("memory is flat in the engine", end.engine_kib <= third.engine_kib + GROWTH_KIB_MAX, "%ld KiB, there were %ld",
          end.engine_kib, third.engine_kib);
    close_site(s);
}

/* ---- one hostile box ---- */

struct attack {
    const char *name;
    struct px_box *home, *box;
    int out[2], err[2];
};

/* Nobody reads its output; of its errors only the first line, which says that it is at work. */
static bool attack_begins(const struct site *s, struct attack *a)
{
    const char *const argv[] = {STRESS_INSIDE, "attack", a->name, NULL};
    struct px_err e = {0};
    char line[3];
    a->home = stay(s, false);
    if (!a->home || pipe2(a->out, O_CLOEXEC) < 0 || pipe2(a->err, O_CLOEXEC) < 0)
        return false;
    const struct px_io io = {.use_out = true, .out = a->out[1], .use_err = true, .err = a->err[1]};
    if (px_box_exec(a->home, s->policy, argv, &io, &a->box, &e) < 0)
        return complain("the attack", &e);
    for (int64_t end = now_msec() + HANG_MSEC; now_msec() < end;) {
        struct pollfd fds[2] = {{.fd = px_box_fd(a->box), .events = POLLIN}, {.fd = a->err[0], .events = POLLIN}};
        (void)poll(fds, 2, 100);
        if (fds[1].revents)
            return read(a->err[0], line, sizeof line) == sizeof line && memcmp(line, "up\n", 3) == 0;
        if (px_box_step(a->box, &e) <= 0)
            return false;
    }
    return false;
}

static void attack_ends(struct attack *a)
{
    px_box_free(a->box);
    px_box_free(a->home);
    for (int i = 0; i < 2; i++) {
        (void)close(a->out[i]);
        (void)close(a->err[i]);
    }
}

static bool answers_on_terminal(struct px_box *home)
{
    const char *const argv[] = {"/bin/sh", "-c", "test -t 0 && echo $0", "7", NULL};
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    struct px_box *box = NULL;
    bool good = px_policy_new("default", &policy, &e) == 0 && px_policy_set(policy, "tty", NULL, &e) == 0 &&
                px_box_exec(home, policy, argv, NULL, &box, &e) == 0 && said(box, 7, "on a terminal");
    px_box_free(box);
    px_policy_free(policy);
    return good || complain("on a terminal", &e);
}

/* The box that is attacked from inside may refuse and may kill its own commands, but pid 1 of it never leaves us waiting. */
static bool ask_hostile(const struct site *s, struct attack *a)
{
    const char *const argv[] = {"/bin/true", NULL};
    bool good = true;
    for (int i = 0; i < 20 && good; i++) {
        struct px_err e = {0};
        struct px_box *box = NULL;
        if (px_box_exec(a->home, s->policy, argv, NULL, &box, &e) < 0)
            good = e.sys != ETIMEDOUT || complain("the hostile box", &e);
        px_box_free(box);
    }
    return good;
}

static void under_attack(const struct site *s, struct px_box *neighbour, const char *name)
{
    struct attack a = {.name = name, .out = {-1, -1}, .err = {-1, -1}};
    char text[80];
    int right = 0;
    (void)snprintf(text, sizeof text, "%s: it is at work", name);
    check(text, attack_begins(s, &a), "it did not begin");
    for (int i = 0; i < 5; i++)
        right += answers(s, neighbour, i, "the neighbour") && answers(s, NULL, i, "a new box");
    (void)snprintf(text, sizeof text, "%s: neighbours and the engine answer", name);
    check(text, right == 5, "%d of 5 times", right);
    (void)snprintf(text, sizeof text, "%s: a neighbour has a terminal", name);
    check(text, answers_on_terminal(neighbour), "it has none");
    (void)snprintf(text, sizeof text, "%s: pid 1 of the box itself answers", name);
    check(text, ask_hostile(s, &a), "it does not");
    attack_ends(&a);
    (void)snprintf(text, sizeof text, "%s: the box can be killed", name);
    check(text, comes_to_children(s->engine_pid, 3), "pid 1 of the box is still there");
}

/* What a command has started dies with it when it is killed, if it stayed in the command's group; the home lives on. */
static void group_dies(const struct site *s)
{
    const char *const alone[] = {STRESS_INSIDE, "attack", "alone", NULL};
    struct attack a = {.name = "group", .out = {-1, -1}, .err = {-1, -1}};
    struct px_err e = {0};
    struct px_box *box = NULL;
    check("group: it is at work", attack_begins(s, &a), "it did not begin");
    bool good = a.box && px_box_kill(a.box, &e) == 0 && px_box_exec(a.home, s->policy, alone, NULL, &box, &e) == 0 &&
                finish(box, "alone") == 0 && px_box_result(box)->exit_code == 0;
    check("group: a killed command leaves nobody of it", good, "%s", box ? "others are there" : e.what);
    px_box_free(box);
    attack_ends(&a);
}

static void hostile(struct site *s)
{
    static const char *const names[] = {"flood", "pipes", "fork", "stop-self", "stop-all", "kill-all", "exec", "denied",
                                        "terminals", "descriptors"};
    const char *const reach[] = {STRESS_INSIDE, "attack", "init", NULL};
    struct px_err e = {0};
    struct px_box *box = NULL;
    open_site(s, 2, true);
    struct px_box *neighbour = stay(s, false);
    for (size_t i = 0; neighbour && i < sizeof names / sizeof names[0]; i++)
        under_attack(s, neighbour, names[i]);
    for (int i = 0; i < 5; i++)
        group_dies(s);
    bool good = neighbour && px_box_exec(neighbour, s->policy, reach, NULL, &box, &e) == 0 && finish(box, "init") == 0 &&
                px_box_result(box)->exit_code == 0;
    check("init: nothing of pid 1 and its socket can be had", good, "%s", box ? px_box_result(box)->err.data : e.what);
    px_box_free(box);
    px_box_free(neighbour);
    close_site(s);
}

/* ---- boxes for somebody who kills ---- */

static struct px_box *sleeper(const struct site *s, struct px_box *home)
{
    const char *const argv[] = {"/bin/sleep", "100000", NULL};
    struct px_err e = {0};
    struct px_box *box = NULL;
    if (!home || px_box_exec(home, s->policy, argv, NULL, &box, &e) < 0)
        give_up("hold", &e);
    return box;
}

/* Own boxes first, then the engine's. A line for each that ends. */
static void watch_held(struct px_box **boxes, int count)
{
    struct px_err e = {0};
    for (;;) {
        struct pollfd fds[2 * HOLD + 1];
        for (int i = 0; i < count; i++)
            fds[i] = (struct pollfd){.fd = boxes[i] ? px_box_fd(boxes[i]) : -1, .events = POLLIN};
        fds[count] = (struct pollfd){.fd = 0, .events = POLLIN};
        if (poll(fds, (nfds_t)count + 1, -1) < 0 || fds[count].revents)
            return;
        for (int i = 0; i < count; i++)
            if (fds[i].revents && px_box_step(boxes[i], &e) <= 0) {
                printf("lost %s %d: %s\n", i < HOLD ? "own" : "engine", i, px_box_result(boxes[i])->reason);
                px_box_free(boxes[i]);
                boxes[i] = NULL;
            }
    }
}

static void hold(struct site *s)
{
    struct px_box *homes[2 * HOLD], *boxes[2 * HOLD];
    struct px_err e = {0};
    open_site(s, HOLD, true);
    for (int i = 0; i < 2 * HOLD; i++) {
        homes[i] = stay(s, i < HOLD);
        boxes[i] = sleeper(s, homes[i]);
    }
    printf("holding %d\n", s->engine_pid);
    watch_held(boxes, 2 * HOLD);
    /* If one was killed while it was made, that is told once. */
    bool answered = answers(s, NULL, 5, "afterwards") || answers(s, NULL, 6, "afterwards again");
    printf("afterwards %s\n", answered ? "answered" : "refused");
    for (int i = 0; i < 2 * HOLD; i++)  /* whose command was lost is about to be gone, if it is not yet */
        printf("home %d %s\n", i, boxes[i] ? px_box_step(homes[i], &e) > 0 ? "lives" : "has died alone"
                                  : finish(homes[i], "home") == 0 ? "is gone" : "lingers");
    for (int i = 0; i < 2 * HOLD; i++) {
        px_box_free(boxes[i]);
        px_box_free(homes[i]);
    }
    close_site(s);
}

/* ---- the whole ---- */

static bool room_for(long boxes)
{
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur > (rlim_t)(boxes * FDS_EACH))
        return true;
    printf("skip %ld boxes: a process may have %ld descriptors only\n", boxes, (long)limit.rlim_cur);
    skipped++;
    return false;
}

static int run(struct site *s, const char *what, long count)
{
    if (strcmp(what, "many") == 0 && count > 0 && count <= BOXES_MAX) {
        if (room_for(count))
            many(s, count);
    } else if (strcmp(what, "commands") == 0 && count > 0) {
        commands(s, count);
    } else if (strcmp(what, "hostile") == 0) {
        hostile(s);
    } else if (strcmp(what, "hold") == 0) {
        hold(s);
        return 0;
    } else {
        return 2;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct site s = {.px = argc > 1 ? argv[1] : NULL};
    if (argc > 2 && strcmp(argv[1], "attack") == 0)
        return stress_attack(argv[2], argv + 3);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    return argc < 3 ? 2 : run(&s, argv[2], argc > 3 ? strtol(argv[3], NULL, 10) : 0);
}
