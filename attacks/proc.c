/* attacks/proc.c - sections B and C: /proc, the kernel's switches, other processes, pid 1 and the caller's secrets. */
#include "attack.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>

/* ---- B1, B2: switches of the kernel ---- */

static int unwritable(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return DONE;
    bool null = fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
    close(fd);
    return null ? DONE : failed("%s can be opened for writing", path);
}

int b1_core_pattern(void)
{
    static const char *const paths[] = {"/proc/sys/kernel/core_pattern",
                                        "/proc/sys/kernel/modprobe",
                                        "/proc/sys/kernel/hotplug",
                                        "/proc/sys/kernel/poweroff_cmd",
                                        "/proc/sys/fs/binfmt_misc/register",
                                        "/proc/sys/vm/panic_on_oom",
                                        "/proc/sys/kernel/sysrq",
                                        "/proc/sys/kernel/ns_last_pid",
                                        "/proc/sys/user/max_user_namespaces",
                                        "/sys/kernel/uevent_helper",
                                        "/proc/sys/kernel/hostname",
                                        "/proc/sys/net/ipv4/ip_forward",
                                        "/proc/sys/net/ipv4/ping_group_range",
                                        "/proc/sys/kernel/pid_max",
                                        "/proc/sys/kernel/shmmax"};
    for (size_t i = 0; i < COUNT(paths); i++)
        if (unwritable(paths[i]))
            return FAILED;
    return DONE;
}

/* All of /proc but the processes' own directories; nothing in it may be opened for writing. */
static int walk(const char *path, int depth, int *seen)
{
    DIR *dir = opendir(path);
    int r = DONE;
    for (struct dirent *d; dir && r == DONE && (d = readdir(dir)) && *seen < 20000;) {
        char name[1024];
        struct stat st;
        bool process = depth == 0 && ((d->d_name[0] >= '0' && d->d_name[0] <= '9') || strstr(d->d_name, "self"));
        if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") || process)
            continue;
        snprintf(name, sizeof name, "%s/%.200s", path, d->d_name);
        if (lstat(name, &st) < 0 || S_ISLNK(st.st_mode))
            continue;
        ++*seen;
        r = S_ISDIR(st.st_mode) ? (depth < 8 ? walk(name, depth + 1, seen) : DONE) : unwritable(name);
    }
    if (dir)
        closedir(dir);
    return r;
}
int b1_all_of_proc(void)
{
    int seen = 0;
    int r = walk("/proc", 0, &seen);
    return r ? r : seen > 300 ? DONE : failed("saw %d files only", seen);
}

int b1_twin(void)
{
    char text[256];
    if (read_text("/proc/sys/kernel/ostype", text, sizeof text) <= 0 || strncmp(text, "Linux", 5))
        return failed("/proc/sys cannot be read");
    int fd = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "renamed", 7) == 7 ? DONE : failed("/proc/self/comm: %s", strerror(errno));
}

int b2_sysrq(void)
{
    return unwritable("/proc/sysrq-trigger");
}

/* ---- B3 to B6, B12: what is not there ---- */

int b3_no_sysfs(void)
{
    struct statfs fs;
    DIR *dir = opendir("/sys");
    int names = 0;
    while (dir && readdir(dir))
        names++;
    if (names > 2)
        return failed("/sys has content");
    return statfs("/sys", &fs) < 0 || fs.f_type != 0x62656572 ? DONE : failed("/sys is sysfs");
}

int b4_no_cgroupfs(void)
{
    static char text[256 * 1024];
    static const char *const types[] = {" - cgroup", " - cgroup2",    " - sysfs",    " - debugfs", " - tracefs",
                                        " - bpf",    " - securityfs", " - configfs", " - fusectl"};
    if (read_text("/proc/self/mountinfo", text, sizeof text) <= 0)
        return failed("no mountinfo");
    for (size_t i = 0; i < COUNT(types); i++)
        if (strstr(text, types[i]))
            return failed("there is a mount of type%s", types[i] + 2);
    return DONE;
}

/* With a cgroup of its own the box must still see itself at the top. */
int b5_cgroup_path(void)
{
    char text[4096];
    if (read_text("/proc/self/cgroup", text, sizeof text) <= 0)
        return failed("no /proc/self/cgroup");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *path = strchr(strchr(line, ':') + 1, ':') + 1;
        if (strstr(path, "px") || strstr(path, ".."))
            return failed("the box sees the path of its cgroup: %s", line);
    }
    return DONE;
}

static bool opened_by_others(int fd, int msec)
{
    struct pollfd news = {.fd = fd, .events = POLLIN};
    return poll(&news, 1, msec) > 0;
}

