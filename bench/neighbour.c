/* neighbour - times commands in a box that stays while the box beside it is hostile; requests as in bench.h, `run` only.
 *
 *     neighbour PX STRESS ATTACK COMMAND ARG...
 *
 * Both boxes are one program's, in one poll loop, as a server would have them: what the hostile one writes is read and dropped
 * on the way. The attack (STRESS is tests/stress; see its stress_attack.c; "none" for no attack) is at work only while a request
 * is answered, so that it disturbs no other row. */
#define _GNU_SOURCE
#include "bench.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <px/engine.h>

struct pair {
    const char *attack;
    struct px_policy *policy, *hostile_policy;
    struct px_engine *engine;
    struct px_pool *pool, *hostile_pool;
    struct px_box *home, *hostile_home, *hostile;
    int null, up[2];            /* where its output goes; how it says that it is at work */
    const char *const *argv;
    struct px_err err;
};

static int open_pair(struct pair *p, const char *px, const char *stress)
{
    char bind[4200];
    (void)snprintf(bind, sizeof bind, "%s:/stress:ro", stress);
    p->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (pipe2(p->up, O_CLOEXEC) < 0 || p->null < 0)
        return -1;
    return px_policy_new("default", &p->policy, &p->err) < 0 || px_policy_new("default", &p->hostile_policy, &p->err) < 0 ||
                   px_policy_set(p->hostile_policy, "bind", bind, &p->err) < 0 ||
                   px_policy_set(p->hostile_policy, "pids", "64", &p->err) < 0 || px_engine_new(px, &p->engine, &p->err) < 0 ||
                   px_pool_new(p->engine, p->policy, 1, &p->pool, &p->err) < 0 ||
                   px_pool_new(p->engine, p->hostile_policy, 1, &p->hostile_pool, &p->err) < 0 ||
                   px_pool_stay(p->pool, &p->home, &p->err) < 0
               ? -1
               : 0;
}

/* One wait for both; the hostile one is served whenever it has something. 1 while the box lives, or, without one, until the
 * attack has said that it is at work. */
static int step(struct pair *p, struct px_box *box)
{
    char said[1 << 16];
    struct pollfd fds[3] = {{.fd = p->hostile ? px_box_fd(p->hostile) : -1, .events = POLLIN},
                            {.fd = p->up[0], .events = POLLIN},
                            {.fd = box ? px_box_fd(box) : -1, .events = POLLIN}};
    if (poll(fds, 3, -1) < 0 || (fds[0].revents && px_box_step(p->hostile, &p->err) < 0))
        return -1;
    ssize_t n = fds[1].revents ? read(p->up[0], said, sizeof said) : 0;
    if (!box)
        return n == 0 ? 1 : n >= 3 && memcmp(said, "up\n", 3) == 0 ? 0 : -1;
    return fds[2].revents ? px_box_step(box, &p->err) : 1;
}

static int attack_begins(struct pair *p)
{
    const char *const argv[] = {"/stress", "attack", p->attack, NULL};
    const struct px_io io = {.use_out = true, .out = p->null, .use_err = true, .err = p->up[1]};
    int r;
    if (strcmp(p->attack, "none") == 0)
        return 0;
    if (px_pool_stay(p->hostile_pool, &p->hostile_home, &p->err) < 0 ||
        px_box_exec(p->hostile_home, p->hostile_policy, argv, &io, &p->hostile, &p->err) < 0)
        return -1;
    while ((r = step(p, NULL)) > 0)
        ;
    return r;
}

static void attack_ends(struct pair *p)
{
    char rest[4096];
    struct pollfd more = {.fd = p->up[0], .events = POLLIN};
    px_box_free(p->hostile);
    px_box_free(p->hostile_home);
    p->hostile = p->hostile_home = NULL;
    while (poll(&more, 1, 0) > 0 && read(p->up[0], rest, sizeof rest) > 0)
        ;
}

static int run_once(void *arg)
{
    struct pair *p = arg;
    struct px_box *box = NULL;
    int r = px_box_exec(p->home, p->policy, p->argv, NULL, &box, &p->err);
    while (r == 0 && (r = step(p, box)) > 0)
        r = 0;
    int status = r == 0 && box ? px_box_result(box)->exit_code : 125;
    px_box_free(box);
    return status;
}

static int serve_pair(struct pair *p)
{
    char line[64];
    uint64_t number;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "run %" SCNu64, &number) != 1 || attack_begins(p) < 0)
            return 1;
        answer_run(number, run_once, p);
        attack_ends(p);
        if (fflush(stdout) != 0)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct pair p = {0};
    int status = 2;
    if (argc < 5) {
        fputs("usage: neighbour PX STRESS ATTACK COMMAND ARG...\n", stderr);
        return status;
    }
    p.attack = argv[3];
    p.argv = (const char *const *)(argv + 4);
    status = open_pair(&p, argv[1], argv[2]) < 0 ? 1 : serve_pair(&p);
    if (p.err.code != 0)
        fprintf(stderr, "neighbour: PX%03d %s\n", p.err.code, p.err.what);
    attack_ends(&p);
    px_box_free(p.home);
    px_pool_free(p.pool);
    px_pool_free(p.hostile_pool);
    px_engine_free(p.engine);
    px_policy_free(p.policy);
    px_policy_free(p.hostile_policy);
    return status;
}
