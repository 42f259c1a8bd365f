#include "helpers/net/dns.h"

#include <errno.h>
#include <string.h>

enum { HEAD = 12, CLASS_IN = 1, JUMPS_MAX = 16, RECORDS_MAX = 64 };
enum { FLAG_ANSWER = 0x8000, FLAG_RECURSE = 0x0100, FLAG_RECURSED = 0x0080, OPCODE = 0x7800, RCODE = 0x000f };

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

/* ---- names ---- */

/* One label or pointer at *at; adds the label to out. 1 if there is more, 0 at the end, -EBADMSG. */
struct walk {
    const uint8_t *message;
    size_t size, at;
    size_t end;                 /* behind the name where it was begun; 0: not known yet */
    size_t limit;               /* a pointer must lead to before it */
    int jumps;
    char text[PX_NET_NAME_MAX];
    size_t len;
};

static int jump(struct walk *w)
{
    if (w->at + 2 > w->size || ++w->jumps > JUMPS_MAX)
        return -EBADMSG;
    size_t to = get16(w->message + w->at) & 0x3fff;
    if (w->end == 0)
        w->end = w->at + 2;
    if (to >= w->limit || to < HEAD)    /* only backwards, so that it ends */
        return -EBADMSG;
    w->at = w->limit = to;
    return 1;
}

static int add_label(struct walk *w, size_t n)
{
    if (w->at + 1 + n > w->size || w->len + n + 2 > sizeof w->text)
        return -EBADMSG;
    if (w->len > 0)
        w->text[w->len++] = '.';
    for (size_t i = 0; i < n; i++) {
        char c = (char)w->message[w->at + 1 + i];
        w->text[w->len++] = c == '.' || c == '\0' ? '?' : c;   /* a dot in a label must not become two labels */
    }
    w->at += 1 + n;
    return 1;
}

static int step(struct walk *w)
{
    if (w->at >= w->size)
        return -EBADMSG;
    unsigned n = w->message[w->at];
    if (n >= 0xc0)
        return jump(w);
    if (n > 63)
        return -EBADMSG;
    if (n > 0)
        return add_label(w, n);
    if (w->end == 0)
        w->end = w->at + 1;
    return 0;
}

/* The name at `at`, cleaned if it can be ("" if not); the place behind it. */
static int read_name(const uint8_t *message, size_t size, size_t at, char out[PX_NET_NAME_MAX], size_t *ret_end)
{
    struct walk w = {.message = message, .size = size, .at = at, .limit = at};
    int r;
    for (int steps = 0; (r = step(&w)) > 0; steps++)
        if (steps > 256)
            return -EBADMSG;
    if (r < 0)
        return r;
    if (px_net_name_clean(w.text, w.len, out) < 0)
        out[0] = '\0';
    *ret_end = w.end;
    return 0;
}

/* ---- what the box asks ---- */

static bool has_pointer(const uint8_t *p, size_t size)
{
    for (size_t i = 0; i < size && p[i] != 0; i += 1u + p[i])
        if (p[i] > 63)
            return true;
    return false;
}

int px_dns_read_question(const uint8_t *message, size_t size, struct px_dns_question *ret_question)
{
    struct px_dns_question q = {0};
    size_t end = 0;
    if (size < HEAD + 5 || size > PX_DNS_REPLY_MAX)
        return -EBADMSG;
    unsigned flags = get16(message + 2);
    if (flags & (FLAG_ANSWER | OPCODE) || get16(message + 4) != 1)
        return -EBADMSG;
    if (has_pointer(message + HEAD, size - HEAD) || read_name(message, size, HEAD, q.name, &end) < 0 || end + 4 > size)
        return -EBADMSG;
    q.raw_len = end + 4 - HEAD;
    if (q.raw_len > sizeof q.raw)
        return -EBADMSG;
    memcpy(q.raw, message + HEAD, q.raw_len);
    q.id = get16(message);
    q.type = get16(message + end);
    q.internet = get16(message + end + 2) == CLASS_IN;
    q.recursion = flags & FLAG_RECURSE;
    q.clean = q.name[0] != '\0';
    *ret_question = q;
    return 0;
}

static size_t put_record(const struct px_address *a, uint16_t type, uint32_t ttl, uint8_t *p)
{
    size_t length = type == PX_DNS_A ? 4 : 16;
    put16(p, 0xc000 | HEAD);
    put16(p + 2, type);
    put16(p + 4, CLASS_IN);
    put16(p + 6, ttl >> 16);
    put16(p + 8, ttl & 0xffff);
    put16(p + 10, (unsigned)length);
    memcpy(p + 12, a->bytes + 16 - length, length);
    return 12 + length;
}

