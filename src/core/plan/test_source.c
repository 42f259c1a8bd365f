#include "plan/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

/* A directory of the test's own becomes the current one, with a file, a directory, and links to both. */
static void lay_out(void)
{
    px_auto_fd int dir = px_test_dir();
    ASSERT_EQ(fchdir(dir), 0);
    ASSERT(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0 && symlink("d", "to_d") == 0 && symlink("d/f", "to_f") == 0);
    ASSERT(symlink("nowhere", "to_nothing") == 0 && symlink("to_self", "to_self") == 0);
    px_auto_fd int fd = open("d/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT(fd >= 0);
}

TEST(links_at_the_end_are_not_followed)
{
    static const struct {
        const char *path;
        int want;
    } rows[] = {{"d", 0},           {"d/", 0},           {"d/f", 0},      {".", 0},          {"./", 0},     {"to_d", -ELOOP},       {"to_d/", -ELOOP},
                {"to_d/.", -ELOOP}, {"to_d//./", -ELOOP}, {"to_f", -ELOOP}, {"./to_f", -ELOOP}, {"to_d/f", 0}, {"to_nothing", -ELOOP}, {"to_self", -ELOOP},
                {"missing", -ENOENT}, {"to_d/missing", -ENOENT}, {"d/f/x", -ENOTDIR}, {"/", 0}};
    struct stat st;
    lay_out();
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        if (px_source_look(rows[i].path, &st) != rows[i].want)
            FAIL("%s: %d, not %d", rows[i].path, px_source_look(rows[i].path, &st), rows[i].want);
        px_auto_fd int fd = px_source_open(rows[i].path, O_RDONLY);
        ASSERT_EQ(fd < 0 ? fd : 0, rows[i].want);
    }
}

/* As root and as a user: only root can have made it, in a place that no box is given. */
TEST(links_of_the_system_are_followed)
{
    struct stat st, real;
    if (lstat("/bin", &st) < 0 || !S_ISLNK(st.st_mode) || lstat("/", &st) < 0 || st.st_uid != 0)
        SKIP("/bin is no link of root's here");
    ASSERT_EQ(px_source_look("/bin", &st), 0);
    ASSERT_EQ(stat("/bin/", &real), 0);
    ASSERT(st.st_ino == real.st_ino && st.st_dev == real.st_dev);
}

TEST(links_on_the_way_are_told)
{
    char said[PX_SOURCE_TEXT];
    lay_out();
    px_source_way("d/e", said);
    ASSERT_STR(said, "");
    px_source_way("to_d/e", said);
    ASSERT(strstr(said, "/d/e'") && strstr(said, "'to_d/e'"));
    px_source_tell("to_nothing", said);
    ASSERT_STR(said, "'to_nothing' is a link to nothing");
}
