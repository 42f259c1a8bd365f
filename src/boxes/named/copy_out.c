/* Copying out of a box: px-layer unpacks what its tar says in a new directory beside the target. When all is there, it is moved to its
 * place. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "kernel/copy.h"
#include "kernel/tree.h"
#include "named/copy_in.h"
#include "plan/source.h"
#include "transfer/layer.h"

enum { SIZE_DEFAULT_GIB = 4, TRIES = 32 };

struct place {
    int dir;                    /* of the target */
    char name[256], temporary[300];
    int tree;                   /* the temporary directory, which gets `top`; -EBADF: not made */
    const char *top;            /* the name of the source in the box */
    struct px_unpack_limits limits;
    struct px_layer_stream layer;
    int file;                   /* being written, without tar */
    uint64_t written;           /* of it, zeros included */
    uint64_t skipped;
};

/* ---- the target on the host ---- */

static int split_target(const char *path, char *dir, size_t size, char name[256])
{
    const char *slash = strrchr(path, '/');
    int r = slash ? px_fmt(dir, size, "%.*s", slash == path ? 1 : (int)(slash - path), path) : px_fmt(dir, size, ".");
    return r < 0 ? r : px_fmt(name, 256, "%s", slash ? slash + 1 : path);
}

/* A directory that is there gets the source into it; else the last part of the path is the new name. */
static int open_directory(struct place *p, const char *path, const char *source, struct px_err *e)
{
    char dir[PX_NAMED_PATH_MAX];
    const char *at = path;
    p->dir = px_source_open(path, O_RDONLY | O_DIRECTORY);
    int r = p->dir >= 0 ? px_fmt(p->name, sizeof p->name, "%s", source) : split_target(path, dir, sizeof dir, p->name);
    if (p->dir < 0 && p->dir != -ELOOP && r >= 0)
        p->dir = px_source_open(at = dir, O_RDONLY | O_DIRECTORY);
    if (p->dir == -ELOOP)
        return px_named_refuse_link(at, "where px writes", e);
    if (r < 0 || p->dir < 0 || p->name[0] == '\0')
        return px_fail(e, PX_E_IO, p->dir < 0 ? p->dir : r < 0 ? r : EINVAL, "cannot write to '%s'", path);
    return 0;
}

static int write_failed(const struct place *p, int err, struct px_err *e)
{
    return px_fail(e, PX_E_IO, err, "cannot write '%s'", p->name);
}

static int make_temporary(struct place *p, struct px_err *e)
{
    long r = -EEXIST;
    for (int i = 0; i < TRIES && r == -EEXIST; i++) {
        uint32_t number = (uint32_t)(px_now_nsec() >> 10);
        (void)px_sys(SYS_getrandom, &number, sizeof number, 0);
        r = px_fmt(p->temporary, sizeof p->temporary, ".%.200s.px-%08x", p->name, number);
        if (r >= 0)
            r = px_sys(SYS_mkdirat, p->dir, p->temporary, 0700);
    }
    if (r < 0)
        return write_failed(p, (int)r, e);
    p->tree = (int)px_sys(SYS_openat, p->dir, p->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->tree >= 0)
        return 0;
    (void)px_sys(SYS_unlinkat, p->dir, p->temporary, AT_REMOVEDIR);
    return write_failed(p, p->tree, e);
}

/* After a copy that worked it is empty, unless a box has put something into it, which stays. */
static void remove_temporary(struct place *p, bool failed)
{
    if (p->tree < 0)
        return;
    if (failed)
        (void)px_kernel_tree_empty(p->tree);
    (void)px_sys(SYS_unlinkat, p->dir, p->temporary, AT_REMOVEDIR);
    p->tree = px_fd_close(p->tree);
}

