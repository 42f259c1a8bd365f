#include "seccomp/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "seccomp/draft.h"

/* ---- errors ---- */

/* member NULL is the object itself. */
static void add_place(const struct px_reader *r, struct px_buf *out, const char *member)
{
    size_t start = out->len;

    if (r->entry != PX_NOWHERE)
        (void)px_buf_printf(out, "syscalls[%d]", r->entry);
    if (r->arg != PX_NOWHERE)
        (void)px_buf_printf(out, ".args[%d]", r->arg);
    if (r->group)
        (void)px_buf_printf(out, "%s%s", out->len > start ? "." : "", r->group);
    if (member)
        (void)px_buf_printf(out, "%s%.80s", out->len > start ? "." : "", member);    /* it may be the file's own word */
    else if (out->len == start)
        (void)px_buf_puts(out, "the profile");
}

/* "profile 'FILE': PLACE WORDS" */
int px_reader_wrong(const struct px_reader *r, const char *member, const char *fmt, ...)
{
    px_auto_buf struct px_buf place = PX_BUF(256);
    char words[256];
    va_list args;

    add_place(r, &place, member);
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    (void)px_fail(r->e, PX_E_PROFILE, 0, "profile '%s': %s %s", r->name, px_buf_text(&place), words);
    return -1;
}

int px_reader_no_memory(const struct px_reader *r)
{
    return px_no_memory(r->e);
}

/* ---- members ---- */

/* NULL if absent; null counts as absent, because writers of the format use it so. */
static json_t *member_of(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    return json_is_null(value) ? NULL : value;
}

/* Warns of unknown members: a misspelt one would silently drop a restriction. */
void px_reader_warn_of_others(const struct px_reader *r, json_t *object, const char *const *known)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value) {
        px_auto_buf struct px_buf place = PX_BUF(512);
        const char *const *k = known;

        while (*k && strcmp(*k, name) != 0)
            k++;
        if (*k)
            continue;
        add_place(r, &place, name);
        px_draft_warn(r->draft, "%s is not a member that px uses", px_buf_text(&place));
    }
}

/* 1 if there, 0 if not. */
int px_reader_text(const struct px_reader *r, json_t *object, const char *name, const char **ret_text)
{
    json_t *value = member_of(object, name);

    if (!value)
        return 0;
    const char *text = json_string_value(value);
    if (!text)
        return px_reader_wrong(r, name, "must be a text");
    *ret_text = text;
    return 1;
}

int px_reader_number(const struct px_reader *r, json_t *object, const char *name, uint64_t max, uint64_t *ret_value)
{
    json_t *value = member_of(object, name);

    if (!value)
        return 0;
    if (!json_is_integer(value))
        return px_reader_wrong(r, name, "must be a whole number");
    uint64_t number = (uint64_t)json_integer_value(value);
    if (number > max)
        return px_reader_wrong(r, name, "is %llu, more than %llu", (unsigned long long)number, (unsigned long long)max);
    *ret_value = number;
    return 1;
}

int px_reader_array(const struct px_reader *r, json_t *object, const char *name, json_t **ret_array)
{
    json_t *value = member_of(object, name);

    *ret_array = value;
    return value && !json_is_array(value) ? px_reader_wrong(r, name, "must be a list") : value != NULL;
}

int px_reader_object(const struct px_reader *r, json_t *object, const char *name, json_t **ret_object)
{
    json_t *value = member_of(object, name);

    *ret_object = value;
    return value && !json_is_object(value) ? px_reader_wrong(r, name, "must be an object") : value != NULL;
}

/* The i-th text of a list; NULL after an error. */
const char *px_reader_text_at(const struct px_reader *r, const char *name, json_t *array, size_t i)
{
    const char *text = json_string_value(json_array_get(array, i));
    char place[64];

    if (!text && px_fmt(place, sizeof place, "%s[%zu]", name, i) >= 0)
        (void)px_reader_wrong(r, place, "must be a text");
    return text;
}

