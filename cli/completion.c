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
    printf("\" -- \"$cur\")); return; fi\n  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"--preset --plan --report --help");
    each_option(bash_word);
    printf("\" -- \"$cur\")); return; fi\n  COMPREPLY=($(compgen -c -- \"$cur\"))\n}\ncomplete -o default -F _px px\n");
}

static void zsh_option(const struct px_field_info *f)
{
    printf("  '%s--%s[%s]%s'\n", f->repeat ? "*" : "", f->name, f->help, f->flag ? "" : ":value:_files");
}

static void zsh(void)
{
    printf("#compdef px\n_arguments '1:command:(");
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
    printf("complete -c px -n '__fish_seen_subcommand_from exec shell' -l %s%s -d '%s'", f->name, f->flag ? "" : " -r", f->help);
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

static void fish(void)
{
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            printf("complete -c px -n __fish_use_subcommand -f -a %s -d '%s'\n", c->name, c->summary);
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
    return usage_error(cli, USAGE_STATUS, "Write px completion bash, zsh or fish.", "px completion needs the name of a shell");
}
