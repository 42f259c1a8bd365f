/* What `px sandbox add` and `remove` write: lines of [tool.px.sandbox.capabilities], in place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "distro/capability.h"
#include "env/env.h"
#include "env/infer.h"
#include "project/env.h"

struct edit {
    struct px_project *p;
    struct px_buf text;         /* of the manifest, as it is by now */
    json_t *changed, *refused;  /* names: those whose line changed, and those of them set to false */
    struct px_err *e;
};

/* ---- one line ---- */

/* value NULL removes the line. 0: changed, 1: nothing to do. */
static int put(struct edit *w, const char *name, const char *value)
{
    const char *const path[] = {"tool", "px", "sandbox", "capabilities", name};
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    struct px_buf out = PX_BUF(PX_TOML_BYTES_MAX);
    int r = px_toml_parse(px_buf_text(&w->text), w->text.len, &t, &fault);
    if (r >= 0)
        r = value ? px_toml_set(t, path, PX_COUNT_OF(path), value, &out)
                  : px_toml_remove(t, path, PX_COUNT_OF(path), &out);
    px_toml_free(t);
    if (r >= 0 && out.err < 0)
        r = out.err;
    if (r != 0) {
        px_buf_done(&out);
        return r < 0 ? px_fail(w->e, PX_E_MANIFEST, r, "cannot change '%s' in [tool.px.sandbox.capabilities]", name) : 1;
    }
    px_buf_done(&w->text);
    w->text = out;
    return 0;
}

static int note(json_t *list, const char *name, struct px_err *e)
{
    return json_array_append_new(list, json_string(name)) < 0 ? px_no_memory(e) : 0;
}

static bool is_wish(const struct px_manifest *m, const char *name)
{
    for (size_t i = 0; i < m->wish_count; i++)
        if (px_equal(m->wishes[i].name, name))
            return true;
    return false;
}

/* The manifest already has `false`. */
static bool is_refused(const struct px_manifest *m, const char *name)
{
    for (size_t i = 0; i < m->wish_count; i++)
        if (px_equal(m->wishes[i].name, name))
            return !m->wishes[i].enabled;
    return false;
}

/* ---- add ---- */

/* Checks that it is known and available on the base. */
static int check_names(const struct px_project *p, const char *const *names, struct px_err *e)
{
    struct px_capability_set set;
    const struct px_base_row *row = px_bases_find(px_project_base_said(p));
    return px_capability_set_make(names, &set, e) < 0 || (row && px_capability_set_check(&set, row, e) < 0) ? -1 : 0;
}

static int add(struct edit *w, const char *const *names)
{
    if (check_names(w->p, names, w->e) < 0)
        return -1;
    for (; *names; names++) {
        int r = put(w, *names, "true");
        if (r < 0 || (r == 0 && note(w->changed, *names, w->e) < 0))
            return -1;
    }
    return 0;
}

/* ---- remove ---- */

/* 1: the lock or the packages need it, whatever the manifest says. Unreadable ones need nothing. */
static int is_inferred(struct edit *w, struct px_snapshot *look, const struct px_env *env, const char *name)
{
    struct px_manifest m;
    struct px_inferred inferred;
    struct px_err ignored = {0};
    const struct px_lock none = {0};
    int found = 0;
    if (px_manifest_parse(px_buf_text(&w->text), w->text.len, PX_MANIFEST_FILE, &m, w->e) < 0)
        return -1;
    if (px_env_infer(&m, look->lock_read ? &look->pins : &none, px_project_python(w->p), env, &inferred, &ignored) == 0) {
        for (size_t i = 0; i < inferred.effective_count; i++)
            found |= px_equal(inferred.effective[i], name);
        px_infer_done(&inferred);
    }
    px_manifest_done(&m);
    return found;
}

/* Removing the line is not enough if the lock needs the capability: then the manifest gets `false`. */
static int remove_one(struct edit *w, struct px_snapshot *look, const struct px_env *env, const char *name)
{
    bool said = is_wish(&w->p->site.manifest, name);
    const char *const names[] = {name, NULL};
    if (!said && check_names(w->p, names, w->e) < 0)
        return -1;
    bool gone = false;
    if (said && px_capability_find(name) && is_refused(&w->p->site.manifest, name))
        return 0;
    if (said) {
        if (put(w, name, NULL) < 0)
            return -1;
        gone = true;
    }
    int r = px_capability_find(name) ? is_inferred(w, look, env, name) : 0;
    if (r == 1) {
        r = put(w, name, "false") < 0 || note(w->refused, name, w->e) < 0 ? -1 : 0;
        gone = true;
    }
    return r < 0 ? -1 : gone ? note(w->changed, name, w->e) : 0;
}

