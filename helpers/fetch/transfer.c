/* One request with libcurl: bounded in time, in what is kept of headers, and in the answer's bytes. */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "helpers/fetch/fetch.h"
#include "net/address.h"

enum {
    CONNECT_SEC = 30,
    STALL_SEC = 20,             /* slower than STALL_BYTES a second for that long is dead */
    STALL_BYTES = 256,
    SMALL_SEC = 120,            /* for an answer that is kept in memory, all in all */
    HEADERS_MAX = 128 << 10,
    IGNORED_MAX = 1 << 20,      /* of the body of an answer that is not a success */
};

struct transfer {
    const struct px_fetch_order *order;
    struct px_fetch_report *report;
    CURL *curl;
    int fd;
    bool tls;
    uint64_t sent;              /* of the source */
    uint64_t headers;           /* bytes of them */
    uint64_t ignored;
    bool too_long, sink_failed, source_failed, not_loopback, not_outward;
    bool proxied;               /* what is connected to is the proxy */
    struct timespec told;       /* when the last progress was sent */
};

/* ---- what comes back ---- */

static unsigned status_of(const struct transfer *t)
{
    long status = 0;
    (void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    return (unsigned)status;
}

static bool to_sink(struct transfer *t, const char *data, size_t n)
{
    uint64_t at = t->report->answer.got + (status_of(t) == 206 ? t->order->offset : 0);
    while (n > 0) {
        ssize_t w = pwrite(t->fd, data, n, (off_t)at);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) {
            t->sink_failed = true;
            return false;
        }
        data += w;
        n -= (size_t)w;
        at += (uint64_t)w;
    }
    return true;
}

/* The words of an answer that is not a success are for a person: as much as there is room for, and not too much of
 * the rest. */
static bool to_memory(struct transfer *t, const char *data, size_t n, bool success)
{
    struct px_fetch_answer *a = &t->report->answer;
    size_t used = strnlen(a->body, PX_FETCH_BODY_MAX), room = PX_FETCH_BODY_MAX - used;
    if (success && n > room) {
        t->too_long = true;
        return false;
    }
    memcpy(a->body + used, data, n < room ? n : room);
    a->body[used + (n < room ? n : room)] = '\0';
    t->ignored += n;
    return t->ignored <= IGNORED_MAX;
}

static size_t on_body(char *data, size_t one, size_t n, void *user)
{
    struct transfer *t = user;
    unsigned status = status_of(t);
    bool success = status == 200 || status == 206;
    (void)one;
    if (t->report->answer.got + n > t->order->answer_max && success) {
        t->too_long = true;
        return 0;
    }
    bool kept = success && t->order->role == PX_FETCH_SINK ? to_sink(t, data, n) : to_memory(t, data, n, success);
    t->report->answer.got += n;
    return kept ? n : 0;
}

static void keep_header(char *out, size_t size, const char *value, size_t len)
{
    size_t used = strlen(out);
    if (len > 0 && used + len + 3 <= size)
        (void)px_fmt(out + used, size - used, "%s%.*s", used ? ", " : "", (int)len, value);
}

static size_t on_header(char *data, size_t one, size_t n, void *user)
{
    struct transfer *t = user;
    struct px_fetch_answer *a = &t->report->answer;
    const struct {
        const char *name;
        char *out;
        size_t size;
    } kept[] = {{"location:", a->location, sizeof a->location},
                {"www-authenticate:", a->challenge, sizeof a->challenge},
                {"range:", a->range, sizeof a->range},
                {"docker-content-digest:", a->digest, sizeof a->digest},
                {"content-type:", a->type, sizeof a->type}};
    (void)one;
    t->headers += n;
    if (t->headers > HEADERS_MAX)
        return 0;
    if (n >= 5 && memcmp(data, "HTTP/", 5) == 0)        /* of another answer: 100, or a proxy's */
        for (size_t i = 0; i < PX_COUNT_OF(kept); i++)
            kept[i].out[0] = '\0';
    for (size_t i = 0; i < PX_COUNT_OF(kept); i++) {
        size_t len = strlen(kept[i].name), end = n;
        if (n <= len || strncasecmp(data, kept[i].name, len) != 0)
            continue;
        while (len < end && (data[len] == ' ' || data[len] == '\t'))
            len++;
        while (end > len && strchr(" \t\r\n", data[end - 1]))
            end--;
        if (!memchr(data + len, '\0', end - len))
            keep_header(kept[i].out, kept[i].size, data + len, end - len);
    }
    return n;
}

