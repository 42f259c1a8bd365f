/* What `px add` and `px remove` write: items of [project] dependencies or of a group, in place. The manifest is written
 * with the lock that it resolves to, so that neither is there without the other; if the sync then fails, both are
 * restored. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "layout/both.h"
#include "pep/marker.h"
#include "project/snapshot.h"
#include "store/document.h"

enum { NAME_BYTES = 256 };

struct edit {
    struct px_project *p;
    const struct px_depend *how;
    int dir;                    /* of the manifest */
    char shown[PATH_MAX];       /* the manifest, from the project's root */
    const char *path[2];        /* of the list */
    char group[NAME_BYTES];
    struct px_buf text;         /* of the manifest, as it is by now */
    json_t *changed;            /* requirements that were added, or taken away */
    size_t taken;               /* lines of the name at hand */
    struct px_err *e;
};

static const char *where(const struct edit *w)
{
    return w->how->group ? w->group : "dependencies";
}

/* ---- which manifest, which list ---- */

static int open_manifest(struct edit *w)
{
    const struct px_located *site = &w->p->site;
    const char *member = NULL;
    for (size_t i = 0; i < site->member_count; i++)
        if (site->members[i].here)
            member = site->members[i].path;
    if (site->workspace && !member) {
        (void)px_fail(w->e, PX_E_MANIFEST, 0, "a workspace has no dependencies of its own");
        (void)px_detail(w->e, "reason", "no_member");
        return px_fix(w->e, "Change to the directory of the member that needs the package.");
    }
    w->dir = px_open_beneath(site->dir, member ? member : ".", O_RDONLY | O_DIRECTORY, 0);
    (void)px_fmt(w->shown, sizeof w->shown, "%s%s" PX_MANIFEST_FILE, member ? member : "", member ? "/" : "");
    int r = w->dir < 0 ? w->dir : px_buf_read_file(w->dir, PX_MANIFEST_FILE, PX_TOML_BYTES_MAX, &w->text);
    return r == 0 ? 0 : px_fail(w->e, PX_E_MANIFEST, r < 0 ? r : -ENOENT, "cannot read '%.200s'", w->shown);
}

static bool same_name(const char *a, const char *b)
{
    char x[NAME_BYTES], y[NAME_BYTES];
    return px_marker_package_name(a, strlen(a), x, sizeof x) == 0 && px_marker_package_name(b, strlen(b), y, sizeof y) == 0 &&
           px_equal(x, y);
}

/* A group as the manifest writes it. A missing group can be added to, but not removed from. */
static int choose_group(struct edit *w, const struct px_toml *t)
{
    struct px_near near = {.written = w->how->group};
    char plain[NAME_BYTES];
    const char *const table[] = {"dependency-groups"};
    uint32_t groups = px_toml_find(t, table, 1);
    if (px_marker_package_name(w->how->group, strlen(w->how->group), plain, sizeof plain) < 0)
        return px_fail(w->e, PX_E_VALUE, 0, "'%.100s' is not a name for a group", w->how->group);
    const char *found = w->how->group;
    bool there = false;
    for (uint32_t c = groups ? px_toml_at(t, groups)->first : PX_TOML_NONE; c && !there; c = px_toml_at(t, c)->next) {
        px_near_try(&near, px_toml_key(t, c));
        if ((there = same_name(px_toml_key(t, c), w->how->group)))
            found = px_toml_key(t, c);
    }
    if (!there && !w->how->adding) {
        (void)px_fail(w->e, PX_E_VALUE, 0, "'%.200s' has no group '%.100s'", w->shown, w->how->group);
        return near.found ? px_fix(w->e, "Write %s.", near.found)
                          : px_fix(w->e, "Leave --group out, or name a group of the file.");
    }
    if (px_fmt(w->group, sizeof w->group, "%s", found) < 0)
        return px_fail(w->e, PX_E_VALUE, ENAMETOOLONG, "the name of the group is too long");
    w->path[0] = "dependency-groups";
    w->path[1] = w->group;
    return 0;
}