static int take_away(struct edit *w, const char *const *names)
{
    struct px_snapshot look;
    struct px_env env = {0};
    struct px_err ignored = {0};
    px_project_base_look(w->p);
    int r = px_snapshot_at(w->p, &look, w->e);
    if (r < 0)
        return -1;
    (void)px_project_env_box_recall(w->p, &look, &env, &ignored);
    for (; r >= 0 && *names; names++)
        r = remove_one(w, &look, env.runtime ? &env : NULL, *names);
    px_env_done(&env);
    px_snapshot_done(&look);
    return r < 0 ? -1 : 0;
}

/* ---- the whole ---- */

static int write_back(struct edit *w)
{
    struct px_manifest m;
    if (px_manifest_parse(px_buf_text(&w->text), w->text.len, PX_MANIFEST_FILE, &m, w->e) < 0)
        return -1;
    px_manifest_done(&m);
    int r = px_layout_replace_file(w->p->site.dir, PX_MANIFEST_FILE, w->text.data, w->text.len);
    return r < 0 ? px_fail(w->e, PX_E_IO, r, "cannot write '%.200s/" PX_MANIFEST_FILE "'", w->p->site.root) : 0;
}

static bool has(const json_t *names, const json_t *name)
{
    const json_t *other;
    size_t i;
    json_array_foreach(names, i, other) {
        if (json_equal(other, name))
            return true;
    }
    return false;
}

/* before NAME, NAME after; nothing if all are in `but`. */
static void put_names(struct px_buf *out, const char *before, const json_t *names, const json_t *but, const char *after)
{
    const json_t *name;
    size_t i, count = 0;
    json_array_foreach(names, i, name) {
        if (!has(but, name))
            px_buf_printf(out, "%s%.64s", count++ ? ", " : before, json_string_value(name));
    }
    px_buf_puts(out, count ? after : "");
}

/* Takes the lists. */
static int answer(struct edit *w, bool adding, char **ret_json)
{
    px_auto_buf struct px_buf message = PX_BUF(1 << 15);
    bool changed = json_array_size(w->changed) > 0;
    put_names(&message, adding ? "added " : "removed ", w->changed, w->refused,
              adding ? " to " PX_MANIFEST_FILE : " from " PX_MANIFEST_FILE);
    put_names(&message, message.len ? "; set " : "set ", w->refused, NULL,
              " to false in " PX_MANIFEST_FILE ": the project's packages ask for it");
    px_buf_puts(&message, changed ? "" : "nothing to change");
    json_t *details = json_pack("{sssssbsOsO}", "root", w->p->site.root, "manifest", PX_MANIFEST_FILE, "changed",
                                (int)changed, "capabilities", w->changed, "refused", w->refused);
    return px_project_answer(adding ? "sandbox add" : "sandbox remove", "ok", px_buf_text(&message), details, false, ret_json, w->e);
}

int px_project_sandbox_edit(struct px_project *p, bool adding, const char *const *names, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct edit w = {
        .p = p, .text = PX_BUF(PX_TOML_BYTES_MAX), .changed = json_array(), .refused = json_array(), .e = e};
    int r = px_buf_read_file(p->site.dir, PX_MANIFEST_FILE, PX_TOML_BYTES_MAX, &w.text);
    if (r != 0)
        r = px_fail(e, PX_E_MANIFEST, r < 0 ? r : -ENOENT, "cannot read '%.200s/" PX_MANIFEST_FILE "'", p->site.root);
    else
        r = adding ? add(&w, names) : take_away(&w, names);
    if (r >= 0 && json_array_size(w.changed))
        r = write_back(&w);
    if (r >= 0)
        r = answer(&w, adding, ret_json);
    json_decref(w.changed);
    json_decref(w.refused);
    px_buf_done(&w.text);
    return r < 0 ? -1 : 0;
}
