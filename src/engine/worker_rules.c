/* Whether a worker may run a command line: the first rule that fits each of its commands, and the strictest answer of them. */
#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "engine/shell_line.h"
#include "engine/worker.h"
#include "files/files.h"

enum { NESTED_MAX = 3, PLAN_MAX = 120 << 10 };          /* the kernel takes 128 KiB as one argument */

void px_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

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

/* Operations that are no tools (can_read, resolve, roots) tell what the rules are and nothing else. */
enum px_approval px_worker_tool(const struct px_worker *w, const char *tool, struct px_err *e)
{
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

/* The argument as a path of the worker's files: relative ones are below the working directory, where the roots lie. One
 * with ".." is not judged: the kernel goes up from where a link leads, the file sandbox from where it lies. */
static bool lies_in(const struct px_worker *w, const struct px_yaml *roots, const char *cwd, const char *argument)
{
    struct px_place place;
    char joined[PATH_MAX];
    if (*cwd && *argument != '/') {
        if (px_fmt(joined, sizeof joined, "%s/%s", cwd, argument) < 0)
            return false;
        argument = joined;
    }
    if (px_resolve_goes_up(argument) || !px_files_can_read(w->files, argument) ||
        px_resolve_split(w->files, argument, &place) < 0)
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

/* What an option means is the program's affair. One that can hold a path must have it behind its only equals sign, inside;
 * everything else that has a slash, or ends with a dot or a root's name, can be a path as well. */
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

/* What is no file of anybody. */
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
    FREE = 1,                   /* runs nothing: no rule is needed */
    WRAPS = 2,                  /* runs what its arguments say, or changes what later words mean */
    BUILTIN = 4,                /* of the shell; there may be no program of that name */
    SHELL = 8,                  /* takes a line behind -c */
    IF_EXEC = 16,               /* wraps if it has an argument -exec or the like */
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
    {"read", WRAPS | BUILTIN}, {"type", BUILTIN}, {"umask", BUILTIN}, {"ulimit", BUILTIN}, {"wait", BUILTIN},
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

/* Also by a pattern: there may be a file of that name. */
static bool runs_others(const struct px_line_command *c)
{
    for (size_t i = 1; i < c->count; i++)
        if (is_exec(c->words[i].text, c->words[i].open))
            return true;
    return false;
}

/* By the last part of its name: /bin/sh is sh. */
static unsigned flags_of(const struct px_line_command *c)
{
    if (c->count == 0)
        return FREE;
    const char *slash = strrchr(c->words[0].text, '/'), *name = slash ? slash + 1 : c->words[0].text;
    for (size_t i = 0; !c->words[0].open && i < PX_COUNT_OF(specials); i++)
        if (strcmp(name, specials[i].name) == 0 && !(slash && specials[i].flags & (FREE | BUILTIN)))
            return specials[i].flags & IF_EXEC && !runs_others(c) ? 0 : specials[i].flags;
    return 0;
}

/* ---- one command ---- */

/* A rule may fit, or, if the shell makes the words of a pattern, one cannot know. */
enum fit { NO, MAYBE, YES };

static enum fit fits_words(const struct px_line_command *c, char *const *prefix)
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
static enum fit fits_paths(const struct px_worker *w, const struct px_rule *rule, const struct px_line_command *c, const char *cwd)
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
        const struct px_line_redirect *r = &c->redirects[i];
        if (r->way != PX_LINE_SAME && !is_sink(r->target.text) && (r->target.open || !lies_in(w, rule->paths, cwd, r->target.text)))
            return NO;
    }
    return fit;
}

static enum fit fits(const struct px_worker *w, const struct px_rule *rule, const struct px_line_command *c, const char *cwd)
{
    enum fit words = fits_words(c, rule->prefix);
    enum fit paths = words != NO && rule->paths ? fits_paths(w, rule, c, cwd) : YES;
    return words < paths ? words : paths;
}

static enum px_approval stricter(enum px_approval a, enum px_approval b)
{
    return a < b ? a : b;
}

