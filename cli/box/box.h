/* cli/box/box.h - the verbs of px box, one function each. */
#pragma once

#include "args.h"

/* What their options fill. */
struct box_words {
    bool names, follow, only_out, only_err, interactive, all;
    uint64_t command, process;
    const char *max_size;
};

/* cli/box/box.c: SIGTERM, SIGINT and SIGHUP as a descriptor. */
int stop_signals(void);

/* cli/box/look.c */
int box_list(struct args *a);
int box_show(struct args *a);
int box_signal(struct args *a);
int box_stop(struct args *a);

/* cli/box/logs.c */
int box_logs(struct args *a);
int box_attach(struct args *a);

/* cli/box/copy.c */
int box_copy(struct args *a);
