/* Calls of px/project.h: their errors and answers. */
#include "cli/project/project.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int project_begin(struct cli *cli, const char *command, struct project_call *ret_call)
{
    *ret_call = (struct project_call){.cli = cli, .command = command};
    progress_begin(&ret_call->progress, cli->verbose < 0 || cli->json);
    if (px_project_open(NULL, NULL, &ret_call->project, &ret_call->e) < 0)
        return -1;
    px_project_progress(ret_call->project, progress_tell, &ret_call->progress);
    return 0;
}

/* In JSON every message begins with the command that it is about. */
void project_name_error(const struct project_call *call, struct px_err *e)
{
    char what[sizeof e->what];
    if (!call->cli->json)
        return;
    (void)snprintf(what, sizeof what, "px %s: %.480s", call->command, e->what);
    memcpy(e->what, what, sizeof what);
}

static int say_failure(struct project_call *call)
{
    const char *said = call->cli->verbose > 0 && !call->cli->json ? px_project_said(call->project) : NULL;
    if (said)
        say_lines(said);
    project_name_error(call, &call->e);
    return say_error(call->cli, &call->e, call->e.code == PX_E_INTERNAL ? 2 : 1);
}

static int say_answer(const struct project_call *call, int (*show)(const json_t *answer, bool quiet))
{
    json_t *value = json_loads(call->json ? call->json : "{}", 0, NULL);
    const char *message = json_string_value(json_object_get(value, "message"));
    int status = show && value ? show(value, call->cli->json) : 0;
    if (!show && !call->cli->json && call->cli->verbose >= 0 && message)
        print("%s\n", message);
    json_decref(value);
    if (call->cli->json && call->json && print_text(call->json) < 0)
        return 1;
    return flush() ? 1 : status;
}

int project_end(struct project_call *call, int r, int (*show)(const json_t *answer, bool quiet))
{
    progress_end(&call->progress);
    int status = r < 0 ? say_failure(call) : say_answer(call, show);
    free(call->json);
    px_project_close(call->project);
    return status;
}
