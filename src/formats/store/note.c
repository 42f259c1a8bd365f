/* Cached answers of other servers, which may change: seen/note-KEY, a text. It is only a cache: a note that cannot be
 * read is ignored. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "store/store.h"
#include "store/store_internal.h"

static void file_of(const struct px_oid *key, char out[80])
{
    (void)px_fmt(out, 80, PX_NOTE_PREFIX "%s", key->hex);
}

int px_note_put(struct px_store *store, const struct px_oid *key, const char *text, struct px_err *e)
{
    char file[80];
    file_of(key, file);
    return px_store_small_put(store, PX_PLACE_SEEN, file, text, strlen(text), e);
}

bool px_note_get(struct px_store *store, const struct px_oid *key, struct px_buf *out)
{
    char file[80];
    file_of(key, file);
    return px_store_small_read(store->place[PX_PLACE_SEEN], file, out) >= 0 && out->err == 0;
}

static int drop(void *user, const char *name)
{
    const struct px_store *store = user;
    if (px_starts_with(name, PX_NOTE_PREFIX))
        (void)px_store_trash(store, PX_PLACE_SEEN, name);
    return 0;
}

int px_note_all_drop(struct px_store *store, struct px_err *e)
{
    int r = px_store_entries(store, PX_PLACE_SEEN, drop, store);
    px_store_trash_empty(store, false);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot forget what the archives said") : 0;
}
