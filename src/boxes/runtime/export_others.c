#include "runtime/export_others.h"

#include <linux/filter.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/seccomp.h"
#include "plan/plan.h"
#include "plan/steps.h"
#include "policy/policy.h"
#include "runtime/losses.h"

/* ---- words of a shell ---- */

static void word(struct px_buf *out, const char *text)
{
    px_buf_puts(out, " '");
    for (; *text; text++)
        px_buf_puts(out, *text == '\'' ? "'\\''" : (char[]){*text, '\0'});
    px_buf_putc(out, '\'');
}

/* One option with its values on a line of its own. */
static void option(struct px_buf *out, const char *name, const char *first, const char *second)
{
    px_buf_printf(out, " \\\n    %s", name);
    if (first)
        word(out, first);
    if (second)
        word(out, second);
}

static void command(struct px_buf *out, const struct px_plan *plan)
{
    for (char **a = plan->argv; *a; a++)
        word(out, *a);
}

static int no_such(const struct px_plan *plan, const char *where, struct px_err *e)
{
    static const enum px_op ops[] = {PX_OP_OVERLAY, PX_OP_UPPER, PX_OP_CHANGES, PX_OP_TREE};
    for (uint32_t i = 0; i < plan->count; i++)
        for (size_t k = 0; k < PX_COUNT_OF(ops); k++)
            if (plan->steps[i].op == ops[k]) {
                (void)px_fail(e, PX_E_NOT_BUILT, 0,
                              "a root whose changes go elsewhere cannot be exported to %s", where);
                return px_fix(e, "Leave --overlay and --changes out, or write --to oci.");
            }
    return 0;
}

/* What the other program has no word for. */
static void missing(struct px_buf *out, const char *comment, const struct px_policy *p, const struct px_plan *plan,
                    enum px_format format)
{
    px_buf_printf(out, "%s Not in force there: ", comment);
    px_losses(p, plan, format, ", ", out);
    px_buf_puts(out, ".\n");
}

static void timeout_word(struct px_buf *out, const struct px_policy *p)
{
    if (px_policy_limited(p->timeout_msec))
        px_buf_printf(out, "timeout --signal=KILL %llu.%03llu ", (unsigned long long)(p->timeout_msec / 1000),
                      (unsigned long long)(p->timeout_msec % 1000));
}

/* ---- bubblewrap ---- */

static void base64(struct px_buf *out, const unsigned char *data, size_t len)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        uint32_t n = (uint32_t)data[i] << 16 | (i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0) |
                     (i + 2 < len ? data[i + 2] : 0);
        px_buf_putc(out, letters[n >> 18 & 63]);
        px_buf_putc(out, letters[n >> 12 & 63]);
        px_buf_putc(out, i + 1 < len ? letters[n >> 6 & 63] : '=');
        px_buf_putc(out, i + 2 < len ? letters[n & 63] : '=');
    }
}

/* bwrap fills /dev itself, and takes care of the parts of /proc that can be written. */
static bool its_own(const char *path)
{
    return px_path_within(path, "/dev") || px_equal(path, "/dev");
}

static void bwrap_file(struct px_buf *out, struct px_buf *inputs, const struct px_plan *plan,
                       const struct px_step *s, unsigned *fd)
{
    char number[16];
    if (s->num == 0 &&
        px_steps_has(plan, PX_OP_BIND, px_plan_text(plan, s->dst))) /* its place, which bwrap makes */
        return;
    (void)px_fmt(number, sizeof number, "%u", (*fd)++);
    option(out, "--ro-bind-data", number, px_plan_text(plan, s->dst));
    px_buf_printf(inputs, " %s< <(base64 -d <<<'", number);
    base64(inputs, (const unsigned char *)px_plan_text(plan, s->src), s->num);
    px_buf_puts(inputs, "')");
}

