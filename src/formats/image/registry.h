/* image/registry.h - a conversation with one registry about one repository.
 *
 * Why:     one place decides for every request which host receives the credentials (SECURITY J22).
 * Owns:    px-fetch, and the credentials until it is closed.
 * Mustn't: send the credentials to another host, or without TLS to another machine. */
#pragma once

#include "image/challenge.h"
#include "image/oci.h"
#include "transfer/fetch.h"

struct px_registry {
    struct px_store *store;
    const struct px_image_ref *ref;
    bool push;                                  /* the access that it asks for */
    struct px_progress_to progress;
    struct px_fetch *fetch;
    struct px_url_place place;                /* the registry */
    char base[300];                             /* "https://host:port" */
    char user[256], password[2048];             /* "": none */
    char authorization[12 << 10];               /* the header; "": none yet */
    struct px_fetch_answer answer;              /* of the last request */
};

/* Detects http or https, and checks that the server is a registry. */
int px_registry_open(struct px_store *store, const struct px_image_ref *ref, bool push, struct px_progress_to progress,
                    struct px_registry **ret_talk, struct px_err *e);
void px_registry_close(struct px_registry *s);
void px_registry_freep(struct px_registry **s);

/* A request whose url is absolute, or begins with '/' at the registry. Follows redirections of GET and HEAD, answers
 * one challenge. The result is s->answer. */
int px_registry_request(struct px_registry *s, const struct px_fetch_request *request, struct px_err *e);
/* Fills e for an unexpected answer, with the server's message quoted and truncated. doing: "push to". Returns -1. */
int px_registry_refused(struct px_registry *s, const char *doing, struct px_err *e);

/* PX_REGISTRY_USERNAME and PX_REGISTRY_PASSWORD, if PX_REGISTRY names this registry or is unset; else those that docker
 * and podman store; "" if there are none. Only for a registry that the caller named. */
int px_credentials_find(const char *registry, char *user, size_t user_size, char *password, size_t password_size,
                  struct px_err *e);
/* The Authorization header for the registry's last challenge; may request a token from another server. */
int px_registry_authenticate(struct px_registry *s, struct px_err *e);
/* Base64 of "user:password" and back; both return -EINVAL if the text is too long or invalid. */
int px_credentials_encode(const char *user, const char *password, char *out, size_t size);
int px_credentials_decode(const char *text, char *user, size_t user_size, char *password, size_t password_size);
/* Whether credentials for one host may be sent to the other: the same host, or two of one domain. */
bool px_credentials_shared(const struct px_url_place *registry, const struct px_url_place *realm);
