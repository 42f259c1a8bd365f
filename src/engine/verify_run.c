/* Running the checks: a policy for each box, a few boxes at once, and the report. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "engine/verify.h"

enum { JOBS = 2, JOBS_MAX = 64, GUARD_MSEC = 60000, STAY_SEC = 20, STAY_BROKEN_SEC = 3, LOOK_MSEC = 20, TEXT_MAX = 8192 };

/* One row, once: as it is asked, or (self-test) with some of what holds it switched off. */
struct trial {
    const struct px_verify_row *row;
    size_t check;               /* of the report */
    uint64_t without;           /* mechanisms to switch off */
    uint64_t kept;              /* self-test: the one layer that was left in force */
    const char *more;           /* options on top of the row's */
    bool done;
    struct px_verdict verdict;
    uint64_t nsec;
};

/* A trial with its box. */
struct slot {
    struct trial *trial;        /* NULL: free */
    int side;
    struct px_policy *policy;
    struct px_box *box;
    char ws[256];               /* its work directory; "": none */
    int in, out;                /* files for STREAMS */
    int told, tell;             /* a pipe for READY and PORT: what it says, and where it says it */
    bool seen;                  /* it was in place */
    uint64_t start_nsec, deadline_nsec;
    struct px_buf texts[5];     /* what the side's words became */
    struct px_side expected;
};

struct run {
    const struct px_verify *ask;
    struct px_fixtures fixtures;
    struct px_surroundings s;
    char here[220];             /* where px-attack lies in the boxes */
    char tier[32];
    struct trial *trials;
    size_t trials_count, next, active, reported;
    struct slot *slots;
    unsigned jobs;
    struct px_verify_report *report;
    struct px_check *checks;
    uint64_t noticed;           /* self-test: mechanisms whose loss some check has seen */
    uint64_t tried;
    bool stopped;
};

/* ---- words ---- */

static const char *value_of(const struct run *run, const struct slot *slot, const char *at, size_t *ret_len)
{
    const struct px_fixtures *f = &run->fixtures;
    const struct px_policy *p = slot->policy;
    const struct {
        const char *word, *value;
    } rows[] = {
        {"@WS", slot->ws},        {"@AT", run->s.in == PX_IN_LANDLOCK ? slot->ws : "/ws"},
        {"@TOP", f->top},         {"@HERE", run->here},
        {"@DIGITS", f->digits},   {"@TOKEN", f->token},
        {"@HOSTNAME", p->hostname}, {"@WORK", p->work_target},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_starts_with(at, rows[i].word)) {
            *ret_len = strlen(rows[i].word);
            return rows[i].value ? rows[i].value : "";
        }
    return NULL;
}

static void expand(const struct run *run, const struct slot *slot, const char *text, size_t len, bool options, struct px_buf *out)
{
    *out = PX_BUF(TEXT_MAX);
    px_buf_puts(out, "");
    for (size_t i = 0; i < len;) {
        size_t n = 0;
        const char *value = text[i] == '@' ? value_of(run, slot, text + i, &n) : NULL;
        if (value)
            px_buf_puts(out, value);
        else
            px_buf_putc(out, options && text[i] == '|' ? ' ' : text[i]);
        i += value ? n : 1;
    }
}

/* ---- policies ---- */

struct setting {
    struct run *run;
    struct slot *slot;
    struct px_err *e;
};

static int set_one(void *user, const char *word, size_t len)
{
    struct setting *s = user;
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    if (*word == '@')           /* about the streams, which are no field */
        return 0;
    expand(s->run, s->slot, word, len, true, &text);
    char *line = text.err < 0 ? NULL : px_buf_take(&text);
    char *value = line ? strchr(line, '=') : NULL;
    int r = -1;
    if (value) {
        *value++ = '\0';
        r = px_policy_set(s->slot->policy, line, value, s->e);
    } else {
        px_fail(s->e, PX_E_INTERNAL, 0, "an option of a check is not NAME=VALUE");
    }
    free(line);
    return r;
}

