/* The command line of px and px-main: one row per command in commands.def; the work is in the library. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* Part of the design, not of this build: refused by name, so that a script learns why. */
static const char *const later[] = {"serve", "oci"};

const struct command *find_command(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

int cmd_help(struct cli *cli, int argc, char **argv)
{
    if (argc > 0) {
        const struct command *c = find_command(argv[0]);
        if (!c)
            return usage_error(cli, USAGE_STATUS, "Run `px help` for the list.", "there is no command '%s'", argv[0]);
        return print_help(c);
    }
    print("px - run code that nobody should have to trust\n\nUsage: px [--json] [-v|-q] COMMAND ...\n\nCommands:\n");
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            print("  %-12s%s\n", c->name, c->summary);
    print("\n`px COMMAND --help` shows the options of one with an example; px(1) has the rest.\n");
    return flush();
}

static int version(void)
{
    print("px %s\n", px_version());
    return flush();
}

/* What the same thing is called here that other tools call so. */
static const char *const habits[][2] = {
    {"ps", "box list"},   {"ls", "box list"},      {"stop", "box stop"},         {"rm", "box stop"},
    {"kill", "box signal"}, {"cp", "box copy"},    {"logs", "box logs"},         {"images", "sandbox list"},
    {"pull", "sandbox base import"}, {"build", "sandbox build"}, {"version", "--version"}, {"install", "sync"},
    {"start", "box start"}, {"create", "box start"}, {"attach", "box attach"},
};

const char *habit_of(const char *word)
{
    for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++)
        if (strcmp(habits[i][0], word) == 0)
            return habits[i][1];
    return NULL;
}

/* Where to look, after what was probably meant. */
static const char *likely(const char *name, char *out, size_t size)
{
    struct px_near near = {.written = name};
    const char *meant = habit_of(name);
    for (const struct command *c = commands; !meant && c->name; c++)
        if (c->summary)
            px_near_try(&near, c->name);
    meant = meant ? meant : near.found;
    (void)snprintf(out, size, meant ? "Did you mean `px %s`?\nRun `px help` for the list." : "Run `px help` for the list.", meant);
    return out;
}

static int unknown(const struct cli *cli, const char *name)
{
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (strcmp(later[i], name) == 0)
            return fail(cli, PX_E_NOT_BUILT, USAGE_STATUS, "Run `px help` for the commands there are.", "`px %s` is not part of this build", name);
    char fix[256];
    return usage_error(cli, USAGE_STATUS, likely(name, fix, sizeof fix), "there is no command '%s'", name);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* The usage of a command with verbs begins with the first of them, others with [OPTIONS] or a WORD. */
static bool has_verbs(const struct command *c)
{
    return c->usage[0] >= 'a' && c->usage[0] <= 'z';
}

static int run(struct cli *cli, const struct command *c, int argc, char **argv)
{
    if (!c->policy_options && argc > 0 && (is_help(argv[0]) || (has_verbs(c) && argc > 1 && is_help(argv[1]))))
        return print_help(c);
    return c->run(cli, argc, argv);
}

int main(int argc, char **argv)
{
    struct cli cli = {.argv = argv};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--json") == 0)
            cli.json = true;
        else if (strcmp(argv[i], "-v") == 0 || strcmp(argv[i], "--verbose") == 0)
            cli.verbose = 1;
        else if (strcmp(argv[i], "-q") == 0 || strcmp(argv[i], "--quiet") == 0)
            cli.verbose = -1;
        else if (strcmp(argv[i], "--version") == 0)
            return version();
        else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return cmd_help(&cli, 0, NULL);
        else
            return usage_error(&cli, USAGE_STATUS, "Options before the command are --json, -v, -q, --version and --help.",
                               "there is no option '%s' before a command", argv[i]);
    }
    if (i >= argc) {
        (void)cmd_help(&cli, 0, NULL);
        return USAGE_STATUS;
    }
    const struct command *c = find_command(argv[i]);
    return c ? run(&cli, c, argc - i - 1, argv + i + 1) : unknown(&cli, argv[i]);
}
