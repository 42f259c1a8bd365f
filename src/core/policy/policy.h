/* policy/policy.h - what a box may see, use and do: the request, as data.
 *
 * Why:     every front end fills this one struct through one field table; nothing is decided twice.
 * Owns:    its texts and lists.
 * Mustn't: look at the host (that is the plan's work) or be changed once a plan was made of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/field.h"
#include "net/address.h"

struct px_err;
struct px_json;

enum px_net { PX_NET_NONE, PX_NET_LOOPBACK, PX_NET_OUTBOUND, PX_NET_HOST, PX_NET_PASTA, PX_NET_BOX };
enum px_tier { PX_TIER_FULL, PX_TIER_LANDLOCK, PX_TIER_RLIMITS };
enum px_limits_how { PX_LIMITS_REQUIRE, PX_LIMITS_TRY };

/* Mechanisms that a test may switch off by the hidden option --without, to see that a check notices it. */
enum px_without {
#define PX_WITHOUT(name, word, ...) PX_WITHOUT_##name,
#include "policy/without.def"
#undef PX_WITHOUT
    PX_WITHOUT_COUNT
};

#define PX_UNLIMITED UINT64_MAX

struct px_after;
struct px_gate;

struct px_bind {
    char *source;               /* a path of the host, as given */
    char *target;               /* absolute and clean */
    bool writable;
    bool pinned;                /* the source must still be this file or directory when the box is planned */
    uint64_t dev, ino;
};

struct px_tmpfs {
    char *target;               /* absolute and clean */
    uint64_t bytes;             /* never 0: there is always a limit */
    bool noexec;
};

struct px_bind_list {
    struct px_bind *items;
    size_t count;
};
struct px_tmpfs_list {
    struct px_tmpfs *items;
    size_t count;
};
struct px_text_list {
    char **items;
    size_t count;
};
struct px_user {
    uint32_t uid, gid;
};

struct px_policy {
    char *preset;
    /* what is visible */
    char *base;                 /* "host", a base or an image of the store, or a directory or archive (with a slash in it) */
    char *rootfs;               /* a directory or an archive; overrides base */
    char *work_dir;             /* bound writable at work_target, which becomes the working directory */
    char *work_target;
    char *overlay;              /* NULL: the root is read-only; "": changes go to memory; else a directory that takes them */
    bool persist;               /* ... and keeps them */
    char *changes;              /* a directory that appears at work_target as a copy: changes to it are kept apart */
    bool apply, discard;        /* ... and is merged into it, or dropped, at the end */
    char *keep;                 /* ... or kept in this directory, for a later run */
    const char *const *layers;  /* the directories below `changes`, the topmost first; borrowed, px's own */
    size_t layers_count;
    /* a check that must succeed before the command runs (plan/plan.h); borrowed, NULL: none */
    struct px_gate *gate;
    struct px_after *after;     /* the hook that handles the changes instead of start/changes.c; borrowed, NULL: none */
    bool build;                 /* for package managers: files and user are 0, changes of owner succeed without effect */
    struct px_bind_list binds;
    bool git_open;              /* a .git in one of them should be read-only and is not; only px itself sets it */
    struct px_tmpfs_list tmpfs;
    char *workdir;              /* in the box; NULL: the work target if there is one, else the home directory */
    struct px_text_list env;    /* "NAME=VALUE", one per name, the last one given wins */
    char *hostname;
    struct px_user user;
    /* what is allowed */
    int net;                    /* enum px_net */
    /* the box whose network is joined, if net is PX_NET_BOX: "box:NAME" or "pid:NUMBER"; else NULL */
    char *net_box;
    bool net_said;              /* the caller set it, not a preset: no other field changes it then */
    struct px_text_list allow_net, deny_net;    /* as px_net_rule_parse reads them */
    struct px_text_list publish;                /* [IP:]HOST:BOX[/udp] */
    struct px_text_list host_ports;             /* of the host's loopback, one by one */
    bool allow_host_loopback;                   /* all of them */
    struct px_text_list dns;                    /* addresses */
    /* the network namespace to which PX_NET_OUTBOUND leads; 0: the host's. Only px itself sets it. */
    int outside_net;
    const struct px_net_own *own_net;           /* PX_NET_OUTBOUND reaches only these hosts; borrowed, px's own */
    char *http_proxy;
    int require;                /* enum px_tier: the weakest that is accepted */
    bool plain;                 /* no isolation, limits alone: PX_TIER_RLIMITS; not a field, only px itself sets it */
    char *runtime;              /* NULL or "native": px itself; else an OCI runtime: "runc", "crun", "runsc" */
    char *seccomp;              /* NULL or "default", "strict", or the path of a profile */
    char *apparmor;             /* a profile's name; NULL: none */
    uint64_t without;           /* bits of enum px_without: switched off for a test */
    /* how much; 0 means that the field was never set, PX_UNLIMITED that it was set so */
    uint64_t memory_bytes, cpus_milli, cpu_time_msec, pids, disk_bytes, file_bytes, nofile, timeout_msec;
    uint64_t output_bytes;      /* kept per stream when captured */
    bool output_end;            /* too much output ends the run instead of being dropped */
    int limits;                 /* enum px_limits_how */
    bool pids_counted;          /* the caller named a process limit, so a cgroup should count it too */
    /* how it is run */
    bool tty, interactive, timings;
    /* a box that stays */
    char *name;                 /* NULL: px chooses one */
    bool detach;
    uint64_t idle_msec, max_life_msec;
    struct px_buf said;         /* every field that was set after the preset, with its value, each with its NUL */
};

