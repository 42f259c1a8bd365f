/* plan/plan.h - the steps that make a box, computed before anything starts.
 *
 * Why:     everything that can be decided, opened, resolved or compiled is, in the parent; the child only applies a flat list.
 *          The same list is printed by --plan and compared by tests without privilege.
 * Owns:    its arena and the descriptors of prepared trees.
 * Mustn't: change the host. Making a plan needs no privilege; descriptors that need some are added by px_plan_arm.
 *
 * Texts live in one arena and steps refer to them by offset, so that a plan can be sent to another process as it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <px/px.h>

#include "base/buf.h"
#include "kernel/seccomp.h"
#include "plan/source.h"
#include "policy/policy.h"

struct px_err;
struct px_idmap;
struct px_after;
struct px_carrier;
struct px_partner;
struct sock_filter;
struct px_template_builder;

enum px_op {
#define PX_OP(name, ...) PX_OP_##name,
#include "plan/ops.def"
#undef PX_OP
    PX_OP_COUNT
};

enum px_step_flags {
    PX_STEP_OWNED = 1 << 0,     /* MKDIR: belongs to the payload */
    PX_STEP_DEVICE = 1 << 1,    /* BIND: must be the device `num` */
    PX_STEP_INSIDE = 1 << 2,    /* BIND: the source is a path of the new root */
    PX_STEP_CALLER = 1 << 3,    /* BIND: the caller's files; for root px_plan_arm makes the tree, id-mapped */
    PX_STEP_DIRECTORY = 1 << 4, /* MASK: a directory */
    PX_STEP_MAYBE = 1 << 5,     /* a missing path, or a kernel without IPv6, is no error */
    PX_STEP_FILE = 1 << 6,      /* BIND: the source is a file */
    PX_STEP_SETGROUPS = 1 << 7, /* WAIT, IDS, INIT: groups can and must be dropped */
    PX_STEP_THREAD = 1 << 8,    /* INIT: die with the thread that started the box */
    PX_STEP_FOREIGN = 1 << 10,  /* BIND, TMPFS: the target lies in a tree that px did not make */
    PX_STEP_REAPER = 1 << 9,    /* INIT: there is no pid namespace to end the tree */
    PX_STEP_PLAIN = 1 << 11,    /* PROC: without hidepid; TMPFS: only pid 1 may enter */
    PX_STEP_LISTEN = 1 << 12,   /* SECCOMP: refused calls are reported to the parent */
    PX_STEP_COPY = 1 << 12,     /* BIND: the file's content, not the file itself */
    PX_STEP_UPPER = 1 << 13,    /* OVERLAY: writable, by the step UPPER; TMPFS: the part that UPPER left over */
    PX_STEP_UNMAPPED = 1 << 13, /* BIND: without an id-mapped mount; see box/lend.h */
    PX_STEP_SHARED = 1 << 15,   /* OVERLAY: the tmpfs of the upper layer has other parts too */
    PX_STEP_VOLATILE = 1 << 14, /* OVERLAY: the changes need not survive a power cut */
};

struct px_step {
    uint16_t op;
    uint16_t flags;
    int32_t fd;                 /* a prepared tree, or -1 */
    uint32_t src, dst;          /* texts in the arena; 0 is "" */
    uint32_t attr;              /* PX_MOUNT_*, a mode, or a resource */
    uint64_t num, num2;         /* device and inode, size and inodes, rights, ids */
};

#define PX_TEMPLATE_TREE "/tree"        /* the shared tree in a template namespace (box/template.h) */

enum { PX_STEPS_MAX = 1024, PX_PLAN_TEXT_MAX = 8 << 20, PX_ARGS_MAX = 65536 };

/* A check that runs while the box is being made; its command must not run unless it succeeds. */
struct px_gate {
    bool (*holds)(struct px_gate *gate);        /* waits for the answer */
};

