/* base/test_err.c - the error table and its words. */
#include "base/err.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

static bool is_clean(const char *text, bool lines_allowed)
{
    for (size_t i = 0, len = strlen(text), n; i < len; i += n) {
        unsigned char c = (unsigned char)text[i];

        n = px_utf8_length(text + i, len - i);
        if (n == 0 || c == 0x7f || (c < 0x20 && !(lines_allowed && c == '\n')))
            return false;
    }
    return true;
}

TEST(table_is_in_order_and_complete)
{
    int last = 0;

    for (const struct px_error_text *t = px_error_texts; t->code; t++) {
        ASSERT(t->code > last && t->code <= 999);
        ASSERT(t->name[0] && t->what[0] && t->fix[0]);
        ASSERT(t->why[0] || t->code == PX_E_USAGE || t->code == PX_E_VALUE);    /* their first line has it */
        ASSERT(is_clean(t->what, false) && is_clean(t->why, false) && is_clean(t->fix, true));
        ASSERT_EQ(t->what[strlen(t->what) - 1], '.');
        ASSERT(px_err_find(t->code) == t);
        last = t->code;
    }
    ASSERT_EQ(px_error_texts[0].code, PX_E_USAGE);
}

TEST(every_row_fits_into_an_error)
{
    for (const struct px_error_text *t = px_error_texts; t->code; t++) {
        struct px_err e = {0};

        ASSERT_EQ(px_fail(&e, (enum px_code)t->code, 0, NULL), -1);
        ASSERT_EQ(e.code, t->code);
        ASSERT_EQ(e.sys, 0);
        ASSERT_STR(e.what, t->what);
        ASSERT_STR(e.why, t->why);
        ASSERT_STR(e.fix, t->fix);
    }
}

TEST(unknown_codes)
{
    struct px_err e = {0};

    ASSERT(px_err_find(0) == NULL);
    ASSERT(px_err_find(-1) == NULL);
    ASSERT(px_err_find(998) == NULL);
    ASSERT_EQ(px_fail(&e, (enum px_code)998, 0, "what %d", 1), -1);
    ASSERT_STR(e.what, "what 1");
    ASSERT_STR(e.why, "");
    ASSERT_STR(e.fix, "");
}

TEST(null_is_accepted)
{
    ASSERT_EQ(px_fail(NULL, PX_E_VALUE, -ENOENT, "x %s", "y"), -1);
    ASSERT_EQ(px_why(NULL, "x"), -1);
    ASSERT_EQ(px_fix(NULL, "x"), -1);
}

TEST(errno_replaces_the_why)
{
    struct px_err e = {0};

    px_fail(&e, PX_E_IO, -ENOENT, "cannot read '%s'", "/a");
    ASSERT_EQ(e.sys, ENOENT);
    ASSERT_STR(e.what, "cannot read '/a'");
    ASSERT_STR(e.why, "ENOENT: no such file or directory");
    px_fail(&e, PX_E_IO, ENOENT, "x");
    ASSERT_EQ(e.sys, ENOENT);
    px_fail(&e, PX_E_MOUNT, EPERM, "x");
    ASSERT_STR(e.why, "EPERM: operation not permitted");
}

TEST(errno_tells_what_to_do)
{
    struct px_err e = {0};

    px_fail(&e, PX_E_IO, -ENOENT, "x");
    ASSERT_STR(e.fix, "Check the path.");
    px_fail(&e, PX_E_IO, EMFILE, "x");
    ASSERT_STR(e.fix, "Allow more open files: ulimit -n 64 or more.");
    px_fail(&e, PX_E_IO, ENOSPC, "x");
    ASSERT(strstr(e.fix, "free space"));
    px_fail(&e, PX_E_CLONE, -EAGAIN, "x");
    ASSERT(strstr(e.fix, "ulimit -u") && !strstr(e.fix, "ulimit -n"));
    px_fail(&e, PX_E_MOUNT, ENOENT, "x");
    ASSERT(strstr(e.fix, "--plan"));
}

