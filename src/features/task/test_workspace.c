/* task/test_workspace.c - workspaces without a box: layers as one tree, atomic changes, records that are repeated after
 * a kill. */
#include "task/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "task/journal.h"

struct fixture {
    int top;
    char path[64];
    struct px_workspace_root root;
};

static void open_root(struct fixture *f)
{
    struct px_err e = {0};
    char work[128], logs[128], home[128];
    f->top = px_test_dir();
    (void)px_fmt(f->path, sizeof f->path, "/proc/self/fd/%d", f->top);
    (void)px_fmt(home, sizeof home, "%s/h", f->path);
    ASSERT_OK(setenv("PX_HOME", home, 1));
    (void)px_fmt(work, sizeof work, "%s/w", f->path);
    (void)px_fmt(logs, sizeof logs, "%s/l/o", f->path);
    ASSERT_PX(px_workspace_root_open(work, logs, 1 << 20, &f->root, &e), e);
}

static void done_root(struct fixture *f)
{
    px_workspace_root_done(&f->root);
    (void)px_fd_close(f->top);
}

static void put(int dir, const char *path, const char *text)
{
    px_auto_fd int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(fd);
    ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void whiteout(int dir, const char *path)
{
    if (mknodat(dir, path, S_IFCHR, makedev(0, 0)) < 0)
        SKIP("this kernel lets nobody make a whiteout: %s", strerror(errno));
}

static int make_dir(int top, const char *name)
{
    ASSERT_OK(mkdirat(top, name, 0755));
    int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(fd);
    return fd;
}

static void open_space(struct fixture *f, const char *id, enum px_space_how how, struct px_workspace *ret)
{
    struct px_err e = {0};
    ASSERT_PX(px_workspace_open(&f->root, id, how, ret, &e), e);
}

/* Commits the content of the directory `upper` to the workspace. */
static void commit(struct px_workspace *space, int upper, const char *key, const char *line)
{
    struct px_err e = {0};
    struct px_changes changes;
    ASSERT_EQ(px_changes_compare(upper, &space->tree, NULL, &changes), 0);
    ASSERT_PX(px_workspace_commit(space, &changes, NULL, &(struct px_space_note){key, line}, &e), e);
    px_changes_done(&changes);
}

static void check_text(const struct px_layers *tree, const char *path, const char *expected)
{
    char text[64] = "";
    px_auto_fd int fd = px_layers_open(tree, path);
    if (!expected) {
        ASSERT_EQ(fd, -ENOENT);
        return;
    }
    ASSERT_OK(fd);
    ASSERT_OK(px_read_full(fd, text, sizeof text - 1));
    ASSERT_STR(text, expected);
}

TEST(layers_are_one_tree)
{
    px_auto_fd int top = px_test_dir(), a = make_dir(top, "a"), b = make_dir(top, "b"), c = make_dir(top, "c");
    const struct px_layers l = {.fds = {a, b, c}, .count = 3};
    struct px_layers_at at;
    for (int i = 0; i < 3; i++)
        ASSERT_OK(mkdirat(l.fds[i], "d", 0755));
    put(c, "d/low", "c");
    put(c, "d/both", "c");
    put(b, "d/both", "b");
    put(c, "gone", "c");
    whiteout(b, "gone");
    put(c, "file", "c");
    ASSERT_OK(mkdirat(a, "file", 0755));
    put(a, "file/in", "a");
    ASSERT_OK(mkdirat(c, "turned", 0755));
    put(c, "turned/in", "c");
    put(b, "turned", "b");
    check_text(&l, "d/low", "c");
    check_text(&l, "d/both", "b");
    check_text(&l, "gone", NULL);
    check_text(&l, "file/in", "a");
    check_text(&l, "turned", "b");
    check_text(&l, "turned/in", NULL);
    check_text(&l, "d/low/no", NULL);
    ASSERT_EQ(px_layers_find(&l, "d/", &at), 0);
    ASSERT_EQ(at.parts, 7u);
}

TEST(names_of_tasks)
{
    static const char *const good[] = {"a", ".a", "A-b_c.9", "..."};
    static const char *const bad[] = {"", ".", "..", ".px", "a/b", "a b", "\xc3\xa4", "a\n"};
    struct px_err e = {0};
    for (size_t i = 0; i < PX_COUNT_OF(good); i++)
        ASSERT_EQ(px_workspace_check_id(good[i], &e), 0);
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++) {
        ASSERT_EQ(px_workspace_check_id(bad[i], &e), -1);
        ASSERT_EQ(e.code, PX_E_TASK_ID);
    }
}

