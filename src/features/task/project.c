/* task/project.c - the environment of a project for the actions of tasks, as `px sync` has made it: its trees
 * of the store, read-only at the paths that they have outside, with PATH and the variables that `px run` would set.
 *
 * The project's lock and record decide which environment; no file of a workspace does, because actions can write
 * there. Nothing is resolved, fetched, built or run for it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <px/sandbox.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "env/base_python.h"
#include "policy/policy.h"
#include "project/env.h"
#include "run/run.h"
#include "start/buildbox.h"
#include "task/task.h"

/* Each is a bind mount; leaves room for those of the configuration and the environment's own directory. */
enum { PACKAGES_MAX = PX_LIST_MAX - 2 * PX_TASK_LIST_MAX - 1 };

struct shown {
    char *source, *target;
};

struct px_task_project {
    pthread_mutex_t lock;       /* protects the members below; they do not change once it is ready */
    bool ready;
    char dir[PATH_MAX];         /* absolute, without links */
    char top[PATH_MAX];         /* the directory it must be in, where the configuration was found; "": anywhere */
    struct px_project *p;
    struct px_env env;
    char bin[PATH_MAX];
    struct shown *shown;
    size_t count;
};

/* ---- where it is ---- */

int px_task_project_open(struct px_tasks *tasks, struct px_err *e)
{
    if (!tasks->project)
        return 0;
    struct px_task_project *t = tasks->environment = calloc(1, sizeof *t);
    if (!t)
        return px_no_memory(e);
    (void)pthread_mutex_init(&t->lock, NULL);
    if (realpath(tasks->project, t->dir) && (!tasks->found || realpath(".", t->top)))
        return 0;
    px_fail(e, PX_E_TASK_CONFIG, errno, "'project' is '%.200s', which cannot be found", tasks->project);
    return px_fix(e, "Name the directory of a project, from the working directory on or by its whole path.");
}

/* Drops what was found; the next call looks again. */
static void forget(struct px_task_project *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->shown[i].source);
        free(t->shown[i].target);
    }
    free(t->shown);
    px_env_done(&t->env);
    px_project_close(t->p);
    t->shown = NULL;
    t->count = 0;
    t->p = NULL;
}

void px_task_project_done(struct px_tasks *tasks)
{
    struct px_task_project *t = tasks->environment;
    if (!t)
        return;
    forget(t);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
    tasks->environment = NULL;
}

/* The project may be above the given directory: it must be below the working directory, too, and not in a workspace,
 * which actions write. */
static int check_place(const struct px_tasks *tasks, const struct px_task_project *t, struct px_err *e)
{
    const char *root = px_project_root(t->p);
    if (!*t->top || (px_path_within(root, t->top) && !px_path_within(root, tasks->root.path)))
        return 0;
    px_fail(e, PX_E_FOUND_LOOSENS, 0, "'project: %.200s' of a configuration that px found is the project '%.200s'",
            tasks->project, root);
    (void)px_detail(e, "field", "project");
    (void)px_why(e, "%s", px_path_within(root, t->top) ? "It is a workspace, where actions write."
                                                       : "It does not lie below the working directory.");
    return px_fix(e, "Name a project below the working directory.\n"
                     "Or write the configuration to a file of your own, and name that with --config.");
}

/* ---- which environment ---- */

static int not_ready(const struct px_task_project *t, const char *command, struct px_err *e)
{
    return px_fix(e, "Run `%s` in '%.200s'. An action makes no environment by itself.", command, px_project_root(t->p));
}

/* Checks that the lock fits the manifest, and with `own` that the host's environment fits the lock. */
static int check_state(struct px_task_project *t, const struct px_snapshot *look, bool own, struct px_err *e)
{
    enum px_act act;
    if (!own && look->state != PX_STATE_NEEDS_LOCK && look->state != PX_STATE_UNINITIALIZED)
        return 0;
    return px_snapshot_decide(t->p, look, PX_ASKER_RUN, true, false, &act, e) < 0 ? not_ready(t, "px sync", e) : 0;
}

