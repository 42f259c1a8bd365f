#include "engine/target.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "engine/doctor.h"

enum { ANSWER_MSEC = 60000 };

/* The distribution's own first: shims of version managers need files that a box does not see. */
static int find_python(struct px_target *t, struct px_err *e)
{
    static const char *const places[] = {"/usr/bin/python3", "/usr/local/bin/python3"};
    for (size_t i = 0; i < PX_COUNT_OF(places); i++)
        if (access(places[i], X_OK) == 0)
            return px_fmt(t->python, sizeof t->python, "%s", places[i]);
    if (px_tool_find("python3", t->python, sizeof t->python))
        return 0;
    px_fail(e, PX_E_LOCK, 0, "there is no python3 on this machine");
    (void)px_detail(e, "reason", "resolver_missing");
    (void)px_why(e, "px leaves resolving to uv or pip, and both need a Python to resolve for.");
    return px_fix(e, "Install it: apt install python3 python3-pip.");
}

static int read_version(struct px_target *t, const char *line)
{
    uint64_t major = 0, minor = 0;
    const char *text = px_starts_with(line, "Python ") ? line + 7 : "";
    size_t n = strspn(text, "0123456789."), dot = strcspn(text, ".");
    size_t second = n > dot ? strspn(text + dot + 1, "0123456789") : 0;
    char first[8], next[8];
    if (px_fmt(t->version, sizeof t->version, "%.*s", (int)n, text) < 0 || px_fmt(first, sizeof first, "%.*s", (int)dot, text) < 0 ||
        px_fmt(next, sizeof next, "%.*s", (int)second, text + dot + 1) < 0 || px_parse_u64(first, 99, &major) < 0 ||
        px_parse_u64(next, 999, &minor) < 0 || major != 3)
        return -EINVAL;
    t->tags.python_minor = (unsigned)minor;
    return px_fmt(t->minor, sizeof t->minor, "3.%u", t->tags.python_minor);
}

/* The C library is that of the default base, whatever this machine has: locks are for what runs there. */
static void describe(struct px_target *t)
{
    t->tags.musl = false;
    t->tags.libc_major = 2;
    t->tags.libc_minor = 36;
    t->tags.machine = t->machine;
    t->env = (struct px_marker_env){
        .implementation_name = "cpython", .implementation_version = t->version, .os_name = "posix", .platform_machine = t->machine,
        .platform_python_implementation = "CPython", .platform_release = "", .platform_version = "", .platform_system = "Linux",
        .python_full_version = t->version, .python_version = t->minor, .sys_platform = "linux",
    };
}

static int name_machine(struct px_target *t)
{
    struct utsname host;
    return uname(&host) < 0 || px_fmt(t->machine, sizeof t->machine, "%s", host.machine) < 0 ||
                   px_fmt(t->platform, sizeof t->platform, "linux_%s", host.machine) < 0
               ? -1 : 0;
}

void px_target_default(struct px_target *ret_target)
{
    *ret_target = (struct px_target){0};
    (void)read_version(ret_target, "Python 3.11.2");
    (void)name_machine(ret_target);
    describe(ret_target);
}

int px_target_find(struct px_target *ret_target, struct px_err *e)
{
    char line[128];
    *ret_target = (struct px_target){0};
    if (find_python(ret_target, e) < 0)
        return -1;
    int r = px_tool_version(ret_target->python, ANSWER_MSEC, line, sizeof line);
    if (r < 0 || read_version(ret_target, line) < 0) {
        px_fail(e, PX_E_LOCK, r < 0 ? r : 0, "'%s' does not say which Python it is", ret_target->python);
        return px_detail(e, "reason", "resolver_missing");
    }
    if (name_machine(ret_target) < 0)
        return px_fail(e, PX_E_INTERNAL, errno, "this machine has no name for its processor");
    describe(ret_target);
    return 0;
}
