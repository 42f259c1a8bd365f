#include "plan/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "plan/steps.h"

enum {
    BUILD_INIT = 65533,         /* pid 1 of a box whose payload has id 0 */
    INOTIFY_INSTANCES = 16,     /* of the 128 that a user has */
    INOTIFY_WATCHES = 8192,
};

const char *px_plan_text(const struct px_plan *plan, uint32_t offset)
{
    return plan->text.data + offset;
}

void px_plan_note(char list[PX_MECHANISMS_MAX][PX_NAME_MAX], uint32_t *count, const char *fmt, ...)
{
    va_list args;
    if (*count >= PX_MECHANISMS_MAX)
        return;
    va_start(args, fmt);
    (void)vsnprintf(list[(*count)++], PX_NAME_MAX, fmt, args);
    va_end(args);
}

/* ---- limits ---- */

static void add_rlimit(struct px_plan *plan, int resource, uint64_t soft, uint64_t hard)
{
    struct px_step *s = px_steps_add(plan, PX_OP_RLIMIT);
    s->attr = (uint32_t)resource;
    s->num = soft;
    s->num2 = hard;
}

/* No core file fits into 1 byte. With a limit of exactly 1 the kernel also does not start the handler that a
 * core_pattern "|..." names: a root process outside of the box, which reads the memory of the crashed process
 * (core(5)). */
static void add_core(struct px_plan *plan)
{
    add_rlimit(plan, RLIMIT_CORE, 1, 1);
}

static void add_limits(struct px_plan *plan, const struct px_policy *policy)
{
    add_core(plan);
    add_rlimit(plan, RLIMIT_MEMLOCK, 8 << 20, 8 << 20);
    add_rlimit(plan, RLIMIT_MSGQUEUE, 819200, 819200);
    add_rlimit(plan, RLIMIT_SIGPENDING, 4096, 4096);
    add_rlimit(plan, RLIMIT_NICE, 0, 0);
    add_rlimit(plan, RLIMIT_RTPRIO, 0, 0);
    if (px_policy_limited(policy->nofile))
        add_rlimit(plan, RLIMIT_NOFILE, policy->nofile, policy->nofile);
    if (px_policy_limited(policy->file_bytes))
        add_rlimit(plan, RLIMIT_FSIZE, policy->file_bytes, policy->file_bytes);
    if (px_policy_limited(policy->cpu_time_msec)) {
        uint64_t seconds = (policy->cpu_time_msec + 999) / 1000;
        add_rlimit(plan, RLIMIT_CPU, seconds, seconds + 1);
    }
    if (policy->limits == PX_LIMITS_TRY && px_policy_limited(policy->memory_bytes))
        add_rlimit(plan, RLIMIT_AS, policy->memory_bytes, policy->memory_bytes);
    /* The kernel counts all processes of the caller, and a plain command is one of them: it could not even start. */
    if (px_policy_limited(policy->pids) && plan->tier != PX_TIER_RLIMITS) {
        add_rlimit(plan, RLIMIT_NPROC, policy->pids, policy->pids);
        px_plan_has(plan, "pids=rlimit");
    }
}

/* ---- the payload ---- */

static char **vector_of(struct px_plan *plan, const uint32_t *offsets, size_t count)
{
    char **v = calloc(count + 1, sizeof *v);
    for (size_t i = 0; v && i < count; i++)
        v[i] = plan->text.data + offsets[i];
    return v;
}

int px_plan_check(const char *const argv[], size_t *ret_count, struct px_err *e)
{
    size_t n = 0;
    while (argv && argv[n] && n < PX_ARGS_MAX)
        n++;
    if (n == 0 || argv[0][0] == '\0') {
        px_fail(e, PX_E_USAGE, 0, n == 0 ? "there is no command to run" : "the command's name is empty");
        return px_fix(e, "Write the command after the options: px exec -- echo hello.");
    }
    if (n >= PX_ARGS_MAX)
        return px_fail(e, PX_E_LIMIT, 0, "the command has more than %d words", PX_ARGS_MAX);
    *ret_count = n;
    return 0;
}

