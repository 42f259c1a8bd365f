/* The time that each step of a start took, as a table for people. */

#include "base/err.h"
#include "box/supervise.h"

int px_supervise_timings(const struct px_box *box, char **ret_text, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    if (!box->stamps)
        return px_fail(e, PX_E_USAGE, 0, "timings were not asked for");
    px_buf_printf(&out, "  %-40s %8s\n", "step", "us");
    uint64_t sum[PX_OP_COUNT] = {0};
    uint32_t times[PX_OP_COUNT] = {0};
    uint64_t before = box->clone_nsec;  /* so the first step includes the clone itself */
    uint64_t forked = 0;                /* when the payload was forked: its steps are timed from there */
    for (uint32_t i = 0; i < box->plan->count; i++) {
        enum px_op op = box->plan->steps[i].op;
        if (i == box->plan->payload_from)
            before = forked;
        if (box->stamps[i] == 0)
            continue;
        sum[op] += box->stamps[i] - before;
        times[op]++;
        before = box->stamps[i];
        forked = op == PX_OP_PAYLOAD ? before : forked;
    }
    for (int op = 0; op < PX_OP_COUNT; op++)
        if (times[op])
            px_buf_printf(&out, "  %-32s %3u x %8.1f\n", px_steps_op_word((enum px_op)op), times[op], (double)sum[op] / 1000);
    px_buf_printf(&out, "  %-40s %8.1f\n", "plan", (double)(box->clone_nsec - box->start_nsec) / 1000);
    px_buf_printf(&out, "  %-40s %8.1f\n", "clone-to-exec", (double)(box->ready_nsec - box->clone_nsec) / 1000);
    px_buf_printf(&out, "  %-40s %8.1f\n", "run", (double)(box->end_nsec - box->ready_nsec) / 1000);
    if (out.err < 0)
        return px_no_memory(e);
    *ret_text = px_buf_take(&out);
    return 0;
}
