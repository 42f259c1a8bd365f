/* Every operation by its name: one table for the command line, for servers and for bindings. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "files/files.h"

enum { MEGABYTE = 1 << 20, WORDS_MAX = 512 * MEGABYTE };

struct call {
    const struct px_files *files;
    const struct px_files_ask *ask;
    struct px_buf text, out;
    struct px_json json;
    bool no;
};

/* ---- parts of answers ---- */

static void quote(struct call *c, const char *text)
{
    px_buf_quote(&c->text, text, strlen(text));
}

/* "Deleted a/b" in words and as "message". */
static int say(struct call *c, const char *before, const char *path, const char *between, const char *to)
{
    px_auto_buf struct px_buf line = PX_BUF(64 << 10);
    px_buf_puts(&line, before);
    px_buf_quote(&line, path, strlen(path));
    px_buf_puts(&line, between);
    px_buf_quote(&line, to, strlen(to));
    px_json_text(&c->json, "message", px_buf_text(&line));
    px_buf_puts(&c->text, px_buf_text(&line));
    px_buf_putc(&c->text, '\n');
    return line.err;
}

static void stat_words(struct call *c, const struct px_files_stat *st)
{
    char mode[8];
    (void)px_fmt(mode, sizeof mode, "%04o", st->mode);
    px_json_text(&c->json, "kind", px_files_kind_name(st->kind));
    px_json_bool(&c->json, "readable", st->readable);
    px_json_bool(&c->json, "writable", st->writable);
    px_buf_printf(&c->text, "kind      %s\nreadable  %s\nwritable  %s\n", px_files_kind_name(st->kind),
                  st->readable ? "yes" : "no", st->writable ? "yes" : "no");
    if (st->kind == PX_FILES_NONE)
        return;
    px_json_uint(&c->json, "size", st->size);
    px_json_text(&c->json, "mode", mode);
    px_json_int(&c->json, "modified", st->modified);
    px_json_int(&c->json, "accessed", st->accessed);
    if (st->created)
        px_json_int(&c->json, "created", st->created);
    else
        px_json_null(&c->json, "created");
    px_buf_printf(&c->text, "size      %llu\nmode      %s\nmodified  %lld\n", (unsigned long long)st->size, mode,
                  (long long)st->modified);
}

static void entries_end(struct call *c, const struct px_files_entries *list)
{
    px_json_uint(&c->json, "count", list->count);
    px_json_bool(&c->json, "truncated", list->truncated != NULL);
    px_json_text(&c->json, "truncated_because", list->truncated);
    if (list->truncated)
        px_buf_printf(&c->text, "... (%s)\n", list->truncated);
}

/* ---- the operations ---- */

static int can(struct call *c, bool allowed)
{
    c->no = !allowed;
    px_json_bool(&c->json, "allowed", allowed);
    px_buf_puts(&c->text, allowed ? "yes\n" : "no\n");
    return 0;
}

static int do_can_read(struct call *c, struct px_err *e)
{
    (void)e;
    return can(c, px_files_can_read(c->files, c->ask->path));
}

static int do_can_write(struct call *c, struct px_err *e)
{
    (void)e;
    return can(c, px_files_can_write(c->files, c->ask->path));
}

static int do_resolve(struct call *c, struct px_err *e)
{
    px_auto_free char *path = NULL;
    struct px_files_stat st;
    if (px_files_resolve(c->files, c->ask->path, &path, &st, e) < 0)
        return -1;
    px_json_text(&c->json, "path", path);
    px_buf_puts(&c->text, "path      ");
    quote(c, path);
    px_buf_putc(&c->text, '\n');
    stat_words(c, &st);
    return 0;
}

static int do_stat(struct call *c, struct px_err *e)
{
    struct px_files_stat st;
    if (px_files_stat(c->files, c->ask->path, &st, e) < 0)
        return -1;
    px_json_text(&c->json, "path", c->ask->path);
    stat_words(c, &st);
    return 0;
}

static int do_read(struct call *c, struct px_err *e)
{
    struct px_files_text t = {0};
    uint64_t max = c->ask->use_max_chars ? c->ask->max_chars : PX_FILES_CHARS;
    if (px_files_read(c->files, c->ask->path, c->ask->offset, max, &t, e) < 0)
        return -1;
    px_json_text(&c->json, "path", c->ask->path);
    px_json_bytes(&c->json, "content", t.data, t.len);
    px_json_bool(&c->json, "truncated", t.truncated);
    px_json_uint(&c->json, "total_chars", t.total_chars);
    px_json_uint(&c->json, "offset", t.offset);
    px_json_uint(&c->json, "chars_read", t.chars);
    px_buf_add(&c->text, t.data, t.len);
    px_files_text_done(&t);
    return 0;
}

static int do_write(struct call *c, struct px_err *e)
{
    struct px_files_done done;
    char before[64];
    if (px_files_write(c->files, c->ask->path, c->ask->content, c->ask->content_len, &done, e) < 0)
        return -1;
    px_json_text(&c->json, "path", done.path);
    px_json_uint(&c->json, "chars", done.chars);
    (void)px_fmt(before, sizeof before, "Written %llu characters to ", (unsigned long long)done.chars);
    int r = say(c, before, done.path, "", "");
    px_files_done_free(&done);
    return r;
}

