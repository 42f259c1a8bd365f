/* engine/pool.h - what a pool's user and the engine say to each other.
 *
 *   user                                    engine
 *   px_engine_new: exec of px, one socket
 *   px_pool_new:   order + queue  --------> makes `ready` boxes, each put into the queue as it is done
 *   px_pool_box:   takes one from the queue
 *                  one byte on the queue -> makes the next
 *   runs its command, lets go of it         (pid 1 ends by the hang-up) cleans up
 *
 * The queue is a socket, so that threads share it without a lock, and the boxes in it are gone when it is. */
#pragma once

#include <stdint.h>

enum { PX_POOL_VERSION = 1, PX_POOL_READY_MAX = 256, PX_POOL_TEXT_MAX = 60 << 10 };

struct px_pool_order {
    uint32_t version, ready;
    uint32_t length;            /* of the policy's text, which follows: its preset, then fields and values, each with its NUL */
};
