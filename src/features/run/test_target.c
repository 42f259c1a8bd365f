/* run/test_target.c - which program a target means, on this machine and in the box; and when
 * memory runs out. */
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
#include "run/target.h"

struct world {
    char root[PATH_MAX], below[PATH_MAX], env[PATH_MAX];
    struct px_program_ask host, inside;
};

static void put(int dir, const char *name, const char *text, unsigned mode)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(fd < 0 ? -errno : px_write_full(fd, text, strlen(text)));
    ASSERT_EQ(fchmod(fd, mode), 0);
}

/* A project with a directory below it, and an environment with one script. */
static void make_world(struct world *w)
{
    static const char *const folders[] = {"demo", "demo/sub", "demo/one", "env", "env/bin"};
    px_auto_fd int top = px_test_dir();
    char real[PATH_MAX];
    ASSERT(realpath(px_test_dir_path(), real));
    for (size_t i = 0; i < PX_COUNT_OF(folders); i++)
        ASSERT_EQ(mkdirat(top, folders[i], 0755), 0);
    put(top, "demo/app.py", "", 0644);
    put(top, "demo/sub/deep.py", "", 0644);
    put(top, "demo/run", "#!/bin/sh\n", 0755);
    put(top, "demo/data", "x\n", 0644);
    put(top, "demo/lines", "#!/usr/bin/env python3\n", 0644);
    put(top, "outside.py", "", 0644);
    put(top, "env/bin/tool", "#!/bin/sh\n", 0755);
    ASSERT_OK(px_fmt(w->root, sizeof w->root, "%s/demo", real));
    ASSERT_OK(px_fmt(w->below, sizeof w->below, "%s/demo/sub", real));
    ASSERT_OK(px_fmt(w->env, sizeof w->env, "%s/env", real));
    w->host = (struct px_program_ask){.root = w->root, .dir = w->root, .env = w->env, .env_name = w->env, .minor = 11};
    w->inside = w->host;
    w->inside.env_name = PX_PROGRAM_ENV;
    w->inside.inside = true;
}

/* "kind word word"; of errors, "PX031". */
static const char *found(const struct px_program_ask *ask, const char *target, char out[2 * PATH_MAX])
{
    struct px_program p = {0};
    struct px_err e = {0};
    int r = target ? px_run_program_find(ask, target, &p, &e) : px_run_program_tests(ask, &p, &e);
    if (r < 0) {
        ASSERT_OK(px_fmt(out, PATH_MAX, "PX%03d", e.code));
        ASSERT_EQ(p.count, 0);
        return out;
    }
    size_t n = (size_t)px_fmt(out, PATH_MAX, "%s", p.kind);
    n = strlen(out);
    for (size_t i = 0; i < p.count; i++, n = strlen(out))
        ASSERT_OK(px_fmt(out + n, 2 * PATH_MAX - n, " %s", p.words[i]));
    px_run_program_done(&p);
    return out;
}

TEST(targets_in_the_box)
{
    static const struct {
        const char *target, *words;
    } rows[] = {
        {"app.py", "file /px/env/bin/python app.py"},
        {"./app.py", "file /px/env/bin/python ./app.py"},
        {"sub/deep.py", "file /px/env/bin/python sub/deep.py"},
        {"/app/app.py", "file /px/env/bin/python /app/app.py"},
        {"lines", "file /px/env/bin/python lines"},
        {"run", "file ./run"},
        {"data", "PX030"},
        {"python", "python /px/env/bin/python"},
        {"py3", "python /px/env/bin/python"},
        {"python3.11", "python /px/env/bin/python"},
        {"python3.12", "PX031"},
        {"python3.", "program python3."},
        {"tool", "script /px/env/bin/tool"},
        {"make", "program make"},
        {"/usr/bin/make", "program /usr/bin/make"},
        {"../outside.py", "PX031"},
        {"sub/../../outside.py", "PX031"},
        {"sub", "program sub"},
        {"", "PX031"},
        {"http://x/y.py", "PX003"},
        {"x.pxapp", "PX003"},
        {".pxapp", "program .pxapp"},
    };
    static char out[2 * PATH_MAX];
    struct world w;
    make_world(&w);
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        ASSERT_STR(found(&w.inside, rows[i].target, out), rows[i].words);
}

TEST(a_path_of_the_project_is_another_in_the_box)
{
    char out[PATH_MAX];
    ASSERT_OK(px_run_program_inside("/home/me/demo", "/home/me/demo/a b", out, sizeof out));
    ASSERT_STR(out, "/app/a b");
    ASSERT_OK(px_run_program_inside("/home/me/demo", "/home/me/demo", out, sizeof out));
    ASSERT_STR(out, "/app");
    ASSERT_OK(px_run_program_inside("/home/me/demo", "/home/me/demolition", out, sizeof out));
    ASSERT_STR(out, "/home/me/demolition");
    ASSERT(px_run_program_inside("/home/me/demo", "/home/me/demo/a", out, 4) < 0);
}

TEST(from_below_and_on_the_host)
{
    static char out[2 * PATH_MAX], wanted[2 * PATH_MAX], target[PATH_MAX];
    struct world w;
    make_world(&w);
    w.host.dir = w.below;
    ASSERT_OK(px_fmt(wanted, sizeof wanted, "file %s/bin/python deep.py", w.env));
    ASSERT_STR(found(&w.host, "deep.py", out), wanted);
    ASSERT_OK(px_fmt(wanted, sizeof wanted, "file %s/bin/python %s/app.py", w.env, w.root));
    ASSERT_STR(found(&w.host, "app.py", out), wanted);
    ASSERT_OK(px_fmt(target, sizeof target, "%s/app.py", w.root));
    ASSERT_STR(found(&w.host, target, out), wanted);
    ASSERT_STR(found(&w.host, "sh", out) + strlen(out) - 3, "/sh");
    ASSERT_STR(found(&w.host, "/nowhere/at/all", out), "PX031");
}

TEST(what_runs_the_tests)
{
    static char out[2 * PATH_MAX];
    struct world w;
    make_world(&w);
    px_auto_fd int top = open(px_test_dir_path(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_STR(found(&w.inside, NULL, out), "PX202");
    put(top, "env/bin/pytest", "", 0755);
    ASSERT_STR(found(&w.inside, NULL, out), "pytest /px/env/bin/python -m pytest");
    put(top, "demo/runtests.py", "", 0644);
    ASSERT_STR(found(&w.inside, NULL, out), "tests /px/env/bin/python /app/runtests.py");
    ASSERT_EQ(mkdirat(top, "demo/tests", 0755), 0);
    put(top, "demo/tests/runtests.py", "", 0644);
    ASSERT_STR(found(&w.inside, NULL, out), "tests /px/env/bin/python /app/tests/runtests.py");
    put(top, "demo/one/runtests.py", "", 0644);
    w.inside.member = "one";
    ASSERT_STR(found(&w.inside, NULL, out), "tests /px/env/bin/python /app/one/runtests.py");
}

TEST(without_memory_it_is_an_error)
{
    static char out[2 * PATH_MAX];
    struct world w;
    make_world(&w);
    for (unsigned n = 1;; n++) {
        px_test_fail_alloc(n);
        const char *words = found(&w.inside, "app.py", out);
        if (!px_test_alloc_failed())
            break;
        ASSERT_STR(words, "PX004");
    }
    ASSERT_STR(out, "file /px/env/bin/python app.py");
}
