/* Turns the result of a box into a verdict. The program's output is only searched for known words; its exit, denials
 * and usage come from the result, which the program cannot write. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "verify/verify.h"

enum { SHOWN = 160, FLOOD_BYTES = 100 << 20, KEPT_MAX = 256 << 10, REFUSALS = 20000 };

void px_judge_fail(struct px_verdict *v, enum px_check_result result, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    if (v->result != PX_CHECK_PASSED)           /* reports only the first reason */
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    v->result = result;
    v->reason.len = 0;
    px_buf_quote(&v->reason, text, strlen(text));
}

/* One line of what was written, made harmless. */
static void quote_line(struct px_buf *out, struct px_bytes bytes)
{
    const char *p = bytes.data;
    size_t n = bytes.len, from = 0;
    while (from < n && (p[from] == '\n' || p[from] == ' '))
        from++;
    size_t len = 0;
    while (from + len < n && p[from + len] != '\n' && len < SHOWN)
        len++;
    px_buf_quote(out, p + from, len);
}

static void show(struct px_verdict *v, const struct px_result *r, bool twin)
{
    px_buf_puts(&v->proof, v->proof.len ? "; " : "");
    px_buf_puts(&v->proof, twin ? "twin: " : "");
    size_t before = v->proof.len;
    quote_line(&v->proof, r->err.len && r->exit_code != 0 ? r->err : r->out);
    if (v->proof.len == before)
        px_buf_printf(&v->proof, "%s", r->reason);
}

static bool holds(struct px_bytes bytes, const char *text)
{
    return memmem(bytes.data, bytes.len, text, strlen(text)) != NULL;
}

