/* .ignore files: the same patterns as in .gitignore, for tools that are not git. The library knows rules that count in
 * every directory; so each line is made one that names the directory it was found in. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "helpers/git/git.h"

enum { FILE_MAX = 64 << 10, ALL_MAX = 256 << 10, LINE_MAX_BYTES = 4096, RULE_MAX = 16 << 10 };

static int too_much(const char *path, const char *why, struct px_err *e)
{
    px_fail(e, PX_E_LIMIT, 0, "'%.200s.ignore' cannot be used", path);
    return px_why(e, "%s", why);
}

/* "*.log" counts at any depth below its directory, "/a" and "a/b" there alone. */
static int add_line(struct look *l, const char *path, const char *line, size_t n, struct px_err *e)
{
    px_auto_buf struct px_buf rule = PX_BUF(RULE_MAX);
    bool negated = n > 0 && *line == '!';
    line += negated;
    n -= negated;
    while (n > 0 && strchr(" \t\r", line[n - 1]) && !(n > 1 && line[n - 2] == '\\'))
        n--;
    if (n == 0 || (*line == '#' && !negated))
        return 0;
    bool anchored = memchr(line, '/', n - 1) != NULL;
    px_buf_puts(&rule, negated ? "!/" : "/");
    px_buf_escape(&rule, path, "*?[]\\!# ");
    px_buf_puts(&rule, anchored ? "" : "**/");
    px_buf_add(&rule, line + (*line == '/'), n - (*line == '/'));
    px_buf_putc(&rule, '\n');
    if (rule.err < 0)
        return too_much(path, "A line in it is too long.", e);
    return git_ignore_add_rule(l->repo, px_buf_text(&rule)) < 0 ? git_refused("read an .ignore file", e) : 0;
}

static int add_lines(struct look *l, const char *path, const char *text, size_t size, struct px_err *e)
{
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end ? (size_t)(end - text) - at : size - at;
        if (n > LINE_MAX_BYTES || memchr(text + at, '\0', n))
            return too_much(path, "A line in it is too long, or no text.", e);
        if (add_line(l, path, text + at, n, e) < 0)
            return -1;
        at += n + 1;
    }
    return 0;
}

int git_rules(struct look *l, int dir, const char *path, struct px_err *e)
{
    char text[FILE_MAX];
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, ".ignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd == -ENOENT || fd == -ELOOP)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return px_fail(e, PX_E_IO, fd < 0 ? fd : -errno, "cannot read '%.200s.ignore'", path);
    if (!S_ISREG(st.st_mode))
        return 0;
    ssize_t n = px_read_full(fd, text, sizeof text);
    if (n < 0)
        return px_fail(e, PX_E_IO, (int)n, "cannot read '%.200s.ignore'", path);
    l->rules += (size_t)n;
    if ((size_t)n == sizeof text || l->rules > ALL_MAX)
        return too_much(path, "Such files may have 64 KiB, and 256 KiB all together.", e);
    return add_lines(l, path, text, (size_t)n, e);
}
