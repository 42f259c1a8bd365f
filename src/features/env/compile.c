/* The byte code of an environment's packages, as it lies in a sandbox and an image: made once, by the base's own
 * Python, in a box without a network that can change nothing but its overlay. What px takes from there are files by
 * the names of the packages' own modules. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/px.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "env/compile_script.inc"
#include "env/part.h"
#include "kernel/copy.h"
#include "pep/wheel.h"
#include "start/buildbox.h"

/* Before 3.11 the order of a set of constants hangs on addresses, and so does the file. */
enum { FIRST_MINOR = 11, FILE_MAX = 64 << 20 };

#define OUT "/px-compiled"
#define LEFT "changes/upper" OUT

struct compiling {
    struct px_sandbox *s;
    const struct px_env *env;
    const struct px_oid *base;
    int part;                   /* what is at /px */
    int scratch;
    struct px_err *e;
};

/* ---- in the box ---- */

static int run_box(struct compiling *c, struct px_build_box *box)
{
    char script[sizeof compile_script + 1] = {0}, root[PATH_MAX], changes[PATH_MAX], packages[PATH_MAX];
    memcpy(script, compile_script, sizeof compile_script);
    const char *const argv[] = {c->env->runtime->program, "-s", "-S", "-W", "ignore", "-c", script, PX_INSIDE_PACKAGES,
                                OUT, NULL};
    if (px_tree_path(c->s->store, c->base, root, sizeof root, c->e) < 0 ||
        px_build_path(c->scratch, "changes", changes, sizeof changes, c->e) < 0 ||
        px_build_path(c->part, "store/pkg-builds", packages, sizeof packages, c->e) < 0)
        return -1;
    if (px_build_box_setup(box, "compiling the packages", root, changes, c->e) < 0 ||
        px_build_box_show(box, packages, PX_INSIDE_PACKAGES, false, c->e) < 0 ||
        px_build_box_env(box, "PYTHONHASHSEED", "0", c->e) < 0 ||
        px_build_box_env(box, "LC_ALL", "C.UTF-8", c->e) < 0 ||
        px_policy_set(box->policy, "file-size", "64m", c->e) < 0 || px_policy_set(box->policy, "disk", "8g", c->e) < 0)
        return -1;
    return px_build_box_run(box, argv, c->e);
}

/* ---- what it left ---- */

/* "a/b.py" -> "a/__pycache__/b.cpython-311.pyc"; false: no module. */
static bool name_compiled(const struct compiling *c, const char *module, char *dir, char *out, size_t size)
{
    const char *slash = strrchr(module, '/'), *name = slash ? slash + 1 : module;
    size_t n = strlen(name);
    if (n < 4 || !px_equal(name + n - 3, ".py"))
        return false;
    return px_fmt(dir, size, "%.*s__pycache__", (int)(name - module), module) >= 0 &&
           px_fmt(out, size, "%s/%.*s.cpython-3%u.pyc", dir, (int)(n - 3), name, c->env->runtime->minor) >= 0;
}

/* The box made it: a plain file or nothing. */
static int open_left(const struct compiling *c, const char *tree, const char *module)
{
    char path[PX_WHEEL_PATH_MAX + 128];
    struct stat st;
    if (px_fmt(path, sizeof path, LEFT "/%s/%sc", tree, module) < 0)
        return -ENOENT;
    px_auto_fd int fd = px_open_beneath(c->scratch, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd == -ELOOP ? -ENOENT : fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) && st.st_size <= FILE_MAX ? px_fd_take(&fd) : -ENOENT;
}

/* One that came with the package was made for the time of a file that nobody has. */
static int take_file(const struct compiling *c, int to, const char *tree, const char *module)
{
    char dir[PX_WHEEL_PATH_MAX], path[PX_WHEEL_PATH_MAX];
    if (!name_compiled(c, module, dir, path, sizeof path))
        return 0;
    px_auto_fd int from = open_left(c, tree, module);
    if (from < 0)
        return from == -ENOENT ? 0 : from;
    int r = px_paths_make(to, dir);
    if (r < 0)
        return r;
    (void)px_sys(SYS_unlinkat, to, path, 0);
    px_auto_fd int target = px_open_beneath(to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    r = target < 0 ? target : px_copy_file(from, target);
    return r < 0 ? r : fchmod(target, 0644) < 0 ? -errno : 0;
}

static int take_package(const struct compiling *c, const struct px_env_package *p)
{
    struct px_paths files = {0};
    char path[128];
    (void)px_fmt(path, sizeof path, "store/pkg-builds/%s", p->tree.hex);
    px_auto_fd int to = px_open_beneath(c->part, path, O_RDONLY | O_DIRECTORY, 0);
    int r = to < 0 ? to : px_paths_list(to, ".", &files);
    for (size_t i = 0; r == 0 && i < files.count; i++)
        if (px_starts_with(files.items[i], "site-packages/"))
            r = take_file(c, to, p->tree.hex, files.items[i]);
    px_paths_done(&files);
    return r < 0 ? px_fail(c->e, PX_E_STORE_WRITE, r, "cannot keep the byte code of %s", p->name) : 0;
}

/* ---- the whole ---- */

static int compile_and_take(struct compiling *c)
{
    struct px_build_box box = {.out_fd = -EBADF};
    if (mkdirat(c->scratch, "changes", 0700) < 0)
        return px_fail(c->e, PX_E_STORE_WRITE, errno, "cannot make a directory in the store");
    if (c->s->progress.tell)
        c->s->progress.tell(c->s->progress.user, "compiling the packages", 0, 0);
    int r = run_box(c, &box);
    px_build_box_done(&box);
    for (size_t i = 0; r == 0 && i < c->env->count; i++)
        r = take_package(c, &c->env->packages[i]);
    return r;
}

int px_env_compile(struct px_sandbox *s, const struct px_env *env, const struct px_oid *base, int part,
                   struct px_err *e)
{
    struct compiling c = {.s = s, .env = env, .base = base, .part = part, .e = e};
    struct px_tree_build *room = NULL;
    struct px_oid id;
    char words[128];
    if (env->count == 0 || env->runtime->minor < FIRST_MINOR)
        return 0;
    (void)px_fmt(words, sizeof words, "compile %s", env->profile.hex);
    if (px_hash_bytes(words, strlen(words), &id) < 0)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "compiling the packages");
    if (px_tree_begin(s->store, &id, &room, e) < 0)
        return -1;
    c.scratch = px_tree_build_fd(room);
    int r = compile_and_take(&c);
    px_tree_drop(room);
    return r;
}
