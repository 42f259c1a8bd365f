/* The verb that the words of a command begin with. */
#include "args.h"

#include <stdio.h>
#include <string.h>

/* make_directory is make-directory. */
static bool is_verb(const char *name, const char *word)
{
    while (*name && (*name == *word || (*name == '-' && *word == '_')))
        name++, word++;
    return *name == *word;
}

/* How many words of the line are the verb's name; -1: it is another one. */
static int match_verb(const struct verb *v, int argc, const char *const *argv)
{
    size_t n = argc > 0 ? strlen(argv[0]) : 0;
    if (v->name[0] == '\0')
        return 0;
    if (argc > 0 && is_verb(v->name, argv[0]))
        return 1;
    return argc > 1 && strncmp(v->name, argv[0], n) == 0 && v->name[n] == ' ' && strcmp(v->name + n + 1, argv[1]) == 0 ? 2 : -1;
}

static int no_verb(const struct cli *cli, const struct command *c, int argc, const char *const *argv)
{
    char said[128] = "", list[64], fix[256];
    bool two = false;           /* `px sandbox base`: a verb of two words */
    size_t n = argc > 0 ? strlen(argv[0]) : 0;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_help(c);
    for (const struct verb *v = c->verbs; n > 0 && v->name; v++)
        two = two || (strncmp(v->name, argv[0], n) == 0 && v->name[n] == ' ');
    (void)snprintf(said, sizeof said, "%s%s%s", n ? argv[0] : "", two && argc > 1 ? " " : "", two && argc > 1 ? argv[1] : "");
    struct px_near near = {.written = said};
    for (const struct verb *v = c->verbs; v->name; v++)
        px_near_try(&near, v->name);
    const char *habit = habit_of(said), *found = near.found;
    size_t len = strlen(c->name);
    if (habit && strncmp(habit, c->name, len) == 0 && habit[len] == ' ')
        found = habit + len + 1;
    (void)snprintf(list, sizeof list, "Run `px %s --help` for the list.", c->name);
    (void)snprintf(fix, sizeof fix, "Did you mean `px %s %s`?\n%s", c->name, found ? found : "", list);
    return usage_error(cli, USAGE_STATUS, found ? fix : list,
                       n == 0 || (two && argc < 2) ? "px %s%s%s needs to know what to do" : "px %s knows no '%s%s'", c->name,
                       n == 0 || (two && argc < 2) ? (n ? " " : "") : "", said);
}

static int run_verb(struct cli *cli, const struct command *c, const struct verb *v, int argc, char **argv)
{
    struct args a = {.cli = cli, .command = c, .verb = v};
    struct px_err e = {0};
    int status;
    if (v->alone) {
        close_inherited();
        open_missing_stdio();
    }
    if (args_parse(&a, argc, argv, &e) < 0)
        status = say_error(cli, &e, v->status ? v->status : status_of_words(&e));
    else
        status = a.help ? print_help(c) : v->run(&a);
    args_done(&a);
    return status;
}

int args_run(struct cli *cli, const struct command *c, int argc, char **argv)
{
    static const struct verb before = {.name = "", .command = COMMAND_NEXT};
    struct args a = {.cli = cli, .command = c, .verb = &before};
    struct px_err e = {0};
    int status = -1;
    for (const struct verb *v = c->verbs; v->name; v++) {
        int words = match_verb(v, argc, (const char *const *)argv);
        if (words >= 0)
            return run_verb(cli, c, v, argc - words, argv + words);
    }
    if (argc > 0 && argv[0][0] == '-' && args_parse(&a, argc, argv, &e) < 0)    /* px box --json list */
        status = say_error(cli, &e, USAGE_STATUS);
    else if (a.help)
        status = print_help(c);
    int at = a.at;
    args_done(&a);
    if (status >= 0)
        return status;
    return at ? args_run(cli, c, argc - at, argv + at) : no_verb(cli, c, argc, (const char *const *)argv);
}
