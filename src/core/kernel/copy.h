/* kernel/copy.h - the bytes of a regular file, copied or compared part by part; a hole costs nothing and stays a hole.
 *
 * Why:     truncate(2) makes a file of an exabyte in no time; who copies st_size bytes fills the disk with zeros.
 * Owns:    nothing that outlives a call.
 * Mustn't: write a byte that the source does not store, or use the position of a descriptor that is written. Parent
 *          side. All return 0 or -errno. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* All of `from`, as large as it is now, into the empty file `to`; both share their blocks if the file system can. */
int px_copy_file(int from, int to);
/* `size` bytes of `from`, from `at` on, into the empty file `to`. -ENODATA: `from` is shorter. */
int px_copy_part(int from, uint64_t at, uint64_t size, int to);
/* The next bytes of a stream at *at of an empty file; blocks of zeros are left out. After the last, px_copy_end. */
int px_copy_stream(int to, uint64_t *at, const char *bytes, size_t size);
int px_copy_end(int to, uint64_t size);
/* 1 if two files have the same bytes, 0 if not. */
int px_copy_same(int a, int b);
