/* net/rule.h - the rules of --allow-net and --deny-net, and the decisions they lead to.
 *
 * Why:     one parser and one decision function serve the command line, the resolver and the relay, so that they
 *          cannot differ.
 * Owns:    nothing.
 * Mustn't: compare text that px_net_name_clean has not made: lower case, letters, digits and '-' in labels, no dot
 *          at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"

enum { PX_NET_NAME_MAX = 256, PX_NET_RULES_MAX = 256 };

struct px_net_rule {
    char name[PX_NET_NAME_MAX]; /* "" for addresses; "*" is every name and every address of the open network */
    bool suffix;                /* matches one label or more before name */
    struct px_address address;
    uint8_t bits;               /* of 128 */
    bool any_port;
    uint16_t port;              /* 0: 80 and 443 */
    bool own;                   /* a host from the caller's own settings: see struct px_net_own */
    bool proxy;                 /* ... as a proxy: what is sent to it names other hosts, and is not checked */
};

/* Hosts that the caller's own settings name, such as a package index or a proxy. One may have a private address.
 * Ports of the host's loopback are at 127.0.0.1 and ::1 of the box as well. No other host can be reached. */
enum { PX_NET_OWN_RULES_MAX = 64, PX_NET_OWN_PORTS_MAX = 16 };
struct px_net_own {
    struct px_net_rule rules[PX_NET_OWN_RULES_MAX];
    uint16_t ports[PX_NET_OWN_PORTS_MAX];
    size_t rules_count, ports_count;
};

/* HOST, *.SUFFIX, *, IP or CIDR, each with an optional :PORT or :*; IPv6 is then in brackets. 0 or -EINVAL. Without
 * a port it means 80 and 443, or (every) all ports. */
int px_net_rule_parse(const char *text, bool every, struct px_net_rule *ret_rule);
/* A name of len bytes; -EINVAL if it is not a valid name, or some parser could take it for an address. */
int px_net_name_clean(const char *text, size_t len, char out[PX_NET_NAME_MAX]);
bool px_net_rule_name(const struct px_net_rule *rule, const char *name);
bool px_net_rule_address(const struct px_net_rule *rule, const struct px_address *a);
bool px_net_rule_port(const struct px_net_rule *rule, uint16_t port);

struct px_net_rules {
    struct px_net_rule *allow, *deny;
    size_t allow_count, deny_count;
    bool listed;                /* only what is allowed; else everything of the open network */
};

enum px_net_verdict { PX_NET_YES, PX_NET_NOT_LISTED, PX_NET_DENIED, PX_NET_SPECIAL };

/* Whether a name may be resolved: at least one port of it may be reached. */
enum px_net_verdict px_net_rules_resolve(const struct px_net_rules *rules, const char *name);
/* Whether a host and port come from the caller's own settings, or are the caller's proxy. */
bool px_net_rules_own(const struct px_net_rules *rules, const char *name, uint16_t port);
bool px_net_rules_proxy(const struct px_net_rules *rules, const char *name, uint16_t port);
/* Whether a rule denies some name at this port, so that the first bytes of a connection must be checked; and whether
 * that name is denied. */
bool px_net_rules_deny_names(const struct px_net_rules *rules, uint16_t port);
bool px_net_rules_denied(const struct px_net_rules *rules, const char *name, uint16_t port);
/* Whether a connection may be made to an address, for a name or (NULL) for the address itself. own: it is one of the
 * host's own. No rule allows the host's loopback. An allow rule matches the spelling it has; a deny rule matches
 * every spelling. */
enum px_net_verdict px_net_rules_connect(const struct px_net_rules *rules, const char *name, const struct px_address *a, uint16_t port,
                                         bool own);