static int set_all(struct run *run, struct slot *slot, const char *options, struct px_err *e)
{
    struct setting s = {run, slot, e};
    return options ? px_verify_each(options, ' ', set_one, &s) : 0;
}

static int tell(struct slot *slot, struct px_err *e, const char *name, const char *value)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_buf_printf(&text, "%s=%s", name, value);
    return text.err < 0 ? px_fail(e, PX_E_LIMIT, 0, "%s is too long", name) : px_policy_set(slot->policy, "env", px_buf_text(&text), e);
}

/* What the policy itself grants, so that nobody takes it for a leak. */
static int tell_grants(struct slot *slot, struct px_err *e)
{
    const struct px_policy *p = slot->policy;
    px_auto_buf struct px_buf places = PX_BUF(TEXT_MAX), names = PX_BUF(TEXT_MAX);
    for (size_t i = 0; i < p->tmpfs.count; i++)
        px_buf_printf(&places, "%s,", p->tmpfs.items[i].target);
    for (size_t i = 0; i < p->binds.count; i++)
        px_buf_printf(&places, "%s,", p->binds.items[i].target);
    if (p->work_dir)
        px_buf_printf(&places, "%s,", p->work_target);
    for (size_t i = 0; i < p->env.count; i++) {
        px_buf_add(&names, p->env.items[i], strcspn(p->env.items[i], "="));
        px_buf_putc(&names, ',');
    }
    return tell(slot, e, "A_PLACES", px_buf_text(&places)) < 0 ? -1 : tell(slot, e, "A_NAMES", px_buf_text(&names));
}

static int tell_number(struct slot *slot, struct px_err *e, const char *name, unsigned value)
{
    char text[16];
    (void)px_fmt(text, sizeof text, "%u", value);
    return tell(slot, e, name, text);
}

static int add_program(struct run *run, struct slot *slot, struct px_err *e)
{
    const struct px_policy *p = slot->policy;
    bool callers = run->s.in == PX_IN_LANDLOCK;         /* that tier has no ids of its own */
    px_auto_buf struct px_buf bind = PX_BUF(TEXT_MAX);
    px_buf_printf(&bind, "%s/bin:%s:ro", run->fixtures.top, run->here);
    return tell_grants(slot, e) < 0 || px_fixtures_tell(&run->fixtures, slot->policy, e) < 0 ||
                   px_policy_set(slot->policy, "bind", px_buf_text(&bind), e) < 0 || tell(slot, e, "A_HERE", run->here) < 0 ||
                   tell_number(slot, e, "A_UID", callers ? geteuid() : p->user.uid) < 0 ||
                   tell_number(slot, e, "A_GID", callers ? getegid() : p->user.gid) < 0 ||
                   tell_number(slot, e, "A_STAY", run->ask->self_test ? STAY_BROKEN_SEC : STAY_SEC) < 0 ||
                   tell(slot, e, "A_BASE", px_policy_root_dir(p) ? "other" : "host") < 0
               ? -1 : 0;
}

static int make_policy(struct run *run, struct slot *slot, struct px_err *e)
{
    const struct trial *t = slot->trial;
    const struct px_verify_row *row = t->row;
    if (run->ask->make_policy(run->ask->user, &slot->policy, e) < 0)
        return -1;
    if (strstr(row->options, "@WS") && px_fixtures_work_dir(&run->fixtures, slot->ws, sizeof slot->ws, e) < 0)
        return -1;
    if (row->kind != PX_CHECK_SHELL && add_program(run, slot, e) < 0)
        return -1;
    if (*slot->ws && row->kind != PX_CHECK_SHELL && tell(slot, e, "A_WS", run->s.in == PX_IN_LANDLOCK ? slot->ws : "/ws") < 0)
        return -1;
    if (set_all(run, slot, row->options, e) < 0 || set_all(run, slot, row->sides[slot->side].options, e) < 0 ||
        set_all(run, slot, t->more, e) < 0)
        return -1;
    slot->policy->without |= t->without;
    return 0;
}