static int do_edit(struct call *c, struct px_err *e)
{
    struct px_files_done done;
    char after[96];
    if (px_files_edit(c->files, c->ask->path, c->ask->edits, c->ask->edits_count, c->ask->dry_run, &done, e) < 0)
        return -1;
    px_json_text(&c->json, "path", done.path);
    px_json_bool(&c->json, "dry_run", c->ask->dry_run);
    px_json_text(&c->json, "diff", done.diff);
    if (c->ask->dry_run)
        px_buf_puts(&c->text, done.diff);
    (void)px_fmt(after, sizeof after, ": replaced %llu chars with %llu chars", (unsigned long long)done.old_chars,
                 (unsigned long long)done.new_chars);
    int r = c->ask->dry_run ? 0 : say(c, "Edited ", done.path, after, "");
    px_files_done_free(&done);
    return r;
}

static int do_diff(struct call *c, struct px_err *e)
{
    px_auto_free char *diff = NULL;
    if (!c->ask->to == !c->ask->content)
        return px_fail(e, PX_E_VALUE, 0, "'diff' needs either 'to' or 'content'");
    if (px_files_diff(c->files, c->ask->path, c->ask->to, c->ask->content, c->ask->content_len, &diff, e) < 0)
        return -1;
    px_json_text(&c->json, "path", c->ask->path);
    px_json_bool(&c->json, "same", diff[0] == '\0');
    px_json_text(&c->json, "diff", diff);
    px_buf_puts(&c->text, diff);
    return 0;
}

static struct px_files_query query(const struct call *c)
{
    struct px_files_query q = c->ask->query;
    q.path = c->ask->path;
    return q;
}

static void entry_words(struct call *c, const struct px_files_entry *entry)
{
    px_json_object(&c->json, NULL);
    px_json_text(&c->json, "path", entry->path);
    px_json_text(&c->json, "kind", px_files_kind_name(entry->kind));
    px_json_uint(&c->json, "size", entry->size);
    px_json_int(&c->json, "modified", entry->modified);
    px_json_end(&c->json);
    quote(c, entry->path);
    px_buf_puts(&c->text, entry->kind == PX_FILES_DIRECTORY ? "/\n" : "\n");
}

static int do_list(struct call *c, struct px_err *e)
{
    struct px_files_query q = query(c);
    struct px_files_entries list;
    if (px_files_list(c->files, &q, &list, e) < 0)
        return -1;
    px_json_array(&c->json, "entries");
    for (size_t i = 0; i < list.count; i++)
        entry_words(c, &list.items[i]);
    px_json_end(&c->json);
    entries_end(c, &list);
    px_files_entries_done(&list);
    return 0;
}

static void match_words(struct call *c, const struct px_files_entry *entry)
{
    px_json_object(&c->json, NULL);
    px_json_text(&c->json, "path", entry->path);
    px_json_uint(&c->json, "line", entry->line);
    px_json_text(&c->json, "text", entry->text);
    px_json_end(&c->json);
    quote(c, entry->path);
    px_buf_printf(&c->text, ":%llu:", (unsigned long long)entry->line);
    quote(c, entry->text);
    px_buf_putc(&c->text, '\n');
}

static int do_search(struct call *c, struct px_err *e)
{
    struct px_files_query q = query(c);
    struct px_files_entries list;
    if (px_files_search(c->files, &q, &list, e) < 0)
        return -1;
    px_json_array(&c->json, "matches");
    for (size_t i = 0; i < list.count; i++)
        match_words(c, &list.items[i]);
    px_json_end(&c->json);
    px_json_uint(&c->json, "files_searched", list.files_searched);
    px_json_uint(&c->json, "files_skipped", list.files_skipped);
    entries_end(c, &list);
    px_files_entries_done(&list);
    return 0;
}

static int do_move(struct call *c, struct px_err *e)
{
    if (px_files_move(c->files, c->ask->path, c->ask->to, e) < 0)
        return -1;
    return say(c, "Moved ", c->ask->path, " to ", c->ask->to);
}

static int do_copy(struct call *c, struct px_err *e)
{
    if (px_files_copy(c->files, c->ask->path, c->ask->to, e) < 0)
        return -1;
    return say(c, "Copied ", c->ask->path, " to ", c->ask->to);
}

static int do_delete(struct call *c, struct px_err *e)
{
    return px_files_delete(c->files, c->ask->path, e) < 0 ? -1 : say(c, "Deleted ", c->ask->path, "", "");
}

static int do_make_directory(struct call *c, struct px_err *e)
{
    return px_files_make_directory(c->files, c->ask->path, e) < 0 ? -1 : say(c, "Made ", c->ask->path, "", "");
}

