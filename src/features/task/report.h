/* task/report.h - statistics of the journals of a directory.
 *
 * Why:     nobody can read the journals of thousands of actions; failures and outliers matter.
 * Owns:    the actions it has read, up to a bound; the counts go beyond it.
 * Mustn't: trust the journal: models wrote the names and commands. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

struct px_err;

enum { PX_REPORT_ACTIONS = 200000, PX_REPORT_DIFF = 64 << 10, PX_REPORT_DIFFS = 64 << 20 };

struct px_report_action {
    json_t *line;               /* as it stands in the journal */
    double begin, seconds;      /* of the clock; how long */
    size_t task;
    int exit_code;
    const char *error;          /* NULL: none */
    const char *key;
};

struct px_report_task {
    char *name;
    bool seen;                  /* there is a line of a journal */
    uint64_t actions, failed;
    double seconds;
};

struct px_report {
    struct px_report_action *actions;
    size_t count, room;
    struct px_report_task *tasks;
    size_t tasks_count, tasks_room;
    uint64_t all, ok, nonzero, timeouts, refused, broken, prepared, forked, cleaned;
    double seconds, longest;
    json_t *diffs;              /* by the key of the action: from results that lie beside the journals */
    size_t diffs_bytes;
};

int px_task_report_read(const char *dir, struct px_report *ret, struct px_err *e);
void px_task_report_done(struct px_report *report);
uint64_t px_task_report_tasks(const struct px_report *report);
/* The duration at a quantile, from 0 (the shortest) to 1; 0 if there is none. */
double px_task_report_quantile(const struct px_report *report, double rank);
int px_task_report_html(const struct px_report *report, struct px_buf *out);
