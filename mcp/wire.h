/* mcp/wire.h - the records between a server and its runner, on a stream socket.
 *
 * Why:     the process that parses requests cannot start processes, and the runner must not parse untrusted data: a
 *          request is numbers and one string. An answer is JSON that only the runner writes.
 * Mustn't: carry anything that names a file, a bind or a limit: the runner's policy is fixed before the first request. */
#pragma once

#include <px/files.h>
#include <stdint.h>

enum wire_op {
    WIRE_EXECUTE = 1, /* text: the command */
    WIRE_OUTPUT,
    WIRE_KILL,
    WIRE_CANCEL, /* `number` is that of the request to forget; not answered */
};

struct wire_ask {
    uint32_t op;
    uint32_t number; /* of the request */
    uint32_t process;
    uint32_t timeout_msec; /* 0: none */
    uint32_t background;
    uint32_t approved; /* the user approved; blocked commands stay blocked */
    uint32_t len; /* of the text behind it */
};

struct wire_answer {
    uint32_t number;
    uint32_t is_error;
    uint32_t needs_approval; /* nothing was run: an approval is needed; no text and no JSON */
    uint32_t text_len; /* text for the model, then one JSON object */
    uint32_t json_len;
};

enum {
    WIRE_TEXT_MAX = 96 << 10, /* size of a command: one argument of a process, which the kernel limits */
    WIRE_ANSWER_MAX = 8 << 20,
};

/* Formats an error as text and as JSON, for both processes; free() both. -1: no memory. */
int serve_error(const struct px_files *files, const struct px_err *e, char **ret_words, char **ret_json);
