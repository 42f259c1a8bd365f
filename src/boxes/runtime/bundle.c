#include "runtime/bundle.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "plan/plan.h"
#include "runtime/losses.h"
#include "runtime/start.h"
#include "seccomp/print.h"
#include "seccomp/profile.h"

struct printer {
    const struct px_bundle *b;
    struct px_json *j;
    const char *bad;            /* a text that JSON cannot hold as it is */
};

int px_bundle_source(unsigned index, char *out, unsigned long size)
{
    return px_fmt(out, size, PX_BUNDLE_BINDS "/%u", index);
}

bool px_bundle_beside(const struct px_plan *plan, const char *tmpfs)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct px_step *s = &plan->steps[i];
        const char *path = px_plan_text(plan, s->dst);
        if ((s->op == PX_OP_MKDIR || s->op == PX_OP_FILE) && !px_equal(path, tmpfs) && px_path_within(path, tmpfs))
            return true;
    }
    return false;
}

bool px_bundle_detached(const struct px_plan *plan, const char *path)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == PX_OP_DETACH && px_equal(px_plan_text(plan, plan->steps[i].dst), path))
            return true;
    return false;
}

unsigned px_bundle_shift(uint32_t shift, uint32_t count, uint32_t apart, struct px_extent out[PX_EXTENTS_MAX])
{
    if (apart == 0) {
        out[0] = (struct px_extent){0, shift, count - shift};
        return 1;
    }
    out[0] = (struct px_extent){0, shift, apart - shift};
    out[1] = (struct px_extent){apart - shift, apart, 1};
    out[2] = (struct px_extent){apart - shift + 1, apart + 1, count - apart - 1};
    return PX_EXTENTS_MAX;
}

/* ---- small words ---- */

/* A path or an argument of the user's. JSON is Unicode; other bytes would come out as something else. */
static void put(struct printer *p, const char *name, const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0, n; i < len && !p->bad; i += n)
        if ((n = px_utf8_length(text + i, len - i)) == 0)
            p->bad = text;
    px_json_text(p->j, name, text);
}

static void put_number(struct printer *p, const char *fmt, unsigned long long value)
{
    char text[64];
    (void)px_fmt(text, sizeof text, fmt, value);
    px_json_text(p->j, NULL, text);
}

static const struct px_step *step_of(const struct px_plan *plan, enum px_op op)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == op)
            return &plan->steps[i];
    return NULL;
}

static void put_list(struct printer *p, const char *name, enum px_op op)
{
    const struct px_plan *plan = p->b->plan;
    px_json_array(p->j, name);
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == op)
            px_json_text(p->j, NULL, px_plan_text(plan, plan->steps[i].dst));
    px_json_end(p->j);
}

/* ---- process ---- */

static void put_capabilities(struct printer *p)
{
    static const char *const sets[] = {"bounding", "effective", "permitted", "inheritable", "ambient"};
    px_json_object(p->j, "capabilities");
    for (size_t i = 0; i < PX_COUNT_OF(sets); i++) {
        px_json_array(p->j, sets[i]);
        if (p->b->other_ids && i < 3)
            px_json_text(p->j, NULL, "CAP_SETFCAP");
        px_json_end(p->j);
    }
    px_json_end(p->j);
}

/* For somebody's own hands; px-start sets its own, after the runtime has done with open files and threads. Never above what the
 * caller has: a runtime without the privilege to raise a limit fails. */
static void put_rlimits(struct printer *p)
{
    static const char *const names[] = {
        [RLIMIT_CORE] = "RLIMIT_CORE",     [RLIMIT_MEMLOCK] = "RLIMIT_MEMLOCK",       [RLIMIT_MSGQUEUE] = "RLIMIT_MSGQUEUE",
        [RLIMIT_NICE] = "RLIMIT_NICE",     [RLIMIT_SIGPENDING] = "RLIMIT_SIGPENDING", [RLIMIT_RTPRIO] = "RLIMIT_RTPRIO",
        [RLIMIT_NOFILE] = "RLIMIT_NOFILE", [RLIMIT_FSIZE] = "RLIMIT_FSIZE",           [RLIMIT_CPU] = "RLIMIT_CPU",
        [RLIMIT_AS] = "RLIMIT_AS",         [RLIMIT_NPROC] = "RLIMIT_NPROC",
    };
    const struct px_plan *plan = p->b->plan;
    px_json_array(p->j, "rlimits");
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct px_step *s = &plan->steps[i];
        struct rlimit now;
        if (s->op != PX_OP_RLIMIT || s->attr >= PX_COUNT_OF(names) || !names[s->attr] ||
            getrlimit((__rlimit_resource_t)s->attr, &now) < 0)
            continue;
        uint64_t hard = s->num2 < now.rlim_max ? s->num2 : now.rlim_max;
        px_json_object(p->j, NULL);
        px_json_text(p->j, "type", names[s->attr]);
        px_json_uint(p->j, "hard", hard);
        px_json_uint(p->j, "soft", s->num < hard ? s->num : hard);
        px_json_end(p->j);
    }
    px_json_end(p->j);
}

