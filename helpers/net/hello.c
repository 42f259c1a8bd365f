#include "helpers/net/hello.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "net/address.h"

/* ---- a reader that cannot pass its end ---- */

struct reader {
    const uint8_t *p;
    size_t left;
    bool failed;
};

static unsigned take(struct reader *r, unsigned bytes)
{
    unsigned value = 0;
    if (r->failed || r->left < bytes) {
        r->failed = true;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | r->p[i];
    r->p += bytes;
    r->left -= bytes;
    return value;
}

/* A part of its own, whose length comes first. */
static struct reader part(struct reader *r, unsigned bytes)
{
    size_t n = take(r, bytes);
    if (r->failed || r->left < n) {
        r->failed = true;
        return (struct reader){.failed = true};
    }
    struct reader sub = {.p = r->p, .left = n};
    r->p += n;
    r->left -= n;
    return sub;
}

/* ---- TLS ---- */

enum { RECORD_FIRST = 20, RECORD_HANDSHAKE = 22, RECORD_LAST = 24, CLIENT_HELLO = 1, EXT_SERVER_NAME = 0, EXT_ENCRYPTED_HELLO = 0xfe0d };

static enum px_hello read_server_name(struct reader ext, char name[PX_NET_NAME_MAX])
{
    struct reader list = part(&ext, 2);
    unsigned type = take(&list, 1);
    struct reader host = part(&list, 2);
    if (ext.failed || list.failed || host.failed || type != 0 || list.left > 0 || ext.left > 0)
        return PX_HELLO_BAD;
    return px_net_name_clean((const char *)host.p, host.left, name) < 0 ? PX_HELLO_BAD : PX_HELLO_NAMED;
}

static enum px_hello read_extensions(struct reader all, char name[PX_NET_NAME_MAX])
{
    enum px_hello found = PX_HELLO_NAMELESS;
    while (all.left > 0) {
        unsigned type = take(&all, 2);
        struct reader ext = part(&all, 2);
        if (all.failed)
            return PX_HELLO_BAD;
        if (type == EXT_ENCRYPTED_HELLO)
            return PX_HELLO_HIDDEN;
        if (type != EXT_SERVER_NAME)
            continue;
        if (found != PX_HELLO_NAMELESS || read_server_name(ext, name) != PX_HELLO_NAMED)
            return PX_HELLO_BAD;        /* two of them, too */
        found = PX_HELLO_NAMED;
    }
    return found;
}

static enum px_hello read_client_hello(struct reader body, char name[PX_NET_NAME_MAX])
{
    (void)take(&body, 2);       /* version */
    for (int i = 0; i < 8; i++)
        (void)take(&body, 4);   /* random */
    (void)part(&body, 1);       /* session */
    (void)part(&body, 2);       /* ciphers */
    (void)part(&body, 1);       /* compressions */
    if (body.failed)
        return PX_HELLO_BAD;
    if (body.left == 0)
        return PX_HELLO_NAMELESS;
    struct reader extensions = part(&body, 2);
    return body.failed || body.left > 0 ? PX_HELLO_BAD : read_extensions(extensions, name);
}

/* The handshake may be cut into records anywhere. */
static enum px_hello look_tls(const uint8_t *data, size_t size, char name[PX_NET_NAME_MAX])
{
    uint8_t whole[PX_HELLO_MAX];
    size_t have = 0, at = 0;
    while (true) {
        if (have >= 4) {
            size_t want = 4 + ((size_t)whole[1] << 16 | (size_t)whole[2] << 8 | whole[3]);
            if (whole[0] != CLIENT_HELLO || want > sizeof whole)
                return PX_HELLO_BAD;
            if (have >= want)
                return read_client_hello((struct reader){.p = whole + 4, .left = want - 4}, name);
        }
        if (at + 5 > size)
            return PX_HELLO_MORE;
        size_t n = (size_t)data[at + 3] << 8 | data[at + 4];
        if (data[at] != RECORD_HANDSHAKE || data[at + 1] != 3 || n == 0)
            return PX_HELLO_BAD;
        size_t there = size - at - 5 < n ? size - at - 5 : n;
        if (have + there > sizeof whole)
            return PX_HELLO_BAD;
        memcpy(whole + have, data + at + 5, there);
        have += there;
        at += 5 + there;
        if (there < n && (have < 4 || have < 4 + ((size_t)whole[1] << 16 | (size_t)whole[2] << 8 | whole[3])))
            return have >= 1 && whole[0] != CLIENT_HELLO ? PX_HELLO_BAD : PX_HELLO_MORE;
    }
}

/* ---- HTTP ---- */

static const char *const methods[] = {"GET",   "HEAD",    "POST",     "PUT",  "DELETE",    "OPTIONS", "TRACE",
                                      "PATCH", "CONNECT", "PROPFIND", "LINK", "PROPPATCH", "MKCOL",   "COPY",
                                      "MOVE",  "LOCK",    "UNLOCK",   "PRI",  "REPORT",    "SEARCH"};

/* A word of HTTP: servers differ in which methods they know, and pass on what they do not. */
static bool in_token(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool mentions_http(const uint8_t *line, size_t size)
{
    for (size_t i = 0; i + 5 <= size; i++)
        if (strncasecmp((const char *)line + i, "http/", 5) == 0)
            return true;
    return false;
}

static bool is_method(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < PX_COUNT_OF(methods); i++)
        if (strlen(methods[i]) == len && strncasecmp((const char *)data, methods[i], len) == 0)
            return true;
    return false;
}

/* What some server skips before a request, or takes for the blank between its words: Python's split() also \x1c to \x1f, \x85, \xa0. */
static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f) || c == 0x85 || c == 0xa0;
}

