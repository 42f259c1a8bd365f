/* helpers/outside/outside.h - px-outside: servers in a network namespace of their own; net/outside.h has the design.
 *
 * Why:     `px sandbox verify` tries names, HTTP and HTTPS on every machine, whatever network that has.
 * Owns:    the namespace, its sockets, the key of its certificate: they end with the process, and that with its engine.
 * Mustn't: answer anything but addresses of net/outside.h and one text, write a file, or be reached from elsewhere. */
#pragma once

#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum { OUTSIDE_ENGINE = 3, WEB_MAX = 128, HEAD_MAX = 4096 };

/* certificate.c: a certificate for this run, and in `pem` the one that has signed it. 0 or -EIO. */
int certificate_make(SSL_CTX *context, char *pem, size_t size);
/* confine.c */
int outside_confine(void);
/* names.c: answers what waits at the socket */
void names_serve(int socket);

/* web.c */
struct connection {
    int fd;                     /* -EBADF: the slot is free */
    SSL *tls;                   /* NULL: it is HTTP */
    short events;               /* what it waits for */
    bool answered;
    size_t have;
    char head[HEAD_MAX];
};

struct web {
    SSL_CTX *context;
    struct connection connections[WEB_MAX];
    size_t next;                /* the slot that is used next: the oldest connection is closed for it */
};

void web_accept(struct web *web, int listener, bool tls);
void web_step(struct connection *c);
