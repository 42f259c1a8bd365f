#include "task/done.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mac.h"
#include "base/sys.h"
#include "base/text.h"

enum { HALF = 16 };

/* ---- numbers ---- */

static uint64_t hash(uint64_t seed, const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
        h ^= h >> 32;
    }
    h *= 0x9fb21c651e98df25u;
    return h ^ h >> 29;
}

static bool set_has(const struct px_task_set *set, uint64_t item, size_t *ret_at)
{
    size_t at = set->size ? item & (set->size - 1) : 0;
    while (set->size && set->items[at] && set->items[at] != item)
        at = (at + 1) & (set->size - 1);
    *ret_at = at;
    return set->size && set->items[at] == item;
}

int px_task_set_add(struct px_task_set *set, uint64_t item)
{
    size_t at;
    item = item ? item : 1;
    if (set_has(set, item, &at))
        return 0;
    if (2 * (set->count + 1) > set->size) {
        struct px_task_set bigger = {.size = set->size ? 2 * set->size : 1024};
        bigger.items = calloc(bigger.size, sizeof *bigger.items);
        if (!bigger.items)
            return -ENOMEM;
        for (size_t i = 0; i < set->size; i++)
            if (set->items[i])
                (void)px_task_set_add(&bigger, set->items[i]);
        free(set->items);
        *set = bigger;
        (void)set_has(set, item, &at);
    }
    set->items[at] = item;
    set->count++;
    return 1;
}

/* ---- keys ---- */

/* Computed with the key of the work root, so that no line of a journal from a repository counts as ours. */
static uint64_t keyed(const struct px_tasks *tasks, char part, const uint64_t numbers[2], const char *text, size_t len)
{
    struct px_mac mac;
    uint8_t out[PX_MAC_SIZE];
    uint64_t key;
    px_mac_begin(&mac, tasks->root.seal);
    px_mac_add(&mac, "px-done", sizeof "px-done");
    px_mac_add(&mac, &part, 1);
    px_mac_add(&mac, numbers, 2 * sizeof *numbers);
    px_mac_add(&mac, text, len);
    px_mac_end(&mac, out);
    memcpy(&key, out, sizeof key);
    return key;
}

void px_task_done_init(struct px_task_done *d, const struct px_tasks *tasks, const char *name)
{
    *d = (struct px_task_done){.tasks = tasks};
    const uint64_t numbers[2] = {0};
    if (name)
        (void)px_fmt(d->name, sizeof d->name, "%016llx", (unsigned long long)keyed(tasks, 'n', numbers, name, strlen(name)));
}

void px_task_done_free(struct px_task_done *d)
{
    free(d->keys.items);
    free(d->seen.items);
}

void px_task_done_key(const struct px_task_done *d, char part, uint64_t number, const char *text, size_t len, char out[PX_TASK_KEY])
{
    uint64_t numbers[2] = {number};
    if (!d->name[0])
        (void)px_sys(SYS_getrandom, &numbers[1], sizeof numbers[1], 0);
    uint64_t h = keyed(d->tasks, part, numbers, text, len);
    (void)px_fmt(out, PX_TASK_KEY, "%.16s%016llx", d->name[0] ? d->name : "0000000000000000", (unsigned long long)h);
}

static bool parse_half(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    for (int i = 0; i < HALF; i++) {
        const char *digits = "0123456789abcdef", *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        value = value << 4 | (uint64_t)(digit - digits);
    }
    *ret = value;
    return true;
}

/* The key is the last member of a line. No other text can match it: quotes in strings are escaped. */
static int see_line(void *user, const char *line, size_t len)
{
    static const char before[] = "\"action\":\"";
    struct px_task_done *d = user;
    const size_t tail = sizeof before - 1 + 2 * HALF + 2;
    uint64_t key;
    if (len < tail)
        return 0;
    const char *p = line + len - tail;
    if (memcmp(p, before, sizeof before - 1) != 0 || memcmp(p + sizeof before - 1, d->name, HALF) != 0 ||
        !parse_half(p + sizeof before - 1 + HALF, &key))
        return 0;
    int r = px_task_set_add(&d->keys, key);
    return r < 0 ? r : 0;
}

/* Opening a workspace finishes its pending record, which may write to its journal. */
static int load(struct px_task_done *d, const char *task, struct px_err *e)
{
    struct px_workspace space;
    if (px_workspace_exists(&d->tasks->root, task)) {
        if (px_workspace_open(&d->tasks->root, task, PX_SPACE_FIND, &space, e) < 0)
            return -1;
        px_workspace_close(&space);
    }
    struct px_err none = {0};
    if (px_task_log(d->tasks, task, see_line, d, &none) == 0 || none.code == PX_E_NO_TASK)
        return 0;
    *e = none;
    return -1;
}

int px_task_done_has(struct px_task_done *d, const char *task, const char *key, struct px_err *e)
{
    size_t at;
    uint64_t number;
    if (!d->name[0])
        return 0;
    uint64_t who = hash(1, task, strlen(task));
    if (!set_has(&d->seen, who ? who : 1, &at)) {
        if (load(d, task, e) < 0)
            return -1;
        if (px_task_set_add(&d->seen, who) < 0)
            return px_no_memory(e);
    }
    return parse_half(key + HALF, &number) && set_has(&d->keys, number ? number : 1, &at);
}
