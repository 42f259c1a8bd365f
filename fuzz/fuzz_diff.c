/* fuzz/fuzz_diff.c - two texts and a name: the diff is bounded, and applied to the first text it gives the second. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "changes/unified.h"
#include "fuzz.h"

enum { DIFF_MAX = 1 << 22 };

/* The bytes of one line with its newline. */
static size_t line_length(const char *text, const char *end)
{
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    return newline ? (size_t)(newline + 1 - text) : (size_t)(end - text);
}

static bool starts(const char *p, const char *end, const char *word)
{
    return (size_t)(end - p) >= strlen(word) && memcmp(p, word, strlen(word)) == 0;
}

/* Hunks alone, as a reader who knows nothing but the format applies them. */
static void apply(const char *before, size_t before_len, const char *p, const char *end, struct px_buf *out)
{
    const char *rest = before, *stop = before + before_len;
    unsigned long at = 1;
    while (p < end) {
        size_t len = line_length(p, end);
        const char *next = p + len;
        bool bare = starts(next, end, "\\ ");
        size_t text = len - 1 - (bare ? 1 : 0);
        if (*p == '@') {
            char *comma;
            unsigned long from = strtoul(p + 4, &comma, 10);
            from += starts(comma, end, ",0 ");
            for (; at < from; at++) {
                size_t n = line_length(rest, stop);
                CHECK(n > 0);
                px_buf_add(out, rest, n);
                rest += n;
            }
        } else if (*p == '+') {
            px_buf_add(out, p + 1, text);
        } else {
            CHECK(*p == ' ' || *p == '-');
            CHECK((size_t)(stop - rest) >= text && memcmp(rest, p + 1, text) == 0);
            if (*p == ' ')
                px_buf_add(out, rest, text);
            rest += text;
            at++;
        }
        p = next + (bare ? line_length(next, end) : 0);
    }
    px_buf_add(out, rest, (size_t)(stop - rest));
}

static void check_texts(const char *name, struct px_diff_side before, struct px_diff_side after)
{
    px_auto_buf struct px_buf out = PX_BUF(DIFF_MAX), back = PX_BUF(DIFF_MAX), small = PX_BUF(40);
    CHECK(px_unified_write(name, &before, &after, PX_DIFF_PLAIN, &out) == 0);
    (void)px_unified_write(name, &before, &after, PX_DIFF_GIT, &small);
    CHECK(small.len <= 40);
    bool same = before.len == after.len && memcmp(before.data, after.data, before.len) == 0;
    CHECK(same == (out.len == 0));
    if (same || !px_unified_is_text(&before) || !px_unified_is_text(&after))
        return;
    const char *end = out.data + out.len, *p = out.data;
    for (int i = 0; i < 2; i++) { /* a name never breaks out of its line */
        CHECK(starts(p, end, i ? "+++ " : "--- "));
        p += line_length(p, end);
    }
    CHECK(*p == '@');
    apply(before.data, before.len, p, end, &back);
    CHECK(back.err == 0 && back.len == after.len && (back.len == 0 || memcmp(back.data, after.data, back.len) == 0));
}

/* Few letters and many lines, so that there is much to be found again. */
static void make_lines(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        text[i] = (unsigned char)text[i] % 4 == 3 ? '\n' : (char)('a' + (unsigned char)text[i] % 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* The first byte says how the rest is divided: into a name and two texts. */
    if (size < 2)
        return 0;
    size_t name_len = data[0] % 8 < size - 1 ? data[0] % 8 : 0, rest = size - 1 - name_len,
           half = rest * (data[0] / 8) / 32;
    char *name = fuzz_text(data + 1, name_len), *a = fuzz_text(data + 1 + name_len, half),
         *b = fuzz_text(data + 1 + name_len + half, rest - half);
    if (data[1] % 4) {
        make_lines(a, half);
        make_lines(b, rest - half);
    }
    check_texts(name, (struct px_diff_side){a, half, 0100644}, (struct px_diff_side){b, rest - half, 0100644});
    free(name);
    free(a);
    free(b);
    return 0;
}
