/* probe/probe_internal.h - how a probe is run: children with a deadline, a row in shared memory, and messages.
 *
 * Why:     a probe gives up privileges, enters namespaces and may be killed; none of that may happen to the caller.
 * Mustn't: use anything but raw system calls and px_probe_say in a child: the caller may have threads that hold locks. */
#pragma once

#include <stdint.h>

#include "kernel/fork.h"
#include "probe/probe.h"

struct px_cgroup;

/* Lies in memory that the child and the parent share. */
struct px_probe_shared {
    struct px_probe_row row;
    bool starved;               /* a call failed for lack of a descriptor, which says nothing about the mechanism */
    int64_t note[4];            /* values exchanged between the two sides of one probe */
};

struct px_probe_ctx {
    struct px_probe_host *host;
    struct px_probe_shared *shared;
    struct px_probe_row *row;   /* shared->row */
    int socket;                 /* this side's end while a child lives */
    int status;                 /* of the last child, as wait has it */
    void *own;                  /* of the job that runs, for a probe whose sides need more than numbers */
};

struct px_probe_job {
    unsigned msec;              /* how long it may take; 0: 5 s */
    uint64_t namespaces;        /* PX_CLONE_NEW*; with NEWUSER the child is its id 0, or its only id */
    const struct px_cgroup *cgroup;     /* the child lives in it; NULL: none */
    void *own;                  /* becomes c->own */
    void (*inside)(struct px_probe_ctx *c);             /* in the child */
    void (*outside)(struct px_probe_ctx *c, pid_t pid); /* in the parent, while the child waits in px_probe_meet */
};

/* Runs one child to its end. 0, or -errno if it could not run; then the row says why. */
int px_probe_child(struct px_probe_ctx *c, const struct px_probe_job *job);
/* In the child: waits until the parent has run `outside`. */
void px_probe_meet(struct px_probe_ctx *c);
void px_probe_linger(void);     /* in such a copy: until it is killed, 10 s at most */

/* A text of a row; cut if it is too long. */
void px_probe_say(char out[PX_PROBE_TEXT], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "EPERM", for a message. */
struct px_probe_errno { char text[24]; };
struct px_probe_errno px_probe_errno(long r);

/* The permitted call: true if r is not an error; the row records the success or the reason. */
bool px_probe_works(struct px_probe_ctx *c, long r, const char *act);
/* The forbidden call: true if it failed with one of the two errors; another failure proves nothing. */
bool px_probe_refused(struct px_probe_ctx *c, long r, int want, int also, const char *act);
void px_probe_unknown(struct px_probe_ctx *c, long r, const char *what);
void px_probe_no_process(struct px_probe_ctx *c, long r);

/* A number in a small file of /proc or /sys; -1 if it is not there or not a number. */
int64_t px_probe_number(const char *path);

/* An empty tmpfs as the working directory, in a mount namespace of the child's own. False, and the row says why. */
bool px_probe_own_root(struct px_probe_ctx *c);
int px_probe_write(int dirfd, const char *name, const char *text);      /* a new file; bytes written or -errno */

/* The probes, by file. */
void px_probe_version(struct px_probe_ctx *c);          /* probe/calls.c */
void px_probe_clone3(struct px_probe_ctx *c);
void px_probe_close_range(struct px_probe_ctx *c);
void px_probe_openat2(struct px_probe_ctx *c);
void px_probe_privileges(struct px_probe_ctx *c);
void px_probe_seccomp(struct px_probe_ctx *c);
void px_probe_foreign_calls(struct px_probe_ctx *c);
void px_probe_notification(struct px_probe_ctx *c);
void px_probe_landlock(struct px_probe_ctx *c);
void px_probe_user(struct px_probe_ctx *c);             /* probe/namespaces.c */
void px_probe_id_map(struct px_probe_ctx *c);
void px_probe_own_ids(struct px_probe_ctx *c);
void px_probe_mount(struct px_probe_ctx *c);
void px_probe_pid(struct px_probe_ctx *c);
void px_probe_ipc(struct px_probe_ctx *c);
void px_probe_uts(struct px_probe_ctx *c);
void px_probe_cgroup_namespace(struct px_probe_ctx *c);
void px_probe_no_nesting(struct px_probe_ctx *c);
void px_probe_read_only(struct px_probe_ctx *c);        /* probe/files.c */
void px_probe_pivot(struct px_probe_ctx *c);
void px_probe_tmpfs(struct px_probe_ctx *c);
void px_probe_procfs(struct px_probe_ctx *c);
void px_probe_overlay(struct px_probe_ctx *c);
void px_probe_idmapped(struct px_probe_ctx *c);
void px_probe_terminal(struct px_probe_ctx *c);
void px_probe_rlimits(struct px_probe_ctx *c);          /* probe/limits.c */
void px_probe_layout(struct px_probe_ctx *c);
void px_probe_memory(struct px_probe_ctx *c);
void px_probe_pids(struct px_probe_ctx *c);
void px_probe_cpu(struct px_probe_ctx *c);
void px_probe_cgroup_kill(struct px_probe_ctx *c);
void px_probe_tree_kill(struct px_probe_ctx *c);
void px_probe_parent_death(struct px_probe_ctx *c);
void px_probe_network(struct px_probe_ctx *c);          /* probe/net.c */
void px_probe_tun(struct px_probe_ctx *c);
void px_probe_nftables(struct px_probe_ctx *c);
void px_probe_settings(struct px_probe_ctx *c);         /* probe/host.c */
void px_probe_modules(struct px_probe_ctx *c);
void px_probe_apparmor(struct px_probe_ctx *c);
void px_probe_selinux(struct px_probe_ctx *c);
void px_probe_yama(struct px_probe_ctx *c);
void px_probe_bpf(struct px_probe_ctx *c);
void px_probe_tiocsti(struct px_probe_ctx *c);
void px_probe_fuse(struct px_probe_ctx *c);
void px_probe_loop(struct px_probe_ctx *c);
void px_probe_surroundings(struct px_probe_host *host); /* fills filtered and inside */
void px_probe_inside(struct px_probe_host *host, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
enum px_raise px_probe_userns_raise(const struct px_probe_host *host, int r);   /* why a user namespace failed with r */
