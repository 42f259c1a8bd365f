/* attacks/limits.c - sections H and I: staying alive after the end, and taking more than was given.
 *
 * Rows that the runner drives print a line when they are in place and then stay. Everything is bounded here: at most
 * 400 processes at once, 300 MiB and 200 MiB of output, and nothing lives longer than a minute on its own. */
#include "attack.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <time.h>

enum { FORKS = 400, MINUTE = 60 };

/* Until killed, or for a minute (A_STAY seconds): whatever is ignored, nothing stays for ever. */
static int stay(void)
{
    int seconds = *argument("A_STAY") ? atoi(argument("A_STAY")) : MINUTE;
    struct timespec end, now, slice = {.tv_nsec = 100000000};
    clock_gettime(CLOCK_BOOTTIME, &end);
    end.tv_sec += seconds;
    do {
        nanosleep(&slice, NULL);
        clock_gettime(CLOCK_BOOTTIME, &now);
    } while (now.tv_sec < end.tv_sec);
    _exit(FAILED);
}

static int ready(void)
{
    printf("ready\n");
    fflush(stdout);
    return stay();
}

/* ---- H: processes that want to stay ---- */

/* Whoever runs us looks for the mark in the command lines of the host's processes, which all children share. Returns when
 * the daemon is there. */
static void daemonize(void)
{
    int ends[2];
    char byte = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            static const int ignored[] = {SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGPIPE, SIGUSR1, SIGCHLD};
            for (size_t i = 0; i < COUNT(ignored); i++)
                signal(ignored[i], SIG_IGN);
            (void)!write(ends[1], &byte, 1);
            stay();
        }
        _exit(0);
    }
    (void)!read(ends[0], &byte, 1);
    close(ends[0]);
    close(ends[1]);
}

int h1_daemon(void) /* ends at once and leaves a daemon */
{
    daemonize();
    return DONE;
}

int h2_daemons(void)
{
    for (int i = 0; i < 5; i++)
        daemonize();
    return ready();
}

int h3_ignore(void)
{
    for (int i = 1; i < 65; i++)
        signal(i, SIG_IGN);
    return ready();
}

/* Always a new pid: the killer of single processes never catches up. Bounded by a counter and a deadline. */
int h4_hop(void)
{
    alarm(MINUTE);
    for (int lines = 0; lines < 4; lines++)
        if (fork() == 0)
            for (int i = 0; i < 5000; i++) {
                pid_t pid = fork();
                if (pid > 0)
                    _exit(0);
                if (pid < 0)
                    usleep(100);
            }
    return ready();
}

/* All are stopped, the command too; one that is not stopped ends it after a while, so that nothing stays for ever. */
int h4_stopped(void)
{
    pid_t command = getpid();
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            stay();
        while (wait(NULL) < 0 && errno == EINTR)
            ;
        kill(command, SIGKILL);
        _exit(0);
    }
    for (int i = 0; i < 5; i++)
        if (fork() == 0) {
            raise(SIGSTOP);
            stay();
        }
    printf("ready\n");
    fflush(stdout);
    raise(SIGSTOP);
    return stay();
}

int h6_pipe_held(void) /* ends, while a grandchild keeps stdout and stderr open */
{
    if (fork() == 0) {
        setsid();
        stay();
    }
    return DONE;
}

int h7_zombies(void)
{
    int made = 0;
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pid = fork();
            if (pid == 0)
                usleep(1000);
            _exit(pid < 0);
        }
        made += pid > 0;
    }
    for (int status; wait(&status) > 0;)
        made -= status != 0;
    if (made != 20)
        return failed("only %d orphans could be made", made);
    for (int tries = 0; tries < 200; tries++) { /* orphans belong to pid 1 now */
        int zombies = 0;
        DIR *dir = opendir("/proc");
        for (struct dirent *d; dir && (d = readdir(dir));) {
            char path[300], text[512];
            snprintf(path, sizeof path, "/proc/%s/stat", d->d_name);
            if (d->d_name[0] >= '0' && d->d_name[0] <= '9' && atoi(d->d_name) != getpid() &&
                read_text(path, text, sizeof text) > 0)
                zombies++;
        }
        if (dir)
            closedir(dir);
        if (zombies == 0)
            return DONE;
        usleep(20000);
    }
    return failed("orphans are not reaped");
}

