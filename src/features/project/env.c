#include "project/env.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "env/env.h"
#include "resolve/resolve.h"
#include "start/buildbox.h"
#include "store/document.h"
#include "transfer/url.h"

enum { LINKS_MAX = 64 };

/* ---- directories with archives ---- */

struct links {
    char *items[LINKS_MAX + 1];         /* ends with a NULL */
    size_t count;
};

static void links_done(struct links *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i]);
}

/* Skips what is not a directory of this machine, such as a page on a server: the resolver handles those. */
static int add_link(struct links *l, const char *root, const char *text, size_t length, struct px_err *e)
{
    char word[PATH_MAX], path[PATH_MAX];
    struct stat st;
    bool whole = *text == '/' || px_starts_with(text, "file://");
    if (px_fmt(word, sizeof word, "%s%s%.*s", whole ? "" : root, whole ? "" : "/", (int)length, text) < 0 ||
        px_url_path(word, path, sizeof path) < 0 || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    char *kept = l->count < LINKS_MAX ? strdup(path) : NULL;
    if (!kept)
        return px_fail(e, PX_E_LIMIT, E2BIG, "too many directories in PIP_FIND_LINKS or UV_FIND_LINKS");
    l->items[l->count++] = kept;
    return 0;
}

/* The find-links variables of pip and uv. */
static int find_links(struct links *l, const char *root, struct px_err *e)
{
    static const struct {
        const char *name, *between;
    } rows[] = {{"PIP_FIND_LINKS", " \t\n"}, {"UV_FIND_LINKS", ","}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        for (const char *at = getenv(rows[i].name); at && *(at += strspn(at, rows[i].between));) {
            size_t n = strcspn(at, rows[i].between);
            if (add_link(l, root, at, n, e) < 0)
                return -1;
            at += n;
        }
    return 0;
}

/* ---- building ---- */

struct build {
    struct px_project *p;
    const struct px_snapshot *look;
    const struct px_python *python;     /* this machine's, or the base's */
    struct px_target target;            /* the same */
    struct px_sandbox *s;
    struct links links;
    struct px_env_root root;
    bool frozen;
    const struct px_env *compare;       /* only check that this is the result; NULL: make it */
};

static int find_packages(void *user, const struct px_names *requirements, struct px_lock *ret_pins, struct px_err *e)
{
    struct build *b = user;
    return px_resolve_names(b->s, b->p->site.root, &b->target, requirements, ret_pins, e);
}

/* The same, and adds it to the lock. */
struct recording {
    struct build *b;
    struct px_lock *lock;
};

static int find_and_record(void *user, const struct px_names *requirements, struct px_lock *ret_pins, struct px_err *e)
{
    struct recording *r = user;
    const struct px_lock *known = px_lock_build_find(r->lock, requirements->items, requirements->count);
    if (known)
        return px_lock_copy(known, ret_pins, e);
    if (find_packages(r->b, requirements, ret_pins, e) < 0)
        return -1;
    if (px_lock_build_add(r->lock, requirements->items, requirements->count, ret_pins, e) == 0)
        return 0;
    px_lock_done(ret_pins);
    return -1;
}

static int build_once(struct build *b, struct px_env *ret_env, struct px_err *e)
{
    const struct px_env_finder finder = {find_packages, b};
    const struct px_env_ask ask = {
        .manifest = &b->p->site.manifest,
        .pins = &b->look->pins,
        .project = b->look->own.facts,
        .project_dir = b->p->site.root,
        .base = b->python->base,
        .python = b->python,
        .find_links = (const char *const *)b->links.items,
        .frozen = b->frozen,
        .finder = &finder,
        .builds = &b->look->pins,
        .root = &b->root,
        .compile = true,
    };
    return b->compare ? px_env_compare_builds(b->s, &ask, b->compare, e) : px_env_build(b->s, &ask, ret_env, e);
}

/* Moves the chosen packages without an address in the lock to the front. */
static size_t without_place(struct px_chosen *list, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!list[i].file || !list[i].file->url)
            list[n++] = list[i];
    return n;
}

static int download(struct build *b, int dir, struct px_err *e)
{
    px_auto_free struct px_chosen *list = NULL;
    size_t count = 0;
    if (px_lock_select(&b->look->pins, &b->target.env, &b->target.tags, NULL, &list, &count, e) < 0)
        return -1;
    count = without_place(list, count);
    return count ? px_resolve_download(b->p->site.root, &b->target, list, count, dir, e) : 1;
}

/* The lock has no address for some files, and no directory has them: downloads them with pip's settings, then tries
 * again. */
static int build_with_downloads(struct build *b, struct px_env *ret_env, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(PATH_MAX + 64);
    struct px_tree_build *scratch = NULL;
    struct px_err first = *e;
    char path[PATH_MAX];
    struct px_oid id;
    px_buf_printf(&words, "download %s", b->p->site.root);
    if (words.err < 0 || px_hash_bytes(words.data, words.len, &id) < 0)
        return px_no_memory(e);
    if (px_tree_begin(b->s->store, &id, &scratch, e) < 0)
        return -1;
    int r = download(b, px_tree_build_fd(scratch), e);
    if (r == 0 && (px_buildbox_path(px_tree_build_fd(scratch), "", path, sizeof path, e) < 0 ||
                   add_link(&b->links, "", path, strlen(path), e) < 0 || build_once(b, ret_env, e) < 0))
        r = -1;
    px_tree_drop(scratch);
    bool damaged = strstr(first.details, PX_ENV_OTHER_FILE) != NULL;
    if (r > 0 || (r < 0 && damaged))
        *e = first;
    if (damaged && e->code == PX_E_BUILD)
        e->code = PX_E_OBJECT;
    return r == 0 ? 0 : -1;
}

/* ---- a lock for another Python ---- */

static bool is_wheel(const struct px_pin_file *file)
{
    size_t n = file->name ? strlen(file->name) : 0;
    return n > 4 && px_equal(file->name + n - 4, ".whl");
}

/* Whether the lock lists files of the package but none for this Python. Packages without files are left to pip. */
static bool is_for_others(const struct px_chosen *c)
{
    for (size_t i = 0; !c->file && i < c->pin->file_count; i++)
        if (is_wheel(&c->pin->files[i]))
            return true;
    return false;
}

static int other_python(const struct build *b, const struct px_lock_pin *pin, struct px_err *e)
{
    const struct px_python *own = px_project_own(b->p);
    bool boxed = b->python != own;
    (void)px_fail(e, boxed ? PX_E_BASE : PX_E_LOCK, 0, "%s has no file of %.60s %.40s for Python 3.%u%s%.60s",
                  b->look->lock_file, pin->name, pin->version, b->python->minor, boxed ? " of the base " : "",
                  boxed ? b->python->base : "");
    (void)px_detail(e, "reason", "lock_python");
    (void)px_why(e, "It names %.120s.", pin->files[0].name);
    if (!boxed)
        return px_fix(e, "Remove %s and run `px sync`: it is then resolved for this Python.", b->look->lock_file);
    if (b->python->minor != own->minor)
        return px_fix(e,
                      "Write python = \"3.%u\" in [tool.px], and run `px sync`: the lock is then for that Python.\n"
                      "Or change [tool.px.sandbox].base to one with Python 3.%u.",
                      b->python->minor, own->minor);
    return px_fix(e, "Use a lock that names the files of every platform: `uv lock` writes one.\n"
                     "Or change [tool.px.sandbox].base.");
}

static int check_files(const struct build *b, struct px_err *e)
{
    px_auto_free struct px_chosen *list = NULL;
    size_t count = 0;
    if (px_lock_select(&b->look->pins, &b->target.env, &b->target.tags, NULL, &list, &count, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (is_for_others(&list[i]))
            return other_python(b, list[i].pin, e);
    return 0;
}

/* ---- */

static int build_somehow(struct build *b, struct px_env *ret_env, struct px_err *e)
{
    px_target_for(b->python, &b->target);
    if (px_project_sandbox(b->p, &b->s, e) < 0 || check_files(b, e) < 0)
        return -1;
    int r = find_links(&b->links, b->p->site.root, e);
    if (r == 0) {
        r = build_once(b, ret_env, e);
        if (r < 0 && e->code == PX_E_BUILD && !strstr(e->details, PX_ENV_BUILD_FAILED))
            r = build_with_downloads(b, ret_env, e);
    }
    links_done(&b->links);
    return r;
}

static int build(struct px_project *p, const struct px_snapshot *look, const struct px_python *python, bool frozen,
                 struct px_env *ret_env, struct px_err *e)
{
    struct build b = {.p = p, .look = look, .python = python, .frozen = frozen};
    return build_somehow(&b, ret_env, e);
}

int px_project_env_compare(struct px_project *p, const struct px_snapshot *look, const struct px_env *env, struct px_err *e)
{
    struct build b = {.p = p, .look = look, .python = env->runtime, .frozen = true, .compare = env};
    return build_somehow(&b, NULL, e);
}

int px_project_env_ask_builds(struct px_project *p, struct px_snapshot *look, struct px_lock *lock, struct px_err *e)
{
    struct build b = {.p = p, .look = look, .python = px_project_own(p)};
    struct recording recording = {&b, lock};
    const struct px_env_finder finder = {find_and_record, &recording};
    px_target_for(b.python, &b.target);
    if (px_project_sandbox(p, &b.s, e) < 0)
        return -1;
    int r = find_links(&b.links, p->site.root, e);
    const struct px_env_ask ask = {
        .manifest = &p->site.manifest,
        .pins = lock,
        .project_dir = p->site.root,
        .base = b.python->base,
        .python = b.python,
        .find_links = (const char *const *)b.links.items,
        .finder = &finder,
        .root = &b.root,
    };
    if (r == 0)
        r = px_env_ask_builds(b.s, &ask, e);
    links_done(&b.links);
    return r;
}

/* ---- what is known of it afterwards ---- */

static int describe(const struct px_snapshot *look, const struct px_env *env, struct px_made_env *ret_made,
                    struct px_err *e)
{
    struct px_made_env made = {
        .id = strdup(env->profile.hex),
        .lock_id = strdup(px_lock_id(&look->pins)),
        .platform = strdup(look->target.platform),
        .site_packages = strdup(env->site_packages),
        .env_path = strdup(env->path),
        .profile_oid = strdup(env->profile.hex),
        .python_path = strdup(env->python),
        .python_version = strdup(env->runtime->version),
        .runtime_path = strdup(env->runtime->program),
        .runtime_version = strdup(env->runtime->version),
        .runtime_platform = strdup(look->target.platform),
    };
    if (!made.id || !made.lock_id || !made.platform || !made.site_packages || !made.env_path || !made.profile_oid ||
        !made.python_path || !made.python_version || !made.runtime_path || !made.runtime_version ||
        !made.runtime_platform) {
        px_layout_state_file_env_done(&made);
        return px_no_memory(e);
    }
    *ret_made = made;
    return 0;
}

/* The environment that has this name in the store. 1: there is none, or it is not what the lock says for this Python. */
static int recall(struct px_project *p, const struct px_snapshot *look, const struct px_python *python, const char *name,
                  struct px_env *ret_env, struct px_err *e)
{
    const struct px_env_ask ask = {.manifest = &p->site.manifest, .pins = &look->pins, .builds = &look->pins,
                                   .project = look->own.facts, .python = python};
    struct px_sandbox *s = NULL;
    struct px_oid id;
    if (!python || !look->lock_read)
        return 1;
    if (px_project_sandbox(p, &s, e) < 0)
        return -1;
    int r = px_name_get(s->store, PX_RECORD_ENV, name, &id, e);
    if (r == 0)
        r = px_env_check(s, id.hex, &ask, p->by_image, e) == 1 ? px_env_load(s, id.hex, python, ret_env, e) : 1;
    if (r != 0)
        return r;
    r = px_env_fits(&ask, ret_env, e);
    if (r != 1)
        px_env_done(ret_env);
    return r < 0 ? -1 : !r;
}

/* A name after the project keeps it from being cleaned as unnamed, and lets callers without write access to the project
 * find it. */
static int build_named(struct px_project *p, const struct px_snapshot *look, bool frozen, struct px_env *ret_env,
                       struct px_err *e)
{
    if (build(p, look, px_project_own(p), frozen, ret_env, e) < 0)
        return -1;
    if (px_name_put(p->sandbox->store, PX_RECORD_ENV, p->site.root, &ret_env->profile, e) == 0)
        return 0;
    px_env_done(ret_env);
    return -1;
}

static int make(struct px_project *p, struct px_snapshot *look, bool frozen, bool record, bool *ret_built, struct px_err *e)
{
    struct px_env env = {0};
    struct px_made_env made = {0};
    int found = record ? 1 : recall(p, look, px_project_own(p), p->site.root, &env, e);
    if (found < 0 || (found > 0 && build_named(p, look, frozen, &env, e) < 0))
        return -1;
    assert(env.runtime);
    int r = describe(look, &env, &made, e);
    if (r == 0 && record)
        r = px_layout_state_file_write(p->site.dir, p->site.workspace, &made, e);
    px_env_done(&env);
    if (r < 0) {
        px_layout_state_file_env_done(&made);
        return -1;
    }
    px_layout_state_file_env_done(&look->env);
    look->env = made;
    look->env_reason = NULL;
    look->flags.env_exists = look->flags.env_clean = true;
    look->state = px_layout_state_of(&look->flags);
    *ret_built = found > 0;
    return 0;
}

int px_project_env_sync(struct px_project *p, struct px_snapshot *look, bool frozen, bool *ret_built, struct px_err *e)
{
    return make(p, look, frozen, true, ret_built, e);
}

int px_project_env_rebuild(struct px_project *p, struct px_snapshot *look, bool *ret_built, struct px_err *e)
{
    return make(p, look, false, false, ret_built, e);
}

int px_project_env_recall(struct px_project *p, const struct px_snapshot *look, struct px_env *ret_env, struct px_err *e)
{
    struct px_sandbox *s = NULL;
    if (!look->env.profile_oid)
        return 1;
    return px_project_sandbox(p, &s, e) < 0 ? -1
                                            : px_env_load(s, look->env.profile_oid, px_project_own(p), ret_env, e);
}

/* ---- the sandbox's ---- */

/* The name of its environment if the base's Python is not this machine's: based on the project's path. */
static int boxed_name(const struct px_project *p, char *out, size_t size, struct px_err *e)
{
    int r = px_fmt(out, size, "%s/" PX_MANIFEST_FILE, p->site.root);
    return r < 0 ? px_fail(e, PX_E_LIMIT, r, "the path of the project is too long") : 0;
}

static int boxed_recall(struct px_project *p, const struct px_snapshot *look, struct px_env *ret_env, struct px_err *e)
{
    char name[PATH_MAX];
    return boxed_name(p, name, sizeof name, e) < 0 ? -1 : recall(p, look, px_project_python(p), name, ret_env, e);
}

static int boxed_make(struct px_project *p, const struct px_snapshot *look, bool frozen, struct px_env *ret_env,
                      struct px_err *e)
{
    char name[PATH_MAX];
    if (boxed_name(p, name, sizeof name, e) < 0 || build(p, look, px_project_python(p), frozen, ret_env, e) < 0)
        return -1;
    if (px_name_put(p->sandbox->store, PX_RECORD_ENV, name, &ret_env->profile, e) == 0)
        return 0;
    px_env_done(ret_env);
    return -1;
}

int px_project_env_box_recall(struct px_project *p, const struct px_snapshot *look, struct px_env *ret_env,
                              struct px_err *e)
{
    if (!px_project_shares(p))
        return boxed_recall(p, look, ret_env, e);
    return look->env_reason ? 1 : px_project_env_recall(p, look, ret_env, e);
}

int px_project_env_box_need(struct px_project *p, const struct px_snapshot *look, bool frozen, struct px_env *ret_env,
                            struct px_err *e)
{
    int r = px_project_env_box_recall(p, look, ret_env, e);
    if (r <= 0)
        return r;
    return px_project_shares(p) ? build(p, look, px_project_own(p), frozen, ret_env, e)
                                : boxed_make(p, look, frozen, ret_env, e);
}
