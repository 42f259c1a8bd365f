/* attacks/ids.c - section E: ids, privileges, groups, signals, keyrings, core dumps. */
#include "attack.h"

#include <dirent.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
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
int e1_map(void)
{
    return no_host_zero("/proc/self/uid_map") || no_host_zero("/proc/self/gid_map");
}

static unsigned wanted_id(const char *name)
{
    return *argument(name) ? (unsigned)atoi(argument(name)) : 1000;
}

int e1_change(void)
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
    unsigned uid = wanted_id("A_UID"), gid = wanted_id("A_GID");
    return getuid() == uid && geteuid() == uid && getgid() == gid ? DONE : failed("ids are %d %d", getuid(), getgid());
}

/* Files of the host's root show as nobody's; files of another root are the caller's. */
int e1_owner(void)
{
    static const char *const paths[] = {"/usr", "/proc/sys/kernel/core_pattern", "/usr/bin/env", "/proc/meminfo", "/dev/null"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct stat st;
        if (!host_base() && strncmp(paths[i], "/usr", 4) == 0)
            continue;
        if (stat(paths[i], &st) < 0)
            return failed("%s: %s", paths[i], strerror(errno));
        if (st.st_uid == 0 || st.st_uid == getuid())
            return failed("%s belongs to %u inside", paths[i], st.st_uid);
    }
    return DONE;
}

/* Its loader's words, as long as it takes to read them; some of these programs then wait for a while. */
static void first_words(const char *path, char *out, size_t size)
{
    int ends[2];
    size_t have = 0;
    out[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        char *const argv[] = {(char *)path, (char *)"--help", NULL}, *const environment[] = {(char *)"LD_SHOW_AUXV=1", NULL};
        dup2(open("/dev/null", O_RDWR), 0);
        dup2(ends[1], 1);
        dup2(0, 2);
        execve(path, argv, environment);
        _exit(99);
    }
    close(ends[1]);
    for (ssize_t n; have + 1 < size && (n = read(ends[0], out + have, size - 1 - have)) > 0;) {
        out[have += (size_t)n] = '\0';
        if (strstr(out, "AT_SECURE:") && strstr(out, "AT_EUID:") && strstr(out, "AT_EGID:") && strstr(out, "AT_EXECFN:"))
            break;
    }
    close(ends[0]);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A set-id program that took effect would not let its loader print, and would print other ids. */
static int show(const char *path)
{
    char text[8192];
    first_words(path, text, sizeof text);
    char *secure = strstr(text, "AT_SECURE:"), *euid = strstr(text, "AT_EUID:"), *egid = strstr(text, "AT_EGID:");
    if (!secure || !euid || !egid)
        return failed("%s ran as a privileged program", path);
    if (atoi(secure + 10) != 0 || (unsigned)atoi(euid + 8) != getuid() || (unsigned)atoi(egid + 8) != getgid())
        return failed("%s changed its ids", path);
    return DONE;
}
int e2_setuid_programs(void)
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

int e2_no_new_privs(void)
{
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return failed("no_new_privs is off");
    return prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) < 0 ? DONE : failed("no_new_privs can be taken back");
}

int e3_groups(void)
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

int e4_privileges(void)
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
    return DONE;
}

/* A uid 0, should one ever be had, gains nothing by it. */
int e4_securebits(void)
{
    int bits = prctl(PR_GET_SECUREBITS);        /* in a box that stays a change of ids takes privileges away: locked the other way */
    return ((bits & 0xf) == 0xf || (bits & 0xf) == 0xb) && prctl(PR_SET_SECUREBITS, 0) < 0 ? DONE : failed("securebits are %x", bits);
}

/* The runner starts px with ignored and blocked signals, a timer and an odd umask. */
int e6_signals(void)
{
    sigset_t blocked, pending;
    if (sigprocmask(SIG_SETMASK, NULL, &blocked) < 0 || sigpending(&pending) < 0)
        return failed("signals cannot be asked for");
    for (int number = 1; number < 65; number++) {
        struct sigaction now = {0};
        if (number == 32 || number == 33) /* the C library's own */
            continue;
        if (sigismember(&blocked, number) || sigismember(&pending, number))
            return failed("signal %d is blocked or pending", number);
        if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL)
            return failed("signal %d is ignored", number);
    }
    struct itimerval timer = {0};
    getitimer(ITIMER_REAL, &timer);
    if (timer.it_value.tv_sec || timer.it_value.tv_usec)
        return failed("a timer of the caller runs");
    mode_t mask = umask(0);
    return mask == 022 ? DONE : failed("umask is %o", mask);
}

