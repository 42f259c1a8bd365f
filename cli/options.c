/* Command-line words to a policy: every option is a row of the engine's field table, so nothing is listed here but the few
 * words that are about px itself. */
#include "cli.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Habits from other tools, where the meaning is the same. */
static const char *const aliases[][2] = {
    {"volume", "bind"}, {"chdir", "workdir"}, {"cwd", "workdir"}, {"pids-limit", "pids"}, {"network", "net"}, {"stdin", "interactive"},
};

struct reader {
    struct cli *cli;
    int argc;
    char **argv;
    int at;                     /* the next word */
    const char *preset;
    const struct option_rules *rules;
    struct options *out;        /* without a policy yet in the first of two passes, which looks for the preset */
};

static int find_field(const char *name, size_t len, struct px_field_info *ret)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strlen(aliases[i][0]) == len && memcmp(aliases[i][0], name, len) == 0) {
            name = aliases[i][1];
            len = strlen(name);
            break;
        }
    for (size_t i = 0; px_policy_field(i, ret) == 0; i++)
        if (strlen(ret->name) == len && memcmp(ret->name, name, len) == 0)
            return 0;
    return -1;
}

static int find_letter(char letter, struct px_field_info *ret)
{
    for (size_t i = 0; px_policy_field(i, ret) == 0; i++)
        if (ret->letter == letter)
            return 0;
    return -1;
}

/* The value of an option: what stands behind '=' or the next word. */
static const char *take_value(struct reader *r, const char *behind, const char *name, struct px_err *e)
{
    if (behind)
        return behind;
    if (r->at < r->argc)
        return r->argv[r->at++];
    (void)make_error(e, 1, NULL, "--%s needs a value", name);
    return NULL;
}

static bool is_no(const char *value)
{
    static const char *const words[] = {"false", "no", "0", "off"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(value, words[i]) == 0)
            return true;
    return false;
}

static int check_allowed(const struct reader *r, const struct px_field_info *f, struct px_err *e)
{
    bool allowed = (f->command || !r->rules->command) && (f->project || !r->rules->project);
    return allowed ? 0 : make_error(e, 1, r->rules->fix, "--%s %s", f->name, r->rules->else_is);
}

static int set_field(struct reader *r, const struct px_field_info *f, const char *behind, struct px_err *e)
{
    const char *value = f->flag ? (behind ? behind : "true") : NULL;
    if (check_allowed(r, f, e) < 0)
        return -1;
    if (f->absent)
        return r->out->policy ? px_policy_set(r->out->policy, f->name, "", e) : 0;
    if (!f->flag && !(value = f->optional && !behind ? "" : take_value(r, behind, f->name, e)))
        return -1;
    if (!r->out->policy)
        return 0;
    if (px_policy_set(r->out->policy, f->name, value, e) < 0)
        return -1;
    if (!r->out->said)
        r->out->said = f->name;
    /* Options about the caller's side are needed here as well. */
    bool on = f->flag && !is_no(value);
    r->out->tty = r->out->tty || (on && strcmp(f->name, "tty") == 0);
    r->out->interactive = r->out->interactive || (on && strcmp(f->name, "interactive") == 0);
    r->out->timings = r->out->timings || (on && strcmp(f->name, "timings") == 0);
    r->out->detach = r->out->detach || (on && strcmp(f->name, "detach") == 0);
    r->out->idle = r->out->idle || strcmp(f->name, "idle") == 0;
    r->out->keeps = r->out->keeps || r->out->idle || strcmp(f->name, "name") == 0 || strcmp(f->name, "max-life") == 0;
    return 0;
}

/* Words about px itself. 1 if it was one of them. */
static int own_option(struct reader *r, const char *name, size_t len, const char *behind, struct px_err *e)
{
    struct {
        const char *name;
        bool *flag;
        const char **value;
    } rows[] = {
        {"help", &r->out->help, NULL},  {"plan", &r->out->plan, NULL},          {"json", &r->cli->json, NULL},
        {"preset", NULL, &r->preset}, {"report", NULL, &r->out->report}, {"command", NULL, &r->out->shell_text},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strlen(rows[i].name) != len || memcmp(rows[i].name, name, len) != 0)
            continue;
        if (rows[i].flag) {
            *rows[i].flag = !behind || !is_no(behind);
            return 1;
        }
        const char *value = take_value(r, behind, rows[i].name, e);
        if (rows[i].value)
            *rows[i].value = value;
        return value ? 1 : -1;
    }
    return 0;
}

/* Flags that the command has of its own. */
static int command_option(const struct reader *r, const char *word)
{
    for (const struct word *w = r->rules->own; w && w->name; w++)
        if (strcmp(w->name + 2, word) == 0) {
            *w->flag = true;
            return 1;
        }
    return 0;
}

static const char exec_list[] = "Run `px exec --help` for the list. A command that starts with '-' goes after `--`.";

