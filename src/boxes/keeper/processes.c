/* The processes of a box: the tree below its pid 1, read from the host's /proc. The box controls the names and
 * command lines. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "kernel/pidfd.h"
#include "named/named_internal.h"

enum { TASKS_MAX = 4096, LINE_MAX_BYTES = 4096 };

struct list {
    struct px_keeper_process *items;
    size_t count, room;
};

static void add(struct list *list, int host_pid)
{
    if (list->count >= PX_KEEP_PROCESSES_MAX)
        return;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct px_keeper_process *more = realloc(list->items, room * sizeof *more);
        if (!more)
            return;
        list->items = more;
        list->room = room;
    }
    list->items[list->count++] = (struct px_keeper_process){.host_pid = host_pid};
}

static ssize_t read_proc(int pid, const char *file, char *out, size_t size)
{
    char path[96];
    if (px_fmt(path, sizeof path, "/proc/%d/%s", pid, file) < 0)
        return -EINVAL;
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? fd : px_read_full(fd, out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    return n;
}

/* ---- the tree ---- */

static void add_children(struct list *list, int pid, const char *task)
{
    enum { ROOM = 64 << 10 };
    char file[64];
    px_auto_free char *text = malloc(ROOM);
    if (!text || px_fmt(file, sizeof file, "task/%s/children", task) < 0 || read_proc(pid, file, text, ROOM) <= 0)
        return;
    for (char *p = text; *p;) {
        size_t n = strcspn(p, " ");
        uint64_t child;
        if (p[n] != ' ')
            return;             /* truncated by the size of our buffer */
        p[n] = '\0';
        if (px_parse_u64(p, 1 << 30, &child) == 0)
            add(list, (int)child);
        p += n + 1;
    }
}

static void add_below(struct list *list, int pid)
{
    char path[64];
    if (px_fmt(path, sizeof path, "/proc/%d/task", pid) < 0)
        return;
    DIR *dir = opendir(path);
    struct dirent *entry;
    for (int seen = 0; dir && seen < TASKS_MAX && (entry = readdir(dir)); seen++)
        if (entry->d_name[0] != '.')
            add_children(list, pid, entry->d_name);
    if (dir)
        (void)closedir(dir);
}

/* ---- one process ---- */

/* The last word of the line of `status` that begins with key, as a number. */
static int last_number(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    char digits[16] = "";
    uint64_t value;
    if (!line)
        return 0;
    line += strlen(key);
    size_t end = strcspn(line, "\n"), from = end;
    while (from > 0 && line[from - 1] >= '0' && line[from - 1] <= '9')
        from--;
    if (from == end || end - from >= sizeof digits)
        return 0;
    memcpy(digits, line + from, end - from);
    return px_parse_u64(digits, 1 << 30, &value) < 0 ? 0 : (int)value;
}

static uint64_t stat_field(const char *text, int field)
{
    const char *p = strrchr(text, ')');         /* the name may contain anything, but nothing after it can */
    char digits[24] = "";
    uint64_t value;
    for (int at = 2; p && *p && at < field; at++)
        p = strchr(p + 1, ' ');
    if (!p || *p != ' ')
        return 0;
    size_t n = strspn(p + 1, "0123456789");
    if (n == 0 || n >= sizeof digits)
        return 0;
    memcpy(digits, p + 1, n);
    return px_parse_u64(digits, UINT64_MAX, &value) < 0 ? 0 : value;
}

static void look_at(struct px_keeper_process *p)
{
    enum { START_TIME = 22, RSS = 24, PARENT = 4 };
    char text[8192];
    if (read_proc(p->host_pid, "status", text, sizeof text) > 0)
        p->pid = last_number(text, "\nNSpid:");
    if (read_proc(p->host_pid, "stat", text, sizeof text) > 0) {
        p->started_ticks = stat_field(text, START_TIME);
        p->rss_bytes = stat_field(text, RSS) * (uint64_t)sysconf(_SC_PAGESIZE);
        p->parent = (int)stat_field(text, PARENT);
    }
}