static enum px_approval verdict_of(bool approval)
{
    return approval ? PX_NEEDS_APPROVAL : PX_PRE_APPROVED;
}

/* What becomes of a command that nothing is known of: the strictest that any command can get. */
static enum px_approval of_unknown(const struct px_worker *w)
{
    enum px_approval least = w->has_default ? verdict_of(w->default_approval) : PX_BLOCKED;
    for (size_t i = 0; i < w->rules_count; i++)
        least = stricter(least, verdict_of(w->rules[i].approval));
    least = stricter(least, px_worker_tool(w, "read_file", NULL));
    return stricter(least, px_worker_tool(w, "write_file", NULL));
}

/* Whether the rule names what the wrapper shall run: its last word is no option, number or NAME=VALUE; of find, it follows -exec. */
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

/* By the rules. Those that only may fit count as well: the strictest of them and of what surely fits. */
static enum px_approval ask_rules(const struct px_worker *w, const struct px_line_command *c, const char *cwd, unsigned flags)
{
    enum px_approval least = PX_PRE_APPROVED, found = w->has_default ? verdict_of(w->default_approval) : PX_BLOCKED;
    const struct px_rule *rule = NULL;
    for (size_t i = 0; i < w->rules_count && !rule; i++) {
        enum fit fit = fits(w, &w->rules[i], c, cwd);
        if (fit != NO)
            least = stricter(least, verdict_of(w->rules[i].approval));
        rule = fit == YES ? &w->rules[i] : NULL;
    }
    if (rule)
        found = verdict_of(rule->approval);
    else if (flags & FREE)
        found = PX_PRE_APPROVED;
    found = stricter(found, least);
    if (!(flags & WRAPS) || (rule && names_program(rule, flags)) || of_unknown(w) == PX_PRE_APPROVED)
        return found;
    return stricter(found, PX_NEEDS_APPROVAL);
}

/* Reading or writing a file of a root as the tool for that does; a file of the box's own /tmp, or none at all. Everything else is as
 * unknown as a command can be. */
static enum px_approval ask_redirect(const struct px_worker *w, const struct px_line_redirect *r, const char *cwd)
{
    struct px_place place;
    char path[PATH_MAX];
    const char *target = r->target.text;
    if (r->way == PX_LINE_SAME || (!r->target.open && is_sink(target)))
        return PX_PRE_APPROVED;
    if (r->target.open || px_resolve_goes_up(target))
        return of_unknown(w);
    if (px_starts_with(target, "/tmp/"))
        return PX_PRE_APPROVED;
    if (*target == '/' || !cwd || px_fmt(path, sizeof path, "%s%s%s", cwd, *cwd ? "/" : "", target) < 0 ||
        px_resolve_split(w->files, path, &place) < 0)
        return of_unknown(w);
    return px_worker_tool(w, r->way == PX_LINE_READ ? "read_file" : "write_file", NULL);
}

/* ---- where commands run ---- */

struct place {
    char cwd[PATH_MAX];
    bool known, moved;
};

static bool is_cd(const struct px_line_command *c)
{
    return c->count && !c->words[0].open && strcmp(c->words[0].text, "cd") == 0;
}

static bool enter(struct place *p, const struct px_line_command *c)
{
    static const char top[] = "/workspace";
    if (c->count != 2 || c->words[1].open || px_resolve_goes_up(c->words[1].text))
        return false;
    const char *to = c->words[1].text;
    bool absolute = px_starts_with(to, top) && (to[sizeof top - 1] == '\0' || to[sizeof top - 1] == '/');
    char *old = absolute ? strdup("") : strdup(p->cwd);
    to += absolute ? sizeof top - 1 : 0;
    to += absolute ? strspn(to, "/") : 0;
    bool fine = old && *to != '/' && *to != '-' && (*to || absolute) &&
                px_fmt(p->cwd, sizeof p->cwd, "%s%s%s", old, *old && *to ? "/" : "", to) >= 0;
    free(old);
    return fine;
}

