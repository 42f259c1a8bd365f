#include "lock/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lock/lock.h"

static int compare(const void *a, const void *b)
{
    const struct px_name_at *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

void px_names_sort(struct px_name_index *index)
{
    if (index->count)
        qsort(index->items, index->count, sizeof *index->items, compare);
}

int px_names_of_pins(const struct px_lock *pins, struct px_name_index *ret_index)
{
    struct px_name_index index = {.items = calloc(pins->count + 1, sizeof *index.items), .count = pins->count};
    if (!index.items)
        return -ENOMEM;
    for (size_t i = 0; i < pins->count; i++)
        index.items[i] = (struct px_name_at){pins->items[i].name, i};
    px_names_sort(&index);
    *ret_index = index;
    return 0;
}

void px_names_done(struct px_name_index *index)
{
    free(index->items);
    *index = (struct px_name_index){0};
}

const struct px_name_at *px_names_find(const struct px_name_index *index, const char *name)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(index->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < index->count && strcmp(index->items[low].name, name) == 0 ? &index->items[low] : NULL;
}
