#include "run/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "host/tool.h"

enum { NOT_THIS = 1 };          /* the target is not of this kind: the next one is tried */

void px_run_program_done(struct px_program *program)
{
    for (size_t i = 0; i < program->count; i++)
        free(program->words[i]);
    *program = (struct px_program){0};
}

static int add(struct px_program *p, const char *word, struct px_err *e)
{
    char *copy = p->count < PX_PROGRAM_WORDS ? strdup(word) : NULL;
    if (!copy)
        return px_no_memory(e);
    p->words[p->count++] = copy;
    return 0;
}

int px_run_program_inside(const char *root, const char *path, char *out, size_t size)
{
    return px_path_within(path, root) ? px_fmt(out, size, PX_PROGRAM_APP "%s", path + strlen(root))
                                      : px_fmt(out, size, "%s", path);
}

static int add_python(const struct px_program_ask *ask, struct px_program *p, struct px_err *e)
{
    char path[PATH_MAX];
    if (px_fmt(path, sizeof path, "%s/bin/python", ask->env_name) < 0)
        return px_fail(e, PX_E_LIMIT, ENAMETOOLONG, "the path of the environment is too long");
    return add(p, path, e);
}

/* ---- what is not in this build ---- */

static int refuse_foreign(const char *target, struct px_err *e)
{
    static const char *const begins[] = {"gh:", "git+", "http://", "https://", "ssh://", "file://"};
    size_t n = strlen(target);
    bool bundle = n > 6 && strcmp(target + n - 6, ".pxapp") == 0, address = false;
    for (size_t i = 0; i < PX_COUNT_OF(begins); i++)
        address = address || px_starts_with(target, begins[i]);
    if (!bundle && !address)
        return NOT_THIS;
    px_fail(e, PX_E_NOT_BUILT, 0, "'%.200s' is %s, and running those is not part of this build", target,
            bundle ? "a bundle" : "an address");
    return px_fix(e, bundle ? "Run the project itself, or pack it with `px pack image`."
                            : "Clone it, and run `px sync` and `px run` in the clone.");
}

/* ---- a file of the project ---- */

