/* A server with fifty boxes that stay, one for each of its users, and one poll() loop for all of them.
 *
 *     server50 [REQUESTS]
 *
 * A request is a command in its user's box. What the box keeps between requests (here: a counter in a file) is that user's
 * alone. The boxes come from an engine, so that taking one costs next to nothing. Ends after so many requests. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <px/engine.h>

enum { USERS = 50 };

struct user {
    struct px_box *home;        /* the box that stays */
    struct px_box *running;     /* the command that answers the request of the moment; NULL: idle */
    unsigned long asked;        /* how many requests this user has made */
};

struct server {
    struct px_policy *policy;
    struct px_engine *engine;
    struct px_pool *pool;
    struct user users[USERS];
    unsigned long started, wanted, right;
};

static int complain(const struct px_err *e)
{
    fprintf(stderr, "PX%03d  %s: %s\n", e->code, e->what, e->why);
    return -1;
}

static int open_server(struct server *s, struct px_err *e)
{
    if (px_policy_new("default", &s->policy, e) < 0 || px_policy_set(s->policy, "timeout", "60s", e) < 0 ||
        px_engine_new(NULL, &s->engine, e) < 0 || px_pool_new(s->engine, s->policy, 4, &s->pool, e) < 0)
        return -1;
    for (int i = 0; i < USERS; i++)
        if (px_pool_stay(s->pool, &s->users[i].home, e) < 0)
            return -1;
    return 0;
}

static void close_server(struct server *s)
{
    for (int i = 0; i < USERS; i++) {
        px_box_free(s->users[i].running);       /* commands before their home */
        px_box_free(s->users[i].home);
    }
    px_pool_free(s->pool);
    px_engine_free(s->engine);
    px_policy_free(s->policy);
}

/* Where a real server would take what came in over a connection. */
static int next_request(struct server *s, struct user *u, struct px_err *e)
{
    static const char *const argv[] = {"sh", "-c", "read -r n 2>/dev/null <count; echo $((n + 1)) | tee count", NULL};
    if (s->started == s->wanted)
        return 0;
    s->started++;
    u->asked++;
    return px_box_exec(u->home, s->policy, argv, NULL, &u->running, e);
}

/* 1 while the command runs. */
static int serve(struct server *s, struct user *u, struct px_err *e)
{
    int r = px_box_step(u->running, e);
    if (r != 0)
        return r;
    const struct px_result *result = px_box_result(u->running);
    s->right += result->status == PX_STATUS_OK && strtoul(result->out.data, NULL, 10) == u->asked;
    px_box_free(u->running);
    u->running = NULL;
    return next_request(s, u, e);
}

static int loop(struct server *s, struct px_err *e)
{
    struct pollfd fds[USERS];
    size_t busy = 0;
    for (int i = 0; i < USERS; i++)
        if (next_request(s, &s->users[i], e) < 0)
            return -1;
    do {
        busy = 0;
        for (int i = 0; i < USERS; i++) {       /* poll ignores negative descriptors */
            struct px_box *box = s->users[i].running;
            fds[i] = (struct pollfd){.fd = box ? px_box_fd(box) : -1, .events = POLLIN};
            busy += box != NULL;
        }
        if (busy && poll(fds, USERS, -1) < 0 && errno != EINTR)
            return -1;
        for (int i = 0; i < USERS; i++)
            if (busy && fds[i].revents && serve(s, &s->users[i], e) < 0)
                return -1;
    } while (busy);
    return 0;
}

int main(int argc, char **argv)
{
    struct server server = {.wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 200};
    struct px_err e = {0};
    int r = open_server(&server, &e) < 0 || loop(&server, &e) < 0 ? complain(&e) : 0;

    close_server(&server);
    printf("%lu of %lu requests in %d boxes had the right answer\n", server.right, server.wanted, USERS);
    return r == 0 && server.right == server.wanted ? 0 : 1;
}