static void bwrap_tmpfs(struct px_buf *out, const char *target, const struct px_step *s)
{
    char size[32];
    (void)px_fmt(size, sizeof size, "%llu", (unsigned long long)s->num);
    option(out, "--perms", s->flags & PX_STEP_OWNED ? "0755" : "1777", NULL);
    if (s->num)
        option(out, "--size", size, NULL);
    option(out, "--tmpfs", target, NULL);
}

static void bwrap_step(struct px_buf *out, struct px_buf *inputs, const struct px_plan *plan,
                       const struct px_step *s, unsigned *fd)
{
    const char *src = px_plan_text(plan, s->src), *dst = px_plan_text(plan, s->dst);
    if (its_own(dst) && !(s->op == PX_OP_TMPFS && px_equal(dst, "/dev/shm")))
        return;
    switch ((enum px_op)s->op) {
    case PX_OP_MKDIR:
        option(out, "--dir", dst, NULL);
        break;
    case PX_OP_SYMLINK:
        option(out, "--symlink", src, dst);
        break;
    case PX_OP_FILE:
        bwrap_file(out, inputs, plan, s, fd);
        break;
    case PX_OP_BIND:
        if (!(s->flags & (PX_STEP_DEVICE | PX_STEP_INSIDE)))
            option(out, s->attr & PX_MOUNT_RDONLY ? "--ro-bind" : "--bind", src, dst);
        break;
    case PX_OP_TMPFS:
        bwrap_tmpfs(out, dst, s);
        break;
    case PX_OP_PROC: /* and /dev, which lies beside it in every box */
        option(out, "--proc", "/proc", NULL);
        option(out, "--dev", "/dev", NULL);
        break;
    case PX_OP_MASK:
        if (s->flags & PX_STEP_DIRECTORY && access(dst, F_OK) == 0)
            option(out, "--tmpfs", dst, NULL);
        else if (access(dst, F_OK) == 0)
            option(out, "--ro-bind", "/dev/null", dst);
        break;
    default:
        break;
    }
}

static void bwrap_filter(const struct px_policy *policy, const struct px_plan *plan, struct px_buf *out,
                         struct px_buf *inputs)
{
    uint16_t len = 0;
    bool strict = px_policy_strict(policy);
    const struct sock_filter *program =
        px_seccomp_program(plan->writable_binds ? (strict ? PX_FILTER_STRICT_WORKSPACE : PX_FILTER_WORKSPACE)
                           : strict             ? PX_FILTER_STRICT
                                                : PX_FILTER_DEFAULT,
                           &len);
    option(out, "--seccomp", "10", NULL);
    px_buf_puts(inputs, " 10< <(base64 -d <<<'");
    base64(inputs, (const unsigned char *)program, len * sizeof *program);
    px_buf_puts(inputs, "')");
}

static void bwrap_identity(struct px_buf *out, const struct px_policy *p, const struct px_plan *plan)
{
    char uid[16], gid[16];
    (void)px_fmt(uid, sizeof uid, "%u", p->user.uid);
    (void)px_fmt(gid, sizeof gid, "%u", p->user.gid);
    option(out, "--unshare-all", NULL, NULL);
    option(out, "--unshare-user", NULL, NULL); /* --unshare-all only tries; without it there is no box */
    if (!plan->own_net)
        option(out, "--share-net", NULL, NULL);
    option(out, "--disable-userns", NULL, NULL);
    option(out, "--uid", uid, NULL);
    option(out, "--gid", gid, NULL);
    option(out, "--hostname", p->hostname ? p->hostname : "sandbox", NULL);
    option(out, "--cap-drop", "ALL", NULL);
    option(out, "--new-session", NULL, NULL);
    option(out, "--die-with-parent", NULL, NULL);
    option(out, "--clearenv", NULL, NULL);
    for (char **v = plan->envp; *v; v++) {
        char name[4096];
        const char *equals = strchr(*v, '=');
        if (equals && px_fmt(name, sizeof name, "%.*s", (int)(equals - *v), *v) >= 0)
            option(out, "--setenv", name, equals + 1);
    }
}