/* A process of the host opens this program again and again (A_PID). */
int b8_watch_base(void)
{
    int fd = inotify_init1(IN_CLOEXEC), watch = inotify_add_watch(fd, "/usr/bin/env", IN_OPEN);
    if (fd >= 0 && watch < 0)
        return skipped("there is nothing to watch: %s", strerror(errno));
    return opened_by_others(fd, 1000) ? failed("the box sees when others open /usr/bin/env") : DONE;
}

int b8_twin(void)
{
    int fd = inotify_init1(IN_CLOEXEC), dir = inotify_add_watch(fd, ".", IN_CREATE);
    close(open("watched", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    (void)unlink("watched");
    return dir >= 0 && opened_by_others(fd, 30000) ? DONE : failed("a watch on its own directory: %s", strerror(errno));
}

/* Absent, unreadable, or empty. */
static int silent(const char *path)
{
    struct stat st;
    char byte[64];
    if (lstat(path, &st) < 0)
        return DONE;
    if (S_ISDIR(st.st_mode)) {
        DIR *dir = opendir(path);
        int names = 0;
        while (dir && readdir(dir))
            names++;
        return names <= 2 ? DONE : failed("%s has content", path);
    }
    int n = read_text(path, byte, sizeof byte);
    return n <= 0 ? DONE : failed("%s can be read", path);
}

int b6_masks(void)
{
    static const char *const names[] = {
        "kcore",      "keys",          "key-users",     "kmsg",        "kallsyms",     "kpagecgroup",
        "kpagecount", "kpageflags",    "timer_list",    "sched_debug", "interrupts",   "softirqs",
        "iomem",      "ioports",       "vmallocinfo",   "slabinfo",    "pagetypeinfo", "buddyinfo",
        "cmdline",    "config.gz",     "modules",       "partitions",  "diskstats",    "swaps",
        "consoles",   "sysrq-trigger", "latency_stats", "mtrr",        "acpi",         "scsi",
        "driver",     "tty",           "asound",        "kmem",        "bootconfig",   "sys/kernel/debug",
        "locks",      "cgroups",       "fs"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%s", names[i]);
        if (silent(path))
            return FAILED;
    }
    return DONE;
}

/* A mask is the null device itself, not something that looks empty now. */
int b10_masks(void)
{
    static const char *const files[] = {"keys", "interrupts", "modules", "diskstats", "swaps", "timer_list"};
    int seen = 0;
    for (size_t i = 0; i < COUNT(files); i++) {
        struct stat st;
        if (stat(in("/proc", files[i]), &st) < 0 || !(st.st_mode & 07))
            continue;
        if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
            return failed("/proc/%s is covered by something else than the null device", files[i]);
        seen++;
    }
    return seen ? DONE : skipped("this kernel has none of the files to look at");
}

/* Power, tables of the firmware, the hardware's names. */
int b12_firmware(void)
{
    static const char *const paths[] = {"/sys/class",   "/sys/firmware", "/sys/devices", "/sys/kernel",
                                        "/proc/acpi",   "/proc/scsi",    "/dev/mem",     "/dev/cpu",
                                        "/dev/hpet",    "/dev/nvram",    "/dev/port",    "/sys/module"};
    for (size_t i = 0; i < COUNT(paths); i++)
        if (silent(paths[i]))
            return FAILED;
    return DONE;
}

int b6_twin(void)
{
    static const char *const names[] = {"meminfo", "cpuinfo",     "stat",        "uptime",    "loadavg",
                                        "version", "filesystems", "self/status", "self/maps", "self/mountinfo"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64], byte[64];
        snprintf(path, sizeof path, "/proc/%s", names[i]);
        if (read_text(path, byte, sizeof byte) <= 0)
            return failed("%s: %s", path, strerror(errno));
    }
    return DONE;
}

int b7_kernel_log(void)
{
    char text[4096];
    return refused("syslog", klogctl(3, text, sizeof text)) || refused("syslog size", klogctl(10, NULL, 0)) ||
           silent("/dev/kmsg") || silent("/proc/kmsg");
}

/* ---- B8, B9: processes of the host ---- */

int b8_processes(void)
{
    DIR *dir = opendir("/proc");
    int r = DONE;
    for (struct dirent *d; dir && (d = readdir(dir));)
        if (d->d_name[0] >= '0' && d->d_name[0] <= '9' && atoi(d->d_name) != getpid())
            r = failed("process %s is visible", d->d_name);
    return r;
}

int b9_signal(void)
{
    int victim = atoi(argument("A_PID"));
    siginfo_t info = {.si_code = -60};
    if (victim < 10)
        return failed("no victim given");
    if (kill(victim, SIGKILL) == 0 || syscall(SYS_tkill, victim, SIGKILL) == 0 ||
        syscall(SYS_rt_sigqueueinfo, victim, SIGKILL, &info) == 0)
        return failed("signal sent to process %d", victim);
    int fd = (int)syscall(434 /* pidfd_open */, victim, 0);
    if (fd >= 0 && syscall(424 /* pidfd_send_signal */, fd, SIGKILL, NULL, 0) == 0)
        return failed("signal sent to process %d by pidfd", victim);
    return refused("ptrace", ptrace(PTRACE_ATTACH, victim, NULL, NULL)) ||
           refused("ptrace", ptrace(PTRACE_SEIZE, victim, NULL, NULL));
}

/* Our caller's process group and session are not ours. */
int b9_group(void)
{
    if (getsid(0) != getpgrp() || getsid(0) <= 1)
        return failed("session %d, group %d", getsid(0), getpgrp());
    if (getppid() > 1)
        return DONE; /* a shell of the box started us */
    return getsid(0) == getpid() ? DONE : failed("not a session of our own");
}

int b9_setns(void)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/1/ns/%s", kinds[i]);
        if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
            return failed("%s can be opened", path);
        snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (refused("setns", syscall(SYS_setns, fd, 0)))
            return FAILED;
        /* NS_GET_USERNS and NS_GET_PARENT lead upwards, PIDFD_GET_*_NAMESPACE sideways. */
        if (i != 0 && i != 2)
            continue;
        int up = ioctl(fd, 0xb702 /* NS_GET_PARENT */);
        if (up >= 0)
            return failed("the parent of the %s namespace can be had", kinds[i]);
    }
    int self = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    return ioctl(self, 0xb701 /* NS_GET_USERNS */) < 0 ? DONE : failed("the outer user namespace can be had");
}

