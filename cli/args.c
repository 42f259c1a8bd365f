/* One parser for the words of every verb. */
#include "args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const struct option_row args_box_rows[] = {
    {"command", 'c', OPTION_TEXT, offsetof(struct options, shell_text), "TEXT", "run TEXT with /bin/sh"},
    {"preset", 0, OPTION_TEXT, offsetof(struct options, preset), "NAME", "start from a preset (see px policy show)"},
    {"plan", 0, OPTION_FLAG, offsetof(struct options, plan), NULL, "print what would be done, and do nothing"},
    {"report", 0, OPTION_TEXT, offsetof(struct options, report), "FILE", "write the result as JSON, with the exact output"},
    {0},
};

const struct field_rules args_every_field = {0};

static const struct option_row common_rows[] = {
    {"json", 0, OPTION_FLAG, offsetof(struct args, json), NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, offsetof(struct args, quiet), NULL, NULL},
    {"verbose", 'v', OPTION_FLAG, offsetof(struct args, verbose), NULL, NULL},
    {"help", 'h', OPTION_FLAG, offsetof(struct args, help), NULL, NULL},
    {0},
};

/* Habits from other tools, where the meaning is the same. */
static const char *const aliases[][2] = {
    {"volume", "bind"}, {"chdir", "workdir"}, {"cwd", "workdir"}, {"pids-limit", "pids"}, {"network", "net"}, {"stdin", "interactive"},
};

/* ---- finding an option ---- */

/* What a word names: a row, and where its request begins; or a field of a policy. */
struct option {
    const struct option_row *row;
    char *base;
    struct px_field_info field;
};

struct table {
    const struct option_row *rows;
    void *base;
};
enum { TABLES = 4 };

/* The letters of a policy's fields come before those of the last table: -v is --bind in px exec, and --verbose in px doctor. */
static void list_tables(struct args *a, struct table out[TABLES])
{
    out[0] = (struct table){a->verb->rows, a->request};
    out[1] = (struct table){a->verb->shared, a->request};
    out[2] = (struct table){a->verb->policy ? args_box_rows : NULL, &a->o};
    out[3] = (struct table){common_rows, a};
}

static bool is_named(const char *name, char its_letter, const char *word, size_t len, char letter)
{
    return letter ? its_letter == letter : strlen(name) == len && memcmp(name, word, len) == 0;
}

static bool find_field(const char *word, size_t len, char letter, struct px_field_info *ret)
{
    for (size_t i = 0; !letter && i < PX_COUNT_OF(aliases); i++)
        if (is_named(aliases[i][0], 0, word, len, 0)) {
            word = aliases[i][1];
            len = strlen(word);
            break;
        }
    for (size_t i = 0; px_policy_field(i, ret) == 0; i++)
        if (is_named(ret->name, ret->letter, word, len, letter))
            return true;
    return false;
}

static bool find_option(struct args *a, const char *word, size_t len, char letter, struct option *ret)
{
    struct table tables[TABLES];
    list_tables(a, tables);
    for (int i = 0; i < TABLES; i++) {
        if (i == TABLES - 1 && a->verb->policy && find_field(word, len, letter, &ret->field))
            return true;
        for (const struct option_row *row = tables[i].rows; row && row->name; row++)
            if (is_named(row->name, row->letter, word, len, letter)) {
                *ret = (struct option){.row = row, .base = tables[i].base};
                return true;
            }
    }
    return false;
}

