/* attacks/ipc.c - sections F and G: System V and POSIX IPC, unix sockets, locks, terminals, the network. */
#include "attack.h"

#include <arpa/inet.h>
#include <mqueue.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- F3, F6 to F9 ---- */

/* The caller's terminals belong to the id that a box of the landlock tier has. */
int f3_open(void)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/pts/%s", argument("A_PTS"));
    int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? DONE : failed("%s of the host can be read and written", path);
}
int f3_pts(void)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/pts/%s", argument("A_PTS"));
    if (access(path, F_OK) == 0)
        return failed("%s of the host is there", path);
    return open("/dev/tty", O_RDWR | O_CLOEXEC) < 0 ? DONE : failed("the caller's terminal can be opened");
}

/* The terminal of a box is the one of its own devpts, by whatever name it is looked at. */
int f4_peer(void)
{
    char name[64] = "";
    struct stat named, held;
    if (ttyname_r(0, name, sizeof name) != 0)
        return failed("standard input is no terminal: %s", strerror(errno));
    if (stat(name, &named) < 0 || fstat(0, &held) < 0 || named.st_rdev != held.st_rdev || named.st_dev != held.st_dev ||
        named.st_ino != held.st_ino)
        return failed("%s is another terminal than the one that is held", name);
    int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    return tty >= 0 && tcgetpgrp(tty) == getpgrp() ? DONE : failed("the terminal is not the box's own: %s", strerror(errno));
}

/* Nothing that could hand a descriptor over. */
int f10_sockets(void)
{
    for (int fd = 0; fd < 1024; fd++) {
        char byte, control[256];
        struct iovec iov = {&byte, 1};
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        if (recvmsg(fd, &message, MSG_DONTWAIT) >= 0 || (errno != ENOTSOCK && errno != EBADF))
            return failed("descriptor %d is a socket", fd);
    }
    return DONE;
}

int f6_sysv(void)
{
    key_t key = (key_t)strtol(argument("A_KEY"), NULL, 10);
    if (!key)
        return skipped("the caller has no System V IPC to plant");
    if (shmget(key, 0, 0) >= 0 || msgget(key, 0) >= 0 || semget(key, 0, 0) >= 0)
        return failed("an object of the host with key %d can be had", key);
    struct shm_info info;
    int top = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);
    if (top >= 0 ? info.used_ids != 0 : errno != ENOSYS && errno != EPERM)
        return failed("%d segments are listed", info.used_ids);
    char text[4096];
    if (read_text("/proc/sysvipc/shm", text, sizeof text) > 0 && strchr(text, '\n')[1])
        return failed("/proc/sysvipc/shm lists the host's");
    return DONE;
}

int f6_mqueue(void)
{
    if (!*argument("A_QUEUE"))
        return skipped("the caller has no message queue to plant");
    return mq_open(argument("A_QUEUE"), O_RDONLY) == (mqd_t)-1 && (errno == ENOENT || errno == ENOSYS || errno == EPERM)
               ? DONE
               : failed("the host's queue: %s", strerror(errno));
}

int f6_twin(void)
{
    int shm = shmget(4711, 4096, IPC_CREAT | 0600), sem = semget(4711, 1, IPC_CREAT | 0600),
        msg = msgget(4711, IPC_CREAT | 0600);
    char *at = shm < 0 ? (char *)-1 : shmat(shm, NULL, 0);
    if (at == (char *)-1 || sem < 0 || msg < 0)
        return failed("System V IPC: %s", strerror(errno));
    *at = 'x';
    (void)shmctl(shm, IPC_RMID, NULL); /* nothing is left if it was the host's after all */
    (void)semctl(sem, 0, IPC_RMID);
    (void)msgctl(msg, IPC_RMID, NULL);
    return DONE;
}

static int connect_unix(const char *name, bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    memcpy(address.sun_path + abstract, name, n);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    return connect(s, (struct sockaddr *)&address, len) == 0 ? s : -1;
}

int f7_abstract(void)
{
    return connect_unix(argument("A_MARK"), true) < 0 ? DONE : failed("the host's abstract socket answers");
}

int f8_path(void)
{
    return connect_unix(argument("A_SOCKET"), false) < 0 ? DONE : failed("the host's socket answers");
}

int f7_twin(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0own"};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + 4) < 0 || listen(s, 1) < 0)
        return failed("abstract bind: %s", strerror(errno));
    if (connect_unix("own", true) < 0)
        return failed("abstract connect: %s", strerror(errno));
    address = (struct sockaddr_un){.sun_family = AF_UNIX, .sun_path = "/tmp/s"};
    s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s, (struct sockaddr *)&address, sizeof address) < 0 || listen(s, 1) < 0 ||
        connect_unix("/tmp/s", false) < 0)
        return failed("unix socket: %s", strerror(errno));
    return DONE;
}

