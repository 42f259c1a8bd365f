/* The public functions of px/px.h for a policy. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/px.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/field.h"
#include "base/json.h"
#include "base/text.h"
#include "policy/policy.h"

PX_API int px_policy_new(const char *preset, struct px_policy **ret_policy, struct px_err *e)
{
    PX_ERR(e);
    struct px_policy *policy = calloc(1, sizeof *policy);
    if (!policy)
        return px_no_memory(e);
    if (px_policy_init(policy, preset, e) < 0) {
        free(policy);
        return -1;
    }
    *ret_policy = policy;
    return 0;
}

PX_API void px_policy_free(struct px_policy *policy)
{
    if (!policy)
        return;
    px_policy_done(policy);
    free(policy);
}

/* Another process of the same user must make the same policy of it: a relative path is made absolute, and a variable that
 * was passed on by its name goes with its value. */
static void note_said(struct px_policy *policy, const char *field, const char *value)
{
    unsigned flags = px_field_find(px_policy_fields, field, strlen(field))->flags;
    struct px_buf *said = &policy->said;
    char here[4096];
    value = value ? value : "true";
    bool path = flags & PX_POLICY_DIR || (flags & PX_POLICY_PATH && (value[0] == '.' || strchr(value, '/')));
    bool relative = path && *value && *value != '/';
    const char *variable = px_equal(field, "env") && !strchr(value, '=') ? px_policy_env(policy, value) : NULL;
    if (px_equal(field, "env") && !strchr(value, '=') && !variable)
        return;                 /* the caller does not have it */
    px_buf_add(said, field, strlen(field) + 1);
    if (relative && getcwd(here, sizeof here))
        px_buf_printf(said, "%s/", here);
    px_buf_add(said, value, strlen(value));
    if (variable)
        px_buf_printf(said, "=%s", variable);
    px_buf_putc(said, '\0');
}

PX_API int px_policy_set(struct px_policy *policy, const char *field, const char *value, struct px_err *e)
{
    PX_ERR(e);
    if (px_policy_put(policy, field, value, e) < 0)
        return -1;
    if (px_equal(field, "pids"))
        policy->pids_counted = true;    /* a limit that the caller named should also be counted */
    note_said(policy, field, value);
    return 0;
}

/* Another process of the same user must get the same policy from the copy: relative paths are made absolute, and a
 * variable that was passed by its name gets its value. */
PX_API int px_policy_copy(const struct px_policy *policy, struct px_policy **ret_copy, struct px_err *e)
{
    PX_ERR(e);
    struct px_policy *copy = NULL;
    if (px_policy_new(policy->preset, &copy, e) < 0)
        return -1;
    const char *p = policy->said.data, *end = p + policy->said.len;
    while (p < end) {
        const char *value = p + strlen(p) + 1;
        if (px_policy_set(copy, p, value, e) < 0) {
            px_policy_free(copy);
            return -1;
        }
        p = value + strlen(value) + 1;
    }
    *ret_copy = copy;
    return 0;
}

PX_API int px_policy_get(const struct px_policy *policy, const char *field, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    const struct px_field *f = px_field_find(px_policy_fields, field, strlen(field));
    px_auto_buf struct px_buf out = PX_BUF(16 << 20);
    struct px_json j = {.out = &out};
    if (!f || f->flags & PX_FIELD_ABSENT)
        return px_fail(e, PX_E_USAGE, 0, "there is no field '%s'", field);
    px_json_object(&j, NULL);
    f->type->print((const char *)policy + f->offset, f, &j);
    px_json_end(&j);
    if (out.err < 0)
        return px_fail(e, PX_E_MEMORY, out.err, "the policy is too large to print");
    size_t skip = out.len > 2 ? strlen("{\"\":") + strlen(field) : out.len;   /* of {"FIELD":VALUE} the VALUE; {}: none */
    size_t len = out.len > 2 ? out.len - skip - 1 : 0;
    char *value = len ? strndup(out.data + skip, len) : strdup("null");
    if (!value)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "policy");
    *ret_json = value;
    return 0;
}

PX_API int px_policy_json(const struct px_policy *policy, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf out = PX_BUF(16 << 20);
    struct px_json j = {.out = &out, .pretty = true};
    px_json_object(&j, NULL);
    px_json_text(&j, "preset", policy->preset);
    px_field_print(px_policy_fields, policy, &j);
    px_json_end(&j);
    px_buf_putc(&out, '\n');
    if (out.err < 0)
        return px_fail(e, PX_E_MEMORY, out.err, "the policy is too large to print");
    *ret_json = px_buf_take(&out);
    return 0;
}

/* Whether the root is neither a directory of the caller nor the host's: an archive, a base by its name, or an image
 * by its tag. A tag may contain a slash: where no such path exists, the text is a tag. */
bool px_policy_root_is_stored(const struct px_policy *policy)
{
    struct stat st;
    const char *base = policy->base;
    if (!policy->rootfs && (!base || px_equal(base, "host")))
        return false;
    if (!policy->rootfs && !strchr(base, '/') && base[0] != '.')
        return true;
    if (stat(policy->rootfs ? policy->rootfs : base, &st) == 0)
        return S_ISREG(st.st_mode);
    return !policy->rootfs && errno == ENOENT && base[0] != '/' && base[0] != '.';
}

PX_API bool px_policy_is_small(const struct px_policy *policy)
{
    return px_policy_own_filter(policy) && px_policy_native(policy) && !policy->detach && !policy->changes &&
           policy->net != PX_NET_BOX && policy->net != PX_NET_PASTA && !px_policy_root_is_stored(policy);
}

PX_API const char *px_preset_name(size_t index)
{
    for (const struct px_preset_row *row = px_preset_rows; row->preset; row++)
        if (!row->field && index-- == 0)
            return row->preset;
    return NULL;
}

PX_API int px_policy_field(size_t index, struct px_field_info *ret_info)
{
    for (const struct px_field *f = px_policy_fields; f->name; f++) {
        if (f->flags & PX_FIELD_INTERNAL || index-- > 0)
            continue;
        *ret_info = (struct px_field_info){
            .name = f->name, .letter = f->letter, .type = f->type->name, .arg = f->arg, .help = f->help, .words = f->words,
            .flag = f->flags & PX_FIELD_FLAG, .repeat = f->flags & PX_FIELD_REPEAT, .absent = f->flags & PX_FIELD_ABSENT,
            .optional = f->flags & PX_FIELD_OPTIONAL, .hidden = f->flags & PX_FIELD_HIDDEN,
            .command = f->flags & PX_POLICY_COMMAND, .project = f->flags & PX_POLICY_PROJECT,
        };
        return 0;
    }
    return -1;
}
