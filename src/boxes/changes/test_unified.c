/* changes/test_unified.c - unified diffs: byte-exact vectors, and random texts against an applier of its own, `patch` and `git apply`. */
#include "changes/unified.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

static struct px_diff_side file_of(const char *text)
{
    return text ? (struct px_diff_side){text, strlen(text), 0100644} : (struct px_diff_side){"", 0, 0};
}

static void check(const char *path, const char *before, const char *after, enum px_diff_style style, const char *expected)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_diff_side a = file_of(before), b = file_of(after);
    ASSERT_OK(px_unified_write(path, &a, &b, style, &out));
    ASSERT_STR(px_buf_text(&out), expected);
}

TEST(vectors_of_the_plain_style)
{
    check("file.txt", "line1\n", "line1\nline2\n", PX_DIFF_PLAIN, "--- a/file.txt\n+++ b/file.txt\n@@ -1 +1,2 @@\n line1\n+line2\n");
    check("x", NULL, "x\n", PX_DIFF_PLAIN, "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+x\n");
    check("x", "x\n", NULL, PX_DIFF_PLAIN, "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-x\n");
    check("x", "a", "b", PX_DIFF_PLAIN,
          "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n");
    check("x", "a\n", "a", PX_DIFF_PLAIN, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
    check("x", "a\fb\n", "a\fc\n", PX_DIFF_PLAIN, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\fb\n+a\fc\n");
    check("x", "same\n", "same\n", PX_DIFF_PLAIN, "");
}

TEST(vectors_of_modes)
{
    check("x", NULL, "", PX_DIFF_GIT, "diff --git a/x b/x\nnew file mode 100644\n");
    check("d/x", NULL, "1\n", PX_DIFF_GIT, "diff --git a/d/x b/d/x\nnew file mode 100644\n--- /dev/null\n+++ b/d/x\n@@ -0,0 +1 @@\n+1\n");
    check("x", "1\n", NULL, PX_DIFF_GIT, "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n");
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_diff_side a = file_of("1\n"), b = a;
    b.mode = 0100755;
    ASSERT_OK(px_unified_write("x", &a, &b, PX_DIFF_GIT, &out));
    ASSERT_STR(px_buf_text(&out), "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n");
    px_buf_done(&out);
    out = PX_BUF(1 << 20);
    b.mode = 0120000;
    b.data = "to";
    ASSERT_OK(px_unified_write("x", &a, &b, PX_DIFF_GIT, &out));
    ASSERT_STR(px_buf_text(&out),
               "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
               "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+to\n\\ No newline at end of file\n");
}

static void check_kinds(const char *before, unsigned before_mode, const char *after, unsigned after_mode, enum px_diff_style style,
                        const char *expected)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_diff_side a = {before, strlen(before), before_mode}, b = {after, strlen(after), after_mode};
    ASSERT_OK(px_unified_write("x", &a, &b, style, &out));
    ASSERT_STR(px_buf_text(&out), expected);
}

TEST(links_are_links_in_both_styles)
{
    static const enum px_diff_style styles[] = {PX_DIFF_GIT, PX_DIFF_PLAIN};
    static const char head[] = "diff --git a/x b/x\n", bare[] = "\n\\ No newline at end of file\n";
    char text[400];
    for (size_t i = 0; i < PX_COUNT_OF(styles); i++) {
        (void)px_fmt(text, sizeof text, "%snew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+to%s", head, bare);
        check_kinds("", 0, "to", 0120000, styles[i], text);
        (void)px_fmt(text, sizeof text, "%sdeleted file mode 120000\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-to%s", head, bare);
        check_kinds("to", 0120000, "", 0, styles[i], text);
        (void)px_fmt(text, sizeof text, "%sold mode 120000\nnew mode 120000\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a%s+b%s", head, bare, bare);
        check_kinds("a", 0120000, "b", 0120000, styles[i], text);
        (void)px_fmt(text, sizeof text, "%sdeleted file mode 100644\n%snew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+to%s",
                     head, head, bare);
        check_kinds("", 0100644, "to", 0120000, styles[i], text);
    }
}

/* If the file cannot be shown going, the link has no place that it could come to. */
TEST(a_file_that_is_no_text_and_becomes_a_link_is_named)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_diff_side a = {"a\0b", 3, 0100644}, b = {"to", 2, 0120000};
    ASSERT_OK(px_unified_write("x", &a, &b, PX_DIFF_GIT, &out));
    ASSERT_STR(px_buf_text(&out), "Binary files a/x and b/x differ\n");
}

static void add(struct px_buf *out, const char *text)
{
    px_auto_buf struct px_buf one = PX_BUF(1000);
    px_buf_puts(&one, text);
    ASSERT_OK(px_unified_add(out, &one));
}

