/* config/found.h - what files that px finds in a directory, and that the caller did not name, may choose.
 *
 * Why:     a repository is written by others. Its files may make the sandbox stricter, never weaker.
 * Owns:    nothing.
 * Mustn't: know where a value comes from. Callers ask only about values of files that px found. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum px_found_way { PX_FOUND_BELOW, PX_FOUND_LESS, PX_FOUND_SUBSET, PX_FOUND_ON, PX_FOUND_NONE, PX_FOUND_ANY };

/* The rule of a key in data/found.def. -EINVAL if the key has no row: px then ignores it in a file that it found. */
int px_found_way(const char *key);
/* Whether `value` is at least as strict as `usual`: char * for BELOW (NULL: none), uint64_t for LESS, a list of names
 * up to NULL for SUBSET, bool for ON. dir: the directory that a path must stay below, for BELOW. */
bool px_found_restricts(enum px_found_way way, int dir, const void *value, const void *usual);
/* The second name of a program that has two (python, python3); NULL if it has one. */
const char *px_found_twin(const char *name);
bool px_found_has(char *const *list, const char *name);

/* Checks a relative path: no "..", no ".git", and no existing part is a link. 0, -EXDEV (leaves dir), -ELOOP,
 * -errno. */
int px_found_below(int dir, const char *path);
