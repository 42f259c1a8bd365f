/* The box of a project's program: the image as its root, the environment at /px, the working tree at /app. */
#include <errno.h>
#include <string.h>

#include <px/px.h>

#include "base/err.h"
#include "base/text.h"
#include "policy/policy.h"
#include "run/run.h"
#include "start/buildbox.h"
#include "start/start_internal.h"

int px_project_policy(struct px_policy **ret_policy, struct px_err *e)
{
    PX_ERR(e);
    return px_policy_new("project", ret_policy, e);
}

/* Writes outside the working tree go to memory and are dropped with the box: the image is shared. */
static int set_places(struct px_launch *l, struct px_err *e)
{
    struct px_policy *policy = l->policy;
    struct px_buildbox shown = {.policy = policy};
    char limit[32];
    (void)px_fmt(limit, sizeof limit, "%zu", l->capture_max);
    const char *const rows[][2] = {{"rootfs", l->image.root},
                                   {"overlay", policy->overlay ? NULL : ""},
                                   {"work-dir", l->read_only ? NULL : l->p->site.root},
                                   {"work-target", PX_PROGRAM_APP},
                                   {"workdir", policy->workdir ? NULL : l->workdir},
                                   {"output-limit", l->capture && !policy->output_bytes ? limit : NULL}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (rows[i][1] && px_policy_set(policy, rows[i][0], rows[i][1], e) < 0)
            return -1;
    if (l->read_only && px_buildbox_show(&shown, l->p->site.root, PX_PROGRAM_APP, false, e) < 0)
        return -1;
    return px_buildbox_show(&shown, l->image.inside, PX_INSIDE, false, e);
}

int px_run_box_make(struct px_launch *l, const struct px_policy *asked, struct px_err *e)
{
    if ((asked ? px_policy_copy(asked, &l->policy, e) : px_project_policy(&l->policy, e)) < 0)
        return -1;
    return set_places(l, e) < 0 ? -1 : px_run_box_env(l, e);
}

int px_launch_box(struct px_launch *l, const struct px_io *io, struct px_box **ret_box, struct px_err *e)
{
    PX_ERR(e);
    return px_box_start(l->policy, (const char *const *)l->argv, io, ret_box, e);
}

void px_launch_box_end(const struct px_box *box, struct px_launch_end *ret_end)
{
    const struct px_result *r = px_box_result(box);
    *ret_end = (struct px_launch_end){.code = r->exit_code,
                                      .reason = px_status_name(r->status),
                                      .out = r->out,
                                      .err = r->err,
                                      .out_total = r->out_total,
                                      .err_total = r->err_total};
}
