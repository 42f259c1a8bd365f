#include "box/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "kernel/tree.h"

enum {
    CALM_MSEC = 1000,           /* between close looks when nothing points to the box */
    COST_SHARE = 20,            /* a close look may take a twentieth of the time */
    PROCESSES_MAX = 4096,
    NAMELESS_MAX = 1024,
};

/* ---- files without a name, which only the processes that hold them can show ---- */

struct nameless {
    const int *fds;
    size_t count;
    uint64_t bytes, files;
    struct {
        dev_t dev;
        ino_t ino;
    } seen[NAMELESS_MAX];
    size_t seen_count;
    int process[PROCESSES_MAX], processes;      /* found so far */
};

static bool is_ours(const struct nameless *n, dev_t dev)
{
    struct stat st;
    for (size_t i = 0; i < n->count; i++)
        if (fstat(n->fds[i], &st) == 0 && st.st_dev == dev)
            return true;
    return false;
}

static void add_nameless(struct nameless *n, const struct stat *st)
{
    if (!S_ISREG(st->st_mode) || st->st_nlink > 0 || !is_ours(n, st->st_dev))
        return;
    for (size_t i = 0; i < n->seen_count; i++)
        if (n->seen[i].dev == st->st_dev && n->seen[i].ino == st->st_ino)
            return;
    if (n->seen_count < NAMELESS_MAX) {
        n->seen[n->seen_count].dev = st->st_dev;
        n->seen[n->seen_count++].ino = st->st_ino;
    }
    n->bytes += (uint64_t)st->st_blocks * 512;
    n->files++;
}

/* Calls each for the numbered entries of /proc/PID/WHAT. */
static void each_number(int pid, const char *what, void (*each)(void *, int pid, int dir, int number), void *arg)
{
    char path[64];
    if (px_fmt(path, sizeof path, "/proc/%d/%s", pid, what) < 0)
        return;
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        uint64_t number;
        if (px_parse_u64(entry->d_name, INT32_MAX, &number) == 0)
            each(arg, pid, dirfd(dir), (int)number);
    }
    if (dir)
        (void)closedir(dir);
}

static void look_at_descriptor(void *arg, int pid, int dir, int number)
{
    char name[16];
    struct stat st;
    (void)pid;
    if (px_fmt(name, sizeof name, "%d", number) >= 0 && fstatat(dir, name, &st, 0) == 0)
        add_nameless(arg, &st);
}

static void look_at_thread(void *arg, int pid, int dir, int number)
{
    struct nameless *n = arg;
    char path[64], list[4096];
    (void)dir;
    if (px_fmt(path, sizeof path, "/proc/%d/task/%d/children", pid, number) < 0 ||
        px_read_file(AT_FDCWD, path, list, sizeof list) <= 0)
        return;
    for (const char *p = list; *p;) {
        char word[16] = "";
        size_t length = strcspn(p, " \n");
        uint64_t child;
        memcpy(word, p, length < sizeof word ? length : 0);
        if (px_parse_u64(word, INT32_MAX, &child) == 0 && n->processes < PROCESSES_MAX)
            n->process[n->processes++] = (int)child;
        p += length + strspn(p + length, " \n");
    }
}

/* Level by level, so that a deep tree of processes costs no stack. */
static void look_at_processes(struct nameless *n, int init)
{
    n->process[n->processes++] = init;
    for (int i = 0; i < n->processes; i++) {
        each_number(n->process[i], "fd", look_at_descriptor, n);
        each_number(n->process[i], "task", look_at_thread, n);
    }
}

/* ---- the whole ---- */

static void measure(const int *fds, size_t count, int init, uint64_t *ret_bytes, uint64_t *ret_files)
{
    struct px_tree_size all = {0};
    for (size_t i = 0; i < count; i++)
        px_tree_measure(fds[i], &all);
    *ret_bytes = all.bytes;
    *ret_files = all.files;
    struct nameless *n = init > 0 ? calloc(1, sizeof *n) : NULL;
    if (!n)
        return;
    n->fds = fds;
    n->count = count;
    look_at_processes(n, init);
    *ret_bytes += n->bytes;
    *ret_files += n->files;
    free(n);
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
    measure(fds, count, 0, &disk->bytes_before, &disk->files_before);
    free_space(fds, count, &disk->free_before, &disk->nodes_before);
    disk->looked_nsec = px_now_nsec();
    disk->cost_nsec = disk->looked_nsec - start;
}

static uint64_t grown(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

bool px_disk_over(struct px_disk *disk, const int *fds, size_t count, int init, uint64_t now_nsec)
{
    uint64_t bytes = 0, files = 0, since = now_nsec - disk->looked_nsec;
    free_space(fds, count, &bytes, &files);
    bool close = grown(disk->free_before, bytes) > disk->bytes_max || grown(disk->nodes_before, files) > disk->files_max;
    bool last = init == 0;
    if (!last && (since < COST_SHARE * disk->cost_nsec || (!close && since < (uint64_t)CALM_MSEC * 1000000)))
        return false;
    measure(fds, count, init, &bytes, &files);
    bytes = grown(bytes, disk->bytes_before);
    files = grown(files, disk->files_before);
    disk->bytes = bytes > disk->bytes ? bytes : disk->bytes;
    disk->files = files > disk->files ? files : disk->files;
    disk->looked_nsec = px_now_nsec();
    disk->cost_nsec = disk->looked_nsec - now_nsec;
    return bytes > disk->bytes_max || files > disk->files_max;
}
