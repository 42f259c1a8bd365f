/* runtime/start.h - px-start, pid 1 of a runtime's container: what it is ordered to do, and what it says over its socket.
 *
 * Why:     a runtime hands back one number between 0 and 255. Which step failed, how the command really ended, what it used and
 *          which process it is can only be told from inside, by a program of ours that the command cannot reach; and what no
 *          runtime does as we do (Landlock, a filter that tells what it refused, limits set last) is done there.
 * Mustn't: be trusted from anything but our own end of the socket, which px-start alone holds. The orders can be read in the
 *          container, so they name nothing of the host. */
#pragma once

#include <stdint.h>

#include "init/wire.h"

#define PX_START_DIR "/.px"              /* state: in the root of a container that px made for this run */
#define PX_START_PATH PX_START_DIR "/start"
#define PX_START_ORDERS PX_START_DIR "/orders"

enum { PX_START_FD = 3, PX_START_FILTERS = 2 };

/* ---- orders: one file, offsets from its beginning ---- */

enum px_start_terminal {
    PX_START_NO_TERMINAL,
    PX_START_OWN_TERMINAL,      /* made from the container's own /dev/pts; the supervisor gets the master */
    PX_START_GIVEN_TERMINAL,    /* the runtime's, which is standard input */
};

struct px_start_limit {
    uint64_t resource, soft, hard;
};

struct px_start_rule {
    uint64_t rights;            /* of Landlock */
    uint32_t path;
    uint32_t maybe;             /* a missing path is not an error */
};

struct px_start_filter {
    uint32_t code, length;      /* length in instructions; 0: none */
    uint32_t listen;            /* refused calls are also reported to the supervisor */
};

struct px_start_orders {
    uint32_t size;              /* of the file */
    uint32_t socket;            /* there is one */
    uint32_t terminal;          /* enum px_start_terminal */
    uint32_t rows, cols;
    uint32_t uid, gid;          /* that the container must have */
    uint32_t other_ids;         /* where only one id exists, the command has it by other numbers: */
    uint32_t command_uid, command_gid;
    uint32_t workdir;           /* text */
    uint32_t limits, limits_count;              /* struct px_start_limit */
    uint32_t directories, directories_count;    /* texts one after the other: whose fill level is reported */
    uint32_t candidates, candidates_count;      /* texts one after the other: what a search of PATH gives */
    uint32_t argv, argv_count, envp, envp_count;        /* texts one after the other; JSON could not hold every byte of them */
    uint32_t rules, rules_count;                /* struct px_start_rule */
    uint32_t landlock_abi;      /* 0: no Landlock */
    struct px_start_filter filters[PX_START_FILTERS];
};

/* ---- messages ---- */

enum px_start_kind {
    PX_START_HELLO = 1,         /* the container is as it should be; waits for an answer before the command exists */
    PX_START_FAILED,            /* `step` went wrong with `err` */
    PX_START_RUNS,              /* the command's program runs; carries the descriptors of `carries` */
    PX_START_ENDED,             /* `report` is filled */
};

/* What a message of ours carries, in this order. */
enum px_start_carries { PX_START_PIDFD = 1, PX_START_LISTENER = 2, PX_START_MASTER = 4, PX_START_CARRIES_MAX = 3 };

/* The answer to HELLO: a byte with a bit for each standard stream that comes with it; others are /dev/null. A runtime would put
 * pipes of its own between, and lose what is in them when it dies. */

enum px_start_step {
    PX_START_ORDERED = 1,       /* the orders cannot be read */
    PX_START_IDS,               /* other ids than the policy's */
    PX_START_PRIVILEGES,        /* a set of capabilities is not empty, or no_new_privs is off */
    PX_START_PROCESS,
    PX_START_STDIO,
    PX_START_TERMINAL,
    PX_START_OTHER_IDS,
    PX_START_WORKDIR,
    PX_START_LANDLOCK,
    PX_START_RLIMIT,
    PX_START_SECCOMP,
    PX_START_EXEC,
    PX_START_CGROUP,            /* never sent: the supervisor's own part */
};

struct px_start_message {
    uint32_t kind;
    uint32_t step;
    int32_t err;                /* -errno */
    uint32_t found;             /* EXEC: the file was there */
    uint32_t carries;           /* RUNS */
    struct px_init_report report;
};
