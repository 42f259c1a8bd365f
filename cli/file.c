/* px file: the file sandbox, one operation a call. */
#include "words.h"

#include <errno.h>
#include <px/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT_MAX = 256 << 20, WORDS_MAX = 64 };

struct list {
    const char *items[WORDS_MAX + 1];   /* NULL-terminated */
    size_t count;
};

struct words {
    struct px_files_ask ask;
    struct list roots, read, write, exclude, paths;
    const char *old_text, *new_text, *input, *offset, *max_chars, *max_results, *worker, *base;
    bool read_only, git_writable, json, help;
};

/* ---- the command line ---- */

struct option {
    const char *name;
    bool *flag;                 /* one of these three */
    const char **value;
    struct list *list;
};

static int add_word(struct list *list, const char *name, const char *word, struct px_err *e)
{
    if (list->count == WORDS_MAX)
        return make_error(e, 5, NULL, "there are more than %d of %s", WORDS_MAX, name);
    list->items[list->count++] = word;
    return 0;
}

static int take_value(const struct option *o, const char *value, struct px_err *e)
{
    if (!value)
        return make_error(e, 1, NULL, "%s needs a value", o->name);
    if (o->list)
        return add_word(o->list, o->name, value, e);
    *o->value = value;
    return 0;
}

/* Words used up: 1 or 2; 0 if it is no option of ours; -1. */
static int take_option(const struct option *options, int argc, char **argv, struct px_err *e)
{
    const char *equals = strchr(argv[0], '=');
    size_t len = equals ? (size_t)(equals - argv[0]) : strlen(argv[0]);
    for (const struct option *o = options; o->name; o++) {
        if (strlen(o->name) != len || memcmp(o->name, argv[0], len) != 0)
            continue;
        if (o->flag && equals)
            return make_error(e, 1, NULL, "%s takes no value", o->name);
        if (o->flag)
            return *o->flag = true, 1;
        int r = take_value(o, equals ? equals + 1 : argc > 1 ? argv[1] : NULL, e);
        return r < 0 ? -1 : equals ? 1 : 2;
    }
    return 0;
}

static int parse(int argc, char **argv, struct words *w, struct px_err *e)
{
    struct px_files_query *q = &w->ask.query;
    bool only_words = false;
    const struct option options[] = {
        {"--root", NULL, NULL, &w->roots},
        {"--worker", NULL, &w->worker, NULL},
        {"--base", NULL, &w->base, NULL},
        {"--allow-read", NULL, NULL, &w->read},
        {"--allow-write", NULL, NULL, &w->write},
        {"--exclude", NULL, NULL, &w->exclude},
        {"--read-only", &w->read_only, NULL, NULL},
        {"--git-writable", &w->git_writable, NULL, NULL},
        {"--pattern", NULL, &q->pattern, NULL},
        {"--text", NULL, &q->text, NULL},
        {"--ignore-case", &q->ignore_case, NULL, NULL},
        {"--directories", &q->directories, NULL, NULL},
        {"--max-results", NULL, &w->max_results, NULL},
        {"--offset", NULL, &w->offset, NULL},
        {"--max-chars", NULL, &w->max_chars, NULL},
        {"--old", NULL, &w->old_text, NULL},
        {"--new", NULL, &w->new_text, NULL},
        {"--dry-run", &w->ask.dry_run, NULL, NULL},
        {"--content", NULL, &w->ask.content, NULL},
        {"--input", NULL, &w->input, NULL},
        {"--json", &w->json, NULL, NULL},
        {"--help", &w->help, NULL, NULL},
        {"-h", &w->help, NULL, NULL},
        {"--", &only_words, NULL, NULL},
        {0},
    };
    for (int i = 0; i < argc;) {
        int used = only_words ? 0 : take_option(options, argc - i, argv + i, e);
        if (used < 0)
            return -1;
        if (used == 0 && !only_words && argv[i][0] == '-' && argv[i][1])
            return make_error(e, 1, "Run `px file --help` for the options.", "there is no option '%s' of px file",
                              argv[i]);
        if (used == 0 && add_word(&w->paths, "paths", argv[i], e) < 0)
            return -1;
        i += used ? used : 1;
    }
    return 0;
}

static int number(const char *name, const char *text, uint64_t *ret, struct px_err *e)
{
    uint64_t value = 0;
    if (!text)
        return 0;
    for (const char *at = text; *at || at == text; at++) {
        if (*at < '0' || *at > '9' || value > (UINT64_MAX / 2 - 9) / 10)
            return make_error(e, 2, "Write a plain number from 0.", "'%s' is no value for %s", text, name);
        value = value * 10 + (uint64_t)(*at - '0');
    }
    *ret = value;
    return 0;
}

