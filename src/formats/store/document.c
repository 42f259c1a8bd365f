#include "store/document.h"


#include "base/err.h"

/* Bounds the depth and the number of values, which jansson does not. Strings are skipped. For text that is not JSON the
 * result does not matter: jansson refuses it later. */
static const char *too_large(const char *text, size_t len)
{
    unsigned depth = 0, values = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '"') {
            for (i++; i < len && text[i] != '"'; i++)
                i += text[i] == '\\';
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
        }
        values += c == ',' || c == '{' || c == '[';
        if (depth > PX_DOCUMENT_DEPTH_MAX)
            return "it is nested too deeply";
        if (values > PX_DOCUMENT_VALUES_MAX)
            return "it holds too many values";
    }
    return NULL;
}

int px_document_read(const char *text, size_t len, const char *what, int code, json_t **ret_document, struct px_err *e)
{
    json_error_t error;
    const char *reason = too_large(text, len);
    if (reason) {
        (void)px_fail(e, (enum px_code)code, 0, "%s cannot be read", what);
        return px_why(e, "%s", reason);
    }
    json_t *document = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (!document && json_error_code(&error) == json_error_out_of_memory)        /* not an error of the text */
        return px_no_memory(e);
    if (!document) {
        (void)px_fail(e, (enum px_code)code, 0, "%s cannot be read", what);
        return px_why(e, "It is not JSON: line %d, column %d: %.100s.", error.line, error.column, error.text);
    }
    *ret_document = document;
    return 0;
}

const char *px_document_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

int px_document_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret_number)
{
    const json_t *value = json_object_get(object, name);
    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > max)
        return -1;
    *ret_number = (uint64_t)json_integer_value(value);
    return 1;
}

void px_document_freep(json_t **document)
{
    if (*document)
        json_decref(*document);
    *document = NULL;
}
