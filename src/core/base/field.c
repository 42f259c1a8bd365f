/* base/field.c - the types of fields, and the functions of a field table. */
#include "base/field.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

static const char unlimited[] = "unlimited";

/* ---- text ---- */

static int text_parse(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    char **value = at;
    char *copy = strdup(text);

    if (!copy)
        return px_fail(e, PX_E_MEMORY, -ENOMEM, "--%s: no memory for its value", field->name);
    free(*value);
    *value = copy;
    return 0;
}

static void text_print(const void *at, const struct px_field *field, struct px_json *json)
{
    px_json_text(json, field->name, *(char *const *)at);
}

static void text_done(void *at)
{
    char **value = at;

    free(*value);
    *value = NULL;
}

const struct px_field_type px_field_text = {"text", text_parse, text_print, text_done};

/* ---- numbers: one shape, four grammars ---- */

struct grammar {
    int (*parse)(const char *text, uint64_t *ret_value);
    const char *noun;           /* "'12q' is not ..." */
    const char *fix;
};

static int parse_count(const char *text, uint64_t *ret_value)
{
    return px_parse_u64(text, UINT64_MAX, ret_value);
}

static const struct grammar sizes = {px_parse_bytes, "a size", "Write a size such as 512m, 1.5g or 2GB, or unlimited."};
static const struct grammar times = {px_parse_msec, "a time", "Write a time such as 10s, 250ms, 1m30s or 2h, or unlimited."};
static const struct grammar counts = {parse_count, "a count", "Write a plain number such as 64, or unlimited."};
static const struct grammar millis = {px_parse_milli, "a number",
                                      "Write a number with at most three decimals such as 2 or 1.5, or unlimited."};

static int number_parse(const struct grammar *g, void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    uint64_t value = UINT64_MAX;
    int r = strcmp(text, unlimited) == 0 ? 0 : g->parse(text, &value);

    if (r == 0 && value == UINT64_MAX && strcmp(text, unlimited) != 0)
        r = -ERANGE;            /* a number must never mean "no limit" by accident */
    if (r == -ERANGE)
        px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is too large", field->name, text);
    else if (r < 0)
        px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is not %s", field->name, text, g->noun);
    if (r < 0)
        return px_fix(e, "%s", g->fix);
    memcpy(at, &value, sizeof value);
    return 0;
}

static int bytes_parse(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    return number_parse(&sizes, at, field, text, e);
}

static int msec_parse(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    return number_parse(&times, at, field, text, e);
}

static int count_parse(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    return number_parse(&counts, at, field, text, e);
}

static int milli_parse(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    return number_parse(&millis, at, field, text, e);
}

/* Prints what the field's own grammar reads: bytes, seconds, plain numbers. */
static void number_print(const void *at, const struct px_field *field, struct px_json *json, int decimals)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
    if (value == UINT64_MAX)
        px_json_text(json, field->name, unlimited);
    else
        px_json_decimal(json, field->name, value, decimals);
}

static void whole_print(const void *at, const struct px_field *field, struct px_json *json)
{
    number_print(at, field, json, 0);
}

static void thousandths_print(const void *at, const struct px_field *field, struct px_json *json)
{
    number_print(at, field, json, 3);
}

const struct px_field_type px_field_bytes = {"size", bytes_parse, whole_print, NULL};
const struct px_field_type px_field_msec = {"time", msec_parse, thousandths_print, NULL};
const struct px_field_type px_field_count = {"count", count_parse, whole_print, NULL};
const struct px_field_type px_field_milli = {"number", milli_parse, thousandths_print, NULL};

/* ---- bool ---- */

static int bool_parse(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    static const char *const words[] = {"false", "true", "no", "yes", "0", "1", "off", "on"};

    for (size_t i = 0; i < PX_COUNT_OF(words); i++)
        if (strcmp(text, words[i]) == 0) {
            *(bool *)at = i % 2 == 1;
            return 0;
        }
    px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is neither true nor false", field->name, text);
    return px_fix(e, "Write true or false (also yes, no, on, off, 1, 0).");
}

static void bool_print(const void *at, const struct px_field *field, struct px_json *json)
{
    px_json_bool(json, field->name, *(const bool *)at);
}

const struct px_field_type px_field_bool = {"bool", bool_parse, bool_print, NULL};

/* ---- choice ---- */

static int choice_refuse(const struct px_field *field, const char *text, struct px_err *e)
{
    char list[512];
    struct px_buf b = {.data = list, .cap = sizeof list, .max = sizeof list - 1};       /* over the array: no allocation */

    list[0] = 0;
    for (size_t i = 0; field->words && field->words[i]; i++)
        px_buf_printf(&b, "%s%s", i ? ", " : "", field->words[i]);
    px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is not one of its words", field->name, text);
    return px_fix(e, "Write one of: %s.", list);
}

static int choice_parse(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    for (int i = 0; field->words && field->words[i]; i++)
        if (strcmp(text, field->words[i]) == 0) {
            *(int *)at = i;
            return 0;
        }
    return choice_refuse(field, text, e);
}

static void choice_print(const void *at, const struct px_field *field, struct px_json *json)
{
    int value = *(const int *)at;
    int count = 0;

    while (field->words && field->words[count])
        count++;
    px_json_text(json, field->name, value >= 0 && value < count ? field->words[value] : NULL);
}

const struct px_field_type px_field_choice = {"choice", choice_parse, choice_print, NULL};

/* ---- tables ---- */

const struct px_field *px_field_find(const struct px_field *table, const char *name, size_t name_len)
{
    for (const struct px_field *f = table; f->name; f++)
        if (strlen(f->name) == name_len && memcmp(f->name, name, name_len) == 0)
            return f;
    return NULL;
}

static void *place(const struct px_field *field, void *request)
{
    return (char *)request + field->offset;
}

int px_field_set(const struct px_field *field, void *request, const char *text, struct px_err *e)
{
    if (field->flags & PX_FIELD_ABSENT)
        return px_fail(e, PX_E_NOT_BUILT, 0, "--%s is not part of this build", field->name);
    if (!text && field->flags & PX_FIELD_FLAG)
        text = "true";
    if (!text && field->flags & PX_FIELD_OPTIONAL)
        text = "";
    if (!text) {
        px_fail(e, PX_E_VALUE, 0, "--%s needs a value", field->name);
        return px_fix(e, "Write --%s %s.", field->name, field->arg ? field->arg : "VALUE");
    }
    return field->type->parse(place(field, request), field, text, e);
}

/* A field that this build lacks has no member in the request. */
static bool has_place(const struct px_field *field)
{
    return !(field->flags & PX_FIELD_ABSENT) && field->type;
}

void px_field_print(const struct px_field *table, const void *request, struct px_json *json)
{
    for (const struct px_field *f = table; f->name; f++)
        if (has_place(f) && f->type->print)
            f->type->print((const char *)request + f->offset, f, json);
}

void px_field_done(const struct px_field *table, void *request)
{
    for (const struct px_field *f = table; f->name; f++)
        if (has_place(f) && f->type->done)
            f->type->done(place(f, request));
}
