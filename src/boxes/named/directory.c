/* The directory of a named box: PX_HOME/run/boxes/NAME with a lock, a socket and logs in it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "kernel/tree.h"
#include "named/named_internal.h"
#include "state/home.h"
#include "state/state.h"

enum { LOCK_MSEC_MAX = 10000, NAMES_MAX = 10000, TRIES = 100, LOCK_TRIES = 2000 };

/* ---- directories ---- */

static const struct px_home_use use = {PX_E_IO, "boxes"};

/* A directory that px has not made, such as a copy, holds no boxes: its content must not be taken for dead boxes. */
static int check_mark(const char *home, int top, const char *shown, struct px_err *e)
{
    struct px_state run = PX_STATE_NONE;
    const struct px_state_place place = {.parent = top, .name = "run", .shown = shown, .kind = "run", .home = home};
    int r = px_state_open(&place, true, &run, e);
    (void)px_fd_close(run.fd);
    return r;
}

int px_named_boxes(const char *home, bool make, int *ret_boxes, struct px_err *e)
{
    char path[2048], run[2048], boxes[2048];
    px_auto_fd int top = -EBADF, middle = -EBADF, fd = -EBADF;
    if (px_home_find(home, &use, path, sizeof path, e) < 0)
        return -1;
    if (px_fmt(run, sizeof run, "%s/run", path) < 0 || px_fmt(boxes, sizeof boxes, "%s/boxes", run) < 0)
        return px_fail(e, PX_E_IO, ENAMETOOLONG, "cannot open '%s/run/boxes'", path);
    int r = px_home_enter(AT_FDCWD, path, path, make, 022, &use, &top, e);
    if (r == 0)
        r = px_home_enter(top, "run", run, make, 077, &use, &middle, e);
    if (r == 0)
        r = check_mark(home, top, run, e);
    if (r == 0)
        r = px_home_enter(middle, "boxes", boxes, make, 077, &use, &fd, e);
    if (r < 0)
        return -1;
    *ret_boxes = r == 1 ? -EBADF : px_fd_take(&fd);
    return 0;
}

/* Names are made and removed under this one lock, which is held only for a moment. */
static int lock_boxes(int boxes)
{
    uint64_t end = px_now_nsec() + (uint64_t)LOCK_MSEC_MAX * 1000000;
    const struct timespec moment = {.tv_nsec = 1000000};
    int fd = (int)px_sys(SYS_openat, boxes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (px_now_nsec() > end)
            return px_fd_close(fd);
        (void)nanosleep(&moment, NULL);
    }
    return fd;
}

/* ---- who is alive ---- */

