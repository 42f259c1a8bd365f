#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/err.h"
#include "base/fd.h"

struct reader {
    const char *name;
    yaml_parser_t parser;
    size_t depth, nodes;
};

static int wrong(const struct reader *r, size_t line, const char *what, struct px_err *e)
{
    (void)px_fail(e, PX_E_WORKER, 0, "%s, line %zu: %s", r->name, line, what);
    return px_why(e, "The file is read as YAML without aliases and with each key once.");
}

void px_yaml_free(struct px_yaml *node)
{
    while (node) { /* bounded by depth, not by length */
        struct px_yaml *next = node->next;
        px_yaml_free(node->first);
        free(node->key);
        free(node->text);
        free(node);
        node = next;
    }
}

const struct px_yaml *px_yaml_get(const struct px_yaml *map, const char *key)
{
    for (const struct px_yaml *n = map ? map->first : NULL; n; n = n->next)
        if (n->key && strcmp(n->key, key) == 0)
            return n;
    return NULL;
}

static int next_event(struct reader *r, yaml_event_t *event, struct px_err *e)
{
    if (yaml_parser_parse(&r->parser, event))
        return 0;
    return wrong(r, r->parser.problem_mark.line + 1,
                 r->parser.problem ? r->parser.problem : "it cannot be read", e);
}

static struct px_yaml *new_node(struct reader *r, enum px_yaml_kind kind, const yaml_event_t *event,
                                struct px_err *e)
{
    size_t line = event->start_mark.line + 1;
    struct px_yaml *node = r->nodes++ < PX_YAML_NODES ? calloc(1, sizeof *node) : NULL;
    if (!node) {
        (void)wrong(r, line, "there is too much in it", e);
        return NULL;
    }
    node->kind = kind;
    node->line = line;
    return node;
}

static char *scalar(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    return memchr(text, '\0', event->data.scalar.length) ? NULL : strndup(text, event->data.scalar.length);
}

static int read_node(struct reader *r, const yaml_event_t *event, struct px_yaml **ret, struct px_err *e);

static void add_child(struct px_yaml *node, struct px_yaml *child)
{
    if (node->last)
        node->last->next = child;
    else
        node->first = child;
    node->last = child;
}

/* A key of a map, which must be new. */
static int read_key(struct reader *r, const struct px_yaml *map, const yaml_event_t *event, char **ret,
                    struct px_err *e)
{
    size_t line = event->start_mark.line + 1;
    if (event->type != YAML_SCALAR_EVENT)
        return wrong(r, line, "a key must be a text", e);
    char *key = scalar(event);
    if (!key)
        return wrong(r, line, "a key has a NUL in it", e);
    if (px_yaml_get(map, key)) {
        (void)px_fail(e, PX_E_WORKER, 0, "%s, line %zu: the key '%.64s' is there twice", r->name, line, key);
        free(key);
        return -1;
    }
    *ret = key;
    return 0;
}

/* One entry of a list or a map; 1: the end. */
static int read_entry(struct reader *r, struct px_yaml *node, struct px_err *e)
{
    px_auto_free char *key = NULL;
    struct px_yaml *child = NULL;
    yaml_event_t event;
    if (next_event(r, &event, e) < 0)
        return -1;
    size_t line = event.start_mark.line + 1;
    int done = event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
    if (!done && node->kind == PX_YAML_MAP) {
        done = read_key(r, node, &event, &key, e);
        yaml_event_delete(&event);
        if (done < 0 || next_event(r, &event, e) < 0)
            return -1;
    }
    if (!done)
        done = read_node(r, &event, &child, e);
    yaml_event_delete(&event);
    if (child) {
        child->line = line;
        child->key = px_take(&key);
        add_child(node, child);
    }
    return done;
}

static int read_entries(struct reader *r, struct px_yaml *node, struct px_err *e)
{
    int done = 0;
    if (++r->depth > PX_YAML_DEPTH)
        return wrong(r, node->line, "it is nested too deeply", e);
    while (done == 0)
        done = read_entry(r, node, e);
    r->depth--;
    return done < 0 ? -1 : 0;
}

static int read_node(struct reader *r, const yaml_event_t *event, struct px_yaml **ret, struct px_err *e)
{
    size_t line = event->start_mark.line + 1;
    bool list = event->type == YAML_SEQUENCE_START_EVENT, map = event->type == YAML_MAPPING_START_EVENT;
    if (event->type == YAML_ALIAS_EVENT)
        return wrong(r, line, "aliases are not taken", e);
    if (!list && !map && event->type != YAML_SCALAR_EVENT)
        return wrong(r, line, "there is no value", e);
    struct px_yaml *node = new_node(r, list ? PX_YAML_LIST : map ? PX_YAML_MAP : PX_YAML_TEXT, event, e);
    if (!node)
        return -1;
    int done = 0;
    if (list || map) {
        done = read_entries(r, node, e);
    } else {
        node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        node->text = scalar(event);
        done = node->text ? 0 : wrong(r, line, "a text has a NUL in it", e);
    }
    if (done < 0)
        px_yaml_free(node);
    else
        *ret = node;
    return done;
}

/* Skips the start events of the stream and of its one document. */
static int read_document(struct reader *r, struct px_yaml **ret, struct px_err *e)
{
    yaml_event_t event;
    for (;;) {
        if (next_event(r, &event, e) < 0)
            return -1;
        bool begins = event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT;
        if (!begins)
            break;
        yaml_event_delete(&event);
    }
    if (event.type == YAML_STREAM_END_EVENT) { /* a file with only comments is an empty map */
        *ret = new_node(r, PX_YAML_MAP, &event, e);
        yaml_event_delete(&event);
        return *ret ? 0 : -1;
    }
    int done = read_node(r, &event, ret, e);
    yaml_event_delete(&event);
    if (done < 0 || next_event(r, &event, e) < 0) /* the end of the document */
        return -1;
    yaml_event_delete(&event);
    if (next_event(r, &event, e) < 0)
        return -1;
    bool more = event.type != YAML_STREAM_END_EVENT;
    size_t line = event.start_mark.line + 1;
    yaml_event_delete(&event);
    return more ? wrong(r, line, "there is a second document", e) : 0;
}

int px_yaml_parse(const char *name, const char *data, size_t len, struct px_yaml **ret_root, struct px_err *e)
{
    struct reader r = {.name = name};
    struct px_yaml *root = NULL;
    if (len > PX_YAML_BYTES)
        return px_fail(e, PX_E_WORKER, 0, "%s is larger than %d bytes", name, PX_YAML_BYTES);
    if (!yaml_parser_initialize(&r.parser))
        return px_no_memory(e);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)data, len);
    int done = read_document(&r, &root, e);
    yaml_parser_delete(&r.parser);
    if (done < 0)
        px_yaml_free(root);
    else
        *ret_root = root;
    return done;
}
