/* layout/fixture.h - what the tests of projects share: files of a project in the test's own directory.
 *
 * Why:     keeps the tests short.
 * Owns:    nothing.
 * Mustn't: be linked into the product. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

/* "a/b/pyproject.toml" below dir, with its directories. */
static inline void put(int dir, const char *path, const char *text)
{
    char part[256];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        ASSERT_OK(px_fmt(part, sizeof part, "%.*s", (int)(slash - path), path));
        ASSERT(mkdirat(dir, part, 0755) == 0 || errno == EEXIST);
    }
    px_auto_fd int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}
