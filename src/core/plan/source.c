#include "plan/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

enum { LINKS_MAX = 40 };

/* ---- one link ---- */

/* A root caller's boxes could write all that root may. But nobody binds these directories writable into a box. */
static bool is_system_path(int dir)
{
    static const char *const system[] = {"/usr", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin"};
    char name[64], path[PATH_MAX];
    (void)px_fmt(name, sizeof name, "/proc/self/fd/%d", dir);
    ssize_t n = readlink(name, path, sizeof path - 1);
    if (n <= 0)
        return false;
    path[n] = '\0';
    bool found = px_equal(path, "/") || px_equal(path, "/var");
    for (size_t i = 0; i < PX_COUNT_OF(system); i++)
        found = found || px_path_within(path, system[i]);
    return found;
}

/* Whether no box of the caller can have made what is in the directory. */
static bool is_of_system(const char *directory)
{
    struct stat st;
    px_auto_fd int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != 0 || st.st_mode & 022)
        return false;
    return geteuid() != 0 || is_system_path(fd);
}

/* Removes a final "/" or "/.", which would make the kernel follow a link at the end. */
static void trim_end(char *path)
{
    size_t n = strlen(path);
    while (n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')))
        path[--n] = '\0';
}

/* The directory that a path lies in. */
static void parent_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (!slash || px_fmt(out, PATH_MAX, "%.*s", n ? (int)n : 1, path) < 0)
        (void)px_fmt(out, PATH_MAX, ".");
}

/* Replaces the link by what it leads to. */
static int follow_link(char path[PATH_MAX])
{
    char directory[PATH_MAX], target[PATH_MAX];
    parent_of(path, directory);
    ssize_t n = is_of_system(directory) ? readlink(path, target, sizeof target - 1) : -1;
    if (n <= 0)
        return -ELOOP;
    target[n] = '\0';
    int r = target[0] == '/' ? px_fmt(path, PATH_MAX, "%s", target) : px_fmt(path, PATH_MAX, "%s/%s", directory, target);
    trim_end(path);
    return r < 0 ? -ENAMETOOLONG : 0;
}

/* ---- a source ---- */

static int follow_system_links(const char *given, char path[PATH_MAX], struct stat *ret_st)
{
    if (px_fmt(path, PATH_MAX, "%s", given) < 0)
        return -ENAMETOOLONG;
    trim_end(path);
    for (int i = 0; i < LINKS_MAX; i++) {
        if (lstat(path, ret_st) < 0)
            return -errno;
        if (!S_ISLNK(ret_st->st_mode))
            return 0;
        int r = follow_link(path);
        if (r < 0)
            return r;
    }
    return -ELOOP;
}

int px_source_look(const char *path, struct stat *ret_st)
{
    char at[PATH_MAX];
    return follow_system_links(path, at, ret_st);
}

int px_source_open(const char *path, int flags)
{
    char at[PATH_MAX];
    struct stat st;
    int r = follow_system_links(path, at, &st);
    return r < 0 ? r : (int)px_sys(SYS_openat, AT_FDCWD, at, flags | O_NOFOLLOW | O_CLOEXEC);
}

void px_source_tell(const char *path, char out[PX_SOURCE_TEXT])
{
    char real[PATH_MAX];
    int r = realpath(path, real) ? px_fmt(out, PX_SOURCE_TEXT, "'%.100s' is a link to '%.120s'", path, real)
                                 : px_fmt(out, PX_SOURCE_TEXT, "'%.200s' is a link to nothing", path);
    if (r < 0)
        out[0] = '\0';
}

/* ---- the directories of the path ---- */

static bool has_foreign_link(char *path)
{
    struct stat st;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        char directory[PATH_MAX];
        *slash = '\0';
        bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
        parent_of(path, directory);
        *slash = '/';
        if (link && !is_of_system(directory))
            return true;
    }
    return false;
}

void px_source_way(const char *path, char out[PX_SOURCE_TEXT])
{
    char at[PATH_MAX], real[PATH_MAX];
    out[0] = '\0';
    px_auto_fd int fd = px_open_straight(path, O_PATH);
    if (fd >= 0 || px_fmt(at, sizeof at, "%s", path) < 0)
        return;
    trim_end(at);
    if (has_foreign_link(at) && realpath(at, real) &&
        px_fmt(out, PX_SOURCE_TEXT, "a bind shows '%.100s', by a link in '%.100s'", real, path) < 0)
        out[0] = '\0';
}
