#include "layout/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "config/toml.h"
#include "pep/marker.h"
#include "pep/version.h"

enum { NAME_BYTES = 256 };

#define LOCK_FILE "px.lock"
#define WORKSPACE_LOCK_FILE "px.workspace.lock"

/* ---- files ---- */

/* ---- one directory ---- */

struct found {
    int dir;
    bool file;                  /* there is a pyproject.toml */
    bool is_px, is_workspace;   /* it has [tool.px], or cannot be parsed and might have it */
    struct px_buf text;
};

static void found_done(struct found *f)
{
    px_fd_done(&f->dir);
    px_buf_done(&f->text);
    f->dir = -EBADF;
}

static void look_at_text(struct found *f)
{
    static const char *const px[] = {"tool", "px"}, *const workspace[] = {"tool", "px", "workspace"};
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    if (px_toml_parse(px_buf_text(&f->text), f->text.len, &t, &fault) < 0) {
        f->is_px = true;
        return;
    }
    f->is_px = px_toml_find(t, px, 2) != PX_TOML_NONE;
    f->is_workspace = px_toml_find(t, workspace, 3) != PX_TOML_NONE;
    px_toml_free(t);
}

static int look_at(const char *path, struct found *ret, struct px_err *e)
{
    *ret = (struct found){.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (ret->dir < 0)           /* a directory without read permission has no project of ours */
        return errno == EACCES ? 0 : px_fail(e, PX_E_IO, errno, "cannot open '%s'", path);
    int r = px_buf_read_file(ret->dir, PX_MANIFEST_FILE, PX_TOML_BYTES_MAX, &ret->text);
    if (r < 0 && r != -EACCES) {
        found_done(ret);
        return px_fail(e, PX_E_MANIFEST, r, "cannot read '%s/" PX_MANIFEST_FILE "'", path);
    }
    ret->file = r == 0;
    if (ret->file)
        look_at_text(ret);
    return 0;
}

static bool to_parent(char *path)
{
    char *slash = strrchr(path, '/');
    if (path[1] == '\0')
        return false;
    slash[slash == path] = '\0';
    return true;
}

static int parse(const struct found *f, const char *path, struct px_manifest *ret, struct px_err *e)
{
    char shown[PATH_MAX + 32];
    (void)px_fmt(shown, sizeof shown, "%s/" PX_MANIFEST_FILE, path[1] ? path : "");
    return px_manifest_parse(px_buf_text(&f->text), f->text.len, shown, ret, e);
}

/* ---- members ---- */

static int compare_members(const void *a, const void *b)
{
    return strcmp(((const struct px_member *)a)->path, ((const struct px_member *)b)->path);
}

static int wrong_member(const struct px_located *site, const char *member, const char *why, struct px_err *e)
{
    px_fail(e, PX_E_MANIFEST, 0, "%s/" PX_MANIFEST_FILE ": the workspace's member '%.200s' cannot be used", site->root,
            member);
    (void)px_detail(e, "member", member);
    (void)px_why(e, "%s", why);
    return px_fix(
        e, "Correct [tool.px.workspace].members: directories below the workspace, each with a " PX_MANIFEST_FILE ".");
}

/* "./libs//core/" -> "libs/core". */
static char *clean_member(const char *text)
{
    char absolute[PATH_MAX], out[PATH_MAX];
    if (*text == '/' || px_fmt(absolute, sizeof absolute, "/%s", text) < 0 ||
        px_path_clean(absolute, out, sizeof out) < 0 || out[1] == '\0')
        return NULL;
    return strdup(out + 1);
}

static int add_member(struct px_located *site, const char *listed, struct px_err *e)
{
    char path[PATH_MAX];
    struct found f;
    struct px_member *m = &site->members[site->member_count];
    char *clean = clean_member(listed);
    if (!clean)
        return wrong_member(site, listed, "It is not a relative path below the workspace.", e);
    for (size_t i = 0; i < site->member_count; i++)
        if (px_equal(site->members[i].path, clean)) {
            free(clean);
            return 0;
        }
    if (px_fmt(path, sizeof path, "%s/%s", site->root[1] ? site->root : "", clean) < 0 || look_at(path, &f, e) < 0) {
        free(clean);
        return wrong_member(site, listed, "There is no such directory.", e);
    }
    int r =
        f.file ? parse(&f, path, &m->manifest, e) : wrong_member(site, listed, "It has no " PX_MANIFEST_FILE ".", e);
    found_done(&f);
    if (r < 0) {
        free(clean);
        return -1;
    }
    m->path = clean;
    site->member_count++;
    return 0;
}

static int read_members(struct px_located *site, const char *dir, struct px_err *e)
{
    const struct px_names *listed = &site->manifest.members;
    if (listed->count > PX_MEMBERS_MAX)
        return px_fail(e, PX_E_MANIFEST, 0, "%s/" PX_MANIFEST_FILE ": a workspace has at most %d members", site->root,
                       PX_MEMBERS_MAX);
    site->members = calloc(listed->count + 1, sizeof *site->members);
    if (!site->members)
        return px_no_memory(e);
    for (size_t i = 0; i < listed->count; i++)
        if (add_member(site, listed->items[i], e) < 0)
            return -1;
    if (site->member_count)
        qsort(site->members, site->member_count, sizeof *site->members, compare_members);
    const char *below = dir + strlen(site->root) + (site->root[1] ? 1 : 0);
    for (size_t i = 0; px_path_within(dir, site->root) && strlen(dir) > strlen(site->root) && i < site->member_count;
         i++)
        site->members[i].here = px_path_within(below, site->members[i].path);
    return 0;
}

/* ---- the walk ---- */

static int enter(struct found *f, const char *path, const char *dir, struct px_located *ret, struct px_err *e)
{
    *ret = (struct px_located){.dir = px_fd_take(&f->dir), .manifest_exists = f->file && f->is_px};
    (void)px_fmt(ret->root, sizeof ret->root, "%s", path);
    if (!ret->manifest_exists)
        return 0;
    if (parse(f, path, &ret->manifest, e) < 0)
        return -1;
    ret->workspace = ret->manifest.is_workspace;
    return ret->workspace ? read_members(ret, dir, e) : 0;
}

static bool is_in_member(const struct px_located *site)
{
    for (size_t i = 0; i < site->member_count; i++)
        if (site->members[i].here)
            return true;
    return false;
}

/* A workspace above that lists the directory as a member: 0; 1 if there is none. */
static int find_workspace(const char *dir, struct px_located *ret, struct px_err *e)
{
    char path[PATH_MAX];
    (void)px_fmt(path, sizeof path, "%s", dir);
    while (to_parent(path)) {
        struct found f;
        if (look_at(path, &f, e) < 0)
            return -1;
        int r = f.is_workspace ? enter(&f, path, dir, ret, e) : 1;
        found_done(&f);
        if (r < 0 || (r == 0 && is_in_member(ret)))
            return r;
        if (r == 0)
            px_locate_done(ret);
    }
    return 1;
}

static bool has_lock(const struct found *f)
{
    struct stat st;
    return f->dir >= 0 && fstatat(f->dir, LOCK_FILE, &st, 0) == 0 && S_ISREG(st.st_mode);
}

static int find_project(const char *dir, struct px_located *ret, struct px_err *e)
{
    char path[PATH_MAX];
    (void)px_fmt(path, sizeof path, "%s", dir);
    do {
        struct found f;
        if (look_at(path, &f, e) < 0)
            return -1;
        int r = f.is_px || has_lock(&f) ? enter(&f, path, dir, ret, e) : 1;
        found_done(&f);
        if (r <= 0)
            return r;
    } while (to_parent(path));
    px_fail(e, PX_E_NO_PROJECT, 0, "No px project found in '%s' or above it", dir);
    return px_detail(e, "reason", "no_project");
}

int px_locate_find(const char *dir, struct px_located *ret_place, struct px_err *e)
{
    struct px_located site = {.dir = -EBADF};
    if (*dir != '/' || strlen(dir) >= PATH_MAX - 64)
        return px_fail(e, PX_E_IO, ENAMETOOLONG, "the directory '%.200s' cannot be used", dir);
    int r = find_workspace(dir, &site, e);
    if (r > 0)
        r = find_project(dir, &site, e);
    if (r < 0) {
        px_locate_done(&site);
        return -1;
    }
    *ret_place = site;
    return 0;
}

void px_locate_done(struct px_located *site)
{
    for (size_t i = 0; i < site->member_count; i++) {
        px_manifest_done(&site->members[i].manifest);
        free(site->members[i].path);
    }
    free(site->members);
    px_manifest_done(&site->manifest);
    px_fd_done(&site->dir);
    *site = (struct px_located){.dir = -EBADF};
}

/* ---- what it is ---- */

const char *px_locate_name(const struct px_located *site)
{
    const struct px_manifest *m = &site->manifest;
    const char *name = site->workspace ? m->workspace_name : m->name;
    const char *slash = strrchr(site->root, '/');
    return name && *name ? name : slash && slash[1] ? slash + 1 : site->root;
}

const char *px_locate_lock_file(const struct px_located *site)
{
    return site->workspace ? WORKSPACE_LOCK_FILE : LOCK_FILE;
}

const char *px_locate_python(const struct px_located *site)
{
    if (!site->workspace)
        return site->manifest.requires_python;
    return site->manifest.workspace_python ? site->manifest.workspace_python : "";
}

static const char *manifest_misses(const struct px_manifest *m, const char *version)
{
    if (m->requires_python && px_version_fits(version, m->requires_python) != 1)
        return m->requires_python;
    return m->px_python && px_version_asked(version, m->px_python) != 1 ? m->px_python : NULL;
}

const char *px_locate_misses(const struct px_located *site, const char *version)
{
    const char *own = site->manifest.workspace_python, *missed = NULL;
    if (!site->workspace)
        return manifest_misses(&site->manifest, version);
    if (own && px_version_asked(version, own) != 1)
        return own;
    for (size_t i = 0; !missed && i < site->member_count; i++)
        missed = manifest_misses(&site->members[i].manifest, version);
    return missed;
}

static void hash_text(struct px_hash *h, const char *text)
{
    px_hash_add(h, text, strlen(text));
}

static void hash_lower(struct px_hash *h, const char *text)
{
    for (; *text; text++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        px_hash_add(h, &c, 1);
    }
}

int px_locate_fingerprint(const struct px_located *site, struct px_oid *ret_fingerprint, struct px_err *e)
{
    struct px_hash h;
    int r = 0;
    if (!site->workspace)
        return px_manifest_fingerprint(&site->manifest, ret_fingerprint, e);
    px_hash_begin(&h);
    hash_lower(&h, px_locate_name(site));
    hash_text(&h, px_locate_python(site));
    for (size_t i = 0; r == 0 && i < site->member_count; i++) {
        struct px_oid one;
        r = px_manifest_fingerprint(&site->members[i].manifest, &one, e);
        hash_text(&h, site->members[i].path);
        hash_text(&h, "\n");
        hash_text(&h, r == 0 ? one.hex : "");
        hash_text(&h, "\n");
    }
    if (r < 0) {
        px_hash_drop(&h);
        return -1;
    }
    r = px_hash_end(&h, ret_fingerprint);
    return r < 0 ? px_fail(e, PX_E_MEMORY, r, "the workspace's fingerprint") : 0;
}

/* ---- requirements ---- */

static bool same_package(const struct px_requirement *q, const char *name)
{
    char a[NAME_BYTES], b[NAME_BYTES];
    return name && px_marker_package_name(q->name, q->name_length, a, sizeof a) == 0 &&
           px_marker_package_name(name, strlen(name), b, sizeof b) == 0 && px_equal(a, b);
}

static bool is_member(const struct px_located *site, const char *requirement)
{
    struct px_requirement q;
    if (px_marker_requirement_parse(requirement, &q) < 0)
        return false;
    for (size_t i = 0; i < site->member_count; i++)
        if (same_package(&q, site->members[i].manifest.name))
            return true;
    return false;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_text(const struct px_names *list, const char *text)
{
    return list->count && px_equal(list->items[list->count - 1], text);
}

static int add_requirements(const struct px_located *site, const struct px_manifest *m, struct px_names *list,
                            struct px_err *e)
{
    struct px_names some;
    if (px_manifest_requirements(m, false, &some, e) < 0)
        return -1;
    const char **items = realloc(list->items, (list->count + some.count + 1) * sizeof *items);
    if (!items) {
        free(some.items);
        return px_no_memory(e);
    }
    list->items = items;
    for (size_t i = 0; i < some.count; i++)
        if (!is_member(site, some.items[i]))
            items[list->count++] = some.items[i];
    free(some.items);
    return 0;
}

int px_locate_requirements(const struct px_located *site, struct px_names *ret_list, struct px_err *e)
{
    struct px_names all = {0};
    size_t kept = 0;
    int r = 0;
    if (!site->workspace)
        return px_manifest_requirements(&site->manifest, false, ret_list, e);
    for (size_t i = 0; r == 0 && i < site->member_count; i++)
        r = add_requirements(site, &site->members[i].manifest, &all, e);
    if (r < 0) {
        free(all.items);
        return -1;
    }
    if (all.count)
        qsort(all.items, all.count, sizeof *all.items, compare_texts);
    for (size_t i = 0; i < all.count; i++) {
        struct px_names so_far = {.items = all.items, .count = kept};
        if (!has_text(&so_far, all.items[i]))
            all.items[kept++] = all.items[i];
    }
    all.count = kept;
    *ret_list = all;
    return 0;
}
