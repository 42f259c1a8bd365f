/* Options of verbs that have few of them. */
#include "words.h"

#include <stdio.h>
#include <string.h>

static const struct word *find_word(const struct word *words, const char *text)
{
    for (const struct word *w = words; w && w->name; w++) {
        size_t n = strlen(w->name);
        if (strncmp(text, w->name, n) == 0 && (text[n] == '\0' || (text[n] == '=' && w->value)))
            return w;
        if (w->letter && text[0] == '-' && text[1] == w->letter && text[2] == '\0')
            return w;
    }
    return NULL;
}

static int no_word(const struct cli *cli, const char *usage, const struct word *words, const char *text)
{
    struct px_near near = {.written = text};
    char fix[1024];
    for (const struct word *w = words; w && w->name; w++)
        px_near_try(&near, w->name);
    (void)snprintf(fix, sizeof fix, "Did you mean %s?\n%s", near.found ? near.found : "", usage);
    return usage_error(cli, USAGE_STATUS, near.found ? fix : usage, "there is no option %.200s here", text);
}

const char *likely_verb(const struct px_near *near, const char *command, const char *list, char *out, size_t size)
{
    const char *habit = habit_of(near->written);
    size_t n = strlen(command);
    if (habit && strncmp(habit, command, n) == 0 && habit[n] == ' ')
        (void)snprintf(out, size, "Did you mean `px %s`?\n%s", habit, list);
    else if (near->found)
        (void)snprintf(out, size, "Did you mean `px %s %s`?\n%s", command, near->found, list);
    else
        return list;
    return out;
}

/* One option at argv[*at]; 0, or -1 and it was said what is wrong. */
static int take_word(struct cli *cli, const char *command, const char *usage, const struct word *words, int argc,
                     char **argv, int *at, int *ret_status)
{
    const char *text = argv[*at];
    const struct word *w = find_word(words, text);
    if (strcmp(text, "--json") == 0) {
        cli->json = true;
        return 0;
    }
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
        *ret_status = print_help(find_command(command));
        return -1;
    }
    if (w && w->flag) {
        *w->flag = true;
        return 0;
    }
    const char *behind = w ? strchr(text, '=') : NULL;
    if (w && (behind || *at + 1 < argc)) {
        *w->value = behind ? behind + 1 : argv[++*at];
        return 0;
    }
    *ret_status = w ? usage_error(cli, USAGE_STATUS, usage, "%s needs a value", text) : no_word(cli, usage, words, text);
    return -1;
}

int take_words(struct cli *cli, const char *command, const char *usage, const struct word *words, int argc, char **argv,
               int *ret_status)
{
    int left = 0, only_words = 0;
    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0)
            only_words = 1;
        else if (only_words || argv[i][0] != '-' || argv[i][1] == '\0')
            argv[left++] = argv[i];
        else if (take_word(cli, command, usage, words, argc, argv, &i, ret_status) < 0)
            return -1;
    }
    return left;
}

unsigned word_number(const char *text)
{
    unsigned value = 0;
    if (*text == '\0' || strlen(text) > 9)
        return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return 0;
        value = value * 10 + (unsigned)(*text - '0');
    }
    return value;
}
