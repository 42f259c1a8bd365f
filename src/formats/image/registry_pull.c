/* Pulls the manifest, the config and the layers. Content that does not match its digest is refused. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "image/documents.h"
#include "image/registry.h"
#include "image/select.h"

enum { TRIES = 32, BARREN = 2, URL_SIZE = 512 };

static const char *const accepted[] = {"Accept: " PX_MEDIA_MANIFEST_TYPE ", " PX_MEDIA_INDEX_TYPE
                                       ", " PX_MEDIA_DOCKER_MANIFEST_TYPE ", " PX_MEDIA_DOCKER_LIST_TYPE,
                                       NULL};

static int other_bytes(const struct px_registry *s, const char *what, const struct px_oid *digest, struct px_err *e)
{
    (void)px_fail(e, PX_E_REGISTRY, 0, "the registry %s sent other bytes than sha256:%s", s->ref->registry,
                  digest->hex);
    return px_why(e, "The %s has another digest or size than the image says.", what);
}

/* ---- documents ---- */

static int read_memory(int fd, struct px_buf *out)
{
    char chunk[16 << 10];
    ssize_t n;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    while ((n = px_read_some(fd, chunk, sizeof chunk)) > 0)
        if (px_buf_add(out, chunk, (size_t)n) < 0)
            return out->err;
    return (int)n;
}

/* Fetches manifests/REFERENCE; the media type is the server's. */
static int fetch_document(struct px_registry *s, const char *reference, uint64_t max, struct px_buf *out, struct px_err *e)
{
    char url[URL_SIZE];
    px_auto_fd int memory = px_fd_memory("manifest", "", 0, 0);
    if (memory < 0 || px_fmt(url, sizeof url, "/v2/%s/manifests/%s", s->ref->repository, reference) < 0)
        return px_fail(e, PX_E_MEMORY, memory, "asking a registry for an image");
    const struct px_fetch_request request = {
        .method = PX_FETCH_GET, .url = url, .headers = accepted, .source = -1, .sink = memory, .answer_max = max};
    if (px_registry_request(s, &request, e) < 0)
        return -1;
    if (s->answer.status != 200 || s->answer.cut)
        return px_registry_refused(s, "pull from", e);
    int r = read_memory(memory, out);
    return r < 0 ? px_fail(e, PX_E_MEMORY, r, "reading a registry's answer") : 0;
}

static int read_checked(void *user, const struct px_descriptor *what, struct px_buf *out, struct px_err *e)
{
    struct px_registry *s = user;
    char reference[80];
    struct px_oid is;
    (void)px_fmt(reference, sizeof reference, "sha256:%s", what->digest.hex);
    if (fetch_document(s, reference, what->size, out, e) < 0)
        return -1;
    if (px_hash_bytes(px_buf_text(out), out->len, &is) < 0 || !px_hash_oid_equal(&is, &what->digest) ||
        out->len != what->size)
        return other_bytes(s, "document", &what->digest, e);
    return 0;
}

/* The first document has no descriptor. Its type comes from the server and from the document, its digest from the
 * reference if that has one. */
static int fetch_first(struct px_registry *s, struct px_descriptor *ret, struct px_buf *out, struct px_err *e)
{
    char reference[160];
    struct px_descriptor d = {.compression = PX_COMPRESS_NONE};
    bool pinned = s->ref->digest.hex[0];
    (void)px_fmt(reference, sizeof reference, "%s%s", pinned ? "sha256:" : "",
                 pinned ? s->ref->digest.hex : s->ref->tag);
    if (fetch_document(s, reference, PX_IMAGE_JSON_MAX, out, e) < 0)
        return -1;
    if (px_hash_bytes(px_buf_text(out), out->len, &d.digest) < 0)
        return px_no_memory(e);
    if (pinned && !px_hash_oid_equal(&d.digest, &s->ref->digest))
        return other_bytes(s, "manifest", &s->ref->digest, e);
    s->answer.type[strcspn(s->answer.type, "; ")] = '\0';
    d.size = out->len;
    d.media = px_media_find(s->answer.type, NULL);
    if (d.media != PX_MEDIA_MANIFEST && d.media != PX_MEDIA_INDEX)
        return px_fail(e, PX_E_IMAGE, 0, "%s/%s is of the type '%.100s', which is not an image", s->ref->registry,
                       s->ref->repository, s->answer.type);
    *ret = d;
    return 0;
}

/* Uses the index that was already fetched. */
struct walk {
    struct px_registry *talk;
    const struct px_descriptor *first;
    const struct px_buf *text;
};

static int read_walk(void *user, const struct px_descriptor *what, struct px_buf *out, struct px_err *e)
{
    const struct walk *w = user;
    if (!px_hash_oid_equal(&what->digest, &w->first->digest))
        return read_checked(w->talk, what, out, e);
    return px_buf_add(out, px_buf_text(w->text), w->text->len) < 0
               ? px_fail(e, PX_E_MEMORY, out->err, "reading an index")
               : 0;
}

