/* kernel/allow.h - allow-lists of system calls as constant programs, for px's own processes that read untrusted
 * bytes.
 *
 * Why:     a helper or a server needs few calls. It cannot make any other, whatever mistake is in its code.
 * Owns:    nothing; the programs are constants of the file that uses them.
 * Mustn't: be used for boxes, whose filters are made from data/syscalls.def. */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* An allow-list as a constant program:
 *     static const struct sock_filter filter[] = {CONFINE_HEAD CONFINE_COMMON CONFINE_ALLOW(SYS_mkdirat) CONFINE_TAIL};
 * What is not named is EPERM. */
#define CONFINE_LOAD(offset) {BPF_LD | BPF_W | BPF_ABS, 0, 0, (offset)},
#define CONFINE_RETURN(what) {BPF_RET | BPF_K, 0, 0, (what)},
#define CONFINE_ALLOW(number) {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (number)}, CONFINE_RETURN(SECCOMP_RET_ALLOW)
#define CONFINE_REFUSE(number, error) \
    {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (number)}, CONFINE_RETURN(SECCOMP_RET_ERRNO | (error))
/* Allowed if none, or all, of these bits of the lower half of an argument are set. */
#define CONFINE_ARGUMENT(n) (offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))
#define CONFINE_ALLOW_WITHOUT(number, n, bits)                                                                      \
    {BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (number)}, CONFINE_LOAD(CONFINE_ARGUMENT(n))                                  \
    {BPF_JMP | BPF_JSET | BPF_K, 0, 1, (bits)}, CONFINE_RETURN(SECCOMP_RET_ERRNO | 1) CONFINE_RETURN(SECCOMP_RET_ALLOW)
#define CONFINE_ALLOW_WITH(number, n, bits)                                                                         \
    {BPF_JMP | BPF_JEQ | BPF_K, 0, 5, (number)}, CONFINE_LOAD(CONFINE_ARGUMENT(n))                                  \
    {BPF_ALU | BPF_AND | BPF_K, 0, 0, (bits)}, {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (bits)},                           \
    CONFINE_RETURN(SECCOMP_RET_ALLOW) CONFINE_RETURN(SECCOMP_RET_ERRNO | 1)

enum {
    CONFINE_X32 = 0x40000000,
    CONFINE_THREAD = 0x00010100,        /* CLONE_THREAD | CLONE_VM */
    CONFINE_NO_CLONE3 = 38,             /* ENOSYS: the C library then uses clone, whose flags the filter can see */
};

#define CONFINE_HEAD                                                                                                \
    CONFINE_LOAD(offsetof(struct seccomp_data, arch))                                                               \
    {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64}, CONFINE_RETURN(SECCOMP_RET_KILL_PROCESS)                  \
    CONFINE_LOAD(offsetof(struct seccomp_data, nr))                                                                 \
    {BPF_JMP | BPF_JGE | BPF_K, 0, 1, CONFINE_X32}, CONFINE_RETURN(SECCOMP_RET_KILL_PROCESS)
#define CONFINE_TAIL CONFINE_RETURN(SECCOMP_RET_ERRNO | 1 /* EPERM */)

/* What any program with threads and an allocator needs. Memory is never executable, and only threads can be cloned. */
#define CONFINE_COMMON                                                                                              \
    CONFINE_ALLOW(SYS_read) CONFINE_ALLOW(SYS_write) CONFINE_ALLOW(SYS_futex) CONFINE_ALLOW(SYS_close)              \
    CONFINE_ALLOW(SYS_munmap) CONFINE_ALLOW(SYS_mremap) CONFINE_ALLOW(SYS_madvise) CONFINE_ALLOW(SYS_brk)           \
    CONFINE_ALLOW(SYS_sendmsg) CONFINE_ALLOW(SYS_sendto) CONFINE_ALLOW(SYS_exit) CONFINE_ALLOW(SYS_exit_group)      \
    CONFINE_ALLOW(SYS_clock_gettime) CONFINE_ALLOW(SYS_rt_sigprocmask) CONFINE_ALLOW(SYS_rt_sigreturn)              \
    CONFINE_ALLOW(SYS_set_robust_list) CONFINE_ALLOW(SYS_rseq) CONFINE_ALLOW(SYS_sched_getaffinity)                 \
    CONFINE_ALLOW(SYS_getrandom) CONFINE_ALLOW(SYS_gettid) CONFINE_ALLOW(SYS_getpid)                                \
    CONFINE_ALLOW(SYS_restart_syscall)                                                                              \
    CONFINE_REFUSE(SYS_clone3, CONFINE_NO_CLONE3)                                                                   \
    CONFINE_ALLOW_WITHOUT(SYS_mmap, 2, PROT_EXEC) CONFINE_ALLOW_WITHOUT(SYS_mprotect, 2, PROT_EXEC)                 \
    CONFINE_ALLOW_WITH(SYS_clone, 0, CONFINE_THREAD)
