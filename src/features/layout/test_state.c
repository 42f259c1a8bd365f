/* layout/test_state.c - the states' truth table, the guards row by row, and the state's file. */
#include "layout/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "layout/both.h"
#include "layout/state_file.h"

TEST(states)
{
    static const struct {
        struct px_flags flags;
        const char *id, *label, *workspace;
    } rows[] = {    /* manifest, lock, env, manifest clean, env clean, empty, issue */
        {{false, false, false, false, false, false, false}, "uninitialized", "Uninitialized", "WUninitialized"},
        {{false, true, true, true, true, false, false}, "uninitialized", "Uninitialized", "WUninitialized"},
        {{true, false, false, false, false, false, false}, "needs-lock", "NeedsLock", "WNeedsLock"},
        {{true, true, true, false, true, false, false}, "needs-lock", "NeedsLock", "WNeedsLock"},
        {{true, true, true, true, true, true, true}, "needs-lock", "NeedsLock", "WNeedsLock"},
        {{true, true, false, true, false, false, false}, "needs-env", "NeedsEnv", "WNeedsEnv"},
        {{true, true, true, true, false, true, false}, "needs-env", "NeedsEnv", "WNeedsEnv"},
        {{true, true, true, true, true, true, false}, "initialized-empty", "InitializedEmpty", "WInitializedEmpty"},
        {{true, true, true, true, true, false, false}, "consistent", "Consistent", "WConsistent"},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        enum px_state state = px_layout_state_of(&rows[i].flags);
        ASSERT_STR(px_layout_state_id(state), rows[i].id);
        ASSERT_STR(px_layout_state_label(state, false), rows[i].label);
        ASSERT_STR(px_layout_state_label(state, true), rows[i].workspace);
        ASSERT_EQ(px_layout_state_is_consistent(state), i >= 7);
    }
}

/* ---- guards ---- */

static const struct px_flags no_lock = {.manifest_exists = true}, drift = {.manifest_exists = true, .lock_exists = true, .env_clean = true},
    issue = {.manifest_exists = true, .lock_exists = true, .manifest_clean = true, .env_clean = true, .lock_issue = true},
    no_env = {.manifest_exists = true, .lock_exists = true, .manifest_clean = true},
    good = {.manifest_exists = true, .lock_exists = true, .manifest_clean = true, .env_exists = true, .env_clean = true},
    empty = {.manifest_exists = true, .lock_exists = true, .manifest_clean = true, .env_clean = true, .deps_empty = true}, nothing = {0};

enum { STRICT = 1, TERMINAL = 2 };

static const struct {
    enum px_asker asker;
    const struct px_flags *flags;
    int how;
    int answer;                 /* an act, or the code of the error */
    const char *reason;
} guards[] = {
    {PX_ASKER_RUN, &no_lock, STRICT, PX_E_LOCK, "missing_lock"},
    {PX_ASKER_RUN, &no_lock, STRICT | TERMINAL, PX_E_LOCK, "missing_lock"},
    {PX_ASKER_RUN, &no_lock, 0, PX_E_LOCK, "missing_lock"},
    {PX_ASKER_RUN, &no_lock, TERMINAL, PX_ACT_SYNC, NULL},
    {PX_ASKER_TEST, &drift, STRICT, PX_E_LOCK, "lock_drift"},
    {PX_ASKER_TEST, &drift, 0, PX_E_LOCK, "lock_drift"},
    {PX_ASKER_TEST, &drift, TERMINAL, PX_ACT_SYNC, NULL},
    {PX_ASKER_RUN, &issue, STRICT, PX_E_LOCK, "lock_drift"},
    {PX_ASKER_RUN, &issue, 0, PX_E_LOCK, "lock_drift"},
    {PX_ASKER_RUN, &issue, TERMINAL, PX_E_LOCK, "lock_drift"},
    {PX_ASKER_RUN, &no_env, STRICT, PX_E_ENV, "env_outdated"},
    {PX_ASKER_RUN, &no_env, 0, PX_ACT_REBUILD, NULL},
    {PX_ASKER_RUN, &no_env, TERMINAL, PX_ACT_REBUILD, NULL},
    {PX_ASKER_RUN, &good, STRICT, PX_ACT_GO, NULL},
    {PX_ASKER_RUN, &empty, 0, PX_ACT_GO, NULL},
    {PX_ASKER_RUN, &nothing, 0, PX_E_NO_PROJECT, "missing_manifest"},
    {PX_ASKER_SYNC_FROZEN, &no_lock, STRICT, PX_E_LOCK, "missing_lock"},
    {PX_ASKER_SYNC_FROZEN, &drift, STRICT, PX_E_LOCK, "lock_drift"},
    {PX_ASKER_SYNC_FROZEN, &no_env, STRICT, PX_ACT_REBUILD, NULL},
    {PX_ASKER_SYNC_FROZEN, &good, STRICT, PX_ACT_GO, NULL},
    {PX_ASKER_PACK, &no_lock, TERMINAL, PX_E_ENV, "env_outdated"},
    {PX_ASKER_PACK, &drift, 0, PX_E_ENV, "env_outdated"},
    {PX_ASKER_PACK, &no_env, 0, PX_E_ENV, "env_outdated"},
    {PX_ASKER_PACK, &good, 0, PX_ACT_GO, NULL},
};