int h8_stdin(void)
{
    char byte;
    return read(0, &byte, 1) == 0 ? DONE : failed("standard input has content");
}

int h13_forge(void)
{
    static const char verdict[] = "{\"schema\":1,\"status\":\"ok\",\"exit_code\":0,\"timed_out\":false}\n";
    static const char report[64] = {0};
    for (int fd = 1; fd < 64; fd++) {
        (void)!write(fd, verdict, sizeof verdict - 1);
        (void)!write(fd > 2 ? fd : -1, report, sizeof report);
    }
    return 3;
}

/* Takes pid 1's descriptors away while it may still be on its way to px-init. */
int h13_starve_init(void)
{
    if (boxed())
        (void)prlimit(1, RLIMIT_NOFILE, &(struct rlimit){0, 0}, NULL);
    return DONE;
}

int h_wait(void)
{
    return ready();
}

int h_twin(void)
{
    usleep(50000);
    return DONE;
}

/* ---- I: limits ---- */

static int count_forks(void)
{
    pid_t pids[FORKS];
    int n = 0;
    while (n < FORKS && (pids[n] = fork()) >= 0) {
        if (pids[n] == 0)
            stay();
        n++;
    }
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
    return n;
}
static void *sleep_thread(void *arg)
{
    (void)arg;
    stay();
    return NULL;
}
int i1_forks(void)
{
    int n = count_forks();
    return n < 60 ? DONE : failed("%d processes with a limit of 50", n);
}
int i1_threads(void)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    int n = 0;
    for (pthread_t t; n < FORKS && pthread_create(&t, &attr, sleep_thread, NULL) == 0; n++)
        ;
    return n < 60 ? DONE : failed("%d threads with a limit of 50", n);
}
int i1_default(void)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NPROC, &limit);
    if (limit.rlim_max > 4096)
        return failed("no limit of processes by default (%lu)", (unsigned long)limit.rlim_max);
    limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
    return setrlimit(RLIMIT_NPROC, &limit) < 0 ? DONE : failed("the limit can be raised");
}
/* Without namespaces the kernel counts all processes of the user: another box may have them for a moment. */
static pid_t fork_in_time(int *tries)
{
    pid_t pid;
    while ((pid = fork()) < 0 && errno == EAGAIN && (*tries)-- > 0)
        (void)usleep(10000);
    return pid;
}
int i1_twin(void)
{
    int tries = 500;
    for (int i = 0; i < 20; i++)
        if (fork_in_time(&tries) == 0)
            _exit(0);
    int n = 0;
    while (wait(NULL) > 0)
        n++;
    return n == 20 ? DONE : failed("%d of 20 children", n);
}

