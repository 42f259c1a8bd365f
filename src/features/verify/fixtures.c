/* Files, processes and sockets of the host that the boxes of a verification must not reach. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/node.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/copy.h"
#include "kernel/pidfd.h"
#include "kernel/tree.h"
#include "verify/verify.h"

/* Directories that a box has itself and whose host content it must not see. */
static const char *const shared[] = {"/tmp", "/var/tmp", "/dev/shm"};
static const char secret_text[] = "a secret of the host\n";
enum { SESSION_KEYRING = -3, KEYCTL_UNLINK = 9, MOMENT_MSEC = 10 };

/* ---- files ---- */

int px_fixtures_put(int dir, const char *name, const char *text, mode_t mode)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    int r = px_write_full(fd, text, strlen(text));
    return r < 0 ? r : fchmod(fd, mode) < 0 ? -errno : 0;
}

int px_fixtures_put_dir(int dir, const char *name)
{
    if (mkdirat(dir, name, 0755) < 0)
        return -errno;
    return px_node_chmod_at(dir, name, S_IFDIR, 0755);
}

/* Uses a copy: a broken box could change it, and px-attack must stay intact. */
static int copy_program(int top, const char *from)
{
    px_auto_fd int in = open(from, O_RDONLY | O_CLOEXEC);
    px_auto_fd int out = openat(top, "bin/px-attack", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    int r = in < 0 || out < 0 ? -errno : px_copy_file(in, out);
    return r < 0 ? r : fchmod(out, 0755) < 0 ? -errno : 0;
}

/* For the self-test: programs that print a refusal and succeed, a shell that only echoes, an empty root. */
static int make_stand_ins(int top)
{
    static const char *const dirs[] = {"fake", "echo", "other", "other/sys", "other/sys/kernel", "other/sys/kernel/debug"};
    static const char *const names[] = {"sudo", "su", "id", "whoami", "python3", "bash", "git", "jq", "curl"};
    static const struct {
        const char *name, *text;
        mode_t mode;
    } files[] = {
        {"fake/no", "#!/bin/sh\necho no\n", 0755},
        {"echo/sh", "#!/bin/echo\n", 0755},
        {"passwd", "stranger:x:1000:1000::/:/bin/sh\n", 0644},
        {"resolv.conf", "nameserver 192.0.2.53\n", 0644},
        {"input", "content of the host\n", 0644},
    };
    int r = 0;
    for (size_t i = 0; r >= 0 && i < PX_COUNT_OF(dirs); i++)
        r = px_fixtures_put_dir(top, dirs[i]);
    for (size_t i = 0; r >= 0 && i < PX_COUNT_OF(files); i++)
        r = px_fixtures_put(top, files[i].name, files[i].text, files[i].mode);
    for (size_t i = 0; r >= 0 && i < PX_COUNT_OF(names); i++) {
        char path[64];
        r = px_fmt(path, sizeof path, "fake/%s", names[i]);
        if (r >= 0 && symlinkat("no", top, path) < 0)
            r = -errno;
    }
    return r;
}

static int make_files(struct px_fixtures *f, const char *attack)
{
    int r = px_fixtures_put_dir(f->top_fd, "bin");
    if (r >= 0)
        r = copy_program(f->top_fd, attack);
    if (r >= 0)
        r = px_fixtures_put(f->top_fd, "bin/sacrifice", "x", 0644);
    if (r >= 0)
        r = px_fixtures_put(f->top_fd, "secret", secret_text, 0644);
    if (r >= 0)
        r = make_stand_ins(f->top_fd);
    if (r >= 0)
        r = px_fixtures_put_dir(f->top_fd, "marks");       /* stands in for a host's /tmp that a box should not see */
    char path[64];
    if (r >= 0 && (r = px_fmt(path, sizeof path, "marks/%s", f->mark)) >= 0)
        r = px_fixtures_put(f->top_fd, path, "x", 0644);
    for (size_t i = 0; r >= 0 && i < PX_COUNT_OF(shared); i++) {
        r = px_fmt(path, sizeof path, "%s/%s", shared[i], f->mark);
        if (r >= 0)
            r = px_fixtures_put(AT_FDCWD, path, "x", 0644);
        r = r == -ENOENT || r == -EACCES || r == -EROFS ? 0 : r;       /* not every host has all three */
    }
    if (r >= 0 && geteuid() == 0 && px_fixtures_put_dir(f->top_fd, "device") >= 0)
        f->has_device = mknodat(f->top_fd, "device/zero", S_IFCHR | 0666, makedev(1, 5)) == 0 &&
                        px_node_chmod_at(f->top_fd, "device/zero", S_IFCHR, 0666) == 0;
    return r;
}

/* ---- sockets, IPC, a terminal, a key ---- */

static struct sockaddr_in loopback(unsigned port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
}

static int bind_inet(int type, unsigned *port)
{
    struct sockaddr_in at = loopback(*port);
    socklen_t len = sizeof at;
    px_auto_fd int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0 ||
        (type == SOCK_STREAM && listen(fd, 16) < 0))
        return -errno;
    *port = ntohs(at.sin_port);
    return px_fd_take(&fd);
}