/* cd that surely happens before what follows: `cd A && B`, not `cd A; B` nor `X || cd A && B`, and in no pipe. */
static void follow(struct place *p, const struct px_line_command *c, const struct px_line_command *before, unsigned flags)
{
    bool certain = c->join == PX_LINE_AND && !(before && (before->join == PX_LINE_OR || before->join == PX_LINE_PIPE));
    if (is_cd(c)) {
        p->known = p->known && certain && enter(p, c);
        p->moved = true;
    } else if (flags & WRAPS && flags & BUILTIN) {
        p->known = false;
    } else if (p->moved && (c->join == PX_LINE_THEN || c->join == PX_LINE_OR)) {
        p->known = false;
    }
}

/* ---- a line ---- */

struct judge {
    const struct px_worker *w;
    size_t depth;
    char why[160];              /* of what is blocked */
};

static enum px_approval judge_line(struct judge *j, const struct px_line *line, struct place *place, struct px_buf *out);

/* sh -c LINE: also bash -lc, as models write it. */
static const char *line_within(const struct px_line_command *c, unsigned flags)
{
    bool fits = flags & SHELL && c->count == 3 && !c->words[1].open && !c->words[2].open;
    return fits && (strcmp(c->words[1].text, "-c") == 0 || strcmp(c->words[1].text, "-lc") == 0) ? c->words[2].text : NULL;
}

/* What a shell is told to run, judged instead of the shell, and printed in its place. */
static enum px_approval judge_within(struct judge *j, const char *text, const struct place *place, struct px_buf *out)
{
    struct px_line *line = NULL;
    if (!text || j->depth == NESTED_MAX || px_line_parse(text, &line))
        return PX_BLOCKED;
    struct place inner = *place;
    j->depth++;
    (void)px_buf_puts(out, "( ");
    enum px_approval found = line->opaque || line->count == 0 ? PX_BLOCKED : judge_line(j, line, &inner, out);
    (void)px_buf_puts(out, " )");
    j->depth--;
    px_line_free(line);
    return found;
}

/* The first thing that is blocked is told. */
static void blame(struct judge *j, const char *before, const char *name, const char *after)
{
    if (!j->why[0])
        (void)px_fmt(j->why, sizeof j->why, "%s'%.60s'%s", before, name, after);
}

static enum px_approval judge_command(struct judge *j, const struct px_line_command *c, const struct place *place, struct px_buf *out)
{
    px_auto_buf struct px_buf text = PX_BUF(PLAN_MAX);
    const char *cwd = place->known ? place->cwd : NULL;
    unsigned flags = flags_of(c);
    bool told = j->why[0];
    enum px_approval found = ask_rules(j->w, c, cwd, flags);
    enum px_approval within = found == PX_PRE_APPROVED ? PX_BLOCKED : judge_within(j, line_within(c, flags), place, &text);
    if (within > found) {
        found = within;
        px_line_print_redirects(c, &text);
    } else {
        px_buf_done(&text);
        text = PX_BUF(PLAN_MAX);
        px_line_print(c, &text);
    }
    (void)px_buf_puts(out, text.err < 0 ? "" : px_buf_text(&text));
    out->err = text.err < 0 ? text.err : out->err;
    if (found != PX_BLOCKED && !told)
        j->why[0] = '\0';       /* of a line within, which then is not what counts */
    else if (found == PX_BLOCKED)
        blame(j, "", c->words[0].text, " fits no shell rule of the worker, which has no default");
    for (size_t i = 0; i < c->redirects_count; i++) {
        enum px_approval file = ask_redirect(j->w, &c->redirects[i], cwd);
        if (file == PX_BLOCKED)
            blame(j, "redirects to or from ", c->redirects[i].target.text, ", which is in no path of the worker");
        found = stricter(found, file);
    }
    return found;
}

