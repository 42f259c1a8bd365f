/* The structure of a TOML document: keys, tables, arrays, and which of them may still be extended. */
#include "config/toml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/toml_scan.h"

enum { KEY_PARTS_MAX = 64, NODES_MAX = 1 << 22 };

struct key {                    /* one part of a dotted key */
    uint32_t text, length, at;
};

/* ---- failure ---- */

void px_toml_place(const struct px_toml *t, uint32_t at, uint32_t *ret_line, uint32_t *ret_column)
{
    uint32_t line = 1, from = 0;
    for (uint32_t i = 0; i < at && i < t->length; i++)
        if (t->source[i] == '\n') {
            line++;
            from = i + 1;
        }
    *ret_line = line;
    *ret_column = at - from + 1;
}

int px_toml_fail(struct scan *s, const char *at, const char *fmt, ...)
{
    va_list args;
    if (s->err < 0)
        return s->err;
    va_start(args, fmt);
    (void)vsnprintf(s->fault->message, sizeof s->fault->message, fmt, args);
    va_end(args);
    px_toml_place(s->t, (uint32_t)(at - s->t->source), &s->fault->line, &s->fault->column);
    return s->err = -EINVAL;
}

static int fail_memory(struct scan *s)
{
    return s->err = s->err ? s->err : -ENOMEM;
}

uint32_t px_toml_keep(struct scan *s, const char *text, size_t length)
{
    uint32_t at = (uint32_t)s->t->strings.len;
    px_buf_add(&s->t->strings, text, length);
    px_buf_putc(&s->t->strings, '\0');
    if (s->t->strings.err < 0)
        s->err = s->t->strings.err;
    return at;
}

/* ---- nodes and their index ---- */

static uint32_t hash_key(uint32_t parent, const char *key, uint32_t length)
{
    uint32_t h = 2166136261u ^ parent * 0x9e3779b1u;
    for (uint32_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)key[i]) * 16777619u;
    return h ^ h >> 15;
}

static const char *key_of(const struct px_toml *t, const struct px_toml_node *n)
{
    return t->strings.data + n->key;
}

static uint32_t *slot_of(const struct px_toml *t, uint32_t parent, const char *key, uint32_t length)
{
    uint32_t mask = t->index_size - 1;
    for (uint32_t i = hash_key(parent, key, length) & mask;; i = (i + 1) & mask) {
        uint32_t node = t->index[i];
        const struct px_toml_node *n = &t->nodes[node];
        if (node == PX_TOML_NONE ||
            (n->parent == parent && n->key_length == length && memcmp(key_of(t, n), key, length) == 0))
            return &t->index[i];
    }
}

static bool has_key(const struct px_toml *t, uint32_t node)
{
    return t->nodes[t->nodes[node].parent].type == PX_TOML_TABLE;
}

/* Doubles the hash table and inserts every node with a key again. The table is at most half full. */
static int grow_nodes(struct px_toml *t)
{
    uint32_t capacity = t->capacity ? t->capacity * 2 : 64;
    if (capacity > NODES_MAX)
        return -EFBIG;
    struct px_toml_node *nodes = realloc(t->nodes, capacity * sizeof *nodes);
    if (!nodes)
        return -ENOMEM;
    t->nodes = nodes;
    uint32_t *index = calloc(capacity * 2, sizeof *index);
    if (!index)
        return -ENOMEM;
    free(t->index);
    t->index = index;
    t->index_size = capacity * 2;
    t->capacity = capacity;
    for (uint32_t i = 1; i < t->count; i++)
        if (has_key(t, i))
            *slot_of(t, nodes[i].parent, key_of(t, &nodes[i]), nodes[i].key_length) = i;
    return 0;
}

