/* net/outside.h - the outside of a verification: what px-outside serves, and what it says to the engine.
 *
 * Why:     lists of names are tried with real names, connections and certificates, on a machine without a network.
 *          px-outside makes a network namespace whose one device is lo and in which every address is local, so that
 *          whatever px-net lets through meets a server. px-net is sent into that namespace (PX_ORDER_OUTSIDE).
 *
 *              UDP PX_OUTSIDE_NAMES:53     names: below
 *              TCP *:80, *:8080            HTTP: PX_OUTSIDE_ANSWER to every request
 *              TCP *:443                   the same by HTTPS, with a certificate for the names of PX_OUTSIDE_CERTIFIED
 *
 * Owns:    nothing; both sides include it.
 * Mustn't: hold a name that somebody has: all end in .test (RFC 6761). */
#pragma once

#include <stdint.h>

#define PX_OUTSIDE_NAMES "203.0.113.53"
#define PX_OUTSIDE_HOST "203.0.113.10"  /* every other name that ends in .test */
#define PX_OUTSIDE_CERTIFIED "DNS:allowed.test,DNS:other.test"
#define PX_OUTSIDE_ANSWER "reached\n"

/* Names that lead to where no name may lead. */
#define PX_OUTSIDE_ASTRAY {"loop.test", "127.0.0.1"}, {"metadata.test", "169.254.169.254"}, {"private.test", "10.9.9.9"}

enum { PX_OUTSIDE_PEM_MAX = 4096, PX_OUTSIDE_STEP_MAX = 64 };

/* Its message once everything listens or something could not be made. With error 0 the namespace comes with it; a byte
 * follows when it has confined itself. */
struct px_outside_ready {
    int32_t error;                      /* 0 or -errno */
    char step[PX_OUTSIDE_STEP_MAX];     /* what could not be done */
    char pem[PX_OUTSIDE_PEM_MAX];       /* who has signed the certificate */
};
