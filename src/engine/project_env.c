#include "engine/project_env.h"

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
#include "engine/env.h"
#include "engine/resolve.h"
#include "engine/sandbox_box.h"
#include "project/resolved.h"

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

/* What is no directory of this machine - a page of links on some server, or nothing - is passed over: the resolver
 * has looked at it. */
static int add_link(struct links *l, const char *root, const char *text, size_t length, struct px_err *e)
{
    char word[PATH_MAX], path[PATH_MAX];
    struct stat st;
    bool whole = *text == '/' || px_starts_with(text, "file://");
    if (px_fmt(word, sizeof word, "%s%s%.*s", whole ? "" : root, whole ? "" : "/", (int)length, text) < 0 ||
        px_resolved_path(word, path, sizeof path) < 0 || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    char *kept = l->count < LINKS_MAX ? strdup(path) : NULL;
    if (!kept)
        return px_fail(e, PX_E_LIMIT, E2BIG, "too many directories in PIP_FIND_LINKS or UV_FIND_LINKS");
    l->items[l->count++] = kept;
    return 0;
}

/* What the two tools call find-links, as far as it is said in the environment. */
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
    struct px_look *look;
    struct px_sandbox *s;
    struct links links;
    struct px_env_root root;
    bool frozen;
    const struct px_env *compare;       /* only whether this is what comes out; NULL: make it */
};

static int find_packages(void *user, const struct px_names *requirements, struct px_pins *ret_pins, struct px_err *e)
{
    struct build *b = user;
    return px_resolve_names(b->s, b->p->site.root, &b->look->target, requirements, ret_pins, e);
}

/* The same, and the lock has it then. */
struct recording {
    struct build *b;
    struct px_pins *lock;
};

static int find_and_record(void *user, const struct px_names *requirements, struct px_pins *ret_pins, struct px_err *e)
{
    struct recording *r = user;
    const struct px_pins *known = px_pins_build_find(r->lock, requirements->items, requirements->count);
    if (known)
        return px_pins_copy(known, ret_pins, e);
    if (find_packages(r->b, requirements, ret_pins, e) < 0)
        return -1;
    if (px_pins_build_add(r->lock, requirements->items, requirements->count, ret_pins, e) == 0)
        return 0;
    px_pins_done(ret_pins);
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
        .base = px_project_base(b->p),
        .python = px_project_python(b->p),
        .find_links = (const char *const *)b->links.items,
        .frozen = b->frozen,
        .finder = &finder,
        .builds = &b->look->pins,
        .root = &b->root,
    };
    return b->compare ? px_env_compare_builds(b->s, &ask, b->compare, e) : px_env_build(b->s, &ask, ret_env, e);
}

/* Those of the chosen that the lock gives no place for, moved to the front. */
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
    if (px_pins_select(&b->look->pins, &b->look->target.env, &b->look->target.tags, NULL, &list, &count, e) < 0)
        return -1;
    count = without_place(list, count);
    return count ? px_resolve_download(b->p->site.root, &b->look->target, list, count, dir, e) : 1;
}

/* The lock does not say where some of its files are, and no directory has them: pip's own settings may know. Then
 * once more. */
static int build_with_downloads(struct build *b, struct px_env *ret_env, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(PATH_MAX + 64);
    struct px_tree_build *scratch = NULL;
    struct px_err first = *e;
    char path[PATH_MAX];
    struct px_oid id;
    px_buf_printf(&words, "download %s", b->p->site.root);
    if (words.err < 0 || px_hash_bytes(words.data, words.len, &id) < 0)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "downloading");
    if (px_tree_begin(b->s->store, &id, &scratch, e) < 0)
        return -1;
    int r = download(b, px_tree_build_fd(scratch), e);
    if (r == 0 && (px_build_path(px_tree_build_fd(scratch), "", path, sizeof path, e) < 0 ||
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

static int build_somehow(struct build *b, struct px_env *ret_env, struct px_err *e)
{
    if (px_project_sandbox(b->p, &b->s, e) < 0)
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

static int build(struct px_project *p, struct px_look *look, bool frozen, struct px_env *ret_env, struct px_err *e)
{
    struct build b = {.p = p, .look = look, .frozen = frozen};
    return build_somehow(&b, ret_env, e);
}

int px_project_env_compare(struct px_project *p, struct px_look *look, const struct px_env *env, struct px_err *e)
{
    struct build b = {.p = p, .look = look, .frozen = true, .compare = env};
    return build_somehow(&b, NULL, e);
}

int px_project_env_ask_builds(struct px_project *p, struct px_look *look, struct px_pins *lock, struct px_err *e)
{
    struct build b = {.p = p, .look = look};
    struct recording recording = {&b, lock};
    const struct px_env_finder finder = {find_and_record, &recording};
    if (px_project_sandbox(p, &b.s, e) < 0)
        return -1;
    int r = find_links(&b.links, p->site.root, e);
    const struct px_env_ask ask = {
        .manifest = &p->site.manifest,
        .pins = lock,
        .project_dir = p->site.root,
        .base = px_project_base(p),
        .python = px_project_python(p),
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

static int describe(const struct px_look *look, const struct px_env *env, struct px_made_env *ret_made,
                    struct px_err *e)
{
    struct px_made_env made = {
        .id = strdup(env->profile.hex),
        .lock_id = strdup(px_pins_id(&look->pins)),
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
        px_made_env_done(&made);
        return px_fail(e, PX_E_MEMORY, ENOMEM, "the project's state");
    }
    *ret_made = made;
    return 0;
}

static int make(struct px_project *p, struct px_look *look, bool frozen, bool record, bool *ret_built, struct px_err *e)
{
    struct px_env env = {0};
    struct px_made_env made = {0};
    if (build(p, look, frozen, &env, e) < 0)
        return -1;
    assert(env.runtime);
    int r = describe(look, &env, &made, e);
    /* Named by its project, it stays when unnamed ones are cleaned away. */
    if (r == 0 && record)
        r = px_name_put(p->sandbox->store, PX_RECORD_ENV, p->site.root, &env.profile, e) < 0 ||
                    px_state_file_write(p->site.dir, p->site.workspace, &made, e) < 0
                ? -1 : 0;
    px_env_done(&env);
    if (r < 0) {
        px_made_env_done(&made);
        return -1;
    }
    px_made_env_done(&look->env);
    look->env = made;
    look->env_reason = NULL;
    look->flags.env_exists = look->flags.env_clean = true;
    look->state = px_state_of(&look->flags);
    *ret_built = true;
    return 0;
}

int px_project_env_sync(struct px_project *p, struct px_look *look, bool frozen, bool *ret_built, struct px_err *e)
{
    return make(p, look, frozen, true, ret_built, e);
}

int px_project_env_rebuild(struct px_project *p, struct px_look *look, bool *ret_built, struct px_err *e)
{
    return make(p, look, false, false, ret_built, e);
}

int px_project_env_recall(struct px_project *p, const struct px_look *look, struct px_env *ret_env, struct px_err *e)
{
    struct px_sandbox *s = NULL;
    if (!look->env.profile_oid)
        return 1;
    return px_project_sandbox(p, &s, e) < 0 ? -1
                                            : px_env_load(s, look->env.profile_oid, px_project_python(p), ret_env, e);
}

int px_project_env_need(struct px_project *p, struct px_look *look, bool frozen, struct px_env *ret_env, struct px_err *e)
{
    int r = px_project_env_recall(p, look, ret_env, e);
    return r > 0 ? build(p, look, frozen, ret_env, e) : r;
}
