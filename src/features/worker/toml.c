/* A worker that a project's pyproject.toml describes: the table [tool.px.worker], as the tree that a worker's own file would be. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "config/toml.h"
#include "worker/worker.h"

struct reader {
    const char *name;
    const struct px_toml *toml;
    size_t nodes;
};

static int wrong(const struct reader *r, uint32_t id, const char *what, struct px_err *e)
{
    uint32_t line = 1, column;
    px_toml_place(r->toml, px_toml_at(r->toml, id)->line_at, &line, &column);
    return px_fail(e, PX_E_WORKER, 0, "%s, line %u: %s", r->name, line, what);
}

/* A value as its YAML text. Numbers are as in the source: 10_000 is not a number in YAML either. */
static char *text_of(const struct reader *r, uint32_t id)
{
    const struct px_toml_node *n = px_toml_at(r->toml, id);
    if (n->type == PX_TOML_STRING)
        return strlen(px_toml_text(r->toml, id)) == n->text_length ? strdup(px_toml_text(r->toml, id)) : NULL;
    return strndup(r->toml->source + n->from, n->to - n->from);
}

static struct px_yaml *read_node(struct reader *r, uint32_t id, size_t depth, struct px_err *e);

static int read_children(struct reader *r, struct px_yaml *node, uint32_t id, size_t depth, struct px_err *e)
{
    for (uint32_t c = px_toml_at(r->toml, id)->first; c; c = px_toml_at(r->toml, c)->next) {
        struct px_yaml *child = read_node(r, c, depth + 1, e);
        if (!child)
            return -1;
        if (node->last)
            node->last->next = child;
        else
            node->first = child;
        node->last = child;
        if (node->kind == PX_YAML_MAP && !(child->key = strdup(px_toml_key(r->toml, c))))
            return px_no_memory(e);
    }
    return 0;
}

static struct px_yaml *read_node(struct reader *r, uint32_t id, size_t depth, struct px_err *e)
{
    const struct px_toml_node *n = px_toml_at(r->toml, id);
    uint32_t line = 1, column;
    struct px_yaml *node = r->nodes++ < PX_YAML_NODES && depth <= PX_YAML_DEPTH ? calloc(1, sizeof *node) : NULL;
    if (!node) {
        (void)wrong(r, id, "there is too much in it", e);
        return NULL;
    }
    px_toml_place(r->toml, n->line_at, &line, &column);
    node->line = line;
    node->kind = n->type == PX_TOML_TABLE ? PX_YAML_MAP : n->type == PX_TOML_ARRAY ? PX_YAML_LIST : PX_YAML_TEXT;
    node->plain = n->type != PX_TOML_STRING;
    int done = 0;
    if (node->kind != PX_YAML_TEXT)
        done = read_children(r, node, id, depth, e);
    else if (!(node->text = text_of(r, id)))
        done = wrong(r, id, "a text has a NUL in it", e);
    if (done < 0) {
        px_yaml_free(node);
        return NULL;
    }
    return node;
}

int px_worker_toml(const char *name, const char *data, size_t len, struct px_yaml **ret_root, struct px_err *e)
{
    static const char *const path[] = {"tool", "px", "worker"};
    struct px_toml *toml = NULL;
    struct px_toml_fault fault = {0};
    int r = px_toml_parse(data, len, &toml, &fault);
    if (r == -EINVAL)
        return px_fail(e, PX_E_WORKER, 0, "%s, line %u: %s", name, fault.line, fault.message);
    if (r < 0)
        return px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_LIMIT, r, "%s cannot be read", name);
    uint32_t table = px_toml_find(toml, path, PX_COUNT_OF(path));
    struct reader reader = {.name = name, .toml = toml};
    if (table == PX_TOML_NONE)
        (void)px_fail(e, PX_E_WORKER, 0, "%s has no [tool.px.worker]", name);
    else
        *ret_root = read_node(&reader, table, 0, e);
    px_toml_free(toml);
    return table != PX_TOML_NONE && *ret_root ? 0 : -1;
}
