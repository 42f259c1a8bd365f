/* base/text.c - numbers, sizes, times and UTF-8, strictly. */
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <px/px.h>

/* A decimal number as written: whole + part / scale. Six decimals keep part * (largest unit) below 2^64. */
struct decimal {
    uint64_t whole;
    uint64_t part;
    uint64_t scale;             /* 1 if there is no fraction */
};

enum { DECIMALS_MAX = 6 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Case of letters does not matter; the C library's strcasecmp would ask the locale. */
static bool equal_nocase(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return lower(*a) == lower(*b);
}

/* Reads digits at *at and moves it behind them. All digits are read even when they overflow, so that a malformed text is
 * -EINVAL however long it is. */
static int read_digits(const char **at, uint64_t *ret_value)
{
    uint64_t value = 0;
    bool overflow = false;

    if (!is_digit(**at))
        return -EINVAL;
    for (; is_digit(**at); (*at)++)
        overflow |= __builtin_mul_overflow(value, (uint64_t)10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(**at - '0'), &value);
    *ret_value = value;
    return overflow ? -ERANGE : 0;
}

/* After -ERANGE too *at points behind the number: the caller still checks the rest. */
static int read_decimal(const char **at, int decimals_max, struct decimal *ret)
{
    struct decimal d = {.scale = 1};
    int r = read_digits(at, &d.whole);

    if (r == -EINVAL)
        return r;
    if (**at == '.') {
        int digits = 0;

        for ((*at)++; is_digit(**at); (*at)++) {
            if (++digits > decimals_max)
                return -EINVAL;
            d.part = d.part * 10 + (uint64_t)(**at - '0');
            d.scale *= 10;
        }
        if (digits == 0)
            return -EINVAL;
    }
    *ret = d;
    return r;
}

/* d * unit, rounded down; *ret_exact says whether anything was lost. */
static int scale_decimal(const struct decimal *d, uint64_t unit, uint64_t *ret_value, bool *ret_exact)
{
    uint64_t value;

    if (__builtin_mul_overflow(d->whole, unit, &value) ||
        __builtin_add_overflow(value, d->part * unit / d->scale, &value))
        return -ERANGE;
    *ret_value = value;
    *ret_exact = d->part * unit % d->scale == 0;
    return 0;
}

int px_parse_u64(const char *text, uint64_t max, uint64_t *ret_value)
{
    uint64_t value;
    int r = read_digits(&text, &value);

    if (r == -EINVAL || *text)
        return -EINVAL;
    if (r < 0 || value > max)
        return -ERANGE;
    *ret_value = value;
    return 0;
}

static const struct {
    const char *name;
    uint64_t bytes;
} size_units[] = {
    // clang-format off
    { "",    1 },            { "b",  1 },
    { "k",   1ULL << 10 },   { "m",  1ULL << 20 },   { "g",   1ULL << 30 },   { "t",   1ULL << 40 },
    { "kib", 1ULL << 10 },   { "mib", 1ULL << 20 },  { "gib", 1ULL << 30 },   { "tib", 1ULL << 40 },
    { "kb",  1000ULL },      { "mb", 1000000ULL },   { "gb",  1000000000ULL }, { "tb", 1000000000000ULL },
    // clang-format on
};

int px_parse_bytes(const char *text, uint64_t *ret_bytes)
{
    struct decimal d;
    int r = read_decimal(&text, DECIMALS_MAX, &d);

    if (r == -EINVAL)
        return r;
    for (size_t i = 0; i < PX_COUNT_OF(size_units); i++) {
        uint64_t unit = size_units[i].bytes;
        bool exact;

        if (!equal_nocase(text, size_units[i].name))
            continue;
        if (unit == 1 && d.scale != 1)
            return -EINVAL;     /* a byte cannot be divided */
        return r < 0 ? r : scale_decimal(&d, unit, ret_bytes, &exact);
    }
    return -EINVAL;
}

static const struct {
    const char *name;
    uint64_t msec;
} time_units[] = {
    // clang-format off
    { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },      /* in the order they are written */
    // clang-format on
};

/* The unit that begins at *at: its index, at least `from`, because units only get smaller; -EINVAL if there is none. */
static int read_time_unit(const char **at, size_t from)
{
    size_t len = 0;

    while ((*at)[len] && !is_digit((*at)[len]))
        len++;
    for (size_t i = from; i < PX_COUNT_OF(time_units); i++)
        if (strlen(time_units[i].name) == len && memcmp(*at, time_units[i].name, len) == 0) {
            *at += len;
            return (int)i;
        }
    return -EINVAL;
}

int px_parse_msec(const char *text, uint64_t *ret_msec)
{
    const char *at = text;
    uint64_t sum = 0;
    size_t from = 0;
    bool overflow = false;

    do {
        struct decimal d;
        uint64_t msec = 0;
        bool exact = true;
        int r = read_decimal(&at, DECIMALS_MAX, &d);
        if (r == -EINVAL)
            return r;
        overflow |= r < 0;

        bool bare = *at == 0 && from == 0;      /* only a single number may omit its unit: 10 is 10s */
        int unit = bare ? 3 : read_time_unit(&at, from);
        if (unit < 0)
            return unit;
        if (d.scale != 1 && *at)
            return -EINVAL;     /* a fraction before smaller parts: 1.5m30s */
        overflow |= scale_decimal(&d, time_units[unit].msec, &msec, &exact) < 0;
        if (!exact)
            return -EINVAL;     /* rounding could turn a short limit into none */
        overflow |= __builtin_add_overflow(sum, msec, &sum);
        from = (size_t)unit + 1;
    } while (*at);

    if (overflow)
        return -ERANGE;
    *ret_msec = sum;
    return 0;
}

int px_parse_milli(const char *text, uint64_t *ret_milli)
{
    struct decimal d;
    bool exact;
    int r = read_decimal(&text, 3, &d);

    if (r == -EINVAL || *text)
        return -EINVAL;
    return r < 0 ? r : scale_decimal(&d, 1000, ret_milli, &exact);
}

int px_fmt(char *out, size_t size, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(out, size, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < size)
        return n;
    if (size > 0)
        out[0] = 0;             /* part of a path must not be mistaken for a path */
    return -ENAMETOOLONG;
}

/* The second byte excludes overlong forms (E0, F0), surrogates (ED) and what is beyond Unicode (F4). */
static bool second_byte_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0 && second <= 0xbf;
    case 0xed:
        return second >= 0x80 && second <= 0x9f;
    case 0xf0:
        return second >= 0x90 && second <= 0xbf;
    case 0xf4:
        return second >= 0x80 && second <= 0x8f;
    default:
        return second >= 0x80 && second <= 0xbf;
    }
}