TEST(a_note_is_apart_from_a_header_without_lines)
{
    px_auto_buf struct px_buf out = PX_BUF(1000);
    add(&out, "Files a/a and b/a differ\n");
    add(&out, "diff --git a/e b/e\nnew file mode 100644\n");
    add(&out, "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n");
    add(&out, "Binary files a/g and b/g differ\n");
    add(&out, "Binary files a/h and b/h differ\n");
    ASSERT_STR(px_buf_text(&out), "Files a/a and b/a differ\ndiff --git a/e b/e\nnew file mode 100644\n"
                                  "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n\n"
                                  "Binary files a/g and b/g differ\nBinary files a/h and b/h differ\n");
    px_auto_buf struct px_buf note = PX_BUF(100), small = PX_BUF(24);
    px_buf_puts(&note, "Files\n");
    px_buf_puts(&small, "deleted file mode\n"); /* 18 bytes: the note would fit without the blank line */
    ASSERT_EQ(px_unified_add(&small, &note), -E2BIG);
    ASSERT(small.err == 0 && small.len == 18);
}

TEST(two_hunks_and_one)
{
    const char *before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n";
    const char *after = "1\n2\nX\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\nY\n19\n20\n";
    check("x", before, after, PX_DIFF_PLAIN,
          "--- a/x\n+++ b/x\n@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+X\n 4\n 5\n 6\n@@ -15,6 +15,6 @@\n 15\n 16\n 17\n-18\n+Y\n 19\n 20\n");
    check("x", "1\n2\n3\n4\n5\n6\n7\n8\n", "X\n2\n3\n4\n5\n6\n7\nY\n", PX_DIFF_PLAIN,
          "--- a/x\n+++ b/x\n@@ -1,8 +1,8 @@\n-1\n+X\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+Y\n");
}

TEST(what_was_added_shows_as_a_whole)
{
    check("x", "f {\n}\n", "f {\n}\n\ng {\n}\n", PX_DIFF_PLAIN, "--- a/x\n+++ b/x\n@@ -1,2 +1,5 @@\n f {\n }\n+\n+g {\n+}\n");
}

TEST(names_that_could_be_misread_are_quoted)
{
    check("a b", "1\n", "2\n", PX_DIFF_GIT, "diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1 @@\n-1\n+2\n");
    check("q\"\\\n\t\x01\xc3\xa9", "1\n", NULL, PX_DIFF_GIT,
          "diff --git \"a/q\\\"\\\\\\n\\t\\001\\303\\251\" \"b/q\\\"\\\\\\n\\t\\001\\303\\251\"\ndeleted file mode 100644\n"
          "--- \"a/q\\\"\\\\\\n\\t\\001\\303\\251\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n");
}

TEST(binary_and_large_files_are_named)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_diff_side a = {"a\0b", 3, 0100644}, b = file_of("text\n");
    ASSERT_OK(px_unified_write("x", &a, &b, PX_DIFF_PLAIN, &out));
    ASSERT_STR(px_buf_text(&out), "Binary files a/x and b/x differ\n");
    px_buf_done(&out);
    out = PX_BUF(1 << 20);
    char *large = calloc(1, PX_DIFF_BYTES_MAX + 2);
    ASSERT(large != NULL);
    memset(large, 'x', PX_DIFF_BYTES_MAX + 1);
    a = file_of(NULL);
    b = file_of(large);
    ASSERT_OK(px_unified_write("x", &a, &b, PX_DIFF_PLAIN, &out));
    free(large);
    ASSERT_STR(px_buf_text(&out), "Files /dev/null and b/x differ, and are too large to show\n");
}

TEST(a_diff_that_does_not_fit_says_so)
{
    px_auto_buf struct px_buf out = PX_BUF(40);
    struct px_diff_side a = file_of(NULL), b = file_of("a line that is too long for what there is room for\n");
    ASSERT_EQ(px_unified_write("x", &a, &b, PX_DIFF_PLAIN, &out), -E2BIG);
}

TEST(memory_can_end_anywhere)
{
    bool failed = true;
    for (unsigned n = 1; failed; n++) {
        px_auto_buf struct px_buf out = PX_BUF(1 << 20);
        struct px_diff_side a = file_of("1\n2\n3\n"), b = file_of("1\n3\n4\n");
        px_test_fail_alloc(n);
        int r = px_unified_write("x", &a, &b, PX_DIFF_GIT, &out);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT_EQ(r, failed ? -ENOMEM : 0);
    }
}