static void root_words(struct call *c, const struct px_root *r)
{
    px_json_object(&c->json, NULL);
    px_json_text(&c->json, "name", r->name);
    px_json_text(&c->json, "mode", r->writable ? "rw" : "ro");
    px_json_uint(&c->json, "max_file_bytes", r->max_bytes);
    px_buf_puts(&c->text, r->writable ? "rw  " : "ro  ");
    quote(c, r->name);
    if (r->suffixes)
        px_json_array(&c->json, "suffixes");
    else
        px_json_null(&c->json, "suffixes");
    for (size_t i = 0; r->suffixes && r->suffixes[i]; i++) {
        px_json_text(&c->json, NULL, r->suffixes[i]);
        px_buf_puts(&c->text, i ? "," : "  ");
        quote(c, r->suffixes[i]);
    }
    if (r->suffixes)
        px_json_end(&c->json);
    px_json_end(&c->json);
    px_buf_printf(&c->text, "  at most %llu bytes\n", (unsigned long long)r->max_bytes);
}

static int do_roots(struct call *c, struct px_err *e)
{
    (void)e;
    px_json_array(&c->json, "roots");
    for (size_t i = 0; i < c->files->count; i++)
        root_words(c, &c->files->roots[i]);
    px_json_end(&c->json);
    return 0;
}

/* ---- the table ---- */

enum { WRITES = 1, PATH = 2, TO = 4, CONTENT = 8, EDITS = 16, TEXT = 32 };

static const struct op {
    const char *name;
    unsigned needs;
    int (*run)(struct call *c, struct px_err *e);
} ops[] = {
    {"can_read", PATH, do_can_read},
    {"can_write", PATH, do_can_write},
    {"resolve", PATH, do_resolve},
    {"read", PATH, do_read},
    {"write", WRITES | PATH | CONTENT, do_write},
    {"edit", WRITES | PATH | EDITS, do_edit},
    {"diff", PATH, do_diff},
    {"list", 0, do_list},
    {"search", TEXT, do_search},
    {"stat", PATH, do_stat},
    {"move", WRITES | PATH | TO, do_move},
    {"copy", WRITES | PATH | TO, do_copy},
    {"delete", WRITES | PATH, do_delete},
    {"make_directory", WRITES | PATH, do_make_directory},
    {"roots", 0, do_roots},
};

int px_files_op_at(size_t index, struct px_files_op_info *ret_op)
{
    if (index >= PX_COUNT_OF(ops))
        return -1;
    unsigned needs = ops[index].needs;
    *ret_op = (struct px_files_op_info){.name = ops[index].name,
                                        .writes = needs & WRITES,
                                        .path = needs & PATH,
                                        .to = needs & TO,
                                        .content = needs & CONTENT,
                                        .edits = needs & EDITS,
                                        .text = needs & TEXT};
    return 0;
}

static const struct op *find_op(const char *name)
{
    for (size_t i = 0; name && i < PX_COUNT_OF(ops); i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}

static int check_needs(const struct op *op, const struct px_files_ask *ask, struct px_err *e)
{
    const struct {
        unsigned bit;
        bool there;
        const char *name;
    } rows[] = {{PATH, ask->path != NULL, "path"},
                {TO, ask->to != NULL, "to"},
                {CONTENT, ask->content != NULL, "content"},
                {EDITS, ask->edits_count > 0, "edits"},
                {TEXT, ask->query.text != NULL, "text"}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (op->needs & rows[i].bit && !rows[i].there)
            return px_fail(e, PX_E_VALUE, 0, "'%s' needs '%s'", op->name, rows[i].name);
    return 0;
}

void px_files_answer_done(struct px_files_answer *answer)
{
    free(answer->text);
    free(answer->json);
    *answer = (struct px_files_answer){0};
}

static int finish(struct call *c, struct px_files_answer *ret, struct px_err *e)
{
    px_json_end(&c->json);
    px_buf_putc(&c->out, '\n');
    struct px_files_answer a = {.text_len = c->text.len, .no = c->no};
    a.text = px_buf_take(&c->text);
    a.json = px_buf_take(&c->out);
    if (!a.text || !a.json) {
        px_files_answer_done(&a);
        return px_files_error_memory(e);
    }
    *ret = a;
    return 0;
}

int px_files_call(const struct px_files *files, const struct px_files_ask *ask, struct px_files_answer *ret_answer,
                  struct px_err *e)
{
    PX_ERR(e);
    const struct op *op = find_op(ask->op);
    struct call c = {.files = files, .ask = ask, .text = PX_BUF(WORDS_MAX), .out = PX_BUF(WORDS_MAX)};
    c.json.out = &c.out;
    if (!op)
        return px_fail(e, PX_E_VALUE, 0, "there is no operation '%s' on files", ask->op ? ask->op : "");
    if (check_needs(op, ask, e) < 0)
        return -1;
    px_json_object(&c.json, NULL);
    px_json_bool(&c.json, "ok", true);
    int r = op->run(&c, e);
    if (r < -1)                 /* an -errno, for which nobody had words: the buffers' */
        r = px_files_error_memory(e);
    if (r >= 0)
        r = finish(&c, ret_answer, e);
    px_buf_done(&c.text);
    px_buf_done(&c.out);
    return r < 0 ? -1 : 0;
}
