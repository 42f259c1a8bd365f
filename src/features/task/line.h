/* task/line.h - one line of a file of actions, read and checked.
 *
 * Why:     the file is written by programs and models; errors name the line, before anything is run.
 * Owns:    the JSON value, which the texts are borrowed from.
 * Mustn't: accept an unknown key: a misspelt limit would be ignored. */
#pragma once

#include <jansson.h>
#include <px/task.h>

enum { PX_TASK_JSON_MAX = 16 << 20 };

struct px_task_line {
    json_t *json;
    const char *task, *from;
    const json_t *id;
    struct px_task_file *files; /* NULL: absent */
    size_t files_count;
    bool has_command, cleanup;
    const char **command;       /* NULL: no valid command */
    char limits[3][32];         /* timeout, CPU time and memory, as a policy takes them; "" for none */
    struct px_task_action action;
};

/* number: for errors. If it fails, ret has the JSON and the id as far as they were read, for the answer. */
int px_task_line_read(const char *text, size_t len, uint64_t number, struct px_task_line *ret, struct px_err *e);
void px_task_line_done(struct px_task_line *line);
