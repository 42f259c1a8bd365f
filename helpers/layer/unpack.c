/* Archive to tree: the parts put together, in one pass over the bytes. */
#include <stdlib.h>

#include "base/err.h"
#include "helpers/layer/layer.h"

enum { TELL_EVERY = 64 };       /* entries */

/* Without a second thread: the tar reader asks the source itself. */
struct direct {
    struct source *source;
    uint8_t *slot;
};

static long direct_next(void *user, const uint8_t **ret_data, struct px_err *e)
{
    struct direct *d = user;
    *ret_data = d->slot;
    return source_read(d->source, d->slot, SLOT, e);
}

static int extract_all(const struct unpack_job *job, struct tar *t, struct extract *x, struct px_err *e)
{
    struct entry *entry = malloc(sizeof *entry);
    uint64_t told = 0;
    int r = entry ? 1 : px_no_memory(e);
    while (r > 0 && (r = tar_next(t, entry, e)) > 0) {
        if (extract_entry(x, t, entry, e) < 0)
            r = -1;
        if (job->told.tell && ++told % TELL_EVERY == 0)
            job->told.tell(job->told.user, t->bytes, 0);
    }
    free(entry);
    return r < 0 ? -1 : extract_finish(x, e);
}

static int answer(struct source *s, struct tar *t, const struct extract *x, struct px_unpacked *ret, struct px_err *e)
{
    struct px_unpacked done = {.packed_bytes = source_consumed(s), .bytes = x->bytes, .entries = x->entries,
                               .dropped = x->dropped};
    int r = source_end(s, &done.packed);
    if (r == 0)
        r = tar_end(t, &done.diff_id);
    if (r < 0)
        return px_fail(e, PX_E_INTERNAL, r, "cannot hash the archive");
    *ret = done;
    return 0;
}

int unpack(const struct unpack_job *job, struct px_unpacked *ret_done, struct px_err *e)
{
    struct source *source = NULL;
    struct pipeline *pipeline = NULL;
    struct direct direct = {0};
    struct extract x;
    struct tar t;
    int r = extract_init(&x, job->dir, job->whiteouts, &job->limits);
    if (r < 0)
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot open the directory to unpack into");
    r = source_open(job->archive, job->size, job->limits.ratio, &source, e);
    if (r == 0 && job->alone) {
        direct = (struct direct){source, malloc(SLOT)};
        r = direct.slot ? 0 : px_no_memory(e);
    } else if (r == 0) {
        r = pipeline_start(source, &pipeline, e);
    }
    if (r == 0) {
        tar_init(&t, job->alone ? direct_next : pipeline_next, job->alone ? (void *)&direct : pipeline);
        r = extract_all(job, &t, &x, e);
        pipeline_free(pipeline);        /* after it nobody else uses the source */
        r = r < 0 ? r : answer(source, &t, &x, ret_done, e);
        tar_done(&t);
    }
    free(direct.slot);
    source_free(source);
    extract_done(&x);
    return r;
}
