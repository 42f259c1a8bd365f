/* Makes the result from what the kernel and px-init reported. Nothing here reads what the program wrote. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "box/supervise.h"
#include "kernel/sysname.h"

const char *px_status_name(enum px_status status)
{
    static const char *const names[] = {"ok", "nonzero", "signalled", "timeout", "memory", "output", "disk", "denied", "internal"};
    return (size_t)status < PX_COUNT_OF(names) ? names[status] : "internal";
}

static void add_limit_hit(struct px_result *r, const char *limit, const char *counter, uint64_t value)
{
    if (r->limits_hit_count < PX_LIMITS_MAX)
        r->limits_hit[r->limits_hit_count++] = (struct px_limit_hit){limit, counter, value};
}

bool px_report_has(const struct px_result *r, const char *word)
{
    for (size_t i = 0; i < r->mechanisms_count; i++)
        if (px_starts_with(r->mechanisms[i], word))
            return true;
    return false;
}

static void hit_disk(const struct px_box *box, struct px_result *r)
{
    if (box->disk.bytes > box->disk.bytes_max)
        add_limit_hit(r, "disk", "bytes added to writable binds", box->disk.bytes);
    else
        add_limit_hit(r, "disk", "files added to writable binds", box->disk.files);
}

/* ---- how it ended ---- */

/* The container was ended by its limit on writable binds: the command's result says so too. */
static void ended_with_home(struct px_box *box)
{
    struct px_disk said;
    int verdict = box->end == PX_END_LOST && box->home ? box->home->verdict : -EBADF;
    if (verdict < 0 || px_sys(SYS_pread64, verdict, &said, sizeof said, 0) != (long)sizeof said)
        return;
    box->disk = said;
    box->end = PX_END_DISK;
}

static void ended_by_itself(struct px_box *box, struct px_result *r)
{
    int status = box->report.wait_status;
    if (WIFEXITED(status)) {
        r->exit_code = WEXITSTATUS(status);
        r->status = r->exit_code == 0 ? PX_STATUS_OK : PX_STATUS_NONZERO;
        r->reason = r->exit_code == 0 ? "exited" : "exited with another status than 0";
        return;
    }
    r->signal = WTERMSIG(status);
    r->exit_code = 128 + r->signal;
    r->status = PX_STATUS_SIGNALLED;
    r->reason = "ended by a signal";
    /* A program can send itself SIGSYS as well, so this is only a hint. */
    if (r->signal == SIGSYS && r->hints_count < PX_COUNT_OF(r->hints))
        r->hints[r->hints_count++] = "SIGSYS is also how the system call filter ends a call of another ABI";
}

static void ended_by_us(struct px_box *box, struct px_result *r)
{
    r->signal = SIGKILL;
    r->exit_code = 128 + SIGKILL;
    switch (box->end) {
    case PX_END_TIMEOUT:
        r->status = PX_STATUS_TIMEOUT;
        r->reason = "ran longer than its timeout";
        r->exit_code = 124;
        r->timed_out = true;
        add_limit_hit(r, "timeout", "CLOCK_BOOTTIME milliseconds", (box->end_nsec - box->start_nsec) / 1000000);
        break;
    case PX_END_OUTPUT:
        r->status = PX_STATUS_OUTPUT;
        r->reason = "wrote more than its output limit";
        for (int i = 1; i < PX_FLOW_COUNT; i++)
            if (box->flow[i].limit && box->flow[i].total > box->flow[i].limit)
                add_limit_hit(r, "output-limit", i == 1 ? "bytes on stdout" : "bytes on stderr", box->flow[i].total);
        break;
    case PX_END_DISK:
        r->status = PX_STATUS_DISK;
        r->reason = "wrote more than its disk limit";
        hit_disk(box, r);
        break;
    case PX_END_KILLED:
        r->status = PX_STATUS_SIGNALLED;
        r->reason = "killed by the caller";
        break;
    case PX_END_MEMORY:
        r->status = PX_STATUS_MEMORY;
        r->reason = "used more than its memory limit";
        r->oom_killed = true;
        break;
    default:
        r->status = PX_STATUS_INTERNAL;
        r->reason = box->home ? "its box ended before it" : "pid 1 of the box died without a report";
        break;
    }
}

/* ---- limits ---- */

static void tell_memory(struct px_result *r, const char *counter, uint64_t kills)
{
    r->oom_killed = true;
    add_limit_hit(r, "memory", counter, kills);
    if (r->status != PX_STATUS_OK && r->status != PX_STATUS_TIMEOUT) {
        r->status = PX_STATUS_MEMORY;
        r->reason = "used more than its memory limit";
    }
}

