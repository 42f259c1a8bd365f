#include "net/rule.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

/* ---- names ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

/* Some parsers take a name whose last label is digits, or begins with 0x, for an address. */
static bool looks_numeric(const char *name)
{
    const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
    return strspn(last, "0123456789") == strlen(last) || px_starts_with(last, "0x");
}

static bool labels_ok(const char *name)
{
    size_t n = strlen(name), start = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && name[i] != '.') {
            if (!is_letter(name[i]))
                return false;
            continue;
        }
        if (i == start || i - start > 63 || name[start] == '-' || name[i - 1] == '-')
            return false;
        start = i + 1;
    }
    return true;
}

int px_net_name_clean(const char *text, size_t len, char out[PX_NET_NAME_MAX])
{
    if (len > 0 && text[len - 1] == '.')
        len--;
    if (len == 0 || len > 253)
        return -EINVAL;
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
    out[len] = '\0';
    return strlen(out) == len && labels_ok(out) && !looks_numeric(out) ? 0 : -EINVAL;
}

/* ---- parsing ---- */

static int parse_port(const char *text, struct px_net_rule *rule)
{
    uint64_t port;
    rule->any_port = px_equal(text, "*");
    if (rule->any_port)
        return 0;
    if (px_parse_u64(text, 65535, &port) < 0 || port == 0)
        return -EINVAL;
    rule->port = (uint16_t)port;
    return 0;
}

/* An address, or one with /BITS, whose other bits must be 0. */
static int parse_network(char *text, struct px_net_rule *rule)
{
    uint64_t bits = 0;
    char *slash = strchr(text, '/');
    if (slash)
        *slash++ = '\0';
    if (px_address_parse(text, &rule->address) < 0)
        return -EINVAL;
    unsigned before = px_address_is_v4(&rule->address) ? 96 : 0;
    if (slash && px_parse_u64(slash, 128 - before, &bits) < 0)
        return -EINVAL;
    rule->bits = (uint8_t)(slash ? bits + before : 128);
    for (unsigned i = rule->bits; i < 128; i++)
        if (rule->address.bytes[i / 8] >> (7 - i % 8) & 1)
            return -EINVAL;
    return 0;
}

static int parse_host(char *text, struct px_net_rule *rule)
{
    if (px_equal(text, "*"))
        return px_fmt(rule->name, sizeof rule->name, "*") < 0 ? -EINVAL : 0;
    bool network = strchr(text, '/');           /* asked first: parse_network cuts it off */
    if (parse_network(text, rule) == 0)
        return 0;
    if (network)
        return -EINVAL;
    rule->suffix = px_starts_with(text, "*.");
    const char *name = text + (rule->suffix ? 2 : 0);
    return px_net_name_clean(name, strlen(name), rule->name);
}

int px_net_rule_parse(const char *text, bool every, struct px_net_rule *ret_rule)
{
    struct px_net_rule rule = {.any_port = every};
    char copy[PX_NET_NAME_MAX + 16];
    if (px_fmt(copy, sizeof copy, "%s", text) < 0)
        return -EINVAL;
    char *host = copy, *port = NULL, *end;
    if (copy[0] == '[') {
        host = copy + 1;
        if (!(end = strchr(host, ']')) || (end[1] != ':' && end[1] != '\0'))
            return -EINVAL;
        port = end[1] ? end + 2 : NULL;
        *end = '\0';
        if (!strchr(host, ':'))         /* only IPv6 is written so */
            return -EINVAL;
    } else if ((end = strchr(copy, ':')) && end == strrchr(copy, ':')) {
        port = end + 1;
        *end = '\0';
    }
    if ((port && parse_port(port, &rule) < 0) || parse_host(host, &rule) < 0)
        return -EINVAL;
    *ret_rule = rule;
    return 0;
}

/* ---- matching ---- */

bool px_net_rule_name(const struct px_net_rule *rule, const char *name)
{
    size_t n = strlen(name), m = strlen(rule->name);
    if (m == 0)
        return false;
    if (px_equal(rule->name, "*"))
        return true;
    if (!rule->suffix)
        return px_equal(rule->name, name);
    return n > m + 1 && name[n - m - 1] == '.' && memcmp(name + n - m, rule->name, m) == 0;
}

bool px_net_rule_address(const struct px_net_rule *rule, const struct px_address *a)
{
    return rule->name[0] == '\0' && px_address_within(a, &rule->address, rule->bits);
}

static bool denies_address(const struct px_net_rule *rule, const struct px_address *a)
{
    return rule->name[0] == '\0' && px_address_reaches(a, &rule->address, rule->bits);
}

