#include "image/registry.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "store/document.h"

enum { REDIRECTS_MAX = 5, HEADERS_MAX = 8 };

/* ---- what the server said ---- */

/* {"errors":[{"code":C,"message":M}]}, or the beginning of any other body. */
static void add_words(const struct px_fetch_answer *a, struct px_buf *out)
{
    px_auto(px_document) json_t *root = NULL;
    struct px_err ignored = {0};
    const char *body = a->body;
    if (*body == '{' && px_document_read(body, strlen(body), "the answer", PX_E_REGISTRY, &root, &ignored) == 0) {
        const json_t *first = json_array_get(json_object_get(root, "errors"), 0);
        const char *code = px_document_text(first, "code"), *message = px_document_text(first, "message");
        if (code)
            (void)px_buf_quote(out, code, strnlen(code, 60));
        if (message) {
            (void)px_buf_puts(out, code ? ": " : "");
            (void)px_buf_quote(out, message, strnlen(message, 200));
        }
    }
    if (out->len == 0)
        (void)px_buf_quote(out, body, strnlen(body, 200));
}

int px_registry_refused(struct px_registry *s, const char *doing, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(2048);
    add_words(&s->answer, &words);
    (void)px_fail(e, PX_E_REGISTRY, 0, "the registry %s did not let px %s %s: HTTP status %u", s->ref->registry, doing,
                  s->ref->repository, s->answer.status);
    if (s->answer.status == 401 || s->answer.status == 403)
        (void)px_detail(e, "reason", "unauthorized");
    if (s->answer.cut)
        return px_why(e, "The connection was cut: %.300s.", s->answer.words);
    return words.len ? px_why(e, "It said \"%.400s\".", px_buf_text(&words)) : px_why(e, "It did not say why.");
}

/* ---- requests ---- */

static bool is_redirect(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static int not_there(struct px_registry *s, const char *url, const char *why, struct px_err *e)
{
    (void)px_fail(e, PX_E_REGISTRY, 0, "the registry %s sends px to '%.200s'", s->ref->registry, url);
    return px_why(e, "%s", why);
}

/* Refuses a redirection from https to http, and from another machine to this one. */
static int follow(struct px_registry *s, const struct px_url_place *from, char *url, size_t size, struct px_err *e)
{
    struct px_url_place to;
    const char *next = s->answer.location;
    if (!*next || px_url_place(next, &to) < 0 || (from->tls && !to.tls))
        return not_there(
            s, next, "That is not an address that px goes to: only https is used, and http for this machine itself.",
            e);
    if (to.loopback && !from->loopback)
        return not_there(s, next, "That is this machine itself, which the registry is not on.", e);
    return px_fmt(url, size, "%s", next) < 0 ? not_there(s, next, "That is too long.", e) : 0;
}

/* Completes the request; adds the credentials only if it goes to the registry itself. */
static int send_one(struct px_registry *s, const struct px_fetch_request *request, const char *url,
                    const struct px_url_place *place, struct px_err *e)
{
    const char *headers[HEADERS_MAX + 2] = {NULL};
    size_t n = 0;
    for (; request->headers && request->headers[n] && n < HEADERS_MAX; n++)
        headers[n] = request->headers[n];
    if (s->authorization[0] && px_url_same_place(place, &s->place))
        headers[n] = s->authorization;
    struct px_fetch_request r = *request;
    r.url = url;
    r.headers = headers;
    r.outward = s->ref->found;
    return px_fetch(s->fetch, &r, &s->answer, e);
}

int px_registry_request(struct px_registry *s, const struct px_fetch_request *request, struct px_err *e)
{
    char url[PX_FETCH_URL_MAX];
    struct px_url_place place;
    bool asked = false, may_follow = request->method == PX_FETCH_GET || request->method == PX_FETCH_HEAD;
    if (px_fmt(url, sizeof url, "%s%s", request->url[0] == '/' ? s->base : "", request->url) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "an address at the registry %s is too long", s->ref->registry);
    for (unsigned redirects = 0; redirects <= REDIRECTS_MAX;) {
        if (px_url_place(url, &place) < 0 || (s->place.tls && !place.tls) || (place.loopback && !s->place.loopback))
            return not_there(s, url, "That is not an address that px goes to.", e);
        if (send_one(s, request, url, &place, e) < 0)
            return -1;
        if (s->answer.status == 401 && !asked && px_url_same_place(&place, &s->place)) {
            asked = true;
            if (px_registry_authenticate(s, e) < 0)
                return -1;
            continue;
        }
        if (!is_redirect(s->answer.status) || !may_follow)
            return 0;
        if (follow(s, &place, url, sizeof url, e) < 0)
            return -1;
        redirects++;
    }
    return not_there(s, url, "That is one redirection too many.", e);
}

/* ---- the beginning ---- */

static int ping(struct px_registry *s, const char *scheme, struct px_err *e)
{
    const struct px_fetch_request request = {
        .method = PX_FETCH_GET, .source = -1, .sink = -1, .answer_max = PX_FETCH_BODY_MAX};
    char url[sizeof s->base + 8];
    if (px_fmt(s->base, sizeof s->base, "%s://%s", scheme, px_image_ref_address(s->ref)) < 0 ||
        px_url_place(s->base, &s->place) < 0 || px_fmt(url, sizeof url, "%s/v2/", s->base) < 0)
        return px_fail(e, PX_E_REGISTRY, 0, "'%s' is not the address of a registry", s->ref->registry);
    return send_one(s, &request, url, &s->place, e);
}

static int find_registry(struct px_registry *s, struct px_err *e)
{
    char url[sizeof s->base];
    struct px_url_place place;
    struct px_err ignored = {0};
    bool local = px_fmt(url, sizeof url, "https://%s", px_image_ref_address(s->ref)) >= 0 && px_url_place(url, &place) == 0 &&
                 place.loopback;
    /* A registry on this machine may use http or https. The request carries no credentials; a TLS server answers it
     * with 400 or nothing. */
    if (local && ping(s, "http", &ignored) == 0 && !s->answer.cut &&
        (s->answer.status == 200 || s->answer.status == 401))
        return 0;
    if (ping(s, "https", e) < 0)
        return -1;
    if (s->answer.cut || (s->answer.status != 200 && s->answer.status != 401))
        return px_registry_refused(s, "ask for", e);
    return 0;
}

static int begin(struct px_registry *s, struct px_err *e)
{
    if ((!s->ref->found &&
         px_credentials_find(s->ref->registry, s->user, sizeof s->user, s->password, sizeof s->password, e) < 0) ||
        px_fetch_open(&s->fetch, e) < 0 || find_registry(s, e) < 0)
        return -1;
    return s->answer.status == 401 ? px_registry_authenticate(s, e) : 0;
}

int px_registry_open(struct px_store *store, const struct px_image_ref *ref, bool push, struct px_progress_to progress,
                    struct px_registry **ret_talk, struct px_err *e)
{
    struct px_registry *s = calloc(1, sizeof *s);
    if (!s)
        return px_no_memory(e);
    s->store = store;
    s->ref = ref;
    s->push = push;
    s->progress = progress;
    if (begin(s, e) < 0) {
        px_registry_close(s);
        return -1;
    }
    *ret_talk = s;
    return 0;
}

void px_registry_close(struct px_registry *s)
{
    if (!s)
        return;
    px_fetch_close(s->fetch);
    explicit_bzero(s, sizeof *s);
    free(s);
}

void px_registry_freep(struct px_registry **s)
{
    px_registry_close(*s);
    *s = NULL;
}
