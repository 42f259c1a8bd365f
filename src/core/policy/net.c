/* The network fields of a policy. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "net/rule.h"
#include "net/wire.h"
#include "policy/policy.h"

/* ---- lists of texts ---- */

static int add_text(struct px_text_list *list, size_t max, const struct px_field *field, const char *text, struct px_err *e)
{
    if (list->count >= max)
        return px_fail(e, PX_E_LIMIT, 0, "--%s was given more than %zu times", field->name, max);
    char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (items)
        list->items = items;
    char *copy = items ? strdup(text) : NULL;
    if (!copy)
        return px_no_memory(e);
    list->items[list->count++] = copy;
    return 0;
}

/* ---- the network itself ---- */

static struct px_policy *policy_of(void *net)
{
    return (void *)((char *)net - offsetof(struct px_policy, net));
}

static bool names_box(const char *text)
{
    return px_starts_with(text, "box:") || px_starts_with(text, "pid:");
}

static bool box_is_sound(const char *text)
{
    uint64_t pid = 0;
    const char *name = text + strlen("box:");
    return px_starts_with(text, "pid:") ? px_parse_u64(name, INT32_MAX, &pid) == 0 && pid > 0 : px_policy_name_ok(name);
}

static int parse_net(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    struct px_policy *policy = policy_of(at);
    char *box = NULL;
    if (!names_box(text)) {
        if (px_field_choice.parse(at, field, text, e) < 0)
            return -1;
    } else if (!box_is_sound(text)) {
        px_fail(e, PX_E_VALUE, 0, "--net: '%.80s' names no box", text);
        return px_fix(e, "Write box: and the name of a box that runs, as px box list shows it, or pid: and the number of its process 1.");
    } else if (!(box = strdup(text))) {
        return px_no_memory(e);
    } else {
        policy->net = PX_NET_BOX;
    }
    free(policy->net_box);
    policy->net_box = box;
    return 0;
}

static void print_net(const void *at, const struct px_field *field, struct px_json *json)
{
    const struct px_policy *policy = policy_of((void *)(uintptr_t)at);
    if (policy->net == PX_NET_BOX)
        px_json_text(json, field->name, policy->net_box);
    else
        px_field_choice.print(at, field, json);
}

static void done_net(void *at)
{
    struct px_policy *policy = policy_of(at);
    free(policy->net_box);
    policy->net_box = NULL;
}

const struct px_field_type px_policy_net_type = {"choice", parse_net, print_net, done_net};

/* ---- rules ---- */

static int parse_rule(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    struct px_net_rule rule;
    if (px_net_rule_parse(text, false, &rule) == 0)
        return add_text(at, PX_NET_RULES_MAX, field, text, e);
    px_fail(e, PX_E_VALUE, 0, "--%s: '%.300s' is no host", field->name, text);
    px_why(e, "A host is a name of letters, digits and '-', an address, or a network whose other bits are 0; a port may follow.");
    return px_fix(e, "Write example.org, *.example.org, example.org:8443, 192.0.2.7, 10.1.0.0/16:5432, [2001:db8::7]:443, or "
                     "a name with :* for every port.");
}

const struct px_field_type px_policy_rule_type = {"host", parse_rule, px_policy_print_texts, px_policy_done_texts};

/* ---- ports ---- */

static int parse_number(const char *text, bool zero, uint16_t *ret_port)
{
    uint64_t port;
    if (px_parse_u64(text, 65535, &port) < 0 || (port == 0 && !zero))
        return -EINVAL;
    *ret_port = (uint16_t)port;
    return 0;
}

/* HOST:BOX, IP:HOST:BOX or [IPv6]:HOST:BOX; then /udp, or /tcp */
int px_policy_parse_publish(const char *text, struct px_publish *ret_publish)
{
    struct px_publish p = {.address = px_address_v4(0x7f000001)};
    char copy[PX_ADDRESS_TEXT + 32];
    if (px_fmt(copy, sizeof copy, "%s", text) < 0)
        return -EINVAL;
    char *slash = strchr(copy, '/');
    p.udp = slash && px_equal(slash, "/udp");
    if (slash && !p.udp && !px_equal(slash, "/tcp"))
        return -EINVAL;
    if (slash)
        *slash = '\0';
    char *box = strrchr(copy, ':');
    if (!box)
        return -EINVAL;
    *box++ = '\0';
    char *host = strrchr(copy, ':');
    if (host) {
        *host++ = '\0';
        size_t n = strlen(copy);
        bool brackets = n > 2 && copy[0] == '[' && copy[n - 1] == ']';
        if (brackets)
            copy[n - 1] = '\0';
        if (px_address_parse(copy + brackets, &p.address) < 0 || brackets == px_address_is_v4(&p.address))
            return -EINVAL;
    }
    if (parse_number(host ? host : copy, true, &p.host) < 0 || parse_number(box, false, &p.box) < 0)
        return -EINVAL;
    *ret_publish = p;
    return 0;
}