/* Locks all that can be locked and stays until killed; the runner starts other boxes meanwhile. */
int f9_hold(void)
{
    const char *const paths[] = {
        "/",    "/usr",      "/usr/bin",     "/etc",  "/etc/ld.so.cache", "/etc/alternatives",
        "/dev", "/dev/null", "/dev/tty",     "/proc", "/proc/self/exe",   here(),
        "/sys", "/tmp",      "/home/sandbox"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        struct flock whole = {.l_type = F_RDLCK};
        (void)flock(fd, LOCK_EX | LOCK_NB);
        (void)fcntl(fd, F_SETLK, &whole);
    }
    printf("holding\n");
    fflush(stdout);
    alarm(60);
    return pause();
}

/* A lease delays a process that opens the file; a notification shows what others do. */
int f9_lease(void)
{
    int file = open("lease", O_RDWR | O_CREAT | O_CLOEXEC, 0600), dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0 || dir < 0)
        return failed("no file of its own: %s", strerror(errno));
    close(file);
    file = open("lease", O_RDONLY | O_CLOEXEC);
    (void)unlink("lease");
    return refused("F_SETLEASE", fcntl(file, F_SETLEASE, F_RDLCK)) ||
           refused("F_NOTIFY", fcntl(dir, F_NOTIFY, DN_CREATE)) ||
           refused("F_SETLEASE with other bits", syscall(SYS_fcntl, file, F_SETLEASE | 1ul << 32, F_WRLCK));
}

int f9_twin(void)
{
    struct flock whole = {.l_type = F_WRLCK};
    int fd = open("locked", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool works = fcntl(fd, F_GETLEASE) == F_UNLCK && fcntl(fd, F_SETLK, &whole) == 0 &&
                 fcntl(fd, F_OFD_GETLK, &whole) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                 fcntl(fd, F_SETFL, O_APPEND) == 0;
    (void)unlink("locked");
    return works ? DONE : failed("a lock on a file of its own: %s", strerror(errno));
}

/* ---- G: the network ---- */

static int dial(int family, int type, const char *address, int port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    inet_pton(family, address, family == AF_INET ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr);
    int s = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int r = connect(s, family == AF_INET ? (void *)&v4 : (void *)&v6, family == AF_INET ? sizeof v4 : sizeof v6);
    if (r < 0 && errno == EINPROGRESS)
        return failed("a connection to %s port %d is under way", address, port);
    if (r == 0 && type == SOCK_STREAM)
        return failed("connected to %s port %d", address, port);
    if (r == 0 && send(s, "x", 1, 0) == 1)
        return failed("sent to %s port %d", address, port);
    close(s);
    return DONE;
}

static int unreachable(bool loopback)
{
    static const char *const v4[] = {"169.254.169.254", "10.0.2.2",        "192.0.2.1", "198.51.100.1",
                                     "172.17.0.1",      "255.255.255.255", "224.0.0.1"};
    static const char *const v6[] = {"fe80::1", "2001:db8::1", "ff02::1", "::ffff:169.254.169.254"};
    int port = atoi(argument("A_PORT"));
    char list[512];
    snprintf(list, sizeof list, "%s", argument("A_ADDRESSES"));
    for (char *a = strtok(list, ","); a; a = strtok(NULL, ","))
        if (dial(AF_INET, SOCK_STREAM, a, port) || dial(AF_INET, SOCK_DGRAM, a, port))
            return FAILED;
    for (size_t i = 0; i < COUNT(v4); i++)
        if (dial(AF_INET, SOCK_STREAM, v4[i], 80) || dial(AF_INET, SOCK_DGRAM, v4[i], 53))
            return FAILED;
    for (size_t i = 0; i < COUNT(v6); i++)
        if (dial(AF_INET6, SOCK_STREAM, v6[i], 80) || dial(AF_INET6, SOCK_DGRAM, v6[i], 53))
            return FAILED;
    if (dial(AF_INET, SOCK_STREAM, "127.0.0.1", port) || dial(AF_INET6, SOCK_STREAM, "::1", port))
        return FAILED;
    return loopback ? DONE : dial(AF_INET, SOCK_DGRAM, "127.0.0.1", port);
}
int g1_none(void)
{
    return unreachable(false);
}

/* With lo up a connect is decided a moment later, so ask blocking sockets; nothing listens in the box. */
int g1_loopback(void)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(argument("A_PORT"))),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(s, (struct sockaddr *)&v4, sizeof v4) == 0)
        return failed("the host's loopback answers");
    s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)sendto(s, argument("A_MARK"), strlen(argument("A_MARK")), 0, (struct sockaddr *)&v4,
                 sizeof v4); /* the runner listens */
    static const char *const away[] = {"169.254.169.254", "10.0.2.2", "192.0.2.1"};
    for (size_t i = 0; i < COUNT(away); i++)
        if (dial(AF_INET, SOCK_STREAM, away[i], 80) || dial(AF_INET, SOCK_DGRAM, away[i], 53))
            return FAILED;
    return DONE;
}

