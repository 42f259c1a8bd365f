#include "transfer/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "helper/helper.h"
#include "transfer/fetch_wire.h"

/* px-fetch sends a message about every second while it works; its own limits are in its transfer.c. */
enum { SILENCE_MSEC = 150 * 1000 };

struct px_fetch {
    struct px_helper helper;
    struct px_fetch_order order;
    struct px_fetch_report report;
};

/* ---- starting ---- */

static int set(char *out, size_t size, const char *const *names, struct px_err *e)
{
    for (const char *const *name = names; *name; name++) {
        const char *value = getenv(*name);
        if (value && *value)
            return px_fmt(out, size, "%s", value) < 0 ? px_fail(e, PX_E_LIMIT, 0, "the variable %s is too long", *name)
                                                      : 0;
    }
    return 0;
}

static int fill_setup(struct px_fetch_setup *s, struct px_err *e)
{
    static const char *const file[] = {"SSL_CERT_FILE", NULL}, *const dir[] = {"SSL_CERT_DIR", NULL};
    static const char *const proxy[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL};
    static const char *const no_proxy[] = {"no_proxy", "NO_PROXY", NULL};
    return set(s->ca_file, sizeof s->ca_file, file, e) < 0 || set(s->ca_dir, sizeof s->ca_dir, dir, e) < 0 ||
                   set(s->proxy, sizeof s->proxy, proxy, e) < 0 || set(s->no_proxy, sizeof s->no_proxy, no_proxy, e) < 0
               ? -1 : 0;
}

int px_fetch_open(struct px_fetch **ret_fetch, struct px_err *e)
{
    struct px_fetch_setup setup = {0};
    static const char *const no_words[] = {NULL};
    struct px_fetch *f = calloc(1, sizeof *f);
    uint8_t ready = 1;
    int none = -EBADF;
    if (!f)
        return px_no_memory(e);
    f->helper = (struct px_helper){.pidfd = -EBADF, .socket = -EBADF};
    if (fill_setup(&setup, e) < 0 || px_helper_start("px-fetch", no_words, NULL, 0, &f->helper, e) < 0) {
        free(f);
        return -1;
    }
    if (px_helper_send(&f->helper, &setup, sizeof setup, -1) < 0 ||
        px_helper_receive(&f->helper, &ready, sizeof ready, &none, SILENCE_MSEC) != sizeof ready) {
        px_fetch_close(f);
        (void)px_fail(e, PX_E_REGISTRY, 0, "px-fetch did not start");
        return px_why(e, "It could not confine itself, or a library of it is missing.");
    }
    *ret_fetch = f;
    return 0;
}

void px_fetch_close(struct px_fetch *fetch)
{
    if (fetch)
        (void)px_helper_done(&fetch->helper);
    free(fetch);
}

/* ---- one request ---- */

static int put_headers(struct px_fetch_order *order, const char *const *headers, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(sizeof order->headers - 1);
    for (; headers && *headers; headers++) {
        if (strpbrk(*headers, "\r\n"))
            return px_fail(e, PX_E_REGISTRY, 0, "a value for the registry has a line break in it");
        (void)px_buf_puts(&text, *headers);
        (void)px_buf_putc(&text, '\n');
    }
    if (text.err < 0)
        return px_fail(e, PX_E_LIMIT, text.err, "a request to the registry is too large");
    memcpy(order->headers, px_buf_text(&text), text.len + 1);
    return 0;
}

static int fill_order(struct px_fetch_order *order, const struct px_fetch_request *r, struct px_err *e)
{
    struct px_url_place place;
    memset(order, 0, sizeof *order);
    order->method = r->method;
    order->role = r->source >= 0 ? PX_FETCH_SOURCE : r->sink >= 0 ? PX_FETCH_SINK : PX_FETCH_NO_FILE;
    order->offset = r->source >= 0 ? r->offset : r->sink_offset;
    order->size = r->size;
    order->answer_max = r->answer_max;
    order->outward = r->outward;
    if (px_url_place(r->url, &place) < 0 || px_fmt(order->url, sizeof order->url, "%s", r->url) < 0) {
        (void)px_fail(e, PX_E_REGISTRY, 0, "px does not go to '%.200s'", r->url);
        return px_why(e, "Only https is used, and http for this machine itself.");
    }
    if (r->outward && place.loopback) {
        (void)px_fail(e, PX_E_REGISTRY, 0, "px does not go to '%.200s'", r->url);
        return px_why(e, "That is this machine itself, and no setting of yours names it.");
    }
    return put_headers(order, r->headers, e);
}

/* The answer is not trusted: the helper parses what servers send. */
static int take_report(struct px_fetch *f, const struct px_fetch_request *r, struct px_fetch_answer *ret,
                       struct px_err *e)
{
    struct px_fetch_answer *a = &f->report.answer;
    char *texts[] = {a->words, a->location, a->challenge, a->range, a->digest, a->type, a->body};
    const size_t sizes[] = {sizeof a->words, sizeof a->location, sizeof a->challenge, sizeof a->range, sizeof a->digest,
                            sizeof a->type,  sizeof a->body};
    for (size_t i = 0; i < PX_COUNT_OF(texts); i++)
        texts[i][sizes[i] - 1] = '\0';
    if (f->report.kind == PX_FETCH_DONE) {
        *ret = *a;
        return 0;
    }
    px_auto_buf struct px_buf words = PX_BUF(1024);
    (void)px_buf_quote(&words, a->words, strlen(a->words));
    (void)px_fail(e, PX_E_REGISTRY, 0, "the request to '%.200s' failed", r->url);
    return px_why(e, "%.400s.", px_buf_text(&words));
}

int px_fetch(struct px_fetch *f, const struct px_fetch_request *r, struct px_fetch_answer *ret_answer, struct px_err *e)
{
    if (fill_order(&f->order, r, e) < 0)
        return -1;
    int s = px_helper_send(&f->helper, &f->order, sizeof f->order, r->source >= 0 ? r->source : r->sink);
    if (s < 0)
        return px_fail(e, PX_E_REGISTRY, s, "px-fetch is gone");
    while (true) {
        int none = -EBADF;
        long n = px_helper_receive(&f->helper, &f->report, sizeof f->report, &none, SILENCE_MSEC);
        (void)px_fd_close(none);
        if (n == (long)sizeof f->report && f->report.kind != PX_FETCH_PROGRESS)
            return take_report(f, r, ret_answer, e);
        if (n < (long)offsetof(struct px_fetch_report, answer) || f->report.kind != PX_FETCH_PROGRESS)
            return px_fail(e, PX_E_REGISTRY, n < 0 ? (int)n : 0,
                           "px-fetch ended in the middle of a request to '%.200s'", r->url);
        if (r->progress.tell)
            r->progress.tell(r->progress.user, r->what, f->report.done, f->report.total);
    }
}
