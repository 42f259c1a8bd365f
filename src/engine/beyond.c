#include "engine/beyond.h"

#include "base/err.h"

int px_beyond_filter(const struct px_policy *policy, struct sock_filter **ret_code, uint16_t *ret_length, struct px_err *e)
{
    (void)ret_code;
    (void)ret_length;
    return px_fail(e, PX_E_NOT_BUILT, 0, "--seccomp %s is not part of this build", policy->seccomp);
}

int px_beyond_start(const struct px_policy *policy, const char *const argv[], const struct px_io *io, struct px_box **ret_box,
                    struct px_err *e)
{
    (void)argv;
    (void)io;
    (void)ret_box;
    return px_fail(e, PX_E_NOT_BUILT, 0, "--runtime %s is not part of this build", policy->runtime);
}
