/* project/snapshot.c - opens a project and takes a snapshot of it. */
#include "project/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "env/env.h"
#include "layout/both.h"
#include "store/document.h"

enum { LOCK_MAX = PX_TOML_BYTES_MAX };

/* ---- opening ---- */

int px_project_open(const char *dir, const char *home, struct px_project **ret_project, struct px_err *e)
{
    PX_ERR(e);
    char path[PATH_MAX];
    if (!realpath(dir ? dir : ".", path))
        return px_fail(e, PX_E_IO, errno, "cannot find '%.200s'", dir ? dir : ".");
    struct px_project *p = calloc(1, sizeof *p);
    if (!p || (home && !(p->home = strdup(home)))) {
        free(p);
        return px_no_memory(e);
    }
    p->site.dir = -EBADF;
    if (px_locate_find(path, &p->site, e) < 0) {
        px_project_close(p);
        return -1;
    }
    *ret_project = p;
    return 0;
}

void px_project_close(struct px_project *project)
{
    if (!project)
        return;
    px_locate_done(&project->site);
    px_sandbox_close(project->sandbox);
    free(project->home);
    free(project->base);
    free(project->python);
    free(project->here);
    free(project->said);
    free(project);
}

void px_project_progress(struct px_project *project,
                         void (*tell)(void *user, const char *what, uint64_t done, uint64_t total), void *user)
{
    project->progress = (struct px_progress_to){.tell = tell, .user = user};
}

const char *px_project_said(const struct px_project *project)
{
    return project ? project->said : NULL;
}

const char *px_project_root(const struct px_project *project)
{
    return project->site.root;
}

int px_project_sandbox(struct px_project *p, struct px_sandbox **ret_sandbox, struct px_err *e)
{
    if (!p->sandbox && px_sandbox_open(p->home, &p->sandbox, e) < 0)
        return -1;
    px_sandbox_progress(p->sandbox, p->progress.tell, p->progress.user);
    *ret_sandbox = p->sandbox;
    return 0;
}

/* ---- the lock ---- */

static const char *lock_name(const struct px_located *site, size_t format)
{
    return format == PX_PINS_PX ? px_locate_lock_file(site) : px_lock_files[format];
}

/* 0: read; 1: there is none of this kind; -1: it cannot be used. */
static int read_lock(const struct px_located *site, enum px_pins_format format, struct px_lock *ret_pins, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(LOCK_MAX);
    const char *name = lock_name(site, format);
    int r = px_buf_read_file(site->dir, name, LOCK_MAX, &text);
    if (r > 0)
        return 1;
    if (r < 0)
        return px_fail(e, PX_E_LOCK_FORMAT, r, "cannot read '%s'", name);
    if (px_lock_parse(format, px_buf_text(&text), text.len, name, ret_pins, e) == 0)
        return 0;
    /* An unpinned requirements.txt is common; it is not a lock, and not an error. */
    return format == PX_PINS_REQUIREMENTS ? 1 : -1;
}

int px_snapshot_compare(const struct px_located *site, const struct px_lock *pins, const struct px_target *target,
                    struct px_drift *ret_drift, struct px_err *e)
{
    struct px_names requirements;
    if (px_locate_requirements(site, &requirements, e) < 0)
        return -1;
    const struct px_drift_asked asked = {
        .project = site->workspace ? site->manifest.workspace_name : site->manifest.name,
        .python = px_locate_python(site),
        .requirements = &requirements,
        .env = &target->env,
    };
    int r = px_drift_find(&asked, pins, ret_drift, e);
    free(requirements.items);
    return r;
}

/* The next.lock of a px that was killed between writing manifest and lock; 1: none, or for another manifest. */
static int read_next(const struct px_located *site, const struct px_snapshot *l, struct px_lock *ret_pins)
{
    px_auto_buf struct px_buf text = PX_BUF(LOCK_MAX);
    struct px_err ignored = {0};
    struct px_lock pins;
    if (px_both_left(site->dir, LOCK_MAX, &text) != 0 ||
        px_lock_parse(PX_PINS_PX, px_buf_text(&text), text.len, px_locate_lock_file(site), &pins, &ignored) < 0)
        return 1;
    if (px_equal(pins.fingerprint, l->fingerprint.hex)) {
        *ret_pins = pins;
        return 0;
    }
    px_lock_done(&pins);
    return 1;
}

