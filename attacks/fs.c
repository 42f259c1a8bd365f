/* attacks/fs.c - section A: the host's files, the mounts, /dev, set-id bits. */
#include "attack.h"

#include <dirent.h>
#include <sys/mount.h>
#include <sys/xattr.h>

/* ---- A1 to A3: the host's files by name ---- */

int a1_absolute(void)
{
    const char *const paths[] = {argument("A_SECRET"), "/etc/shadow", "/etc/subuid", "/etc/machine-id", "/etc/ssh",
                                 "/var/lib/dpkg",      "/boot",       "/lost+found", "/var/log",        "/run/px"};
    size_t count = host_base() ? COUNT(paths) : 1; /* another base has files of its own there */
    for (size_t i = 0; i < count; i++)
        if (open(paths[i], O_RDONLY | O_CLOEXEC) >= 0)
            return failed("%s can be opened", paths[i]);
    return DONE;
}

int a1_root_list(void)
{
    if (!host_base())
        return skipped("the root is another base's");
    static const char *const names[] = {"bin",  "dev", "etc",  "home", "lib", "lib32", "lib64", "libx32", "proc",
                                        "root", "run", "sbin", "sys",  "tmp", "usr",   "var",   "attack"};
    static const char *const etc[] = {"alternatives", "group",         "hostname",   "hosts",  "ld.so.cache",
                                      "localtime",    "nsswitch.conf", "os-release", "passwd", "resolv.conf",
                                      "services",     "protocols",     "mime.types", "fonts",  "maven",
                                      "R",            "px",            "java-*"};
    static const char *const home[] = {"sandbox"};
    static const char *const var[] = {"tmp"};
    return only("/", names, COUNT(names)) || only("/etc", etc, COUNT(etc)) || only("/home", home, 1) ||
           only("/var", var, 1) || only("/run", NULL, 0);
}

int a1_twin(void)
{
    if (!host_base() && access("/usr/bin/env", F_OK) < 0)
        return skipped("there is no /usr/bin/env in this base");
    if (open("/usr/bin/env", O_RDONLY | O_CLOEXEC) < 0)
        return failed("/usr/bin/env: %s", strerror(errno));
    return system("/bin/true") == 0 ? DONE : failed("/bin/true does not run");
}

int a2_dotdot(void)
{
    char path[1024] = "";
    for (int i = 0; i < 40; i++)
        strcat(path, "../");
    strncat(path, argument("A_SECRET") + 1, 500);
    const char *const from[] = {"/", "/proc/self/cwd", "/usr", "/tmp", "/dev/shm", workspace(), here(), "/proc/self/root"};
    for (size_t i = 0; i < COUNT(from); i++) {
        if (chdir(from[i]) < 0)
            continue;
        if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
            return failed("%s from %s", path, from[i]);
    }
    return DONE;
}

int a2_link(void)
{
    const char *link = in(workspace(), "link");
    (void)unlink(link);
    if (symlink(argument("A_SECRET"), link) < 0)
        return failed("cannot make a link: %s", strerror(errno));
    return open(link, O_RDONLY | O_CLOEXEC) < 0 ? DONE : failed("a link in a writable bind leads to the host");
}

/* The classic way out of a chroot: a directory descriptor from before it. */
int a2_chroot(void)
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

int a2_twin(void)
{
    const char *link = in(argument("HOME"), "l");
    if (symlink("/proc/self/exe", link) < 0 || open(link, O_RDONLY | O_CLOEXEC) < 0)
        return failed("links do not work: %s", strerror(errno));
    return chdir("/proc/..") == 0 ? DONE : failed("chdir ..: %s", strerror(errno));
}

int a3_proc_root(void)
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

int a3_twin(void)
{
    return open("/proc/self/root/proc/self/exe", O_RDONLY | O_CLOEXEC) >= 0 ? DONE : failed("own root: %s", strerror(errno));
}

