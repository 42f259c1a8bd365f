/* cli/sandbox/sandbox.h - the verbs of px sandbox, one function each. */
#pragma once

#include <jansson.h>

#include <px/sandbox.h>

#include "args.h"
#include "progress.h"

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

/* What the options of a verb fill; others fill structs of px/sandbox.h. */
struct sandbox_image {
    struct px_image_build how;
    struct option_list with;
};
struct sandbox_look {
    bool verify;
};
struct sandbox_checks {
    const char *only, *junit;
    uint64_t jobs, guard;
    bool list, self_test;
};

/* cli/sandbox/verify.c */
int sandbox_verify(struct args *a);

/* cli/sandbox/store.c */
int sandbox_gc(struct args *a);
int sandbox_delete(struct args *a);
int sandbox_clean(struct args *a);
int sandbox_list(struct args *a);
int sandbox_status(struct args *a);

/* cli/sandbox/base.c */
int sandbox_base_build(struct args *a);
int sandbox_base_import(struct args *a);
int sandbox_base_list(struct args *a);
int sandbox_base_lock(struct args *a);
int sandbox_base_remove(struct args *a);
int sandbox_capabilities(struct args *a);

/* cli/sandbox/build.c */
int sandbox_build(struct args *a);
int sandbox_update(struct args *a);

/* cli/sandbox/project.c */
int sandbox_add(struct args *a);
int sandbox_remove(struct args *a);
int sandbox_explain(struct args *a);
