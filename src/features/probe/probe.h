/* probe/probe.h - tests what this host enforces: a forbidden operation must fail, and its permitted counterpart must
 * work.
 *
 * Why:     a version or a setting shows what should work; only a test shows what does.
 * Owns:    short-lived children (5 s each, then they are killed by pidfd). What they create is in their own
 *          namespaces and cgroups and is removed with them.
 * Mustn't: change anything outside of those children, print, or call a mechanism enforced whose probe could not run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernel/idmap.h"

enum px_probe_state { PX_PROBE_ABSENT, PX_PROBE_DEGRADED, PX_PROBE_ENFORCED };

enum px_probe_need { PX_NEED_FULL, PX_NEED_LANDLOCK, PX_NEED_LIMITS, PX_NEED_NETWORK, PX_NEED_NICE };

/* What would fix a row; the text, which differs between distributions, is in doctor/raise.c. */
enum px_raise {
    PX_RAISE_NONE,
    PX_RAISE_KERNEL,            /* a newer kernel, or one with more built in */
    PX_RAISE_OUTER_FILTER,      /* a seccomp filter surrounds px */
    PX_RAISE_USERNS_MAX,        /* user.max_user_namespaces is 0 or reached */
    PX_RAISE_USERNS_CLONE,      /* kernel.unprivileged_userns_clone is 0 */
    PX_RAISE_USERNS_APPARMOR,   /* AppArmor removes the privileges in a new user namespace */
    PX_RAISE_USERNS,            /* refused, and none of the above explains it */
    PX_RAISE_PROCESSES,         /* no more processes for this user */
    PX_RAISE_DESCRIPTORS,       /* no more open files for this process */
    PX_RAISE_NO_PROC,           /* no /proc is mounted */
    PX_RAISE_SUBIDS,
    PX_RAISE_NO_NEW_PRIVS,      /* newuidmap exists, but cannot gain its privileges */
    PX_RAISE_RANGE,             /* root, but in a container with too few ids, or without /run/px */
    PX_RAISE_CAPABILITIES,      /* root, but without them */
    PX_RAISE_PROC,              /* /proc is covered or read-only around px */
    PX_RAISE_OVERLAY,
    PX_RAISE_IDMAPPED,          /* the file system cannot be mapped */
    PX_RAISE_LANDLOCK,
    PX_RAISE_LANDLOCK_ABI,      /* there, but too old for the landlock tier */
    PX_RAISE_DELEGATE,          /* an ordinary user without a cgroup of its own */
    PX_RAISE_CGROUP,            /* root without a writable hierarchy */
    PX_RAISE_TUN,
    PX_RAISE_TUN_ACCESS,
    PX_RAISE_NFT,
    PX_RAISE_COUNT,
};

enum { PX_PROBE_TEXT = 200, PX_PROBE_INSIDE_MAX = 8 };

struct px_probe_row {
    enum px_probe_state state;
    enum px_raise raise;
    char found[PX_PROBE_TEXT];          /* "ABI 7"; may be empty */
    char forbidden[PX_PROBE_TEXT];      /* "... failed with EPERM" */
    char permitted[PX_PROBE_TEXT];      /* "... worked" */
    char why[PX_PROBE_TEXT];            /* not empty unless enforced; starts with "unknown: " if the probe could not run */
};

/* What is known before the first probe, and what probes record for later ones. */
struct px_probe_host {
    bool root;
    bool filtered;              /* a seccomp filter is already in force */
    bool no_new_privs;
    bool userns;                /* a user namespace could be made */
    bool cgroups;               /* a hierarchy is mounted */
    struct px_idmap map;        /* of the children's user namespaces */
    size_t inside_count;
    char inside[PX_PROBE_INSIDE_MAX][PX_PROBE_TEXT];    /* "in a container: /.dockerenv is there" */
};

void px_probe_host_init(struct px_probe_host *host);
void px_probe_host_done(struct px_probe_host *host);

struct px_probe_ctx;
struct px_probe {
    const char *name, *group;
    enum px_probe_need need;
    void (*run)(struct px_probe_ctx *c);
};

/* In the order in which they have to run; NULL past the end. */
const struct px_probe *px_probe_at(size_t index);
void px_probe_run(const struct px_probe *probe, struct px_probe_host *host, struct px_probe_row *ret_row);
