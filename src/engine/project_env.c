#include "engine/project_env.h"

#include "base/err.h"

static int not_built(struct px_err *e)
{
    px_fail(e, PX_E_NOT_BUILT, 0, "this build of px makes locks, but no environments yet");
    return px_detail(e, "reason", "missing_env");
}

int px_project_env_sync(struct px_project *p, struct px_look *look, bool *ret_built, struct px_err *e)
{
    (void)p;
    (void)look;
    (void)e;
    *ret_built = false;         /* the lock is written; the answer says that there is no environment */
    return 0;
}

int px_project_env_rebuild(struct px_project *p, struct px_look *look, bool *ret_built, struct px_err *e)
{
    (void)p;
    (void)look;
    (void)ret_built;
    return not_built(e);
}
