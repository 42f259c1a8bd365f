/* What a hostile box does, one thing at a time: `stress attack NAME`, run inside. Most go on until they are killed. */
#include "stress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FDS_MAX = 1 << 16, INIT_FDS = 64 };

static char junk[1 << 16];

/* Whoever waits for it knows that it is at work now. */
static void say_up(void)
{
    (void)!write(2, "up\n", 3);
}

static void stay(void)
{
    say_up();
    for (;;)
        (void)pause();
}

static void flood(char **argv)
{
    (void)argv;
    say_up();
    for (;;)
        if (write(1, junk, sizeof junk) < 0 || write(2, junk, sizeof junk) < 0)
            return;
}

static void fill_pipes(char **argv)
{
    int ends[2];
    (void)argv;
    while (pipe2(ends, O_NONBLOCK) == 0)
        while (write(ends[1], junk, sizeof junk) > 0)
            ;
    stay();
}

/* Every process that may be: and again as soon as one is gone. */
static void fork_all(char **argv)
{
    (void)argv;
    say_up();
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                (void)pause();
    }
}

static void fork_group(char **argv)
{
    (void)argv;
    for (int i = 0; i < 5; i++)
        if (fork() == 0)
            for (;;)
                (void)pause();
    stay();
}

/* Until nobody else is left in the box but pid 1, whom no such signal reaches; not for ever. */
static void be_alone(char **argv)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    (void)argv;
    for (int i = 0; i < 6000; i++) {
        if (kill(-1, 0) < 0 && errno == ESRCH)
            _exit(0);
        (void)nanosleep(&pause, NULL);
    }
}

static void stop_itself(char **argv)
{
    (void)argv;
    say_up();                   /* first: there may be no later */
    if (fork() == 0)
        for (;;)
            (void)kill(0, SIGSTOP);
    for (;;)
        (void)pause();
}

/* Whatever comes to life beside it, also a command that is only just being made. */
static void stop_others(char **argv)
{
    (void)argv;
    say_up();
    for (;;)
        (void)kill(-1, SIGSTOP);
}

static void kill_others(char **argv)
{
    (void)argv;
    say_up();
    for (;;) {
        (void)kill(1, SIGKILL);
        (void)kill(1, SIGSTOP);
        (void)kill(-1, SIGKILL);
    }
}

static void exec_again(char **argv)
{
    static char *again[] = {(char *)STRESS_INSIDE, (char *)"attack", (char *)"exec", (char *)"again", NULL};
    if (!argv[0])
        say_up();
    (void)execv(again[0], again);
}

static void ask_denied(char **argv)
{
    (void)argv;
    say_up();
    for (;;)
        (void)mount("none", "/", "tmpfs", 0, NULL);
}

static void take_terminals(char **argv)
{
    (void)argv;
    while (open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
        ;
    stay();
}

/* Descriptors on their way to nobody: the kernel counts them by user, not by process. */
static void send_fds(char **argv)
{
    enum { EACH = 250 };
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(EACH * sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(EACH * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec iov = {.iov_base = junk, .iov_len = 1};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};
    int ends[2];
    (void)argv;
    memset(CMSG_DATA(&control.header), 0, EACH * sizeof(int));  /* descriptor 0, many times over */
    while (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0)
        if (sendmsg(ends[0], &m, MSG_DONTWAIT) < 0)
            break;
    stay();
}

/* ---- pid 1 and its socket: 0 if nothing of it can be had ---- */

static int opened(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        return 0;
    fprintf(stderr, "%s can be opened\n", path);
    (void)close(fd);
    return 1;
}

/* A command holds three streams and no socket but what it makes itself. */
static int holds_socket(void)
{
    int found = 0;
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct stat st;
        if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode)) {
            fprintf(stderr, "descriptor %d is a socket\n", fd);
            found++;
        }
    }
    return found;
}

static void reach_init(char **argv)
{
    int found = holds_socket();
    (void)argv;
    for (int fd = 0; fd < INIT_FDS; fd++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/1/fd/%d", fd);
        found += opened(path, O_RDWR) + opened(path, O_RDONLY) + opened(path, O_WRONLY);
        (void)snprintf(path, sizeof path, "/proc/1/fdinfo/%d", fd);
        found += opened(path, O_RDONLY);
    }
    static const char *const written[] = {"/proc/1/mem", "/proc/1/comm", "/proc/1/oom_score_adj", "/proc/1/uid_map",
                                          "/proc/1/exe", "/proc/1/clear_refs", "/proc/1/attr/current"};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
        found += opened(written[i], O_WRONLY);
    static const char *const read[] = {"/proc/1/mem", "/proc/1/maps", "/proc/1/environ", "/proc/1/root", "/proc/1/ns/user"};
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        found += opened(read[i], O_RDONLY);
    _exit(found ? 3 : 0);
}

int stress_attack(const char *name, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(char **argv);
    } all[] = {
        {"flood", flood},        {"pipes", fill_pipes},     {"fork", fork_all},       {"stop-self", stop_itself},
        {"stop-all", stop_others}, {"kill-all", kill_others}, {"exec", exec_again},     {"denied", ask_denied},
        {"init", reach_init},    {"terminals", take_terminals}, {"descriptors", send_fds}, {"group", fork_group},
        {"alone", be_alone},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, name) == 0) {
            all[i].run(argv);
            return 1;           /* it should have gone on */
        }
    return 2;
}
