/* cli/sandbox/project.h - verbs of px sandbox that are about a project, and whether there is one. */
#pragma once

#include "cli/project/project.h"

/* Whether the working directory belongs to a project, which is then open, or cannot be used (*ret_r < 0): project_end in either case. */
bool sandbox_in_project(struct cli *cli, const char *command, struct project_call *ret_call, int *ret_r);

/* Adds "project" to an answer (JSON on one line), if there is one: what px sandbox explain says, or {"error"}. */
void sandbox_add_project(char **json);
