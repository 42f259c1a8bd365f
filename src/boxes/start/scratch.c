/* Directories of the host that exist as long as their maker: the home directory and /tmp of a library's sandbox. */
#include <errno.h>
#include <limits.h>
#include <px/px.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "state/homes.h"

PX_API int px_scratch_make(const char *tmp, bool sweep, char **ret_path, int *ret_lock, struct px_err *e)
{
    PX_ERR(e);
    char path[PATH_MAX];
    px_auto_fd int lock = -EBADF;
    if (px_homes_make(tmp, sweep, path, sizeof path, &lock, e) < 0)
        return -1;
    *ret_path = strdup(path);
    if (!*ret_path) {
        px_homes_drop(path);
        return px_no_memory(e);
    }
    *ret_lock = px_fd_take(&lock);
    return 0;
}

PX_API void px_scratch_drop(const char *path)
{
    px_homes_drop(path);
}