static void put_command(struct printer *p)
{
    const struct px_plan *plan = p->b->plan;
    px_json_array(p->j, "args");
    if (!p->b->exported)
        px_json_text(p->j, NULL, PX_START_PATH);
    for (char **a = plan->argv; p->b->exported && *a; a++)
        put(p, NULL, *a);
    px_json_end(p->j);
    px_json_array(p->j, "env");
    for (char **v = plan->envp; p->b->exported && *v; v++)
        put(p, NULL, *v);
    px_json_end(p->j);
    const struct px_step *workdir = step_of(plan, PX_OP_CHDIR);
    /* Runtimes make a working directory that is not there, also in a tree of the user's: px-start enters it. */
    put(p, "cwd", p->b->exported && workdir ? px_plan_text(plan, workdir->dst) : "/");
}

static void put_process(struct printer *p)
{
    const struct px_plan *plan = p->b->plan;
    const struct px_step *apparmor = step_of(plan, PX_OP_APPARMOR);
    px_json_object(p->j, "process");
    px_json_bool(p->j, "terminal", p->b->terminal);
    px_json_object(p->j, "user");
    px_json_uint(p->j, "uid", p->b->uid);
    px_json_uint(p->j, "gid", p->b->gid);
    px_json_end(p->j);
    put_command(p);
    put_capabilities(p);
    if (p->b->exported)
        put_rlimits(p);
    px_json_bool(p->j, "noNewPrivileges", true);
    if (apparmor)
        px_json_text(p->j, "apparmorProfile", px_plan_text(plan, apparmor->src));
    px_json_end(p->j);
}

/* ---- mounts ---- */

static void begin_mount(struct printer *p, const char *target, const char *type, const char *source)
{
    px_json_object(p->j, NULL);
    put(p, "destination", target);
    px_json_text(p->j, "type", type);
    put(p, "source", source);
    px_json_array(p->j, "options");
}

static void end_mount(struct printer *p, unsigned attr)
{
    static const struct {
        unsigned bit;
        const char *set, *clear;
    } words[] = {{PX_MOUNT_RDONLY, "ro", "rw"},
                 {PX_MOUNT_NOSUID, "nosuid", NULL},
                 {PX_MOUNT_NODEV, "nodev", NULL},
                 {PX_MOUNT_NOEXEC, "noexec", NULL}};
    for (size_t i = 0; i < PX_COUNT_OF(words); i++) {
        const char *word = attr & words[i].bit ? words[i].set : words[i].clear;
        if (word)
            px_json_text(p->j, NULL, word);
    }
    px_json_end(p->j);
    px_json_end(p->j);
}

static void mount_beside(struct printer *p, const char *source, const struct px_step *s)
{
    char path[PATH_MAX];
    if (px_fmt(path, sizeof path, PX_BUNDLE_BESIDE "%s", source) < 0)
        p->j->out->err = -ENAMETOOLONG;
    begin_mount(p, px_plan_text(p->b->plan, s->dst), "bind", path);
    px_json_text(p->j, NULL, "rbind");
    end_mount(p, s->attr);
}

static void mount_tmpfs(struct printer *p, const struct px_step *s)
{
    const char *target = px_plan_text(p->b->plan, s->dst);
    if (px_bundle_detached(p->b->plan, target))
        return;
    if (!p->b->exported && px_bundle_beside(p->b->plan, target)) {
        mount_beside(p, target, s);
        return;
    }
    begin_mount(p, target, "tmpfs", "tmpfs");
    px_json_text(p->j, NULL, s->flags & PX_STEP_OWNED ? "mode=0755" : "mode=1777");
    put_number(p, "uid=%llu", p->b->uid);
    put_number(p, "gid=%llu", p->b->gid);
    if (s->num)
        put_number(p, "size=%llu", s->num);
    if (s->num2)
        put_number(p, "nr_inodes=%llu", s->num2);
    end_mount(p, s->attr);
}

