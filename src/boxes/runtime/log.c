#include "runtime/log.h"

#include <string.h>

struct cursor {
    const char *at, *end;
};

/* The byte that an escape stands for; letters beyond ASCII are not worth their decoding in an error message. */
static char unescape(struct cursor *c)
{
    char letter = c->at < c->end ? *c->at++ : '?';
    switch (letter) {
    case 'n':
    case 't':
    case 'r':
    case 'b':
    case 'f':
        return ' ';
    case 'u':
        c->at += c->end - c->at < 4 ? c->end - c->at : 4;
        return '?';
    default:
        return letter;          /* '"', '\\' and '/' */
    }
}

/* What follows `"msg":"` up to its closing quote, or as much of it as there is room for. */
static bool take_message(const char *line, size_t len, char *out, size_t size)
{
    static const char key[] = "\"msg\":";
    const char *found = memmem(line, len, key, sizeof key - 1);
    struct cursor c = {.at = found ? found + sizeof key - 1 : NULL, .end = line + len};
    size_t n = 0;
    while (found && c.at < c.end && *c.at == ' ')
        c.at++;
    if (!found || c.at == c.end || *c.at++ != '"')
        return false;
    while (c.at < c.end && *c.at != '"') {
        char byte = *c.at++;
        if (byte == '\\')
            byte = unescape(&c);
        if (n + 1 < size)
            out[n++] = byte ? byte : '?';
    }
    out[n] = '\0';
    return n > 0;
}

bool px_log_last(const char *text, size_t len, char *out, size_t size)
{
    bool any = false;
    out[0] = '\0';
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t line = end ? (size_t)(end - (text + at)) : len - at;
        any = take_message(text + at, line, out, size) || any;
        at += line + 1;
    }
    return any;
}
