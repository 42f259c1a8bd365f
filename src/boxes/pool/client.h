/* pool/client.h - what a pool's user and the engine say to each other.
 *
 *   user                                    engine
 *   px_engine_new: exec of px, one socket
 *   px_pool_new:   order + queue  --------> makes `ready` boxes, each put into the queue as it is done
 *   px_pool_box:   takes one from the queue
 *   runs its command, kills it              cleans up
 *                  a number on the queue -> makes so many more
 *
 * The queue is a socket, so that threads share it without a lock, and the boxes in it are gone when it is.
 *
 * (1) For each box that is taken, one is ordered: when it is let go, or, where none was ready, before waiting for it.
 * (2) No box and no order is lost for want of room in the queue: either side keeps what did not go in and says it later. */
#pragma once

#include <stdint.h>

enum { PX_POOL_VERSION = 1, PX_POOL_READY_MAX = 256, PX_POOL_TEXT_MAX = 60 << 10 };

/* On the engine's socket, with the queue as its descriptor. On the queue: a uint32_t. */
struct px_pool_order {
    uint32_t version, ready;
    uint32_t length;            /* of the policy's text, which follows: its preset, then fields and values, each with its NUL */
};