int px_named_held(int boxes, const char *name)
{
    px_auto_fd int dir = (int)px_sys(SYS_openat, boxes, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return dir == -ENOENT ? -ENOENT : 0;
    px_auto_fd int lock = (int)px_sys(SYS_openat, dir, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0;     /* shared: a check blocks others only for a moment */
}

static void remove_box(int boxes, int dir, const char *name)
{
    if (dir >= 0)
        (void)px_kernel_tree_empty(dir);
    (void)px_sys(SYS_unlinkat, boxes, name, AT_REMOVEDIR);
}

/* Under the lock of all boxes. */
static void sweep_one(int boxes, const char *name)
{
    if (!px_policy_name_ok(name) || px_named_held(boxes, name) != 0)
        return;
    px_auto_fd int dir = (int)px_sys(SYS_openat, boxes, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    remove_box(boxes, dir, name);
}

void px_named_sweep(int boxes)
{
    px_auto_fd int all = lock_boxes(boxes);
    int copy = all < 0 ? -EBADF : (int)px_sys(SYS_openat, boxes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    for (int seen = 0; dir && seen < NAMES_MAX && (entry = readdir(dir)); seen++)
        sweep_one(boxes, entry->d_name);
    if (dir)
        (void)closedir(dir);
    else
        (void)px_fd_close(copy);
}

/* ---- taking a name ---- */

static int make_lock(int dir)
{
    px_auto_fd int lock = (int)px_sys(SYS_openat, dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    const struct timespec moment = {.tv_nsec = 1000000};
    int r = lock < 0 ? lock : -EBUSY;
    /* another process may be checking whether it is taken */
    for (int i = 0; lock >= 0 && r < 0 && i < LOCK_TRIES; i++) {
        r = flock(lock, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
        if (r < 0)
            (void)nanosleep(&moment, NULL);
    }
    return r < 0 ? r : px_fd_take(&lock);
}

/* Under the lock of all boxes. -EEXIST: a living one has it. */
static int take_name(const char *name, struct px_named_place *place)
{
    sweep_one(place->boxes, name);
    long r = px_sys(SYS_mkdirat, place->boxes, name, 0700);
    if (r < 0)
        return (int)r;
    place->dir = (int)px_sys(SYS_openat, place->boxes, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    place->lock = place->dir < 0 ? place->dir : make_lock(place->dir);
    if (place->lock >= 0)
        return px_fmt(place->name, sizeof place->name, "%s", name);
    remove_box(place->boxes, place->dir, name);
    return place->lock;
}

static int take_any(struct px_named_place *place)
{
    int r = -EEXIST;
    for (int i = 0; i < TRIES && r == -EEXIST; i++) {
        char name[PX_BOX_NAME_MAX];
        uint32_t number = 0;
        if (px_sys(SYS_getrandom, &number, sizeof number, 0) != sizeof number)
            number = (uint32_t)(px_now_nsec() / 1000);
        r = px_fmt(name, sizeof name, "box-%08x", number);
        r = r < 0 ? r : take_name(name, place);
    }
    return r;
}

int px_named_claim(const char *home, const char *name, struct px_named_place *ret_place, struct px_err *e)
{
    struct px_named_place place = PX_KEEP_NOWHERE;
    if (px_named_boxes(home, true, &place.boxes, e) < 0)
        return -1;
    px_named_sweep(place.boxes);
    px_auto_fd int all = lock_boxes(place.boxes);
    int r = all < 0 ? -EBUSY : name ? take_name(name, &place) : take_any(&place);
    if (r >= 0) {
        *ret_place = place;
        return 0;
    }
    (void)px_fd_close(place.dir);
    (void)px_fd_close(place.boxes);
    if (r != -EEXIST)
        return px_fail(e, PX_E_IO, r, "cannot write down the box");
    px_fail(e, PX_E_NAME, 0, "there is a box '%s' already", name ? name : "box-*");
    px_why(e, "A name belongs to one box of its owner at a time.");
    return px_fix(e, "Use it: px box exec %s -- COMMAND.\nOr end it: px box stop %s.\nOr choose another name.", name, name);
}

void px_named_let_go(struct px_named_place *place)
{
    if (place->boxes >= 0 && place->lock >= 0) {
        px_auto_fd int all = lock_boxes(place->boxes);
        if (all >= 0)           /* else the next process that checks finds the lock free and removes it */
            remove_box(place->boxes, place->dir, place->name);
    }
    place->lock = px_fd_close(place->lock);
    place->dir = px_fd_close(place->dir);
    place->boxes = px_fd_close(place->boxes);
}

/* ---- sockets ---- */

/* A path through the directory's descriptor: short whatever PX_HOME is, and without links. */
static int socket_name(int dir, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    return px_fmt(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/socket", dir);
}

int px_named_listen(int dir)
{
    struct sockaddr_un name;
    px_auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int r = socket_name(dir, &name);
    if (r < 0)
        return r;
    /* The file gets the mode of the socket, less the umask, which a library must not change. */
    if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) < 0 || listen(fd, 128) < 0)
        return -errno;
    return px_fd_take(&fd);
}

int px_named_connect(int dir)
{
    struct sockaddr_un name;
    struct stat st;
    px_auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int r = socket_name(dir, &name);
    if (r < 0)
        return r;
    if (fstatat(dir, "socket", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISSOCK(st.st_mode))
        return -ENOTSOCK;
    if (connect(fd, (struct sockaddr *)&name, sizeof name) < 0)
        return -errno;
    return px_fd_take(&fd);
}
