/* task/done.h - which lines of a run are already in the journals.
 *
 * Why:     only the journal records finished lines: a restarted run skips exactly those.
 * Owns:    a set of numbers.
 * Mustn't: read the journal of a task twice. */
#pragma once

#include "task/task.h"

struct px_task_set {
    uint64_t *items;            /* 0: free */
    size_t count, size;
};

struct px_task_done {
    const struct px_tasks *tasks;
    char name[17];              /* the prefix of this run's keys; "": never skip */
    struct px_task_set keys, seen;
};

void px_task_done_init(struct px_task_done *d, const struct px_tasks *tasks, const char *name);
void px_task_done_free(struct px_task_done *d);
/* The key of one part of a line. */
void px_task_done_key(const struct px_task_done *d, char part, uint64_t number, const char *text, size_t len, char out[PX_TASK_KEY]);
/* 1 if it was done, 0, or -1. The first call for a task finishes its pending record, and reads its journal. */
int px_task_done_has(struct px_task_done *d, const char *task, const char *key, struct px_err *e);
int px_task_set_add(struct px_task_set *set, uint64_t item);
