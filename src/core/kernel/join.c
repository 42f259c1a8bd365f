#include "kernel/join.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "kernel/clone.h"

enum { STACK = 16 * 1024, WAIT_PIDFD = 3 /* P_PIDFD */ };

struct errand {
    int target;
    struct px_clone_args *args;
    void *stack;
    uint64_t stack_size;
    void (*fn)(void *);
    void *arg;
    long result;
};

static _Noreturn void run_helper(void *arg)
{
    struct errand *a = arg;
    a->result = px_sys(SYS_setns, a->target, PX_CLONE_NEWUSER | PX_CLONE_NEWNET);
    if (a->result >= 0)
        a->result = px_clone_run(a->args, a->stack, a->stack_size, a->fn, a->arg);
    for (;;)
        (void)px_sys(SYS_exit_group, 0);
}

/* The helper process shares our descriptor table, so that the pidfd of the new process is ours. CLONE_VFORK holds us
 * until the helper has ended. */
long px_join_clone(int target, struct px_clone_args *args, void *stack, uint64_t stack_size, void (*fn)(void *), void *arg)
{
    char own_stack[STACK] __attribute__((aligned(16)));
    struct errand errand = {.target = target, .args = args, .stack = stack, .stack_size = stack_size, .fn = fn, .arg = arg,
                            .result = -ESRCH};
    int pidfd = -1;
    struct px_clone_args helper = {
        .flags = PX_CLONE_VM | PX_CLONE_FILES | PX_CLONE_VFORK | PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND,
        .pidfd = (uintptr_t)&pidfd,
    };
    args->flags |= PX_CLONE_PARENT;
    long pid = px_clone_run(&helper, own_stack, sizeof own_stack, run_helper, &errand);
    if (pid < 0)
        return pid;
    while (px_sys(SYS_waitid, WAIT_PIDFD, pidfd, 0, WEXITED | __WALL, 0) == -EINTR)
        ;
    (void)px_sys(SYS_close, pidfd);
    return errand.result;
}
