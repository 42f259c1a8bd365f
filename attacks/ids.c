/* attacks/ids.c - section E: ids, privileges, groups, signals, keyrings, core dumps. */
#include "attack.h"

#include <dirent.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

static int no_host_zero(const char *path)
{
    char text[1024];
    if (read_text(path, text, sizeof text) <= 0)
        return failed("%s cannot be read", path);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned long inside, outside, count;
        if (sscanf(line, "%lu %lu %lu", &inside, &outside, &count) != 3 || count == 0)
            return failed("odd map: %s", line);
        if (outside == 0)
            return failed("%s maps %lu to the host's 0", path, inside);
    }
    return DONE;
}
static int e1_map(void)
{
    return no_host_zero("/proc/self/uid_map") || no_host_zero("/proc/self/gid_map");
}

static int e1_change(void)
{
    static const unsigned ids[] = {0, 1, 999, 1001, 65534, 65535, 65536, 0x7fffffff};
    for (size_t i = 0; i < COUNT(ids); i++) {
        unsigned id = ids[i];
        gid_t group = id;
        if (syscall(SYS_setuid, id) == 0 || syscall(SYS_setreuid, id, id) == 0 ||
            syscall(SYS_setresuid, -1, id, -1) == 0 || syscall(SYS_setgid, id) == 0 ||
            syscall(SYS_setregid, id, id) == 0 || syscall(SYS_setresgid, -1, id, -1) == 0 ||
            syscall(SYS_setgroups, 1, &group) == 0)
            return failed("became %u", id);
        setfsuid(id);
        setfsgid(id);
        if ((unsigned)setfsuid(-1) == id || (unsigned)setfsgid(-1) == id)
            return failed("file system id %u", id);
    }
    return getuid() == 1000 && geteuid() == 1000 && getgid() == 1000 ? DONE
                                                                     : failed("ids are %d %d", getuid(), getgid());
}

/* What belongs to the host's root shows as nobody's. */
static int e1_owner(void)
{
    static const char *const paths[] = {"/proc/sys/kernel/core_pattern", "/usr/bin/env", "/usr", "/proc/meminfo",
                                        "/dev/null"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct stat st;
        if (stat(paths[i], &st) < 0)
            return failed("%s: %s", paths[i], strerror(errno));
        if (st.st_uid == 0 || st.st_uid == getuid())
            return failed("%s belongs to %u inside", paths[i], st.st_uid);
    }
    return DONE;
}

/* A set-id program that took effect would not let its loader print, and would print other ids. */
static int show(const char *path)
{
    char command[600], text[8192] = "";
    snprintf(command, sizeof command, "LD_SHOW_AUXV=1 %s --help </dev/null 2>/dev/null", path);
    FILE *p = popen(command, "r");
    size_t n = p ? fread(text, 1, sizeof text - 1, p) : 0;
    text[n] = '\0';
    if (p)
        pclose(p);
    char *secure = strstr(text, "AT_SECURE:"), *euid = strstr(text, "AT_EUID:"), *egid = strstr(text, "AT_EGID:");
    if (!secure || !euid || !egid)
        return failed("%s ran as a privileged program", path);
    if (atoi(secure + 10) != 0 || atoi(euid + 8) != 1000 || atoi(egid + 8) != 1000)
        return failed("%s changed its ids", path);
    return DONE;
}
static int e2_setuid_programs(void)
{
    static const char *const dirs[] = {"/usr/bin", "/usr/sbin"};
    int seen = 0;
    for (size_t i = 0; i < COUNT(dirs); i++) {
        DIR *dir = opendir(dirs[i]);
        for (struct dirent *d; dir && (d = readdir(dir));) {
            char path[512];
            struct stat st;
            snprintf(path, sizeof path, "%s/%s", dirs[i], d->d_name);
            if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & (S_ISUID | S_ISGID)))
                continue;
            seen++;
            if (show(path))
                return FAILED;
        }
        if (dir)
            closedir(dir);
    }
    return seen ? DONE : skipped("the host has no set-id program in /usr");
}

static int e3_groups(void)
{
    gid_t list[64];
    int n = getgroups(64, list);
    return n == 0 ? DONE : failed("%d groups", n);
}

