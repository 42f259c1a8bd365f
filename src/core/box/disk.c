#include "box/disk.h"

#include <sys/statfs.h>

#include "base/time.h"
#include "kernel/tree.h"

enum {
    CALM_MSEC = 1000,           /* between two measurements while the free space has not fallen */
    COST_SHARE = 20,            /* a measurement may use one twentieth of the time */
    HIDDEN_LOOKS = 3,           /* measurements with an unexplained loss before the box is ended */
    SLACK_BYTES = 4 << 20,      /* allowance for the file system itself and for small writes of other programs */
    SLACK_FILES = 256,
};

struct measure {
    uint64_t bytes, files;
    bool unread;                /* some directory could not be read */
    bool blind;                 /* a process holds something that cannot be counted */
};

static struct measure measure_all(const int *fds, size_t count, int init)
{
    struct px_tree_size tree = {0};
    struct px_disk_held held = {0};
    for (size_t i = 0; i < count; i++)
        px_kernel_tree_measure(fds[i], &tree);
    if (init > 0)
        px_disk_held(fds, count, init, &held);
    return (struct measure){tree.bytes + held.bytes, tree.files + held.files, tree.unread, held.blind};
}

static void free_space(const int *fds, size_t count, uint64_t *ret_bytes, uint64_t *ret_files)
{
    *ret_bytes = *ret_files = 0;
    for (size_t i = 0; i < count; i++) {
        struct statfs fs;
        if (fstatfs(fds[i], &fs) < 0)
            continue;
        *ret_bytes += (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize;
        *ret_files += (uint64_t)fs.f_ffree;
    }
}

void px_disk_start(struct px_disk *disk, const int *fds, size_t count, uint64_t bytes_max, uint64_t files_max)
{
    uint64_t start = px_now_nsec();
    *disk = (struct px_disk){.on = true, .bytes_max = bytes_max, .files_max = files_max};
    struct measure before = measure_all(fds, count, 0);
    disk->bytes_before = before.bytes;
    disk->files_before = before.files;
    disk->unread_before = before.unread;
    free_space(fds, count, &disk->free_before, &disk->nodes_before);
    disk->looked_nsec = px_now_nsec();
    disk->cost_nsec = disk->looked_nsec - start;
}

static uint64_t growth(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static uint64_t add_saturating(uint64_t value, uint64_t more)
{
    return value < UINT64_MAX - more ? value + more : UINT64_MAX;
}

/* The file system has lost more than the counted bytes and the limit together, and the box holds something that could
 * not be counted. Another program may have caused one such loss, while the box happened to pass a descriptor. So the
 * box is ended only after several. They need not be consecutive, as a box may show its files at times and hide them
 * at others. */
static bool is_hidden(struct px_disk *disk, const struct measure *now, uint64_t lost_bytes, uint64_t lost_files)
{
    bool lost = growth(lost_bytes, now->bytes) > add_saturating(disk->bytes_max, SLACK_BYTES) ||
                growth(lost_files, now->files) > add_saturating(disk->files_max, SLACK_FILES);
    if (!lost) {
        disk->hidden = 0;
        return false;
    }
    disk->hidden += now->blind || (now->unread && !disk->unread_before);
    if (disk->hidden < HIDDEN_LOOKS)
        return false;
    disk->bytes = lost_bytes > disk->bytes ? lost_bytes : disk->bytes;
    disk->files = lost_files > disk->files ? lost_files : disk->files;
    return true;
}

bool px_disk_over(struct px_disk *disk, const int *fds, size_t count, int init, uint64_t now_nsec)
{
    uint64_t bytes = 0, files = 0, since = now_nsec - disk->looked_nsec;
    free_space(fds, count, &bytes, &files);
    bytes = growth(disk->free_before, bytes);
    files = growth(disk->nodes_before, files);
    bool close = bytes > disk->bytes_max || files > disk->files_max;
    bool last = init == 0;
    if (!last && (since < COST_SHARE * disk->cost_nsec || (!close && since < (uint64_t)CALM_MSEC * 1000000)))
        return false;
    struct measure now = measure_all(fds, count, init);
    now.bytes = growth(now.bytes, disk->bytes_before);
    now.files = growth(now.files, disk->files_before);
    disk->bytes = now.bytes > disk->bytes ? now.bytes : disk->bytes;
    disk->files = now.files > disk->files ? now.files : disk->files;
    disk->looked_nsec = px_now_nsec();
    disk->cost_nsec = disk->looked_nsec - now_nsec;
    bool hidden = !last && is_hidden(disk, &now, bytes, files);
    return hidden || now.bytes > disk->bytes_max || now.files > disk->files_max;
}