/* The lines of both are the same, in the other order: the most steps for their length. */
TEST(steps_are_taken_off_the_budget)
{
    enum { LINES = 4000 };
    px_auto_buf struct px_buf up = PX_BUF(1 << 20), down = PX_BUF(1 << 20), out = PX_BUF(1 << 20);
    for (int i = 0; i < LINES; i++) {
        px_buf_printf(&up, "%d\n", i);
        px_buf_printf(&down, "%d\n", LINES - i);
    }
    struct px_diff_side a = file_of(px_buf_text(&up)), b = file_of(px_buf_text(&down));
    struct px_diff_budget budget = {.bytes = 1 << 20, .steps = 100000};
    ASSERT_OK(px_unified_write_within("x", &a, &b, PX_DIFF_PLAIN, &budget, &out));
    ASSERT(budget.left_out == 0 && px_unified_used(&budget) && budget.steps > -2 * LINES);
    px_buf_done(&out);
    out = PX_BUF(1 << 20);
    ASSERT_OK(px_unified_write_within("x", &a, &b, PX_DIFF_PLAIN, &budget, &out));
    ASSERT_STR(px_buf_text(&out), "Files a/x and b/x differ; diff left out: budget\n");
    ASSERT_EQ(budget.left_out, 1);
}

/* ---- random texts ---- */

static uint64_t random_state = 88172645463325252u;

static uint32_t draw(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state % below);
}

static void random_text(struct px_buf *out, uint32_t lines, uint32_t words)
{
    for (uint32_t i = 0; i < lines; i++)
        px_buf_printf(out, "%s%u\n", draw(9) ? "line " : "", draw(words));
    if (draw(3) == 0)
        px_buf_puts(out, "the end");
}

/* Some lines go, some come, some change. */
static void random_edit(const struct px_buf *from, struct px_buf *out, uint32_t one_in, uint32_t words)
{
    for (const char *p = from->data, *end = p + from->len; p && p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t len = newline ? (size_t)(newline + 1 - p) : (size_t)(end - p);
        uint32_t what = draw(one_in);
        if (what == 0 || what == 2)
            px_buf_printf(out, "line %u\n", draw(words));
        if (what != 1 && what != 2)
            px_buf_add(out, p, len);
        p += len;
    }
}

/* What our own diff says, applied to `before`. */
static void apply(const struct px_buf *before, const char *diff, struct px_buf *out)
{
    size_t at = 0;              /* line of before */
    const char *rest = before->data, *end = rest + before->len;
    for (const char *p = diff; *p;) {
        const char *newline = strchr(p, '\n');
        size_t len = (size_t)(newline + 1 - p), from = 0;
        bool bare = px_starts_with(newline + 1, "\\ ");
        ASSERT(newline != NULL);
        if (px_starts_with(p, "@@ -")) {
            char *stop;
            from = strtoul(p + 4, &stop, 10);
            bool empty = px_starts_with(stop, ",0 ");
            while (at + (empty ? 0 : 1) < from) {
                const char *next = memchr(rest, '\n', (size_t)(end - rest));
                ASSERT(next != NULL);
                px_buf_add(out, rest, (size_t)(next + 1 - rest));
                rest = next + 1;
                at++;
            }
        } else if (*p == ' ' || *p == '-') {
            size_t n = len - 1 - (bare ? 1 : 0);
            ASSERT((size_t)(end - rest) >= n && memcmp(rest, p + 1, n) == 0);
            if (*p == ' ')
                px_buf_add(out, rest, n);
            rest += n;
            at++;
        } else if (*p == '+' && !px_starts_with(p, "+++ ")) {
            px_buf_add(out, p + 1, len - 1 - (bare ? 1 : 0));
        }
        p = newline + 1;
        if (px_starts_with(p, "\\ "))
            p = strchr(p, '\n') + 1;
    }
    px_buf_add(out, rest, (size_t)(end - rest));
}

static void diff_of(const struct px_buf *a, const struct px_buf *b, enum px_diff_style style, struct px_buf *out)
{
    struct px_diff_side before = {px_buf_text(a), a->len, 0100644}, after = {px_buf_text(b), b->len, 0100644};
    ASSERT_OK(px_unified_write("file", &before, &after, style, out));
}

TEST(random_texts_come_back)
{
    for (int i = 0; i < 3000; i++) {
        px_auto_buf struct px_buf a = PX_BUF(1 << 20), b = PX_BUF(1 << 20), d = PX_BUF(4 << 20), back = PX_BUF(1 << 20);
        uint32_t words = 1 + draw(i % 3 ? 6 : 500), lines = draw(i % 50 ? 40 : 3000);
        px_buf_puts(&a, "");
        random_text(&a, lines, words);
        if (draw(5) == 0)
            random_text(&b, draw(40), words);
        else
            random_edit(&a, &b, 3 + draw(30), words);
        diff_of(&a, &b, PX_DIFF_PLAIN, &d);
        const char *hunks = strstr(px_buf_text(&d), "\n@@ ");
        px_buf_puts(&back, "");
        if (hunks && a.data)
            apply(&a, hunks + 1, &back);
        else
            px_buf_add(&back, hunks ? b.data : a.data, hunks ? b.len : a.len);
        ASSERT_EQ(back.len, b.len);
        ASSERT(b.len == 0 || memcmp(back.data, b.data, b.len) == 0);
    }
}

