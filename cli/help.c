/* px help and --help, from the rows of cli/args.h and of a policy's fields. */
#include "args.h"

#include <stdio.h>
#include <string.h>

/* `indent` is "" or, below a verb, four blanks. */
static void print_option(const char *indent, char letter, const char *name, const char *arg, bool optional, const char *help)
{
    char left[80];
    char dash[8] = "    ";
    if (letter)
        (void)snprintf(dash, sizeof dash, "-%c, ", letter);
    (void)snprintf(left, sizeof left, arg ? optional ? "%s  %s--%s[=%s]" : "%s  %s--%s %s" : "%s  %s--%s", indent, dash, name, arg);
    print(strlen(left) <= 32 ? "%-34s%s%s\n" : "%s\n                                  %s%s\n", left, *indent ? "  " : "", help);
}

static void print_rows(const char *indent, const struct option_row *rows)
{
    for (const struct option_row *row = rows; row && row->name; row++)
        print_option(indent, row->letter, row->name, row->arg, row->flags & OPTION_MAYBE, row->help);
}

static void print_policy(const char *indent, const struct verb *v)
{
    struct px_field_info f;
    print_rows(indent, args_box_rows + (args_takes_some(v) ? ARGS_BOX_REPORT : 0));
    for (size_t i = 0; px_policy_field(i, &f) == 0; i++)
        if (!f.absent && !f.hidden && args_takes_field(v, &f))
            print_option(indent, f.letter, f.name, f.flag ? NULL : f.arg, f.optional, f.help);
}

/* A verb that takes every option of px exec beside its own does not repeat them. */
static void print_verb(const struct verb *v)
{
    char left[128];
    (void)snprintf(left, sizeof left, "  %s%s%s", v->name, *v->name && *v->words ? " " : "", v->words);
    print(strlen(left) <= 32 ? "%-34s%s\n" : "%s\n                                  %s\n", left, v->help);
    print_rows("    ", v->rows);
    if (args_takes_some(v))
        print_policy("    ", v);
}

/* "start|exec|list", each first word once. */
void help_verbs_of(const struct command *c, const char *between)
{
    const char *last = "";
    for (const struct verb *v = c->verbs; v && v->name; v++) {
        size_t n = strcspn(v->name, " ");
        if (n == 0 || (strcspn(last, " ") == n && strncmp(last, v->name, n) == 0))
            continue;
        print("%s%.*s", *last ? between : "", (int)n, v->name);
        last = v->name;
    }
}

static void print_only_verb(const struct command *c)
{
    const struct verb *v = c->verbs;
    print("%s\n", v->words);
    if (!v->rows && !v->policy)
        return;
    print("\nOptions:\n");
    print_rows("", v->rows);
    if (v->policy && (args_takes_some(v) || !v->rows))
        print_policy("", v);
    print_option("", 'h', "help", NULL, false, "this text");
}

int print_help(const struct command *c)
{
    print("px %s - %s\n\nUsage: px %s ", c->name, c->summary, c->name);
    if (!c->verbs[0].name[0]) {
        print_only_verb(c);
    } else {
        help_verbs_of(c, "|");
        print(" ...\n\n");
        for (const struct verb *v = c->verbs; v->name; v++)
            print_verb(v);
        print_own(c->verbs[0].shared ? "\n" : "");
        print_rows("", c->verbs[0].shared);
    }
    if (c->details) {
        print_own("\n");
        print_own(c->details);  /* own: commands.def */
    }
    return flush();
}

static int run_help(struct args *a)
{
    if (a->count > 0) {
        const struct command *c = find_command(a->names[0]);
        if (!c)
            return usage_error(a->cli, USAGE_STATUS, "Run `px help` for the list.", "there is no command '%s'", a->names[0]);
        return c->verbs ? print_help(c) : hand_over(a->cli);
    }
    print("px - run code that nobody should have to trust\n\nUsage: px [--json] [-v|-q] COMMAND ...\n\nCommands:\n");
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            print("  %-12s%s\n", c->name, c->summary);
    print("\n`px COMMAND --help` shows the options of one with an example; px(1) has the rest.\n");
    return flush();
}

const struct verb help_verbs[] = {
    {"", "[COMMAND]", "this list, or one command's help", run_help, .most = 1},
    {0},
};
