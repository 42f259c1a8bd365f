/* seccomp/profile.h - a user's own system call filter: a file in the containers' JSON format, compiled.
 *
 * The profile replaces px's list. Calls that would break other guarantees of the box stay refused: PX_FILTER_FLOOR
 * is loaded as well, and the kernel takes the stricter answer of the two.
 *
 * It has the same meaning as in runc, with exceptions that are never weaker. Calls of another architecture kill the
 * process, whatever the file lists. Where several rules about a call match, the strictest wins; libseccomp prefers a
 * rule without conditions. A box has no capabilities, so entries that require one are skipped. As in runc, calls
 * newer than all that the file names are ENOSYS instead of the default errno, so that a C library falls back.
 *
 * Owns:    what it read and compiled.
 * Mustn't: accept a profile that refuses the calls that px makes after the filter is loaded: that is an error here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <px/px.h>

struct px_calls;
struct px_profile;
struct sock_filter;

/* path names a regular file of at most 1 MiB. */
int px_profile_read(const char *path, struct px_profile **ret_profile, struct px_err *e);
/* The same for a NUL-terminated text; errors call it `name`. */
int px_profile_parse(const char *text, size_t len, const char *name, struct px_profile **ret_profile, struct px_err *e);
void px_profile_free(struct px_profile *p);
void px_profile_freep(struct px_profile **p);

const struct sock_filter *px_profile_program(const struct px_profile *p, uint16_t *ret_len);
const struct px_calls *px_profile_calls(const struct px_profile *p);
/* Whether it allows that call with any arguments. */
bool px_profile_permits(const struct px_profile *p, int number);
/* What the user should know; NULL past the end. px_profile_warnings also counts those whose text was lost. */
size_t px_profile_warnings(const struct px_profile *p);
const char *px_profile_warning(const struct px_profile *p, size_t index);
