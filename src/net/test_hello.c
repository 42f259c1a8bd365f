#include "net/hello.h"

#include <string.h>

#include "base/text.h"
#include "harness/test.h"

static enum px_hello look(const char *text, char name[PX_NET_NAME_MAX])
{
    return px_hello_look((const uint8_t *)text, strlen(text), name);
}

TEST(requests)
{
    static const struct {
        const char *text;
        enum px_hello want;
        const char *name;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: Good.Test:8080\r\n\r\n", PX_HELLO_NAMED, "good.test"},
        {"GET / HTTP/1.1\nhost:good.test\n\n", PX_HELLO_NAMED, "good.test"},
        {"GET http://good.test/x HTTP/1.1\r\nHost: good.test\r\n\r\n", PX_HELLO_NAMED, "good.test"},
        {"GET http://other.test/x HTTP/1.1\r\nHost: good.test\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nHost : a.test\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nX: y\r\n z\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nHost: user@a.test\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / x HTTP/1.1\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.0\r\n\r\n", PX_HELLO_NAMELESS, ""},
        {"CONNECT a.test:443 HTTP/1.1\r\n\r\n", PX_HELLO_NAMED, "a.test"},
        {"PRI * HTTP/2.0\r\n\r\n", PX_HELLO_HIDDEN, ""},
        {"\r\nGET / HTTP/1.1\r\n\r\n", PX_HELLO_BAD, ""},
        {"G", PX_HELLO_MORE, ""},
        {"GET / HTTP/1.1\r\nHost: a.test\r\n", PX_HELLO_MORE, ""},
        {"SSH-2.0-x\r\n", PX_HELLO_OTHER, ""},
        {"", PX_HELLO_MORE, ""},
        {"GETX / HTTP/1.1\r\n\r\n", PX_HELLO_NAMELESS, ""},
        {"PURGE / HTTP/1.1\r\nHost: a.test\r\n\r\n", PX_HELLO_NAMED, "a.test"},
        {"x-y / HTTP/1.1\r\nHost: a.test\r\n\r\n", PX_HELLO_NAMED, "a.test"},
        {"PURGE\t/\tHTTP/1.1\r\nHost: a.test\r\n\r\n", PX_HELLO_BAD, ""},
        {"purge / http/1.1\r\nHost: a.test\r\n\r\n", PX_HELLO_BAD, ""},
        {" GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nHost\v: a.test\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nHostess: b.test\r\nHost: a.test\r\n\r\n", PX_HELLO_NAMED, "a.test"},
        {"PURGE / HT", PX_HELLO_MORE, ""},
        {"EHLO a.test\r\n", PX_HELLO_OTHER, ""},
        {"x", PX_HELLO_MORE, ""},
        {"x\n", PX_HELLO_OTHER, ""},
        {"\x15\3\1\1\2\1\1", PX_HELLO_BAD, ""},
        {"\x15", PX_HELLO_MORE, ""},
        {"\x15 binary", PX_HELLO_OTHER, ""},
    };
    char name[PX_NET_NAME_MAX];
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        ASSERT_EQ((int)look(rows[i].text, name) * 100 + (int)i, (int)rows[i].want * 100 + (int)i);
        if (rows[i].want == PX_HELLO_NAMED)
            ASSERT_STR(name, rows[i].name);
    }
}

/* A hello with these extensions; its length. */
static size_t make_hello(const uint8_t *extensions, size_t len, uint8_t *out)
{
    size_t at = 9;
    memset(out, 0, 9 + 34);
    out[at] = out[at + 1] = 3;
    at += 34;
    memcpy(out + at, "\0\0\2\x13\1\1\0", 7);
    at += 7;
    out[at++] = (uint8_t)(len >> 8);
    out[at++] = (uint8_t)len;
    memcpy(out + at, extensions, len);
    at += len;
    memcpy(out, "\x16\3\1\0\0\1\0\0\0", 9);
    out[3] = (uint8_t)((at - 5) >> 8);
    out[4] = (uint8_t)(at - 5);
    out[7] = (uint8_t)((at - 9) >> 8);
    out[8] = (uint8_t)(at - 9);
    return at;
}

static const uint8_t sni[] = "\0\0\0\x0e\0\x0c\0\0\x09good.test";

TEST(hellos)
{
    static const uint8_t other[] = "\0\x17\0\0", encrypted[] = "\0\0\0\x0e\0\x0c\0\0\x09good.test\xfe\x0d\0\1x",
                         twice[] = "\0\0\0\x0e\0\x0c\0\0\x09good.test\0\0\0\x0e\0\x0c\0\0\x09good.test", cut[] = "\0\0\0\x0e\0\x0d\0\0\x09good.test";
    uint8_t hello[512];
    char name[PX_NET_NAME_MAX];
    size_t n = make_hello(sni, sizeof sni - 1, hello);
    ASSERT_EQ(px_hello_look(hello, n, name), PX_HELLO_NAMED);
    ASSERT_STR(name, "good.test");
    ASSERT_EQ(px_hello_look(hello, make_hello(other, sizeof other - 1, hello), name), PX_HELLO_NAMELESS);
    ASSERT_EQ(px_hello_look(hello, make_hello(encrypted, sizeof encrypted - 1, hello), name), PX_HELLO_HIDDEN);
    ASSERT_EQ(px_hello_look(hello, make_hello(twice, sizeof twice - 1, hello), name), PX_HELLO_BAD);
    ASSERT_EQ(px_hello_look(hello, make_hello(cut, sizeof cut - 1, hello), name), PX_HELLO_BAD);
}

/* However it is cut: into fewer bytes, it needs more; into records, it is the same. */
TEST(hellos_in_pieces)
{
    uint8_t hello[512], cut[1024];
    char name[PX_NET_NAME_MAX];
    size_t n = make_hello(sni, sizeof sni - 1, hello), at = 0;
    for (size_t i = 1; i < n; i++)
        ASSERT_EQ(px_hello_look(hello, i, name), PX_HELLO_MORE);
    for (size_t i = 5; i < n; i++) {
        memcpy(cut + at, "\x16\3\1\0\1", 5);
        cut[at + 5] = hello[i];
        at += 6;
    }
    ASSERT_EQ(px_hello_look(cut, at, name), PX_HELLO_NAMED);
    ASSERT_STR(name, "good.test");
}
