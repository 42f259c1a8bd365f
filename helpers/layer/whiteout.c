/* Whiteouts: ".wh.NAME" hides NAME of the layers below, ".wh..wh..opq" all they have in a directory. What the same
 * layer brings stays, whether it came before or after. */
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
#include "helpers/layer/layer.h"

#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"

/* ---- inodes of this layer: an open hash table that is never more than half full ---- */

static size_t slot_of(const struct seen *s, uint64_t inode)
{
    size_t at = (size_t)(inode * 0x9e3779b97f4a7c15ULL >> 20) & (s->size - 1);
    while (s->items[at] && s->items[at] != inode)
        at = (at + 1) & (s->size - 1);
    return at;
}

static int grow(struct seen *s)
{
    struct seen larger = {.size = s->size ? s->size * 2 : 4096};
    larger.items = calloc(larger.size, sizeof *larger.items);
    if (!larger.items)
        return -ENOMEM;
    for (size_t i = 0; i < s->size; i++)
        if (s->items[i])
            larger.items[slot_of(&larger, s->items[i])] = s->items[i];
    larger.count = s->count;
    free(s->items);
    *s = larger;
    return 0;
}

int seen_add(struct seen *s, uint64_t inode)
{
    if (s->count * 2 >= s->size && grow(s) < 0)
        return -ENOMEM;
    size_t at = slot_of(s, inode);
    s->count += s->items[at] == 0;
    s->items[at] = inode;
    return 0;
}

bool seen_has(const struct seen *s, uint64_t inode)
{
    return s->size > 0 && s->items[slot_of(s, inode)] == inode;
}

/* ---- hiding ---- */

static int hide_name(struct extract *x, int dir, const char *name, unsigned depth);

/* Everything of the layers below in a directory, but not the directory. Depth is bounded by DEPTH_MAX: nothing deeper
 * is made. */
static int hide_all(struct extract *x, int dir, unsigned depth)
{
    int fd = place_open(dir, ".", O_RDONLY | O_DIRECTORY);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        (void)px_fd_close(fd);
        return fd < 0 ? fd : -ENOMEM;
    }
    struct dirent *entry;
    int r = 0;
    while (r == 0 && (entry = readdir(list)))
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            r = hide_name(x, dir, entry->d_name, depth);
    (void)closedir(list);
    return r;
}

static int hide_name(struct extract *x, int dir, const char *name, unsigned depth)
{
    struct stat st;
    if (depth > DEPTH_MAX)
        return -ELOOP;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!seen_has(&x->seen, st.st_ino))
        return place_clear(x, dir, name);
    if (!S_ISDIR(st.st_mode))
        return 0;
    px_auto_fd int below = place_open(dir, name, O_PATH | O_DIRECTORY);
    return below < 0 ? below : hide_all(x, below, depth + 1);
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Why a whiteout is not one, or NULL: what follows the prefix is one plain part of a path, and nothing is inside. */
static const char *wrong(const struct entry *entry, const char *leaf)
{
    const char *rest = leaf + strlen(WHITEOUT);
    if (entry->kind != KIND_FILE || entry->size != 0)
        return "a whiteout is an empty file";
    if (px_equal(leaf, OPAQUE))
        return NULL;
    if (*rest == '\0' || px_equal(rest, ".") || px_equal(rest, "..") || px_starts_with(rest, WHITEOUT))
        return "it is a whiteout of nothing that can be hidden";
    return NULL;
}

int hide_entry(struct extract *x, const struct entry *entry, struct px_err *e)
{
    const char *leaf = last_part(entry->name);
    struct shown name = show(entry->name, strlen(entry->name));
    bool below = strncmp(entry->name, WHITEOUT, strlen(WHITEOUT)) == 0 || strstr(entry->name, "/" WHITEOUT);
    if (!below)
        return 0;
    const char *reason = px_starts_with(leaf, WHITEOUT) ? wrong(entry, leaf) : "it lies in a whiteout";
    size_t way = (size_t)(leaf - entry->name);
    char parts[NAME_SIZE];
    memcpy(parts, entry->name, way);
    parts[way] = '\0';
    if (strncmp(parts, WHITEOUT, strlen(WHITEOUT)) == 0 || strstr(parts, "/" WHITEOUT))
        reason = "it lies in a whiteout";
    if (reason)
        return px_fail(e, PX_E_ARCHIVE, 0, "the archive's entry '%s' was refused: %s", name.text, reason);
    int dir, r = place_parent(x, entry->name, false, &dir, &leaf, e);
    if (r != 0)
        return r;               /* 1: there is nothing to hide */
    px_auto_fd int kept = px_fd_take(&x->parent_fd);    /* or the root; and what is kept may be gone afterwards */
    (void)kept;
    r = px_equal(leaf, OPAQUE) ? hide_all(x, dir, 0) : hide_name(x, dir, leaf + strlen(WHITEOUT), 0);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot hide what '%s' names", name.text) : 1;
}
