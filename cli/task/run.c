/* px task run: a file of actions, many boxes at once. px task report: what came of it. */
#include "cli/task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"

static int print_result(void *user, const char *json, size_t len)
{
    (void)user;
    return fwrite(json, 1, len, stdout) == len && fputc('\n', stdout) != EOF && fflush(stdout) == 0 ? 0 : -EIO;
}

static int open_actions(struct call *c, char name[PATH_MAX], int *ret_fd)
{
    if (!c->w.from)
        return make_error(&c->e, PX_E_USAGE, "Write px task run --from FILE.", "--from is missing");
    if (strcmp(c->w.from, "-") == 0) {
        *ret_fd = STDIN_FILENO;
        return 0;
    }
    *ret_fd = open(c->w.from, O_RDONLY | O_CLOEXEC);
    if (*ret_fd < 0 || !realpath(c->w.from, name)) {
        (void)make_error(&c->e, PX_E_IO, NULL, "the actions in '%.300s' cannot be read", c->w.from);
        c->e.sys = errno;
        return -1;
    }
    return 0;
}

static unsigned jobs_of(const struct call *c)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return c->w.jobs ? (unsigned)c->w.jobs : cpus > 0 && cpus < 1024 ? (unsigned)cpus : 1;
}

static void sum_up(const struct call *c, const struct px_tasks_count *n)
{
    if (c->cli->verbose >= 0)
        say("px: %llu lines: %llu ok, %llu with another exit code, %llu could not be run, %llu done before",
            (unsigned long long)n->lines, (unsigned long long)n->ok, (unsigned long long)n->nonzero,
            (unsigned long long)n->failed, (unsigned long long)n->skipped);
}

int verb_run(struct call *c)
{
    char name[PATH_MAX] = "";
    struct progress shown = {0};
    struct px_tasks_count count = {0};
    struct px_tasks_batch batch = {.actions = -1, .jobs = jobs_of(c), .each = print_result, .progress = progress_tell, .user = &shown};
    if (open_actions(c, name, &batch.actions) < 0)
        return say_error(c->cli, &c->e, USAGE_STATUS);
    batch.name = c->w.name ? c->w.name : *name ? name : NULL;
    allow_many_files();
    int r = px_tasks_ready(c->tasks, &c->e);
    wipe_environment();
    progress_begin(&shown, c->cli->verbose < 0 || !isatty(STDERR_FILENO));
    if (r >= 0)
        r = px_tasks_run(c->tasks, &batch, &count, &c->e);
    progress_end(&shown);
    if (batch.actions > STDIN_FILENO)
        (void)close(batch.actions);
    if (r < 0)
        return say_error(c->cli, &c->e, 1);
    sum_up(c, &count);
    return flush() || count.failed > 0;
}

static int write_page(struct call *c, const char *text)
{
    struct report page = {.dir = -1};
    bool written = open_report(c->w.html, &page) == 0 && write_report(&page, text) == 0;
    if (page.dir >= 0)
        (void)close(page.dir);
    return written ? 0 : make_error(&c->e, PX_E_IO, NULL, "the report cannot be written to '%.300s'", c->w.html);
}

/* The same in words, a line each. */
static int print_counts(const char *json)
{
    const char *name;
    json_t *all = json_loads(json, 0, NULL), *value;
    json_object_foreach(all, name, value)
    {
        if (json_is_integer(value) && strcmp(name, "schema") != 0)
            (void)print("%-14s%lld\n", name, (long long)json_integer_value(value));
    }
    json_object_foreach(json_object_get(all, "duration_sec"), name, value)
    {
        (void)print("seconds %-6s%.3f\n", name, json_number_value(value));
    }
    json_decref(all);
    return flush();
}

int verb_report(struct call *c)
{
    const char *dir = c->w.names_count ? c->w.names[0] : px_tasks_config(c->tasks)->logs_dir;
    char *json = NULL, *html = NULL;
    int r = px_tasks_report(dir, &json, c->w.html ? &html : NULL, &c->e);
    if (r >= 0 && html)
        r = write_page(c, html);
    int status = r < 0 ? say_error(c->cli, &c->e, 1) : c->cli->json ? print_document(json) < 0 : print_counts(json);
    free(json);
    free(html);
    return status;
}
