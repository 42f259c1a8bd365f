/* The trials of a verification, a few boxes at once. */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "base/time.h"
#include "box/supervise.h"
#include "verify/run.h"

enum { JOBS = 2, JOBS_MAX = 64, LOOK_MSEC = 1000, TRIALS_PER_ROW = 5, TRIES = 5 };

/* ---- which trials ---- */

static void plan_row(struct px_verify_run *run, const struct px_verify_row *row)
{
    size_t check = run->report->count;
    struct px_trial *t = &run->trials[run->trials_count];
    uint64_t layers = *row->broken_by ? 0 : px_verify_mechanisms(row->held_by);
    run->checks[run->report->count++] =
        (struct px_check){.name = row->name, .category = px_verify_category(row), .held_by = row->held_by};
    t[0] = (struct px_trial){.row = row, .check = check};
    run->trials_count++;
    if (!run->ask->self_test)
        return;
    t[0].without = layers;
    t[0].more = row->broken_by[0] == '!' ? "" : row->broken_by;
    for (int w = 0; layers & (layers - 1) && w < PX_WITHOUT_COUNT; w++)
        if (layers >> w & 1)
            run->trials[run->trials_count++] =
                (struct px_trial){.row = row, .check = check, .kept = 1ull << w, .without = layers & ~(1ull << w)};
}

static int plan_all(struct px_verify_run *run, struct px_err *e)
{
    size_t most = px_verify_rows_count + PX_WITHOUT_COUNT + 1;
    run->jobs = run->ask->jobs == 0 ? JOBS : run->ask->jobs > JOBS_MAX ? JOBS_MAX : run->ask->jobs;
    run->report = calloc(1, sizeof *run->report);
    run->checks = calloc(most, sizeof *run->checks);
    run->trials = calloc(px_verify_rows_count * TRIALS_PER_ROW, sizeof *run->trials);
    run->slots = calloc(run->jobs, sizeof *run->slots);
    if (!run->report || !run->checks || !run->trials || !run->slots)
        return px_no_memory(e);
    run->report->checks = run->checks;
    for (size_t i = 0; i < px_verify_rows_count; i++) {
        const struct px_verify_row *row = &px_verify_rows[i];
        if (row->how != PX_HOW_SUITE && px_verify_chosen(run->ask->only, row->name))
            plan_row(run, row);
    }
    if (run->trials_count > 0)
        return 0;
    px_fail(e, PX_E_USAGE, 0, "no check is called '%s', or begins so", run->ask->only);
    return px_fix(e, "px sandbox verify --list names them.");
}

/* ---- where we are ---- */

static bool is_missing(const struct px_result *r, const char *what)
{
    for (size_t i = 0; i < r->missing_count; i++)
        if (px_starts_with(r->missing[i], what))
            return true;
    return false;
}

static unsigned tier_bit(const char *tier)
{
    static const struct {
        const char *tier;
        unsigned bit;
    } rows[] = {{"full", PX_IN_FULL}, {"landlock", PX_IN_LANDLOCK}, {"oci:runsc", PX_IN_GVISOR}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_equal(tier, rows[i].tier))
            return rows[i].bit;
    return PX_IN_OCI;
}

