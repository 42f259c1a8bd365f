/* mcp/wire.h - what a server asks of its runner, and what it is told: records on a stream socket.
 *
 * Why:     who parses requests must not be able to start processes, and who starts them must not parse: a request is numbers
 *          and one text. An answer is JSON, which only the runner writes.
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
    uint32_t approved; /* a person agreed; what is blocked stays blocked */
    uint32_t len; /* of the text behind it */
};

struct wire_answer {
    uint32_t number;
    uint32_t is_error;
    uint32_t needs_approval; /* nothing was run: a person must agree first; no text and no JSON */
    uint32_t text_len; /* words for a model, then one JSON object */
    uint32_t json_len;
};

enum {
    WIRE_TEXT_MAX = 96 << 10, /* of a command: one argument of a process, for which the kernel has a bound */
    WIRE_ANSWER_MAX = 8 << 20,
};

/* mcp_say.c: an error as both of them tell it, in words and in JSON; free() both. -1: no memory. */
int serve_error(const struct px_files *files, const struct px_err *e, char **ret_words, char **ret_json);