/* ---- A7 to A9, A13: mounts ---- */

/* Where the list of mounts cannot be read, some that are always there. */
static int each_target(int (*check)(const struct seen_mount *m))
{
    static const char *const usual[] = {"/", "/proc", "/dev", "/usr", "/tmp"};
    if (access("/proc/self/mountinfo", R_OK) == 0 && open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC) >= 0)
        return each_mount(check);
    for (size_t i = 0; i < COUNT(usual); i++) {
        struct seen_mount m;
        snprintf(m.target, sizeof m.target, "%s", usual[i]);
        if (check(&m))
            return FAILED;
    }
    return DONE;
}

static int try_umount(const struct seen_mount *m)
{
    const char *target = m->target;
    return refused(target, umount2(target, 0)) || refused(target, umount2(target, MNT_DETACH)) ||
           refused(target, umount2(target, MNT_EXPIRE));
}
int a7_umount(void)
{
    return each_target(try_umount);
}

static int try_remount(const struct seen_mount *m)
{
    const char *target = m->target;
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
int a8_remount(void)
{
    return each_target(try_remount);
}

/* Makes something in a directory in every way there is; takes it away again at once if one worked. */
static bool makes(const char *dir)
{
    char path[256];
    snprintf(path, sizeof path, "%s/px-attack", dir);
    bool made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) >= 0 || symlink("x", path) == 0 ||
                mkfifo(path, 0644) == 0 || link(in(here(), "sacrifice"), path) == 0 || mkdir(path, 0755) == 0;
    if (made && unlink(path) < 0)
        (void)rmdir(path);
    return made;
}

/* No content that is not granted, whichever layer refuses it. */
int a9_content(void)
{
    const char *const dirs[] = {"/",    "/usr", "/usr/bin", "/etc",  "/dev", here(),
                                "/home", "/var", "/run",     "/proc", "/sys", "/etc/alternatives",
                                "/usr/lib"};
    const char *const files[] = {"/usr/bin/env", "/etc/passwd", "/etc/ld.so.cache", in(here(), "sacrifice"),
                                 "/etc/hosts"};
    const char *sacrifice = in(here(), "sacrifice"); /* of the caller's own, for what destroys */
    for (size_t i = 0; i < COUNT(dirs); i++)
        if (!granted(dirs[i]) && makes(dirs[i]))
            return failed("%s can be written", dirs[i]);
    for (size_t i = 0; i < COUNT(files); i++)
        if (!granted(files[i]) && open(files[i], O_WRONLY | O_CLOEXEC) >= 0)
            return failed("%s can be opened for writing", files[i]);
    if (truncate(sacrifice, 0) == 0 || rename(sacrifice, in(argument("HOME"), "x")) == 0 || unlink(sacrifice) == 0)
        return failed("a file of a read-only bind can be changed");
    return access(sacrifice, F_OK) == 0 ? DONE : failed("the file to be changed is not there");
}

/* Nor what belongs to a file beside its content. */
int a9_write(void)
{
    const char *sacrifice = in(here(), "sacrifice");
    if (access(sacrifice, W_OK) == 0 || (!granted("/usr/bin/env") && access("/usr/bin/env", W_OK) == 0))
        return failed("files of a read-only bind count as writable");
    if (chmod(sacrifice, 0777) == 0 || chown(sacrifice, 1000, 1000) == 0 ||
        utimensat(AT_FDCWD, sacrifice, NULL, 0) == 0 || setxattr(sacrifice, "user.x", "x", 1, 0) == 0)
        return failed("a file of a read-only bind can be changed");
    return a9_content();
}

