/* Directories with archives (--find-links): a file by the name that the lock gives, or, where the lock gives hashes
 * and no names, the best wheel of that package and version that has one of them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "env/env_internal.h"
#include "pep/marker.h"
#include "pep/version.h"

struct search {
    struct px_env_work *w;
    const struct px_chosen *chosen;
    int dir;
    int best;                   /* rank of what was found; -1: nothing */
    char *file_name;
    int *ret_fd;
    struct px_err *e;
};

static int open_dir(const char *place)
{
    return open(px_starts_with(place, "file://") ? place + strlen("file://") : place,
                O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_file(int dir, const char *name)
{
    return px_open_beneath(dir, name, O_RDONLY | O_NONBLOCK, 0);
}

static bool is_of_pin(const char *file, const struct px_lock_pin *pin)
{
    struct px_wheel_name parts;
    struct px_version a, b;
    char name[256];
    return px_tags_wheel_parse(file, &parts) == 0 &&
           px_marker_package_name(parts.name, parts.name_length, name, sizeof name) == 0 && px_equal(name, pin->name) &&
           px_version_parse(parts.version, parts.version_length, &a) == 0 &&
           px_version_parse(pin->version, strlen(pin->version), &b) == 0 && px_version_compare(&a, &b) == 0;
}

/* 1: the lock has this hash, or none at all. */
static int is_locked(const struct search *s, int fd)
{
    struct px_oid oid;
    uint64_t size;
    if (s->chosen->pin->file_count == 0)
        return 1;
    if (px_hash_cache_file(s->w->s->store, fd, &oid, &size, s->e) < 0)
        return -1;
    for (size_t i = 0; i < s->chosen->pin->file_count; i++)
        if (px_hash_oid_equal(&s->chosen->pin->files[i].sha256, &oid))
            return 1;
    return 0;
}

static int consider(struct search *s, const char *file)
{
    int rank = px_tags_rank(&s->w->tags, file);
    if (rank < 0 || (s->best >= 0 && rank >= s->best) || !is_of_pin(file, s->chosen->pin) || strlen(file) > 255)
        return 0;
    px_auto_fd int fd = open_file(s->dir, file);
    int locked = fd < 0 ? 0 : is_locked(s, fd);
    if (locked == 0 && s->best < 0)
        memcpy(s->file_name, file, strlen(file) + 1);           /* named in the error if nothing better is found */
    if (locked <= 0)
        return locked;
    s->best = rank;
    memcpy(s->file_name, file, strlen(file) + 1);
    (void)px_fd_close(*s->ret_fd);
    *s->ret_fd = px_fd_take(&fd);
    return 0;
}

static int look_in(struct search *s)
{
    int copy = px_open_beneath(s->dir, ".", O_RDONLY | O_DIRECTORY, 0), r = 0;
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        (void)px_fd_close(copy);
        return px_fail(s->e, PX_E_BUILD, copy < 0 ? copy : ENOMEM, "cannot read a --find-links directory");
    }
    for (struct dirent *entry; r == 0 && (entry = readdir(list));)
        r = consider(s, entry->d_name);
    (void)closedir(list);
    return r;
}

/* A file name in a lock must be a single path component. */
static bool is_plain(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 256;
}

int px_env_links(struct px_env_work *w, const struct px_chosen *chosen, char *file_name, int *ret_fd, struct px_err *e)
{
    const char *const none[] = {NULL};
    for (const char *const *place = w->ask->find_links ? w->ask->find_links : none; *place; place++) {
        px_auto_fd int dir = open_dir(*place);
        if (dir < 0)
            return px_fail(e, PX_E_BUILD, errno, "cannot open the --find-links directory '%.200s'", *place);
        struct search s = {w, chosen, dir, -1, file_name, ret_fd, e};
        if (!chosen->file && look_in(&s) < 0)
            return -1;
        if (chosen->file && is_plain(chosen->file->name) && (*ret_fd = open_file(dir, chosen->file->name)) >= 0)
            memcpy(file_name, chosen->file->name, strlen(chosen->file->name) + 1);
        if (*ret_fd >= 0)
            return 0;
    }
    return 1;
}
