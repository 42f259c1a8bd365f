/* base/test_buf.c - growing bytes, their limits, quoting, and the head and tail of a stream. */
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

TEST(empty)
{
    px_auto_buf struct px_buf b = PX_BUF(10);

    ASSERT_STR(px_buf_text(&b), "");
    ASSERT_OK(px_buf_add(&b, NULL, 0));
    ASSERT_STR(px_buf_text(&b), "");
    ASSERT_EQ(b.len, 0);
    px_buf_done(NULL);
}

TEST(grows_and_stays_terminated)
{
    px_auto_buf struct px_buf b = PX_BUF(100000);

    for (size_t i = 0; i < 100000; i++) {
        ASSERT_OK(px_buf_putc(&b, (char)('a' + i % 26)));
        ASSERT_EQ(b.len, i + 1);
        ASSERT_EQ(b.data[b.len], 0);
    }
    for (size_t i = 0; i < b.len; i++)
        ASSERT_EQ(b.data[i], 'a' + i % 26);
    ASSERT(b.cap <= b.max + 1);
}

TEST(keeps_bytes_of_any_value)
{
    px_auto_buf struct px_buf b = PX_BUF(10);

    ASSERT_OK(px_buf_add(&b, "a\0b", 3));
    ASSERT_EQ(b.len, 3);
    ASSERT_EQ(memcmp(b.data, "a\0b", 4), 0);
}

TEST(maximum_is_exact_and_the_first_error_stays)
{
    px_auto_buf struct px_buf b = PX_BUF(5);

    ASSERT_OK(px_buf_puts(&b, "12345"));
    ASSERT_OK(px_buf_puts(&b, ""));
    ASSERT_EQ(px_buf_putc(&b, '6'), -E2BIG);
    ASSERT_EQ(b.err, -E2BIG);
    ASSERT_STR(px_buf_text(&b), "12345");
    ASSERT_EQ(px_buf_puts(&b, ""), -E2BIG);
    ASSERT_EQ(px_buf_printf(&b, "x"), -E2BIG);
    ASSERT_EQ(px_buf_escape(&b, "x", ""), -E2BIG);
    ASSERT_EQ(px_buf_quote(&b, "x", 1), -E2BIG);
    ASSERT_STR(px_buf_text(&b), "12345");
    ASSERT(px_buf_take(&b) == NULL);
    ASSERT_EQ(b.err, -E2BIG);
    ASSERT_STR(px_buf_text(&b), "");
    px_buf_done(&b);
    ASSERT_OK(px_buf_puts(&b, "again"));        /* done makes it new */
}

TEST(an_addition_too_large_adds_nothing)
{
    px_auto_buf struct px_buf b = PX_BUF(5);

    ASSERT_OK(px_buf_puts(&b, "123"));
    ASSERT_EQ(px_buf_puts(&b, "456"), -E2BIG);
    ASSERT_STR(px_buf_text(&b), "123");
}

TEST(maximum_of_zero)
{
    px_auto_buf struct px_buf b = PX_BUF(0);

    ASSERT_OK(px_buf_puts(&b, ""));
    ASSERT_EQ(px_buf_putc(&b, 'x'), -E2BIG);
}

TEST(lengths_do_not_overflow)
{
    px_auto_buf struct px_buf b = PX_BUF(SIZE_MAX);

    ASSERT_OK(px_buf_puts(&b, "x"));
    ASSERT_EQ(px_buf_add(&b, "y", SIZE_MAX), -E2BIG);
    px_buf_done(&b);
    ASSERT_EQ(px_buf_add(&b, "y", SIZE_MAX), -E2BIG);
}

TEST(out_of_memory_is_remembered)
{
    px_auto_buf struct px_buf b = PX_BUF(1000);

    px_test_fail_alloc(1);
    ASSERT_EQ(px_buf_puts(&b, "x"), -ENOMEM);
    ASSERT(px_test_alloc_failed());
    ASSERT_EQ(px_buf_puts(&b, "y"), -ENOMEM);
    ASSERT_EQ(b.err, -ENOMEM);
    ASSERT_STR(px_buf_text(&b), "");
    ASSERT(px_buf_take(&b) == NULL);
}