static int no_option(struct args *a, const char *word, size_t len, struct px_err *e)
{
    char name[64] = "", fix[512], list[256];
    struct px_near near = {.written = name};
    struct px_field_info f;
    struct table tables[TABLES];
    (void)snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : 0), word);
    list_tables(a, tables);
    for (int i = 0; i < TABLES; i++)
        for (const struct option_row *row = tables[i].rows; row && row->name; row++)
            px_near_try(&near, row->name);
    for (size_t i = 0; a->verb->policy && px_policy_field(i, &f) == 0; i++)
        if (!f.hidden && !f.absent)
            px_near_try(&near, f.name);
    (void)snprintf(list, sizeof list, "Run `px %s%s--help` for the list.%s", a->command ? a->command->name : "", a->command ? " " : "",
                   a->verb->command == COMMAND_NEXT && a->command ? " A command that starts with '-' goes after `--`." : "");
    (void)snprintf(fix, sizeof fix, "Did you mean --%s?\n%s", near.found ? near.found : "", list);
    if (!a->verb->run && a->command)
        return make_error(e, PX_E_USAGE, list, "%s needs to know what to do before '--%.100s'", a->title, word);
    return make_error(e, PX_E_USAGE, near.found ? fix : list, "there is no option --%.200s", word);
}

/* ---- what an option does ---- */

static int set_number(const struct option_row *row, uint64_t *at, const char *text, struct px_err *e)
{
    uint64_t value = 0, least = row->flags & OPTION_ZERO ? 0 : 1;
    if (px_parse_u64(text, row->most ? row->most : UINT32_MAX, &value) == 0 && value >= least) {
        *at = value;
        return 0;
    }
    if (row->most && row->most < UINT32_MAX)
        return make_error(e, PX_E_VALUE, NULL, "--%s: '%.100s' is not a number from %llu to %llu", row->name, text,
                          (unsigned long long)least, (unsigned long long)row->most);
    return make_error(e, PX_E_VALUE, NULL, "--%s: '%.100s' is not a number from %llu on", row->name, text, (unsigned long long)least);
}

static int set_row(struct args *a, const struct option *o, const char *value, struct px_err *e)
{
    void *at = o->base + o->row->offset;
    struct option_list *list = at;
    if (o->base == a->request && a->verb->rows && o->row >= a->verb->rows && o->row < a->verb->rows + 64)
        a->said |= UINT64_C(1) << (o->row - a->verb->rows);
    switch (o->row->kind) {
    case OPTION_FLAG:
        *(bool *)at = true;
        return 0;
    case OPTION_TEXT:
        *(const char **)at = value;
        return 0;
    case OPTION_LIST:
        list->items[list->count++] = value;
        return 0;
    case OPTION_NUMBER:
        return set_number(o->row, at, value, e);
    }
    return 0;
}

bool args_takes_some(const struct verb *verb)
{
    return verb->policy && (verb->policy->command || verb->policy->project);
}

bool args_takes_field(const struct verb *verb, const struct px_field_info *field)
{
    const struct field_rules *rules = verb->policy;
    return rules && (field->command || !rules->command) && (field->project || !rules->project);
}

static bool is_no(const char *value)
{
    static const char *const words[] = {"false", "no", "0", "off"};
    for (size_t i = 0; i < PX_COUNT_OF(words); i++)
        if (strcmp(value, words[i]) == 0)
            return true;
    return false;
}

/* Options about the caller's side are needed here as well. */
static void set_field(struct args *a, const struct px_field_info *f, const char *value)
{
    struct options *o = &a->o;
    bool on = f->flag && !is_no(value);
    a->fields[a->field_count++] = (struct said_field){f->name, value};
    if (!o->said)
        o->said = f->name;
    o->tty = o->tty || (on && strcmp(f->name, "tty") == 0);
    o->interactive = o->interactive || (on && strcmp(f->name, "interactive") == 0);
    o->timings = o->timings || (on && strcmp(f->name, "timings") == 0);
    o->detach = o->detach || (on && strcmp(f->name, "detach") == 0);
    o->idle = o->idle || strcmp(f->name, "idle") == 0;
    o->keeps = o->keeps || o->idle || strcmp(f->name, "name") == 0 || strcmp(f->name, "max-life") == 0;
}

/* ---- one option ---- */

static bool takes_value(const struct option *o)
{
    return o->row ? o->row->kind != OPTION_FLAG : !o->field.flag;
}

