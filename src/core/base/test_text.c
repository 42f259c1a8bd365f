/* base/test_text.c - numbers, sizes, times and UTF-8. */
#include "base/text.h"

#include <errno.h>
#include <string.h>

#include <px/px.h>

#include "harness/test.h"

static const uint64_t UNTOUCHED = 0xdeadbeef;

struct parse_case {
    const char *text;
    int result;
    uint64_t value;
};

typedef int parse_fn(const char *text, uint64_t *ret_value);

/* Every case states its result; a failed parse must leave the output alone. */
static void check_cases(const struct parse_case *cases, size_t count, parse_fn *parse)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = UNTOUCHED;
        int r = parse(cases[i].text, &value);
        uint64_t expected = cases[i].result == 0 ? cases[i].value : UNTOUCHED;

        if (r != cases[i].result || value != expected)
            FAIL("'%s' gives %d and %llu, not %d and %llu", cases[i].text, r, (unsigned long long)value,
                 cases[i].result, (unsigned long long)expected);
    }
}

static int parse_any_u64(const char *text, uint64_t *ret_value)
{
    return px_parse_u64(text, UINT64_MAX, ret_value);
}

TEST(u64)
{
    static const struct parse_case cases[] = {
        // clang-format off
        { "0", 0, 0 }, { "1", 0, 1 }, { "007", 0, 7 }, { "4294967296", 0, 4294967296ULL },
        { "18446744073709551615", 0, UINT64_MAX },
        { "18446744073709551616", -ERANGE, 0 }, { "99999999999999999999999999", -ERANGE, 0 },
        { "", -EINVAL, 0 }, { " 1", -EINVAL, 0 }, { "1 ", -EINVAL, 0 }, { "+1", -EINVAL, 0 }, { "-1", -EINVAL, 0 },
        { "0x10", -EINVAL, 0 }, { "1e3", -EINVAL, 0 }, { "1.0", -EINVAL, 0 }, { "1\n", -EINVAL, 0 }, { "a", -EINVAL, 0 },
        { "99999999999999999999999999x", -EINVAL, 0 },  /* malformed before too large */
        { "\xd9\xa1", -EINVAL, 0 },                     /* an Arabic digit one */
        // clang-format on
    };
    check_cases(cases, PX_COUNT_OF(cases), parse_any_u64);
}

TEST(u64_keeps_to_its_maximum)
{
    uint64_t value = 5;

    ASSERT_EQ(px_parse_u64("255", 255, &value), 0);
    ASSERT_EQ(value, 255);
    ASSERT_EQ(px_parse_u64("256", 255, &value), -ERANGE);
    ASSERT_EQ(value, 255);
    ASSERT_EQ(px_parse_u64("0", 0, &value), 0);
    ASSERT_EQ(px_parse_u64("1", 0, &value), -ERANGE);
}

TEST(bytes)
{
    static const struct parse_case cases[] = {
        // clang-format off
        { "0", 0, 0 }, { "512", 0, 512 }, { "512b", 0, 512 }, { "1B", 0, 1 },
        { "1k", 0, 1024 }, { "1K", 0, 1024 }, { "512m", 0, 536870912 }, { "1G", 0, 1073741824 }, { "2t", 0, 2199023255552ULL },
        { "1KiB", 0, 1024 }, { "1kib", 0, 1024 }, { "3MiB", 0, 3145728 }, { "1GiB", 0, 1073741824 }, { "1TiB", 0, 1099511627776ULL },
        { "1KB", 0, 1000 }, { "1kb", 0, 1000 }, { "5MB", 0, 5000000 }, { "1GB", 0, 1000000000 }, { "1TB", 0, 1000000000000ULL },
        { "1.5g", 0, 1610612736 }, { "0.5k", 0, 512 }, { "0.1g", 0, 107374182 }, { "0.000001k", 0, 0 }, { "1.000000m", 0, 1048576 },
        { "18446744073709551615", 0, UINT64_MAX }, { "16777215t", 0, 16777215ULL << 40 },
        { "16777216t", -ERANGE, 0 }, { "16777215.999999t", 0, (16777215ULL << 40) + 999999ULL * (1ULL << 40) / 1000000 },
        { "99999999999999999999", -ERANGE, 0 }, { "99999999999999999999g", -ERANGE, 0 },
        { "", -EINVAL, 0 }, { "m", -EINVAL, 0 }, { "1q", -EINVAL, 0 }, { "1 m", -EINVAL, 0 }, { "-1m", -EINVAL, 0 },
        { "1.m", -EINVAL, 0 }, { ".5m", -EINVAL, 0 }, { "1.5", -EINVAL, 0 }, { "1.5b", -EINVAL, 0 }, { "1.0000001g", -EINVAL, 0 },
        { "1mm", -EINVAL, 0 }, { "1ki", -EINVAL, 0 }, { "1p", -EINVAL, 0 }, { "1,5g", -EINVAL, 0 }, { "1.5.5g", -EINVAL, 0 },
        { "1m ", -EINVAL, 0 }, { "1e3m", -EINVAL, 0 }, { "99999999999999999999q", -EINVAL, 0 }, { "unlimited", -EINVAL, 0 },
        // clang-format on
    };
    check_cases(cases, PX_COUNT_OF(cases), px_parse_bytes);
}

