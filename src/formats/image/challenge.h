/* image/challenge.h - WWW-Authenticate: what a registry wants to see before it answers.
 *
 * Why:     the header is the one text of a server's that px takes apart by itself.
 * Owns:    nothing.
 * Mustn't: decide whether to do as it says: a realm is an address that a stranger wrote (SECURITY J22). */
#pragma once

enum px_challenge_kind { PX_CHALLENGE_NONE, PX_CHALLENGE_BASIC, PX_CHALLENGE_BEARER };

struct px_challenge {
    enum px_challenge_kind kind;
    char realm[1024], service[512], scope[1024];        /* "" if not said; printable ASCII */
};
/* Of several, Bearer comes before Basic. -EINVAL if it cannot be read; NONE if it offers nothing that px knows. */
int px_challenge_parse(const char *header, struct px_challenge *ret_challenge);
