/* px engine: the process behind px_engine_new; it is not for people. Its socket is descriptor 3. */
#include "args.h"

#include <px/engine.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int run_engine(struct args *a)
{
    enum { SOCKET = 3 };
    struct px_err e = {0};
    (void)syscall(436 /* close_range */, SOCKET + 1, ~0u, 0);   /* whatever else the caller had open and did not mark */
    if (fcntl(SOCKET, F_SETFD, FD_CLOEXEC) < 0)
        return usage_error(a->cli, USAGE_STATUS, "It is started by px_engine_new() of libpx.", "px engine has nobody to serve");
    allow_many_files();
    (void)!chdir("/");          /* banned: a program of its own, which must not hold on to a directory of the caller */
    return px_engine_serve(SOCKET, &e) < 0 ? say_error(a->cli, &e, 1) : 0;
}

const struct verb engine_verbs[] = {
    {"", "", "serve the caller's socket", run_engine},
    {0},
};
