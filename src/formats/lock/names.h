/* lock/names.h - an index of canonical names, searched in logarithmic time.
 *
 * Why:     locks and manifests are untrusted; comparing all pairs of names could take hours.
 * Owns:    its list; the names are the caller's.
 * Mustn't: be changed once it is sorted. */
#pragma once

#include <stddef.h>

struct px_lock;

struct px_name_at {
    const char *name;
    size_t at;                  /* index in the caller's list */
};
struct px_name_index {
    struct px_name_at *items;   /* by name, then by place */
    size_t count;
};

/* Of the pins' names. 0 or -ENOMEM. */
int px_names_of_pins(const struct px_lock *pins, struct px_name_index *ret_index);
void px_names_sort(struct px_name_index *index);
void px_names_done(struct px_name_index *index);
/* The first with that name; NULL: none. Others follow it. */
const struct px_name_at *px_names_find(const struct px_name_index *index, const char *name);