/* A field that this build does not have: the policy says why. */
static int refuse_field(const char *name, struct px_err *e)
{
    struct px_policy *policy = NULL;
    if (px_policy_new(NULL, &policy, e) == 0)
        (void)px_policy_set(policy, name, "", e);
    px_policy_free(policy);
    return -1;
}

/* The value of an option: what stands behind '=' or the next word. NULL: there is none. */
static const char *take_value(struct args *a, const struct option *o, const char *behind)
{
    bool last = a->at == a->argc, optional = o->row ? o->row->flags & OPTION_MAYBE : o->field.optional;
    if (behind)
        return behind;
    if (!takes_value(o))
        return o->row ? "" : "true";
    if (optional && (!o->row || last || a->argv[a->at][0] == '-'))
        return "";
    return last ? NULL : a->argv[a->at++];
}

static int take_option(struct args *a, const struct option *o, const char *behind, struct px_err *e)
{
    const struct field_rules *rules = a->verb->policy;
    const char *name = o->row ? o->row->name : o->field.name;
    bool preset = o->row && args_takes_some(a->verb) && strcmp(name, "preset") == 0;
    if (preset || (!o->row && !args_takes_field(a->verb, &o->field)))
        return make_error(e, PX_E_USAGE, rules->fix, "--%s %s", name, rules->else_is);
    if (!o->row && o->field.absent)
        return refuse_field(name, e);
    if (o->row && !takes_value(o) && behind)
        return make_error(e, PX_E_USAGE, NULL, "--%s takes no value", name);
    const char *value = take_value(a, o, behind);
    if (!value)
        return make_error(e, PX_E_USAGE, NULL, "--%s needs a value", name);
    if (o->row)
        return set_row(a, o, value, e);
    set_field(a, &o->field, value);
    return 0;
}

static int long_option(struct args *a, const char *word, struct px_err *e)
{
    size_t len = strcspn(word, "=");
    struct option o = {0};
    if (!find_option(a, word, len, 0, &o))
        return no_option(a, word, len, e);
    return take_option(a, &o, word[len] == '=' ? word + len + 1 : NULL, e);
}

/* -it, -m512m, -m 512m */
static int short_options(struct args *a, const char *letters, struct px_err *e)
{
    for (; *letters; letters++) {
        struct option o = {0};
        if (!find_option(a, "", 0, *letters, &o))
            return make_error(e, PX_E_USAGE, NULL, "there is no option -%c", *letters);
        bool value = takes_value(&o);
        if (take_option(a, &o, value && letters[1] ? letters + 1 : NULL, e) < 0)
            return -1;
        if (value)
            return 0;
    }
    return 0;
}

/* ---- all words ---- */

static int make_room(struct args *a, struct px_err *e)
{
    size_t words = (size_t)a->argc + 1, letters = 0;
    for (int i = 0; i < a->argc; i++)
        letters += strlen(a->argv[i]);
    a->names = calloc(words, sizeof *a->names);
    a->fields = calloc(letters + 2, sizeof *a->fields);     /* -it is two of them; px shell adds one */
    a->request = calloc(1, a->verb->size + 1);
    bool ok = a->names && a->fields && a->request;
    const struct option_row *const tables[] = {a->verb->rows, a->verb->shared};
    for (size_t i = 0; ok && i < 2; i++)
        for (const struct option_row *row = tables[i]; row && row->name; row++)
            if (row->kind == OPTION_LIST) {
                struct option_list *list = (void *)((char *)a->request + row->offset);
                list->items = calloc(words, sizeof *list->items);
                ok = ok && list->items;
            }
    return ok ? 0 : make_error(e, PX_E_MEMORY, NULL, "the command line is too long to keep");
}

