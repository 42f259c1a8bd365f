#include "distro/setup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/px.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/node.h"
#include "base/path.h"
#include "base/text.h"
#include "distro/deb.h"
#include "distro/setup_script.inc"
#include "image/oci.h"
#include "kernel/copy.h"
#include "start/buildbox.h"

enum { MERGE_DEPTH = 64 };

static void tell(const struct px_setup *setup, const char *what, uint64_t done, uint64_t total)
{
    if (setup->sandbox->progress.tell)
        setup->sandbox->progress.tell(setup->sandbox->progress.user, what, done, total);
}

static int make_dir(int dir, const char *name, mode_t mode, int *ret_fd, struct px_err *e)
{
    int r = mkdirat(dir, name, mode) < 0 ? -errno : px_node_chmod_at(dir, name, S_IFDIR, mode); /* whatever the umask */
    if (r < 0)
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot make the directory %s in the store", name);
    *ret_fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return *ret_fd < 0 ? px_fail(e, PX_E_STORE_WRITE, errno, "cannot open the directory %s in the store", name) : 0;
}

/* ---- the first files of a base ---- */

/* Copies part of a file to a new file, which px-layer reads from its start. */
static int cut_out(int scratch, int from, uint64_t at, uint64_t size)
{
    px_auto_fd int to = openat(scratch, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (to < 0)
        return -errno;
    int r = px_copy_part(from, at, size, to);
    return r < 0 ? r : px_fd_take(&to);
}

static int unpack(const struct px_setup *setup, const struct px_package *p, int root, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    struct px_deb deb;
    struct px_unpacked done;
    uint64_t size;
    if (px_blob_open(setup->sandbox->store, &p->sha256, &fd, &size, e) < 0 ||
        px_deb_read(fd, size, p->name, &deb, e) < 0)
        return -1;
    px_auto_fd int data = cut_out(setup->scratch, fd, deb.data, deb.data_size);
    if (data < 0)
        return px_fail(e, PX_E_STORE_WRITE, data, "cannot copy the files of package %s", p->name);
    return px_layer_unpack(data, deb.data_size, root, false, &px_unpack_limits_default, (struct px_progress_to){0},
                           &done, e);
}

/* Moves everything in `from` to `to`; merges directories that both have. */
static int merge(int from, int to, int depth)
{
    DIR *d = fdopendir(from);           /* closes from */
    int r = d ? 0 : -errno;
    if (!d)
        (void)px_fd_close(from);
    for (struct dirent *entry; r == 0 && (entry = readdir(d));) {
        const char *name = entry->d_name;
        if (px_equal(name, ".") || px_equal(name, ".."))
            continue;
        if (renameat2(dirfd(d), name, to, name, RENAME_NOREPLACE) == 0)
            continue;
        int below = errno == EEXIST && depth > 0
                        ? px_open_beneath(dirfd(d), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
                        : -errno;
        px_auto_fd int other = below < 0 ? -EBADF : px_open_beneath(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (below >= 0 && other < 0)
            below = px_fd_close(below);
        r = below < 0 ? below : merge(below, other, depth - 1);
        if (r == 0 && unlinkat(dirfd(d), name, AT_REMOVEDIR) < 0)
            r = -errno;
    }
    if (d)
        (void)closedir(d);
    return r;
}

static bool is_link_to(int root, const char *name, const char *target)
{
    char now[64];
    ssize_t n = readlinkat(root, name, now, sizeof now - 1);
    now[n > 0 ? n : 0] = '\0';
    return px_equal(now, target);
}

/* Packages of Debian 12 still bring files in /bin and /lib; on the installed system these are links into /usr. dpkg
 * follows and keeps existing links. Debian 13 has them in a package. */
static int merge_usr(int root, struct px_err *e)
{
    static const char *const dirs[][2] = {
        {"bin", "usr/bin"}, {"sbin", "usr/sbin"}, {"lib", "usr/lib"}, {"lib64", "usr/lib64"}};
    for (size_t i = 0; i < PX_COUNT_OF(dirs); i++) {
        const char *name = dirs[i][0], *in_usr = dirs[i][1];
        if (is_link_to(root, name, in_usr))
            continue;
        int r = mkdirat(root, in_usr, 0755) == 0 ? px_node_chmod_at(root, in_usr, S_IFDIR, 0755)
                : errno == EEXIST                ? 0
                                                 : -errno;
        int from = r < 0 ? r : px_open_beneath(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        px_auto_fd int to = from < 0 ? -EBADF : px_open_beneath(root, in_usr, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (from >= 0)
            r = merge(from, to, MERGE_DEPTH);
        if (r == 0 && from >= 0 && unlinkat(root, name, AT_REMOVEDIR) < 0)
            r = -errno;
        if (r == 0 && symlinkat(in_usr, root, name) < 0)
            r = -errno;
        if (r < 0)
            return px_fail(e, PX_E_BUILD, r, "cannot make /%s of the base a link to /%s", name, in_usr);
    }
    return 0;
}

static int fill(const struct px_setup *setup, int root, struct px_err *e)
{
    const struct px_packages *list = setup->packages;
    uint64_t done = 0;
    for (size_t i = 0; i < list->count; done += list->items[i++].size) {
        tell(setup, "unpacking packages", done, px_packages_bytes(list));
        if (unpack(setup, &list->items[i], root, e) < 0)
            return -1;
    }
    return merge_usr(root, e);
}

/* ---- the box ---- */

/* Gives the packages file names that dpkg accepts; by hard links where the file system has them. */
static int offer(const struct px_setup *setup, int debs, struct px_err *e)
{
    for (size_t i = 0; i < setup->packages->count; i++) {
        const struct px_package *p = &setup->packages->items[i];
        char name[NAME_MAX + 1], link[64];
        px_auto_fd int fd = -EBADF;
        uint64_t size;
        if (px_blob_open(setup->sandbox->store, &p->sha256, &fd, &size, e) < 0)
            return -1;
        (void)px_fmt(link, sizeof link, "/proc/self/fd/%d", fd);
        if (px_fmt(name, sizeof name, "%s_%s.deb", p->name, p->arch) < 0 ||
            linkat(AT_FDCWD, link, debs, name, AT_SYMLINK_FOLLOW) < 0)
            return px_fail(e, PX_E_STORE_WRITE, errno, "cannot lay out the package %s", p->name);
    }
    return 0;
}

struct watch {
    const struct px_setup *setup;
    int changes;                /* O_PATH */
};

/* dpkg writes a .list for each package that it has unpacked. */
static void on_tick(void *user)
{
    struct watch *w = user;
    int fd = px_open_beneath(w->changes, "upper/var/lib/dpkg/info", O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    uint64_t count = 0;
    if (!d) {
        (void)px_fd_close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d));) {
        size_t n = strlen(entry->d_name);
        count += n > 5 && px_equal(entry->d_name + n - 5, ".list");
    }
    (void)closedir(d);
    uint64_t total = px_packages_bytes(w->setup->packages), all = w->setup->packages->count;
    tell(w->setup, "installing packages", all > 0 && count < all ? total / all * count : total, total);
}

static int install(const struct px_setup *setup, const char *mode, const char *root, int changes, const char *debs,
                   struct px_err *e)
{
    char script[sizeof setup_script + 1] = {0};
    memcpy(script, setup_script, sizeof setup_script);
    const char *const argv[] = {"/bin/sh", "-c", script, "px-setup", mode, NULL};
    struct watch watch = {.setup = setup, .changes = changes};
    struct px_buildbox box = {.out_fd = -EBADF};
    char path[PATH_MAX];
    tell(setup, "installing packages", 0, px_packages_bytes(setup->packages));
    int r = px_buildbox_path(changes, "", path, sizeof path, e);
    r = r < 0 ? r : px_buildbox_setup(&box, "installing the packages", root, path, e);
    r = r < 0 ? r : px_buildbox_show(&box, debs, "/px/debs", false, e);
    box.tick = on_tick;
    box.user = &watch;
    r = r < 0 ? r : px_buildbox_run(&box, argv, e);
    px_buildbox_done(&box);
    return r;
}

/* ---- a base ---- */

/* What the box shows as its root, as an archive made by the base's own tar. */
static int archive(const struct px_setup *setup, const char *root, const char *changes, int *ret_fd, struct px_err *e)
{
    static const char *const argv[] = {"/bin/tar",
                                       "--create",
                                       "--file=-",
                                       "--directory=/",
                                       "--one-file-system",
                                       "--numeric-owner",
                                       "--sort=name",
                                       "--format=gnu",
                                       "--exclude=./px",
                                       "--exclude=./home/sandbox",
                                       ".",
                                       NULL};
    struct px_buildbox box = {.out_fd = -EBADF};
    px_auto_fd int fd = openat(setup->scratch, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        return px_fail(e, PX_E_STORE_WRITE, errno, "cannot make a file in the store");
    tell(setup, "collecting files", 0, 0);
    int r = px_buildbox_setup(&box, "collecting the files", root, changes, e);
    r = r < 0 ? r : px_policy_set(box.policy, "output-limit", "unlimited", e);
    box.out_fd = fd;
    r = r < 0 ? r : px_buildbox_run(&box, argv, e);
    px_buildbox_done(&box);
    if (r < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return px_fail(e, PX_E_IO, errno, "cannot read a file of the store");
    *ret_fd = px_fd_take(&fd);
    return 0;
}

/* Files that every container engine replaces by its own; here they have minimal content. */
static int plain_files(int root, struct px_err *e)
{
    static const struct {
        const char *name, *text;
    } files[] = {{"etc/hostname", ""},
                 {"etc/resolv.conf", ""},
                 {"etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"}};
    for (size_t i = 0; i < PX_COUNT_OF(files); i++) {
        if (unlinkat(root, files[i].name, 0) < 0 && errno != ENOENT)
            return px_fail(e, PX_E_STORE_WRITE, errno, "cannot replace /%s of the base", files[i].name);
        px_auto_fd int fd = px_open_beneath(root, files[i].name, O_WRONLY | O_CREAT | O_EXCL, 0644);
        int r = fd < 0 ? fd : px_write_full(fd, files[i].text, strlen(files[i].text));
        if (r < 0 || fchmod(fd, 0644) < 0)
            return px_fail(e, PX_E_STORE_WRITE, r < 0 ? r : -errno, "cannot write /%s of the base", files[i].name);
    }
    return 0;
}

static int pack_base(const struct px_setup *setup, int tar, struct px_layer *ret_layer, struct px_oid *ret_tree,
                     struct px_err *e)
{
    px_auto_fd int final = -EBADF;
    struct px_unpacked done;
    struct px_layer layer;
    struct stat st;
    if (make_dir(setup->scratch, "final", 0755, &final, e) < 0)
        return -1;
    if (fstat(tar, &st) < 0 || px_layer_unpack(tar, (uint64_t)st.st_size, final, false, &px_unpack_limits_default,
                                               setup->sandbox->progress, &done, e) < 0)
        return -1;
    struct px_pack pack = {.dirfd = final, .compression = setup->compression};
    if (plain_files(final, e) < 0 ||
        px_layer_pack(setup->sandbox->store, &pack, setup->sandbox->progress, &layer, e) < 0)
        return -1;
    struct px_image image = {.layer_count = 1};
    image.layers[0] = layer;
    if (px_image_tree(setup->sandbox->store, &image, setup->sandbox->progress, ret_tree, e) < 0)
        return -1;
    *ret_layer = layer;
    return 0;
}

struct places {
    int debs, root, changes;
    char debs_path[PATH_MAX], root_path[PATH_MAX], changes_path[PATH_MAX];
};

static void places_done(struct places *p)
{
    px_fd_done(&p->debs);
    px_fd_done(&p->root);
    px_fd_done(&p->changes);
}

static int places_make(const struct px_setup *setup, struct places *p, struct px_err *e)
{
    if (make_dir(setup->scratch, "debs", 0755, &p->debs, e) < 0 ||
        make_dir(setup->scratch, "changes", 0700, &p->changes, e) < 0 ||
        make_dir(setup->scratch, "root", 0755, &p->root, e) < 0)
        return -1;
    if (px_buildbox_path(p->debs, "", p->debs_path, sizeof p->debs_path, e) < 0 ||
        px_buildbox_path(p->root, "", p->root_path, sizeof p->root_path, e) < 0)
        return -1;
    return px_buildbox_path(p->changes, "", p->changes_path, sizeof p->changes_path, e);
}

int px_setup_base(const struct px_setup *setup, struct px_layer *ret_layer, struct px_oid *ret_tree, struct px_err *e)
{
    __attribute__((cleanup(places_done))) struct places p = {.debs = -EBADF, .root = -EBADF, .changes = -EBADF};
    px_auto_fd int tar = -EBADF;
    if (places_make(setup, &p, e) < 0 || fill(setup, p.root, e) < 0 || offer(setup, p.debs, e) < 0 ||
        install(setup, "base", p.root_path, p.changes, p.debs_path, e) < 0 ||
        archive(setup, p.root_path, p.changes_path, &tar, e) < 0)
        return -1;
    return pack_base(setup, tar, ret_layer, ret_tree, e);
}

/* ---- a layer ---- */

int px_setup_layer(const struct px_setup *setup, const struct px_oid *base_tree, struct px_layer *ret_layer,
                   struct px_err *e)
{
    /* Paths where the box has its own mounts, or where a container engine mounts its own files. */
    static const char *const skip[] = {
        "dev", "proc", "sys", "run", "tmp", "px", "home/sandbox", "etc/hostname", "etc/hosts", "etc/resolv.conf", NULL};
    __attribute__((cleanup(places_done))) struct places p = {.debs = -EBADF, .root = -EBADF, .changes = -EBADF};
    char root[PATH_MAX];
    if (places_make(setup, &p, e) < 0 || offer(setup, p.debs, e) < 0 ||
        px_tree_path(setup->sandbox->store, base_tree, root, sizeof root, e) < 0 ||
        install(setup, "layer", root, p.changes, p.debs_path, e) < 0)
        return -1;
    px_auto_fd int upper = px_open_beneath(p.changes, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (upper < 0)
        return px_fail(e, PX_E_BUILD, upper, "the box left no changes");
    struct px_pack pack = {.dirfd = upper, .upper = true, .compression = setup->compression, .skip = skip};
    return px_layer_pack(setup->sandbox->store, &pack, setup->sandbox->progress, ret_layer, e);
}
