/* fuzz/fuzz_json.c - the JSON writer driven by arbitrary calls with arbitrary bytes.
 *
 * The input is a program: its first byte says whether the calls are disciplined (a name where one is due) or wild, pretty or
 * compact, in a large buffer or a small one; each further byte is a call, some followed by bytes for its argument. Whatever
 * the writer calls complete and without error must be one strict JSON text: a checker of its own below reads it. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "fuzz.h"

/* ---- the checker: each function returns the place behind what it read, or NULL ---- */

static const char *check_value(const char *at, const char *end, int depth);

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n'))     /* the writer has no use for tabs and returns */
        at++;
    return at;
}

static const char *check_escape(const char *at, const char *end)
{
    if (at == end)
        return NULL;
    if (*at != 'u')
        return memchr("\"\\/bfnrt", *at, 8) ? at + 1 : NULL;
    if (end - at < 5)
        return NULL;
    for (int i = 1; i <= 4; i++)
        if (!memchr("0123456789abcdef", at[i], 16))
            return NULL;
    return at + 5;
}

/* One character beyond ASCII: decoded, then checked against what UTF-8 forbids. */
static const char *check_wide(const char *at, const char *end)
{
    unsigned char first = (unsigned char)*at;
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    unsigned point = first & (0x3fu >> more);
    static const unsigned smallest[] = {0, 0x80, 0x800, 0x10000};

    if (first < 0xc0 || first >= 0xf8 || end - at <= more)
        return NULL;
    for (int i = 1; i <= more; i++) {
        if (((unsigned char)at[i] & 0xc0) != 0x80)
            return NULL;
        point = point << 6 | ((unsigned char)at[i] & 0x3f);
    }
    if (point < smallest[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) || point < 0xa0)
        return NULL;            /* the C1 controls would reach a terminal */
    return at + more + 1;
}

static const char *check_string(const char *at, const char *end)
{
    if (at == end || *at++ != '"')
        return NULL;
    while (at && at < end && *at != '"') {
        unsigned char c = (unsigned char)*at;

        if (c < 0x20 || c == 0x7f)
            return NULL;
        at = c == '\\' ? check_escape(at + 1, end) : c < 0x80 ? at + 1 : check_wide(at, end);
    }
    return at && at < end ? at + 1 : NULL;
}

static const char *check_digits(const char *at, const char *end)
{
    const char *start = at;

    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at > start ? at : NULL;
}

static const char *check_number(const char *at, const char *end)
{
    if (at < end && *at == '-')
        at++;
    const char *whole = at;
    at = check_digits(at, end);
    if (!at || (*whole == '0' && at - whole > 1))
        return NULL;
    return at < end && *at == '.' ? check_digits(at + 1, end) : at;
}