static void add_ids(struct px_plan *plan, enum px_op op, uint32_t uid, uint32_t gid, unsigned flags)
{
    struct px_step *s = px_steps_add(plan, op);
    s->num = uid;
    s->num2 = gid;
    s->flags = (uint16_t)flags;
}

static void add_payload(struct px_plan *plan, const struct px_policy *policy)
{
    plan->payload_from = plan->count;
    px_plan_network(plan, policy);
    bool full = plan->tier == PX_TIER_FULL;
    px_steps_add(plan, PX_OP_SESSION);
    px_steps_add(plan, PX_OP_KEYRING);
    px_steps_add(plan, PX_OP_BOUND)->flags = full ? 0 : PX_STEP_REAPER;
    if (full)
        add_ids(plan, PX_OP_IDS, policy->user.uid, policy->user.gid, PX_STEP_SETGROUPS);
    else
        add_ids(plan, PX_OP_IDS, plan->caller.uid, plan->caller.gid, PX_STEP_REAPER);
    px_steps_add(plan, PX_OP_SIGNALS);
    px_steps_add(plan, PX_OP_JOIN);
    if (policy->tty) {
        uint32_t src = px_steps_text(plan, plan->tier == PX_TIER_FULL ? "/dev/pts/ptmx" : "/dev/ptmx");
        px_steps_add(plan, PX_OP_TERMINAL)->src = src;
    } else {
        px_steps_add(plan, PX_OP_STDIO);
    }
    px_steps_at(plan, PX_OP_CHDIR, px_plan_workdir(plan, policy));
    if (policy->apparmor) {
        uint32_t text = px_steps_text(plan, policy->apparmor);
        px_steps_add(plan, PX_OP_APPARMOR)->src = text;
        px_plan_has(plan, "apparmor=%.48s", policy->apparmor);
    }
}

static void add_launch(struct px_plan *plan, const char *command, const struct px_policy *policy, const struct px_host *host,
                       bool bind_to_thread)
{
    px_steps_add(plan, PX_OP_CLOSE);
    add_limits(plan, policy);   /* late: a low RLIMIT_NOFILE must not prevent px's own opens */
    px_steps_add(plan, PX_OP_GATE);     /* before the filter: the user's may refuse the wait */
    if (plan->tier != PX_TIER_RLIMITS)
        px_plan_add_filter(plan, policy, host);
    px_plan_candidates(plan, policy, command);
    plan->init_at = plan->count;
    unsigned thread = bind_to_thread ? PX_STEP_THREAD : 0;
    uint32_t init = policy->build ? BUILD_INIT : 0;     /* never the payload's id */
    if (plan->tier == PX_TIER_FULL)
        add_ids(plan, PX_OP_INIT, init, init, PX_STEP_SETGROUPS | thread);
    else
        /* it must outlive px to end the process tree */
        add_ids(plan, PX_OP_INIT, plan->caller.uid, plan->caller.gid, PX_STEP_REAPER);
}

/* px-init loads the filter before its first command. A user's filter is loaded in each command instead: it may
 * refuse what px-init needs. */
static void add_stay(struct px_plan *plan, const struct px_policy *policy, const struct px_host *host, bool bind_to_thread)
{
    plan->payload_from = plan->init_at = plan->count;
    px_steps_add(plan, PX_OP_SIGNALS);
    px_plan_landlock(plan, policy);
    px_steps_add(plan, PX_OP_CLOSE);
    add_core(plan);             /* for all commands: px-init's filter does not allow it later */
    uint32_t at = px_plan_stay_filters(plan, policy, host), init = policy->build ? BUILD_INIT : 0;
    add_ids(plan, PX_OP_STAY, init, init, PX_STEP_SETGROUPS | (bind_to_thread ? PX_STEP_THREAD : 0u));
    plan->steps[plan->count - 1].src = at;
    plan->steps[plan->count - 1].attr = (uint32_t)(plan->text.len - at);
}