static int numbers(struct words *w, struct px_err *e)
{
    w->ask.use_max_chars = w->max_chars != NULL;
    return number("--offset", w->offset, &w->ask.offset, e) < 0 ||
                   number("--max-chars", w->max_chars, &w->ask.max_chars, e) < 0 ||
                   number("--max-results", w->max_results, &w->ask.query.max_results, e) < 0
               ? -1
               : 0;
}

/* ---- the operation's name and its words ---- */

static bool find_op(const char *word, char name[32], struct px_files_op_info *ret, struct px_near *near)
{
    (void)snprintf(name, 32, "%s", word);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    for (size_t i = 0; px_files_op_at(i, ret) == 0; i++) {
        if (strcmp(ret->name, name) == 0)
            return true;
        px_near_try(near, ret->name);
    }
    return false;
}

/* search takes its text first, as grep does; the others a path, and some a second one. */
static int take_paths(struct words *w, const struct px_files_op_info *op, struct px_err *e)
{
    bool two = op->to || strcmp(op->name, "diff") == 0;    /* which takes a file or a text */
    size_t at = 0, most = two ? 2 : 1;
    if (op->text && !w->ask.query.text && w->paths.count)
        w->ask.query.text = w->paths.items[at++];
    if (at < w->paths.count)
        w->ask.path = w->paths.items[at++];
    if (two && at < w->paths.count)
        w->ask.to = w->paths.items[at++];
    if (at < w->paths.count)
        return make_error(e, 1, NULL, "px file %s takes at most %zu words, '%s' is one too many", op->name,
                          most + op->text, w->paths.items[at]);
    if ((op->path && !w->ask.path) || (op->to && !w->ask.to) || (op->text && !w->ask.query.text))
        return make_error(e, 1, "Run `px file --help` for the words of each operation.", "px file %s needs %s",
                          op->name, op->to ? "two paths" : op->text ? "a text" : "a path");
    return 0;
}

static char *read_input(size_t *ret_len, struct px_err *e)
{
    size_t len = 0, cap = 64 << 10;
    char *data = malloc(cap);
    while (data) {
        ssize_t n = read(STDIN_FILENO, data + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0) {
            *ret_len = len;
            return data;
        }
        len += n > 0 ? (size_t)n : 0;
        if (n < 0 || len > INPUT_MAX) {
            (void)make_error(e, n < 0 ? 7 : 5, NULL,
                             n < 0 ? "standard input cannot be read" : "standard input is larger than 256 MiB");
            free(data);
            return NULL;
        }
        char *more = len == cap ? realloc(data, cap *= 2) : data;
        if (!more)
            free(data);
        data = more;
    }
    (void)make_error(e, 4, NULL, "px ran out of memory");
    return NULL;
}

/* ---- doing it ---- */

static int call_words(struct words *w, const struct px_files *files, const struct px_files_op_info *op,
                      struct px_files_answer *ret, struct px_err *e)
{
    struct px_files_edit edit = {0};
    char *content = NULL;
    if (take_paths(w, op, e) < 0 || numbers(w, e) < 0)
        return -1;
    if (op->edits) {
        if (!w->old_text || !w->new_text)
            return make_error(e, 1, "Write px file edit PATH --old TEXT --new TEXT, or several edits with --input -.",
                              "px file edit needs --old and --new");
        edit = (struct px_files_edit){w->old_text, w->new_text, strlen(w->old_text), strlen(w->new_text)};
        w->ask.edits = &edit;
        w->ask.edits_count = 1;
    }
    if (w->ask.content) {
        w->ask.content_len = strlen(w->ask.content);
    } else if (op->content) {
        content = read_input(&w->ask.content_len, e);
        if (!content)
            return -1;
        w->ask.content = content;
    }
    w->ask.op = op->name;
    w->ask.query.exclude = w->exclude.items;
    int r = px_files_call(files, &w->ask, ret, e);
    free(content);
    return r;
}

static int call_input(const struct words *w, const struct px_files *files, const struct px_files_op_info *op,
                      struct px_files_answer *ret, struct px_err *e)
{
    size_t len;
    if (strcmp(w->input, "-") != 0 || w->paths.count)
        return make_error(e, 1, "Write the request as a JSON object to standard input: px file read --input -",
                          "--input takes - and no words beside it");
    char *json = read_input(&len, e);
    if (!json)
        return -1;
    int r = px_files_call_json(files, op->name, json, len, ret, e);
    free(json);
    return r;
}

