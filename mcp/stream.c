#include "mcp/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"

enum {
    KEPT = 256 << 10,
    CHUNK = 64 << 10,
};

void stream_close(struct stream *s)
{
    s->read = px_fd_close(s->read);
    s->write = px_fd_close(s->write);
}

int stream_open(struct stream *s)
{
    int ends[2];
    int r = px_pipe(ends);
    if (r < 0)
        return r;
    s->read = ends[0];
    s->write = ends[1];
    s->data = malloc(KEPT);
    if (!s->data || fcntl(s->read, F_SETFL, O_NONBLOCK) < 0 || fcntl(s->write, F_SETFL, O_NONBLOCK) < 0)
        return -ENOMEM;
    return 0;
}

static void stream_keep(struct stream *s, const char *data, size_t len)
{
    s->total += len;           /* len is CHUNK at most, which is less than half of what is kept */
    if (s->len + len > KEPT) { /* drops half at once, so that not every byte causes a move */
        size_t keep = s->len < KEPT / 2 ? s->len : KEPT / 2;
        memmove(s->data, s->data + s->len - keep, keep);
        s->len = keep;
    }
    memcpy(s->data + s->len, data, len);
    s->len += len;
}

void stream_read(struct stream *s)
{
    char chunk[CHUNK];
    for (int i = 0; s->read >= 0 && i < 8; i++) {
        ssize_t n = px_read_some(s->read, chunk, sizeof chunk);
        if (n <= 0)
            return;
        stream_keep(s, chunk, (size_t)n);
    }
}

void stream_tell(struct stream *s, const char *name, const char *lost_name, struct px_json *j,
                 struct px_buf *text)
{
    uint64_t first = s->total - s->len, from = s->told > first ? s->told : first;
    const char *data = s->data + (from - first);
    size_t len = (size_t)(s->total - from);
    px_json_bytes(j, name, data, len);
    px_json_uint(j, lost_name, from - s->told);
    if (from > s->told)
        px_buf_printf(text, "... (%llu bytes are lost)\n", (unsigned long long)(from - s->told));
    px_buf_add(text, data, len);
    s->told = s->total;
}
