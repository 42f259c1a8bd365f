#include "store/canonical.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "harness/test.h"
#include "store/document.h"

static int canonical(const char *text, struct px_buf *out)
{
    px_auto(px_document) json_t *value = NULL;

    ASSERT_EQ(px_document_read(text, __builtin_strlen(text), "a test", PX_E_INTERNAL, &value, NULL), 0);
    return px_canonical(value, out);
}

static void check(const char *text, const char *expected)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 16);

    ASSERT_OK(canonical(text, &out));
    ASSERT_STR(px_buf_text(&out), expected);
}

static void refused(const char *text)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 16);

    ASSERT_EQ(canonical(text, &out), -EINVAL);
}

TEST(keys_are_sorted_and_blanks_gone)
{
    check(" { \"b\" : [ 2 , 1, null, true ] , \"a\" : { \"z\" : \"x\", \"y\" : false } } ",
          "{\"a\":{\"y\":false,\"z\":\"x\"},\"b\":[2,1,null,true]}");
    check(
        "{\"\":0,\"B\":1,\"a\":2,\"\\u00e9\":3,\"\\uffff\":4,\"\\ud83d\\ude00\":5}",
        "{\"\":0,\"B\":1,\"a\":2,\"\xc3\xa9\":3,\"\xef\xbf\xbf\":4,\"\xf0\x9f\x98\x80\":5}");
    check("[]", "[]");
    check("{}", "{}");
    check("[\"\\u0041\\/\\n\\u001f\\\"\\\\\"]", "[\"A/\\n\\u001f\\\"\\\\\"]");
}

TEST(numbers_are_whole_and_exact_everywhere)
{
    check("[9007199254740991,-9007199254740991,-0]", "[9007199254740991,-9007199254740991,0]");
    refused("[9007199254740992]");
    refused("[-9007199254740992]");
    refused("[1.0]");
    refused("{\"a\":[{\"b\":1e2}]}");
}

TEST(depth_is_bounded)
{
    check("[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]");
    refused("[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]");
}

TEST(no_room_is_an_error)
{
    px_auto_buf struct px_buf out = PX_BUF(8);

    ASSERT_EQ(canonical("[\"123456789\"]", &out), -E2BIG);
}
