/* init/wire.h - the messages on the sockets of px-init, pid 1 of a box.
 *
 * Why:     a wait status and the resource usage cannot be read from outside once the namespace is gone. A container
 *          takes one command after the other, started from inside.
 * Mustn't: be trusted from anything but our own end of a socket, which no program of the box ever holds.
 *
 *     a box of one command         px-init --> report, once, when the payload has ended
 *     a container                  px-init --> started {0}: it takes requests now
 *                                  request + descriptors --> px-init
 *                                  on the request's own reply socket: [the terminal,] started + pidfd, and last a report
 */
#pragma once

#include <stdint.h>

enum { PX_INIT_REFUSED_MAX = 24 };

/* A system call that the filter refused, and how often. */
struct px_init_refused {
    int32_t number;
    uint32_t unused;
    uint64_t count;
};

struct px_init_report {
    int32_t wait_status;        /* of the payload */
    /* bit N: the Nth writable directory of the plan is full; of a container: and was not before */
    uint32_t disk_full;
    uint64_t user_usec, sys_usec, maxrss_kib, read_blocks, write_blocks;
    uint32_t shared;            /* another command ran in the box while this one did */
    uint32_t refused_count;
    struct px_init_refused refused[PX_INIT_REFUSED_MAX];        /* of a command in a container */
};

enum { PX_INIT_TEXT_MAX = 64 << 10, PX_INIT_WORDS_MAX = 72 << 10, PX_INIT_COMMANDS_MAX = 512, PX_INIT_RLIMITS_MAX = 16 };

enum px_init_flags {
    PX_INIT_TTY = 1 << 0,       /* on a terminal of its own; the master is sent back first */
    PX_INIT_IN = 1 << 1,        /* which of the streams follow as descriptors; the others are /dev/null */
    PX_INIT_OUT = 1 << 2,
    PX_INIT_ERR = 1 << 3,
    PX_INIT_FILE = 1 << 4,      /* the texts are in a file, whose descriptor follows the reply socket */
    PX_INIT_KEEP_IDS = 1 << 5,  /* there is only one id */
    /* no new command: sends `signal` to the group of the one with that pid; SIGKILL goes to all that it started */
    PX_INIT_SIGNAL = 1 << 6,
    PX_INIT_ALONE = 1 << 7,     /* the box is this command's alone: so is every refused call in it */
};

struct px_init_rlimit {
    uint32_t resource, unused;
    uint64_t soft, hard;
};

/* Followed by the texts, each with its NUL: directory, candidate paths of the program, arguments, environment.
 * Descriptors: reply socket, file of texts, stdin, stdout, stderr; those that the flags name. */
struct px_init_request {
    uint32_t flags;
    uint32_t uid, gid;
    uint32_t places, argc, envc;
    uint32_t length;            /* of the texts */
    uint16_t rows, cols;
    int32_t pid, signal;
    uint32_t rlimits;
    struct px_init_rlimit rlimit[PX_INIT_RLIMITS_MAX];
};

/* FULL: PX_INIT_COMMANDS_MAX commands run already. */
enum px_init_stage { PX_INIT_PREPARE, PX_INIT_FULL, PX_INIT_TERMINAL, PX_INIT_IDS, PX_INIT_CHDIR, PX_INIT_APPARMOR, PX_INIT_FILTER,
                     PX_INIT_EXEC };

struct px_init_started {
    int32_t err;                /* 0, or -errno */
    uint32_t stage;             /* where it failed */
    uint32_t found;             /* EXEC: the file exists. In the first message: refused calls are counted */
    /* in the box's pid namespace. In the first message < 0: only process groups can be killed */
    int32_t pid;
};

/* The head of the file that px-init has as descriptor 2. The instructions of the filters follow: px-init's own, that
 * of each command, and another one for px-init where the box has only one id. px-init then empties the file, and
 * writes an array of px_init_refused to it: the refused calls of processes that belong to no running command. */
struct px_init_filters {
    uint16_t own, command, spare;       /* numbers of instructions; 0: none */
    uint16_t listen;            /* enum px_init_listen */
    uint32_t apparmor;          /* offset in the file of the AppArmor profile for each command, with its NUL; 0: none */
    uint32_t unused;
};

/* Which of them is loaded with a listener. */
enum px_init_listen { PX_INIT_LISTEN_NONE, PX_INIT_LISTEN_OWN, PX_INIT_LISTEN_COMMAND };
