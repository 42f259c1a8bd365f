/* One box of a verification: its streams, start, view from outside, and end. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "verify/run.h"

enum { GUARD_MSEC = 60000 };

/* ---- one box ---- */

static bool wants_input(const struct px_trial *t)
{
    bool streams = t->row->how == PX_HOW_STREAMS;
    return t->more && strstr(t->more, "@stdin") ? true : t->more && strstr(t->more, "@nostdin") ? false : streams;
}

static int open_streams(struct px_verify_run *run, struct px_slot *slot, struct px_io *io, struct px_err *e)
{
    enum px_check_how how = slot->trial->row->how;
    int top = run->fixtures.top_fd, ends[2];
    if (wants_input(slot->trial)) {
        slot->in = openat(top, "input", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
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
    bool open = (!io->use_in || io->in >= 0) && (!io->use_out || io->out >= 0);
    return open ? 0 : px_fail(e, PX_E_IO, errno, "no streams for the box");
}

/* The arguments of the side, with the names of this run inserted. */
static void expect(struct px_verify_run *run, struct px_slot *slot)
{
    const struct px_side *side = &slot->trial->row->sides[slot->side];
    const char *const from[] = {side->says, side->says_too, side->lacks, side->out, side->err};
    slot->expected = *side;
    struct px_side *to_side = &slot->expected;
    const char **const to[] = {&to_side->says, &to_side->says_too, &to_side->lacks, &to_side->out, &to_side->err};
    for (size_t i = 0; i < PX_COUNT_OF(from); i++) {
        px_buf_done(&slot->texts[i]);
        if (!from[i])
            continue;
        px_verify_expand(run, slot, from[i], strlen(from[i]), false, &slot->texts[i]);
        *to[i] = px_buf_text(&slot->texts[i]);
    }
}

/* Any of them will do. */
static int look_for(void *user, const char *text, size_t len)
{
    px_buf_printf(user, "%s %.*s >/dev/null || ", *text == '/' ? "test -e" : "command -v", (int)len, text);
    return 0;
}

static int start_program(struct px_verify_run *run, struct px_slot *slot, const struct px_io *io, struct px_err *e)
{
    const struct px_verify_row *row = slot->trial->row;
    px_auto_buf struct px_buf text = PX_BUF(PX_VERIFY_TEXT_MAX), line = PX_BUF(PX_VERIFY_TEXT_MAX);
    if (row->kind == PX_CHECK_SHELL) {
        const char *act = row->sides[slot->side].text;
        (void)px_verify_each(row->needs, '|', look_for, &line);
        px_buf_puts(&line, *row->needs ? "exit 77\n" : "");
        px_buf_puts(&line, act);
        px_verify_expand(run, slot, px_buf_text(&line), line.len, false, &text);
        const char *const argv[] = {"sh", "-c", px_buf_text(&text), NULL};
        return px_box_start(slot->policy, argv, io, &slot->box, e);
    }
    px_buf_printf(&text, "%s/px-attack", run->here);
    px_buf_printf(&line, "%s-%s-", run->fixtures.mark, row->name);
    const char *const argv[] = {px_buf_text(&text), row->name, px_buf_text(&line), NULL};
    return px_box_start(slot->policy, argv, io, &slot->box, e);
}

int px_verify_start(struct px_verify_run *run, struct px_slot *slot, struct px_err *e)
{
    struct px_io io = {0};
    if (px_verify_policy(run, slot, e) < 0 || open_streams(run, slot, &io, e) < 0)
        return -1;
    expect(run, slot);
    uint64_t guard = run->ask->guard_msec ? run->ask->guard_msec : GUARD_MSEC;
    slot->deadline_nsec = px_now_nsec() + guard * 1000000;
    return start_program(run, slot, &io, e);
}

void px_verify_end(struct px_verify_run *run, struct px_slot *slot)
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

static void judge_left(struct px_verify_run *run, struct px_slot *slot)
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

static void judge_files(struct px_verify_run *run, struct px_slot *slot)
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
        if (px_fmt(path, sizeof path, "%s/from-the-box", slot->ws) < 0 ||
            px_read_file(AT_FDCWD, path, now, sizeof now) < 0 || strcmp(now, "kept\n") != 0)
            px_judge_fail(v, PX_CHECK_FAILED, "what it wrote is not on the host");
    }
}

/* Checks that its processes are visible now, so that their absence later is meaningful; then ends it. */
void px_verify_watch(struct px_verify_run *run, struct px_slot *slot)
{
    char line[256], mark[96];
    ssize_t n = slot->told < 0 || slot->seen ? 0 : px_read_some(slot->told, line, sizeof line - 1);
    if (n <= 0)
        return;
    line[n] = '\0';
    if (!px_starts_with(line, "ready\n") && !px_starts_with(line, "listening\n"))
        return;                 /* e has the reason */
    slot->seen = px_fmt(mark, sizeof mark, "%s-%s-", run->fixtures.mark, slot->trial->row->name) >= 0 &&
                 px_fixtures_count(mark) > 0;
    if (slot->trial->row->how == PX_HOW_PORT && px_fixtures_reachable(run->fixtures.free_port))
        px_judge_fail(&slot->trial->verdict, PX_CHECK_FAILED, "its port is open on the host");
    (void)px_box_kill(slot->box, NULL);
}

void px_verify_judge(struct px_verify_run *run, struct px_slot *slot)
{
    px_judge_result(slot->trial->row, slot->side, px_box_result(slot->box), &run->s, &slot->expected, &slot->trial->verdict);
    judge_left(run, slot);
    judge_files(run, slot);
}
