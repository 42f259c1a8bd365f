#include "kernel/seccomp.h"

#include <errno.h>
#include <sys/prctl.h>

#include "base/sys.h"

enum {
    SET_MODE_FILTER = 1,
    FLAG_TSYNC = 1 << 0,
};

/* The kernel's layout of one instruction and of a program. */
struct sock_filter {
    uint16_t code;
    uint8_t jt;
    uint8_t jf;
    uint32_t k;
};
struct program {
    uint16_t len;
    const struct sock_filter *code;
};

#include "filters.inc"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Not a table: that would need a relocation, and so writable memory at start. */
const struct sock_filter *px_seccomp_program(enum px_filter filter, uint16_t *ret_len)
{
    if (filter == PX_FILTER_DEFAULT) {
        *ret_len = COUNT_OF(px_filter_default);
        return px_filter_default;
    }
    *ret_len = COUNT_OF(px_filter_workspace);
    return px_filter_workspace;
}

const struct sock_filter *px_seccomp_spare_init(uint16_t *ret_len)
{
    enum { LOAD = 0x20, EQUAL = 0x15, RETURN = 0x06, NUMBER = 0, FIRST = 16 };
    enum { REFUSE = 0x00050001 /* EPERM */, ALLOW = 0x7fff0000 };
    static const struct sock_filter code[] = {
        {LOAD, 0, 0, NUMBER},
        {EQUAL, 6, 0, SYS_kill},
        {EQUAL, 5, 0, SYS_tkill},
        {EQUAL, 4, 0, SYS_tgkill},
        {EQUAL, 3, 0, SYS_rt_sigqueueinfo},
        {EQUAL, 2, 0, SYS_rt_tgsigqueueinfo},
        {EQUAL, 1, 0, 434 /* pidfd_open */},
        {RETURN, 0, 0, ALLOW},
        {LOAD, 0, 0, FIRST},
        {EQUAL, 0, 1, 1},
        {RETURN, 0, 0, REFUSE},
        {RETURN, 0, 0, ALLOW},
    };
    *ret_len = COUNT_OF(code);
    return code;
}

int px_seccomp_load(const struct sock_filter *program, uint16_t len)
{
    const struct program request = {.len = len, .code = program};

    if (px_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return -EPERM;
    long r = px_sys(SYS_seccomp, SET_MODE_FILTER, FLAG_TSYNC, &request);
    return r > 0 ? -ESRCH : (int)r;     /* above 0 it names a thread that has gone its own way with another filter */
}