static int take_command(struct args *a, struct px_err *e)
{
    struct options *o = &a->o;
    size_t words = (size_t)(a->argc - a->at);
    o->argv = calloc(words + 5, sizeof *o->argv);
    if (!o->argv)
        return make_error(e, PX_E_MEMORY, NULL, "the command line is too long to keep");
    if (o->shell_text) {        /* sh -c TEXT sh ARG...: as a shell would */
        o->argv[o->argc++] = "/bin/sh";
        o->argv[o->argc++] = "-c";
        o->argv[o->argc++] = o->shell_text;
        if (words)
            o->argv[o->argc++] = "sh";
    }
    for (size_t i = 0; i < words; i++)
        o->argv[o->argc++] = a->argv[a->at + (int)i];
    return 0;
}

/* Options and names, up to a command. */
static int read_words(struct args *a, struct px_err *e)
{
    bool ended = false;
    while (a->at < a->argc && !a->help && !a->commanded) {
        const char *word = a->argv[a->at++];
        bool option = !ended && word[0] == '-' && word[1];
        if (option && strcmp(word, "--") == 0) {
            ended = true;
            a->commanded = a->verb->command != COMMAND_NONE;
        } else if (option) {
            if ((word[1] == '-' ? long_option(a, word + 2, e) : short_options(a, word + 1, e)) < 0)
                return -1;
        } else if (a->verb->command == COMMAND_NEXT && a->count == a->verb->most) {
            a->at--;
            a->commanded = true;
        } else {
            a->names[a->count++] = word;
        }
    }
    return 0;
}

static int wrong_count(const struct args *a, struct px_err *e)
{
    char fix[256];
    (void)snprintf(fix, sizeof fix, "Write %s%s%s.", a->title, *a->verb->words ? " " : "", a->verb->words);
    if (a->count < a->verb->least)
        return make_error(e, PX_E_USAGE, fix, "%s needs %s", a->title, a->verb->needs);
    return make_error(e, PX_E_USAGE, fix, "%s takes no '%.100s'", a->title, a->names[a->verb->most]);
}

int args_parse(struct args *a, int argc, char **argv, struct px_err *e)
{
    a->argc = argc;
    a->argv = argv;
    (void)snprintf(a->title, sizeof a->title, "px%s%s%s%s", a->command ? " " : "", a->command ? a->command->name : "",
                   a->verb->name[0] ? " " : "", a->verb->name);
    if (make_room(a, e) < 0 || read_words(a, e) < 0)
        return -1;
    a->cli->json = a->cli->json || a->json;
    a->cli->verbose = a->quiet ? -1 : a->verbose ? 1 : a->cli->verbose;
    if (a->help)
        return 0;
    if (a->count < a->verb->least || a->count > a->verb->most)
        return wrong_count(a, e);
    return a->verb->command ? take_command(a, e) : 0;
}

void args_done(struct args *a)
{
    const struct option_row *const tables[] = {a->verb->rows, a->verb->shared};
    for (size_t i = 0; a->request && i < 2; i++)
        for (const struct option_row *row = tables[i]; row && row->name; row++)
            if (row->kind == OPTION_LIST)
                free(((struct option_list *)(void *)((char *)a->request + row->offset))->items);
    free(a->request);
    free(a->names);
    free(a->fields);
    px_policy_free(a->o.policy);
    free(a->o.argv);
}

bool args_said(const struct args *a, const char *name)
{
    for (const struct option_row *row = a->verb->rows; row && row->name; row++)
        if (strcmp(row->name, name) == 0)
            return a->said >> (row - a->verb->rows) & 1;
    return false;
}

int args_policy(const struct args *a, struct px_policy *policy, struct px_policy **ret_policy, struct px_err *e)
{
    if (!policy && px_policy_new(a->o.preset, &policy, e) < 0)
        return -1;
    for (size_t i = 0; i < a->field_count; i++)
        if (px_policy_set(policy, a->fields[i].name, a->fields[i].value, e) < 0) {
            px_policy_free(policy);
            return -1;
        }
    *ret_policy = policy;
    return 0;
}
