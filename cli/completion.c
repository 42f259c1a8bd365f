/* px completion: scripts made from the command and field tables. */
#include "args.h"

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

static bool has_verbs(const struct command *c)
{
    return c->summary && c->verbs[0].name[0];
}

/* Whether a verb before this one has an option of that name. */
static bool is_known(const struct command *c, const struct verb *until, const char *name)
{
    for (const struct verb *v = c->verbs; v != until; v++)
        for (const struct option_row *row = v->rows; row && row->name; row++)
            if (strcmp(row->name, name) == 0)
                return true;
    return false;
}

static void print_names(const struct option_row *rows)
{
    for (const struct option_row *row = rows; row && row->name; row++)
        print(" --%s", row->name);
}

/* The options of a command's verbs, each once, with a blank before it. */
static void print_options(const struct command *c)
{
    for (const struct verb *v = c->verbs; v->name; v++)
        for (const struct option_row *row = v->rows; row && row->name; row++)
            if (!is_known(c, v, row->name))
                print(" --%s", row->name);
    print_names(c->verbs[0].shared);
}

static void print_fields(const struct command *c)
{
    struct px_field_info f;
    const struct verb *widest = NULL;
    for (const struct verb *v = c->verbs; v->name; v++)
        if (v->policy && (!widest || !args_takes_some(v)))
            widest = v;
    print_names(widest ? args_box_rows + (args_takes_some(widest) ? ARGS_BOX_REPORT : 0) : NULL);
    for (size_t i = 0; widest && px_policy_field(i, &f) == 0; i++)
        if (!f.absent && !f.hidden && args_takes_field(widest, &f))
            print(" --%s", f.name);
}

static bool has_options(const struct command *c)
{
    bool any = false;
    for (const struct verb *v = c->verbs; c->summary && v->name; v++)
        any = any || v->rows || v->shared;
    return any;
}

static void print_flags(const char *before, const char *after)
{
    for (const struct command *c = commands; c->name; c++)
        if (has_options(c)) {
            print(before, c->name);
            print_options(c);
            print_own(after);   /* own: a part of the script */
        }
}

static void bash_verbs(void)
{
    print("  if ((COMP_CWORD == 2)); then case ${COMP_WORDS[1]} in\n");
    for (const struct command *c = commands; c->name; c++)
        if (has_verbs(c)) {
            print("    %s) COMPREPLY=($(compgen -W \"", c->name);
            help_verbs_of(c, " ");
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
    for (const struct command *c = commands; c->name; c++) {
        print("    %s) own=\"", c->name);
        print_options(c);
        print_fields(c);
        print("\" ;;\n");
    }
    print("  esac\n  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"$own --json --quiet --verbose --help\" -- \"$cur\")); return; fi\n  case ${COMP_WORDS[1]} in run|test) return ;; esac\n  COMPREPLY=($(compgen -c -- \"$cur\"))\n}\ncomplete -o default -F _px px\n");
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
        if (has_verbs(c)) {
            print("    %s) compadd -- ", c->name);
            help_verbs_of(c, " ");
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
    print_flags("    %s) compadd --", " ;;\n");
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
    help_verbs_of(c, " ");
    print("' -f -a '");
    help_verbs_of(c, " ");
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
        if (has_verbs(c))
            fish_verbs(c);
    static const char *const names[] = {"exec copy' -a", "show logs attach signal stop' -f -a"};
    for (size_t i = 0; i < 2; i++)
        print("complete -c px -n '__fish_seen_subcommand_from box; and __fish_seen_subcommand_from %s '(px box list --names"
              " 2>/dev/null)' -d box\n", names[i]);
    print_flags("complete -c px -n '__fish_seen_subcommand_from %s' -f -a '", "'\n");
    each_option(fish_option);
}

static int run_shell(struct args *a)
{
    (a->verb->name[0] == 'b' ? bash : a->verb->name[0] == 'z' ? zsh : fish)();
    return flush();
}

const struct verb completion_verbs[] = {
    {"bash", "", "a script for this shell", run_shell},
    {"zsh", "", "a script for this shell", run_shell},
    {"fish", "", "a script for this shell", run_shell},
    {0},
};
