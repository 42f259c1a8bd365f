/* px/engine.h - boxes that are started ahead of time.
 *
 *     struct px_engine *engine = NULL;
 *     struct px_pool *pool = NULL;
 *
 *     if (px_engine_new(NULL, &engine, &e) < 0 || px_pool_new(engine, policy, 4, &pool, &e) < 0)
 *         return complain(&e);
 *     for (;;) {
 *         struct px_box *box = NULL;
 *         if (px_pool_box(pool, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0)
 *             return complain(&e);
 *         ...px_box_result(box)...
 *         px_box_free(box);
 *     }
 *
 * An engine is one small process of px that starts boxes ahead of time; a pool is one policy with a number of ready
 * boxes. Each box runs one command and ends with it: no box is used twice. px_pool_box returns an ordinary px_box.
 *
 * A pool may be used by several threads at once. If the engine dies, its boxes die with it and their results report
 * it; px_pool_box then fails with PX040.
 *
 * Owns:    engine, pools and boxes are each freed by their own function. A pool copies its policy.
 * Threads: a pool may be used by several threads at once; an engine and a box by one at a time. */
#pragma once

#include <px/px.h>

#ifdef __cplusplus
extern "C" {
#endif

struct px_engine;
struct px_pool;

/* program: the path of px, or NULL to look for it next to the library, in the installation's bin and in PATH. */
PX_API int px_engine_new(const char *program, struct px_engine **ret_engine, struct px_err *e);
/* Ends the engine and every box of it. Its pools and their boxes are freed by their own functions, before or after. */
PX_API void px_engine_free(struct px_engine *engine);

/* ready: how many boxes are kept ready, 1 to 256. More may be in use at once: if none is ready, px_pool_box waits for a
 * new one. The policy's timeout applies to the command; a waiting box has no timeout. */
PX_API int px_pool_new(struct px_engine *engine, const struct px_policy *policy, unsigned ready, struct px_pool **ret_pool,
                       struct px_err *e);
/* Ends the boxes that are ready; those in use go on. */
PX_API void px_pool_free(struct px_pool *pool);
PX_API int px_pool_box(struct px_pool *pool, const char *const argv[], const struct px_io *io, struct px_box **ret_box,
                       struct px_err *e);
/* A box of the pool that stays, for several commands by px_box_exec; to be freed by px_box_free. Denials are in the
 * results of its commands; denials of processes that belong to no command are not reported. */
PX_API int px_pool_stay(struct px_pool *pool, struct px_box **ret_home, struct px_err *e);

/* The engine's side: serves the socket until its user closes it. For px itself. */
PX_API int px_engine_serve(int socket, struct px_err *e);

#ifdef __cplusplus
}
#endif