TEST(msec)
{
    static const struct parse_case cases[] = {
        // clang-format off
        { "0", 0, 0 }, { "10", 0, 10000 }, { "10s", 0, 10000 }, { "250ms", 0, 250 }, { "1m", 0, 60000 }, { "1m30s", 0, 90000 },
        { "2h", 0, 7200000 }, { "1d", 0, 86400000 }, { "1d2h3m4s5ms", 0, 93784005 }, { "1h5ms", 0, 3600005 },
        { "1.5s", 0, 1500 }, { "1.5", 0, 1500 }, { "0.25m", 0, 15000 }, { "1m1.5s", 0, 61500 }, { "0.001s", 0, 1 }, { "90m", 0, 5400000 },
        { "18446744073709551615ms", 0, UINT64_MAX },
        { "18446744073709551616ms", -ERANGE, 0 }, { "18446744073709551615s", -ERANGE, 0 }, { "213503982334d14h", 0, 18446744073708000000ULL }, { "213503982334d15h", -ERANGE, 0 },
        { "", -EINVAL, 0 }, { "s", -EINVAL, 0 }, { "-1s", -EINVAL, 0 }, { " 1s", -EINVAL, 0 }, { "1s ", -EINVAL, 0 },
        { "1 s", -EINVAL, 0 }, { "1m30", -EINVAL, 0 }, { "30s1m", -EINVAL, 0 }, { "1s1s", -EINVAL, 0 }, { "1ms1s", -EINVAL, 0 },
        { "1.5m30s", -EINVAL, 0 }, { "1.s", -EINVAL, 0 }, { ".5s", -EINVAL, 0 }, { "0.5ms", -EINVAL, 0 }, { "0.0001s", -EINVAL, 0 },
        { "1S", -EINVAL, 0 }, { "1M", -EINVAL, 0 }, { "1w", -EINVAL, 0 }, { "1us", -EINVAL, 0 }, { "1sec", -EINVAL, 0 }, { "1e3", -EINVAL, 0 },
        { "99999999999999999999x", -EINVAL, 0 }, { "99999999999999999999d1", -EINVAL, 0 },
        // clang-format on
    };
    check_cases(cases, PX_COUNT_OF(cases), px_parse_msec);
}

TEST(milli)
{
    static const struct parse_case cases[] = {
        // clang-format off
        { "0", 0, 0 }, { "1", 0, 1000 }, { "1.5", 0, 1500 }, { "0.001", 0, 1 }, { "2.50", 0, 2500 }, { "2.125", 0, 2125 },
        { "18446744073709551.615", 0, UINT64_MAX }, { "18446744073709551.616", -ERANGE, 0 }, { "99999999999999999999", -ERANGE, 0 },
        { "", -EINVAL, 0 }, { "1.", -EINVAL, 0 }, { ".5", -EINVAL, 0 }, { "1.0000", -EINVAL, 0 }, { "1,5", -EINVAL, 0 },
        { "-1", -EINVAL, 0 }, { "1.5x", -EINVAL, 0 }, { "1.5.", -EINVAL, 0 }, { "1e1", -EINVAL, 0 },
        // clang-format on
    };
    check_cases(cases, PX_COUNT_OF(cases), px_parse_milli);
}

