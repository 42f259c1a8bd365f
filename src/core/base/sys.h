/* base/sys.h - raw system calls that return -errno, for x86-64.
 *
 * Why:     between clone and exec px shares its memory, and so its thread-local errno, with the caller's thread. A raw call
 *          touches neither errno nor any other state of the C library, so the same code serves parent, child and init.
 * Mustn't: allocate, lock, or depend on anything but the kernel. */
#pragma once

#include <stdint.h>
#include <sys/syscall.h>

#ifndef __x86_64__
#error "px knows the x86-64 system call convention and filter only"
#endif

static inline long px_sys6(long nr, long a, long b, long c, long d, long e, long f)
{
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;

    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}

#define PX_SYS_ARG(x) ((long)(x))
#define PX_SYS_PICK(_0, _1, _2, _3, _4, _5, _6, name, ...) name
#define PX_SYS_0(nr) px_sys6(nr, 0, 0, 0, 0, 0, 0)
#define PX_SYS_1(nr, a) px_sys6(nr, PX_SYS_ARG(a), 0, 0, 0, 0, 0)
#define PX_SYS_2(nr, a, b) px_sys6(nr, PX_SYS_ARG(a), PX_SYS_ARG(b), 0, 0, 0, 0)
#define PX_SYS_3(nr, a, b, c) px_sys6(nr, PX_SYS_ARG(a), PX_SYS_ARG(b), PX_SYS_ARG(c), 0, 0, 0)
#define PX_SYS_4(nr, a, b, c, d) \
    px_sys6(nr, PX_SYS_ARG(a), PX_SYS_ARG(b), PX_SYS_ARG(c), PX_SYS_ARG(d), 0, 0)
#define PX_SYS_5(nr, a, b, c, d, e) \
    px_sys6(nr, PX_SYS_ARG(a), PX_SYS_ARG(b), PX_SYS_ARG(c), PX_SYS_ARG(d), PX_SYS_ARG(e), 0)
#define PX_SYS_6(nr, a, b, c, d, e, f) \
    px_sys6(nr, PX_SYS_ARG(a), PX_SYS_ARG(b), PX_SYS_ARG(c), PX_SYS_ARG(d), PX_SYS_ARG(e), PX_SYS_ARG(f))

/* px_sys(SYS_openat, dir, path, flags): any system call with up to six arguments; >= 0 or -errno. */
#define px_sys(...)                                                                               \
    PX_SYS_PICK(__VA_ARGS__, PX_SYS_6, PX_SYS_5, PX_SYS_4, PX_SYS_3, PX_SYS_2, PX_SYS_1, PX_SYS_0) \
    (__VA_ARGS__)

/* Numbers that an older libc does not name. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
