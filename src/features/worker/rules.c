/* The verdict of a worker's rules on one command, one redirection and one tool. */
#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "files/files.h"
#include "worker/rules.h"

/* ---- tools ---- */

static const char *const tool_names[][2] = {    /* and what px_files_call calls it */
    {"shell", NULL},          {"worker_call", NULL},       {"read_file", "read"},     {"write_file", "write"},
    {"edit_file", "edit"},    {"list_files", "list"},      {"search_files", "search"}, {"diff_file", "diff"},
    {"stat_file", "stat"},    {"move_file", "move"},       {"copy_file", "copy"},     {"delete_file", "delete"},
    {"make_directory", "make_directory"},
};
_Static_assert(PX_COUNT_OF(tool_names) <= PX_WORKER_TOOLS, "each tool has its rule");

const char *px_worker_tool_at(size_t index)
{
    return index < PX_COUNT_OF(tool_names) ? tool_names[index][0] : NULL;
}

/* Operations that are not tools (can_read, resolve, roots) only report the rules. */
enum px_approval px_worker_tool(const struct px_worker *w, const char *tool, struct px_err *e)
{
    PX_ERR(e);
    for (size_t i = 0; i < PX_COUNT_OF(tool_names); i++) {
        if (strcmp(tool, tool_names[i][0]) != 0 && !px_equal(tool, tool_names[i][1]))
            continue;
        if (!w->tools[i].denied)
            return w->tools[i].approval ? PX_NEEDS_APPROVAL : PX_PRE_APPROVED;
        (void)px_fail(e, PX_E_BLOCKED, 0, "the worker does not have the tool '%s'", tool_names[i][0]);
        (void)px_why(e, "Its file says so: tool_rules, allowed: false.");
        (void)px_fix(e, "Use another tool; `px worker check FILE` prints which there are.");
        return PX_BLOCKED;
    }
    (void)px_fail(e, PX_E_BLOCKED, 0, "there is no tool '%.60s' that a worker could have", tool);
    return PX_BLOCKED;
}

/* ---- places ---- */

/* The argument as a path of the worker's files: relative ones are below the working directory, where the roots lie. A
 * path with ".." is not decided: after a link the kernel goes up from its target, the file sandbox from its path. */
static bool lies_in(const struct px_worker *w, const struct px_yaml *roots, const char *cwd, const char *argument)
{
    struct px_place place;
    char joined[PATH_MAX];
    if (*cwd && *argument != '/') {
        if (px_fmt(joined, sizeof joined, "%s/%s", cwd, argument) < 0)
            return false;
        argument = joined;
    }
    if (px_files_resolve_goes_up(argument) || !px_files_can_read(w->files, argument) ||
        px_files_resolve_split(w->files, argument, &place) < 0)
        return false;
    for (const struct px_yaml *root = roots->first; root; root = root->next)
        if (strcmp(place.root->name, root->text) == 0)
            return true;
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return m <= n && strcmp(text + n - m, end) == 0;
}

/* The meaning of an option is unknown. If it may contain a path, the path must follow its only '=' and be inside a
 * root. Any other option with a slash, or that ends with a dot or a root's name, may be a path as well. */
static bool option_lies_in(const struct px_worker *w, const struct px_yaml *roots, const char *cwd, const char *option)
{
    const char *value = strchr(option, '=');
    struct px_files_root root;
    if (value && !strchr(value + 1, '=') && !strchr(value, ':') && lies_in(w, roots, cwd, value + 1))
        return true;
    for (size_t i = 0; px_files_root_at(w->files, i, &root) == 0; i++)
        if (ends_with(option, root.name))
            return false;
    return !strchr(option, '/') && !ends_with(option, ".");
}