static int bind_unix(const char *name, bool abstract)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    if (n + 2 > sizeof at.sun_path)
        return -ENAMETOOLONG;
    memcpy(at.sun_path + abstract, name, n);
    px_auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 16) < 0)
        return -errno;
    return px_fd_take(&fd);
}

static int make_sockets(struct px_fixtures *f)
{
    for (int tries = 0; tries < 16 && f->udp < 0; tries++) {           /* one number that is free for both */
        f->tcp = px_fd_close(f->tcp);
        f->port = 0;
        f->tcp = bind_inet(SOCK_STREAM, &f->port);
        if (f->tcp < 0)
            return f->tcp;
        f->udp = bind_inet(SOCK_DGRAM, &f->port);
    }
    int free_one = bind_inet(SOCK_STREAM, &f->free_port);
    (void)px_fd_close(free_one);
    char path[220];
    int r = f->udp < 0 ? f->udp : px_fmt(path, sizeof path, "%s/socket", f->top);
    f->path_socket = r < 0 ? r : bind_unix(path, false);
    r = f->path_socket < 0 ? 0 : px_node_chmod_at(f->top_fd, "socket", S_IFSOCK, 0777);
    if (r < 0)
        return r;
    f->abstract = f->path_socket < 0 ? f->path_socket : bind_unix(f->mark, true);
    return f->abstract < 0 ? f->abstract : 0;
}

/* Skips fixtures that this host or caller does not allow, and their rows. */
static void make_others(struct px_fixtures *f)
{
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof random, 0);
    f->key = (int)(random % 0x3fffffff) + 1;
    f->shm = shmget(f->key, 4096, IPC_CREAT | IPC_EXCL | 0666);
    f->msg = msgget(f->key, IPC_CREAT | IPC_EXCL | 0666);
    f->sem = semget(f->key, 1, IPC_CREAT | IPC_EXCL | 0666);
    int queue = (int)px_sys(SYS_mq_open, f->queue, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666, NULL);
    f->has_queue = queue >= 0;
    (void)px_fd_close(queue);
    f->terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (f->terminal >= 0)
        (void)unlockpt(f->terminal);
    f->planted = px_sys(SYS_add_key, "user", f->mark, "x", 1, SESSION_KEYRING);
    /* Two descriptors without O_CLOEXEC on purpose: a box must still not inherit them. */
    f->leaked = open(f->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)fcntl(f->leaked, F_SETFD, 0);
    (void)fcntl(f->path_socket, F_SETFD, 0);
}

/* ---- removing ---- */

static void remove_objects(struct px_fixtures *f)
{
    if (f->shm >= 0)
        (void)shmctl(f->shm, IPC_RMID, NULL);
    if (f->msg >= 0)
        (void)msgctl(f->msg, IPC_RMID, NULL);
    if (f->sem >= 0)
        (void)semctl(f->sem, 0, IPC_RMID);
    f->shm = f->msg = f->sem = -1;
    if (f->has_queue)
        (void)px_sys(SYS_mq_unlink, f->queue);
    f->has_queue = false;
    if (f->planted >= 0)
        (void)px_sys(SYS_keyctl, KEYCTL_UNLINK, f->planted, SESSION_KEYRING, 0, 0);
    f->planted = -1;
}

static void remove_files(struct px_fixtures *f)
{
    for (size_t i = 0; *f->mark && i < PX_COUNT_OF(shared); i++) {
        char path[64];
        if (px_fmt(path, sizeof path, "%s/%s", shared[i], f->mark) >= 0)
            (void)unlink(path);
        if (px_fmt(path, sizeof path, "%s/inside-%s", shared[i], f->mark) >= 0)       /* of a box that could */
            (void)unlink(path);
    }
    if (*f->top && f->top_fd >= 0 && px_kernel_tree_empty(f->top_fd) == 0)
        (void)rmdir(f->top);
    *f->top = *f->mark = '\0';
}

