/* swapper.c - a neighbour that exchanges names with links which lead elsewhere, for tests that race with it.
 *
 *     swapper COUNT AWAY TARGET PATTERN...     every name that a pattern fits, relative to the present directory, becomes a link and then
 *                                              what it was: a directory a link to TARGET or to TARGET/closed, a file one to TARGET/file. The
 *                                              links lie in AWAY, which is of the same mount.
 *     swapper COUNT A B                        exchanges two names.
 *
 * It ends when it has done COUNT swaps and its standard input has ended, and then says how many there were. The directory that holds a
 * name is opened once, and no link is followed on the way: it is the same one if it is moved, as for a box that has it as a bind, and
 * nothing outside is ever swapped. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLACES = 256, ROUND = 16, YIELD = 511, EXCHANGE = 2 /* RENAME_EXCHANGE */, NOREPLACE = 1 /* RENAME_NOREPLACE */ };

struct place {
    int dir;                    /* that holds the name */
    ino_t of;                   /* its number */
    char name[256];
    char other[32];             /* in AWAY */
};

struct swapper {
    struct place places[PLACES];
    unsigned count, turn;
    char **patterns;
    const char *target;
    int away;
    unsigned made, parked;
    unsigned long swaps, least;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static bool exchange(struct swapper *s, int dir, const char *name, int other_dir, const char *other)
{
    if (syscall(SYS_renameat2, dir, name, other_dir, other, EXCHANGE) < 0) {
        if (errno == EINVAL)
            fail("this file system cannot exchange two names");
        return false;
    }
    if (++s->swaps % YIELD == 0)
        (void)sched_yield();    /* who shares the core comes to its turn, with a link in place or without */
    return true;
}

/* ---- what there is to swap ---- */

static bool is_link(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static bool has(const struct swapper *s, ino_t of, const char *name)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->places[i].of == of && strcmp(s->places[i].name, name) == 0)
            return true;
    return false;
}

static void add(struct swapper *s, int dir, const char *name)
{
    struct stat st, of;
    char leads_to[4096];
    if (fstat(dir, &of) < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode) ||
        s->count == PLACES || has(s, of.st_ino, name))
        return;
    struct place *p = &s->places[s->count++];
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    (void)snprintf(p->other, sizeof p->other, "%u", s->made++);
    (void)snprintf(leads_to, sizeof leads_to, "%s%s", s->target, !S_ISDIR(st.st_mode) ? "/file" : s->made % 2 ? "" : "/closed");
    p->dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    p->of = of.st_ino;
    if (p->dir < 0 || symlinkat(leads_to, s->away, p->other) < 0)
        fail(p->other);
}

/* Takes the descriptor. */
static void find(struct swapper *s, int dir, const char *pattern)
{
    char part[256];
    const char *rest = strchr(pattern, '/');
    DIR *list = dir < 0 ? NULL : fdopendir(dir);
    (void)snprintf(part, sizeof part, "%.*s", rest ? (int)(rest - pattern) : (int)strlen(pattern), pattern);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (fnmatch(part, entry->d_name, FNM_PERIOD) != 0)
            continue;
        if (rest)
            find(s, openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rest + 1);
        else
            add(s, dirfd(list), entry->d_name);
    }
    if (list)
        (void)closedir(list);
    else if (dir >= 0)
        (void)close(dir);
}

static void find_all(struct swapper *s)
{
    for (char **pattern = s->patterns; *pattern; pattern++)
        find(s, open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), *pattern);
}

/* ---- swapping ---- */

static void forget(struct swapper *s, struct place *p)
{
    char parked[32];
    (void)snprintf(parked, sizeof parked, "old-%u", s->parked++);
    if (unlinkat(s->away, p->other, 0) < 0)     /* a directory that has no place any more */
        (void)renameat(s->away, p->other, s->away, parked);
    (void)close(p->dir);
    *p = s->places[--s->count];
}

/* A link, and back. Where the link was removed meanwhile, what it stood for comes back to its place. */
static void swap(struct swapper *s, struct place *p)
{
    if (exchange(s, p->dir, p->name, s->away, p->other)) {
        if (exchange(s, p->dir, p->name, s->away, p->other) && is_link(s->away, p->other))
            return;
        (void)syscall(SYS_renameat2, s->away, p->other, p->dir, p->name, NOREPLACE);
    }
    forget(s, p);
}

static bool is_over(const struct swapper *s)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    return s->swaps >= s->least && poll(&in, 1, 0) > 0;
}

static void swap_all(struct swapper *s)
{
    while (!is_over(s)) {
        find_all(s);
        if (!s->count)
            (void)sched_yield();
        for (int i = 0; i < ROUND && s->count; i++)
            swap(s, &s->places[s->turn++ % s->count]);
    }
}

static void swap_two(struct swapper *s, const char *first, const char *second)
{
    while (!is_over(s))
        for (int i = 0; i < ROUND; i++)
            (void)exchange(s, AT_FDCWD, first, AT_FDCWD, second);
}

int main(int argc, char **argv)
{
    static struct swapper s = {.away = -1};
    if (argc < 4)
        return 99;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    s.least = strtoul(argv[1], NULL, 10);
    if (argc == 4) {
        swap_two(&s, argv[2], argv[3]);
    } else {
        s.away = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s.away < 0)
            fail(argv[2]);
        s.target = argv[3];
        s.patterns = argv + 4;
        swap_all(&s);
    }
    (void)printf("%lu\n", s.swaps);
    return 0;
}
