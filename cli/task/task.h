/* cli/task/task.h - what the verbs of px task share. */
#pragma once

#include <px/task.h>

#include <jansson.h>

#include "args.h"

/* What a command line has said. */
struct words {
    const char *config, *timeout, *cpu_time, *memory, *action, *files, *from, *to, *name, *html;
    uint64_t jobs;
    bool discard, discard_on_timeout;
    struct option_list given_files, given_texts;        /* PATH=FILE, PATH=TEXT */
    const char **names;
    size_t names_count;
    const char **command;       /* behind --; NULL: there is no -- */
};

struct call {
    const struct cli *cli;
    struct words w;
    struct px_tasks *tasks;
    struct px_err e;
};

/* cli/task/task.c: prints an object, which it takes. */
int answer(struct call *c, json_t *object);

/* cli/task/files.c */
int verb_show(struct call *call);
int verb_export(struct call *call);
int verb_checkout(struct call *call);

/* cli/task/run.c */
int verb_run(struct call *call);
int verb_report(struct call *call);
