/* Compiles packages to byte code once, with the Python that will run them, in a box without a network. For a sandbox or
 * an image that is the base's Python, and one box compiles all packages. For runs on this machine it is the host's
 * Python, with one box for each package, because environments share the result. px takes only files from the box that
 * are named after the packages' modules. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/px.h>

#include "base/buf.h"
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
#include "store/canonical.h"
#include "store/document.h"

/* Before 3.11 the order of constants in a set depends on addresses, so the file is not reproducible. */
enum { FIRST_MINOR = 11, FILE_MAX = 64 << 20, LAYOUT = 1, TEXT_MAX = 1 << 16 };

#define OUT "/px-compiled"

struct compiling {
    struct px_sandbox *s;
    const struct px_python *python;
    const struct px_oid *base;  /* the tree that it is in; NULL: it is this machine's */
    const char *modules;        /* the directory to compile, as it is outside */
    const char *left;           /* what the box made, below scratch */
    int scratch;
    struct px_err *e;
};

/* ---- in the box ---- */

static int prepare_base(const struct compiling *c, struct px_buildbox *box)
{
    char root[PATH_MAX], changes[PATH_MAX];
    if (mkdirat(c->scratch, "changes", 0700) < 0)
        return px_fail(c->e, PX_E_STORE_WRITE, errno, "cannot make a directory in the store");
    return px_tree_path(c->s->store, c->base, root, sizeof root, c->e) < 0 ||
                   px_buildbox_path(c->scratch, "changes", changes, sizeof changes, c->e) < 0
               ? -1 : px_buildbox_setup(box, "compiling the packages", root, changes, c->e);
}

/* A Python that is not the system's is shown with its library: PREFIX of PREFIX/bin/python3.13. */
static int show_python(const struct compiling *c, struct px_buildbox *box)
{
    char prefix[PATH_MAX], library[PATH_MAX];
    if (px_path_within(c->python->program, "/usr"))
        return 0;
    if (px_fmt(prefix, sizeof prefix, "%s", c->python->program) < 0)
        return px_fail(c->e, PX_E_BUILD, ENAMETOOLONG, "the path of a Python is too long");
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(prefix, '/');
        if (slash)
            *slash = '\0';
    }
    if (px_fmt(library, sizeof library, "%s/lib/python3.%u/os.py", prefix, c->python->minor) < 0 || !*prefix ||
        access(library, R_OK) < 0)
        return px_fail(c->e, PX_E_BUILD, ENOENT, "'%.200s' has no library beside it", c->python->program);
    return px_buildbox_show(box, prefix, prefix, false, c->e);
}

static int prepare_here(const struct compiling *c, struct px_buildbox *box)
{
    char out[PATH_MAX];
    return px_buildbox_path(c->scratch, "", out, sizeof out, c->e) < 0 ||
                   px_buildbox_here(box, "compiling the packages", c->e) < 0 || show_python(c, box) < 0
               ? -1 : px_buildbox_show(box, out, OUT, true, c->e);
}

static int run_box(const struct compiling *c, struct px_buildbox *box)
{
    char script[sizeof compile_script + 1] = {0};
    memcpy(script, compile_script, sizeof compile_script);
    const char *const argv[] = {c->python->program, "-s", "-S", "-W", "ignore", "-c", script, PX_INSIDE_PACKAGES, OUT,
                                NULL};
    if ((c->base ? prepare_base(c, box) : prepare_here(c, box)) < 0 ||
        px_buildbox_show(box, c->modules, PX_INSIDE_PACKAGES, false, c->e) < 0 ||
        px_buildbox_env(box, "PYTHONHASHSEED", "0", c->e) < 0 ||
        px_buildbox_env(box, "LC_ALL", "C.UTF-8", c->e) < 0 ||
        px_policy_set(box->policy, "file-size", "64m", c->e) < 0 || px_policy_set(box->policy, "disk", "8g", c->e) < 0)
        return -1;
    return px_buildbox_run(box, argv, c->e);
}

static int compile(const struct compiling *c)
{
    struct px_buildbox box = {.out_fd = -EBADF};
    if (c->s->progress.tell)
        c->s->progress.tell(c->s->progress.user, "compiling the packages", 0, 0);
    int r = run_box(c, &box);
    px_buildbox_done(&box);
    return r;
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
           px_fmt(out, size, "%s/%.*s.cpython-3%u.pyc", dir, (int)(n - 3), name, c->python->minor) >= 0;
}

/* Untrusted, made by the box: only a regular file is taken. */
static int open_left(const struct compiling *c, const char *package, const char *module)
{
    char path[PX_WHEEL_PATH_MAX + 128];
    struct stat st;
    if (px_fmt(path, sizeof path, "%s%s/%sc", c->left, package, module) < 0)
        return -ENOENT;
    px_auto_fd int fd = px_open_beneath(c->scratch, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd == -ELOOP ? -ENOENT : fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) && st.st_size <= FILE_MAX ? px_fd_take(&fd) : -ENOENT;
}

