/* Starts px-pasta (helpers/pasta, net/wire.h): pasta's command line, and the error if it does not start. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "host/tool.h"
#include "net/wire.h"
#include "policy/policy.h"
#include "relay/relay.h"
#include "start/resolve.h"

enum { ARGS_MAX = 64 + 2 * PX_NET_PORTS_MAX, WORDS_MSEC = 2000 };

struct arguments {
    const char *items[ARGS_MAX];
    size_t count;
    char ports[PX_NET_PORTS_MAX][PX_ADDRESS_TEXT + 32];
    struct px_port published[PX_NET_PORTS_MAX];
};

static void add(struct arguments *a, const char *option, const char *value)
{
    a->items[a->count++] = option;
    if (value)
        a->items[a->count++] = value;
}

/* pasta's -t: ADDRESS/HOST:BOX. pasta ignores a port that is in use, so px checks that before. */
static int add_ports(struct arguments *a, const struct px_policy *policy, struct px_err *e)
{
    for (size_t i = 0; i < policy->publish.count; i++) {
        struct px_net_order o;
        struct px_port p;
        px_auto_fd int fd = px_relay_listen(policy->publish.items[i], &o, &p, e);
        if (fd < 0)
            return -1;
        (void)px_fmt(a->ports[i], sizeof a->ports[i], "%s/%u:%u", p.address, p.host, p.box);
        a->published[i] = p;
        add(a, "-t", a->ports[i]);
    }
    if (policy->publish.count == 0)
        add(a, "-t", "none");
    return 0;
}

/* The host's loopback is not reachable from the box nor the box's from the host, except through the gateway's
 * address if that was asked for. The box has addresses of px, not copies of the host's. */
static int make_arguments(struct arguments *a, const char *path, const struct px_policy *policy, struct px_err *e)
{
    static const char *const always[][2] = {
        {"--foreground", NULL},       {"--netns-only", NULL},   {"--no-netns-quit", NULL},     {"--config-net", NULL}, {"--no-dhcp", NULL},
        {"--no-dhcpv6", NULL},        {"--no-ra", NULL},        {"-I", "px0"},                 {"-a", PX_NET_OWN},     {"-n", "255.255.255.0"},
        {"-g", PX_NET_HOST_LOOPBACK}, {"-a", PX_NET_OWN6},      {"-g", PX_NET_GATEWAY6},       {"-u", "none"},         {"-T", "none"},
        {"-U", "none"},
    };
    add(a, path, NULL);
    for (size_t i = 0; i < PX_COUNT_OF(always); i++)
        add(a, always[i][0], always[i][1]);
    if (!policy->allow_host_loopback)
        add(a, "--no-map-gw", NULL);
    /* the host's name server; with others pasta (2023) would not translate the address of answers */
    if (policy->dns.count == 0)
        add(a, "--dns-forward", PX_NET_RESOLVER);
    return add_ports(a, policy, e);
}

/* ---- the network driver ---- */

static int change(struct px_carrier *carrier, const char *field, const char *value, struct px_err *e)
{
    (void)carrier;
    (void)field;
    (void)value;
    px_fail(e, PX_E_USAGE, 0, "the network of a box with --net outbound:pasta cannot be changed while it runs");
    return px_fix(e, "Use --net outbound, whose rules can be changed.");
}

static void *mark(struct px_carrier *carrier)
{
    (void)carrier;
    return NULL;
}

/* pasta's traffic is not counted. */
static void *tell(struct px_carrier *carrier, const void *since, struct px_result *r)
{
    (void)carrier;
    (void)since;
    (void)r;
    return NULL;
}

static int failed(struct px_carrier *carrier, struct px_err *e)
{
    struct px_relay *n = (struct px_relay *)carrier;
    char words[PX_NET_WORDS_MAX];
    long size = px_helper_receive(&n->helper, words, sizeof words - 1, NULL, WORDS_MSEC);
    px_fail(e, PX_E_NETWORK, 0, "pasta could not make the network of the box");
    words[size > 0 ? size : 0] = '\0';
    for (char *p = words; *p; p++)
        *p = *p >= ' ' && *p <= '~' ? *p : ' ';
    px_why(e, "%.200s", words[0] ? words : "It did not say why.");
    return px_fix(e, "pasta needs /dev/net/tun and, for each kind of addresses, a default route of the host: px doctor.\n"
                     "Use --net outbound, which needs neither, if TCP and name queries will do.");
}

static int find_pasta(char *out, size_t size, struct px_err *e)
{
    if (px_tool_find("pasta", out, size))
        return 0;
    px_fail(e, PX_E_NETWORK, 0, "--net outbound:pasta needs the program pasta, and it is not installed");
    px_why(e, "pasta carries UDP and ICMP, too; it is no part of px.");
    return px_fix(e, "Install it, as root: apt install passt (or passt of another distribution).\n"
                     "Use --net outbound, if TCP and name queries will do.");
}

int px_pasta_start(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e)
{
    char path[4096];
    if (find_pasta(path, sizeof path, e) < 0)
        return -1;
    struct px_relay *n = px_relay_new();
    px_auto_free struct arguments *a = calloc(1, sizeof *a);
    if (!n || !a) {
        px_relay_free(n);
        return px_no_memory(e);
    }
    n->carrier.processes = 3;           /* px-pasta, pasta, and the process by which that enters the namespace */
    n->carrier.change = change;
    n->carrier.mark = mark;
    n->carrier.tell = tell;
    n->carrier.failed = failed;
    if (make_arguments(a, path, policy, e) < 0 || px_relay_launch(n, "px-pasta", a->items, -EBADF, e) < 0) {
        px_relay_free(n);
        return -1;
    }
    memcpy(n->carrier.ports, a->published, sizeof a->published);
    n->carrier.ports_count = policy->publish.count;
    *ret_carrier = &n->carrier;
    return 0;
}
