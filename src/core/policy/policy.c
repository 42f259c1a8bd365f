#include "policy/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/field.h"
#include "base/text.h"

bool px_policy_name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n > 0 && n < PX_BOX_NAME_MAX && name[n] == '\0' && name[0] != '-';
}

bool px_policy_own_filter(const struct px_policy *policy)
{
    return !policy->seccomp || px_equal(policy->seccomp, "default") || px_equal(policy->seccomp, "strict");
}

bool px_policy_strict(const struct px_policy *policy)
{
    return policy->seccomp && px_equal(policy->seccomp, "strict");
}

bool px_policy_native(const struct px_policy *policy)
{
    return !policy->runtime || px_equal(policy->runtime, "native");
}

/* ---- the table ---- */

static const char *const net_words[] = {"none", "loopback", "outbound", "host", "outbound:pasta", NULL};
static const char *const tier_words[] = {"full", "landlock", NULL};     /* that can be asked for */

const char *px_policy_tier_word(enum px_tier tier)
{
    return tier == PX_TIER_RLIMITS ? "rlimits" : tier_words[tier];
}

static const char *const limits_words[] = {"require", "try", NULL};

/* A field with a name of its own, one whose name is the member's, and one that is refused. */
#define AS(name, member, letter, type, ...) {name, letter, &(type), offsetof(struct px_policy, member), __VA_ARGS__}
#define FIELD(member, ...) AS(#member, member, __VA_ARGS__)
#define ABSENT(name, ...) {name, 0, &px_field_text, 0, PX_FIELD_ABSENT | PX_FIELD_REPEAT, __VA_ARGS__}
enum { FLAG = PX_FIELD_FLAG, REPEAT = PX_FIELD_REPEAT, OPTIONAL = PX_FIELD_OPTIONAL, HIDDEN = PX_FIELD_HIDDEN,
       INTERNAL = PX_FIELD_INTERNAL, PATH = PX_POLICY_PATH, DIR = PX_POLICY_DIR, COMMAND = PX_POLICY_COMMAND,
       SENT = PX_POLICY_SENT, PROJECT = PX_POLICY_PROJECT };