/* ---- what goes out ---- */

static size_t on_source(char *out, size_t one, size_t n, void *user)
{
    struct transfer *t = user;
    uint64_t left = t->order->size - t->sent;
    size_t want = left < one * n ? (size_t)left : one * n;
    ssize_t got = want ? pread(t->fd, out, want, (off_t)(t->order->offset + t->sent)) : 0;
    if (got < 0 || (got == 0 && want > 0)) {
        t->source_failed = true;
        return CURL_READFUNC_ABORT;
    }
    t->sent += (uint64_t)got;
    return (size_t)got;
}

static int on_rewind(void *user, curl_off_t offset, int origin)
{
    struct transfer *t = user;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->order->size)
        return CURL_SEEKFUNC_FAIL;
    t->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* ---- while it goes on ---- */

static int on_progress(void *user, curl_off_t in_total, curl_off_t in, curl_off_t out_total, curl_off_t out)
{
    struct transfer *t = user;
    bool up = t->order->role == PX_FETCH_SOURCE;
    struct {
        uint32_t kind;
        uint64_t done, total;
    } progress = {PX_FETCH_PROGRESS, (uint64_t)(up ? out : in), (uint64_t)(up ? out_total : in_total)};
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t msec = (now.tv_sec - t->told.tv_sec) * 1000 + (now.tv_nsec - t->told.tv_nsec) / 1000000;
    if (msec < 200)
        return 0;
    t->told = now;
    ssize_t n = send(FETCH_SOCKET, &progress, sizeof progress, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 && errno != EAGAIN && errno != EINTR ? 1 : 0;  /* the peer has closed */
}

/* Not what merely carries such an address: that goes out. */
static bool is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    if (address->sa_family == AF_INET)
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;                       /* address: as written */
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);     /* address: as written */
}

static bool is_outward(const struct sockaddr *address, size_t length)
{
    struct sockaddr_storage from = {0};
    struct px_address a;
    uint16_t port;
    if (length > sizeof from)
        return false;
    memcpy(&from, address, length);
    return px_address_from_socket(&from, &a, &port) == 0 && !px_address_special(&a);
}

/* Whatever a name resolves to: what is not encrypted does not leave this machine. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *t = user;
    if (purpose != CURLSOCKTYPE_IPCXN || (!t->tls && !is_loopback(&address->addr))) {
        t->not_loopback = true;
        return CURL_SOCKET_BAD;
    }
    if (t->order->outward && !t->proxied && !is_outward(&address->addr, address->addrlen)) {
        t->not_outward = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- the request ---- */

static struct curl_slist *headers_of(const struct px_fetch_order *order)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    for (const char *at = order->headers; list && *at;) {
        size_t n = strcspn(at, "\n");
        char line[PX_FETCH_TEXT_MAX];
        struct curl_slist *longer =
            px_fmt(line, sizeof line, "%.*s", (int)n, at) < 0 ? NULL : curl_slist_append(list, line);
        if (!longer)
            curl_slist_free_all(list);
        list = longer;
        at += n + (at[n] == '\n');
    }
    return list;
}

static void set_method(struct transfer *t)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH"};
    CURL *c = t->curl;
    if (t->order->role == PX_FETCH_SOURCE) {
        (void)curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(c, CURLOPT_READFUNCTION, on_source);
        (void)curl_easy_setopt(c, CURLOPT_READDATA, t);
        (void)curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, on_rewind);
        (void)curl_easy_setopt(c, CURLOPT_SEEKDATA, t);
        (void)curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->order->size);
    } else if (t->order->method == PX_FETCH_HEAD) {
        (void)curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    } else if (t->order->method != PX_FETCH_GET) {
        (void)curl_easy_setopt(c, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, "");
        (void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, 0L);
    }
    (void)curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, methods[t->order->method]);
}