TEST(only_one_at_a_time)
{
    struct fixture f;
    struct px_workspace one, other;
    struct px_err e = {0};
    open_root(&f);
    ASSERT_EQ(px_workspace_open(&f.root, "t", PX_SPACE_FIND, &one, &e), -1);
    ASSERT_EQ(e.code, PX_E_NO_TASK);
    open_space(&f, "t", PX_SPACE_MAKE, &one);
    ASSERT_EQ(px_workspace_open(&f.root, "t", PX_SPACE_FIND, &other, &e), -1);
    ASSERT_EQ(e.code, PX_E_TASK_BUSY);
    px_workspace_close(&one);
    ASSERT_EQ(px_workspace_open(&f.root, "t", PX_SPACE_NEW, &other, &e), -1);
    ASSERT_EQ(e.code, PX_E_TASK_EXISTS);
    open_space(&f, "t", PX_SPACE_FIND, &one);
    px_workspace_close(&one);
    done_root(&f);
}

TEST(changes_of_plain_ones_and_of_branches)
{
    struct fixture f;
    struct px_workspace t, u;
    struct px_err e = {0};
    open_root(&f);
    px_auto_fd int upper = make_dir(f.top, "upper"), second = make_dir(f.top, "second");
    open_space(&f, "t", PX_SPACE_MAKE, &t);
    put(upper, "a", "1");
    ASSERT_OK(mkdirat(upper, "d", 0755));
    put(upper, "d/b", "1");
    commit(&t, upper, "k1", "{\"action\":\"k1\"}");
    check_text(&t.tree, "d/b", "1");
    ASSERT_PX(px_workspace_fork(&t, "u", &e), e);
    ASSERT_EQ(t.branch, true);
    open_space(&f, "u", PX_SPACE_FIND, &u);
    whiteout(second, "d");
    put(second, "a", "2");
    commit(&u, second, "k2", "{\"action\":\"k2\"}");
    check_text(&u.tree, "d/b", NULL);
    check_text(&u.tree, "a", "2");
    check_text(&t.tree, "d/b", "1");
    check_text(&t.tree, "a", "1");
    ASSERT(px_journal_has(f.root.logs, "t", "\"k1\"") && px_journal_has(f.root.logs, "u", "\"k2\""));
    ASSERT_PX(px_workspace_remove(&t, &e), e);
    px_workspace_close(&t);
    check_text(&u.tree, "a", "2");
    ASSERT_PX(px_workspace_remove(&u, &e), e);
    px_workspace_close(&u);
    done_root(&f);
}