static void read_cgroup(struct px_box *box, struct px_result *r)
{
    struct px_cgroup_usage u = {0};
    /* a pool's container serves only this command */
    const struct px_box *whole = box->pool && box->home ? box->home : box;
    if (whole->has_cgroup)
        px_cgroup_read(&whole->cgroup, &u);
    if (u.memory_source) {
        r->memory_peak_bytes = u.memory_peak;
        r->memory_source = u.memory_source;
    }
    r->pids_peak = u.pids_peak;
    /* px may have killed the box before the kernel's OOM killer did. Then its count is 0, and the OOM event counts. */
    if (box->end == PX_END_MEMORY && !u.oom_kills)
        add_limit_hit(r, "memory", "memory.oom_control event", 1);
    /* v2 kills pid 1 with the rest, so there is no report; v1 may spare it, and it reports a killed child */
    if (u.oom_kills)
        tell_memory(r, u.oom_counter, u.oom_kills);
    if (u.pids_refused)
        add_limit_hit(r, "pids", u.pids_counter, u.pids_refused);
}

static void read_rlimits(struct px_box *box, struct px_result *r)
{
    uint64_t cpu_usec = r->cpu_user_usec + r->cpu_sys_usec;
    bool set = px_policy_limited(box->cpu_time_msec);
    /* The kernel counts clock ticks for the limit and nanoseconds for the usage. SIGXCPU may come before the usage
     * reaches the limit, the more so on a busy machine. */
    bool over = set && cpu_usec >= box->cpu_time_msec * (r->signal == SIGXCPU ? 250 : 1000);
    if (over && (r->signal == SIGXCPU || r->signal == SIGKILL))
        add_limit_hit(r, "cpu-time", "microseconds used", cpu_usec);
    if (r->signal == SIGXFSZ)
        add_limit_hit(r, "file-size", "SIGXFSZ, limit in bytes", box->file_bytes);
}

static void read_disk(struct px_box *box, struct px_result *r)
{
    if (box->disk.over && r->status != PX_STATUS_DISK) {
        r->status = PX_STATUS_DISK;
        r->reason = "wrote more than its disk limit";
        hit_disk(box, r);
    }
    /* shared: another box may have filled it */
    if (!box->have_report || !box->report.disk_full || box->report.shared)
        return;
    for (unsigned i = 0; i < 32; i++)
        if (box->report.disk_full & (1u << i)) {
            add_limit_hit(r, px_policy_limited(box->disk_bytes) || px_report_has(r, "disk=") ? "disk" : "tmpfs",
                "statfs: writable directories without a block or inode left", (uint64_t)__builtin_popcount(box->report.disk_full));
            break;
        }
    if (r->status == PX_STATUS_NONZERO) {
        r->status = PX_STATUS_DISK;
        r->reason = "filled its writable directories";
    }
}

/* ---- what was stopped ---- */

static void add_denial(struct px_result *r, const char *op, const char *target, const char *rule, const char *grant, uint64_t count)
{
    if (r->denials_count < PX_DENIALS_MAX)
        r->denials[r->denials_count++] = (struct px_denial){op, target, rule, grant, count};
}

static void deny_calls(const struct px_box *box, const struct px_init_refused *list, size_t count, struct px_result *r)
{
    for (size_t i = 0; i < count; i++) {
        const struct px_init_refused *c = &list[i];
        const char *name = px_sysname_name(c->number);
        add_denial(r, "syscall", name ? name : "unknown", box->own_filter ? "seccomp" : "seccomp profile",
             px_sysname_grant(c->number, box->strict), c->count);
    }
}

/* For a container: the calls that belong to none of its commands, as px-init recorded them. */
void px_report_denials(const struct px_box *box, struct px_result *r)
{
    struct px_init_refused noted[PX_INIT_REFUSED_MAX];
    long n = box->notes < 0 ? 0 : px_sys(SYS_pread64, box->notes, noted, sizeof noted, 0);
    deny_calls(box, box->refused, box->refused_count, r);
    deny_calls(box, noted, n < 0 ? 0 : (size_t)n / sizeof noted[0], r);
}

/* The driver counts for the whole container. What it counted since the command began is the command's if it ran
 * alone. */