/* 1: the base has exactly that Python, at that path; 0: not. */
static int base_has(struct px_task_project *t, const char *base, const struct px_python *own, struct px_err *e)
{
    struct px_sandbox *s = NULL;
    struct px_root_lease *lease = NULL;
    px_auto_free char *dir = NULL;
    px_auto_free struct px_base_python *found = calloc(1, sizeof *found);
    if (!found)
        return px_no_memory(e);
    if (px_project_sandbox(t->p, &s, e) < 0 || px_sandbox_root(s, base, NULL, &dir, &lease, e) < 0)
        return -1;
    px_auto_fd int root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = root < 0 ? -errno : px_env_base_python_at(root, base, own->program, own->minor, found);
    px_root_lease_free(lease);
    if (r < 0)
        return px_fail(e, PX_E_BASE, r, "cannot look for the Python of the base '%.100s'", base);
    return r == 0 && px_python_same(own, &found->python);
}

static int other_python(const struct px_task_project *t, const char *base, struct px_err *e)
{
    const struct px_python *own = px_project_own(t->p);
    px_fail(e, PX_E_BASE, 0, "the base '%.100s' does not have the Python that the environment of '%.200s' is for", base,
            px_project_root(t->p));
    (void)px_detail(e, "reason", "python_version");
    (void)px_why(e, "The environment is for %s of Python 3.%u and the C library %u.%u.", own->program, own->minor,
                 own->libc_major, own->libc_minor);
    return px_fix(e, "Leave 'base' out, or name a base that has it.\n"
                     "Or write base = \"%.100s\" in [tool.px.sandbox] of the project, and run `px sandbox build` there.",
                  base);
}

/* The environment for the project's own base with another Python, as in `px run --sandbox`. */
static int recall_boxed(struct px_task_project *t, const struct px_snapshot *look, const char *base, struct px_err *e)
{
    if (check_state(t, look, false, e) < 0)
        return -1;
    px_project_base_look(t->p);
    int r = px_project_env_box_recall(t->p, look, &t->env, e);
    if (r <= 0)
        return r;
    px_fail(e, PX_E_ENV, 0, "the project '%.200s' has no environment for its base '%.100s'", px_project_root(t->p),
            base);
    (void)px_why(e, "It was not made yet, or the lock was changed since.");
    (void)px_detail(e, "reason", "missing_env");
    return not_ready(t, "px sandbox build", e);
}

static int recall_own(struct px_task_project *t, const struct px_snapshot *look, struct px_err *e)
{
    if (check_state(t, look, true, e) < 0)
        return -1;
    int r = px_project_env_recall(t->p, look, &t->env, e);
    if (r <= 0)
        return r;
    px_fail(e, PX_E_ENV, 0, "the environment of the project '%.200s' has no record", px_project_root(t->p));
    (void)px_detail(e, "reason", "invalid_env");
    return not_ready(t, "px sync", e);
}

static int recall(struct px_task_project *t, const struct px_snapshot *look, const char *base, struct px_err *e)
{
    const struct px_python *own = px_project_own(t->p);
    int has = base ? base_has(t, base, own, e) : 1;
    if (has != 0)
        return has < 0 ? -1 : recall_own(t, look, e);
    return px_equal(base, px_project_base(t->p)) ? recall_boxed(t, look, base, e) : other_python(t, base, e);
}

/* ---- what a box needs of it ---- */

static int add(struct px_task_project *t, const char *source, const char *target, struct px_err *e)
{
    struct shown *s = &t->shown[t->count++];
    *s = (struct shown){strdup(source), strdup(target)};
    return s->source && s->target ? 0 : px_no_memory(e);
}

static int list_trees(struct px_task_project *t, struct px_err *e)
{
    char path[PATH_MAX];
    struct px_store *store = t->p->sandbox->store;
    if (t->env.count > PACKAGES_MAX) {
        px_fail(e, PX_E_LIMIT, 0, "the environment of '%.200s' has %zu packages", px_project_root(t->p), t->env.count);
        (void)px_why(e, "The box of an action shows at most %d.", PACKAGES_MAX);
        return px_fix(e, "Name a project that has only those which the actions need.");
    }
    if (!(t->shown = calloc(t->env.count + 1, sizeof *t->shown)))
        return px_no_memory(e);
    for (size_t i = 0; i < t->env.count; i++) {
        const struct px_env_package *p = &t->env.packages[i];
        if (px_tree_path(store, *p->code.hex ? &p->code : &p->tree, path, sizeof path, e) < 0 || add(t, path, path, e) < 0)
            return -1;
    }
    return px_tree_path(store, &t->env.tree, path, sizeof path, e) < 0 ? -1 : add(t, path, t->env.path, e);
}

