/* Names of archives. Six places of an archive can give one (header, prefix, two kinds of long names, link targets); all
 * end here. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "helpers/layer/layer.h"

static int bad(const char **ret_reason, const char *reason)
{
    *ret_reason = reason;
    return -1;
}

/* One part at raw[0..n): copied behind what is in out. */
static int add_part(const char *raw, size_t n, char out[NAME_SIZE], size_t *at, unsigned *depth,
                    const char **ret_reason)
{
    if (n == 0)
        return bad(ret_reason, "its name has an empty part");
    if (n == 1 && raw[0] == '.')
        return 0;
    if (n == 2 && memcmp(raw, "..", 2) == 0)
        return bad(ret_reason, "its name has a '..' in it");
    if (n > PART_MAX)
        return bad(ret_reason, "a part of its name is longer than 255 bytes");
    if (++*depth > DEPTH_MAX)
        return bad(ret_reason, "it lies more than 128 directories deep");
    if (*at > 0)
        out[(*at)++] = '/';
    memcpy(out + *at, raw, n);
    *at += n;
    return 0;
}

int name_clean(const char *raw, size_t length, bool directory, char out[NAME_SIZE], const char **ret_reason)
{
    size_t at = 0;
    unsigned depth = 0;

    if (length == 0)
        return bad(ret_reason, "it has no name");
    if (memchr(raw, '\0', length))
        return bad(ret_reason, "its name has a NUL in it");
    if (raw[0] == '/')
        return bad(ret_reason, "its name is absolute");
    if (length >= NAME_SIZE)
        return bad(ret_reason, "its name is longer than 4095 bytes");
    if (raw[length - 1] == '/' && (!directory || length == 1))
        return bad(ret_reason, "its name ends in a slash, but it is not a directory");
    if (raw[length - 1] == '/')
        length--;
    while (length > 0) {
        const char *slash = memchr(raw, '/', length);
        size_t n = slash ? (size_t)(slash - raw) : length;
        if (add_part(raw, n, out, &at, &depth, ret_reason) < 0)
            return -1;
        if (slash && n + 1 == length)
            return bad(ret_reason, "its name has an empty part");
        raw += n + (slash != NULL);
        length -= n + (slash != NULL);
    }
    out[at] = '\0';
    return 0;
}

struct shown show(const char *name, size_t length)
{
    enum { MOST = 100 };
    struct shown s;
    px_auto_buf struct px_buf text = PX_BUF(sizeof s.text - 8);
    px_buf_quote(&text, name, length < MOST ? length : MOST);
    (void)snprintf(s.text, sizeof s.text, "%s%s", px_buf_text(&text), length > MOST || text.err < 0 ? "..." : "");
    return s;
}
