/* An operation on files asked for in JSON, as a model or a program in another language does. */
#include <jansson.h>
#include <px/files.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "files/files.h"

enum { REQUEST_MAX = 256 << 20 };

struct request {
    struct px_files_ask ask;
    struct px_files_edit edits[PX_FILES_EDITS_MAX];
    const char *exclude[PX_FILES_EXCLUDE_MAX + 2];
};

struct field {
    const char *name;
    int (*read)(const struct field *field, const json_t *value, const struct px_files *files, struct request *r,
                struct px_err *e);
    size_t at;                  /* in struct px_files_ask */
};

static int bad(const char *name, const char *wanted, struct px_err *e)
{
    (void)px_fail(e, PX_E_VALUE, 0, "'%s' must be %s", name, wanted);
    (void)px_why(e, "The request's JSON has another type or value there.");
    return px_fix(e, "px-file(1) has the members of a request.");
}

static void *place(const struct field *field, struct request *r)
{
    return (char *)&r->ask + field->at;
}

/* ---- kinds of members ---- */

static int read_text(const struct field *field, const json_t *value, const struct px_files *files, struct request *r,
                     struct px_err *e)
{
    (void)files;
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return bad(field->name, "a text without NUL", e);
    const char *text = json_string_value(value);
    memcpy(place(field, r), &text, sizeof text);
    return 0;
}

/* A NUL in a path is an attempt to say two things at once: it is nowhere. */
static int read_path(const struct field *field, const json_t *value, const struct px_files *files, struct request *r,
                     struct px_err *e)
{
    if (json_is_string(value) && strlen(json_string_value(value)) != json_string_length(value))
        return px_files_error_outside(files, json_string_value(value), json_string_length(value), e);
    return read_text(field, value, files, r, e);
}

static int read_content(const struct field *field, const json_t *value, const struct px_files *files, struct request *r,
                        struct px_err *e)
{
    (void)files;
    if (!json_is_string(value))
        return bad(field->name, "a text", e);
    r->ask.content = json_string_value(value);
    r->ask.content_len = json_string_length(value);
    return 0;
}

static int read_count(const struct field *field, const json_t *value, const struct px_files *files, struct request *r,
                      struct px_err *e)
{
    (void)files;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return bad(field->name, "a number from 0", e);
    uint64_t count = (uint64_t)json_integer_value(value);
    memcpy(place(field, r), &count, sizeof count);
    r->ask.use_max_chars |= strcmp(field->name, "max_chars") == 0;
    return 0;
}

static int read_bool(const struct field *field, const json_t *value, const struct px_files *files, struct request *r,
                     struct px_err *e)
{
    (void)files;
    if (!json_is_boolean(value))
        return bad(field->name, "true or false", e);
    *(bool *)place(field, r) = json_is_true(value);
    return 0;
}

static int read_exclude(const struct field *field, const json_t *value, const struct px_files *files, struct request *r,
                        struct px_err *e)
{
    (void)files;
    size_t n = json_array_size(value);
    if (!json_is_array(value) || n > PX_FILES_EXCLUDE_MAX)
        return bad(field->name, "an array of at most 16 patterns", e);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
            return bad(field->name, "an array of texts", e);
        r->exclude[i] = json_string_value(item);
    }
    r->exclude[n] = NULL;
    r->ask.query.exclude = r->exclude;
    return 0;
}

static int read_edit(const json_t *value, struct px_files_edit *ret, struct px_err *e)
{
    const json_t *old = json_object_get(value, "old_text"), *new = json_object_get(value, "new_text");
    old = old ? old : json_object_get(value, "oldText");
    new = new ? new : json_object_get(value, "newText");
    if (!json_is_string(old) || !json_is_string(new) || json_object_size(value) != 2)
        return bad("edits", "an array of objects with old_text and new_text", e);
    *ret = (struct px_files_edit){json_string_value(old), json_string_value(new), json_string_length(old),
                                  json_string_length(new)};
    return 0;
}

static int read_edits(const struct field *field, const json_t *value, const struct px_files *files, struct request *r,
                      struct px_err *e)
{
    (void)files;
    size_t n = json_array_size(value);
    if (!json_is_array(value) || n == 0 || n > PX_FILES_EDITS_MAX)
        return bad(field->name, "an array of 1 to 256 edits", e);
    for (size_t i = 0; i < n; i++)
        if (read_edit(json_array_get(value, i), &r->edits[i], e) < 0)
            return -1;
    r->ask.edits = r->edits;
    r->ask.edits_count = n;
    return 0;
}

#define AT(member) offsetof(struct px_files_ask, member)
static const struct field fields[] = {
    {"path", read_path, AT(path)},
    {"to", read_path, AT(to)},
    {"content", read_content, 0},
    {"edits", read_edits, 0},
    {"dry_run", read_bool, AT(dry_run)},
    {"offset", read_count, AT(offset)},
    {"max_chars", read_count, AT(max_chars)},
    {"pattern", read_text, AT(query.pattern)},
    {"exclude", read_exclude, 0},
    {"text", read_text, AT(query.text)},
    {"ignore_case", read_bool, AT(query.ignore_case)},
    {"directories", read_bool, AT(query.directories)},
    {"max_results", read_count, AT(query.max_results)},
};

/* ---- a request ---- */

static int read_member(const struct px_files *files, const char *name, const json_t *value, struct request *r,
                       struct px_err *e)
{
    for (size_t i = 0; i < PX_COUNT_OF(fields); i++)
        if (strcmp(fields[i].name, name) == 0)
            return fields[i].read(&fields[i], value, files, r, e);
    (void)px_fail(e, PX_E_VALUE, 0, "there is no member '%s' of a request about files", name);
    return px_fix(e, "px-file(1) has the members of a request.");
}

static int read_request(const struct px_files *files, json_t *doc, struct request *r, struct px_err *e)
{
    const char *name;
    json_t *value;
    if (!json_is_object(doc))
        return px_fail(e, PX_E_VALUE, 0, "the request is no JSON object");
    json_object_foreach(doc, name, value)
        if (read_member(files, name, value, r, e) < 0)
            return -1;
    return 0;
}

int px_files_call_json(const struct px_files *files, const char *op, const char *json, size_t len,
                       struct px_files_answer *ret_answer, struct px_err *e)
{
    PX_ERR(e);
    json_error_t error;
    if (len > REQUEST_MAX)
        return px_fail(e, PX_E_LIMIT, 0, "the request is larger than %d bytes", REQUEST_MAX);
    json_t *doc = json_loadb(json, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!doc)
        return px_fail(e, PX_E_VALUE, 0, "the request is no JSON: %s", error.text);
    struct request *r = calloc(1, sizeof *r);
    int result = -1;
    if (!r) {
        (void)px_files_error_memory(e);
    } else if (read_request(files, doc, r, e) == 0) {
        r->ask.op = op;
        result = px_files_call(files, &r->ask, ret_answer, e);
    }
    free(r);
    json_decref(doc);
    return result;
}
