/* A hundred boxes at once, driven by one poll() loop in one thread. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <px/px.h>

enum { COUNT = 100 };

struct crowd {
    struct px_box *boxes[COUNT];
    size_t alive, right;
};

static int complain(const struct px_err *e)
{
    fprintf(stderr, "PX%03d  %s: %s\n", e->code, e->what, e->why);
    return -1;
}

/* Box N prints N and exits with N % 7, so that a mix-up would show. */
static int start(const struct px_policy *policy, size_t n, struct px_box **ret_box)
{
    char text[64];
    const char *const argv[] = {"sh", "-c", text, NULL};
    struct px_err e = {0};
    (void)snprintf(text, sizeof text, "sleep 0.2; echo %zu; exit %zu", n, n % 7);
    return px_box_start(policy, argv, NULL, ret_box, &e) < 0 ? complain(&e) : 0;
}

static int is_right(const struct px_result *r, size_t n)
{
    return r->exit_code == (int)(n % 7) && r->out.len > 0 && strtoull(r->out.data, NULL, 10) == n;
}

/* One turn: whoever is ready takes a step; whoever is gone is counted and freed. */
static int turn(struct crowd *c)
{
    struct pollfd fds[COUNT];
    struct px_err e = {0};

    for (size_t i = 0; i < COUNT; i++)          /* poll ignores negative descriptors */
        fds[i] = (struct pollfd){.fd = c->boxes[i] ? px_box_fd(c->boxes[i]) : -1, .events = POLLIN};
    if (poll(fds, COUNT, -1) < 0)
        return errno == EINTR ? 0 : -1;
    for (size_t i = 0; i < COUNT; i++) {
        int r = fds[i].revents ? px_box_step(c->boxes[i], &e) : 1;
        if (r < 0)
            return complain(&e);
        if (r > 0)
            continue;
        c->right += (size_t)is_right(px_box_result(c->boxes[i]), i);
        px_box_free(c->boxes[i]);
        c->boxes[i] = NULL;
        c->alive--;
    }
    return 0;
}

static int run(struct crowd *c, const struct px_policy *policy)
{
    for (; c->alive < COUNT; c->alive++)
        if (start(policy, c->alive, &c->boxes[c->alive]) < 0)
            return -1;
    while (c->alive > 0)
        if (turn(c) < 0)
            return -1;
    return 0;
}

int main(void)
{
    struct crowd crowd = {0};
    struct px_err e = {0};
    struct px_policy *policy = NULL;

    if (px_policy_new("default", &policy, &e) < 0 || px_policy_set(policy, "timeout", "60s", &e) < 0) {
        (void)complain(&e);
        return 1;
    }
    int r = run(&crowd, policy);
    for (size_t i = 0; i < COUNT; i++)          /* after a failure: frees kill what still runs */
        px_box_free(crowd.boxes[i]);
    px_policy_free(policy);
    printf("%zu of %d boxes gave the right result\n", crowd.right, COUNT);
    return r == 0 && crowd.right == COUNT ? 0 : 1;
}
