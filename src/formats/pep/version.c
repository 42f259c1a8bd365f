#include "pep/version.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { DIGITS_MAX = 18, VERSION_TEXT_MAX = 256 };

struct reader {
    const char *p, *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char peek(const struct reader *r)
{
    return r->p < r->end ? lower(*r->p) : '\0';
}

static bool is_separator(char c)
{
    return c == '.' || c == '-' || c == '_';
}

/* At least one digit; false if there is none or more than 18. */
static bool take_number(struct reader *r, uint64_t *ret_number)
{
    const char *from = r->p;
    uint64_t n = 0;
    for (; r->p < r->end && is_digit(*r->p); r->p++) {
        if (r->p - from >= DIGITS_MAX)
            return false;
        n = n * 10 + (uint64_t)(*r->p - '0');
    }
    *ret_number = n;
    return r->p > from;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || strncasecmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

static bool take_release(struct reader *r, struct px_version *v)
{
    uint64_t n;
    if (!take_number(r, &n))
        return false;
    if (peek(r) == '!') {
        v->epoch = n;
        r->p++;
        if (!take_number(r, &n))
            return false;
    }
    v->release[v->release_count++] = n;
    while (peek(r) == '.' && r->p + 1 < r->end && is_digit(r->p[1])) {
        r->p++;
        if (v->release_count == PX_RELEASE_MAX || !take_number(r, &v->release[v->release_count++]))
            return false;
    }
    return true;
}

/* A word such as rc or post with its optional separators and number: "-rc.1". Does not move if the word is not
 * there. */
static bool take_part(struct reader *r, const char *const *words, size_t count, size_t *ret_word, uint64_t *ret_number)
{
    struct reader at = *r;
    if (is_separator(peek(&at)))
        at.p++;
    size_t i = 0;
    while (i < count && !take_word(&at, words[i]))
        i++;
    if (i == count)
        return false;
    if (is_separator(peek(&at)))
        at.p++;                 /* PEP 440 allows it without a number */
    *ret_number = 0;
    *ret_word = i;
    r->p = at.p;
    return !is_digit(peek(r)) || take_number(r, ret_number);
}

static void take_suffixes(struct reader *r, struct px_version *v)
{
    static const char *const pres[] = {"alpha", "a", "beta", "b", "preview", "pre", "rc", "c"};
    static const char letters[] = "aabbrrrr";
    static const char *const posts[] = {"post", "rev", "r"};
    static const char *const devs[] = {"dev"};
    size_t word;

    if (take_part(r, pres, PX_COUNT_OF(pres), &word, &v->pre_number))
        v->pre = letters[word];
    if (take_part(r, posts, PX_COUNT_OF(posts), &word, &v->post)) {
        v->has_post = true;
    } else if (peek(r) == '-' && r->p + 1 < r->end && is_digit(r->p[1])) {
        r->p++;
        v->has_post = take_number(r, &v->post);
    }
    v->has_dev = take_part(r, devs, PX_COUNT_OF(devs), &word, &v->dev);
}

/* A local version: parts of letters and digits, stored in lower case, separated by dots, numbers without leading
 * zeros. */
static bool take_local(struct reader *r, struct px_version *v)
{
    size_t n = 0;
    bool part = false, number = true;
    size_t from = 0;
    for (r->p++; r->p < r->end; r->p++) {
        char c = peek(r);
        if (is_separator(c)) {
            if (!part)
                return false;
            part = false;
            c = '.';
        } else if (is_digit(c) || (c >= 'a' && c <= 'z')) {
            if (!part) {
                from = n;
                number = true;
            }
            part = true;
            number = number && is_digit(c);
        } else {
            break;
        }
        if (n + 1 >= sizeof v->local)
            return false;
        if (part && number && n == from + 1 && v->local[from] == '0')
            n--;                /* 007 is 7 */
        v->local[n++] = c;
    }
    v->local[n] = '\0';
    return part;
}

int px_version_parse(const char *text, size_t length, struct px_version *ret_version)
{
    struct px_version v = {0};
    struct reader r = {text, text + length};
    while (r.p < r.end && is_blank(*r.p))
        r.p++;
    while (r.end > r.p && is_blank(r.end[-1]))
        r.end--;
    if (peek(&r) == 'v')
        r.p++;
    if (!take_release(&r, &v))
        return -EINVAL;
    take_suffixes(&r, &v);
    if (peek(&r) == '+' && !take_local(&r, &v))
        return -EINVAL;
    if (r.p != r.end)
        return -EINVAL;
    *ret_version = v;
    return 0;
}

/* ---- order ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static uint64_t release_at(const struct px_version *v, uint32_t i)
{
    return i < v->release_count ? v->release[i] : 0;
}

static int compare_release(const struct px_version *a, const struct px_version *b)
{
    uint32_t n = a->release_count > b->release_count ? a->release_count : b->release_count;
    int r = compare_numbers(a->epoch, b->epoch);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = compare_numbers(release_at(a, i), release_at(b, i));
    return r;
}

/* Development releases come before all pre-releases, a release after them. */
static int pre_rank(const struct px_version *v)
{
    if (!v->pre)
        return !v->has_post && v->has_dev ? 0 : 4;
    return v->pre == 'a' ? 1 : v->pre == 'b' ? 2 : 3;
}

/* Compares parts from left to right: a number is greater than a word, more parts are greater than fewer. */
static int compare_local(const char *a, const char *b)
{
    while (*a && *b) {
        size_t n = strcspn(a, "."), m = strcspn(b, ".");
        bool x = strspn(a, "0123456789") >= n, y = strspn(b, "0123456789") >= m;
        if (x != y)
            return x ? 1 : -1;
        if (x && n != m)
            return n < m ? -1 : 1;
        int r = memcmp(a, b, n < m ? n : m);
        if (r == 0 && n != m)
            r = n < m ? -1 : 1;
        if (r != 0)
            return r;
        a += n + (a[n] == '.');
        b += m + (b[m] == '.');
    }
    return *a ? 1 : *b ? -1 : 0;
}

static int compare_public(const struct px_version *a, const struct px_version *b)
{
    int r = compare_release(a, b);
    if (r == 0)
        r = pre_rank(a) - pre_rank(b);
    if (r == 0 && a->pre)
        r = compare_numbers(a->pre_number, b->pre_number);
    if (r == 0)
        r = a->has_post - b->has_post;
    if (r == 0 && a->has_post)
        r = compare_numbers(a->post, b->post);
    if (r == 0)
        r = b->has_dev - a->has_dev;
    if (r == 0 && a->has_dev)
        r = compare_numbers(a->dev, b->dev);
    return r;
}

int px_version_compare(const struct px_version *a, const struct px_version *b)
{
    int r = compare_public(a, b);
    if (r == 0 && (*a->local || *b->local))
        r = !*a->local ? -1 : !*b->local ? 1 : compare_local(a->local, b->local);
    return r;
}

/* ---- ranges ---- */

static bool has_prefix(const struct px_version *v, const struct px_version *bound, uint32_t parts)
{
    if (v->epoch != bound->epoch)
        return false;
    for (uint32_t i = 0; i < parts; i++)
        if (release_at(v, i) != release_at(bound, i))
            return false;
    return true;
}

static bool is_equal(const struct px_version *v, const struct px_version *bound)
{
    return *bound->local ? px_version_compare(v, bound) == 0 : compare_public(v, bound) == 0;
}

static bool is_pre(const struct px_version *v)
{
    return v->pre || v->has_dev;
}

static bool is_less(const struct px_version *v, const struct px_version *bound)
{
    if (px_version_compare(v, bound) >= 0)
        return false;
    return is_pre(bound) || !is_pre(v) || compare_release(v, bound) != 0;
}

static bool is_more(const struct px_version *v, const struct px_version *bound)
{
    if (px_version_compare(v, bound) <= 0)
        return false;
    if (!bound->has_post && v->has_post && compare_release(v, bound) == 0)
        return false;
    return !*v->local || compare_release(v, bound) != 0;
}

static int judge(const struct px_version *v, const char *op, const struct px_version *bound, bool wild)
{
    bool local = *bound->local != '\0', simple = bound->release_count > 0 && !bound->pre && !bound->has_post && !bound->has_dev && !local;
    if (px_equal(op, "==") || px_equal(op, "!=")) {
        if (wild && !simple)
            return -EINVAL;
        bool same = wild ? has_prefix(v, bound, bound->release_count) : is_equal(v, bound);
        return op[0] == '=' ? same : !same;
    }
    if (wild || local)
        return -EINVAL;
    if (px_equal(op, "~="))
        return bound->release_count < 2 ? -EINVAL
                                        : compare_public(v, bound) >= 0 && has_prefix(v, bound, bound->release_count - 1);
    if (px_equal(op, "<=") || px_equal(op, ">="))
        return op[0] == '<' ? compare_public(v, bound) <= 0 : compare_public(v, bound) >= 0;
    if (px_equal(op, "<") || px_equal(op, ">"))
        return op[0] == '<' ? is_less(v, bound) : is_more(v, bound);
    return -EINVAL;
}

int px_version_clause(const char *version, const char *op, size_t op_length, const char *bound, size_t bound_length)
{
    char word[4];
    struct px_version v, b;
    while (bound_length && is_blank(*bound)) {
        bound++;
        bound_length--;
    }
    while (bound_length && is_blank(bound[bound_length - 1]))
        bound_length--;
    if (px_fmt(word, sizeof word, "%.*s", (int)op_length, op) < 0 || bound_length == 0)
        return -EINVAL;
    if (px_equal(word, "==="))
        return strlen(version) == bound_length && strncasecmp(version, bound, bound_length) == 0;
    bool wild = bound_length > 2 && memcmp(bound + bound_length - 2, ".*", 2) == 0 && is_digit(bound[bound_length - 3]);
    if (px_version_parse(bound, bound_length - (wild ? 2 : 0), &b) < 0 || px_version_parse(version, strlen(version), &v) < 0)
        return -EINVAL;
    return judge(&v, word, &b, wild);
}

int px_version_fits(const char *version, const char *range)
{
    int fits = 1;
    while (*range) {
        size_t length = strcspn(range, ",");
        size_t from = strspn(range, " \t\r\n");
        if (from < length) {
            size_t op = strspn(range + from, "<>=!~");
            int r = op ? px_version_clause(version, range + from, op, range + from + op, length - from - op) : -EINVAL;
            if (r < 0)
                return r;
            fits = fits && r;
        }
        range += length + (range[length] == ',');
    }
    return fits;
}

int px_version_asked(const char *version, const char *range)
{
    char bound[80];
    struct px_version alone;
    if (px_version_parse(range, strlen(range), &alone) < 0)
        return px_version_fits(version, range);
    if (px_fmt(bound, sizeof bound, "%s.*", range) < 0)
        return -EINVAL;
    return px_version_clause(version, "==", 2, bound, strlen(bound));
}
