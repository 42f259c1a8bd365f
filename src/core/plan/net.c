/* The steps that make a box's network: a namespace, its loopback, and the routes, rules and sockets for its network
 * driver (net/wire.h). */
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/text.h"
#include "net/batch.h"
#include "net/wire.h"
#include "plan/steps.h"

enum { MESSAGES_MAX = 64 << 10 };

/* Copies the messages of px_netns_netlink into the arena. */
static uint32_t add_messages(struct px_plan *plan, const struct px_buf *messages)
{
    if (messages->err < 0)
        plan->text.err = messages->err;
    return px_steps_bytes(plan, messages->data, messages->len);
}

static void add_netlink(struct px_plan *plan, int protocol, const struct px_buf *messages, unsigned flags)
{
    uint32_t at = add_messages(plan, messages);
    struct px_step *s = px_steps_add(plan, PX_OP_NETLINK);
    s->src = at;
    s->attr = (uint32_t)messages->len;
    s->num = (uint64_t)protocol;
    s->flags = (uint16_t)flags;
}

static void add_rules(struct px_plan *plan, const struct px_net_own *own)
{
    px_auto_buf struct px_buf out = PX_BUF(MESSAGES_MAX);
    px_batch_rules(&out, own ? own->ports : NULL, own ? own->ports_count : 0);
    add_netlink(plan, NETLINK_NETFILTER, &out, 0);
}

static void add_made(struct px_plan *plan, int protocol, void (*make)(struct px_buf *out), unsigned flags)
{
    px_auto_buf struct px_buf out = PX_BUF(MESSAGES_MAX);
    make(&out);
    add_netlink(plan, protocol, &out, flags);
}

static void add_socket(struct px_plan *plan, enum px_net_socket kind, int family, int type, uint16_t port)
{
    struct px_step *s = px_steps_add(plan, PX_OP_SOCKET);
    s->num = (uint64_t)kind;
    s->num2 = (uint64_t)family << 8 | (uint64_t)type;
    s->attr = port;
    s->flags = family == AF_INET6 ? PX_STEP_MAYBE : 0;  /* a kernel without IPv6 needs none */
}

static void add_log(struct px_plan *plan)
{
    px_auto_buf struct px_buf out = PX_BUF(MESSAGES_MAX);
    px_batch_log(&out);
    uint32_t at = add_messages(plan, &out);
    struct px_step *s = px_steps_add(plan, PX_OP_SOCKET);
    s->num = PX_NET_LOG;
    s->num2 = (uint64_t)AF_NETLINK << 8;
    s->src = at;
    s->attr = (uint32_t)out.len;
}

static void add_outbound(struct px_plan *plan, const struct px_policy *policy)
{
    add_made(plan, NETLINK_ROUTE, px_batch_routes4, 0);
    add_made(plan, NETLINK_ROUTE, px_batch_routes6, PX_STEP_MAYBE);
    add_rules(plan, policy->own_net);
    add_socket(plan, PX_NET_TCP4, AF_INET, SOCK_STREAM, PX_NET_PORT_TCP);
    add_socket(plan, PX_NET_TCP6, AF_INET6, SOCK_STREAM, PX_NET_PORT_TCP);
    add_socket(plan, PX_NET_UDP4, AF_INET, SOCK_DGRAM, PX_NET_PORT_DNS);
    add_socket(plan, PX_NET_UDP6, AF_INET6, SOCK_DGRAM, PX_NET_PORT_DNS);
    add_socket(plan, PX_NET_DNS4, AF_INET, SOCK_STREAM, PX_NET_PORT_DNS);
    add_socket(plan, PX_NET_DNS6, AF_INET6, SOCK_STREAM, PX_NET_PORT_DNS);
    add_log(plan);
}

static bool publishes_ports(const struct px_policy *policy, bool udp)
{
    struct px_publish p;
    for (size_t i = 0; i < policy->publish.count; i++)
        if (px_policy_parse_publish(policy->publish.items[i], &p) == 0 && p.udp == udp)
            return true;
    return false;
}