/* px.lock or next.lock. While a manifest is edited, next.lock does not belong to it. */
static int read_own_lock(const struct px_project *p, struct px_snapshot *l)
{
    const struct px_located *site = &p->site;
    struct px_lock next;
    int r = read_lock(site, PX_PINS_PX, &l->pins, &l->lock_error);
    if (p->edit || (r == 0 && px_equal(l->pins.fingerprint, l->fingerprint.hex)) || read_next(site, l, &next) != 0)
        return r;
    if (r == 0)
        px_lock_done(&l->pins);
    l->lock_error = (struct px_err){0};
    l->pins = next;
    l->lock_next = true;
    return 0;
}

/* The first existing format. A requirements.txt that is incomplete is not a lock. */
static int find_lock(const struct px_project *p, struct px_snapshot *l, struct px_err *e)
{
    const struct px_located *site = &p->site;
    l->lock_file = px_locate_lock_file(site);
    for (size_t f = 0; f < PX_PINS_FORMATS; f++) {
        int r = f == PX_PINS_PX ? read_own_lock(p, l)
                                : read_lock(site, (enum px_pins_format)f, &l->pins, &l->lock_error);
        if (r > 0) {
            l->lock_error = (struct px_err){0};
            continue;
        }
        if (r == 0 && px_snapshot_compare(site, &l->pins, &l->target, &l->drift, e) < 0)
            return -1;
        if (r == 0 && f == PX_PINS_REQUIREMENTS && l->drift.count > 0) {
            px_drift_done(&l->drift);
            px_lock_done(&l->pins);
            break;
        }
        l->lock_read = r == 0;
        l->flags.lock_exists = true;
        l->lock_file = lock_name(site, f);
        l->lock_foreign = f != PX_PINS_PX;
        break;
    }
    return 0;
}

static int look_at_lock(const struct px_project *p, struct px_snapshot *l, struct px_err *e)
{
    const struct px_located *site = &p->site;
    struct px_names requirements;
    if (px_locate_fingerprint(site, &l->fingerprint, e) < 0 || px_locate_requirements(site, &requirements, e) < 0)
        return -1;
    l->flags.deps_empty = requirements.count == 0;
    free(requirements.items);
    if (find_lock(p, l, e) < 0)
        return -1;
    /* Locks of other tools have no fingerprint: only their content can be compared. */
    l->flags.manifest_clean = l->lock_read && (l->lock_foreign || px_equal(l->pins.fingerprint, l->fingerprint.hex));
    l->flags.lock_issue = l->flags.lock_exists && (!l->lock_read || l->drift.count > 0);
    return 0;
}

/* ---- the environment ---- */

