#include "env/target.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "host/tool.h"

enum { ANSWER_MSEC = 60000 };

#define DEFAULT_BASE "debian-12"

void px_target_for(const struct px_python *runtime, struct px_target *ret_target)
{
    *ret_target = (struct px_target){.runtime = runtime ? runtime : px_env_python_find(DEFAULT_BASE)};
    runtime = ret_target->runtime;
    (void)px_fmt(ret_target->minor, sizeof ret_target->minor, "3.%u", runtime->minor);
    (void)px_fmt(ret_target->platform, sizeof ret_target->platform, "%s_%s", runtime->musl ? "musllinux" : "linux",
                 runtime->machine);
    ret_target->tags = (struct px_tags){.python_minor = runtime->minor,
                                        .musl = runtime->musl,
                                        .libc_major = runtime->libc_major,
                                        .libc_minor = runtime->libc_minor,
                                        .machine = runtime->machine};
    ret_target->env = (struct px_marker_env){
        .implementation_name = "cpython",
        .implementation_version = runtime->version,
        .os_name = "posix",
        .platform_machine = runtime->machine,
        .platform_python_implementation = "CPython",
        .platform_release = "",
        .platform_version = "",
        .platform_system = "Linux",
        .python_full_version = runtime->version,
        .python_version = ret_target->minor,
        .sys_platform = "linux",
    };
}

/* ---- this machine's ---- */

/* The distribution's own first: shims of version managers need files that a box does not see. */
static int find_python(struct px_resolver_python *p, struct px_err *e)
{
    static const char *const places[] = {"/usr/bin/python3", "/usr/local/bin/python3"};
    for (size_t i = 0; i < PX_COUNT_OF(places); i++)
        if (access(places[i], X_OK) == 0)
            return px_fmt(p->path, sizeof p->path, "%s", places[i]);
    if (px_tool_find("python3", p->path, sizeof p->path))
        return 0;
    px_fail(e, PX_E_LOCK, 0, "there is no python3 on this machine");
    (void)px_detail(e, "reason", "resolver_missing");
    (void)px_why(e, "px leaves resolving to uv or pip, and both need a Python to run with.");
    return px_fix(e, "Install it: apt install python3 python3-pip.");
}

static int read_minor(const char *line, unsigned *ret_minor)
{
    char number[8];
    uint64_t minor;
    if (!px_starts_with(line, "Python 3.") ||
        px_fmt(number, sizeof number, "%.*s", (int)strspn(line + 9, "0123456789"), line + 9) < 0 ||
        px_parse_u64(number, 999, &minor) < 0)
        return -EINVAL;
    *ret_minor = (unsigned)minor;
    return 0;
}

int px_target_resolver(struct px_resolver_python *ret_python, struct px_err *e)
{
    char line[128];
    if (find_python(ret_python, e) < 0)
        return -1;
    int r = px_tool_version(ret_python->path, ANSWER_MSEC, line, sizeof line);
    if (r >= 0)
        r = read_minor(line, &ret_python->minor);
    if (r >= 0)
        return 0;
    px_fail(e, PX_E_LOCK, r, "'%s' does not say which Python it is", ret_python->path);
    return px_detail(e, "reason", "resolver_missing");
}
