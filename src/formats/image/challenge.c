#include "image/challenge.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static const char *skip_blank(const char *at)
{
    return at + strspn(at, " \t");
}

static size_t token_length(const char *at)
{
    size_t n = 0;
    while (isascii((unsigned char)at[n]) &&
           (isalnum((unsigned char)at[n]) || (at[n] && strchr("!#$%&'*+-.^_`|~", at[n]))))
        n++;
    return n;
}

/* Reads a token or a quoted string; -EINVAL if it is not closed, too long or not printable. */
static int take_value(const char **at, char *out, size_t size)
{
    size_t used = 0;
    const char *p = *at;
    if (*p != '"') {
        used = strcspn(p, " \t,\"");
        if (used == 0 || px_fmt(out, size, "%.*s", (int)used, p) < 0)
            return -EINVAL;
        p += used;
    } else {
        for (p++; *p != '"'; p++) {
            p += *p == '\\';
            if (!*p || used + 1 >= size)
                return -EINVAL;
            out[used++] = *p;
        }
        out[used] = '\0';
        p++;
    }
    for (const char *c = out; *c; c++)
        if (*c < ' ' || *c > '~')
            return -EINVAL;
    *at = p;
    return 0;
}

static int keep(struct px_challenge *c, const char *name, size_t len, const char *value)
{
    const struct {
        const char *name;
        char *out;
        size_t size;
    } rows[] = {{"realm", c->realm, sizeof c->realm},
                {"service", c->service, sizeof c->service},
                {"scope", c->scope, sizeof c->scope}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        if (strlen(rows[i].name) != len || strncasecmp(rows[i].name, name, len) != 0)
            continue;
        if (*rows[i].out || px_fmt(rows[i].out, rows[i].size, "%s", value) < 0)
            return -EINVAL;     /* given twice: ambiguous */
    }
    return 0;
}

/* name=value, ... up to the next scheme, which is a token without '=' behind it. */
static int take_parameters(const char **at, struct px_challenge *c)
{
    char value[1024];
    while (true) {
        const char *p = skip_blank(*at);
        while (*p == ',')
            p = skip_blank(p + 1);
        size_t n = token_length(p);
        const char *equal = skip_blank(p + n);
        *at = p;
        if (n == 0 || *equal != '=')
            return n == 0 && *p ? -EINVAL : 0;
        equal = skip_blank(equal + 1);
        if (take_value(&equal, value, sizeof value) < 0 || keep(c, p, n, value) < 0)
            return -EINVAL;
        *at = equal;
    }
}

static enum px_challenge_kind kind_of(const char *word, size_t len)
{
    if (len == 6 && strncasecmp(word, "bearer", 6) == 0)
        return PX_CHALLENGE_BEARER;
    return len == 5 && strncasecmp(word, "basic", 5) == 0 ? PX_CHALLENGE_BASIC : PX_CHALLENGE_NONE;
}

int px_challenge_parse(const char *header, struct px_challenge *ret_challenge)
{
    struct px_challenge best = {.kind = PX_CHALLENGE_NONE};
    const char *at = skip_blank(header);
    while (*at) {
        size_t n = token_length(at);
        struct px_challenge one = {.kind = kind_of(at, n)};
        if (n == 0)
            return -EINVAL;
        at += n;
        if (take_parameters(&at, &one) < 0)
            return -EINVAL;
        if (one.kind > best.kind)
            best = one;
    }
    *ret_challenge = best;
    return 0;
}