/* A .pyc in the package refers to the mtime of a source file that no installation has. */
static int take_file(const struct compiling *c, int to, const char *package, const char *module)
{
    char dir[PX_WHEEL_PATH_MAX], path[PX_WHEEL_PATH_MAX];
    if (!name_compiled(c, module, dir, path, sizeof path))
        return 0;
    px_auto_fd int from = open_left(c, package, module);
    if (from < 0)
        return from == -ENOENT ? 0 : from;
    int r = px_wheel_paths_make(to, dir);
    if (r < 0)
        return r;
    (void)px_sys(SYS_unlinkat, to, path, 0);
    px_auto_fd int target = px_open_beneath(to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    r = target < 0 ? target : px_copy_file(from, target);
    return r < 0 ? r : fchmod(target, 0644) < 0 ? -errno : 0;
}

/* package: the directory with the box's output. to: the package that the files are added to. */
static int take_package(const struct compiling *c, const struct px_env_package *p, const char *package, int to)
{
    struct px_paths files = {0};
    int r = to < 0 ? to : px_wheel_paths_list(to, ".", &files);
    for (size_t i = 0; r == 0 && i < files.count; i++)
        if (px_starts_with(files.items[i], "site-packages/"))
            r = take_file(c, to, package, files.items[i]);
    px_wheel_paths_done(&files);
    return r < 0 ? px_fail(c->e, PX_E_STORE_WRITE, r, "cannot keep the byte code of %s", p->name) : 0;
}

/* A temporary directory of the store with this id. */
static int begin_room(struct compiling *c, const char *words, struct px_tree_build **ret_room)
{
    struct px_oid id;
    if (px_hash_bytes(words, strlen(words), &id) < 0)
        return px_no_memory(c->e);
    if (px_tree_begin(c->s->store, &id, ret_room, c->e) < 0)
        return -1;
    c->scratch = px_tree_build_fd(*ret_room);
    return 0;
}

/* ---- for a sandbox ---- */

static int compile_part(const struct compiling *c, const struct px_env *env, int part)
{
    char path[128];
    if (compile(c) < 0)
        return -1;
    for (size_t i = 0; i < env->count; i++) {
        const char *tree = env->packages[i].tree.hex;
        (void)px_fmt(path, sizeof path, "store/pkg-builds/%s", tree);
        px_auto_fd int to = px_open_beneath(part, path, O_RDONLY | O_DIRECTORY, 0);
        (void)px_fmt(path, sizeof path, "/%s", tree);
        if (take_package(c, &env->packages[i], path, to) < 0)
            return -1;
    }
    return 0;
}

int px_env_compile(struct px_sandbox *s, const struct px_env *env, const struct px_oid *base, int part,
                   struct px_err *e)
{
    char packages[PATH_MAX], words[128];
    struct compiling c = {.s = s, .python = env->runtime, .base = base, .modules = packages,
                          .left = "changes/upper" OUT, .e = e};
    struct px_tree_build *room = NULL;
    if (env->count == 0 || env->runtime->minor < FIRST_MINOR)
        return 0;
    (void)px_fmt(words, sizeof words, "compile %s", env->profile.hex);
    if (px_buildbox_path(part, "store/pkg-builds", packages, sizeof packages, e) < 0 || begin_room(&c, words, &room) < 0)
        return -1;
    int r = compile_part(&c, env, part);
    px_tree_drop(room);
    return r;
}

/* ---- for this machine ---- */

static int name_code(const struct compiling *c, const struct px_env_package *p, struct px_oid *ret_tree)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *key =
        json_pack("{sssisssssiss}", "kind", "pkg-code", "layout", LAYOUT, "pkg_build_oid", p->build.hex, "program",
                  c->python->program, "minor", (int)c->python->minor, "version", c->python->version);
    if (!key || px_canonical(key, &text) < 0 || px_hash_bytes(text.data, text.len, ret_tree) < 0)
        return px_no_memory(c->e);
    return 0;
}

/* Puts the package's files and their byte code into the new tree. */
static int fill_code(struct compiling *c, const struct px_env_package *p, int root)
{
    px_auto_fd int from = -EBADF;
    struct px_tree_build *room = NULL;
    char words[128], modules[PATH_MAX];
    if (px_tree_open(c->s->store, &p->tree, &from, c->e) < 0)
        return -1;
    int r = px_wheel_paths_make(root, PX_CODE_PACKAGE);
    px_auto_fd int to = r < 0 ? r : px_open_beneath(root, PX_CODE_PACKAGE, O_RDONLY | O_DIRECTORY, 0);
    r = to < 0 ? to : px_env_link_files(from, to);
    if (r < 0)
        return px_fail(c->e, PX_E_STORE_WRITE, r, "cannot lay out the package %s", p->name);
    (void)px_fmt(words, sizeof words, "compile here %s", p->build.hex);
    c->modules = modules;
    if (px_buildbox_path(to, "", modules, sizeof modules, c->e) < 0 || begin_room(c, words, &room) < 0)
        return -1;
    r = compile(c) < 0 ? -1 : take_package(c, p, "", to);
    px_tree_drop(room);
    return r;
}

int px_env_compile_here(struct px_sandbox *s, const struct px_python *python, const struct px_env_package *p,
                        struct px_oid *ret_tree, struct px_err *e)
{
    struct compiling c = {.s = s, .python = python, .left = ".", .e = e};
    struct px_tree_build *build = NULL;
    struct px_oid id;
    if (python->minor < FIRST_MINOR || python->musl || access(python->program, X_OK) < 0)
        return 1;
    if (name_code(&c, p, &id) < 0)
        return -1;
    int r = px_tree_begin(s->store, &id, &build, e);
    if (r == 0 && fill_code(&c, p, px_tree_build_fd(build)) < 0) {
        px_tree_drop(build);
        return -1;
    }
    if (r < 0 || (r == 0 && px_tree_commit(build, "{\"kind\":\"pkg-code\"}", e) < 0))
        return -1;
    *ret_tree = id;
    return 0;
}
