/* A worker's file: its schema as tables; errors name the line. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "worker/shell_line.h"
#include "worker/worker.h"

struct reader {
    struct px_worker *w;
    const char *base;
    struct px_files_root roots[PX_FILES_ROOTS_MAX];
    char *dirs[PX_FILES_ROOTS_MAX];
    const char *suffixes[PX_FILES_ROOTS_MAX][66];
    size_t count;
};

struct field {
    const char *key; /* NULL past the end */
    enum px_yaml_kind kind;
    int (*read)(struct reader *r, const struct px_yaml *n, void *out,
                struct px_err *e); /* NULL: a string for other tools */
    size_t at;
    bool or_map;        /* a map is accepted as well */
};

static int wrong(const struct reader *r, const struct px_yaml *n, const char *what, struct px_err *e)
{
    return px_fail(e, PX_E_WORKER, 0, "%s, line %zu: %s%s%s %s", r->w->name, n->line, n->key ? "'" : "",
                   n->key ? n->key : "this", n->key ? "'" : "", what);
}

static int read_map(struct reader *r, const struct px_yaml *map, const struct field *fields, void *out,
                    struct px_err *e)
{
    for (const struct px_yaml *n = map->first; n; n = n->next) {
        const struct field *f = fields;
        while (f->key && strcmp(f->key, n->key) != 0)
            f++;
        if (!f->key)
            return wrong(r, n, "is no key that is known here", e);
        if (n->kind != f->kind && !(f->or_map && n->kind == PX_YAML_MAP))
            return wrong(r, n,
                         f->kind == PX_YAML_MAP    ? "must be a map"
                         : f->kind == PX_YAML_LIST ? "must be a list"
                                                   : "must be a single value",
                         e);
        if (f->read && f->read(r, n, (char *)out + f->at, e) < 0)
            return -1;
    }
    return 0;
}

static int read_bool(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    bool yes = strcmp(n->text, "true") == 0;
    if (!n->plain || (!yes && strcmp(n->text, "false") != 0))
        return wrong(r, n, "must be true or false", e);
    *(bool *)out = yes;
    return 0;
}

static int read_count(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    if (!n->plain || px_parse_u64(n->text, UINT64_MAX / 2, out) < 0)
        return wrong(r, n, "must be a whole number", e);
    return 0;
}

static int read_texts(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    for (const struct px_yaml *item = n->first; item; item = item->next)
        if (item->kind != PX_YAML_TEXT || *item->text == '\0')
            return wrong(r, n, "must be a list of texts", e);
    *(const struct px_yaml **)out = n;
    return 0;
}

/* ---- sandbox.paths ---- */

static int read_mode(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    struct px_files_root *root = out;
    root->writable = strcmp(n->text, "rw") == 0;
    return root->writable || strcmp(n->text, "ro") == 0 ? 0 : wrong(r, n, "must be ro or rw", e);
}

static int read_dir(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    struct px_files_root *root = out;
    px_auto_buf struct px_buf path = PX_BUF(8192);
    if (*n->text == '\0' || *n->text == '~')
        return wrong(r, n, "must be a directory, written out", e);
    if (*n->text != '/' && r->base)
        px_buf_printf(&path, "%s/", r->base);
    px_buf_puts(&path, n->text);
    root->dir = r->dirs[r->count] = px_buf_take(&path);
    return root->dir ? 0 : wrong(r, n, "is too long", e);
}

static int read_suffixes(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    struct px_files_root *root = out;
    const struct px_yaml *list;
    size_t i = 0;
    if (read_texts(r, n, &list, e) < 0)
        return -1;
    for (const struct px_yaml *item = n->first; item; item = item->next) {
        if (i == PX_COUNT_OF(r->suffixes[0]) - 1)
            return wrong(r, n, "has too many suffixes", e);
        r->suffixes[r->count][i++] = item->text;
    }
    root->suffixes = r->suffixes[r->count];
    return 0;
}

static const struct field path_fields[] = {
    {"root", PX_YAML_TEXT, read_dir, 0},
    {"mode", PX_YAML_TEXT, read_mode, 0},
    {"suffixes", PX_YAML_LIST, read_suffixes, 0},
    {"max_file_bytes", PX_YAML_TEXT, read_count, offsetof(struct px_files_root, max_file_bytes)},
    {0},
};

static int read_paths(struct reader *r, const struct px_yaml *map, void *out, struct px_err *e)
{
    (void)out;
    for (const struct px_yaml *n = map->first; n; n = n->next) {
        struct px_files_root *root = &r->roots[r->count];
        if (r->count == PX_FILES_ROOTS_MAX)
            return wrong(r, n, "is one path too many", e);
        if (n->kind != PX_YAML_MAP)
            return wrong(r, n, "must be a map with a root", e);
        *root = (struct px_files_root){.name = n->key};
        if (read_map(r, n, path_fields, root, e) < 0)
            return -1;
        if (!root->dir)
            return wrong(r, n, "needs a root", e);
        root->create = root->writable;
        r->count++;
    }
    return 0;
}

/* ---- the box ---- */

