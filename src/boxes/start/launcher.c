/* The small launcher's half of px/px.h: boxes that need only the core. The launcher executes px-main for every other
 * policy before it comes here, so a refusal here is a bug of px. */
#include "base/err.h"
#include "parts/parts.h"
#include "policy/policy.h"

static const struct px_parts no_parts = {0};

static int check_small(const struct px_policy *policy, struct px_err *e)
{
    return px_policy_is_small(policy) ? 0 : px_fail(e, PX_E_NOT_BUILT, 0, "this needs px-main, not the launcher");
}

PX_API int px_policy_warnings(const struct px_policy *policy, char **ret_text, struct px_err *e)
{
    PX_ERR(e);
    (void)policy;
    (void)e;
    *ret_text = NULL;
    return 0;
}

PX_API int px_policy_prepare(const struct px_policy *policy, struct px_err *e)
{
    PX_ERR(e);
    return check_small(policy, e);
}

PX_API int px_plan_json(const struct px_policy *policy, const char *const argv[], char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct px_host host;
    px_parts_probe(policy, &host);
    return check_small(policy, e) < 0 ? -1 : px_parts_plan_json(policy, argv, &host, ret_json, e);
}

PX_API int px_box_start(const struct px_policy *policy, const char *const argv[], const struct px_io *io, struct px_box **ret_box,
                        struct px_err *e)
{
    PX_ERR(e);
    static const struct px_io nothing = {0};
    struct px_host host;
    px_parts_probe(policy, &host);
    return check_small(policy, e) < 0 ? -1 : px_parts_start(policy, argv, io ? io : &nothing, &host, &no_parts, ret_box, e);
}