static int fetch_manifest(struct px_registry *s, struct px_buf *out, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_IMAGE_JSON_MAX);
    struct px_descriptor first, entry;
    if (fetch_first(s, &first, &text, e) < 0)
        return -1;
    entry = first;
    struct walk walk = {s, &first, &text};
    const struct px_pick pick = {read_walk, &walk};
    if (px_select_manifest(&pick, &entry, e) < 0)
        return -1;
    return entry.size > PX_IMAGE_JSON_MAX
               ? px_fail(e, PX_E_IMAGE, 0, "the image's manifest is larger than %d bytes", PX_IMAGE_JSON_MAX)
               : read_walk(&walk, &entry, out, e);
}

/* ---- blobs ---- */

static int fetch_part(struct px_registry *s, const struct px_descriptor *d, int sink, uint64_t *have, struct px_err *e)
{
    char url[URL_SIZE], range[64];
    const char *headers[] = {NULL, NULL};
    if (px_fmt(url, sizeof url, "/v2/%s/blobs/sha256:%s", s->ref->repository, d->digest.hex) < 0 ||
        px_fmt(range, sizeof range, "Range: bytes=%llu-", (unsigned long long)*have) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "too long a repository");
    if (*have > 0)
        headers[0] = range;
    const struct px_fetch_request request = {.method = PX_FETCH_GET,
                                             .url = url,
                                             .headers = headers,
                                             .source = -1,
                                             .sink = sink,
                                             .sink_offset = *have,
                                             .answer_max = d->size,
                                             .progress = s->progress,
                                             .what = "pulling"};
    if (px_registry_request(s, &request, e) < 0)
        return -1;
    if (s->answer.status != 200 && (s->answer.status != 206 || *have == 0))
        return px_registry_refused(s, "pull from", e);
    *have = s->answer.got + (s->answer.status == 206 ? *have : 0);
    return 0;
}

/* Resumes a download after a lost connection while it makes progress, a limited number of times. */
static int fetch_all(struct px_registry *s, const struct px_descriptor *d, int sink, struct px_err *e)
{
    uint64_t have = 0;
    for (unsigned tries = 0, barren = 0; tries < TRIES && barren < BARREN; tries++) {
        uint64_t before = have;
        if (fetch_part(s, d, sink, &have, e) < 0)
            return -1;
        if (!s->answer.cut || have > d->size)
            break;
        if (have == d->size)
            return 0;
        barren = have > before ? 0 : barren + 1;
    }
    if (s->answer.cut)
        return px_registry_refused(s, "pull from", e);
    return have == d->size ? 0 : other_bytes(s, "blob", &d->digest, e);
}

static int fetch_blob(struct px_registry *s, const struct px_descriptor *d, struct px_err *e)
{
    struct px_blob_writer *w = NULL;
    struct px_oid is;
    uint64_t size = 0;
    if (px_blob_has(s->store, &d->digest))
        return 0;
    if (px_blob_begin(s->store, d->size, &w, e) < 0)
        return -1;
    if (fetch_all(s, d, px_blob_writer_fd(w), e) < 0) {
        px_blob_drop(w);
        return -1;
    }
    if (px_blob_commit(w, &d->digest, &is, &size, e) < 0)
        return e->code == PX_E_OBJECT ? other_bytes(s, "blob", &d->digest, e) : -1;
    return 0;
}

static int fetch_blobs(struct px_registry *s, const struct px_buf *text, struct px_err *e)
{
    struct px_oci_manifest m;
    if (px_documents_manifest_read(px_buf_text(text), text->len, PX_MEDIA_MANIFEST, &m, e) < 0)
        return -1;
    int r = fetch_blob(s, &m.config, e);
    for (size_t i = 0; r == 0 && i < m.layer_count; i++)
        r = fetch_blob(s, &m.layers[i], e);
    px_documents_manifest_done(&m);
    return r;
}

int px_registry_pull(struct px_store *store, const struct px_image_ref *ref, struct px_progress_to progress,
                     struct px_image *ret_image, struct px_err *e)
{
    px_auto(px_registry) struct px_registry *s = NULL;
    px_auto_buf struct px_buf text = PX_BUF(PX_IMAGE_JSON_MAX);
    struct px_oid manifest;
    if (px_registry_open(store, ref, false, progress, &s, e) < 0 || fetch_manifest(s, &text, e) < 0 ||
        fetch_blobs(s, &text, e) < 0)
        return -1;
    return px_blob_put(store, px_buf_text(&text), text.len, &manifest, e) < 0
               ? -1
               : px_image_load(store, &manifest, ret_image, e);
}