static bool is_directory(const char *path)
{
    struct stat st;
    return path && *path == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool same_minor(const char *version, const char *minor)
{
    size_t n = strlen(minor);
    return version && px_starts_with(version, minor) && (version[n] == '\0' || version[n] == '.');
}

/* Whether its record, its directory and all that they need are in the store, the project's own packages are current,
 * and source archives would be built the same way now. */
static const char *judge_store(struct px_project *p, const struct px_snapshot *l)
{
    const struct px_env_ask ask = {.manifest = &p->site.manifest, .pins = &l->pins, .project = l->own.facts,
                                   .python = l->target.runtime};
    struct px_sandbox *s = NULL;
    struct px_err ignored = {0};
    int r = l->env.profile_oid && px_project_sandbox(p, &s, &ignored) == 0
                ? px_env_check(s, l->env.profile_oid, &ask, p->by_image, &ignored)
                : 0;
    return r == 1 ? NULL : r == 2 ? "env_outdated" : r == 3 ? "project_changed" : "invalid_env";
}

static const char *judge_env(struct px_project *p, const struct px_snapshot *l)
{
    const struct px_made_env *env = &l->env;
    if (!is_directory(env->env_path) || !is_directory(env->site_packages))
        return "missing_env";
    if (!l->lock_read || !px_equal(env->lock_id, px_lock_id(&l->pins)))
        return "env_outdated";
    if (!same_minor(env->runtime_version, l->target.minor) || !px_equal(env->runtime_platform, l->target.platform) ||
        !px_equal(env->runtime_path, l->target.runtime->program) || px_locate_misses(&p->site, l->target.runtime->version))
        return "runtime_mismatch";
    return judge_store(p, l);
}

static void look_at_env(struct px_project *p, struct px_snapshot *l)
{
    const struct px_located *site = &p->site;
    struct px_err ignored = {0};
    int r = px_layout_state_file_read(site->dir, site->workspace, &l->env, &ignored);
    l->env_reason = r > 0 ? "missing_env" : r < 0 ? "invalid_state" : judge_env(p, l);
    l->flags.env_exists = r == 0 && is_directory(l->env.env_path);
    l->flags.env_clean = !l->env_reason;
}

/* ---- the whole ---- */

int px_snapshot_at(struct px_project *p, struct px_snapshot *ret_look, struct px_err *e)
{
    *ret_look = (struct px_snapshot){0};
    px_target_for(px_project_own(p), &ret_look->target);
    ret_look->target.env.extras = p->site.manifest.extras.items;
    ret_look->flags.manifest_exists = p->site.manifest_exists;
    ret_look->lock_file = px_locate_lock_file(&p->site);
    if (px_own_find(&p->site, &ret_look->own, e) < 0)
        return -1;
    if (p->site.manifest_exists && look_at_lock(p, ret_look, e) < 0) {
        px_snapshot_done(ret_look);
        return -1;
    }
    look_at_env(p, ret_look);
    ret_look->state = px_layout_state_of(&ret_look->flags);
    return 0;
}

void px_snapshot_done(struct px_snapshot *look)
{
    px_lock_done(&look->pins);
    px_drift_done(&look->drift);
    px_own_done(&look->own);
    px_layout_state_file_env_done(&look->env);
}

int px_snapshot_settle(struct px_project *p, const struct px_snapshot *look, struct px_err *e)
{
    int r = px_both_settle(p->site.dir, px_locate_lock_file(&p->site), LOCK_MAX, look->lock_next);
    return r < 0 ? px_fail(e, PX_E_IO, r, "cannot write '%.200s/%s'", p->site.root, px_locate_lock_file(&p->site)) : 0;
}

const char *px_snapshot_first_issue(const struct px_snapshot *look)
{
    return look->lock_error.code ? look->lock_error.what : look->drift.count ? look->drift.items[0] : NULL;
}

int px_snapshot_decide(const struct px_project *p, const struct px_snapshot *look, enum px_asker asker, bool strict,
                   bool terminal, enum px_act *ret_act, struct px_err *e)
{
    const struct px_guard guard = {.asker = asker,
                                   .flags = look->flags,
                                   .strict = strict,
                                   .terminal = terminal,
                                   .env_reason = look->env_reason,
                                   .root = p->site.root,
                                   .first_issue = px_snapshot_first_issue(look)};
    if (look->lock_error.code && asker != PX_ASKER_PACK) { /* the unreadable line is more useful than the state */
        *e = look->lock_error;
        (void)px_detail(e, "reason", "lock_invalid");
        return px_detail(e, "state", px_layout_state_id(look->state));
    }
    return px_layout_decide(&guard, ret_act, e);
}

int px_project_answer(const char *command, const char *status, const char *message, json_t *details, bool spread,
              char **ret_json, struct px_err *e)
{
    px_auto(px_document) json_t *answer = json_object();
    char *text = NULL;
    if (answer && details && json_object_set_new(answer, "status", json_string(status)) == 0 &&
        json_object_set_new(answer, "message", json_sprintf("px %s: %s", command, message)) == 0 &&
        (!spread || json_object_update_missing(answer, details) == 0) &&
        json_object_set(answer, "details", details) == 0)
        text = json_dumps(answer, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII);
    json_decref(details);
    size_t length = text ? strlen(text) : 0;
    char *line = text ? malloc(length + 2) : NULL;
    if (line) {
        memcpy(line, text, length);
        memcpy(line + length, "\n", 2);
    }
    free(text);
    *ret_json = line;
    return line ? 0 : px_no_memory(e);
}