size_t px_dns_answer(const struct px_dns_question *q, int rcode, const struct px_address *address, uint32_t ttl,
                     uint8_t out[PX_DNS_MESSAGE_MAX])
{
    memset(out, 0, HEAD);
    put16(out, q->id);
    put16(out + 2, FLAG_ANSWER | FLAG_RECURSED | (q->recursion ? FLAG_RECURSE : 0u) | ((unsigned)rcode & RCODE));
    put16(out + 4, 1);
    put16(out + 6, address ? 1 : 0);
    memcpy(out + HEAD, q->raw, q->raw_len);
    return HEAD + q->raw_len + (address ? put_record(address, q->type, ttl, out + HEAD + q->raw_len) : 0);
}

/* ---- what we ask ---- */

size_t px_dns_query(uint16_t id, const char *name, uint16_t type, uint8_t out[PX_DNS_MESSAGE_MAX])
{
    static const uint8_t edns[11] = {0, 0, 41, PX_DNS_REPLY_MAX >> 8 & 0xff, 0, 0, 0, 0, 0, 0, 0};
    size_t at = HEAD;
    memset(out, 0, HEAD);
    put16(out, id);
    put16(out + 2, FLAG_RECURSE);
    put16(out + 4, 1);
    put16(out + 10, 1);
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, ".");
        out[at++] = (uint8_t)n;
        memcpy(out + at, p, n);
        at += n;
        p += n + (p[n] == '.');
    }
    out[at++] = 0;
    put16(out + at, type);
    put16(out + at + 2, CLASS_IN);
    memcpy(out + at + 4, edns, sizeof edns);
    return at + 4 + sizeof edns;
}

struct record {
    char owner[PX_NET_NAME_MAX];
    uint16_t type, class;
    uint32_t ttl;
    size_t data, length;
};

static int read_record(const uint8_t *message, size_t size, size_t *at, struct record *r)
{
    size_t end;
    if (read_name(message, size, *at, r->owner, &end) < 0 || end + 10 > size)
        return -EBADMSG;
    const uint8_t *p = message + end;
    r->type = get16(p);
    r->class = get16(p + 2);
    r->ttl = (uint32_t)get16(p + 4) << 16 | get16(p + 6);
    r->length = get16(p + 8);
    r->data = end + 10;
    *at = r->data + r->length;
    return *at > size ? -EBADMSG : 0;
}

static void take_address(const uint8_t *data, uint16_t type, uint32_t ttl, struct px_dns_reply *reply)
{
    if (reply->count == PX_DNS_ADDRESSES_MAX)
        return;
    struct px_address *a = &reply->addresses[reply->count++];
    if (type == PX_DNS_A)
        *a = px_address_v4((uint32_t)get16(data) << 16 | get16(data + 2));
    else
        memcpy(a->bytes, data, sizeof a->bytes);
    reply->ttl = ttl < reply->ttl ? ttl : reply->ttl;
}

static int read_answers(const uint8_t *message, size_t size, size_t at, const char *name, uint16_t type, struct px_dns_reply *reply)
{
    char current[PX_NET_NAME_MAX];
    size_t count = get16(message + 6), end;
    memcpy(current, name, strlen(name) + 1);
    for (size_t i = 0; i < count && i < RECORDS_MAX; i++) {
        struct record r;
        if (read_record(message, size, &at, &r) < 0)
            return -EBADMSG;
        if (r.class != CLASS_IN || strcmp(r.owner, current) != 0)
            continue;
        if (r.type == PX_DNS_CNAME) {
            if (read_name(message, size, r.data, current, &end) < 0 || current[0] == '\0')
                return -EBADMSG;
            reply->ttl = r.ttl < reply->ttl ? r.ttl : reply->ttl;
        } else if (r.type == type && r.length == (type == PX_DNS_A ? 4 : 16)) {
            take_address(message + r.data, type, r.ttl, reply);
        }
    }
    return 0;
}

int px_dns_read_reply(const uint8_t *message, size_t size, uint16_t id, const char *name, uint16_t type, struct px_dns_reply *ret_reply)
{
    struct px_dns_reply reply = {.ttl = UINT32_MAX};
    char asked[PX_NET_NAME_MAX];
    size_t end;
    if (size < HEAD || get16(message) != id || !(get16(message + 2) & FLAG_ANSWER) || get16(message + 4) != 1)
        return -EBADMSG;
    if (read_name(message, size, HEAD, asked, &end) < 0 || end + 4 > size || strcmp(asked, name) != 0 || get16(message + end) != type)
        return -EBADMSG;
    reply.rcode = get16(message + 2) & RCODE;
    if (reply.rcode == PX_DNS_OK && read_answers(message, size, end + 4, name, type, &reply) < 0)
        return -EBADMSG;
    *ret_reply = reply;
    return 0;
}
