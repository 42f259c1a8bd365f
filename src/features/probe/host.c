/* probe/host.c - settings and security modules of the host, and the environment of this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "probe/probe_internal.h"

static const char max_namespaces[] = "/proc/sys/user/max_user_namespaces";
/* Debian and derivatives, older kernels */
static const char userns_clone[] = "/proc/sys/kernel/unprivileged_userns_clone";
static const char apparmor_userns[] = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/* ---- what surrounds us ---- */

void px_probe_inside(struct px_probe_host *host, const char *fmt, ...)
{
    if (host->inside_count >= PX_PROBE_INSIDE_MAX)
        return;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(host->inside[host->inside_count++], PX_PROBE_TEXT, fmt, args);
    va_end(args);
}

static bool is_there(const char *path)
{
    return px_sys(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

/* "Name:\tN" of /proc/self/status; -1 if it is not there. */
static int status_number(const char *text, const char *name)
{
    int value = -1;
    const char *line = strstr(text, name);
    return line && sscanf(line + strlen(name), "%d", &value) == 1 ? value : -1;
}

/* The kernel gives the first namespace of each kind a number that never changes. */
static bool in_other_namespace(const char *kind, unsigned long first)
{
    char path[64];
    struct stat st;
    return px_fmt(path, sizeof path, "/proc/self/ns/%s", kind) >= 0 && stat(path, &st) == 0 && st.st_ino != first;
}

static void see_namespaces(struct px_probe_host *host)
{
    static const struct {
        const char *kind;
        unsigned long first;
    } all[] = {{"user", 0xEFFFFFFDUL}, {"pid", 0xEFFFFFFCUL}, {"cgroup", 0xEFFFFFFBUL}};
    char list[64] = "";
    for (size_t i = 0; i < PX_COUNT_OF(all); i++)
        if (in_other_namespace(all[i].kind, all[i].first)) {
            size_t n = strlen(list);
            (void)px_fmt(list + n, sizeof list - n, "%s%s", n ? ", " : "", all[i].kind);
        }
    if (list[0])
        px_probe_inside(host, "in namespaces that are not the first ones of this machine: %s", list);
}

static void see_container(struct px_probe_host *host)
{
    static const char *const marks[] = {"/.dockerenv", "/run/.containerenv", "/run/systemd/container"};
    for (size_t i = 0; i < PX_COUNT_OF(marks); i++)
        if (is_there(marks[i])) {
            px_probe_inside(host, "in a container: %s is there", marks[i]);
            return;
        }
}

void px_probe_surroundings(struct px_probe_host *host)
{
    char text[8192];
    if (px_read_file(AT_FDCWD, "/proc/self/status", text, sizeof text) < 0) {
        px_probe_inside(host, "/proc/self/status cannot be read, so what surrounds this process is not known");
        return;
    }
    host->no_new_privs = status_number(text, "\nNoNewPrivs:") == 1;
    host->filtered = status_number(text, "\nSeccomp:") > 0;
    bool hidden = is_there("/proc/self") && !is_there("/proc/1");
    if (host->filtered && host->no_new_privs && hidden && px_equal(getenv("PX_SANDBOX"), "1"))
        px_probe_inside(host, "in a box of px: a filter and no_new_privs are in force, and process 1 is hidden");
    else if (host->filtered)
        px_probe_inside(host, "under a seccomp filter");
    if (host->no_new_privs)
        px_probe_inside(host, "with no_new_privs: a set-user-id program such as newuidmap has no effect");
    see_container(host);
    see_namespaces(host);
}

enum px_raise px_probe_userns_raise(const struct px_probe_host *host, int r)
{
    if (host->filtered && (r == -EPERM || r == -ENOSYS || r == -EACCES))
        return PX_RAISE_OUTER_FILTER;
    if (r == -ENOSPC || r == -EUSERS || px_probe_number(max_namespaces) == 0)
        return PX_RAISE_USERNS_MAX;
    if (!host->root && px_probe_number(userns_clone) == 0)
        return PX_RAISE_USERNS_CLONE;
    if (!host->root && px_probe_number(apparmor_userns) == 1)
        return PX_RAISE_USERNS_APPARMOR;
    return r == -ENOSYS || r == -EINVAL ? PX_RAISE_KERNEL : PX_RAISE_USERNS;
}

/* ---- rows that only read ---- */

void px_probe_settings(struct px_probe_ctx *c)
{
    int64_t max = px_probe_number(max_namespaces), clone = px_probe_number(userns_clone);
    int64_t apparmor = px_probe_number(apparmor_userns);
    char more[PX_PROBE_TEXT] = "";
    if (clone >= 0)
        px_probe_say(more, ", unprivileged_userns_clone %lld", (long long)clone);
    if (apparmor >= 0) {
        size_t n = strlen(more);
        (void)px_fmt(more + n, sizeof more - n, ", apparmor_restrict_unprivileged_userns %lld", (long long)apparmor);
    }
    if (max < 0) {
        px_probe_say(c->row->why, "unknown: %s cannot be read", max_namespaces);
        return;
    }
    px_probe_say(c->row->found, "max_user_namespaces %lld%s", (long long)max, more);
    px_probe_say(c->row->permitted, "reading the settings gave these numbers");
    bool refused = max == 0 || (!c->host->root && (clone == 0 || apparmor == 1));
    c->row->raise = px_probe_userns_raise(c->host, -EPERM);
    c->row->state = refused ? PX_PROBE_DEGRADED : PX_PROBE_ENFORCED;
    px_probe_say(c->row->why, "the host's settings refuse user namespaces to this caller");
}

/* The first line of a file, if it is there, as what was found. */
static bool read_line(struct px_probe_ctx *c, const char *path)
{
    char text[1024];
    ssize_t n = px_read_file(AT_FDCWD, path, text, sizeof text);
    if (n < 0) {
        if (n == -ENOENT)
            px_probe_say(c->row->why, "there is no %s", path);
        else
            px_probe_say(c->row->why, "unknown: %s cannot be read (%s)", path, px_probe_errno(n).text);
        return false;
    }
    text[strcspn(text, "\n")] = '\0';
    px_probe_say(c->row->found, "%.100s", text);
    px_probe_say(c->row->permitted, "reading %s gave %.100s", path, text);
    return true;
}

void px_probe_modules(struct px_probe_ctx *c)
{
    if (read_line(c, "/sys/kernel/security/lsm"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_apparmor(struct px_probe_ctx *c)
{
    if (!read_line(c, "/sys/module/apparmor/parameters/enabled"))
        return;
    c->row->state = c->row->found[0] == 'Y' ? PX_PROBE_ENFORCED : PX_PROBE_ABSENT;
    px_probe_say(c->row->why, "it is built in, but not enabled");
}

void px_probe_selinux(struct px_probe_ctx *c)
{
    if (!read_line(c, "/sys/fs/selinux/enforce"))
        return;
    bool enforcing = c->row->found[0] == '1';
    px_probe_say(c->row->found, "%s", enforcing ? "enforcing" : "permissive");
    px_probe_say(c->row->why, "it only writes down what it would refuse");
    c->row->state = enforcing ? PX_PROBE_ENFORCED : PX_PROBE_DEGRADED;
}

/* A sysctl that protects all processes; a box does not need it. */
static void read_guard(struct px_probe_ctx *c, const char *path, bool good_is_zero, const char *open_text)
{
    if (!read_line(c, path))
        return;
    bool zero = px_equal(c->row->found, "0");
    c->row->state = zero == good_is_zero ? PX_PROBE_ENFORCED : PX_PROBE_DEGRADED;
    px_probe_say(c->row->why, "%s", open_text);
}

void px_probe_yama(struct px_probe_ctx *c)
{
    read_guard(c, "/proc/sys/kernel/yama/ptrace_scope", false,
               "processes of one user may trace each other; those of a box may not");
}

void px_probe_bpf(struct px_probe_ctx *c)
{
    read_guard(c, "/proc/sys/kernel/unprivileged_bpf_disabled", false,
               "any process may load bpf programs; those of a box may not");
}

void px_probe_tiocsti(struct px_probe_ctx *c)
{
    static const char open_text[] = "programs can type into the terminal they run on; a box has one of its own, and may not";
    static const char path[] = "/proc/sys/dev/tty/legacy_tiocsti";
    read_guard(c, path, true, open_text);
    if (!is_there(path) && is_there("/proc/sys"))       /* before Linux 6.2 it cannot be forbidden */
        px_probe_say(c->row->why, "%s", open_text);
}

static void try_device(struct px_probe_ctx *c, const char *path)
{
    char act[64];
    (void)px_fmt(act, sizeof act, "access to %s", path);
    if (px_probe_works(c, px_sys(SYS_faccessat, AT_FDCWD, path, R_OK | W_OK), act))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_fuse(struct px_probe_ctx *c)
{
    try_device(c, "/dev/fuse");
}

void px_probe_loop(struct px_probe_ctx *c)
{
    try_device(c, "/dev/loop-control");
}