/* ---- tiers ---- */

static void add_setting(struct px_plan *plan, enum px_op op, const char *path, uint64_t value)
{
    uint32_t src = px_steps_text(plan, path);
    struct px_step *s = px_steps_add(plan, op);
    s->src = src;
    s->num = value;
}

/* Reports what the box shares with another box, and what the two can therefore do to each other. */
static void tell_joined(struct px_plan *plan, const struct px_policy *policy)
{
    px_plan_has(plan, "net=%s", policy->net_box);
    px_plan_lacks(plan, "net, ids: those of the other box, as asked for");
    if (plan->landlock_abi < 6)
        px_plan_lacks(plan, "abstract sockets: those of the other box can be reached");
}

static int plan_full(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    plan->namespaces = PX_CLONE_NEWUSER | PX_CLONE_NEWNS | PX_CLONE_NEWPID | PX_CLONE_NEWIPC | PX_CLONE_NEWUTS;
    if (px_policy_without(policy, PX_WITHOUT_PIDNS))
        plan->namespaces &= ~(uint64_t)PX_CLONE_NEWPID;
    if (px_policy_without(policy, PX_WITHOUT_IPC))
        plan->namespaces &= ~(uint64_t)PX_CLONE_NEWIPC;
    if (px_policy_without(policy, PX_WITHOUT_UTS))
        plan->namespaces &= ~(uint64_t)PX_CLONE_NEWUTS;
    plan->joins = policy->net == PX_NET_BOX;
    if (plan->joins) {
        plan->join = -EBADF;
        plan->namespaces &= ~(uint64_t)PX_CLONE_NEWUSER;
    }
    plan->own_net = policy->net != PX_NET_HOST && !plan->joins && !px_policy_without(policy, PX_WITHOUT_NETNS);
    px_steps_add(plan, PX_OP_BEGIN);
    uint32_t name = px_steps_text(plan, policy->hostname);
    px_steps_add(plan, PX_OP_HOSTNAME)->src = name;
    px_steps_add(plan, PX_OP_PRIVATE);
    /* Before WAIT, while pid 1 still has the caller's id: only the host's root may write there. */
    if (px_policy_writes_no_programs(policy))
        add_setting(plan, PX_OP_NO_MEMFD, "/proc/sys/vm/memfd_noexec", 2);
    px_steps_add(plan, PX_OP_WAIT)->flags = PX_STEP_SETGROUPS;
    px_steps_add(plan, PX_OP_CGROUPNS);
    add_setting(plan, PX_OP_NO_USERNS, "/proc/sys/user/max_user_namespaces", 0);
    /* The kernel counts these for all user namespaces of the caller together: without a limit one box could take
     * them all. */
    add_setting(plan, PX_OP_COUNTS, "/proc/sys/user/max_inotify_instances", INOTIFY_INSTANCES);
    add_setting(plan, PX_OP_COUNTS, "/proc/sys/user/max_inotify_watches", INOTIFY_WATCHES);
    if (plan->stays)
        px_plan_network(plan, policy);
    else
        px_steps_add(plan, PX_OP_PAYLOAD);
    if (px_rootfs_plan(plan, policy, e) < 0)
        return -1;
    if (!plan->stays)
        px_steps_add(plan, PX_OP_READY);
    px_plan_has(plan, "namespaces=%smount%s%s%s%s%s", plan->joins ? "" : "user,", px_policy_without(policy, PX_WITHOUT_PIDNS) ? "" : ",pid",
                px_policy_without(policy, PX_WITHOUT_IPC) ? "" : ",ipc",
                px_policy_without(policy, PX_WITHOUT_UTS) ? "" : ",uts", px_policy_without(policy, PX_WITHOUT_CGROUPNS) ? "" : ",cgroup",
                plan->own_net ? ",net" : "");
    px_plan_has(plan, "root=pivot");
    px_plan_has(plan, "privileges=none");
    px_plan_has(plan, "no_new_privs");
    if (policy->net == PX_NET_HOST)
        px_plan_lacks(plan, "net: the host's network is shared, as asked for");
    if (plan->joins)
        tell_joined(plan, policy);
    if (px_policy_limited(policy->disk_bytes))
        px_plan_has(plan, "disk=tmpfs%s", plan->writable_binds ? ", watched in binds" : "");
    return 0;
}

