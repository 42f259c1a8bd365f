/* attacks/served.c - section G with servers outside, which `px sandbox verify` has (net/outside.h): every name that
 * ends in .test has an address, and every address answers, so that what is not refused is reached. */
#include "attack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { WAIT_SEC = 30, MESSAGE = 512, TYPE_A = 1, HEAD = 12, ANSWER = 4096 };
static const char resolver[] = "10.0.2.3", host[] = "203.0.113.10", permitted[] = "allowed.test";

/* ---- names ---- */

static size_t put_name(uint8_t *out, const char *name)
{
    size_t at = 0;
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, ".");
        out[at++] = (uint8_t)n;
        memcpy(out + at, p, n);
        at += n;
        p += n + (p[n] == '.');
    }
    out[at++] = 0;
    return at;
}

static int to_server(int type, uint32_t address, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = address};
    struct timeval wait = {.tv_sec = WAIT_SEC};
    int s = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (s >= 0 && setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 &&
        connect(s, (struct sockaddr *)&to, sizeof to) == 0)
        return s;
    int why = errno;
    if (s >= 0)
        close(s);
    errno = why;
    return -1;
}

/* The address that a server gives a name, in the order of the network; 0: none. */
static uint32_t resolve(const char *server, const char *name)
{
    uint8_t query[MESSAGE] = {0x70, 0x78, 1, 0, 0, 1}, answer[MESSAGE];
    static const uint8_t kind[] = {0, TYPE_A, 0, 1};
    uint32_t address = 0;
    size_t length = HEAD + put_name(query + HEAD, name);
    memcpy(query + length, kind, sizeof kind);
    length += sizeof kind;
    int s = to_server(SOCK_DGRAM, inet_addr(server), 53);
    bool sent = s >= 0 && send(s, query, length, MSG_NOSIGNAL) == (ssize_t)length;
    ssize_t n = sent ? recv(s, answer, sizeof answer, 0) : -1;
    /* The question comes back, then one record: where its name is, kind, class, time, length, and the address. */
    if (n >= (ssize_t)length + 16 && (answer[3] & 15) == 0 && answer[7] == 1)
        memcpy(&address, answer + length + 12, 4);
    if (s >= 0)
        close(s);
    return address;
}

/* ---- connections ---- */

/* What comes back to `words`: how many bytes; 0 or less: nothing. */
static ssize_t ask(uint32_t address, int port, const void *words, size_t length, char *answer)
{
    ssize_t have = -1, n;
    int s = to_server(SOCK_STREAM, address, port);
    if (s >= 0 && send(s, words, length, MSG_NOSIGNAL) == (ssize_t)length)
        for (have = 0; have < ANSWER && (n = recv(s, answer + have, (size_t)(ANSWER - have), 0)) > 0;)
            have += n;
    if (s >= 0)
        close(s);
    return have;
}

static ssize_t ask_web(uint32_t address, int port, const char *name)
{
    char words[400], answer[ANSWER];
    int n = snprintf(words, sizeof words, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name);
    ssize_t have = ask(address, port, words, (size_t)n, answer);
    return have > 0 && memmem(answer, (size_t)have, "reached", 7) ? have : have > 0 ? -1 : have;
}

static int unreached(const char *text, int port)
{
    return ask_web(inet_addr(text), port, text) <= 0 ? DONE : failed("%s port %d answers", text, port);
}

static int reached(uint32_t address, int port, const char *name)
{
    if (address == 0)
        return failed("%s has no address", name);
    return ask_web(address, port, name) > 0 ? DONE
                                            : failed("%s port %d does not answer: %s", name, port, strerror(errno));
}

/* ---- G2, G4: addresses ---- */

int g2_gateway(void)
{
    return unreached("10.0.2.2", 80) || unreached("10.0.2.2", 8080);
}

int g4_special(void)
{
    static const char *const away[] = {"169.254.169.254", "10.9.9.9",     "192.168.1.1", "172.16.0.1",
                                       "100.64.0.1",      "198.18.77.77", "0.0.0.1"};
    for (size_t i = 0; i < COUNT(away); i++)
        if (unreached(away[i], 80))
            return FAILED;
    return DONE;
}

int g4_twin(void)
{
    return reached(inet_addr(host), 80, host) || reached(inet_addr(host), 8080, host);
}

/* The address of the permitted name itself was not permitted. */
int g4_not_listed(void)
{
    return unreached(host, 80) || unreached(host, 443);
}

/* ---- G5, G8: which names have an address ---- */

/* Not by the resolver of the box, nor by the one outside that it would ask. */
static int nameless(const char *name)
{
    bool none = resolve(resolver, name) == 0 && resolve("203.0.113.53", name) == 0;
    return none ? DONE : failed("%s has an address", name);
}

int g5_names(void)
{
    const char *name = argument("A_NAME");
    return nameless(*name ? name : "denied.test") || nameless("c2VjcmV0.denied.test");
}

int g5_twin(void)
{
    bool both = resolve(resolver, permitted) && resolve("203.0.113.53", permitted);
    return both ? DONE : failed("%s has no address", permitted);
}

int g8_spelling(void)
{
    static const char *const others[] = {"notallowed.test", "allowed.test.other.test", "sub.allowed.test",
                                         "allowed-test.test", "allowed.tes"};
    for (size_t i = 0; i < COUNT(others); i++)
        if (nameless(others[i]))
            return FAILED;
    return DONE;
}

