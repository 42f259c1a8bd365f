#include "relay/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "box/supervise.h"
#include "helper/helper.h"
#include "kernel/pidfd.h"
#include "net/wire.h"
#include "policy/policy.h"

enum { FILE_MAX = 64 << 10, BACKLOG = 128, ANSWER_MSEC = 30000 };

/* What a result borrows. */
struct told {
    struct px_net_record record;        /* a copy, which px-net cannot change */
    char grants[PX_NET_DENIALS_MAX][PX_NET_TARGET_MAX + 32];
    struct px_traffic traffic[PX_NET_TRAFFIC_MAX];
};

/* ---- orders ---- */

static int send_order(struct px_relay *n, const struct px_net_order *o, int fd, struct px_err *e)
{
    int r = px_helper_send(&n->helper, o, sizeof *o, fd);
    return r < 0 ? px_fail(e, PX_E_NETWORK, r, "px-net does not take its orders") : 0;
}

static int send_rules(struct px_relay *n, const struct px_text_list *list, bool deny, struct px_err *e)
{
    for (size_t i = 0; i < list->count; i++) {
        struct px_net_order o = {.kind = deny ? PX_ORDER_DENY : PX_ORDER_ALLOW};
        if (px_net_rule_parse(list->items[i], deny, &o.rule) < 0)
            return px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is no host", deny ? "deny-net" : "allow-net", list->items[i]);
        if (send_order(n, &o, -1, e) < 0)
            return -1;
    }
    return 0;
}

static int send_ports(struct px_relay *n, const struct px_policy *policy, struct px_err *e)
{
    struct px_net_order o = {.kind = PX_ORDER_HOST_PORT};
    if (policy->allow_host_loopback && send_order(n, &o, -1, e) < 0)
        return -1;
    for (size_t i = 0; i < policy->host_ports.count; i++) {
        uint64_t port = 0;
        if (px_parse_u64(policy->host_ports.items[i], 65535, &port) < 0)
            continue;
        o.port = (uint32_t)port;
        if (send_order(n, &o, -1, e) < 0)
            return -1;
    }
    return 0;
}

