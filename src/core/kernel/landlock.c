#include "kernel/landlock.h"

#include <sys/stat.h>

#include "base/sys.h"
#include "kernel/abi.h"

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

int px_landlock_abi(void)
{
    return (int)px_sys(SYS_landlock_create_ruleset, 0, 0, PX_LL_CREATE_RULESET_VERSION);
}

static uint64_t known(int abi)
{
    uint64_t rights = PX_LL_REFER - 1;  /* ABI 1: the thirteen before REFER */
    if (abi >= 2)
        rights |= PX_LL_REFER;
    if (abi >= 3)
        rights |= PX_LL_TRUNCATE;
    if (abi >= 5)
        rights |= PX_LL_IOCTL_DEV;
    return rights;
}

int px_landlock_new(int abi)
{
    struct px_landlock_ruleset_attr attr = {
        .handled_access_fs = known(abi),
        .scoped = abi >= 6 ? PX_LL_SCOPE_ABSTRACT_UNIX | PX_LL_SCOPE_SIGNAL : 0,
    };
    /* Older kernels accept a larger struct if the members that they do not know are zero, which they are. */
    return (int)px_sys(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
}

int px_landlock_allow(int ruleset_fd, int abi, int path_fd, uint64_t access)
{
    const uint64_t file_rights =
        PX_LL_EXECUTE | PX_LL_WRITE_FILE | PX_LL_READ_FILE | PX_LL_TRUNCATE | PX_LL_IOCTL_DEV;
    struct stat st = {0};
    long r = px_sys(SYS_newfstatat, path_fd, "", &st, AT_EMPTY_PATH);
    if (r < 0)
        return (int)r;
    if (!S_ISDIR(st.st_mode))
        access &= file_rights;
    struct px_landlock_path_attr attr = {.allowed_access = access & known(abi), .parent_fd = path_fd};
    return (int)px_sys(SYS_landlock_add_rule, ruleset_fd, PX_LL_RULE_PATH_BENEATH, &attr, 0);
}

int px_landlock_enforce(int ruleset_fd)
{
    return (int)px_sys(SYS_landlock_restrict_self, ruleset_fd, 0);
}

uint64_t px_landlock_read(void)
{
    return PX_LL_EXECUTE | PX_LL_READ_FILE | PX_LL_READ_DIR;
}

uint64_t px_landlock_write(void)
{
    return known(99) & ~(uint64_t)(PX_LL_MAKE_CHAR | PX_LL_MAKE_BLOCK | PX_LL_IOCTL_DEV);
}

uint64_t px_landlock_device(void)
{
    return PX_LL_READ_FILE | PX_LL_READ_DIR | PX_LL_WRITE_FILE | PX_LL_IOCTL_DEV | PX_LL_TRUNCATE;
}
