/* The names of all boxes of a user. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "named/named_internal.h"

enum { BOXES_MAX = 10000 };

struct names {
    char (*items)[PX_BOX_NAME_MAX];
    size_t count, room;
};

static int add(struct names *n, const char *name)
{
    if (n->count == n->room) {
        size_t room = n->room ? 2 * n->room : 16;
        char(*more)[PX_BOX_NAME_MAX] = realloc(n->items, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        n->items = more;
        n->room = room;
    }
    memcpy(n->items[n->count++], name, strlen(name) + 1);
    return 0;
}

static int read_names(int boxes, struct names *n)
{
    int copy = (int)px_sys(SYS_openat, boxes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        (void)px_fd_close(copy);
        return copy < 0 ? copy : -ENOMEM;
    }
    struct dirent *entry;
    int r = 0;
    while (r >= 0 && n->count < BOXES_MAX && (entry = readdir(dir)))
        if (px_policy_name_ok(entry->d_name) && px_named_held(boxes, entry->d_name) == 1)
            r = add(n, entry->d_name);
    (void)closedir(dir);
    return r;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The array and behind it its texts, in one allocation. */
static char **as_array(const struct names *n)
{
    char **array = malloc((n->count + 1) * sizeof *array + n->count * PX_BOX_NAME_MAX);
    char *text = array ? (char *)(array + n->count + 1) : NULL;
    for (size_t i = 0; array && i < n->count; i++)
        array[i] = memcpy(text + i * PX_BOX_NAME_MAX, n->items[i], PX_BOX_NAME_MAX);
    if (array)
        array[n->count] = NULL;
    return array;
}

PX_API int px_living_list(const char *home, char ***ret_names, size_t *ret_count, struct px_err *e)
{
    PX_ERR(e);
    struct names n = {0};
    px_auto_fd int boxes = -EBADF;
    if (px_named_boxes(home, false, &boxes, e) < 0)
        return -1;
    if (boxes >= 0)
        px_named_sweep(boxes);
    int r = boxes < 0 ? 0 : read_names(boxes, &n);
    if (n.count > 1)
        qsort(n.items, n.count, sizeof *n.items, compare);
    char **array = r < 0 ? NULL : as_array(&n);
    free(n.items);
    if (!array)
        return px_fail(e, PX_E_IO, r < 0 ? r : ENOMEM, "the boxes cannot be listed");
    *ret_names = array;
    *ret_count = n.count;
    return 0;
}
