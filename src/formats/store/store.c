/* Opens a store: finds it, checks it, and creates what is missing. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "state/home.h"
#include "store/store_internal.h"

static const char version_head[] = "px-store ";
static const char version_text[] = "px-store 1\n";
static const struct px_home_use use = {PX_E_STORE_WRITE, "a store"};

static const struct {
    const char *name;
    bool sandbox;               /* below PX_HOME/sandbox, not PX_HOME/store */
} places[PX_PLACES] = {
    [PX_PLACE_BLOBS] = {"blobs/sha256", false},
    [PX_PLACE_TREES] = {"trees", false},
    [PX_PLACE_NAMES] = {"names", false},
    [PX_PLACE_LEASES] = {"leases", false},
    [PX_PLACE_LOCKS] = {"locks", false},
    [PX_PLACE_SEEN] = {"seen", false},
    [PX_PLACE_TMP] = {"tmp", false},
    [PX_PLACE_TRASH] = {"trash", false},
    [PX_PLACE_CORRUPT] = {"corrupt", false},
    [PX_PLACE_BASES] = {"bases", true},
    [PX_PLACE_IMAGES] = {"images", true},
    [PX_PLACE_ENVS] = {"envs", true},
};

const char *px_store_place_name(enum px_place place)
{
    return places[place].name;
}

/* ---- where ---- */

/* The store depends on rename and flock, which are not reliable on these file systems. */
static int check_file_system(int fd, const char *path, struct px_err *e)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } refused[] = {
        {NFS_SUPER_MAGIC, "NFS"},        {SMB_SUPER_MAGIC, "SMB"},   {0xff534d42 /* CIFS */, "SMB"},
        {0xfe534d42 /* SMB2 */, "SMB"},  {CODA_SUPER_MAGIC, "Coda"}, {AFS_SUPER_MAGIC, "AFS"},
        {0x00c36400 /* Ceph */, "Ceph"}, {V9FS_MAGIC, "9p"},         {0x0bd00bd0 /* Lustre */, "Lustre"},
        {MSDOS_SUPER_MAGIC, "FAT"},
    };
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return px_fail(e, PX_E_STORE_WRITE, errno, "cannot look at the file system of '%s'", path);
    for (size_t i = 0; i < PX_COUNT_OF(refused); i++)
        if ((unsigned long)fs.f_type == refused[i].magic) {
            (void)px_fail(e, PX_E_STORE_WRITE, 0, "'%s' cannot hold a store", path);
            (void)px_why(e, "Its file system is %s, whose locks and renames are not those of a local disk.",
                         refused[i].name);
            return px_fix(e, "Set PX_HOME to a directory on a local disk.");
        }
    return 0;
}

static int enter_below(const struct px_store *store, int parent, const char *part, int *ret_fd, struct px_err *e)
{
    char path[PATH_MAX + 64];

    if (px_fmt(path, sizeof path, "%.*s/%s", (int)(strlen(store->path) - strlen("/store")), store->path, part) < 0)
        return px_fail(e, PX_E_STORE_WRITE, ENAMETOOLONG, "cannot open the store");
    const char *name = strrchr(part, '/');
    return px_home_enter(parent, name ? name + 1 : part, path, true, 077, &use, ret_fd, e);
}

/* ---- what is in it ---- */

static int same_disk(const struct px_store *store, int fd, const char *name, struct px_err *e)
{
    struct stat root, st;

    if (fstat(store->root, &root) < 0 || fstat(fd, &st) < 0)
        return px_fail(e, PX_E_STORE_WRITE, errno, "cannot look at '%s'", store->path);
    if (root.st_dev == st.st_dev)
        return 0;
    (void)px_fail(e, PX_E_STORE_WRITE, 0, "'%s' cannot hold a store", store->path);
    (void)px_why(e, "'%s' in PX_HOME is on another file system than the rest.", name);
    return px_fix(e, "Move the whole of PX_HOME to one file system, and set PX_HOME.");
}

