/* helpers/net/hello.h - which server the first bytes of a connection name: a TLS hello's, or a first HTTP request's.
 *
 * Why:     a connection was made for a name; a server that serves many must not be asked for another.
 * Owns:    nothing.
 * Mustn't: keep state: it is given all bytes so far, each time. Nothing is decrypted, and nothing behind the first message is seen. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/rule.h"

enum px_hello {
    PX_HELLO_MORE,              /* too few bytes to decide */
    PX_HELLO_OTHER,             /* neither TLS nor HTTP */
    PX_HELLO_NAMED,
    PX_HELLO_NAMELESS,          /* one of them, without a name */
    PX_HELLO_ADDRESS,           /* a request that names an address */
    PX_HELLO_HIDDEN,            /* the real name is encrypted (ECH), or in a form that is not read (HTTP/2 without TLS) */
    PX_HELLO_BAD,               /* malformed, contradictory, too long, or PROXY's line: the server would look behind it */
};

enum { PX_HELLO_MAX = 16 << 10 };

/* ret_name is the name or address that it has, else without meaning. */
enum px_hello px_hello_look(const uint8_t *data, size_t size, char ret_name[PX_NET_NAME_MAX]);
