/* Pushing: blobs that the registry does not have yet, then the manifest. The manifest is last, so a tag never names
 * missing blobs. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "image/documents.h"
#include "image/registry.h"

enum { TRIES = 5, ALL_TRIES = 64, URL_SIZE = 1024, CHUNK_BYTES = 32 << 20 };

/* An upload that has begun. */
struct upload {
    struct px_registry *s;
    const struct px_oid *digest;
    int fd;
    uint64_t size, sent;
    char url[PX_FETCH_URL_MAX]; /* the url of the next piece */
};

static int take_location(struct upload *u, struct px_err *e)
{
    struct px_url_place place;
    if (px_url_place(u->s->answer.location, &place) < 0 || (u->s->place.tls && !place.tls) ||
        px_fmt(u->url, sizeof u->url, "%s", u->s->answer.location) < 0)
        return px_fail(e, PX_E_REGISTRY, 0, "the registry %s wants an upload to go to '%.200s', where px does not go",
                       u->s->ref->registry, u->s->answer.location);
    return 0;
}

/* "0-1023": the range that the registry has. */
static int take_range(struct upload *u, struct px_err *e)
{
    const char *text = u->s->answer.range;
    uint64_t last;
    if (px_starts_with(text, "bytes="))
        text += 6;
    if (!px_starts_with(text, "0-") || px_parse_u64(text + 2, INT64_MAX, &last) < 0)
        return px_fail(e, PX_E_REGISTRY, 0, "the registry %s does not say how much of a blob it has: '%.60s'",
                       u->s->ref->registry, text);
    /* "0-0" means no byte or one byte. */
    if (last == 0 && u->sent != 1) {
        u->sent = 0;
        return 0;
    }
    if (last + 1 > u->size)
        return px_fail(e, PX_E_REGISTRY, 0, "the registry %s has more of a blob than there is", u->s->ref->registry);
    u->sent = last + 1;
    return 0;
}

/* 1: it has the blob already. */
static int is_there(struct upload *u, struct px_err *e)
{
    char url[URL_SIZE];
    const struct px_fetch_request request = {
        .method = PX_FETCH_HEAD, .url = url, .source = -1, .sink = -1, .answer_max = PX_FETCH_BODY_MAX};
    if (px_fmt(url, sizeof url, "/v2/%s/blobs/sha256:%s", u->s->ref->repository, u->digest->hex) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "too long a repository");
    return px_registry_request(u->s, &request, e) < 0 ? -1 : u->s->answer.status == 200;
}

/* 1: it took the blob over from the repository `from`, which may be NULL. */
static int begin_upload(struct upload *u, const char *from, struct px_err *e)
{
    char url[URL_SIZE];
    const struct px_fetch_request request = {
        .method = PX_FETCH_POST, .url = url, .source = -1, .sink = -1, .answer_max = PX_FETCH_BODY_MAX};
    if (px_fmt(url, sizeof url, "/v2/%s/blobs/uploads/%s%s%s%s", u->s->ref->repository, from ? "?mount=sha256:" : "",
               from ? u->digest->hex : "", from ? "&from=" : "", from ? from : "") < 0)
        return px_fail(e, PX_E_LIMIT, 0, "too long a repository");
    if (px_registry_request(u->s, &request, e) < 0)
        return -1;
    if (u->s->answer.status == 201 && from)
        return 1;
    if (u->s->answer.status != 202 || u->s->answer.cut)
        return px_registry_refused(u->s, "push to", e);
    u->sent = 0;
    return take_location(u, e);
}

static int send_chunk(struct upload *u, struct px_err *e)
{
    uint64_t left = u->size - u->sent, n = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    char range[96];
    (void)px_fmt(range, sizeof range, "Content-Range: %llu-%llu", (unsigned long long)u->sent,
                 (unsigned long long)(u->sent + n - 1));
    const char *headers[] = {"Content-Type: application/octet-stream", range, NULL};
    const struct px_fetch_request request = {.method = PX_FETCH_PATCH,
                                             .url = u->url,
                                             .headers = headers,
                                             .source = u->fd,
                                             .offset = u->sent,
                                             .size = n,
                                             .sink = -1,
                                             .answer_max = PX_FETCH_BODY_MAX,
                                             .progress = u->s->progress,
                                             .what = "pushing"};
    if (px_registry_request(u->s, &request, e) < 0)
        return -1;
    if (u->s->answer.status != 202 || u->s->answer.cut)
        return px_registry_refused(u->s, "push to", e);
    u->sent += n;
    return take_location(u, e) < 0 ? -1 : take_range(u, e);
}

/* After a lost connection the registry reports the offset; an upload from offset 0 is a new upload. */
static int resume(struct upload *u, struct px_err *e)
{
    const struct px_fetch_request request = {
        .method = PX_FETCH_GET, .url = u->url, .source = -1, .sink = -1, .answer_max = PX_FETCH_BODY_MAX};
    struct px_err later = {0};
    if (px_registry_request(u->s, &request, &later) < 0 || (u->s->answer.status != 204 && u->s->answer.status != 202))
        return -1;              /* keep the first failure in e */
    if (u->s->answer.location[0] && take_location(u, e) < 0)
        return -1;
    if (take_range(u, e) < 0)
        return -1;
    return u->sent == 0 ? begin_upload(u, NULL, e) : 0;
}

