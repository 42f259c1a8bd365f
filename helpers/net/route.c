/* Where a connection may go. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "helpers/net/hello.h"
#include "helpers/net/link.h"

enum { LOOKS_MAX = 64 };

/* ---- which host is meant ---- */

/* Whether the kernel would answer it by itself, from that very address. */
static bool answers_here(const struct px_address *a)
{
    struct sockaddr_storage to, from;
    socklen_t len = px_address_to_socket(a, 9, &to), from_len = sizeof from;
    struct px_address source;
    uint16_t port;
    px_auto_fd int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true;            /* not known, so it may be */
    if (connect(fd, (struct sockaddr *)&to, len) < 0)
        return false;
    return getsockname(fd, (struct sockaddr *)&from, &from_len) < 0 || px_address_from_socket(&from, &source, &port) < 0 ||
           px_address_equal(&source, a);
}

/* Whether it is an address of this machine, or carries one: what translates it would come back here. */
static bool is_own(const struct px_address *a)
{
    struct px_address plain = px_address_plain(a, NULL);
    return answers_here(a) || (px_address_is_v4(a) != px_address_is_v4(&plain) && answers_here(&plain));
}

static bool host_port_allowed(const struct relay *r, uint16_t port)
{
    bool allowed = r->host_loopback;
    for (size_t i = 0; i < r->host_ports_count; i++)
        allowed = allowed || r->host_ports[i] == port;
    return allowed;
}

static int to_host(struct relay *r, const struct px_address *to, uint16_t port, struct link *l)
{
    char where[PX_ADDRESS_TEXT + 16], number[16];
    px_address_print_port(to, port, where, sizeof where);
    if (!host_port_allowed(r, port)) {
        (void)px_fmt(number, sizeof number, "%u", port);
        relay_deny(r, PX_NET_OP_CONNECT, PX_NET_WHY_LOOPBACK, where, number);
        return -1;
    }
    l->to[0] = px_address_v4(0x7f000001);
    (void)px_address_parse("::1", &l->to[1]);
    l->to_count = 2;
    l->checked = !px_net_rules_deny_names(&r->rules, port);
    l->traffic = relay_traffic(r, where);
    return 0;
}

/* ---- what may be reached ---- */

static void note(struct relay *r, const struct link *l, enum px_net_verdict verdict, const struct px_address *a)
{
    static const enum px_net_why whys[] = {
        [PX_NET_NOT_LISTED] = PX_NET_WHY_LIST, [PX_NET_DENIED] = PX_NET_WHY_DENIED, [PX_NET_SPECIAL] = PX_NET_WHY_RANGE};
    char address[PX_ADDRESS_TEXT + 16], named[PX_NET_NAME_MAX + 16], both[PX_NET_TARGET_MAX];
    px_address_print_port(a, l->port, address, sizeof address);
    const char *target = address, *grant = address;
    if (l->name && px_fmt(named, sizeof named, "%s:%u", l->name->text, l->port) >= 0) {
        target = named;
        grant = verdict == PX_NET_SPECIAL ? address : named;
        if (verdict == PX_NET_SPECIAL && px_fmt(both, sizeof both, "%s (%s)", named, address) >= 0)
            target = both;
    }
    bool never = px_equal(px_address_special(a), "loopback") && verdict == PX_NET_SPECIAL;
    relay_deny(r, PX_NET_OP_CONNECT, whys[verdict], target, verdict == PX_NET_DENIED || never ? "" : grant);
}

/* The addresses among them that may be reached; the first that may not is noted if none may. */
static int filter(struct relay *r, struct link *l, const struct px_address *addresses, size_t count)
{
    enum px_net_verdict first = PX_NET_YES;
    for (size_t i = 0; i < count; i++) {
        const char *name = l->name ? l->name->text : NULL;
        enum px_net_verdict v = px_net_rules_connect(&r->rules, name, &addresses[i], l->port, is_own(&addresses[i]));
        if (v == PX_NET_YES)
            l->to[l->to_count++] = addresses[i];
        else if (first == PX_NET_YES)
            first = v;
    }
    if (l->to_count > 0)
        return 0;
    if (first != PX_NET_YES)
        note(r, l, first, &addresses[0]);
    return -1;
}

