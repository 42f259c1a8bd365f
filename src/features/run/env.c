/* The variables of a project's program. On the host it gets the caller's, with the environment first in PATH. In the
 * sandbox it gets the project's, and of the caller's only a few about output, colours and time: none with a path of
 * this machine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "policy/policy.h"
#include "run/run.h"

enum { VALUE_MAX = 1 << 17 };

/* ---- on the host ---- */

static char **find(const struct px_launch *l, const char *name, size_t length)
{
    for (size_t i = 0; i < l->env_count; i++)
        if (strncmp(l->env[i], name, length) == 0 && l->env[i][length] == '=')
            return &l->env[i];
    return NULL;
}

static const char *value_of(const struct px_launch *l, const char *name)
{
    char **at = find(l, name, strlen(name));
    return at ? *at + strlen(name) + 1 : NULL;
}

static int put(struct px_launch *l, const char *name, const char *value, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(VALUE_MAX);
    px_buf_printf(&text, "%s=%s", name, value);
    char *copy = px_buf_take(&text), **at = find(l, name, strlen(name));
    if (!copy)
        return px_fail(e, PX_E_LIMIT, text.err, "the variable %.64s is too long", name);
    if (at)
        free(*at);
    else
        at = &l->env[l->env_count++];
    *at = copy;
    return 0;
}

static void drop(struct px_launch *l, const char *name)
{
    char **at = find(l, name, strlen(name));
    if (!at)
        return;
    free(*at);
    *at = l->env[--l->env_count];
    l->env[l->env_count] = NULL;
}

static int copy_caller(struct px_launch *l, size_t more, struct px_err *e)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    if (!(l->env = calloc(count + more + 1, sizeof *l->env)))
        return px_no_memory(e);
    for (size_t i = 0; i < count; i++) {
        if (!(l->env[i] = strdup(environ[i])))
            return px_no_memory(e);
        l->env_count++;
    }
    return 0;
}

/* Byte code is written where the caller's variables say, or not at all: never into the project or the store. */
static int put_own(struct px_launch *l, const struct px_env *env, struct px_err *e)
{
    char python[PATH_MAX], search[VALUE_MAX];
    const char *path = value_of(l, "PATH"), *prefix = value_of(l, "PYTHONPYCACHEPREFIX");
    if (px_fmt(python, sizeof python, "%s/bin/python3.%u", env->path, env->runtime->minor) < 0 ||
        px_fmt(search, sizeof search, "%s/bin:%s", env->path, path ? path : "/usr/local/bin:/usr/bin:/bin") < 0)
        return px_fail(e, PX_E_LIMIT, ENAMETOOLONG, "the variable PATH is too long");
    const char *const rows[][2] = {{"PATH", search},
                                   {"VIRTUAL_ENV", env->path},
                                   {"PX_PROJECT_ROOT", l->p->site.root},
                                   {"PX_PYTHON", python},
                                   {"PYTHONDONTWRITEBYTECODE", prefix && *prefix ? NULL : "1"}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (rows[i][1] && put(l, rows[i][0], rows[i][1], e) < 0)
            return -1;
    return 0;
}

int px_run_host_env(struct px_launch *l, struct px_err *e)
{
    enum { OWN = 8 };
    const struct px_env *env = px_run_env(l);
    const char *name;
    json_t *value;
    if (copy_caller(l, json_object_size(env->variables) + OWN, e) < 0)
        return -1;
    drop(l, "PYTHONHOME");
    drop(l, "PYTHONPATH");
    if (put_own(l, env, e) < 0)
        return -1;
    json_object_foreach(env->variables, name, value) {
        if (put(l, name, json_string_value(value), e) < 0)
            return -1;
    }
    return 0;
}

/* ---- in the box ---- */

/* Variables that the caller set with -e are not changed. */
int px_run_give(struct px_policy *policy, const char *name, const char *value, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(VALUE_MAX);
    if (px_policy_env(policy, name))
        return 0;
    px_buf_printf(&text, "%s=%s", name, value);
    if (text.err < 0)
        return px_fail(e, PX_E_LIMIT, text.err, "the variable %.64s is too long", name);
    return px_policy_set(policy, "env", px_buf_text(&text), e);
}

static int give_own(const struct px_launch *l, const struct px_env *env, struct px_err *e)
{
    char python[64];
    (void)px_fmt(python, sizeof python, PX_PROGRAM_ENV "/bin/python3.%u", env->runtime->minor);
    const char *const rows[][2] = {
        {"PATH", PX_PROGRAM_ENV "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {"VIRTUAL_ENV", PX_PROGRAM_ENV},
        {"PX_PROJECT_ROOT", PX_PROGRAM_APP},
        {"PX_PYTHON", python},
        {"PYTHONDONTWRITEBYTECODE", "1"},
        {"PYTHONUNBUFFERED", "1"},
        {"PX_SANDBOX_ID", l->image.sbx_id.hex},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_run_give(l->policy, rows[i][0], rows[i][1], e) < 0)
            return -1;
    return 0;
}

int px_run_box_env(struct px_launch *l, struct px_err *e)
{
    static const char *const passed[] = {"CI", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "SOURCE_DATE_EPOCH", "TZ"};
    const struct px_env *env = px_run_env(l);
    const char *name;
    json_t *value;
    json_object_foreach(env->variables, name, value) {
        if (px_run_give(l->policy, name, json_string_value(value), e) < 0)
            return -1;
    }
    for (size_t i = 0; i < PX_COUNT_OF(passed); i++) {
        const char *text = getenv(passed[i]);
        if (text && *text != '/' && *text != ':' && px_run_give(l->policy, passed[i], text, e) < 0)
            return -1;
    }
    return give_own(l, env, e);
}
