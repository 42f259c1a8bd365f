/* A command's policy as texts: all that running it takes, computed where the caller's directory, files and variables
 * are. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "named/named_internal.h"
#include "plan/steps.h"

static void pair(struct px_buf *out, const char *field, const char *value)
{
    px_buf_add(out, field, strlen(field) + 1);
    px_buf_add(out, value, strlen(value) + 1);
}

static void number(struct px_buf *out, const char *field, uint64_t value, const char *unit)
{
    char text[40];
    if (value == PX_UNLIMITED)
        pair(out, field, "unlimited");
    else if (value && px_fmt(text, sizeof text, "%llu%s", (unsigned long long)value, unit) >= 0)
        pair(out, field, text);
}

static void add_field(const struct px_policy *policy, const struct px_field *f, struct px_buf *out)
{
    const void *at = (const char *)policy + f->offset;
    if (f->type == &px_policy_env_type) {
        for (size_t i = 0; i < policy->env.count; i++)
            pair(out, f->name, policy->env.items[i]);
    } else if (f->type == &px_field_bool) {
        if (*(const bool *)at)
            pair(out, f->name, "true");
    } else {
        assert(f->type == &px_field_msec || f->type == &px_field_bytes || f->type == &px_field_count);
        number(out, f->name, *(const uint64_t *)at, f->type == &px_field_msec ? "ms" : "");
    }
}

void px_named_pack(const struct px_policy *policy, bool with_memory, struct px_buf *out)
{
    char user[32];
    if (px_fmt(user, sizeof user, "%u:%u", policy->user.uid, policy->user.gid) >= 0)
        pair(out, "user", user);
    pair(out, "workdir", policy->workdir ? policy->workdir : policy->work_dir ? policy->work_target : px_rootfs_home);
    for (const struct px_field *f = px_policy_fields; f->name; f++)
        if (f->flags & PX_POLICY_SENT)
            add_field(policy, f, out);
    if (with_memory && policy->limits == PX_LIMITS_TRY && px_policy_limited(policy->memory_bytes)) {
        number(out, "memory", policy->memory_bytes, "");
        pair(out, "limits", "try");
    }
    px_buf_putc(out, '\0');
}

void px_named_pack_words(const char *const argv[], struct px_buf *out)
{
    for (size_t i = 0; argv[i]; i++)
        px_buf_add(out, argv[i], strlen(argv[i]) + 1);
}

static int bad(struct px_err *e)
{
    return px_fail(e, PX_E_INTERNAL, 0, "a command came in a form that px does not know");
}

int px_named_unpack(const char *text, size_t length, struct px_policy **ret_policy, size_t *ret_words, struct px_err *e)
{
    struct px_policy *policy = NULL;
    if (length == 0 || text[length - 1] != '\0')
        return bad(e);
    if (px_policy_new("default", &policy, e) < 0)
        return -1;
    policy->pids = 0;           /* the preset's; the packed value counts */
    int r = 0;
    size_t at = 0;
    while (r >= 0 && at < length && text[at]) {
        const char *field = text + at;
        at += strlen(field) + 1;
        if (at >= length) {
            r = bad(e);
            break;
        }
        r = px_policy_put(policy, field, text + at, e);
        at += strlen(text + at) + 1;
    }
    if (r >= 0 && at >= length)
        r = bad(e);
    if (r < 0) {
        px_policy_free(policy);
        return -1;
    }
    *ret_policy = policy;
    *ret_words = at + 1;
    return 0;
}

const char **px_named_words(const char *text, size_t length, size_t at)
{
    size_t count = 0;
    for (size_t i = at; i < length; i++)
        count += text[i] == '\0';
    const char **words = calloc(count + 1, sizeof *words);
    for (size_t i = 0; words && i < count; i++) {
        words[i] = text + at;
        at += strlen(text + at) + 1;
    }
    return words;
}
