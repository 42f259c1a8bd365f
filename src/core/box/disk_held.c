/* Finds files without a name that processes of a box hold by a descriptor, by a mapping or as their program. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "box/disk.h"

enum { PROCESSES_MAX = 16 * 1024, FILES_START = 256, FILES_MAX = 1 << 20, LIST_START = 4096, LIST_MAX = 1 << 20, TABLES = 2 /* KCMP_FILES */ };

struct file {
    dev_t dev;
    ino_t ino;                  /* 0: free */
};

struct look {
    const int *fds;
    size_t count;
    struct px_disk_held *held;
    struct file *seen;          /* a hash table, at most half full */
    size_t seen_size, seen_count;
    int *process;               /* the processes found so far */
    int processes;
    int pid;                    /* the one being inspected */
    char *text;                 /* for file contents and lines */
    size_t text_size;
};

/* A process that has just ended hides nothing. Anything else that cannot be inspected may hide files. */
static void note_unseen(struct look *l, int err)
{
    if (err != -ENOENT && err != -ESRCH)
        l->held->blind = true;
}

static bool is_ours(const struct look *l, dev_t dev)
{
    struct stat st;
    for (size_t i = 0; i < l->count; i++)
        if (fstat(l->fds[i], &st) == 0 && st.st_dev == dev)
            return true;
    return false;
}

static struct file *find_slot(struct file *table, size_t size, dev_t dev, ino_t ino)
{
    size_t at = (size_t)((uint64_t)ino * 0x9e3779b97f4a7c15u >> 20) % size;
    while (table[at].ino && (table[at].ino != ino || table[at].dev != dev))
        at = (at + 1) % size;
    return &table[at];
}

static bool make_room(struct look *l)
{
    if (l->seen_count * 2 < l->seen_size)
        return true;
    size_t size = l->seen_size ? l->seen_size * 2 : FILES_START;
    struct file *table = size <= FILES_MAX ? calloc(size, sizeof *table) : NULL;
    if (!table)
        return false;
    for (size_t i = 0; i < l->seen_size; i++)
        if (l->seen[i].ino)
            *find_slot(table, size, l->seen[i].dev, l->seen[i].ino) = l->seen[i];
    free(l->seen);
    l->seen = table;
    l->seen_size = size;
    return true;
}

/* Counts each file once, however many processes hold it. */
static void add_file(struct look *l, const struct stat *st)
{
    if (!make_room(l)) {
        l->held->blind = true;
        return;
    }
    struct file *file = find_slot(l->seen, l->seen_size, st->st_dev, st->st_ino);
    if (file->ino)
        return;
    *file = (struct file){st->st_dev, st->st_ino};
    l->seen_count++;
    l->held->bytes += (uint64_t)st->st_blocks * 512;
    l->held->files++;
}

/* The file behind a link of /proc. A file of an overlay may lie in the directory that takes the changes or in a lower
 * one; stat does not say which. */
static void look_at_file(struct look *l, const char *path, const struct stat *st)
{
    struct statfs fs;
    if (!S_ISREG(st->st_mode) || st->st_nlink > 0)
        return;
    if (is_ours(l, st->st_dev))
        add_file(l, st);
    else if (statfs(path, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC)
        l->held->blind = true;
}

/* Reads a file of /proc of any length into l->text; its length or -errno. */
static ssize_t read_list(struct look *l, const char *path)
{
    for (;;) {
        ssize_t n = l->text ? px_read_file(AT_FDCWD, path, l->text, l->text_size) : -EFBIG;
        if (n != -EFBIG)
            return n;
        size_t size = l->text ? l->text_size * 4 : LIST_START;
        char *text = size <= LIST_MAX ? realloc(l->text, size) : NULL;
        if (!text)
            return -EFBIG;
        l->text = text;
        l->text_size = size;
    }
}

/* Calls each for the numbered entries of a directory. */
static void each_number(struct look *l, const char *path, void (*each)(struct look *l, const char *path, int number))
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    if (!dir)
        note_unseen(l, -errno);
    while (dir && (entry = readdir(dir))) {
        uint64_t number;
        if (px_parse_u64(entry->d_name, INT32_MAX, &number) == 0)
            each(l, path, (int)number);
    }
    if (dir)
        (void)closedir(dir);
}

/* ---- descriptors ---- */

