/* px completion: scripts made from the command and field tables. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static void each_option(void (*show)(const struct px_field_info *f))
{
    struct px_field_info f;
    for (size_t i = 0; px_policy_field(i, &f) == 0; i++)
        if (!f.absent && !f.hidden)
            show(&f);
}

/* Inside single quotes; `quote` is how the shell writes one there. */
static void print_quoted(const char *text, const char *quote)
{
    for (; *text; text++)
        if (*text == '\'')
            print("%s", quote);
        else
            (void)putchar(*text);
}

static void bash_word(const struct px_field_info *f)
{
    print(" --%s", f->name);
}

static void bash_choices(const struct px_field_info *f)
{
    if (!f->words)
        return;
    print("    --%s) COMPREPLY=($(compgen -W \"", f->name);
    for (size_t i = 0; f->words[i]; i++)
        print("%s%s", i ? " " : "", f->words[i]);
    print("\" -- \"$cur\")); return ;;\n");
}

static void print_commands(const char *separator)
{
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            print("%s%s", c == commands ? "" : separator, c->name);
}

/* The words that may follow a command, if its usage begins with them: "start|exec|... ", or with the only one. 0: it does not. */
static int verbs_length(const struct command *c)
{
    int n = (int)strspn(c->usage ? c->usage : "", "abcdefghijklmnopqrstuvwxyz-|");
    return c->summary && n > 0 && (memchr(c->usage, '|', (size_t)n) || !strchr(c->usage, '|')) ? n : 0;
}

static void print_verbs(const struct command *c)
{
    for (int i = 0; i < verbs_length(c); i++)
        (void)putchar(c->usage[i] == '|' ? ' ' : c->usage[i]);
}

/* Flags of a command's own: what its usage has as "[--flag]". */
static const char *next_flag(const char *usage, int *ret_length)
{
    const char *at = strstr(usage, "[--");
    *ret_length = at ? (int)strcspn(at + 1, " =]") : 0;
    return at ? at + 1 : NULL;
}

static void print_flags(const char *before, const char *between, const char *after)
{
    for (const struct command *c = commands; c->name; c++) {
        int n;
        const char *flag = c->summary && c->usage ? next_flag(c->usage, &n) : NULL;
        if (!flag)
            continue;
        print(before, c->name);
        for (bool first = true; flag; flag = next_flag(flag, &n), first = false)
            print("%s%.*s", first ? "" : between, n, flag);
        print_own(after);       /* own: a part of the script */
    }
}

static void bash_verbs(void)
{
    print("  if ((COMP_CWORD == 2)); then case ${COMP_WORDS[1]} in\n");
    for (const struct command *c = commands; c->name; c++)
        if (verbs_length(c)) {
            print("    %s) COMPREPLY=($(compgen -W \"", c->name);
            print_verbs(c);
            print("\" -- \"$cur\")); return ;;\n");
        }
    print("  esac; fi\n");
}

/* The names of boxes are asked for when they are needed; they have no character that a shell would mind. */
static void bash_boxes(void)
{
    print("  if [[ ${COMP_WORDS[1]} == box && $cur != -* ]] && ((COMP_CWORD > 2)); then\n"
          "    local boxes; boxes=$(\"${COMP_WORDS[0]}\" box list --names 2>/dev/null)\n"
          "    case ${COMP_WORDS[2]}:$COMP_CWORD in\n"
          "      stop:*|exec:3|show:3|logs:3|attach:3|signal:3) COMPREPLY=($(compgen -W \"$boxes\" -- \"$cur\")); return ;;\n"
           "      signal:4) COMPREPLY=($(compgen -A signal -- \"$cur\")); return ;;\n"
           "      copy:*) COMPREPLY=($(compgen -S : -W \"$boxes\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
           "        compopt -o nospace 2>/dev/null; return ;;\n"
           "      start:*|list:*) return ;;\n"
           "    esac\n  fi\n");
}

