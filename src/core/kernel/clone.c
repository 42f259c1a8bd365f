#include "kernel/clone.h"

#include <sys/syscall.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

long px_clone_run(struct px_clone_args *args, void *stack, uint64_t stack_size, void (*fn)(void *), void *arg)
{
    args->stack = (uintptr_t)stack;
    args->stack_size = stack_size;

    /* The child starts with the registers of this frame but on another stack: it must call fn without touching
     * anything that the compiler may have put on the old stack. */
    long ret;
    register void (*entry)(void *) __asm__("r12") = fn;
    register void *pointer __asm__("r13") = arg;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(ret)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof *args), "r"(entry), "r"(pointer)
                     : "rcx", "r11", "memory");
    return ret;
}