static void mount_bind(struct printer *p, uint32_t index)
{
    const struct px_plan *plan = p->b->plan;
    const struct px_step *s = &plan->steps[index];
    char staged[PATH_MAX];
    const char *source = px_plan_text(plan, s->src);
    if (s->flags & PX_STEP_DEVICE)      /* the runtime makes these itself */
        return;
    if (s->flags & PX_STEP_INSIDE) {
        mount_beside(p, source, s);
        return;
    }
    if (s->flags & PX_STEP_CALLER && !p->b->exported && px_bundle_source(index, staged, sizeof staged) >= 0) {
        source = staged;
    }
    begin_mount(p, px_plan_text(plan, s->dst), "bind", source);
    px_json_text(p->j, NULL, "rbind");
    end_mount(p, s->attr);
}

/* /bin and friends are links to directories of /usr; a config has no links, so the directory is shown twice. */
static void mount_link(struct printer *p, const struct px_step *s)
{
    const char *target = px_plan_text(p->b->plan, s->dst);
    char source[PATH_MAX];
    if (strchr(target + 1, '/') || !realpath(target, source))
        return;
    begin_mount(p, target, "bind", source);
    px_json_text(p->j, NULL, "rbind");
    end_mount(p, PX_MOUNT_RDONLY | PX_MOUNT_NOSUID | PX_MOUNT_NODEV);
}

static void mount_proc(struct printer *p, const struct px_step *s)
{
    begin_mount(p, "/proc", "proc", "proc");
    if (!(s->flags & PX_STEP_PLAIN))
        px_json_text(p->j, NULL, "hidepid=ptraceable");
    end_mount(p, s->attr);
}

static void mount_devpts(struct printer *p, const struct px_step *s)
{
    begin_mount(p, "/dev/pts", "devpts", "devpts");
    px_json_text(p->j, NULL, "newinstance");
    px_json_text(p->j, NULL, "ptmxmode=0666");
    px_json_text(p->j, NULL, "mode=0620");
    put_number(p, "max=%llu", s->num);
    end_mount(p, s->attr);
}

static void put_mount(struct printer *p, uint32_t index)
{
    const struct px_plan *plan = p->b->plan;
    const struct px_step *s = &plan->steps[index];
    switch ((enum px_op)s->op) {
    case PX_OP_PROC:
        mount_proc(p, s);
        break;
    case PX_OP_DEVPTS:
        mount_devpts(p, s);
        break;
    case PX_OP_BIND:
        mount_bind(p, index);
        break;
    case PX_OP_TMPFS:
        mount_tmpfs(p, s);
        break;
    case PX_OP_SYMLINK:
        if (p->b->exported)
            mount_link(p, s);
        break;
    default:
        break;
    }
}

/* Read-only once the runtime has filled it. */
static void put_mounts(struct printer *p)
{
    px_json_array(p->j, "mounts");
    begin_mount(p, "/dev", "tmpfs", "tmpfs");
    px_json_text(p->j, NULL, "mode=0755");
    px_json_text(p->j, NULL, "size=65536");
    /* Devices are bound into it, each with attributes of its own. */
    end_mount(p, (p->b->own_kernel ? 0 : PX_MOUNT_RDONLY | PX_MOUNT_NODEV) | PX_MOUNT_NOSUID | PX_MOUNT_NOEXEC);
    for (uint32_t i = 0; i < p->b->plan->count; i++)
        put_mount(p, i);
    px_json_end(p->j);
}

/* ---- linux ---- */

static void put_namespaces(struct printer *p)
{
    const struct px_plan *plan = p->b->plan;
    const struct {
        const char *type;
        bool own;
    } all[] = {
        {"user", true},
        {"mount", true},
        {"pid", true},
        {"ipc", plan->namespaces & PX_CLONE_NEWIPC},
        {"uts", plan->namespaces & PX_CLONE_NEWUTS},
        {"cgroup", step_of(plan, PX_OP_CGROUPNS) != NULL},
        {"network", plan->own_net && !p->b->net_made},
    };
    px_json_array(p->j, "namespaces");
    for (size_t i = 0; i < PX_COUNT_OF(all); i++)
        if (all[i].own) {
            px_json_object(p->j, NULL);
            px_json_text(p->j, "type", all[i].type);
            px_json_end(p->j);
        }
    px_json_end(p->j);
}

static void put_map(struct printer *p, const char *name, const struct px_extent *list)
{
    px_json_array(p->j, name);
    for (unsigned i = 0; i < p->b->extents; i++) {
        px_json_object(p->j, NULL);
        px_json_uint(p->j, "containerID", list[i].inside);
        px_json_uint(p->j, "hostID", list[i].outside);
        px_json_uint(p->j, "size", list[i].count);
        px_json_end(p->j);
    }
    px_json_end(p->j);
}