/* Whether the base has CA certificates. */
static bool has_certificates(const struct px_policy *p)
{
    static const char *const places[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"};
    const char *root = px_policy_root_dir(p);
    bool found = false;
    for (size_t i = 0; i < PX_COUNT_OF(places); i++) {
        char path[PATH_MAX];
        bool fits = px_fmt(path, sizeof path, "%s%s", root ? root : "", places[i]) >= 0;
        found = found || (fits && access(path, R_OK) == 0);
    }
    return found;
}

static void learn(struct px_verify_run *run, const struct px_policy *p, const struct px_result *r)
{
    struct px_surroundings *s = &run->s;
    (void)px_fmt(run->tier, sizeof run->tier, "%s", r->tier);
    s->tier = run->tier;
    s->in = tier_bit(r->tier);
    s->own_filter = !px_policy_own_filter(p);
    s->strict = px_equal(p->seccomp, "strict");
    s->no_listener = is_missing(r, "denials") || s->in == PX_IN_GVISOR || s->own_filter;
    s->net_shared = p->net == PX_NET_HOST || p->net == PX_NET_BOX;
    s->net_carried = p->net == PX_NET_OUTBOUND || p->net == PX_NET_PASTA;
    s->overlay = p->overlay != NULL;
    s->no_landlock = !px_report_has(r, "landlock") && !px_policy_without(p, PX_WITHOUT_LANDLOCK);
    s->groups_kept = is_missing(r, "groups");
    s->single_id = is_missing(r, "ids");
    s->certificates = has_certificates(p);
    for (size_t i = 0; i < p->tmpfs.count; i++)
        if (px_equal(p->tmpfs.items[i].target, "/tmp"))
            s->tmp_noexec = p->tmpfs.items[i].noexec;
}

/* Drops the changes: many boxes run at once, and a directory takes the changes of only one. */
static int refuse_shared(const struct px_policy *p, struct px_err *e)
{
    if (!p->changes && (!p->overlay || !*p->overlay))
        return 0;
    px_fail(e, PX_E_USAGE, 0, "a verification runs many boxes, which cannot share a directory for their changes");
    return px_fix(e, "Leave --changes out, and write --overlay without a directory.");
}

/* The first box shows the tier, what is in force, and that px-attack can run. */
static int look_around(struct px_verify_run *run, struct px_slot *slot, struct px_err *e)
{
    px_auto_buf struct px_buf program = PX_BUF(400);
    const char *argv[] = {NULL, "list", NULL};
    px_buf_printf(&program, "%s/px-attack", run->here);
    argv[0] = px_buf_text(&program);
    if (run->ask->make_policy(run->ask->user, &slot->policy, e) < 0 || refuse_shared(slot->policy, e) < 0)
        return -1;
    bool weaker = slot->policy->require == PX_TIER_LANDLOCK;
    if (px_verify_add_program(run, slot, e) < 0 || px_box_start(slot->policy, argv, NULL, &slot->box, e) < 0)
        return weaker ? 1 : -1;
    if (px_box_wait(slot->box, e) < 0)
        return -1;
    const struct px_result *r = px_box_result(slot->box);
    if (r->exit_code != 0) {
        px_fail(e, PX_E_EXEC, 0, "px-attack does not run in a box of this policy");
        return px_why(e, "It %s with %d.", r->reason, r->exit_code);
    }
    learn(run, slot->policy, r);
    return px_verify_describe(run, slot->policy, e);
}

/* In the landlock tier a bind keeps its path. */
static int find_surroundings(struct px_verify_run *run, struct px_err *e)
{
    int r = 1;
    for (int i = 0; i < 2 && r == 1; i++) {
        struct px_slot slot = {PX_SLOT_EMPTY};
        struct px_err first = {0};
        if (px_fmt(run->here, sizeof run->here, i ? "%s/bin" : "/attack", run->fixtures.top) < 0)
            return px_fail(e, PX_E_LIMIT, 0, "the temporary directory's name is too long");
        r = look_around(run, &slot, &first);
        if (r != 0)
            *e = first;
        px_verify_end(run, &slot);
    }
    if (r != 0 || !run->ask->self_test || run->s.in == PX_IN_FULL)
        return r == 0 ? 0 : -1;
    px_fail(e, PX_E_TIER, 0, "the self-test switches off what the full tier has, and the boxes here are of tier %s", run->tier);
    return px_fix(e, "Leave --self-test out, or --runtime and --require.");
}

/* ---- trials ---- */

static void begin_trial(struct px_verify_run *run, struct px_slot *slot, struct px_trial *t);

static void drop_verdict(struct px_verdict *v)
{
    px_buf_done(&v->proof);
    px_buf_done(&v->reason);
}

/* Self-test: repeats a check that held without its mechanism. An attack may lose a race while pid 1 still starts the
 * program. */
static bool try_again(const struct px_verify_run *run, struct px_trial *t)
{
    bool held = t->verdict.result == PX_CHECK_PASSED && !t->kept;
    return run->ask->self_test && held && !run->stopped && ++t->tries < TRIES;
}

static void finish_trial(struct px_verify_run *run, struct px_slot *slot)
{
    struct px_trial *t = slot->trial;
    px_judge_promise(t->row, &run->s, &t->verdict);
    if (try_again(run, t)) {
        drop_verdict(&t->verdict);
        run->active--;
        begin_trial(run, slot, t);
        return;
    }
    t->nsec = px_now_nsec() - slot->start_nsec;
    t->done = true;
    slot->trial = NULL;
    run->active--;
}

static bool has_twin(const struct px_slot *slot)
{
    return slot->side == 0 && slot->trial->row->sides[1].text;
}

static void begin_side(struct px_verify_run *run, struct px_slot *slot)
{
    struct px_err e = {0};
    if (px_verify_start(run, slot, &e) >= 0)
        return;
    px_judge_error(slot->trial->row, &e, &slot->trial->verdict);
    px_verify_end(run, slot);
    finish_trial(run, slot);
}

static void side_is_over(struct px_verify_run *run, struct px_slot *slot)
{
    px_verify_judge(run, slot);
    px_verify_end(run, slot);
    if (has_twin(slot) && slot->trial->verdict.result == PX_CHECK_PASSED) {
        slot->side = 1;
        begin_side(run, slot);
        return;
    }
    finish_trial(run, slot);
}

/* Results that need no box. */
static const char *cannot_try(const struct px_verify_run *run, const struct px_trial *t)
{
    const struct px_verify_row *row = t->row;
    if (px_verify_is_served(row) && run->s.strict)
        return "--seccomp strict refuses every socket of a network";
    if (px_verify_is_served(row) && run->outside.network == 0)
        return run->outside.why;
    if (px_equal(row->name, "https_certificates") && !run->s.certificates)
        return "this base has no certificates of authorities; install ca-certificates there";
    if (row->how == PX_HOW_ROOT && !run->fixtures.has_device)
        return "only root can prepare it; run px sandbox verify as root";
    if (!*run->fixtures.token && (px_verify_has(row->held_by, "environment") || strstr(row->name, "secret")))
        return "the caller planted no secret";
    if (run->ask->self_test && row->broken_by[0] == '!')
        return row->broken_by + 1;
    if (run->s.overlay && row->kind == PX_CHECK_SHELL &&
        (px_verify_has(row->held_by, "read-only") || px_equal(row->name, "root_home_inaccessible")))
        return "the root is the box's own to change, as asked for";
    if (t->without >> PX_WITHOUT_NOEXEC & 1 && row->kind == PX_CHECK_SHELL && !run->s.tmp_noexec)
        return "the policy lets programs run there";
    return NULL;
}

static struct px_verdict no_verdict(void)
{
    return (struct px_verdict){.proof = PX_BUF(2048), .reason = PX_BUF(4096)};
}

static void begin_trial(struct px_verify_run *run, struct px_slot *slot, struct px_trial *t)
{
    *slot = (struct px_slot){.trial = t, PX_SLOT_EMPTY, .start_nsec = px_now_nsec()};
    t->verdict = no_verdict();
    run->active++;
    const char *why = cannot_try(run, t);
    if (!why) {
        begin_side(run, slot);
        return;
    }
    px_judge_fail(&t->verdict, PX_CHECK_SKIPPED, "%s", why);
    finish_trial(run, slot);
}

/* ---- the loop ---- */

static void step_slot(struct px_verify_run *run, struct px_slot *slot)
{
    struct px_err e = {0};
    px_verify_watch(run, slot);
    if (px_now_nsec() > slot->deadline_nsec) {
        px_judge_fail(&slot->trial->verdict, PX_CHECK_FAILED, "it was still running after its time");
        slot->deadline_nsec = UINT64_MAX;
        (void)px_box_kill(slot->box, NULL);
    }
    int r = px_box_step(slot->box, &e);
    if (r > 0)
        return;
    if (r < 0) {
        px_judge_fail(&slot->trial->verdict, PX_CHECK_FAILED, "PX%03d %s", e.code, e.what);
        px_verify_end(run, slot);
        finish_trial(run, slot);
        return;
    }
    px_verify_watch(run, slot);
    side_is_over(run, slot);
}

static bool asked_to_stop(const struct px_verify_run *run)
{
    struct pollfd stop = {.fd = run->ask->stop, .events = POLLIN};
    return run->ask->use_stop && poll(&stop, 1, 0) > 0;
}

static void wait_for_news(struct px_verify_run *run)
{
    struct pollfd fds[2 * JOBS_MAX + 1];
    nfds_t n = 0;
    for (unsigned i = 0; i < run->jobs; i++) {
        const struct px_slot *slot = &run->slots[i];
        if (!slot->trial)
            continue;
        fds[n++] = (struct pollfd){.fd = px_box_fd(slot->box), .events = POLLIN};
        if (slot->told >= 0 && !slot->seen)
            fds[n++] = (struct pollfd){.fd = slot->told, .events = POLLIN};
    }
    if (run->ask->use_stop)
        fds[n++] = (struct pollfd){.fd = run->ask->stop, .events = POLLIN};
    (void)poll(fds, n, LOOK_MSEC);
}

static void stop_all(struct px_verify_run *run)
{
    run->stopped = true;
    for (unsigned i = 0; i < run->jobs; i++) {
        struct px_slot *slot = &run->slots[i];
        if (!slot->trial)
            continue;
        px_judge_fail(&slot->trial->verdict, PX_CHECK_SKIPPED, "stopped");
        px_verify_end(run, slot);
        finish_trial(run, slot);
    }
    for (; run->next < run->trials_count; run->next++) {
        struct px_trial *t = &run->trials[run->next];
        t->verdict = no_verdict();
        px_judge_fail(&t->verdict, PX_CHECK_SKIPPED, "stopped");
        t->done = true;
    }
}

static void run_trials(struct px_verify_run *run)
{
    while (run->next < run->trials_count || run->active > 0) {
        if (asked_to_stop(run))
            stop_all(run);
        for (unsigned i = 0; i < run->jobs; i++)
            while (!run->slots[i].trial && run->next < run->trials_count)
                begin_trial(run, &run->slots[i], &run->trials[run->next++]);
        px_verify_tell(run);
        if (run->active == 0)
            continue;
        wait_for_news(run);
        for (unsigned i = 0; i < run->jobs; i++)
            if (run->slots[i].trial)
                step_slot(run, &run->slots[i]);
    }
    px_verify_tell(run);
}

/* ---- the whole ---- */

/* Other tiers and runtimes have no network by names. */
static void make_outside(struct px_verify_run *run)
{
    bool wanted = false;
    for (size_t i = 0; i < run->trials_count; i++)
        wanted = wanted || px_verify_is_served(run->trials[i].row);
    if (wanted && run->s.in == PX_IN_FULL)
        px_outside_start(&run->outside, &run->fixtures);
    else
        (void)px_fmt(run->outside.why, sizeof run->outside.why, "boxes of tier %s have no --net outbound; the full tier has", run->tier);
}

static void free_run(struct px_verify_run *run)
{
    px_outside_end(&run->outside);
    px_fixtures_remove(&run->fixtures);
    free(run->trials);
    free(run->slots);
    if (run->report)
        px_verify_free(run->report);
    else
        free(run->checks);
}

PX_API int px_verify_run(const struct px_verify *ask, struct px_verify_report **ret_report, struct px_err *e)
{
    PX_ERR(e);
    struct px_verify_run run = {.ask = ask, .fixtures = PX_FIXTURES_NONE, .outside = PX_OUTSIDE_NONE};
    if (plan_all(&run, e) < 0 || px_fixtures_make(&run.fixtures, ask->attack, ask->secret, e) < 0 ||
        find_surroundings(&run, e) < 0) {
        free_run(&run);
        return -1;
    }
    make_outside(&run);
    run_trials(&run);
    px_verify_conclude(&run);
    *ret_report = run.report;
    run.report = NULL;
    run.checks = NULL;
    free_run(&run);
    return 0;
}