/* 0.0.0.0/0 and ::/0 name no special address: they mean every address of the open network. */
static bool names_range(const struct px_net_rule *rule)
{
    return rule->bits > (px_address_is_v4(&rule->address) ? 96 : 0);
}

bool px_net_rule_port(const struct px_net_rule *rule, uint16_t port)
{
    return rule->any_port || (rule->port ? rule->port == port : port == 80 || port == 443);
}

static bool any_name(const struct px_net_rule *rules, size_t count, const char *name, bool whole)
{
    for (size_t i = 0; i < count; i++)
        if (px_net_rule_name(&rules[i], name) && (!whole || rules[i].any_port))
            return true;
    return false;
}

enum px_net_verdict px_net_rules_resolve(const struct px_net_rules *rules, const char *name)
{
    if (any_name(rules->deny, rules->deny_count, name, true))
        return PX_NET_DENIED;
    return !rules->listed || any_name(rules->allow, rules->allow_count, name, false) ? PX_NET_YES : PX_NET_NOT_LISTED;
}

/* "*" alone also matches addresses, but never special ones. */
static bool matches(const struct px_net_rule *rule, const char *name, uint16_t port, bool address)
{
    bool star = px_equal(rule->name, "*");
    return px_net_rule_port(rule, port) && (star || (name && px_net_rule_name(rule, name)) || address);
}

/* "*" names no name: it denies the port, but not what is allowed otherwise (a port of the host). */
static bool denies_name(const struct px_net_rule *rule, uint16_t port)
{
    return rule->name[0] && !px_equal(rule->name, "*") && px_net_rule_port(rule, port);
}

bool px_net_rules_deny_names(const struct px_net_rules *rules, uint16_t port)
{
    for (size_t i = 0; i < rules->deny_count; i++)
        if (denies_name(&rules->deny[i], port))
            return true;
    return false;
}

bool px_net_rules_denied(const struct px_net_rules *rules, const char *name, uint16_t port)
{
    for (size_t i = 0; i < rules->deny_count; i++)
        if (denies_name(&rules->deny[i], port) && px_net_rule_name(&rules->deny[i], name))
            return true;
    return false;
}

/* An address that always means the local machine is never allowed: outside of the box it would be the host. */
static bool unreachable(const struct px_address *a)
{
    const char *word = px_address_special(a);
    return px_equal(word, "loopback") || px_equal(word, "unspecified") || px_equal(word, "multicast");
}

static const struct px_net_rule *find_own(const struct px_net_rules *rules, const char *name, uint16_t port)
{
    for (size_t i = 0; i < rules->allow_count; i++)
        if (rules->allow[i].own && px_net_rule_name(&rules->allow[i], name) && px_net_rule_port(&rules->allow[i], port))
            return &rules->allow[i];
    return NULL;
}

bool px_net_rules_own(const struct px_net_rules *rules, const char *name, uint16_t port)
{
    return find_own(rules, name, port) != NULL;
}

bool px_net_rules_proxy(const struct px_net_rules *rules, const char *name, uint16_t port)
{
    const struct px_net_rule *rule = find_own(rules, name, port);
    return rule && rule->proxy;
}

/* What a host of the caller's own settings may resolve to: the open network, and private networks. */
static bool is_network(const struct px_address *a)
{
    const char *word = px_address_special(a);
    return !word || px_equal(word, "private") || px_equal(word, "shared");
}

enum px_net_verdict px_net_rules_connect(const struct px_net_rules *rules, const char *name, const struct px_address *a, uint16_t port,
                                         bool own)
{
    bool listed = !rules->listed, named = false;
    for (size_t i = 0; i < rules->deny_count; i++)
        if (matches(&rules->deny[i], name, port, denies_address(&rules->deny[i], a)))
            return PX_NET_DENIED;
    for (size_t i = 0; i < rules->allow_count; i++) {
        const struct px_net_rule *rule = &rules->allow[i];
        bool address = px_net_rule_address(rule, a);
        named = named || (address && px_net_rule_port(rule, port) && names_range(rule));
        listed = listed || matches(rule, name, port, address);
    }
    if (!listed)
        return PX_NET_NOT_LISTED;
    if (unreachable(a))
        return PX_NET_SPECIAL;
    if (name && is_network(a) && px_net_rules_own(rules, name, port))
        return PX_NET_YES;
    return !named && (own || px_address_special(a)) ? PX_NET_SPECIAL : PX_NET_YES;
}
