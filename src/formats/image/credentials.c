/* Credentials of registries: finding them, encoding them, and which hosts receive them. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "image/registry.h"
#include "store/document.h"

enum { FILE_MAX = 1 << 20 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* ---- base64 ---- */

int px_credentials_encode(const char *user, const char *password, char *out, size_t size)
{
    char plain[2400];
    if (px_fmt(plain, sizeof plain, "%s:%s", user, password) < 0)
        return -EINVAL;
    size_t len = strlen(plain), n = 0;
    if ((len + 2) / 3 * 4 >= size)
        return -EINVAL;
    for (size_t i = 0; i < len; i += 3) {
        unsigned left = (unsigned)(len - i), bits = (unsigned)(unsigned char)plain[i] << 16;
        bits |= left > 1 ? (unsigned)(unsigned char)plain[i + 1] << 8 : 0;
        bits |= left > 2 ? (unsigned char)plain[i + 2] : 0;
        out[n++] = digits[bits >> 18];
        out[n++] = digits[bits >> 12 & 63];
        out[n++] = left > 1 ? digits[bits >> 6 & 63] : '=';
        out[n++] = left > 2 ? digits[bits & 63] : '=';
    }
    out[n] = '\0';
    explicit_bzero(plain, sizeof plain);
    return 0;
}

static int decode(const char *text, char *out, size_t size)
{
    size_t n = 0;
    unsigned bits = 0, have = 0;
    size_t len = strcspn(text, "=");
    if (strlen(text) % 4 != 0 || strlen(text) - len > 2 || strspn(text + len, "=") != strlen(text) - len)
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        const char *digit = strchr(digits, text[i]);
        if (!digit)
            return -EINVAL;
        bits = bits << 6 | (unsigned)(digit - digits);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        if (n + 1 >= size || (bits >> have & 0xff) == 0)
            return -EINVAL;
        out[n++] = (char)(bits >> have & 0xff);
    }
    out[n] = '\0';
    return 0;
}

int px_credentials_decode(const char *text, char *user, size_t user_size, char *password, size_t password_size)
{
    char plain[2400];
    int r = decode(text, plain, sizeof plain);
    size_t n = r < 0 ? 0 : strcspn(plain, ":");
    if (r < 0 || n == 0 || plain[n] != ':' || px_fmt(user, user_size, "%.*s", (int)n, plain) < 0 ||
        px_fmt(password, password_size, "%s", plain + n + 1) < 0)
        r = -EINVAL;
    explicit_bzero(plain, sizeof plain);
    return r;
}

/* ---- where they are ---- */

/* Keys are registries; older files have "https://HOST/v1/", and for Docker Hub newer ones too. */
static bool is_for(const char *key, const char *registry)
{
    if (px_equal(registry, "docker.io") && px_equal(key, "https://index.docker.io/v1/"))
        return true;
    if (px_starts_with(key, "https://"))
        key += 8;
    size_t n = strcspn(key, "/");
    return n == strlen(registry) && memcmp(key, registry, n) == 0;
}

static const char *find_auth(const json_t *root, const char *registry)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(root, "auths"), key, value)
        if (is_for(key, registry) && px_document_text(value, "auth"))
            return px_document_text(value, "auth");
    return NULL;
}

/* 1 if the file has them, 0 if not. */
static int look_into(const char *path, const char *registry, char *user, size_t user_size, char *password,
                     size_t password_size, struct px_err *e)
{
    px_auto_free char *text = malloc(FILE_MAX);
    px_auto(px_document) json_t *root = NULL;
    ssize_t n = text ? px_read_file(AT_FDCWD, path, text, FILE_MAX) : -ENOMEM;
    if (n < 0)
        return 0;
    if (px_document_read(text, (size_t)n, path, PX_E_REGISTRY, &root, e) < 0)
        return -1;
    const char *auth = find_auth(root, registry);
    if (!auth)
        return 0;
    if (px_credentials_decode(auth, user, user_size, password, password_size) < 0)
        return px_fail(e, PX_E_REGISTRY, 0, "'%s' has something for %s that is not a name and a password", path,
                       registry);
    return 1;
}

int px_credentials_find(const char *registry, char *user, size_t user_size, char *password, size_t password_size,
                  struct px_err *e)
{
    static const struct {
        const char *variable, *path;
    } places[] = {{"REGISTRY_AUTH_FILE", ""},
                  {"XDG_RUNTIME_DIR", "/containers/auth.json"},
                  {"HOME", "/.config/containers/auth.json"},
                  {"DOCKER_CONFIG", "/config.json"},
                  {"HOME", "/.docker/config.json"}};
    const char *name = getenv("PX_REGISTRY_USERNAME"), *secret = getenv("PX_REGISTRY_PASSWORD");
    const char *only = getenv("PX_REGISTRY");
    char path[4096];
    int r = 0;
    *user = *password = '\0';
    if ((name && *name) != (secret && *secret)) {
        (void)px_fail(e, PX_E_REGISTRY, 0, "only one of PX_REGISTRY_USERNAME and PX_REGISTRY_PASSWORD is set");
        (void)px_detail(e, "reason", "registry_auth_missing");
        return px_fix(e, "Set both, or neither.");
    }
    if (name && *name && (!only || !*only || is_for(only, registry)))
        return px_fmt(user, user_size, "%s", name) < 0 || px_fmt(password, password_size, "%s", secret) < 0 ||
                       strchr(name, ':')
                   ? px_fail(e, PX_E_REGISTRY, 0,
                             "PX_REGISTRY_USERNAME or PX_REGISTRY_PASSWORD is too long, or has a ':'")
                   : 0;
    for (size_t i = 0; i < PX_COUNT_OF(places) && r == 0; i++) {
        const char *directory = getenv(places[i].variable);
        if (directory && *directory && px_fmt(path, sizeof path, "%s%s", directory, places[i].path) >= 0)
            r = look_into(path, registry, user, user_size, password, password_size, e);
    }
    return r < 0 ? -1 : 0;
}

