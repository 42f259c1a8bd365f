/* net/outside.h - the simulated internet of a verification: what px-outside serves, and its message to px.
 *
 * Why:     lists of names are tested with real names, connections and certificates, on a machine without a network.
 *          px-outside makes a network namespace whose one device is lo and in which every address is local, so that
 *          whatever px-net lets through meets a server. px-net enters that namespace (PX_ORDER_OUTSIDE).
 *
 *              UDP PX_OUTSIDE_NAMES:53     names: below
 *              TCP *:80, *:8080            HTTP: PX_OUTSIDE_ANSWER to every request
 *              TCP *:443                   the same by HTTPS, with a certificate for the names of PX_OUTSIDE_CERTIFIED
 *
 * Owns:    nothing; both sides include it.
 * Mustn't: contain a registered name: all end in .test (RFC 6761). */
#pragma once

#include <stdint.h>

#define PX_OUTSIDE_NAMES "203.0.113.53"
#define PX_OUTSIDE_HOST "203.0.113.10"  /* every other name that ends in .test */
#define PX_OUTSIDE_CERTIFIED "DNS:allowed.test,DNS:other.test"
#define PX_OUTSIDE_ANSWER "reached\n"

/* Names that resolve to addresses to which no name may lead. */
#define PX_OUTSIDE_ASTRAY {"loop.test", "127.0.0.1"}, {"metadata.test", "169.254.169.254"}, {"private.test", "10.9.9.9"}

enum { PX_OUTSIDE_PEM_MAX = 4096, PX_OUTSIDE_STEP_MAX = 64 };

/* Its message once everything listens, or something failed. With error 0 the namespace comes with it; a byte follows
 * when it has confined itself. */
struct px_outside_ready {
    int32_t error;                      /* 0 or -errno */
    char step[PX_OUTSIDE_STEP_MAX];     /* what failed */
    char pem[PX_OUTSIDE_PEM_MAX];       /* the certificate of the authority that signed */
};