size_t px_utf8_length(const char *text, size_t len)
{
    const unsigned char *u = (const unsigned char *)text;
    size_t need;

    if (len == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    if (u[0] < 0xc2 || u[0] > 0xf4)
        return 0;
    need = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    if (len < need || !second_byte_fits(u[0], u[1]))
        return 0;
    for (size_t i = 2; i < need; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    return need;
}

bool px_utf8_is_control(const char *text, size_t len)
{
    const unsigned char *u = (const unsigned char *)text;

    if (len == 1)
        return u[0] < 0x20 || u[0] == 0x7f;
    if (len == 2)
        return (u[0] == 0xc2 && u[1] < 0xa0) || (u[0] == 0xd8 && u[1] == 0x9c);    /* U+0080..U+009F, U+061C */
    if (len == 3 && u[0] == 0xe2 && u[1] == 0x80)
        return (u[2] >= 0xa8 && u[2] <= 0xae) || u[2] == 0x8e || u[2] == 0x8f;     /* U+2028..U+202E, U+200E, U+200F */
    return len == 3 && u[0] == 0xe2 && u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9;    /* U+2066..U+2069 */
}

bool px_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool px_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* ---- similar words ---- */

enum { NEAR_SHORT = 32, NEAR_MOST = 2 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many bytes must be changed, added, removed or swapped with the next to turn a into b; both are short. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][NEAR_SHORT + 1], m = strlen(a), n = strlen(b);
    if (m > NEAR_SHORT || n > NEAR_SHORT)
        return NEAR_SHORT;
    for (size_t i = 0; i <= m; i++) {
        size_t *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = i == 0 ? j : least(least(row[j - 1], last[j]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

void px_near_try(struct px_near *near, const char *word)
{
    size_t letters = distance(near->written, word);
    if (letters > NEAR_MOST || letters * 2 >= strlen(near->written) || (near->found && letters >= near->letters))
        return;
    near->found = word;
    near->letters = letters;
}

bool px_truthy(const char *value)
{
    static const char *const no[] = {"", "0", "false", "no", "off"};
    for (size_t i = 0; value && i < PX_COUNT_OF(no); i++)
        if (strcasecmp(value, no[i]) == 0)
            return false;
    return value != NULL;
}
