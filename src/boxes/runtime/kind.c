#include "runtime/kind.h"

#include <unistd.h>

#include "base/err.h"
#include "base/text.h"

/* No runtime makes a cgroup: px has one around the container. runc finds a tree that it cannot write to, which it takes for an
 * unprivileged caller's; crun wants none at all where v1 and v2 are mixed. */
static const char *const runc_options[] = {"--log-format", "json", NULL};
static const char *const crun_options[] = {"--log-format", "json", "--cgroup-manager=disabled", NULL};
static const char *const runsc_options[] = {"--log-format=json", "--rootless", "--platform=ptrace", "--ignore-cgroups", NULL};

static const struct px_runtime_kind kinds[] = {
    {.name = "runc", .tier = "oci:runc", .package = "runc", .socket = true, .sees_cgroups = true,
     .options = runc_options},
    {.name = "crun", .tier = "oci:crun", .package = "crun", .socket = true, .options = crun_options},
    {.name = "runsc", .tier = "oci:runsc", .package = "runsc", .own_kernel = true, .options = runsc_options},
    {.name = NULL},
};

const struct px_runtime_kind *px_runtime_find(const char *name, struct px_err *e)
{
    for (const struct px_runtime_kind *k = kinds; k->name; k++)
        if (px_equal(k->name, name))
            return k;
    px_fail(e, PX_E_VALUE, 0, "there is no runtime '%s'", name ? name : "");
    px_fix(e, "Write native, runc, crun or runsc.");
    return NULL;
}

/* Directories of /usr only: that is what the processes around the container see of the host. */
int px_runtime_program(const struct px_runtime_kind *kind, char *out, size_t size, struct px_err *e)
{
    static const char *const places[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"};
    for (size_t i = 0; i < PX_COUNT_OF(places); i++)
        if (px_fmt(out, size, "%s/%s", places[i], kind->name) >= 0 && access(out, X_OK) == 0)
            return 0;
    px_fail(e, PX_E_RUNTIME, 0, "the runtime '%s' is not installed", kind->name);
    px_why(e, "There is no program of that name in /usr/local/bin, /usr/bin or the sbin beside them.");
    return px_fix(e, "apt install %s\nOr leave --runtime out: px needs none.", kind->package);
}