/* A box shows only /usr of the host and what the configuration names. */
static int check_visible(const struct px_tasks *tasks, const struct px_task_project *t, struct px_err *e)
{
    const char *program = t->env.runtime->program;
    bool here = access(program, X_OK) == 0, shown = !tasks->config.jail || px_path_within(program, "/usr");
    for (size_t i = 0; tasks->binds[i] && !shown; i++)
        shown = px_path_within(program, tasks->binds[i]);
    if (here && shown)
        return 0;
    px_fail(e, PX_E_ENV, 0, "the environment of '%.200s' is for %.200s, which %s", px_project_root(t->p), program,
            here ? "a box does not show" : "this machine does not have");
    (void)px_detail(e, "reason", "runtime_missing");
    return px_fix(e, "%s\nOr name a base that has it.",
                  here ? "Add the directory of that Python to 'binds' of a configuration that you name with --config."
                       : "Install that Python.");
}

static int load(const struct px_tasks *tasks, struct px_task_project *t, struct px_err *e)
{
    struct px_snapshot look;
    const char *base = px_equal(tasks->base, "host") ? NULL : tasks->base;
    if (px_project_open(t->dir, NULL, &t->p, e) < 0 || check_place(tasks, t, e) < 0 || px_snapshot_at(t->p, &look, e) < 0)
        return -1;
    int r = recall(t, &look, base, e);
    px_snapshot_done(&look);
    if (r < 0 || (!base && check_visible(tasks, t, e) < 0) || px_env_hold(t->p->sandbox, &t->env, e) < 0 ||
        list_trees(t, e) < 0)
        return -1;
    r = px_fmt(t->bin, sizeof t->bin, "%s/bin", t->env.path);
    if (r < 0)
        return px_fail(e, PX_E_LIMIT, r, "the path of the environment is too long");
    if (!strchr(t->bin, ':'))
        return 0;
    px_fail(e, PX_E_ENV, 0, "PATH cannot name '%.200s': there is a colon in it", t->bin);
    return px_fix(e, "Let PX_HOME be a directory without one, and run `px sync` again.");
}

int px_task_project_need(const struct px_tasks *tasks, struct px_err *e)
{
    struct px_task_project *t = tasks->environment;
    if (!t)
        return 0;
    (void)pthread_mutex_lock(&t->lock);
    int r = t->ready ? 0 : load(tasks, t, e);
    t->ready = r == 0;
    if (r < 0)
        forget(t);
    (void)pthread_mutex_unlock(&t->lock);
    return r;
}

/* ---- giving it ---- */

const char *px_task_project_bin(const struct px_tasks *tasks)
{
    return tasks->environment ? tasks->environment->bin : NULL;
}

/* Paths in the host's /usr are already visible. */
static int show(const struct px_tasks *tasks, struct px_policy *policy, struct px_err *e)
{
    const struct px_task_project *t = tasks->environment;
    struct px_buildbox shown = {.policy = policy};
    for (size_t i = 0; i < t->count; i++)
        if ((tasks->base || !px_path_within(t->shown[i].target, "/usr")) &&
            px_buildbox_show(&shown, t->shown[i].source, t->shown[i].target, false, e) < 0)
            return -1;
    return 0;
}

int px_task_project_give(const struct px_tasks *tasks, struct px_policy *policy, const char *root, struct px_err *e)
{
    const struct px_task_project *t = tasks->environment;
    char python[PATH_MAX];
    const char *name;
    json_t *value;
    if (!t)
        return 0;
    if (px_fmt(python, sizeof python, "%s/python3.%u", t->bin, t->env.runtime->minor) < 0)
        return px_fail(e, PX_E_LIMIT, ENAMETOOLONG, "the path of the environment is too long");
    if (tasks->config.jail && show(tasks, policy, e) < 0)
        return -1;
    json_object_foreach(t->env.variables, name, value) {
        if (px_run_give(policy, name, json_string_value(value), e) < 0)
            return -1;
    }
    const char *const rows[][2] = {{"VIRTUAL_ENV", t->env.path},
                                   {"PX_PROJECT_ROOT", root},
                                   {"PX_PYTHON", python},
                                   {"PYTHONDONTWRITEBYTECODE", "1"}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_run_give(policy, rows[i][0], rows[i][1], e) < 0)
            return -1;
    return 0;
}
