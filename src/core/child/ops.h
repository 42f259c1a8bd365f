/* child/ops.h - what the functions of plan/ops.def share. Only raw calls: everything here runs in the child. */
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

/* Plan paths are absolute in the box; while the root is being built it is the working directory. */
static inline const char *px_op_below(const char *path)
{
    while (*path == '/')
        path++;
    return *path ? path : ".";
}

/* child/ops_root.c */
/* Becomes the root to be: attached on top of "/", where absolute paths of the host still lead past it, and entered. */
int px_op_enter_tree(int tree);
/* At a place of the skeleton or of our own /proc; takes the tree, and also what it says if it is none. */
int px_op_attach(int tree, const char *target);
/* Whether fd is what the parent saw: another object under the same name is an error, not a surprise. Closes it if not. */
int px_op_check_source(const struct px_step *s, int fd);
/* A tmpfs of the payload's own at a place of ours, with the step's size. */
int px_op_mount_owned(struct px_child *c, const struct px_step *s, const char *target);
/* child/child.c */
int px_op_die_with_parent(const struct px_child *c);
/* child/ops_payload.c */
int px_op_send_fd(int socket, int fd);
