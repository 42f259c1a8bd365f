/* A loop that runs many commands, each in a box of its own that was made before it was asked for.
 *
 *     loop [COMMANDS]          (try 10000)
 *
 * What graders and training loops do: the engine makes the next box while a command runs, so that a box costs little more than
 * starting the command. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <px/engine.h>

static int complain(const struct px_err *e)
{
    fprintf(stderr, "PX%03d  %s: %s\n", e->code, e->what, e->why);
    return -1;
}

static double now_sec(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* 1 if the command said what it should, 0 if not, -1 if there was no box. */
static int one(struct px_pool *pool, unsigned long number)
{
    char text[32];
    const char *const argv[] = {"/bin/echo", text, NULL};
    struct px_err e = {0};
    struct px_box *box = NULL;
    int right = -1;

    (void)snprintf(text, sizeof text, "%lu", number);
    if (px_pool_box(pool, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0) {
        (void)complain(&e);
    } else {
        const struct px_result *r = px_box_result(box);
        right = r->status == PX_STATUS_OK && strtoul(r->out.data, NULL, 10) == number;
    }
    px_box_free(box);
    return right;
}

static unsigned long run(struct px_pool *pool, unsigned long count)
{
    unsigned long right = 0;
    for (unsigned long i = 0; i < count; i++) {
        int r = one(pool, i);
        if (r < 0)
            break;
        right += (unsigned long)r;
    }
    return right;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 200, right = 0;
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;

    if (px_policy_new("default", &policy, &e) < 0 || px_policy_set(policy, "timeout", "60s", &e) < 0 ||
        px_engine_new(NULL, &engine, &e) < 0 || px_pool_new(engine, policy, 4, &pool, &e) < 0) {
        (void)complain(&e);
    } else {
        double begin = now_sec();
        right = run(pool, count);
        printf("%lu of %lu commands gave the right result, %.0f a second\n", right, count, (double)right / (now_sec() - begin));
    }
    px_pool_free(pool);
    px_engine_free(engine);
    px_policy_free(policy);
    return right == count ? 0 : 1;
}
