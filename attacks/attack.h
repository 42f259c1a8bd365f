/* attacks/attack.h - what all attacks share: one function a row of data/attacks.def, and words for how it ended.
 *
 * Why:     each row is run alone in a fresh box: `px-attack NAME`. An attack prints `stopped`, a twin `worked`, with
 *          exit 0; anything else is a failure and says why. `px-attack list` prints the table.
 * Owns:    nothing.
 * Mustn't: harm the host when px is broken: loops, allocations and writes are bounded by the rows themselves, a file of
 *          the host that turns out to be writable is only opened, and pid 1 is left alone if it is not the box's. */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The functions of the table. 0: stopped or worked; SKIP; else the failure was printed. */
#define PX_ATTACK(name, function, ...) int function(void);
#define PX_TWIN(name, function, ...) int function(void);
#include "attacks.def"
#undef PX_ATTACK
#undef PX_TWIN

enum { DONE = 0, FAILED = 1, SKIP = 77 };

__attribute__((format(printf, 1, 2))) static inline int failed(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    return FAILED;
}

__attribute__((format(printf, 1, 2))) static inline int skipped(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    return SKIP;
}

/* Values from the program that started us: A_SECRET, A_PORT and so on. */
static inline const char *argument(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* Where the writable directory of the caller and where this program lie in the box. */
static inline const char *workspace(void)
{
    const char *at = argument("A_WS");
    return *at ? at : "/ws";
}
static inline const char *here(void)
{
    const char *at = argument("A_HERE");
    return *at ? at : "/attack";
}

/* A name in a directory of those two; each call has room of its own for a while. */
static inline const char *in(const char *dir, const char *name)
{
    static char room[8][600];
    static int next;
    char *out = room[next++ % 8];
    snprintf(out, sizeof room[0], "%s/%s", dir, name);
    return out;
}

/* Whether a comma-separated list of the caller's holds a text. */
static inline bool told(const char *list, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = argument(list); *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
        if (strcspn(p, ",") == n && memcmp(p, text, n) == 0)
            return true;
    return false;
}

/* Rows that look for programs of the base's know only the host's. */
static inline bool host_base(void)
{
    const char *base = argument("A_BASE");
    return !*base || strcmp(base, "host") == 0;
}

/* In a pid namespace of its own the numbers are small; without one, pid 1 is the host's and must be spared. */
static inline bool boxed(void)
{
    return getpid() < 100;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Calls a row in a child, so that it may be killed, chroot itself or leak; returns the wait status. */
static inline int in_child(int (*run)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int r = run();
        fflush(stdout);
        _exit(r);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* The system call must fail with EPERM, or with ENOSYS where the filter answers so. */
static inline int refused(const char *what, long result)
{
    if (result >= 0)
        return failed("%s succeeded (%ld)", what, result);
    if (errno != EPERM && errno != ENOSYS)
        return failed("%s got past the filter: %s", what, strerror(errno));
    return DONE;
}

static inline int read_text(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    size_t have = 0;
    ssize_t n;
    while (have + 1 < size && (n = read(fd, out + have, size - 1 - have)) > 0)
        have += (size_t)n;
    close(fd);
    out[have] = '\0';
    return (int)have;
}

/* look.c */
bool listed(const char *name, const char *const list[], size_t count);
bool granted(const char *path);                 /* the policy put something there, or above it */
/* Every name in the directory is on the list, or granted. */
int only(const char *path, const char *const list[], size_t count);

struct seen_mount {
    char root[512], target[512], options[256], type[64], super[512];
};
int each_mount(int (*check)(const struct seen_mount *m));
bool is_device_mount(const struct seen_mount *m);       /* a node in /dev, or /dev/null over a file; in a container of a tmpfs */
