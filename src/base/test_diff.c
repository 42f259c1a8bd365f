#include "base/diff.h"

#include <string.h>

#include "base/buf.h"
#include "harness/test.h"

static void check(const char *old, const char *new, const char *diff)
{
    px_auto_buf struct px_buf out = PX_BUF(4096);
    ASSERT_OK(px_diff_unified("a", old, strlen(old), "b", new, strlen(new), 1024, &out));
    ASSERT_STR(px_buf_text(&out), diff);
}

TEST(what_is_the_same_has_no_diff)
{
    check("", "", "");
    check("a\nb\n", "a\nb\n", "");
}

TEST(a_change_stands_with_three_lines_around_it)
{
    check("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nV\n6\n7\n8\n9\n",
          "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n");
    check("1\n2\n", "1\n2\n3\n", "--- a\n+++ b\n@@ -1,2 +1,3 @@\n 1\n 2\n+3\n");
    check("1\n2\n", "2\n", "--- a\n+++ b\n@@ -1,2 +1 @@\n-1\n 2\n");
    check("", "x\n", "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
    check("x\n", "", "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
}

TEST(a_missing_last_newline_is_told)
{
    check("x", "x\n", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n");
    check("a\nb", "c\nb", "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n");
}

TEST(lines_that_only_end_alike_are_different)
{
    check("xa\nz\n", "ya\nz\n", "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-xa\n+ya\n z\n");
    check("a\na\n", "a\na\na\n", "--- a\n+++ b\n@@ -1,2 +1,3 @@\n a\n a\n+a\n");
}

TEST(large_texts_are_not_shown_and_names_are_quoted)
{
    px_auto_buf struct px_buf out = PX_BUF(4096);
    ASSERT_OK(px_diff_unified("a\n+++ x", "aa", 2, "b", "b", 1, 1, &out));
    ASSERT_STR(px_buf_text(&out), "--- a\\x0a+++ x\n+++ b\nFiles differ; they are too large to be shown.\n");
}