/* ---- one box ---- */

static bool wants_input(const struct trial *t)
{
    bool streams = t->row->how == PX_HOW_STREAMS;
    return t->more && strstr(t->more, "@stdin") ? true : t->more && strstr(t->more, "@nostdin") ? false : streams;
}

static int open_streams(struct run *run, struct slot *slot, struct px_io *io, struct px_err *e)
{
    enum px_check_how how = slot->trial->row->how;
    int top = run->fixtures.top_fd, ends[2];
    if (wants_input(slot->trial)) {
        slot->in = openat(top, "input", O_RDWR | O_CLOEXEC);
        io->use_in = true;
        io->in = slot->in;
    }
    if (how == PX_HOW_STREAMS) {
        slot->out = openat(top, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
        if (slot->out >= 0)
            (void)px_write_full(slot->out, "BEFORE\n", 7);
        io->use_out = true;
        io->out = slot->out;
    }
    if (how == PX_HOW_READY || how == PX_HOW_PORT) {
        if (px_pipe(ends) < 0)
            return px_fail(e, PX_E_IO, errno, "no pipe");
        slot->told = ends[0];
        slot->tell = ends[1];
        (void)fcntl(slot->told, F_SETFL, O_NONBLOCK);
        io->use_out = true;
        io->out = slot->tell;
    }
    return (io->use_in && io->in < 0) || (io->use_out && io->out < 0) ? px_fail(e, PX_E_IO, errno, "no streams for the box") : 0;
}

/* The words of the side, with the names of this run in them. */
static void expect(struct run *run, struct slot *slot)
{
    const struct px_side *side = &slot->trial->row->sides[slot->side];
    const char *const from[] = {side->says, side->says_too, side->lacks, side->out, side->err};
    slot->expected = *side;
    const char **const to[] = {&slot->expected.says, &slot->expected.says_too, &slot->expected.lacks, &slot->expected.out, &slot->expected.err};
    for (size_t i = 0; i < PX_COUNT_OF(from); i++) {
        px_buf_done(&slot->texts[i]);
        if (!from[i])
            continue;
        expand(run, slot, from[i], strlen(from[i]), false, &slot->texts[i]);
        *to[i] = px_buf_text(&slot->texts[i]);
    }
}

static int start_program(struct run *run, struct slot *slot, const struct px_io *io, struct px_err *e)
{
    const struct px_verify_row *row = slot->trial->row;
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX), line = PX_BUF(TEXT_MAX);
    if (row->kind == PX_CHECK_SHELL) {
        const char *act = row->sides[slot->side].text;
        if (*row->needs)
            px_buf_printf(&line, "%s %s >/dev/null || exit 77\n", *row->needs == '/' ? "test -e" : "command -v", row->needs);
        px_buf_puts(&line, act);
        expand(run, slot, px_buf_text(&line), line.len, false, &text);
        const char *const argv[] = {"sh", "-c", px_buf_text(&text), NULL};
        return px_box_start(slot->policy, argv, io, &slot->box, e);
    }
    px_buf_printf(&text, "%s/px-attack", run->here);
    px_buf_printf(&line, "%s-%s-", run->fixtures.mark, row->name);
    const char *const argv[] = {px_buf_text(&text), row->name, px_buf_text(&line), NULL};
    return px_box_start(slot->policy, argv, io, &slot->box, e);
}

static int start_side(struct run *run, struct slot *slot, struct px_err *e)
{
    struct px_io io = {0};
    if (make_policy(run, slot, e) < 0 || open_streams(run, slot, &io, e) < 0)
        return -1;
    expect(run, slot);
    uint64_t guard = run->ask->guard_msec ? run->ask->guard_msec : GUARD_MSEC;
    slot->deadline_nsec = px_now_nsec() + guard * 1000000;
    return start_program(run, slot, &io, e);
}

