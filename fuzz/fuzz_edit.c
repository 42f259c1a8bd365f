/* fuzz/fuzz_edit.c - edits and windows of text against plain definitions of them. */
#include <string.h>

#include "base/buf.h"
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

/* Two windows of any text are where they are, whatever the blocks of the fast way. */
static void check_window(const char *data, size_t len)
{
    struct px_window all, part;
    if (px_files_window_find(data, len, 0, UINT64_MAX, &all) < 0)
        return;
    CHECK(all.begin == 0 && all.end == len && all.chars == all.total);
    CHECK(px_files_window_find(data, len, all.total / 2, 1, &part) == 0);
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
    check_window(text, len);
    free(text);
    return 0;
}