TEST(a_vague_errno_keeps_the_tables_why)
{
    struct px_err e = {0};

    px_fail(&e, PX_E_USERNS, -ENOSPC, "x");
    ASSERT(px_starts_with(e.why, "ENOSPC: "));
    ASSERT(strstr(e.why, px_err_find(PX_E_USERNS)->why) != NULL);
}

TEST(errno_words)
{
    static const int known[] = {EPERM, ENOENT, EINVAL, ENOSYS, EXDEV, ELOOP, E2BIG, ENAMETOOLONG, EOPNOTSUPP, EUSERS};

    for (size_t i = 0; i < PX_COUNT_OF(known); i++) {
        ASSERT(strchr(px_errno_text(known[i]), ':') != NULL);
        ASSERT_STR(px_errno_text(known[i]), px_errno_text(-known[i]));
    }
    ASSERT(px_starts_with(px_errno_text(ENOENT), "ENOENT: "));
    ASSERT_STR(px_errno_text(0), "unknown error");
    ASSERT_STR(px_errno_text(4000), "unknown error");
    ASSERT_STR(px_errno_text(INT_MIN), "unknown error");
    ASSERT_STR(px_errno_text(INT_MAX), "unknown error");
}

TEST(sharpening)
{
    struct px_err e = {0};

    px_fail(&e, PX_E_BIND, 0, "cannot bind '%s'", "/x");
    ASSERT_EQ(px_why(&e, "it is a %s", "socket"), -1);
    ASSERT_EQ(px_fix(&e, "first\nsecond %s", "a\nb"), -1);
    ASSERT_STR(e.what, "cannot bind '/x'");
    ASSERT_STR(e.why, "it is a socket");
    ASSERT_STR(e.fix, "first\nsecond a\\x0ab");         /* our line break stays, a foreign one does not */
    ASSERT_EQ(e.code, PX_E_BIND);
}

TEST(conversions)
{
    struct px_err e = {0};

    px_fail(&e, PX_E_VALUE, 0, "%d %i %u %x %o %c %% %s", -5, 6, 7u, 255u, 8u, 'c', "s");
    ASSERT_STR(e.what, "-5 6 7 ff 10 c % s");
    px_fail(&e, PX_E_VALUE, 0, "%ld %lld %zu %ju %lu %llu %zd", -1L, -2LL, (size_t)3, (uintmax_t)4, 5ul, ULLONG_MAX,
            (ssize_t)-6);
    ASSERT_STR(e.what, "-1 -2 3 4 5 18446744073709551615 -6");
    px_fail(&e, PX_E_VALUE, 0, "%03d|%04o|%5d|%hhu", 7, 0755u, 42, (unsigned char)200);
    ASSERT_STR(e.what, "007|0755|   42|200");
    px_fail(&e, PX_E_VALUE, 0, "%.*s|%.2s|%s", 3, "abcdef", "xyz", "end");
    ASSERT_STR(e.what, "abc|xy|end");
    const char *volatile none = NULL;   /* the compiler must not see it, or it refuses to compile */
    px_fail(&e, PX_E_VALUE, 0, "[%s]", none);
    ASSERT_STR(e.what, "[(null)]");
}

TEST(precision_reads_no_further)
{
    struct px_err e = {0};
    char bytes[3] = {'a', 'b', 'c'};    /* no NUL: a sanitizer sees one byte too many */

    px_fail(&e, PX_E_VALUE, 0, "%.*s.", 3, bytes);
    ASSERT_STR(e.what, "abc.");
}

TEST(foreign_text_is_quoted)
{
    struct px_err e = {0};

    px_fail(&e, PX_E_VALUE, 0, "'%s' and %c", "\x1b[2J\n\xff\xc3\xbc\xc2\x9b", '\a');
    ASSERT_STR(e.what, "'\\x1b[2J\\x0a\\xff\xc3\xbc\\xc2\\x9b' and \\x07");
}

