/* changes/test_changes.c - an upper directory read, shown and merged, without an overlay: its files, whiteouts and marks
 * are made here. */
#include "changes/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

struct trees {
    int top, upper, lower;
};

static struct trees make_trees(void)
{
    struct trees t = {.top = px_test_dir()};
    ASSERT_OK(mkdirat(t.top, "upper", 0755));
    ASSERT_OK(mkdirat(t.top, "lower", 0755));
    t.upper = openat(t.top, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    t.lower = openat(t.top, "lower", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(t.upper);
    ASSERT_OK(t.lower);
    return t;
}

static void done_trees(struct trees *t)
{
    (void)px_fd_close(t->upper);
    (void)px_fd_close(t->lower);
    (void)px_fd_close(t->top);
}

static void put(int dir, const char *path, const char *text, mode_t mode)
{
    px_auto_fd int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_OK(fd);
    ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ASSERT_OK(fchmod(fd, mode));
}

static void check_text(int dir, const char *path, const char *expected)
{
    char text[256];
    ASSERT_OK(px_read_file(dir, path, text, sizeof text));
    ASSERT_STR(text, expected);
}

static void whiteout(int dir, const char *path)
{
    if (mknodat(dir, path, S_IFCHR, makedev(0, 0)) < 0)
        SKIP("this kernel lets nobody make a whiteout: %s", strerror(errno));
}

/* Long after everything that the test has made. */
static const struct timespec never = {.tv_sec = INT64_MAX / 2};

static void read_trees(const struct trees *t, struct px_changes *c)
{
    ASSERT_EQ(px_changes_read(t->upper, t->lower, c), 0);
}

/* "added a, deleted b" of what is listed. */
static void check_list(const struct px_changes *c, const char *expected)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 16);
    for (size_t i = 0; i < c->count; i++)
        if (c->items[i].listed)
            px_buf_printf(&out, "%s%s %s", out.len ? ", " : "", px_changes_word(c->items[i].kind), c->items[i].path);
    ASSERT_STR(px_buf_text(&out), expected);
}

static void apply_all(const struct px_changes *c)
{
    struct px_err e = {0};
    ASSERT_PX(px_changes_apply(c, &never, &e), e);
}

TEST(files_of_every_kind_of_change)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    put(t.lower, "same", "1\n", 0644);
    put(t.upper, "same", "1\n", 0644);
    put(t.lower, "text", "1\n", 0644);
    put(t.upper, "text", "2\n", 0644);
    put(t.lower, "mode", "1\n", 0644);
    put(t.upper, "mode", "1\n", 0755);
    put(t.upper, "new", "n\n", 0640);
    put(t.lower, "gone", "g\n", 0644);
    whiteout(t.upper, "gone");
    whiteout(t.upper, "never-was");
    ASSERT_OK(symlinkat("a", t.lower, "link"));
    ASSERT_OK(symlinkat("b", t.upper, "link"));
    ASSERT_OK(mkfifoat(t.upper, "pipe", 0644));
    read_trees(&t, &c);
    check_list(&c, "deleted gone, modified link, mode mode, added new, special pipe, modified text");
    apply_all(&c);
    px_changes_done(&c);
    check_text(t.lower, "text", "2\n");
    check_text(t.lower, "new", "n\n");
    struct stat st;
    ASSERT_OK(fstatat(t.lower, "mode", &st, 0));
    ASSERT_EQ(st.st_mode & 07777, 0755);
    ASSERT_OK(fstatat(t.lower, "new", &st, 0));
    ASSERT_EQ(st.st_mode & 07777, 0640);
    ASSERT_EQ(faccessat(t.lower, "gone", F_OK, 0), -1);
    ASSERT_EQ(fstatat(t.lower, "pipe", &st, AT_SYMLINK_NOFOLLOW), -1);
    char to[8] = "";
    ASSERT_EQ(readlinkat(t.lower, "link", to, sizeof to), 1);
    ASSERT_STR(to, "b");
    done_trees(&t);
}

