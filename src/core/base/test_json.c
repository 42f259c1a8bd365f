/* base/test_json.c - the JSON writer: what it writes, and what it refuses to write. */
#include "base/json.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "harness/test.h"

TEST(compact)
{
    px_auto_buf struct px_buf out = PX_BUF(1000);
    struct px_json j = {.out = &out};

    px_json_object(&j, NULL);
    px_json_text(&j, "text", "x");
    px_json_text(&j, "none", NULL);
    px_json_int(&j, "int", INT64_MIN);
    px_json_uint(&j, "uint", UINT64_MAX);
    px_json_bool(&j, "yes", true);
    px_json_bool(&j, "no", false);
    px_json_null(&j, "null");
    px_json_array(&j, "list");
    px_json_int(&j, NULL, 1);
    px_json_object(&j, NULL);
    px_json_end(&j);
    px_json_array(&j, NULL);
    px_json_end(&j);
    px_json_end(&j);
    px_json_end(&j);
    ASSERT_EQ(out.err, 0);
    ASSERT_STR(px_buf_text(&out), "{\"text\":\"x\",\"none\":null,\"int\":-9223372036854775808,\"uint\":18446744073709551615,"
                                  "\"yes\":true,\"no\":false,\"null\":null,\"list\":[1,{},[]]}");
}

TEST(pretty)
{
    px_auto_buf struct px_buf out = PX_BUF(1000);
    struct px_json j = {.out = &out, .pretty = true};

    px_json_object(&j, NULL);
    px_json_int(&j, "a", 1);
    px_json_array(&j, "b");
    px_json_text(&j, NULL, "c");
    px_json_text(&j, NULL, "d");
    px_json_end(&j);
    px_json_object(&j, "empty");
    px_json_end(&j);
    px_json_end(&j);
    ASSERT_EQ(out.err, 0);
    ASSERT_STR(px_buf_text(&out), "{\n  \"a\": 1,\n  \"b\": [\n    \"c\",\n    \"d\"\n  ],\n  \"empty\": {}\n}");
}

TEST(a_value_alone)
{
    px_auto_buf struct px_buf out = PX_BUF(100);
    struct px_json j = {.out = &out};

    px_json_int(&j, NULL, 7);
    ASSERT_STR(px_buf_text(&out), "7");
    ASSERT_EQ(out.err, 0);
    px_json_int(&j, NULL, 8);           /* a document has one value */
    ASSERT_EQ(out.err, -EINVAL);
    ASSERT_STR(px_buf_text(&out), "7");
}

static void check_string(const char *bytes, size_t len, const char *expected)
{
    px_auto_buf struct px_buf out = PX_BUF(1000);
    struct px_json j = {.out = &out};

    px_json_bytes(&j, NULL, bytes, len);
    ASSERT_EQ(out.err, 0);
    ASSERT_STR(px_buf_text(&out), expected);
}

