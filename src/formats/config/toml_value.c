/* The scalars of TOML: strings, numbers, dates. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "config/toml_scan.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- strings ---- */

static bool looking_at(const struct scan *s, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(s->end - s->p) >= n && memcmp(s->p, text, n) == 0;
}

static int hex_value(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int put_rune(struct scan *s, uint32_t rune)
{
    char out[4];
    size_t n = rune < 0x80 ? 1 : rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; rune >>= 6)
        out[i] = (char)(0x80 | (rune & 0x3f));
    out[0] = (char)(lead[n] | rune);
    return px_buf_add(&s->t->strings, out, n);
}

static int scan_unicode(struct scan *s, int digits)
{
    const char *at = s->p - 2;
    uint32_t rune = 0;
    for (int i = 0; i < digits; i++, s->p++) {
        int v = s->p < s->end ? hex_value(*s->p) : -1;
        if (v < 0)
            return px_toml_fail(s, at, "an escape needs %d hexadecimal digits", digits);
        rune = rune << 4 | (uint32_t)v;
    }
    if (rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000))
        return px_toml_fail(s, at, "there is no such character");
    return put_rune(s, rune);
}

/* A backslash at the end of a line removes the line end and the blanks after it. */
static bool skip_line_end(struct scan *s)
{
    const char *p = s->p;
    while (p < s->end && (*p == ' ' || *p == '\t'))
        p++;
    if (p < s->end && *p == '\r')
        p++;
    if (p >= s->end || *p != '\n')
        return false;
    while (p < s->end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    s->p = p;
    return true;
}

static int scan_escape(struct scan *s, bool multi)
{
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    if (multi && skip_line_end(s))
        return 0;
    char c = s->p < s->end ? *s->p++ : '\0';
    if (c == 'u' || c == 'U')
        return scan_unicode(s, c == 'u' ? 4 : 8);
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return px_toml_fail(s, s->p - 1, "this escape is not known");
    return px_buf_putc(&s->t->strings, to[found - from]);
}

/* Up to two quotes before the closing """ belong to the string. */
static bool ends_long(struct scan *s, char quote)
{
    size_t n = 0;
    while (s->p + n < s->end && n < 5 && s->p[n] == quote)
        n++;
    if (n < 3)
        return false;
    for (size_t i = 3; i < n; i++)
        px_buf_putc(&s->t->strings, quote);
    s->p += n;
    return true;
}

static int scan_char(struct scan *s, char quote, bool multi)
{
    char c = *s->p++;
    if (c == '\\' && quote == '"')
        return scan_escape(s, multi);
    if (c == '\r' && multi && s->p < s->end && *s->p == '\n')
        return px_buf_putc(&s->t->strings, c);
    if (c == '\n' && multi)
        return px_buf_putc(&s->t->strings, c);
    if ((unsigned char)c < 0x20 ? c != '\t' : c == 0x7f)
        return px_toml_fail(s, s->p - 1, c == '\n' ? "the string is not closed on its line" : "a control character in a string");
    return px_buf_putc(&s->t->strings, c);
}

int px_toml_scan_string(struct scan *s, bool multi, uint32_t *ret_text, uint32_t *ret_length)
{
    const char *at = s->p;
    char quote = *s->p;
    bool is_long = looking_at(s, quote == '"' ? "\"\"\"" : "'''");
    uint32_t text = (uint32_t)s->t->strings.len;

    if (is_long && !multi)
        return px_toml_fail(s, at, "a key cannot be a string of several lines");
    s->p += is_long ? 3 : 1;
    if (is_long && looking_at(s, "\r\n"))
        s->p += 2;
    else if (is_long && looking_at(s, "\n"))
        s->p++;
    for (;;) {
        if (s->p >= s->end)
            return px_toml_fail(s, at, "the string is not closed");
        if (is_long ? *s->p == quote && ends_long(s, quote) : *s->p == quote)
            break;
        if (scan_char(s, quote, is_long) < 0)
            return s->err = s->err ? s->err : s->t->strings.err;
    }
    s->p += is_long ? 0 : 1;
    *ret_text = text;
    *ret_length = (uint32_t)(s->t->strings.len - text);
    px_buf_putc(&s->t->strings, '\0');
    return s->err = s->t->strings.err;
}

/* ---- numbers ---- */

/* Digits with single underscores between them; copies the digits. The number of digits, or 0. */
static size_t take_digits(const char **p, const char *end, bool (*fits)(char), char *out, size_t size, size_t *at)
{
    size_t n = 0;
    while (*p < end) {
        if (**p == '_' && n > 0 && *p + 1 < end && fits((*p)[1]))
            (*p)++;
        if (!fits(**p))
            break;
        if (*at + 1 >= size)
            return 0;
        out[(*at)++] = *(*p)++;
        n++;
    }
    out[*at] = '\0';
    return n;
}

static bool is_hex(char c)
{
    return hex_value(c) >= 0;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

static bool is_binary(char c)
{
    return c == '0' || c == '1';
}

static bool fold_digits(const char *digits, unsigned base, bool negative, int64_t *ret_number)
{
    uint64_t max = (uint64_t)INT64_MAX + (negative ? 1 : 0), value = 0;
    for (; *digits; digits++) {
        unsigned d = (unsigned)hex_value(*digits);
        if (value > (max - d) / base)
            return false;
        value = value * base + d;
    }
    *ret_number = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static int scan_based(struct scan *s, struct px_toml_node *node)
{
    static const struct {
        char letter;
        unsigned base;
        bool (*fits)(char);
    } kinds[] = {{'x', 16, is_hex}, {'o', 8, is_octal}, {'b', 2, is_binary}};
    char digits[80];
    size_t at = 0;
    for (size_t i = 0; i < PX_COUNT_OF(kinds); i++) {
        if (s->end - s->p < 3 || s->p[0] != '0' || s->p[1] != kinds[i].letter)
            continue;
        const char *from = s->p;
        s->p += 2;
        if (!take_digits(&s->p, s->end, kinds[i].fits, digits, sizeof digits, &at) ||
            !fold_digits(digits, kinds[i].base, false, &node->number))
            return px_toml_fail(s, from, "not a number, or larger than 64 bits");
        node->type = PX_TOML_INTEGER;
        return 1;
    }
    return 0;
}

static int keep_number(struct scan *s, struct px_toml_node *node, const char *digits, size_t length)
{
    node->type = PX_TOML_FLOAT;
    node->text = px_toml_keep(s, digits, length);
    node->text_length = (uint32_t)length;
    return s->err;
}

static int scan_special(struct scan *s, struct px_toml_node *node)
{
    const char *from = s->p;
    size_t sign = *s->p == '+' || *s->p == '-';
    const char *word = s->p + sign;
    if (s->end - word < 3 || (memcmp(word, "inf", 3) != 0 && memcmp(word, "nan", 3) != 0))
        return 0;
    s->p = word + 3;
    return keep_number(s, node, from, (size_t)(s->p - from)) < 0 ? -1 : 1;
}

static int scan_number(struct scan *s, struct px_toml_node *node)
{
    char out[400];
    size_t at = 0;
    const char *from = s->p;
    bool negative = *s->p == '-', real = false;

    if (*s->p == '+' || *s->p == '-')
        out[at++] = *s->p++;
    size_t start = at;
    size_t n = take_digits(&s->p, s->end, is_digit, out, sizeof out, &at);
    if (n == 0 || (n > 1 && out[start] == '0'))
        return px_toml_fail(s, from, n ? "a number must not begin with 0" : "a value is missing here");
    if (s->p < s->end && *s->p == '.') {
        real = true;
        out[at++] = *s->p++;
        if (!take_digits(&s->p, s->end, is_digit, out, sizeof out, &at))
            return px_toml_fail(s, from, "digits are missing after the point");
    }
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E') && at + 3 < sizeof out) {
        real = true;
        out[at++] = *s->p++;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
            out[at++] = *s->p++;
        if (!take_digits(&s->p, s->end, is_digit, out, sizeof out, &at))
            return px_toml_fail(s, from, "digits are missing in the exponent");
    }
    if (real)
        return keep_number(s, node, out, at);
    node->type = PX_TOML_INTEGER;
    if (!fold_digits(out + start, 10, negative, &node->number))
        return px_toml_fail(s, from, "the number does not fit into 64 bits");
    return 0;
}

/* ---- dates ---- */

/* In `pattern` a 9 matches a digit; other characters match themselves. */
static bool fits(const char *p, const char *end, const char *pattern)
{
    for (; *pattern; pattern++, p++)
        if (p >= end || (*pattern == '9' ? !is_digit(*p) : *p != *pattern))
            return false;
    return true;
}

static int two(const char *p)
{
    return (p[0] - '0') * 10 + p[1] - '0';
}

static bool date_ok(const char *p)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = two(p) * 100 + two(p + 2), month = two(p + 5), day = two(p + 8);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] && (month != 2 || leap || day <= 28);
}

