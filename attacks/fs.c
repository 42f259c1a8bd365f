/* attacks/fs.c - section A: the host's files, the mounts, /dev, set-id bits. */
#include "attack.h"

#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

enum { MODE_SET_ID = S_ISUID | S_ISGID, DEEP = 70 };

/* ---- A1 to A3: the host's files by name ---- */

static int a1_absolute(void)
{
    const char *const paths[] = {argument("A_SECRET"), "/etc/shadow", "/etc/subuid", "/etc/machine-id", "/etc/ssh",
                                 "/var/lib/dpkg",      "/boot",       "/lost+found", "/var/log",        "/run/px"};
    for (size_t i = 0; i < COUNT(paths); i++)
        if (open(paths[i], O_RDONLY | O_CLOEXEC) >= 0)
            return failed("%s can be opened", paths[i]);
    return DONE;
}

static bool listed(const char *name, const char *const list[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

/* Every name in the directory is on the list. */
static int only(const char *path, const char *const list[], size_t count)
{
    DIR *dir = opendir(path);
    if (!dir)
        return failed("cannot list %s: %s", path, strerror(errno));
    int r = DONE;
    for (struct dirent *d; (d = readdir(dir));)
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..") && !listed(d->d_name, list, count))
            r = failed("%s holds %s", path, d->d_name);
    closedir(dir);
    return r;
}

static int a1_root_list(void)
{
    static const char *const names[] = {"bin",  "dev", "etc",  "home", "lib", "lib32", "lib64", "libx32", "proc",
                                        "root", "run", "sbin", "sys",  "tmp", "usr",   "var",   "attack"};
    static const char *const etc[] = {"alternatives", "group",         "hostname",   "hosts",  "ld.so.cache",
                                      "localtime",    "nsswitch.conf", "os-release", "passwd", "resolv.conf"};
    static const char *const home[] = {"sandbox"};
    static const char *const var[] = {"tmp"};
    return only("/", names, COUNT(names)) || only("/etc", etc, COUNT(etc)) || only("/home", home, 1) ||
           only("/var", var, 1) || only("/run", NULL, 0);
}

static int a1_twin(void)
{
    if (open("/usr/bin/env", O_RDONLY | O_CLOEXEC) < 0)
        return failed("/usr/bin/env: %s", strerror(errno));
    return system("/bin/true") == 0 ? DONE : failed("/bin/true does not run");
}

static int a2_dotdot(void)
{
    char path[1024] = "";
    for (int i = 0; i < 40; i++)
        strcat(path, "../");
    strncat(path, argument("A_SECRET") + 1, 500);
    const char *const from[] = {"/",   "/proc/self/cwd", "/usr",           "/tmp", "/dev/shm",
                                "/ws", "/attack",        "/proc/self/root"};
    for (size_t i = 0; i < COUNT(from); i++) {
        if (chdir(from[i]) < 0)
            continue;
        if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
            return failed("%s from %s", path, from[i]);
    }
    return DONE;
}

static int a2_link(void)
{
    (void)unlink("/ws/link");
    if (symlink(argument("A_SECRET"), "/ws/link") < 0)
        return failed("cannot make a link: %s", strerror(errno));
    return open("/ws/link", O_RDONLY | O_CLOEXEC) < 0 ? DONE : failed("a link in a writable bind leads to the host");
}

/* The classic way out of a chroot: a directory descriptor from before it. */
static int a2_chroot(void)
{
    int before = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)mkdir("/tmp/jail", 0755);
    if (chroot("/tmp/jail") < 0)
        return refused("chroot", -1);
    if (fchdir(before) == 0)
        for (int i = 0; i < 40; i++)
            (void)!chdir("..");
    return failed("chroot succeeded");
}

static int a2_twin(void)
{
    if (symlink("/usr/bin/env", "/tmp/l") < 0 || open("/tmp/l", O_RDONLY | O_CLOEXEC) < 0)
        return failed("links do not work: %s", strerror(errno));
    return chdir("/usr/bin/..") == 0 ? DONE : failed("chdir ..");
}

static int a3_proc_root(void)
{
    static const char *const magic[] = {"root", "cwd"};
    char path[600];
    for (int pid = 1; pid < 400; pid++)
        for (size_t i = 0; i < COUNT(magic); i++) {
            snprintf(path, sizeof path, "/proc/%d/%s%s", pid, magic[i], argument("A_SECRET"));
            if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
                return failed("%s", path);
            snprintf(path, sizeof path, "/proc/%d/%s/..", pid, magic[i]);
            if (pid == 1 && open(path, O_PATH | O_CLOEXEC) >= 0)
                return failed("%s of pid 1 can be entered", magic[i]);
        }
    return DONE;
}

static int a3_twin(void)
{
    return open("/proc/self/root/usr/bin/env", O_RDONLY | O_CLOEXEC) >= 0 ? DONE
                                                                          : failed("own root: %s", strerror(errno));
}

/* ---- A4 to A6: descriptors (the runner starts px with extra ones) ---- */

static int a4_descriptors(void)
{
    for (int fd = 3; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        char link[64], to[256] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        (void)!readlink(link, to, sizeof to - 1);
        return failed("descriptor %d is open: %s", fd, to);
    }
    return DONE;
}

static int a5_kinds(void)
{
    for (int fd = 0; fd < 3; fd++) {
        struct stat st;
        if (fstat(fd, &st) < 0)
            return failed("descriptor %d is closed", fd);
        bool null = S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
        if (!S_ISFIFO(st.st_mode) && !null)
            return failed("descriptor %d is the caller's (mode %o)", fd, st.st_mode);
    }
    return DONE;
}

/* stdout is a file of the host that already holds a secret. */
static int a5_stdout(void)
{
    char text[256] = "";
    int fd = open("/proc/self/fd/1", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (n > 0)
        return failed("read back %zd bytes", n);
    if (lseek(1, 0, SEEK_SET) >= 0 || ftruncate(1, 0) == 0)
        return failed("the caller's file can be moved in or truncated");
    if (open("/proc/self/fd/1", O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC) >= 0 && a5_kinds() != DONE)
        return FAILED;
    return a5_kinds();
}

static int a5_stdin(void)
{
    const char *const paths[] = {"/proc/self/fd/0", "/dev/stdin", "/dev/fd/0"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        int fd = open(paths[i], O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
            (void)!write(fd, "forged", 6); /* into our own pipe at most; the runner compares the file */
    }
    if (lseek(0, 0, SEEK_SET) >= 0)
        return failed("the caller's file can be moved in");
    return a5_kinds();
}

static int a5_twin(void)
{
    char text[64] = "";
    ssize_t n = read(0, text, sizeof text - 1);
    return n > 0 && strncmp(text, "content", 7) == 0 ? DONE : failed("stdin gave %zd bytes '%s'", n, text);
}

static int a6_cwd(void)
{
    char where[4096];
    if (!getcwd(where, sizeof where))
        return failed("getcwd: %s", strerror(errno));
    if (where[0] != '/')
        return failed("the working directory is %s", where);
    struct stat here, there;
    return stat(".", &here) == 0 && stat(where, &there) == 0 && here.st_ino == there.st_ino &&
                   here.st_dev == there.st_dev
               ? DONE
               : failed("the working directory is not what its name says");
}

/* ---- A7 to A9, A13: mounts ---- */

static int each_mount(int (*check)(const char *target, const char *options, const char *type, const char *super))
{
    static char text[256 * 1024];
    int seen = 0;
    if (read_text("/proc/self/mountinfo", text, sizeof text) <= 0)
        return failed("no mountinfo");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), seen++) {
        char target[512], options[256], type[64], super[512];
        char *tail = strstr(line, " - ");
        if (!tail || sscanf(line, "%*s %*s %*s %*s %511s %255s", target, options) != 2 ||
            sscanf(tail + 3, "%63s %*s %511s", type, super) != 2)
            return failed("odd line: %s", line);
        int r = check(target, options, type, super);
        if (r != DONE)
            return r;
    }
    return seen > 5 ? DONE : failed("only %d mounts", seen);
}

static int try_umount(const char *target, const char *o, const char *t, const char *s)
{
    (void)o, (void)t, (void)s;
    return refused(target, umount2(target, 0)) || refused(target, umount2(target, MNT_DETACH)) ||
           refused(target, umount2(target, MNT_EXPIRE));
}
static int a7_umount(void)
{
    return each_mount(try_umount);
}

static int try_remount(const char *target, const char *o, const char *t, const char *s)
{
    (void)o, (void)t, (void)s;
    uint64_t attr[4] = {0, 1 /* clear read-only */, 0, 0};
    return refused(target, mount("none", target, NULL, MS_REMOUNT | MS_BIND, NULL)) ||
           refused(target, mount("none", target, NULL, MS_REMOUNT, NULL)) ||
           refused(target, mount(target, target, NULL, MS_BIND | MS_REC, NULL)) ||
           refused(target, mount(target, "/tmp", NULL, MS_MOVE, NULL)) ||
           refused(target, mount(NULL, target, NULL, MS_SHARED | MS_REC, NULL)) ||
           refused(target, syscall(442 /* mount_setattr */, AT_FDCWD, target, 0, attr, sizeof attr)) ||
           refused(target, syscall(428 /* open_tree */, AT_FDCWD, target, 1)) ||
           refused(target, syscall(433 /* fspick */, AT_FDCWD, target, 0));
}
static int a8_remount(void)
{
    return each_mount(try_remount);
}

/* Makes something in a directory in every way there is; takes it away again at once if one worked. */
static bool makes(const char *dir)
{
    char path[256];
    snprintf(path, sizeof path, "%s/px-attack", dir);
    bool made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) >= 0 || symlink("x", path) == 0 ||
                mkfifo(path, 0644) == 0 || link("/attack/sacrifice", path) == 0 || mkdir(path, 0755) == 0;
    if (made && unlink(path) < 0)
        (void)rmdir(path);
    return made;
}

