/* helpers/layer/list.h - what a directory holds, in the order in which it is packed, and files that have several names.
 *
 * Why:     "a", "a.b", "a/c" is the order of bytes, so a directory stands twice in its list: as itself, and with a slash
 *          for what is below.
 * Owns:    its names.
 * Mustn't: follow a link. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum item_kind { ITEM_ENTRY, ITEM_BELOW, ITEM_HIDES };
struct item {
    enum item_kind what;
    char *name;
};
struct list {
    struct item *items;
    size_t count, size;
};
/* upper: whiteouts and opaque directories of an overlay become .wh. names. 0 or -errno. */
int list_read(struct list *list, int dir, bool upper);
void list_free(struct list *list);

struct link_name {
    dev_t dev;
    ino_t ino;
    char *path;                 /* NULL: free */
};
struct links {
    struct link_name *items;
    size_t count, size;
};
/* *ret_first is the first path of this file, or stays as it is if this was the first. 0 or -ENOMEM. */
int links_find(struct links *links, const struct stat *st, const char *path, const char **ret_first);
void links_free(struct links *links);
