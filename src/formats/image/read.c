/* Reads an image from a directory or an archive. px-layer unpacks an archive first. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "image/layout.h"

static bool has_file(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int px_image_layout_kind(int dir)
{
    return has_file(dir, "oci-layout")      ? PX_IMAGE_OCI_DIR
           : has_file(dir, "manifest.json") ? PX_IMAGE_DOCKER_ARCHIVE
                                            : -ENOENT;
}

int px_image_layout_read_directory(struct px_store *store, int dir, const char *path, const char *name,
                            struct px_image *ret_image, struct px_err *e)
{
    switch (px_image_layout_kind(dir)) {
    case PX_IMAGE_OCI_DIR:
        return px_image_layout_read_layout(store, dir, name, ret_image, e);
    case PX_IMAGE_DOCKER_ARCHIVE:
        return px_image_layout_read_docker(store, dir, name, ret_image, e);
    default:
        (void)px_fail(e, PX_E_IMAGE, 0, "'%s' is not an image", path);
        return px_why(e, "It has neither oci-layout nor manifest.json.");
    }
}

/* A private directory of the store. Its id is the archive's, so two readers of one archive do not unpack it at the same
 * time. */
static int make_room(struct px_store *store, const struct stat *st, struct px_tree_build **ret_build, struct px_err *e)
{
    char text[128];
    struct px_oid id;
    int len = px_fmt(text, sizeof text, "archive of an image %llu %llu %lld %lld", (unsigned long long)st->st_dev,
                     (unsigned long long)st->st_ino, (long long)st->st_size, (long long)st->st_mtime);
    if (len < 0 || px_hash_bytes(text, strlen(text), &id) < 0)
        return px_no_memory(e);
    int r = px_tree_begin(store, &id, ret_build, e);
    return r == 1 ? px_fail(e, PX_E_INTERNAL, 0, "the store has a tree where an archive is to be unpacked") : r;
}

int px_image_layout_unpack(struct px_store *store, int fd, const struct stat *st, struct px_progress_to progress,
                    struct px_tree_build **ret_build, struct px_err *e)
{
    struct px_tree_build *build = NULL;
    struct px_unpacked done;
    if (make_room(store, st, &build, e) < 0)
        return -1;
    if (px_layer_unpack(fd, (uint64_t)st->st_size, px_tree_build_fd(build), false, &px_unpack_limits_default, progress,
                        &done, e) < 0) {
        px_tree_drop(build);
        return -1;
    }
    *ret_build = build;
    return 0;
}

int px_image_read(struct px_store *store, const char *path, const char *name, struct px_progress_to progress,
                  struct px_image *ret_image, struct px_err *e)
{
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return px_fail(e, PX_E_IO, fd < 0 ? fd : errno, "cannot open '%s'", path);
    if (S_ISDIR(st.st_mode))
        return px_image_layout_read_directory(store, fd, path, name, ret_image, e);
    if (!S_ISREG(st.st_mode))
        return px_fail(e, PX_E_IMAGE, 0, "'%s' is neither a file nor a directory", path);
    struct px_tree_build *build = NULL;
    if (px_image_layout_unpack(store, fd, &st, progress, &build, e) < 0)
        return -1;
    int r = px_image_layout_read_directory(store, px_tree_build_fd(build), path, name, ret_image, e);
    px_tree_drop(build);
    return r;
}