int b9_init(void)
{
    if (!boxed())
        return failed("no pid namespace");
    static const int signals[] = {SIGKILL, SIGTERM, SIGSTOP, SIGCHLD, SIGHUP, SIGSEGV};
    for (size_t i = 0; i < COUNT(signals); i++)
        if (kill(1, signals[i]) == 0)
            return failed("signal %d sent to pid 1", signals[i]);
    int fd = (int)syscall(434 /* pidfd_open */, 1, 0);
    if (fd >= 0 && syscall(424 /* pidfd_send_signal */, fd, SIGKILL, NULL, 0) == 0)
        return failed("signal sent to pid 1 by pidfd");
    return DONE;
}

/* Calls that ask for the same id only: with a single id they would reach pid 1. Nothing here harms it at once; a box
 * that may lower the limits of its pid 1 decides how its own end is reported. */
int b9_init_limits(void)
{
    struct rlimit limit = {0};
    if (!boxed())
        return failed("no pid namespace");
    if (prlimit(1, RLIMIT_CORE, NULL, &limit) == 0 || prlimit(1, RLIMIT_CORE, &(struct rlimit){0, 0}, NULL) == 0)
        return failed("limits of pid 1 can be changed");
    return DONE;
}

static volatile sig_atomic_t got;
static void on_signal(int number)
{
    got = number;
}
int b9_twin(void)
{
    signal(SIGUSR1, on_signal);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    int status = 0;
    if (kill(getpid(), SIGUSR1) < 0 || got != SIGUSR1 || kill(child, SIGKILL) < 0 ||
        waitpid(child, &status, 0) != child)
        return failed("signals among own processes: %s", strerror(errno));
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? DONE : failed("the child ended with %x", status);
}

/* ---- C1 to C3: pid 1 ---- */

int c1_exe(void)
{
    char to[256] = "";
    for (int i = 0; i < 5; i++, usleep(10000)) /* pid 1 may still be on its way to what it will be */
        if (readlink("/proc/1/exe", to, sizeof to - 1) >= 0)
            return failed("/proc/1/exe is %s", to);
    const char *const paths[] = {"/proc/1/exe", "/proc/self/exe", in(here(), "px-attack")};
    for (size_t i = 0; i < COUNT(paths); i++)
        if (open(paths[i], O_WRONLY | O_CLOEXEC) >= 0 || open(paths[i], O_RDWR | O_CLOEXEC) >= 0)
            return failed("%s can be opened for writing", paths[i]);
    return DONE;
}

int c2_files(void)
{
    static const char *const names[] = {
        "mem",       "maps",       "environ",       "cmdline",    "auxv",      "fd",    "fd/0",    "fdinfo",
        "map_files", "cwd",        "root",          "stat",       "status",    "stack", "syscall", "pagemap",
        "task",      "task/1/mem", "oom_score_adj", "clear_refs", "mountinfo", "io",    "limits",  "personality"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/1/%s", names[i]);
        if (open(path, O_RDONLY | O_CLOEXEC) >= 0 || open(path, O_WRONLY | O_CLOEXEC) >= 0)
            return failed("%s can be opened", path);
    }
    return DONE;
}

