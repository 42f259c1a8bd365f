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

#include "kernel/filters.inc"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define PROGRAM(name)                           \
    do {                                        \
        *ret_len = COUNT_OF(px_filter_##name);  \
        return px_filter_##name;                \
    } while (0)

enum { LOAD = 0x20, AND = 0x54, EQUAL = 0x15, RETURN = 0x06, NUMBER = 0, FIRST = 16, SECOND = 24 };
enum { REFUSE = 0x00050001 /* EPERM */, UNREACHABLE = 0x00050065 /* ENETUNREACH */, ALLOW = 0x7fff0000 };

/* A filter cannot know the number of its process, so even the process's own number is refused: glibc passes a
 * thread's number to set its scheduler and processors (pthread_setaffinity_np), and reports the error. nice, taskset
 * and Python pass 0, which is the caller itself. */
static const struct sock_filter *only_itself(uint16_t *ret_len)
{
    static const struct sock_filter code[] = {
        {LOAD, 0, 0, NUMBER},
        {EQUAL, 6, 0, SYS_sched_setaffinity},
        {EQUAL, 5, 0, SYS_sched_setscheduler},
        {EQUAL, 4, 0, SYS_sched_setparam},
        {EQUAL, 3, 0, SYS_sched_setattr},
        {EQUAL, 5, 0, SYS_setpriority},
        {EQUAL, 6, 0, SYS_ioprio_set},
        {RETURN, 0, 0, ALLOW},
        {LOAD, 0, 0, FIRST},
        {EQUAL, 8, 0, 0},
        {RETURN, 0, 0, REFUSE},
        {LOAD, 0, 0, FIRST},
        {EQUAL, 2, 4, 0 /* PRIO_PROCESS */},
        {LOAD, 0, 0, FIRST},
        {EQUAL, 0, 2, 1 /* IOPRIO_WHO_PROCESS */},
        {LOAD, 0, 0, SECOND},
        {EQUAL, 1, 0, 0},
        {RETURN, 0, 0, REFUSE},
        {RETURN, 0, 0, ALLOW},
    };
    *ret_len = COUNT_OF(code);
    return code;
}

/* Restricts what the other filter allows. That one refuses other types, other families and io_uring with a
 * notification, which a refusal here would hide. ENETUNREACH is the error that programs know from a machine without
 * a network. */
static const struct sock_filter *no_internet(uint16_t *ret_len)
{
    static const struct sock_filter code[] = {
        {LOAD, 0, 0, NUMBER},
        {EQUAL, 0, 8, SYS_socket},
        {LOAD, 0, 0, FIRST},
        {EQUAL, 1, 0, 2 /* AF_INET */},
        {EQUAL, 0, 5, 10 /* AF_INET6 */},
        {LOAD, 0, 0, SECOND},
        {AND, 0, 0, 15 /* without SOCK_CLOEXEC and SOCK_NONBLOCK */},
        {EQUAL, 1, 0, 1 /* SOCK_STREAM */},
        {EQUAL, 0, 1, 2 /* SOCK_DGRAM */},
        {RETURN, 0, 0, UNREACHABLE},
        {RETURN, 0, 0, ALLOW},
    };
    *ret_len = COUNT_OF(code);
    return code;
}

/* Not a table: that would need a relocation, and so writable memory at start. */
const struct sock_filter *px_seccomp_program(enum px_filter filter, uint16_t *ret_len)
{
    switch (filter) {
    case PX_FILTER_DEFAULT:
        PROGRAM(default);
    case PX_FILTER_STRICT:
        PROGRAM(strict);
    case PX_FILTER_STRICT_WORKSPACE:
        PROGRAM(strict_workspace);
    case PX_FILTER_FLOOR:
        PROGRAM(floor);
    case PX_FILTER_FLOOR_WORKSPACE:
        PROGRAM(floor_workspace);
    case PX_FILTER_BUILD:
        PROGRAM(build);
    case PX_FILTER_SELF:
        return only_itself(ret_len);
    case PX_FILTER_OFFLINE:
        return no_internet(ret_len);
    case PX_FILTER_WORKSPACE:
        break;
    }
    PROGRAM(workspace);
}

const struct sock_filter *px_seccomp_spare_init(uint16_t *ret_len)
{
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
    return r > 0 ? -ESRCH : (int)r;     /* above 0: the id of a thread that has another filter of its own */
}
