/* A policy for each box: the caller's, and what the row and the fixtures add to it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "net/outside.h"
#include "verify/run.h"

enum { STAY_SEC = 20, STAY_BROKEN_SEC = 3 };    /* lifetime of an attack's process if nobody ends it */

/* ---- words ---- */

static const char *value_of(const struct px_verify_run *run, const struct px_slot *slot, const char *at, size_t *ret_len)
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
        {"@DNS", PX_OUTSIDE_NAMES},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_starts_with(at, rows[i].word)) {
            *ret_len = strlen(rows[i].word);
            return rows[i].value ? rows[i].value : "";
        }
    return NULL;
}

void px_verify_expand(const struct px_verify_run *run, const struct px_slot *slot, const char *text, size_t len, bool options,
                      struct px_buf *out)
{
    *out = PX_BUF(PX_VERIFY_TEXT_MAX);
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
    struct px_verify_run *run;
    struct px_slot *slot;
    struct px_err *e;
};

static int set_one(void *user, const char *word, size_t len)
{
    struct setting *s = user;
    px_auto_buf struct px_buf text = PX_BUF(PX_VERIFY_TEXT_MAX);
    if (*word == '@')           /* about the streams, which are no field */
        return 0;
    px_verify_expand(s->run, s->slot, word, len, true, &text);
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

static int set_all(struct px_verify_run *run, struct px_slot *slot, const char *options, struct px_err *e)
{
    struct setting s = {run, slot, e};
    return options ? px_verify_each(options, ' ', set_one, &s) : 0;
}

static int tell(struct px_slot *slot, struct px_err *e, const char *name, const char *value)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_VERIFY_TEXT_MAX);
    px_buf_printf(&text, "%s=%s", name, value);
    if (text.err < 0)
        return px_fail(e, PX_E_LIMIT, 0, "%s is too long", name);
    return px_policy_set(slot->policy, "env", px_buf_text(&text), e);
}

/* What the policy itself grants, so that it does not count as a leak. */
static int tell_grants(struct px_slot *slot, struct px_err *e)
{
    const struct px_policy *p = slot->policy;
    px_auto_buf struct px_buf places = PX_BUF(PX_VERIFY_TEXT_MAX), names = PX_BUF(PX_VERIFY_TEXT_MAX);
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

static int tell_number(struct px_slot *slot, struct px_err *e, const char *name, unsigned value)
{
    char text[16];
    (void)px_fmt(text, sizeof text, "%u", value);
    return tell(slot, e, name, text);
}

int px_verify_add_program(struct px_verify_run *run, struct px_slot *slot, struct px_err *e)
{
    const struct px_policy *p = slot->policy;
    bool callers = run->s.in == PX_IN_LANDLOCK;         /* that tier has no ids of its own */
    px_auto_buf struct px_buf bind = PX_BUF(PX_VERIFY_TEXT_MAX);
    px_buf_printf(&bind, "%s/bin:%s:ro", run->fixtures.top, run->here);
    return tell_grants(slot, e) < 0 || px_fixtures_tell(&run->fixtures, slot->policy, e) < 0 ||
                   px_policy_set(slot->policy, "bind", px_buf_text(&bind), e) < 0 || tell(slot, e, "A_HERE", run->here) < 0 ||
                   tell_number(slot, e, "A_UID", callers ? geteuid() : p->user.uid) < 0 ||
                   tell_number(slot, e, "A_GID", callers ? getegid() : p->user.gid) < 0 ||
                   tell_number(slot, e, "A_STAY", run->ask->self_test ? STAY_BROKEN_SEC : STAY_SEC) < 0 ||
                   tell(slot, e, "A_BASE", px_policy_root_dir(p) ? "other" : "host") < 0 ||
                   tell(slot, e, "A_ROOT", p->overlay ? "writable" : "read-only") < 0
               ? -1 : 0;
}

bool px_verify_is_served(const struct px_verify_row *row)
{
    return strstr(row->options, "@DNS") != NULL;
}

/* Such a row has its own network: the caller's names, addresses and ports do not apply. */
static void lead_outside(struct px_verify_run *run, struct px_policy *p)
{
    struct px_text_list *const lists[] = {&p->allow_net, &p->deny_net, &p->publish, &p->host_ports, &p->dns};
    for (size_t i = 0; i < PX_COUNT_OF(lists); i++)
        px_policy_done_texts(lists[i]);
    p->allow_host_loopback = false;
    p->own_net = NULL;
    p->outside_net = run->outside.network;
}

int px_verify_policy(struct px_verify_run *run, struct px_slot *slot, struct px_err *e)
{
    const struct px_trial *t = slot->trial;
    const struct px_verify_row *row = t->row;
    if (run->ask->make_policy(run->ask->user, &slot->policy, e) < 0)
        return -1;
    if (strstr(row->options, "@WS") && px_fixtures_work_dir(&run->fixtures, slot->ws, sizeof slot->ws, e) < 0)
        return -1;
    if (row->kind != PX_CHECK_SHELL && px_verify_add_program(run, slot, e) < 0)
        return -1;
    if (*slot->ws && row->kind != PX_CHECK_SHELL && tell(slot, e, "A_WS", run->s.in == PX_IN_LANDLOCK ? slot->ws : "/ws") < 0)
        return -1;
    if (px_verify_is_served(row))
        lead_outside(run, slot->policy);
    if (set_all(run, slot, row->options, e) < 0 || set_all(run, slot, row->sides[slot->side].options, e) < 0 ||
        set_all(run, slot, t->more, e) < 0)
        return -1;
    if (run->s.in == PX_IN_GVISOR && !strstr(row->options, "pids="))   /* gVisor cannot enforce it */
        slot->policy->pids = PX_UNLIMITED;
    slot->policy->without |= t->without;
    return 0;
}
