/* kernel/cgroup.h - the limits and counters of one box, on cgroup v2, v1 or both at once.
 *
 * Why:     memory, cpu share and process count of a whole tree can only be held by the kernel's groups. Which hierarchy can be
 *          written is found out by doing it, never by looking at version numbers.
 * Owns:    the directories it made, each held by a lock on its descriptor; a directory whose lock is free belongs to
 *          nobody and is swept by the next box.
 * Mustn't: raise a limit that surrounds the caller (groups are made below the caller's own), print, or run in the child. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum px_controller { PX_CG_MEMORY, PX_CG_PIDS, PX_CG_CPU, PX_CG_COUNT };

struct px_cgroup_limits {       /* 0: not limited */
    uint64_t memory_bytes, pids, cpu_milli;
    bool one_by_one;            /* out of memory, the kernel ends one process and not all of them */
    bool shared;                /* its first processes share our memory: nothing in it is ended before px_cgroup_arm */
};

struct px_cgroup_dir {
    int parent_fd, fd;          /* -EBADF when not there; without a parent it is somebody else's, only to be read */
};

struct px_cgroup {
    char name[40];              /* of the directory, the same in every hierarchy */
    struct px_cgroup_dir v2;    /* for limits, or only for kill in a hybrid set-up */
    struct px_cgroup_dir v1[PX_CG_COUNT];
    bool on_v2[PX_CG_COUNT];    /* which hierarchy holds the limit */
    struct px_cgroup_limits unarmed;    /* what px_cgroup_arm has still to do; zeroes: nothing */
    bool armed_ahead;           /* ... but for the limit itself */
};

struct px_cgroup_usage {
    uint64_t memory_peak, oom_kills, pids_peak, pids_refused, cpu_usec;
    const char *memory_source, *oom_counter, *pids_counter;   /* what was read; NULL: nothing */
};

#define PX_CGROUP_NONE {.v2 = {-EBADF, -EBADF}, .v1 = {{-EBADF, -EBADF}, {-EBADF, -EBADF}, {-EBADF, -EBADF}}}

/* Makes the groups for the limits that are set. On failure *ret_which names the controller that could not be had. */
int px_cgroup_create(const struct px_cgroup_limits *limits, const char *id, struct px_cgroup *ret_cg,
                     const char **ret_which);
/* Moves a process that has not started anything yet (v1 only; in v2 it is born inside). */
int px_cgroup_join(const struct px_cgroup *cg, pid_t pid);
/* For limits.shared, once no process in it shares our memory any more. When a group is out of memory the kernel ends every process
 * that shares the memory of the one it chose, also outside of the group. So until now nothing was ended: over the limit a process
 * sleeps (v2: memory.high), or waits when it is 64 MiB over it (v1: oom_control). pid: the process of px_cgroup_join, or 0.
 * -ESRCH: it has ended. -EBUSY: more memory is used than the limit allows, and has to be ended by the caller. */
int px_cgroup_arm(struct px_cgroup *cg, pid_t pid);
/* The limit of v1 before that: where the one process of the group that shares our memory only execs, and 16 MiB are left
 * for that, nothing can be ended yet. Others must have gone through px_cgroup_memory_door. 0 also where it has to wait
 * for px_cgroup_arm. */
int px_cgroup_arm_ahead(struct px_cgroup *cg);
/* Where a process of it writes "0" to be in our own v1 group of the memory until px_cgroup_arm, so that what it does cannot fail for
 * what others of the box have taken; -EBADF: not needed. */
int px_cgroup_memory_door(const struct px_cgroup *cg);
/* Moves a process that runs already, in every hierarchy. */
int px_cgroup_enter(const struct px_cgroup *cg, pid_t pid);
/* For CLONE_INTO_CGROUP; -EBADF if there is no v2 group. */
int px_cgroup_birth_fd(const struct px_cgroup *cg);
void px_cgroup_read(const struct px_cgroup *cg, struct px_cgroup_usage *u);
int px_cgroup_kill(const struct px_cgroup *cg);         /* everything in it, at once; -ENOSYS without a v2 group */
/* Removes the directories; waits a bounded time for dying processes. -EBUSY if one would not go. */
int px_cgroup_done(struct px_cgroup *cg);