int g8_twin(void)
{
    return resolve(resolver, "ALLOWED.Test") ? DONE : failed("the case of a name's letters counts");
}

/* ---- G9, G11: what may be asked of a permitted name ---- */

/* The other name that is sent to the server of the permitted one. */
static const char *other_name(void)
{
    const char *name = argument("A_NAME");
    return *name ? name : "other.test";
}

int g9_host(void)
{
    uint32_t address = resolve(resolver, permitted);
    if (address == 0)
        return failed("%s has no address", permitted);
    return ask_web(address, 80, other_name()) <= 0 ? DONE : failed("the server answers as %s", other_name());
}

int g9_twin(void)
{
    return reached(resolve(resolver, permitted), 80, permitted);
}

int g11_port(void)
{
    uint32_t address = resolve(resolver, permitted);
    if (address == 0)
        return failed("%s has no address", permitted);
    return ask_web(address, 8080, permitted) <= 0 ? DONE : failed("another port answers");
}

int g11_twin(void)
{
    return reached(resolve(resolver, permitted), 8080, permitted);
}

/* Names that are permitted, and lead to the host's loopback, to a private network and to metadata. */
int g11_rebinding(void)
{
    static const char *const names[] = {"loop.test", "private.test", "metadata.test"};
    for (size_t i = 0; i < COUNT(names); i++) {
        uint32_t address = resolve(resolver, names[i]);
        if (address && ask_web(address, 80, names[i]) > 0)
            return failed("%s answers", names[i]);
    }
    return reached(resolve(resolver, permitted), 80, permitted);        /* the list itself lets names through */
}

/* ---- G16, G17 ---- */

/* A hello of TLS 1.2, to which a server sends its certificate as it is. */
static size_t put_hello(uint8_t *out, const char *name)
{
    /* ECDHE with ECDSA and AES-GCM, no compression; then P-256, its points, ECDSA with SHA-256. */
    static const uint8_t suites[] = {0, 4, 0xc0, 0x2b, 0xc0, 0x2c, 1, 0};
    static const uint8_t more[] = {0, 10, 0, 4, 0, 2, 0, 23, 0, 11, 0, 2, 1, 0, 0, 13, 0, 4, 0, 2, 4, 3};
    size_t n = strlen(name), extensions = 9 + n + sizeof more, body = 2 + 32 + 1 + sizeof suites + 2 + extensions;
#define BIG(value) (uint8_t)((value) >> 8), (uint8_t)(value)
    uint8_t head[] = {22, 3, 1, BIG(body + 4), 1, 0, BIG(body), 3, 3};
    uint8_t server[] = {BIG(extensions), 0, 0, BIG(n + 5), BIG(n + 3), 0, BIG(n)};
#undef BIG
    uint8_t *p = out;
    p = (uint8_t *)mempcpy(p, head, sizeof head);
    memset(p, 0x70, 32);
    p += 32;
    *p++ = 0;
    p = (uint8_t *)mempcpy(p, suites, sizeof suites);
    p = (uint8_t *)mempcpy(p, server, sizeof server);
    p = (uint8_t *)mempcpy(p, name, n);
    p = (uint8_t *)mempcpy(p, more, sizeof more);
    return (size_t)(p - out);
}

/* Whether a server shows its certificate to a client that uses this name. It then waits for more. */
static bool greets(uint32_t address, const char *name)
{
    uint8_t hello[600], answer[ANSWER];
    size_t length = put_hello(hello, name), have = 0;
    int s = to_server(SOCK_STREAM, address, 443);
    ssize_t n = s >= 0 && send(s, hello, length, MSG_NOSIGNAL) == (ssize_t)length ? 1 : -1;
    bool shown = false;
    while (!shown && n > 0 && have < sizeof answer && (n = recv(s, answer + have, sizeof answer - have, 0)) > 0) {
        have += (size_t)n;
        shown = answer[0] == 22 && memmem(answer, have, permitted, sizeof permitted - 1);
    }
    if (s >= 0)
        close(s);
    return shown;
}

int g16_server_name(void)
{
    uint32_t address = resolve(resolver, permitted);
    if (address == 0)
        return failed("%s has no address", permitted);
    return greets(address, other_name()) ? failed("the server greets who names %s", other_name()) : DONE;
}

int g16_twin(void)
{
    uint32_t address = resolve(resolver, permitted);
    bool greeted = address && greets(address, permitted);
    return greeted ? DONE : failed("%s does not speak TLS: %s", permitted, strerror(errno));
}

/* What speaks over UDP, past what looks at TCP: to the address of a permitted name, and to another. */
int g17_udp(void)
{
    uint32_t address = resolve(resolver, permitted);
    const uint32_t to[] = {address, inet_addr(host)};
    if (address == 0)
        return failed("%s has no address", permitted);
    for (size_t i = 0; i < COUNT(to); i++) {
        int s = to_server(SOCK_DGRAM, to[i], 443);
        if (s >= 0 && send(s, "x", 1, MSG_NOSIGNAL) >= 0)
            return failed("a datagram was sent");
        if (s >= 0)
            close(s);
    }
    return DONE;
}
