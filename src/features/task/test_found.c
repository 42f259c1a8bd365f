/* task/test_found.c - what a found configuration may set: every key of the field table, by data/found.def. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "config/found.h"
#include "harness/test.h"
#include "task/task.h"

/* A value that restricts and one that loosens; NULL: no value does. */
static const struct {
    const char *key, *tight, *loose;
} rows[] = {
    {"work_root", "a/b", "../b"},
    {"logs_dir", "l", "/var/log"},
    {"default_timeout_sec", "30", "30.5"},
    {"cpu_time_sec", "0.5", "21"},
    {"mem_limit_mb", "4096", "4097"},
    {"allowed_binaries", "[sg, python]", "[python, sh]"},
    {"enable_jail", "true", "false"},
    {"jailer", "none", NULL},
    {"log_max_mb", "64", "65"},
    {"overlay", "never", NULL},
    {"base", "''", "debian-12"},
    {"project", "sub/project", "../project"},
    {"path", "[]", "[/usr/bin]"},
    {"binds", "[]", "[/etc]"},
    {"env", "[]", "[A=1]"},
};

static int read_as(const char *key, const char *value, bool found, struct px_err *e)
{
    struct px_tasks *tasks = calloc(1, sizeof *tasks);
    char text[256];
    ASSERT(tasks);
    ASSERT(px_fmt(text, sizeof text, "%s: %s\n", key, value) >= 0);
    *e = (struct px_err){0};
    int r = px_task_config_parse(tasks, "f.yaml", found, text, strlen(text), e);
    px_task_config_done(tasks);
    free(tasks);
    return r;
}

/* A new key fails here until it has a row above and one in data/found.def. */
TEST(every_key_of_a_found_configuration_is_judged)
{
    struct px_err e;
    size_t i = 0;
    for (const char *key; (key = px_task_config_key(i)); i++) {
        size_t row = 0;
        while (row < PX_COUNT_OF(rows) && !px_equal(rows[row].key, key))
            row++;
        ASSERT(row < PX_COUNT_OF(rows));
        ASSERT(px_found_way(key) >= 0);
        ASSERT_EQ(px_found_way(key) == PX_FOUND_ANY, rows[row].loose == NULL);
        ASSERT_EQ(read_as(key, rows[row].tight, true, &e), 0);
        ASSERT_EQ(read_as(key, rows[row].tight, false, &e), 0);
        if (!rows[row].loose)
            continue;
        ASSERT_EQ(read_as(key, rows[row].loose, false, &e), 0);
        ASSERT_EQ(read_as(key, rows[row].loose, true, &e), -1);
        ASSERT_EQ(e.code, PX_E_FOUND_LOOSENS);
        ASSERT(strstr(e.what, "f.yaml, line 1") && strstr(e.what, key) && strstr(e.fix, "--config f.yaml"));
    }
    ASSERT_EQ(i, PX_COUNT_OF(rows));
    ASSERT(px_found_way("no_such_key") < 0);
}

TEST(either_name_of_python_is_in_the_usual_list)
{
    struct px_err e;
    ASSERT_EQ(read_as("allowed_binaries", "[python3]", true, &e), 0);
    ASSERT_EQ(read_as("allowed_binaries", "[python2]", true, &e), -1);
    ASSERT_EQ(e.code, PX_E_FOUND_LOOSENS);
}

TEST(paths_below_a_directory)
{
    static const struct {
        const char *path;
        int is;
    } paths[] = {{"a", 0}, {"a/new/b", 0}, {"./a", 0}, {".", 0}, {"", -EXDEV}, {"/a", -EXDEV}, {"..", -EXDEV}, {"a/..", -EXDEV},
                 {"a/../../b", -EXDEV}, {".git", -EXDEV}, {"a/.git/hooks", -EXDEV}, {"out", -ELOOP}, {"out/b", -ELOOP}, {"a/in", -ELOOP},
                 {"file/b", -ENOTDIR}, {"...", 0}, {"..a", 0}};
    px_auto_fd int dir = px_test_dir();
    ASSERT_EQ(mkdirat(dir, "a", 0755), 0);
    ASSERT_EQ(symlinkat("/tmp", dir, "out"), 0);
    ASSERT_EQ(symlinkat(".", dir, "a/in"), 0);
    px_auto_fd int file = openat(dir, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    for (size_t i = 0; i < PX_COUNT_OF(paths); i++)
        ASSERT_EQ(px_found_below(dir, paths[i].path), paths[i].is);
}
