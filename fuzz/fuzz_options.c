/* fuzz/fuzz_options.c - arbitrary words as a command line: the reader of options takes or refuses them, and nothing is run.
 *
 * Words end at a NUL byte or a newline. The reader is part of the program and not of the library, so its source is taken in. */
#include <stdlib.h>
#include <string.h>

#include "../cli/args.c"
#include "../cli/render.c"
#include "fuzz.h"

enum { WORDS_MAX = 64 };

/* px exec, which has no rows of its own. */
static const struct verb exec = {.name = "", .words = "", .command = COMMAND_NEXT, .policy = &args_every_field};

static int read_line(struct args *a, struct cli *cli, int argc, char **argv, struct px_err *e)
{
    *a = (struct args){.cli = cli, .verb = &exec};
    int r = args_parse(a, argc, argv, e);
    return r < 0 || a->help ? r : args_policy(a, NULL, &a->o.policy, e);
}

static int split(char *text, size_t size, char *argv[WORDS_MAX + 1])
{
    int argc = 0;

    for (size_t i = 0; i < size && argc < WORDS_MAX; i++) {
        argv[argc++] = text + i;
        while (i < size && text[i] && text[i] != '\n')
            i++;
        text[i] = '\0';
    }
    argv[argc] = NULL;
    return argc;
}

/* Files of this machine are not the reader's grammar. */
static bool reads_files(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "--env-file", 10) == 0)
            return true;
    return false;
}

static void check_error(const struct px_err *e)
{
    struct px_explain text;

    CHECK(e->code > 0 && px_explain(e->code, &text) == 0);
    CHECK(memchr(e->what, 0, sizeof e->what) && memchr(e->why, 0, sizeof e->why) &&
          memchr(e->fix, 0, sizeof e->fix));
    CHECK(e->what[0] && e->fix[0]);
    for (const char *p = e->what; *p; p++)
        CHECK((unsigned char)*p >= 0x20);
}

/* The command is the rest of the words, in order, and each of them whole. */
static void check_command(const struct options *o, int argc, char **argv)
{
    size_t from = o->shell_text ? 3 : 0;

    CHECK(o->argv && o->argv[o->argc] == NULL);
    for (size_t i = 0; i < o->argc; i++)
        CHECK(o->argv[i] != NULL);
    if (o->shell_text) {
        CHECK(o->argc >= 3 && strcmp(o->argv[0], "/bin/sh") == 0 && strcmp(o->argv[1], "-c") == 0 &&
              o->argv[2] == o->shell_text);
        from += o->argc > 3;
    }
    size_t words = o->argc - from;
    CHECK(words <= (size_t)argc);
    for (size_t i = 0; i < words; i++)
        CHECK(o->argv[from + i] == argv[(size_t)argc - words + i]);
}

static char *show_policy(const struct px_policy *policy)
{
    char *json = NULL;

    CHECK(px_policy_json(policy, &json, NULL) == 0 && json);
    return json;
}

/* What stands behind the command is the command's: it cannot change the policy, whatever it looks like. */
static void check_tail(struct cli *cli, const struct options *o, int argc, char **argv)
{
    char *longer[WORDS_MAX + 4];
    static char word[] = "--preset=untrusted", other[] = "--memory=1m";
    struct args again;
    struct px_err e = {0};

    if (o->argc == 0 || o->shell_text)
        return; /* no command yet: more words would be options */
    memcpy(longer, argv, sizeof *argv * (size_t)argc);
    longer[argc] = word;
    longer[argc + 1] = other;
    longer[argc + 2] = NULL;
    CHECK(read_line(&again, cli, argc + 2, longer, &e) == 0);
    char *a = show_policy(o->policy), *b = show_policy(again.o.policy);
    CHECK(strcmp(a, b) == 0);
    CHECK(again.o.argc == o->argc + 2);
    free(a);
    free(b);
    args_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *argv[WORDS_MAX + 1];
    int argc = split(text, size, argv);
    struct cli cli = {0};
    struct args a;
    struct px_err e = {0};

    if (!reads_files(argc, argv)) {
        if (read_line(&a, &cli, argc, argv, &e) < 0) {
            check_error(&e);
            CHECK(a.o.policy == NULL);
        } else if (!a.help) {
            CHECK(a.o.policy != NULL);
            check_command(&a.o, argc, argv);
            check_tail(&cli, &a.o, argc, argv);
        }
        args_done(&a);
    }
    free(text);
    return 0;
}