static void bash(void)
{
    print("# bash completion for px\n_px() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "  case $prev in\n    --preset) COMPREPLY=($(compgen -W \"");
    const char *name;
    for (size_t i = 0; (name = px_preset_name(i)); i++)
        print("%s%s", i ? " " : "", name);
    print("\" -- \"$cur\")); return ;;\n");
    each_option(bash_choices);
    print("  esac\n  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W \"");
    print_commands(" ");
    print("\" -- \"$cur\")); return; fi\n");
    bash_verbs();
    bash_boxes();
    print("  local own=; case ${COMP_WORDS[1]} in\n");
    print_flags("    %s) own=\"", " ", "\" ;;\n");
    print("  esac\n  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"$own --preset --plan --report --help");
    each_option(bash_word);
    print("\" -- \"$cur\")); return; fi\n  case ${COMP_WORDS[1]} in run|test) return ;; esac\n  COMPREPLY=($(compgen -c -- \"$cur\"))\n}\ncomplete -o default -F _px px\n");
}

static void zsh_option(const struct px_field_info *f)
{
    print(" \\\n  '%s--%s[", f->repeat ? "*" : "", f->name);
    print_quoted(f->help, "'\\''");
    print("]%s'", f->flag ? "" : ":value:_files");
}

static void zsh_verbs(void)
{
    print("if ((CURRENT == 3)); then\n  case ${words[2]} in\n");
    for (const struct command *c = commands; c->name; c++)
        if (verbs_length(c)) {
            print("    %s) compadd -- ", c->name);
            print_verbs(c);
            print("; return ;;\n");
        }
    print("  esac\nfi\n"
          "if [[ ${words[2]} == box && ${words[CURRENT]} != -* ]] && ((CURRENT > 3)); then\n"
          "  local -a boxes; boxes=(${(f)\"$(${words[1]} box list --names 2>/dev/null)\"})\n"
          "  case ${words[3]}:$CURRENT in\n"
          "    stop:*|exec:4|show:4|logs:4|attach:4|signal:4) compadd -a boxes; return ;;\n"
           "    signal:5) _signals; return ;;\n"
           "    copy:*) compadd -S : -a boxes; _files; return ;;\n"
           "  esac\nfi\n");
}

static void zsh(void)
{
    print("#compdef px\n");
    zsh_verbs();
    print("if [[ ${words[CURRENT]} == --* ]]; then\n  case ${words[2]} in\n");
    print_flags("    %s) compadd -- ", " ", " ;;\n");
    print("  esac\nfi\n_arguments '1:command:(");
    print_commands(" ");
    print(")' \\\n");
    print("  '--preset[start from a preset]:preset:(");
    const char *name;
    for (size_t i = 0; (name = px_preset_name(i)); i++)
        print("%s%s", i ? " " : "", name);
    print(")'");
    each_option(zsh_option);
    print(" \\\n  '*:arguments:_files'\n");
}

static void fish_option(const struct px_field_info *f)
{
    print("complete -c px -n '__fish_seen_subcommand_from exec shell' -l %s%s -d '", f->name, f->flag ? "" : " -r");
    print_quoted(f->help, "\\'");
    print("'");
    if (f->letter)
        print(" -s %c", f->letter);
    if (f->words) {
        print(" -a '");
        for (size_t i = 0; f->words[i]; i++)
            print("%s%s", i ? " " : "", f->words[i]);
        print("'");
    }
    print("\n");
}

static void fish_verbs(const struct command *c)
{
    print("complete -c px -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from ", c->name);
    print_verbs(c);
    print("' -f -a '");
    print_verbs(c);
    print("'\n");
}

static void fish(void)
{
    for (const struct command *c = commands; c->name; c++)
        if (c->summary) {
            print("complete -c px -n __fish_use_subcommand -f -a %s -d '", c->name);
            print_quoted(c->summary, "\\'");
            print("'\n");
        }
    for (const struct command *c = commands; c->name; c++)
        if (verbs_length(c))
            fish_verbs(c);
    static const char *const names[] = {"exec copy' -a", "show logs attach signal stop' -f -a"};
    for (size_t i = 0; i < 2; i++)
        print("complete -c px -n '__fish_seen_subcommand_from box; and __fish_seen_subcommand_from %s '(px box list --names"
              " 2>/dev/null)' -d box\n", names[i]);
    print_flags("complete -c px -n '__fish_seen_subcommand_from %s' -f -a '", " ", "'\n");
    each_option(fish_option);
}

int cmd_completion(struct cli *cli, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*show)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; argc > 0 && i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(shells[i].name, argv[0]) == 0) {
            shells[i].show();
            return flush();
        }
    return usage_error(cli, USAGE_STATUS, "Write px completion bash, zsh or fish.", "px completion needs the name of a shell");
}