static void end_side(struct run *run, struct slot *slot)
{
    px_box_free(slot->box);
    px_policy_free(slot->policy);
    int *const fds[] = {&slot->in, &slot->out, &slot->told, &slot->tell};
    for (size_t i = 0; i < PX_COUNT_OF(fds); i++)
        *fds[i] = px_fd_close(*fds[i]);
    if (*slot->ws)
        px_fixtures_drop(&run->fixtures, slot->ws);
    for (size_t i = 0; i < PX_COUNT_OF(slot->texts); i++)
        px_buf_done(&slot->texts[i]);
    slot->box = NULL;
    slot->policy = NULL;
    *slot->ws = '\0';
    slot->seen = false;
}

/* ---- what is looked at from outside ---- */

static void judge_left(struct run *run, struct slot *slot)
{
    const struct px_verify_row *row = slot->trial->row;
    char mark[96];
    bool attack = row->how == PX_HOW_GONE || row->how == PX_HOW_READY || row->how == PX_HOW_PORT || row->how == PX_HOW_TIMEOUT;
    if (row->kind == PX_CHECK_SHELL ? !slot->expected.gone : !attack)
        return;
    int r = row->kind == PX_CHECK_SHELL ? px_fmt(mark, sizeof mark, "%s", run->fixtures.digits)
                                        : px_fmt(mark, sizeof mark, "%s-%s-", run->fixtures.mark, row->name);
    int left = r < 0 ? 0 : px_fixtures_count(mark);
    if (left > 0)
        px_judge_fail(&slot->trial->verdict, PX_CHECK_FAILED, "%d of its processes are left", left);
    if ((row->how == PX_HOW_READY || row->how == PX_HOW_PORT) && !slot->seen)
        px_judge_fail(&slot->trial->verdict, PX_CHECK_FAILED, "it never came into place");
}

static void judge_files(struct run *run, struct slot *slot)
{
    struct px_verdict *v = &slot->trial->verdict;
    char now[256] = "";
    if (slot->trial->row->how == PX_HOW_STREAMS) {
        const char *word = slot->trial->row->kind == PX_CHECK_TWIN ? "BEFORE\nworked\n" : "BEFORE\nstopped\n";
        ssize_t n = pread(slot->out, now, sizeof now - 1, 0);
        if (n < 0 || strcmp(now, word) != 0)
            px_judge_fail(v, PX_CHECK_FAILED, "its output is '%s'", now + (px_starts_with(now, "BEFORE\n") ? 7 : 0));
        if (px_read_file(run->fixtures.top_fd, "input", now, sizeof now) < 0 || strcmp(now, "content of the host\n") != 0)
            px_judge_fail(v, PX_CHECK_FAILED, "its standard input was written to");
    }
    if (slot->expected.kept) {
        char path[300];
        if (px_fmt(path, sizeof path, "%s/from-the-box", slot->ws) < 0 || px_read_file(AT_FDCWD, path, now, sizeof now) < 0 || strcmp(now, "kept\n") != 0)
            px_judge_fail(v, PX_CHECK_FAILED, "what it wrote is not on the host");
    }
}

/* Its processes can be seen now, so that not seeing them later means something; then it is ended. */
static void look_at_ready(struct run *run, struct slot *slot)
{
    char line[256], mark[96];
    ssize_t n = slot->told < 0 || slot->seen ? 0 : px_read_some(slot->told, line, sizeof line - 1);
    if (n <= 0)
        return;
    line[n] = '\0';
    if (!px_starts_with(line, "ready\n") && !px_starts_with(line, "listening\n"))
        return;                 /* it says why it cannot */
    slot->seen = px_fmt(mark, sizeof mark, "%s-%s-", run->fixtures.mark, slot->trial->row->name) >= 0 && px_fixtures_count(mark) > 0;
    if (slot->trial->row->how == PX_HOW_PORT && px_fixtures_reachable(run->fixtures.free_port))
        px_judge_fail(&slot->trial->verdict, PX_CHECK_FAILED, "its port is open on the host");
    (void)px_box_kill(slot->box, NULL);
}

/* ---- trials ---- */