int c2_memory(void)
{
    char byte;
    struct iovec mine = {&byte, 1}, theirs = {(void *)0x400000, 1};
    return refused("process_vm_readv", process_vm_readv(1, &mine, 1, &theirs, 1, 0)) ||
           refused("process_vm_writev", process_vm_writev(1, &mine, 1, &theirs, 1, 0)) ||
           refused("ptrace attach", ptrace(PTRACE_ATTACH, 1, NULL, NULL)) ||
           refused("ptrace seize", ptrace(PTRACE_SEIZE, 1, NULL, NULL)) ||
           refused("kcmp", syscall(SYS_kcmp, 1, getpid(), 1, 0, 0)) ||
           refused("process_madvise", syscall(440, 1, &mine, 1, 4, 0));
}

int c3_descriptors(void)
{
    int pidfd = (int)syscall(434 /* pidfd_open */, 1, 0);
    for (int fd = 0; fd < 3; fd++)
        if (refused("pidfd_getfd", syscall(438 /* pidfd_getfd */, pidfd, fd, 0)))
            return FAILED;
    for (unsigned kind = 1; kind <= 10; kind++) /* PIDFD_GET_*_NAMESPACE */
        if (pidfd >= 0 && ioctl(pidfd, _IO(0xff, kind)) >= 0)
            return failed("a namespace of pid 1 through its pidfd (%u)", kind);
    return DONE;
}

int c2_twin(void)
{
    static char here[] = "own memory";
    char text[sizeof here] = "";
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pread(fd, text, sizeof text, (off_t)(uintptr_t)here) != sizeof text || strcmp(text, here))
        return failed("own memory: %s", strerror(errno));
    return open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0 ? DONE : failed("/proc/self/fd");
}

/* ---- C4: the caller's secrets ---- */

/* The token is told with every byte one higher, so that the search does not find itself. */

static bool holds(const char *data, size_t size, const char *raised)
{
    size_t n = strlen(raised);
    for (size_t i = 0; n && i + n <= size; i++) {
        size_t k = 0;
        while (k < n && data[i + k] == (char)(raised[k] - 1))
            k++;
        if (k == n)
            return true;
    }
    return false;
}

static int search_memory(const char *raised)
{
    static char maps[256 * 1024], block[1 << 20];
    char line[512];
    if (read_text("/proc/self/maps", maps, sizeof maps) <= 0)
        return DONE; /* a tier without /proc; its environment was looked at */
    int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    for (char *p = maps; sscanf(p, "%511[^\n]", line) == 1; p += strlen(line) + 1) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx r", &from, &to) != 2)
            continue;
        for (unsigned long at = from; at < to && at - from < (64ul << 20); at += sizeof block / 2) {
            size_t want = to - at < sizeof block ? to - at : sizeof block;
            ssize_t n =
                (uintptr_t)block >= at && (uintptr_t)block < at + want ? 0 : pread(mem, block, want, (off_t)at);
            if (n > 0 && holds(block, (size_t)n, raised))
                return failed("the caller's secret is in our memory at %lx", at);
        }
        if (p[strlen(line)] == '\0')
            break;
    }
    return DONE;
}

int c4_secrets(void)
{
    static const char *const files[] = {"environ", "cmdline", "auxv", "comm", "mountinfo", "cgroup", "status"};
    static char text[1 << 20];
    const char *raised = argument("A_TOKEN");
    if (strlen(raised) < 16)
        return skipped("the caller planted no secret");
    for (int pid = 1; pid < 300; pid++)
        for (size_t i = 0; i < COUNT(files); i++) {
            char path[64];
            snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
            int n = read_text(path, text, sizeof text);
            if (n > 0 && holds(text, (size_t)n, raised))
                return failed("%s holds the caller's secret", path);
        }
    extern char **environ;
    for (char **v = environ; *v; v++)
        if (holds(*v, strlen(*v), raised))
            return failed("the caller's secret is in a variable");
    return search_memory(raised);
}

int c4_environment(void)
{
    static const char *const known[] = {"PATH=", "HOME=", "LANG=", "TERM=", "PX_SANDBOX=", "container=", "A_"};
    extern char **environ;
    for (char **v = environ; *v; v++) {
        size_t i = 0;
        while (i < COUNT(known) && strncmp(*v, known[i], strlen(known[i])))
            i++;
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*v, "="), *v);
        if (i == COUNT(known) && !told("A_NAMES", name))
            return failed("variable %s came in", *v);
    }
    return DONE;
}

int c4_twin(void)
{
    return strcmp(argument("A_GIVEN"), "value with = and  spaces") == 0
               ? DONE
               : failed("a named variable did not arrive: '%s'", argument("A_GIVEN"));
}
