/* base/err.h - what happened, why, and what to do about it, in one value that needs no memory.
 *
 * Why:     users and models act on errors; the words live in data/errors.def and nowhere else.
 * Owns:    nothing. struct px_err (px/px.h) is the caller's.
 * Mustn't: allocate, print, or be used in the child (which reports a step and an errno instead). */
#pragma once

#include <string.h>

#include <px/px.h>

/* First in each public function: its caller may pass NULL for the error, and what it calls never sees NULL. */
#define PX_ERR(e) struct px_err e##_own; e = e ? e : memset(&e##_own, 0, sizeof e##_own)

struct px_error_text {
    int code;
    const char *name;           /* "MOUNT" */
    const char *what;           /* one sentence: what the code means */
    const char *why;
    const char *fix;            /* one action per line */
};

/* The rows of data/errors.def in order of number; the last has code 0. */
extern const struct px_error_text px_error_texts[];

/* NULL if there is no such code. */
const struct px_error_text *px_err_find(int code);

/* Fills e (which may be NULL) from the table and returns -1. sys is 0 or a negative or positive errno; if it is not
 * 0, `why` is the errno's text instead of the table's. */
int px_fail(struct px_err *e, enum px_code code, int sys, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), cold));

/* px_fail for an allocation that failed: PX_E_MEMORY with ENOMEM. Returns -1. */
int px_no_memory(struct px_err *e) __attribute__((cold));

/* Replace the why or the fix of an error just made; both return -1 so that a caller can return them. */
int px_why(struct px_err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
/* Several lines: text that is quoted already, with newlines between its lines. */
int px_why_lines(struct px_err *e, const char *text);
int px_fix(struct px_err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* Adds a member to the details of an error just made: ("reason", "missing_lock"). One that does not fit is left out. Returns -1. */
int px_detail(struct px_err *e, const char *key, const char *value) __attribute__((cold));

/* "ENOENT: No such file or directory" as a static string, without strerror's locale or locks. */
const char *px_errno_text(int sys);