// clang-format off
const struct px_field px_policy_fields[] = {
    FIELD(base,                       0,   px_field_text,           PATH,                               "NAME|DIR",              "what the box's root is made of: host, a base of the store, or a directory"),
    FIELD(rootfs,                     0,   px_field_text,           PATH | DIR,                         "DIR|FILE",              "use this directory, or what is in this archive, as the root, read-only"),
    FIELD(overlay,                    0,   px_policy_overlay_type,  OPTIONAL | DIR,                     "DIR",                   "make the root writable; what changes goes to memory, or to DIR"),
    FIELD(persist,                    0,   px_field_bool,           FLAG,                               NULL,                    "keep the changes in the overlay's DIR, for later runs"),
    AS("work-dir", work_dir,          0,   px_field_text,           PATH,                               "DIR",                   "bind this directory writable and start in it"),
    AS("work-target", work_target,    0,   px_policy_place_type,    0,                                  "PATH",                  "where --work-dir appears in the box"),
    AS("bind", binds,                 'v', px_policy_bind_type,     REPEAT | PATH | PROJECT,            "SRC[:DST][:ro|rw]",     "show a file or directory of the host in the box"),
    FIELD(tmpfs,                      0,   px_policy_tmpfs_type,    REPEAT | PROJECT,                   "DST[:size=N][,noexec]", "an empty, bounded, writable directory"),
    ABSENT("deny",                                                                                      "GLOB",                  "hide files from the box"),
    FIELD(workdir,                    'w', px_policy_inside_type,   COMMAND | PROJECT,                  "PATH",                  "working directory in the box"),
    FIELD(env,                        'e', px_policy_env_type,      REPEAT | COMMAND | SENT | PROJECT,  "NAME[=VALUE]",          "set a variable, or pass the caller's on"),
    AS("env-file", env,               0,   px_policy_env_file_type, REPEAT | PATH | COMMAND | PROJECT,  "FILE",                  "set variables from NAME=VALUE lines"),
    FIELD(net,                        0,   px_policy_net_type,      PROJECT,                            "MODE",                  "none, loopback, outbound, outbound:pasta, host, or box:NAME for that of another box", net_words),
    AS("allow-net", allow_net,        0,   px_policy_rule_type,     REPEAT | PROJECT,                   "HOST[:PORT]",           "allow connections to this name or address only"),
    AS("deny-net", deny_net,          0,   px_policy_rule_type,     REPEAT | PROJECT,                   "HOST[:PORT]",           "refuse connections to this name or address"),
    AS("allow-host-loopback", allow_host_loopback, 0, px_field_bool, FLAG | PROJECT,                    NULL,                    "reach the host's loopback at 10.0.2.2"),
    AS("host-port", host_ports,       0,   px_policy_port_type,     REPEAT | PROJECT,                   "PORT",                  "reach this port of the host's loopback at 10.0.2.2"),
    FIELD(publish,                    'p', px_policy_publish_type,  REPEAT | PROJECT,                   "[IP:]HOST:BOX[/udp]",   "forward a port of the host to one of the box"),
    FIELD(dns,                        0,   px_policy_server_type,   REPEAT | PROJECT,                   "ADDRESS",               "name server for the box"),
    AS("http-proxy", http_proxy,      0,   px_policy_proxy_type,    PROJECT,                            "URL",                   "set the proxy variables"),
    AS("memory", memory_bytes,        'm', px_field_bytes,          PROJECT,                            "SIZE",                  "end the run above this much memory (needs a cgroup)"),
    AS("cpus", cpus_milli,            0,   px_field_milli,          PROJECT,                            "NUMBER",                "share of processors, such as 0.5 (needs a cgroup)"),
    AS("cpu-time", cpu_time_msec,     0,   px_field_msec,           SENT | PROJECT,                     "TIME",                  "processor time a process may use"),
    FIELD(pids,                       0,   px_field_count,          SENT | PROJECT,                     "NUMBER",                "processes and threads at once"),
    AS("disk", disk_bytes,            0,   px_field_bytes,          PROJECT,                            "SIZE",                  "bytes in all writable directories of the box together"),
    AS("file-size", file_bytes,       0,   px_field_bytes,          SENT | PROJECT,                     "SIZE",                  "largest file that can be written"),
    FIELD(nofile,                     0,   px_field_count,          SENT | PROJECT,                     "NUMBER",                "open files of a process"),
    AS("timeout", timeout_msec,       0,   px_field_msec,           COMMAND | SENT | PROJECT,           "TIME",                  "end the run after this long; exit status 124"),
    AS("output-limit", output_bytes,  0,   px_field_bytes,          COMMAND | SENT | PROJECT,           "SIZE",                  "bytes of output per stream"),
    AS("output-end", output_end,      0,   px_field_bool,           FLAG | COMMAND | SENT | PROJECT,    NULL,                    "end the run at the output limit instead of dropping the rest"),
    FIELD(limits,                     0,   px_field_choice,         PROJECT,                            "HOW",                   "require: a limit that cannot be had is an error; try: report it", limits_words),
    FIELD(tty,                        't', px_field_bool,           FLAG | COMMAND | SENT | PROJECT,    NULL,                    "run on a terminal of its own"),
    FIELD(interactive,                'i', px_field_bool,           FLAG | COMMAND | SENT | PROJECT,    NULL,                    "pass standard input on"),
    FIELD(user,                       'u', px_policy_user_type,     PROJECT,                            "UID[:GID]",             "ids inside the box"),
    FIELD(hostname,                   0,   px_policy_hostname_type, PROJECT,                            "NAME",                  "host name inside the box"),
    FIELD(runtime,                    0,   px_policy_runtime_type,  0,                                  "NAME",                  "native, or an OCI runtime: runc, crun, runsc"),
    FIELD(require,                    0,   px_field_choice,         PROJECT,                            "TIER",                  "weakest isolation that will do: full or landlock", tier_words),
    FIELD(seccomp,                    0,   px_policy_seccomp_type,  PATH | PROJECT,                     "PROFILE|FILE",          "system call filter: default, strict, or a profile in JSON"),
    FIELD(apparmor,                   0,   px_policy_apparmor_type, PROJECT,                            "PROFILE",               "confine by an AppArmor profile, too"),
    ABSENT("device",                                                                                    "PATH",                  "show a device in the box"),
    FIELD(name,                       0,   px_policy_box_name_type, 0,                                  "NAME",                  "with --detach: name the box"),
    FIELD(detach,                     'd', px_field_bool,           FLAG | COMMAND,                     NULL,                    "leave the command running in a box that stays"),
    AS("idle", idle_msec,             0,   px_field_msec,           0,                                  "TIME",                  "end a box that stays once no command ran for this long"),
    AS("max-life", max_life_msec,     0,   px_field_msec,           0,                                  "TIME",                  "end a box that stays after this long"),
    FIELD(changes,                    0,   px_policy_overlay_type,  DIR,                                "DIR",                   "work on DIR without changing it, and show what was done"),
    FIELD(apply,                      0,   px_field_bool,           FLAG,                               NULL,                    "with --changes: do the same to DIR at the end"),
    FIELD(discard,                    0,   px_field_bool,           FLAG,                               NULL,                    "with --changes: drop what was done (the default)"),
    FIELD(keep,                       0,   px_policy_keep_type,     OPTIONAL,                           "NAME",                  "with --changes: keep it under this name, and go on from there"),
    FIELD(timings,                    0,   px_field_bool,           FLAG | PROJECT,                     NULL,                    "print what each step of the start cost"),
    FIELD(build,                      0,   px_policy_build_type,    FLAG | HIDDEN | INTERNAL,           NULL,                    "run a package manager"),
    FIELD(without,                    0,   px_policy_without_type,  REPEAT | HIDDEN,                    "MECHANISM[,...]",       "switch a mechanism off, for a test"),
    {0},
};
// clang-format on

