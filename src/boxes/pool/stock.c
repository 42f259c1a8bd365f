#include "pool/stock.h"

#include "base/time.h"
#include "box/supervise.h"
#include "policy/policy.h"
#include "start/start_internal.h"

enum {
    TRUSTED_MSEC = 1000,        /* how long a template is used without a check; a box that is ready may be older */
    TRIES = 3,
};

static bool is_fresh(const struct px_stock *stock)
{
    return stock->template && px_now_nsec() - stock->checked_nsec < (uint64_t)TRUSTED_MSEC * 1000000;
}

/* Computes the plan again. 0: it is unchanged, and the template is good for another while; 1: there is a new
 * template. */
static int refresh(struct px_stock *stock, bool may_go, struct px_err *e)
{
    struct px_plan *plan = NULL;
    if (px_start_stay_plan(stock->policy, true, &plan, e) < 0)
        return -1;
    bool fits = stock->template && px_template_fits(stock->template, plan);
    if (fits) {
        px_plan_free(plan);
    } else {
        px_template_free(stock->template);
        stock->template = NULL;
        if (px_template_new(plan, may_go, &stock->template, e) < 0)
            return -1;
    }
    stock->checked_nsec = px_now_nsec();
    return fits ? 0 : 1;
}

static int make(const struct px_stock *stock, const int *image, struct px_template_builder *who, struct px_box **ret_home,
                struct px_err *e)
{
    static const struct px_io nothing = {0};
    struct px_plan *plan = NULL;
    if (px_template_plan(stock->template, who, &plan, e) < 0)
        return -1;
    plan->image = image;
    if (px_start_connect(plan, stock->policy, e) < 0) {
        px_plan_free(plan);
        return -1;
    }
    return px_supervise_start(plan, stock->policy, &nothing, ret_home, e);
}

/* A failed box is only an error if the host is still as the plan expects; else there is a new plan, and another try.
 * A host that changes every time is an error too. */
int px_stock_box(struct px_stock *stock, const int *image, struct px_template_builder *who, struct px_box **ret_home, struct px_err *e)
{
    if (px_policy_root_is_stored(stock->policy))
        return px_start_stay_with(stock->policy, true, image, ret_home, e);
    if (!is_fresh(stock) && refresh(stock, who->home >= 0, e) < 0)
        return -1;
    for (int tries = 0;; tries++) {
        struct px_err later = {0};
        if (make(stock, image, who, ret_home, e) >= 0)
            return 0;
        int changed = tries < TRIES ? refresh(stock, who->home >= 0, &later) : 0;
        if (changed < 0)
            *e = later;
        if (changed <= 0)
            return -1;
    }
}

void px_stock_done(struct px_stock *stock)
{
    px_template_free(stock->template);
    *stock = (struct px_stock){0};
}
