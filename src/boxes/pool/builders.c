#include "pool/builders.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "box/supervise.h"
#include "kernel/idmap.h"

enum state { IDLE, TOLD, DONE };

struct maker {
    struct px_builders *all;
    pthread_t thread;
    pthread_cond_t told;
    /* with `all->end` under the lock; from TOLD to DONE the rest is the thread's, else the loop's */
    enum state state;
    struct px_stock *stock;
    struct px_made made;
    struct px_template_builder who;
};

struct px_builders {
    pthread_mutex_t lock;
    bool end;
    int event;
    const int *image;
    unsigned count;
    struct maker makers[PX_MAKERS_MAX];
};

/* ---- one thread ---- */

static bool wait_for_job(struct maker *m)
{
    (void)pthread_mutex_lock(&m->all->lock);
    while (m->state != TOLD && !m->all->end)
        (void)pthread_cond_wait(&m->told, &m->all->lock);
    bool told = m->state == TOLD && !m->all->end;
    (void)pthread_mutex_unlock(&m->all->lock);
    return told;
}

static void *work(void *arg)
{
    struct maker *m = arg;
    const uint64_t one = 1;
    if (px_sys(SYS_unshare, CLONE_FS) < 0)      /* to enter a namespace it needs its own root and working directory */
        px_template_builder_done(&m->who);
    while (wait_for_job(m)) {
        if (px_stock_box(m->stock, m->all->image, &m->who, &m->made.home, &m->made.why) < 0)
            m->made.home = NULL;
        (void)pthread_mutex_lock(&m->all->lock);
        m->state = DONE;
        (void)pthread_mutex_unlock(&m->all->lock);
        (void)!write(m->all->event, &one, sizeof one);
    }
    px_template_builder_done(&m->who);
    return NULL;
}

/* ---- all threads ---- */

/* While a box is being made, its process shares our memory, and PR_SET_DUMPABLE is an attribute of the memory. So
 * threads that share it make boxes one at a time, unless the process is never dumpable. Then only root can read its
 * files in /proc. */
static unsigned how_many(void)
{
    cpu_set_t set;
    if (!px_idmap_caller_is_root() || px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return 1;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n > PX_MAKERS_MAX ? PX_MAKERS_MAX : (unsigned)n;
}

static int start(struct px_builders *makers, unsigned wanted)
{
    for (unsigned i = 0; i < wanted; i++) {
        struct maker *m = &makers->makers[i];
        m->all = makers;
        (void)px_template_builder_init(&m->who);       /* without it, boxes are cloned in our own namespace */
        m->who.alone = wanted > 1;
        if (pthread_cond_init(&m->told, NULL) != 0) {
            px_template_builder_done(&m->who);
            break;
        }
        if (pthread_create(&m->thread, NULL, work, m) != 0) {          /* banned: px engine is a program of its own */
            (void)pthread_cond_destroy(&m->told);
            px_template_builder_done(&m->who);
            break;
        }
        makers->count++;
    }
    return makers->count > 0 ? 0 : -EAGAIN;
}

int px_builders_new(const int *image, struct px_builders **ret_makers, struct px_err *e)
{
    struct px_builders *makers = calloc(1, sizeof *makers);
    if (!makers || pthread_mutex_init(&makers->lock, NULL) != 0) {
        free(makers);
        return px_no_memory(e);
    }
    makers->image = image;
    makers->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = makers->event < 0 ? -errno : start(makers, how_many());
    if (r < 0) {
        px_builders_free(makers);
        return px_fail(e, PX_E_CLONE, r, "the engine cannot start a thread");
    }
    *ret_makers = makers;
    return 0;
}

void px_builders_free(struct px_builders *makers)
{
    if (!makers)
        return;
    (void)pthread_mutex_lock(&makers->lock);
    makers->end = true;
    for (unsigned i = 0; i < makers->count; i++)
        (void)pthread_cond_signal(&makers->makers[i].told);
    (void)pthread_mutex_unlock(&makers->lock);
    for (unsigned i = 0; i < makers->count; i++) {
        (void)pthread_join(makers->makers[i].thread, NULL);
        (void)pthread_cond_destroy(&makers->makers[i].told);
        if (makers->makers[i].state == DONE)
            px_supervise_free(makers->makers[i].made.home);
    }
    (void)pthread_mutex_destroy(&makers->lock);
    (void)px_fd_close(makers->event);
    free(makers);
}

int px_builders_fd(const struct px_builders *makers)
{
    return makers->event;
}

/* A thread that is in that state. */
static int find(struct px_builders *makers, enum state state)
{
    int found = -1;
    (void)pthread_mutex_lock(&makers->lock);
    for (unsigned i = 0; i < makers->count && found < 0; i++)
        if (makers->makers[i].state == state)
            found = (int)i;
    (void)pthread_mutex_unlock(&makers->lock);
    return found;
}

int px_builders_idle(struct px_builders *makers)
{
    return find(makers, IDLE);
}

void px_builders_give(struct px_builders *makers, int number, struct px_stock *stocks, void *user)
{
    struct maker *m = &makers->makers[number];
    m->stock = &stocks[number];
    m->made = (struct px_made){.user = user};
    (void)pthread_mutex_lock(&makers->lock);
    m->state = TOLD;
    (void)pthread_cond_signal(&m->told);
    (void)pthread_mutex_unlock(&makers->lock);
}

bool px_builders_take(struct px_builders *makers, struct px_made *ret_made)
{
    uint64_t count;
    (void)!read(makers->event, &count, sizeof count);   /* before the check: a later end signals again */
    int number = find(makers, DONE);
    if (number < 0)
        return false;
    *ret_made = makers->makers[number].made;
    makers->makers[number].state = IDLE;        /* no other thread writes it then */
    return true;
}

bool px_builders_lost(const struct px_builders *makers)
{
    bool lost = false;
    for (unsigned i = 0; i < makers->count; i++)
        lost = lost || __atomic_load_n(&makers->makers[i].who.lost, __ATOMIC_ACQUIRE);
    return lost;
}