static void set_tls(struct transfer *t, const struct px_fetch_setup *setup)
{
    CURL *c = t->curl;
    (void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
    (void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
    (void)curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (setup->ca_file[0] || setup->ca_dir[0]) {
        (void)curl_easy_setopt(c, CURLOPT_CAINFO, setup->ca_file[0] ? setup->ca_file : NULL);
        (void)curl_easy_setopt(c, CURLOPT_CAPATH, setup->ca_dir[0] ? setup->ca_dir : NULL);
    }
    (void)curl_easy_setopt(c, CURLOPT_PROXY, t->tls ? setup->proxy : "");
    /* What goes past the proxy is of this network, where an outward request does not go. */
    (void)curl_easy_setopt(c, CURLOPT_NOPROXY, t->order->outward ? "" : setup->no_proxy);
    t->proxied = t->tls && setup->proxy[0];
}

static void set_bounds(struct transfer *t)
{
    CURL *c = t->curl;
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_USERAGENT, "px/" PX_VERSION);
    (void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SEC);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)STALL_SEC);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES);
    (void)curl_easy_setopt(c, CURLOPT_TIMEOUT, t->order->role == PX_FETCH_NO_FILE ? (long)SMALL_SEC : 0L);
    (void)curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 256L << 10);
    (void)curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
    (void)curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    (void)curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, t);
    (void)curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
    (void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
}

/* Location may be relative to what was asked for. */
static void make_absolute(const struct px_fetch_order *order, char *location, size_t size)
{
    CURLU *url = location[0] ? curl_url() : NULL;
    char *whole = NULL;
    if (!url || curl_url_set(url, CURLUPART_URL, order->url, 0) != CURLUE_OK ||
        curl_url_set(url, CURLUPART_URL, location, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_URL, &whole, 0) != CURLUE_OK || px_fmt(location, size, "%s", whole) < 0)
        location[0] = '\0';
    curl_free(whole);
    curl_url_cleanup(url);
}

static void judge(struct transfer *t, CURLcode code, const char *words)
{
    struct px_fetch_answer *a = &t->report->answer;
    a->status = status_of(t);
    make_absolute(t->order, a->location, sizeof a->location);
    const char *ours = t->too_long        ? "the answer is longer than announced or allowed"
                       : t->sink_failed   ? "the answer could not be written: is the disk full?"
                       : t->source_failed ? "what was to be sent could not be read"
                       : t->not_outward
                           ? "the name leads to a private or local address, and no setting of yours names it"
                       : t->not_loopback ? "plain http is only for this machine itself, and the name leads elsewhere"
                       : t->headers > HEADERS_MAX ? "its headers have no end"
                                                  : NULL;
    (void)snprintf(a->words, sizeof a->words, "%s", ours ? ours : words[0] ? words : curl_easy_strerror(code));
    /* The words of an answer that is no success may go on for ever; the answer itself is there. */
    bool enough = code == CURLE_OK || (a->status >= 300 && t->ignored > IGNORED_MAX);
    bool cut = !ours && a->status != 0 && code != CURLE_OK && !enough;
    a->cut = cut;
    t->report->kind = enough || cut ? PX_FETCH_DONE : PX_FETCH_FAILED;
}

void fetch_transfer(CURL *curl, const struct px_fetch_setup *setup, const struct px_fetch_order *order, int fd,
                    struct px_fetch_report *report)
{
    char words[CURL_ERROR_SIZE] = "";
    struct transfer t = {
        .order = order, .report = report, .curl = curl, .fd = fd, .tls = strncmp(order->url, "https://", 8) == 0};
    struct curl_slist *headers = headers_of(order);
    curl_easy_reset(curl);
    if (!headers || order->method > PX_FETCH_PATCH ||
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, t.tls ? "https" : "http") != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_URL, order->url) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) != CURLE_OK) {
        report->kind = PX_FETCH_FAILED;
        (void)px_fmt(report->answer.words, sizeof report->answer.words, "the request cannot be made");
        curl_slist_free_all(headers);
        return;
    }
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words);
    set_bounds(&t);
    set_tls(&t, setup);
    set_method(&t);
    judge(&t, curl_easy_perform(curl), words);
    curl_slist_free_all(headers);
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
}