/* As after a kill when everything is staged and nothing is done, and as after one just before the end. */
static void check_recovery(bool done_before)
{
    struct fixture f;
    struct px_workspace t;
    char mac[PX_MAC_HEX];
    static const char record[] = "px-redo 2\0d 32768 0 old\0m 0 0 dir\0p 33188 0 dir/new\0p 33188 1 a\0c 16832 0 dir/\0"
                                 "j 0 0 key1 {\"action\":\"key1\"}";
    open_root(&f);
    open_space(&f, "t", PX_SPACE_MAKE, &t);
    put(t.tree.fds[0], "old", "o");
    put(t.tree.fds[0], "a", "before");
    ASSERT_OK(mkdirat(t.own, "stage", 0700));
    px_auto_fd int stage = openat(t.own, "stage", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(stage, "0", "new");
    put(stage, "1", "after");
    px_auto_fd int fd = openat(stage, "record", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    px_workspace_sign(&t, record, sizeof record, mac);
    ASSERT_EQ(write(fd, record, sizeof record), (ssize_t)sizeof record);
    ASSERT_EQ(dprintf(fd, "s 0 0 %s%c", mac, 0), 6 + PX_MAC_HEX);
    if (done_before) {
        ASSERT_OK(unlinkat(t.tree.fds[0], "old", 0));
        ASSERT_OK(mkdirat(t.tree.fds[0], "dir", 0700));
        ASSERT_OK(renameat(stage, "0", t.tree.fds[0], "dir/new"));
        ASSERT_OK(renameat(stage, "1", t.tree.fds[0], "a"));
        ASSERT_EQ(px_journal_append(f.root.logs, "t", "{\"action\":\"key1\"}", 17, 0), 0);
    }
    px_workspace_close(&t);
    open_space(&f, "t", PX_SPACE_FIND, &t);
    check_text(&t.tree, "old", NULL);
    check_text(&t.tree, "dir/new", "new");
    check_text(&t.tree, "a", "after");
    struct stat st;
    ASSERT_OK(fstatat(t.tree.fds[0], "dir", &st, 0));
    ASSERT_EQ(st.st_mode & 0777, 0700u);
    ASSERT_EQ(faccessat(t.own, "stage/record", F_OK, 0), -1);
    px_workspace_close(&t);
    open_space(&f, "t", PX_SPACE_FIND, &t); /* and nothing is done twice */
    px_workspace_close(&t);
    char text[256];
    ASSERT_EQ(px_read_file(f.root.logs, "t.jsonl", text, sizeof text), 18);
    done_root(&f);
}

/* The beginning of a line at its end would be cut off. */
TEST(a_journal_is_no_other_name_of_a_file)
{
    struct fixture f;
    char text[16];
    open_root(&f);
    put(f.top, "thesis", "no newline");
    ASSERT_OK(linkat(f.top, "thesis", f.root.logs, "t.jsonl", 0));
    ASSERT_EQ(px_journal_append(f.root.logs, "t", "{}", 2, 0), -EPERM);
    ASSERT_OK(symlinkat("../../thesis", f.root.logs, "u.jsonl"));
    ASSERT_EQ(px_journal_append(f.root.logs, "u", "{}", 2, 0), -ELOOP);
    ASSERT_OK(px_read_file(f.top, "thesis", text, sizeof text));
    ASSERT_STR(text, "no newline");
    done_root(&f);
}

TEST(a_record_is_done_by_who_comes_next)
{
    check_recovery(false);
}

TEST(a_record_is_done_to_its_end_once)
{
    check_recovery(true);
}

TEST(a_stage_without_a_record_is_dropped)
{
    struct fixture f;
    struct px_workspace t;
    open_root(&f);
    open_space(&f, "t", PX_SPACE_MAKE, &t);
    put(t.tree.fds[0], "a", "before");
    ASSERT_OK(mkdirat(t.own, "stage", 0700));
    px_auto_fd int stage = openat(t.own, "stage", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(stage, "0", "new");
    px_workspace_close(&t);
    open_space(&f, "t", PX_SPACE_FIND, &t);
    check_text(&t.tree, "a", "before");
    ASSERT_EQ(faccessat(stage, "0", F_OK, 0), -1);
    px_workspace_close(&t);
    done_root(&f);
}

TEST(a_fork_that_was_killed_before_its_rename)
{
    struct fixture f;
    struct px_workspace t;
    static const char list[] = "px-branch 1\n1 1\n00112233445566778899aabbccddeeff\n00112233445566778899aabbccddeeff\n";
    open_root(&f);
    open_space(&f, "t", PX_SPACE_MAKE, &t);
    put(t.tree.fds[0], "a", "1");
    ASSERT_EQ(px_workspace_use(&f.root, "00112233445566778899aabbccddeeff", "t"), 0);
    put(t.own, "layers", list);
    px_workspace_close(&t);
    open_space(&f, "t", PX_SPACE_FIND, &t);
    ASSERT_EQ(t.branch, true);
    check_text(&t.tree, "a", "1");
    px_workspace_close(&t);
    done_root(&f);
}

TEST(what_is_broken_is_said)
{
    struct fixture f;
    struct px_workspace t;
    struct px_err e = {0};
    static const char *const lists[] = {"", "px-branch 2\n1 0\n", "px-branch 1\n99 0\n", "px-branch 1\n1 0\n../../x\n",
                                        "px-branch 1\n1 0\n00112233445566778899aabbccddeeff\n"};
    open_root(&f);
    open_space(&f, "t", PX_SPACE_MAKE, &t);
    px_auto_fd int own = fcntl(t.own, F_DUPFD_CLOEXEC, 3);
    px_workspace_close(&t);
    (void)unlinkat(f.root.dir, "t", AT_REMOVEDIR);
    (void)px_fd_close(own);
    own = openat(f.root.own, "tasks/t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < PX_COUNT_OF(lists); i++) {
        put(own, "layers", lists[i]);
        e = (struct px_err){0};
        ASSERT_EQ(px_workspace_open(&f.root, "t", PX_SPACE_FIND, &t, &e), -1);
        ASSERT_EQ(e.code, PX_E_TASK_STATE);
    }
    done_root(&f);
}

TEST(journals)
{
    px_auto_fd int dir = px_test_dir();
    char text[64];
    ASSERT_EQ(px_journal_append(dir, "t", "one", 3, 0), 0);
    ASSERT_EQ(px_journal_append(dir, "t", "a\nb", 3, 0), -EINVAL);
    px_auto_fd int fd = openat(dir, "t.jsonl", O_WRONLY | O_APPEND | O_CLOEXEC);
    ASSERT_EQ(write(fd, "torn", 4), 4);
    ASSERT(!px_journal_has(dir, "t", "torn"));
    ASSERT_EQ(px_journal_append(dir, "t", "two", 3, 0), 0);
    ASSERT_OK(px_read_file(dir, "t.jsonl", text, sizeof text));
    ASSERT_STR(text, "one\ntwo\n");
    ASSERT_EQ(px_journal_append(dir, "t", "three", 5, 10), 0);
    ASSERT_OK(px_read_file(dir, "t.jsonl", text, sizeof text));
    ASSERT_STR(text, "three\n");
    ASSERT_OK(px_read_file(dir, "t.jsonl.1", text, sizeof text));
    ASSERT_STR(text, "one\ntwo\n");
    ASSERT(px_journal_has(dir, "t", "two") && !px_journal_has(dir, "t", "four"));
}
