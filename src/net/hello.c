#include "net/hello.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

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
        if (strlen(methods[i]) == len && memcmp(data, methods[i], len) == 0)
            return true;
    return false;
}

/* Whether it is a request, or may yet become one: a word and a blank, in a line that is known to be one by the word or by the
 * version at its end. Another protocol is known by the first byte that no word has, or by the end of its first line. */
static enum px_hello look_method(const uint8_t *data, size_t size)
{
    size_t n = 0;
    while (n < size && in_token(data[n]))
        n++;
    if (n == size)
        return PX_HELLO_MORE;
    if (n == 0 || !strchr(" \t\v\f", data[n]) || data[n] == '\0')
        return PX_HELLO_OTHER;
    if (is_method(data, n))
        return n == 3 && memcmp(data, "PRI", 3) == 0 ? PX_HELLO_HIDDEN : PX_HELLO_NAMELESS;
    const uint8_t *end = memchr(data, '\n', size);
    if (!end)
        return PX_HELLO_MORE;
    return mentions_http(data, (size_t)(end - data)) ? PX_HELLO_NAMELESS : PX_HELLO_OTHER;
}

/* "example.org:80", without user or anything else; an address counts as a name that nothing matches. */
static enum px_hello read_authority(const char *text, size_t len, char name[PX_NET_NAME_MAX])
{
    const char *colon = memrchr(text, ':', len);
    size_t n = len;
    if (colon && strspn(colon + 1, "0123456789") >= (size_t)(text + len - colon - 1))
        n = (size_t)(colon - text);
    return px_net_name_clean(text, n, name) < 0 ? PX_HELLO_BAD : PX_HELLO_NAMED;
}

/* Two places may name the server; if both do, they must agree. */
static enum px_hello join(enum px_hello a, const char *name_a, enum px_hello b, const char *name_b, char name[PX_NET_NAME_MAX])
{
    if (a == PX_HELLO_BAD || b == PX_HELLO_BAD)
        return PX_HELLO_BAD;
    if (a == PX_HELLO_NAMED && b == PX_HELLO_NAMED && strcmp(name_a, name_b) != 0)
        return PX_HELLO_BAD;
    if (a != PX_HELLO_NAMED && b != PX_HELLO_NAMED)
        return PX_HELLO_NAMELESS;
    const char *from = a == PX_HELLO_NAMED ? name_a : name_b;
    memcpy(name, from, strlen(from) + 1);
    return PX_HELLO_NAMED;
}

/* METHOD target HTTP/1.x */
static enum px_hello read_request_line(const char *line, size_t len, char name[PX_NET_NAME_MAX])
{
    const char *blank = memchr(line, ' ', len), *end = line + len;
    const char *target = blank ? blank + 1 : end;
    const char *stop = memchr(target, ' ', (size_t)(end - target));
    if (!stop || memchr(stop + 1, ' ', (size_t)(end - stop - 1)) || end - stop < 6 || memcmp(stop + 1, "HTTP/", 5) != 0)
        return PX_HELLO_BAD;
    if (target < stop && (*target == '/' || *target == '*'))
        return PX_HELLO_NAMELESS;
    size_t n = (size_t)(stop - target);
    if (n > 7 && strncasecmp(target, "http://", 7) == 0) {
        const char *host = target + 7;
        size_t m = 0;
        while (host + m < stop && host[m] != '/' && host[m] != '?' && host[m] != '#')
            m++;
        return read_authority(host, m, name);
    }
    return len > 8 && memcmp(line, "CONNECT ", 8) == 0 ? read_authority(target, n, name) : PX_HELLO_BAD;
}

static enum px_hello read_header(const char *line, size_t len, enum px_hello sofar, char name[PX_NET_NAME_MAX])
{
    if (line[0] == ' ' || line[0] == '\t')      /* folded: two readers would not agree on what it says */
        return PX_HELLO_BAD;
    if (len < 5 || strncasecmp(line, "host", 4) != 0 || in_token((uint8_t)line[4]))
        return sofar;
    if (sofar == PX_HELLO_NAMED || line[4] != ':')
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
    enum px_hello first = look_method(data, size);
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
    if (data[0] && strchr(" \t\v\f\r\n", data[0]))       /* some servers skip blanks and empty lines before a request */
        return PX_HELLO_BAD;
    if (data[0] != RECORD_HANDSHAKE && data[0] >= RECORD_FIRST && data[0] <= RECORD_LAST)      /* and others a warning before a hello */
        return size < 2 ? PX_HELLO_MORE : data[1] == 3 ? PX_HELLO_BAD : PX_HELLO_OTHER;
    enum px_hello r = data[0] == RECORD_HANDSHAKE ? look_tls(data, size, ret_name) : look_http(data, size, ret_name);
    return r == PX_HELLO_MORE && size >= PX_HELLO_MAX ? PX_HELLO_BAD : r;
}
