/* store/document.h - JSON from outside px, read strictly.
 *
 * Why:     records, manifests, configs and answers of servers are all read by one rule (SECURITY J15), so that no two
 *          readers can disagree about a document.
 * Owns:    nothing: the document is the caller's (json_decref, or px_auto(px_document)).
 * Mustn't: accept a document with two members of one name, more than one value, bytes behind it, more than 64 levels
 *          or so many values that it takes much memory. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct px_err;

enum { PX_DOCUMENT_DEPTH_MAX = 64, PX_DOCUMENT_VALUES_MAX = 1 << 18 };

/* what ("the manifest") and code (enum px_code) are for the error. The document is an object or an array. */
int px_document_read(const char *text, size_t len, const char *what, int code, json_t **ret_document, struct px_err *e);
/* The string of a member, or NULL if it is absent or not a string. It has no NUL inside: the reader refuses those. */
const char *px_document_text(const json_t *object, const char *name);
/* 1: an integer from 0 to max; 0: absent; -1: anything else. */
int px_document_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret_number);

void px_document_freep(json_t **document);