static const char *workdir_of(const struct px_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == PX_OP_CHDIR)
            return px_plan_text(plan, plan->steps[i].dst);
    return "/";
}

int px_export_bwrap(const struct px_policy *policy, const struct px_plan *plan, struct px_buf *out,
                   struct px_err *e)
{
    px_auto_buf struct px_buf inputs = PX_BUF(8 << 20);
    unsigned fd = 11;
    if (no_such(plan, "bwrap", e) < 0)
        return -1;
    if (!px_policy_own_filter(policy))
        return px_fail(e, PX_E_NOT_BUILT, 0, "a profile of system calls cannot be exported to bwrap");
    px_buf_puts(out, "#!/bin/bash\n# A policy of px for bubblewrap 0.8 or newer.\n");
    missing(out, "#", policy, plan, PX_FORMAT_BWRAP);
    px_buf_puts(
        out,
        "# The box can read this command line, with the host's names of what is bound.\n[ \"$(id -u)\" -ne 0 ] || { echo 'Run this as an ordinary user: as root, bwrap would map an id of the box to root.' >&2; exit 125; }\n"
        "exec ");
    timeout_word(out, policy);
    px_buf_puts(out, "bwrap");
    bwrap_identity(out, policy, plan);
    for (uint32_t i = 0; i < plan->count; i++)
        bwrap_step(out, &inputs, plan, &plan->steps[i], &fd);
    bwrap_filter(policy, plan, out, &inputs);
    option(out, "--remount-ro", "/", NULL);
    option(out, "--chdir", workdir_of(plan), NULL);
    px_buf_puts(out, " \\\n    --");
    command(out, plan);
    px_buf_puts(out, " \\\n   ");
    px_buf_puts(out, px_buf_text(&inputs));
    px_buf_putc(out, '\n');
    return inputs.err < 0 || out->err < 0 ? px_no_memory(e) : 0;
}

/* ---- docker ---- */

static void docker_limits(struct px_buf *out, const struct px_policy *p)
{
    char text[48];
    if (px_policy_limited(p->memory_bytes) &&
        px_fmt(text, sizeof text, "%llu", (unsigned long long)p->memory_bytes) >= 0)
        option(out, "--memory", text, NULL);
    if (px_policy_limited(p->cpus_milli) &&
        px_fmt(text, sizeof text, "%llu.%03llu", (unsigned long long)(p->cpus_milli / 1000),
               (unsigned long long)(p->cpus_milli % 1000)) >= 0)
        option(out, "--cpus", text, NULL);
    if (px_policy_limited(p->pids) && px_fmt(text, sizeof text, "%llu", (unsigned long long)p->pids) >= 0)
        option(out, "--pids-limit", text, NULL);
}

static void docker_step(struct px_buf *out, const struct px_plan *plan, const struct px_step *s)
{
    px_auto_buf struct px_buf text = PX_BUF(16 << 10);
    const char *dst = px_plan_text(plan, s->dst);
    if (s->op == PX_OP_BIND && s->flags & PX_STEP_CALLER) {
        px_buf_printf(&text, "type=bind,source=%s,target=%s%s", px_plan_text(plan, s->src), dst,
                      s->attr & PX_MOUNT_RDONLY ? ",readonly" : "");
        option(out, "--mount", px_buf_text(&text), NULL);
    } else if (s->op == PX_OP_TMPFS && px_equal(dst, "/dev/shm")) {     /* noexec there without a word */
        px_buf_printf(&text, "%llu", (unsigned long long)s->num);
        option(out, "--shm-size", px_buf_text(&text), NULL);
    } else if (s->op == PX_OP_TMPFS && !its_own(dst)) {
        px_buf_printf(&text, "%s:rw,nosuid,nodev,size=%llu%s,mode=1777", dst, (unsigned long long)s->num,
                      s->attr & PX_MOUNT_NOEXEC ? ",noexec" : ",exec");
        option(out, "--tmpfs", px_buf_text(&text), NULL);
    }
}

