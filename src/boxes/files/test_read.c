#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "files/files.h"
#include "harness/test.h"

#define AE "\xc3\xa4"
#define EURO "\xe2\x82\xac"
#define FACE "\xf0\x9f\x98\x80"

TEST(windows_count_characters)
{
    static const struct {
        const char *text;
        uint64_t offset, max;
        const char *part;
        uint64_t total;
    } rows[] = {
        {"hello", 0, 3, "hel", 5},
        {"hello", 3, 9, "lo", 5},
        {"hello", 5, 9, "", 5},
        {"hello", 99, 9, "", 5},
        {"", 0, 9, "", 0},
        {AE EURO FACE, 0, 1, AE, 3},
        {AE EURO FACE, 1, 1, EURO, 3},
        {AE EURO FACE, 2, 5, FACE, 3},
        {AE EURO FACE, 0, 0, "", 3},
        {"a" AE "b", 1, 2, AE "b", 3},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_window w;
        ASSERT_OK(px_files_window_find(rows[i].text, strlen(rows[i].text), rows[i].offset, rows[i].max, &w));
        ASSERT_EQ(w.total, rows[i].total);
        ASSERT_EQ(w.end - w.begin, strlen(rows[i].part));
        ASSERT(memcmp(rows[i].text + w.begin, rows[i].part, w.end - w.begin) == 0);
    }
}

TEST(what_is_not_utf8_is_refused_wherever_it_is)
{
    char text[1100];
    struct px_window w;
    for (size_t at = 0; at < sizeof text; at += 61) {
        memset(text, 'a', sizeof text);
        ASSERT_OK(px_files_window_find(text, sizeof text, 3, 5, &w));
        text[at] = (char)0xff;
        ASSERT_EQ(px_files_window_find(text, sizeof text, 3, 5, &w), -EILSEQ);
    }
    ASSERT_EQ(px_files_window_find("\xc3", 1, 0, 1, &w), -EILSEQ);
    ASSERT_EQ(px_files_window_find("\xed\xa0\x80", 3, 0, 1, &w), -EILSEQ);
    ASSERT_OK(px_files_window_find("\0a", 2, 0, 9, &w));
    ASSERT_EQ(w.chars, 2);
}

/* Characters that lie across the blocks of the fast way. */
TEST(windows_are_right_at_the_edges_of_blocks)
{
    char text[1200];
    for (size_t at = 250; at < 260; at++) {
        struct px_window w;
        memset(text, 'a', sizeof text);
        memcpy(text + at, EURO, 3);
        ASSERT_OK(px_files_window_find(text, sizeof text, at, 1, &w));
        ASSERT_EQ(w.begin, at);
        ASSERT_EQ(w.end, at + 3);
        ASSERT_EQ(w.total, sizeof text - 2);
    }
}

TEST(a_file_is_read_whole_or_not_at_all)
{
    px_auto_fd int fd = px_fd_memory("t", "0123456789", 10, 0);
    static const uint64_t sizes[] = {0, 1, 9, 10, 11, 5000};
    for (size_t i = 0; i < PX_COUNT_OF(sizes); i++) {       /* what fstat said may be wrong by now */
        px_auto_free char *data = NULL;
        size_t len = 0;
        ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
        ASSERT_OK(px_read_whole(fd, sizes[i], 10, &data, &len));
        ASSERT_EQ(len, 10);
        ASSERT_EQ(data[len], 0);
        free(px_take(&data));
        ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
        ASSERT_EQ(px_read_whole(fd, sizes[i], 9, &data, &len), -EFBIG);
    }
}