TEST(out_of_memory_keeps_what_was_there)
{
    px_auto_buf struct px_buf b = PX_BUF(1000);
    char more[200] = {0};

    ASSERT_OK(px_buf_puts(&b, "first"));
    px_test_fail_alloc(1);
    ASSERT_EQ(px_buf_add(&b, more, sizeof more), -ENOMEM);
    ASSERT_STR(px_buf_text(&b), "first");
}

TEST(printf_is_exact)
{
    px_auto_buf struct px_buf b = PX_BUF(300);

    ASSERT_OK(px_buf_printf(&b, "%d %s", 42, "words"));
    ASSERT_OK(px_buf_printf(&b, "%s", ""));
    ASSERT_STR(px_buf_text(&b), "42 words");
    ASSERT_OK(px_buf_printf(&b, "%292s", "x"));
    ASSERT_EQ(b.len, 300);
    ASSERT_EQ(px_buf_printf(&b, "%c", 'y'), -E2BIG);
    ASSERT_EQ(b.len, 300);
}

TEST(take_hands_over)
{
    px_auto_buf struct px_buf b = PX_BUF(10);

    ASSERT_OK(px_buf_puts(&b, "mine"));
    px_auto_free char *text = px_buf_take(&b);
    ASSERT_STR(text, "mine");
    ASSERT(b.data == NULL && b.len == 0 && b.cap == 0);
    ASSERT_OK(px_buf_puts(&b, "next"));
    ASSERT_STR(px_buf_text(&b), "next");
    ASSERT_STR(text, "mine");
}

TEST(take_of_an_empty_buffer_is_an_empty_text)
{
    struct px_buf b = PX_BUF(10);
    px_auto_free char *text = px_buf_take(&b);

    ASSERT_STR(text, "");
}

TEST(escape)
{
    px_auto_buf struct px_buf b = PX_BUF(100);

    ASSERT_OK(px_buf_escape(&b, "a:b,c\\d e", ":,\\"));
    ASSERT_STR(px_buf_text(&b), "a\\:b\\,c\\\\d e");
    px_buf_done(&b);
    ASSERT_OK(px_buf_escape(&b, "plain", ""));
    ASSERT_STR(px_buf_text(&b), "plain");
}

static void check_quote(const char *text, size_t len, const char *expected)
{
    px_auto_buf struct px_buf b = PX_BUF(1000);

    ASSERT_OK(px_buf_quote(&b, text, len));
    ASSERT_STR(px_buf_text(&b), expected);
}

TEST(quote)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        // clang-format off
        { "", "" }, { "plain text 'x' \"y\" \\z", "plain text 'x' \"y\" \\z" },
        { "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80" },
        { "\x1b[31mred", "\\x1b[31mred" }, { "a\nb\tc\r", "a\\x0ab\\x09c\\x0d" }, { "\x7f", "\\x7f" },
        { "\xc2\x9b" "2J", "\\xc2\\x9b2J" }, { "\xc2\xa0", "\xc2\xa0" },                      /* C1 CSI; no-break space */
        { "\xff\xfe", "\\xff\\xfe" }, { "\xc3", "\\xc3" }, { "a\xc3" "b", "a\\xc3b" }, { "\xed\xa0\x80", "\\xed\\xa0\\x80" },
        { "\xe2\x80\xae" "cod.exe", "\\xe2\\x80\\xaecod.exe" }, { "\xe2\x80\xa8", "\\xe2\\x80\\xa8" },
        { "\xd8\x9c", "\\xd8\\x9c" }, { "\xd8\x9b", "\xd8\x9b" },                          /* U+061C; an Arabic semicolon */
        { "\xe2\x80\x8e\xe2\x80\x8f", "\\xe2\\x80\\x8e\\xe2\\x80\\x8f" }, { "\xe2\x80\x8d", "\xe2\x80\x8d" },   /* marks; a joiner */
        { "\xe2\x81\xa6", "\\xe2\\x81\\xa6" }, { "\xe2\x80\xa6", "\xe2\x80\xa6" },            /* isolate; ellipsis */
        // clang-format on
    };
    for (size_t i = 0; i < PX_COUNT_OF(cases); i++)
        check_quote(cases[i].text, strlen(cases[i].text), cases[i].expected);
    check_quote("a\0b", 3, "a\\x00b");
    check_quote("\xe2\x82\xac", 2, "\\xe2\\x82");       /* cut inside a character */
}