/* ---- who sees them ---- */

static const char *domain_of(const char *host)
{
    const char *dot = strchr(host, '.');
    bool name = strspn(host, "0123456789.") != strlen(host) && *host != '[';
    return name && dot && strchr(dot + 1, '.') ? dot + 1 : host;
}

bool px_credentials_shared(const struct px_url_place *registry, const struct px_url_place *realm)
{
    if (registry->tls && !realm->tls)
        return false;
    if (px_equal(registry->host, realm->host))
        return true;
    const char *domain = domain_of(registry->host);
    size_t n = strlen(domain), m = strlen(realm->host);
    return px_equal(realm->host, domain) ||
           (m > n && strchr(domain, '.') && px_equal(realm->host + (m - n), domain) && realm->host[m - n - 1] == '.');
}

/* ---- what is made of them ---- */

static int wanted(struct px_registry *s, const char *why, struct px_err *e)
{
    (void)px_fail(e, PX_E_REGISTRY, 0, "the registry %s wants to know who asks for %s", s->ref->registry,
                  s->ref->repository);
    (void)px_detail(e, "reason", "unauthorized");
    return px_why(e, "%s", why);
}

static int use_basic(struct px_registry *s, struct px_err *e)
{
    char encoded[3400];
    if (!*s->user)
        return wanted(s,
                      s->ref->found ? "A registry that a manifest names gets no credentials."
                                    : "There are no credentials for it.",
                      e);
    if (s->authorization[0])
        return wanted(s, "The credentials for it were refused.", e);
    if (px_credentials_encode(s->user, s->password, encoded, sizeof encoded) < 0 ||
        px_fmt(s->authorization, sizeof s->authorization, "Authorization: Basic %s", encoded) < 0)
        return wanted(s, "The credentials for it are too long.", e);
    return 0;
}

static void add_query(struct px_buf *url, const char *name, const char *value)
{
    (void)px_buf_printf(url, "%s%s=", strchr(px_buf_text(url), '?') ? "&" : "?", name);
    for (; *value; value++) {
        if ((*value >= 'a' && *value <= 'z') || (*value >= 'A' && *value <= 'Z') || (*value >= '0' && *value <= '9') ||
            strchr("-._~", *value))
            (void)px_buf_putc(url, *value);
        else
            (void)px_buf_printf(url, "%%%02X", (unsigned)(unsigned char)*value);
    }
}

static int take_token(struct px_registry *s, struct px_err *e)
{
    px_auto(px_document) json_t *root = NULL;
    if (s->answer.status != 200 || s->answer.cut)
        return px_registry_refused(s, s->push ? "get a token to push to" : "get a token to pull from", e);
    if (px_document_read(s->answer.body, strlen(s->answer.body), "the token server's answer", PX_E_REGISTRY, &root, e) <
        0)
        return -1;
    const char *token = px_document_text(root, "token");
    if (!token || !*token)
        token = px_document_text(root, "access_token");
    if (!token || !*token)
        return wanted(s, "Its token server sent no token.", e);
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return wanted(s, "Its token server sent something that is not a token.", e);
    return px_fmt(s->authorization, sizeof s->authorization, "Authorization: Bearer %s", token) < 0
               ? wanted(s, "Its token server sent too long a token.", e) : 0;
}

static int use_token(struct px_registry *s, const struct px_challenge *c, struct px_err *e)
{
    px_auto_buf struct px_buf url = PX_BUF(PX_FETCH_URL_MAX - 1);
    char scope[320], encoded[3400], login[3500];
    const char *headers[2] = {NULL};
    struct px_url_place realm;
    if (px_url_place(c->realm, &realm) < 0 || (s->place.tls && !realm.tls) || (realm.loopback && !s->place.loopback))
        return wanted(
            s, "It names a token server that px does not go to: only https is used, and http for this machine itself.",
            e);
    if (*s->user && px_credentials_shared(&s->place, &realm) &&
        px_credentials_encode(s->user, s->password, encoded, sizeof encoded) == 0 &&
        px_fmt(login, sizeof login, "Authorization: Basic %s", encoded) >= 0)
        headers[0] = login;
    (void)px_fmt(scope, sizeof scope, "repository:%s:%s", s->ref->repository, s->push ? "pull,push" : "pull");
    (void)px_buf_puts(&url, c->realm);
    if (*c->service)
        add_query(&url, "service", c->service);
    add_query(&url, "scope", scope);
    if (url.err < 0)
        return wanted(s, "It names a token server with too long an address.", e);
    const struct px_fetch_request request = {.method = PX_FETCH_GET,
                                             .url = px_buf_text(&url),
                                             .headers = headers,
                                             .source = -1,
                                             .sink = -1,
                                             .answer_max = PX_FETCH_BODY_MAX,
                                             .outward = s->ref->found};
    return px_fetch(s->fetch, &request, &s->answer, e) < 0 ? -1 : take_token(s, e);
}

int px_registry_authenticate(struct px_registry *s, struct px_err *e)
{
    struct px_challenge c;
    if (px_challenge_parse(s->answer.challenge, &c) < 0 || c.kind == PX_CHALLENGE_NONE)
        return wanted(s, "It asks in a way that px does not know: neither Basic nor Bearer.", e);
    return c.kind == PX_CHALLENGE_BASIC ? use_basic(s, e) : use_token(s, &c, e);
}