/* Turns parents into pids of the box; a child of pid 1 is an orphan or a command. */
static void number_parents(struct list *list, int init_pid)
{
    for (size_t i = 0; i < list->count; i++) {
        int outside = list->items[i].parent, inside = outside == init_pid ? 1 : 0;
        for (size_t k = 0; k < i && !inside; k++)
            if (list->items[k].host_pid == outside)
                inside = list->items[k].pid;
        list->items[i].parent = inside;
    }
}

size_t px_keeper_processes(int init_pid, struct px_keeper_process **ret_list)
{
    struct list list = {0};
    add_below(&list, init_pid);
    for (size_t i = 0; i < list.count; i++)
        add_below(&list, list.items[i].host_pid);
    size_t kept = 0;
    for (size_t i = 0; i < list.count; i++) {
        look_at(&list.items[i]);
        if (list.items[i].pid > 1)      /* else it has ended already */
            list.items[kept++] = list.items[i];
    }
    list.count = kept;
    number_parents(&list, init_pid);
    *ret_list = list.items;
    return list.count;
}

uint64_t px_keeper_age_msec(const struct px_keeper_process *p)
{
    uint64_t then = p->started_ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK), now = px_now_nsec() / 1000000;
    return now > then ? now - then : 0;
}

size_t px_keeper_command_line(int host_pid, char *out, size_t size)
{
    ssize_t n = read_proc(host_pid, "cmdline", out, size);
    if (n == 0)                 /* a zombie, or one that has overwritten it: its name is used */
        n = read_proc(host_pid, "comm", out, size);
    for (ssize_t i = 0; i < n; i++)
        out[i] = out[i] == '\0' || out[i] == '\n' ? ' ' : out[i];
    while (n > 0 && out[n - 1] == ' ')
        n--;
    return n > 0 ? (size_t)n : 0;
}

void px_keeper_print_processes(const struct px_keeper_process *list, size_t count, struct px_json *j)
{
    px_json_array(j, "processes");
    for (size_t i = 0; i < count; i++) {
        char line[LINE_MAX_BYTES];
        size_t n = px_keeper_command_line(list[i].host_pid, line, sizeof line);
        px_json_object(j, NULL);
        px_json_int(j, "pid", list[i].pid);
        px_json_int(j, "parent", list[i].parent);
        px_json_int(j, "host_pid", list[i].host_pid);
        px_json_decimal(j, "age_s", px_keeper_age_msec(&list[i]), 3);
        px_json_uint(j, "rss_bytes", list[i].rss_bytes);
        px_json_bytes(j, "command", line, n);
        px_json_end(j);
    }
    px_json_end(j);
}

/* ---- signals ---- */

/* The pidfd is opened first and the number in the box read after it, so both are of one process. */
static bool signal_one(const struct px_keeper_process *p, int init_pidfd, int signal)
{
    char text[8192];
    px_auto_fd int fd = px_pidfd_open(p->host_pid);
    struct pollfd init = {.fd = init_pidfd, .events = POLLIN};
    if (fd < 0 || read_proc(p->host_pid, "status", text, sizeof text) <= 0 || last_number(text, "\nNSpid:") != p->pid ||
        px_sys(SYS_poll, &init, 1, 0) != 0)
        return false;
    return px_pidfd_signal(fd, signal) == 0;
}

int px_keeper_signal_inside(int init_pid, int init_pidfd, int pid, int signal)
{
    px_auto_free struct px_keeper_process *list = NULL;
    size_t count = px_keeper_processes(init_pid, &list);
    int got = 0;
    for (size_t i = 0; i < count; i++)
        if (pid == 0 || list[i].pid == pid)
            got += signal_one(&list[i], init_pidfd, signal);
    return got;
}