static void finish_trial(struct run *run, struct slot *slot)
{
    struct trial *t = slot->trial;
    px_judge_promise(t->row, &run->s, &t->verdict);
    t->nsec = px_now_nsec() - slot->start_nsec;
    t->done = true;
    slot->trial = NULL;
    run->active--;
}

static bool has_twin(const struct slot *slot)
{
    return slot->side == 0 && slot->trial->row->sides[1].text;
}

static void begin_side(struct run *run, struct slot *slot)
{
    struct px_err e = {0};
    if (start_side(run, slot, &e) >= 0)
        return;
    px_judge_error(slot->trial->row, &e, &slot->trial->verdict);
    end_side(run, slot);
    finish_trial(run, slot);
}

static void side_is_over(struct run *run, struct slot *slot)
{
    px_judge_result(slot->trial->row, slot->side, px_box_result(slot->box), &run->s, &slot->expected, &slot->trial->verdict);
    judge_left(run, slot);
    judge_files(run, slot);
    end_side(run, slot);
    if (has_twin(slot) && slot->trial->verdict.result == PX_CHECK_PASSED) {
        slot->side = 1;
        begin_side(run, slot);
        return;
    }
    finish_trial(run, slot);
}

/* What can be said without a box. */
static const char *cannot_try(const struct run *run, const struct trial *t)
{
    const struct px_verify_row *row = t->row;
    if (px_equal(row->needs, "internet"))
        return "needs the internet, which a verification leaves alone";
    if (row->how == PX_HOW_ROOT && !run->fixtures.has_device)
        return "needs root to prepare";
    if (!*run->fixtures.token && (px_verify_has(row->held_by, "environment") || strstr(row->name, "secret")))
        return "the caller planted no secret";
    if (run->ask->self_test && row->broken_by[0] == '!')
        return row->broken_by + 1;
    if (t->without >> PX_WITHOUT_NOEXEC & 1 && row->kind == PX_CHECK_SHELL && !run->s.tmp_noexec)
        return "the policy lets programs run there";
    return NULL;
}

static void begin_trial(struct run *run, struct slot *slot, struct trial *t)
{
    *slot = (struct slot){.trial = t, .in = -1, .out = -1, .told = -1, .tell = -1, .start_nsec = px_now_nsec()};
    t->verdict = (struct px_verdict){.proof = PX_BUF(2048), .reason = PX_BUF(4096)};
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

static void step_slot(struct run *run, struct slot *slot)
{
    struct px_err e = {0};
    look_at_ready(run, slot);
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
        end_side(run, slot);
        finish_trial(run, slot);
        return;
    }
    look_at_ready(run, slot);
    side_is_over(run, slot);
}

static bool asked_to_stop(const struct run *run)
{
    struct pollfd stop = {.fd = run->ask->stop, .events = POLLIN};
    return run->ask->use_stop && poll(&stop, 1, 0) > 0;
}

static void wait_for_news(struct run *run)
{
    struct pollfd fds[2 * JOBS_MAX + 1];
    nfds_t n = 0;
    int wait = 1000;            /* the guard needs no more than that */
    for (unsigned i = 0; i < run->jobs; i++) {
        const struct slot *slot = &run->slots[i];
        if (!slot->trial)
            continue;
        fds[n++] = (struct pollfd){.fd = px_box_fd(slot->box), .events = POLLIN};
        if (slot->told >= 0 && !slot->seen)
            fds[n++] = (struct pollfd){.fd = slot->told, .events = POLLIN};
    }
    if (run->ask->use_stop)
        fds[n++] = (struct pollfd){.fd = run->ask->stop, .events = POLLIN};
    (void)poll(fds, n, wait);
}

static void stop_all(struct run *run)
{
    run->stopped = true;
    for (unsigned i = 0; i < run->jobs; i++) {
        struct slot *slot = &run->slots[i];
        if (!slot->trial)
            continue;
        px_judge_fail(&slot->trial->verdict, PX_CHECK_SKIPPED, "stopped");
        end_side(run, slot);
        finish_trial(run, slot);
    }
    for (; run->next < run->trials_count; run->next++) {
        struct trial *t = &run->trials[run->next];
        t->verdict = (struct px_verdict){.proof = PX_BUF(2048), .reason = PX_BUF(4096)};
        px_judge_fail(&t->verdict, PX_CHECK_SKIPPED, "stopped");
        t->done = true;
    }
}