TEST(a_full_quote_ends_at_a_character)
{
    px_auto_buf struct px_buf b = PX_BUF(4);

    ASSERT_EQ(px_buf_quote(&b, "ab\xe2\x82\xac", 5), -E2BIG);
    ASSERT_STR(px_buf_text(&b), "ab");
    px_buf_done(&b);
    ASSERT_EQ(px_buf_quote(&b, "a\n", 2), -E2BIG);
    ASSERT_STR(px_buf_text(&b), "a");
}

/* A stream of known bytes, offered in pieces of every size, against the plain definition of head and tail. */
static void check_headtail(size_t head, size_t tail, size_t total, size_t piece)
{
    struct px_headtail h;
    char stream[64];
    px_auto_buf struct px_buf out = PX_BUF(200), expected = PX_BUF(200);

    for (size_t i = 0; i < total; i++)
        stream[i] = (char)('0' + i);
    px_headtail_init(&h, head, tail);
    for (size_t i = 0; i < total; i += piece)
        ASSERT_OK(px_headtail_add(&h, stream + i, total - i < piece ? total - i : piece));
    ASSERT_OK(px_headtail_join(&h, &out));
    if (total <= head + tail) {
        ASSERT_OK(px_buf_add(&expected, stream, total));
    } else {
        ASSERT_OK(px_buf_add(&expected, stream, head));
        ASSERT_OK(px_buf_add(&expected, stream + total - tail, tail));
    }
    ASSERT_STR(px_buf_text(&out), px_buf_text(&expected));
    ASSERT_EQ(px_headtail_truncated(&h), total > head + tail);
    ASSERT_EQ(h.total, total);
    px_headtail_done(&h);
    ASSERT_EQ(h.total, 0);
}

TEST(headtail)
{
    for (size_t head = 0; head < 7; head++)
        for (size_t tail = 0; tail < 7; tail++)
            for (size_t total = 0; total < 30; total++)
                for (size_t piece = 1; piece < 12; piece++)
                    check_headtail(head, tail, total, piece);
}

TEST(headtail_counts_beyond_memory)
{
    struct px_headtail h;
    px_auto_buf struct px_buf out = PX_BUF(100);

    px_headtail_init(&h, 100, 100);
    px_test_fail_alloc(1);
    ASSERT_EQ(px_headtail_add(&h, "abc", 3), -ENOMEM);
    ASSERT_EQ(px_headtail_add(&h, "def", 3), -ENOMEM);
    ASSERT_EQ(h.total, 6);
    ASSERT(px_headtail_truncated(&h));
    ASSERT_OK(px_headtail_join(&h, &out));
    ASSERT_STR(px_buf_text(&out), "");
    px_headtail_done(&h);
}

TEST(headtail_without_memory_for_the_tail)
{
    struct px_headtail h;
    px_auto_buf struct px_buf out = PX_BUF(100);

    px_headtail_init(&h, 3, 100);
    ASSERT_OK(px_headtail_add(&h, "abc", 3));
    px_test_fail_alloc(1);
    ASSERT_EQ(px_headtail_add(&h, "def", 3), -ENOMEM);
    ASSERT_EQ(px_headtail_add(&h, "ghi", 3), -ENOMEM);
    ASSERT_EQ(h.total, 9);
    ASSERT(px_headtail_truncated(&h));
    ASSERT_OK(px_headtail_join(&h, &out));
    ASSERT_STR(px_buf_text(&out), "abc");
    px_headtail_done(&h);
    px_headtail_done(NULL);
}
