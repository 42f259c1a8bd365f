#include "files/edit.h"

#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "harness/test.h"

TEST(text_that_occurs_once_is_replaced)
{
    static const struct {
        const char *data, *old, *new, *result;
        uint64_t count;
    } rows[] = {
        {"a b c", "b", "XY", "a XY c", 1}, {"a b c", "z", "X", "", 0},     {"x x x", "x", "y", "", 3},
        {"abc", "abc", "", "", 1},         {"aaa", "aa", "b", "", 2},      {"aaaa", "aa", "b", "", 2},
        {"abab", "aba", "x", "xb", 1},     {"ababa", "aba", "x", "", 2},   {"", "a", "b", "", 0},
        {"a", "", "b", "", 0},             {"l1\nl2\nl3", "l2\n", "", "l1\nl3", 1},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        px_auto_buf struct px_buf out = PX_BUF(100);
        struct px_files_edit edit = {rows[i].old, rows[i].new, strlen(rows[i].old), strlen(rows[i].new)};
        ASSERT_EQ(px_edit_apply(rows[i].data, strlen(rows[i].data), &edit, &out), rows[i].count);
        ASSERT_STR(px_buf_text(&out), rows[i].result);
    }
}
