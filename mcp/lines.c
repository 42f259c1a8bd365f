#include "mcp/lines.h"

#include <errno.h>
#include <string.h>

void serve_lines_init(struct serve_lines *l)
{
    *l = (struct serve_lines){.line = PX_BUF(SERVE_LINE_MAX)};
}

void serve_lines_done(struct serve_lines *l)
{
    px_buf_done(&l->line);
}

static void start_over(struct serve_lines *l)
{
    l->line.len = 0;
    l->line.err = 0;
}

int serve_lines_next(struct serve_lines *l, const char **data, size_t *len, struct serve_line *ret)
{
    if (l->line.len && l->line.data[l->line.len - 1] == '\n') /* the line of the last call */
        start_over(l);
    if (*len == 0)
        return 0;
    const char *end = memchr(*data, '\n', *len);
    size_t take = end ? (size_t)(end - *data) + 1 : *len;
    if (!l->skipping)
        (void)px_buf_add(&l->line, *data, take);
    *data += take;
    *len -= take;
    if (l->line.err == -ENOMEM)
        return -ENOMEM;
    l->skipping = l->skipping || l->line.err < 0;
    if (!end)
        return 0;
    *ret = (struct serve_line){l->skipping ? NULL : l->line.data, l->skipping ? 0 : l->line.len - 1};
    if (l->skipping)
        px_buf_done(&l->line); /* frees the buffer of a large line */
    l->skipping = false;
    l->line.max = SERVE_LINE_MAX;
    l->line.err = 0;
    return 1;
}

bool serve_lines_small(const char *data, size_t len)
{
    size_t depth = 0, values = 0;
    bool text = false;
    for (size_t i = 0; i < len; i++) {
        char c = data[i];
        if (text) {
            i += c == '\\';
            text = c != '"';
            continue;
        }
        text = c == '"';
        values += c == ',' || c == '[' || c == '{';
        depth += c == '[' || c == '{';
        depth -= (c == ']' || c == '}') && depth > 0;
        if (depth > SERVE_DEPTH_MAX || values > SERVE_VALUES_MAX)
            return false;
    }
    return true;
}