int g1_interfaces(void)
{
    struct if_nameindex *list = if_nameindex();
    for (struct if_nameindex *i = list; i && i->if_index; i++)
        if (strcmp(i->if_name, "lo"))
            return failed("there is an interface %s", i->if_name);
    char text[4096];
    if (read_text("/proc/net/dev", text, sizeof text) <= 0 || strstr(text, "eth"))
        return failed("/proc/net/dev shows the host's");
    static const char *const tables[] = {"/proc/net/route", "/proc/net/tcp", "/proc/net/udp",
                                         "/proc/net/arp",   "/proc/net/raw", "/proc/net/packet"};
    for (size_t i = 0; i < COUNT(tables); i++) { /* a heading, or nothing at all while lo is down */
        char *end = read_text(tables[i], text, sizeof text) > 0 ? strchr(text, '\n') : NULL;
        if (end && end[1])
            return failed("%s has entries", tables[i]);
    }
    if (read_text("/proc/net/unix", text, sizeof text) > 0 && strchr(text, '\n')[1] &&
        strstr(text, argument("A_MARK")))
        return failed("/proc/net/unix lists the host's");
    return DONE;
}

int g1_configure(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    request.ifr_flags = IFF_UP;
    if (ioctl(s, SIOCSIFFLAGS, &request) == 0)
        return failed("interface flags can be set");
    struct sockaddr_in *address = (void *)&request.ifr_addr;
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000202)};
    return ioctl(s, SIOCSIFADDR, &request) < 0 ? DONE : failed("addresses can be set");
}

int g5_resolver(void)
{
    char text[256];
    int n = read_text("/etc/resolv.conf", text, sizeof text);
    return n >= 0 && !strstr(text, "nameserver") ? DONE : failed("a name server is named");
}

/* Ping and protocols over UDP, which a check of TCP alone would miss. */
int g17_datagrams(void)
{
    static const struct {
        int protocol;
        const char *address;
        int port;
    } ways[] = {{IPPROTO_ICMP, "127.0.0.1", 0}, {IPPROTO_ICMP, "192.0.2.1", 0}, {0, "127.0.0.1", 0}, {0, "192.0.2.1", 443}};
    static const char echo[8] = {8 /* echo request */};
    for (size_t i = 0; i < COUNT(ways); i++) {
        int port = ways[i].port || ways[i].protocol ? ways[i].port : atoi(argument("A_PORT"));
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        inet_pton(AF_INET, ways[i].address, &to.sin_addr);
        int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, ways[i].protocol);
        if (s >= 0 && sendto(s, echo, sizeof echo, 0, (struct sockaddr *)&to, sizeof to) >= 0)
            return failed("a datagram of protocol %d went to %s", ways[i].protocol, ways[i].address);
        close(s);
    }
    return DONE;
}

int g_twin(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s, (struct sockaddr *)&address, sizeof address) < 0 || listen(s, 1) < 0 ||
        getsockname(s, (struct sockaddr *)&address, &len) < 0 || connect(c, (struct sockaddr *)&address, len) < 0)
        return failed("loopback in the box: %s", strerror(errno));
    char byte = 0;
    int a = accept(s, NULL, NULL);
    return write(c, "x", 1) == 1 && read(a, &byte, 1) == 1 && byte == 'x' ? DONE
                                                                          : failed("no bytes through loopback");
}

/* Listens on the given port of the box until killed; the runner tries to reach it from the host. */
int g15_listen(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_ANY),
                                  .sin_port = htons((uint16_t)atoi(argument("A_FREE")))};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        return skipped("this box has no sockets to listen on");
    if (bind(s, (struct sockaddr *)&address, sizeof address) < 0 || listen(s, 1) < 0)
        return failed("listen: %s", strerror(errno));
    printf("listening\n");
    fflush(stdout);
    alarm(60);
    return pause();
}
