/* base/json.c - the one JSON writer. */
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

/* depth: how many levels are open; FINISHED once the one value at the top is complete, so that nothing can follow it. */
enum { FINISHED = -1 };

static bool misuse(struct px_json *j)
{
    if (j->out->err == 0)
        j->out->err = -EINVAL;
    return false;
}

static void add_line(struct px_json *j)
{
    if (!j->pretty)
        return;
    px_buf_putc(j->out, '\n');
    for (int i = 0; i < j->depth; i++)
        px_buf_puts(j->out, "  ");
}

/* Characters that a terminal interprets are escaped too, so that printing a document is safe. */
static bool needs_escape(const unsigned char *u, size_t len)
{
    return (len == 1 && (u[0] == '"' || u[0] == '\\')) || px_utf8_is_control((const char *)u, len);
}

static void add_escape(struct px_buf *out, const unsigned char *u, size_t len)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = len == 1 && u[0] ? strchr(plain, u[0]) : NULL;

    if (at) {
        px_buf_putc(out, '\\');
        px_buf_putc(out, letters[at - plain]);
        return;
    }
    unsigned point = len == 1   ? u[0]
                     : len == 2 ? (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu)
                                : (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
    px_buf_printf(out, "\\u%04x", point);
}

static void add_string(struct px_buf *out, const char *text, size_t len)
{
    size_t plain = 0;           /* where the run of bytes without escapes begins */

    px_buf_putc(out, '"');
    for (size_t i = 0; i < len;) {
        const unsigned char *at = (const unsigned char *)text + i;
        size_t n = px_utf8_length(text + i, len - i);

        if (n > 0 && !needs_escape(at, n)) {
            i += n;
            continue;
        }
        px_buf_add(out, text + plain, i - plain);
        if (n > 0)
            add_escape(out, at, n);
        else
            px_buf_puts(out, "\xef\xbf\xbd");
        i += n ? n : 1;
        plain = i;
    }
    px_buf_add(out, text + plain, len - plain);
    px_buf_putc(out, '"');
}

/* Writes what comes before a value: comma, newline, name. False if no value is allowed here. */
static bool begin_value(struct px_json *j, const char *name)
{
    if (j->depth == 0)
        return name ? misuse(j) : true;
    if (j->depth < 0 || (j->close[j->depth - 1] == '}') != (name != NULL))
        return misuse(j);

    bool *any = &j->any[j->depth - 1];
    if (*any)
        px_buf_putc(j->out, ',');
    *any = true;
    add_line(j);
    if (name) {
        add_string(j->out, name, strlen(name));
        px_buf_puts(j->out, j->pretty ? ": " : ":");
    }
    return true;
}

static void end_value(struct px_json *j)
{
    if (j->depth == 0)
        j->depth = FINISHED;
}

static void open_level(struct px_json *j, const char *name, char open, char close)
{
    if (j->depth >= PX_JSON_DEPTH) {
        misuse(j);
        return;
    }
    if (!begin_value(j, name))
        return;
    px_buf_putc(j->out, open);
    j->close[j->depth] = close;
    j->any[j->depth] = false;
    j->depth++;
}

void px_json_object(struct px_json *j, const char *name)
{
    open_level(j, name, '{', '}');
}

void px_json_array(struct px_json *j, const char *name)
{
    open_level(j, name, '[', ']');
}

void px_json_end(struct px_json *j)
{
    if (j->depth <= 0) {
        misuse(j);
        return;
    }
    j->depth--;
    if (j->any[j->depth])
        add_line(j);
    px_buf_putc(j->out, j->close[j->depth]);
    end_value(j);
}

/* A value without quotes: number, true, false, null. */
static void add_word(struct px_json *j, const char *name, const char *word)
{
    if (!begin_value(j, name))
        return;
    px_buf_puts(j->out, word);
    end_value(j);
}

void px_json_text(struct px_json *j, const char *name, const char *text)
{
    if (text)
        px_json_bytes(j, name, text, strlen(text));
    else
        px_json_null(j, name);
}

void px_json_bytes(struct px_json *j, const char *name, const void *data, size_t len)
{
    if (!begin_value(j, name))
        return;
    add_string(j->out, len ? data : "", len);
    end_value(j);
}

void px_json_int(struct px_json *j, const char *name, int64_t value)
{
    char digits[24];

    (void)px_fmt(digits, sizeof digits, "%" PRId64, value);
    add_word(j, name, digits);
}

void px_json_uint(struct px_json *j, const char *name, uint64_t value)
{
    char digits[24];

    (void)px_fmt(digits, sizeof digits, "%" PRIu64, value);
    add_word(j, name, digits);
}

void px_json_bool(struct px_json *j, const char *name, bool value)
{
    add_word(j, name, value ? "true" : "false");
}

void px_json_null(struct px_json *j, const char *name)
{
    add_word(j, name, "null");
}

void px_json_value(struct px_json *j, const char *name, const char *json)
{
    size_t len = strlen(json);
    if (len == 0) {
        misuse(j);
        return;
    }
    if (!begin_value(j, name))
        return;
    px_buf_add(j->out, json, len - (json[len - 1] == '\n'));
    end_value(j);
}

void px_json_decimal(struct px_json *j, const char *name, uint64_t value, int decimals)
{
    uint64_t scale = 1;
    char digits[48];

    if (decimals < 0 || decimals > 19) {        /* 10^19 is the largest power of ten in 64 bits */
        misuse(j);
        return;
    }
    if (decimals == 0) {
        px_json_uint(j, name, value);
        return;
    }
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    (void)px_fmt(digits, sizeof digits, "%" PRIu64 ".%0*" PRIu64, value / scale, decimals, value % scale);
    add_word(j, name, digits);
}
