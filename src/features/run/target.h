/* run/target.h - finds the program of a target of px run, and the program that runs the tests.
 *
 *     app.py             [python, app.py]            a file of the project
 *     tools/serve        [tools/serve]               the same, if it is executable
 *     python, py3        [ENV/bin/python]            the environment's
 *     flask              [ENV/bin/flask]             a script of a package
 *     make               [/usr/bin/make]             a program in PATH
 *
 * Why:     the host and the box must find the same program for a word, and `px explain run` must show it.
 * Owns:    the strings that it found, until px_run_program_done.
 * Mustn't: run or change anything. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "env/part.h"

struct px_err;

struct px_program_ask {
    const char *root;           /* of the project */
    const char *member;         /* of a workspace: the member that the caller is in, from the root; NULL: none */
    const char *dir;            /* where it will run, in or below the root; absolute, without links */
    const char *env;            /* the environment's directory on this machine */
    const char *env_name;       /* the same as the program will see it: the path above, or /px/env */
    unsigned minor;             /* of the environment's Python */
    bool inside;                /* in the sandbox: the project is at /app, and PATH is the box's */
};

enum { PX_PROGRAM_WORDS = 4 };

struct px_program {
    const char *kind;           /* "file", "python", "script", "program", "tests", "pytest" */
    char *words[PX_PROGRAM_WORDS]; /* the words before the arguments */
    size_t count;
};

#define PX_PROGRAM_APP PX_INSIDE_APP
#define PX_PROGRAM_ENV PX_INSIDE_ENV

/* PX003, PX030, PX031. */
int px_run_program_find(const struct px_program_ask *ask, const char *target, struct px_program *ret_program,
                    struct px_err *e);
/* tests/runtests.py, runtests.py, or pytest; PX202 if there is none of them. */
int px_run_program_tests(const struct px_program_ask *ask, struct px_program *ret_program, struct px_err *e);
void px_run_program_done(struct px_program *program);

/* Maps a path of the project into the box: "/home/me/demo/a" is "/app/a". Other text is unchanged. */
int px_run_program_inside(const char *root, const char *path, char *out, size_t size);
