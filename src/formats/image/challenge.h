/* image/challenge.h - WWW-Authenticate: which credentials a registry asks for.
 *
 * Why:     this header is the only text of a server that px parses outside of a helper.
 * Owns:    nothing.
 * Mustn't: decide whether to follow it: a realm is an untrusted address (SECURITY J22). */
#pragma once

enum px_challenge_kind { PX_CHALLENGE_NONE, PX_CHALLENGE_BASIC, PX_CHALLENGE_BEARER };

struct px_challenge {
    enum px_challenge_kind kind;
    char realm[1024], service[512], scope[1024];        /* "" if absent; printable ASCII */
};
/* Prefers Bearer to Basic. -EINVAL if it cannot be parsed; NONE if px supports none of its schemes. */
int px_challenge_parse(const char *header, struct px_challenge *ret_challenge);