int a9_hardlink(void)
{
    const char *const files[] = {"/usr/bin/env", "/etc/passwd", in(here(), "px-attack"), "/dev/null", "/proc/self/exe"};
    for (size_t i = 0; i < COUNT(files); i++) {
        const char *const to[] = {"/tmp/l", in(workspace(), "l"), "/dev/shm/l"};
        for (size_t k = 0; k < COUNT(to); k++)
            if (link(files[i], to[k]) == 0 || linkat(AT_FDCWD, files[i], AT_FDCWD, to[k], AT_SYMLINK_FOLLOW) == 0)
                return failed("%s linked as %s", files[i], to[k]);
    }
    return DONE;
}

/* The host has a file system mounted below a read-only bind (the runner mounts it). */
int a9_submount(void)
{
    if (access("/ro/sub/here", F_OK) < 0)
        return failed("the mount below the bind is not there");
    return open("/ro/sub/here", O_WRONLY | O_CLOEXEC) < 0 &&
                   open("/ro/sub/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0
               ? DONE
               : failed("a mount below a read-only bind is writable");
}

int a9_twin(void)
{
    const char *ws = workspace();
    int fd = open(in(ws, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1 || link(in(ws, "file"), in(ws, "second")) < 0 ||
        rename(in(ws, "second"), in(ws, "third")) < 0 || mkdir(in(ws, "dir"), 0755) < 0)
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
int a13_fresh(void)
{
    if (fresh_mounts())
        return FAILED;
    (void)syscall(SYS_unshare, 0x10000000 | 0x20000);
    return fresh_mounts();
}

/* ---- A14: a root whose places are links to the outside (made by the runner) ---- */

int a14_links(void)
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
int a15_xattr(void)
{
    if (access("/visible/own", F_OK) < 0)
        return failed("the directory's own content is gone");
    return access("/visible/hidden", F_OK) < 0 && access("/copied", R_OK) == 0
               ? DONE
               : failed("a forged overlay attribute was obeyed");
}
int a14_node(void)
{
    return open("/zero", O_RDONLY | O_CLOEXEC) < 0 ? DONE : failed("a device node of the given root can be opened");
}

/* Where the host's own root begins in its file system: "" but for a subvolume or a directory that was made the root. */
static char beginning[512];

static int find_beginning(const struct seen_mount *m)
{
    size_t n = strlen(m->root);
    if (strcmp(m->target, "/usr") == 0 && n > 4 && strcmp(m->root + n - 4, "/usr") == 0)
        snprintf(beginning, sizeof beginning, "%.*s", (int)(n - 4), m->root);
    return DONE;
}

/* What a bind shows is known by its path on the host; no other path of the host may be told. */
static int no_host_path(const struct seen_mount *m)
{
    static const char *const usual[] = {"/",      "/usr",      "/bin",       "/sbin",             "/lib",
                                        "/lib64", "/lib32",    "/libx32",    "/etc/ld.so.cache",  "/etc/alternatives",
                                        "/sys",   "/irq",      "/bus",       "/fs",               "/pressure",
                                        "/null",  "/zero",     "/full",      "/random",           "/urandom",
                                        "/tty",   "/dev/null", "/dev/zero",  "/dev/full",         "/dev/random",
                                        "/dev",   "/dev/tty",  "/dev/urandom", "/etc/fonts",      "/etc/java-*"};
    bool ours = strcmp(m->target, here()) == 0 || granted(m->target);
    size_t n = strncmp(m->root, beginning, strlen(beginning)) == 0 ? strlen(beginning) : 0;
    const char *root = m->root[n] ? m->root + n : "/";
    return ours || listed(root, usual, COUNT(usual)) ? DONE : failed("%s shows the path %s", m->target, m->root);
}
int a18_mountinfo(void)
{
    if (host_base() && each_mount(find_beginning) != DONE)
        return FAILED;
    return host_base() ? each_mount(no_host_path) : skipped("the root is another base's");
}

/* A21 and A22: whatever is at /it must not be a socket. */
int a22_kind(void)
{
    struct stat st;
    if (stat("/it", &st) < 0)
        return failed("nothing was bound");
    return S_ISSOCK(st.st_mode) ? failed("a socket was bound") : DONE;
}
