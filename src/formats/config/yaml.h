/* config/yaml.h - a small YAML document as a tree, with the line of every node.
 *
 * Why:     a worker's file is written by people; errors name the line.
 * Owns:    the nodes and their texts.
 * Mustn't: follow aliases, make objects of tags, or grow beyond its bounds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct px_err;

enum px_yaml_kind { PX_YAML_TEXT, PX_YAML_LIST, PX_YAML_MAP };
enum { PX_YAML_DEPTH = 64, PX_YAML_NODES = 10000, PX_YAML_BYTES = 1 << 20 };

struct px_yaml {
    enum px_yaml_kind kind;
    char *key;   /* in a map */
    char *text;  /* of a text; no NUL in it */
    bool plain;  /* not quoted, so it may be a number or a boolean */
    size_t line; /* from 1; in a map, the line of the key */
    struct px_yaml *first, *last, *next;
};

/* `name` is for errors. */
int px_yaml_parse(const char *name, const char *data, size_t len, struct px_yaml **ret_root,
                  struct px_err *e);
void px_yaml_free(struct px_yaml *node);
const struct px_yaml *px_yaml_get(const struct px_yaml *map, const char *key);
