/* Looking without reading. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "files/files.h"
#include "files/stat.h"

const char *px_files_kind_name(enum px_files_kind kind)
{
    static const char *const names[] = {"none", "file", "directory", "link", "other"};
    return (size_t)kind < PX_COUNT_OF(names) ? names[kind] : "other";
}

enum px_files_kind px_stat_kind(mode_t mode)
{
    return S_ISREG(mode)   ? PX_FILES_FILE
           : S_ISDIR(mode) ? PX_FILES_DIRECTORY
           : S_ISLNK(mode) ? PX_FILES_LINK
                           : PX_FILES_OTHER;
}

/* By the rules alone: whether the system also lets us is known when it is tried. */
static void add_rules(const struct px_place *place, struct px_files_stat *st)
{
    bool suffix = st->kind == PX_FILES_DIRECTORY || px_roots_suffix_ok(place->root, place->rel);
    st->readable = suffix && st->kind != PX_FILES_OTHER && st->size <= place->root->max_bytes;
    st->writable = suffix && st->kind != PX_FILES_OTHER && px_files_target_writable(place);
}

static int look(const struct px_place *place, struct px_files_stat *ret)
{
    struct statx sx = {0};
    px_auto_fd int fd = px_open_in_root(place->root->fd, px_files_resolve_rel(place), O_PATH, 0);
    if (fd < 0)
        return fd;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &sx) < 0)
        return -errno;
    *ret = (struct px_files_stat){
        .kind = px_stat_kind(sx.stx_mode),
        .size = S_ISREG(sx.stx_mode) ? sx.stx_size : 0,
        .mode = sx.stx_mode & 07777,
        .modified = sx.stx_mtime.tv_sec,
        .accessed = sx.stx_atime.tv_sec,
        .created = sx.stx_mask & STATX_BTIME ? sx.stx_btime.tv_sec : 0,
    };
    return 0;
}

int px_files_resolve(const struct px_files *files, const char *path, char **ret_path, struct px_files_stat *ret_stat,
                     struct px_err *e)
{
    PX_ERR(e);
    struct px_place place;
    struct px_files_stat st = {0};
    int r = px_files_resolve_place(files, path, 0, &place);
    if (r >= 0) {
        r = look(&place, &st);
        r = r == -ENOENT || r == -ENOTDIR ? 0 : r;
    }
    if (r < 0)
        return px_files_error_sys(files, "access", path, r, e);
    add_rules(&place, &st);
    char *name = px_files_resolve_name(&place);
    if (!name)
        return px_files_error_memory(e);
    *ret_path = name;
    if (ret_stat)
        *ret_stat = st;
    return 0;
}

int px_files_stat(const struct px_files *files, const char *path, struct px_files_stat *ret_stat, struct px_err *e)
{
    PX_ERR(e);
    struct px_place place;
    struct px_files_stat st = {0};
    int r = px_files_resolve_place(files, path, 0, &place);
    if (r >= 0)
        r = look(&place, &st);
    if (r < 0)
        return px_files_error_sys(files, "access", path, r, e);
    add_rules(&place, &st);
    *ret_stat = st;
    return 0;
}

static bool can(const struct px_files *files, const char *path, bool write)
{
    char *name = NULL;
    struct px_files_stat st = {0};
    if (px_files_resolve(files, path, &name, &st, NULL) < 0)
        return false;
    free(name);
    return write ? st.writable && st.kind != PX_FILES_DIRECTORY : st.readable;
}

bool px_files_can_read(const struct px_files *files, const char *path)
{
    return can(files, path, false);
}

bool px_files_can_write(const struct px_files *files, const char *path)
{
    return can(files, path, true);
}