/* Whether the path's directory lies in the project; the last part may be a link to anywhere. */
static bool in_project(const char *root, const char *path)
{
    char dir[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    return slash && px_fmt(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path) >= 0 &&
           realpath(dir, real) && px_path_within(real, root);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* By its whole path, of this machine or of the box. */
static int locate_path(const struct px_program_ask *ask, const char *target, char *ret_path, char *ret_word)
{
    bool of_box = ask->inside && px_path_within(target, PX_PROGRAM_APP);
    int r = of_box ? px_fmt(ret_path, PATH_MAX, "%s%s", ask->root, target + strlen(PX_PROGRAM_APP))
                   : px_fmt(ret_path, PATH_MAX, "%s", target);
    if (r < 0 || !is_file(ret_path) || !in_project(ask->root, ret_path))
        return NOT_THIS;
    r = ask->inside ? px_run_program_inside(ask->root, ret_path, ret_word, PATH_MAX)
                    : px_fmt(ret_word, PATH_MAX, "%s", target);
    return r < 0 ? NOT_THIS : 0;
}

/* Finds the file, first from the working directory, then from the root; *ret_word is the argument for the program. */
static int locate(const struct px_program_ask *ask, const char *target, char *ret_path, char *ret_word)
{
    const char *const from[] = {ask->dir, ask->root};
    if (*target == '/')
        return locate_path(ask, target, ret_path, ret_word);
    for (size_t i = 0; i < PX_COUNT_OF(from); i++) {
        if (px_fmt(ret_path, PATH_MAX, "%s/%s", from[i], target) < 0 || !is_file(ret_path) ||
            !in_project(ask->root, ret_path))
            continue;
        if (i == 0)
            return px_fmt(ret_word, PATH_MAX, "%s%s", strchr(target, '/') ? "" : "./", target) < 0 ? NOT_THIS : 0;
        const char *root = ask->inside ? PX_PROGRAM_APP : ask->root;
        return px_fmt(ret_word, PATH_MAX, "%s/%s", root, target) < 0 ? NOT_THIS : 0;
    }
    return NOT_THIS;
}

static bool is_python(const char *path)
{
    char start[128];
    size_t n = strlen(path);
    if (n > 3 && strcmp(path + n - 3, ".py") == 0)
        return true;
    px_auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = fd < 0 ? fd : px_read_full(fd, start, sizeof start - 1);
    if (got < 2 || access(path, X_OK) == 0)
        return false;
    start[got] = '\0';
    start[strcspn(start, "\n")] = '\0';
    return px_starts_with(start, "#!") && strstr(start, "python");
}

static int find_file(const struct px_program_ask *ask, const char *target, struct px_program *p, struct px_err *e)
{
    char path[PATH_MAX], word[PATH_MAX];
    if (locate(ask, target, path, word) != 0)
        return NOT_THIS;
    p->kind = "file";
    if (is_python(path))        /* as a user would write it: "app.py", not "./app.py" */
        return add_python(ask, p, e) < 0 ? -1
                                         : add(p, px_starts_with(word, "./") && *target != '.' ? word + 2 : word, e);
    if (access(path, X_OK) == 0)
        return add(p, word, e);
    px_fail(e, PX_E_EXEC, 0, "'%.200s' is neither a Python file nor executable", target);
    (void)px_why(e, "px run starts files that end in .py with the environment's Python, and others by themselves.");
    return px_fix(e, "Make it executable: chmod +x '%.200s'.", target);
}

/* ---- of the environment ---- */

/* "python", "python3", "python3.11", "py", "py3". Other minor versions are other interpreters. */
static int find_python(const struct px_program_ask *ask, const char *target, struct px_program *p, struct px_err *e)
{
    static const char *const names[] = {"python", "python3", "py", "py3"};
    uint64_t minor = 0;
    bool known = px_starts_with(target, "python3.") && px_parse_u64(target + 8, 999, &minor) == 0;
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        known = known || px_equal(target, names[i]);
    if (!known)
        return NOT_THIS;
    if (minor && minor != ask->minor) {
        px_fail(e, PX_E_NOT_FOUND, 0, "the project's environment has Python 3.%u, not %.32s", ask->minor, target);
        (void)px_why(e, "Which Python it has is decided by [tool.px.sandbox].base.");
        return px_fix(e, "Write `px run python`.");
    }
    p->kind = "python";
    return add_python(ask, p, e);
}

static int find_script(const struct px_program_ask *ask, const char *target, struct px_program *p, struct px_err *e)
{
    char path[PATH_MAX];
    if (strchr(target, '/') || px_fmt(path, sizeof path, "%s/bin/%s", ask->env, target) < 0 || access(path, F_OK) < 0)
        return NOT_THIS;
    if (px_fmt(path, sizeof path, "%s/bin/%s", ask->env_name, target) < 0)
        return px_fail(e, PX_E_LIMIT, ENAMETOOLONG, "the path of the environment is too long");
    p->kind = "script";
    return add(p, path, e);
}

/* ---- of the host, or of the box ---- */

static int not_found(const char *target, struct px_err *e)
{
    px_fail(e, PX_E_NOT_FOUND, 0, "there is no '%.200s' to run", target);
    (void)px_why(e, "It is no file of the project, no script of its packages, and no program of PATH.");
    return px_fix(e, "Name a file of the project (app.py), a script of one of its packages, or a program.\n"
                     "If a package should bring it, add that to the dependencies and run `px sync`.");
}

/* The box looks it up in its own PATH and reports if it is missing. */
static int find_program(const struct px_program_ask *ask, const char *target, struct px_program *p, struct px_err *e)
{
    char path[PATH_MAX];
    p->kind = "program";
    if (ask->inside)
        return *target == '/' || !strchr(target, '/') ? add(p, target, e) : not_found(target, e);
    if (!strchr(target, '/'))
        return px_tool_find(target, path, sizeof path) ? add(p, path, e) : not_found(target, e);
    if (!is_file(target))
        return not_found(target, e);
    return access(target, X_OK) == 0 ? add(p, target, e)
                                     : px_fail(e, PX_E_EXEC, 0, "'%.200s' is not executable", target);
}

/* ---- the whole ---- */

static int find(const struct px_program_ask *ask, const char *target, struct px_program *p, struct px_err *e)
{
    static int (*const kinds[])(const struct px_program_ask *, const char *, struct px_program *,
                                struct px_err *) = {find_file, find_python, find_script, find_program};
    int r = *target ? refuse_foreign(target, e) : not_found(target, e);
    for (size_t i = 0; r == NOT_THIS && i < PX_COUNT_OF(kinds); i++)
        r = kinds[i](ask, target, p, e);
    return r;
}

static int give(int r, struct px_program *found, struct px_program *ret_program)
{
    if (r != 0) {
        px_run_program_done(found);
        return -1;
    }
    *ret_program = *found;
    return 0;
}

int px_run_program_find(const struct px_program_ask *ask, const char *target, struct px_program *ret_program,
                    struct px_err *e)
{
    struct px_program p = {0};
    return give(find(ask, target, &p, e), &p, ret_program);
}

/* The project's own test runner; that of the caller's member before the root's. */
static int find_runner(const struct px_program_ask *ask, struct px_program *p, struct px_err *e)
{
    static const char *const names[] = {"tests/runtests.py", "runtests.py"};
    for (int in_root = !ask->member; in_root < 2; in_root++)
        for (size_t i = 0; i < PX_COUNT_OF(names); i++) {
            char path[PATH_MAX], word[PATH_MAX];
            if (px_fmt(path, sizeof path, "%s/%s%s%s", ask->root, in_root ? "" : ask->member, in_root ? "" : "/",
                       names[i]) < 0 ||
                !is_file(path) ||
                (ask->inside ? px_run_program_inside(ask->root, path, word, sizeof word)
                             : px_fmt(word, sizeof word, "%s", path)) < 0)
                continue;
            p->kind = "tests";
            return add_python(ask, p, e) < 0 ? -1 : add(p, word, e);
        }
    return NOT_THIS;
}

static int find_pytest(const struct px_program_ask *ask, struct px_program *p, struct px_err *e)
{
    char path[PATH_MAX];
    if (px_fmt(path, sizeof path, "%s/bin/pytest", ask->env) < 0 || access(path, F_OK) < 0) {
        px_fail(e, PX_E_TESTS, 0, "there is nothing to run the project's tests with");
        return px_detail(e, "reason", "no_tests");
    }
    p->kind = "pytest";         /* by -m, which adds the working directory to sys.path */
    return add_python(ask, p, e) < 0 || add(p, "-m", e) < 0 ? -1 : add(p, "pytest", e);
}

int px_run_program_tests(const struct px_program_ask *ask, struct px_program *ret_program, struct px_err *e)
{
    struct px_program p = {0};
    int r = find_runner(ask, &p, e);
    return give(r == NOT_THIS ? find_pytest(ask, &p, e) : r, &p, ret_program);
}