int e7_keys(void)
{
    return refused("keyctl describe", syscall(SYS_keyctl, 6, -3, 0, 0)) ||
           refused("keyctl read", syscall(SYS_keyctl, 11, -3, 0, 0)) ||
           refused("keyctl search", syscall(SYS_keyctl, 10, -3, "user", "px-attack", 0)) ||
           refused("request_key", syscall(SYS_request_key, "user", "px-attack", NULL, -3)) ||
           refused("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
}

/* A key of the caller, by its name: it must not be readable, whichever layer refuses it. */
int e7_keyring(void)
{
    if (!*argument("A_KEYNAME"))
        return skipped("the caller could not plant a key");
    long key = syscall(SYS_keyctl, 10 /* KEYCTL_SEARCH */, -3 /* session */, "user", argument("A_KEYNAME"), 0);
    if (key >= 0)
        return failed("the caller's key is in reach: %ld", key);
    key = syscall(SYS_request_key, "user", argument("A_KEYNAME"), NULL, 0);
    return key < 0 ? DONE : failed("the caller's key was given out: %ld", key);
}

static int crash(void)
{
    raise(SIGSEGV);
    return 0;
}

/* With 1, and no other number, a crash starts no handler of the host's. */
static int core_limit(const char *after)
{
    struct rlimit limit = {0};
    if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 1 && limit.rlim_max == 1)
        return DONE;
    if (limit.rlim_max == 0 && strcmp(argument("A_CORE"), "0") == 0)
        return skipped("the caller's own hard limit is 0, which px could not raise");
    return failed("the core limit is %lu%s", (unsigned long)limit.rlim_cur, after);
}

int e8_core(void)
{
    int limited = core_limit("");
    if (limited != DONE)
        return limited;
    if (chdir(workspace()) < 0)
        return failed("no workspace");
    int status = in_child(crash);
    return WIFSIGNALED(status) && !WCOREDUMP(status) ? DONE : failed("a core was dumped");
}

/* Lower, higher, by both calls, with bits that the kernel ignores, from an address whose lower half is 0. */
int e8_core_limit(void)
{
    static const struct rlimit limits[] = {{0, 1}, {0, 0}, {1 << 20, 1 << 20}, {RLIM_INFINITY, RLIM_INFINITY}};
    const unsigned long high = 1ul << 32;
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    struct rlimit old, *far = mmap((void *)high, 4096, PROT_READ | PROT_WRITE, how, -1, 0);
    int limited = core_limit(" from the start");
    if (limited != DONE)
        return limited;
    for (size_t i = 0; i < COUNT(limits); i++) {
        (void)syscall(SYS_setrlimit, RLIMIT_CORE, &limits[i]);
        (void)syscall(SYS_setrlimit, RLIMIT_CORE | high, &limits[i]);
        (void)syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limits[i], NULL);
        (void)syscall(SYS_prlimit64, high, RLIMIT_CORE | high, &limits[i], &old);
        (void)syscall(SYS_prlimit64, getpid(), RLIMIT_CORE, &limits[i], NULL);
        if (far != MAP_FAILED) {
            *far = limits[i];
            (void)syscall(SYS_prlimit64, 0, RLIMIT_CORE, far, NULL);
        }
        if (core_limit(" now: it can be changed"))
            return FAILED;
    }
    return DONE;
}

/* Other limits can be lowered, and who wants no core of itself is told that there will be none. */
int e8_twin(void)
{
    struct rlimit limit = {0};
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || (limit.rlim_cur = 32, setrlimit(RLIMIT_NOFILE, &limit)) < 0)
        return failed("the number of files cannot be lowered: %s", strerror(errno));
    limit.rlim_cur = limit.rlim_max = 0;
    return setrlimit(RLIMIT_CORE, &limit) == 0 && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0
               ? DONE : failed("a program that wants no core cannot go on: %s", strerror(errno));
}

int e_twin(void)
{
    char word[64] = "";
    FILE *p = popen("id -un; id -gn", "r");
    size_t n = p ? fread(word, 1, sizeof word - 1, p) : 0;
    return n && strcmp(word, "sandbox\nsandbox\n") == 0 && setuid(getuid()) == 0 ? DONE
                                                                                 : failed("own names: '%s'", word);
}