static int choose_list(struct edit *w)
{
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    static const char *const project[] = {"project", "dependencies"};
    int r = px_toml_parse(px_buf_text(&w->text), w->text.len, &t, &fault);
    if (r < 0)
        return px_fail(w->e, PX_E_MANIFEST, r, "cannot read '%.200s'", w->shown);
    w->path[0] = project[0];
    w->path[1] = project[1];
    if (w->how->group) {
        r = choose_group(w, t);
    } else if (!px_toml_find(t, project, 1)) {
        (void)px_fail(w->e, PX_E_MANIFEST, 0, "'%.200s' has no [project]", w->shown);
        r = px_fix(w->e, "Write [project] with a name in it, or run `px init`.");
    }
    px_toml_free(t);
    return r;
}

/* ---- one item ---- */

struct found {
    uint32_t count, index, matches;             /* items; the first that is of the name; how many are */
    bool same;                  /* that item equals the text */
    char nearest[NAME_BYTES];   /* the name that may have been meant */
};

static void find(const struct px_toml *t, const struct edit *w, const char *text, const char *name,
                 struct px_near *near, struct found *ret_found)
{
    uint32_t array = px_toml_find(t, w->path, 2), at = 0;
    for (uint32_t c = array ? px_toml_at(t, array)->first : PX_TOML_NONE; c; c = px_toml_at(t, c)->next, at++) {
        const char *item = px_toml_text(t, c);
        struct px_requirement q;
        char other[NAME_BYTES];
        if (!item || px_marker_requirement_parse(item, &q) < 0 ||
            px_marker_package_name(q.name, q.name_length, other, sizeof other) < 0)
            continue;
        if (!px_equal(other, name)) {
            px_near_try(near, other);
            if (near->found == other) {
                memcpy(ret_found->nearest, other, sizeof other);
                near->found = ret_found->nearest;
            }
            continue;
        }
        if (ret_found->matches++ == 0) {
            ret_found->index = at;
            ret_found->same = px_equal(item, text);
        }
    }
    ret_found->count = at;
}

static int not_there(struct edit *w, const char *text, const struct px_near *near)
{
    (void)px_fail(w->e, PX_E_VALUE, 0, "'%.100s' is not among the %s of '%.200s'", text, where(w), w->shown);
    (void)px_detail(w->e, "reason", "not_a_dependency");
    (void)px_why(w->e, "What another package needs goes with that one.");
    return near->found ? px_fix(w->e, "Write %s.", near->found)
                       : px_fix(w->e, "Name a package of that list; --group says which list.");
}

/* 0: changed, 1: nothing to do. */
static int put(struct edit *w, const struct px_toml *t, const char *text, const char *name, struct px_buf *out)
{
    struct px_near near = {.written = name};
    struct found found = {0};
    find(t, w, text, name, &near, &found);
    if (!w->how->adding && found.matches) {
        w->taken++;
        return px_toml_item(t, w->path, 2, found.index, NULL, out);
    }
    if (!w->how->adding)
        return w->taken ? 1 : not_there(w, text, &near);
    if (found.matches > 1) {
        (void)px_fail(w->e, PX_E_VALUE, 0, "'%.200s' has %u lines for %s", w->shown, found.matches, name);
        (void)px_detail(w->e, "reason", "several_lines");
        (void)px_why(w->e, "Which of them is to change cannot be told.");
        return px_fix(w->e, "Change the file yourself, then run `px sync`.");
    }
    return found.same ? 1 : px_toml_item(t, w->path, 2, found.matches ? found.index : found.count, text, out);
}

/* The same, on the text as it is. */
static int step(struct edit *w, const char *text, const char *name)
{
    struct px_buf out = PX_BUF(PX_TOML_BYTES_MAX);
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    int r = px_toml_parse(px_buf_text(&w->text), w->text.len, &t, &fault);
    if (r == 0)
        r = put(w, t, text, name, &out);
    px_toml_free(t);
    if (r == 0) {
        px_buf_done(&w->text);
        w->text = out;
        return 0;
    }
    px_buf_done(&out);
    if (r < 0 && !w->e->code)
        return px_fail(w->e, PX_E_MANIFEST, r, "cannot change the %s of '%.200s'", where(w), w->shown);
    return r < 0 ? -1 : 1;
}

