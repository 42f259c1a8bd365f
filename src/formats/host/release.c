/* Which distribution this is. */
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "host/release.h"

enum { RELEASE_MAX = 16 * 1024, LINES_MAX = 200 };

/* The value of KEY=VALUE without its quotes; len 0 if the line has another key. */
static const char *value_of(const char *line, size_t len, const char *key, size_t *ret_len)
{
    size_t n = strlen(key);
    *ret_len = 0;
    if (len <= n || memcmp(line, key, n) != 0 || line[n] != '=')
        return NULL;
    const char *value = line + n + 1;
    len -= n + 1;
    if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
        value++;
        len -= 2;
    }
    *ret_len = len;
    return value;
}

static bool has_word(const char *list, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= len; i++)
        if (memcmp(list + i, word, n) == 0 && (i == 0 || list[i - 1] == ' ') && (i + n == len || list[i + n] == ' '))
            return true;
    return false;
}

static const struct {
    const char *word;
    enum px_family family;
} families[] = {        /* derivatives of Ubuntu have ID_LIKE="ubuntu debian" */
    {"ubuntu", PX_FAMILY_UBUNTU}, {"debian", PX_FAMILY_DEBIAN}, {"fedora", PX_FAMILY_FEDORA}, {"rhel", PX_FAMILY_FEDORA},
    {"centos", PX_FAMILY_FEDORA}, {"arch", PX_FAMILY_ARCH},     {"alpine", PX_FAMILY_ALPINE},
};

static enum px_family family_of(const char *list, size_t len)
{
    for (size_t i = 0; i < PX_COUNT_OF(families); i++)
        if (has_word(list, len, families[i].word))
            return families[i].family;
    return PX_FAMILY_OTHER;
}

static void take_line(const char *line, size_t len, struct px_release *r, bool *by_id)
{
    size_t n;
    const char *value = value_of(line, len, "ID", &n);
    if (value && family_of(value, n) != PX_FAMILY_OTHER) {
        r->family = family_of(value, n);
        *by_id = true;          /* ID is more specific than ID_LIKE */
    }
    if ((value = value_of(line, len, "ID_LIKE", &n)) && !*by_id)
        r->family = family_of(value, n);
    if ((value = value_of(line, len, "PRETTY_NAME", &n)) && n > 0) {
        px_auto_buf struct px_buf quoted = PX_BUF(sizeof r->name - 1);
        (void)px_buf_quote(&quoted, value, n);
        (void)px_fmt(r->name, sizeof r->name, "%s", px_buf_text(&quoted));
    }
}

void px_release_parse(const char *text, size_t len, struct px_release *ret_release)
{
    struct px_release r = {.family = PX_FAMILY_OTHER, .name = "unknown"};
    bool by_id = false;
    for (size_t at = 0, lines = 0; at < len && lines < LINES_MAX; lines++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        take_line(text + at, n, &r, &by_id);
        at += n + 1;
    }
    *ret_release = r;
}

bool px_release_value(const char *text, size_t len, const char *key, char *ret_value, size_t size)
{
    for (size_t at = 0, lines = 0; at < len && lines < LINES_MAX; lines++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at, value_len;
        const char *value = value_of(text + at, n, key, &value_len);
        if (value && value_len > 0)
            return px_fmt(ret_value, size, "%.*s", (int)value_len, value) >= 0;
        at += n + 1;
    }
    return false;
}

void px_release_read(struct px_release *ret_release)
{
    char text[RELEASE_MAX];
    ssize_t n = px_read_file(AT_FDCWD, "/etc/os-release", text, sizeof text);
    if (n < 0)
        n = px_read_file(AT_FDCWD, "/usr/lib/os-release", text, sizeof text);
    px_release_parse(text, n < 0 ? 0 : (size_t)n, ret_release);
}