/* ---- words ---- */

static const struct px_word *find_word(const struct px_word *words, const char *name)
{
    while (words->name && strcmp(words->name, name) != 0)
        words++;
    return words->name ? words : NULL;
}

static void list_words(struct px_buf *out, const struct px_word *words)
{
    for (const struct px_word *w = words; w->name; w++)
        (void)px_buf_printf(out, "%s%s", w == words ? "" : ", ", w->name);
}

/* The word's value, or -1 with an error that lists the valid words. */
int px_reader_word(const struct px_reader *r, const char *member, const struct px_word *words, const char *name,
                     uint32_t *ret_value)
{
    const struct px_word *word = find_word(words, name);
    px_auto_buf struct px_buf all = PX_BUF(700);

    if (word) {
        *ret_value = word->value;
        return 0;
    }
    (void)px_reader_wrong(r, member, "is '%.60s', which is not a word px knows there", name);
    list_words(&all, words);
    return px_fix(r->e, "Use one of %s.", px_buf_text(&all));
}

/* ---- numbers that the JSON library cannot hold ---- */

static int negative(const struct px_reader *r, const char *text, size_t at)
{
    size_t line = 1, start = 0;

    for (size_t i = 0; i < at; i++)
        if (text[i] == '\n') {
            line++;
            start = i + 1;
        }
    return px_fail(r->e, PX_E_PROFILE, 0, "profile '%s', line %zu, column %zu: no number of a profile is negative", r->name,
                   line, at - start + 1);
}

/* jansson has signed 64-bit numbers. An unsigned 64-bit number is passed as the negative number with the same bits, and
 * px_reader_number converts it back; so negative numbers in the file are refused. */
static void add_number(struct px_buf *out, const char *text, size_t len)
{
    char digits[24];
    uint64_t value = 0;

    if (len < sizeof digits) {
        memcpy(digits, text, len);
        digits[len] = '\0';
        if (px_parse_u64(digits, UINT64_MAX, &value) == 0 && value > INT64_MAX) {
            (void)px_buf_printf(out, "%lld", (long long)value);
            return;
        }
    }
    (void)px_buf_add(out, text, len);
}

static size_t string_end(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        if (text[at] == '\\')
            at++;
    return at < len ? at + 1 : len;
}

static int fold_numbers(const struct px_reader *r, const char *text, size_t len, struct px_buf *out)
{
    size_t at = 0, copied = 0;

    while (at < len) {
        if (text[at] == '-')
            return negative(r, text, at);
        if (text[at] == '"') {
            at = string_end(text, len, at);
            continue;
        }
        size_t number = strchr("0123456789", text[at]) ? strspn(text + at, "0123456789.eE+-") : 0;
        if (number == 0) {
            at++;
            continue;
        }
        (void)px_buf_add(out, text + copied, at - copied);
        add_number(out, text + at, number);
        at += number;
        copied = at;
    }
    (void)px_buf_add(out, text + copied, len - copied);
    return 0;
}

json_t *px_reader_load(const struct px_reader *r, const char *text, size_t len)
{
    px_auto_buf struct px_buf folded = PX_BUF((size_t)2 * PX_DRAFT_BYTES_MAX);
    json_error_t error;

    if (len > PX_DRAFT_BYTES_MAX) {
        (void)px_fail(r->e, PX_E_PROFILE, 0, "profile '%s' is larger than %d bytes", r->name, PX_DRAFT_BYTES_MAX);
        return NULL;
    }
    if (fold_numbers(r, text, len, &folded) < 0)
        return NULL;
    if (folded.err < 0) {
        (void)px_reader_no_memory(r);
        return NULL;
    }
    json_t *document = json_loadb(px_buf_text(&folded), folded.len, JSON_REJECT_DUPLICATES, &error);
    if (!document)
        (void)px_fail(r->e, PX_E_PROFILE, 0, "profile '%s', line %d, column %d: %s", r->name, error.line, error.column,
                      error.text);
    return document;
}