#define W(member) offsetof(struct px_worker, member)
static const struct field network_fields[] = {
    {"allow", PX_YAML_LIST, read_texts, W(allow_net)},
    {"deny", PX_YAML_LIST, read_texts, W(deny_net)},
    {0},
};

/* true, false, or names: then the network is on, limited to those names. */
static int read_network(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    (void)out;
    if (n->kind != PX_YAML_MAP)
        return read_bool(r, n, &r->w->network, e);
    r->w->network = true;
    if (read_map(r, n, network_fields, r->w, e) < 0)
        return -1;
    if (!n->first || (r->w->allow_net && !r->w->allow_net->first))
        return wrong(r, n, "must name a host: {allow: [pypi.org]}", e);
    return 0;
}

static int read_memory(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    uint64_t bytes;
    if (px_parse_bytes(n->text, &bytes) < 0 || bytes == 0)
        return wrong(r, n, "must be a size: 512m", e);
    *(const char **)out = n->text;
    return 0;
}

static int read_env(struct reader *r, const struct px_yaml *map, void *out, struct px_err *e)
{
    for (const struct px_yaml *n = map->first; n; n = n->next)
        if (n->kind != PX_YAML_TEXT || *n->key == '\0' || strchr(n->key, '='))
            return wrong(r, n, "must be a name and its value", e);
    *(const struct px_yaml **)out = map;
    return 0;
}

/* A relative directory would depend on the working directory. */
static int read_base(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    if (*n->text == '\0' || (*n->text != '/' && strchr(n->text, '/')))
        return wrong(r, n, "must be the name of a base, or a directory by its whole path", e);
    *(const char **)out = n->text;
    return 0;
}

static const struct field sandbox_fields[] = {
    {"paths", PX_YAML_MAP, read_paths, 0},
    {"network", PX_YAML_TEXT, read_network, 0, true},
    {"memory", PX_YAML_TEXT, read_memory, W(memory)},
    {"env", PX_YAML_MAP, read_env, W(env)},
    {"base", PX_YAML_TEXT, read_base, W(box_base)},
    {"require_os_sandbox", PX_YAML_TEXT, read_bool, W(require_os_sandbox)},
    {"git_writable", PX_YAML_TEXT, read_bool, W(git_writable)},
    {0},
};

static int read_sandbox(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    (void)out;
    return read_map(r, n, sandbox_fields, r->w, e);
}

/* ---- shell rules ---- */

static int read_pattern(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    struct px_rule *rule = out;
    const char *why = px_shell_line_split(n->text, &rule->prefix);
    if (!why && (!rule->prefix || !rule->prefix[0]))
        why = "must have a word";
    return why ? wrong(r, n, why, e) : 0;
}

static const struct field rule_fields[] = {
    {"pattern", PX_YAML_TEXT, read_pattern, 0},
    {"approval_required", PX_YAML_TEXT, read_bool, offsetof(struct px_rule, approval)},
    {"sandbox_paths", PX_YAML_LIST, read_texts, offsetof(struct px_rule, paths)},
    {0},
};

static int read_rules(struct reader *r, const struct px_yaml *list, void *out, struct px_err *e)
{
    (void)out;
    for (const struct px_yaml *n = list->first; n; n = n->next) {
        struct px_rule *rule = &r->w->rules[r->w->rules_count];
        if (r->w->rules_count == PX_WORKER_RULES || n->kind != PX_YAML_MAP)
            return wrong(r, n, "is one rule too many, or no map with a pattern", e);
        *rule = (struct px_rule){.approval = true};
        r->w->rules_count++; /* also on failure: it is freed with the worker */
        if (read_map(r, n, rule_fields, rule, e) < 0)
            return -1;
        if (!rule->prefix)
            return wrong(r, n, "needs a pattern", e);
    }
    return 0;
}

static const struct field default_fields[] = {
    {"approval_required", PX_YAML_TEXT, read_bool, W(default_approval)},
    {0},
};

static int read_default(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    (void)out;
    r->w->has_default = r->w->default_approval = true;
    return read_map(r, n, default_fields, r->w, e);
}

/* ---- tools ---- */

static int read_allowed(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    bool yes = false;
    int done = read_bool(r, n, &yes, e);
    *(bool *)out = !yes;
    return done;
}

static const struct field tool_fields[] = {
    {"allowed", PX_YAML_TEXT, read_allowed, offsetof(struct px_tool_rule, denied)},
    {"approval_required", PX_YAML_TEXT, read_bool, offsetof(struct px_tool_rule, approval)},
    {0},
};

static int read_tools(struct reader *r, const struct px_yaml *map, void *out, struct px_err *e)
{
    (void)out;
    for (const struct px_yaml *n = map->first; n; n = n->next) {
        size_t i = 0;
        while (px_worker_tool_at(i) && strcmp(px_worker_tool_at(i), n->key) != 0)
            i++;
        if (!px_worker_tool_at(i) || n->kind != PX_YAML_MAP)
            return wrong(r, n, "is no tool with a map of rules: see px-worker(1)", e);
        if (read_map(r, n, tool_fields, &r->w->tools[i], e) < 0)
            return -1;
    }
    return 0;
}

