#include "transfer/worktree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "helper/helper.h"

enum { DEADLINE_MSEC = 600000, PATH_SIZE = 4096, PARTS_MAX = 128 };

void px_worktree_done(struct px_worktree *worktree)
{
    free(worktree->files.items);
    free(worktree->dirty.items);
    free(worktree->specials.items);
    free(worktree->text);
    *worktree = (struct px_worktree){0};
}

/* ---- what it wrote ---- */

static int not_one(struct px_err *e)
{
    return px_fail(e, PX_E_INTERNAL, 0, "px-git gave an answer that is not one");
}

/* "a/b": no empty part, no "." and no "..". */
static bool is_path(const char *text)
{
    size_t parts = 0, n;
    if (!*text || strlen(text) >= PATH_SIZE)
        return false;
    for (const char *at = text;; at += n + 1) {
        n = strcspn(at, "/");
        if (n == 0 || n > 255 || ++parts > PARTS_MAX || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        if (at[n] == '\0')
            return true;
    }
}

static bool is_line(const char *text)
{
    return strlen(text) > 3 && strchr(" AMDRTU?", text[0]) && strchr(" AMDRTU?", text[1]) && text[2] == ' ';
}

static struct px_worktree_paths *list_for(struct px_worktree *w, char letter)
{
    return letter == PX_GIT_FILE      ? &w->files
           : letter == PX_GIT_DIRTY   ? &w->dirty
           : letter == PX_GIT_SPECIAL ? &w->specials
                                      : NULL;
}

/* Once to count, once to keep. */
static int each_record(struct px_worktree *w, bool keep, struct px_err *e)
{
    for (size_t at = 0, n; at < w->text_size; at += n + 1) {
        const char *record = w->text + at;
        struct px_worktree_paths *list = list_for(w, *record);
        n = strlen(record);
        if (!list || !(list == &w->dirty ? is_line(record + 1) : is_path(record + 1)))
            return not_one(e);
        if (keep)
            list->items[list->count] = record + 1;
        list->count++;
    }
    return 0;
}

static int make_room(struct px_worktree_paths *list)
{
    list->items = calloc(list->count + 1, sizeof *list->items);
    list->count = 0;
    return list->items ? 0 : -ENOMEM;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);    /* by bytes, in any locale */
}

static int check_order(const struct px_worktree_paths *files, struct px_err *e)
{
    for (size_t i = 1; i < files->count; i++)
        if (px_equal(files->items[i - 1], files->items[i]))
            return not_one(e);
    return 0;
}

static int sort_records(struct px_worktree *w, struct px_err *e)
{
    if (each_record(w, false, e) < 0)
        return -1;
    if (make_room(&w->files) < 0 || make_room(&w->dirty) < 0 || make_room(&w->specials) < 0)
        return px_no_memory(e);
    (void)each_record(w, true, e);
    qsort(w->files.items, w->files.count, sizeof *w->files.items, compare);
    qsort(w->specials.items, w->specials.count, sizeof *w->specials.items, compare);
    return check_order(&w->files, e);
}

int px_worktree_read(char *text, size_t size, struct px_worktree *ret_worktree, struct px_err *e)
{
    struct px_worktree w = {0};
    w.text = text;
    w.text_size = size;
    int r = size > 0 && text[size - 1] != '\0' ? not_one(e) : sort_records(&w, e);
    if (r < 0)
        px_worktree_done(&w);
    else
        *ret_worktree = w;
    return r;
}

