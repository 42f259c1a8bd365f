/* attacks/attack.h - what all attacks share: the tables of named rows, and words for how a row ended.
 *
 * Why:     each row is run alone in a fresh box: `px-attack NAME`. An attack prints `stopped`, a twin `worked`, with
 *          exit 0; anything else is a failure and says why. `px-attack list` prints the rows with their px options.
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

enum kind { ATTACK, TWIN };

/* BARE marks rows that may also run without a box (`run --control`), to see that they notice it. */
enum { BARE = 1 };

struct row {
    enum kind kind;
    const char *name;    /* catalogue row first: A5_stdout_reopen */
    int (*run)(void);    /* 0: stopped or worked; SKIP; else the failure was said */
    const char *options; /* of px exec; @WS is a writable directory of the host */
    int flags;
};

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

static inline const char *argument(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
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

struct table {
    const struct row *rows;
    size_t count;
};
extern const struct table fs_table, ids_table, ipc_table, limits_table, proc_table, syscall_table;