/* What no text has. */
static bool is_binary(uint8_t c)
{
    return (c < ' ' || c == 0x7f) && !is_blank(c);
}

static const uint8_t proxy_signature[12] = "\r\n\r\n\0\r\nQUIT\n";     /* of its version 2; version 1 is a line */

/* Whether it is a request, or may yet become one. Another protocol is known by a byte that no text has, before or in its first word,
 * or by its first line. That is a request, well-formed or not, if a method begins it or if it speaks of "http/" in any case: servers
 * differ in what they take for a blank, and in which methods they know. */
static enum px_hello look_line(const uint8_t *data, size_t size)
{
    size_t blank = 0, word = 0;
    if (memcmp(data, proxy_signature, size < 12 ? size : 12) == 0)
        return size < 12 ? PX_HELLO_MORE : PX_HELLO_BAD;
    while (blank < size && is_blank(data[blank]))
        blank++;
    const uint8_t *first = data + blank;
    while (blank + word < size && !is_blank(first[word]) && !is_binary(first[word]))
        word++;
    if (blank + word == size)
        return PX_HELLO_MORE;
    if (word == 5 && strncasecmp((const char *)first, "proxy", 5) == 0)
        return PX_HELLO_BAD;
    bool method = is_method(first, word);
    if (is_binary(first[word]) && !method)
        return PX_HELLO_OTHER;
    if (method && blank == 0 && first[word] == ' ' && memcmp(first, "PRI ", 4) == 0)
        return PX_HELLO_HIDDEN;
    const uint8_t *end = memchr(first, '\n', size - blank);
    if (!end)
        return PX_HELLO_MORE;
    bool alone = first + word == end || (first + word + 1 == end && first[word] == '\r');      /* as STOMP begins */
    bool request = method && !alone && first[0] <= 'Z';         /* "get" is a word of memcached */
    if (!request && !mentions_http(first, (size_t)(end - first)))
        return PX_HELLO_OTHER;
    return blank > 0 ? PX_HELLO_BAD : PX_HELLO_NAMELESS;
}

static enum px_hello read_address(const char *text, size_t len, char name[PX_NET_NAME_MAX])
{
    struct px_address a;
    bool six = len > 2 && text[0] == '[' && text[len - 1] == ']';
    if (px_fmt(name, PX_NET_NAME_MAX, "%.*s", (int)(len - (six ? 2 : 0)), text + six) < 0 || px_address_parse(name, &a) < 0)
        return PX_HELLO_BAD;
    return six == (strchr(name, ':') != NULL) ? PX_HELLO_ADDRESS : PX_HELLO_BAD;
}

/* "example.org:80", without user or anything else. */
static enum px_hello read_authority(const char *text, size_t len, char name[PX_NET_NAME_MAX])
{
    const char *colon = memrchr(text, ':', len);
    size_t n = len;
    if (colon && strspn(colon + 1, "0123456789") >= (size_t)(text + len - colon - 1))
        n = (size_t)(colon - text);
    return px_net_name_clean(text, n, name) == 0 ? PX_HELLO_NAMED : read_address(text, n, name);
}

/* Two places may name the server; if both do, they must agree. */
static enum px_hello join(enum px_hello a, const char *name_a, enum px_hello b, const char *name_b, char name[PX_NET_NAME_MAX])
{
    if (a == PX_HELLO_BAD || b == PX_HELLO_BAD)
        return PX_HELLO_BAD;
    if (a == PX_HELLO_NAMELESS || b == PX_HELLO_NAMELESS) {
        a = a == PX_HELLO_NAMELESS ? b : a;
        name_a = *name_a ? name_a : name_b;
    } else if (a != b || strcmp(name_a, name_b) != 0) {
        return PX_HELLO_BAD;
    }
    memcpy(name, name_a, strlen(name_a) + 1);
    return a;
}

