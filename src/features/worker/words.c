/* Describes what a worker may do, for the author of its file, with warnings about likely mistakes. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "worker/worker.h"

enum { ANSWER_MAX = 8 << 20 };

/* ---- what may not be meant ---- */

static bool begins_with(char *const *words, char *const *prefix)
{
    for (; *prefix; words++, prefix++)
        if (!*words || strcmp(*words, *prefix) != 0)
            return false;
    return true;
}

/* Warns of a rule that an earlier rule hides completely. A rule with sandbox_paths does not match everything. */
static void add_inert(const struct px_worker *w, struct px_buf *out)
{
    for (size_t i = 0; i < w->rules_count; i++)
        for (size_t k = 0; k < i; k++)
            if (!w->rules[k].paths && begins_with(w->rules[i].prefix, w->rules[k].prefix)) {
                px_buf_printf(out, "no effect: shell rule %zu is never reached, rule %zu takes all that fits it\n", i + 1, k + 1);
                break;
            }
}

/* The warnings of px policy check about the same directories. */
static int add_wide(const struct px_worker *w, struct px_buf *out, struct px_err *e)
{
    struct px_policy *policy = NULL;
    px_auto_free char *text = NULL;
    int r = px_policy_new("worker", &policy, e);
    if (r >= 0)
        r = px_files_bind(w->files, "/workspace", policy, e);
    if (r >= 0)
        r = px_policy_check(policy, &text, e);
    if (r >= 0 && text)
        px_buf_puts(out, text);
    px_policy_free(policy);
    return r;
}

static int add_warnings(const struct px_worker *w, struct px_buf *text, struct px_json *j, struct px_err *e)
{
    px_auto_buf struct px_buf lines = PX_BUF(ANSWER_MAX);
    if (add_wide(w, &lines, e) < 0)
        return -1;
    add_inert(w, &lines);
    px_json_array(j, "warnings");
    for (char *at = lines.data, *end; at && *at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        px_json_text(j, NULL, at);
        px_buf_printf(text, "warning: %s\n", at);
    }
    px_json_end(j);
    return lines.err < 0 ? px_no_memory(e) : 0;
}

/* ---- all of it ---- */

static void describe_suffixes(const struct px_files_root *root, struct px_buf *text, struct px_json *j)
{
    if (!root->suffixes) {
        px_json_text(j, "suffixes", NULL);
        return;
    }
    px_json_array(j, "suffixes");
    for (const char *const *suffix = root->suffixes; *suffix; suffix++) {
        px_json_text(j, NULL, *suffix);
        px_buf_puts(text, suffix == root->suffixes ? ", only " : ", ");
        px_buf_quote(text, *suffix, strlen(*suffix));
    }
    px_json_end(j);
}

static void describe_roots(const struct px_worker *w, struct px_buf *text, struct px_json *j)
{
    struct px_files_root root;
    px_json_array(j, "paths");
    for (size_t i = 0; px_files_root_at(w->files, i, &root) == 0; i++) {
        px_json_object(j, NULL);
        px_json_text(j, "name", root.name);
        px_json_text(j, "mode", root.writable ? "rw" : "ro");
        px_json_uint(j, "max_file_bytes", root.max_file_bytes);
        px_buf_printf(text, "%s  %s at /workspace/%s, files of at most %llu bytes",
                      root.writable ? "rw" : "ro", root.name, root.name,
                      (unsigned long long)root.max_file_bytes);
        describe_suffixes(&root, text, j);
        px_buf_putc(text, '\n');
        px_json_end(j);
    }
    px_json_end(j);
}

static void describe_list(const struct px_yaml *list, const char *key, const char *words, struct px_buf *text, struct px_json *j)
{
    if (!list) {
        px_json_text(j, key, NULL);
        return;
    }
    px_json_array(j, key);
    for (const struct px_yaml *n = list->first; n; n = n->next) {
        const char *name = n->key ? n->key : n->text;
        px_json_text(j, NULL, name);
        px_buf_puts(text, n == list->first ? words : ", ");
        px_buf_quote(text, name, strlen(name));
    }
    px_json_end(j);
}