/* Paths that are not files, such as /dev/null. */
static bool is_sink(const char *path)
{
    static const char *const names[] = {"/dev/null", "/dev/stdout", "/dev/stderr"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return false;
}

/* ---- words that are more than a program's name ---- */

enum {
    FREE = PX_RULES_FREE,
    WRAPS = PX_RULES_WRAPS,
    BUILTIN = PX_RULES_BUILTIN,
    SHELL = PX_RULES_SHELL,
    IF_EXEC = 16,               /* WRAPS if it has an argument -exec or the like */
    IF_OPTION = 32,             /* WRAPS if its first argument is an option: printf -v sets a variable, PATH for one */
};

static const struct special {
    const char *name;
    unsigned flags;
} specials[] = {
    {"cd", FREE | BUILTIN}, {"exit", FREE | BUILTIN}, {"true", FREE}, {"false", FREE}, {":", FREE | BUILTIN},
    {"sh", WRAPS | SHELL}, {"bash", WRAPS | SHELL}, {"dash", WRAPS | SHELL}, {"ash", WRAPS}, {"zsh", WRAPS}, {"ksh", WRAPS},
    {"mksh", WRAPS}, {"fish", WRAPS}, {"busybox", WRAPS}, {"toybox", WRAPS}, {"env", WRAPS}, {"xargs", WRAPS}, {"parallel", WRAPS},
    {"nice", WRAPS}, {"nohup", WRAPS}, {"timeout", WRAPS}, {"time", WRAPS}, {"setsid", WRAPS}, {"stdbuf", WRAPS}, {"ionice", WRAPS},
    {"chrt", WRAPS}, {"taskset", WRAPS}, {"setarch", WRAPS}, {"setpriv", WRAPS}, {"prlimit", WRAPS}, {"flock", WRAPS},
    {"watch", WRAPS}, {"script", WRAPS}, {"strace", WRAPS}, {"ltrace", WRAPS}, {"gdb", WRAPS}, {"chroot", WRAPS}, {"unshare", WRAPS},
    {"nsenter", WRAPS}, {"sudo", WRAPS}, {"su", WRAPS}, {"runuser", WRAPS}, {"find", WRAPS | IF_EXEC},
    {"eval", WRAPS | BUILTIN}, {".", WRAPS | BUILTIN}, {"source", WRAPS | BUILTIN}, {"exec", WRAPS | BUILTIN},
    {"command", WRAPS | BUILTIN}, {"builtin", WRAPS | BUILTIN}, {"trap", WRAPS | BUILTIN}, {"export", WRAPS | BUILTIN},
    {"readonly", WRAPS | BUILTIN}, {"declare", WRAPS | BUILTIN}, {"typeset", WRAPS | BUILTIN}, {"local", WRAPS | BUILTIN},
    {"set", WRAPS | BUILTIN}, {"unset", WRAPS | BUILTIN}, {"alias", WRAPS | BUILTIN}, {"hash", WRAPS | BUILTIN},
    {"shopt", WRAPS | BUILTIN}, {"enable", WRAPS | BUILTIN}, {"pushd", WRAPS | BUILTIN}, {"popd", WRAPS | BUILTIN},
    {"read", WRAPS | BUILTIN}, {"chdir", WRAPS | BUILTIN}, {"getopts", WRAPS | BUILTIN}, {"let", WRAPS | BUILTIN},
    {"mapfile", WRAPS | BUILTIN}, {"readarray", WRAPS | BUILTIN}, {"printf", WRAPS | IF_OPTION}, {"type", BUILTIN}, {"umask", BUILTIN}, {"ulimit", BUILTIN}, {"wait", BUILTIN},
};

/* Of find: what a program's name follows. */
static bool is_exec(const char *text, bool open)
{
    static const char *const names[] = {"-exec", "-execdir", "-ok", "-okdir"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (open ? fnmatch(text, names[i], 0) == 0 : strcmp(text, names[i]) == 0)
            return true;
    return false;
}

/* Whether the condition matches; a pattern also matches, because a file of that name may exist. */
static bool wraps(const struct px_shell_line_command *c, unsigned flags)
{
    if (flags & IF_OPTION)
        return c->count > 1 && (c->words[1].open || c->words[1].text[0] == '-');
    for (size_t i = 1; i < c->count; i++)
        if (is_exec(c->words[i].text, c->words[i].open))
            return true;
    return false;
}

/* Compares the last part of the name: /bin/sh is sh. */
unsigned px_rules_flags(const struct px_shell_line_command *c)
{
    if (c->count == 0)
        return FREE;
    const char *slash = strrchr(c->words[0].text, '/'), *name = slash ? slash + 1 : c->words[0].text;
    for (size_t i = 0; !c->words[0].open && i < PX_COUNT_OF(specials); i++)
        if (strcmp(name, specials[i].name) == 0 && !(slash && specials[i].flags & (FREE | BUILTIN)))
            return specials[i].flags & (IF_EXEC | IF_OPTION) && !wraps(c, specials[i].flags) ? 0 : specials[i].flags;
    return 0;
}

/* ---- one command ---- */

/* Whether a rule matches; unknown if the shell expands a pattern. */
enum fit { NO, MAYBE, YES };

static enum fit fits_words(const struct px_shell_line_command *c, char *const *prefix)
{
    for (size_t i = 0; prefix[i]; i++) {
        if (i < c->count && c->words[i].open)
            return MAYBE;
        if (i == c->count || strcmp(c->words[i].text, prefix[i]) != 0)
            return NO;
    }
    return YES;
}

/* cwd: where the command runs, below the worker's roots, or NULL if that is not known. */
static enum fit fits_paths(const struct px_worker *w, const struct px_rule *rule, const struct px_shell_line_command *c, const char *cwd)
{
    size_t i = 0;
    enum fit fit = YES;
    bool options = true;        /* until "--" */
    if (!cwd)
        return MAYBE;
    if (*cwd && !lies_in(w, rule->paths, "", cwd))
        return NO;
    while (rule->prefix[i])
        i++;
    for (; i < c->count; i++) {
        const char *text = c->words[i].text;
        if (c->words[i].open)
            fit = MAYBE;
        else if (options && text[0] == '-' ? !option_lies_in(w, rule->paths, cwd, text) : !lies_in(w, rule->paths, cwd, text))
            return NO;
        options = options && strcmp(text, "--") != 0;
    }
    for (i = 0; i < c->redirects_count; i++) {
        const struct px_shell_line_redirect *r = &c->redirects[i];
        if (r->way != PX_LINE_SAME && !is_sink(r->target.text) && (r->target.open || !lies_in(w, rule->paths, cwd, r->target.text)))
            return NO;
    }
    return fit;
}

static enum fit fits(const struct px_worker *w, const struct px_rule *rule, const struct px_shell_line_command *c, const char *cwd)
{
    enum fit words = fits_words(c, rule->prefix);
    enum fit paths = words != NO && rule->paths ? fits_paths(w, rule, c, cwd) : YES;
    return words < paths ? words : paths;
}

enum px_approval px_rules_stricter(enum px_approval a, enum px_approval b)
{
    return a < b ? a : b;
}

static enum px_approval verdict_of(bool approval)
{
    return approval ? PX_NEEDS_APPROVAL : PX_PRE_APPROVED;
}

/* The verdict on an unknown command: the strictest that any command can get. */
enum px_approval px_rules_unknown(const struct px_worker *w)
{
    enum px_approval least = w->has_default ? verdict_of(w->default_approval) : PX_BLOCKED;
    for (size_t i = 0; i < w->rules_count; i++)
        least = px_rules_stricter(least, verdict_of(w->rules[i].approval));
    least = px_rules_stricter(least, px_worker_tool(w, "read_file", NULL));
    return px_rules_stricter(least, px_worker_tool(w, "write_file", NULL));
}

/* Whether the rule names the program that the wrapper runs: its last word is no option, number or NAME=VALUE; of find,
 * it follows -exec. */
static bool names_program(const struct px_rule *rule, unsigned flags)
{
    size_t n = 0;
    while (rule->prefix[n])
        n++;
    const char *last = rule->prefix[n - 1];
    if (flags & IF_EXEC && (n < 2 || !is_exec(rule->prefix[n - 2], false)))
        return false;
    return n > 1 && last[0] != '-' && !isdigit((unsigned char)last[0]) && !strchr(last, '=');
}

/* The verdict of the rules. Rules that may match count as well: the strictest of these and of the one that certainly
 * matches. */
enum px_approval px_rules_command(const struct px_worker *w, const struct px_shell_line_command *c, const char *cwd, unsigned flags)
{
    enum px_approval least = PX_PRE_APPROVED, found = w->has_default ? verdict_of(w->default_approval) : PX_BLOCKED;
    const struct px_rule *rule = NULL;
    for (size_t i = 0; i < w->rules_count && !rule; i++) {
        enum fit fit = fits(w, &w->rules[i], c, cwd);
        if (fit != NO)
            least = px_rules_stricter(least, verdict_of(w->rules[i].approval));
        rule = fit == YES ? &w->rules[i] : NULL;
    }
    if (rule)
        found = verdict_of(rule->approval);
    else if (flags & FREE)
        found = PX_PRE_APPROVED;
    found = px_rules_stricter(found, least);
    if (!(flags & WRAPS) || (rule && names_program(rule, flags)) || px_rules_unknown(w) == PX_PRE_APPROVED)
        return found;
    return px_rules_stricter(found, PX_NEEDS_APPROVAL);
}

/* A redirection to a file of a root is treated like the read or write tool. A file in the box's own /tmp, or no file,
 * is allowed. Anything else is treated as an unknown command. */
enum px_approval px_rules_redirect(const struct px_worker *w, const struct px_shell_line_redirect *r, const char *cwd)
{
    struct px_place place;
    char path[PATH_MAX];
    const char *target = r->target.text;
    if (r->way == PX_LINE_SAME || (!r->target.open && is_sink(target)))
        return PX_PRE_APPROVED;
    if (r->target.open || px_files_resolve_goes_up(target))
        return px_rules_unknown(w);
    if (px_starts_with(target, "/tmp/"))
        return PX_PRE_APPROVED;
    if (*target == '/' || !cwd || px_fmt(path, sizeof path, "%s%s%s", cwd, *cwd ? "/" : "", target) < 0 ||
        px_files_resolve_split(w->files, path, &place) < 0)
        return px_rules_unknown(w);
    return px_worker_tool(w, r->way == PX_LINE_READ ? "read_file" : "write_file", NULL);
}
