/* child/child.h - applying a plan, in the new process.
 *
 *   parent              pid 1 of the box                payload
 *   clone3  ----------> applies stage 1
 *   writes id maps ---> WAIT: goes on with them
 *   waits               PAYLOAD: clone ---------------> applies stage 2
 *                       builds the root                 NETNS: makes the network meanwhile
 *                       READY: root is there  <-------> JOIN: network is there
 *   arms the memory     follows into the network        gives everything up
 *   limit (v1)          waits
 *   looks at the root
 *   opens the gate -----------------------------------> GATE: exec
 *                       stage 3: gives everything up
 *   goes on <---------- exec of px-init
 *   arms the memory limit, where that had to wait: now the kernel may end processes of the box
 *
 * Why:     all three share the parent's memory until they exec, so nothing is copied and a failure is one write away.
 * Owns:    nothing.
 * Mustn't: call anything that allocates, locks, or touches errno, thread-local or global state. Invariants:
 * (1) A tree of somebody else's is attached only after its attributes are set.
 * (2) Nothing is attached after PIVOT.
 * (3) A step that fails ends the box before the payload's program runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"

struct px_plan;

enum { PX_GO_WAIT, PX_GO, PX_GO_AWAY };

enum { PX_LACKS_NO_MEMFD = 1 << 0, PX_LACKS_OWN_INODES = 1 << 1, PX_LACKS_HOSTNAME = 1 << 2 };

struct px_child_report {
    uint32_t step;              /* index in the plan */
    int32_t err;                /* 0 or -errno */
    uint32_t found;             /* EXEC: the file was there */
};

struct px_child {
    const struct px_plan *plan;
    uint32_t go;                /* futex: the parent lets pid 1 go on */
    uint32_t alive;             /* cleared by the kernel when pid 1 has left our memory */
    uint32_t joined;            /* futex: the payload tells pid 1 that its network is there, or that it has failed */
    uint32_t ready;             /* futex: pid 1 tells the payload and the parent that the root is there */
    uint32_t gate;              /* futex: the parent lets the payload go on to its program */
    bool outside;               /* pid 1 has left the cgroup that limits the box's memory, before `ready` */
    uint32_t payload_alive;     /* cleared by the kernel when the payload has left our memory */
    struct px_child_report report;              /* of pid 1 */
    struct px_child_report payload_report;
    uint64_t *stamps;           /* when each step was done (CLOCK_BOOTTIME), or NULL */
    int control_fd;             /* the box's end of the control socket */
    int init_fd;                /* the sealed image of px-init */
    int relay_fd;               /* to the network driver, which gets sockets of the box's namespace; -EBADF: none */
    int filter_fd;              /* a container: the filters of its commands */
    /* the cgroup in which pid 1 waits outside of the memory limit (kernel/cgroup.h); -EBADF: none */
    int memory_fd;
    int parent_fd;              /* pidfd of the process that makes the box */
    int stdio[3];               /* -1: the box's /dev/null */
    uint16_t rows, cols;
    char *payload_stack;
    uint64_t payload_stack_size;
    uint32_t lacks;             /* PX_LACKS_*: steps that this host does not allow, and that the box runs without */
    /* working state of the child */
    int listener_fd;            /* of the system call filter, in the descriptor table that payload and pid 1 share */
    int ruleset_fd;
    int upper_tree;             /* the tmpfs of the root's upper layer, which the box's other directories share */
    int layers[PX_LAYERS_MAX];  /* the directories below the one of CHANGES, the topmost first */
    int layers_count, layers_hung;
    int payload_pid;            /* in the box's pid namespace */
    int payload_fd;             /* its pidfd */
    int net_fd;                 /* the network namespace that the payload made */
    int aside_fd, kept_fd;      /* of a template (box/template.h): its tree while it is built, its mount namespace */
    char pid_text[21];
};

enum { PX_CHILD_STACK = 32 * 1024 };

_Noreturn void px_child_main(void *arg);       /* a struct px_child */