/* A file takes the place of a file; nothing else is ever replaced. */
static int put_in_place(struct place *p, const char *path, struct px_err *e)
{
    struct stat st;
    bool directory = fstatat(p->tree, p->top, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    long r = px_sys(SYS_renameat2, p->tree, p->top, p->dir, p->name, 1 /* RENAME_NOREPLACE */);
    if (r == -EEXIST && !directory && fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        r = px_sys(SYS_renameat2, p->tree, p->top, p->dir, p->name, 0);
    if (r >= 0)
        return 0;
    px_fail(e, PX_E_IO, (int)r, "cannot put '%s' into its place at '%s'", p->name, path);
    if (r == -EEXIST)
        px_fix(e, "Remove what is there, or name another target: a directory is never merged with another.");
    return -1;
}

/* ---- with tar ---- */

static int take_tar(void *user, const char *bytes, size_t size, struct px_err *e)
{
    struct place *p = user;
    return px_layer_write(&p->layer, bytes, size, e);
}

/* What tar in the box writes goes to px-layer; nothing here reads it. */
static int stream_tree(struct px_living *l, struct place *p, const char *dir, const char *path, struct px_err *e)
{
    char member[300], said[256];
    int status = 0;
    struct px_unpacked done;
    const struct px_named_stream how = {.take = take_tar, .user = p, .layer = &p->layer};
    if (px_fmt(member, sizeof member, "./%s", p->top) < 0)
        return px_fail(e, PX_E_VALUE, ENAMETOOLONG, "'%s' is not a path in a box", path);
    const char *const argv[] = {"tar", "-c", "-f", "-", "-C", dir, member, NULL};
    if (px_layer_receive(p->tree, p->top, &p->limits, l->cancel, &p->layer, e) < 0)
        return -1;
    int r = px_named_stream(l, argv, &how, &status, said, e);
    if (r >= 0 && status)
        r = px_named_copy_failed("reading", path, status, said, e);
    else if (r >= 0 && (r = px_layer_finish(&p->layer, &done, e)) >= 0)
        p->skipped = done.dropped;
    px_layer_drop(&p->layer);
    return r;
}

/* px-layer speaks of archives and of the store; here it is a copy. */
static int say_as_copy(struct px_err *e)
{
    char what[sizeof e->what];
    bool refused = e && e->code == PX_E_ARCHIVE;
    if (!refused && !(e && e->code == PX_E_STORE_WRITE))
        return -1;
    memcpy(what, e->what, sizeof what);
    px_fail(e, PX_E_IO, e->sys, "%s", what);
    return refused ? px_why(e, "tar in the box is broken, or something in the box means harm.") : -1;
}

static int receive_tree(struct px_living *l, struct place *p, const char *dir, const char *path, struct px_err *e)
{
    struct stat st;
    if (stream_tree(l, p, dir, path, e) < 0)
        return say_as_copy(e);
    if (fstatat(p->tree, p->top, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    px_fail(e, PX_E_IO, 0, "'%s' was not copied", path);
    px_why(e, "It is a link, a device or the like.");
    return px_fix(e, "Only files and directories are copied: name what the link leads to.");
}

/* ---- without ---- */

/* Bytes count towards the limit whether they become holes or not. */
static int take_file(void *user, const char *bytes, size_t size, struct px_err *e)
{
    struct place *p = user;
    if (size > p->limits.bytes - p->written) {
        px_fail(e, PX_E_LIMIT, 0, "there is more to copy than %llu bytes", (unsigned long long)p->limits.bytes);
        return px_fix(e, "Copy a part of it, or allow more: --max-size.");
    }
    int r = px_copy_stream(p->file, &p->written, bytes, size);
    return r < 0 ? write_failed(p, r, e) : 0;
}

static int receive_file(struct px_living *l, struct place *p, const char *path, struct px_err *e)
{
    const char *const argv[] = {"cat", path, NULL};
    const struct px_named_stream how = {.take = take_file, .user = p};
    char said[256];
    int status = 0;
    px_auto_fd int file = (int)px_sys(SYS_openat, p->tree, p->top, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    p->file = file;
    if (file < 0)
        return write_failed(p, file, e);
    if (px_named_stream(l, argv, &how, &status, said, e) < 0)
        return -1;
    if (status)
        return px_named_copy_failed("reading", path, status, said, e);
    int r = px_copy_end(file, p->written);
    return r < 0 ? write_failed(p, r, e) : 0;
}

/* ---- */

static int not_there(const char *path, struct px_err *e)
{
    px_fail(e, PX_E_IO, ENOENT, "there is no '%s' in the box", path);
    return px_fix(e, "Check the path: a relative one begins at the box's working directory. `px box exec NAME -- ls DIR` shows what is there.");
}

static int receive(struct px_living *l, struct place *p, const char *path, const char *dir, struct px_err *e)
{
    struct px_named_there there = {0};
    if (px_named_there(l, path, &there, e) < 0)
        return -1;
    if (!there.exists)
        return not_there(path, e);
    if (there.tar || there.file) {
        if (make_temporary(p, e) < 0)
            return -1;
        return there.tar ? receive_tree(l, p, dir, path, e) : receive_file(l, p, path, e);
    }
    px_fail(e, PX_E_NOT_FOUND, 0, "'%s' is no file, and the box has no tar to send anything else", path);
    return px_fix(e, "Copy single files, or use a base that has tar.");
}

PX_API int px_living_copy_out(struct px_living *living, const char *box_path, const char *host_path, const char *size_max,
                              uint64_t *ret_skipped, struct px_err *e)
{
    PX_ERR(e);
    char path[PX_NAMED_PATH_MAX], dir[PX_NAMED_PATH_MAX];
    struct place p = {.dir = -EBADF, .tree = -EBADF, .file = -EBADF, .limits = px_unpack_limits_default};
    p.limits.bytes = (uint64_t)SIZE_DEFAULT_GIB << 30;
    int r = size_max && px_parse_bytes(size_max, &p.limits.bytes) < 0 ? px_fail(e, PX_E_VALUE, 0, "'%s' is not a size", size_max)
                                                                      : px_named_box_path(living, box_path, path, sizeof path, e);
    if (r >= 0)
        px_named_split_path(path, dir, sizeof dir, &p.top);
    if (r >= 0 && p.top[0] == '\0')
        r = px_fail(e, PX_E_VALUE, 0, "the root of a box cannot be copied");
    if (r >= 0)
        r = open_directory(&p, host_path, p.top, e);
    if (r >= 0)
        r = receive(living, &p, path, dir, e);
    if (r >= 0)
        r = put_in_place(&p, host_path, e);
    remove_temporary(&p, r < 0);
    if (ret_skipped)
        *ret_skipped = p.skipped;
    (void)px_fd_close(p.dir);
    return r;
}