static int open_place(struct px_store *store, enum px_place place, struct px_err *e)
{
    px_auto_fd int middle = -EBADF;
    const char *name = places[place].name;
    int parent = places[place].sandbox ? store->sandbox : store->root;
    char part[64];

    if (strchr(name, '/')) {
        if (px_fmt(part, sizeof part, "store/%.*s", (int)strcspn(name, "/"), name) < 0 ||
            enter_below(store, parent, part, &middle, e) < 0)
            return -1;
        parent = middle;
    }
    if (px_fmt(part, sizeof part, "%s/%s", places[place].sandbox ? "sandbox" : "store", name) < 0 ||
        enter_below(store, parent, part, &store->place[place], e) < 0)
        return -1;
    return same_disk(store, store->place[place], part, e);
}

/* 0: there is none yet, 1: it has our version. */
static int check_version(const struct px_store *store, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_SMALL_MAX);
    int r = px_store_small_read(store->root, "version", &text);

    if (r == -ENOENT)
        return 0;
    if (r >= 0 && px_equal(px_buf_text(&text), version_text))
        return 1;
    if (r >= 0 && px_starts_with(px_buf_text(&text), version_head))
        return px_fail(e, PX_E_STORE_FORMAT, 0, "the store in '%s' has another format", store->path);
    (void)px_fail(e, PX_E_STORE_FORMAT, r, "the store in '%s' has a version file that cannot be read", store->path);
    (void)px_why(e, "It is not a file that px has written.");
    return px_fix(e,
                  "Look at '%s/version': it should hold the line \"px-store 1\".\nOr set PX_HOME to another directory.",
                  store->path);
}

/* Two processes may create one store at the same time: both write the same content. */
static int write_version(const struct px_store *store, struct px_err *e)
{
    struct px_tmp tmp = {.fd = -EBADF};

    if (px_store_tmp_make(store, &tmp, e) < 0)
        return -1;
    int r = px_store_write_new(tmp.fd, "version", version_text, strlen(version_text), 0600);
    if (r >= 0)
        r = px_store_rename_new(tmp.fd, "version", store->root, "version");
    if (r >= 0 || r == -EEXIST)
        r = px_store_fsync(store->root);
    px_store_tmp_done(store, &tmp);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot make a store in '%s'", store->path) : 0;
}

static int open_all(struct px_store *store, int home, struct px_err *e)
{
    if (enter_below(store, home, "store", &store->root, e) < 0)
        return -1;
    int known = check_version(store, e);
    if (known < 0 || enter_below(store, home, "sandbox", &store->sandbox, e) < 0)
        return -1;
    for (int i = 0; i < PX_PLACES; i++)
        if (open_place(store, (enum px_place)i, e) < 0)
            return -1;
    return known ? 0 : write_version(store, e);
}

int px_store_open(const char *home, struct px_store **ret_store, struct px_err *e)
{
    struct px_store *store = calloc(1, sizeof *store);
    px_auto_fd int fd = -EBADF;

    if (!store)
        return px_no_memory(e);
    store->root = store->sandbox = store->session = -EBADF;
    for (int i = 0; i < PX_PLACES; i++)
        store->place[i] = -EBADF;
    int r = px_home_find(home, &use, store->path, sizeof store->path - sizeof "/store", e);
    if (r >= 0)
        r = px_home_enter(AT_FDCWD, store->path, store->path, true, 022, &use, &fd, e);
    if (r >= 0)
        r = check_file_system(fd, store->path, e);
    if (r >= 0) {
        memcpy(store->path + strlen(store->path), "/store", sizeof "/store");
        r = open_all(store, fd, e);
    }
    if (r < 0) {
        px_store_close(store);
        return -1;
    }
    px_store_sweep(store);
    *ret_store = store;
    return 0;
}

void px_store_close(struct px_store *store)
{
    if (!store)
        return;
    px_lease_session_end(store);
    px_lease_used_done(&store->checked);
    for (int i = 0; i < PX_PLACES; i++)
        (void)px_fd_close(store->place[i]);
    (void)px_fd_close(store->root);
    (void)px_fd_close(store->sandbox);
    free(store);
}

const char *px_store_path(const struct px_store *store)
{
    return store->path;
}
