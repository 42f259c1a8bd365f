#include "kernel/notify.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/ioctl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "base/sys.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

void px_notify_patch(struct sock_filter *code, uint16_t length, bool ours)
{
    for (uint16_t i = 0; i < length; i++)
        if (code[i].code == (BPF_RET | BPF_K) && (code[i].k == (SECCOMP_RET_ERRNO | EPERM) ||
                                                  (ours && code[i].k == (SECCOMP_RET_ERRNO | EAFNOSUPPORT))))
            code[i].k = SECCOMP_RET_USER_NOTIF;
}

void px_notify_restore(struct sock_filter *code, uint16_t length)
{
    for (uint16_t i = 0; i < length; i++)
        if (code[i].code == (BPF_RET | BPF_K) && code[i].k == SECCOMP_RET_USER_NOTIF)
            code[i].k = SECCOMP_RET_ERRNO | EPERM;
}

int px_notify_load(const struct sock_filter *code, uint16_t length)
{
    const struct {
        uint16_t length;
        const struct sock_filter *code;
    } request = {length, code};
    static const unsigned long flags[] = {SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                                          SECCOMP_FILTER_FLAG_NEW_LISTENER};

    if (px_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return -EPERM;
    long fd = px_sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[0], &request);
    if (fd == -EINVAL)          /* before Linux 5.19 a signal makes the process repeat the call */
        fd = px_sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[1], &request);
    return (int)fd;
}

/* In px's own filters only these two are refused with another error than EPERM. */
static int answer_for(int number, bool ours)
{
    return ours && (number == SYS_socket || number == SYS_socketpair) ? -EAFNOSUPPORT : -EPERM;
}

int px_notify_receive(int listener, struct px_notify_call *ret_call)
{
    struct seccomp_notif call = {0};
    long r = px_sys(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, &call);
    if (r < 0)
        return (int)r;
    *ret_call = (struct px_notify_call){.id = call.id, .number = call.data.nr, .pid = (int)call.pid};
    return 0;
}

int px_notify_answer(int listener, const struct px_notify_call *call, bool ours)
{
    struct seccomp_notif_resp answer = {.id = call->id, .error = answer_for(call->number, ours)};
    long r = px_sys(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    return r < 0 ? (int)r : 0;
}

int px_notify_take(int listener, bool ours)
{
    struct px_notify_call call = {0};
    int r = px_notify_receive(listener, &call);
    if (r < 0)
        return r;
    r = px_notify_answer(listener, &call, ours);
    return r < 0 && r != -ENOENT ? r : call.number;
}