static const char *check_members(const char *at, const char *end, int depth, bool names, char close)
{
    at = skip_space(at, end);
    if (at < end && *at == close)
        return at + 1;
    for (;;) {
        at = skip_space(at, end);
        if (names) {
            at = check_string(at, end);
            if (!at || at == end || *at++ != ':')
                return NULL;
            at = skip_space(at, end);
        }
        at = check_value(at, end, depth);
        if (!at)
            return NULL;
        at = skip_space(at, end);
        if (at == end)
            return NULL;
        if (*at == close)
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

static const char *check_word(const char *at, const char *end, const char *word)
{
    size_t len = strlen(word);

    return (size_t)(end - at) >= len && memcmp(at, word, len) == 0 ? at + len : NULL;
}

static const char *check_value(const char *at, const char *end, int depth)
{
    if (at == end || depth > 100)
        return NULL;
    switch (*at) {
    case '{':
        return check_members(at + 1, end, depth + 1, true, '}');
    case '[':
        return check_members(at + 1, end, depth + 1, false, ']');
    case '"':
        return check_string(at, end);
    case 't':
        return check_word(at, end, "true");
    case 'f':
        return check_word(at, end, "false");
    case 'n':
        return check_word(at, end, "null");
    default:
        return check_number(at, end);
    }
}

static bool is_json(const char *text, size_t len)
{
    return check_value(text, text + len, 0) == text + len;
}

/* A checker that accepts everything would prove nothing. */
static void check_the_checker(void)
{
    static const char *const good[] = {"{}", "[]", "[1,-2.50,\"\\u00e9\\n\xc3\xa9\",{\"a\":null}]", "0"};
    static const char *const bad[] = {"",      "{",     "[1,]",  "{\"a\"}", "{a:1}",    "01",       "1.",   "\"\n\"", "\"\\x\"", "[1]]",
                                      "[1 2]", "{1:2}", "\"",    "nul",     "\"\xff\"", "\"\xc3\"", "[1}",  "-",      "\"\x7f\"", "1 2"};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK(is_json(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!is_json(bad[i], strlen(bad[i])));
}

/* ---- the program ---- */

struct program {
    const uint8_t *data;
    size_t size, at;
};

static uint8_t next_byte(struct program *p)
{
    return p->at < p->size ? p->data[p->at++] : 0;
}

/* Up to 15 bytes of the input. */
static size_t next_bytes(struct program *p, char out[16])
{
    size_t len = next_byte(p) & 15;

    for (size_t i = 0; i < len; i++)
        out[i] = (char)next_byte(p);
    out[len] = 0;
    return len;
}

static uint64_t next_u64(struct program *p)
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++)
        value = value << 8 | next_byte(p);
    return value;
}

static void call(struct px_json *j, struct program *p, uint8_t op, const char *name)
{
    char bytes[16];
    size_t len;

    switch (op & 15) {
    case 0:
    case 1:
        px_json_object(j, name);
        break;
    case 2:
    case 3:
        px_json_array(j, name);
        break;
    case 4:
    case 5:
        px_json_end(j);
        break;
    case 6:
    case 7:
        len = next_bytes(p, bytes);
        px_json_bytes(j, name, bytes, len);
        break;
    case 8:
        (void)next_bytes(p, bytes);
        px_json_text(j, name, bytes);
        break;
    case 9:
        px_json_text(j, name, NULL);
        break;
    case 10:
        px_json_int(j, name, (int64_t)next_u64(p));
        break;
    case 11:
        px_json_uint(j, name, next_u64(p));
        break;
    case 12:
        px_json_decimal(j, name, next_u64(p), next_byte(p) % 20);
        break;
    case 13:
        px_json_bool(j, name, op & 16);
        break;
    default:
        px_json_null(j, name);
        break;
    }
}

/* Whether a disciplined caller would make this call here. */
static bool is_due(const struct px_json *j, uint8_t op)
{
    bool opens = (op & 15) <= 3, ends = (op & 15) == 4 || (op & 15) == 5;

    if (j->depth < 0)
        return false;
    if (j->depth == 0)
        return opens;           /* a value alone ends the document at once: let most documents be larger */
    return !(opens && j->depth == PX_JSON_DEPTH) && (!ends || j->depth > 0);
}

static const char *pick_name(const struct px_json *j, bool disciplined, struct program *p, char bytes[16])
{
    bool in_object = j->depth > 0 && j->close[j->depth - 1] == '}';

    if (disciplined ? !in_object : next_byte(p) & 1)
        return NULL;
    (void)next_bytes(p, bytes);
    return bytes;
}

static void check_document(const struct px_buf *out, const struct px_json *j, bool disciplined)
{
    CHECK(!disciplined || out->err != -EINVAL);
    CHECK(out->err == 0 || out->err == -EINVAL || out->err == -E2BIG);
    CHECK(out->len <= out->max);
    CHECK(j->depth >= -1 && j->depth <= PX_JSON_DEPTH);
    if (out->err == 0 && j->depth == -1)
        CHECK(is_json(px_buf_text(out), out->len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct program p = {data, size, 0};
    uint8_t mode = next_byte(&p);
    bool disciplined = mode & 1;
    px_auto_buf struct px_buf out = PX_BUF(mode & 4 ? 1 << 20 : 64);
    struct px_json j = {.out = &out, .pretty = mode & 2};
    char name[16];

    check_the_checker();
    if (disciplined)
        px_json_object(&j, NULL);
    while (p.at < p.size) {
        uint8_t op = next_byte(&p);

        if (!disciplined || is_due(&j, op))
            call(&j, &p, op, pick_name(&j, disciplined, &p, name));
    }
    while (j.depth > 0)
        px_json_end(&j);
    CHECK(!disciplined || j.depth == -1);
    check_document(&out, &j, disciplined);
    return 0;
}