int px_export_docker(const struct px_policy *policy, const struct px_plan *plan, struct px_buf *out,
                    struct px_err *e)
{
    char user[40];
    if (no_such(plan, "docker", e) < 0)
        return -1;
    (void)px_fmt(user, sizeof user, "%u:%u", policy->user.uid, policy->user.gid);
    px_buf_puts(
        out,
        "#!/bin/sh\n# A policy of px for docker or podman (DOCKER=podman). IMAGE is the image that has the programs.\n");
    missing(out, "#", policy, plan, PX_FORMAT_DOCKER);
    px_buf_puts(
        out,
        "# System calls: px policy show --seccomp >profile.json, and --security-opt seccomp=profile.json.\nexec ");
    timeout_word(out, policy);
    px_buf_puts(out, "\"${DOCKER:-docker}\" run --rm --init");
    option(out, "--network", plan->own_net ? "none" : "host", NULL);
    option(out, "--read-only", NULL, NULL);
    option(out, "--cap-drop", "ALL", NULL);
    option(out, "--security-opt", "no-new-privileges", NULL);
    option(out, "--user", user, NULL);
    option(out, "--hostname", policy->hostname ? policy->hostname : "sandbox", NULL);
    docker_limits(out, policy);
    for (char **v = plan->envp; *v; v++)
        option(out, "--env", *v, NULL);
    for (uint32_t i = 0; i < plan->count; i++)
        docker_step(out, plan, &plan->steps[i]);
    option(out, "--workdir", workdir_of(plan), NULL);
    px_buf_puts(out, " \\\n    \"${IMAGE:?name the image}\"");
    command(out, plan);
    px_buf_putc(out, '\n');
    return out->err < 0 ? px_no_memory(e) : 0;
}

/* ---- Seatbelt ---- */

static void subpath(struct px_buf *out, const char *act, const char *path)
{
    px_buf_printf(out, "(allow %s (subpath \"", act);
    px_buf_escape(out, path, "\"\\");
    px_buf_puts(out, "\"))\n");
}

/* Reads are granted only where the policy shows something; the system's own directories are those that any program needs. */
int px_export_seatbelt(const struct px_policy *policy, const struct px_plan *plan, struct px_buf *out,
                      struct px_err *e)
{
    static const char *const system_dirs[] = {
        "/usr", "/bin", "/sbin", "/System", "/Library", "/private/var/db/dyld", "/dev", NULL};
    if (no_such(plan, "seatbelt", e) < 0)
        return -1;
    px_buf_puts(
        out, "; A policy of px for Seatbelt: sandbox-exec -f FILE COMMAND. Paths are those of the host.\n");
    missing(out, ";", policy, plan, PX_FORMAT_SEATBELT);
    px_buf_puts(
        out,
        "(version 1)\n(deny default)\n(allow process-fork)\n(allow process-exec)\n(allow sysctl-read)\n(allow signal (target same-sandbox))\n"
        "(allow file-read-metadata)\n");
    for (const char *const *dir = system_dirs; *dir; dir++)
        subpath(out, "file-read*", *dir);
    px_buf_puts(out, "(allow file-write* (literal \"/dev/null\") (literal \"/dev/tty\"))\n");
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct px_step *s = &plan->steps[i];
        if (s->op != PX_OP_BIND || !(s->flags & PX_STEP_CALLER))
            continue;
        subpath(out, "file-read*", px_plan_text(plan, s->src));
        if (!(s->attr & PX_MOUNT_RDONLY))
            subpath(out, "file-write*", px_plan_text(plan, s->src));
    }
    px_buf_puts(out, plan->own_net ? "(deny network*)\n" : "(allow network*)\n");
    return out->err < 0 ? px_no_memory(e) : 0;
}