TEST(fmt_fails_instead_of_truncating)
{
    char out[8] = "before";

    ASSERT_OK(px_fmt(out, sizeof out, "%s-%d", "abc", 123));
    ASSERT_STR(out, "abc-123");
    ASSERT_EQ(px_fmt(out, sizeof out, "%s-%d", "abc", 1234), -ENAMETOOLONG);
    ASSERT_STR(out, "");
    ASSERT_EQ(px_fmt(out, 0, "x"), -ENAMETOOLONG);
    ASSERT_EQ(px_fmt(out, 1, "%s", ""), 0);
}

TEST(utf8_length)
{
    static const struct {
        const char *text;
        size_t len, expected;
    } cases[] = {
        // clang-format off
        { "", 0, 0 }, { "a", 1, 1 }, { "\0", 1, 1 }, { "\x7f", 1, 1 },
        { "\x80", 1, 0 }, { "\xbf", 1, 0 },                                             /* continuation first */
        { "\xc0\x80", 2, 0 }, { "\xc1\xbf", 2, 0 },                                     /* overlong */
        { "\xc2\x80", 2, 2 }, { "\xdf\xbf", 2, 2 }, { "\xc2", 1, 0 }, { "\xc2\x41", 2, 0 }, { "\xc2\xc2", 2, 0 },
        { "\xe0\x80\x80", 3, 0 }, { "\xe0\x9f\xbf", 3, 0 }, { "\xe0\xa0\x80", 3, 3 },   /* overlong, smallest */
        { "\xe2\x82\xac", 3, 3 }, { "\xe2\x82", 2, 0 }, { "\xe2\x82\xac", 2, 0 }, { "\xe2\x28\xa1", 3, 0 }, { "\xe2\x82\x28", 3, 0 },
        { "\xed\x9f\xbf", 3, 3 }, { "\xed\xa0\x80", 3, 0 }, { "\xed\xbf\xbf", 3, 0 },   /* surrogates */
        { "\xee\x80\x80", 3, 3 }, { "\xef\xbf\xbf", 3, 3 },
        { "\xf0\x80\x80\x80", 4, 0 }, { "\xf0\x8f\xbf\xbf", 4, 0 }, { "\xf0\x90\x80\x80", 4, 4 },
        { "\xf4\x8f\xbf\xbf", 4, 4 }, { "\xf4\x90\x80\x80", 4, 0 }, { "\xf5\x80\x80\x80", 4, 0 }, { "\xff", 1, 0 }, { "\xfe", 1, 0 },
        { "\xf0\x9f\x98\x80", 3, 0 }, { "\xf0\x9f\x98\x80", 4, 4 }, { "\xf0\x9f\x98\x41", 4, 0 }, { "\xf0\x9f\x41\x80", 4, 0 },
        { "ab", 2, 1 },
        // clang-format on
    };
    for (size_t i = 0; i < PX_COUNT_OF(cases); i++)
        if (px_utf8_length(cases[i].text, cases[i].len) != cases[i].expected)
            FAIL("case %zu is %zu, not %zu", i, px_utf8_length(cases[i].text, cases[i].len), cases[i].expected);
}

TEST(starts_with_and_equal)
{
    ASSERT(px_starts_with("abc", "ab"));
    ASSERT(px_starts_with("abc", ""));
    ASSERT(px_starts_with("", ""));
    ASSERT(!px_starts_with("ab", "abc"));
    ASSERT(!px_starts_with("xab", "ab"));
    ASSERT(px_equal("a", "a"));
    ASSERT(px_equal(NULL, NULL));
    ASSERT(!px_equal("a", NULL));
    ASSERT(!px_equal(NULL, "a"));
    ASSERT(!px_equal("a", "b"));
}

TEST(a_word_that_is_nearly_right)
{
    static const char *const words[] = {"exec", "box", "timeout", "memory", "sync"};
    static const struct {
        const char *written, *found;
    } cases[] = {
        {"exce", "exec"},    {"exe", "exec"},    {"tiemout", "timeout"}, {"time-out", "timeout"}, {"mem", NULL},
        {"bax", "box"},      {"xyz", NULL},      {"", NULL},             {"memroy", "memory"},    {"b", NULL},
        {"a-word-of-more-than-thirty-two-letters", NULL},
    };
    for (size_t i = 0; i < PX_COUNT_OF(cases); i++) {
        struct px_near near = {.written = cases[i].written};
        for (size_t j = 0; j < PX_COUNT_OF(words); j++)
            px_near_try(&near, words[j]);
        if (!px_equal(near.found, cases[i].found))
            FAIL("'%s' is near '%s'", cases[i].written, near.found ? near.found : "nothing");
    }
}