static void report_done(struct run *run);

static void run_trials(struct run *run)
{
    while (run->next < run->trials_count || run->active > 0) {
        if (asked_to_stop(run))
            stop_all(run);
        for (unsigned i = 0; i < run->jobs; i++)
            while (!run->slots[i].trial && run->next < run->trials_count)
                begin_trial(run, &run->slots[i], &run->trials[run->next++]);
        report_done(run);
        if (run->active == 0)
            continue;
        wait_for_news(run);
        for (unsigned i = 0; i < run->jobs; i++)
            if (run->slots[i].trial)
                step_slot(run, &run->slots[i]);
    }
    report_done(run);
}

/* ---- the report ---- */

static char *copy_text(const struct px_buf *text)
{
    return text->len && text->err >= 0 ? strdup(px_buf_text(text)) : NULL;
}

static void count(struct px_verify_report *report, enum px_check_result result)
{
    size_t *const to = result == PX_CHECK_PASSED ? &report->passed : result == PX_CHECK_FAILED ? &report->failed : &report->skipped;
    ++*to;
}

static void say(struct run *run, struct px_check *check)
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
            px_buf_printf(out, "%s%s", between, px_without_word((enum px_without)w));
            between = ", ";
        }
    if (options && *options)
        px_buf_printf(out, "with %s", options);
}

/* Self-test: the check must have failed; and what is the one layer left in force worth? */
static void compose_self_test(struct run *run, struct px_check *check, const struct trial *t, size_t trials)
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
        px_buf_printf(&text, ": %s", t->verdict.not_started ? px_buf_text(&t->verdict.reason) : "it still passes, so that it proves nothing");
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
                px_buf_printf(&text, "; %s alone holds it", px_without_word((enum px_without)w));
    }
    check->proof = copy_text(&text);
}

/* Checks whose trials are all done, in order. */
static void report_done(struct run *run)
{
    while (run->reported < run->trials_count) {
        struct trial *t = &run->trials[run->reported];
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
        say(run, check);
    }
}

/* Whatever the boxes tried, nothing of the caller's was touched. */
static void add_untouched(struct run *run)
{
    struct px_check *check = &run->checks[run->report->count++];
    const char *harm = run->ask->self_test ? NULL : px_fixtures_harm(&run->fixtures, run->s.net_shared || run->s.in == PX_IN_LANDLOCK);
    *check = (struct px_check){.name = "nothing_was_touched", .category = "security", .held_by = "all"};
    check->result = run->stopped || run->ask->self_test ? PX_CHECK_SKIPPED : harm ? PX_CHECK_FAILED : PX_CHECK_PASSED;
    if (run->stopped || run->ask->self_test)
        check->reason = strdup(run->stopped ? "stopped" : "boxes were broken on purpose");
    else if (harm)
        check->reason = strdup(harm);
    else
        check->proof = strdup("files, processes, sockets and IPC of the caller are as they were");
    say(run, check);
}

/* Self-test of the whole: the loss of each mechanism is seen by some check. */
static void add_mechanisms(struct run *run)
{
    static const char *const names[] = {
#define PX_WITHOUT(name, word, ...) "mechanism: " word,
#include "box/without.def"
#undef PX_WITHOUT
    };
    for (int w = 0; run->ask->self_test && !run->ask->only && w < PX_WITHOUT_COUNT; w++) {
        struct px_check *check = &run->checks[run->report->count++];
        *check = (struct px_check){.name = names[w], .category = "security", .held_by = px_without_word((enum px_without)w)};
        bool seen = run->noticed >> w & 1, tried = run->tried >> w & 1;
        check->result = seen ? PX_CHECK_PASSED : tried && !run->stopped ? PX_CHECK_FAILED : PX_CHECK_SKIPPED;
        if (seen)
            check->proof = strdup("its loss is noticed");
        else
            check->reason = strdup(tried ? "no check notices its loss" : "every check of it was skipped");
        say(run, check);
    }
}

