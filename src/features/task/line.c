#include "task/line.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

struct reader {
    struct px_task_line *line;
    uint64_t number;
};

static int wrong(const struct reader *r, const char *key, const char *what, struct px_err *e)
{
    return px_fail(e, PX_E_ACTIONS, 0, "line %llu: '%.40s' %s", (unsigned long long)r->number, key, what);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
}

/* ---- values ---- */

static int read_text(struct reader *r, const char *key, const json_t *value, void *out, struct px_err *e)
{
    if (!is_text(value))
        return wrong(r, key, "must be a text", e);
    *(const char **)out = json_string_value(value);
    return 0;
}

static int read_flag(struct reader *r, const char *key, const json_t *value, void *out, struct px_err *e)
{
    if (!json_is_boolean(value))
        return wrong(r, key, "must be true or false", e);
    *(bool *)out = json_is_true(value);
    return 0;
}

static int read_seconds(struct reader *r, const char *key, const json_t *value, void *out, struct px_err *e)
{
    double seconds = json_number_value(value);
    if (!json_is_number(value) || !(seconds >= 0.001) || seconds > 1e7)
        return wrong(r, key, "must be a number of seconds, more than 0", e);
    (void)px_fmt(out, sizeof r->line->limits[0], "%llums", (unsigned long long)(seconds * 1000));
    return 0;
}

static int read_megabytes(struct reader *r, const char *key, const json_t *value, void *out, struct px_err *e)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > INT32_MAX)
        return wrong(r, key, "must be a number of megabytes, more than 0", e);
    (void)px_fmt(out, sizeof r->line->limits[0], "%lldm", (long long)json_integer_value(value));
    return 0;
}

/* A value that is not a list of strings is still a command, answered with invalid_command. */
static int read_command(struct reader *r, const char *key, const json_t *value, void *out, struct px_err *e)
{
    size_t count = json_array_size(value);
    const char **command = calloc(count + 1, sizeof *command);
    (void)key;
    (void)out;
    if (!command)
        return px_no_memory(e);
    r->line->has_command = true;
    for (size_t i = 0; i < count; i++) {
        if (!is_text(json_array_get(value, i))) {
            free(command);
            return 0;
        }
        command[i] = json_string_value(json_array_get(value, i));
    }
    r->line->command = command;
    return 0;
}

static int read_files(struct reader *r, const char *key, const json_t *value, void *out, struct px_err *e)
{
    struct px_task_line *line = r->line;
    const char *path;
    json_t *text;
    (void)out;
    if (!json_is_object(value))
        return wrong(r, key, "must be an object of paths and texts", e);
    line->files = calloc(json_object_size(value) + 1, sizeof *line->files);
    if (!line->files)
        return px_no_memory(e);
    json_object_foreach((json_t *)(uintptr_t)value, path, text)
    {
        if (!json_is_string(text))
            return wrong(r, path, "must be the text of a file", e);
        line->files[line->files_count++] = (struct px_task_file){path, json_string_value(text), json_string_length(text)};
    }
    return 0;
}

static int read_id(struct reader *r, const char *key, const json_t *value, void *out, struct px_err *e)
{
    if (!json_is_string(value) && !json_is_integer(value))
        return wrong(r, key, "must be a text or a whole number", e);
    *(const json_t **)out = value;
    return 0;
}

/* ---- keys ---- */

#define AT(member) offsetof(struct px_task_line, member)
static const struct field {
    const char *key;
    int (*read)(struct reader *r, const char *key, const json_t *value, void *out, struct px_err *e);
    size_t at;
} fields[] = {
    {"task", read_text, AT(task)},
    {"from", read_text, AT(from)},
    {"id", read_id, AT(id)},
    {"files", read_files, 0},
    {"command", read_command, 0},
    {"timeout_sec", read_seconds, AT(limits[0])},
    {"cpu_time_sec", read_seconds, AT(limits[1])},
    {"mem_limit_mb", read_megabytes, AT(limits[2])},
    {"discard", read_flag, AT(action.discard)},
    {"discard_on_timeout", read_flag, AT(action.discard_on_timeout)},
    {"test", read_flag, AT(action.test)},
    {"cleanup", read_flag, AT(cleanup)},
    {0},
};

static int read_fields(struct reader *r, struct px_err *e)
{
    const char *key;
    json_t *value;
    json_object_foreach(r->line->json, key, value)
    {
        const struct field *f = fields;
        while (f->key && strcmp(f->key, key) != 0)
            f++;
        if (!f->key)
            return wrong(r, key, "is no key that is known here", e);
        if (f->read(r, key, value, (char *)r->line + f->at, e) < 0)
            return -1;
    }
    if (!r->line->task)
        return wrong(r, "task", "is missing", e);
    if (!r->line->has_command && !r->line->files && !r->line->from && !r->line->cleanup)
        return wrong(r, "command", "is missing", e);
    return 0;
}

static void finish(struct px_task_line *line)
{
    const char **limits[] = {&line->action.timeout, &line->action.cpu_time, &line->action.memory};
    for (size_t i = 0; i < PX_COUNT_OF(limits); i++)
        *limits[i] = line->limits[i][0] ? line->limits[i] : NULL;
    line->action.command = line->command;
}

int px_task_line_read(const char *text, size_t len, uint64_t number, struct px_task_line *ret, struct px_err *e)
{
    json_error_t error;
    struct reader r = {ret, number};
    *ret = (struct px_task_line){0};
    if (len > PX_TASK_JSON_MAX)
        return px_fail(e, PX_E_ACTIONS, 0, "line %llu is longer than %d bytes", (unsigned long long)number, PX_TASK_JSON_MAX);
    ret->json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!ret->json)
        return px_fail(e, PX_E_ACTIONS, 0, "line %llu is no JSON: %.150s", (unsigned long long)number, error.text);
    int done = json_is_object(ret->json) ? read_fields(&r, e) : wrong(&r, "this", "must be an object", e);
    const json_t *id = json_object_get(ret->json, "id");
    if (done < 0) {
        ret->id = json_is_string(id) || json_is_integer(id) ? id : NULL;
        return -1;
    }
    finish(ret);
    return 0;
}

void px_task_line_done(struct px_task_line *line)
{
    free(line->command);
    free(line->files);
    json_decref(line->json);
    *line = (struct px_task_line){0};
}
