/* fuzz/fuzz_glob.c - patterns against a plain definition of them that backtracks. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "files/glob.h"
#include "fuzz.h"

enum { STEPS = 20000 };

static size_t char_len(const char *text)
{
    size_t n = px_utf8_length(text, strnlen(text, 4));
    return n ? n : 1;
}

/* By definition: * is nothing, or one character and * again. Without classes, which have a check of their own. */
static bool part_by_definition(const char *p, const char *name, int *steps)
{
    if (--*steps < 0)
        return false;
    if (*p == '*')
        return part_by_definition(p + 1, name, steps) || (*name && part_by_definition(p, name + char_len(name), steps));
    if (!*p || !*name)
        return *p == *name;
    if (*p == '?')
        return part_by_definition(p + 1, name + char_len(name), steps);
    size_t n = char_len(p), m = char_len(name);
    return n == m && memcmp(p, name, n) == 0 && part_by_definition(p + n, name + m, steps);
}

/* The first line is the pattern, the second the path. */
static bool split(char *text, char **ret_path)
{
    char *newline = strchr(text, '\n');
    if (!newline)
        return false;
    *newline = '\0';
    *ret_path = newline + 1;
    return true;
}

/* No pattern that is accepted can name something above; all that is refused has a reason. */
static void check_init(const char *pattern, const struct px_glob *g, int r)
{
    bool up = false;
    for (const char *at = pattern; *at; at += strcspn(at, "/") + (at[strcspn(at, "/")] == '/'))
        up = up || (strcspn(at, "/") == 2 && memcmp(at, "..", 2) == 0);
    CHECK(r == 0 || r == -EINVAL || r == -E2BIG);
    if (pattern[0] == '/' || pattern[0] == '~' || pattern[0] == '\0')
        CHECK(r == -EINVAL);
    if (r == 0) {
        CHECK(!up);
        CHECK(g->count > 0 && g->count <= PX_GLOB_PARTS);
    }
}

static void check_part(const char *pattern, const char *name, const struct px_glob *g)
{
    int steps = STEPS;
    uint64_t fuel = 1 << 24;
    if (strpbrk(pattern, "/[") || strchr(name, '/') || !*name || strlen(name) > 255 || strcmp(pattern, "**") == 0 ||
        strcmp(pattern, ".") == 0)
        return;
    bool wanted = part_by_definition(pattern, name, &steps);
    if (steps > 0)
        CHECK(px_glob_match(g, name, &fuel) == wanted);
}

/* Half of the inputs are spelled with the letters of the grammar: plain random bytes seldom say anything in it. */
static void spell(char *text, size_t len, const char *letters)
{
    for (size_t i = 1; len > 0 && text[0] & 1 && i < len; i++)
        text[i] = letters[(unsigned char)text[i] % strlen(letters)];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *whole = fuzz_text(data, size), *text = whole, *path = whole;
    struct px_glob g;
    uint64_t fuel = 1 << 16;

    spell(whole, size, "ab*?*[]!-/.\n\xc3\xa4");
    text += size > 0;           /* behind the byte that says how it is spelled */
    if (split(text, &path)) {
        int r = px_glob_init(&g, text);
        check_init(text, &g, r);
        if (r == 0) {
            (void)px_glob_match(&g, path, &fuel);
            CHECK(fuel <= 1 << 16);
            check_part(text, path, &g);
        }
    }
    free(whole);
    return 0;
}
