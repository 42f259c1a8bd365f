/* fuzz/fuzz_text.c - numbers, sizes, times and UTF-8 against plain definitions of them. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "fuzz.h"

static const uint64_t UNTOUCHED = 0x5a5a5a5a5a5a5a5a;

typedef int parse_fn(const char *text, uint64_t *ret_value);

static int parse_u64(const char *text, uint64_t *ret_value)
{
    return px_parse_u64(text, UINT64_MAX, ret_value);
}

/* 0, -EINVAL or -ERANGE; the output only on success; nothing but the alphabet; a digit first. */
static int check_parser(parse_fn *parse, const char *text, const char *alphabet)
{
    uint64_t value = UNTOUCHED;
    int r = parse(text, &value);

    CHECK(r == 0 || r == -EINVAL || r == -ERANGE);
    CHECK(r == 0 || value == UNTOUCHED);
    if (r != -EINVAL) {
        CHECK(text[0] >= '0' && text[0] <= '9');
        CHECK(text[strspn(text, alphabet)] == 0);
    }
    return r;
}

/* A number is accepted exactly if it is digits only, and its digits come back. */
static void check_u64(const char *text)
{
    uint64_t value;
    int r = check_parser(parse_u64, text, "0123456789");
    bool digits = text[0] && text[strspn(text, "0123456789")] == 0;

    CHECK((r == -EINVAL) == !digits);
    if (r == 0) {
        char back[32];

        CHECK(parse_u64(text, &value) == 0);
        CHECK(px_fmt(back, sizeof back, "%llu", (unsigned long long)value) >= 0);
        text += strspn(text, "0");
        CHECK(strcmp(*text ? text : "0", back) == 0);
        CHECK(px_parse_u64(back, value, &value) == 0);
        CHECK(value == 0 || px_parse_u64(back, value - 1, &value) == -ERANGE);
    }
}

/* A unit may be added to any number: "12" in bytes is "12b", and "12k" is 1024 times as much or out of range. */
static void check_bytes(const char *text)
{
    char with_unit[64];
    uint64_t plain, scaled;

    check_parser(px_parse_bytes, text, "0123456789.kmgtibKMGTIB");
    if (parse_u64(text, &plain) != 0 || px_fmt(with_unit, sizeof with_unit, "%sk", text) < 0)
        return;
    CHECK(px_parse_bytes(text, &scaled) == 0 && scaled == plain);
    int r = px_parse_bytes(with_unit, &scaled);
    CHECK(plain > UINT64_MAX / 1024 ? r == -ERANGE : r == 0 && scaled == plain * 1024);
}

static void check_msec(const char *text)
{
    char whole[64];
    uint64_t msec, again;

    check_parser(px_parse_msec, text, "0123456789.dhms");
    if (px_parse_msec(text, &msec) != 0)
        return;
    CHECK(px_fmt(whole, sizeof whole, "%llums", (unsigned long long)msec) >= 0);
    CHECK(px_parse_msec(whole, &again) == 0 && again == msec);
}

static void check_milli(const char *text)
{
    char back[64];
    uint64_t milli, again;

    check_parser(px_parse_milli, text, "0123456789.");
    if (px_parse_milli(text, &milli) != 0)
        return;
    CHECK(px_fmt(back, sizeof back, "%llu.%03llu", (unsigned long long)milli / 1000, (unsigned long long)milli % 1000) >= 0);
    CHECK(px_parse_milli(back, &again) == 0 && again == milli);
}

/* The definition from the other side: decode without looking, then ask whether the point needed that many bytes. */
static size_t utf8_by_definition(const uint8_t *u, size_t len)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t need = len == 0           ? 0
                  : u[0] < 0x80      ? 1
                  : u[0] >> 5 == 6   ? 2
                  : u[0] >> 4 == 14  ? 3
                  : u[0] >> 3 == 30  ? 4
                                     : 0;
    uint32_t point;

    if (need == 0 || need > len || need == 1)
        return need > len ? 0 : need;
    point = u[0] & (0x7fu >> need);
    for (size_t i = 1; i < need; i++) {
        if (u[i] >> 6 != 2)
            return 0;
        point = point << 6 | (u[i] & 0x3fu);
    }
    if (point < smallest[need] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    return need;
}

static void check_utf8(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        CHECK(px_utf8_length((const char *)data + i, size - i) == utf8_by_definition(data + i, size - i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    check_u64(text);
    check_bytes(text);
    check_msec(text);
    check_milli(text);
    check_utf8(data, size);
    free(text);
    return 0;
}
