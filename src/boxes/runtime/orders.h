/* runtime/orders.h - the file that tells px-start what to do: the payload's steps of the native plan, for another process.
 *
 * Why:     limits, Landlock, the filter and the search for the command come last before its exec, which is beyond any runtime.
 * Owns:    nothing.
 * Mustn't: hold anything of the host: the box can read it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct px_buf;
struct px_plan;
struct px_runtime_kind;

struct px_orders {
    uint32_t uid, gid;          /* that the container must have */
    uint32_t command_uid, command_gid;  /* that the command gets, where they are others */
    uint32_t rows, cols;        /* of a terminal */
    bool counted;               /* a cgroup counts the processes, so that the limit of the same kind steps back */
};

/* Appends to out, whose sticky error holds every failure. */
void px_orders_print(const struct px_plan *native, const struct px_runtime_kind *kind, const struct px_orders *given,
                     struct px_buf *out);
