/* The texts in a wheel: headers, RECORD, entry points. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/text.h"
#include "pep/wheel.h"

/* ---- headers ---- */

static size_t line_length(const char *text, size_t length)
{
    const char *end = memchr(text, '\n', length);
    return end ? (size_t)(end - text) : length;
}

static void trim(const char **text, size_t *length)
{
    while (*length && (**text == ' ' || **text == '\t')) {
        (*text)++;
        (*length)--;
    }
    while (*length && strchr(" \t\r", (*text)[*length - 1]))
        (*length)--;
}

static int take_value(const char *value, size_t length, char *out, size_t size)
{
    trim(&value, &length);
    if (length == 0 || length >= size || memchr(value, '\0', length))
        return -EINVAL;
    memcpy(out, value, length);
    out[length] = '\0';
    return 0;
}

int px_wheel_header(const char *text, size_t length, const char *name, unsigned n, char *out, size_t size)
{
    size_t wanted = strlen(name);
    for (size_t at = 0, line; at < length; at += line + 1) {
        line = line_length(text + at, length - at);
        if (line == 0 || (line == 1 && text[at] == '\r'))
            return 1;
        if (line > wanted && text[at + wanted] == ':' && strncasecmp(text + at, name, wanted) == 0 && n-- == 0)
            return take_value(text + at + wanted + 1, line - wanted - 1, out, size);
    }
    return 1;
}

/* ---- RECORD ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int digit_value(char c)
{
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* 43 base64 digits are 32 bytes and two bits, which must be zero. */
static int take_hash(const char *text, struct px_oid *ret_oid)
{
    static const char hex[] = "0123456789abcdef";
    uint32_t bits = 0;
    unsigned have = 0, out = 0;
    for (int i = 0; i < 43; i++) {
        int value = digit_value(text[i]);
        if (value < 0)
            return -EINVAL;
        bits = bits << 6 | (uint32_t)value;
        have += 6;
        for (; have >= 4 && out < 64; have -= 4)
            ret_oid->hex[out++] = hex[bits >> (have - 4) & 15];
    }
    ret_oid->hex[64] = '\0';
    size_t rest = strspn(text + 43, "=");
    return out == 64 && (bits & 3) == 0 && text[43 + rest] == '\0' && rest <= 1 ? 0 : -EINVAL;
}

/* Copies a field up to a comma or the end of the line into out; NULL if it is malformed. */
static const char *take_field(const char *p, const char *end, char *out, size_t size)
{
    size_t n = 0;
    bool quoted = p < end && *p == '"';
    for (p += quoted; p < end; p++) {
        if (quoted && *p == '"' && !(p + 1 < end && p[1] == '"'))
            break;
        if (!quoted && (*p == ',' || *p == '"'))
            break;
        p += quoted && *p == '"';
        if (n + 1 >= size || (unsigned char)*p < ' ')
            return NULL;
        out[n++] = *p;
    }
    out[n] = '\0';
    if (quoted && p++ >= end)
        return NULL;
    return p < end && *p != ',' ? NULL : p;
}

static int take_line(const char *line, size_t length, struct px_record_line *ret)
{
    char path[PX_WHEEL_PATH_MAX] = "", hash[160] = "", size[32] = "";
    const char *end = line + length, *p = take_field(line, end, path, sizeof path);
    bool good = p && p++ < end && (p = take_field(p, end, hash, sizeof hash)) && p++ < end &&
                (p = take_field(p, end, size, sizeof size)) && p == end && path[0];
    struct px_record_line made = {.has_size = size[0] != '\0'};
    if (!good || (hash[0] && (!px_starts_with(hash, "sha256=") || take_hash(hash + 7, &made.sha256) < 0)) ||
        (made.has_size && px_parse_u64(size, UINT64_MAX >> 1, &made.size) < 0))
        return -EINVAL;
    made.path = strdup(path);
    *ret = made;
    return made.path ? 0 : -ENOMEM;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(((const struct px_record_line *)a)->path, ((const struct px_record_line *)b)->path);
}

void px_wheel_record_done(struct px_record_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->items[i].path);
    free(lines->items);
    *lines = (struct px_record_lines){0};
}

static int add_line(struct px_record_lines *lines, const char *text, size_t length)
{
    size_t n = lines->count;
    if (n == PX_WHEEL_FILES_MAX)
        return -EINVAL;
    if ((n & (n - 1)) == 0) {
        struct px_record_line *items = realloc(lines->items, (n ? 2 * n : 1) * sizeof *items);
        if (!items)
            return -ENOMEM;
        lines->items = items;
    }
    int r = take_line(text, length, &lines->items[n]);
    lines->count += r == 0;
    return r;
}

int px_wheel_record(const char *text, size_t length, struct px_record_lines *ret_lines, size_t *ret_line)
{
    struct px_record_lines lines = {0};
    int r = 0;
    *ret_line = 0;
    for (size_t at = 0, n; r == 0 && at < length; at += n + 1) {
        n = line_length(text + at, length - at);
        ++*ret_line;
        size_t end = n && text[at + n - 1] == '\r' ? n - 1 : n;
        r = end ? add_line(&lines, text + at, end) : 0;
    }
    if (r == 0 && lines.count)
        qsort(lines.items, lines.count, sizeof *lines.items, compare_lines);
    for (size_t i = 1; r == 0 && i < lines.count; i++)
        r = px_equal(lines.items[i - 1].path, lines.items[i].path) ? -EINVAL : 0;
    if (r < 0)
        px_wheel_record_done(&lines);
    else
        *ret_lines = lines;
    return r;
}

