/* Objects: small canonical documents that are blobs like any other. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "store/canonical.h"
#include "store/document.h"
#include "store/store_internal.h"

static int wrong(const char *kind, int err, struct px_err *e)
{
    return px_fail(e, err == -ENOMEM ? PX_E_MEMORY : PX_E_INTERNAL, 0, "the payload of an object '%s' is not canonical",
                   kind);
}

/* Parses and writes the payload again, so that the stored text is canonical even if the caller's is not. */
int px_object_put(struct px_store *store, const char *kind, const char *payload, struct px_oid *ret_oid,
                  struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_SMALL_MAX);
    px_auto(px_document) json_t *inner = NULL;
    px_auto(px_document) json_t *outer = NULL;

    if (px_document_read(payload, strlen(payload), "the payload of an object", PX_E_INTERNAL, &inner, e) < 0)
        return -1;
    outer = json_pack("{s:s, s:O}", "kind", kind, "payload", inner);
    int r = outer ? px_canonical(outer, &text) : -ENOMEM;
    return r < 0 ? wrong(kind, r, e) : px_blob_put(store, text.data, text.len, ret_oid, e);
}