TEST(guards)
{
    for (size_t i = 0; i < PX_COUNT_OF(guards); i++) {
        struct px_err e = {0};
        char member[64];
        enum px_act act = PX_ACT_GO;
        const struct px_guard g = {.asker = guards[i].asker, .flags = *guards[i].flags, .strict = guards[i].how & STRICT,
                                   .terminal = guards[i].how & TERMINAL, .env_reason = "env_outdated", .root = "/p"};
        int r = px_layout_decide(&g, &act, &e);
        if ((r < 0) != (guards[i].reason != NULL) || (r < 0 ? e.code : (int)act) != guards[i].answer)
            FAIL("case %zu: %d, PX%03d, act %d", i, r, e.code, act);
        if (r == 0)
            continue;
        ASSERT_OK(px_fmt(member, sizeof member, "\"reason\":\"%s\"", guards[i].reason));
        if (!strstr(e.details, member) || !strstr(e.details, "\"state\":\"") || !e.why[0] || (!strstr(e.fix, "px sync") && !strstr(e.fix, "px init")))
            FAIL("case %zu: %s; %s; %s", i, e.details, e.why, e.fix);
        if (e.code == PX_E_LOCK && g.strict != (strstr(e.fix, "without --frozen") != NULL))
            FAIL("case %zu: %s", i, e.fix);
    }
}

TEST(truth_of_a_variable)
{
    ASSERT(px_truthy("1") && px_truthy("true") && px_truthy("yes") && px_truthy("anything"));
    ASSERT(!px_truthy(NULL) && !px_truthy("") && !px_truthy("0") && !px_truthy("False") && !px_truthy("no") && !px_truthy("OFF"));
}

/* ---- the file ---- */