/* Adds a child to parent; key is NULL in arrays. Returns 0 (none) on failure. */
static uint32_t add_node(struct scan *s, uint32_t parent, const struct key *key, uint8_t type, uint8_t made)
{
    struct px_toml *t = s->t;
    int r = t->count == t->capacity ? grow_nodes(t) : 0;
    if (r < 0) {
        s->err = s->err ? s->err : r;
        return PX_TOML_NONE;
    }
    uint32_t id = t->count++;
    struct px_toml_node *n = &t->nodes[id], *p = &t->nodes[parent];
    *n = (struct px_toml_node){.type = type, .made = made, .parent = parent};
    if (key) {
        n->key = key->text;
        n->key_length = key->length;
        n->key_at = key->at;
        *slot_of(t, parent, key_of(t, n), n->key_length) = id;
    }
    if (p->last)
        t->nodes[p->last].next = id;
    else
        p->first = id;
    p->last = id;
    p->count++;
    return id;
}

static uint32_t find(const struct px_toml *t, uint32_t parent, const struct key *key)
{
    return *slot_of(t, parent, t->strings.data + key->text, key->length);
}

/* ---- blanks, comments, line ends ---- */

static void skip_blanks(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
        s->p++;
}

static int skip_comment(struct scan *s)
{
    if (s->p >= s->end || *s->p != '#')
        return 0;
    for (s->p++; s->p < s->end && *s->p != '\n'; s->p++) {
        unsigned char c = (unsigned char)*s->p;
        bool line_end = c == '\r' && s->p + 1 < s->end && s->p[1] == '\n';
        if ((c < 0x20 && c != '\t' && !line_end) || c == 0x7f)
            return px_toml_fail(s, s->p, "a control character in a comment");
    }
    return 0;
}

static bool skip_newline(struct scan *s)
{
    if (s->p < s->end && *s->p == '\r' && s->p + 1 < s->end && s->p[1] == '\n')
        s->p++;
    if (s->p >= s->end || *s->p != '\n')
        return false;
    s->p++;
    return true;
}

static int end_line(struct scan *s)
{
    skip_blanks(s);
    if (skip_comment(s) < 0)
        return -1;
    if (s->p < s->end && !skip_newline(s))
        return px_toml_fail(s, s->p, "the line should end here");
    return 0;
}

/* Skips blanks, comments and line ends between the items of an array. */
static int skip_space(struct scan *s)
{
    do {
        skip_blanks(s);
        if (skip_comment(s) < 0)
            return -1;
    } while (skip_newline(s));
    return 0;
}

/* ---- keys ---- */

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static int scan_key_part(struct scan *s, struct key *key)
{
    key->at = (uint32_t)(s->p - s->t->source);
    if (s->p < s->end && (*s->p == '"' || *s->p == '\''))
        return px_toml_scan_string(s, false, &key->text, &key->length);
    const char *from = s->p;
    while (s->p < s->end && is_bare(*s->p))
        s->p++;
    if (s->p == from)
        return px_toml_fail(s, s->p, "a key is missing here");
    key->text = px_toml_keep(s, from, (size_t)(s->p - from));
    key->length = (uint32_t)(s->p - from);
    return s->err;
}

/* The number of parts, or -1. */
static int scan_key(struct scan *s, struct key parts[KEY_PARTS_MAX])
{
    for (int n = 0; n < KEY_PARTS_MAX; n++) {
        skip_blanks(s);
        if (scan_key_part(s, &parts[n]) < 0)
            return -1;
        skip_blanks(s);
        if (s->p >= s->end || *s->p != '.')
            return n + 1;
        s->p++;
    }
    return px_toml_fail(s, s->p, "more than %d parts in a key", KEY_PARTS_MAX);
}

/* ---- values ---- */

static int scan_value(struct scan *s, uint32_t parent, const struct key *key, uint32_t *ret_node);

