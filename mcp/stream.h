/* mcp/stream.h - the output of a process in the background: a pipe, and the latest bytes of it.
 *
 * Why:     nobody says when somebody will ask for it, or whether anybody will.
 * Owns:    both ends of the pipe and the bytes.
 * Mustn't: keep more than its bound, or block. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct px_buf;
struct px_json;

/* The latest bytes of a stream, and how far they were told. */
struct stream {
    int read, write; /* a pipe: the box's bytes come in at `write`; -EBADF: none */
    char *data;
    size_t len;
    uint64_t total, told; /* bytes ever; up to where process_output gave them */
};

int stream_open(struct stream *s); /* -errno; stream_close and free(data) in any case */
void stream_close(struct stream *s);
/* Takes what is in the pipe, but not for ever. */
void stream_read(struct stream *s);
/* What was not told yet and is still there: as a member of an object, with the number of bytes that are lost, and as text. */
void stream_tell(struct stream *s, const char *name, const char *lost_name, struct px_json *j,
                 struct px_buf *text);