static void write_state(int dir, const char *text)
{
    ASSERT(mkdirat(dir, ".px", 0755) == 0 || errno == EEXIST);
    px_auto_fd int fd = openat(dir, ".px/state.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}

TEST(what_is_written_is_read_again)
{
    px_auto_fd int dir = px_test_dir();
    struct px_err e = {0};
    struct px_made_env got, env = {.id = (char *)"i", .lock_id = (char *)"l\"\n", .python_version = (char *)"3.11.2",
                                   .runtime_platform = (char *)"linux_x86_64"};
    char text[1024], ignore[16];
    struct stat st;
    ASSERT_EQ(px_layout_state_file_read(dir, false, &got, &e), 1);
    ASSERT_PX(px_layout_state_file_write(dir, false, &env, &e), e);
    ASSERT_PX(px_layout_state_file_write(dir, true, &env, &e), e);
    ASSERT_EQ(px_layout_state_file_read(dir, false, &got, &e), 0);
    ASSERT_STR(got.lock_id, "l\"\n");
    ASSERT_STR(got.python_version, "3.11.2");
    ASSERT_STR(got.runtime_platform, "linux_x86_64");
    ASSERT(!got.env_path);
    px_layout_state_file_env_done(&got);
    ASSERT_OK(px_read_file(dir, ".px/state.json", text, sizeof text));
    ASSERT(strstr(text, "\n  \"current_env\": {") && text[strlen(text) - 1] == '\n');
    ASSERT_OK(px_read_file(dir, ".px/.gitignore", ignore, sizeof ignore));
    ASSERT_STR(ignore, "*\n");
    ASSERT_EQ(fstatat(dir, ".px/workspace-state.json", &st, 0), 0);
}

/* A repository has a link at .px/envs or .px: its target is not changed. */
TEST(links_of_a_repository_are_not_followed)
{
    px_auto_fd int dir = px_test_dir();
    struct px_err e = {0};
    const struct px_made_env env = {.id = (char *)"i", .env_path = (char *)"/somewhere"};
    char text[16];
    struct stat st;
    ASSERT_OK(mkdirat(dir, "user", 0755));
    ASSERT_OK(mkdirat(dir, ".px", 0755));
    px_auto_fd int fd = openat(dir, "user/current", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_OK(px_write_full(fd, "thesis", 6));
    ASSERT_OK(symlinkat("../user", dir, ".px/envs"));
    ASSERT_EQ(px_layout_state_file_write(dir, false, &env, &e), -1);
    ASSERT_OK(px_read_file(dir, "user/current", text, sizeof text));
    ASSERT_STR(text, "thesis");
    ASSERT_OK(renameat(dir, ".px", dir, "real"));
    ASSERT_OK(symlinkat("user", dir, ".px"));
    ASSERT_EQ(px_layout_state_file_write(dir, false, &env, &e), -1);
    ASSERT_EQ(fstatat(dir, "user/state.json", &st, 0), -1);
}

TEST(the_older_name_of_the_lock_is_known)
{
    px_auto_fd int dir = px_test_dir();
    struct px_err e = {0};
    struct px_made_env got;
    write_state(dir, "{\"current_env\":{\"lock_hash\":\"old\"}}");
    ASSERT_EQ(px_layout_state_file_read(dir, false, &got, &e), 0);
    ASSERT_STR(got.lock_id, "old");
    px_layout_state_file_env_done(&got);
}

TEST(a_state_that_cannot_be_read_says_so)
{
    static const char *const texts[] = {"", "{", "[]", "{}", "{\"current_env\":[]}", "{\"current_env\":{}}x", "{\"current_env\":{},\"current_env\":{}}"};
    px_auto_fd int dir = px_test_dir();
    for (size_t i = 0; i < PX_COUNT_OF(texts); i++) {
        struct px_err e = {0};
        struct px_made_env got;
        write_state(dir, texts[i]);
        if (px_layout_state_file_read(dir, false, &got, &e) != -1 || e.code != PX_E_ENV || !strstr(e.details, "invalid_state"))
            FAIL("case %zu: PX%03d %s %s", i, e.code, e.what, e.details);
    }
}

static int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    ASSERT(d);
    for (const struct dirent *entry; (entry = readdir(d));)
        n += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(d);
    return n;
}

TEST(a_file_is_replaced_whole)
{
    px_auto_fd int dir = px_test_dir();
    char text[64];
    struct stat st;
    ASSERT_OK(px_layout_replace_file(dir, "f", "one", 3));
    ASSERT_EQ(fchmodat(dir, "f", 0640, 0), 0);
    ASSERT_OK(px_layout_replace_file(dir, "f", "two!", 4));
    ASSERT_OK(px_read_file(dir, "f", text, sizeof text));
    ASSERT_STR(text, "two!");
    ASSERT_EQ(fstatat(dir, "f", &st, 0), 0);
    ASSERT_EQ(st.st_mode & 0777, 0640);
    ASSERT_EQ(symlinkat("f", dir, "link"), 0);
    ASSERT_EQ(px_layout_replace_file(dir, "link", "x", 1), -ELOOP);
    ASSERT_EQ(entries(px_test_dir_path()), 2);
}

TEST(manifest_and_lock_are_written_as_one)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_buf struct px_buf manifest = PX_BUF(64), lock = PX_BUF(64), left = PX_BUF(64);
    const struct px_both both = {.root = dir, .dir = dir, .lock_file = "px.lock", .manifest = &manifest, .lock = &lock};
    bool written = true;
    char text[64];
    px_buf_puts(&manifest, "manifest");
    px_buf_puts(&lock, "lock");
    ASSERT_EQ(symlinkat("elsewhere", dir, "px.lock"), 0);
    ASSERT_EQ(px_both_write(&both, &written), -ELOOP);  /* nothing is started that cannot be finished */
    ASSERT(faccessat(dir, "pyproject.toml", F_OK, 0) < 0 && px_both_left(dir, 64, &left) == 1);
    ASSERT_EQ(unlinkat(dir, "px.lock", 0), 0);
    ASSERT_EQ(symlinkat("elsewhere", dir, "pyproject.toml"), 0);
    ASSERT_EQ(px_both_write(&both, &written), -ELOOP);
    ASSERT(!written && faccessat(dir, "px.lock", F_OK, 0) < 0 && px_both_left(dir, 64, &left) == 1);
    ASSERT_EQ(unlinkat(dir, "pyproject.toml", 0), 0);
    ASSERT_OK(px_both_write(&both, &written));
    ASSERT(written && px_both_left(dir, 64, &left) == 1);
    ASSERT_OK(px_read_file(dir, "px.lock", text, sizeof text));
    ASSERT_STR(text, "lock");
}

TEST(what_was_left_becomes_the_lock_or_goes)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_buf struct px_buf left = PX_BUF(64);
    char text[64];
    ASSERT_OK(px_both_settle(dir, "px.lock", 64, true));        /* there is no .px */
    ASSERT_EQ(mkdirat(dir, ".px", 0755), 0);
    ASSERT_OK(px_both_settle(dir, "px.lock", 64, true));        /* nothing was left */
    ASSERT(faccessat(dir, "px.lock", F_OK, 0) < 0);
    ASSERT_OK(px_layout_replace_file(dir, ".px/next.lock", "next", 4));
    ASSERT_EQ(px_both_left(dir, 64, &left), 0);
    ASSERT_STR(px_buf_text(&left), "next");
    ASSERT_OK(px_both_settle(dir, "px.lock", 64, true));
    ASSERT_OK(px_read_file(dir, "px.lock", text, sizeof text));
    ASSERT_STR(text, "next");
    ASSERT_OK(px_layout_replace_file(dir, ".px/next.lock", "other", 5));
    ASSERT_OK(px_both_settle(dir, "px.lock", 64, false));
    ASSERT_OK(px_read_file(dir, "px.lock", text, sizeof text));
    ASSERT_STR(text, "next");
    ASSERT(px_both_left(dir, 64, &left) == 1);
    ASSERT_EQ(renameat(dir, ".px", dir, "away"), 0);
    ASSERT_EQ(symlinkat("away", dir, ".px"), 0);
    ASSERT_OK(px_layout_replace_file(dir, "away/next.lock", "far", 3));
    ASSERT(px_both_left(dir, 64, &left) == 1);                  /* a link leads anywhere */
}