static int status_value(const char *key, unsigned long long *ret)
{
    char text[8192];
    char *at = read_text("/proc/self/status", text, sizeof text) > 0 ? strstr(text, key) : NULL;
    return at && sscanf(at + strlen(key), ":%llx", ret) == 1 ? 0 : -1;
}

static int e4_privileges(void)
{
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    for (size_t i = 0; i < COUNT(sets); i++) {
        unsigned long long bits = 1;
        if (status_value(sets[i], &bits) < 0 || bits)
            return failed("%s is %llx", sets[i], bits);
    }
    for (int cap = 0; cap < 41; cap++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0)
            return failed("privilege %d was raised", cap);
    int bits = prctl(PR_GET_SECUREBITS);        /* in a box that stays a change of ids takes privileges away: locked the other way */
    if (((bits & 0xf) != 0xf && (bits & 0xf) != 0xb) || prctl(PR_SET_SECUREBITS, 0) == 0)
        return failed("securebits are %x", bits);
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? DONE : failed("no_new_privs is off");
}

/* The runner starts px with ignored and blocked signals, a timer and an odd umask. */
static int e6_signals(void)
{
    static const char *const sets[] = {"SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"};
    for (size_t i = 0; i < COUNT(sets); i++) {
        unsigned long long bits = 1;
        if (status_value(sets[i], &bits) < 0 || bits)
            return failed("%s is %llx", sets[i], bits);
    }
    struct itimerval timer = {0};
    getitimer(ITIMER_REAL, &timer);
    if (timer.it_value.tv_sec || timer.it_value.tv_usec)
        return failed("a timer of the caller runs");
    mode_t mask = umask(0);
    return mask == 022 ? DONE : failed("umask is %o", mask);
}

static int e7_keys(void)
{
    return refused("keyctl describe", syscall(SYS_keyctl, 6, -3, 0, 0)) ||
           refused("keyctl read", syscall(SYS_keyctl, 11, -3, 0, 0)) ||
           refused("keyctl search", syscall(SYS_keyctl, 10, -3, "user", "px-attack", 0)) ||
           refused("request_key", syscall(SYS_request_key, "user", "px-attack", NULL, -3)) ||
           refused("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
}

static int crash(void)
{
    raise(SIGSEGV);
    return 0;
}
static int e8_core(void)
{
    struct rlimit limit = {1, 1};
    if (getrlimit(RLIMIT_CORE, &limit) < 0 || limit.rlim_cur || limit.rlim_max)
        return failed("core limit is %lu", (unsigned long)limit.rlim_max);
    limit.rlim_cur = limit.rlim_max = 1 << 20;
    if (setrlimit(RLIMIT_CORE, &limit) == 0)
        return failed("the core limit can be raised");
    if (chdir("/ws") < 0)
        return failed("no workspace");
    int status = in_child(crash);
    return WIFSIGNALED(status) && !WCOREDUMP(status) ? DONE : failed("a core was dumped");
}

static int e_twin(void)
{
    char word[64] = "";
    FILE *p = popen("id -un; id -gn", "r");
    size_t n = p ? fread(word, 1, sizeof word - 1, p) : 0;
    return n && strcmp(word, "sandbox\nsandbox\n") == 0 && setuid(getuid()) == 0 ? DONE
                                                                                 : failed("own names: '%s'", word);
}

static const struct row rows[] = {
    {ATTACK, "E1_map", e1_map, NULL, BARE},
    {ATTACK, "E1_map_with_bind", e1_map, "-v @WS:/ws", 0},
    {ATTACK, "E1_change", e1_change, NULL, 0},
    {ATTACK, "E1_owner", e1_owner, NULL, BARE},
    {ATTACK, "E2_setid_programs", e2_setuid_programs, NULL, BARE},
    {ATTACK, "E3_groups", e3_groups, NULL, 0},
    {ATTACK, "E4_privileges", e4_privileges, NULL, BARE},
    {ATTACK, "E6_signals", e6_signals, "@runner", 0},
    {ATTACK, "E7_keys", e7_keys, NULL, BARE},
    {ATTACK, "E8_core", e8_core, "-v @WS:/ws", 0},
    {TWIN, "E1_twin_names", e_twin, NULL, 0},
};
const struct table ids_table = {rows, COUNT(rows)};
