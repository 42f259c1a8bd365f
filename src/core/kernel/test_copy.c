/* kernel/test_copy.c - files with holes, copied and compared without a byte more on the disk. */
#include "kernel/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "harness/test.h"

/* Larger than any disk; ext4 has files of up to 16 TiB. */
static const off_t huge = (off_t)1 << 43;
enum { SMALL_BLOCKS = 2048 }; /* of 512 bytes: what a file system may take for a few bytes, and for its own lists */

static int make(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ASSERT_OK(fd);
    return fd;
}

static void put(int fd, const char *text, off_t at)
{
    ASSERT_EQ(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
}

static void check_at(int fd, const char *text, off_t at)
{
    char read[64] = "";
    ASSERT_EQ(pread(fd, read, strlen(text), at), (ssize_t)strlen(text));
    ASSERT_STR(read, text);
}

static void check_size(int fd, off_t size)
{
    struct stat st;
    ASSERT_OK(fstat(fd, &st));
    ASSERT_EQ(st.st_size, size);
    ASSERT(st.st_blocks <= SMALL_BLOCKS);
}

/* Data at the start, in the middle and before the end, holes around them. */
static int make_sparse(int dir, const char *name)
{
    int fd = make(dir, name);
    ASSERT_OK(ftruncate(fd, huge));
    put(fd, "start", 0);
    put(fd, "middle", huge / 2 + 5);
    put(fd, "end", huge - 4096);
    return fd;
}

TEST(holes_stay_holes)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int from = make_sparse(dir, "from"), to = make(dir, "to");
    ASSERT_OK(px_copy_file(from, to));
    check_size(to, huge);
    check_at(to, "start", 0);
    check_at(to, "middle", huge / 2 + 5);
    check_at(to, "end", huge - 4096);
    ASSERT_EQ(px_copy_same(from, to), 1);
}

TEST(a_file_that_is_all_hole)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int from = make(dir, "from"), to = make(dir, "to");
    ASSERT_OK(ftruncate(from, huge));
    ASSERT_OK(px_copy_part(from, 0, (uint64_t)huge, to));
    check_size(to, huge);
    ASSERT_EQ(px_copy_same(from, to), 1);
}

TEST(a_part_is_copied_to_the_start)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int from = make_sparse(dir, "from"), to = make(dir, "to"), none = make(dir, "none");
    ASSERT_OK(px_copy_part(from, (uint64_t)huge / 2, 4096, to));
    check_size(to, 4096);
    check_at(to, "middle", 5);
    ASSERT_OK(px_copy_part(from, (uint64_t)huge, 0, none));
    check_size(none, 0);
}

TEST(every_byte_of_plain_data)
{
    enum { SIZE = (256 << 10) + 7 };
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int from = make(dir, "from"), to = make(dir, "to");
    px_auto_free char *data = malloc(SIZE), *copy = malloc(SIZE);
    ASSERT(data && copy);
    for (int i = 0; i < SIZE; i++)
        data[i] = (char)(i * 31 + i / 4096);
    ASSERT_OK(px_write_full(from, data, SIZE));
    ASSERT_OK(px_copy_part(from, 0, SIZE, to));
    ASSERT_EQ(pread(to, copy, SIZE, 0), SIZE);
    ASSERT(memcmp(data, copy, SIZE) == 0);
}

TEST(a_source_that_is_shorter_is_an_error)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int from = make(dir, "from"), to = make(dir, "to"), other = make(dir, "other");
    put(from, "four", 0);
    ASSERT_EQ(px_copy_part(from, 0, 5, to), -ENODATA);
    ASSERT_EQ(px_copy_part(from, UINT64_MAX, 5, other), -EFBIG);
    ASSERT_EQ(px_copy_part(from, 5, INT64_MAX, other), -EFBIG);
}

TEST(what_differs_is_found_behind_a_hole)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int a = make_sparse(dir, "a"), b = make_sparse(dir, "b"), longer = make_sparse(dir, "longer");
    ASSERT_EQ(px_copy_same(a, b), 1);
    put(b, "END", huge - 4096);
    ASSERT_EQ(px_copy_same(a, b), 0);
    ASSERT_EQ(px_copy_same(b, a), 0);
    ASSERT_OK(ftruncate(longer, huge + 1));
    ASSERT_EQ(px_copy_same(a, longer), 0);
}

/* Zeros that are stored are the same as a hole. */
TEST(zeros_and_a_hole_are_the_same)
{
    static const char zeros[10000];
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int a = make(dir, "a"), b = make(dir, "b");
    ASSERT_OK(ftruncate(a, sizeof zeros));
    ASSERT_OK(px_write_full(b, zeros, sizeof zeros));
    ASSERT_EQ(px_copy_same(a, b), 1);
    put(b, "x", 9999);
    ASSERT_EQ(px_copy_same(a, b), 0);
}

TEST(a_stream_of_zeros_becomes_a_hole)
{
    enum { PIECES = 2000, PIECE = 5000 };
    static const char zeros[PIECE];
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int to = make(dir, "to");
    uint64_t at = 0;
    ASSERT_OK(px_copy_stream(to, &at, "head", 4));
    for (int i = 0; i < PIECES; i++)
        ASSERT_OK(px_copy_stream(to, &at, zeros, PIECE));
    ASSERT_OK(px_copy_stream(to, &at, "tail", 4));
    ASSERT_OK(px_copy_stream(to, &at, zeros, PIECE));
    ASSERT_OK(px_copy_end(to, at));
    check_size(to, 8 + (PIECES + 1) * (off_t)PIECE);
    check_at(to, "head", 0);
    check_at(to, "tail", 4 + PIECES * (off_t)PIECE);
}
