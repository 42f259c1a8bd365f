/* launch - times a whole command, from spawning it to reaping it; requests as in bench.h.
 *
 *     launch COMMAND ARG...
 *
 * posix_spawn is a vfork and an exec, so the launcher adds next to nothing of its own. The command gets the null
 * device on 0, 1 and 2. An argument that is exactly {i} becomes a name that is new in every run, for runtimes that
 * want one. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct command {
    char **argv;
    posix_spawn_file_actions_t to_null;
    unsigned long serial;
    char unique[64];
};

static int run_once(void *arg)
{
    struct command *command = arg;
    pid_t pid;
    int status;

    (void)snprintf(command->unique, sizeof command->unique, "bench-%d-%lu", (int)getpid(), command->serial++);
    if (posix_spawnp(&pid, command->argv[0], &command->to_null, NULL, command->argv, environ) != 0)
        return 127;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int command_init(struct command *command, char **argv)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || posix_spawn_file_actions_init(&command->to_null) != 0)
        return -1;
    for (int fd = 0; fd <= 2; fd++)
        if (posix_spawn_file_actions_adddup2(&command->to_null, null, fd) != 0)
            return -1;
    command->argv = argv;
    for (char **word = argv; *word; word++)
        if (strcmp(*word, "{i}") == 0)
            *word = command->unique;
    return 0;
}

int main(int argc, char **argv)
{
    struct command command = {0};

    if (argc < 2) {
        fputs("usage: launch COMMAND ARG...\n", stderr);
        return 2;
    }
    if (command_init(&command, argv + 1) < 0) {
        perror("launch");
        return 1;
    }
    return serve(run_once, &command);
}