const struct px_record_line *px_wheel_record_find(const struct px_record_lines *lines, const char *path)
{
    char copy[PX_WHEEL_PATH_MAX];
    struct px_record_line key = {.path = copy};
    if (lines->count == 0 || px_fmt(copy, sizeof copy, "%s", path) < 0)
        return NULL;
    return bsearch(&key, lines->items, lines->count, sizeof key, compare_lines);
}

static unsigned nibble(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

void px_wheel_record_write(struct px_buf *out, const char *path, const struct px_oid *sha256, uint64_t size)
{
    bool quote = strpbrk(path, ",\"") != NULL;
    px_buf_puts(out, quote ? "\"" : "");
    for (const char *p = path; *p; p++) {
        px_buf_puts(out, *p == '"' ? "\"" : "");
        px_buf_putc(out, *p);
    }
    px_buf_puts(out, quote ? "\"" : "");
    if (!sha256) {
        px_buf_puts(out, ",,\n");
        return;
    }
    uint32_t bits = 0;
    unsigned have = 0;
    px_buf_puts(out, ",sha256=");
    for (int i = 0; i < 64; i++) {
        bits = bits << 4 | nibble(sha256->hex[i]);
        have += 4;
        if (have >= 6) {
            have -= 6;
            px_buf_putc(out, digits[bits >> have & 63]);
        }
    }
    px_buf_putc(out, digits[bits << (6 - have) & 63]);
    px_buf_printf(out, ",%llu\n", (unsigned long long)size);
}

/* ---- entry points ---- */

/* Python names separated by dots; characters beyond ASCII are not checked. */
static bool is_dotted(const char *text)
{
    bool start = true;
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        bool letter = ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c >= 0x80, digit = c >= '0' && c <= '9';
        if (*p == '.' ? start : !(letter || (digit && !start)))
            return false;
        start = *p == '.';
    }
    return !start;
}

static bool is_file_name(const char *text)
{
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127 || *p == '/' || *p == '\\')
            return false;
    return text[0] && !px_equal(text, ".") && !px_equal(text, "..");
}

/* "name = module:object [extras]". */
static int take_script(const char *line, size_t length, struct px_script *ret)
{
    const char *equals = memchr(line, '=', length);
    if (!equals)
        return -EINVAL;
    const char *value = equals + 1;
    size_t left = length - (size_t)(value - line);
    const char *bracket = memchr(value, '[', left);
    left = bracket ? (size_t)(bracket - value) : left;
    const char *colon = memchr(value, ':', left);
    if (!colon || take_value(line, (size_t)(equals - line), ret->name, sizeof ret->name) < 0 ||
        take_value(value, (size_t)(colon - value), ret->module, sizeof ret->module) < 0 ||
        take_value(colon + 1, left - (size_t)(colon + 1 - value), ret->object, sizeof ret->object) < 0)
        return -EINVAL;
    return is_file_name(ret->name) && is_dotted(ret->module) && is_dotted(ret->object) ? 0 : -EINVAL;
}

static bool is_section(const char *line, size_t length)
{
    static const char *const wanted[] = {"[console_scripts]", "[gui_scripts]"};
    for (size_t i = 0; i < PX_COUNT_OF(wanted); i++)
        if (length == strlen(wanted[i]) && memcmp(line, wanted[i], length) == 0)
            return true;
    return false;
}

int px_wheel_scripts(const char *text, size_t length, px_script_seen *seen, void *user, size_t *ret_line)
{
    bool inside = false;
    int r = 0;
    *ret_line = 0;
    for (size_t at = 0, n; r == 0 && at < length; at += n + 1) {
        n = line_length(text + at, length - at);
        const char *line = text + at;
        size_t len = n;
        struct px_script script;
        trim(&line, &len);
        ++*ret_line;
        if (len == 0 || *line == '#' || *line == ';')
            continue;
        if (*line == '[')
            inside = is_section(line, len);
        else if (inside && (r = take_script(line, len, &script)) == 0)
            r = seen(user, &script);
    }
    return r;
}

bool px_wheel_is_python(const char *name)
{
    return px_starts_with(name, "python") && name[6 + strspn(name + 6, "0123456789.")] == '\0';
}

/* Read by sh as a command and by Python as a string. sh starts the python in the directory of $0, so that one script
 * works in every environment that links to it. */
const char px_wheel_shebang[] = "#!/bin/sh\n'''exec' \"${0%/*}/python\" \"$0\" \"$@\"\n' '''\n";

void px_wheel_script_write(struct px_buf *out, const struct px_script *script)
{
    px_buf_puts(out, px_wheel_shebang);
    px_buf_printf(out, "import sys\n\nfrom %s import %.*s\n\nif __name__ == \"__main__\":\n    sys.exit(%s())\n",
                  script->module, (int)strcspn(script->object, "."), script->object, script->object);
}
