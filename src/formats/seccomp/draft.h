/* seccomp/draft.h - a user's profile as it was read: the rules of the file, and which calls each is about.
 *
 * Why:     reading JSON and making decisions are two jobs; this is what passes between them.
 * Owns:    its arrays and texts.
 * Mustn't: decide what two rules about one call mean together. */
#pragma once

#include <px/px.h>

#include "seccomp/rules.h"

enum {
    PX_DRAFT_BYTES_MAX = 1 << 20,
    PX_DRAFT_RULES_MAX = 4096,
    PX_DRAFT_WARNINGS_MAX = 16,
};

struct px_draft {
    uint32_t action;            /* for calls that no rule names */
    struct px_rule *rule;       /* a rule without conditions always matches */
    size_t rules, rules_room;
    struct px_use {
        uint16_t number, rule;
    } *use;                     /* a rule names a call: in the order of the file */
    size_t uses, uses_room;
    char *warning[PX_DRAFT_WARNINGS_MAX];
    size_t warnings;            /* may be more than were kept */
};

/* text is a whole file, and a NUL behind it; name is what the user calls it. On failure the draft is empty. */
int px_draft_read(const char *text, size_t len, const char *name, struct px_draft *ret_draft, struct px_err *e);
void px_draft_done(struct px_draft *d);
/* 0 or -ENOMEM. The rule is empty; the pointer is valid until the next call. */
int px_draft_add_rule(struct px_draft *d, struct px_rule **ret_rule);
int px_draft_add_use(struct px_draft *d, uint16_t number, uint16_t rule);
/* Without memory the text is lost, but the warning is counted. */
void px_draft_warn(struct px_draft *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