static bool time_ok(const char *p)
{
    return two(p) <= 23 && two(p + 3) <= 59 && two(p + 6) <= 59;
}

/* hh:mm:ss[.digits]; moves past it; false if it does not match. */
static bool skip_time(const char **p, const char *end)
{
    if (!fits(*p, end, "99:99:99") || !time_ok(*p))
        return false;
    *p += 8;
    if (*p < end && **p == '.') {
        if (*p + 1 >= end || !is_digit((*p)[1]))
            return false;
        for (++*p; *p < end && is_digit(**p);)
            ++*p;
    }
    return true;
}

/* Z or +hh:mm; 1 if present, 0 if not, -1 if malformed. */
static int skip_zone(const char **p, const char *end)
{
    if (*p < end && (**p == 'Z' || **p == 'z')) {
        ++*p;
        return 1;
    }
    if (*p >= end || (**p != '+' && **p != '-'))
        return 0;
    if (!fits(*p + 1, end, "99:99") || two(*p + 1) > 23 || two(*p + 4) > 59)
        return -1;
    *p += 6;
    return 1;
}

/* 1 if a date or time is there, 0 if not, -1 if it is malformed. */
static int scan_date(struct scan *s, struct px_toml_node *node)
{
    const char *p = s->p;
    bool date = fits(p, s->end, "9999-99-99"), time = fits(p, s->end, "99:");
    if (!date && !time)
        return 0;
    node->type = PX_TOML_LOCAL_TIME;
    if (date) {
        if (!date_ok(p))
            return px_toml_fail(s, p, "there is no such day");
        p += 10;
        node->type = PX_TOML_LOCAL_DATE;
        time = p + 2 < s->end && (*p == 'T' || *p == 't' || (*p == ' ' && is_digit(p[1])));
        p += time;
    }
    if (time && !skip_time(&p, s->end))
        return px_toml_fail(s, s->p, "there is no such time");
    int zone = date && time ? skip_zone(&p, s->end) : 0;
    if (zone < 0)
        return px_toml_fail(s, s->p, "there is no such time zone");
    if (date && time)
        node->type = zone ? PX_TOML_DATETIME : PX_TOML_LOCAL_DATETIME;
    node->text = px_toml_keep(s, s->p, (size_t)(p - s->p));
    node->text_length = (uint32_t)(p - s->p);
    s->p = p;
    return s->err < 0 ? -1 : 1;
}

int px_toml_scan_scalar(struct scan *s, struct px_toml_node *node)
{
    for (int truth = 0; truth < 2; truth++)
        if (looking_at(s, truth ? "true" : "false")) {
            node->type = PX_TOML_BOOL;
            node->truth = truth;
            s->p += truth ? 4 : 5;
            return 0;
        }
    int r = scan_date(s, node);
    if (r == 0)
        r = scan_special(s, node);
    if (r == 0)
        r = scan_based(s, node);
    return r == 0 ? scan_number(s, node) : r < 0 ? -1 : 0;
}