/* Nobody is asked here: what needs approval is for a front that can ask. */
static int check_tool(const struct px_worker *worker, const char *op, struct px_err *e)
{
    static const char *const questions[] = {"can_read", "can_write", "resolve", "roots"};
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++)
        if (strcmp(op, questions[i]) == 0)
            return 0;
    enum px_approval found = px_worker_tool(worker, op, e);
    if (found == PX_NEEDS_APPROVAL)
        return make_error(e, 322, "Call it from a program that asks somebody: px.worker in Python.",
                          "the worker's tool for '%s' needs approval", op);
    return found == PX_BLOCKED ? -1 : 0;
}

/* Narrowed by --allow-read and --allow-write if there are any; and then this process can reach nothing else. */
static int open_files(struct words *w, const char *op, struct px_files **ret, struct px_err *e)
{
    struct px_files *all = NULL;
    struct px_worker *worker = NULL;
    struct px_files_narrow narrow = {.read = w->read.items, .write = w->write.items, .read_only = w->read_only,
                                     .inherit = w->read.count == 0 && w->write.count == 0};
    if (w->worker && w->roots.count)
        return make_error(e, 1, "Name the roots, or the worker's file that has them.", "--root and --worker exclude each other");
    if (w->worker && w->git_writable)
        return make_error(e, 1, "Write git_writable: true below sandbox in that file.",
                          "--git-writable has no meaning with --worker");
    if (w->worker ? px_worker_load(w->worker, w->base, &worker, e) < 0
                  : px_files_parse(w->roots.items, w->roots.count, w->git_writable, &all, e) < 0)
        return -1;
    int r = worker ? check_tool(worker, op, e) : 0;
    r = r < 0 ? r : px_files_derive(worker ? px_worker_files(worker) : all, &narrow, ret, e);
    px_worker_free(worker);
    px_files_free(all);
    if (r >= 0 && px_files_confine(*ret, e) < 0) {
        px_files_free(*ret);
        r = -1;
    }
    return r;
}

static int write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, data, len);
        if (n < 0 && errno != EINTR)
            return 1;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int say_file_error(const struct cli *cli, const struct px_files *files, const struct px_err *e)
{
    char *json = NULL;
    int status = e->code == PX_E_USAGE ? USAGE_STATUS : 1;
    if (!cli->json || px_files_error_json(files, e, &json, NULL) < 0)
        return say_error(cli, e, status);
    (void)print_text(json);
    free(json);
    return status;
}

static int answer(const struct cli *cli, struct px_files_answer *a)
{
    const char *text = cli->json ? a->json : a->text;
    int status = write_all(text, cli->json && text ? strlen(text) : a->text_len);
    status = status ? status : a->no;
    px_files_answer_done(a);
    return status;
}

static int run_op(const struct cli *cli, struct words *w, const struct px_files_op_info *op)
{
    struct px_files *files = NULL;
    struct px_files_answer a = {0};
    struct px_err e = {0};
    int r = open_files(w, op->name, &files, &e);
    w->ask.query.names_only = !cli->json;       /* people are shown names */
    if (r >= 0)
        r = w->input ? call_input(w, files, op, &a, &e) : call_words(w, files, op, &a, &e);
    int status = r < 0 ? say_file_error(cli, files, &e) : answer(cli, &a);
    px_files_free(files);
    return status;
}

static int no_operation(struct cli *cli, const char *word, const struct px_near *near)
{
    char fix[128];
    if (word && word[0] == '-')
        return usage_error(cli, USAGE_STATUS, "Write the operation first: px file read --root NAME=DIR NAME/FILE.",
                           "px file needs an operation before '%s'", word);
    return usage_error(cli, USAGE_STATUS, likely_verb(near, "file", "Run `px file --help` for the operations.", fix, sizeof fix),
                       word ? "px file has no operation '%s'" : "px file needs an operation", word ? word : "");
}

int cmd_file(struct cli *cli, int argc, char **argv)
{
    struct px_files_op_info op;
    struct px_err e = {0};
    char name[32];
    struct px_near near = {.written = argc ? argv[0] : ""};
    if (argc == 0 || !find_op(argv[0], name, &op, &near))
        return no_operation(cli, argc ? argv[0] : NULL, &near);
    struct words *w = calloc(1, sizeof *w);
    if (!w)
        return fail(cli, PX_E_MEMORY, 1, NULL, "px ran out of memory");
    int status;
    if (parse(argc - 1, argv + 1, w, &e) < 0) {
        status = say_error(cli, &e, USAGE_STATUS);
    } else if (w->help) {
        status = print_help(find_command("file"));
    } else {
        cli->json = cli->json || w->json;
        status = run_op(cli, w, &op);
    }
    free(w);
    return status;
}
