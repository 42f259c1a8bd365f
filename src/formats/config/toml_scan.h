/* config/toml_scan.h - what toml.c and toml_value.c share: the position in the text, and the first failure. */
#pragma once

#include "config/toml.h"

struct scan {
    struct px_toml *t;
    struct px_toml_fault *fault;
    const char *p, *end;
    int err;
    unsigned depth;
};

int px_toml_fail(struct scan *s, const char *at, const char *fmt, ...) __attribute__((format(printf, 3, 4), cold));
/* Decodes a basic or literal string (no """ unless `multi`) at s->p into the strings. */
int px_toml_scan_string(struct scan *s, bool multi, uint32_t *ret_text, uint32_t *ret_length);
/* A number, date or boolean at s->p into the node. */
int px_toml_scan_scalar(struct scan *s, struct px_toml_node *node);
uint32_t px_toml_keep(struct scan *s, const char *text, size_t length);