static bool same(struct px_bytes bytes, const char *text)
{
    return bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

/* How it ended and its output, for the report. */
static void unexpected(struct px_verdict *v, const struct px_result *r, const char *what)
{
    px_auto_buf struct px_buf said = PX_BUF(2048);
    char end[64];
    (void)snprintf(end, sizeof end, "exit status %d", r->exit_code);
    quote_line(&said, r->out);
    px_buf_puts(&said, r->out.len && r->err.len ? " / " : "");
    quote_line(&said, r->err);
    px_judge_fail(v, PX_CHECK_FAILED, "%s (%s)%s%s", what, r->status <= PX_STATUS_NONZERO ? end : r->reason,
                  said.len ? ": " : "", px_buf_text(&said));
}

/* ---- a shell's side ---- */

static bool exit_fits(const struct px_side *expected, const struct px_result *r, const struct px_surroundings *s)
{
    if (expected->noexec)
        return s->tmp_noexec ? r->exit_code != 0 && holds(r->err, "Permission denied") : r->exit_code == 0;
    return expected->exit == PX_EXIT_REFUSED ? r->exit_code != 0 : r->exit_code == expected->exit;
}

static void judge_side(const struct px_side *expected, const struct px_result *r, const struct px_surroundings *s,
                       struct px_verdict *v)
{
    const char *const words[] = {expected->says, expected->says_too};
    char what[400];
    if (!exit_fits(expected, r, s))
        unexpected(v, r, expected->exit == PX_EXIT_REFUSED ? "it was not refused" : "it ended in another way");
    for (size_t i = 0; i < PX_COUNT_OF(words); i++)
        if (words[i] && !holds(r->out, words[i]) && !holds(r->err, words[i])) {
            (void)snprintf(what, sizeof what, "it does not say '%.200s'", words[i] + strspn(words[i], "\n"));
            unexpected(v, r, what);
        }
    if (expected->lacks && *expected->lacks && (holds(r->out, expected->lacks) || holds(r->err, expected->lacks)))
        px_judge_fail(v, PX_CHECK_FAILED, "its output holds what it must not");
    if (expected->out && !same(r->out, expected->out))
        unexpected(v, r, "its output is another");
    if (expected->err && !same(r->err, expected->err))
        unexpected(v, r, "its standard error is another");
    if (expected->timed_out && !r->timed_out)
        unexpected(v, r, "its timeout did not end it");
    if (expected->memory && r->status != PX_STATUS_MEMORY)
        unexpected(v, r, "its memory limit did not end it");
    if (expected->truncated && !r->out_truncated)
        unexpected(v, r, "its output was not cut");
}

/* ---- a row of px-attack ---- */

static void stopped_or_worked(const struct px_verify_row *row, const struct px_result *r, struct px_verdict *v)
{
    const char *word = row->kind == PX_CHECK_TWIN ? "worked" : "stopped";
    if (r->exit_code == 77)
        px_judge_fail(v, PX_CHECK_SKIPPED, "%.*s", (int)(r->out.len < 300 ? r->out.len : 300), r->out.data);
    else if (r->exit_code != 0 || !holds(r->out, word))
        unexpected(v, r, row->kind == PX_CHECK_TWIN ? "it does not work" : "it was not stopped");
}

static const struct px_denial *refused_by_filter(const struct px_result *r, const char *call)
{
    for (size_t i = 0; i < r->denials_count; i++)
        if (strcmp(r->denials[i].op, "syscall") == 0 && (!call || px_equal(r->denials[i].target, call)))
            return &r->denials[i];
    return NULL;
}

static void judge_filter(const struct px_result *r, const struct px_surroundings *s, struct px_verdict *v)
{
    const struct px_denial *first = refused_by_filter(r, NULL);
    if (first)
        px_buf_printf(&v->proof, ": the filter refused %s%s", first->target, r->denials_count > 1 ? " and others" : "");
    else if (!s->no_listener)
        px_judge_fail(v, PX_CHECK_FAILED, "something refused it, but not the filter");
}

/* px-net reports what it has refused. */
static void judge_served(const struct px_result *r, struct px_verdict *v)
{
    for (size_t i = 0; i < r->denials_count; i++)
        if (strcmp(r->denials[i].op, "syscall") != 0) {
            const char *target = r->denials[i].target ? r->denials[i].target : "many";
            px_buf_printf(&v->proof, ": px-net refused to %s %s%s", r->denials[i].op, target,
                          r->denials_count > 1 ? " and others" : "");
            return;
        }
    px_judge_fail(v, PX_CHECK_FAILED, "something refused it, but not px-net");
}

static void judge_memory(const struct px_result *r, struct px_verdict *v)
{
    if (r->exit_code == 77)
        px_judge_fail(v, PX_CHECK_SKIPPED, "this box has no such memory");
    if (r->status != PX_STATUS_MEMORY && !(r->exit_code == 0 && holds(r->out, "stopped")))
        unexpected(v, r, "it was neither ended for memory nor stopped");
    if (r->memory_peak_bytes > (80ull << 20))
        px_judge_fail(v, PX_CHECK_FAILED, "it used %llu MiB with 64 allowed", (unsigned long long)(r->memory_peak_bytes >> 20));
}

static void judge_flood(const struct px_result *r, struct px_verdict *v)
{
    if (r->exit_code != 0 || r->out_total < FLOOD_BYTES || !r->out_truncated)
        unexpected(v, r, "the flood did not pass");
    if (r->out.len > KEPT_MAX || r->err.len > KEPT_MAX)
        px_judge_fail(v, PX_CHECK_FAILED, "%zu bytes of a flood were kept with 64 KiB allowed", r->out.len);
}

static void judge_attack(const struct px_verify_row *row, const struct px_result *r, const struct px_surroundings *s,
                         struct px_verdict *v)
{
    const struct px_denial *counted;
    switch (row->how) {
    case PX_HOW_MEMORY:
        judge_memory(r, v);
        return;
    case PX_HOW_TIMEOUT:
        if (!r->timed_out)
            unexpected(v, r, "its timeout did not end it");
        return;
    case PX_HOW_FORGED:
        if (r->status != PX_STATUS_NONZERO || r->exit_code != 3)
            unexpected(v, r, "it changed its own verdict");
        return;
    case PX_HOW_FLOOD:
        judge_flood(r, v);
        return;
    case PX_HOW_READY:
    case PX_HOW_PORT:           /* px_verify_run has checked that it was running and ended it */
        if (r->exit_code == 77)
            px_judge_fail(v, PX_CHECK_SKIPPED, "this box cannot do that at all");
        return;
    case PX_HOW_COUNTED:
        counted = refused_by_filter(r, "unshare");
        if (!counted || counted->count != REFUSALS)
            px_judge_fail(v, PX_CHECK_FAILED, "%llu of %d refused calls were counted",
                          counted ? (unsigned long long)counted->count : 0, REFUSALS);
        return;
    default:
        break;
    }
    if (row->how != PX_HOW_STREAMS)             /* there its output went to a file */
        stopped_or_worked(row, r, v);
    if (row->how == PX_HOW_FILTER && v->result == PX_CHECK_PASSED)
        judge_filter(r, s, v);
    if (row->how == PX_HOW_SERVED && row->kind == PX_CHECK_ATTACK && v->result == PX_CHECK_PASSED)
        judge_served(r, v);
}

/* ---- the whole ---- */

static int add_word(void *user, const char *text, size_t len)
{
    struct px_buf *out = user;
    px_buf_printf(out, "%s%.*s", out->len ? " or " : "", (int)len, text);
    return 0;
}

void px_judge_result(const struct px_verify_row *row, int side, const struct px_result *r, const struct px_surroundings *s,
                     const struct px_side *expected, struct px_verdict *v)
{
    if (row->kind == PX_CHECK_SHELL && *row->needs && r->exit_code == 77) {
        px_auto_buf struct px_buf words = PX_BUF(256);
        (void)px_verify_each(row->needs, '|', add_word, &words);
        px_judge_fail(v, PX_CHECK_SKIPPED, "there is no %s in this base; install it there, or choose another --base",
                      px_buf_text(&words));
        return;
    }
    show(v, r, side == 1);
    if (row->kind == PX_CHECK_SHELL)
        judge_side(expected, r, s, v);
    else
        judge_attack(row, r, s, v);
}

void px_judge_error(const struct px_verify_row *row, const struct px_err *error, struct px_verdict *v)
{
    v->not_started = true;
    bool limited = row->how == PX_HOW_CGROUP || row->how == PX_HOW_MEMORY || px_verify_has(row->held_by, "cgroup");
    if (error->code == PX_E_CGROUP && limited)
        px_judge_fail(v, PX_CHECK_SKIPPED, "this caller can have no cgroup here; run px as root, or in a delegated one: "
                                           "systemd-run --user --scope -p Delegate=yes px ...");
    else if (error->code == PX_E_NOT_FOUND && row->kind == PX_CHECK_SHELL)
        px_judge_fail(v, PX_CHECK_SKIPPED, "there is no shell in this base; choose another --base");
    else
        px_judge_fail(v, PX_CHECK_FAILED, "the box did not start: PX%03d %s: %s", error->code, error->what, error->why);
}

/* Whether a layer is missing because of the policy or the host, and the result reports it. */
static bool absent(const struct px_verify_row *row, const struct px_surroundings *s, const char *word)
{
    if (px_equal(word, "network-namespace"))
        return (s->net_shared || s->net_carried) && !strstr(row->options, "net=");
    return (px_equal(word, "seccomp") && s->own_filter) || (px_equal(word, "landlock") && s->no_landlock) ||
           (px_equal(word, "groups") && s->groups_kept);
}

struct layers {
    const struct px_verify_row *row;
    const struct px_surroundings *s;
    bool present;
};

static int look_at_layer(void *user, const char *text, size_t len)
{
    struct layers *layers = user;
    char word[64];
    if (px_fmt(word, sizeof word, "%.*s", (int)len, text) < 0 || !absent(layers->row, layers->s, word))
        layers->present = true;
    return 0;
}

void px_judge_promise(const struct px_verify_row *row, const struct px_surroundings *s, struct px_verdict *v)
{
    struct layers layers = {.row = row, .s = s};
    if (v->result != PX_CHECK_FAILED)
        return;
    (void)px_verify_each(row->held_by, '+', look_at_layer, &layers);
    bool by_design = s->strict && row->kind == PX_CHECK_TWIN;   /* it refuses some calls that other runtimes allow */
    if (!(row->tiers & s->in) || !layers.present || by_design)
        v->result = PX_CHECK_DIFFERS;
}
