/* px_sandbox_base_import: a root file system from anywhere becomes a base like any other, a tree and one layer. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/sandbox.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "catalog/import.h"
#include "catalog/record.h"
#include "image/layout.h"
#include "image/oci.h"

enum { NAME_MAX_BYTES = 64 };

static int check_name(const char *name, struct px_err *e)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_");
    struct px_oid oid;
    if (n > 0 && n <= NAME_MAX_BYTES && !name[n] && !strchr(".-_", name[0]) && px_hash_oid_parse(name, false, &oid) < 0)
        return 0;
    (void)px_fail(e, PX_E_VALUE, 0, "'%.100s' is not a name for a base", name);
    return px_fix(e, "Use up to %d letters a-z, digits, '.', '-' and '_', and begin with a letter or a digit.",
                  NAME_MAX_BYTES);
}

/* ---- a tree and a layer, from either ---- */

static int pack(struct px_sandbox *s, int dir, struct px_layer *ret_layer, struct px_err *e)
{
    px_auto_fd int readable = (int)px_sys(SYS_openat, dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (readable < 0)
        return px_fail(e, PX_E_IO, readable, "cannot read the files of the base");
    const struct px_pack what = {.dirfd = readable, .compression = PX_COMPRESS_GZIP};
    return px_layer_pack(s->store, &what, s->progress, ret_layer, e);
}

static int record(struct px_sandbox *s, const char *name, const char *source, const struct px_oid *tree,
                  const struct px_layer *layer, char **ret_json, struct px_err *e)
{
    struct px_oid base;
    const struct px_base_facts facts = {.name = name ? name : "imported",
                                        .place = name ? NULL : source,
                                        .variant = "imported",
                                        .tree = *tree,
                                        .layer = layer,
                                        .source = source};
    return px_catalog_base_record(s->store, &facts, &base, ret_json, e);
}

static int from_image(struct px_sandbox *s, const char *name, const char *source, const struct px_image *image,
                      char **ret_json, struct px_err *e)
{
    px_auto_fd int dir = -EBADF;
    struct px_oid tree;
    struct px_layer layer;
    if (!px_equal(image->config.architecture, px_image_architecture()))
        return px_fail(e, PX_E_BASE, 0, "the image is for '%.40s', and this machine is '%s'",
                       image->config.architecture ? image->config.architecture : "", px_image_architecture());
    if (px_image_tree(s->store, image, s->progress, &tree, e) < 0 || px_tree_open(s->store, &tree, &dir, e) < 0 ||
        pack(s, dir, &layer, e) < 0)
        return -1;
    return record(s, name, source, &tree, &layer, ret_json, e);
}

static bool is_root(int dir)
{
    static const char *const signs[] = {"usr", "bin", "lib"};
    struct stat st;
    for (size_t i = 0; i < PX_COUNT_OF(signs); i++)
        if (fstatat(dir, signs[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

/* The layer comes first: the tree is what it unpacks to, in normal form, whatever the directory was. */
static int from_files(struct px_sandbox *s, const char *name, const char *source, int dir, char **ret_json,
                      struct px_err *e)
{
    px_auto_free struct px_image *image = calloc(1, sizeof *image);
    struct px_oid tree;
    if (!image)
        return px_no_memory(e);
    if (!is_root(dir)) {
        (void)px_fail(e, PX_E_BASE, 0, "'%s' is neither an image nor a root file system", source);
        (void)px_why(e, "It has no usr, bin or lib at its top, nor oci-layout or manifest.json.");
        return px_fix(e, "Give a directory or an archive of a whole root file system, an OCI layout or archive, "
                         "a docker archive, or docker://REFERENCE.");
    }
    if (pack(s, dir, &image->layers[0], e) < 0)
        return -1;
    image->layer_count = 1;
    return px_image_tree(s->store, image, s->progress, &tree, e) < 0
               ? -1 : record(s, name, source, &tree, &image->layers[0], ret_json, e);
}

/* ---- sources ---- */

static int from_directory(struct px_sandbox *s, const char *name, const char *source, int dir, const char *which,
                          char **ret_json, struct px_err *e)
{
    if (px_image_layout_kind(dir) < 0 && !which)
        return from_files(s, name, source, dir, ret_json, e);
    px_auto_free struct px_image *image = calloc(1, sizeof *image);
    if (!image)
        return px_no_memory(e);
    int r = px_image_layout_read_directory(s->store, dir, source, which, image, e);
    r = r < 0 ? r : from_image(s, name, source, image, ret_json, e);
    px_image_done(image);
    return r;
}

/* Where a source is looked for: anywhere, or (a manifest names it) below a project, without a link on the way. */
static int open_source(const struct px_within *within, const char *path)
{
    char clean[4096];
    size_t n = within ? strlen(within->path) : 0;
    if (!within)
        return (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (px_path_clean(path, clean, sizeof clean) < 0 || !px_path_within(clean, within->path))
        return -EXDEV;
    return px_open_in_root(within->dir, clean[n] ? clean + n : "/", O_RDONLY | O_NONBLOCK, 0);
}

static int from_path(struct px_sandbox *s, const char *name, const char *source, const char *path, const char *which,
                     const struct px_within *within, char **ret_json, struct px_err *e)
{
    struct stat st;
    struct px_tree_build *build = NULL;
    px_auto_fd int fd = open_source(within, path);
    if (fd < 0 || fstat(fd, &st) < 0) {
        (void)px_fail(e, PX_E_IO, fd < 0 ? fd : errno, "cannot open '%s'", path);
        return px_fix(e, "SOURCE is a directory, an archive, or docker://IMAGE for an image of a registry: docker://%.128s.", path);
    }
    if (S_ISDIR(st.st_mode))
        return from_directory(s, name, source, fd, which, ret_json, e);
    if (!S_ISREG(st.st_mode))
        return px_fail(e, PX_E_BASE, 0, "'%s' is neither a file nor a directory", path);
    if (px_image_layout_unpack(s->store, fd, &st, s->progress, &build, e) < 0)
        return -1;
    int r = from_directory(s, name, source, px_tree_build_fd(build), which, ret_json, e);
    px_tree_drop(build);
    return r;
}

static int from_registry(struct px_sandbox *s, const char *name, const char *source, const char *reference, bool found,
                         char **ret_json, struct px_err *e)
{
    struct px_image_ref ref;
    px_auto_free struct px_image *image = calloc(1, sizeof *image);
    if (!image)
        return px_no_memory(e);
    if ((found ? px_image_ref_parse : px_image_ref_typed)(reference, &ref, e) < 0)
        return -1;
    ref.found = found;
    if (px_registry_pull(s->store, &ref, s->progress, image, e) < 0)
        return -1;
    int r = from_image(s, name, source, image, ret_json, e);
    px_image_done(image);
    return r;
}

/* oci:PATH[:NAME], as others write it: one of several images. */
static int from_named(struct px_sandbox *s, const char *name, const char *source, const char *rest,
                      const struct px_within *within, char **ret_json, struct px_err *e)
{
    char path[4096];
    size_t n = strcspn(rest, ":");
    if (px_fmt(path, sizeof path, "%.*s", (int)n, rest) < 0)
        return px_fail(e, PX_E_VALUE, 0, "'%.100s...' is too long for a path", rest);
    return from_path(s, name, source, path, rest[n] ? rest + n + 1 : NULL, within, ret_json, e);
}

/* name NULL: it is found by its source. */
static int import(struct px_sandbox *s, const char *name, const char *source, const struct px_within *within,
                  char **ret_json, struct px_err *e)
{
    static const char *const named[] = {"oci:", "oci-archive:", "docker-archive:"};
    if (px_starts_with(source, "docker://"))
        return from_registry(s, name, source, source + strlen("docker://"), within != NULL, ret_json, e);
    for (size_t i = 0; i < PX_COUNT_OF(named); i++)
        if (px_starts_with(source, named[i]))
            return from_named(s, name, source, source + strlen(named[i]), within, ret_json, e);
    return from_path(s, name, source, source, NULL, within, ret_json, e);
}

int px_sandbox_base_import(struct px_sandbox *s, const char *name, const char *source, char **ret_json,
                           struct px_err *e)
{
    PX_ERR(e);
    return check_name(name, e) < 0 ? -1 : import(s, name, source, NULL, ret_json, e);
}

int px_import_base(struct px_sandbox *s, const char *source, const struct px_within *within, char **ret_json,
                  struct px_err *e)
{
    return import(s, NULL, source, within, ret_json, e);
}