/* An empty list first: without a list every address of the open network is allowed. */
static int send_own(struct px_relay *n, const struct px_net_own *own, struct px_err *e)
{
    struct px_net_order o = {.kind = PX_ORDER_FORGET_ALLOW};
    if (!own)
        return 0;
    if (send_order(n, &o, -1, e) < 0)
        return -1;
    for (size_t i = 0; i < own->rules_count; i++) {
        o = (struct px_net_order){.kind = PX_ORDER_ALLOW, .rule = own->rules[i]};
        if (send_order(n, &o, -1, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < own->ports_count; i++) {
        o = (struct px_net_order){.kind = PX_ORDER_HOST_PORT, .port = own->ports[i]};
        if (send_order(n, &o, -1, e) < 0)
            return -1;
    }
    return 0;
}

static char *next_word(char **at)
{
    char *p = *at + strspn(*at, " \t\r");
    if (*p == '\0' || *p == '#')
        return NULL;
    *at = p + strcspn(p, " \t\r");
    if (**at)
        *(*at)++ = '\0';
    return p;
}

/* Calls `line` for each line of a file of the host; a missing file has no lines. */
static int each_line(const char *path, int (*line)(struct px_relay *n, char *text, struct px_err *e), struct px_relay *n, struct px_err *e)
{
    px_auto_free char *text = malloc(FILE_MAX);
    if (!text)
        return px_no_memory(e);
    ssize_t size = px_read_file(AT_FDCWD, path, text, FILE_MAX);
    int r = 0;
    for (char *p = text; size > 0 && r == 0 && *p;) {
        char *end = p + strcspn(p, "\n"), *next = *end ? end + 1 : end;
        *end = '\0';
        r = line(n, p, e);
        p = next;
    }
    return r;
}

static int server_line(struct px_relay *n, char *text, struct px_err *e)
{
    struct px_net_order o = {.kind = PX_ORDER_SERVER};
    char *word = next_word(&text), *address = word ? next_word(&text) : NULL;
    if (!px_equal(word, "nameserver") || !address || px_address_parse(address, &o.address) < 0)
        return 0;               /* an address with a zone (fe80::1%eth0) does not fit into an order */
    return send_order(n, &o, -1, e);
}

static int host_line(struct px_relay *n, char *text, struct px_err *e)
{
    struct px_net_order o = {.kind = PX_ORDER_HOST};
    char *word = next_word(&text);
    if (!word || px_address_parse(word, &o.address) < 0 || px_equal(px_address_special(&o.address), "loopback"))
        return 0;
    while ((word = next_word(&text)))
        if (px_net_name_clean(word, strlen(word), o.name) == 0 && send_order(n, &o, -1, e) < 0)
            return -1;
    return 0;
}

static int send_resolver(struct px_relay *n, const struct px_policy *policy, struct px_err *e)
{
    struct px_net_order o = {.kind = PX_ORDER_SERVER};
    for (size_t i = 0; i < policy->dns.count; i++)
        if (px_address_parse(policy->dns.items[i], &o.address) == 0 && send_order(n, &o, -1, e) < 0)
            return -1;
    if (policy->dns.count == 0 && each_line("/etc/resolv.conf", server_line, n, e) < 0)
        return -1;
    return each_line("/etc/hosts", host_line, n, e);
}

/* ---- ports ---- */

/* The port that the kernel chose, or the one that was asked for. */
static int tell_port(int fd, const struct px_publish *p, struct px_port *ret_port, struct px_err *e)
{
    struct sockaddr_storage at = {0};
    struct px_address address;
    socklen_t len = sizeof at;
    int err = 0;
    *ret_port = (struct px_port){.host = p->host, .box = p->box, .udp = p->udp, .chosen = p->host == 0};
    px_address_print(&p->address, ret_port->address);
    if (!ret_port->chosen)
        return 0;
    if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        err = errno;
    else if (px_address_from_socket(&at, &address, &ret_port->host) < 0)
        err = EPROTO;
    return err ? px_fail(e, PX_E_PORT, err, "--publish: the port of the host that was chosen cannot be seen") : 0;
}

/* Opens a socket that listens, or (UDP) is bound, and fills the order for it. */
int px_relay_listen(const char *text, struct px_net_order *o, struct px_port *ret_port, struct px_err *e)
{
    static const int on = 1;
    struct px_publish p;
    struct sockaddr_storage at;
    if (px_policy_parse_publish(text, &p) < 0)
        return px_policy_no_ports(text, e);
    socklen_t len = px_address_to_socket(&p.address, p.host, &at);
    px_auto_fd int fd = socket(at.ss_family, (p.udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && !p.udp)      /* with UDP it would let other programs bind the port as well */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 || (!p.udp && listen(fd, BACKLOG) < 0)) {
        int err = errno;
        char where[PX_ADDRESS_TEXT + 16];
        px_address_print_port(&p.address, p.host, where, sizeof where);
        px_fail(e, PX_E_PORT, err, "--publish %s: cannot listen on %s", text, where);
        return px_fix(e, err == EADDRINUSE ? "Choose another port of the host: -p %u:%u%s.\nOr end the program that listens there."
                                           : "Choose another port of the host: -p %u:%u%s.",
                      p.host < 1024 ? p.host + 18000u : p.host + 1u, p.box, p.udp ? "/udp" : "");
    }
    if (tell_port(fd, &p, ret_port, e) < 0)
        return -1;
    o->kind = p.udp ? PX_ORDER_PUBLISH_UDP : PX_ORDER_PUBLISH;
    o->port = p.box;
    return px_fd_take(&fd);
}

static void add_port(struct px_relay *n, const struct px_port *port)
{
    if (n->carrier.ports_count < PX_NET_PORTS_MAX)
        n->carrier.ports[n->carrier.ports_count++] = *port;
}

static int send_published(struct px_relay *n, const struct px_policy *policy, struct px_err *e)
{
    for (size_t i = 0; i < policy->publish.count; i++) {
        struct px_net_order o = {0};
        struct px_port port;
        px_auto_fd int fd = px_relay_listen(policy->publish.items[i], &o, &port, e);
        if (fd < 0 || send_order(n, &o, fd, e) < 0)
            return -1;
        add_port(n, &port);
    }
    return 0;
}

/* Must be the first order: a socket belongs to the network namespace in which it is made. */
static int send_outside(struct px_relay *n, const struct px_policy *policy, struct px_err *e)
{
    struct px_net_order o = {.kind = PX_ORDER_OUTSIDE};
    return policy->outside_net > 0 ? send_order(n, &o, policy->outside_net, e) : 0;
}

static int send_all(struct px_relay *n, const struct px_policy *policy, struct px_err *e)
{
    struct px_net_order go = {.kind = PX_ORDER_GO};
    bool out = policy->net == PX_NET_OUTBOUND;
    if (send_outside(n, policy, e) < 0 || send_published(n, policy, e) < 0)
        return -1;
    if (out && (send_own(n, policy->own_net, e) < 0 || send_rules(n, &policy->allow_net, false, e) < 0 ||
                send_rules(n, &policy->deny_net, true, e) < 0 || send_ports(n, policy, e) < 0 ||
                send_resolver(n, policy, e) < 0))
        return -1;
    return send_order(n, &go, -1, e);
}

/* ---- the result ---- */

static const struct {
    const char *rule, *grant;   /* the option that would allow it, before the record's text; NULL: none */
} whys[PX_NET_WHY_COUNT] = {
    [PX_NET_WHY_LIST] = {"allow-net", "--allow-net "},
    [PX_NET_WHY_DENIED] = {"deny-net", NULL},
    [PX_NET_WHY_RANGE] = {"not the open network", "--allow-net "},
    [PX_NET_WHY_LOOPBACK] = {"host loopback", "--host-port "},
    [PX_NET_WHY_NAME] = {"another server's name", "--allow-net "},
    [PX_NET_WHY_HIDDEN] = {"hidden server name", NULL},
    [PX_NET_WHY_PROTOCOL] = {"only TCP and name queries", "--net outbound:pasta"},
    [PX_NET_WHY_LIMIT] = {"limit of the relay", NULL},
};
static const char *const ops[PX_NET_OP_COUNT] = {"resolve", "connect", "send"};

/* Text from px-net must end within its array, and contain only printable ASCII. */
static bool is_text(const char *text, size_t size)
{
    size_t n = strnlen(text, size);
    for (size_t i = 0; i < n; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return n < size;
}

/* Rows are never removed or changed, only their counts grow. So the difference to a mark is what happened since. */
static void tell_denial(struct told *t, const struct px_net_record *since, size_t i, struct px_result *r)
{
    const struct px_net_denial *d = &t->record.denials[i];
    uint64_t count = d->count - since->denials[i].count;
    if (count == 0 || d->op >= PX_NET_OP_COUNT || d->why >= PX_NET_WHY_COUNT || !is_text(d->target, sizeof d->target) ||
        !is_text(d->grant, sizeof d->grant) || r->denials_count >= PX_DENIALS_MAX)
        return;
    const char *prefix = whys[d->why].grant;
    bool grants = prefix && (d->grant[0] || d->why == PX_NET_WHY_PROTOCOL) &&
                  px_fmt(t->grants[i], sizeof t->grants[i], "%s%s", prefix, d->grant) >= 0;
    r->denials[r->denials_count++] = (struct px_denial){
        .op = ops[d->op], .target = d->target, .rule = whys[d->why].rule, .grant = grants ? t->grants[i] : NULL, .count = count};
}

static void tell_denials(struct told *t, const struct px_net_record *since, struct px_result *r)
{
    uint64_t lost = t->record.denials_lost - since->denials_lost;
    for (size_t i = 0; i < PX_NET_DENIALS_MAX; i++)
        tell_denial(t, since, i, r);
    if (lost && r->denials_count < PX_DENIALS_MAX)
        r->denials[r->denials_count++] = (struct px_denial){.op = "connect", .rule = "others, too many to name", .count = lost};
}

static void tell_traffic(struct told *t, const struct px_net_record *since, struct px_result *r)
{
    size_t count = t->record.traffic_count < PX_NET_TRAFFIC_MAX ? t->record.traffic_count : PX_NET_TRAFFIC_MAX;
    r->traffic_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct px_net_traffic *now = &t->record.traffic[i], *then = &since->traffic[i];
        struct px_traffic row = {.name = now->name[0] ? now->name : NULL, .connections = now->connections - then->connections,
                                 .sent_bytes = now->sent - then->sent, .received_bytes = now->received - then->received};
        if (is_text(now->name, sizeof now->name) && (row.connections || row.sent_bytes || row.received_bytes))
            t->traffic[r->traffic_count++] = row;
    }
    r->traffic = t->traffic;
}

static bool read_record(const struct px_relay *n, struct px_net_record *out)
{
    return px_sys(SYS_pread64, n->carrier.record, out, sizeof *out, 0) == sizeof *out;
}

static void *copy_record(struct px_carrier *carrier)
{
    struct px_net_record *now = calloc(1, sizeof *now);
    if (now && !read_record((struct px_relay *)carrier, now))
        memset(now, 0, sizeof *now);
    return now;
}

static void *add_traffic(struct px_carrier *carrier, const void *since, struct px_result *r)
{
    px_auto_free struct px_net_record *nothing = since ? NULL : calloc(1, sizeof *nothing);
    const struct px_net_record *then = since ? since : nothing;
    struct told *t = calloc(1, sizeof *t);
    r->has_network = true;
    if (!t || !then || !read_record((struct px_relay *)carrier, &t->record))
        return t;
    tell_denials(t, then, r);
    tell_traffic(t, then, r);
    return t;
}

/* ---- while it runs ---- */

static int make_rule(const char *field, const char *value, bool deny, struct px_net_order *o, struct px_err *e)
{
    if (!value) {
        o->kind = deny ? PX_ORDER_FORGET_DENY : PX_ORDER_FORGET_ALLOW;
        return 0;
    }
    o->kind = deny ? PX_ORDER_DENY : PX_ORDER_ALLOW;
    return px_net_rule_parse(value, deny, &o->rule) < 0 ? px_fail(e, PX_E_VALUE, 0, "--%s: '%.300s' is no host", field, value) : 0;
}

static int change_rules(struct px_carrier *carrier, const char *field, const char *value, struct px_err *e)
{
    struct px_relay *n = (struct px_relay *)carrier;
    struct px_net_order o = {0};
    struct px_port port = {0};
    px_auto_fd int fd = -EBADF;
    int32_t answer = -EPROTO;
    bool deny = px_equal(field, "deny-net"), publish = px_equal(field, "publish");
    if (n->helper.socket < 0)
        return px_fail(e, PX_E_USAGE, 0, "the network of a box is changed by the process that has made it");
    if (!deny && !publish && !px_equal(field, "allow-net"))
        return px_fail(e, PX_E_USAGE, 0, "'%.40s' cannot be changed while a box runs", field);
    if (publish && !value)
        return px_fail(e, PX_E_USAGE, 0, "a published port stays until its box is gone");
    if (publish ? (fd = px_relay_listen(value, &o, &port, e)) < 0 : make_rule(field, value, deny, &o, e) < 0)
        return -1;
    if (send_order(n, &o, fd, e) < 0)
        return -1;
    long r = px_helper_receive(&n->helper, &answer, sizeof answer, NULL, ANSWER_MSEC);
    if (r != sizeof answer || answer < 0)
        return px_fail(e, answer == -E2BIG ? PX_E_LIMIT : PX_E_NETWORK, r < 0 ? (int)r : answer, "the network of the box cannot be changed");
    if (publish)
        add_port(n, &port);
    return 0;
}

/* ---- start and end ---- */

static void send_end(struct px_carrier *carrier)
{
    (void)shutdown(((struct px_relay *)carrier)->helper.socket, SHUT_RDWR);
}

static void kill_it(struct px_carrier *carrier)
{
    (void)px_pidfd_signal(carrier->pidfd, SIGKILL);
}

void px_relay_free(struct px_relay *n)
{
    if (!n)
        return;
    (void)px_helper_done(&n->helper);
    (void)px_fd_close(n->carrier.socket);
    (void)px_fd_close(n->carrier.record);
    free(n);
}

static void free_relay(struct px_carrier *carrier)
{
    px_relay_free((struct px_relay *)carrier);
}

static int make_record(void)
{
    px_auto_fd int fd = (int)px_sys(SYS_memfd_create, "px-net", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return fd;
    if (ftruncate(fd, sizeof(struct px_net_record)) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    return px_fd_take(&fd);
}

struct px_relay *px_relay_new(void)
{
    struct px_relay *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->carrier = (struct px_carrier){.socket = -EBADF, .pidfd = -EBADF, .record = -EBADF, .processes = 1, .end = send_end, .kill = kill_it, .change = change_rules,
                                     .mark = copy_record, .tell = add_traffic, .done = free_relay};
    n->helper = (struct px_helper){.pidfd = -EBADF, .socket = -EBADF};
    return n;
}

struct px_carrier *px_relay_guest(int *record)
{
    struct px_relay *n = px_relay_new();
    if (!n)
        return NULL;
    n->carrier.record = px_fd_take(record);
    return &n->carrier;
}

int px_relay_launch(struct px_relay *n, const char *name, const char *const *args, int fd, struct px_err *e)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return px_fail(e, PX_E_NETWORK, errno, "cannot make the socket of %s", name);
    n->carrier.socket = px_fd_above_stdio(ends[0]);
    px_auto_fd int theirs = ends[1];
    const int given[] = {theirs, fd};
    if (px_helper_start(name, args, given, fd < 0 ? 1 : 2, &n->helper, e) < 0)
        return -1;
    n->carrier.pidfd = n->helper.pidfd;
    n->carrier.pid = n->helper.pid;
    return 0;
}

static int start_relay(struct px_relay *n, const struct px_policy *policy, struct px_err *e)
{
    static const char *const no_arguments[] = {NULL};
    n->carrier.record = make_record();
    if (n->carrier.record < 0)
        return px_fail(e, PX_E_NETWORK, n->carrier.record, "the network has no memory for its record");
    return px_relay_launch(n, "px-net", no_arguments, n->carrier.record, e) < 0 ? -1 : send_all(n, policy, e);
}

int px_relay_start(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e)
{
    struct px_relay *n = px_relay_new();
    if (!n)
        return px_no_memory(e);
    if (start_relay(n, policy, e) < 0) {
        px_relay_free(n);
        return -1;
    }
    *ret_carrier = &n->carrier;
    return 0;
}