int px_policy_no_ports(const char *text, struct px_err *e)
{
    px_fail(e, PX_E_VALUE, 0, "--publish: '%.100s' names no two ports", text);
    return px_fix(e, "Write HOST:BOX, such as 18080:80, or with an address of the host: 192.0.2.1:18080:80, [::1]:18080:80. "
                     "A UDP port ends with /udp: 18053:53/udp. 0 for HOST is a free one.");
}

static int parse_publish(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    struct px_publish p;
    return px_policy_parse_publish(text, &p) < 0 ? px_policy_no_ports(text, e) : add_text(at, PX_NET_PORTS_MAX, field, text, e);
}

const struct px_field_type px_policy_publish_type = {"ports", parse_publish, px_policy_print_texts, px_policy_done_texts};

static int parse_port(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    uint16_t port;
    if (parse_number(text, false, &port) < 0)
        return px_fail(e, PX_E_VALUE, 0, "--%s: '%.40s' is no port", field->name, text);
    return add_text(at, PX_NET_PORTS_MAX, field, text, e);
}

const struct px_field_type px_policy_port_type = {"port", parse_port, px_policy_print_texts, px_policy_done_texts};

/* ---- details ---- */

static int parse_server(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    struct px_address a;
    if (px_address_parse(text, &a) < 0) {
        px_fail(e, PX_E_VALUE, 0, "--%s: '%.100s' is not an address", field->name, text);
        return px_fix(e, "Write the address of a name server, such as 192.0.2.53 or 2001:db8::53.");
    }
    return add_text(at, PX_NET_SERVERS_MAX, field, text, e);
}

const struct px_field_type px_policy_server_type = {"address", parse_server, px_policy_print_texts, px_policy_done_texts};

static int parse_proxy(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    bool scheme = px_starts_with(text, "http://") || px_starts_with(text, "https://") || px_starts_with(text, "socks5://") ||
                  px_starts_with(text, "socks5h://");
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        scheme = scheme && text[i] > ' ' && text[i] < 0x7f;
    if (scheme && n < 480)
        return px_field_text.parse(at, field, text, e);
    px_fail(e, PX_E_VALUE, 0, "--%s: '%.100s' is no proxy", field->name, text);
    return px_fix(e, "Write http://HOST:PORT, https://, socks5:// or socks5h://.");
}

static void print_proxy(const void *at, const struct px_field *field, struct px_json *json)
{
    px_field_text.print(at, field, json);
}

static void done_proxy(void *at)
{
    px_field_text.done(at);
}

const struct px_field_type px_policy_proxy_type = {"url", parse_proxy, print_proxy, done_proxy};

/* ---- together ---- */

/* An allow-list implies a network that it restricts; a published port implies one in which the box can listen. */
void px_policy_imply_network(struct px_policy *policy, const char *field)
{
    if (px_equal(field, "net"))
        policy->net_said = true;
    if (px_equal(field, "allow-net") && !policy->net_said)
        policy->net = PX_NET_OUTBOUND;
    if (px_equal(field, "publish") && !policy->net_said && policy->net == PX_NET_NONE)
        policy->net = PX_NET_LOOPBACK;
}

bool px_policy_carried(const struct px_policy *policy)
{
    return policy->net == PX_NET_OUTBOUND || policy->net == PX_NET_PASTA || policy->publish.count > 0;
}

static int need_outbound(const struct px_policy *policy, const char *option, struct px_err *e)
{
    px_fail(e, PX_E_USAGE, 0, "--%s needs --net outbound", option);
    if (policy->net != PX_NET_PASTA)
        return px_fix(e, "Add --net outbound, or leave --%s out.", option);
    px_why(e, "pasta carries every packet to every address of the open network: it knows no names, and no single ports of the host.");
    return px_fix(e, "Use --net outbound, which carries TCP and name queries.\nOr leave --%s out.", option);
}