TEST(directories_that_come_go_and_are_replaced)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    ASSERT_OK(mkdirat(t.upper, "new", 0500));
    ASSERT_OK(mkdirat(t.upper, "new-with", 0755));
    put(t.upper, "new-with/file", "1\n", 0644);
    ASSERT_OK(fchmodat(t.upper, "new-with", 0555, 0));
    ASSERT_OK(mkdirat(t.lower, "gone", 0755));
    ASSERT_OK(mkdirat(t.lower, "gone/deep", 0755));
    put(t.lower, "gone/deep/file", "1\n", 0644);
    ASSERT_OK(mkdirat(t.lower, "gone/empty", 0755));
    whiteout(t.upper, "gone");
    ASSERT_OK(mkdirat(t.lower, "again", 0755));
    put(t.lower, "again/old", "1\n", 0644);
    put(t.lower, "again/both", "1\n", 0644);
    ASSERT_OK(mkdirat(t.upper, "again", 0755));
    put(t.upper, "again/both", "2\n", 0644);
    px_auto_fd int again = openat(t.upper, "again", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fsetxattr(again, "user.overlay.opaque", "y", 1, 0) < 0)
        SKIP("no attributes of users here");
    put(t.lower, "file-to-dir", "1\n", 0644);
    ASSERT_OK(mkdirat(t.upper, "file-to-dir", 0755));
    put(t.upper, "file-to-dir/in", "1\n", 0644);
    ASSERT_OK(mkdirat(t.lower, "dir-to-file", 0755));
    put(t.lower, "dir-to-file/in", "1\n", 0644);
    put(t.upper, "dir-to-file", "2\n", 0644);
    read_trees(&t, &c);
    check_list(
        &c, "modified again/both, deleted again/old, added dir-to-file, deleted dir-to-file/in, deleted file-to-dir, "
            "added file-to-dir/in, deleted gone/deep/file, deleted gone/empty/, added new-with/file, added new/");
    apply_all(&c);
    px_changes_done(&c);
    check_text(t.lower, "again/both", "2\n");
    check_text(t.lower, "file-to-dir/in", "1\n");
    check_text(t.lower, "dir-to-file", "2\n");
    check_text(t.lower, "new-with/file", "1\n");
    ASSERT_EQ(faccessat(t.lower, "gone", F_OK, 0), -1);
    ASSERT_EQ(faccessat(t.lower, "again/old", F_OK, 0), -1);
    struct stat st;
    ASSERT_OK(fstatat(t.lower, "new-with", &st, 0));
    ASSERT_EQ(st.st_mode & 07777, 0555);
    ASSERT_OK(fchmodat(t.lower, "new-with", 0755, 0)); /* so that it can be removed */
    ASSERT_OK(fchmodat(t.upper, "new-with", 0755, 0));
    done_trees(&t);
}

/* A tree that wants out: links in place of directories, in both trees, lead nowhere. */
TEST(no_link_is_followed)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    struct px_err e = {0};
    ASSERT_OK(mkdirat(t.top, "outside", 0755));
    put(t.top, "outside/secret", "secret\n", 0644);
    ASSERT_OK(symlinkat("../outside", t.upper, "a")); /* read as a link, not as what is behind it */
    ASSERT_OK(symlinkat("../outside", t.lower, "b")); /* a directory comes where a link was */
    ASSERT_OK(mkdirat(t.upper, "b", 0755));
    put(t.upper, "b/secret", "mine\n", 0644);
    read_trees(&t, &c);
    check_list(&c, "added a, deleted b, added b/secret");
    px_auto_buf struct px_buf diff = PX_BUF(1 << 16);
    bool truncated = true;
    ASSERT_OK(px_changes_diff(&c, PX_DIFF_GIT, PX_DIFF_BUDGET, &diff, &truncated));
    ASSERT(!truncated && strstr(px_buf_text(&diff), "secret\n+") == NULL &&
           strstr(px_buf_text(&diff), "+../outside\n") != NULL);
    ASSERT_PX(px_changes_apply(&c, &never, &e), e);
    check_text(t.top, "outside/secret", "secret\n");
    check_text(t.lower, "b/secret", "mine\n");
    px_changes_done(&c);
    done_trees(&t);
}

/* A directory of the lower tree becomes a link between the look and the merge. */
TEST(a_link_that_comes_meanwhile_stops_it)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    struct px_err e = {0};
    ASSERT_OK(mkdirat(t.top, "outside", 0755));
    ASSERT_OK(mkdirat(t.lower, "d", 0755));
    ASSERT_OK(mkdirat(t.upper, "d", 0755));
    put(t.upper, "d/new", "1\n", 0644);
    read_trees(&t, &c);
    ASSERT_OK(unlinkat(t.lower, "d", AT_REMOVEDIR));
    ASSERT_OK(symlinkat("../outside", t.lower, "d"));
    ASSERT_EQ(px_changes_apply(&c, &never, &e), -1);
    ASSERT_EQ(e.code, PX_E_CHANGES);
    ASSERT_EQ(faccessat(t.top, "outside/new", F_OK, 0), -1);
    px_changes_done(&c);
    done_trees(&t);
}

