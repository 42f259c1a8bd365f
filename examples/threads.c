/* Eight threads, each running twenty boxes one after another. Objects belong to one thread at a time, and the
 * library has no state outside them, so nothing needs a lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <px/px.h>

enum { THREADS = 8, ROUNDS = 20 };

struct worker {
    pthread_t thread;
    unsigned number;
    unsigned right;
};

static int complain(const struct px_err *e)
{
    fprintf(stderr, "PX%03d  %s: %s\n", e->code, e->what, e->why);
    return 0;
}

/* 1 if the box said what it should. */
static int one_box(const struct px_policy *policy, unsigned number)
{
    char text[32];
    const char *const argv[] = {"sh", "-c", text, NULL};
    struct px_err e = {0};
    struct px_box *box = NULL;
    int right = 0;

    (void)snprintf(text, sizeof text, "echo %u", number);
    if (px_box_start(policy, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0) {
        (void)complain(&e);
    } else {
        const struct px_result *r = px_box_result(box);
        right = r->status == PX_STATUS_OK && strtoul(r->out.data, NULL, 10) == number;
    }
    px_box_free(box);
    return right;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct px_err e = {0};
    struct px_policy *policy = NULL;

    if (px_policy_new("default", &policy, &e) < 0 || px_policy_set(policy, "timeout", "60s", &e) < 0)
        (void)complain(&e);
    else
        for (unsigned i = 0; i < ROUNDS; i++)
            w->right += (unsigned)one_box(policy, w->number * ROUNDS + i);
    px_policy_free(policy);
    return NULL;
}

int main(void)
{
    struct worker workers[THREADS] = {0};
    unsigned started = 0, right = 0;

    for (; started < THREADS; started++) {
        workers[started].number = started;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    for (unsigned i = 0; i < started; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        right += workers[i].right;
    }
    printf("%u of %d boxes in %d threads gave the right result\n", right, THREADS * ROUNDS, THREADS);
    return right == THREADS * ROUNDS ? 0 : 1;
}