/* The box would answer a visitor from another machine directly, at an address that the drop rules may cover. */
static int check_pasta(const struct px_policy *policy, struct px_err *e)
{
    for (size_t i = 0; i < policy->publish.count; i++) {
        struct px_publish p;
        if (px_policy_parse_publish(policy->publish.items[i], &p) == 0 && !p.udp && px_equal(px_address_special(&p.address), "loopback"))
            continue;
        px_fail(e, PX_E_USAGE, 0, "--publish %.64s: with --net outbound:pasta a TCP port is published, on the host's loopback only",
                policy->publish.items[i]);
        return px_fix(e, "Publish it on 127.0.0.1, or use --net outbound.");
    }
    for (size_t i = 0; i < policy->dns.count; i++) {
        struct px_address a;
        if (px_address_parse(policy->dns.items[i], &a) == 0 && !px_equal(px_address_special(&a), "loopback"))
            continue;
        px_fail(e, PX_E_USAGE, 0, "--dns %.64s: by --net outbound:pasta the box would ask itself", policy->dns.items[i]);
        return px_fix(e, "Leave --dns out: then the host's own name server is asked.");
    }
    return 0;
}

/* An OCI runtime cannot join the network of another box. */
static int check_joined(const struct px_policy *policy, struct px_err *e)
{
    if (policy->net != PX_NET_BOX || px_policy_native(policy))
        return 0;
    px_fail(e, PX_E_NOT_BUILT, 0, "--runtime %s with --net %s is not part of this build", policy->runtime, policy->net_box);
    return px_fix(e, "Leave --runtime out.");
}

static int belongs_to_owner(const struct px_policy *policy, const char *option, struct px_err *e)
{
    px_fail(e, PX_E_USAGE, 0, "--%s and --net %s exclude each other", option, policy->net_box);
    px_why(e, "Rules and ports of a network that boxes share are those of the box that has made it.");
    return px_fix(e, "Start that box with --%s, and leave it out here.", option);
}

int px_policy_check_network(const struct px_policy *policy, struct px_err *e)
{
    const struct {
        const char *name;
        bool given, pasta;      /* pasta can do it too */
    } options[] = {{"allow-net", policy->allow_net.count > 0, false}, {"deny-net", policy->deny_net.count > 0, false},
                   {"allow-host-loopback", policy->allow_host_loopback, true}, {"host-port", policy->host_ports.count > 0, false},
                   {"dns", policy->dns.count > 0, true}, {"publish", policy->publish.count > 0, true}};
    /* A caller that knows the box's pid may publish a port of it: only the library does. */
    size_t owners = PX_COUNT_OF(options) - (policy->net == PX_NET_BOX && px_starts_with(policy->net_box, "pid:"));
    for (size_t i = 0; i < owners && policy->net == PX_NET_BOX; i++)
        if (options[i].given)
            return belongs_to_owner(policy, options[i].name, e);
    for (size_t i = 0; i < PX_COUNT_OF(options) - 1 && policy->net != PX_NET_OUTBOUND; i++)
        if (options[i].given && !(options[i].pasta && policy->net == PX_NET_PASTA))
            return need_outbound(policy, options[i].name, e);
    if (policy->net == PX_NET_PASTA && check_pasta(policy, e) < 0)
        return -1;
    if (policy->publish.count > 0 && (policy->net == PX_NET_NONE || policy->net == PX_NET_HOST)) {
        px_fail(e, PX_E_USAGE, 0, "--publish needs --net outbound or --net loopback");
        return px_fix(e, policy->net == PX_NET_HOST ? "With --net host the box listens on the host itself."
                                                    : "Write --net loopback if the box needs no connections of its own.");
    }
    if (px_policy_carried(policy) && !px_policy_native(policy)) {
        px_fail(e, PX_E_NOT_BUILT, 0, "--runtime %s with %s is not part of this build", policy->runtime,
                policy->net == PX_NET_LOOPBACK ? "--publish" : "--net outbound");
        return px_fix(e, "Leave --runtime out, or use --net none or --net loopback.");
    }
    return check_joined(policy, e);
}
