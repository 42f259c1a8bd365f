/* child/ops.h - what the functions of plan/ops.def share. Only raw system calls: everything here runs in the child. */
#pragma once

#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "child/child.h"
#include "plan/plan.h"

typedef int px_op_fn(struct px_child *c, const struct px_step *s);

#define PX_OP(name, word, function, ...) px_op_fn function;
#include "plan/ops.def"
#undef PX_OP

static inline const char *px_op_text(const struct px_child *c, uint32_t offset)
{
    return c->plan->text.data + offset;
}

/* Decimal digits without the C library; out must hold 21 bytes. */
static inline const char *px_op_digits(uint64_t value, char out[21])
{
    char *p = out + 20;
    *p = '\0';
    do
        *--p = (char)('0' + value % 10);
    while ((value /= 10));
    return p;
}

static inline void px_op_wait_while(uint32_t *futex, uint32_t value)
{
    while (__atomic_load_n(futex, __ATOMIC_ACQUIRE) == value)
        (void)px_sys(SYS_futex, futex, FUTEX_WAIT, value, 0);
}

static inline void px_op_signal(uint32_t *futex)
{
    __atomic_store_n(futex, 1, __ATOMIC_RELEASE);
    (void)px_sys(SYS_futex, futex, FUTEX_WAKE, INT32_MAX, 0);
}

/* Paths of a plan are absolute in the box. While the root is built, it is the working directory. */
static inline const char *px_op_below(const char *path)
{
    while (*path == '/')
        path++;
    return *path ? path : ".";
}

/* child/ops_root.c */
/* Attaches the tree on top of "/" and enters it as the new root. Absolute paths still lead to the host's root below. */
int px_op_enter_tree(int tree);
/* At a path in the skeleton or in our own /proc. Takes the descriptor; a negative `tree` is an error, and is
 * returned. */
int px_op_attach(int tree, const char *target);
/* Whether fd is the object that the parent inspected. Another object under the same name is an error. Closes fd
 * then. */
int px_op_check_source(const struct px_step *s, int fd);
/* Mounts a tmpfs of the payload's, with the step's size. */
int px_op_mount_owned(struct px_child *c, const struct px_step *s, const char *target);
/* child/child.c */
int px_op_die_with_parent(const struct px_child *c);
/* child/ops_payload.c */
int px_op_send_fd(int socket, int fd);
