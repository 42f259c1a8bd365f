/* The Python that a project's lock and its environment on this machine are for. The manifest's range selects it, not
 * the sandbox's base: changing the base changes only the sandbox. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "env/base_python.h"
#include "project/snapshot.h"

#define ELSEWHERE "host"        /* for a base that px does not build */

/* ---- interpreters of this machine ---- */

struct search {
    const struct px_project *p;
    unsigned minor;
    const char *base;
    struct px_base_python *found;
};

/* Owned by root or the caller, and not writable by others. */
static bool is_trusted(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid()) &&
           !(st.st_mode & S_IWOTH);
}

/* A usable interpreter of that minor version. A file in the project itself is not accepted: a repository is
 * untrusted. */
static bool take(const struct search *s, const char *path)
{
    char real[PATH_MAX];
    if (access(path, X_OK) < 0 || !realpath(path, real) || px_path_within(real, s->p->site.root) || !is_trusted(real))
        return false;
    px_auto_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root >= 0 && px_env_base_python_at(root, s->base, real, s->minor, s->found) == 0 &&
           !px_locate_misses(&s->p->site, s->found->version);
}

static bool take_in(const struct search *s, const char *dir, size_t length)
{
    char path[PATH_MAX];
    return *dir == '/' && px_fmt(path, sizeof path, "%.*s/python3.%u", (int)length, dir, s->minor) >= 0 &&
           take(s, path);
}

static bool take_on_path(const struct search *s, const char *list)
{
    for (; list && *list; list += *list == ':') {
        size_t n = strcspn(list, ":");
        if (take_in(s, list, n))
            return true;
        list += n;
    }
    return false;
}

/* cpython-3.13.1-linux-x86_64-gnu; not 3.13.1+freethreaded, which has another ABI. */
static int is_managed(const struct dirent *entry)
{
    return px_starts_with(entry->d_name, "cpython-3.") && !strchr(entry->d_name, '+');
}

static bool take_below(const struct search *s, const char *dir)
{
    char mark[32], bin[PATH_MAX];
    struct dirent **list = NULL;
    bool found = false;
    int n = *dir == '/' ? scandir(dir, &list, is_managed, versionsort) : -1;
    (void)px_fmt(mark, sizeof mark, "cpython-3.%u.", s->minor);
    while (n-- > 0) {           /* the newest first */
        if (!found && px_starts_with(list[n]->d_name, mark) &&
            px_fmt(bin, sizeof bin, "%s/%s/bin", dir, list[n]->d_name) >= 0)
            found = take_in(s, bin, strlen(bin));
        free(list[n]);
    }
    free(list);
    return found;
}

/* The directory of the interpreters that uv installed. */
static bool take_of_uv(const struct search *s)
{
    static const char *const rows[][2] = {
        {"UV_PYTHON_INSTALL_DIR", "%s"}, {"XDG_DATA_HOME", "%s/uv/python"}, {"HOME", "%s/.local/share/uv/python"}};
    char dir[PATH_MAX];
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        const char *value = getenv(rows[i][0]);
        if (value && *value && px_fmt(dir, sizeof dir, rows[i][1], value) >= 0 && take_below(s, dir))
            return true;
    }
    return false;
}

static bool find(const struct search *s)
{
    return take_on_path(s, getenv("PATH")) || take_on_path(s, "/usr/local/bin:/usr/bin") || take_of_uv(s);
}

/* ---- which one ---- */

/* The first of the bases that px builds whose Python fits: the same on every machine. */
static const struct px_python *fitting_row(const struct px_project *p)
{
    const struct px_python *row;
    for (size_t i = 0; (row = px_env_python_at(i)); i++)
        if (!row->musl && !px_locate_misses(&p->site, row->version))
            return row;
    return NULL;
}

/* This Python on this machine; if there is none, the base's, for the sandbox. */
static const struct px_python *row_here(const struct px_project *p, const struct px_python *row,
                                        struct px_base_python *f)
{
    const struct search s = {.p = p, .minor = row->minor, .base = row->base, .found = f};
    return access(row->program, X_OK) == 0 || !find(&s) ? row : &f->python;
}

static const struct px_python *lowest_here(const struct px_project *p, struct px_base_python *f)
{
    for (unsigned minor = PX_PYTHON_MINOR_MIN; minor <= PX_PYTHON_MINOR_MAX; minor++) {
        const struct search s = {.p = p, .minor = minor, .base = ELSEWHERE, .found = f};
        if (find(&s))
            return &f->python;
    }
    return NULL;
}

const struct px_python *px_project_own(struct px_project *p)
{
    if (p->own)
        return p->own;
    const struct px_python *row = fitting_row(p);
    if (!p->here && !(p->here = calloc(1, sizeof *p->here)))
        return row ? row : px_env_python_at(0);
    p->own = row ? row_here(p, row, p->here) : lowest_here(p, p->here);
    if (p->own)
        return p->own;
    px_project_base_look(p);    /* nothing else fits: the base's, so that its sandbox has one */
    const struct px_python *base = px_project_python(p);
    return p->own = base ? base : px_env_python_at(0);
}

int px_project_own_need(struct px_project *p, bool plan, struct px_err *e)
{
    if (!px_locate_misses(&p->site, px_project_own(p)->version))
        return 0;
    p->own = NULL;
    return px_project_base_bring(p, plan, e);
}

unsigned px_project_other(const struct px_project *p)
{
    px_auto_free struct px_base_python *found = calloc(1, sizeof *found);
    return found && lowest_here(p, found) ? found->python.minor : 0;
}

bool px_python_same(const struct px_python *a, const struct px_python *b)
{
    return px_equal(a->program, b->program) && a->minor == b->minor && a->musl == b->musl &&
           a->libc_major == b->libc_major && a->libc_minor == b->libc_minor && px_equal(a->machine, b->machine);
}

bool px_project_shares(struct px_project *p)
{
    const struct px_python *base = px_project_python(p);
    return base && px_python_same(px_project_own(p), base);
}
