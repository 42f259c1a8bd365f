/* What px-git keeps: reading below one directory, or two. */
#include <fcntl.h>

#include "base/text.h"
#include "helpers/confine.h"
#include "helpers/git/git.h"
#include "kernel/abi.h"

enum { CAP_DAC_READ_SEARCH_BIT = 2, FILES = 512 };
#define MEMORY_BYTES (2ULL << 30)       /* packs and their lists are mapped, a part at a time */

/* Even where the kernel has no Landlock nothing is opened for writing. */
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)

// clang-format off
static const struct sock_filter filter[] = {
    CONFINE_HEAD CONFINE_COMMON
    CONFINE_ALLOW_WITHOUT(SYS_openat, 2, WRITES) CONFINE_ALLOW_WITHOUT(SYS_open, 1, WRITES)
    CONFINE_ALLOW(SYS_newfstatat) CONFINE_ALLOW(SYS_fstat) CONFINE_ALLOW(SYS_stat) CONFINE_ALLOW(SYS_lstat)
    CONFINE_ALLOW(SYS_statx) CONFINE_ALLOW(SYS_access) CONFINE_ALLOW(SYS_faccessat) CONFINE_ALLOW(SYS_faccessat2)
    CONFINE_ALLOW(SYS_readlink) CONFINE_ALLOW(SYS_readlinkat) CONFINE_ALLOW(SYS_getdents64) CONFINE_ALLOW(SYS_getcwd)
    CONFINE_ALLOW(SYS_lseek) CONFINE_ALLOW(SYS_pread64) CONFINE_ALLOW(SYS_fcntl) CONFINE_ALLOW(SYS_sched_yield)
    CONFINE_ALLOW(SYS_getuid) CONFINE_ALLOW(SYS_geteuid) CONFINE_ALLOW(SYS_getgid) CONFINE_ALLOW(SYS_getegid)
    CONFINE_ALLOW(SYS_gettimeofday) CONFINE_ALLOW(SYS_time)
    CONFINE_TAIL};
// clang-format on

int git_confine(bool elsewhere)
{
    const struct confine_path paths[] = {{GIT_TOP, PX_LL_READ_FILE | PX_LL_READ_DIR},
                                         {GIT_ELSEWHERE, PX_LL_READ_FILE | PX_LL_READ_DIR}};
    return confine(&(struct confine){
        .paths = paths,
        .path_count = elsewhere ? 2 : 1,
        .filter = filter,
        .filter_length = PX_COUNT_OF(filter),
        .keep_caps = 1ULL << CAP_DAC_READ_SEARCH_BIT,   /* the administrator packs what users own */
        .memory_bytes = MEMORY_BYTES,
        .file_bytes = PX_GIT_BYTES_MAX,
        .files = FILES,
    });
}