static int landlock_bind(const struct px_bind *b, struct px_err *e)
{
    char source[PATH_MAX];
    if (realpath(b->source, source) && px_equal(source, b->target))
        return 0;
    px_fail(e, PX_E_TIER, 0, "the landlock tier cannot show '%s' at '%s'", b->source, b->target);
    return px_fix(e, "In this tier a bind keeps its place: -v %s.", b->source);
}

/* What both tiers without namespaces begin with, and what they lack. */
static void begin_weaker(struct px_plan *plan, const struct px_policy *policy)
{
    px_steps_add(plan, PX_OP_BEGIN);
    px_steps_add(plan, PX_OP_WAIT);
    px_steps_add(plan, PX_OP_SUBREAPER);
    px_steps_add(plan, PX_OP_PAYLOAD);
    px_steps_add(plan, PX_OP_READY);
    px_plan_has(plan, "no_new_privs");
    px_plan_weaker(plan, policy);
    if (policy->git_open)
        px_plan_lacks(plan, "git: commands can write the .git of a root");
}

/* Without namespaces: the host's root, readable where the base is and writable where granted. */
static int plan_landlock(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    if (px_policy_root_dir(policy) || policy->work_dir || policy->changes)
        return px_fail(e, PX_E_TIER, 0, "the landlock tier has no root of its own, so no other base and no work directory");
    if (px_policy_limited(policy->disk_bytes))
        return px_fail(e, PX_E_TIER, 0, "the landlock tier has no tmpfs of its own, so --disk cannot hold");
    for (size_t i = 0; i < policy->binds.count; i++)
        if (landlock_bind(&policy->binds.items[i], e) < 0)
            return -1;
    if (px_policy_carried(policy) || policy->net == PX_NET_BOX) {
        px_fail(e, PX_E_TIER, 0, "the landlock tier has no network of its own, so --net outbound, --net box and --publish cannot hold");
        return px_fix(e, "Use --net host, if the whole network of the host may be reached.");
    }
    begin_weaker(plan, policy);
    return 0;
}

/* No isolation: the command may do all that the caller may, within the limits. Its processes still end with it. */
static int plan_rlimits(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    if (px_policy_root_dir(policy) || policy->work_dir || policy->changes || policy->binds.count || px_policy_carried(policy) ||
        policy->net == PX_NET_BOX || px_policy_limited(policy->disk_bytes))
        return px_fail(e, PX_E_TIER, 0, "a plain process has no root, no binds, no network and no disk limit of its own");
    begin_weaker(plan, policy);
    return 0;
}

static int choose_tier(struct px_plan *plan, const struct px_policy *policy, const struct px_host *host, struct px_err *e)
{
    plan->tier = policy->plain ? PX_TIER_RLIMITS : host->user_namespaces ? PX_TIER_FULL : PX_TIER_LANDLOCK;
    plan->landlock_abi = host->landlock_abi;
    plan->scratch = px_steps_text(plan, host->scratch);
    plan->caller = (struct px_user){host->uid, host->gid};
    plan->owner = policy->user;         /* also if no process gets that id */
    if (plan->tier != PX_TIER_LANDLOCK)
        return 0;
    if (host->is_root) {
        px_fail(e, PX_E_TIER, 0, "the landlock tier is not for root");
        px_why(e, "Without a user namespace the command would have the host's uid 0, which Landlock does not hold.");
        return px_fix(e, "Run px as an ordinary user, or make user namespaces possible.");
    }
    if (policy->require == PX_TIER_FULL)
        return px_fail(e, PX_E_USERNS, 0, "this host does not let px make a user namespace, so there is no full isolation");
    if (host->landlock_abi < 3) {
        px_fail(e, PX_E_TIER, 0, "neither user namespaces nor a Landlock that can hold truncation are there");
        return px_why(e, "Landlock ABI 3 is needed, this kernel has %d.", host->landlock_abi);
    }
    return 0;
}

