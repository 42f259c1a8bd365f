#include "start/resolve.h"

#include <stdlib.h>
#include <string.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "named/join.h"
#include "relay/relay.h"
#include "runtime/runtime.h"
#include "seccomp/print.h"
#include "seccomp/profile.h"

enum { INSTRUCTION = 8, PRINT_MAX = 16 << 20 };

int px_start_filter(const struct px_policy *policy, struct px_host *host, struct sock_filter **ret_code, struct px_err *e)
{
    struct px_profile *profile = NULL;
    uint16_t length = 0;
    if (px_profile_read(policy->seccomp, &profile, e) < 0)
        return -1;
    const struct sock_filter *program = px_profile_program(profile, &length);
    void *copy = malloc((size_t)length * INSTRUCTION);
    if (copy)
        memcpy(copy, program, (size_t)length * INSTRUCTION);
    host->filter_sends = px_profile_permits(profile, SYS_sendmsg);
    px_profile_free(profile);
    if (!copy)
        return px_no_memory(e);
    host->filter = *ret_code = copy;
    host->filter_length = length;
    return 0;
}

PX_API int px_policy_warnings(const struct px_policy *policy, char **ret_text, struct px_err *e)
{
    PX_ERR(e);
    *ret_text = NULL;
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_profile *profile = NULL;
    if (px_policy_own_filter(policy))
        return 0;
    if (px_profile_read(policy->seccomp, &profile, e) < 0)
        return -1;
    const char *text;
    for (size_t i = 0; (text = px_profile_warning(profile, i)); i++)
        px_buf_printf(&out, "%s\n", text);
    px_profile_free(profile);
    *ret_text = out.len && out.err == 0 ? px_buf_take(&out) : NULL;
    return 0;
}

int px_start_root(const struct px_policy *policy, enum px_root_look look, char **ret_dir,
                   struct px_root_lease **ret_lease, struct px_err *e)
{
    struct px_sandbox *sandbox = NULL;
    if (px_sandbox_open(NULL, &sandbox, e) < 0)
        return -1;
    px_store_look_only(sandbox->store, look != PX_ROOT_NOW);
    int r = px_sandbox_root(sandbox, policy->base, policy->rootfs, ret_dir, ret_lease, e);
    if (r == 0 && look == PX_ROOT_BESIDE && *ret_lease && !px_root_lease_look(sandbox, *ret_lease)) {
        px_root_lease_free(px_take(ret_lease));
        free(px_take(ret_dir));
        px_store_look_only(sandbox->store, false);
        r = px_sandbox_root(sandbox, policy->base, policy->rootfs, ret_dir, ret_lease, e);
    }
    px_sandbox_close(sandbox);
    return r;
}

bool px_start_root_holds(struct px_root_lease *lease)
{
    return px_root_lease_holds(lease);
}

int px_start_join(const struct px_policy *policy, struct px_err *e)
{
    return px_named_join_find(policy->net_box, e);
}

/* ---- what px policy show --seccomp prints ---- */

static bool has_workspace(const struct px_policy *policy)
{
    bool writable = policy->work_dir || (policy->overlay && *policy->overlay);
    for (size_t i = 0; i < policy->binds.count; i++)
        writable = writable || policy->binds.items[i].writable;
    return writable;
}

PX_API int px_policy_seccomp(const struct px_policy *policy, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf out = PX_BUF(PRINT_MAX);
    struct px_json j = {.out = &out, .pretty = true};
    struct px_profile *profile = NULL;
    if (!px_policy_own_filter(policy) && px_profile_read(policy->seccomp, &profile, e) < 0)
        return -1;
    int r = px_profile_print(px_plan_filter(policy, has_workspace(policy)), profile, &j, NULL, e);
    px_profile_free(profile);
    px_buf_putc(&out, '\n');
    if (r < 0 || out.err < 0)
        return r < 0 ? r : px_fail(e, PX_E_MEMORY, out.err, "the filter is too large to print");
    *ret_json = px_buf_take(&out);
    return 0;
}
