#include "config/found.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

static const struct {
    const char *key;
    enum px_found_way way;
} rows[] = {
#define PX_FOUND(key, way) {#key, PX_FOUND_##way},
#include "found.def"
#undef PX_FOUND
};

int px_found_way(const char *key)
{
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_equal(rows[i].key, key))
            return (int)rows[i].way;
    return -EINVAL;
}

/* ---- paths ---- */

static bool is_part(const char *part, size_t length, const char *name)
{
    return length == strlen(name) && memcmp(part, name, length) == 0;
}

/* -ELOOP if the first `length` bytes of a path name a link; 0 if they name something else or nothing. */
static int check_link(int dir, const char *path, size_t length)
{
    char head[PATH_MAX];
    struct stat st;
    if (px_fmt(head, sizeof head, "%.*s", (int)length, path) < 0)
        return -ENAMETOOLONG;
    if (fstatat(dir, head, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISLNK(st.st_mode) ? -ELOOP : 0;
}

int px_found_below(int dir, const char *path)
{
    if (*path == '/' || *path == '\0')
        return -EXDEV;
    for (size_t at = 0, n; path[at]; at += n + (path[at + n] == '/')) {
        n = strcspn(path + at, "/");
        if (is_part(path + at, n, "..") || is_part(path + at, n, ".git"))
            return -EXDEV;
        int r = n ? check_link(dir, path, at + n) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- values ---- */

const char *px_found_twin(const char *name)
{
    return px_equal(name, "python") ? "python3" : px_equal(name, "python3") ? "python" : NULL;
}

bool px_found_has(char *const *list, const char *name)
{
    for (; *list; list++)
        if (px_equal(*list, name))
            return true;
    return false;
}

static bool is_subset(char *const *list, char *const *usual)
{
    for (; *list; list++) {
        const char *twin = px_found_twin(*list);
        if (!px_found_has(usual, *list) && !(twin && px_found_has(usual, twin)))
            return false;
    }
    return true;
}

bool px_found_restricts(enum px_found_way way, int dir, const void *value, const void *usual)
{
    switch (way) {
    case PX_FOUND_BELOW:
        return !*(char *const *)value || px_found_below(dir, *(char *const *)value) == 0;
    case PX_FOUND_LESS:
        return *(const uint64_t *)value <= *(const uint64_t *)usual;
    case PX_FOUND_SUBSET:
        return is_subset(value, usual);
    case PX_FOUND_ON:
        return *(const bool *)value;
    case PX_FOUND_NONE:
        return !*(char *const *)value;
    case PX_FOUND_ANY:
        return true;
    }
    return false;
}
