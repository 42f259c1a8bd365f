/* The command line of px and px-main: one row per command in commands.def; the work is in the library. */
#include "args.h"

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

/* What stands before the command. */
struct before {
    bool version;
};
static const struct option_row rows[] = {
    {"version", 0, OPTION_FLAG, offsetof(struct before, version), NULL, NULL},
    {0},
};
static const struct verb px = {.name = "", .rows = rows, .size = sizeof(struct before), .command = COMMAND_NEXT};

static int help(struct cli *cli, int status)
{
    int r = args_run(cli, find_command("help"), 0, NULL);
    return status ? status : r;
}

int main(int argc, char **argv)
{
    struct cli cli = {.argv = argv};
    struct args a = {.cli = &cli, .verb = &px};
    struct px_err e = {0};
    int r = args_parse(&a, argc - 1, argv + 1, &e), at = a.at + 1;
    const struct before *said = a.request;
    bool told = r == 0 && said->version, asked = a.help;
    args_done(&a);
    if (r < 0)
        return say_error(&cli, &e, USAGE_STATUS);
    if (told)
        return version();
    if (asked || at >= argc)
        return help(&cli, asked ? 0 : USAGE_STATUS);
    const struct command *c = find_command(argv[at]);
    if (!c)
        return unknown(&cli, argv[at]);
    return c->verbs ? args_run(&cli, c, argc - at - 1, argv + at + 1) : hand_over(&cli);
}