/* ---- the whole ---- */

/* Smaller values: no box can start, or the kernel does not accept the number. A user who writes 64 for the memory
 * means megabytes. */
static const struct {
    const char *field, *least, *why;
    uint64_t value;
    char unit;
} least_values[] = {
    {"memory", "4m", "The start of a box takes about 1 MiB of it, and no program runs in less than another.", 4 << 20, 'm'},
    {"cpus", "0.01", "The kernel gives a box processor time in pieces of 1 ms for each 100 ms.", 10, '\0'},
};

static int check_least(const char *name, uint64_t value, const char *text, struct px_err *e)
{
    for (size_t i = 0; i < PX_COUNT_OF(least_values); i++) {
        if (!px_equal(name, least_values[i].field) || value >= least_values[i].value)
            continue;
        int digits = strchr(text, '.') ? 0 : (int)strspn(text, "0123456789");
        px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is too little for a box; the least is %s", name, text, least_values[i].least);
        px_why(e, "%s", least_values[i].why);
        if (least_values[i].unit && digits > 0 && digits < 6)
            return px_fix(e, "Did you mean %.*s%c?%s", digits, text, least_values[i].unit,
                          text[digits] ? "" : " A number without a letter is bytes.");
        return px_fix(e, "Write %s or more.", least_values[i].least);
    }
    return 0;
}

int px_policy_put(struct px_policy *policy, const char *name, const char *value, struct px_err *e)
{
    const struct px_field *field = px_field_find(px_policy_fields, name, strlen(name));
    if (!field) {
        px_fail(e, PX_E_USAGE, 0, "there is no field '%s'", name);
        return px_fix(e, "px-policy(5) and `px exec --help` list the fields.");
    }
    bool number = field->type == &px_field_bytes || field->type == &px_field_msec || field->type == &px_field_count ||
                  field->type == &px_field_milli;
    uint64_t *place = (uint64_t *)(void *)((char *)policy + field->offset);
    uint64_t before = number && !(field->flags & PX_FIELD_ABSENT) ? *place : 0;
    if (px_field_set(field, policy, value, e) < 0)
        return -1;
    if (px_equal(name, "build") && policy->build)
        policy->user = (struct px_user){0, 0};          /* no user can ask for it */
    px_policy_imply_network(policy, name);
    /* A limit of 0 is always a mistake; "no limit" has its own word, so that it cannot happen by accident. */
    if (number && *place == 0) {
        *place = before;
        px_fail(e, PX_E_VALUE, 0, "--%s: it must be more than 0", name);
        return px_fix(e, "Write unlimited if there should be no limit.");
    }
    if (number && check_least(name, *place, value, e) < 0) {
        *place = before;
        return -1;
    }
    return 0;
}

static const struct px_preset_row *find_preset(const char *name)
{
    for (const struct px_preset_row *row = px_preset_rows; row->preset; row++)
        if (!row->field && px_equal(row->preset, name))
            return row;
    return NULL;
}

/* Writes "default, project, ..." for the error. */
static void list_presets(char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (const struct px_preset_row *row = px_preset_rows; row->preset; row++)
        if (!row->field && px_fmt(out + at, size - at, "%s%s", at ? ", " : "", row->preset) >= 0)
            at += strlen(out + at);
}

static int set_defaults(struct px_policy *policy, struct px_err *e)
{
    static const char *const rows[][2] = {
        {"base", "host"},         {"work-target", "/workspace"}, {"hostname", "sandbox"}, {"user", "1000:1000"},
        {"nofile", "4096"},       {"runtime", "native"},         {"seccomp", "default"},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_policy_put(policy, rows[i][0], rows[i][1], e) < 0)
            return -1;
    return 0;
}

