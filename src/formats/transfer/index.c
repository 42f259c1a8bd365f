#include "transfer/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "net/rule.h"
#include "transfer/settings.h"

enum { HOST_MAX = 300, TLS_PORT = 443, PLAIN_PORT = 80 };

/* ---- one host ---- */

int px_index_add_host(struct px_index *x, const char *host, unsigned port)
{
    char url[HOST_MAX + 32];
    struct px_url_place place;
    const char *colon = *host == '[' ? strstr(host, "]:") : strchr(host, ':');
    bool has_port = colon && colon[*host == '[' ? 2 : 1];
    if ((has_port ? px_fmt(url, sizeof url, "https://%s/", host)
                  : px_fmt(url, sizeof url, "https://%s:%u/", host, port)) < 0 ||
        px_url_place(url, &place) < 0 || px_index_has(x, &place))
        return 0;
    if (x->count == PX_INDEX_MAX)
        return -E2BIG;
    x->rows[x->count].place = place;
    x->rows[x->count++].proxy = x->proxies;
    return 0;
}

/* "user:password@host:port/..." */
static int add_authority(struct px_index *x, const char *text, unsigned port)
{
    char host[HOST_MAX];
    size_t n = strcspn(text, " \t\r\n/?#\"'`,;<>|(){}\\");
    if (px_fmt(host, sizeof host, "%.*s", (int)n, text) < 0)
        return 0;
    const char *at = strrchr(host, '@');
    return px_index_add_host(x, at ? at + 1 : host, port);
}

int px_index_add_text(struct px_index *x, const char *text)
{
    int r = 0;
    for (const char *at = text; r == 0 && (at = strstr(at, "://")); at += 3) {
        bool tls = at - text >= 5 && strncasecmp(at - 5, "https", 5) == 0;
        if (tls || (at - text >= 4 && strncasecmp(at - 4, "http", 4) == 0))
            r = add_authority(x, at + 3, tls ? TLS_PORT : PLAIN_PORT);
    }
    return r;
}

/* ---- all of them ---- */

static int add_usual(struct px_index *x)
{
    static const char *const usual[] = {"pypi.org", "files.pythonhosted.org"};
    if (x->without || px_truthy(getenv("PIP_NO_INDEX")) || px_truthy(getenv("UV_NO_INDEX")))
        return 0;
    for (size_t i = 0; i < PX_COUNT_OF(usual); i++)
        if (px_index_add_host(x, usual[i], TLS_PORT) < 0)
            return -E2BIG;
    return 0;
}

static int add_words(struct px_index *x, const char *text)
{
    static const char between[] = " \t\r\n,;";
    int r = 0;
    while (text && r == 0 && *(text += strspn(text, between))) {
        char host[HOST_MAX];
        size_t n = strcspn(text, between);
        if (px_fmt(host, sizeof host, "%.*s", (int)n, text) >= 0)
            r = strstr(host, "://") ? px_index_add_text(x, host) : px_index_add_host(x, host, TLS_PORT);
        text += n;
    }
    return r;
}

int px_index_load(struct px_index **ret_index, struct px_err *e)
{
    px_auto_free struct px_index *x = calloc(1, sizeof *x);
    if (!x)
        return px_no_memory(e);
    x->whole = px_equal(getenv("PX_INDEX_NET"), "host");
    if (add_words(x, getenv("PX_INDEX_HOSTS")) < 0 || px_settings_hosts(x) < 0 || add_usual(x) < 0)
        return px_fail(e, PX_E_LIMIT, E2BIG, "the settings of uv and pip name more than %d hosts", PX_INDEX_MAX);
    *ret_index = px_take(&x);
    return 0;
}

/* ---- questions ---- */

bool px_index_has(const struct px_index *x, const struct px_url_place *place)
{
    for (size_t i = 0; i < x->count; i++) {
        const struct px_url_place *row = &x->rows[i].place;
        if (row->port == place->port && (px_equal(row->host, place->host) || (row->loopback && place->loopback)))
            return true;
    }
    return false;
}

int px_index_net(const struct px_index *x, struct px_net_own *ret_net)
{
    *ret_net = (struct px_net_own){.rules_count = 0};
    for (size_t i = 0; i < x->count; i++) {
        const struct px_url_place *row = &x->rows[i].place;
        struct px_net_rule *rule = &ret_net->rules[ret_net->rules_count];
        char text[HOST_MAX];
        if (row->loopback) {
            if (ret_net->ports_count == PX_NET_OWN_PORTS_MAX)
                return -E2BIG;
            ret_net->ports[ret_net->ports_count++] = (uint16_t)row->port;
        } else if (px_fmt(text, sizeof text, "%s:%u", row->host, row->port) >= 0 &&
                   px_net_rule_parse(text, false, rule) == 0) {
            rule->own = true;
            rule->proxy = x->rows[i].proxy;
            ret_net->rules_count++;
        }
    }
    return 0;
}