/* Installs the drop rules before the tun device exists. */
static void add_pasta(struct px_plan *plan, const struct px_policy *policy)
{
    struct px_address own[PX_NET_OWN_MAX], servers[PX_NET_SERVERS_MAX];
    size_t servers_count = 0;
    px_auto_buf struct px_buf four = PX_BUF(MESSAGES_MAX), six = PX_BUF(MESSAGES_MAX), rules = PX_BUF(MESSAGES_MAX);
    int count = px_address_own(own, PX_NET_OWN_MAX);
    for (size_t i = 0; i < policy->dns.count; i++)
        servers_count += px_address_parse(policy->dns.items[i], &servers[servers_count]) == 0;
    const struct px_fence fence = {.own = own, .own_count = count < 0 ? 0 : (size_t)count, .servers = servers,
                                   .servers_count = servers_count, .host_loopback = policy->allow_host_loopback};
    if (count < 0)
        plan->text.err = count;
    px_batch_fence_routes(&four, AF_INET, &fence);
    px_batch_fence_routes(&six, AF_INET6, &fence);
    px_batch_fence_rules(&rules, &fence);
    add_netlink(plan, NETLINK_ROUTE, &four, 0);
    add_netlink(plan, NETLINK_ROUTE, &six, PX_STEP_MAYBE);
    add_netlink(plan, NETLINK_NETFILTER, &rules, 0);
    px_steps_add(plan, PX_OP_DRIVER)->num = PX_NET_NAMESPACE;
    px_plan_has(plan, "net=pasta, fenced");
    px_plan_lacks(plan, "net: pasta carries all protocols, without rules by name");
    px_plan_lacks(plan, "denials: pasta tells neither refusals nor traffic");
}

/* For a container, ports can be published later. */
static void add_ports(struct px_plan *plan, const struct px_policy *policy)
{
    for (int i = 0; (plan->stays || publishes_ports(policy, false)) && i < PX_NET_INSIDE_MAX; i++)
        add_socket(plan, PX_NET_INSIDE, AF_INET, SOCK_STREAM, 0);
    for (int i = 0; (plan->stays || publishes_ports(policy, true)) && i < PX_NET_VISITORS_MAX; i++)
        add_socket(plan, PX_NET_INSIDE_UDP, AF_INET, SOCK_DGRAM, 0);
    if (policy->publish.count > 0)
        px_plan_has(plan, "ports=%zu published", policy->publish.count);
}

void px_plan_network(struct px_plan *plan, const struct px_policy *policy)
{
    if (plan->joins && policy->publish.count > 0) {
        plan->carried = true;
        add_ports(plan, policy);
    }
    if (!plan->own_net)
        return;
    /* with a network, programs may listen on low ports */
    px_steps_add(plan, PX_OP_NETNS)->num = policy->net != PX_NET_NONE;
    if (policy->net != PX_NET_NONE)
        px_steps_add(plan, PX_OP_LOOPBACK);
    if (!px_policy_carried(policy))
        return;
    plan->carried = true;
    if (policy->net == PX_NET_PASTA) {
        add_pasta(plan, policy);
        return;
    }
    if (policy->net == PX_NET_OUTBOUND)
        add_outbound(plan, policy);
    if (policy->net == PX_NET_OUTBOUND)
        px_plan_has(plan, "net=relay%s", policy->allow_net.count || policy->own_net ? ", allow-list" : "");
    add_ports(plan, policy);
}

/* /etc/resolv.conf. Whichever server is asked, px-net's resolver gets the query, and asks the host's servers. With
 * pasta, pasta forwards queries to its own address, and all other packets unchanged. */
void px_plan_resolv(const struct px_policy *policy, struct px_buf *out)
{
    bool out_of_it = policy->net == PX_NET_OUTBOUND || policy->net == PX_NET_PASTA || policy->net == PX_NET_BOX;
    if (!out_of_it)             /* the joined box may have a network */
        return;
    size_t before = out->len;
    for (size_t i = 0; i < policy->dns.count; i++) {
        struct px_address a;
        bool own = px_address_parse(policy->dns.items[i], &a) < 0 || px_equal(px_address_special(&a), "loopback");
        if (!own)               /* 127.0.0.1 would be the box's own loopback, not the host's */
            px_buf_printf(out, "nameserver %s\n", policy->dns.items[i]);
    }
    if (out->len == before)
        px_buf_puts(out, "nameserver " PX_NET_RESOLVER "\n");
}
