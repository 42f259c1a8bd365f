/* tests/null_error.c - the last argument of a public function, its `struct px_err *`, may be NULL.
 *
 * Every public function that has one is called here on a way that fails, with NULL. The guard `errors` compares these rows with
 * include/px. A crash fails the test; so does a call that does not fail.
 *
 *     FAILS(px_files_read, files, "no/x", ...)    returns < 0
 *     MEMORY(px_policy_json, policy, &text)       returns < 0 when its first allocation fails
 *     SAYS(PX_BLOCKED, px_worker_tool, ...)       has another way to say that it failed, or none */
#include <errno.h>
#include <fcntl.h>
#include <px/doctor.h>
#include <px/engine.h>
#include <px/living.h>
#include <px/project.h>
#include <px/runtime.h>
#include <px/sandbox.h>
#include <px/task.h>
#include <px/verify.h>
#include <px/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/supervise.h"
#include "files/files.h"
#include "harness/test.h"
#include "keeper/keeper_internal.h"
#include "kernel/landlock.h"
#include "named/client_internal.h"
#include "run/run.h"

#define FAILS(function, ...) ASSERT(function(__VA_ARGS__, NULL) < 0)
#define SAYS(answer, function, ...) ASSERT_EQ(function(__VA_ARGS__, NULL), answer)
#define MEMORY(function, ...)                                       \
    do {                                                            \
        px_test_fail_alloc(1);                                      \
        long memory_result = function(__VA_ARGS__, NULL);           \
        px_test_fail_alloc(0);                                      \
        if (memory_result >= 0)                                     \
            FAIL("%s does not fail without memory", #function);     \
    } while (0)

static const char *const words[] = {"no-such-command", NULL};
static char *text, *more;
static char blank[1 << 20];     /* an object whose functions fail before they look at it */

static char top[256];

/* DIR/NAME, of a directory of the test; one path at a time. */
static const char *path_of(const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

static void make_top(void)
{
    close(px_test_dir());
    (void)snprintf(top, sizeof top, "%s", px_test_dir_path());
    ASSERT_OK(mkdir(path_of("w"), 0755));
}

static void put(const char *name, const char *data)
{
    FILE *f = fopen(path_of(name), "we");
    ASSERT(f && fputs(data, f) >= 0 && fclose(f) == 0);
}

/* A box that has ended, or never was. */
static struct px_box *no_box(void)
{
    struct px_box *box = px_supervise_guest();
    ASSERT(box && (box->argv = px_supervise_copy_argv((char *const *)words)));
    return box;
}

static struct px_policy *policy_with(const char *field, const char *value)
{
    struct px_policy *policy = NULL;
    ASSERT_EQ(px_policy_new(NULL, &policy, NULL), 0);
    ASSERT(!field || px_policy_set(policy, field, value, NULL) == 0);
    return policy;
}

/* ---- px/px.h, px/runtime.h ---- */

TEST(policies)
{
    struct px_policy *policy = policy_with(NULL, NULL), *other = NULL;
    FAILS(px_policy_new, "no-such-preset", &other);
    FAILS(px_policy_set, policy, "no-such-field", "1");
    FAILS(px_policy_get, policy, "no-such-field", &text);
    MEMORY(px_policy_copy, policy, &other);
    MEMORY(px_policy_json, policy, &text);
    FAILS(px_policy_export, policy, words, "no-such-format", &text);
    px_policy_free(policy);
    policy = policy_with("seccomp", "/no/such/file");
    FAILS(px_policy_warnings, policy, &text);
    FAILS(px_policy_seccomp, policy, &text);
    FAILS(px_plan_json, policy, words, &text);
    px_policy_free(policy);
    policy = policy_with("net", "host");
    MEMORY(px_policy_check, policy, &text);
    MEMORY(px_project_policy, &other);
    px_policy_free(policy);
    policy = policy_with("base", "no-such-base");
    make_top();
    ASSERT_OK(setenv("PX_HOME", path_of("home"), 1));
    FAILS(px_policy_prepare, policy);
    px_policy_free(policy);
    FAILS(px_scratch_make, "/no/such/dir", false, &text, &(int){0});
}

TEST(boxes)
{
    struct px_box *box = no_box(), *other = NULL;
    struct px_policy *policy = policy_with("detach", "true");
    size_t len;
    FAILS(px_box_start, policy, words, NULL, &other);
    px_policy_free(policy);
    policy = policy_with("runtime", "runc");
    FAILS(px_box_stay, policy, &other);
    FAILS(px_box_exec, box, policy, words, NULL, &other);
    FAILS(px_box_wait, box);
    FAILS(px_box_step, box);
    FAILS(px_box_network, box, "publish", "1:1");
    FAILS(px_box_signal, box, 99);
    SAYS(0, px_box_kill, box);
    FAILS(px_box_resize, box, 1, 1);
    MEMORY(px_box_json, box, false, &text);
    MEMORY(px_box_output, box, 1, &text, &len);
    FAILS(px_box_timings, box, &text);
    px_box_free(box);
    px_policy_free(policy);
}

/* ---- px/engine.h ---- */

/* px lies one directory above the tests of a build. */
static const char *program(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    ASSERT(n > 0);
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    memcpy(strrchr(path, '/'), "/px", 4);
    return path;
}

TEST(pools)
{
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_policy *policy = policy_with("net", "none");
    struct px_box *box = NULL;
    FAILS(px_engine_new, "/no/such/program", &engine);
    FAILS(px_engine_serve, -1);
    ASSERT_EQ(px_engine_new(program(), &engine, NULL), 0);
    FAILS(px_pool_new, engine, policy, 0, &pool);
    ASSERT_EQ(px_pool_new(engine, policy, 1, &pool, NULL), 0);
    px_engine_free(engine);
    FAILS(px_pool_stay, pool, &box);
    FAILS(px_pool_box, pool, words, NULL, &box);
    px_pool_free(pool);
    px_policy_free(policy);
}

/* ---- px/living.h ---- */

TEST(named_boxes)
{
    struct px_named_place place = PX_KEEP_NOWHERE;
    make_top();
    ASSERT_EQ(px_named_claim(path_of("home"), "gone", &place, NULL), 0);
    struct px_living living = {.name = "gone", .boxes = place.boxes, .dir = -EBADF, .socket = -EBADF, .defaults = -EBADF, .cancel = -1};
    struct px_living *l = &living, *other = NULL;
    struct px_living_state state;
    struct px_living_command *commands;
    struct px_living_process *processes;
    struct px_policy *policy = policy_with(NULL, NULL), *copy;
    struct px_box *box;
    struct px_log_at at = {0};
    char **names;
    size_t count;
    unsigned number;
    FAILS(px_living_open, "/dev/null", "gone", &other);
    FAILS(px_living_policy, l, &copy);
    FAILS(px_living_exec, l, policy, words, NULL, &box);
    FAILS(px_living_state, l, &state);
    FAILS(px_living_commands, l, &commands, &count);
    FAILS(px_living_processes, l, &processes, &count);
    FAILS(px_living_info, l, true, &text);
    FAILS(px_living_signal, l, 15, 0, &number);
    FAILS(px_living_signal_process, l, 15, 2);
    FAILS(px_living_ask_stop, l);
    l->stops = false;
    FAILS(px_living_stop, l);
    FAILS(px_living_detach, l, policy, words, &number);
    FAILS(px_living_wait, l, 1, 0, &(int){0}, &text);
    FAILS(px_living_input, l, 1);
    FAILS(px_living_end_input, l, 1);
    FAILS(px_living_log, l, 1, PX_STDOUT, &at, blank, 1);
    FAILS(px_living_copy_in, l, "/no/such/file", "/tmp");
    FAILS(px_living_copy_out, l, "/tmp/x", "/tmp", "not-a-size", &(uint64_t){0});
    FAILS(px_living_list, "/dev/null", &names, &count);
    px_named_let_go(&place);
    px_policy_free(policy);
}

TEST(keepers)
{
    struct px_policy *policy = policy_with(NULL, NULL);
    struct px_keeper *keeper = NULL;
    struct px_keeper own = {.place = PX_KEEP_NOWHERE, .policy = policy, .home = no_box(), .listener = -EBADF,
                            .defaults = -EBADF, .starter = -EBADF};
    own.home->finished = true;  /* nothing of it is left to wait for */
    FAILS(px_keeper_new, "/dev/null", policy, &keeper);
    MEMORY(px_keeper_run, &own, 0, -1);
    px_policy_free(policy);
}

/* ---- px/files.h ---- */

TEST(file_sandboxes)
{
    make_top();
    const struct px_files_root root = {.name = "w", .dir = path_of("w"), .writable = true};
    const struct px_files_query nowhere = {.path = "no", .text = "x"};
    const struct px_files_ask ask = {.op = "no-such-op"};
    const struct px_files_edit edit = {"a", "b", 1, 1};
    const struct px_files_narrow narrow = {.read = words};
    const struct px_err error = {.code = PX_E_OUTSIDE};
    struct px_files *files = NULL, *other = NULL;
    struct px_files_stat st;
    struct px_files_text read;
    struct px_files_entries entries;
    struct px_files_done done;
    struct px_files_answer answer;
    struct px_policy *policy = policy_with(NULL, NULL);
    ASSERT_EQ(px_files_new(&root, 1, &files, NULL), 0);
    FAILS(px_files_new, &(struct px_files_root){.name = "w", .dir = "/no/such/dir"}, 1, &other);
    FAILS(px_files_parse, words, 1, false, &other);
    FAILS(px_files_derive, files, &narrow, &other);
    FAILS(px_files_resolve, files, "no/x", &text, &st);
    FAILS(px_files_stat, files, "w/x", &st);
    FAILS(px_files_open, files, "w/x", &(int){0});
    FAILS(px_files_read, files, "w/x", 0, 1, &read);
    FAILS(px_files_list, files, &nowhere, &entries);
    FAILS(px_files_search, files, &nowhere, &entries);
    FAILS(px_files_write, files, "no/x", "x", 1, &done);
    FAILS(px_files_edit, files, "w/x", &edit, 1, false, &done);
    FAILS(px_files_diff, files, "w/x", "w/y", NULL, 0, &text);
    FAILS(px_files_move, files, "w/x", "w/y");
    FAILS(px_files_copy, files, "w/x", "w/y");
    FAILS(px_files_delete, files, "w/x");
    FAILS(px_files_make_directory, files, "no/x");
    FAILS(px_files_call, files, &ask, &answer);
    FAILS(px_files_call_json, files, "read", "[]", 2, &answer);
    MEMORY(px_files_message, &error, &text);
    MEMORY(px_files_error_json, files, &error, &text);
    ASSERT_OK(rmdir(path_of("w")));
    FAILS(px_files_bind, files, NULL, policy);
    px_policy_free(policy);
    ASSERT_OK(close(files->roots[0].fd));
    files->roots[0].fd = -EBADF;
    if (px_landlock_abi() > 0) {        /* without it they do not look at the roots, and seal seals this test */
        FAILS(px_files_confine, files);
        FAILS(px_files_seal, files);
    }
    px_files_free(files);
}

/* ---- px/sandbox.h ---- */

TEST(stores)
{
    struct px_sandbox *s = NULL;
    const struct px_image_build build = {.base = "no-such-base"};
    struct px_root_lease *lease = NULL;
    make_top();
    FAILS(px_sandbox_open, "/dev/null", &s);
    ASSERT_EQ(px_sandbox_open(path_of("home"), &s, NULL), 0);
    FAILS(px_sandbox_base_build, s, "no-such-base", NULL, &text);
    FAILS(px_sandbox_base_import, s, "mine", "/no/such/file", &text);
    MEMORY(px_sandbox_base_list, s, &text);
    FAILS(px_sandbox_base_lock, s, "no-such-base", &text);
    FAILS(px_sandbox_base_remove, s, "no-such-base", &text);
    MEMORY(px_sandbox_capabilities, s, &text);
    FAILS(px_sandbox_build, s, &build, &text);
    MEMORY(px_sandbox_update, s, &text);
    FAILS(px_sandbox_root, s, "no-such-base", NULL, &text, &lease);
    FAILS(px_sandbox_gc, s, &(struct px_gc_request){.min_age = "old"}, &text);
    MEMORY(px_sandbox_clean, s, true, &text);
    MEMORY(px_sandbox_list, s, &text);
    FAILS(px_sandbox_delete, s, words, &text);
    MEMORY(px_sandbox_status, s, false, &text);
    px_sandbox_close(s);
}

/* ---- px/project.h ---- */

TEST(projects)
{
    struct px_project *p = NULL;
    struct px_launch *launch = NULL, *empty = (struct px_launch *)(void *)blank;
    const struct px_image_build build = {0};
    const struct px_depend depend = {.adding = true, .requirements = (const char *const[]){"not a requirement", NULL}};
    const struct px_project_run run = {.command = "run", .argv = words, .frozen = true};
    struct px_launch_end end = {.reason = "ok"};
    bool consistent;
    make_top();
    ASSERT_OK(setenv("CI", "1", 1));    /* nothing is resolved or fetched */
    FAILS(px_project_open, path_of("no"), NULL, &p);
    FAILS(px_project_init, path_of("no"), NULL, &text);
    put("pyproject.toml", "[project]\nname = \"x\"\nversion = \"1\"\ndependencies = [\"six\"]\n[tool.px]\n");
    ASSERT_EQ(px_project_open(top, "/dev/null", &p, NULL), 0);
    FAILS(px_project_sync, p, &(struct px_sync){.frozen = true}, &text);
    FAILS(px_project_update, p, &(struct px_update){0}, &text);
    FAILS(px_project_ready, p, &(struct px_ready){.command = "no-such-command"}, &text);
    FAILS(px_project_sandbox_build, p, &build, &text);
    MEMORY(px_project_sandbox_explain, p, &text);
    FAILS(px_project_sandbox_edit, p, true, words, &text);
    FAILS(px_project_depend, p, &depend, &text);
    FAILS(px_project_pack, p, &(struct px_project_pack){0}, &text);
    FAILS(px_project_launch, p, &run, &launch);
    empty->p = p;
    empty->target = top;
    empty->action = "noop";
    empty->policy = policy_with("detach", "true");
    FAILS(px_launch_box, empty, NULL, &(struct px_box *){NULL});
    px_policy_free(empty->policy);
    empty->argv = (char *[]){(char *)"/no/such/program", NULL};
    empty->env = (char *[]){NULL};
    FAILS(px_launch_host, empty, -1, &end);
    MEMORY(px_launch_answer, empty, &end, &text);
    MEMORY(px_launch_explain, empty, &text);
    MEMORY(px_project_status, p, &text, &consistent);
    px_project_close(p);
}

/* ---- px/task.h ---- */

TEST(task_workspaces)
{
    struct px_tasks *tasks = NULL, *unready = NULL;
    struct px_task_run *run = NULL;
    struct px_task_changes changes;
    struct px_bytes bytes;
    struct px_tasks_count count;
    const struct px_task_action action = {.command = words};
    char config[1024];
    make_top();
    FAILS(px_tasks_new, "/no/such/file", &tasks);
    int n = snprintf(config, sizeof config, "work_root: %s/w\nlogs_dir: %s/logs\n", top, top);
    put("sandbox.yaml", config);
    ASSERT_EQ(px_tasks_new(path_of("sandbox.yaml"), &tasks, NULL), 0);
    (void)snprintf(config + n, sizeof config - (size_t)n, "project: %s\n", top);
    put("sandbox.yaml", config);
    ASSERT_EQ(px_tasks_new(path_of("sandbox.yaml"), &unready, NULL), 0);
    FAILS(px_tasks_ready, unready);
    px_tasks_free(unready);
    FAILS(px_task_prepare, tasks, "../x", NULL, 0, NULL, &text);
    FAILS(px_task_cleanup, tasks, "../x");
    FAILS(px_task_fork, tasks, "no", "other");
    FAILS(px_task_diff, tasks, "no", NULL, &changes);
    FAILS(px_task_apply_from, tasks, "no", "other", &changes);
    FAILS(px_task_list, tasks, "no", NULL, NULL, NULL);
    FAILS(px_task_read, tasks, "no", "x", &bytes);
    FAILS(px_task_export, tasks, "no", path_of("out"));
    FAILS(px_task_checkout, tasks, "no", &text);
    FAILS(px_task_start, tasks, "no", &action, &run);
    FAILS(px_task_apply, tasks, "no", &action, &run);
    ASSERT(px_task_prepare(tasks, "t1", NULL, 0, NULL, NULL, NULL) == 0 && px_task_start(tasks, "t1", &action, &run, NULL) == 0);
    SAYS(0, px_task_step, run);         /* the command is not allowed: there is no box that could fail */
    MEMORY(px_task_json, run, &text);
    px_task_run_free(run);
    FAILS(px_task_log, tasks, "no", NULL, NULL);
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FAILS(px_tasks_run, tasks, &(struct px_tasks_batch){.actions = dir, .jobs = 1}, &count);
    close(dir);
    FAILS(px_tasks_report, "/no/such/dir", &text, &more);
    px_tasks_free(tasks);
}

/* ---- px/worker.h, px/verify.h, px/doctor.h ---- */

TEST(workers)
{
    struct px_worker *w = NULL;
    struct px_box *box = no_box(), *other = NULL;
    struct px_policy *policy = NULL;
    char **argv = NULL;
    const struct px_worker_run late = {.timeout_s = 301};
    const struct px_result result = {.exit_code = 124, .limits_hit = {{.limit = "timeout"}}, .limits_hit_count = 1};
    make_top();
    FAILS(px_worker_load, path_of("no.yaml"), NULL, &w);
    put("w.yaml", "sandbox:\n  paths:\n    w: {root: ./w}\ntool_rules:\n  shell: {allowed: false}\n");
    char *base = strdup(top);
    ASSERT_EQ(px_worker_load(path_of("w.yaml"), base, &w, NULL), 0);
    MEMORY(px_worker_describe, w, &text, &more);
    SAYS(PX_BLOCKED, px_worker_tool, w, "shell");
    SAYS(PX_BLOCKED, px_worker_judge, w, "ls", &argv);
    FAILS(px_worker_attach, w, "no/x", &(int){0}, &(uint64_t){0});
    FAILS(px_worker_child, w, "../x", &text);
    FAILS(px_worker_start, w, words, &late, &other);
    MEMORY(px_worker_policy, w, &policy);
    MEMORY(px_worker_result, w, box, 1, &text);
    MEMORY(px_shell_note, px_worker_files(w), false, &result, &text);
    px_box_free(box);
    px_worker_free(w);
    free(base);
}

static int no_policy(void *user, struct px_policy **ret_policy, struct px_err *e)
{
    (void)user;
    return px_policy_new("no-such-preset", ret_policy, e);
}

TEST(checks_of_this_host)
{
    struct px_verify_report *report = NULL, empty = {.preset = "", .base = "", .runtime = "", .tier = ""};
    struct px_doctor *doctor = NULL;
    FAILS(px_verify_run, &(struct px_verify){.make_policy = no_policy, .attack = "/no/such/program"}, &report);
    MEMORY(px_verify_json, &empty, &text);
    MEMORY(px_verify_junit, &empty, &text);
    MEMORY(px_doctor_run, &doctor);
    MEMORY(px_doctor_json, (struct px_doctor *)(void *)blank, &text);
}