TEST(set_id_bits_never_arrive)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    struct stat st;
    put(t.upper, "tool", "#!\n", 06755);
    put(t.lower, "mode", "1\n", 0644);
    put(t.upper, "mode", "1\n", 06755);
    ASSERT_OK(mkdirat(t.upper, "dir", 0755));
    ASSERT_OK(fchmodat(t.upper, "dir", 02755, 0));
    read_trees(&t, &c);
    apply_all(&c);
    const char *const names[] = {"tool", "mode", "dir"};
    for (size_t i = 0; i < 3; i++) {
        ASSERT_OK(fstatat(t.lower, names[i], &st, 0));
        ASSERT_EQ(st.st_mode & 07777, 0755);
    }
    px_changes_done(&c);
    done_trees(&t);
}

static void check_conflict(struct trees *t, const struct px_changes *c, const char *name)
{
    struct px_err e = {0};
    struct timespec past = {.tv_sec = 1};
    ASSERT_EQ(px_changes_apply(c, &past, &e), -1);
    ASSERT_EQ(e.code, PX_E_CHANGES);
    if (!strstr(e.what, name) || !strstr(e.what, "nothing was applied"))
        FAIL("it says '%s'", e.what);
    check_text(t->lower, "file", "1\n");
}

TEST(what_others_changed_meanwhile_is_named_and_left_alone)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    put(t.lower, "file", "1\n", 0644);
    put(t.upper, "file", "2\n", 0644);
    put(t.upper, "new", "1\n", 0644);
    read_trees(&t, &c);
    check_conflict(&t, &c, ": file");
    ASSERT_EQ(faccessat(t.lower, "new", F_OK, 0), -1);
    put(t.lower, "new", "theirs\n", 0644); /* came since the look */
    check_conflict(&t, &c, "file, new");
    check_text(t.lower, "new", "theirs\n");
    px_changes_done(&c);
    done_trees(&t);
}

TEST(what_is_gone_meanwhile_is_a_conflict_too)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    struct px_err e = {0};
    put(t.lower, "file", "1\n", 0644);
    put(t.upper, "file", "2\n", 0644);
    read_trees(&t, &c);
    ASSERT_OK(unlinkat(t.lower, "file", 0));
    ASSERT_EQ(px_changes_apply(&c, &never, &e), -1);
    ASSERT_EQ(faccessat(t.lower, "file", F_OK, 0), -1);
    px_changes_done(&c);
    done_trees(&t);
}

TEST(what_its_maker_closed_is_read_all_the_same)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    ASSERT_OK(mkdirat(t.upper, "d", 0755));
    put(t.upper, "d/file", "1\n", 0);
    ASSERT_OK(fchmodat(t.upper, "d", 0, 0));
    read_trees(&t, &c);
    check_list(&c, "added d/file");
    apply_all(&c);
    struct stat st;
    ASSERT_OK(fstatat(t.lower, "d", &st, 0));
    ASSERT_EQ(st.st_mode & 07777, 0);
    ASSERT_OK(fchmodat(t.lower, "d", 0755, 0));
    ASSERT_OK(fstatat(t.lower, "d/file", &st, 0));
    ASSERT_EQ(st.st_mode & 07777, 0);
    px_changes_done(&c);
    done_trees(&t);
}

TEST(a_diff_beyond_its_bound_leaves_files_out_and_says_so)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    bool truncated = false;
    put(t.upper, "a", "a line of some length that will not fit\n", 0644);
    put(t.upper, "b", "b\n", 0644);
    read_trees(&t, &c);
    px_auto_buf struct px_buf diff = PX_BUF(110);
    ASSERT_OK(px_changes_diff(&c, PX_DIFF_GIT, PX_DIFF_BUDGET, &diff, &truncated));
    ASSERT(truncated && strstr(px_buf_text(&diff), "+b\n") != NULL &&
           strstr(px_buf_text(&diff), "some length") == NULL);
    px_changes_done(&c);
    done_trees(&t);
}

TEST(names_that_look_like_marks)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    const char *const names[] = {"+", "-", "-x", "+x"};
    for (size_t i = 0; i < 4; i++) {
        char path[16];
        ASSERT_OK(mkdirat(t.upper, names[i], 0755));
        ASSERT_OK(px_fmt(path, sizeof path, "%s/f", names[i]));
        put(t.upper, path, "1\n", 0644);
    }
    read_trees(&t, &c);
    check_list(&c, "added +/f, added +x/f, added -/f, added -x/f");
    px_changes_done(&c);
    done_trees(&t);
}

