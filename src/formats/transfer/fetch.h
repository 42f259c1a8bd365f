/* transfer/fetch.h - one HTTP request after another, made by px-fetch, a confined helper.
 *
 * Why:     TLS, HTTP and name resolution are large and read what servers send; px-fetch does them, with the network
 *          and no files.
 * Owns:    the helper.
 * Mustn't: follow a redirection by itself: the caller decides where credentials are sent (SECURITY J22). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transfer/layer.h"

struct px_fetch;
struct px_err;

int px_fetch_open(struct px_fetch **ret_fetch, struct px_err *e);
void px_fetch_close(struct px_fetch *fetch);                    /* NULL is fine */

enum px_fetch_method { PX_FETCH_GET, PX_FETCH_HEAD, PX_FETCH_POST, PX_FETCH_PUT, PX_FETCH_PATCH };

enum { PX_FETCH_URL_MAX = 8192, PX_FETCH_BODY_MAX = 24 << 10, PX_FETCH_HEADER_MAX = 4096 };

struct px_fetch_request {
    enum px_fetch_method method;
    const char *url;                        /* https, or http to a loopback address */
    const char *const *headers;             /* "Name: value", NULL-terminated; may be NULL */
    int source;                             /* body: size bytes from offset of this file; -1: none */
    uint64_t offset, size;
    int sink;                               /* answer's body; a part of it goes to sink_offset; -1: none */
    uint64_t sink_offset;
    uint64_t answer_max;                    /* a longer body ends the request */
    struct px_progress_to progress;         /* of the body, whichever way it goes */
    const char *what;                       /* for progress */
    bool outward;                           /* the caller did not name the host: only public addresses */
};

struct px_fetch_answer {
    unsigned status;                        /* of HTTP */
    bool cut;                               /* the connection ended before the body; got: bytes received */
    uint64_t got;                           /* bytes of the answer's body */
    char words[512];                        /* if cut: what happened */
    char location[PX_FETCH_URL_MAX];        /* absolute; "" if none */
    char challenge[PX_FETCH_HEADER_MAX];    /* WWW-Authenticate */
    char range[64], digest[128], type[256];
    char body[PX_FETCH_BODY_MAX + 1];       /* without a sink; a longer body is an error */
};

/* 0 if the server answered with any status, even if the connection was lost during the body; -1 if it could not be
 * reached or took too long. */
int px_fetch(struct px_fetch *fetch, const struct px_fetch_request *request, struct px_fetch_answer *ret_answer,
             struct px_err *e);

/* scheme://host[:port]/...; nothing before the host. */
struct px_url_place {
    bool tls, loopback;
    char host[256];             /* lower case, IPv6 in brackets */
    unsigned port;
};
int px_url_place(const char *url, struct px_url_place *ret_place); /* -EINVAL if it is not one, or not to be used */
bool px_url_same_place(const struct px_url_place *a, const struct px_url_place *b);
