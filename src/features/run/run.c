/* run/run.c - from a target to a program that can be started. */
#include "run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <px/sandbox.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "base/time.h"
#include "project/env.h"

enum { CAPTURE_DEFAULT = 1 << 20, CAPTURE_MAX = 1 << 28 };

static void free_words(char **words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(words[i]);
    free(words);
}

void px_launch_free(struct px_launch *l)
{
    if (!l)
        return;
    px_run_program_done(&l->program);
    free(l->target);
    free_words(l->argv, l->argc);
    free_words(l->env, l->env_count);
    px_policy_free(l->policy);
    if (l->loaded)
        px_env_done(&l->environment);
    if (l->looked)
        px_snapshot_done(&l->look);
    if (l->has_image)
        px_project_image_done(&l->image);
    px_buf_done(&l->out);
    px_buf_done(&l->err);
    free(l);
}

const struct px_env *px_run_env(const struct px_launch *l)
{
    const struct px_env *env = l->has_image ? &l->image.env : &l->environment;
    return env->runtime ? env : NULL;
}

uint64_t px_launch_ready_nsec(const struct px_launch *launch)
{
    return launch->ready_nsec;
}

bool px_launch_cached(const struct px_launch *launch)
{
    return launch->has_image && launch->image.cached;
}

/* ---- the environment on this machine ---- */

/* A record of an older px is incomplete: the environment is made again, which finds all trees. */
static int load_env(struct px_launch *l, struct px_sandbox *s, struct px_err *e)
{
    const struct px_python *python = px_project_own(l->p);
    bool built = false;
    int r = px_env_load(s, l->look.env.profile_oid, python, &l->environment, e);
    if (r > 0 && !l->plan && px_project_env_rebuild(l->p, &l->look, &built, e) < 0)
        return -1;
    if (r > 0)
        r = px_env_load(s, l->look.env.profile_oid, python, &l->environment, e);
    if (r > 0)
        return px_fail(e, PX_E_ENV, 0, "the project's environment has no record");
    l->loaded = r == 0;
    return r;
}

/* The environment is made for the base's Python, and links to that path. */
static int check_python(const struct px_launch *l, struct px_err *e)
{
    char path[PATH_MAX];
    const struct px_python *runtime = l->environment.runtime;
    if (px_fmt(path, sizeof path, "%s/bin/python3.%u", l->environment.path, runtime->minor) < 0 ||
        access(path, X_OK) == 0)
        return 0;
    px_fail(e, PX_E_ENV, 0, "this machine has no %s, which the project's environment is for", runtime->program);
    (void)px_detail(e, "reason", "runtime_missing");
    (void)px_why(e, "Without --sandbox the program runs on this machine, with its Python.");
    unsigned other = px_project_other(l->p);
    return other ? px_fix(e,
                          "Run it with --sandbox, on a base that has that Python.\n"
                          "Or install it: apt install python3.%u, or `uv python install 3.%u`.\n"
                          "Or take the one that is here: python = \"3.%u\" in [tool.px], then `px sync`.",
                          runtime->minor, runtime->minor, other)
                 : px_fix(e,
                          "Run it with --sandbox, on a base that has that Python.\n"
                          "Or install it: apt install python3.%u, or `uv python install 3.%u`.",
                          runtime->minor, runtime->minor);
}

static const char *action_of(enum px_act act)
{
    return act == PX_ACT_SYNC ? "resolve_lock" : act == PX_ACT_REBUILD ? "sync_env" : "noop";
}

/* What the guard would decide. */
static int decide_only(struct px_launch *l, const struct px_snapshot *look, const struct px_ready *ready, struct px_err *e)
{
    enum px_act act = PX_ACT_GO;
    enum px_asker asker = px_equal(ready->command, "test") ? PX_ASKER_TEST : PX_ASKER_RUN;
    int r = px_snapshot_decide(l->p, look, asker, l->strict, ready->terminal, &act, e);
    l->action = action_of(act);
    return r;
}

static int ready_on_host(struct px_launch *l, const struct px_ready *ready, struct px_err *e)
{
    struct px_sandbox *s = NULL;
    if (px_project_own_need(l->p, l->plan, e) < 0 || px_snapshot_at(l->p, &l->look, e) < 0)
        return -1;
    l->looked = true;
    if (l->plan ? decide_only(l, &l->look, ready, e) < 0 : px_snapshot_ready(l->p, &l->look, ready, e) < 0)
        return -1;
    if (l->plan && !px_equal(l->action, "noop"))
        return 0;               /* there is no environment yet to look at */
    if (px_project_sandbox(l->p, &s, e) < 0 || load_env(l, s, e) < 0)
        return -1;
    return l->plan ? 0 : check_python(l, e) < 0 || px_env_hold(s, &l->environment, e) < 0 ? -1 : 0;
}

static int ready_in_sandbox(struct px_launch *l, const struct px_ready *ready, const char *const *extra,
                            struct px_err *e)
{
    const struct px_project_image_ask ask = {.ready = ready, .extra = extra, .plan = l->plan};
    if (px_project_image_make(l->p, &ask, &l->image, e) < 0)
        return -1;
    l->has_image = true;
    return l->plan ? decide_only(l, &l->image.look, ready, e) : 0;
}

/* ---- the program and its arguments ---- */

static const char *member_here(const struct px_located *site)
{
    for (size_t i = 0; i < site->member_count; i++)
        if (site->members[i].here)
            return site->members[i].path;
    return NULL;
}

