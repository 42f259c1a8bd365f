/* Warnings: what in a policy contradicts itself, has no effect, or allows more than its author may expect. */
#include <px/px.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/policy.h"

/* Directories of the host that hold far more than any one task needs. */
static const struct {
    const char *path;
    bool below; /* also what lies directly in it, such as a home */
    const char *why;
} wide[] = {
    {"/", false, "the whole host"},
    {"/home", true, "a whole home, with keys and history"},
    {"/root", false, "a whole home, with keys and history"},
    {"/etc", false, "the host's configuration"},
    {"/var", false, "the host's state"},
    {"/run", false, "sockets of the host's services"},
    {"/proc", false, "the host's processes"},
    {"/sys", false, "the host's devices"},
    {"/dev", false, "the host's devices"},
};

static bool is_wide(size_t i, const char *path)
{
    size_t n = strlen(wide[i].path);
    if (px_equal(path, wide[i].path))
        return true;
    return wide[i].below && px_path_within(path, wide[i].path) && !strchr(path + n + 1, '/');
}

static void check_wide(const struct px_bind *b, struct px_buf *out)
{
    px_auto_free char *real = realpath(b->source, NULL);
    const char *home = getenv("HOME");
    for (size_t i = 0; real && i < PX_COUNT_OF(wide); i++)
        if (is_wide(i, real)) {
            px_buf_printf(out, "too wide: the bind at %s shows %s%s\n", b->target, wide[i].why,
                          b->writable ? ", writable" : "");
            return;
        }
    if (real && home && px_equal(real, home))
        px_buf_printf(out, "too wide: the bind at %s shows your whole home%s\n", b->target,
                      b->writable ? ", writable" : "");
}

/* Whether the inner directory can still be reached through the outer bind. It cannot if the inner one is mounted
 * exactly there. */
static bool is_open(const struct px_bind *outer, const char *outer_source, const struct px_bind *inner, const char *inner_source)
{
    size_t n = strlen(outer->target);
    return outer->writable && !inner->writable && px_path_within(inner_source, outer_source) &&
           !(strncmp(inner->target, outer->target, n) == 0 && px_equal(inner->target + n, inner_source + strlen(outer_source)));
}

/* Binds are mounted from the shortest target to the longest; of equal targets only the last is visible. */
static void check_pair(const struct px_bind *a, const struct px_bind *b, struct px_buf *out)
{
    px_auto_free char *one = realpath(a->source, NULL), *two = realpath(b->source, NULL);
    if (px_equal(a->target, b->target)) {
        px_buf_printf(out, "no effect: the bind at %s is hidden by a later one at the same place\n",
                      a->target);
        return;
    }
    if (!one || !two)
        return;
    if (px_equal(one, two) && a->writable != b->writable)
        px_buf_printf(out, "contradiction: the same directory is read-only at %s and writable at %s\n",
                      a->writable ? b->target : a->target, a->writable ? a->target : b->target);
    else if (!px_equal(one, two) && is_open(a, one, b, two))
        px_buf_printf(out, "contradiction: what is read-only at %s can be written by way of %s\n", b->target,
                      a->target);
    else if (!px_equal(one, two) && is_open(b, two, a, one))
        px_buf_printf(out, "contradiction: what is read-only at %s can be written by way of %s\n", a->target,
                      b->target);
}

static void check_tmpfs(const struct px_policy *p, struct px_buf *out)
{
    for (size_t i = 0; i < p->tmpfs.count; i++)
        for (size_t k = 0; k < p->binds.count; k++)
            if (px_equal(p->tmpfs.items[i].target, p->binds.items[k].target))
                px_buf_printf(out, "no effect: the tmpfs at %s is hidden by a bind at the same place\n",
                              p->tmpfs.items[i].target);
}

static void check_rest(const struct px_policy *p, struct px_buf *out)
{
    if (p->net == PX_NET_HOST)
        px_buf_puts(
            out,
            "too wide: --net host reaches everything that the host reaches, its loopback services too\n");
    if (p->require == PX_TIER_LANDLOCK)
        px_buf_puts(
            out,
            "weaker: --require landlock lets the box start without namespaces where the host has none\n");
    if (p->limits == PX_LIMITS_TRY)
        px_buf_puts(out, "weaker: --limits try goes without limits that the host cannot enforce\n");
    if (p->without)
        px_buf_puts(out, "weaker: --without switches parts of the box off\n");
}

PX_API int px_policy_check(const struct px_policy *policy, char **ret_text, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf out = PX_BUF(4 << 20);
    *ret_text = NULL;
    for (size_t i = 0; i < policy->binds.count; i++) {
        check_wide(&policy->binds.items[i], &out);
        for (size_t k = i + 1; k < policy->binds.count; k++)
            check_pair(&policy->binds.items[i], &policy->binds.items[k], &out);
    }
    check_tmpfs(policy, &out);
    check_rest(policy, &out);
    if (out.err < 0)
        return px_no_memory(e);
    *ret_text = out.len ? px_buf_take(&out) : NULL;
    return 0;
}
