/* Runs that do not end well: the result says in words which limit was met, and keeps what was written until
 * then. */
#include <stdio.h>
#include <string.h>

#include <px/px.h>

struct run {
    const char *field, *value;  /* the limit */
    const char *flag;           /* a second field, set to true, or NULL */
    const char *text;           /* for sh -c */
    enum px_status status;      /* what must come of it */
    int exit_code;
    const char *limit;          /* the field that limits_hit must name */
    const char *kept;           /* what standard output must begin with */
};

// clang-format off
static const struct run runs[] = {
    {"timeout", "300ms", NULL, "echo early; sleep 60; echo late", PX_STATUS_TIMEOUT, 124, "timeout", "early\n"},
    {"output-limit", "1k", "output-end", "echo first; yes", PX_STATUS_OUTPUT, 128 + 9, "output-limit", "first\ny\n"},
    {"cpu-time", "1s", NULL, "echo busy; while :; do :; done", PX_STATUS_SIGNALLED, 128 + 24, "cpu-time", "busy\n"},
    {"disk", "1m", NULL, "echo full; head -c 2m /dev/zero > big", PX_STATUS_DISK, 1, "disk", "full\n"},
};
// clang-format on

static int wrong(const struct run *run, const char *what, const struct px_result *r)
{
    fprintf(stderr, "%s: %s is not as expected (%s, %s, exit %d)\n", run->field, what,
            px_status_name(r->status), r->reason, r->exit_code);
    return 1;
}

static int named(const struct px_result *r, const char *limit)
{
    for (size_t i = 0; i < r->limits_hit_count; i++)
        if (strcmp(r->limits_hit[i].limit, limit) == 0)
            return 1;
    return 0;
}

static int check(const struct run *run, const struct px_result *r)
{
    size_t n = strlen(run->kept);
    if (r->status != run->status)
        return wrong(run, "the status", r);
    if (r->exit_code != run->exit_code || r->timed_out != (run->status == PX_STATUS_TIMEOUT))
        return wrong(run, "the exit code", r);
    if (!named(r, run->limit))
        return wrong(run, "limits_hit", r);
    if (r->out.len < n || memcmp(r->out.data, run->kept, n) != 0 || strstr(r->out.data, "late"))
        return wrong(run, "the kept output", r);
    printf("%-12s  %-9s  exit %-3d  %s\n", run->field, px_status_name(r->status), r->exit_code, r->reason);
    return 0;
}

static int one(const struct run *run)
{
    const char *const argv[] = {"sh", "-c", run->text, NULL};
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    struct px_box *box = NULL;
    int bad = 1;

    if (px_policy_new("default", &policy, &e) < 0 || px_policy_set(policy, "timeout", "60s", &e) < 0 ||
        px_policy_set(policy, run->field, run->value, &e) < 0 ||
        (run->flag && px_policy_set(policy, run->flag, "true", &e) < 0) ||
        px_box_start(policy, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0)
        fprintf(stderr, "PX%03d  %s\n", e.code, e.what);
    else
        bad = check(run, px_box_result(box));
    px_box_free(box);
    px_policy_free(policy);
    return bad;
}

int main(void)
{
    int bad = 0;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        bad += one(&runs[i]);
    return bad ? 1 : 0;
}
