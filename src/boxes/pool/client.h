/* pool/client.h - the messages between the user of a pool and the pool server.
 *
 *   user                                    server
 *   px_engine_new: exec of px, one socket
 *   px_pool_new:   order + queue  --------> makes `ready` boxes, each put into the queue as it is done
 *   px_pool_box:   takes one from the queue
 *   runs its command, kills it              cleans up
 *                  a number on the queue -> makes so many more
 *
 * The queue is a socket, so that threads share it without a lock, and the boxes in it end with it.
 *
 * (1) For each box that is taken, one is ordered: when it is freed, or, where none was ready, before waiting for it.
 * (2) No box and no order is lost if the queue is full: either side keeps what did not fit and sends it later. */
#pragma once

#include <stdint.h>

enum { PX_POOL_VERSION = 1, PX_POOL_READY_MAX = 256, PX_POOL_TEXT_MAX = 60 << 10 };

/* On the server's socket, with the queue as its descriptor. On the queue: a uint32_t. */
struct px_pool_order {
    uint32_t version, ready;
    uint32_t length;            /* of the policy's text, which follows: its preset, then fields and values, each with its NUL */
};