TEST(long_text_is_cut_at_a_character)
{
    struct px_err e;
    char text[3000];

    for (size_t shift = 0; shift < 4; shift++) {
        memset(&e, 0x55, sizeof e);
        memset(text, 0, sizeof text);
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "\xe2\x82\xac", 3);
        px_fail(&e, PX_E_VALUE, 0, "%s", text);
        ASSERT(memchr(e.what, 0, sizeof e.what) != NULL);
        ASSERT(is_clean(e.what, false));
        ASSERT_STR(e.what + strlen(e.what) - 3, "...");
        ASSERT(strlen(e.what) > sizeof e.what - 8);
        px_fix(&e, "%s\n%s", text, text);
        ASSERT(is_clean(e.fix, true) && strlen(e.fix) < sizeof e.fix);
        px_why(&e, "%s", text);
        ASSERT(is_clean(e.why, true) && strlen(e.why) < sizeof e.why);
    }
}

#define EURO_8 "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
#define EURO_64 EURO_8 EURO_8 EURO_8 EURO_8 EURO_8 EURO_8 EURO_8 EURO_8
#define EURO_512 EURO_64 EURO_64 EURO_64 EURO_64 EURO_64 EURO_64 EURO_64 EURO_64

TEST(long_words_of_ours_are_cut_at_a_character)
{
    struct px_err e = {0};

    px_why(&e, EURO_512);
    ASSERT(is_clean(e.why, false));
    px_why(&e, "x" EURO_512);
    ASSERT(is_clean(e.why, false));
    px_why(&e, "xy" EURO_512);
    ASSERT(is_clean(e.why, false));
    ASSERT(strlen(e.why) > sizeof e.why - 8);
}

TEST(text_that_just_fits_is_not_cut)
{
    struct px_err e;
    char text[sizeof e.what];

    memset(text, 'y', sizeof text);
    text[sizeof e.what - 4] = 0;
    px_fail(&e, PX_E_VALUE, 0, "%s", text);
    ASSERT_STR(e.what, text);
}

TEST(every_byte_comes_out_clean)
{
    for (int c = 1; c < 256; c++) {
        struct px_err e;
        char text[4] = {'a', (char)c, 'b', 0};

        px_fail(&e, PX_E_VALUE, 0, "%s", text);
        ASSERT(is_clean(e.what, false));
    }
}

TEST(details_are_members_of_an_object)
{
    struct px_err e = {0};
    char large[600];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    (void)px_fail(&e, PX_E_VALUE, 0, "x");
    ASSERT_STR(e.details, "");
    ASSERT_EQ(px_detail(&e, "reason", "missing_lock"), -1);
    ASSERT_EQ(px_detail(&e, "file", "a\"b\n"), -1);
    ASSERT_EQ(px_detail(&e, "much", large), -1);
    ASSERT_STR(e.details, "\"reason\":\"missing_lock\",\"file\":\"a\\\"b\\n\"");
    (void)px_fail(&e, PX_E_VALUE, 0, "y");
    ASSERT_STR(e.details, "");
    ASSERT_EQ(px_detail(NULL, "a", "b"), -1);
}

/* ---- words for a person ---- */

static void __attribute__((format(printf, 2, 3))) check_words(const char *expected, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    px_auto_free char *text = px_words(fmt, args);
    va_end(args);
    ASSERT_STR(text, expected);
}

TEST(words_quote_what_comes_in_and_keep_their_own)
{
    check_words("a\n\x1b[0m\n", "a\n\x1b[0m\n");
    check_words("", "%s", "");
    check_words("[a\\x0ab] c \\x9b\n", "[%s] %c %c\n", "a\nb", 'c', 0x9b);
    check_words("\\xe2\\x80\\xae|\\xd8\\x9c|\\xff", "%s|%s|%s", "\xe2\x80\xae", "\xd8\x9c", "\xff");
}

TEST(words_have_widths)
{
    check_words("[ab   ][   ab][ab][abc]", "[%-5s][%5s][%s][%.3s]", "ab", "ab", "ab", "abcdef");
    check_words("[   \\x0a][\\x0a   ]", "[%7s][%-7s]", "\n", "\n");
    check_words("[7    ][    7][007][18446744073709551615]", "[%-5u][%5d][%03d][%llu]", 7u, 7, 7, ~0ull);
    check_words("1.500 0.3 -2.000000 50%", "%.3f %.1f %f 50%%", 1.5, 0.25 + 0.05, -2.0);
}