static int send_all(struct upload *u, struct px_err *e)
{
    for (unsigned failed = 0, all = 0; u->sent < u->size;) {
        uint64_t left = u->size - u->sent, expected = u->sent + (left < CHUNK_BYTES ? left : CHUNK_BYTES);
        if (send_chunk(u, e) == 0 && u->sent == expected) {
            failed = 0;
            continue;
        }
        bool final = u->s->answer.status >= 400 && u->s->answer.status < 500 && u->s->answer.status != 416 &&
                     u->s->answer.status != 429;
        if (++failed >= TRIES || ++all >= ALL_TRIES || final || resume(u, e) < 0)
            return -1;
    }
    return 0;
}

static int finish(struct upload *u, struct px_err *e)
{
    char url[PX_FETCH_URL_MAX];
    const struct px_fetch_request request = {
        .method = PX_FETCH_PUT, .url = url, .source = -1, .sink = -1, .answer_max = PX_FETCH_BODY_MAX};
    if (px_fmt(url, sizeof url, "%s%sdigest=sha256:%s", u->url, strchr(u->url, '?') ? "&" : "?", u->digest->hex) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "too long an address at the registry %s", u->s->ref->registry);
    if (px_registry_request(u->s, &request, e) < 0)
        return -1;
    return u->s->answer.status != 201 || u->s->answer.cut ? px_registry_refused(u->s, "push to", e) : 0;
}

static int push_blob(struct px_registry *s, const struct px_oid *digest, const char *from, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    px_auto_free struct upload *u = calloc(1, sizeof *u);
    if (!u)
        return px_no_memory(e);
    *u = (struct upload){.s = s, .digest = digest};
    if (px_blob_open(s->store, digest, &fd, &u->size, e) < 0)
        return -1;
    u->fd = fd;
    int r = is_there(u, e);
    r = r != 0 ? r : begin_upload(u, from, e);
    if (r != 0)
        return r < 0 ? -1 : 0;
    return px_blob_verify(s->store, digest, e) < 0 || send_all(u, e) < 0 ? -1 : finish(u, e);
}

/* The repository of the image's base, if it is in this registry. */
static const char *base_repository(const struct px_image *image, const struct px_image_ref *to,
                                   struct px_image_ref *from)
{
    static const char key[] = "org.opencontainers.image.base.name=";
    struct px_err ignored = {0};
    for (size_t i = 0; i < image->annotations.count; i++)
        if (px_starts_with(image->annotations.items[i], key) &&
            px_image_ref_parse(image->annotations.items[i] + strlen(key), from, &ignored) == 0 &&
            px_equal(from->registry, to->registry) && !px_equal(from->repository, to->repository))
            return from->repository;
    return NULL;
}

static int push_manifest(struct px_registry *s, const struct px_image *image, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_IMAGE_JSON_MAX);
    px_auto_fd int fd = -EBADF;
    char url[URL_SIZE], kind[160], type[300], ours[80];
    const struct px_image_ref *ref = s->ref;
    uint64_t size = 0;
    (void)px_fmt(ours, sizeof ours, "sha256:%s", image->manifest.hex);
    if (px_blob_read(s->store, &image->manifest, PX_IMAGE_JSON_MAX, &text, e) < 0 ||
        px_documents_manifest_type(px_buf_text(&text), text.len, kind, sizeof kind, e) < 0 ||
        px_blob_open(s->store, &image->manifest, &fd, &size, e) < 0)
        return -1;
    if (px_fmt(type, sizeof type, "Content-Type: %s", kind) < 0 ||
        px_fmt(url, sizeof url, "/v2/%s/manifests/%s", ref->repository, ref->tag[0] ? ref->tag : ours) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "too long a repository");
    const char *headers[] = {type, NULL};
    const struct px_fetch_request request = {.method = PX_FETCH_PUT,
                                             .url = url,
                                             .headers = headers,
                                             .source = fd,
                                             .size = size,
                                             .sink = -1,
                                             .answer_max = PX_FETCH_BODY_MAX};
    if (px_registry_request(s, &request, e) < 0)
        return -1;
    if (s->answer.status != 201 || s->answer.cut)
        return px_registry_refused(s, "push to", e);
    if (s->answer.digest[0] && !px_equal(s->answer.digest, ours))
        return px_fail(e, PX_E_REGISTRY, 0, "the registry %s calls the image %.100s, which is %s", ref->registry,
                       s->answer.digest, ours);
    return 0;
}

int px_registry_push(struct px_store *store, const struct px_image *image, const struct px_image_ref *ref,
                     struct px_progress_to progress, struct px_err *e)
{
    px_auto(px_registry) struct px_registry *s = NULL;
    struct px_image_ref base;
    if (ref->digest.hex[0] && !px_hash_oid_equal(&ref->digest, &image->manifest))
        return px_fail(e, PX_E_VALUE, 0, "the reference names sha256:%s, and the image is sha256:%s", ref->digest.hex,
                       image->manifest.hex);
    const char *from = base_repository(image, ref, &base);
    if (px_registry_open(store, ref, true, progress, &s, e) < 0)
        return -1;
    for (size_t i = 0; i < image->layer_count; i++)
        if (push_blob(s, &image->layers[i].digest, from, e) < 0)
            return -1;
    return push_blob(s, &image->config_digest, NULL, e) < 0 ? -1 : push_manifest(s, image, e);
}
