#include "helpers/layer/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

enum { ITEMS_MAX = 2 << 20 };

static int add(struct list *list, enum item_kind what, const char *before, const char *name, const char *after)
{
    if (list->count >= ITEMS_MAX)
        return -E2BIG;
    if (list->count == list->size) {
        size_t size = list->size ? list->size * 2 : 64;
        struct item *more = reallocarray(list->items, size, sizeof *more);
        if (!more)
            return -ENOMEM;
        list->items = more;
        list->size = size;
    }
    size_t a = strlen(before), n = strlen(name), b = strlen(after);
    char *text = malloc(a + n + b + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, before, a);
    memcpy(text + a, name, n);
    memcpy(text + a + n, after, b + 1);
    list->items[list->count++] = (struct item){what, text};
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);  /* by bytes, in any locale */
}

static int add_entry(struct list *list, int dir, const struct dirent *entry, bool upper)
{
    unsigned char type = entry->d_type;
    struct stat st;
    if (type == DT_UNKNOWN || (upper && type == DT_CHR)) {
        if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        type = (unsigned char)IFTODT(st.st_mode);
        if (upper && type == DT_CHR && st.st_rdev == makedev(0, 0))
            return add(list, ITEM_HIDES, ".wh.", entry->d_name, "");
    }
    int r = add(list, ITEM_ENTRY, "", entry->d_name, "");
    return r < 0 || type != DT_DIR ? r : add(list, ITEM_BELOW, "", entry->d_name, "/");
}

static bool is_opaque(int dir)
{
    static const char *const names[] = {"trusted.overlay.opaque", "user.overlay.opaque"};
    char value[8];
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (fgetxattr(dir, names[i], value, sizeof value) == 1 && value[0] == 'y')
            return true;
    return false;
}

int list_read(struct list *list, int dir, bool upper)
{
    int copy = (int)px_sys(SYS_openat, dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (!stream) {
        (void)px_fd_close(copy);
        return copy < 0 ? copy : -ENOMEM;
    }
    struct dirent *entry;
    int r = upper && is_opaque(dir) ? add(list, ITEM_HIDES, "", ".wh..wh..opq", "") : 0;
    for (errno = 0; r == 0 && (entry = readdir(stream)); errno = 0)
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            r = add_entry(list, dir, entry, upper);
    r = r < 0 ? r : -errno;
    (void)closedir(stream);
    if (list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, compare);
    return r;
}

void list_free(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].name);
    free(list->items);
    *list = (struct list){0};
}

/* ---- files with several names ---- */

static struct link_name *slot_of(const struct links *links, dev_t dev, ino_t ino)
{
    size_t at = (size_t)((ino ^ (uint64_t)dev << 32) * 0x9e3779b97f4a7c15ULL >> 20) & (links->size - 1);
    while (links->items[at].path && (links->items[at].ino != ino || links->items[at].dev != dev))
        at = (at + 1) & (links->size - 1);
    return &links->items[at];
}

static int grow(struct links *links)
{
    struct links larger = {.size = links->size ? links->size * 2 : 256, .count = links->count};
    larger.items = calloc(larger.size, sizeof *larger.items);
    if (!larger.items)
        return -ENOMEM;
    for (size_t i = 0; i < links->size; i++)
        if (links->items[i].path)
            *slot_of(&larger, links->items[i].dev, links->items[i].ino) = links->items[i];
    free(links->items);
    *links = larger;
    return 0;
}

int links_find(struct links *links, const struct stat *st, const char *path, const char **ret_first)
{
    if (links->count * 2 >= links->size && grow(links) < 0)
        return -ENOMEM;
    struct link_name *slot = slot_of(links, st->st_dev, st->st_ino);
    if (slot->path) {
        *ret_first = slot->path;
        return 0;
    }
    *slot = (struct link_name){st->st_dev, st->st_ino, strdup(path)};
    links->count += slot->path != NULL;
    return slot->path ? 0 : -ENOMEM;
}

void links_free(struct links *links)
{
    for (size_t i = 0; i < links->size; i++)
        free(links->items[i].path);
    free(links->items);
    *links = (struct links){0};
}
