/* Copying out of a box: what its tar says is written below a new name beside the target, which gets its place when all is
 * there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
#include "named/tar.h"
#include "plan/source.h"

enum { SIZE_DEFAULT_GIB = 4, TRIES = 32 };

struct place {
    int dir;                    /* of the target */
    char name[256], temporary[300];
    const char *top;            /* the name that every entry begins with */
    bool made, is_dir;          /* the temporary one is there */
    int file;                   /* being written, or -EBADF */
    uint64_t written;           /* of it, zeros included */
    int64_t mtime;
    uint64_t bytes, bytes_max;
    uint64_t streamed;          /* with headers, and with what is left out */
    struct px_tar_reader reader;
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
    char dir[PX_TAR_NAME_MAX];
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

static int open_target(struct place *p, const char *path, const char *source, struct px_err *e)
{
    if (open_directory(p, path, source, e) < 0)
        return -1;
    for (int i = 0; i < TRIES; i++) {
        struct stat st;
        uint32_t number = (uint32_t)(px_now_nsec() >> 10);
        (void)px_sys(SYS_getrandom, &number, sizeof number, 0);
        if (px_fmt(p->temporary, sizeof p->temporary, ".%.200s.px-%08x", p->name, number) >= 0 &&
            fstatat(p->dir, p->temporary, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
            return 0;
    }
    return px_fail(e, PX_E_IO, EEXIST, "cannot write to '%s'", path);
}

/* ---- entries ---- */

static int write_failed(const struct place *p, const char *name, int err, struct px_err *e)
{
    return px_fail(e, PX_E_IO, err, "cannot write '%s%s%s'", p->name, *name ? "/" : "", name);
}

/* The directory that holds the last part of a name, made as needed; nothing in it is a link, as we make none. */
static int open_parent(const struct place *p, const char *name, const char **ret_last)
{
    int at = (int)px_sys(SYS_openat, p->dir, p->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (const char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        char part[256];
        if (px_fmt(part, sizeof part, "%.*s", (int)(slash - name), name) < 0) {
            (void)px_fd_close(at);
            return -ENAMETOOLONG;
        }
        (void)px_sys(SYS_mkdirat, at, part, 0700);
        int next = (int)px_sys(SYS_openat, at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void)px_fd_close(at);
        at = next;
    }
    *ret_last = name;
    return at;
}

static int make_directory(const struct place *p, int parent, const char *last, const char *shown, uint32_t mode,
                          struct px_err *e)
{
    long r = px_sys(SYS_mkdirat, parent, last, mode | 0700);
    return r < 0 && r != -EEXIST ? write_failed(p, shown, (int)r, e) : 0;
}

static int open_new(int parent, const char *last, uint32_t mode)
{
    return (int)px_sys(SYS_openat, parent, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* Bytes count towards the limit whether they become holes or not. */
static int count_bytes(struct place *p, uint64_t bytes, struct px_err *e)
{
    p->bytes += bytes;
    if (p->bytes <= p->bytes_max)
        return 0;
    px_fail(e, PX_E_LIMIT, 0, "there is more to copy than %llu bytes", (unsigned long long)p->bytes_max);
    return px_fix(e, "Copy a part of it, or allow more: --max-size.");
}

static int copy_bytes(struct place *p, int from, int to, struct px_err *e)
{
    struct stat st;
    if (fstat(from, &st) < 0)
        return write_failed(p, "", errno, e);
    if (count_bytes(p, (uint64_t)st.st_size, e) < 0)
        return -1;
    int r = px_copy_file(from, to);
    return r < 0 ? write_failed(p, "", r, e) : 0;
}

/* A second name of a file of the archive becomes a file of its own. */
static int copy_link(struct place *p, int parent, const char *last, const struct px_tar_entry *entry, const char *shown,
                     struct px_err *e)
{
    size_t n = strlen(p->top);
    bool inside = strncmp(entry->target, p->top, n) == 0 && entry->target[n] == '/';
    const char *name;
    px_auto_fd int dir = inside ? open_parent(p, entry->target + n + 1, &name) : -ENOENT;
    px_auto_fd int from = dir < 0 ? dir : (int)px_sys(SYS_openat, dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    px_auto_fd int to = from < 0 ? from : open_new(parent, last, entry->mode);
    return to < 0 ? write_failed(p, shown, to, e) : copy_bytes(p, from, to, e);
}

static int begin_below(struct place *p, const struct px_tar_entry *entry, const char *name, struct px_err *e)
{
    const char *last;
    if (!p->made || !p->is_dir)
        return write_failed(p, name, ENOTDIR, e);
    px_auto_fd int parent = open_parent(p, name, &last);
    if (parent < 0)
        return write_failed(p, name, parent, e);
    if (entry->type == PX_TAR_DIRECTORY)
        return make_directory(p, parent, last, name, entry->mode, e);
    if (entry->type == PX_TAR_LINK)
        return copy_link(p, parent, last, entry, name, e);
    p->file = open_new(parent, last, entry->mode);
    return p->file < 0 ? write_failed(p, name, p->file, e) : 0;
}

static int begin_top(struct place *p, const struct px_tar_entry *entry, struct px_err *e)
{
    if (p->made || entry->type == PX_TAR_LINK)
        return write_failed(p, "", EEXIST, e);
    p->is_dir = entry->type == PX_TAR_DIRECTORY;
    p->file = p->is_dir ? -EBADF : open_new(p->dir, p->temporary, entry->mode);
    if (!p->is_dir && p->file < 0)
        return write_failed(p, "", p->file, e);
    if (p->is_dir && make_directory(p, p->dir, p->temporary, "", entry->mode, e) < 0)
        return -1;
    p->made = true;
    return 0;
}

static int begin(void *user, const struct px_tar_entry *entry, struct px_err *e)
{
    struct place *p = user;
    size_t n = strlen(p->top);
    p->mtime = entry->mtime;
    if (strncmp(entry->name, p->top, n) != 0 || (entry->name[n] != '\0' && entry->name[n] != '/')) {
        px_fail(e, PX_E_IO, 0, "the archive that came from the box holds '%s', which nobody asked for", entry->name);
        return px_why(e, "tar in the box is broken, or something in the box means harm.");
    }
    return entry->name[n] ? begin_below(p, entry, entry->name + n + 1, e) : begin_top(p, entry, e);
}

static int data(void *user, const char *bytes, size_t size, struct px_err *e)
{
    struct place *p = user;
    if (count_bytes(p, size, e) < 0)
        return -1;
    int r = px_copy_stream(p->file, &p->written, bytes, size);
    return r < 0 ? write_failed(p, "", r, e) : 0;
}

static int end(void *user, struct px_err *e)
{
    struct place *p = user;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = p->mtime}};
    int r = px_copy_end(p->file, p->written);
    if (p->mtime > 0)
        (void)futimens(p->file, times);
    p->file = px_fd_close(p->file);
    p->written = 0;
    return r < 0 ? write_failed(p, "", r, e) : 0;
}

/* ---- the end ---- */

static void drop(struct place *p)
{
    p->file = px_fd_close(p->file);
    if (p->made && p->is_dir) {
        px_auto_fd int tree = (int)px_sys(SYS_openat, p->dir, p->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (tree >= 0)
            (void)px_kernel_tree_empty(tree);
    }
    if (p->made)
        (void)px_sys(SYS_unlinkat, p->dir, p->temporary, p->is_dir ? AT_REMOVEDIR : 0);
    p->made = false;
}

/* A file takes the place of a file; nothing else is ever replaced. */
static int put_in_place(struct place *p, const char *path, struct px_err *e)
{
    struct stat st;
    long r = px_sys(SYS_renameat2, p->dir, p->temporary, p->dir, p->name, 1 /* RENAME_NOREPLACE */);
    if (r == -EEXIST && !p->is_dir && fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        r = renameat(p->dir, p->temporary, p->dir, p->name) < 0 ? -errno : 0;
    if (r >= 0)
        return 0;
    px_fail(e, PX_E_IO, (int)r, "cannot put '%s' into its place at '%s'", p->name, path);
    if (r == -EEXIST)
        px_fix(e, "Remove what is there, or name another target: a directory is never merged with another.");
    return -1;
}

static int take_tar(void *user, const char *bytes, size_t size, struct px_err *e)
{
    enum { OF_AN_ENTRY = 8192, SPARE = 1024 };
    struct place *p = user;
    p->streamed += size;
    if (p->streamed > p->bytes_max + (p->reader.entries + SPARE) * OF_AN_ENTRY)
        return px_fail(e, PX_E_LIMIT, 0, "the box sends more than what is to be copied can take");
    return px_tar_read(&p->reader, bytes, size, e);
}

static int receive_tree(struct px_living *l, struct place *p, const char *dir, const char *path, struct px_err *e)
{
    char member[300], said[256];
    int status = 0;
    const struct px_tar_sink sink = {begin, data, end, p};
    const struct px_named_stream how = {.take = take_tar, .user = p};
    if (px_fmt(member, sizeof member, "./%s", p->top) < 0)
        return px_fail(e, PX_E_VALUE, ENAMETOOLONG, "'%s' is not a path in a box", path);
    const char *const argv[] = {"tar", "-c", "-f", "-", "-C", dir, member, NULL};
    px_tar_reader_init(&p->reader, &sink);
    int r = px_named_stream(l, argv, &how, &status, said, e);
    if (r >= 0 && status)
        r = px_named_copy_failed("reading", path, status, said, e);
    if (r >= 0)
        r = px_tar_read_end(&p->reader, e);
    if (r < 0 || p->made)
        return r;
    px_fail(e, PX_E_IO, 0, "'%s' was not copied", path);
    px_why(e, "It is a link, a device or the like.");
    return px_fix(e, "Only files and directories are copied: name what the link leads to.");
}

static int receive_file(struct px_living *l, struct place *p, const char *path, struct px_err *e)
{
    const struct px_tar_entry entry = {.type = PX_TAR_FILE, .name = p->top, .mode = 0666};
    const char *const argv[] = {"cat", path, NULL};
    const struct px_named_stream how = {.take = data, .user = p};
    char said[256];
    int status = 0;
    if (begin_top(p, &entry, e) < 0 || px_named_stream(l, argv, &how, &status, said, e) < 0)
        return -1;
    return status ? px_named_copy_failed("reading", path, status, said, e) : end(p, e);
}

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
    if (there.tar)
        return receive_tree(l, p, dir, path, e);
    if (there.file)
        return receive_file(l, p, path, e);
    px_fail(e, PX_E_NOT_FOUND, 0, "'%s' is no file, and the box has no tar to send anything else", path);
    return px_fix(e, "Copy single files, or use a base that has tar.");
}

PX_API int px_living_copy_out(struct px_living *living, const char *box_path, const char *host_path, const char *size_max,
                              uint64_t *ret_skipped, struct px_err *e)
{
    PX_ERR(e);
    char path[PX_TAR_NAME_MAX], dir[PX_TAR_NAME_MAX];
    struct place *p = calloc(1, sizeof *p);
    if (!p)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "copy");
    *p = (struct place){.dir = -EBADF, .file = -EBADF, .bytes_max = (uint64_t)SIZE_DEFAULT_GIB << 30};
    int r = size_max && px_parse_bytes(size_max, &p->bytes_max) < 0 ? px_fail(e, PX_E_VALUE, 0, "'%s' is not a size", size_max)
                                                                    : px_named_box_path(living, box_path, path, sizeof path, e);
    if (r >= 0)
        px_named_split_path(path, dir, sizeof dir, &p->top);
    if (r >= 0 && p->top[0] == '\0')
        r = px_fail(e, PX_E_VALUE, 0, "the root of a box cannot be copied");
    if (r >= 0)
        r = open_target(p, host_path, p->top, e);
    if (r >= 0)
        r = receive(living, p, path, dir, e);
    if (r >= 0)
        r = put_in_place(p, host_path, e);
    if (r < 0)
        drop(p);
    if (ret_skipped)
        *ret_skipped = p->reader.skipped;
    px_tar_reader_done(&p->reader);
    (void)px_fd_close(p->dir);
    free(p);
    return r;
}