enum {
    PX_LIST_MAX = 256,          /* binds, tmpfs */
    PX_LAYERS_MAX = 10,         /* below `changes`: as many as the kernel takes in one option */
    PX_ENV_MAX = 4096,
    PX_BOX_NAME_MAX = 64,       /* with its NUL */
    PX_OUTPUT_DEFAULT = 1 << 20,
};

/* What else the rows of the table say, beside enum px_field_flags. */
enum px_policy_flags {
    PX_POLICY_PATH = 1 << 8,    /* a path of the caller's if it has a slash or begins with a dot; else it may be a name */
    PX_POLICY_DIR = 1 << 9,     /* always a path of the caller's, unless it is empty */
    PX_POLICY_COMMAND = 1 << 10,        /* a command in a box that stays may say it; the rest is said when that box is started */
    PX_POLICY_SENT = 1 << 11,   /* each command in a box that stays has its own value, which named/policy_text.c sends */
    PX_POLICY_PROJECT = 1 << 12,        /* px run --sandbox may say it; the rest is the project's image and working tree */
};
extern const struct px_field px_policy_fields[];

/* Sets all defaults, then the preset's rows. */
int px_policy_init(struct px_policy *policy, const char *preset, struct px_err *e);
void px_policy_done(struct px_policy *policy);
/* Writes all that is needed to make the same policy in another process: the preset, then `said`. */
void px_policy_tell(const struct px_policy *policy, struct px_buf *out);
int px_policy_put(struct px_policy *policy, const char *name, const char *value, struct px_err *e);
/* Pins the last bind to this open file or directory, whatever its name leads to when the box is planned. 0 or
 * -errno. */
int px_policy_pin(struct px_policy *policy, int fd);
/* Whether a limit was set to a number: neither never set nor "unlimited". */
/* Whether no writable directory in memory allows execution: then nothing else in memory may be executed either. */
static inline bool px_policy_writes_no_programs(const struct px_policy *p)
{
    for (size_t i = 0; i < p->tmpfs.count; i++)
        if (!p->tmpfs.items[i].noexec)
            return false;
    return p->tmpfs.count > 0 && !p->overlay;
}

static inline bool px_policy_limited(uint64_t value)
{
    return value != 0 && value != PX_UNLIMITED;
}

static inline bool px_policy_without(const struct px_policy *policy, enum px_without what)
{
    return policy->without >> what & 1;
}
const char *px_policy_without_word(enum px_without what);
const char *px_policy_tier_word(enum px_tier tier);

/* [a-z0-9][a-z0-9-]{0,62} */
bool px_policy_name_ok(const char *name);
/* Whether the system call filter is one of px's, and not a file's. */
bool px_policy_own_filter(const struct px_policy *policy);
bool px_policy_strict(const struct px_policy *policy);
bool px_policy_native(const struct px_policy *policy);

/* The directory that becomes the root, or NULL for the host base. */
const char *px_policy_root_dir(const struct px_policy *policy);
/* Refuses what cannot be combined with an overlay, with `changes` or with `build`, on any host. */
int px_policy_check_overlay(const struct px_policy *policy, struct px_err *e);
/* The value of a variable of the box, or NULL. */
const char *px_policy_env(const struct px_policy *policy, const char *name);

/* policy/types.c and, where a field may be given several times, policy/lists.c: the types of the fields. */
extern const struct px_field_type px_policy_user_type, px_policy_inside_type, px_policy_place_type, px_policy_hostname_type,
    px_policy_box_name_type, px_policy_keep_type, px_policy_overlay_type, px_policy_runtime_type, px_policy_seccomp_type,
    px_policy_apparmor_type, px_policy_build_type, px_policy_without_type;
extern const struct px_field_type px_policy_bind_type, px_policy_tmpfs_type, px_policy_env_type, px_policy_env_file_type;
int px_policy_place(const struct px_field *field, const char *text, char **ret_path, struct px_err *e);        /* clean, in the box */
/* Of a struct px_text_list. */
void px_policy_print_texts(const void *at, const struct px_field *field, struct px_json *json);
void px_policy_done_texts(void *at);

/* policy/net.c: the types of the network fields, and the combinations that are refused. */
extern const struct px_field_type px_policy_net_type, px_policy_rule_type, px_policy_publish_type, px_policy_port_type,
    px_policy_server_type, px_policy_proxy_type;
int px_policy_check_network(const struct px_policy *policy, struct px_err *e);
/* Whether it needs a network driver. */
bool px_policy_carried(const struct px_policy *policy);
/* A network field implies a network, where the caller chose none. */
void px_policy_imply_network(struct px_policy *policy, const char *field);
struct px_publish {
    struct px_address address;  /* of the host */
    uint16_t host, box;         /* ports */
    bool udp;
};
int px_policy_parse_publish(const char *text, struct px_publish *ret_publish);
/* The error for a text that is not a valid port mapping. */
int px_policy_no_ports(const char *text, struct px_err *e);

/* policy/preset.c: the rows of data/presets.def. */
struct px_preset_row {
    const char *preset;         /* NULL past the end */
    const char *field;          /* NULL in the row that starts a preset; value is its help then */
    const char *value;
};
extern const struct px_preset_row px_preset_rows[];

/* policy/api.c */
/* Whether its root is in the store, where it must be found and leased for each box. */
bool px_policy_root_is_stored(const struct px_policy *policy);
