/* px file: the file sandbox, one operation a call. */
#include "args.h"

#include <errno.h>
#include <px/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT_MAX = 256 << 20 };

struct words {
    struct px_files_ask ask;
    struct option_list roots, read, write, exclude;
    const char *old_text, *new_text, *input, *worker, *base;
    bool read_only, git_writable;
    const char **paths;         /* NULL-terminated */
    size_t count;
};

/* ---- the operation's name and its words ---- */

/* "make-directory" is make_directory in the library. */
static bool find_op(const char *verb, struct px_files_op_info *ret)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s", verb);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    for (size_t i = 0; px_files_op_at(i, ret) == 0; i++)
        if (strcmp(ret->name, name) == 0)
            return true;
    return false;
}

/* search takes its text first, as grep does; the others a path, and some a second one. */
static int take_paths(struct words *w, const struct px_files_op_info *op, struct px_err *e)
{
    const char **at = w->paths;
    if (op->text && !w->ask.query.text && *at)
        w->ask.query.text = *at++;
    if (*at)
        w->ask.path = *at++;
    if (*at && (op->to || strcmp(op->name, "diff") == 0))     /* which takes a file or a text */
        w->ask.to = *at++;
    if (*at)
        return make_error(e, PX_E_USAGE, NULL, "px file %s takes no '%.100s'", op->name, *at);
    if ((op->path && !w->ask.path) || (op->to && !w->ask.to) || (op->text && !w->ask.query.text))
        return make_error(e, PX_E_USAGE, "Run `px file --help` for the words of each operation.", "px file %s needs %s",
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
    (void)make_error(e, PX_E_MEMORY, NULL, "px ran out of memory");
    return NULL;
}

/* ---- doing it ---- */

static int call_words(struct words *w, const struct px_files *files, const struct px_files_op_info *op,
                      struct px_files_answer *ret, struct px_err *e)
{
    struct px_files_edit edit = {0};
    char *content = NULL;
    if (take_paths(w, op, e) < 0)
        return -1;
    if (op->edits) {
        if (!w->old_text || !w->new_text)
            return make_error(e, PX_E_USAGE, "Write px file edit PATH --old TEXT --new TEXT, or several edits with --input -.",
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
    if (strcmp(w->input, "-") != 0 || w->count)
        return make_error(e, PX_E_USAGE, "Write the request as a JSON object to standard input: px file read --input -",
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
        return make_error(e, PX_E_APPROVAL, "Call it from a program that asks somebody: px.worker in Python.",
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
        return make_error(e, PX_E_USAGE, "Name the roots, or the worker's file that has them.", "--root and --worker exclude each other");
    if (w->worker && w->git_writable)
        return make_error(e, PX_E_USAGE, "Write git_writable: true below sandbox in that file.",
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

static int run_file(struct args *a)
{
    struct px_files_op_info op;
    struct words *w = a->request;
    w->paths = a->names;
    w->count = a->count;
    w->ask.use_max_chars = args_said(a, "max-chars");
    if (!find_op(a->verb->name, &op))
        return fail(a->cli, PX_E_INTERNAL, 1, NULL, "px file %s has no operation in the library", a->verb->name);
    return run_op(a->cli, w, &op);
}

/* ---- the options ---- */

#define ROW(name, kind, member, arg, help) {name, 0, kind, offsetof(struct words, member), arg, help}

static const struct option_row shared[] = {
    ROW("root", OPTION_LIST, roots, "NAME=DIR[:ro|rw][:create][:suffixes=.md,.pdf][:max=10m]",
        "a directory and its rules; ro, any suffix and 64m unless told"),
    ROW("worker", OPTION_TEXT, worker, "FILE", "instead: the paths of a worker's file or of a pyproject.toml"),
    ROW("base", OPTION_TEXT, base, "DIR", "where relative paths of that lie (., or beside the pyproject.toml)"),
    ROW("allow-read", OPTION_LIST, read, "PATH", "this directory of the roots only"),
    ROW("allow-write", OPTION_LIST, write, "PATH", "this directory of the roots only"),
    ROW("read-only", OPTION_FLAG, read_only, NULL, "nothing may be written"),
    ROW("git-writable", OPTION_FLAG, git_writable, NULL, "git directories can be written; the host's git obeys what lies there"),
    ROW("input", OPTION_TEXT, input, "-", "the request as a JSON object on standard input"),
    {0},
};
static const struct option_row read_rows[] = {
    {"offset", 0, OPTION_NUMBER, offsetof(struct words, ask.offset), "N", "begin with this character (0)", OPTION_ZERO, INT64_MAX},
    {"max-chars", 0, OPTION_NUMBER, offsetof(struct words, ask.max_chars), "N", "so many characters (200000)", OPTION_ZERO, INT64_MAX},
    {0},
};
static const struct option_row text_rows[] = {ROW("content", OPTION_TEXT, ask.content, "TEXT", "this text, not standard input"), {0}};
static const struct option_row edit_rows[] = {
    ROW("old", OPTION_TEXT, old_text, "TEXT", "a text that occurs exactly once"),
    ROW("new", OPTION_TEXT, new_text, "TEXT", "what takes its place"),
    ROW("dry-run", OPTION_FLAG, ask.dry_run, NULL, "show the diff"),
    {0},
};
#define LIST_ROWS                                                                                                      \
    ROW("pattern", OPTION_TEXT, ask.query.pattern, "GLOB", "names that fit (**/*)"),                                   \
    ROW("exclude", OPTION_LIST, exclude, "GLOB", "but these"),                                                         \
    {"max-results", 0, OPTION_NUMBER, offsetof(struct words, ask.query.max_results), "N", "at most so many", OPTION_ZERO, INT64_MAX}
static const struct option_row list_rows[] = {
    LIST_ROWS,
    ROW("directories", OPTION_FLAG, ask.query.directories, NULL, "also directories"),
    {0},
};
static const struct option_row search_rows[] = {
    LIST_ROWS,
    ROW("text", OPTION_TEXT, ask.query.text, "TEXT", "the text, if it begins with -"),
    ROW("ignore-case", OPTION_FLAG, ask.query.ignore_case, NULL, "upper and lower case are the same"),
    {0},
};

#define FILE_VERB(name, usage, help, rows, most) {name, usage, help, run_file, rows, shared, sizeof(struct words), 0, most}

const struct verb file_verbs[] = {
    FILE_VERB("can-read", "PATH", "yes or no; the exit status is 1 for no", NULL, 1),
    FILE_VERB("can-write", "PATH", "yes or no; the exit status is 1 for no", NULL, 1),
    FILE_VERB("resolve", "PATH", "where it leads", NULL, 1),
    FILE_VERB("stat", "PATH", "what is there", NULL, 1),
    FILE_VERB("read", "PATH", "text", read_rows, 1),
    FILE_VERB("write", "PATH", "standard input, whole or not at all", text_rows, 1),
    FILE_VERB("edit", "PATH --old TEXT --new TEXT", "another text in place of one", edit_rows, 1),
    FILE_VERB("diff", "PATH OTHER | PATH --content TEXT", "how they differ", text_rows, 2),
    FILE_VERB("list", "[PATH]", "names", list_rows, 1),
    FILE_VERB("search", "TEXT [PATH]", "lines", search_rows, 2),
    FILE_VERB("move", "FROM TO", "the target must not exist", NULL, 2),
    FILE_VERB("copy", "FROM TO", "the target must not exist", NULL, 2),
    FILE_VERB("delete", "PATH", "a file", NULL, 1),
    FILE_VERB("make-directory", "PATH", "a directory", NULL, 1),
    FILE_VERB("roots", "", "the rules", NULL, 1),
    {0},
};
