/* The library's way to open files. A pipe in the place of a file would make it wait for ever; so whatever it opens, it opens without
 * waiting. A program's own functions come before those of its libraries, and this is the one that it calls. */
#include <errno.h>
#include <fcntl.h>

#include "base/sys.h"
#include "helpers/git/git.h"

/* Nothing is ever made, so that a mode is of no account. Its own name is what the library calls, whatever the headers make of it. */
int git_open(const char *path, int flags, ...) __asm__("open");
int git_open(const char *path, int flags, ...)
{
    long r = px_sys(SYS_openat, AT_FDCWD, path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (r >= 0)
        return (int)r;
    errno = (int)-r;
    return -1;
}