static int scan_array(struct scan *s, uint32_t array)
{
    s->p++;
    for (;;) {
        uint32_t item;
        if (skip_space(s) < 0)
            return -1;
        if (s->p < s->end && *s->p == ']')
            break;
        if (scan_value(s, array, NULL, &item) < 0 || skip_space(s) < 0)
            return -1;
        if (s->p < s->end && *s->p == ',')
            s->p++;
        else if (s->p >= s->end || *s->p != ']')
            return px_toml_fail(s, s->p, "a comma or ] is missing here");
    }
    s->p++;
    return 0;
}

static int scan_pair(struct scan *s, uint32_t table);

static int scan_inline_table(struct scan *s, uint32_t table)
{
    s->p++;
    skip_blanks(s);
    if (s->p < s->end && *s->p == '}') {
        s->p++;
        return 0;
    }
    for (;;) {
        if (scan_pair(s, table) < 0)
            return -1;
        skip_blanks(s);
        char c = s->p < s->end ? *s->p++ : '\0';
        if (c == '}')
            return 0;
        if (c != ',')
            return px_toml_fail(s, s->p - (c != '\0'), "a comma or } is missing here");
    }
}

static int scan_nested(struct scan *s, uint32_t node)
{
    if (++s->depth > PX_TOML_DEPTH_MAX)
        return px_toml_fail(s, s->p, "nested deeper than %d", PX_TOML_DEPTH_MAX);
    int r = *s->p == '[' ? scan_array(s, node) : scan_inline_table(s, node);
    s->depth--;
    return r;
}

static int scan_value(struct scan *s, uint32_t parent, const struct key *key, uint32_t *ret_node)
{
    const char *from = s->p;
    char c = s->p < s->end ? *s->p : '\0';
    uint8_t type = c == '[' ? PX_TOML_ARRAY : c == '{' ? PX_TOML_TABLE : PX_TOML_STRING;
    uint32_t node = add_node(s, parent, key, type, PX_TOML_BY_VALUE);
    struct px_toml_node scalar = {0};
    int r;

    if (node == PX_TOML_NONE)
        return -1;
    if (c == '[' || c == '{') {
        r = scan_nested(s, node);
    } else if (c == '"' || c == '\'') {
        uint32_t text, length;
        r = px_toml_scan_string(s, true, &text, &length);
        if (r >= 0) {
            s->t->nodes[node].text = text;
            s->t->nodes[node].text_length = length;
        }
    } else {
        r = px_toml_scan_scalar(s, &scalar);
        struct px_toml_node *n = &s->t->nodes[node];
        n->type = scalar.type;
        n->number = scalar.number;
        n->truth = scalar.truth;
        n->text = scalar.text;
        n->text_length = scalar.text_length;
    }
    if (r < 0)
        return -1;
    s->t->nodes[node].from = (uint32_t)(from - s->t->source);
    s->t->nodes[node].to = (uint32_t)(s->p - s->t->source);
    *ret_node = node;
    return 0;
}

/* a.b.c = value: creates the tables a and b, or extends them if dotted keys created them. Never extends a table that a
 * header or a value created. */
static int enter_dotted(struct scan *s, uint32_t *table, const struct key *part)
{
    uint32_t next = find(s->t, *table, part);
    if (next == PX_TOML_NONE)
        next = add_node(s, *table, part, PX_TOML_TABLE, PX_TOML_BY_KEY);
    else if (s->t->nodes[next].type != PX_TOML_TABLE || s->t->nodes[next].made != PX_TOML_BY_KEY)
        return px_toml_fail(s, s->t->source + part->at, "'%.40s' was defined before and cannot be added to",
                            s->t->strings.data + part->text);
    *table = next;
    return s->err;
}

