#include "pep/marker.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "pep/version.h"

enum { VALUE_MAX = 256, DEPTH_MAX = 32 };

struct reader {
    const char *p;
    const struct px_marker_env *env;
    int depth;
};

/* A side of a comparison: a literal, or the value of a variable. */
struct value {
    char text[VALUE_MAX];
    bool variable, extra;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static void skip_blanks(struct reader *r)
{
    while (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')
        r->p++;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(r);
    if (strncmp(r->p, word, n) != 0 || is_word(r->p[n]))
        return false;
    r->p += n;
    return true;
}

/* ---- values ---- */

#define ENV(name) {#name, offsetof(struct px_marker_env, name)}
static const struct {
    const char *name;
    size_t at;
} variables[] = {
    ENV(implementation_name), ENV(implementation_version), ENV(os_name), ENV(platform_machine), ENV(platform_python_implementation),
    ENV(platform_release), ENV(platform_version), ENV(platform_system), ENV(python_full_version), ENV(python_version), ENV(sys_platform),
    /* names from before the standard */
    {"os.name", offsetof(struct px_marker_env, os_name)}, {"sys.platform", offsetof(struct px_marker_env, sys_platform)},
    {"platform.machine", offsetof(struct px_marker_env, platform_machine)},
    {"platform.version", offsetof(struct px_marker_env, platform_version)},
    {"platform.python_implementation", offsetof(struct px_marker_env, platform_python_implementation)},
    {"python_implementation", offsetof(struct px_marker_env, platform_python_implementation)},
};
#undef ENV

static int take_quoted(struct reader *r, struct value *ret_value)
{
    char quote = *r->p++;
    const char *end = strchr(r->p, quote);
    if (!end || px_fmt(ret_value->text, sizeof ret_value->text, "%.*s", (int)(end - r->p), r->p) < 0)
        return -EINVAL;
    r->p = end + 1;
    return 0;
}

static int take_variable(struct reader *r, struct value *ret_value)
{
    const char *from = r->p;
    while (is_word(*r->p))
        r->p++;
    size_t n = (size_t)(r->p - from);
    ret_value->variable = true;
    if (n == 5 && memcmp(from, "extra", 5) == 0) {
        ret_value->extra = true;
        return 0;
    }
    for (size_t i = 0; i < PX_COUNT_OF(variables); i++)
        if (strlen(variables[i].name) == n && memcmp(variables[i].name, from, n) == 0) {
            const char *text = *(const char *const *)((const char *)r->env + variables[i].at);
            return px_fmt(ret_value->text, sizeof ret_value->text, "%s", text ? text : "") < 0 ? -EINVAL : 0;
        }
    return -EINVAL;
}

static int take_value(struct reader *r, struct value *ret_value)
{
    skip_blanks(r);
    *ret_value = (struct value){.variable = false};
    return *r->p == '"' || *r->p == '\'' ? take_quoted(r, ret_value) : take_variable(r, ret_value);
}

/* ---- comparisons ---- */

enum { OP_MAX = 8 };

static int take_operator(struct reader *r, char op[OP_MAX])
{
    skip_blanks(r);
    size_t n = strspn(r->p, "<>=!~");
    if (n > 0 && n < 4) {
        (void)px_fmt(op, OP_MAX, "%.*s", (int)n, r->p);
        r->p += n;
        return 0;
    }
    if (take_word(r, "in"))
        return px_fmt(op, OP_MAX, "in") < 0 ? -EINVAL : 0;
    return take_word(r, "not") && take_word(r, "in") && px_fmt(op, OP_MAX, "not in") >= 0 ? 0 : -EINVAL;
}

static int compare_texts(const char *a, const char *op, const char *b)
{
    int order = strcmp(a, b);
    if (px_equal(op, "=="))
        return order == 0;
    if (px_equal(op, "!="))
        return order != 0;
    if (px_equal(op, "<") || px_equal(op, "<="))
        return order < 0 || (op[1] && order == 0);
    if (px_equal(op, ">") || px_equal(op, ">="))
        return order > 0 || (op[1] && order == 0);
    return -EINVAL;
}

static int compare(const char *a, const char *op, const char *b)
{
    if (px_equal(op, "in") || px_equal(op, "not in"))
        return (strstr(b, a) != NULL) == (op[0] == 'i');
    int r = px_version_clause(a, op, strlen(op), b, strlen(b));
    return r >= 0 ? r : compare_texts(a, op, b);
}

/* `extra` is compared with each requested extra; only == and != are allowed. */
static int compare_extra(const struct px_marker_env *env, const char *op, const char *text)
{
    char wanted[VALUE_MAX], given[VALUE_MAX];
    bool found = false;
    if ((!px_equal(op, "==") && !px_equal(op, "!=")) || px_marker_package_name(text, strlen(text), wanted, sizeof wanted) < 0)
        return -EINVAL;
    for (const char *const *extra = env->extras; extra && *extra; extra++)
        found = found || (px_marker_package_name(*extra, strlen(*extra), given, sizeof given) == 0 && px_equal(given, wanted));
    return found == (op[0] == '=');
}

static int take_or(struct reader *r);

static int take_comparison(struct reader *r)
{
    struct value a, b;
    char op[OP_MAX];
    skip_blanks(r);
    if (*r->p == '(') {
        if (++r->depth > DEPTH_MAX)
            return -EINVAL;
        r->p++;
        int inner = take_or(r);
        skip_blanks(r);
        r->depth--;
        if (inner < 0 || *r->p != ')')
            return -EINVAL;
        r->p++;
        return inner;
    }
    if (take_value(r, &a) < 0 || take_operator(r, op) < 0 || take_value(r, &b) < 0 || (!a.variable && !b.variable))
        return -EINVAL;
    if (a.extra || b.extra)
        return a.extra && b.extra ? -EINVAL : compare_extra(r->env, op, a.extra ? b.text : a.text);
    return compare(a.text, op, b.text);
}

static int take_and(struct reader *r)
{
    int all = take_comparison(r);
    while (all >= 0 && take_word(r, "and")) {
        int next = take_comparison(r);
        all = next < 0 ? next : all && next;
    }
    return all;
}

static int take_or(struct reader *r)
{
    int any = take_and(r);
    while (any >= 0 && take_word(r, "or")) {
        int next = take_and(r);
        any = next < 0 ? next : any || next;
    }
    return any;
}

int px_marker_holds(const char *marker, const struct px_marker_env *env)
{
    struct reader r = {.p = marker, .env = env};
    skip_blanks(&r);
    if (*r.p == '\0')
        return 1;
    int holds = take_or(&r);
    skip_blanks(&r);
    return holds < 0 || *r.p ? -EINVAL : holds;
}

/* ---- requirements ---- */

static bool is_name(char c)
{
    return is_word(c) || c == '-';
}

static void trim(const char **from, size_t *length)
{
    while (*length && strchr(" \t\r\n", **from)) {
        ++*from;
        --*length;
    }
    while (*length && strchr(" \t\r\n", (*from)[*length - 1]))
        --*length;
}

int px_marker_package_name(const char *text, size_t length, char *out, size_t size)
{
    size_t n = 0;
    if (length == 0 || !is_name(text[0]) || strchr("-_.", text[0]) || !is_name(text[length - 1]) || strchr("-_.", text[length - 1]))
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (!is_name(c))
            return -EINVAL;
        if (strchr("-_.", c)) {
            if (n && out[n - 1] == '-')
                continue;
            c = '-';
        }
        if (n + 1 >= size)
            return -ENAMETOOLONG;
        out[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    out[n] = '\0';
    return 0;
}

/* A URL ends at " ;" or at the end of the text; a range, bracketed or not, ends at the semicolon. */
static int take_rest(const char *p, struct px_requirement *q)
{
    size_t n;
    if (*p == '@') {
        q->url = ++p;
        const char *end = strstr(p, " ;");
        n = end ? (size_t)(end - p) : strlen(p);
        q->url_length = n;
        trim(&q->url, &q->url_length);
        if (q->url_length == 0)
            return -EINVAL;
        p += n + (end ? 1 : 0);
    } else {
        n = strcspn(p, ";");
        q->range = p;
        q->range_length = n;
        trim(&q->range, &q->range_length);
        if (q->range_length > 1 && q->range[0] == '(' && q->range[q->range_length - 1] == ')') {
            q->range++;
            q->range_length -= 2;
            trim(&q->range, &q->range_length);
        }
        if (q->range_length && !strchr("<>=!~", q->range[0]))
            return -EINVAL;
        p += n;
    }
    if (*p != ';')
        return 0;
    q->marker = p + 1;
    q->marker_length = strlen(q->marker);
    trim(&q->marker, &q->marker_length);
    return q->marker_length ? 0 : -EINVAL;
}

int px_marker_requirement_parse(const char *text, struct px_requirement *ret_requirement)
{
    struct px_requirement q = {.extras = "", .range = "", .url = "", .marker = ""};
    const char *p = text + strspn(text, " \t\r\n");
    char name[VALUE_MAX];
    q.name = p;
    while (is_name(*p))
        p++;
    q.name_length = (size_t)(p - q.name);
    if (px_marker_package_name(q.name, q.name_length, name, sizeof name) < 0)
        return -EINVAL;
    p += strspn(p, " \t");
    if (*p == '[') {
        q.extras = p + 1;
        q.extras_length = strcspn(q.extras, "]");
        if (q.extras[q.extras_length] != ']')
            return -EINVAL;
        p = q.extras + q.extras_length + 1;
        trim(&q.extras, &q.extras_length);
        p += strspn(p, " \t");
    }
    if (take_rest(p, &q) < 0)
        return -EINVAL;
    *ret_requirement = q;
    return 0;
}
