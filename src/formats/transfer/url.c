/* Parses a URL. Only the form that px itself writes is accepted, so that px and libcurl cannot disagree about the
 * host. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "transfer/fetch.h"
#include "transfer/url.h"

enum { URL_BYTES = 4096 };

static bool plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f || strchr("\"<>\\^`{|}", *text))
            return false;
    return true;
}

/* 127.0.0.0/8 in four decimal numbers. */
static bool loopback_number(const char *host)
{
    unsigned parts = 0;
    while (true) {
        size_t n = strspn(host, "0123456789");
        uint64_t value;
        char digits[8];
        if (n == 0 || n > 3 || (n > 1 && *host == '0') || px_fmt(digits, sizeof digits, "%.*s", (int)n, host) < 0 ||
            px_parse_u64(digits, 255, &value) < 0 || (parts == 0 && value != 127))
            return false;
        parts++;
        host += n;
        if (*host != '.')
            return parts == 4 && !*host;
        host++;
    }
}

static bool is_loopback(const char *host)
{
    return px_equal(host, "localhost") || px_equal(host, "[::1]") || loopback_number(host);
}

static size_t host_length(const char *text)
{
    if (*text == '[') {
        size_t n = strspn(text + 1, "0123456789abcdefABCDEF:.");
        return text[n + 1] == ']' ? n + 2 : 0;
    }
    size_t n = 0;
    while (isascii((unsigned char)text[n]) && (isalnum((unsigned char)text[n]) || text[n] == '.' || text[n] == '-'))
        n++;
    return n;
}

int px_url_place(const char *url, struct px_url_place *ret_place)
{
    struct px_url_place p = {.tls = px_starts_with(url, "https://")};
    if (strlen(url) >= PX_FETCH_URL_MAX || !plain(url) || (!p.tls && !px_starts_with(url, "http://")))
        return -EINVAL;
    const char *host = url + (p.tls ? 8 : 7);
    size_t n = host_length(host);
    if (n == 0 || n >= sizeof p.host)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        p.host[i] = (char)tolower((unsigned char)host[i]);
    p.port = p.tls ? 443 : 80;
    const char *rest = host + n;
    if (*rest == ':') {
        char digits[8];
        uint64_t port;
        size_t d = strspn(rest + 1, "0123456789");
        if (px_fmt(digits, sizeof digits, "%.*s", (int)d, rest + 1) < 0 || px_parse_u64(digits, 65535, &port) < 0 ||
            port == 0)
            return -EINVAL;
        p.port = (unsigned)port;
        rest += d + 1;
    }
    if (*rest && *rest != '/' && *rest != '?')
        return -EINVAL;
    p.loopback = is_loopback(p.host);
    if (!p.tls && !p.loopback)
        return -EINVAL;
    *ret_place = p;
    return 0;
}

bool px_url_same_place(const struct px_url_place *a, const struct px_url_place *b)
{
    return a->tls == b->tls && a->port == b->port && px_equal(a->host, b->host);
}

/* ---- paths ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool is_utf8(const char *text, size_t length)
{
    for (size_t i = 0, n; i < length; i += n)
        if ((n = px_utf8_length(text + i, length - i)) == 0)
            return false;
    return true;
}

/* "a%20b" -> "a b"; other text stays. A lock is UTF-8, so the result must be UTF-8. */
int px_url_decode(const char *text, size_t length, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        int high = text[i] == '%' && i + 2 < length ? hex_digit(text[i + 1]) : -1,
            low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        if (n + 1 >= size || (low >= 0 && high == 0 && low == 0))
            return -EINVAL;
        out[n++] = low >= 0 ? (char)(high * 16 + low) : text[i];
        i += low >= 0 ? 2 : 0;
    }
    out[n] = '\0';
    return is_utf8(out, n) ? 0 : -EINVAL;
}

int px_url_path(const char *url, char *out, size_t size)
{
    char raw[URL_BYTES];
    bool address = px_starts_with(url, "file://");
    const char *at = address ? strchr(url + 7, '/') : url;      /* file://localhost/x names the same host */
    if (!at || (address ? px_url_decode(at, strcspn(at, "?#"), raw, sizeof raw) : px_fmt(raw, sizeof raw, "%s", url)) < 0)
        return -EINVAL;
    return px_path_clean(raw, out, size);
}
