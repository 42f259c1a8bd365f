/* fuzz/fuzz_edit.c - edits, and the diffs of what they did, which must lead from the one text to the other. */
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/diff.h"
#include "files/edit.h"
#include "files/files.h"
#include "fuzz.h"

/* By definition: every place at which it stands. */
static uint64_t count_by_definition(const char *data, size_t len, const struct px_files_edit *e)
{
    uint64_t n = 0;
    for (size_t i = 0; e->old_len && i + e->old_len <= len; i++)
        n += memcmp(data + i, e->old_text, e->old_len) == 0;
    return n;
}

static void check_edit(const char *data, size_t len, const struct px_files_edit *e)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    uint64_t n = px_edit_apply(data, len, e, &out), places = count_by_definition(data, len, e);
    CHECK((n == 1) == (places == 1));
    CHECK((n == 0) == (places == 0));
    CHECK(n <= places);
    CHECK(n == 1 ? out.err == 0 && out.len == len - e->old_len + e->new_len : out.len == 0);
}

/* The lines of a diff that stand for one side, put together: what the hunk covers of that side. */
static void gather(const char *diff, char mark, struct px_buf *out)
{
    for (const char *at = diff; *at;) {
        size_t n = strcspn(at, "\n");
        if (at[0] == '\\') {
            const char *line = at - 1;          /* the line before ends without a newline, on its own side */
            while (line > diff && line[-1] != '\n')
                line--;
            if ((*line == mark || *line == ' ') && out->len > 0)
                out->data[--out->len] = '\0';
        } else if (at[0] == mark || at[0] == ' ') {
            px_buf_add(out, at + 1, n - 1);
            px_buf_putc(out, '\n');
        }
        at += n + (at[n] == '\n');
    }
}

/* The hunk begins at the same line of both texts, so its side must be found in the text, and what is around it must be the same. */
static void check_diff(const char *a, size_t a_len, const char *b, size_t b_len)
{
    px_auto_buf struct px_buf diff = PX_BUF(1 << 20), old = PX_BUF(1 << 20), new = PX_BUF(1 << 20);
    CHECK(px_diff_unified("a", a, a_len, "b", b, b_len, 1 << 20, &diff) == 0);
    if (a_len == b_len && memcmp(a, b, a_len) == 0) {
        CHECK(diff.len == 0);
        return;
    }
    const char *hunk = strstr(diff.data, "\n@@ ");
    CHECK(hunk);
    hunk = strchr(hunk + 1, '\n') + 1;
    gather(hunk, '-', &old);
    gather(hunk, '+', &new);
    bool found = false;         /* some split of both texts around the two sides leaves the same before and behind */
    for (size_t before = 0; before <= a_len && !found; before++) {
        if (before + old.len > a_len || before + new.len > b_len)
            break;
        found = a_len - old.len == b_len - new.len && memcmp(a, b, before) == 0 &&
                (old.len == 0 || memcmp(a + before, old.data, old.len) == 0) && (new.len == 0 || memcmp(b + before, new.data, new.len) == 0) &&
                memcmp(a + before + old.len, b + before + new.len, a_len - old.len - before) == 0;
    }
    CHECK(found);
}

/* Two windows of any text are where they are, whatever the blocks of the fast way. */
static void check_window(const char *data, size_t len)
{
    struct px_window all, part;
    if (px_window_find(data, len, 0, UINT64_MAX, &all) < 0)
        return;
    CHECK(all.begin == 0 && all.end == len && all.chars == all.total);
    CHECK(px_window_find(data, len, all.total / 2, 1, &part) == 0);
    CHECK(part.total == all.total && part.chars == (all.total > 0));
    CHECK(part.end - part.begin <= 4 && part.begin <= part.end && part.end <= len);
}

/* Half of the inputs are spelled with the letters of the grammar: plain random bytes seldom say anything in it. */
static void spell(char *text, size_t len, const char *letters)
{
    for (size_t i = 1; len > 0 && text[0] & 1 && i < len; i++)
        text[i] = letters[(unsigned char)text[i] % strlen(letters)];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* The first bytes say which parts of the rest are the old and the new text. */
    if (size < 3 || memchr(data + 3, 0, size - 3))
        return 0;
    char *text = fuzz_text(data + 3, size - 3);
    spell(text, size - 3, "aab\n\xc3\xa4");
    size_t len = size - 3, old_at = len ? data[0] % (len + 1) : 0, old_len = data[1] % 5, new_len = data[2] % 7;
    old_len = old_len < len - old_at ? old_len : len - old_at;
    new_len = new_len < len ? new_len : len;
    struct px_files_edit edit = {text + old_at, text, old_len, new_len};

    check_edit(text, len, &edit);
    check_diff(text, old_at, text + old_at, len - old_at);
    check_diff(text, len, text, old_at);
    check_window(text, len);
    free(text);
    return 0;
}