static enum px_approval judge_line(struct judge *j, const struct px_line *line, struct place *place, struct px_buf *out)
{
    enum px_approval found = PX_PRE_APPROVED;
    for (size_t i = 0; i < line->count; i++) {
        const struct px_line_command *c = &line->commands[i];
        found = stricter(found, judge_command(j, c, place, out));
        px_line_print_join(c->join, out);
        follow(place, c, i ? c - 1 : NULL, flags_of(c));
    }
    return found;
}

/* ---- what is run ---- */

/* The words themselves if they are all there is to it, else a shell with the text that was printed from them. */
static bool is_plain(const struct px_line *line, const char *plan)
{
    const struct px_line_command *c = &line->commands[0];
    if (line->count != 1 || c->redirects_count || c->count == 0 || flags_of(c) & BUILTIN || *plan != '\'')
        return false;
    for (size_t i = 0; i < c->count; i++)
        if (c->words[i].open)
            return false;
    return true;
}

static char **copy_words(const char *const *words, size_t count)
{
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (!(copy[i] = strdup(words[i]))) {
            px_words_free(copy);
            return NULL;
        }
    return copy;
}

static char **words_of(const struct px_line *line, const char *plan)
{
    const char *const shell[] = {"/bin/sh", "-c", plan}, *words[PX_LINE_WORDS];
    if (!is_plain(line, plan))
        return copy_words(shell, PX_COUNT_OF(shell));
    for (size_t i = 0; i < line->commands[0].count; i++)
        words[i] = line->commands[0].words[i].text;
    return copy_words(words, line->commands[0].count);
}

/* As it was written, for the shell that whoever wrote it most likely means. */
static char **words_of_opaque(const char *text)
{
    static const char any[] = "exec \"$(command -v bash || command -v sh)\" -c \"$1\"";
    const char *const shell[] = {"/bin/sh", "-c", any, "sh", text};
    return copy_words(shell, PX_COUNT_OF(shell));
}

static enum px_approval blocked(const char *why, struct px_err *e)
{
    (void)px_fail(e, PX_E_BLOCKED, 0, "the command %s", why);
    return PX_BLOCKED;
}

static enum px_approval judge_opaque(const struct px_worker *w, const struct px_line *line, const char *text, char ***ret_argv,
                                     struct px_err *e)
{
    char why[160];
    enum px_approval found = of_unknown(w);
    (void)px_fmt(why, sizeof why, "has %s, which the shell rules cannot judge, and the worker has no default", line->opaque);
    if (found != PX_BLOCKED && !(*ret_argv = words_of_opaque(text)))
        return blocked("is too long", e);
    return found == PX_BLOCKED ? blocked(why, e) : found;
}

static enum px_approval judge_parts(const struct px_worker *w, const struct px_line *line, char ***ret_argv, struct px_err *e)
{
    px_auto_buf struct px_buf plan = PX_BUF(PLAN_MAX);
    struct judge j = {.w = w};
    struct place place = {.known = true};
    enum px_approval found = judge_line(&j, line, &place, &plan);
    if (found == PX_BLOCKED)
        return blocked(line->count == 1 && !line->redirects_count ? "fits no shell rule of the worker, which has no default" : j.why, e);
    *ret_argv = plan.err < 0 ? NULL : words_of(line, px_buf_text(&plan));
    return *ret_argv ? found : blocked("is too long", e);
}

enum px_approval px_worker_judge(const struct px_worker *w, const char *command, char ***ret_argv, struct px_err *e)
{
    struct px_line *line = NULL;
    enum px_approval tool = px_worker_tool(w, "shell", e);
    const char *why = tool == PX_BLOCKED ? NULL : px_line_parse(command, &line);
    if (tool == PX_BLOCKED || why)
        return why ? blocked(why, e) : PX_BLOCKED;
    enum px_approval found = line->opaque       ? judge_opaque(w, line, command, ret_argv, e)
                             : line->count == 0 ? blocked("is empty", e)
                                                : judge_parts(w, line, ret_argv, e);
    px_line_free(line);
    return stricter(found, tool);
}

const char *px_approval_name(enum px_approval approval)
{
    static const char *const names[] = {"blocked", "needs_approval", "pre_approved"};
    return names[approval];
}
