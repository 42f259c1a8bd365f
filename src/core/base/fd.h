/* base/fd.h - owned descriptors, whole reads and writes.
 *
 * Owns:    what px_auto_fd declares; -EBADF is the empty descriptor.
 * Mustn't: retry close, change errno in a destructor, or make a descriptor that survives exec. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#define px_auto_fd __attribute__((cleanup(px_fd_done)))
#define px_auto_free __attribute__((cleanup(px_free_done)))
#define px_auto(type) __attribute__((cleanup(type##_freep)))

/* px_take(&x): x's value; x is empty afterwards. */
#define px_take(pointer)                            \
    __extension__({                                 \
        __typeof__(*(pointer)) px_taken = *(pointer); \
        *(pointer) = NULL;                          \
        px_taken;                                   \
    })

void px_free_done(void *pointer_to_pointer);
void px_fd_done(int *fd);
int px_fd_close(int fd);        /* always -EBADF: fd = px_fd_close(fd) */
int px_fd_take(int *fd);
/* The same file at a number above 2 (fd itself, or a duplicate, and fd is closed), for a child that needs it besides
 * its standard streams. Returns a negative fd unchanged. */
int px_fd_above_stdio(int fd);

/* All return >= 0 or -errno; EINTR is retried. */
ssize_t px_read_some(int fd, void *out, size_t size);
ssize_t px_read_full(int fd, void *out, size_t size);               /* until size or end of file */
int px_write_full(int fd, const void *data, size_t size);
/* A memfd with these bytes, with its offset at the start; -errno. */
enum px_memory_flags {
    PX_MEMORY_SEALED = 1 << 0,          /* it cannot be changed any more */
    PX_MEMORY_PROGRAM = 1 << 1,         /* it is to be executed */
};
int px_fd_memory(const char *name, const void *data, size_t size, unsigned flags);
/* Reads the file at dirfd/path, at most size-1 bytes, and ends it with a NUL; -EFBIG if it is longer. For /proc and
 * small files. With a directory a link is not followed (-ELOOP) and a pipe does not block; with AT_FDCWD both may. */
ssize_t px_read_file(int dirfd, const char *path, char *out, size_t size);
/* One write to an existing file, for /proc and cgroup files. */
int px_write_file(int dirfd, const char *path, const char *text);
int px_pipe(int ret_ends[2]);                                       /* close-on-exec */