static int scan_pair(struct scan *s, uint32_t table)
{
    struct key parts[KEY_PARTS_MAX];
    uint32_t node;
    int n = scan_key(s, parts);
    if (n < 0)
        return -1;
    if (s->p >= s->end || *s->p != '=')
        return px_toml_fail(s, s->p, "'=' is missing after the key");
    s->p++;
    skip_blanks(s);
    for (int i = 0; i + 1 < n; i++)
        if (enter_dotted(s, &table, &parts[i]) < 0)
            return -1;
    if (find(s->t, table, &parts[n - 1]) != PX_TOML_NONE)
        return px_toml_fail(s, s->t->source + parts[n - 1].at, "'%.40s' is there twice", s->t->strings.data + parts[n - 1].text);
    return scan_value(s, table, &parts[n - 1], &node);
}

/* ---- headers ---- */

static int already(struct scan *s, const struct key *key)
{
    return px_toml_fail(s, s->t->source + key->at, "'%.40s' was defined before", s->t->strings.data + key->text);
}

/* Resolves one part of a header's key: enters a table, or the last item of an array of tables. */
static int enter_header(struct scan *s, uint32_t *table, const struct key *part)
{
    uint32_t next = find(s->t, *table, part);
    if (next == PX_TOML_NONE)
        next = add_node(s, *table, part, PX_TOML_TABLE, PX_TOML_ON_THE_WAY);
    else if (s->t->nodes[next].made == PX_TOML_BY_ITEMS)
        next = s->t->nodes[next].last;
    else if (s->t->nodes[next].made == PX_TOML_BY_VALUE)
        return already(s, part);
    *table = next;
    return s->err;
}

static int open_table(struct scan *s, uint32_t parent, const struct key *key, uint32_t *ret_table)
{
    uint32_t node = find(s->t, parent, key);
    if (node == PX_TOML_NONE)
        node = add_node(s, parent, key, PX_TOML_TABLE, PX_TOML_BY_HEADER);
    else if (s->t->nodes[node].made != PX_TOML_ON_THE_WAY)
        return already(s, key);
    if (s->err < 0)
        return -1;
    s->t->nodes[node].made = PX_TOML_BY_HEADER;
    *ret_table = node;
    return 0;
}

static int open_item(struct scan *s, uint32_t parent, const struct key *key, uint32_t *ret_table)
{
    uint32_t array = find(s->t, parent, key);
    if (array == PX_TOML_NONE)
        array = add_node(s, parent, key, PX_TOML_ARRAY, PX_TOML_BY_ITEMS);
    else if (s->t->nodes[array].made != PX_TOML_BY_ITEMS)
        return already(s, key);
    *ret_table = s->err < 0 ? PX_TOML_NONE : add_node(s, array, NULL, PX_TOML_TABLE, PX_TOML_BY_HEADER);
    return s->err;
}

static int scan_header(struct scan *s, uint32_t *ret_table)
{
    struct key parts[KEY_PARTS_MAX];
    const char *from = s->p;
    bool item = s->end - s->p > 1 && s->p[1] == '[';
    uint32_t table = 0;

    s->p += item ? 2 : 1;
    int n = scan_key(s, parts);
    if (n < 0)
        return -1;
    if (s->end - s->p < (item ? 2 : 1) || memcmp(s->p, "]]", item ? 2 : 1) != 0)
        return px_toml_fail(s, s->p, "%s is missing here", item ? "]]" : "]");
    s->p += item ? 2 : 1;
    for (int i = 0; i + 1 < n; i++)
        if (enter_header(s, &table, &parts[i]) < 0)
            return -1;
    if ((item ? open_item : open_table)(s, table, &parts[n - 1], &table) < 0)
        return -1;
    s->t->nodes[table].from = (uint32_t)(from - s->t->source);
    s->t->nodes[table].to = (uint32_t)(s->p - s->t->source);
    s->t->nodes[table].key_at = parts[n - 1].at;
    *ret_table = table;
    return 0;
}

/* ---- the document ---- */

