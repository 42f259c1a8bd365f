/* Where a URL leads: only what px itself would write is understood, so that px and the library that connects cannot
 * disagree. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "transfer/fetch.h"

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

int px_fetch_place(const char *url, struct px_fetch_place *ret_place)
{
    struct px_fetch_place p = {.tls = px_starts_with(url, "https://")};
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

bool px_fetch_same_place(const struct px_fetch_place *a, const struct px_fetch_place *b)
{
    return a->tls == b->tls && a->port == b->port && px_equal(a->host, b->host);
}
