#include "store/canonical.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"

enum { LARGEST_BITS = 53 };

static int add_value(struct px_json *j, const char *name, const json_t *value, int depth);

static int compare_keys(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);      /* the order of UTF-8 bytes is the order of code points */
}

static int add_object(struct px_json *j, const json_t *object, int depth)
{
    size_t count = json_object_size(object), i = 0;
    const char **keys = calloc(count + 1, sizeof *keys);
    const char *key;
    json_t *value;
    int r = keys ? 0 : -ENOMEM;

    if (!keys)
        return r;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
        keys[i++] = key;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (i = 0; r == 0 && i < count; i++)
        r = add_value(j, keys[i], json_object_get(object, keys[i]), depth);
    free(keys);
    return r;
}

static int add_array(struct px_json *j, const json_t *array, int depth)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < json_array_size(array); i++)
        r = add_value(j, NULL, json_array_get(array, i), depth);
    return r;
}

static int add_level(struct px_json *j, const char *name, const json_t *value, int depth)
{
    bool object = json_is_object(value);

    if (depth == PX_CANONICAL_DEPTH)
        return -EINVAL;
    if (object)
        px_json_object(j, name);
    else
        px_json_array(j, name);
    int r = object ? add_object(j, value, depth + 1) : add_array(j, value, depth + 1);
    if (r == 0)
        px_json_end(j);
    return r;
}

static int add_number(struct px_json *j, const char *name, json_int_t number)
{
    const json_int_t largest = ((json_int_t)1 << LARGEST_BITS) - 1;

    if (number > largest || number < -largest)
        return -EINVAL;
    px_json_int(j, name, number);
    return 0;
}

static int add_value(struct px_json *j, const char *name, const json_t *value, int depth)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return add_level(j, name, value, depth);
    case JSON_STRING:
        px_json_bytes(j, name, json_string_value(value), json_string_length(value));
        return 0;
    case JSON_INTEGER:
        return add_number(j, name, json_integer_value(value));
    case JSON_TRUE:
    case JSON_FALSE:
        px_json_bool(j, name, json_is_true(value));
        return 0;
    case JSON_NULL:
        px_json_null(j, name);
        return 0;
    case JSON_REAL:
        break;
    }
    return -EINVAL;
}

int px_canonical(const json_t *value, struct px_buf *out)
{
    struct px_json j = {.out = out};
    int r = value ? add_value(&j, NULL, value, 0) : -EINVAL;

    return r < 0 ? r : out->err;
}
