/* fuzz/fuzz_task.c - any bytes as the configuration of tasks, as a line of actions, and as a path of a workspace. */
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "fuzz.h"
#include "task/line.h"
#include "task/task.h"

static void check_config(const char *text, size_t size)
{
    struct px_tasks tasks = {0};
    struct px_err e = {0};
    if (px_task_config_parse(&tasks, "x", size % 2 != 0, text, size, &e) < 0)
        CHECK(e.code != 0 && e.what[0]);
    else
        CHECK(tasks.config.work_root[0] && tasks.config.logs_dir[0] && tasks.config.timeout_msec && tasks.config.cpu_time_msec &&
              tasks.config.memory_bytes && tasks.config.allowed);
    px_task_config_done(&tasks);
}

static void check_line(const char *text, size_t size)
{
    struct px_task_line line;
    struct px_err e = {0};
    if (px_task_line_read(text, size, 1, &line, &e) < 0) {
        CHECK(e.code != 0 && e.what[0] && (!line.id || line.json));
        px_task_line_done(&line);
        return;
    }
    CHECK(line.task && (line.has_command || line.files || line.from || line.cleanup));
    CHECK(!line.command || line.has_command);
    px_task_line_done(&line);
}

static void check_path(const char *text)
{
    char path[PATH_MAX];
    struct px_err e = {0};
    if (px_task_path(text, path, sizeof path, &e) < 0) {
        CHECK(e.code != 0);
        return;
    }
    CHECK(path[0] && path[0] != '/' && strlen(path) <= strlen(text) && !strstr(path, "//"));
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        size_t n = strcspn(p, "/");
        CHECK(n > 0 && !(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '.' && p[1] == '.'));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    check_config(text, size);
    check_line(text, size);
    check_path(text);
    free(text);
    return 0;
}
