/* cli/project/project.h - what px init, sync, status, run and test share: from a call of px/project.h to its answer. */
#pragma once

#include <jansson.h>

#include <px/project.h>

#include "args.h"
#include "progress.h"

struct project_call {
    struct cli *cli;
    const char *command;
    struct px_project *project;
    struct progress progress;
    struct px_err e;
    char *json;
};
/* The project that the working directory belongs to. 0, or -1: project_end says what is wrong. */
int project_begin(struct cli *cli, const char *command, struct project_call *ret_call);
void project_name_error(const struct project_call *call, struct px_err *e);     /* "px run: ..." in JSON */
/* r: what the call returned; show: prints the answer for a person and returns the exit status, NULL: its message
 * alone. Closes everything;
 * the exit status. */
int project_end(struct project_call *call, int r, int (*show)(const json_t *answer, bool quiet));