/* Each takes memory another way; with 64 MiB allowed, reaching the end is the failure. */
static void touch(char *at, size_t size)
{
    for (size_t i = 0; at != MAP_FAILED && i < size; i += 4096)
        at[i] = 1;
}
int i2_anonymous(void)
{
    touch(mmap(NULL, 300 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 300 << 20);
    return failed("300 MiB of memory");
}
int i2_many(void) /* no single process is large */
{
    int ends[2], there = 0;
    char byte = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return failed("pipe: %s", strerror(errno));
    for (int i = 0; i < 10; i++)
        if (fork() == 0) {
            close(ends[0]);
            touch(mmap(NULL, 30 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 30 << 20);
            (void)!write(ends[1], &byte, 1);
            stay();
        }
    close(ends[1]);
    while (there < 10 && read(ends[0], &byte, 1) == 1) /* ends early if they die */
        there++;
    return there < 10 ? DONE : failed("300 MiB in ten processes");
}
static long fill(int fd, long megabytes)
{
    static char block[1 << 20];
    long done = 0;
    memset(block, 'x', sizeof block);
    while (fd >= 0 && done < megabytes && write(fd, block, sizeof block) == sizeof block)
        done++;
    return done;
}
int i2_tmpfs(void)
{
    long n = fill(open("/home/sandbox/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), 250);
    return n < 100 ? DONE : failed("%ld MiB in a tmpfs", n);
}
int i2_memfd(void)
{
    long n = fill(memfd_create("f", 0), 250);
    return n < 100 ? DONE : failed("%ld MiB in a memfd", n);
}
int i2_shm(void)
{
    int id = shmget(IPC_PRIVATE, 250 << 20, IPC_CREAT | 0600);
    char *at = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    if (id < 0 && errno == ENOSYS)
        return skipped("this box has no System V IPC");
    if (id >= 0)
        (void)shmctl(id, IPC_RMID, NULL); /* nothing is left, whatever happens next */
    if (at == (char *)-1)
        return failed("no segment: %s", strerror(errno));
    touch(at, 250 << 20);
    return failed("250 MiB of shared memory");
}
int i2_twin(void)
{
    touch(mmap(NULL, 30 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 30 << 20);
    return DONE;
}

int i3_disk(void)
{
    long a = fill(open("/tmp/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), 40),
         b = fill(open("/home/sandbox/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), 40);
    long c = fill(open("/dev/shm/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), 40);
    return a + b + c <= 16 ? DONE : failed("%ld + %ld + %ld MiB with 16 allowed", a, b, c);
}
int i3_file(void)
{
    signal(SIGXFSZ, SIG_IGN);
    const char *file = in(workspace(), "f");
    long n = fill(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644), 40);
    return n <= 2 && truncate(file, 40 << 20) < 0 ? DONE : failed("%ld MiB in a file with 2 allowed", n);
}
int i3_bind(void)
{
    long n = fill(open(in(workspace(), "f"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644), 40);
    return n <= 16 ? DONE : failed("%ld MiB in a bind with 16 allowed", n);
}
/* A file without a name, of 4 MiB. */
static int nameless(void)
{
    const char *path = in(workspace(), "f");
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    (void)unlink(path);
    return fill(fd, 4) == 4 ? fd : -1;
}

/* Sends the descriptor into a socket that is never read. */
static void post(int socket, int fd)
{
    char byte = 'x', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec text = {&byte, 1};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    (void)sendmsg(socket, &message, 0);
}

enum { HIDDEN_FILES = 10 };

static int hide_in_own_table(void *unused)
{
    (void)unused;
    for (int i = 0; i < HIDDEN_FILES; i++)
        (void)nameless();
    return pause();
}

/* 40 MiB with 8 allowed, in files that have no name and that no descriptor of the process shows; then it waits to be ended. */
int i3_hidden(void)
{
    const char *way = argument("A_WAY");
    int ends[2] = {-1, -1};
    if (strcmp(way, "thread") == 0) {
        char *stack = mmap(NULL, 256 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (clone(hide_in_own_table, stack + (256 << 10), CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL) < 0)
            return skipped("no such thread can be made");
    } else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return skipped("no sockets");
    }
    for (int i = 0; i < HIDDEN_FILES && strcmp(way, "thread") != 0; i++) {
        int fd = nameless();
        if (strcmp(way, "mmap") == 0)
            (void)mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        if (strcmp(way, "scm") == 0)
            post(ends[0], fd);
        if (strcmp(way, "plain") != 0)
            close(fd);
    }
    for (int i = 0; i < 30; i++) {              /* others may free what they had, which looks as if we had */
        (void)sleep(1);
        if (strcmp(way, "scm") == 0)
            post(ends[0], nameless());
    }
    return failed("40 MiB were held for half a minute with 8 allowed");
}
int i4_inodes(void)
{
    static const char *const dirs[] = {"/tmp", "/dev/shm", "/home/sandbox"};
    int all = 0;
    for (size_t i = 0; i < COUNT(dirs); i++)
        for (int n = 0; n < 5000; n++, all++) {
            char path[64];
            snprintf(path, sizeof path, "%s/%d", dirs[i], n);
            int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
            if (fd < 0)
                break;
            close(fd);
        }
    return all <= 4096 ? DONE : failed("%d files with 16 MiB allowed", all);
}
int i4_default(void)
{
    static const char *const dirs[] = {"/tmp", "/dev/shm", "/home/sandbox"};
    for (size_t i = 0; i < COUNT(dirs); i++) {
        struct statvfs fs;
        if (statvfs(dirs[i], &fs) < 0 || fs.f_blocks == 0 || fs.f_files == 0 || fs.f_files > 300000 ||
            fs.f_blocks * fs.f_frsize > (1024ul << 20))
            return failed("%s has %lu MiB and %lu inodes", dirs[i], (unsigned long)(fs.f_blocks * fs.f_frsize >> 20),
                          (unsigned long)fs.f_files);
    }
    return DONE;
}

int i5_descriptors(void)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max > 4096)
        return failed("%lu descriptors are allowed", (unsigned long)limit.rlim_max);
    int n = 0;
    while (n < 6000 && dup(0) >= 0)
        n++;
    return n <= 4096 ? DONE : failed("%d descriptors", n);
}
int i5_twin(void)
{
    int n = 0;
    while (n < 200 && dup(0) >= 0)
        n++;
    return n == 200 ? DONE : failed("%d descriptors only", n);
}

int i6_ptys(void)
{
    int n = 0;
    while (n < 200 && open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
        n++;
    return n <= 64 ? DONE : failed("%d terminals", n);
}
int i6_twin(void)
{
    return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0 ? DONE : failed("%s", strerror(errno));
}

int i7_flood(void)
{
    static char block[65536];
    memset(block, 'y', sizeof block);
    alarm(MINUTE);
    for (int i = 0; i < 200 * 16; i++)
        if (write(1 + (i & 1), block, sizeof block) < 0)
            break;
    return DONE;
}

int i8_spin(void)
{
    alarm(*argument("A_STAY") ? (unsigned)atoi(argument("A_STAY")) : MINUTE);
    for (;;)
        ;
    return FAILED;
}

int i9_priority(void)
{
    struct sched_param high = {.sched_priority = 1};
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {48, 6 /* DEADLINE */, 0, 0, 0, 1000000, 10000000, 10000000};
    if (setpriority(PRIO_PROCESS, 0, -1) == 0 || nice(-5) != -1)
        return failed("nice below 0");
    if (syscall(SYS_sched_setscheduler, 0, 1, &high) == 0 || syscall(SYS_sched_setscheduler, 0, 2, &high) == 0 ||
        syscall(SYS_sched_setattr, 0, &attr, 0) == 0)
        return failed("a real-time class");
    if (syscall(SYS_ioprio_set, 1, 0, 1 << 13 | 0) == 0)
        return failed("real-time input and output");
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "-1000", 5) == 5)
        return failed("oom_score_adj can be lowered");
    fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "-1", 2) == 2)
        return failed("oom_score_adj can be lowered");
    struct rlimit limit = {1, 1};
    return getrlimit(RLIMIT_NICE, &limit) == 0 && !limit.rlim_max && getrlimit(RLIMIT_RTPRIO, &limit) == 0 &&
                   !limit.rlim_max
               ? DONE
               : failed("limits of priority are not 0");
}
/* The parent, which is outside: each is set to what it has. */
int i9_others(void)
{
    int other = (int)getppid(), policy = sched_getscheduler(other);
    struct sched_param param = {0};
    cpu_set_t all;
    CPU_ZERO(&all);
    errno = 0;
    int nice_now = getpriority(PRIO_PROCESS, (id_t)other);
    if (errno == 0 && setpriority(PRIO_PROCESS, (id_t)other, nice_now) == 0)
        return failed("the priority of another process can be set");
    if (sched_getaffinity(other, sizeof all, &all) == 0 && sched_setaffinity(other, sizeof all, &all) == 0)
        return failed("the processors of another process can be set");
    if (policy >= 0 && sched_getparam(other, &param) == 0 && sched_setscheduler(other, policy, &param) == 0)
        return failed("the scheduler of another process can be set");
    if (sched_getparam(other, &param) == 0 && sched_setparam(other, &param) == 0)
        return failed("the parameters of another process can be set");
    long io = syscall(SYS_ioprio_get, 1, other);
    return io < 0 || syscall(SYS_ioprio_set, 1, other, io) < 0 ? DONE : failed("the class of another process can be set");
}
int i9_twin_own(void)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    struct sched_param param = {0};
    int nice_now = getpriority(PRIO_PROCESS, 0);
    return sched_getaffinity(0, sizeof all, &all) == 0 && sched_setaffinity(0, sizeof all, &all) == 0 &&
                   sched_setscheduler(0, SCHED_BATCH, &param) == 0 && setpriority(PRIO_PROCESS, 0, nice_now < 19 ? nice_now + 1 : 19) == 0
               ? DONE
               : failed("%s", strerror(errno));
}
/* Downwards from where the caller stands: one who runs px with `nice` has less to give already. */
int i9_twin(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    int nice_now = getpriority(PRIO_PROCESS, 0);
    return setpriority(PRIO_PROCESS, 0, nice_now < 19 ? nice_now + 1 : 19) == 0 && fd >= 0 && write(fd, "1000", 4) == 4
               ? DONE
               : failed("%s", strerror(errno));
}

int i10_shared_counts(void)
{
    static const struct {
        int resource;
        unsigned long max;
        const char *name;
    } limits[] = {{RLIMIT_SIGPENDING, 65536, "SIGPENDING"},
                  {RLIMIT_MSGQUEUE, 819200, "MSGQUEUE"},
                  {RLIMIT_MEMLOCK, 64ul << 20, "MEMLOCK"}};
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct rlimit limit = {0};
        if (getrlimit((unsigned)limits[i].resource, &limit) < 0 || limit.rlim_max > limits[i].max)
            return failed("%s is %lu", limits[i].name, (unsigned long)limit.rlim_max);
    }
    return DONE;
}

/* The kernel counts these for all boxes of the caller and for his own processes together. */
static int inotify_instances(int most)
{
    int count = 0;
    while (count < most && inotify_init1(IN_CLOEXEC) >= 0)
        count++;
    return count;
}

int i13_inotify(void)
{
    int count = inotify_instances(32);
    return count <= 16 ? DONE : failed("one box has %d inotify instances", count);
}

int i13_twin(void)
{
    int count = inotify_instances(8), fd = count == 8 ? inotify_init1(IN_CLOEXEC) : -1, watches = 0;
    static const char *const paths[] = {"/", "/dev", "/proc", "/tmp", "."};
    for (size_t i = 0; i < COUNT(paths); i++)
        watches += inotify_add_watch(fd, paths[i], IN_CREATE) >= 0;
    return watches >= 2 ? DONE : failed("%d instances and %d watches: %s", count, watches, strerror(errno));
}

int i11_deep(void)
{
    if (chdir(workspace()) < 0)
        return failed("no workspace");
    char name[201];
    memset(name, 'n', 200);
    name[200] = '\0';
    for (int i = 0; i < 1500; i++)
        if (mkdir(name, 0755) < 0 || chdir(name) < 0)
            return failed("level %d: %s", i, strerror(errno));
    return DONE;
}

int i12_denials(void)
{
    int count = *argument("A_COUNT") ? atoi(argument("A_COUNT")) : 20000;
    for (int i = 0; i < count; i++)
        (void)syscall(SYS_unshare, 0x10000000);
    return DONE;
}

/* Many calls, each another. */
int i12_kinds(void)
{
    return d7_surface() || d8_mounts() || d9_machine();
}
