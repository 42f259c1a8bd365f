/* The report of a verification: each check when its trials are done, and the summary. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "verify/run.h"

/* ---- what is verified ---- */

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

int px_verify_describe(struct px_verify_run *run, const struct px_policy *p, struct px_err *e)
{
    struct px_verify_report *report = run->report;
    const char *root = px_policy_root_dir(p);
    report->preset = copy(p->preset);
    report->base = copy(root ? root : "host");
    report->runtime = copy(p->runtime ? p->runtime : "native");
    report->tier = copy(run->tier);
    report->self_test = run->ask->self_test;
    bool all = report->preset && report->base && report->runtime && report->tier;
    return all ? 0 : px_no_memory(e);
}

/* ---- one check ---- */


static char *copy_text(const struct px_buf *text)
{
    return text->len && text->err >= 0 ? strdup(px_buf_text(text)) : NULL;
}

static void count(struct px_verify_report *report, enum px_check_result result)
{
    report->passed += result == PX_CHECK_PASSED;
    report->failed += result == PX_CHECK_FAILED;
    report->skipped += result == PX_CHECK_SKIPPED || result == PX_CHECK_DIFFERS;
}

static void tell_one(struct px_verify_run *run, struct px_check *check)
{
    count(run->report, check->result);
    if (run->ask->on_check)
        run->ask->on_check(run->ask->user, check);
}

static void put_words(uint64_t mechanisms, const char *options, struct px_buf *out)
{
    const char *between = "without ";
    for (int w = 0; w < PX_WITHOUT_COUNT; w++)
        if (mechanisms >> w & 1) {
            px_buf_printf(out, "%s%s", between, px_policy_without_word((enum px_without)w));
            between = ", ";
        }
    if (options && *options)
        px_buf_printf(out, "with %s", options);
}

/* Self-test: the check must have failed; and whether the one remaining layer held. */
static void compose_self_test(struct px_verify_run *run, struct px_check *check, const struct px_trial *t, size_t trials)
{
    px_auto_buf struct px_buf text = PX_BUF(8192);
    bool failed = (t->verdict.result == PX_CHECK_FAILED || t->verdict.result == PX_CHECK_DIFFERS) && !t->verdict.not_started;
    run->tried |= t->verdict.result == PX_CHECK_SKIPPED ? 0 : t->without;
    put_words(t->without, t->more, &text);
    if (t->verdict.result == PX_CHECK_SKIPPED) {
        check->result = PX_CHECK_SKIPPED;
        check->reason = copy_text(&t->verdict.reason);
        return;
    }
    if (!failed && t->without >> PX_WITHOUT_PRIVILEGES & 1 && run->s.single_id && !t->verdict.not_started) {
        check->result = PX_CHECK_SKIPPED;
        check->reason = strdup("with a single id the kernel itself takes the privileges away");
        return;
    }
    check->result = failed ? PX_CHECK_PASSED : PX_CHECK_FAILED;
    if (!failed) {
        px_buf_printf(&text, ": %s",
                      t->verdict.not_started ? px_buf_text(&t->verdict.reason) : "it still passes, so that it proves nothing");
        check->reason = copy_text(&text);
        return;
    }
    px_buf_printf(&text, ": %s", px_buf_text(&t->verdict.reason));
    if (trials == 1)
        run->noticed |= t->without;
    for (size_t i = 1; i < trials; i++) {
        bool holds = t[i].verdict.result == PX_CHECK_PASSED;
        run->noticed |= holds ? t[i].kept : 0;
        for (int w = 0; holds && w < PX_WITHOUT_COUNT; w++)
            if (t[i].kept >> w & 1)
                px_buf_printf(&text, "; %s alone holds it", px_policy_without_word((enum px_without)w));
    }
    check->proof = copy_text(&text);
}

/* Checks whose trials are all done, in order. */
void px_verify_tell(struct px_verify_run *run)
{
    while (run->reported < run->trials_count) {
        struct px_trial *t = &run->trials[run->reported];
        size_t n = 0;
        while (run->reported + n < run->trials_count && t[n].check == t->check)
            if (!t[n++].done)
                return;
        struct px_check *check = &run->checks[t->check];
        for (size_t i = 0; i < n; i++)
            check->nsec += t[i].nsec;
        if (run->ask->self_test) {
            compose_self_test(run, check, t, n);
        } else {
            check->result = t->verdict.result;
            check->proof = copy_text(&t->verdict.proof);
            check->reason = copy_text(&t->verdict.reason);
        }
        for (size_t i = 0; i < n; i++) {
            px_buf_done(&t[i].verdict.proof);
            px_buf_done(&t[i].verdict.reason);
        }
        run->reported += n;
        tell_one(run, check);
    }
}

/* Checks that no box changed a fixture. */
static void add_untouched(struct px_verify_run *run)
{
    struct px_check *check = &run->checks[run->report->count++];
    bool shared = run->s.net_shared || run->s.in == PX_IN_LANDLOCK;
    const char *harm = run->ask->self_test ? NULL : px_fixtures_harm(&run->fixtures, shared);
    *check = (struct px_check){.name = "nothing_was_touched", .category = "security", .held_by = "all"};
    check->result = run->stopped || run->ask->self_test ? PX_CHECK_SKIPPED : harm ? PX_CHECK_FAILED : PX_CHECK_PASSED;
    if (run->stopped || run->ask->self_test)
        check->reason = strdup(run->stopped ? "stopped" : "boxes were broken on purpose");
    else if (harm)
        check->reason = strdup(harm);
    else
        check->proof = strdup("files, processes, sockets and IPC of the caller are as they were");
    tell_one(run, check);
}

/* Self-test of the whole: some check detects the loss of each mechanism. */
static void add_mechanisms(struct px_verify_run *run)
{
    static const char *const names[] = {
#define PX_WITHOUT(name, word, ...) "mechanism: " word,
#include "policy/without.def"
#undef PX_WITHOUT
    };
    for (int w = 0; run->ask->self_test && !run->ask->only && w < PX_WITHOUT_COUNT; w++) {
        struct px_check *check = &run->checks[run->report->count++];
        *check = (struct px_check){.name = names[w], .category = "security", .held_by = px_policy_without_word((enum px_without)w)};
        bool seen = run->noticed >> w & 1, tried = run->tried >> w & 1;
        check->result = seen ? PX_CHECK_PASSED : tried && !run->stopped ? PX_CHECK_FAILED : PX_CHECK_SKIPPED;
        if (seen)
            check->proof = strdup("its loss is noticed");
        else
            check->reason = strdup(tried ? "no check notices its loss" : "every check of it was skipped");
        tell_one(run, check);
    }
}

void px_verify_conclude(struct px_verify_run *run)
{
    add_untouched(run);
    add_mechanisms(run);
    run->report->stopped = run->stopped;
}

/* Frees the strings that the caller only reads. */
static void drop(const void *text)
{
    free((void *)(uintptr_t)text);
}

PX_API void px_verify_free(struct px_verify_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; report->checks && i < report->count; i++) {
        drop(report->checks[i].proof);
        drop(report->checks[i].reason);
    }
    const void *const rest[] = {report->checks, report->preset, report->base, report->runtime, report->tier};
    for (size_t i = 0; i < PX_COUNT_OF(rest); i++)
        drop(rest[i]);
    free(report);
}
