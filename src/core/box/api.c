/* The public functions of px/px.h for a running box. */
#include <stdlib.h>
#include <string.h>

#include <px/px.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/supervise.h"
#include "kernel/pidfd.h"
#include "state/homes.h"

PX_API int px_box_exec(struct px_box *home, const struct px_policy *command, const char *const argv[], const struct px_io *io,
                       struct px_box **ret_box, struct px_err *e)
{
    PX_ERR(e);
    static const struct px_io nothing = {0};
    if (home->control < 0 || home->reaped)
        return px_fail(e, PX_E_GONE, 0, "the box has ended");
    return px_supervise_exec(home, command, argv, io ? io : &nothing, ret_box, e);
}

PX_API int px_box_network(struct px_box *box, const char *field, const char *value, struct px_err *e)
{
    PX_ERR(e);
    struct px_carrier *carrier = box->home ? box->home->carrier : box->carrier;
    if (carrier)
        return carrier->change(carrier, field, value, e);
    px_fail(e, PX_E_USAGE, 0, "the box has no network that could be changed");
    return px_fix(e, "Start it with --net outbound, or with a port: --publish HOST:BOX.");
}

PX_API const struct px_port *px_box_port(const struct px_box *box, size_t index)
{
    const struct px_carrier *carrier = box->home ? box->home->carrier : box->carrier;
    return carrier && index < carrier->ports_count ? &carrier->ports[index] : NULL;
}

PX_API int px_box_fd(const struct px_box *box)
{
    return box->epoll;
}

PX_API int px_box_step(struct px_box *box, struct px_err *e)
{
    PX_ERR(e);
    return px_supervise_step(box, 0, e);
}

PX_API int px_box_pid(const struct px_box *box)
{
    int pidfd = box->payload >= 0 ? box->payload : box->pidfd;
    return pidfd < 0 ? 0 : px_pidfd_number(pidfd);
}

PX_API int px_box_wait(struct px_box *box, struct px_err *e)
{
    PX_ERR(e);
    int r;
    while ((r = px_supervise_step(box, -1, e)) > 0)
        ;
    return r;
}

PX_API int px_box_signal(struct px_box *box, int signal, struct px_err *e)
{
    PX_ERR(e);
    int r = px_supervise_signal(box, signal);
    return r < 0 ? px_fail(e, PX_E_IO, r, "cannot send signal %d to the box", signal) : 0;
}

PX_API int px_box_kill(struct px_box *box, struct px_err *e)
{
    PX_ERR(e);
    (void)e;
    px_supervise_kill(box, PX_END_KILLED);
    return 0;
}

PX_API int px_box_resize(struct px_box *box, unsigned short rows, unsigned short cols, struct px_err *e)
{
    PX_ERR(e);
    int r = px_supervise_resize(box, rows, cols);
    return r < 0 ? px_fail(e, PX_E_TERMINAL, r, "PTY mode is not enabled") : 0;
}

PX_API const struct px_result *px_box_result(const struct px_box *box)
{
    return &box->result;
}

PX_API int px_box_json(const struct px_box *box, bool exact, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    return px_report_json(&box->result, box->argv, exact, ret_json, e);
}

PX_API int px_box_timings(const struct px_box *box, char **ret_text, struct px_err *e)
{
    PX_ERR(e);
    return px_supervise_timings(box, ret_text, e);
}

PX_API void px_box_free(struct px_box *box)
{
    if (!box)
        return;
    if (box->let_go) {
        box->let_go(box);
        return;
    }
    bool weaker = box->plan && box->plan->tier != PX_TIER_FULL;
    px_auto_free char *scratch = weaker ? strdup(px_plan_text(box->plan, box->plan->scratch)) : NULL;
    px_supervise_free(box);
    if (scratch && *scratch)
        px_homes_drop(scratch);
}
