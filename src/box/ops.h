/* box/ops.h - what the functions of box/ops.def share. Only raw calls: everything here runs in the child. */
#pragma once

#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "box/child.h"
#include "box/plan.h"

typedef int px_op_fn(struct px_child *c, const struct px_step *s);

#define PX_OP(name, word, function, ...) px_op_fn function;
#include "box/ops.def"
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
    (void)px_sys(SYS_futex, futex, FUTEX_WAKE, 1, 0);
}

/* box/child.c */
int px_op_die_with_parent(const struct px_child *c);
/* box/ops_payload.c */
int px_op_send_fd(int socket, int fd);