int route_find(struct relay *r, const struct px_address *to, uint16_t port, struct link *l)
{
    struct px_address host;
    bool pool = false;
    l->port = port;
    l->asked = *to;
    /* A port of loopback comes here only if the rules of the namespace send it: it is one of the host's that the
     * caller's settings name. */
    if ((px_address_parse(PX_NET_HOST_LOOPBACK, &host) == 0 && px_address_equal(to, &host)) ||
        px_equal(px_address_special(to), "loopback"))
        return to_host(r, to, port, l);
    l->name = names_by_address(r, to, &pool);
    if (l->name) {
        if (filter(r, l, l->name->addresses, l->name->count) < 0)
            return -1;
        if (l->name->traffic < 0)
            l->name->traffic = relay_traffic(r, l->name->text);
        l->traffic = l->name->traffic;
        l->checked = px_net_rules_proxy(&r->rules, l->name->text, port) || (!r->rules.listed && !px_net_rules_deny_names(&r->rules, port));
        return 0;
    }
    /* An address of the pool that no name has is special to every rule. */
    if (filter(r, l, to, 1) < 0)
        return -1;
    char where[PX_ADDRESS_TEXT];
    px_address_print(to, where);
    l->traffic = relay_traffic(r, where);
    l->checked = !px_net_rules_deny_names(&r->rules, port);
    return pool ? -1 : 0;
}

/* ---- the first bytes ---- */

static int refuse(struct relay *r, const struct link *l, enum px_net_why why, const char *said)
{
    char where[PX_NET_NAME_MAX + 16], target[PX_NET_TARGET_MAX];
    if (!l->name)
        px_address_print_port(&l->asked, l->port, where, sizeof where);
    else if (px_fmt(where, sizeof where, "%.100s:%u", l->name->text, l->port) < 0)
        return -1;
    if (px_fmt(target, sizeof target, *said ? "%s as %.150s" : "%s", where, said) >= 0)
        relay_deny(r, PX_NET_OP_CONNECT, why, target, why == PX_NET_WHY_NAME ? said : "");
    return -1;
}

/* With a list of names that are allowed, a connection that was made for one must say that one. A name that is denied may be said by
 * none; so what hides its name, or cannot be read, is refused wherever a name is denied. */
static int judge(struct relay *r, const struct link *l, enum px_hello hello, const char *said)
{
    bool bound = r->rules.listed && l->name;
    switch (hello) {
    case PX_HELLO_OTHER:
    case PX_HELLO_NAMELESS:
        return 1;
    case PX_HELLO_NAMED:
        if (px_net_rules_denied(&r->rules, said, l->port))
            return refuse(r, l, PX_NET_WHY_DENIED, said);
        return bound && strcmp(said, l->name->text) != 0 ? refuse(r, l, PX_NET_WHY_NAME, said) : 1;
    case PX_HELLO_ADDRESS:
        return bound ? refuse(r, l, PX_NET_WHY_HIDDEN, "") : 1;
    default:
        return refuse(r, l, PX_NET_WHY_HIDDEN, "");
    }
}

int route_check(struct relay *r, struct link *l)
{
    uint8_t data[PX_HELLO_MAX];
    char said[PX_NET_NAME_MAX] = "";
    if (l->checked)
        return 1;
    ssize_t n = recv(l->box.w.fd, data, sizeof data, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : 1;       /* broken: the next move sees it too */
    enum px_hello hello = n == 0 ? PX_HELLO_OTHER : px_hello_look(data, (size_t)n, said);
    if (hello == PX_HELLO_MORE && ++l->looks < LOOKS_MAX) {
        l->box.in = false;      /* until there is more */
        return 0;
    }
    if (judge(r, l, hello, said) < 0)
        return -1;
    l->checked = true;
    return 1;
}