/* The kernel tells how many descriptors wait in a socket, but not which files they are. */
static void look_at_socket(struct look *l, const char *table, int number)
{
    char path[96], text[1024];
    if (px_fmt(path, sizeof path, "%sinfo/%d", table, number) < 0 || px_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
        return;
    unsigned waiting = 0;
    const char *line = strstr(text, "scm_fds:");
    if (line && sscanf(line, "scm_fds: %u", &waiting) == 1 && waiting > 0)
        l->held->blind = true;
}

static void look_at_descriptor(struct look *l, const char *table, int number)
{
    char path[96];
    struct stat st;
    if (px_fmt(path, sizeof path, "%s/%d", table, number) < 0 || stat(path, &st) < 0)
        return;
    if (S_ISSOCK(st.st_mode))
        look_at_socket(l, table, number);
    look_at_file(l, path, &st);
}

static void look_at_table(struct look *l, int pid, int thread)
{
    char path[64];
    if (px_fmt(path, sizeof path, "/proc/%d/task/%d/fd", pid, thread) >= 0)
        each_number(l, path, look_at_descriptor);
}

/* ---- mappings ---- */

/* Whether a mapping with this device number may be of one of our file systems. Some file systems (btrfs) show one
 * device number here and another in stat: any of those may be. */
static bool may_be_ours(const struct look *l, unsigned major_number, unsigned minor_number)
{
    struct stat st;
    for (size_t i = 0; i < l->count; i++)
        if (fstat(l->fds[i], &st) < 0 || st.st_dev == makedev(major_number, minor_number) || (major(st.st_dev) == 0 && major_number == 0))
            return true;
    return false;
}

/* "FROM-TO PERMS OFFSET MAJOR:MINOR INODE PATH (deleted)". The mapped range does not give the size of the file.
 * Opening the file itself (/proc/PID/map_files) needs CAP_CHECKPOINT_RESTORE. */
static void look_at_mapping(struct look *l, int pid, const char *line)
{
    char path[96], range[40];
    unsigned major_number, minor_number;
    struct stat st;
    if (sscanf(line, "%39s %*s %*s %x:%x", range, &major_number, &minor_number) != 3 ||
        px_fmt(path, sizeof path, "/proc/%d/map_files/%s", pid, range) < 0)
        return;
    if (stat(path, &st) == 0)
        look_at_file(l, path, &st);
    else if (may_be_ours(l, major_number, minor_number))
        note_unseen(l, -errno);
}

/* A memfd and other shared memory have a line like a deleted file's. */
static bool is_file_without_name(const char *line)
{
    static const char mark[] = " (deleted)";
    const char *path = strchr(line, '/');
    size_t length = strlen(line);
    return path && length >= sizeof mark && px_equal(line + length - (sizeof mark - 1), mark) &&
           !px_starts_with(path, "/memfd:") && !px_starts_with(path, "/SYSV") && !px_starts_with(path, "/dev/zero");
}

static void look_at_mappings(struct look *l, int pid)
{
    char path[64];
    struct stat st;
    if (px_fmt(path, sizeof path, "/proc/%d/exe", pid) >= 0 && stat(path, &st) == 0)
        look_at_file(l, path, &st);
    if (px_fmt(path, sizeof path, "/proc/%d/maps", pid) < 0)
        return;
    ssize_t n = read_list(l, path);
    if (n < 0) {
        note_unseen(l, (int)n);
        return;
    }
    for (char *line = l->text; n > 0 && *line;) {
        char *end = line + strcspn(line, "\n");
        bool last = *end == '\0';
        *end = '\0';
        if (is_file_without_name(line))
            look_at_mapping(l, pid, line);
        line = last ? end : end + 1;
    }
}

/* ---- processes ---- */

static void add_process(struct look *l, int pid)
{
    if (l->processes < PROCESSES_MAX)
        l->process[l->processes++] = pid;
    else
        l->held->blind = true;
}

static void look_at_children(struct look *l, int pid, int thread)
{
    char path[64];
    if (px_fmt(path, sizeof path, "/proc/%d/task/%d/children", pid, thread) < 0)
        return;
    ssize_t n = read_list(l, path);
    if (n < 0)
        note_unseen(l, (int)n);
    for (const char *p = l->text; n > 0 && *p;) {
        char word[16] = "";
        size_t length = strcspn(p, " \n");
        uint64_t child;
        memcpy(word, p, length < sizeof word ? length : 0);
        if (px_parse_u64(word, INT32_MAX, &child) == 0)
            add_process(l, (int)child);
        p += length + strspn(p + length, " \n");
    }
}

/* A thread may have its own table of descriptors (clone without CLONE_FILES). */
static void look_at_thread(struct look *l, const char *path, int thread)
{
    int pid = l->pid;
    (void)path;
    bool own = thread == pid || px_sys(SYS_kcmp, pid, thread, TABLES, 0, 0) != 0;
    if (own && pid != l->process[0])            /* px-init has only its socket open, and may not be inspected */
        look_at_table(l, pid, thread);
    look_at_children(l, pid, thread);
}

void px_disk_held(const int *fds, size_t count, int init, struct px_disk_held *held)
{
    struct look l = {.fds = fds, .count = count, .held = held, .process = malloc(PROCESSES_MAX * sizeof *l.process)};
    if (!l.process) {
        held->blind = true;
        return;
    }
    add_process(&l, init);
    for (int i = 0; i < l.processes; i++) {     /* breadth first, so that a deep process tree needs no stack */
        char path[64];
        l.pid = l.process[i];
        if (px_fmt(path, sizeof path, "/proc/%d/task", l.pid) < 0)
            continue;
        each_number(&l, path, look_at_thread);
        if (i > 0)
            look_at_mappings(&l, l.pid);
    }
    free(l.process);
    free(l.seen);
    free(l.text);
}