static int refuse_absent(const struct px_policy *policy, const struct px_host *host, struct px_err *e)
{
    if (policy->apparmor && !host->apparmor) {
        px_fail(e, PX_E_APPARMOR, 0, "--apparmor %s: this kernel does not run AppArmor", policy->apparmor);
        return px_fix(e, "Leave --apparmor out: Landlock and seccomp are in force without it.\n"
                         "Or boot a kernel that has AppArmor, with apparmor=1 security=apparmor.");
    }
    if (px_policy_check_overlay(policy, e) < 0)
        return -1;
    return px_policy_check_network(policy, e);
}

/* ---- the whole plan ---- */

static int build_plan(struct px_plan *plan, const struct px_policy *policy, const char *command, const struct px_host *host,
                 bool bind_to_thread, struct px_err *e)
{
    static int (*const begin[])(struct px_plan *plan, const struct px_policy *policy, struct px_err *e) = {
        [PX_TIER_FULL] = plan_full, [PX_TIER_LANDLOCK] = plan_landlock, [PX_TIER_RLIMITS] = plan_rlimits};
    if (begin[plan->tier](plan, policy, e) < 0)
        return -1;
    if (plan->stays) {
        add_stay(plan, policy, host, bind_to_thread);
        px_plan_switch_off(plan, policy);
        return 0;
    }
    add_payload(plan, policy);
    if (plan->tier == PX_TIER_FULL)
        px_plan_landlock(plan, policy);
    else if (plan->tier == PX_TIER_LANDLOCK)
        px_plan_host_paths(plan, policy);
    add_launch(plan, command, policy, host, bind_to_thread);
    px_plan_switch_off(plan, policy);
    return 0;
}

/* px-init PID MODE DIRECTORY...: the directories whose fill level it reports. */
static int add_init_argv(struct px_plan *plan, const struct px_policy *policy, uint32_t *offsets)
{
    size_t n = 0;
    offsets[n++] = px_steps_text(plan, "px-init");
    offsets[n++] = px_steps_text(plan, "0");
    offsets[n++] = px_steps_text(plan, plan->stays ? "s" : plan->tier == PX_TIER_FULL ? "p" : "r");
    for (size_t i = 0; plan->tier == PX_TIER_FULL && i < policy->tmpfs.count && i < 32; i++)
        offsets[n++] = px_steps_text(plan, policy->tmpfs.items[i].target);
    if (policy->overlay && *policy->overlay == '\0')
        offsets[n++] = px_steps_text(plan, "/");
    if (policy->changes && !policy->keep)
        offsets[n++] = px_steps_text(plan, policy->work_target);
    return (int)n;
}

static int finish_plan(struct px_plan *plan, const struct px_policy *policy, const char *const argv[], size_t argc,
                       struct px_err *e)
{
    px_auto_free uint32_t *args = calloc(argc + 1, sizeof *args), *env = NULL;
    uint32_t init[40];
    size_t env_count = 0;

