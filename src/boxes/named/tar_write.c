/* Writing tar for a box: a tree of the host, by descriptor, no link followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "named/tar.h"

enum { NAME_SIZE = 100, END_BLOCKS = 2, LINK_MAX_BYTES = 4096 };

struct level {
    DIR *dir;
    size_t name_length;         /* of the directory's own name, in writer.name */
};

struct px_tar_writer {
    char name[PX_TAR_NAME_MAX]; /* of what is being written */
    struct level level[PX_TAR_DEPTH_MAX];
    int depth;                  /* levels that are open */
    int file;                   /* being read, or -EBADF */
    uint64_t left, pad;         /* of its bytes; zeros behind them */
    char head[16 * PX_TAR_BLOCK];       /* headers and long names on their way */
    size_t head_length, head_at;
    bool over;                  /* all entries are out */
};

/* ---- headers ---- */

static void octal(char *field, size_t size, uint64_t value)
{
    field[size - 1] = '\0';
    for (size_t i = size - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

static void size_field(char *field, uint64_t value)
{
    if (value < 1ull << 33) {
        octal(field, 12, value);
        return;
    }
    for (size_t i = 12; i-- > 1; value >>= 8)
        field[i] = (char)(value & 0xff);
    field[0] = (char)0x80;
}

static void add_header(struct px_tar_writer *w, const char *name, const char *link, char type, const struct stat *st,
                       uint64_t size)
{
    char *block = w->head + w->head_length;
    uint64_t sum = 0;
    memset(block, 0, PX_TAR_BLOCK);
    memcpy(block, name, strnlen(name, NAME_SIZE));
    octal(block + 100, 8, st->st_mode & 0777);
    octal(block + 108, 8, 0);
    octal(block + 116, 8, 0);
    size_field(block + 124, size);
    octal(block + 136, 12, st->st_mtime > 0 ? (uint64_t)st->st_mtime : 0);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 157, link, strnlen(link, NAME_SIZE));
    memcpy(block + 257, "ustar  ", 8);          /* GNU's form: every tar knows its long names */
    for (int i = 0; i < PX_TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    octal(block + 148, 7, sum);
    w->head_length += PX_TAR_BLOCK;
}

/* A text that its field has no room for goes ahead as the content of an entry of its own. */
static void add_long(struct px_tar_writer *w, char type, const char *text)
{
    const struct stat none = {.st_mode = 0644};
    size_t n = strlen(text) + 1, blocks = (n + PX_TAR_BLOCK - 1) / PX_TAR_BLOCK;
    if (n <= NAME_SIZE)
        return;
    add_header(w, "././@LongLink", "", type, &none, n);
    memset(w->head + w->head_length, 0, blocks * PX_TAR_BLOCK);
    memcpy(w->head + w->head_length, text, n);
    w->head_length += blocks * PX_TAR_BLOCK;
}

static int add_entry(struct px_tar_writer *w, const char *link, char type, const struct stat *st, uint64_t size,
                     struct px_err *e)
{
    char name[PX_TAR_NAME_MAX + 1];
    w->head_length = w->head_at = 0;
    if (px_fmt(name, sizeof name, "%s%s", w->name, type == '5' ? "/" : "") < 0 ||
        strlen(name) + strlen(link) > sizeof w->head - (size_t)6 * PX_TAR_BLOCK)
        return px_fail(e, PX_E_LIMIT, 0, "'%s' has too long a name to be copied", w->name);
    add_long(w, 'K', link);
    add_long(w, 'L', name);
    add_header(w, name, link, type, st, size);
    return 0;
}

/* ---- the tree ---- */

static int enter(struct px_tar_writer *w, int fd, struct px_err *e)
{
    DIR *dir = w->depth < PX_TAR_DEPTH_MAX ? fdopendir(fd) : NULL;
    if (!dir) {
        (void)px_fd_close(fd);
        return px_fail(e, PX_E_LIMIT, 0, "'%s' is too deep to be copied", w->name);
    }
    w->level[w->depth++] = (struct level){.dir = dir, .name_length = strlen(w->name)};
    return 0;
}

/* A file or directory that is open; takes it. */
static int add_open(struct px_tar_writer *w, int fd, const struct stat *st, struct px_err *e)
{
    bool directory = S_ISDIR(st->st_mode);
    uint64_t size = directory ? 0 : (uint64_t)st->st_size;
    if (add_entry(w, "", directory ? '5' : '0', st, size, e) < 0) {
        (void)px_fd_close(fd);
        return -1;
    }
    if (directory)
        return enter(w, fd, e);
    w->file = fd;
    w->left = size;
    w->pad = (PX_TAR_BLOCK - size % PX_TAR_BLOCK) % PX_TAR_BLOCK;
    return 0;
}

static int add_link(struct px_tar_writer *w, int dir, const char *name, const struct stat *st, struct px_err *e)
{
    char target[LINK_MAX_BYTES];
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
    if (n < 0)
        return px_fail(e, PX_E_IO, errno, "cannot read the link '%s'", w->name);
    target[n] = '\0';
    return add_entry(w, target, '2', st, 0, e);
}

static int add_found(struct px_tar_writer *w, int dir, const char *name, struct px_err *e)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : px_fail(e, PX_E_IO, errno, "cannot look at '%s'", w->name);
    if (S_ISLNK(st.st_mode))
        return add_link(w, dir, name, &st, e);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;
    int fd = (int)px_sys(SYS_openat, dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd == -ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
        (void)px_fd_close(fd);
        return px_fail(e, PX_E_IO, fd < 0 ? fd : ESTALE, "cannot read '%s'", w->name);
    }
    return add_open(w, fd, &st, e);
}

static int next_entry(struct px_tar_writer *w, struct px_err *e)
{
    if (w->depth == 0) {
        w->over = true;
        w->head_at = 0;
        w->head_length = (size_t)END_BLOCKS * PX_TAR_BLOCK;
        memset(w->head, 0, w->head_length);
        return 0;
    }
    struct level *top = &w->level[w->depth - 1];
    w->name[top->name_length] = '\0';
    errno = 0;
    const struct dirent *entry = readdir(top->dir);
    if (!entry && errno)
        return px_fail(e, PX_E_IO, errno, "cannot read '%s'", w->name);
    if (!entry) {
        (void)closedir(top->dir);
        w->depth--;
        return 0;
    }
    if (px_equal(entry->d_name, ".") || px_equal(entry->d_name, ".."))
        return 0;
    if (px_fmt(w->name + top->name_length, sizeof w->name - top->name_length, "/%s", entry->d_name) < 0)
        return px_fail(e, PX_E_LIMIT, ENAMETOOLONG, "something in '%s' has too long a name to be copied", w->name);
    return add_found(w, dirfd(top->dir), entry->d_name, e);
}

/* ---- the bytes ---- */

/* As many bytes as the header said, whatever becomes of the file meanwhile. */
static long file_bytes(struct px_tar_writer *w, char *out, size_t size, struct px_err *e)
{
    size_t want = w->left < size ? (size_t)w->left : size;
    ssize_t n = px_read_some(w->file, out, want);
    if (n < 0)
        return px_fail(e, PX_E_IO, (int)n, "cannot read '%s'", w->name);
    if (n == 0) {
        memset(out, 0, want);
        n = (ssize_t)want;
    }
    w->left -= (uint64_t)n;
    return n;
}

long px_tar_write(struct px_tar_writer *w, char *out, size_t size, struct px_err *e)
{
    for (;;) {
        if (w->head_at < w->head_length) {
            size_t n = w->head_length - w->head_at < size ? w->head_length - w->head_at : size;
            memcpy(out, w->head + w->head_at, n);
            w->head_at += n;
            return (long)n;
        }
        if (w->left > 0)
            return file_bytes(w, out, size, e);
        w->file = px_fd_close(w->file);
        if (w->pad > 0) {
            size_t n = w->pad < size ? (size_t)w->pad : size;
            memset(out, 0, n);
            w->pad -= n;
            return (long)n;
        }
        if (w->over)
            return 0;
        if (next_entry(w, e) < 0)
            return -1;
    }
}

int px_tar_writer_new(int fd, const char *name, struct px_tar_writer **ret_writer, struct px_err *e)
{
    struct stat st;
    struct px_tar_writer *w = calloc(1, sizeof *w);
    int r = !w ? -ENOMEM : fstat(fd, &st) < 0 ? -errno : 0;
    if (r >= 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        r = -ENODEV;
    if (r < 0) {
        (void)px_fd_close(fd);
        free(w);
        return px_fail(e, PX_E_IO, r, "only files and directories can be copied");
    }
    w->file = -EBADF;
    if (px_fmt(w->name, sizeof w->name, "%s", name) < 0) {
        (void)px_fd_close(fd);
        px_tar_writer_free(w);
        return px_fail(e, PX_E_LIMIT, ENAMETOOLONG, "'%.80s...' is too long a name to be copied", name);
    }
    if (add_open(w, fd, &st, e) < 0) {
        px_tar_writer_free(w);
        return -1;
    }
    *ret_writer = w;
    return 0;
}

void px_tar_writer_free(struct px_tar_writer *w)
{
    if (!w)
        return;
    while (w->depth > 0)
        (void)closedir(w->level[--w->depth].dir);
    (void)px_fd_close(w->file);
    free(w);
}