TEST(strings)
{
    static const struct {
        const char *bytes, *expected;
    } cases[] = {
        // clang-format off
        { "", "\"\"" }, { "plain", "\"plain\"" }, { "a\"b\\c/d", "\"a\\\"b\\\\c/d\"" }, { "\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"" },
        { "\x01\x1b\x1f", "\"\\u0001\\u001b\\u001f\"" }, { "\x7f", "\"\\u007f\"" }, { "\xc2\x9b", "\"\\u009b\"" },
        { "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\"" },
        { "\xe2\x80\xa8\xe2\x80\xa9", "\"\\u2028\\u2029\"" }, { "\xef\xbf\xbf", "\"\xef\xbf\xbf\"" },
        { "a\xff" "b", "\"a\xef\xbf\xbd" "b\"" }, { "\xc3", "\"\xef\xbf\xbd\"" }, { "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, { "\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        // clang-format on
    };
    for (size_t i = 0; i < PX_COUNT_OF(cases); i++)
        check_string(cases[i].bytes, strlen(cases[i].bytes), cases[i].expected);
    check_string("a\0b", 3, "\"a\\u0000b\"");
    check_string("\xe2\x82\xac", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    check_string(NULL, 0, "\"\"");
}

TEST(names_are_escaped_too)
{
    px_auto_buf struct px_buf out = PX_BUF(100);
    struct px_json j = {.out = &out};

    px_json_object(&j, NULL);
    px_json_int(&j, "a\"\n\xff", 1);
    px_json_int(&j, "", 2);
    px_json_end(&j);
    ASSERT_STR(px_buf_text(&out), "{\"a\\\"\\n\xef\xbf\xbd\":1,\"\":2}");
}

TEST(decimals)
{
    static const struct {
        uint64_t value;
        int decimals;
        const char *expected;
    } cases[] = {
        // clang-format off
        { 1500, 3, "1.500" }, { 0, 3, "0.000" }, { 1, 3, "0.001" }, { 42, 0, "42" }, { 1234567, 6, "1.234567" },
        { UINT64_MAX, 9, "18446744073.709551615" }, { UINT64_MAX, 19, "1.8446744073709551615" }, { 5, 19, "0.0000000000000000005" },
        // clang-format on
    };
    for (size_t i = 0; i < PX_COUNT_OF(cases); i++) {
        px_auto_buf struct px_buf out = PX_BUF(100);
        struct px_json j = {.out = &out};

        px_json_decimal(&j, NULL, cases[i].value, cases[i].decimals);
        ASSERT_EQ(out.err, 0);
        ASSERT_STR(px_buf_text(&out), cases[i].expected);
    }
}

enum misuse { NAME_AT_TOP, NAME_IN_ARRAY, NO_NAME_IN_OBJECT, END_AT_TOP, END_TWICE, BAD_DECIMALS, NESTED_NAMELESS, MISUSES };

static void do_misuse(struct px_json *j, enum misuse what)
{
    switch (what) {
    case NAME_AT_TOP:
        px_json_int(j, "a", 1);
        break;
    case NAME_IN_ARRAY:
        px_json_array(j, NULL);
        px_json_int(j, "a", 1);
        break;
    case NO_NAME_IN_OBJECT:
        px_json_object(j, NULL);
        px_json_text(j, NULL, "x");
        break;
    case END_AT_TOP:
        px_json_end(j);
        break;
    case END_TWICE:
        px_json_object(j, NULL);
        px_json_end(j);
        px_json_end(j);
        break;
    case BAD_DECIMALS:
        px_json_decimal(j, NULL, 1, 20);
        break;
    default:
        px_json_object(j, NULL);
        px_json_object(j, NULL);
        break;
    }
}

TEST(misuse_is_an_error)
{
    for (int i = 0; i < MISUSES; i++) {
        px_auto_buf struct px_buf out = PX_BUF(100);
        struct px_json j = {.out = &out};

        do_misuse(&j, (enum misuse)i);
        if (out.err != -EINVAL)
            FAIL("misuse %d gives %d and %s", i, out.err, px_buf_text(&out));
        ASSERT(px_buf_take(&out) == NULL);
    }
}

TEST(depth_is_bounded)
{
    px_auto_buf struct px_buf out = PX_BUF(1000);
    struct px_json j = {.out = &out};

    for (int i = 0; i < PX_JSON_DEPTH; i++)
        px_json_array(&j, NULL);
    for (int i = 0; i < PX_JSON_DEPTH; i++)
        px_json_end(&j);
    ASSERT_EQ(out.err, 0);
    ASSERT_EQ(out.len, 2 * PX_JSON_DEPTH);

    struct px_json deeper = {.out = &out};
    for (int i = 0; i < 1000; i++)
        px_json_array(&deeper, NULL);
    ASSERT_EQ(out.err, -EINVAL);
    ASSERT_EQ(deeper.depth, PX_JSON_DEPTH);
}

TEST(a_full_buffer_is_the_first_error)
{
    px_auto_buf struct px_buf out = PX_BUF(10);
    struct px_json j = {.out = &out};

    px_json_object(&j, NULL);
    px_json_text(&j, "name", "a long value");
    px_json_end(&j);
    px_json_end(&j);
    ASSERT_EQ(out.err, -E2BIG);
}

TEST(a_value_written_before_is_put_in_its_place)
{
    px_auto_buf struct px_buf out = PX_BUF(100), empty = PX_BUF(100);
    struct px_json j = {.out = &out}, none = {.out = &empty};

    px_json_object(&j, NULL);
    px_json_value(&j, "a", "{\"b\":1}\n");
    px_json_int(&j, "c", 2);
    px_json_end(&j);
    ASSERT_STR(px_buf_text(&out), "{\"a\":{\"b\":1},\"c\":2}");
    px_json_value(&none, NULL, "");
    ASSERT_EQ(empty.err, -EINVAL);
}