    if (!args || px_plan_environment(plan, policy, &env, &env_count) < 0)
        return px_no_memory(e);
    for (size_t i = 0; i < argc; i++)
        args[i] = px_steps_text(plan, argv[i]);
    int init_count = add_init_argv(plan, policy, init);
    if (plan->text.err < 0) {
        px_fail(e, plan->text.err == -ENOMEM ? PX_E_MEMORY : PX_E_LIMIT, 0, "the request is too large for one box");
        return px_why(e, "Arguments, variables and paths together may have %d bytes, a plan %d steps.", PX_PLAN_TEXT_MAX,
                      PX_STEPS_MAX);
    }
    /* The arena moves while it grows, so pointers into it are made last. */
    plan->argv = vector_of(plan, args, argc);
    plan->envp = vector_of(plan, env, env_count);
    plan->init_argv = vector_of(plan, init, (size_t)init_count);
    if (!plan->argv || !plan->envp || !plan->init_argv)
        return px_no_memory(e);
    return 0;
}

static struct px_plan *new_plan(void)
{
    struct px_plan *plan = calloc(1, sizeof *plan);
    if (plan)
        plan->steps = calloc(PX_STEPS_MAX, sizeof *plan->steps);
    if (!plan || !plan->steps) {
        px_plan_free(plan);
        return NULL;
    }
    plan->text = PX_BUF(PX_PLAN_TEXT_MAX);
    px_buf_putc(&plan->text, '\0');     /* offset 0 is the empty text */
    return plan;
}

/* Returns the plan if all went well. */
static int give_plan(struct px_plan *plan, int r, struct px_plan **ret_plan)
{
    if (r < 0)
        px_plan_free(plan);
    else
        *ret_plan = plan;
    return r;
}

int px_plan_new(const struct px_policy *policy, const char *const argv[], const struct px_host *host, bool bind_to_thread,
                struct px_plan **ret_plan, struct px_err *e)
{
    size_t argc = 0;
    if (px_plan_check(argv, &argc, e) < 0 || refuse_absent(policy, host, e) < 0)
        return -1;
    struct px_plan *plan = new_plan();
    if (!plan)
        return px_no_memory(e);
    int r = choose_tier(plan, policy, host, e) < 0 || build_plan(plan, policy, argv[0], host, bind_to_thread, e) < 0 ||
                    finish_plan(plan, policy, argv, argc, e) < 0
                ? -1
                : 0;
    return give_plan(plan, r, ret_plan);
}

int px_plan_stay(const struct px_policy *policy, const struct px_host *host, bool bind_to_thread, struct px_plan **ret_plan,
                 struct px_err *e)
{
    static const char *const none[] = {NULL};
    if (refuse_absent(policy, host, e) < 0)
        return -1;
    if (policy->changes)
        return px_fail(e, PX_E_NOT_BUILT, 0, "--changes is for one command, not for a box that stays");
    struct px_plan *plan = new_plan();
    if (!plan)
        return px_no_memory(e);
    plan->stays = true;
    int r = choose_tier(plan, policy, host, e);
    if (r >= 0 && plan->tier != PX_TIER_FULL)
        r = px_fail(e, PX_E_TIER, 0, "a box that stays needs namespaces");
    if (r >= 0)
        r = build_plan(plan, policy, NULL, host, bind_to_thread, e);
    if (r >= 0)
        r = finish_plan(plan, policy, none, 0, e);
    return give_plan(plan, r, ret_plan);
}

int px_plan_command(const struct px_policy *policy, const char *const argv[], struct px_plan **ret_plan, struct px_err *e)
{
    size_t argc = 0;
    if (px_plan_check(argv, &argc, e) < 0)
        return -1;
    struct px_plan *plan = new_plan();
    if (!plan)
        return px_no_memory(e);
    add_limits(plan, policy);
    px_plan_candidates(plan, policy, argv[0]);
    return give_plan(plan, finish_plan(plan, policy, argv, argc, e), ret_plan);
}

void px_plan_free(struct px_plan *plan)
{
    if (!plan)
        return;
    for (uint32_t i = 0; i < plan->count; i++)
        (void)px_fd_close(plan->steps[i].fd);
    if (plan->joins)
        (void)px_fd_close(plan->join);
    free(plan->steps);
    free(plan->argv);
    free(plan->envp);
    free(plan->init_argv);
    px_buf_done(&plan->text);
    free(plan);
}
