/* The bytes of an archive: read once, hashed on the way, decompressed; its end is the end of the file or an error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "helpers/layer/layer.h"

enum { IN_SIZE = 256 << 10, HEAD_MIN = BLOCK };

struct source {
    int fd;
    uint64_t size, offset;      /* how much may be read; how much was */
    uint32_t ratio;
    uint64_t produced;
    const struct codec *codec;
    void *state;                /* of the present member; NULL between two */
    bool at_end;                /* of the file */
    bool over;                  /* of the tar */
    struct px_hash hash;
    size_t from, have;          /* in buffer */
    uint8_t buffer[IN_SIZE];
};

static int refuse(struct px_err *e, const char *why)
{
    px_fail(e, PX_E_ARCHIVE, 0, "the archive was refused");
    return px_why(e, "%s", why);
}

/* Keeps at least HEAD_MIN bytes ahead, so that a magic is never cut in two. */
static int top_up(struct source *s, struct px_err *e)
{
    if (s->at_end || s->have - s->from >= HEAD_MIN)
        return 0;
    memmove(s->buffer, s->buffer + s->from, s->have - s->from);
    s->have -= s->from;
    s->from = 0;
    while (!s->at_end && s->have < IN_SIZE) {
        long n = px_sys(SYS_pread64, s->fd, s->buffer + s->have, IN_SIZE - s->have, s->offset);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return px_fail(e, PX_E_IO, (int)n, "cannot read the archive");
        if (n == 0) {
            s->at_end = true;
            break;
        }
        if ((uint64_t)n > s->size - s->offset)
            return refuse(e, "It is longer than it was said to be.");
        px_hash_add(&s->hash, s->buffer + s->have, (size_t)n);
        s->have += (size_t)n;
        s->offset += (uint64_t)n;
    }
    return 0;
}

static int begin_member(struct source *s, struct px_err *e)
{
    const uint8_t *head = s->buffer + s->from;
    size_t length = s->have - s->from;
    const struct codec *found = s->codec;
    if (!found)
        for (found = codecs; found->name && !found->is(head, length); found++)
            ;
    if (!found->name)
        return refuse(e, "It is not a tar, nor one compressed by gzip, zstd, xz or bzip2.");
    if (!found->is(head, length))
        return refuse(e, "There are bytes behind its end, which others may read differently.");
    s->codec = found;
    s->state = found->open();
    return s->state ? 0 : px_no_memory(e);
}

int source_open(int fd, uint64_t size, uint32_t ratio, struct source **ret_source, struct px_err *e)
{
    struct source *s = calloc(1, sizeof *s);
    if (!s)
        return px_no_memory(e);
    s->fd = fd;
    s->size = size;
    s->ratio = ratio;
    px_hash_begin(&s->hash);
    if (top_up(s, e) < 0 || begin_member(s, e) < 0) {
        source_free(s);
        return -1;
    }
    *ret_source = s;
    return 0;
}

void source_free(struct source *s)
{
    if (!s)
        return;
    if (s->state)
        s->codec->close(s->state);
    px_hash_drop(&s->hash);
    free(s);
}

static int end_member(struct source *s, struct px_err *e)
{
    s->codec->close(s->state);
    s->state = NULL;
    if (top_up(s, e) < 0)
        return -1;
    s->over = s->at_end && s->from == s->have;
    return s->over ? 0 : begin_member(s, e);
}

static int check_ratio(const struct source *s, struct px_err *e)
{
    if (s->ratio == 0 || s->produced <= RATIO_FROM || s->produced / s->ratio <= source_consumed(s))
        return 0;
    px_fail(e, PX_E_ARCHIVE, 0, "the archive was refused: it unpacks to more than %u times its size", s->ratio);
    return px_why(e, "A small archive that becomes a large tree is how disks are filled on purpose.");
}

static int step(struct source *s, struct bytes *b, struct px_err *e)
{
    if (top_up(s, e) < 0)
        return -1;
    size_t room = b->out_left, length = s->have - s->from;
    b->in = s->buffer + s->from;
    b->in_left = length;
    b->last = s->at_end;
    enum step r = s->codec->step(s->state, b);
    size_t took = length - b->in_left, made = room - b->out_left;
    s->from += took;
    s->produced += made;
    if (r == STEP_BAD)
        return refuse(e, "Its compressed data are damaged, or need more memory than an archive may have.");
    if (r != STEP_END && took == 0 && made == 0)
        return refuse(e, s->at_end ? "It ends in the middle." : "Its compressed data are damaged.");
    if (check_ratio(s, e) < 0) /* also at the end of a member: a small one has no other step */
        return -1;
    return r == STEP_END ? end_member(s, e) : 0;
}

long source_read(struct source *s, uint8_t *out, size_t size, struct px_err *e)
{
    struct bytes b = {.out = out, .out_left = size};
    while (b.out_left > 0 && !s->over)
        if (step(s, &b, e) < 0)
            return -1;
    return (long)(size - b.out_left);
}

uint64_t source_consumed(const struct source *s)
{
    return s->offset - (s->have - s->from);
}

int source_end(struct source *s, struct px_oid *ret_packed)
{
    return px_hash_end(&s->hash, ret_packed);
}
