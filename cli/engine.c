/* px engine: the process behind px_engine_new; it is not for people. Its socket is descriptor 3. */
#include "cli.h"

#include <px/engine.h>

#include <fcntl.h>
#include <unistd.h>

int cmd_engine(struct cli *cli, int argc, char **argv)
{
    enum { SOCKET = 3 };
    struct px_err e = {0};
    (void)argv;
    if (argc != 0 || fcntl(SOCKET, F_SETFD, FD_CLOEXEC) < 0)
        return usage_error(cli, USAGE_STATUS, "It is started by px_engine_new() of libpx.", "px engine has nobody to serve");
    (void)!chdir("/");         /* banned: a program may */
    return px_engine_serve(SOCKET, &e) < 0 ? say_error(cli, &e, 1) : 0;
}
