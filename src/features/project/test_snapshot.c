/* project/test_snapshot.c - the guards of run, test and pack for a real project in every state (P20, P21, P22, P26,
 * P34). */
#include <px/project.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "store/hash.h"

/* A project without requirements: its lock needs no resolver, its environment no package. */
struct world {
    int dir;
    char project[PATH_MAX], home[PATH_MAX];
};

static void put(int dir, const char *name, const char *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(fd < 0 ? -errno : px_write_full(fd, text, strlen(text)));
}

static struct world make_world(const char *manifest)
{
    struct world w;
    px_auto_fd int top = px_test_dir();
    ASSERT_EQ(unsetenv("CI"), 0);
    ASSERT_OK(px_fmt(w.project, sizeof w.project, "%s/demo", px_test_dir_path()));
    ASSERT_OK(px_fmt(w.home, sizeof w.home, "%s/home", px_test_dir_path()));
    ASSERT_EQ(mkdirat(top, "demo", 0755), 0);
    w.dir = openat(top, "demo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT(w.dir >= 0);
    put(w.dir, "pyproject.toml", manifest);
    return w;
}

#define MANIFEST "[project]\nname = \"demo\"\nrequires-python = \">=3.11\"\n[tool.px]\n"

static int ready(const struct world *w, const struct px_ready *how, struct px_err *e)
{
    struct px_project *p = NULL;
    char *json = NULL;
    *e = (struct px_err){0};
    ASSERT_PX(px_project_open(w->project, w->home, &p, e), *e);
    int r = px_project_ready(p, how, &json, e);
    px_project_close(p);
    free(json);
    return r;
}

static void sync_now(const struct world *w)
{
    struct px_project *p = NULL;
    struct px_err e = {0};
    char *json = NULL;
    ASSERT_PX(px_project_open(w->project, w->home, &p, &e), e);
    ASSERT_PX(px_project_sync(p, &(struct px_sync){0}, &json, &e), e);
    ASSERT(strstr(json, "wrote px.lock and refreshed the environment"));
    free(json);
    px_project_close(p);
}

static struct px_oid hash_file(int dir, const char *name)
{
    struct px_oid id = {0};
    uint64_t size;
    px_auto_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        ASSERT_OK(px_hash_fd(fd, 1 << 20, &id, &size));
    return id;
}

/* The bytes of all files of the project. */
struct seen {
    struct px_oid files[3];
};
static struct seen look(const struct world *w)
{
    static const char *const names[] = {"pyproject.toml", "px.lock", ".px/state.json"};
    struct seen s;
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        s.files[i] = hash_file(w->dir, names[i]);
    return s;
}

static void check_refused(const struct world *w, const struct px_ready *how, int code, const char *reason)
{
    struct px_err e;
    char member[64];
    struct seen before = look(w);
    if (ready(w, how, &e) == 0)
        FAIL("%s was let through", how->command);
    ASSERT_EQ(e.code, code);
    ASSERT_OK(px_fmt(member, sizeof member, "\"reason\":\"%s\"", reason));
    if (!strstr(e.details, member) || !strstr(e.details, "\"state\":"))
        FAIL("%s: %s", how->command, e.details);
    ASSERT(strstr(e.fix, "px sync"));
    struct seen after = look(w);
    ASSERT_EQ(memcmp(&before, &after, sizeof before), 0);
}

static const struct px_ready run = {.command = "run"}, test = {.command = "test"}, pack = {.command = "pack"},
    frozen = {.command = "run", .frozen = true}, person = {.command = "run", .terminal = true},
    frozen_person = {.command = "run", .frozen = true, .terminal = true};

TEST(a_project_without_a_lock)
{
    struct world w = make_world(MANIFEST);
    struct px_err e;
    check_refused(&w, &run, PX_E_LOCK, "missing_lock");
    check_refused(&w, &test, PX_E_LOCK, "missing_lock");
    check_refused(&w, &frozen_person, PX_E_LOCK, "missing_lock");
    check_refused(&w, &pack, PX_E_ENV, "env_outdated");
    ASSERT_EQ(setenv("CI", "true", 1), 0);
    check_refused(&w, &person, PX_E_LOCK, "missing_lock");
    ASSERT_EQ(setenv("CI", "0", 1), 0);
    ASSERT_PX(ready(&w, &person, &e), e);       /* interactive: it is made automatically */
    ASSERT_PX(ready(&w, &frozen, &e), e);
    (void)px_fd_close(w.dir);
}

TEST(a_manifest_that_moved_on)
{
    struct world w = make_world(MANIFEST);
    sync_now(&w);
    put(w.dir, "pyproject.toml", MANIFEST "[tool.px.env]\nA = 1\n");
    check_refused(&w, &run, PX_E_LOCK, "lock_drift");
    ASSERT_EQ(setenv("CI", "1", 1), 0);
    check_refused(&w, &person, PX_E_LOCK, "lock_drift");        /* P22 */
    ASSERT_EQ(unsetenv("CI"), 0);
    check_refused(&w, &pack, PX_E_ENV, "env_outdated");         /* P26 */
    put(w.dir, "pyproject.toml", MANIFEST "[tool.px.sandbox]\nauto = false\n");         /* P19: no part of the lock */
    struct px_err e;
    ASSERT_PX(ready(&w, &frozen, &e), e);
    (void)px_fd_close(w.dir);
}

TEST(a_lock_that_cannot_be_read)
{
    struct world w = make_world(MANIFEST);
    struct px_err e;
    sync_now(&w);
    put(w.dir, "px.lock", "version = \n");
    ASSERT(ready(&w, &person, &e) < 0);
    ASSERT_EQ(e.code, PX_E_LOCK_FORMAT);
    ASSERT(strstr(e.what, "px.lock:1:") && strstr(e.details, "\"reason\":\"lock_invalid\""));
    (void)px_fd_close(w.dir);
}

/* P20, P21, P34: without .px a strict run is refused and a loose one goes on; neither writes. */
TEST(an_environment_that_is_gone)
{
    struct world w = make_world(MANIFEST);
    struct px_err e;
    sync_now(&w);
    struct seen whole = look(&w);
    ASSERT_PX(ready(&w, &pack, &e), e);
    ASSERT_PX(ready(&w, &frozen, &e), e);
    struct seen still = look(&w);
    ASSERT_EQ(memcmp(&whole, &still, sizeof whole), 0);

    ASSERT_EQ(unlinkat(w.dir, ".px/state.json", 0), 0);
    struct seen before = look(&w);
    check_refused(&w, &frozen, PX_E_ENV, "missing_env");
    check_refused(&w, &pack, PX_E_ENV, "env_outdated");
    ASSERT_PX(ready(&w, &run, &e), e);
    ASSERT_PX(ready(&w, &person, &e), e);
    struct seen after = look(&w);
    ASSERT_EQ(memcmp(&before, &after, sizeof before), 0);

    put(w.dir, ".px/state.json", "{");
    check_refused(&w, &frozen, PX_E_ENV, "invalid_state");
    (void)px_fd_close(w.dir);
}