static int a9_write(void)
{
    static const char *const dirs[] = {"/",       "/usr", "/usr/bin", "/etc",  "/dev", "/attack",
                                       "/home",   "/var", "/run",     "/proc", "/sys", "/etc/alternatives",
                                       "/usr/lib"};
    static const char *const files[] = {"/usr/bin/env", "/etc/passwd", "/etc/ld.so.cache", "/attack/sacrifice",
                                        "/etc/hosts"};
    static const char sacrifice[] = "/attack/sacrifice"; /* of the runner's own, for what destroys */
    for (size_t i = 0; i < COUNT(dirs); i++)
        if (makes(dirs[i]))
            return failed("%s can be written", dirs[i]);
    for (size_t i = 0; i < COUNT(files); i++)
        if (open(files[i], O_WRONLY | O_CLOEXEC) >= 0 || access(files[i], W_OK) == 0)
            return failed("%s can be opened for writing", files[i]);
    if (chmod(sacrifice, 0777) == 0 || chown(sacrifice, 1000, 1000) == 0 ||
        utimensat(AT_FDCWD, sacrifice, NULL, 0) == 0 || setxattr(sacrifice, "user.x", "x", 1, 0) == 0 ||
        truncate(sacrifice, 0) == 0 || rename(sacrifice, "/tmp/x") == 0 || unlink(sacrifice) == 0)
        return failed("a file of a read-only bind can be changed");
    return access(sacrifice, F_OK) == 0 ? DONE : failed("the file to be changed is not there");
}

