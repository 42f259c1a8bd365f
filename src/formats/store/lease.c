/* A lease is a text file that lists objects in use, with a shared flock while it is held.
 *
 *     px-lease 1
 *     tree 64 digits
 *
 * (1) A lease is made, locked and added to under the guard, shared. GC looks under the guard, exclusive: it sees
 *     whole lines, and none that is not locked yet.
 * (2) A lease that can be locked exclusively has no holder, whatever its content and age. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "store/store_internal.h"

static const char head[] = "px-lease 1\n";
static const char *const use_words[PX_USES] = {"tree", "blob", "base", "image", "env"};
enum { LEASE_MAX = 64 << 20, LINE_MAX_BYTES = 80 };
#define LOCK_NSEC_MAX (60 * UINT64_C(1000000000))

/* ---- lists ---- */

static int compare(enum px_use use, const struct px_oid *oid, const struct px_used *other)
{
    return use != other->use ? (int)use - (int)other->use : strcmp(oid->hex, other->oid.hex);
}

/* The index of the entry, or where to insert it. */
static size_t position(const struct px_used_list *list, enum px_use use, const struct px_oid *oid)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(use, oid, &list->items[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool px_lease_used_has(const struct px_used_list *list, enum px_use use, const struct px_oid *oid)
{
    size_t at = position(list, use, oid);

    return at < list->count && compare(use, oid, &list->items[at]) == 0;
}

static int grow(struct px_used_list *list)
{
    size_t room = list->room ? list->room * 2 : 64;
    struct px_used *items = list->count < list->room ? list->items : realloc(list->items, room * sizeof *items);

    if (!items)
        return -ENOMEM;
    list->room = list->count < list->room ? list->room : room;
    list->items = items;
    return 0;
}

int px_lease_used_add(struct px_used_list *list, enum px_use use, const struct px_oid *oid)
{
    size_t at = position(list, use, oid);

    if (at < list->count && compare(use, oid, &list->items[at]) == 0)
        return 0;
    if (grow(list) < 0)
        return -ENOMEM;
    memmove(list->items + at + 1, list->items + at, (list->count - at) * sizeof *list->items);
    list->items[at] = (struct px_used){use, *oid};
    list->count++;
    return 0;
}

void px_lease_used_done(struct px_used_list *list)
{
    free(list->items);
    *list = (struct px_used_list){0};
}

/* ---- the text ---- */

static int parse_line(const char *line, size_t len, struct px_used_list *list)
{
    char copy[LINE_MAX_BYTES];
    struct px_oid oid;

    if (len >= sizeof copy || memchr(line, '\0', len))
        return -EINVAL;
    memcpy(copy, line, len);
    copy[len] = '\0';
    for (int use = 0; use < PX_USES; use++) {
        size_t n = strlen(use_words[use]);
        if (strncmp(copy, use_words[use], n) == 0 && copy[n] == ' ' && px_hash_oid_parse(copy + n + 1, false, &oid) == 0)
            return px_lease_used_add(list, (enum px_use)use, &oid);
    }
    return -EINVAL;
}

int px_lease_parse(const char *text, size_t len, struct px_used_list *list)
{
    size_t at = strlen(head);
    int r = len >= at && memcmp(text, head, at) == 0 ? 0 : -EINVAL;

    while (r == 0 && at < len) {
        const char *end = memchr(text + at, '\n', len - at);
        r = end ? parse_line(text + at, (size_t)(end - (text + at)), list) : -EINVAL;
        at = end ? (size_t)(end - text) + 1 : len;
    }
    return r;
}

static void add_line(struct px_buf *out, enum px_use use, const struct px_oid *oid)
{
    (void)px_buf_printf(out, "%s %s\n", use_words[use], oid->hex);
}

/* ---- a file of it ---- */

static int new_file(const struct px_store *store, const char *text, size_t len, char name[PX_RANDOM_NAME], int *ret_fd,
                    struct px_err *e)
{
    int dir = store->place[PX_PLACE_LEASES];

    px_store_random_name(name);
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    /* another process may be testing the lock */
    int r = fd < 0 ? fd : px_store_flock_until(fd, LOCK_SH, px_now_nsec() + LOCK_NSEC_MAX);
    if (r >= 0)
        r = px_write_full(fd, text, len);
    if (r < 0) {
        if (fd >= 0)
            (void)unlinkat(dir, name, 0);
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot write '%s/leases'", store->path);
    }
    *ret_fd = px_fd_take(&fd);
    return 0;
}

/* ---- what a handle keeps for itself ---- */

static int append(struct px_store *store, const char *text, size_t len, struct px_err *e)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = pwrite(store->session, text + done, len - done, store->session_size + (off_t)done);
        if (n < 0 && errno != EINTR) {
            int err = errno;
            (void)!ftruncate(store->session, store->session_size);      /* a partial line would make every GC fail */
            return px_fail(e, PX_E_STORE_WRITE, err, "cannot write '%s/leases'", store->path);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    store->session_size += (off_t)len;
    return 0;
}

int px_lease_session_keep(struct px_store *store, enum px_use use, const struct px_oid *oid, struct px_err *e)
{
    px_auto_buf struct px_buf line = PX_BUF(256);

    if (px_lease_used_has(&store->kept, use, oid))
        return 0;
    if (store->session < 0) {
        if (new_file(store, head, strlen(head), store->session_name, &store->session, e) < 0)
            return -1;
        store->session_size = (off_t)strlen(head);
    }
    add_line(&line, use, oid);
    if (line.err < 0)
        return px_no_memory(e);
    if (append(store, line.data, line.len, e) < 0)
        return -1;
    (void)px_lease_used_add(&store->kept, use, oid);          /* only avoids a second line */
    return 0;
}

void px_lease_session_end(struct px_store *store)
{
    px_lease_used_done(&store->kept);
    if (store->session < 0)
        return;
    (void)unlinkat(store->place[PX_PLACE_LEASES], store->session_name, 0);
    store->session = px_fd_close(store->session);
}

void px_lease_session_forget(struct px_store *store)
{
    store->kept.count = 0;
    store->session_size = (off_t)strlen(head);
    if (store->session >= 0 && ftruncate(store->session, store->session_size) < 0)
        px_lease_session_end(store);
}

/* ---- a lease of somebody's ---- */

struct px_lease {
    int dir, fd;                /* its own descriptor of leases/: a lease may outlive the store's handle */
    char name[PX_RANDOM_NAME];
};

static int missing(const char *word, const struct px_oid *oid, struct px_err *e)
{
    return px_fail(e, PX_E_OBJECT, 0, "%s %s is not in the store", word, oid->hex);
}

/* The time of the last use only decides what GC removes first. */
static void touch(const struct px_store *store, const struct px_oid *tree)
{
    char path[80];

    if (px_fmt(path, sizeof path, "%s/complete", tree->hex) >= 0)
        (void)utimensat(store->place[PX_PLACE_TREES], path, NULL, AT_SYMLINK_NOFOLLOW);
}

static int check_there(const struct px_store *store, const struct px_oid *trees, size_t trees_count,
                       const struct px_oid *blobs, size_t blobs_count, struct px_err *e)
{
    for (size_t i = 0; i < trees_count; i++) {
        if (!px_tree_there(store, &trees[i]))
            return missing("tree", &trees[i], e);
        touch(store, &trees[i]);
    }
    for (size_t i = 0; i < blobs_count; i++)
        if (!px_blob_there(store, &blobs[i], NULL))
            return missing("blob", &blobs[i], e);
    return 0;
}

static int check_whole(struct px_store *store, const struct px_oid *trees, size_t count, struct px_err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = px_tree_whole(store, &trees[i], e);
        if (r > 0)
            r = px_tree_lost(&trees[i], r, e);
    }
    return r;
}

int px_lease_take(struct px_store *store, const struct px_oid *trees, size_t trees_count, const struct px_oid *blobs,
                  size_t blobs_count, struct px_lease **ret_lease, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(LEASE_MAX);
    struct px_lease *lease = calloc(1, sizeof *lease);

    (void)px_buf_puts(&text, head);
    for (size_t i = 0; i < trees_count; i++)
        add_line(&text, PX_USE_TREE, &trees[i]);
    for (size_t i = 0; i < blobs_count; i++)
        add_line(&text, PX_USE_BLOB, &blobs[i]);
    if (!lease || text.err < 0) {
        free(lease);
        return px_no_memory(e);
    }
    *lease = (struct px_lease){.dir = -EBADF, .fd = -EBADF};
    px_auto_fd int guard = px_store_guard_take(store, false, e);
    int r = guard < 0 ? -1 : new_file(store, text.data, text.len, lease->name, &lease->fd, e);
    lease->dir = fcntl(store->place[PX_PLACE_LEASES], F_DUPFD_CLOEXEC, 3);
    if (r == 0)
        r = check_there(store, trees, trees_count, blobs, blobs_count, e);
    guard = px_fd_close(guard);
    if (r == 0 && check_whole(store, trees, trees_count, e) == 0) {
        *ret_lease = lease;
        return 0;
    }
    px_lease_drop(lease);
    return -1;
}

/* A process that received the descriptor may still hold the lock: then the file stays. */
void px_lease_drop(struct px_lease *lease)
{
    if (!lease)
        return;
    lease->fd = px_fd_close(lease->fd);
    px_auto_fd int again = lease->dir < 0 ? -EBADF : px_store_open_own(lease->dir, lease->name, O_RDONLY);
    if (again >= 0 && flock(again, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(lease->dir, lease->name, 0);
    (void)px_fd_close(lease->dir);
    free(lease);
}
