/* pool/builders.h - threads that make boxes beside the loop that sends them to users, as many as there are
 * processors.
 *
 * Why:     making a box means waiting for the kernel and for px-init many times: one box after the other leaves a
 *          processor idle.
 * Owns:    the threads. A stock belongs to one thread while it has a job.
 * Mustn't: touch anything of the loop: a job goes in, a box or an error comes out. */
#pragma once

#include "pool/stock.h"

enum { PX_MAKERS_MAX = 4 };

struct px_builders;

/* The result of a job. */
struct px_made {
    void *user;                 /* as it was given */
    struct px_box *home;        /* NULL: `why` */
    struct px_err why;
};

/* image: of px-init, shared among all boxes, or NULL; borrowed. */
int px_builders_new(const int *image, struct px_builders **ret_makers, struct px_err *e);
/* Waits for running jobs, whose boxes end. The boxes that were taken must have ended: each dies with its thread. */
void px_builders_free(struct px_builders *makers);
int px_builders_fd(const struct px_builders *makers);       /* readable: a job is done */
int px_builders_idle(struct px_builders *makers);   /* the number of a thread without a job, or -1 */
/* stocks: one for each thread, used by that thread only. */
void px_builders_give(struct px_builders *makers, int number, struct px_stock *stocks, void *user);
bool px_builders_take(struct px_builders *makers, struct px_made *ret_made);
/* one of them could not return to its namespace: all must end */
bool px_builders_lost(const struct px_builders *makers);
