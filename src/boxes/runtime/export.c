/* The public function of px/runtime.h: the native plan of this host as a config.json that anybody can run. */
#include <px/runtime.h>

#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "kernel/idmap.h"
#include "plan/plan.h"
#include "runtime/bundle.h"
#include "runtime/export_others.h"
#include "runtime/kind.h"

enum { ROOT_BASE = 0x70000000, ROOT_COUNT = 65536 };    /* the first range of root's block: see kernel/idmap.c */

/* A range in which one id is the caller's. */
static void split(struct px_extent out[PX_EXTENTS_MAX], uint32_t base, uint32_t id, uint32_t caller, uint32_t count)
{
    out[0] = (struct px_extent){0, base, id};
    out[1] = (struct px_extent){id, caller, 1};
    out[2] = (struct px_extent){id + 1, base + id, count - id - 1};
}

/* As px would map them, in numbers of the host: a runtime starts from there. No id is ever the host's 0. */
static int choose_ids(const struct px_policy *policy, const struct px_plan *plan, struct px_bundle *b, struct px_err *e)
{
    struct px_idmap map;
    const uint32_t uid = policy->user.uid, gid = policy->user.gid;
    b->uid = uid;
    b->gid = gid;
    b->extents = 1;
    if (geteuid() == 0) {
        b->uids[0] = b->gids[0] = (struct px_extent){0, ROOT_BASE, ROOT_COUNT};
        return 0;
    }
    int r = px_idmap_choose(uid, gid, plan->binds, &map);
    if (r < 0)
        return px_fail(e, PX_E_IDS, r, "no ids can be had for the box");
    px_idmap_done(&map);
    if (map.kind == PX_IDMAP_SINGLE) {          /* runc wants uid 0 in the map; crun does not mind */
        b->uid = px_equal(policy->runtime, "crun") ? uid : 0;
        b->gid = px_equal(policy->runtime, "crun") ? gid : 0;
        b->uids[0] = (struct px_extent){b->uid, map.caller_uid, 1};
        b->gids[0] = (struct px_extent){b->gid, map.caller_gid, 1};
        return 0;
    }
    b->uids[0] = (struct px_extent){0, map.uid_base, map.count};
    b->gids[0] = (struct px_extent){0, map.gid_base, map.count};
    if (map.kind == PX_IDMAP_SUBIDS_CALLER) {
        split(b->uids, map.uid_base, uid, map.caller_uid, map.count);
        split(b->gids, map.gid_base, gid, map.caller_gid, map.count);
        b->extents = PX_EXTENTS_MAX;
    }
    return 0;
}

static int to_oci(const struct px_policy *policy, const struct px_plan *plan, struct px_buf *out, struct px_err *e)
{
    struct px_bundle b = {.policy = policy, .plan = plan, .exported = true, .terminal = policy->tty};
    int r = choose_ids(policy, plan, &b, e);
    return r < 0 ? r : px_bundle_print(&b, out, e);
}

static const struct format {
    const char *name;
    int (*print)(const struct px_policy *policy, const struct px_plan *plan, struct px_buf *out, struct px_err *e);
} formats[] = {{"oci", to_oci}, {"bwrap", px_export_bwrap}, {"docker", px_export_docker}, {"seatbelt", px_export_seatbelt}};

static const struct format *find_format(const char *to, struct px_err *e)
{
    for (size_t i = 0; i < PX_COUNT_OF(formats); i++)
        if (px_equal(to, formats[i].name))
            return &formats[i];
    px_fail(e, PX_E_VALUE, 0, "a policy cannot be exported to '%s'", to ? to : "");
    (void)px_fix(e, "Write --to oci, bwrap, docker or seatbelt.");
    return NULL;
}

PX_API int px_policy_export(const struct px_policy *policy, const char *const argv[], const char *to, char **ret_text,
                            struct px_err *e)
{
    PX_ERR(e);
    struct px_policy plain = *policy;           /* borrows every text */
    const struct px_host host = {.uid = geteuid(), .gid = getegid(), .user_namespaces = true, .apparmor = true};
    const struct format *format = find_format(to, e);
    px_auto_buf struct px_buf out = PX_BUF(64 << 20);
    struct px_plan *plan = NULL;

    if (policy->net == PX_NET_BOX) {
        px_fail(e, PX_E_NOT_BUILT, 0, "--net %s, the network of another box, cannot be exported", policy->net_box);
        return px_fix(e, "Name one that the box has for itself: --net none or --net loopback.");
    }
    if (!px_policy_own_filter(policy))
        plain.seccomp = NULL;   /* a profile is read when it is printed; for the plan any filter will do */
    if (format && !px_equal(format->name, "oci"))
        plain.disk_bytes = PX_UNLIMITED;        /* no such bound there: each directory has its own */
    if (!format || px_plan_new(&plain, argv, &host, false, &plan, e) < 0)
        return -1;
    int r = format->print(policy, plan, &out, e);
    px_plan_free(plan);
    if (r >= 0)
        *ret_text = px_buf_take(&out);
    return r;
}
