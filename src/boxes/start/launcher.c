/* The launcher's half of start/resolve.h: it hands such policies over before it comes here. */
#include "base/err.h"
#include "start/resolve.h"

static int refuse(struct px_err *e)
{
    return px_fail(e, PX_E_NOT_BUILT, 0, "this needs px-main, not the launcher");
}

int px_beyond_filter(const struct px_policy *policy, struct px_host *host, struct sock_filter **ret_code, struct px_err *e)
{
    (void)policy;
    (void)host;
    (void)ret_code;
    return refuse(e);
}

int px_beyond_warnings(const struct px_policy *policy, char **ret_text, struct px_err *e)
{
    (void)policy;
    (void)ret_text;
    (void)e;
    return 0;
}

int px_beyond_root(const struct px_policy *policy, enum px_root_look look, char **ret_dir,
                   struct px_root_lease **ret_lease, struct px_err *e)
{
    (void)policy;
    (void)look;
    (void)ret_dir;
    (void)ret_lease;
    return refuse(e);
}

bool px_beyond_root_holds(struct px_root_lease *lease)
{
    (void)lease;
    return false;
}

void px_beyond_root_free(struct px_root_lease *lease)
{
    (void)lease;
}

int px_beyond_changes(const struct px_policy *policy, struct px_after **ret_after, struct px_err *e)
{
    (void)policy;
    (void)ret_after;
    return refuse(e);
}

int px_beyond_join(const struct px_policy *policy, struct px_err *e)
{
    (void)policy;
    return refuse(e);
}

int px_beyond_pasta(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e)
{
    (void)policy;
    (void)ret_carrier;
    return refuse(e);
}

int px_beyond_plan(const struct px_policy *policy, const char *const argv[], const struct px_host *host, char **ret_json,
                   struct px_err *e)
{
    (void)policy;
    (void)argv;
    (void)host;
    (void)ret_json;
    return refuse(e);
}

int px_beyond_start(const struct px_policy *policy, const char *const argv[], const struct px_host *host, const struct px_io *io,
                    struct px_box **ret_box, struct px_err *e)
{
    (void)policy;
    (void)argv;
    (void)host;
    (void)io;
    (void)ret_box;
    return refuse(e);
}