static int no_option(const struct reader *r, const char *word, size_t len, struct px_err *e)
{
    static const char *const own[] = {"help", "plan", "json", "preset", "report", "command"};
    const char *list = r->rules->list ? r->rules->list : exec_list;
    char name[64] = "", fix[512];
    struct px_near near = {.written = name};
    struct px_field_info f;
    (void)snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : 0), word);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        px_near_try(&near, own[i]);
    for (size_t i = 0; px_policy_field(i, &f) == 0; i++)
        if (!f.hidden && !f.absent)
            px_near_try(&near, f.name);
    for (const struct word *w = r->rules->own; w && w->name; w++)
        px_near_try(&near, w->name + 2);
    (void)snprintf(fix, sizeof fix, "Did you mean --%s?\n%s", near.found ? near.found : "", list);
    return make_error(e, 1, near.found ? fix : list, "there is no option --%.200s", word);
}

static int long_option(struct reader *r, const char *word, struct px_err *e)
{
    size_t len = strcspn(word, "=");
    const char *behind = word[len] == '=' ? word + len + 1 : NULL;
    struct px_field_info f;

    int own = command_option(r, word) ? 1 : own_option(r, word, len, behind, e);
    if (own != 0)
        return own < 0 ? -1 : 0;
    if (find_field(word, len, &f) < 0)
        return no_option(r, word, len, e);
    return set_field(r, &f, behind, e);
}

/* -it, -m512m, -m 512m */
static int short_options(struct reader *r, const char *letters, struct px_err *e)
{
    for (; *letters; letters++) {
        struct px_field_info f;
        if (*letters == 'h') {
            r->out->help = true;
            continue;
        }
        const char *behind = letters[1] ? letters + 1 : NULL;
        if (*letters == 'c') {
            r->out->shell_text = take_value(r, behind, "command", e);
            return r->out->shell_text ? 0 : -1;
        }
        if (find_letter(*letters, &f) < 0)
            return make_error(e, 1, NULL, "there is no option -%c", *letters);
        if (set_field(r, &f, f.flag ? NULL : behind, e) < 0)
            return -1;
        if (!f.flag)
            return 0;
    }
    return 0;
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

static int take_command(struct reader *r, struct px_err *e)
{
    struct options *o = r->out;
    size_t words = (size_t)(r->argc - r->at);
    o->argv = calloc(words + 5, sizeof *o->argv);
    if (!o->argv)
        return make_error(e, 4, NULL, "the command line is too long to keep");
    if (o->shell_text) {        /* sh -c TEXT sh ARG...: as a shell would */
        o->argv[o->argc++] = "/bin/sh";
        o->argv[o->argc++] = "-c";
        o->argv[o->argc++] = o->shell_text;
        if (words)
            o->argv[o->argc++] = "sh";
    }
    for (size_t i = 0; i < words; i++)
        o->argv[o->argc++] = r->argv[r->at + (int)i];
    return 0;
}

/* The options up to the command or "--". */
static int read_options(struct reader *r, struct px_err *e)
{
    r->at = 0;
    while (r->at < r->argc && is_option(r->argv[r->at])) {
        const char *word = r->argv[r->at++];
        if (strcmp(word, "--") == 0)
            break;
        if ((word[1] == '-' ? long_option(r, word + 2, e) : short_options(r, word + 1, e)) < 0)
            return -1;
    }
    return 0;
}

int parse_options(struct cli *cli, int argc, char **argv, struct options *ret_options, struct px_err *e)
{
    static const struct option_rules none = {0};
    struct options out = {0};
    struct reader r = {.cli = cli, .argc = argc, .argv = argv, .rules = &none, .out = &out};

    /* The preset comes first, wherever it stands among the options. */
    if (read_options(&r, e) < 0 || px_policy_new(r.preset, &out.policy, e) < 0)
        return -1;
    if (read_options(&r, e) < 0 || take_command(&r, e) < 0) {
        free_options(&out);
        return -1;
    }
    *ret_options = out;
    return 0;
}

int parse_options_onto(struct cli *cli, int argc, char **argv, struct px_policy *policy,
                       const struct option_rules *rules, struct options *ret_options, struct px_err *e)
{
    static const struct option_rules all = {.else_is = "is the server's own", .fix = "Leave it out."};
    struct options out = {.policy = policy};
    struct reader r = {.cli = cli, .argc = argc, .argv = argv, .rules = rules ? rules : &all, .out = &out};
    int done = read_options(&r, e);
    if (done >= 0 && r.preset)
        done = make_error(e, 1, r.rules->fix, "--preset %s", r.rules->else_is);
    if (done < 0 || take_command(&r, e) < 0) {
        free_options(&out);
        return -1;
    }
    *ret_options = out;
    return 0;
}

void free_options(struct options *options)
{
    px_policy_free(options->policy);
    free(options->argv);
    *options = (struct options){0};
}
