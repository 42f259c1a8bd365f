/* attacks/dev.c - A10 to A12: handles, device nodes, /dev. */
#include "attack.h"

#include <sys/mman.h>
#include <sys/sysmacros.h>

/* ---- A10 to A12: handles and devices ---- */

int a10_handle(void)
{
    struct file_handle *h = calloc(1, sizeof *h + 128);
    int id;
    h->handle_bytes = 128;
    return refused("name_to_handle_at", name_to_handle_at(AT_FDCWD, "/usr", h, &id, 0)) ||
           refused("open_by_handle_at", open_by_handle_at(open("/usr", O_RDONLY | O_CLOEXEC), h, O_RDONLY));
}

int a11_mknod(void)
{
    static const struct {
        mode_t type;
        unsigned major, minor;
    } nodes[] = {{S_IFCHR, 1, 1}, {S_IFCHR, 1, 5},   {S_IFCHR, 1, 11}, {S_IFCHR, 10, 232}, {S_IFCHR, 5, 1},
                 {S_IFBLK, 8, 0}, {S_IFBLK, 254, 0}, {S_IFBLK, 7, 0},  {S_IFCHR, 0, 0}};
    const char *const places[] = {"/tmp/n", in(workspace(), "n"), "/dev/shm/n", in(argument("HOME"), "n"), "/dev/n"};
    for (size_t i = 0; i < COUNT(nodes); i++)
        for (size_t k = 0; k < COUNT(places); k++)
            if (mknod(places[k], nodes[i].type | 0666, makedev(nodes[i].major, nodes[i].minor)) == 0)
                return failed("made node %u:%u at %s", nodes[i].major, nodes[i].minor, places[k]);
    return DONE;
}

/* A rename that leaves an overlay's whiteout behind, which is a device node. */
int a11_whiteout(void)
{
    const char *const dirs[] = {workspace(), argument("HOME")};
    for (size_t i = 0; i < COUNT(dirs); i++) {
        const char *from = in(dirs[i], "from"), *to = in(dirs[i], "to");
        struct stat st;
        if (close(open(from, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) < 0)
            return failed("cannot make %s", from);
        long r = syscall(316 /* renameat2 */, AT_FDCWD, from, AT_FDCWD, to, 4 /* RENAME_WHITEOUT */);
        if (r == 0 || (lstat(from, &st) == 0 && S_ISCHR(st.st_mode)))
            return failed("a rename left a whiteout in %s", dirs[i]);
        r = syscall(316, AT_FDCWD, from, AT_FDCWD, to, 0xabcd00000004ul);
        if (r == 0 || (lstat(from, &st) == 0 && S_ISCHR(st.st_mode)))
            return failed("a rename with high garbage left a whiteout in %s", dirs[i]);
    }
    return DONE;
}

/* A device node in a bind (made by a root caller): it exists, and nodev prevents opening it. */
int a11_node_in_bind(void)
{
    struct stat st;
    if (lstat("/device/zero", &st) < 0 || !S_ISCHR(st.st_mode))
        return failed("the node is not there");
    return open("/device/zero", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES
               ? DONE
               : failed("a device node of a bind can be opened");
}

int a11_twin(void)
{
    return mkfifo(in(argument("HOME"), "fifo"), 0644) == 0 && mkfifo(in(workspace(), "fifo"), 0644) == 0
               ? DONE
               : failed("mkfifo: %s", strerror(errno));
}

/* Every mount is nosuid; nodev wherever it is not one of the six nodes or devpts. */
static int check_flags(const struct seen_mount *m)
{
    if (!strstr(m->options, "nosuid"))
        return failed("%s is not nosuid: %s", m->target, m->options);
    if (!strstr(m->options, "nodev") && strcmp(m->type, "devpts") && !is_device_mount(m))
        return failed("%s is not nodev: %s", m->target, m->options);
    return DONE;
}
int a11_flags(void)
{
    return each_mount(check_flags);
}

int a12_list(void)
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

int a12_twin(void)
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
