/* mcp/stream.h - the output of a process in the background: a pipe, and the latest bytes of it.
 *
 * Why:     the client may read it at any time, or never.
 * Owns:    both ends of the pipe and the bytes.
 * Mustn't: keep more than its bound, or block. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct px_buf;
struct px_json;

/* The latest bytes of a stream, and how far they were returned. */
struct stream {
    int read, write; /* a pipe: the box's bytes come in at `write`; -EBADF: none */
    char *data;
    size_t len;
    uint64_t total, told; /* bytes ever; up to where process_output gave them */
};

int stream_open(struct stream *s); /* -errno; stream_close and free(data) in any case */
void stream_close(struct stream *s);
/* Reads from the pipe, a bounded amount. */
void stream_read(struct stream *s);
/* Returns the stored bytes that were not returned yet: as a member of an object, with the number of lost bytes, and as
 * text. */
void stream_tell(struct stream *s, const char *name, const char *lost_name, struct px_json *j,
                 struct px_buf *text);