/* ---- the whole ---- */

static int plan_row(struct run *run, const struct px_verify_row *row)
{
    size_t check = run->report->count;
    struct trial *t = &run->trials[run->trials_count];
    uint64_t layers = *row->broken_by ? 0 : px_verify_mechanisms(row->held_by);
    run->checks[run->report->count++] =
        (struct px_check){.name = row->name, .category = px_verify_category(row), .held_by = row->held_by};
    t[0] = (struct trial){.row = row, .check = check};
    run->trials_count++;
    if (!run->ask->self_test)
        return 0;
    t[0].without = layers;
    t[0].more = row->broken_by[0] == '!' ? "" : row->broken_by;
    for (int w = 0; layers & (layers - 1) && w < PX_WITHOUT_COUNT; w++)
        if (layers >> w & 1)
            run->trials[run->trials_count++] =
                (struct trial){.row = row, .check = check, .kept = 1ull << w, .without = layers & ~(1ull << w)};
    return 0;
}

static int plan_all(struct run *run, struct px_err *e)
{
    enum { TRIALS_PER_ROW = 5 };
    size_t most = px_verify_rows_count + PX_WITHOUT_COUNT + 1;
    run->jobs = run->ask->jobs == 0 ? JOBS : run->ask->jobs > JOBS_MAX ? JOBS_MAX : run->ask->jobs;
    run->report = calloc(1, sizeof *run->report);
    run->checks = calloc(most, sizeof *run->checks);
    run->trials = calloc(px_verify_rows_count * TRIALS_PER_ROW, sizeof *run->trials);
    run->slots = calloc(run->jobs, sizeof *run->slots);
    if (!run->report || !run->checks || !run->trials || !run->slots)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "verification");
    run->report->checks = run->checks;
    for (size_t i = 0; i < px_verify_rows_count; i++) {
        const struct px_verify_row *row = &px_verify_rows[i];
        if (row->how != PX_HOW_SUITE && px_verify_chosen(run->ask->only, row->name))
            (void)plan_row(run, row);
    }
    if (run->trials_count > 0)
        return 0;
    px_fail(e, PX_E_USAGE, 0, "no check is called '%s', or begins so", run->ask->only);
    return px_fix(e, "px sandbox verify --list names them.");
}

static bool is_missing(const struct px_result *r, const char *what)
{
    for (size_t i = 0; i < r->missing_count; i++)
        if (px_starts_with(r->missing[i], what))
            return true;
    return false;
}

static bool is_in_force(const struct px_result *r, const char *what)
{
    for (size_t i = 0; i < r->mechanisms_count; i++)
        if (px_starts_with(r->mechanisms[i], what))
            return true;
    return false;
}

static void learn(struct run *run, const struct px_policy *p, const struct px_result *r)
{
    struct px_surroundings *s = &run->s;
    (void)px_fmt(run->tier, sizeof run->tier, "%s", r->tier);
    s->tier = run->tier;
    s->in = px_equal(r->tier, "full") ? PX_IN_FULL : px_equal(r->tier, "landlock") ? PX_IN_LANDLOCK : PX_IN_OCI;
    s->own_filter = !px_policy_own_filter(p);
    s->strict = px_equal(p->seccomp, "strict");
    s->no_listener = is_missing(r, "denials") || s->in == PX_IN_OCI || s->own_filter;
    s->net_shared = p->net == PX_NET_HOST;
    s->no_landlock = !is_in_force(r, "landlock") && !px_policy_without(p, PX_WITHOUT_LANDLOCK);
    s->groups_kept = is_missing(r, "groups");
    s->single_id = is_missing(r, "ids");
    for (size_t i = 0; i < p->tmpfs.count; i++)
        if (px_equal(p->tmpfs.items[i].target, "/tmp"))
            s->tmp_noexec = p->tmpfs.items[i].noexec;
}

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