/* METHOD target HTTP/1.x: words without control characters, with one blank between them. */
static bool is_request_line(const char *line, size_t len, const char **ret_target, size_t *ret_len)
{
    size_t method = 0, target = 0;
    while (method < len && in_token((uint8_t)line[method]))
        method++;
    if (method == 0 || method == len || line[method] != ' ')
        return false;
    const char *from = line + method + 1;
    size_t left = len - method - 1;
    while (target < left && (uint8_t)from[target] > ' ' && from[target] != 0x7f)
        target++;
    const char *version = from + target;
    if (target == 0 || left - target != 9 || memcmp(version, " HTTP/1.", 8) != 0 || version[8] < '0' || version[8] > '9')
        return false;
    *ret_target = from;
    *ret_len = target;
    return true;
}

static enum px_hello read_request_line(const char *line, size_t len, char name[PX_NET_NAME_MAX])
{
    const char *target;
    size_t n, m = 7;
    if (!is_request_line(line, len, &target, &n))
        return PX_HELLO_BAD;
    if (*target == '/' || *target == '*')
        return PX_HELLO_NAMELESS;
    if (n > 7 && strncasecmp(target, "http://", 7) == 0) {
        while (m < n && target[m] != '/' && target[m] != '?' && target[m] != '#')
            m++;
        return read_authority(target + 7, m - 7, name);
    }
    return memcmp(line, "CONNECT ", 8) == 0 ? read_authority(target, n, name) : PX_HELLO_BAD;
}

/* A line without a name and a colon, or one that goes on with the last (it begins with a blank), is not read the same by all. */
static enum px_hello read_header(const char *line, size_t len, enum px_hello sofar, char name[PX_NET_NAME_MAX])
{
    size_t n = 0;
    while (n < len && in_token((uint8_t)line[n]))
        n++;
    if (n == 0 || n == len || line[n] != ':')
        return PX_HELLO_BAD;
    if (n != 4 || strncasecmp(line, "host", 4) != 0)
        return sofar;
    if (sofar != PX_HELLO_NAMELESS)
        return PX_HELLO_BAD;
    const char *p = line + 5, *end = line + len;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return p == end ? sofar : read_authority(p, (size_t)(end - p), name);
}

static enum px_hello read_request(const char *text, size_t len, char name[PX_NET_NAME_MAX])
{
    char by_line[PX_NET_NAME_MAX] = "", by_header[PX_NET_NAME_MAX] = "";
    enum px_hello line_says = PX_HELLO_NAMELESS, header_says = PX_HELLO_NAMELESS;
    for (size_t at = 0, number = 0; at < len; number++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at, m = n;
        if (m > 0 && text[at + m - 1] == '\r')
            m--;
        if (m == 0)
            break;
        if (memchr(text + at, '\r', m) || memchr(text + at, '\0', m))
            return PX_HELLO_BAD;
        if (number == 0)
            line_says = read_request_line(text + at, m, by_line);
        else
            header_says = read_header(text + at, m, header_says, by_header);
        if (line_says == PX_HELLO_BAD || header_says == PX_HELLO_BAD)
            return PX_HELLO_BAD;
        at += n + 1;
    }
    return join(line_says, by_line, header_says, by_header, name);
}

static bool is_whole(const char *text, size_t len)
{
    for (size_t i = 1; i < len; i++)
        if (text[i] == '\n' && (text[i - 1] == '\n' || (i > 1 && text[i - 1] == '\r' && text[i - 2] == '\n')))
            return true;
    return false;
}

static enum px_hello look_http(const uint8_t *data, size_t size, char name[PX_NET_NAME_MAX])
{
    enum px_hello first = look_line(data, size);
    if (first != PX_HELLO_NAMELESS)
        return first;
    const char *text = (const char *)data;
    return is_whole(text, size) ? read_request(text, size, name) : PX_HELLO_MORE;
}

enum px_hello px_hello_look(const uint8_t *data, size_t size, char ret_name[PX_NET_NAME_MAX])
{
    ret_name[0] = '\0';
    if (size == 0)
        return PX_HELLO_MORE;
    if (data[0] != RECORD_HANDSHAKE && data[0] >= RECORD_FIRST && data[0] <= RECORD_LAST)      /* some skip a warning before a hello */
        return size < 2 ? PX_HELLO_MORE : data[1] == 3 ? PX_HELLO_BAD : PX_HELLO_OTHER;
    enum px_hello r = data[0] == RECORD_HANDSHAKE ? look_tls(data, size, ret_name) : look_http(data, size, ret_name);
    return r == PX_HELLO_MORE && size >= PX_HELLO_MAX ? PX_HELLO_BAD : r;
}