void px_report_network(struct px_box *box, struct px_result *r)
{
    bool alone = box->have_report && !box->report.shared;
    free(box->carrier_told);
    box->carrier_told = NULL;
    if (box->carrier)
        box->carrier_told = box->carrier->tell(box->carrier, NULL, r);
    else if (box->carrier_mark && alone)
        box->carrier_told = box->home->carrier->tell(box->home->carrier, box->carrier_mark, r);
}

/* Reads the counters of the cgroup and of the filter's listener. */
static void read_denials(struct px_box *box, struct px_result *r)
{
    for (size_t i = 0; i < r->limits_hit_count; i++) {
        const struct px_limit_hit *h = &r->limits_hit[i];
        if (strcmp(h->limit, "pids") == 0)
            add_denial(r, "fork", NULL, "pids", "--pids NUMBER", h->value);
        if (strcmp(h->limit, "memory") == 0)
            add_denial(r, "memory", NULL, "memory", "--memory SIZE", h->value);
    }
    px_report_denials(box, r);
    px_report_network(box, r);
}

/* ---- usage and output ---- */

static uint64_t to_usec(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static void read_usage(struct px_box *box, struct px_result *r)
{
    const struct rusage *u = &box->usage;
    const struct px_init_report *i = &box->report;
    uint64_t user = to_usec(&u->ru_utime), sys = to_usec(&u->ru_stime), rss = (uint64_t)u->ru_maxrss;
    /* The kernel's sum over pid 1 and all that it reaped; px-init's numbers where another process reaped pid 1. */
    r->cpu_user_usec = user > i->user_usec ? user : i->user_usec;
    r->cpu_sys_usec = sys > i->sys_usec ? sys : i->sys_usec;
    r->memory_peak_bytes = (rss > i->maxrss_kib ? rss : i->maxrss_kib) * 1024;
    r->memory_source = "maxrss";
    r->io_read_bytes = (i->read_blocks > (uint64_t)u->ru_inblock ? i->read_blocks : (uint64_t)u->ru_inblock) * 512;
    r->io_write_bytes = (i->write_blocks > (uint64_t)u->ru_oublock ? i->write_blocks : (uint64_t)u->ru_oublock) * 512;
    r->wall_nsec = box->end_nsec - box->start_nsec;
}

static struct px_bytes take_output(struct px_flow *f, struct px_buf *text)
{
    *text = PX_BUF(SIZE_MAX / 4);
    if (px_headtail_join(&f->kept, text) < 0) {
        f->dropped = true;
        return (struct px_bytes){"", 0};
    }
    return (struct px_bytes){px_buf_text(text), text->len};
}

void px_report_isolation(struct px_box *box)
{
    const struct px_plan *plan = box->plan;
    struct px_result *r = &box->result;
    r->tier = box->partner ? box->partner->tier : px_policy_tier_word(plan->tier);
    for (uint32_t i = 0; i < plan->mechanisms_count && i < PX_MECHANISMS_MAX; i++)
        memcpy(r->mechanisms[r->mechanisms_count++], plan->mechanisms[i], PX_NAME_MAX);
    for (uint32_t i = 0; i < plan->missing_count && i < PX_MECHANISMS_MAX; i++)
        memcpy(r->missing[r->missing_count++], plan->missing[i], PX_NAME_MAX);
    memcpy(box->hint, plan->hint, sizeof box->hint);
    if (box->hint[0])
        r->hints[r->hints_count++] = box->hint;
}

void px_report_home(struct px_box *box)
{
    const struct px_result *from = &box->home->result;
    struct px_result *to = &box->result;
    to->tier = from->tier;
    to->mechanisms_count = from->mechanisms_count;
    to->missing_count = from->missing_count;
    memcpy(to->mechanisms, from->mechanisms, sizeof to->mechanisms);
    memcpy(to->missing, from->missing, sizeof to->missing);
    box->carrier_mark = box->home->carrier ? box->home->carrier->mark(box->home->carrier) : NULL;
    box->own_filter = !px_report_has(from, "seccomp=profile");
    box->strict = px_report_has(from, "seccomp=strict");
    if (box->home->alone || !box->home->has_cgroup)     /* a container for one command has counted nothing yet */
        return;
    struct px_cgroup_usage before = {0};
    px_cgroup_read(&box->home->cgroup, &before);
    box->oom_before = before.oom_kills;
    box->pids_before = before.pids_refused;
}

/* The container's limits hold for all its commands, and the kernel counts for all. What was counted since this
 * command began is this command's if it ran alone, or if it was itself killed. */
static void read_home(struct px_box *box, struct px_result *r)
{
    struct px_cgroup_usage u = {0};
    if (!box->home || box->pool || !box->home->has_cgroup || box->end == PX_END_LOST)
        return;
    px_cgroup_read(&box->home->cgroup, &u);
    uint64_t kills = u.oom_kills - box->oom_before, refused = u.pids_refused - box->pids_before;
    bool alone = box->have_report && !box->report.shared;
    if (kills && (alone || (box->end == PX_END_EXIT && r->signal == SIGKILL)))
        tell_memory(r, u.oom_counter, kills);
    if (refused && alone)
        add_limit_hit(r, "pids", u.pids_counter, refused);
}

void px_report_make(struct px_box *box)
{
    struct px_result *r = &box->result;
    memcpy(r->id, box->id, sizeof r->id);
    ended_with_home(box);
    if (box->end == PX_END_EXIT)
        ended_by_itself(box, r);
    else
        ended_by_us(box, r);
    read_usage(box, r);
    read_cgroup(box, r);
    read_home(box, r);
    read_rlimits(box, r);
    read_disk(box, r);
    read_denials(box, r);
    r->out = take_output(&box->flow[1], &box->out_text);
    r->err = take_output(&box->flow[2], &box->err_text);
    r->out_total = box->flow[1].total;
    r->err_total = box->flow[2].total;
    for (int i = 1; i < PX_FLOW_COUNT && r->status != PX_STATUS_OUTPUT; i++)
        if (box->flow[i].limit && (box->flow[i].dropped || px_headtail_truncated(&box->flow[i].kept)))
            add_limit_hit(r, "output-limit", i == 1 ? "bytes on stdout" : "bytes on stderr", box->flow[i].total);
    r->out_truncated = px_headtail_truncated(&box->flow[1].kept) || box->flow[1].dropped;
    r->err_truncated = px_headtail_truncated(&box->flow[2].kept) || box->flow[2].dropped;
}

/* ---- as JSON ---- */

static void print_names(struct px_json *j, const char *name, const char (*list)[PX_NAME_MAX], size_t count)
{
    px_json_array(j, name);
    for (size_t i = 0; i < count; i++)
        px_json_text(j, NULL, list[i]);
    px_json_end(j);
}

static void print_limits(struct px_json *j, const struct px_result *r)
{
    px_json_array(j, "limits_hit");
    for (size_t i = 0; i < r->limits_hit_count; i++) {
        px_json_object(j, NULL);
        px_json_text(j, "limit", r->limits_hit[i].limit);
        px_json_text(j, "counter", r->limits_hit[i].counter);
        px_json_uint(j, "value", r->limits_hit[i].value);
        px_json_end(j);
    }
    px_json_end(j);
}

void px_report_print_denials(struct px_json *j, const struct px_result *r)
{
    px_json_array(j, "denials");
    for (size_t i = 0; i < r->denials_count; i++) {
        const struct px_denial *d = &r->denials[i];
        px_json_object(j, NULL);
        px_json_text(j, "op", d->op);
        px_json_text(j, "target", d->target);
        px_json_text(j, "rule", d->rule);
        px_json_text(j, "grant", d->grant);
        px_json_uint(j, "count", d->count);
        px_json_end(j);
    }
    px_json_end(j);
}

static void print_traffic(struct px_json *j, const struct px_result *r)
{
    if (!r->has_network)
        return;
    px_json_array(j, "network");
    for (size_t i = 0; i < r->traffic_count; i++) {
        px_json_object(j, NULL);
        px_json_text(j, "name", r->traffic[i].name);
        px_json_uint(j, "connections", r->traffic[i].connections);
        px_json_uint(j, "sent_bytes", r->traffic[i].sent_bytes);
        px_json_uint(j, "received_bytes", r->traffic[i].received_bytes);
        px_json_end(j);
    }
    px_json_end(j);
}

static void print_usage(struct px_json *j, const struct px_result *r)
{
    px_json_decimal(j, "wall_s", r->wall_nsec / 1000, 6);
    px_json_uint(j, "wall_ns", r->wall_nsec);
    px_json_decimal(j, "cpu_user_s", r->cpu_user_usec, 6);
    px_json_decimal(j, "cpu_sys_s", r->cpu_sys_usec, 6);
    px_json_uint(j, "memory_peak_bytes", r->memory_peak_bytes);
    px_json_text(j, "memory_source", r->memory_source);
    if (r->pids_peak)
        px_json_uint(j, "pids_peak", r->pids_peak);
    else
        px_json_null(j, "pids_peak");
    px_json_uint(j, "io_read_bytes", r->io_read_bytes);
    px_json_uint(j, "io_write_bytes", r->io_write_bytes);
}

void px_report_changes(struct px_json *j, const char *name, const struct px_change *changes, size_t count)
{
    px_json_array(j, name);
    for (size_t i = 0; i < count; i++) {
        px_json_object(j, NULL);
        px_json_bytes(j, "path", changes[i].path, strlen(changes[i].path));
        px_json_text(j, "kind", changes[i].kind);
        if (changes[i].link)
            px_json_bool(j, "link", true);
        px_json_end(j);
    }
    px_json_end(j);
}

static void print_changes(struct px_json *j, const struct px_result *r)
{
    px_report_changes(j, "changed_files", r->changes, r->changes_count);
    if (!r->has_changes) {
        px_json_null(j, "diff");
        return;
    }
    px_json_bytes(j, "diff", r->diff.data, r->diff.len);
    px_json_bool(j, "diff_truncated", r->diff_truncated);
    px_json_bool(j, "changes_applied", r->changes_applied);
    px_json_text(j, "changes_kept", r->changes_kept);
}

static void print_body(struct px_json *j, const struct px_result *r, char *const argv[])
{
    px_json_int(j, "schema", 1);
    px_json_text(j, "id", r->id);
    px_json_array(j, "argv");
    for (char *const *a = argv; *a; a++)
        px_json_text(j, NULL, *a);
    px_json_end(j);
    px_json_text(j, "status", px_status_name(r->status));
    px_json_text(j, "reason", r->reason);
    px_json_int(j, "exit_code", r->exit_code);
    if (r->signal)
        px_json_int(j, "signal", r->signal);
    else
        px_json_null(j, "signal");
    px_json_bool(j, "timed_out", r->timed_out);
    px_json_bool(j, "oom_killed", r->oom_killed);
    px_json_bytes(j, "stdout", r->out.data, r->out.len);
    px_json_bytes(j, "stderr", r->err.data, r->err.len);
    px_json_object(j, "truncated");
    px_json_bool(j, "stdout", r->out_truncated);
    px_json_bool(j, "stderr", r->err_truncated);
    px_json_uint(j, "stdout_bytes", r->out_total);
    px_json_uint(j, "stderr_bytes", r->err_total);
    px_json_end(j);
    print_usage(j, r);
    print_limits(j, r);
    px_report_print_denials(j, r);
    print_traffic(j, r);
    px_json_array(j, "hints");
    for (size_t i = 0; i < r->hints_count && i < 4; i++)
        px_json_text(j, NULL, r->hints[i]);
    px_json_end(j);
    print_changes(j, r);
    px_json_object(j, "isolation");
    px_json_text(j, "tier", r->tier);
    print_names(j, "mechanisms", r->mechanisms, r->mechanisms_count);
    print_names(j, "missing", r->missing, r->missing_count);
    px_json_end(j);
}

static void print_base64(struct px_json *j, const char *name, struct px_bytes bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    px_auto_buf struct px_buf text = PX_BUF(SIZE_MAX / 4);
    const unsigned char *p = (const unsigned char *)bytes.data;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t three = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);
        px_buf_putc(&text, digits[three >> 18]);
        px_buf_putc(&text, digits[three >> 12 & 63]);
        px_buf_putc(&text, left > 1 ? digits[three >> 6 & 63] : '=');
        px_buf_putc(&text, left > 2 ? digits[three & 63] : '=');
    }
    if (text.err < 0)
        j->out->err = text.err;
    px_json_text(j, name, px_buf_text(&text));
}

int px_report_json(const struct px_result *r, char *const argv[], bool exact, char **ret_json, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(SIZE_MAX / 4);
    struct px_json j = {.out = &out, .pretty = false};
    px_json_object(&j, NULL);
    print_body(&j, r, argv);
    if (exact) {
        print_base64(&j, "stdout_base64", r->out);
        print_base64(&j, "stderr_base64", r->err);
        if (r->has_changes)
            print_base64(&j, "diff_base64", r->diff);
    }
    px_json_end(&j);
    px_buf_putc(&out, '\n');
    if (out.err < 0)
        return px_fail(e, PX_E_MEMORY, out.err, "the result is too large to print");
    *ret_json = px_buf_take(&out);
    return 0;
}