static bool is_within(const char *path, const char *place)
{
    size_t n = strlen(place);
    return strncmp(path, place, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* before: what a line has before its path. */
static void drop(struct px_worktree_paths *list, const char *place, const char *before)
{
    size_t kept = 0, skip = strlen(before);
    for (size_t i = 0; i < list->count; i++)
        if (!px_starts_with(list->items[i], before) || !is_within(list->items[i] + skip, place))
            list->items[kept++] = list->items[i];
    list->count = kept;
}

void px_worktree_leave_out(struct px_worktree *worktree, const char *path)
{
    drop(&worktree->dirty, path, "?? ");
    drop(&worktree->files, path, "");
}

int px_worktree_list(const struct px_worktree *worktree)
{
    px_auto_buf struct px_buf list = PX_BUF(PX_GIT_BYTES_MAX);
    for (size_t i = 0; i < worktree->files.count; i++)
        px_buf_add(&list, worktree->files.items[i], strlen(worktree->files.items[i]) + 1);
    return list.err < 0 ? list.err : px_fd_memory("px-files", list.data, list.len, PX_MEMORY_SEALED);
}

bool px_worktree_has(const struct px_worktree *worktree, const char *path)
{
    return worktree->files.count > 0 &&
           bsearch(&path, worktree->files.items, worktree->files.count, sizeof path, compare) != NULL;
}

/* ---- asking it ---- */

/* Cleans the helper's strings: NUL-terminated, without control bytes. */
static void clean(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (char *p = text; *p; p++)
        if (((unsigned char)*p < 0x20 && *p != '\n') || *p == 0x7f)
            *p = '?';
}

static int failed(struct px_git_message *m, struct px_err *e)
{
    if (!px_err_find(m->err.code))
        return px_fail(e, PX_E_INTERNAL, 0, "px-git failed and did not say why");
    clean(m->err.what, sizeof m->err.what);
    clean(m->err.why, sizeof m->err.why);
    clean(m->err.fix, sizeof m->err.fix);
    *e = m->err;
    e->details[0] = '\0';
    return m->err.code == PX_E_BUILD ? px_detail(e, "reason", "git_unreadable") : -1;
}

static int gone(struct px_helper *h, long n, struct px_err *e)
{
    int status = px_helper_done(h);
    px_fail(e, PX_E_BUILD, 0, n == -ETIMEDOUT ? "px-git does not come to an end" : "px-git ended without an answer, with status %d",
            status);
    (void)px_detail(e, "reason", "git_unreadable");
    return px_why(e, "Something in the project's repository or among its patterns is more than it can read, or it was killed, or a library "
                     "that it needs is not installed.");
}

static int listen_to(struct px_helper *h, struct px_git_message *m, struct px_err *e)
{
    long n;
    do
        n = px_helper_receive(h, m, sizeof *m, NULL, DEADLINE_MSEC);
    while (n == -EINTR || n == -EAGAIN);
    if (n != (long)sizeof *m)
        return gone(h, n, e);
    if (m->kind != PX_GIT_DONE)
        return failed(m, e);
    m->commit[sizeof m->commit - 1] = '\0';
    return strspn(m->commit, "0123456789abcdef") == strlen(m->commit) ? 0 : not_one(e);
}

static int read_list(int fd, const struct px_git_message *m, struct px_worktree *ret_worktree, struct px_err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size > PX_GIT_BYTES_MAX)
        return not_one(e);
    char *text = malloc((size_t)st.st_size + 1);
    ssize_t n = text ? pread(fd, text, (size_t)st.st_size, 0) : -1;
    if (n != st.st_size) {
        free(text);
        return px_no_memory(e);
    }
    if (px_worktree_read(text, (size_t)n, ret_worktree, e) < 0)
        return -1;
    ret_worktree->repository = m->repository == 1;
    memcpy(ret_worktree->commit, m->commit, sizeof m->commit);
    return 0;
}

/* 1: the repository ignores this directory. */
static int ask(const struct px_git_place *place, bool status, struct px_worktree *ret_worktree, struct px_err *e)
{
    const char *const args[] = {"look", place->top, place->sub, place->repository ? "1" : "0", status ? "1" : "0", NULL};
    struct px_git_message m;
    struct px_helper h;
    px_auto_fd int top = open(place->top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    px_auto_fd int elsewhere = *place->elsewhere ? open(place->elsewhere, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    px_auto_fd int out = memfd_create("px-git", MFD_CLOEXEC);
    if (top < 0 || out < 0 || (*place->elsewhere && elsewhere < 0))
        return px_fail(e, PX_E_IO, errno, "cannot open '%.200s'", place->top);
    const int fds[] = {top, out, elsewhere};
    if (px_helper_start("px-git", args, fds, elsewhere >= 0 ? 3 : 2, &h, e) < 0)
        return -1;
    int r = listen_to(&h, &m, e);
    (void)px_helper_done(&h);
    if (r < 0)
        return -1;
    return m.repository == 2 ? 1 : read_list(out, &m, ret_worktree, e);
}

int px_worktree_look(const char *dir, bool status, struct px_worktree *ret_worktree, struct px_err *e)
{
    struct px_git_place place;
    if (px_worktree_git_find(dir, &place, e) < 0)
        return -1;
    int r = ask(&place, status, ret_worktree, e);
    if (r <= 0)
        return r;
    struct px_git_place alone = {.repository = false};
    if (px_fmt(alone.top, sizeof alone.top, "%s", dir) < 0)
        return px_fail(e, PX_E_VALUE, ENAMETOOLONG, "'%.100s...' is too long for a path", dir);
    r = ask(&alone, false, ret_worktree, e);
    return r > 0 ? not_one(e) : r;
}
