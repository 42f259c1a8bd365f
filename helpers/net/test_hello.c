#include "helpers/net/hello.h"

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
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", PX_HELLO_ADDRESS, ""},
        {"GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", PX_HELLO_ADDRESS, ""},
        {"GET http://1.2.3.4/ HTTP/1.1\r\nHost: 1.2.3.4:80\r\n\r\n", PX_HELLO_ADDRESS, ""},
        {"GET http://1.2.3.5/ HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET http://a.test/ HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nHost: [1.2.3.4]\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\nHost: 2001:db8::1\r\n\r\n", PX_HELLO_BAD, ""},
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
        {"GET / HTTP/1.1\r\nX\r\nHost: a.test\r\n\r\n", PX_HELLO_BAD, ""},
        {"GET / HTTP/1.1\r\n\x1cHost: b.test\r\nHost: a.test\r\n\r\n", PX_HELLO_BAD, ""},
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

/* What a server may take for a request, though its first line is not one: each of them names a server in its second line. */
TEST(lines_that_some_server_reads)
{
    static const char *const lines[] = {
        "GET/ HTTP/1.1", "GET\0 / HTTP/1.1", "get\0 / HTTP/1.1", "GET / HTTP/1.1\0", "GET\x1c/ HTTP/1.1", "GET\x1d/ HTTP/1.1", "GET\x1e/ HTTP/1.1",
        "GET\x1f/ HTTP/1.1", "GET\x85/ HTTP/1.1", "GET\xa0/ HTTP/1.1", "PURGE\x1c/ HTTP/1.1", "PURGE\xa0/ hTTp/1.1", "GET\xe2\x80\x83/ HTTP/1.1",
        "\x1cGET / HTTP/1.1", "\x85GET / HTTP/1.1", "\xa0GET / HTTP/1.1", "\v\fGET / HTTP/1.1", "\n\r\n\nGET / HTTP/1.1", "\nGET http://a.test/",
        "<GET / HTTP/1.1", "GET / HTTP/1.1 ", "GET  / HTTP/1.1", "GET / HTTP/1.1x", "GET /\x1c HTTP/1.1", "GET / HTTP/11", "GET / HTTP/2.0",
        "GET\rX / HTTP/1.1", "POST /", "GET\t/", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2", "proxy UNKNOWN", "PROXY", "\r\n\r\n\0\r\nQUIT\n!!",
        "http/1.1 / GET", "x HTTP/1.1",
    };
    static const size_t lengths[] = {[1] = 16, [2] = 16, [3] = 15, [32] = 14};
    char name[PX_NET_NAME_MAX], text[128];
    for (size_t i = 0; i < PX_COUNT_OF(lines); i++) {
        size_t n = i < PX_COUNT_OF(lengths) && lengths[i] ? lengths[i] : strlen(lines[i]);
        memcpy(text, lines[i], n);
        ASSERT(px_fmt(text + n, sizeof text - n, "\r\nHost: a.test\r\n\r\n") > 0);
        ASSERT_EQ((int)px_hello_look((const uint8_t *)text, n + 18, name) * 100 + (int)i, (int)PX_HELLO_BAD * 100 + (int)i);
    }
}

/* And what is none, known without a wait for more. */
TEST(other_protocols)
{
    static const struct {
        size_t size;
        const char *text;
    } rows[] = {
        {8, "AMQP\0\0\x09\x01"}, {4, "\0\0\0\x08"}, {3, "\x05\x01\0"}, {5, "\x85\0\0\x01\x85"}, {5, "\n\0\0\x01\x85"}, {2, "\x10\x1a"}, {4, "\x80\x2e\x01\x03"},
        {5, "0)\x02\x01\x01"}, {12, "get secret\r\n"}, {8, "CONNECT\n"}, {9, "CONNECT\r\n"}, {14, "*1\r\n$4\r\nPING\r\n"}, {10, "NICK ab\r\nX"},
        {25, "REGISTER sip:a SIP/2.0\r\nX"},
    };
    char name[PX_NET_NAME_MAX];
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        ASSERT_EQ((int)px_hello_look((const uint8_t *)rows[i].text, rows[i].size, name) * 100 + (int)i, (int)PX_HELLO_OTHER * 100 + (int)i);
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