TEST(memory_can_end_anywhere)
{
    struct trees t = make_trees();
    bool failed = true;
    ASSERT_OK(mkdirat(t.upper, "d", 0755));
    put(t.upper, "d/new", "1\n", 0644);
    put(t.lower, "file", "1\n", 0644);
    put(t.upper, "file", "2\n", 0644);
    for (unsigned n = 1; failed && n < 1000; n++) {
        struct px_changes c = {0};
        px_auto_buf struct px_buf diff = PX_BUF(1 << 16);
        bool truncated;
        px_test_fail_alloc(n);
        int r = px_changes_read(t.upper, t.lower, &c);
        if (r >= 0)
            r = px_changes_diff(&c, PX_DIFF_GIT, PX_DIFF_BUDGET, &diff, &truncated);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(failed ? r < 0 : r == 0);
        px_changes_done(&c);
    }
    done_trees(&t);
}

/* ---- how much ---- */

static const off_t huge = (off_t)1 << 43; /* ext4 has files of up to 16 TiB */

static void make_sparse(int dir, const char *name, off_t size)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    ASSERT_OK(fd);
    ASSERT_OK(ftruncate(fd, size));
    ASSERT_EQ(pwrite(fd, "end", 3, size - 3), 3);
}

TEST(a_sparse_file_is_read_shown_and_merged_without_its_holes)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    struct px_err e = {0};
    struct stat st;
    bool truncated = false;
    px_auto_buf struct px_buf diff = PX_BUF(1 << 16);
    make_sparse(t.upper, "s", huge);
    make_sparse(t.upper, "same", huge);
    make_sparse(t.lower, "same", huge);
    read_trees(&t, &c);
    check_list(&c, "added s");
    ASSERT_OK(px_changes_diff(&c, PX_DIFF_GIT, PX_DIFF_BUDGET, &diff, &truncated));
    ASSERT(strstr(px_buf_text(&diff), "Files /dev/null and b/s differ, and are too large to show\n") != NULL);
    ASSERT_PX(px_changes_weigh(&c, 1 << 20, t.lower, &e), e);
    ASSERT_PX(px_changes_apply(&c, &never, &e), e);
    ASSERT_OK(fstatat(t.lower, "s", &st, 0));
    ASSERT_EQ(st.st_size, huge);
    ASSERT(st.st_blocks < 2048);
    px_changes_done(&c);
    done_trees(&t);
}

TEST(more_than_the_limit_is_not_merged)
{
    static char data[100000];
    struct trees t = make_trees();
    struct px_changes c = {0};
    struct px_err e = {0};
    memset(data, 'x', sizeof data - 1);
    put(t.upper, "one", data, 0644);
    read_trees(&t, &c);
    ASSERT_PX(px_changes_weigh(&c, 200000, t.lower, &e), e);
    px_changes_done(&c);
    ASSERT_OK(linkat(t.upper, "one", t.upper, "two", 0)); /* each name becomes a file of its own */
    ASSERT_OK(linkat(t.upper, "one", t.upper, "three", 0));
    read_trees(&t, &c);
    ASSERT_EQ(px_changes_weigh(&c, 200000, t.lower, &e), -1);
    ASSERT_EQ(e.code, PX_E_MERGE_TOO_LARGE);
    ASSERT(strstr(e.why, "200000 bytes") != NULL);
    ASSERT_PX(px_changes_weigh(&c, UINT64_MAX, t.lower, &e), e);
    px_changes_done(&c);
    done_trees(&t);
}

/* ---- a budget for all diffs together ---- */

TEST(files_beyond_the_budget_are_named)
{
    struct trees t = make_trees();
    struct px_changes c = {0};
    bool truncated = false;
    px_auto_buf struct px_buf diff = PX_BUF(1 << 16);
    put(t.upper, "a", "12345678\n", 0644);
    put(t.lower, "b", "12345678\n", 0644);
    put(t.upper, "b", "1\n", 0644);
    put(t.upper, "c", "1\n", 0644);
    read_trees(&t, &c);
    struct px_diff_budget budget = PX_DIFF_BUDGET;
    budget.bytes = 15;
    ASSERT_OK(px_changes_diff(&c, PX_DIFF_PLAIN, budget, &diff, &truncated));
    ASSERT_STR(px_buf_text(&diff), "--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+12345678\n"
                                   "Files a/b and b/b differ; diff left out: budget\n"
                                   "Files /dev/null and b/c differ; diff left out: budget\n");
    ASSERT(truncated);
    px_changes_done(&c);
    done_trees(&t);
}