void px_fixtures_remove(struct px_fixtures *f)
{
    remove_objects(f);
    remove_files(f);
    if (f->victim_fd >= 0) {
        int status;
        (void)px_pidfd_signal(f->victim_fd, SIGKILL);
        (void)px_pidfd_wait(f->victim_fd, false, &status, NULL);
    }
    int *const fds[] = {&f->victim_fd, &f->life, &f->leaked, &f->terminal, &f->abstract, &f->path_socket, &f->udp, &f->tcp,
                        &f->top_fd};
    for (size_t i = 0; i < PX_COUNT_OF(fds); i++)
        *fds[i] = px_fd_close(*fds[i]);
}

/* ---- the victim ---- */

/* The victim: opens a program of the base from time to time, until it is killed by us, or by a box that escaped. If the
 * caller dies first, it removes the fixtures. */
static _Noreturn void be_victim(struct px_fixtures *f, int life)
{
    sigset_t all;
    char byte;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);         /* what the caller's terminal sends is not meant for it */
    f->life = px_fd_close(f->life);
    struct pollfd end = {.fd = life, .events = POLLIN};
    while (poll(&end, 1, MOMENT_MSEC) == 0 || px_read_some(life, &byte, 1) > 0)
        (void)px_fd_close(open("/usr/bin/env", O_RDONLY | O_CLOEXEC));
    remove_objects(f);
    remove_files(f);
    _exit(0);
}

static int make_victim(struct px_fixtures *f)
{
    int ends[2];
    int r = px_pipe(ends);
    if (r < 0)
        return r;
    f->life = ends[1];
    f->victim = fork();
    if (f->victim == 0)
        be_victim(f, ends[0]);
    (void)px_fd_close(ends[0]);
    if (f->victim < 0)
        return -errno;
    f->victim_fd = px_pidfd_open(f->victim);
    return f->victim_fd < 0 ? f->victim_fd : 0;
}

/* ---- making ---- */

static int name_all(struct px_fixtures *f, const char *secret)
{
    const char *tmp = getenv("TMPDIR");
    uint32_t random = 0;
    if (px_fmt(f->top, sizeof f->top, "%s/px-verify-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp") < 0)
        return -ENAMETOOLONG;
    if (!mkdtemp(f->top)) { /* state: made and removed in one run */
        *f->top = '\0';
        return -errno;
    }
    (void)!getrandom(&random, sizeof random, 0);
    mode_t was;
    f->top_fd = px_node_open_dir(AT_FDCWD, f->top, &was);
    if (f->top_fd < 0)
        return f->top_fd;
    if (fchmod(f->top_fd, 0755) < 0)    /* whatever the umask is */
        return -errno;
    if (secret && px_fmt(f->token, sizeof f->token, "%s", secret) < 0)
        return -ENAMETOOLONG;
    if (px_fmt(f->mark, sizeof f->mark, "px-mark-%s", strrchr(f->top, '-') + 1) < 0 ||
        px_fmt(f->queue, sizeof f->queue, "%s", f->mark) < 0 || px_fmt(f->digits, sizeof f->digits, "%010u", random) < 0)
        return -ENAMETOOLONG;
    return 0;
}

int px_fixtures_make(struct px_fixtures *f, const char *attack, const char *secret, struct px_err *e)
{
    *f = (struct px_fixtures)PX_FIXTURES_NONE;
    int r = name_all(f, secret);
    if (r >= 0)
        r = make_files(f, attack);
    if (r >= 0)
        r = make_sockets(f);
    if (r >= 0)
        make_others(f);
    if (r >= 0)
        r = make_victim(f);
    if (r >= 0)
        return 0;
    px_fixtures_remove(f);
    px_fail(e, PX_E_IO, r, "cannot lay out what the boxes must not reach");
    return px_fix(e, "Check that a temporary directory can be written (TMPDIR, /tmp) and that '%s' can be read.", attack);
}

int px_fixtures_work_dir(struct px_fixtures *f, char *out, size_t size, struct px_err *e)
{
    char name[32];
    (void)px_fmt(name, sizeof name, "ws.%u", ++f->serial);
    int r = px_fmt(out, size, "%s/%s", f->top, name) < 0 ? -ENAMETOOLONG : px_fixtures_put_dir(f->top_fd, name);
    px_auto_fd int dir = r < 0 ? r : openat(f->top_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0)
        r = px_fixtures_put(dir, "planted", "planted\n", 0644);
    return dir < 0 || r < 0 ? px_fail(e, PX_E_IO, r < 0 ? r : dir, "cannot make a work directory") : 0;
}

void px_fixtures_drop(struct px_fixtures *f, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    px_auto_fd int dir = openat(f->top_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && px_kernel_tree_empty(dir) == 0)
        (void)unlinkat(f->top_fd, name, AT_REMOVEDIR);
}

