#include "files/glob.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

/* ---- one part ---- */

/* The character at text and how long it is; a byte that is no UTF-8 is a character beyond all others. */
static uint32_t char_at(const char *text, size_t *ret_len)
{
    const unsigned char *u = (const unsigned char *)text;
    size_t n = u[0] < 0x80 ? 1 : px_utf8_length(text, strnlen(text, 4));
    *ret_len = n ? n : 1;
    switch (n) {
    case 0:
        return 0x110000u + u[0];
    case 1:
        return u[0];
    case 2:
        return (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu);
    case 3:
        return (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
    default:
        return (u[0] & 0x07u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
    }
}

/* Behind the "[": whether the character is in the class, and how long that is; 0: it has no end, so it is no class. */
static size_t match_class(const char *p, uint32_t c, bool *ret_in, uint64_t *fuel)
{
    const char *begin = p;
    bool negated = *p == '!' || *p == '^', in = false;
    p += negated;
    for (bool first = true; *p && (*p != ']' || first); first = false) {
        size_t n, m = 0;
        uint32_t low = char_at(p, &n), high = low;
        p += n;
        if (p[0] == '-' && p[1] && p[1] != ']') {
            high = char_at(p + 1, &m);
            p += 1 + m;
        }
        in = in || (c >= low && c <= high);
        *fuel -= *fuel > 0;
    }
    *ret_in = in != negated;
    return *p == ']' ? (size_t)(p - begin) + 1 : 0;
}

/* One element of the pattern that is no star against one character; the element's length, 0 if it does not match. */
static size_t match_one(const char *p, const char *name, size_t *ret_name_len, uint64_t *fuel)
{
    size_t n;
    uint32_t c = char_at(name, ret_name_len);
    if (*p == '?')
        return 1;
    if (*p == '[') {
        bool in;
        size_t len = match_class(p + 1, c, &in, fuel);
        if (len)
            return in ? 1 + len : 0;
    }
    return *p && char_at(p, &n) == c ? n : 0;
}

/* Only the last star need ever be tried again: at most length times length steps. */
static bool match_part(const char *p, const char *name, uint64_t *fuel)
{
    const char *star = NULL, *retry = NULL;
    while (*name) {
        size_t len = 0, step;
        if (*fuel == 0)
            return false;
        --*fuel;
        if (*p == '*') {
            star = ++p;
            retry = name;
        } else if ((step = match_one(p, name, &len, fuel))) {
            p += step;
            name += len;
        } else if (star) {
            (void)char_at(retry, &len);
            retry += len;
            name = retry;
            p = star;
        } else {
            return false;
        }
    }
    return p[strspn(p, "*")] == '\0';
}

/* ---- parts ---- */

int px_glob_init(struct px_glob *glob, const char *pattern)
{
    size_t len = strlen(pattern);
    if (len == 0 || pattern[0] == '/' || pattern[0] == '~')
        return -EINVAL;
    if (len > PX_GLOB_LENGTH)
        return -E2BIG;
    memcpy(glob->text, pattern, len + 1);
    glob->count = 0;
    glob->any = 0;
    glob->directories = pattern[len - 1] == '/';
    for (size_t at = 0, n; at < len; at += n + 1) {
        n = strcspn(glob->text + at, "/");
        glob->text[at + n] = '\0';
        const char *part = glob->text + at;
        if (strcmp(part, "..") == 0)
            return -EINVAL;
        if (n == 0 || strcmp(part, ".") == 0)
            continue;
        if (glob->count == PX_GLOB_PARTS)
            return -E2BIG;
        if (strcmp(part, "**") == 0)
            glob->any |= UINT64_C(1) << glob->count;
        glob->part[glob->count++] = (uint16_t)at;
    }
    return glob->count ? 0 : -EINVAL;
}

/* ** also stands for nothing: whoever is at it is behind it as well. */
static uint64_t close_set(const struct px_glob *glob, uint64_t set)
{
    for (unsigned i = 0; i < glob->count; i++)
        if (set & glob->any & UINT64_C(1) << i)
            set |= UINT64_C(1) << (i + 1);
    return set;
}

uint64_t px_glob_start(const struct px_glob *glob)
{
    return close_set(glob, 1);
}

uint64_t px_glob_step(const struct px_glob *glob, uint64_t set, const char *name, uint64_t *fuel)
{
    uint64_t next = set & glob->any;
    for (unsigned i = 0; i < glob->count; i++) {
        uint64_t bit = UINT64_C(1) << i;
        if (set & bit & ~glob->any && match_part(glob->text + glob->part[i], name, fuel))
            next |= bit << 1;
    }
    return close_set(glob, next);
}

bool px_glob_accepts(const struct px_glob *glob, uint64_t set)
{
    return set >> glob->count & 1;
}

bool px_glob_goes_on(const struct px_glob *glob, uint64_t set)
{
    return (set & ((UINT64_C(1) << glob->count) - 1)) != 0;
}

bool px_glob_match(const struct px_glob *glob, const char *path, uint64_t *fuel)
{
    uint64_t set = px_glob_start(glob);
    char name[256];
    while (*path && set) {
        size_t n = strcspn(path, "/");
        if (n >= sizeof name)
            return false;
        memcpy(name, path, n);
        name[n] = '\0';
        if (n > 0)
            set = px_glob_step(glob, set, name, fuel);
        path += n + (path[n] == '/');
    }
    return px_glob_accepts(glob, set);
}
