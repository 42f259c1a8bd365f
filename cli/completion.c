/* px completion: scripts made from the command and field tables. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static void each_option(void (*print)(const struct px_field_info *f))
{
    struct px_field_info f;
    for (size_t i = 0; px_policy_field(i, &f) == 0; i++)
        if (!f.absent && !f.hidden)
            print(&f);
}

static void bash_word(const struct px_field_info *f)
{
    printf(" --%s", f->name);
}

static void bash_choices(const struct px_field_info *f)
{
    if (!f->words)
        return;
    printf("    --%s) COMPREPLY=($(compgen -W \"", f->name);
    for (size_t i = 0; f->words[i]; i++)
        printf("%s%s", i ? " " : "", f->words[i]);
    printf("\" -- \"$cur\")); return ;;\n");
}

static void print_commands(const char *separator)
{
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            printf("%s%s", c == commands ? "" : separator, c->name);
}

/* The words that may come first behind a command, if its usage begins with a choice of them: "start|exec ...";
 * else 0. */
static size_t verbs_of(const struct command *c, char *out, size_t size)
{
    size_t n = c->summary && c->usage ? strspn(c->usage, "abcdefghijklmnopqrstuvwxyz|") : 0;
    if (n >= size || !n || !memchr(c->usage, '|', n) || (c->usage[n] && c->usage[n] != ' '))
        return 0;
    for (size_t i = 0; i < n; i++)
        out[i] = c->usage[i] == '|' ? ' ' : c->usage[i];
    out[n] = '\0';
    return n;
}

static void each_verbs(void (*print)(const char *command, const char *verbs))
{
    char verbs[256];
    for (const struct command *c = commands; c->name; c++)
        if (verbs_of(c, verbs, sizeof verbs))
            print(c->name, verbs);
}

static void bash_verbs(const char *command, const char *verbs)
{
    printf("    %s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", command, verbs);
}

static void bash(void)
{
    printf("# bash completion for px\n_px() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
           "  case $prev in\n    --preset) COMPREPLY=($(compgen -W \"");
    const char *name;
    for (size_t i = 0; (name = px_preset_name(i)); i++)
        printf("%s%s", i ? " " : "", name);
    printf("\" -- \"$cur\")); return ;;\n");
    each_option(bash_choices);
    printf("  esac\n  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W \"");
    print_commands(" ");
    printf("\" -- \"$cur\")); return; fi\n  if ((COMP_CWORD == 2)); then case ${COMP_WORDS[1]} in\n");
    each_verbs(bash_verbs);
    printf("  esac; fi\n  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"--preset --plan --report --help");
    each_option(bash_word);
    printf("\" -- \"$cur\")); return; fi\n  COMPREPLY=($(compgen -c -- \"$cur\"))\n}\ncomplete -o default -F _px px\n");
}

static void zsh_option(const struct px_field_info *f)
{
    printf("  '%s--%s[%s]%s'\n", f->repeat ? "*" : "", f->name, f->help, f->flag ? "" : ":value:_files");
}

static void zsh_verbs(const char *command, const char *verbs)
{
    printf("  %s) compadd %s; return ;;\n", command, verbs);
}

static void zsh(void)
{
    printf("#compdef px\nif ((CURRENT == 3)); then case $words[2] in\n");
    each_verbs(zsh_verbs);
    printf("esac; fi\n_arguments '1:command:(");
    print_commands(" ");
    printf(")' \\\n");
    printf("  '--preset[start from a preset]:preset:(");
    const char *name;
    for (size_t i = 0; (name = px_preset_name(i)); i++)
        printf("%s%s", i ? " " : "", name);
    printf(")' ${(f)\"$(cat <<'PX'\n");
    each_option(zsh_option);
    printf("PX\n)\"} '*::arguments:_normal'\n");
}

static void fish_option(const struct px_field_info *f)
{
    printf("complete -c px -n '__fish_seen_subcommand_from exec shell' -l %s%s -d '%s'", f->name, f->flag ? "" : " -r",
           f->help);
    if (f->letter)
        printf(" -s %c", f->letter);
    if (f->words) {
        printf(" -a '");
        for (size_t i = 0; f->words[i]; i++)
            printf("%s%s", i ? " " : "", f->words[i]);
        printf("'");
    }
    printf("\n");
}

static void fish_verbs(const char *command, const char *verbs)
{
    printf("complete -c px -n 'test (count (commandline -opc)) -eq 2; and __fish_seen_subcommand_from %s' -f -a '%s'\n",
           command, verbs);
}

static void fish(void)
{
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            printf("complete -c px -n __fish_use_subcommand -f -a %s -d '%s'\n", c->name, c->summary);
    each_verbs(fish_verbs);
    each_option(fish_option);
}

int cmd_completion(struct cli *cli, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; argc > 0 && i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(shells[i].name, argv[0]) == 0) {
            shells[i].print();
            return flush();
        }
    return usage_error(cli, USAGE_STATUS, "Write px completion bash, zsh or fish.",
                       "px completion needs the name of a shell");
}
