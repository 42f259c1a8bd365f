/* kernel/copy.h - copies or compares the bytes of a regular file part by part; a hole costs nothing and stays a
 * hole.
 *
 * Why:     truncate(2) makes a file of an exabyte at once. Copying st_size bytes would fill the disk with zeros.
 * Owns:    nothing that outlives a call.
 * Mustn't: write a byte that the source does not store, or use the position of a descriptor that is written. Runs in
 *          the parent. All return 0 or -errno. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Copies all of `from`, as large as it is now, into the empty file `to`; they share blocks if the file system can. */
int px_copy_file(int from, int to);
/* Copies `size` bytes of `from`, from offset `at` on, into the empty file `to`. -ENODATA: `from` is shorter. */
int px_copy_part(int from, uint64_t at, uint64_t size, int to);
/* Writes the next bytes of a stream at *at into an empty file; blocks of zeros are left out. Call px_copy_end after
 * the last. */
int px_copy_stream(int to, uint64_t *at, const char *bytes, size_t size);
int px_copy_end(int to, uint64_t size);
/* 1 if two files have the same bytes, 0 if not. */
int px_copy_same(int a, int b);