static int scan_line(struct scan *s, uint32_t *table)
{
    const char *line = s->p;
    skip_blanks(s);
    if (s->p >= s->end || *s->p == '\n' || *s->p == '\r' || *s->p == '#')
        return end_line(s);
    uint32_t before = s->t->count;
    bool header = *s->p == '[';
    if (header ? scan_header(s, table) < 0 : scan_pair(s, *table) < 0)
        return -1;
    if (end_line(s) < 0)
        return -1;
    struct px_toml_node *owner = &s->t->nodes[*table];
    uint32_t at = (uint32_t)(line - s->t->source), end = (uint32_t)(s->p - s->t->source);
    for (uint32_t i = before; i < s->t->count; i++)
        s->t->nodes[i].line_at = at;
    if (header)
        owner->line_at = at;
    owner->body_to = end;
    if (*table == 0)
        s->t->root_to = end;
    return 0;
}

static int check_utf8(struct scan *s)
{
    for (const char *p = s->p; p < s->end;) {
        size_t n = px_utf8_length(p, (size_t)(s->end - p));
        if (n == 0)
            return px_toml_fail(s, p, "this is not UTF-8");
        p += n;
    }
    return 0;
}

static int scan_document(struct scan *s)
{
    uint32_t table = 0;
    if (grow_nodes(s->t) < 0)
        return fail_memory(s);
    s->t->nodes[0] = (struct px_toml_node){.type = PX_TOML_TABLE, .made = PX_TOML_BY_HEADER};
    s->t->count = 1;
    if (check_utf8(s) < 0)
        return -1;
    if (s->end - s->p >= 3 && memcmp(s->p, "\xef\xbb\xbf", 3) == 0)
        s->p += 3;
    s->t->root_to = (uint32_t)(s->p - s->t->source);
    while (s->p < s->end)
        if (scan_line(s, &table) < 0)
            return -1;
    return 0;
}

int px_toml_parse(const char *text, size_t length, struct px_toml **ret_toml, struct px_toml_fault *ret_fault)
{
    *ret_fault = (struct px_toml_fault){0};
    if (length > PX_TOML_BYTES_MAX)
        return -EFBIG;
    struct px_toml *t = calloc(1, sizeof *t);
    char *copy = t ? malloc(length + 1) : NULL;
    if (!copy) {
        free(t);
        return -ENOMEM;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    t->source = copy;
    t->length = length;
    t->strings = PX_BUF(2 * (size_t)PX_TOML_BYTES_MAX);
    px_buf_putc(&t->strings, '\0');
    struct scan s = {.t = t, .fault = ret_fault, .p = copy, .end = copy + length, .err = t->strings.err};
    if (s.err < 0 || scan_document(&s) < 0) {
        px_toml_free(t);
        return s.err ? s.err : -EINVAL;
    }
    *ret_toml = t;
    return 0;
}

void px_toml_free(struct px_toml *t)
{
    if (!t)
        return;
    px_buf_done(&t->strings);
    free(t->index);
    free(t->nodes);
    free(t->source);
    free(t);
}

/* ---- looking ---- */

const struct px_toml_node *px_toml_at(const struct px_toml *t, uint32_t node)
{
    return &t->nodes[node];
}

uint32_t px_toml_get(const struct px_toml *t, uint32_t table, const char *key)
{
    return t->nodes[table].type == PX_TOML_TABLE ? *slot_of(t, table, key, (uint32_t)strlen(key)) : PX_TOML_NONE;
}

uint32_t px_toml_find(const struct px_toml *t, const char *const *path, size_t length)
{
    uint32_t node = 0;
    for (size_t i = 0; i < length; i++) {
        node = px_toml_get(t, node, path[i]);
        if (node == PX_TOML_NONE)
            return PX_TOML_NONE;
    }
    return node;
}

const char *px_toml_key(const struct px_toml *t, uint32_t node)
{
    return key_of(t, &t->nodes[node]);
}

const char *px_toml_text(const struct px_toml *t, uint32_t node)
{
    const struct px_toml_node *n = &t->nodes[node];
    return n->type == PX_TOML_STRING ? t->strings.data + n->text : NULL;
}
