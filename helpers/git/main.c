/* px-git: looks at one directory and answers. It is started by transfer/worktree.c, which gives it a socket (3) and the
 * descriptors that transfer/git_wire.h names; nothing else of the machine is in its reach once it is confined. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "helpers/git/git.h"
#include "helpers/layer/layer.h"

enum { USAGE = 2, WINDOW = 16 << 20, MAPPED = 256 << 20 };

/* ---- the library ---- */

/* Before the confinement: what it opens at its start, it opens now. Settings of the user and the machine are nobody's
 * business here, and whose files they are was decided by who gave us the directory. */
static int begin(void)
{
    static const int levels[] = {GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_GLOBAL,
                                 GIT_CONFIG_LEVEL_PROGRAMDATA};
    /* They change where settings lie and which objects may be missing, not what a file is. */
    static const char *extensions[] = {"worktreeconfig", "partialclone", "preciousobjects"};
    int r = git_libgit2_init() < 0 ? -1 : 0;
    for (size_t i = 0; r == 0 && i < PX_COUNT_OF(levels); i++)
        r = git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
    r = r < 0 ? r : git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    r = r < 0 ? r : git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, extensions, PX_COUNT_OF(extensions));
    r = r < 0 ? r : git_libgit2_opts(GIT_OPT_SET_MWINDOW_SIZE, (size_t)WINDOW);
    return r < 0 ? r : git_libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, (size_t)MAPPED);
}

static int open_plain(struct look *l, struct px_err *e)
{
    l->repository = false;
    if (git_repository_new(&l->repo) < 0 || git_repository_set_workdir(l->repo, l->top, 0) < 0)
        return git_refused("look at a directory", e);
    return 0;
}

/* A directory that the repository around it ignores is a project of its own. */
static bool is_stranger(const struct look *l)
{
    char path[4096];
    int ignored = 0;
    if (!*l->sub || px_fmt(path, sizeof path, "%s/", l->sub) < 0 ||
        git_ignore_path_is_ignored(&ignored, l->repo, path) < 0 || !ignored)
        return false;
    bool tracked = git_index_find_prefix(NULL, l->index, path) == 0;
    git_error_clear();
    return !tracked;
}

static int open_repository(struct look *l, struct px_err *e)
{
    if (git_repository_open_ext(&l->repo, l->top, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) < 0)
        return git_refused("open the git repository around the project", e);
    if (git_repository_is_bare(l->repo))
        return px_fail(e, PX_E_BUILD, 0, "the git repository around the project says that it has no files");
    if (git_repository_index(&l->index, l->repo) < 0)
        return git_refused("read the git repository's index", e);
    return is_stranger(l) ? 1 : 0;
}

/* ---- answers ---- */

static void say(const struct px_git_message *m)
{
    long r;
    do
        r = send(GIT_SOCKET, m, sizeof *m, MSG_NOSIGNAL);
    while (r < 0 && errno == EINTR);
}

static int look_at(struct look *l, struct px_git_message *m, struct px_err *e)
{
    int r = l->repository ? open_repository(l, e) : open_plain(l, e);
    if (r > 0) {
        m->repository = 2;      /* ask again without it */
        return 0;
    }
    if (r < 0 || git_walk(l, e) < 0 || (l->repository && git_head(l, m->commit, e) < 0) ||
        (l->repository && l->status && git_dirty(l, e) < 0) || git_flush(l, e) < 0)
        return -1;
    m->repository = l->repository;
    return 0;
}

static int do_look(int argc, char **argv)
{
    static struct look l;
    struct px_git_message m = {0};
    if (argc != 4)
        return USAGE;
    l = (struct look){.top = argv[0], .sub = argv[1], .repository = px_equal(argv[2], "1"), .status = px_equal(argv[3], "1")};
    int r = begin() < 0 ? -ENOSYS : git_confine(fcntl(GIT_ELSEWHERE, F_GETFD) >= 0);
    if (r < 0)
        px_fail(&m.err, PX_E_PRIVS, r, "px-git cannot confine itself");
    else
        r = look_at(&l, &m, &m.err);
    m.kind = r < 0 ? PX_GIT_FAILED : PX_GIT_DONE;
    say(&m);
    return r < 0 ? 1 : 0;
}

static int do_try(int argc, char **argv)
{
    if (argc != 1 || begin() < 0)
        return USAGE;
    return git_confine(false) < 0 ? USAGE : try_act(argv[0], GIT_TOP);
}

int main(int argc, char **argv)
{
    if (argc > 1 && px_equal(argv[1], "look"))
        _exit(do_look(argc - 2, argv + 2));     /* nothing is left to be flushed or freed */
    if (argc > 1 && px_equal(argv[1], "try"))
        _exit(do_try(argc - 2, argv + 2));
    (void)fprintf(stderr, "px-git: a part of px, not for people\n");
    return USAGE;
}
