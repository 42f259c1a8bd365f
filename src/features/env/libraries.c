#include "env/libraries.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "env/elf.h"

struct scan {
    uint16_t machine;
    struct px_libraries needed, brought;
    size_t entries;
};

/* ---- sets of names ---- */

/* The index of the entry, or where to insert it. */
static size_t position(const struct px_libraries *set, const char *name)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(name, set->items[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has(const struct px_libraries *set, const char *name)
{
    size_t at = position(set, name);
    return at < set->count && strcmp(set->items[at], name) == 0;
}

static int add(struct px_libraries *set, const char *name)
{
    if (!name[0] || has(set, name))
        return 0;
    if (set->count == PX_LIBRARIES_MAX)
        return -E2BIG;
    if ((set->count & (set->count - 1)) == 0) {
        char **items = realloc(set->items, (set->count ? 2 * set->count : 1) * sizeof *items);
        if (!items)
            return -ENOMEM;
        set->items = items;
    }
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    size_t at = position(set, name);
    memmove(set->items + at + 1, set->items + at, (set->count - at) * sizeof *set->items);
    set->items[at] = copy;
    set->count++;
    return 0;
}

void px_libraries_done(struct px_libraries *libraries)
{
    for (size_t i = 0; i < libraries->count; i++)
        free(libraries->items[i]);
    free(libraries->items);
    *libraries = (struct px_libraries){0};
}

/* ---- files ---- */

static int take_elf(struct scan *s, const char *name, const struct px_elf *elf)
{
    if (elf->machine != s->machine)
        return 0;
    int r = add(&s->brought, name);
    if (r == 0)
        r = add(&s->brought, px_elf_text(elf, elf->soname));
    for (uint32_t i = 0; r == 0 && i < elf->needed_count; i++)
        r = add(&s->needed, px_elf_text(elf, elf->needed[i]));
    return r;
}

static int look_at_file(struct scan *s, int dir, const char *name)
{
    struct px_elf elf;
    px_auto_fd int fd = px_open_beneath(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    int r = px_elf_read(fd, &elf);
    if (r == -ENOEXEC || r == -EINVAL || r == -ERANGE)
        return 0;
    if (r < 0)
        return r;
    r = take_elf(s, name, &elf);
    px_elf_done(&elf);
    return r;
}

static int look_in(struct scan *s, int fd, unsigned depth);

static int look_at(struct scan *s, int dir, const char *name, unsigned depth)
{
    struct stat st;
    if (++s->entries > PX_LIBRARIES_ENTRIES_MAX)
        return -E2BIG;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISREG(st.st_mode))
        return look_at_file(s, dir, name);
    if (!S_ISDIR(st.st_mode))
        return 0;
    int below =
        depth < PX_LIBRARIES_DEPTH_MAX ? px_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0) : -ELOOP;
    return below < 0 ? below : look_in(s, below, depth + 1);
}

/* Takes the descriptor. */
static int look_in(struct scan *s, int fd, unsigned depth)
{
    DIR *dir = fdopendir(fd);
    int r = 0;
    if (!dir) {
        (void)px_fd_close(fd);
        return -ENOMEM;
    }
    for (struct dirent *entry; r == 0 && (entry = readdir(dir));)
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            r = look_at(s, dirfd(dir), entry->d_name, depth);
    (void)closedir(dir);
    return r;
}

int px_libraries_scan(int dir, uint16_t machine, struct px_libraries *ret_libraries)
{
    struct scan s = {.machine = machine};
    struct px_libraries outside = {0};
    int fd = px_open_beneath(dir, ".", O_RDONLY | O_DIRECTORY, 0);
    int r = fd < 0 ? fd : look_in(&s, fd, 0);
    for (size_t i = 0; r == 0 && i < s.needed.count; i++)
        if (!has(&s.brought, s.needed.items[i]))
            r = add(&outside, s.needed.items[i]);
    px_libraries_done(&s.needed);
    px_libraries_done(&s.brought);
    if (r < 0)
        px_libraries_done(&outside);
    else
        *ret_libraries = outside;
    return r;
}