static int find_program(struct px_launch *l, const char *const *argv, struct px_err *e)
{
    const struct px_env *env = px_run_env(l);
    const struct px_program_ask ask = {
        .root = l->p->site.root,
        .member = member_here(&l->p->site),
        .dir = l->dir,
        .env = env->path,
        .env_name = l->sandbox ? PX_PROGRAM_ENV : env->path,
        .minor = env->runtime->minor,
        .inside = l->sandbox,
    };
    return px_equal(l->command, "test") ? px_run_program_tests(&ask, &l->program, e)
                                        : px_run_program_find(&ask, argv[0] ? argv[0] : "", &l->program, e);
}

static int add_word(struct px_launch *l, const char *word, struct px_err *e)
{
    if (!(l->argv[l->argc] = strdup(word)))
        return px_no_memory(e);
    l->argc++;
    return 0;
}

/* In the sandbox an argument that is a path of the project is mapped to /app. */
static int add_argument(struct px_launch *l, const char *word, struct px_err *e)
{
    px_auto_free char *inside = NULL;
    const char *root = l->p->site.root;
    size_t n = strlen(word) + sizeof PX_PROGRAM_APP;
    if (!l->sandbox || !px_path_within(word, root))
        return add_word(l, word, e);
    if (!(inside = malloc(n)))
        return px_no_memory(e);
    return px_run_program_inside(root, word, inside, n) < 0 ? -1 : add_word(l, inside, e);
}

static int make_command(struct px_launch *l, const char *const *argv, struct px_err *e)
{
    size_t count = 0, skip = px_equal(l->command, "test") ? 0 : 1;
    while (argv[count])
        count++;
    if (find_program(l, argv, e) < 0)
        return -1;
    if (!(l->argv = calloc(l->program.count + count + 1, sizeof *l->argv)))
        return px_no_memory(e);
    for (size_t i = 0; i < l->program.count; i++)
        if (add_word(l, l->program.words[i], e) < 0)
            return -1;
    for (size_t i = skip; i < count; i++)
        if (add_argument(l, argv[i], e) < 0)
            return -1;
    px_auto_buf struct px_buf shown = PX_BUF(PATH_MAX); /* it is printed in JSON and messages */
    const char *target = skip ? argv[0] : l->program.words[l->program.count - 1];
    px_buf_quote(&shown, target, strlen(target));
    l->found = true;
    l->target = px_buf_take(&shown);
    return l->target ? 0 : px_no_memory(e);
}

/* ---- the whole ---- */

/* Maps a directory of the project to its path below /app. */
static int find_place(struct px_launch *l, struct px_err *e)
{
    if (!realpath(".", l->dir))
        return px_fail(e, PX_E_IO, errno, "cannot see the working directory");
    if (!px_path_within(l->dir, l->p->site.root)) {
        px_fail(e, PX_E_NO_PROJECT, 0, "the working directory is not in the project '%.200s'", l->p->site.root);
        return px_fix(e, "Change to a directory of the project.");
    }
    int r = l->sandbox ? px_run_program_inside(l->p->site.root, l->dir, l->workdir, sizeof l->workdir)
                       : px_fmt(l->workdir, sizeof l->workdir, "%s", l->dir);
    return r < 0 ? px_fail(e, PX_E_LIMIT, r, "the path of the working directory is too long") : 0;
}

static int read_limit(struct px_launch *l, struct px_err *e)
{
    const char *text = getenv("PX_MAX_CAPTURE_BYTES");
    uint64_t bytes = CAPTURE_DEFAULT;
    if (text && *text && (px_parse_u64(text, CAPTURE_MAX, &bytes) < 0 || bytes == 0)) {
        px_fail(e, PX_E_VALUE, 0, "PX_MAX_CAPTURE_BYTES is '%.64s'", text);
        return px_fix(e, "Set it to a number of bytes from 1 to %d.", CAPTURE_MAX);
    }
    l->capture_max = (size_t)bytes;
    return 0;
}

static int make(struct px_launch *l, const struct px_project_run *how, struct px_err *e)
{
    const struct px_ready ready = {.command = how->command, .frozen = how->frozen, .terminal = how->terminal};
    uint64_t began = px_now_nsec();
    if (px_fmt(l->command, sizeof l->command, "%s", how->command) < 0 || find_place(l, e) < 0 || read_limit(l, e) < 0)
        return -1;
    if ((l->sandbox ? ready_in_sandbox(l, &ready, how->extra, e) : ready_on_host(l, &ready, e)) < 0)
        return -1;
    if (!px_run_env(l))
        return 0;
    if (make_command(l, how->argv, e) < 0)
        return -1;
    if (!l->plan && (l->sandbox ? px_run_box_make(l, how->policy, e) : px_run_host_env(l, e)) < 0)
        return -1;
    l->ready_nsec = px_now_nsec() - began;
    return 0;
}

int px_project_launch(struct px_project *project, const struct px_project_run *how, struct px_launch **ret_launch,
                      struct px_err *e)
{
    PX_ERR(e);
    struct px_launch *l = calloc(1, sizeof *l);
    if (!l)
        return px_no_memory(e);
    *l = (struct px_launch){.p = project,
                            .sandbox = how->sandbox,
                            .read_only = how->read_only || project->site.manifest.sandbox_read_only,
                            .plan = how->plan,
                            .capture = how->capture,
                            .action = "noop",
                            .strict = px_project_frozen(how->frozen)};
    if (make(l, how, e) < 0) {
        px_launch_free(l);
        return -1;
    }
    *ret_launch = l;
    return 0;
}