/* Ends a program that we run in the directory; its exit status. */
static int run_in(const char *dir, char *const argv[])
{
    char *const environment[] = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C", NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    ASSERT_EQ(posix_spawn_file_actions_init(&actions), 0);
    ASSERT_EQ(posix_spawn_file_actions_addchdir_np(&actions, dir), 0);
    ASSERT_EQ(posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0), 0);
    ASSERT_EQ(posix_spawn(&child, argv[0], &actions, NULL, argv, environment), 0);
    ASSERT_EQ(posix_spawn_file_actions_destroy(&actions), 0);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void put_file(int dir, const char *name, const struct px_buf *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(fd);
    ASSERT_EQ(write(fd, px_buf_text(text), text->len), (ssize_t)text->len);
}

static void check_file(int dir, const char *name, const struct px_buf *text)
{
    px_auto_free char *data = calloc(1, text->len + 2);
    px_auto_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ASSERT(data != NULL);
    ASSERT_OK(fd);
    ASSERT_EQ(read(fd, data, text->len + 1), (ssize_t)text->len);
    ASSERT(text->len == 0 || memcmp(data, text->data, text->len) == 0);
}

/* One that was there and changes, one that comes, one that goes: as others read it. */
static void check_with(char *const argv[])
{
    if (access(argv[0], X_OK) < 0)
        SKIP("there is no %s here", argv[0]);
    px_auto_fd int dir = px_test_dir();
    for (int i = 0; i < 40; i++) {
        px_auto_buf struct px_buf a = PX_BUF(1 << 20), b = PX_BUF(1 << 20), d = PX_BUF(4 << 20);
        random_text(&a, 1 + draw(60), 1 + draw(20));
        random_edit(&a, &b, 3 + draw(20), 20);
        px_buf_puts(&b, "always something\n");
        diff_of(&a, &b, PX_DIFF_GIT, &d);
        struct px_diff_side none = file_of(NULL), old = {px_buf_text(&a), a.len, 0100644}, new = {px_buf_text(&b), b.len, 0100644};
        ASSERT_OK(px_unified_write("gone file", &old, &none, PX_DIFF_GIT, &d));
        ASSERT_OK(px_unified_write("sub/new\tfile", &none, &new, PX_DIFF_GIT, &d));
        put_file(dir, "file", &a);
        put_file(dir, "gone file", &a);
        put_file(dir, "diff", &d);
        ASSERT_EQ(run_in(px_test_dir_path(), argv), 0);
        check_file(dir, "file", &b);
        check_file(dir, "sub/new\tfile", &b);
        ASSERT_EQ(faccessat(dir, "gone file", F_OK, 0), -1);
        ASSERT_OK(unlinkat(dir, "sub/new\tfile", 0));
    }
}

TEST_DEADLINE(patch_applies_it, 120)
{
    check_with((char *[]){"/usr/bin/patch", "-p1", "-s", "-f", "-i", "diff", NULL});
}

TEST_DEADLINE(git_applies_it, 120)
{
    check_with((char *[]){"/usr/bin/git", "apply", "--whitespace=nowarn", "diff", NULL});
}

/* ---- texts that are made to cost much; the deadline of a test is the bound ---- */

static void check_hard(uint32_t lines, uint32_t words_a, uint32_t words_b, const char *tail)
{
    px_auto_buf struct px_buf a = PX_BUF(4 << 20), b = PX_BUF(4 << 20), d = PX_BUF(64 << 20), back = PX_BUF(4 << 20);
    for (uint32_t i = 0; i < lines; i++)
        px_buf_printf(&a, "%x\n", draw(words_a));
    for (uint32_t i = 0; i < lines; i++)
        px_buf_printf(&b, "%x\n", draw(words_b));
    px_buf_puts(&a, tail);
    ASSERT_EQ(a.err | b.err, 0);
    diff_of(&a, &b, PX_DIFF_PLAIN, &d);
    apply(&a, strstr(px_buf_text(&d), "\n@@ ") + 1, &back);
    ASSERT_EQ(back.len, b.len);
    ASSERT(memcmp(back.data, b.data, b.len) == 0);
}

TEST_DEADLINE(nothing_in_common_but_two_lines, 60)
{
    check_hard(400000, 2, 2, "x\n");
}

TEST_DEADLINE(many_lines_in_another_order, 60)
{
    check_hard(250000, 4000, 4000, "x\n");
}

TEST_DEADLINE(all_lines_the_same_and_more_of_them, 60)
{
    check_hard(700000, 1, 1, "0\n0\n0");
}
