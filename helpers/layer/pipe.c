/* Two threads: one reads, hashes and decompresses the archive, the other hashes the tar and writes files. */
#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "helpers/layer/layer.h"

enum { SLOTS = 4 };

struct pipeline {
    struct source *source;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned made, taken;       /* slots, counted from the start; made - taken is how many wait */
    bool holding;               /* the slot `taken` is with the reader */
    bool stop, over;
    struct px_err err;          /* of the thread; code 0: none */
    long length[SLOTS];
    uint8_t slot[SLOTS][SLOT];
};

/* Whether there is a free slot; waits for one. */
static bool wait_for_room(struct pipeline *p)
{
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stop && p->made - p->taken == SLOTS)
        (void)pthread_cond_wait(&p->changed, &p->lock);
    bool go = !p->stop;
    (void)pthread_mutex_unlock(&p->lock);
    return go;
}

static void hand_over(struct pipeline *p, bool over)
{
    (void)pthread_mutex_lock(&p->lock);
    p->made++;
    p->over = over;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

static void *produce(void *user)
{
    struct pipeline *p = user;
    bool over = false;
    while (!over && wait_for_room(p)) {
        unsigned at = p->made % SLOTS;
        p->length[at] = source_read(p->source, p->slot[at], SLOT, &p->err);
        over = p->length[at] < SLOT;
        hand_over(p, over);
    }
    return NULL;
}

int pipeline_start(struct source *s, struct pipeline **ret_pipeline, struct px_err *e)
{
    struct pipeline *p = malloc(sizeof *p);
    if (!p)
        return px_no_memory(e);
    p->source = s;
    p->made = p->taken = 0;
    p->holding = p->stop = p->over = false;
    p->err = (struct px_err){0};
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    int r = pthread_create(&p->thread, NULL, produce, p);  /* banned: a program of its own */
    if (r != 0) {
        free(p);
        return px_fail(e, PX_E_CLONE, r, "cannot start a thread");
    }
    *ret_pipeline = p;
    return 0;
}

long pipeline_next(void *pipeline, const uint8_t **ret_data, struct px_err *e)
{
    struct pipeline *p = pipeline;
    (void)pthread_mutex_lock(&p->lock);
    if (p->holding) {
        p->taken++;
        p->holding = false;
        (void)pthread_cond_signal(&p->changed);
    }
    while (p->made == p->taken && !p->over)
        (void)pthread_cond_wait(&p->changed, &p->lock);
    p->holding = p->made != p->taken;
    unsigned at = p->taken % SLOTS;
    long n = p->holding ? p->length[at] : 0;
    (void)pthread_mutex_unlock(&p->lock);
    if (n < 0 && e)
        *e = p->err;
    *ret_data = p->slot[at];
    return n;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->changed);
    free(p);
}