static void put_resources(struct printer *p)
{
    const struct px_policy *policy = p->b->policy;
    px_json_object(p->j, "resources");
    if (px_policy_limited(policy->memory_bytes)) {
        px_json_object(p->j, "memory");
        px_json_uint(p->j, "limit", policy->memory_bytes);
        px_json_uint(p->j, "swap", policy->memory_bytes);
        px_json_end(p->j);
    }
    if (px_policy_limited(policy->cpus_milli)) {
        px_json_object(p->j, "cpu");
        px_json_uint(p->j, "quota", policy->cpus_milli * 100);
        px_json_uint(p->j, "period", 100000);
        px_json_end(p->j);
    }
    if (px_policy_limited(policy->pids) && policy->pids_counted) {
        px_json_object(p->j, "pids");
        px_json_uint(p->j, "limit", policy->pids);
        px_json_end(p->j);
    }
    px_json_end(p->j);
}

/* The native engine loads a floor and a profile one after the other; a config has one filter, which is both together. */
static int put_seccomp(struct printer *p, struct px_err *e)
{
    const struct px_policy *policy = p->b->policy;
    bool workspace = p->b->plan->writable_binds;
    enum px_filter filter = workspace ? PX_FILTER_WORKSPACE : PX_FILTER_DEFAULT;
    px_auto(px_profile) struct px_profile *profile = NULL;

    if (!step_of(p->b->plan, PX_OP_SECCOMP))
        return 0;
    if (px_equal(policy->seccomp, "strict"))
        filter = workspace ? PX_FILTER_STRICT_WORKSPACE : PX_FILTER_STRICT;
    if (!px_policy_own_filter(policy)) {
        filter = workspace ? PX_FILTER_FLOOR_WORKSPACE : PX_FILTER_FLOOR;
        if (px_profile_read(policy->seccomp, &profile, e) < 0)
            return -1;
    }
    return px_profile_print(filter, profile, p->j, "seccomp", e);
}

static int put_linux(struct printer *p, struct px_err *e)
{
    px_json_object(p->j, "linux");
    put_namespaces(p);
    put_map(p, "uidMappings", p->b->uids);
    put_map(p, "gidMappings", p->b->gids);
    if (p->b->exported) {
        put_resources(p);
        if (put_seccomp(p, e) < 0)
            return -1;
    }
    put_list(p, "maskedPaths", PX_OP_MASK);
    put_list(p, "readonlyPaths", PX_OP_READONLY);
    px_json_end(p->j);
    return 0;
}

/* ---- the whole ---- */

static void put_root(struct printer *p)
{
    const struct px_plan *plan = p->b->plan;
    const struct px_step *given = p->b->exported ? step_of(plan, PX_OP_OVERLAY) : NULL;
    px_json_object(p->j, "root");
    put(p, "path", given ? px_plan_text(plan, given->src) : "rootfs");
    px_json_bool(p->j, "readonly", step_of(plan, PX_OP_SEAL) && !p->b->own_kernel);
    px_json_end(p->j);
}

/* What a config cannot express, so that nobody takes it for enforced. */
static void put_annotations(struct printer *p)
{
    px_auto_buf struct px_buf text = PX_BUF(4096);
    px_losses(p->b->policy, p->b->plan, PX_FORMAT_OCI, " ", &text);
    if (text.err < 0)
        p->j->out->err = text.err;
    px_json_object(p->j, "annotations");
    px_json_text(p->j, "px.not-in-this-file", px_buf_text(&text));
    px_json_end(p->j);
}

int px_bundle_print(const struct px_bundle *bundle, struct px_buf *out, struct px_err *e)
{
    struct px_json j = {.out = out, .pretty = true};
    struct printer p = {.b = bundle, .j = &j};
    const struct px_step *hostname = step_of(bundle->plan, PX_OP_HOSTNAME);

    px_json_object(&j, NULL);
    px_json_text(&j, "ociVersion", "1.0.2");
    put_process(&p);
    put_root(&p);
    if (hostname)
        px_json_text(&j, "hostname", px_plan_text(bundle->plan, hostname->src));
    put_mounts(&p);
    if (put_linux(&p, e) < 0)
        return -1;
    if (bundle->exported)
        put_annotations(&p);
    px_json_end(&j);
    px_buf_putc(out, '\n');
    if (p.bad) {
        px_fail(e, PX_E_VALUE, 0, "'%s' is not valid UTF-8, so it cannot stand in a config.json", p.bad);
        return px_fix(e, "Rename it, or leave --runtime out: px itself takes any bytes.");
    }
    if (out->err < 0)
        return px_fail(e, PX_E_LIMIT, out->err, "the config.json of the box is too large");
    return 0;
}
