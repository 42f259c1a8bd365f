/* cli/sandbox/sandbox.h - the verbs of px sandbox, one function each. They get the words behind the verb and return the exit status. */
#pragma once

#include <jansson.h>

#include <px/sandbox.h>

#include "cli.h"
#include "progress.h"
#include "words.h"

/* cli/sandbox/sandbox.c: from the open store to the answer. */
struct sandbox_call {
    struct cli *cli;
    struct px_sandbox *sandbox;
    struct progress progress;
    struct px_err e;
    char *json;                 /* of the call; freed by sandbox_end */
};
/* 0, or -1: it was said what is wrong, and sandbox_end gives the exit status. */
int sandbox_begin(struct cli *cli, struct sandbox_call *ret_call);
/* r: what the call returned; show: prints the answer for a person and returns the exit status (with --json the answer is printed as it is,
 * and show is asked for the status alone: `quiet`). May be NULL: nothing is printed for a person. Closes everything. */
int sandbox_end(struct sandbox_call *call, int r, int (*show)(const json_t *answer, bool quiet));
/* "12.3 MiB" in memory of the caller's. */
const char *size_text(uint64_t bytes, char out[32]);

/* cli/sandbox/verify.c */
int sandbox_verify(struct cli *cli, int argc, char **argv);

/* cli/sandbox/store.c */
int sandbox_gc(struct cli *cli, int argc, char **argv);
int sandbox_delete(struct cli *cli, int argc, char **argv);
int sandbox_clean(struct cli *cli, int argc, char **argv);
int sandbox_list(struct cli *cli, int argc, char **argv);
int sandbox_status(struct cli *cli, int argc, char **argv);

/* cli/sandbox/base.c, cli/sandbox/build.c */
int sandbox_base(struct cli *cli, int argc, char **argv);
int sandbox_capabilities(struct cli *cli, int argc, char **argv);
int sandbox_build(struct cli *cli, int argc, char **argv);
int sandbox_update(struct cli *cli, int argc, char **argv);