static int check_text(const struct edit *w, const char *text, char *name, size_t size)
{
    struct px_requirement q;
    if (px_marker_requirement_parse(text, &q) == 0 && px_marker_package_name(q.name, q.name_length, name, size) == 0 &&
        (w->how->adding || q.name_length == strlen(text)))
        return 0;
    if (w->how->adding) {
        (void)px_fail(w->e, PX_E_VALUE, 0, "'%.100s' is not a requirement", text);
        return px_fix(w->e, "Write NAME, NAME>=1.2 or 'NAME[EXTRA]>=1.2 ; MARKER'.");
    }
    (void)px_fail(w->e, PX_E_VALUE, 0, "'%.100s' is not a package's name", text);
    return px_fix(w->e, "Write its name alone.");
}

/* A name that is removed may have several lines. */
static int edit_one(struct edit *w, const char *text)
{
    char name[NAME_BYTES];
    if (check_text(w, text, name, sizeof name) < 0)
        return -1;
    w->taken = 0;
    int r = step(w, text, name);
    bool changed = r == 0;
    while (r == 0 && !w->how->adding)
        r = step(w, text, name);
    if (r < 0)
        return -1;
    return changed && json_array_append_new(w->changed, json_string(text)) < 0 ? px_no_memory(w->e) : 0;
}

/* ---- the whole ---- */

struct before {
    struct px_buf manifest, lock;
    bool has_lock;
};

static int keep_before(const struct edit *w, struct before *b)
{
    const char *lock = px_locate_lock_file(&w->p->site);
    int r = px_buf_read_file(w->dir, PX_MANIFEST_FILE, PX_TOML_BYTES_MAX, &b->manifest);
    int l = px_buf_read_file(w->p->site.dir, lock, PX_TOML_BYTES_MAX, &b->lock);
    b->has_lock = l == 0;
    if (r == 0 && l >= 0)
        return 0;
    return px_fail(w->e, PX_E_IO, r < 0 ? r : l < 0 ? l : -ENOENT, "cannot read '%.200s' or %s", w->shown, lock);
}

/* If restoring fails, that error replaces the first one. */
static int put_back(const struct edit *w, const struct before *b)
{
    const char *lock = px_locate_lock_file(&w->p->site);
    const struct px_both both = {.root = w->p->site.dir, .dir = w->dir, .lock_file = lock, .manifest = &b->manifest,
                                 .lock = &b->lock};
    bool ignored;
    long r = b->has_lock ? px_both_write(&both, &ignored)
                         : px_layout_replace_file(w->dir, PX_MANIFEST_FILE, b->manifest.data, b->manifest.len);
    if (r == 0 && !b->has_lock)
        r = px_sys(SYS_unlinkat, w->p->site.dir, lock, 0);
    if (r == 0 || r == -ENOENT)
        return -1;
    return px_fail(w->e, PX_E_IO, (int)r, "it failed, and '%.200s' or %s cannot be put back", w->shown, lock);
}

/* Uses the new manifest: its requirements differ. */
static int take_manifest(const struct edit *w, struct px_project *again)
{
    struct px_manifest *m = &again->site.manifest, parsed;
    for (size_t i = 0; i < w->p->site.member_count && i < again->site.member_count; i++)
        if (w->p->site.members[i].here)
            m = &again->site.members[i].manifest;
    if (px_manifest_parse(px_buf_text(&w->text), w->text.len, w->shown, &parsed, w->e) < 0)
        return -1;
    px_manifest_done(m);
    *m = parsed;
    return 0;
}

