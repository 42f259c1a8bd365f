/* kernel/cgroup.h - the limits and counters of one box, on cgroup v2, v1 or both at once.
 *
 * Why:     only cgroups can limit the memory, processor share and process count of a whole process tree. Which
 *          hierarchy is writable is found out by trying, never by version numbers.
 * Owns:    the directories it made, each with a lock on its descriptor. The next box removes a directory whose lock
 *          is free.
 * Mustn't: raise a limit that holds the caller (cgroups are made below the caller's own), print, or run in the
 *          child. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum px_controller { PX_CG_MEMORY, PX_CG_PIDS, PX_CG_CPU, PX_CG_COUNT };

struct px_cgroup_limits {       /* 0: not limited */
    uint64_t memory_bytes, pids, cpu_milli;
    bool one_by_one;            /* when out of memory, the kernel kills one process and not all of them */
    bool shared;                /* its first processes share our memory: nothing in it is killed before px_cgroup_arm */
};

struct px_cgroup_dir {
    int parent_fd, fd;          /* -EBADF: none; without a parent the cgroup is another process's, and only read */
};

struct px_cgroup {
    char name[40];              /* of the directory, the same in every hierarchy */
    struct px_cgroup_dir v2;    /* for limits, or only for cgroup.kill in a hybrid set-up */
    struct px_cgroup_dir v1[PX_CG_COUNT];
    bool on_v2[PX_CG_COUNT];    /* which hierarchy holds the limit */
    struct px_cgroup_limits unarmed;    /* what px_cgroup_arm has still to set; zeroes: nothing */
    bool armed_ahead;           /* ... except for the limit itself */
};

struct px_cgroup_usage {
    uint64_t memory_peak, oom_kills, pids_peak, pids_refused, cpu_usec;
    const char *memory_source, *oom_counter, *pids_counter;   /* which file was read; NULL: none */
};

#define PX_CGROUP_NONE {.v2 = {-EBADF, -EBADF}, .v1 = {{-EBADF, -EBADF}, {-EBADF, -EBADF}, {-EBADF, -EBADF}}}

/* Makes the cgroups for the limits that are set. On failure *ret_which names the controller that is not available. */
int px_cgroup_create(const struct px_cgroup_limits *limits, const char *id, struct px_cgroup *ret_cg,
                     const char **ret_which);
/* Moves a process that has not started anything yet (v1 only; in v2 it is cloned into the cgroup). */
int px_cgroup_join(const struct px_cgroup *cg, pid_t pid);
/* For limits.shared: called once no process of the cgroup shares our memory any more. When a cgroup is out of
 * memory, the kernel kills every process that shares the memory of the chosen one, also outside of the cgroup. So
 * until now nothing was killed: above the limit a process sleeps (v2: memory.high), or waits when it is 64 MiB above
 * it (v1: oom_control). pid: the process of px_cgroup_join, or 0. -ESRCH: it has ended. -EBUSY: more memory is used
 * than the limit allows, and the caller must kill the box. */
int px_cgroup_arm(struct px_cgroup *cg, pid_t pid);
/* Sets the v1 limit earlier, where that can kill nothing yet: the one process of the cgroup that shares our memory
 * only execs, and 16 MiB are left for that. Other such processes must have left by px_cgroup_memory_door. Returns 0
 * also where the limit has to wait for px_cgroup_arm. */
int px_cgroup_arm_ahead(struct px_cgroup *cg);
/* The file to which a process of the box writes "0" to move into our own v1 memory cgroup until px_cgroup_arm, so
 * that it cannot fail because the rest of the box has used up the memory; -EBADF: not needed. */
int px_cgroup_memory_door(const struct px_cgroup *cg);
/* Moves a running process, in every hierarchy. */
int px_cgroup_enter(const struct px_cgroup *cg, pid_t pid);
/* For CLONE_INTO_CGROUP; -EBADF if there is no v2 group. */
int px_cgroup_birth_fd(const struct px_cgroup *cg);
void px_cgroup_read(const struct px_cgroup *cg, struct px_cgroup_usage *u);
/* kills all processes in it at once; -ENOSYS without a v2 cgroup */
int px_cgroup_kill(const struct px_cgroup *cg);
/* Removes the directories; waits for dying processes for a limited time. -EBUSY if one did not end. */
int px_cgroup_done(struct px_cgroup *cg);
