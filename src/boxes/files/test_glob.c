#include "files/glob.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "harness/test.h"

static bool matches(const char *pattern, const char *path)
{
    struct px_glob g;
    uint64_t fuel = 1 << 20;
    ASSERT_OK(px_glob_init(&g, pattern));
    return px_glob_match(&g, path, &fuel);
}

TEST(patterns_match_as_in_a_shell_with_globstar)
{
    static const struct {
        const char *pattern, *path;
        bool match;
    } rows[] = {
        {"*", "a.md", true},            {"*", ".hidden", true},         {"*", "d/a.md", false},
        {"*.md", "a.md", true},         {"*.md", "a.MD", false},        {"*.md", "d/a.md", false},
        {"**/*", "a", true},            {"**/*", "a/b/c", true},        {"**/*.md", "a.md", true},
        {"**/*.md", "a/b/c.md", true},  {"**/*.md", "a/b/c.txt", false}, {"**", "a/b", true},
        {"a/**", "a/b/c", true},        {"a/**", "b/c", false},         {"a/**/z", "a/z", true},
        {"a/**/z", "a/b/c/z", true},    {"a/**/z", "a/b/zz", false},    {"**/b/**/d", "a/b/c/d", true},
        {"**/b/**/d", "b/d", true},     {"**/b/**/d", "a/c/d", false},  {"?", "\xc3\xa4", true},
        {"??", "\xc3\xa4", false},      {"[a-c]x", "bx", true},         {"[!a-c]x", "bx", false},
        {"[^a-c]x", "dx", true},        {"[]]", "]", true},             {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa4", true},
        {"[a", "[a", true},             {"a*b*c", "aXbYbZc", true},     {"a*b*c", "aXbYbZ", false},
        {"./a", "a", true},             {"a//b", "a/b", true},          {"a**b", "aXb", true},
        {"a/", "a", true},              {"[*]", "*", true},             {"[*]", "a", false},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (matches(rows[i].pattern, rows[i].path) != rows[i].match)
            FAIL("'%s' and '%s': not %d", rows[i].pattern, rows[i].path, rows[i].match);
}

TEST(patterns_that_leave_are_refused)
{
    static const char *const bad[] = {"", "/", "/x", "~", "~/x", "..", "../*", "a/..", "a/../b", ".", "./"};
    struct px_glob g;
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++)
        if (px_glob_init(&g, bad[i]) != -EINVAL)
            FAIL("'%s' was accepted", bad[i]);
    ASSERT_OK(px_glob_init(&g, "..a/...b"));
}

TEST(too_long_a_pattern_is_refused)
{
    struct px_glob g;
    char text[PX_GLOB_LENGTH + 2];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ASSERT_EQ(px_glob_init(&g, text), -E2BIG);
    text[PX_GLOB_LENGTH] = '\0';
    ASSERT_OK(px_glob_init(&g, text));
    for (size_t i = 0; i < 2 * PX_GLOB_PARTS + 2; i++)
        text[i] = i % 2 ? '/' : 'a';
    text[2 * PX_GLOB_PARTS + 1] = '\0';
    ASSERT_EQ(px_glob_init(&g, text), -E2BIG);
    text[2 * PX_GLOB_PARTS - 1] = '\0';
    ASSERT_OK(px_glob_init(&g, text));
}

TEST(fuel_ends_a_pattern_that_would_take_long)
{
    struct px_glob g;
    char name[256], pattern[103];
    uint64_t fuel = 1000;
    memset(name, 'a', 255);
    name[255] = '\0';
    memset(pattern, 'a', sizeof pattern);
    pattern[0] = '*';
    pattern[101] = 'b';
    pattern[102] = '\0';
    ASSERT_OK(px_glob_init(&g, pattern));
    ASSERT(!px_glob_match(&g, name, &fuel));
    ASSERT_EQ(fuel, 0);
    fuel = 1 << 20;
    ASSERT(!px_glob_match(&g, name, &fuel));
    ASSERT((1 << 20) - fuel < 2 * 256 * 103);   /* one star at a time is tried again: no more than a product */
}

TEST(a_pattern_says_whether_anything_can_follow)
{
    struct px_glob g;
    uint64_t fuel = 1000;
    ASSERT_OK(px_glob_init(&g, "a/*.md"));
    uint64_t set = px_glob_start(&g);
    ASSERT_EQ(px_glob_step(&g, set, "b", &fuel), 0);
    set = px_glob_step(&g, set, "a", &fuel);
    ASSERT(!px_glob_accepts(&g, set) && px_glob_goes_on(&g, set));
    set = px_glob_step(&g, set, "x.md", &fuel);
    ASSERT(px_glob_accepts(&g, set) && !px_glob_goes_on(&g, set));
}
