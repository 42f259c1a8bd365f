/* seccomp/entry.h - one entry of a profile's list of system calls.
 *
 * Why:     it implements the format: actions, comparisons, names, and on which hosts an entry applies.
 * Owns:    nothing; what it reads goes to the reader's draft.
 * Mustn't: decide what two entries about one call mean together. */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct px_reader;

/* Adds the entry's rules and the calls they are about, or nothing if it is not meant for this host and a box. */
int px_entry_read(struct px_reader *r, json_t *entry);
/* An action and its errno, whose members have other names at the top of a profile. */
int px_entry_action(const struct px_reader *r, json_t *object, const char *member, const char *errno_member,
                    const char *errno_text_member, uint32_t *ret_action);