static int a9_hardlink(void)
{
    static const char *const files[] = {"/usr/bin/env", "/etc/passwd", "/attack/px-attack", "/dev/null",
                                        "/proc/self/exe"};
    for (size_t i = 0; i < COUNT(files); i++) {
        static const char *const to[] = {"/tmp/l", "/ws/l", "/dev/shm/l"};
        for (size_t k = 0; k < COUNT(to); k++)
            if (link(files[i], to[k]) == 0 || linkat(AT_FDCWD, files[i], AT_FDCWD, to[k], AT_SYMLINK_FOLLOW) == 0)
                return failed("%s linked as %s", files[i], to[k]);
    }
    return DONE;
}

/* The host has a file system mounted below a read-only bind (the runner mounts it). */
static int a9_submount(void)
{
    if (access("/ro/sub/here", F_OK) < 0)
        return failed("the mount below the bind is not there");
    return open("/ro/sub/here", O_WRONLY | O_CLOEXEC) < 0 &&
                   open("/ro/sub/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0
               ? DONE
               : failed("a mount below a read-only bind is writable");
}

static int a9_twin(void)
{
    int fd = open("/ws/file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1 || link("/ws/file", "/ws/second") < 0 ||
        rename("/ws/second", "/ws/third") < 0 || mkdir("/ws/dir", 0755) < 0)
        return failed("a writable bind: %s", strerror(errno));
    return DONE;
}

static int fresh_mounts(void)
{
    static const char *const types[] = {"proc",   "sysfs",   "tmpfs", "ramfs",   "devtmpfs",    "devpts",
                                        "cgroup", "cgroup2", "bpf",   "debugfs", "tracefs",     "securityfs",
                                        "mqueue", "overlay", "ext4",  "fuse",    "binfmt_misc", "configfs",
                                        "nsfs",   "autofs",  "9p",    "nfs"};
    (void)mkdir("/tmp/m", 0755);
    for (size_t i = 0; i < COUNT(types); i++)
        if (refused(types[i], mount("none", "/tmp/m", types[i], 0, "")) ||
            refused(types[i], syscall(430 /* fsopen */, types[i], 0)))
            return FAILED;
    return DONE;
}
static int a13_fresh(void)
{
    if (fresh_mounts())
        return FAILED;
    (void)syscall(SYS_unshare, 0x10000000 | 0x20000);
    return fresh_mounts();
}

/* ---- A10 to A12: handles and devices ---- */

static int a10_handle(void)
{
    struct file_handle *h = calloc(1, sizeof *h + 128);
    int id;
    h->handle_bytes = 128;
    return refused("name_to_handle_at", name_to_handle_at(AT_FDCWD, "/usr", h, &id, 0)) ||
           refused("open_by_handle_at", open_by_handle_at(open("/usr", O_RDONLY | O_CLOEXEC), h, O_RDONLY));
}

static int a11_mknod(void)
{
    static const struct {
        mode_t type;
        unsigned major, minor;
    } nodes[] = {{S_IFCHR, 1, 1}, {S_IFCHR, 1, 5},   {S_IFCHR, 1, 11}, {S_IFCHR, 10, 232}, {S_IFCHR, 5, 1},
                 {S_IFBLK, 8, 0}, {S_IFBLK, 254, 0}, {S_IFBLK, 7, 0},  {S_IFCHR, 0, 0}};
    static const char *const places[] = {"/tmp/n", "/ws/n", "/dev/shm/n", "/home/sandbox/n", "/dev/n"};
    for (size_t i = 0; i < COUNT(nodes); i++)
        for (size_t k = 0; k < COUNT(places); k++)
            if (mknod(places[k], nodes[i].type | 0666, makedev(nodes[i].major, nodes[i].minor)) == 0)
                return failed("made node %u:%u at %s", nodes[i].major, nodes[i].minor, places[k]);
    return DONE;
}

/* A device node in a bind (made by the runner, as root): it is there, and nodev keeps it shut. */
static int a11_node_in_bind(void)
{
    struct stat st;
    if (lstat("/ws/zero", &st) < 0 || !S_ISCHR(st.st_mode))
        return failed("the node is not there");
    return open("/ws/zero", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES
               ? DONE
               : failed("a device node of a bind can be opened");
}

static int a11_twin(void)
{
    return mkfifo("/tmp/fifo", 0644) == 0 && mkfifo("/ws/fifo", 0644) == 0 ? DONE
                                                                           : failed("mkfifo: %s", strerror(errno));
}

/* Every mount is nosuid; nodev wherever it is not one of the six nodes or devpts. */
static int check_flags(const char *target, const char *options, const char *type, const char *super)
{
    (void)super;
    if (!strstr(options, "nosuid"))
        return failed("%s is not nosuid: %s", target, options);
    if (!strstr(options, "nodev") && strcmp(type, "devpts") && strcmp(type, "devtmpfs"))
        return failed("%s is not nodev: %s", target, options);
    return DONE;
}
static int a11_flags(void)
{
    return each_mount(check_flags);
}

static int a12_list(void)
{
    static const char *const names[] = {"null", "zero", "full", "random", "urandom", "tty",   "pts",
                                        "ptmx", "shm",  "fd",   "stdin",  "stdout",  "stderr"};
    static const char *const pts[] = {"ptmx"};
    static const struct {
        const char *path;
        unsigned major, minor;
    } nodes[] = {{"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
                 {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0}};
    if (only("/dev", names, COUNT(names)) || only("/dev/pts", pts, 1))
        return FAILED;
    for (size_t i = 0; i < COUNT(nodes); i++) {
        struct stat st;
        if (stat(nodes[i].path, &st) < 0 || st.st_rdev != makedev(nodes[i].major, nodes[i].minor))
            return failed("%s is another device", nodes[i].path);
        if (chmod(nodes[i].path, st.st_mode & 0777) == 0 || unlink(nodes[i].path) == 0)
            return failed("%s can be changed", nodes[i].path);
    }
    return DONE;
}

static int a12_twin(void)
{
    char byte = 'x';
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC),
        full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int random = open("/dev/urandom", O_RDONLY | O_CLOEXEC), pty = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (read(zero, &byte, 1) != 1 || byte || write(null, "x", 1) != 1 || read(random, &byte, 1) != 1 || pty < 0 ||
        write(full, "x", 1) >= 0)
        return failed("a device does not work: %s", strerror(errno));
    int shm = shm_open("/own", O_RDWR | O_CREAT, 0600);
    return shm >= 0 ? DONE : failed("shm_open: %s", strerror(errno));
}

/* ---- A14: a root whose places are links to the outside (made by the runner) ---- */

static int a14_links(void)
{
    static const char *const dirs[] = {"/proc", "/dev", "/etc", "/tmp", "/home", "/sys"};
    for (size_t i = 0; i < COUNT(dirs); i++) {
        struct stat st;
        char path[128];
        if (lstat(dirs[i], &st) < 0 || !S_ISDIR(st.st_mode))
            return failed("%s is not a directory of ours (%o)", dirs[i], st.st_mode);
        snprintf(path, sizeof path, "%s/outside", dirs[i]);
        if (access(path, F_OK) == 0)
            return failed("%s leads outside", dirs[i]);
    }
    char text[64];
    if (read_text("/proc/self/comm", text, sizeof text) <= 0 || strncmp(text, "px-attack", 9))
        return failed("/proc is not proc");
    (void)!close(
        open("/tmp/made-inside", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)); /* the runner looks for it outside */
    return a12_list();
}

/* A15 and a device and a set-id program in the given root (root callers). */
static int a15_xattr(void)
{
    if (access("/visible/own", F_OK) < 0)
        return failed("the directory's own content is gone");
    return access("/visible/hidden", F_OK) < 0 && access("/copied", R_OK) == 0
               ? DONE
               : failed("a forged overlay attribute was obeyed");
}
static int a14_node(void)
{
    return open("/zero", O_RDONLY | O_CLOEXEC) < 0 ? DONE : failed("a device node of the given root can be opened");
}

/* ---- A19: set-id bits in a writable bind; the runner also looks at the host's side ---- */

static const char *const places[] = {"/ws", "/tmp", "/home/sandbox"};

static int bits_of(const char *path)
{
    struct stat st;
    return stat(path, &st) < 0 ? 0 : (int)(st.st_mode & MODE_SET_ID);
}

static int a19_chmod(void)
{
    static const mode_t modes[] = {04755, 02755, 06755, 04000, 02010, 06777, 07777};
    for (size_t p = 0; p < COUNT(places); p++)
        for (size_t i = 0; i < COUNT(modes); i++) {
            char path[128];
            snprintf(path, sizeof path, "%s/chmod%zu", places[p], i);
            int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
            if (fd < 0)
                return failed("cannot make %s", path);
            unsigned long high = 0xffffffff00000000ul;
            if (chmod(path, modes[i]) == 0 || fchmod(fd, modes[i]) == 0 ||
                fchmodat(AT_FDCWD, path, modes[i], 0) == 0 || syscall(SYS_fchmodat, AT_FDCWD, path, modes[i]) == 0 ||
                syscall(452, AT_FDCWD, path, modes[i], 0) == 0 ||
                syscall(452, fd, "", modes[i], AT_EMPTY_PATH) == 0 ||
                syscall(SYS_chmod, path, high | modes[i]) == 0 || syscall(SYS_fchmod, fd, high | modes[i]) == 0 ||
                bits_of(path))
                return failed("mode %o on %s", modes[i], path);
        }
    return DONE;
}

static int a19_create(void)
{
    static const mode_t modes[] = {04755, 02755, 06755};
    umask(0);
    for (size_t p = 0; p < COUNT(places); p++)
        for (size_t i = 0; i < COUNT(modes); i++) {
            char path[6][128];
            for (int k = 0; k < 6; k++)
                snprintf(path[k], sizeof path[k], "%s/new%zu.%d", places[p], i, k);
            struct {
                uint64_t flags, mode, resolve;
            } how = {O_RDWR | O_CREAT, modes[i], 0};
            (void)open(path[0], O_RDWR | O_CREAT | O_CLOEXEC, modes[i]);
            (void)syscall(SYS_open, path[1], O_RDWR | O_CREAT, modes[i]);
            (void)creat(path[2], modes[i]);
            (void)syscall(SYS_openat, AT_FDCWD, path[3], O_RDWR | O_CREAT, 0xdead00000000ul | modes[i]);
            (void)mknod(path[4], S_IFREG | modes[i], 0);
            if (p ==
                0) /* behind a pointer: off where files of the host can be written; a box's own tmpfs is nosuid */
                (void)syscall(437 /* openat2 */, AT_FDCWD, path[5], &how, sizeof how);
            int fd = open(places[p], O_TMPFILE | O_RDWR | O_CLOEXEC, modes[i]);
            struct stat st = {0};
            if (fd >= 0 && fstat(fd, &st) == 0 && st.st_mode & MODE_SET_ID)
                return failed("O_TMPFILE took mode %o", modes[i]);
            for (int k = 0; k < 6; k++)
                if (bits_of(path[k]))
                    return failed("%s was made with mode %o", path[k], modes[i]);
        }
    return DONE;
}

/* A set-id file of the box's own file system, if one could be made, carried over; and attributes that do the same. */
static int a19_carry(void)
{
    int fd = open("/tmp/own", O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    (void)fchmod(fd, 04755);
    if (rename("/tmp/own", "/ws/own") == 0 || link("/tmp/own", "/ws/own") == 0)
        return failed("a file moved between file systems");
    fd = open("/ws/caps", O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    static const uint32_t caps[] = {0x02000001, 0xffffffff, 0, 0x1ff, 0};
    if (fsetxattr(fd, "security.capability", caps, sizeof caps, 0) == 0)
        return failed("file capabilities can be set");
    static const uint32_t rooted[] = {0x03000001, 0xffffffff, 0, 0x1ff, 0, 0};
    if (fsetxattr(fd, "security.capability", rooted, sizeof rooted, 0) == 0 ||
        fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0) == 0)
        return failed("privileged attributes can be set");
    return DONE;
}

/* The bind's own name on the host becomes a link to somewhere else before the run ends. */
static int a19_source_swap(void)
{
    if (rename("/o/inner", "/o/moved") < 0 || symlink(argument("A_VICTIM"), "/o/inner") < 0)
        return failed("cannot rename in the outer bind: %s", strerror(errno));
    return DONE;
}

static int a19_twin(void)
{
    int fd = open("/ws/plain", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || chmod("/ws/plain", 0755) < 0 || fchmod(fd, 01644) < 0 || mkdir("/ws/d", 0700) < 0 ||
        chmod("/ws/d", 01777) < 0)
        return failed("ordinary modes: %s", strerror(errno));
    return syscall(SYS_open, "/ws/plain", O_RDONLY, 04755) >= 0 ? DONE : failed("a mode without O_CREAT is refused");
}

/* ---- A20: private and bounded ---- */

static int a20_private(void)
{
    static const char *const dirs[] = {"/tmp", "/var/tmp", "/dev/shm", "/home/sandbox"};
    for (size_t i = 0; i < COUNT(dirs); i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", dirs[i], argument("A_MARK"));
        if (access(path, F_OK) == 0)
            return failed("%s of the host is visible", dirs[i]);
        snprintf(path, sizeof path, "%s/inside-%s", dirs[i], argument("A_MARK"));
        (void)!close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)); /* the runner looks for it outside */
    }
    return DONE;
}

static int check_bound(const char *target, const char *options, const char *type, const char *super)
{
    static const char *const known[] = {"/tmp", "/dev/shm", "/home/sandbox", "/ws"};
    if (strncmp(options, "ro", 2) == 0 || !strcmp(type, "proc") || !strcmp(type, "devpts") ||
        !strcmp(type, "devtmpfs"))
        return DONE;
    if (!listed(target, known, COUNT(known)))
        return failed("%s is writable", target);
    if (!strcmp(type, "tmpfs") && (!strstr(super, "size=") || !strstr(super, "nr_inodes=")))
        return failed("%s is not bounded: %s", target, super);
    return DONE;
}
static int a20_bounded(void)
{
    return each_mount(check_bound);
}

static long fill(const char *path, long megabytes)
{
    static char block[1 << 20];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    long done = 0;
    memset(block, 'x', sizeof block);
    for (; fd >= 0 && done < megabytes; done++)
        if (write(fd, block, sizeof block) != sizeof block)
            break;
    close(fd);
    return done;
}

static int a20_fill(void)
{
    long tmp = fill("/tmp/f", 80), shm = fill("/dev/shm/f", 80);
    return tmp < 70 && shm < 70 ? DONE : failed("%ld MiB in /tmp, %ld MiB in /dev/shm", tmp, shm);
}

static int a20_inodes(void)
{
    int n = 0;
    for (char path[64]; n < 5000; n++) {
        snprintf(path, sizeof path, "/small/%d", n);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
            break;
        close(fd);
    }
    return n < 5000 ? DONE : failed("%d files in a tmpfs of 1 MiB", n);
}

static int a20_twin(void)
{
    static const char *const dirs[] = {"/tmp", "/var/tmp", "/dev/shm", "/home/sandbox"};
    for (size_t i = 0; i < COUNT(dirs); i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/f", dirs[i]);
        if (fill(path, 1) != 1 || unlink(path) < 0)
            return failed("%s: %s", dirs[i], strerror(errno));
    }
    return DONE;
}

/* A21 and A22: whatever is at /it must not be a socket. */
static int a22_kind(void)
{
    struct stat st;
    if (stat("/it", &st) < 0)
        return failed("nothing was bound");
    return S_ISSOCK(st.st_mode) ? failed("a socket was bound") : DONE;
}

#define WS "-v @WS:/ws"

static const struct row rows[] = {
    {ATTACK, "A1_absolute_path", a1_absolute, NULL, BARE},
    {ATTACK, "A1_root_list", a1_root_list, NULL, BARE},
    {TWIN, "A1_twin_usr", a1_twin, NULL, 0},
    {ATTACK, "A2_dotdot", a2_dotdot, WS, BARE},
    {ATTACK, "A2_link_in_bind", a2_link, WS, 0},
    {ATTACK, "A2_chroot", a2_chroot, NULL, BARE},
    {TWIN, "A2_twin_links", a2_twin, NULL, 0},
    {ATTACK, "A3_proc_root", a3_proc_root, NULL, BARE},
    {TWIN, "A3_twin_own_root", a3_twin, NULL, 0},
    {ATTACK, "A4_descriptors", a4_descriptors, NULL, 0},
    {ATTACK, "A5_kinds", a5_kinds, NULL, 0},
    {ATTACK, "A5_stdout_reopen", a5_stdout, "@runner", 0},
    {ATTACK, "A5_stdin_reopen", a5_stdin, "@runner", 0},
    {TWIN, "A5_twin_stdin", a5_twin, "@runner", 0},
    {ATTACK, "A6_cwd", a6_cwd, NULL, 0},
    {ATTACK, "A6_cwd_tmp", a6_cwd, "-w /tmp", 0},
    {ATTACK, "A7_umount", a7_umount, WS, 0},
    {ATTACK, "A8_remount", a8_remount, WS, 0},
    {ATTACK, "A9_write_readonly", a9_write, NULL, 0},
    {ATTACK, "A9_hardlink", a9_hardlink, WS, 0},
    {ATTACK, "A9_submount", a9_submount, "@runner", 0},
    {TWIN, "A9_twin_writable_bind", a9_twin, WS, 0},
    {ATTACK, "A10_handle", a10_handle, NULL, BARE},
    {ATTACK, "A11_mknod", a11_mknod, WS, 0},
    {ATTACK, "A11_node_in_bind", a11_node_in_bind, "@runner", 0},
    {ATTACK, "A11_mount_flags", a11_flags, WS, BARE},
    {TWIN, "A11_twin_fifo", a11_twin, WS, 0},
    {ATTACK, "A12_dev_list", a12_list, NULL, 0},
    {TWIN, "A12_twin_devices", a12_twin, NULL, 0},
    {ATTACK, "A13_fresh_mounts", a13_fresh, NULL, 0},
    {ATTACK, "A14_rootfs_links", a14_links, "@runner", 0},
    {ATTACK, "A14_rootfs_node", a14_node, "@runner", 0},
    {ATTACK, "A15_overlay_xattr", a15_xattr, "@runner", 0},
    {ATTACK, "A19_chmod", a19_chmod, WS, 0},
    {ATTACK, "A19_create", a19_create, WS, 0},
    {ATTACK, "A19_carry_over", a19_carry, WS, 0},
    {ATTACK, "A19_source_swap", a19_source_swap, "@runner", 0},
    {TWIN, "A19_twin_modes", a19_twin, WS, 0},
    {ATTACK, "A20_private", a20_private, NULL, BARE},
    {ATTACK, "A20_only_bounded", a20_bounded, WS, 0},
    {ATTACK, "A20_fill", a20_fill, NULL, 0},
    {ATTACK, "A20_inodes", a20_inodes, "--tmpfs /small:size=1m", 0},
    {TWIN, "A20_twin_writing", a20_twin, NULL, 0},
    {ATTACK, "A22_source_race", a22_kind, "@runner", 0},
};
const struct table fs_table = {rows, COUNT(rows)};
