#include "state/home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

static const char own[] = "Set PX_HOME to the absolute path of a directory of your own.";

int px_home_find(const char *home, const struct px_home_use *use, char *out, size_t size, struct px_err *e)
{
    const char *given = home ? home : getenv("PX_HOME");
    const char *user = getenv("HOME");
    int r = given && *given ? px_fmt(out, size, "%s", given)
            : user && *user ? px_fmt(out, size, "%s/.px", user)
                            : -ENOENT;

    if (r == -ENOENT) {
        (void)px_fail(e, (enum px_code)use->code, 0, "there is no place for %s", use->what);
        (void)px_why(e, "Neither PX_HOME nor HOME is set.");
        return px_fix(e, "%s", own);
    }
    if (r >= 0 && out[0] == '/')
        return 0;
    (void)px_fail(e, (enum px_code)use->code, 0, "'%.200s' cannot be the directory of px's state",
                  given && *given ? given : user);
    (void)px_why(e, "It is not an absolute path, or too long.");
    return px_fix(e, "%s", own);
}

static int check(int fd, const char *shown, mode_t forbidden, const struct px_home_use *use, struct px_err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return px_fail(e, (enum px_code)use->code, errno, "cannot look at '%s'", shown);
    if (st.st_uid == geteuid() && (st.st_mode & forbidden) == 0)
        return 0;
    (void)px_fail(e, (enum px_code)use->code, 0, "'%s' cannot hold %s", shown, use->what);
    if (st.st_uid != geteuid()) {
        (void)px_why(e, "It belongs to another user.");
        return px_fix(e, "%s", own);
    }
    (void)px_why(e, "Other users can get at it (mode %o).", (unsigned)(st.st_mode & 07777));
    return px_fix(e, "chmod 700 '%s'", shown);
}

int px_home_enter(int parent, const char *name, const char *shown, bool make, mode_t forbidden,
                  const struct px_home_use *use, int *ret_fd, struct px_err *e)
{
    int links = parent == AT_FDCWD ? 0 : O_NOFOLLOW;
    int made = make ? (int)px_sys(SYS_mkdirat, parent, name, 0700) : -EEXIST;

    if (made < 0 && made != -EEXIST)
        return px_fail(e, (enum px_code)use->code, made, "cannot make '%s'", shown);
    if (made == 0 && parent != AT_FDCWD)
        (void)fsync(parent);
    px_auto_fd int fd = (int)px_sys(SYS_openat, parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | links);
    if (fd == -ENOENT && !make)
        return 1;
    if (fd < 0)
        return px_fail(e, (enum px_code)use->code, fd, "cannot open '%s'", shown);
    if (check(fd, shown, forbidden, use, e) < 0)
        return -1;
    *ret_fd = px_fd_take(&fd);
    return 0;
}