static const struct field attachment_fields[] = {
    {"max_attachments", PX_YAML_TEXT, read_count, W(max_attachments)},
    {"max_total_bytes", PX_YAML_TEXT, read_count, W(max_attachment_bytes)},
    {"allowed_suffixes", PX_YAML_LIST, read_texts, W(attachment_suffixes)},
    {0},
};

static int read_attachments(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    (void)out;
    return read_map(r, n, attachment_fields, r->w, e);
}

static const struct field worker_fields[] = {
    {"name", PX_YAML_TEXT, NULL, 0},
    {"description", PX_YAML_TEXT, NULL, 0},
    {"instructions", PX_YAML_TEXT, NULL, 0},
    {"model", PX_YAML_TEXT, NULL, 0},
    {"sandbox", PX_YAML_MAP, read_sandbox, 0},
    {"tool_rules", PX_YAML_MAP, read_tools, 0},
    {"shell_rules", PX_YAML_LIST, read_rules, 0},
    {"shell_default", PX_YAML_MAP, read_default, 0},
    {"attachment_policy", PX_YAML_MAP, read_attachments, 0},
    {"workers", PX_YAML_LIST, read_texts, W(children)},
    {0},
};

/* ---- a file ---- */

/* A rule about a missing root would never match. */
static int check_rules(struct reader *r, struct px_err *e)
{
    struct px_files_root root;
    for (size_t i = 0; i < r->w->rules_count; i++)
        for (const struct px_yaml *n = r->w->rules[i].paths ? r->w->rules[i].paths->first : NULL; n;
             n = n->next) {
            size_t k = 0;
            while (px_files_root_at(r->w->files, k, &root) == 0 && strcmp(root.name, n->text) != 0)
                k++;
            if (px_files_root_at(r->w->files, k, &root) < 0)
                return wrong(r, r->w->rules[i].paths, "names a path that the sandbox does not have", e);
        }
    return 0;
}

static int understand(struct reader *r, struct px_err *e)
{
    if (r->w->file->kind != PX_YAML_MAP)
        return wrong(r, r->w->file, "must be a map with a sandbox", e);
    if (read_map(r, r->w->file, worker_fields, r->w, e) < 0)
        return -1;
    if (r->count == 0)
        return wrong(r, r->w->file, "has no sandbox with paths", e);
    for (size_t i = 0; i < r->count; i++)
        r->roots[i].git_writable = r->w->git_writable;
    if (px_files_new(r->roots, r->count, &r->w->files, e) < 0)
        return -1;
    return check_rules(r, e);
}

static int read_whole(const char *path, char **ret, size_t *ret_len, struct px_err *e)
{
    char *data = malloc(PX_YAML_BYTES + 2);
    px_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -errno : data ? px_read_full(fd, data, PX_YAML_BYTES + 1) : -ENOMEM;
    if (n < 0) {
        free(data);
        return px_fail(e, PX_E_IO, (int)n, "the worker's file '%.200s' cannot be read", path);
    }
    *ret = data;
    *ret_len = (size_t)n;
    return 0;
}

static bool is_toml(const char *path)
{
    size_t n = strlen(path);
    return n >= 5 && strcmp(path + n - 5, ".toml") == 0;
}

int px_worker_load(const char *path, const char *base, struct px_worker **ret_worker, struct px_err *e)
{
    PX_ERR(e);
    struct px_worker *w = calloc(1, sizeof *w);
    struct reader *r = calloc(1, sizeof *r);
    px_auto_free char *data = NULL;
    const char *slash = strrchr(path, '/');
    size_t len = 0;
    int done = -1;
    if (w && r) {
        w->name = strdup(slash ? slash + 1 : path);
        w->place = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
        base = base || !is_toml(path) ? base : w->place;
        *r = (struct reader){.w = w, .base = base};
        w->base = realpath(base ? base : ".", NULL);
        w->max_attachments = 4;
        w->max_attachment_bytes = 10 << 20;
    }
    if (!w || !r || !w->name || !w->place)
        (void)px_no_memory(e);
    else if (!w->base)
        (void)px_fail(e, PX_E_IO, -errno, "the directory of the worker's roots cannot be found");
    else if (read_whole(path, &data, &len, e) == 0 &&
             (is_toml(path) ? px_worker_toml : px_yaml_parse)(w->name, data, len, &w->file, e) == 0)
        done = understand(r, e);
    for (size_t i = 0; r && i < PX_FILES_ROOTS_MAX; i++)
        free(r->dirs[i]);
    free(r);
    if (done < 0)
        px_worker_free(w);
    else
        *ret_worker = w;
    return done;
}

void px_worker_free(struct px_worker *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->rules_count; i++)
        px_words_free(w->rules[i].prefix);
    px_files_free(w->files);
    px_yaml_free(w->file);
    free(w->name);
    free(w->place);
    free(w->base);
    free(w);
}

const struct px_files *px_worker_files(const struct px_worker *w)
{
    return w->files;
}

bool px_worker_network(const struct px_worker *w)
{
    return w->network;
}
