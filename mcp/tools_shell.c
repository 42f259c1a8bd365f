/* Tools that the runner runs: converts arguments to a record. */
#include <string.h>

#include "base/err.h"
#include "mcp/tools.h"

enum { TIMEOUT_S = 30, TIMEOUT_MAX_S = 300, SECOND = 1000 };

static int take_timeout(struct tool_call *call, struct px_err *e)
{
    const json_t *value = json_object_get(call->args, "timeout");
    json_int_t seconds = value ? json_integer_value(value) : call->ask.background ? 0 : TIMEOUT_S;
    if (value && (seconds < 1 || seconds > TIMEOUT_MAX_S)) {
        (void)px_fail(e, PX_E_VALUE, 0, "'timeout' of execute must be from 1 to %d seconds", TIMEOUT_MAX_S);
        return px_fix(e, "Run what takes longer with background: true, and read it with process_output.");
    }
    call->ask.timeout_msec = (uint32_t)seconds * SECOND;
    return 0;
}

int tool_execute(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    const json_t *command = json_object_get(call->args, "command");
    size_t len = json_string_length(command);
    (void)tool;
    call->ask = (struct wire_ask){.op = WIRE_EXECUTE,
                                  .background = json_is_true(json_object_get(call->args, "background"))};
    if (take_timeout(call, e) < 0)
        return -1;
    if (len == 0 || len > WIRE_TEXT_MAX || strlen(json_string_value(command)) != len) {
        (void)px_fail(e, PX_E_VALUE, 0, "'command' must have from 1 to %d bytes and no NUL", WIRE_TEXT_MAX);
        return px_fix(e, "Write a long script to a file and run that.");
    }
    call->ask.len = (uint32_t)len;
    call->command = json_string_value(command);
    return 0;
}

static int about(struct tool_call *call, enum wire_op op, struct px_err *e)
{
    json_int_t process = json_integer_value(json_object_get(call->args, "process"));
    if (process < 1 || process > UINT32_MAX)
        return px_fail(e, PX_E_VALUE, 0, "there is no process %lld", (long long)process);
    call->ask = (struct wire_ask){.op = op, .process = (uint32_t)process};
    return 0;
}

int tool_output(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    (void)tool;
    return about(call, WIRE_OUTPUT, e);
}

int tool_kill(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    (void)tool;
    return about(call, WIRE_KILL, e);
}
