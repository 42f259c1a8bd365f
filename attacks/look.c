/* attacks/look.c - what several sections look at: the names in a directory, the mounts. */
#include "attack.h"

#include <dirent.h>
#include <sys/sysmacros.h>

bool listed(const char *name, const char *const list[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strcspn(list[i], "*");
        if (list[i][n] ? strncmp(name, list[i], n) == 0 : strcmp(name, list[i]) == 0)
            return true;
    }
    return false;
}

/* What the policy put there by name: /data/in allows "data" in "/" and "in" in "/data". */
static bool granted_in(const char *dir, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", strcmp(dir, "/") ? dir : "", name);
    size_t n = strlen(path);
    for (const char *p = argument("A_PLACES"); *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
        if (strncmp(p, path, n) == 0 && (p[n] == '/' || p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

/* An overlay's root is the box's own: all of it that is no mount of another kind. */
static bool in_own_root(const char *path)
{
    struct statx root, st;
    return strcmp(argument("A_ROOT"), "writable") == 0 && statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &root) == 0 &&
           statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &st) == 0 && st.stx_mnt_id == root.stx_mnt_id;
}

bool granted(const char *path)
{
    if (in_own_root(path))
        return true;
    for (const char *p = argument("A_PLACES"); *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ',')) {
        size_t n = strcspn(p, ",");
        if (strncmp(p, path, n) == 0 && (path[n] == '/' || path[n] == '\0'))
            return true;
    }
    return false;
}

int only(const char *path, const char *const list[], size_t count)
{
    DIR *dir = opendir(path);
    if (!dir)
        return failed("cannot list %s: %s", path, strerror(errno));
    int r = DONE;
    for (struct dirent *d; (d = readdir(dir));)
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..") && !listed(d->d_name, list, count) &&
            !granted_in(path, d->d_name))
            r = failed("%s holds %s", path, d->d_name);
    closedir(dir);
    return r;
}

bool is_device_mount(const struct seen_mount *m)
{
    struct stat st;
    if (strcmp(m->type, "devtmpfs") == 0)
        return true;
    bool node = lstat(m->target, &st) == 0 && S_ISCHR(st.st_mode);
    return node && (strncmp(m->target, "/dev/", 5) == 0 || st.st_rdev == makedev(1, 3));
}

int each_mount(int (*check)(const struct seen_mount *m))
{
    static char text[256 * 1024];
    int seen = 0;
    if (read_text("/proc/self/mountinfo", text, sizeof text) <= 0)
        return failed("no mountinfo");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), seen++) {
        struct seen_mount m;
        char *tail = strstr(line, " - ");
        if (!tail || sscanf(line, "%*s %*s %*s %511s %511s %255s", m.root, m.target, m.options) != 3 ||
            sscanf(tail + 3, "%63s %*s %511s", m.type, m.super) != 2)
            return failed("odd line: %s", line);
        int r = check(&m);
        if (r != DONE)
            return r;
    }
    return seen > 5 ? DONE : failed("only %d mounts", seen);
}