/* ---- telling ---- */

/* Adds one to every byte, so that a search of the box's memory does not find the argument itself. */
static void raise_bytes(const char *from, char *to, size_t size)
{
    size_t n = 0;
    for (; from[n] && n + 1 < size; n++)
        to[n] = (char)(from[n] + 1);
    to[n] = '\0';
}

static void add_addresses(struct px_buf *out)
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) < 0)
        return;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        char text[INET_ADDRSTRLEN];
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
            continue;
        const struct in_addr *at = &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
        bool loopback = ntohl(at->s_addr) >> 24 == 127;         /* address: one of an interface */
        if (!loopback && inet_ntop(AF_INET, at, text, sizeof text))
            px_buf_printf(out, "%s%s", out->len ? "," : "", text);
    }
    freeifaddrs(list);
}

static int set(struct px_policy *policy, struct px_err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int set(struct px_policy *policy, struct px_err *e, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        return px_fail(e, PX_E_LIMIT, 0, "a name is too long");
    return px_policy_set(policy, "env", text, e);
}

int px_fixtures_tell(const struct px_fixtures *f, struct px_policy *policy, struct px_err *e)
{
    px_auto_buf struct px_buf addresses = PX_BUF(400);
    char raised[sizeof f->token];
    unsigned pts = 0;
    struct rlimit core = {0};
    (void)getrlimit(RLIMIT_CORE, &core);
    raise_bytes(f->token, raised, sizeof raised);
    add_addresses(&addresses);
    if (f->terminal >= 0)
        (void)ioctl(f->terminal, TIOCGPTN, &pts);
    return set(policy, e, "A_SECRET=%s/secret", f->top) < 0 || set(policy, e, "A_SOCKET=%s/socket", f->top) < 0 ||
                   set(policy, e, "A_PID=%d", f->victim) < 0 || set(policy, e, "A_PORT=%u", f->port) < 0 ||
                   set(policy, e, "A_FREE=%u", f->free_port) < 0 || set(policy, e, "A_MARK=%s", f->mark) < 0 ||
                   set(policy, e, "A_KEY=%d", f->shm >= 0 && f->msg >= 0 && f->sem >= 0 ? f->key : 0) < 0 ||
                   set(policy, e, "A_QUEUE=%s%s", f->has_queue ? "/" : "", f->has_queue ? f->queue : "") < 0 ||
                   set(policy, e, "A_KEYNAME=%s", f->planted >= 0 ? f->mark : "") < 0 ||
                   set(policy, e, "A_TOKEN=%s", raised) < 0 || set(policy, e, "A_CORE=%d", core.rlim_max > 0) < 0 ||
                   set(policy, e, "A_PTS=%u", pts) < 0 || set(policy, e, "A_ADDRESSES=%s", px_buf_text(&addresses)) < 0
               ? -1 : 0;
}

/* ---- looking ---- */

int px_fixtures_count(const char *text)
{
    DIR *dir = opendir("/proc");
    int found = 0;
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[64], line[4096];
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' ||
            px_fmt(path, sizeof path, "/proc/%s/cmdline", entry->d_name) < 0)
            continue;
        px_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? fd : px_read_full(fd, line, sizeof line);
        found += n > 0 && memmem(line, (size_t)n, text, strlen(text)) != NULL;
    }
    if (dir)
        (void)closedir(dir);
    return found;
}

bool px_fixtures_reachable(unsigned port)
{
    struct sockaddr_in at = loopback(port);
    px_auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0;
}

static bool has_text(int dir, const char *name, const char *text)
{
    char now[64] = "";
    return px_read_file(dir, name, now, sizeof now) == (ssize_t)strlen(text) && strcmp(now, text) == 0;
}

const char *px_fixtures_harm(const struct px_fixtures *f, bool net_shared)
{
    struct pollfd gone = {.fd = f->victim_fd, .events = POLLIN};
    char byte;
    if (px_sys(SYS_poll, &gone, 1, 0) != 0)
        return "a process of the caller's is gone";
    if (!has_text(f->top_fd, "secret", secret_text) || !has_text(f->top_fd, "bin/sacrifice", "x") ||
        !has_text(f->top_fd, "input", "content of the host\n"))
        return "a file of the caller's was changed";
    if (!net_shared && recv(f->udp, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0)
        return "a datagram came out of a box";
    for (size_t i = 0; i < PX_COUNT_OF(shared); i++) {
        char path[64];
        if (px_fmt(path, sizeof path, "%s/inside-%s", shared[i], f->mark) >= 0 && access(path, F_OK) == 0)
            return "a file was made outside of a box";
    }
    return NULL;
}