static void describe_text(const char *value, const char *key, const char *words, struct px_buf *text, struct px_json *j)
{
    px_json_text(j, key, value);
    if (!value)
        return;
    px_buf_puts(text, words);
    px_buf_quote(text, value, strlen(value));
}

/* Of variables the names: their values can be secrets. */
static void describe_box(const struct px_worker *w, struct px_buf *text, struct px_json *j)
{
    px_json_bool(j, "network", w->network);
    px_buf_printf(text, "network %s", w->network ? "allowed" : "off");
    describe_list(w->allow_net, "network_allow", " to nothing but ", text, j);
    describe_list(w->deny_net, "network_deny", ", never to ", text, j);
    px_json_bool(j, "require_os_sandbox", w->require_os_sandbox);
    px_buf_printf(text, "; OS sandbox %s", w->require_os_sandbox ? "required" : "required in full, or with a warning by Landlock alone");
    describe_text(w->memory, "memory", "; memory ", text, j);
    describe_text(w->box_base, "base", "; base ", text, j);
    describe_list(w->env, "env", "; variables ", text, j);
    px_buf_putc(text, '\n');
}

static void describe_tools(const struct px_worker *w, struct px_buf *text, struct px_json *j)
{
    px_json_object(j, "tools");
    for (size_t i = 0; px_worker_tool_at(i); i++) {
        const char *name = px_worker_tool_at(i), *verdict = px_approval_name(px_worker_tool(w, name, NULL));
        px_json_text(j, name, verdict);
        if (w->tools[i].denied || w->tools[i].approval)
            px_buf_printf(text, "%-14s tool %s\n", verdict, name);
    }
    px_json_end(j);
}

static void describe_rules(const struct px_worker *w, struct px_buf *text, struct px_json *j)
{
    px_json_array(j, "shell_rules");
    for (size_t i = 0; i < w->rules_count; i++) {
        const char *verdict = px_approval_name(w->rules[i].approval ? PX_NEEDS_APPROVAL : PX_PRE_APPROVED);
        px_json_object(j, NULL);
        px_json_array(j, "pattern");
        px_buf_printf(text, "%-14s ", verdict);
        for (char **word = w->rules[i].prefix; *word; word++) {
            px_json_text(j, NULL, *word);
            px_buf_quote(text, *word, strlen(*word));
            px_buf_putc(text, ' ');
        }
        px_buf_puts(text, w->rules[i].paths ? "... (only with paths of the sandbox)\n" : "...\n");
        px_json_end(j);
        px_json_text(j, "approval", verdict);
        px_json_end(j);
    }
    px_json_end(j);
    const char *rest = px_approval_name(!w->has_default       ? PX_BLOCKED
                                        : w->default_approval ? PX_NEEDS_APPROVAL
                                                              : PX_PRE_APPROVED);
    px_json_text(j, "shell_default", rest);
    px_buf_printf(text, "%-14s every other command\n", rest);
}

int px_worker_describe(const struct px_worker *w, char **ret_text, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf text = PX_BUF(ANSWER_MAX), out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    px_json_object(&j, NULL);
    px_json_bool(&j, "ok", true);
    describe_roots(w, &text, &j);
    describe_box(w, &text, &j);
    describe_tools(w, &text, &j);
    describe_rules(w, &text, &j);
    px_json_uint(&j, "max_attachments", w->max_attachments);
    px_json_uint(&j, "max_attachment_bytes", w->max_attachment_bytes);
    if (add_warnings(w, &text, &j, e) < 0)
        return -1;
    px_json_end(&j);
    px_buf_putc(&out, '\n');
    px_auto_free char *shown = px_buf_take(&text), *json = px_buf_take(&out);
    if (!shown || !json)
        return px_no_memory(e);
    *ret_text = px_take(&shown);
    *ret_json = px_take(&json);
    return 0;
}
