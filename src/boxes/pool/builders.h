/* pool/builders.h - threads that make boxes beside the loop that hands them out, as many at once as there are processors.
 *
 * Why:     making a box is a chain of waits for the kernel and for px-init: one after the other leaves a processor idle.
 * Owns:    the threads. A stock is one maker's while it is lent to it.
 * Mustn't: touch anything of the loop: a job goes in, a box or an error comes out. */
#pragma once

#include "pool/stock.h"

enum { PX_MAKERS_MAX = 4 };

struct px_builders;

/* What became of a job. */
struct px_made {
    void *user;                 /* as it was given */
    struct px_box *home;        /* NULL: `why` */
    struct px_err why;
};

/* image: of px-init, shared among all boxes, or NULL; borrowed. */
int px_builders_new(const int *image, struct px_builders **ret_makers, struct px_err *e);
/* Waits for jobs that are under way; what they made ends. The boxes that were taken must be gone: each ends with its maker. */
void px_builders_free(struct px_builders *makers);
int px_builders_fd(const struct px_builders *makers);       /* readable: a job is done */
int px_builders_idle(struct px_builders *makers);   /* the number of one that has no job, or -1 */
/* stocks: one for each maker, each of them that maker's alone. */
void px_builders_give(struct px_builders *makers, int number, struct px_stock *stocks, void *user);
bool px_builders_take(struct px_builders *makers, struct px_made *ret_made);
bool px_builders_lost(const struct px_builders *makers);    /* one of them is no longer where it was: all must end */
