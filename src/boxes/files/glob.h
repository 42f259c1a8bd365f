/* files/glob.h - patterns for paths: * ? [a-z] in a part, ** for any number of parts.
 *
 * Why:     a walk asks for each directory whether anything below it can still match, so a pattern is a small automaton:
 *          the set of parts it may be at is one word, and a name takes it to the next set.
 * Owns:    a copy of the pattern.
 * Mustn't: backtrack over parts, or work longer than its fuel, which counts compared characters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PX_GLOB_PARTS = 63, PX_GLOB_LENGTH = 1024 };

struct px_glob {
    char text[PX_GLOB_LENGTH + 1];      /* the parts, each with a NUL */
    uint16_t part[PX_GLOB_PARTS];
    unsigned count;
    uint64_t any;               /* the parts that are ** */
    bool directories;           /* it ends with a slash: only they are meant; for who knows what a name is */
};

/* -EINVAL: empty, "..", a leading "/" or "~"; -E2BIG: too long. */
int px_glob_init(struct px_glob *glob, const char *pattern);
uint64_t px_glob_start(const struct px_glob *glob);
/* The set after one more part of a path; 0: nothing can match any more. */
uint64_t px_glob_step(const struct px_glob *glob, uint64_t set, const char *name, uint64_t *fuel);
bool px_glob_accepts(const struct px_glob *glob, uint64_t set);
/* Whether parts can follow. */
bool px_glob_goes_on(const struct px_glob *glob, uint64_t set);
/* A whole relative path. */
bool px_glob_match(const struct px_glob *glob, const char *path, uint64_t *fuel);
