/* image/registry.h - a conversation with one registry about one repository.
 *
 * Why:     who may see the credentials is decided in one place, for every request (SECURITY J22).
 * Owns:    px-fetch, and the credentials for as long as it lasts.
 * Mustn't: send them to another host than the registry's own, or without TLS to another machine. */
#pragma once

#include "image/challenge.h"
#include "image/oci.h"
#include "transfer/fetch.h"

struct px_registry {
    struct px_store *store;
    const struct px_image_ref *ref;
    bool push;                                  /* asks for the right to */
    struct px_progress_to progress;
    struct px_fetch *fetch;
    struct px_url_place place;                /* the registry */
    char base[300];                             /* "https://host:port" */
    char user[256], password[2048];             /* "": none */
    char authorization[12 << 10];               /* the header; "": none yet */
    struct px_fetch_answer answer;              /* of the last request */
};

/* Finds out how the registry is spoken to, and that it is one. */
int px_registry_open(struct px_store *store, const struct px_image_ref *ref, bool push, struct px_progress_to progress,
                    struct px_registry **ret_talk, struct px_err *e);
void px_registry_close(struct px_registry *s);
void px_registry_freep(struct px_registry **s);

/* A request whose url is absolute, or begins with '/' at the registry. Follows redirections of GET and HEAD, answers
 * one challenge; the answer is s->answer. */
int px_registry_request(struct px_registry *s, const struct px_fetch_request *request, struct px_err *e);
/* An answer that was not the one hoped for, in words: what the server said, quoted and cut short. doing: "push to".
 * Always -1. */
int px_registry_refused(struct px_registry *s, const char *doing, struct px_err *e);

/* PX_REGISTRY_USERNAME and PX_REGISTRY_PASSWORD, where PX_REGISTRY names this registry or none, or what others keep
 * for it; "" if there is nothing. Only for a registry that the caller named. */
int px_credentials_find(const char *registry, char *user, size_t user_size, char *password, size_t password_size,
                  struct px_err *e);
/* The header for what the registry asked for last; may ask another server for a token. */
int px_registry_authenticate(struct px_registry *s, struct px_err *e);
/* Base64 of "user:password" and back; both -EINVAL if it does not fit or is not one. */
int px_credentials_encode(const char *user, const char *password, char *out, size_t size);
int px_credentials_decode(const char *text, char *user, size_t user_size, char *password, size_t password_size);
/* Whether credentials of the one may be shown to the other: the same host, or two of one domain. */
bool px_credentials_shared(const struct px_url_place *registry, const struct px_url_place *realm);