struct px_plan {
    struct px_step *steps;
    uint32_t count;
    uint32_t payload_from;      /* index of the first step of stage 2 */
    uint32_t init_at;           /* index of PX_OP_INIT */
    struct px_buf text;         /* the arena */
    char **argv, **envp;        /* of the payload, into the arena */
    char **init_argv;
    uint64_t namespaces;        /* CLONE_NEW* of pid 1 */
    bool own_net;               /* the payload makes a network namespace, and pid 1 enters it */
    bool joins;                 /* it is cloned in the user and network namespaces of another box */
    int join;                   /* ... whose pid 1 has this pidfd; -EBADF until px_parts_connect sets it */
    bool stays;                 /* a container: commands come later */
    const int *image;           /* of px-init, if the caller shares one among its boxes; borrowed */
    const int *filters;         /* of a container, the same; only while none of them depends on the box */
    const int *template_ns;     /* a mount namespace to be cloned in (box/template.h); borrowed, NULL: the caller's */
    struct px_template_builder *builder;        /* of the thread that enters it; borrowed, NULL: none */
    bool notify;                /* the filter has a listener, which the parent gets */
    bool own_filter;            /* the filter is one of px's */
    enum px_tier tier;
    int landlock_abi;
    uint32_t scratch;           /* text: the home directory in the landlock tier */
    struct px_user caller;
    struct px_user owner;       /* of the box's directories: the payload's user */
    struct px_partner *partner; /* hooks of an OCI runtime (box/hooks.h); NULL: none */
    const char *tier_word;      /* the runtime's word for its tier; NULL: the word of `tier` */
    bool carried;               /* it needs a network driver */
    struct px_carrier *carrier; /* the network driver (box/hooks.h); NULL: none */
    struct px_after *after;     /* the hook that runs when the box has ended (box/hooks.h); NULL: none */
    struct px_gate *gate;       /* borrowed until the command runs; NULL: none */
    bool changes;               /* there is a step CHANGES, which sends the parent a descriptor */
    bool writable_binds;
    bool binds;                 /* any bind of the caller's files */
    bool root_dir;              /* the root is a directory of the caller */
    char mechanisms[PX_MECHANISMS_MAX][PX_NAME_MAX]; /* what is in force, for the result */
    uint32_t mechanisms_count;
    char missing[PX_MECHANISMS_MAX][PX_NAME_MAX];
    uint32_t missing_count;
    char hint[PX_SOURCE_TEXT];  /* for the result; "": none */
};

/* What the plan needs to know of the host. px_parts_probe asks the kernel; tests fill it by hand. */
struct px_host {
    uint32_t uid, gid;
    bool is_root;               /* the host's own root user, not that of a user namespace */
    int landlock_abi;
    bool user_namespaces;       /* assumed until the kernel says otherwise */
    /* landlock tier: an empty directory of the host that becomes the home directory; else NULL */
    const char *scratch;
    bool apparmor;              /* the kernel has it, and it is on */
    const struct sock_filter *filter;           /* the user's own, compiled; NULL: one of px's */
    uint16_t filter_length;
    bool filter_sends;          /* it permits sendmsg, with which a command of a container passes its listener */
};

int px_plan_new(const struct px_policy *policy, const char *const argv[], const struct px_host *host, bool bind_to_thread,
                struct px_plan **ret_plan, struct px_err *e);
/* A container without a command; and what one of its commands needs: limits, candidates, arguments, environment. */
int px_plan_stay(const struct px_policy *policy, const struct px_host *host, bool bind_to_thread, struct px_plan **ret_plan,
                 struct px_err *e);
int px_plan_command(const struct px_policy *policy, const char *const argv[], struct px_plan **ret_plan, struct px_err *e);
/* The container turns out to have only one id: px-init gets a filter of its own. */
void px_plan_spare_init(struct px_plan *plan);
void px_plan_free(struct px_plan *plan);
/* The fix for a file system without id-mapped mounts. */
#define PX_PLAN_ELSEWHERE "Put it on another file system: a volume of the container, a tmpfs, or a disk with ext4, xfs or btrfs."
#define PX_PLAN_HOME "If it is px's own (bases, archives, kept changes), set PX_HOME to a directory there."
/* Opens what needs the privileges of a root caller: id-mapped trees. A bind without one gets PX_STEP_UNMAPPED. */
int px_plan_arm(struct px_plan *plan, const struct px_idmap *map, struct px_err *e);
/* The error for namespaces that cannot be made; and, after any error, the hint that a system call filter around px
 * refused it. Both return -1. */
int px_plan_no_namespace(int err, struct px_err *e);
int px_plan_blame_filter(int err, struct px_err *e);
/* plan/without.c: what a test switches off. */
void px_plan_switch_off(struct px_plan *plan, const struct px_policy *policy);
/* plan/net.c: the steps of the network, and the text of /etc/resolv.conf. */
void px_plan_network(struct px_plan *plan, const struct px_policy *policy);
void px_plan_resolv(const struct px_policy *policy, struct px_buf *out);
/* plan/print.c. */
int px_plan_print(const struct px_plan *plan, char **ret_json, struct px_err *e);

/* The number of words in a command; an error if there are none, or too many. */
int px_plan_check(const char *const argv[], size_t *ret_count, struct px_err *e);
/* Which filter is in force; with a user's profile, the minimum filter below it. workspace: files of the caller are
 * writable. */
enum px_filter px_plan_filter(const struct px_policy *policy, bool workspace);
/* The working directory of a command. */
const char *px_plan_workdir(const struct px_plan *plan, const struct px_policy *policy);
const char *px_plan_text(const struct px_plan *plan, uint32_t offset);
const char *px_steps_op_word(enum px_op op);
int px_steps_op_code(enum px_op op);  /* enum px_code */
int px_steps_op_stage(enum px_op op);

/* Adds a line to the result: what is in force, or what is not. */
#define px_plan_has(plan, ...) px_plan_note((plan)->mechanisms, &(plan)->mechanisms_count, __VA_ARGS__)
#define px_plan_lacks(plan, ...) px_plan_note((plan)->missing, &(plan)->missing_count, __VA_ARGS__)
void px_plan_note(char list[PX_MECHANISMS_MAX][PX_NAME_MAX], uint32_t *count, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
