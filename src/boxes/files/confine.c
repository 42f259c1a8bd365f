/* The same boundary once more, by the kernel alone: Landlock, for a thread that only works on these files. */
#include <errno.h>
#include <sys/prctl.h>

#include "base/fd.h"
#include "files/files.h"
#include "kernel/abi.h"
#include "kernel/landlock.h"

static const uint64_t read_rights = PX_LL_READ_FILE | PX_LL_READ_DIR;
/* MAKE_SYM: moving a link makes one. */
static const uint64_t write_rights = PX_LL_WRITE_FILE | PX_LL_TRUNCATE | PX_LL_MAKE_REG | PX_LL_MAKE_DIR |
                                     PX_LL_MAKE_SYM | PX_LL_REMOVE_FILE | PX_LL_REMOVE_DIR | PX_LL_REFER;

int px_files_confine(const struct px_files *files, struct px_err *e)
{
    PX_ERR(e);
    int abi = px_landlock_abi(), r = 0;
    if (abi <= 0)
        return 0;
    px_auto_fd int rules = px_landlock_new(abi);
    if (rules < 0)
        return px_fail(e, PX_E_LANDLOCK, rules, "the file sandbox cannot be confined");
    for (size_t i = 0; r >= 0 && i < files->count; i++)
        r = px_landlock_allow(rules, abi, files->roots[i].fd,
                              read_rights | (files->roots[i].writable ? write_rights : 0));
    if (r >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r >= 0)
        r = px_landlock_enforce(rules);
    return r < 0 ? px_fail(e, PX_E_LANDLOCK, r, "the file sandbox cannot be confined") : 1;
}
