/* config/found.h - what files that px finds in a directory, and that the caller did not name, may choose.
 *
 * Why:     a repository is written by others. What it says about its own sandbox may make that stricter, never weaker.
 * Owns:    nothing.
 * Mustn't: know where a value comes from; who reads a file asks here only for one that was found. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum px_found_way { PX_FOUND_BELOW, PX_FOUND_LESS, PX_FOUND_SUBSET, PX_FOUND_ON, PX_FOUND_NONE, PX_FOUND_ANY };

/* The way of a key in data/found.def; -EINVAL if there is no row: then nothing is taken from a file that was found. */
int px_found_way(const char *key);
/* Whether `value` is at least as strict as `usual`: char * for BELOW (NULL: none), uint64_t for LESS, a list of names up to NULL
 * for SUBSET, bool for ON. dir: what BELOW is about. */
bool px_found_restricts(enum px_found_way way, int dir, const void *value, const void *usual);
/* The other name of a program that has two: python and python3. NULL: none. */
const char *px_found_twin(const char *name);
bool px_found_has(char *const *list, const char *name);

/* A relative path without ".." and ".git" whose parts, as far as they exist, are no links. 0, -EXDEV (it leads out),
 * -ELOOP, -errno. */
int px_found_below(int dir, const char *path);