int px_policy_init(struct px_policy *policy, const char *preset, struct px_err *e)
{
    *policy = (struct px_policy){.said = PX_BUF(8 << 20)};
    const struct px_preset_row *row = find_preset(preset ? preset : "default");
    if (!row) {
        char names[256];
        list_presets(names, sizeof names);
        px_fail(e, PX_E_VALUE, 0, "--preset: there is no preset '%s'", preset);
        return px_fix(e, "The presets are: %s.", names);
    }
    policy->preset = strdup(row->preset);
    if (!policy->preset)
        return px_no_memory(e);
    int r = set_defaults(policy, e);
    for (row++; r == 0 && row->preset && row->field; row++)
        r = px_policy_put(policy, row->field, row->value, e);
    policy->pids_counted = policy->net_said = false;
    if (r < 0)
        px_policy_done(policy);
    return r;
}

void px_policy_tell(const struct px_policy *policy, struct px_buf *out)
{
    px_buf_add(out, policy->preset, strlen(policy->preset) + 1);
    px_buf_add(out, policy->said.data, policy->said.len);
    if (policy->said.err < 0)
        out->err = policy->said.err;
}

int px_policy_pin(struct px_policy *policy, int fd)
{
    struct px_bind *bind = &policy->binds.items[policy->binds.count - 1];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    bind->pinned = true;
    bind->dev = st.st_dev;
    bind->ino = st.st_ino;
    return 0;
}

void px_policy_done(struct px_policy *policy)
{
    free(policy->preset);
    px_buf_done(&policy->said);
    px_field_done(px_policy_fields, policy);
    *policy = (struct px_policy){0};
}

const char *px_policy_env(const struct px_policy *policy, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < policy->env.count; i++)
        if (strncmp(policy->env.items[i], name, n) == 0 && policy->env.items[i][n] == '=')
            return policy->env.items[i] + n + 1;
    return NULL;
}

static int check_changes(const struct px_policy *policy, struct px_err *e)
{
    if (!policy->changes && (policy->apply || policy->discard || policy->keep)) {
        px_fail(e, PX_E_USAGE, 0, "--apply, --discard and --keep say what becomes of changes");
        return px_fix(e, "Name the directory that is worked on: --changes DIR.");
    }
    if (policy->apply && policy->discard)
        return px_fail(e, PX_E_USAGE, 0, "--apply and --discard exclude each other");
    if (policy->changes && !*policy->changes)
        return px_fail(e, PX_E_VALUE, 0, "--changes: the directory has no name");
    if (policy->changes && policy->work_dir)
        return px_fail(e, PX_E_USAGE, 0, "--changes and --work-dir both want to be at %s", policy->work_target);
    if (policy->changes && !px_policy_native(policy))
        return px_fail(e, PX_E_NOT_BUILT, 0, "--changes is not part of this build for --runtime %s", policy->runtime);
    return 0;
}

int px_policy_check_overlay(const struct px_policy *policy, struct px_err *e)
{
    bool writable = policy->work_dir || policy->changes;
    if (check_changes(policy, e) < 0)
        return -1;
    for (size_t i = 0; i < policy->binds.count; i++)
        writable = writable || policy->binds.items[i].writable;
    if (policy->build && (writable || policy->net > PX_NET_LOOPBACK || !policy->overlay || !px_policy_own_filter(policy)))
        return px_fail(e, PX_E_USAGE, 0, "a build box has an overlay, no network, no filter and no files of the caller to write");
    if (policy->persist && (!policy->overlay || !*policy->overlay)) {
        px_fail(e, PX_E_USAGE, 0, "--persist needs a directory to keep the changes in");
        return px_fix(e, "Name one: --overlay=DIR --persist.");
    }
    if (policy->overlay && !px_policy_root_dir(policy)) {
        px_fail(e, PX_E_ROOTFS, 0, "--overlay needs a root of its own");
        px_why(e, "The files of the host base belong to the host's root, who does not exist in a box: "
                  "nobody there could change them.");
        return px_fix(e, "Name a base: --base debian-12. If there is none yet, make it: px sandbox base build debian-12.\n"
                         "Or name a directory or an archive: --rootfs DIR.");
    }
    if (policy->overlay && !px_policy_native(policy))
        return px_fail(e, PX_E_NOT_BUILT, 0, "--overlay is not part of this build for --runtime %s", policy->runtime);
    return 0;
}

const char *px_policy_root_dir(const struct px_policy *policy)
{
    return policy->rootfs ? policy->rootfs : px_equal(policy->base, "host") ? NULL : policy->base;
}