static int describe(struct run *run, const struct px_policy *p, struct px_err *e)
{
    struct px_verify_report *report = run->report;
    const char *root = px_policy_root_dir(p);
    report->preset = copy(p->preset);
    report->base = copy(root ? root : "host");
    report->runtime = copy(p->runtime ? p->runtime : "native");
    report->tier = copy(run->tier);
    report->self_test = run->ask->self_test;
    return report->preset && report->base && report->runtime && report->tier ? 0 : px_fail(e, PX_E_MEMORY, ENOMEM, "verification");
}

/* The first box says where we are: which tier, what is in force, and that px-attack can run there at all. */
static int look_around(struct run *run, struct slot *slot, struct px_err *e)
{
    px_auto_buf struct px_buf program = PX_BUF(400);
    const char *argv[] = {NULL, "list", NULL};
    px_buf_printf(&program, "%s/px-attack", run->here);
    argv[0] = px_buf_text(&program);
    if (run->ask->make_policy(run->ask->user, &slot->policy, e) < 0)
        return -1;
    bool weaker = slot->policy->require == PX_TIER_LANDLOCK;
    if (add_program(run, slot, e) < 0 || px_box_start(slot->policy, argv, NULL, &slot->box, e) < 0)
        return weaker ? 1 : -1;
    if (px_box_wait(slot->box, e) < 0)
        return -1;
    const struct px_result *r = px_box_result(slot->box);
    if (r->exit_code != 0) {
        px_fail(e, PX_E_EXEC, 0, "px-attack does not run in a box of this policy");
        return px_why(e, "It %s with %d.", r->reason, r->exit_code);
    }
    learn(run, slot->policy, r);
    return describe(run, slot->policy, e);
}

/* In the landlock tier a bind keeps its place. */
static int find_surroundings(struct run *run, struct px_err *e)
{
    int r = 1;
    for (int i = 0; i < 2 && r == 1; i++) {
        struct slot slot = {.in = -1, .out = -1, .told = -1, .tell = -1};
        struct px_err first = {0};
        if (px_fmt(run->here, sizeof run->here, i ? "%s/bin" : "/attack", run->fixtures.top) < 0)
            return px_fail(e, PX_E_LIMIT, 0, "the temporary directory's name is too long");
        r = look_around(run, &slot, &first);
        if (r != 0)
            *e = first;
        end_side(run, &slot);
    }
    if (r != 0 || !run->ask->self_test || run->s.in == PX_IN_FULL)
        return r == 0 ? 0 : -1;
    px_fail(e, PX_E_TIER, 0, "the self-test switches off what the full tier has, and the boxes here are of tier %s", run->tier);
    return px_fix(e, "Leave --self-test out, or --runtime and --require.");
}

static void free_run(struct run *run)
{
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
    struct px_err local = {0};
    struct run run = {.ask = ask, .fixtures = PX_FIXTURES_NONE};
    if (!e)
        e = &local;
    if (plan_all(&run, e) < 0 || px_fixtures_make(&run.fixtures, ask->attack, ask->secret, e) < 0 || find_surroundings(&run, e) < 0) {
        free_run(&run);
        return -1;
    }
    run_trials(&run);
    add_untouched(&run);
    add_mechanisms(&run);
    run.report->stopped = run.stopped;
    *ret_report = run.report;
    run.report = NULL;
    run.checks = NULL;
    free_run(&run);
    return 0;
}

PX_API void px_verify_free(struct px_verify_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; report->checks && i < report->count; i++) {
        free((void *)(uintptr_t)report->checks[i].proof);
        free((void *)(uintptr_t)report->checks[i].reason);
    }
    free((void *)(uintptr_t)report->checks);
    free((void *)(uintptr_t)report->preset);
    free((void *)(uintptr_t)report->base);
    free((void *)(uintptr_t)report->runtime);
    free((void *)(uintptr_t)report->tier);
    free(report);
}