static int sync_anew(struct edit *w, struct px_manifest_edit *edit, json_t **ret_details, const char **ret_message)
{
    struct px_project *again = NULL;
    const struct px_sync how = {0};
    px_auto_free char *json = NULL;
    if (px_project_open(w->p->site.root, w->p->home, &again, w->e) < 0)
        return -1;
    again->progress = w->p->progress;
    again->edit = edit;
    int r = take_manifest(w, again) < 0 ? -1 : px_project_sync(again, &how, &json, w->e);
    free(w->p->said);
    w->p->said = again->said;
    again->said = NULL;
    px_project_close(again);
    json_t *answer = r < 0 ? NULL : json_loads(json, 0, NULL);
    if (r == 0 && !answer)
        r = px_no_memory(w->e);
    *ret_details = answer;
    const char *message = px_document_text(answer, "message");
    *ret_message = message && px_starts_with(message, "px sync: ") ? message + strlen("px sync: ") : "";
    return r;
}

static int settle(const struct edit *w)
{
    struct px_snapshot look;
    if (px_project_frozen(false))
        return 0;               /* the sync refuses it */
    if (px_snapshot_at(w->p, &look, w->e) < 0)
        return -1;
    int r = px_snapshot_settle(w->p, &look, w->e);
    px_snapshot_done(&look);
    return r;
}

static int write_and_sync(struct edit *w, json_t **ret_sync, const char **ret_message)
{
    struct before before = {.manifest = PX_BUF(PX_TOML_BYTES_MAX), .lock = PX_BUF(PX_TOML_BYTES_MAX)};
    struct px_manifest_edit edit = {.dir = w->dir, .text = &w->text};
    int r = settle(w) < 0 ? -1 : keep_before(w, &before);
    if (r == 0 && sync_anew(w, &edit, ret_sync, ret_message) < 0)
        r = edit.written ? put_back(w, &before) : -1;
    if (r == 0 && !edit.written) {              /* the lock also fits this manifest: the group is not active */
        r = px_layout_replace_file(w->dir, PX_MANIFEST_FILE, w->text.data, w->text.len);
        r = r < 0 ? px_fail(w->e, PX_E_IO, r, "cannot write '%.200s'", w->shown) : 0;
    }
    px_buf_done(&before.manifest);
    px_buf_done(&before.lock);
    return r;
}

static int answer(struct edit *w, json_t *sync, const char *synced, char **ret_json)
{
    px_auto_buf struct px_buf message = PX_BUF(1 << 16);
    const json_t *name;
    size_t i, count = json_array_size(w->changed);
    px_buf_puts(&message, count == 0 ? "nothing to change" : w->how->adding ? "added " : "removed ");
    json_array_foreach(w->changed, i, name)
        px_buf_printf(&message, "%s%.200s", i ? ", " : "", json_string_value(name));
    if (count)
        px_buf_printf(&message, " %s %s; %s", w->how->adding ? "to" : "from", w->shown, synced);
    json_t *details = json_pack("{ss ss sb ss* sO sO*}", "root", w->p->site.root, "manifest", w->shown, "changed",
                                (int)(count > 0), "group", w->how->group ? w->group : NULL, "requirements", w->changed,
                                "sync", json_object_get(sync, "details"));
    return px_project_answer(w->how->adding ? "add" : "remove", "ok", px_buf_text(&message), details, false, ret_json, w->e);
}

int px_project_depend(struct px_project *p, const struct px_depend *how, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct edit w = {.p = p,
                     .how = how,
                     .dir = -EBADF,
                     .text = PX_BUF(PX_TOML_BYTES_MAX),
                     .changed = json_array(),
                     .e = e};
    px_auto(px_document) json_t *sync = NULL;
    const char *synced = "";
    int r = open_manifest(&w) < 0 || choose_list(&w) < 0 ? -1 : 0;
    for (size_t i = 0; r == 0 && how->requirements[i]; i++)
        r = edit_one(&w, how->requirements[i]);
    if (r == 0 && json_array_size(w.changed))
        r = write_and_sync(&w, &sync, &synced);
    if (r == 0)
        r = answer(&w, sync, synced, ret_json);
    json_decref(w.changed);
    px_buf_done(&w.text);
    (void)px_fd_close(w.dir);
    return r < 0 ? -1 : 0;
}
