/* Whether a worker may run a command line: the strictest verdict of its commands, and the line that is run instead. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "files/files.h"
#include "worker/rules.h"

enum { NESTED_MAX = 3, PLAN_MAX = 120 << 10 };          /* the kernel takes 128 KiB as one argument */

void px_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

/* ---- where commands run ---- */

struct place {
    char cwd[PATH_MAX];
    bool known, moved;
};

static bool is_cd(const struct px_shell_line_command *c)
{
    return c->count && !c->words[0].open && strcmp(c->words[0].text, "cd") == 0;
}

static bool enter(struct place *p, const struct px_shell_line_command *c)
{
    static const char top[] = "/workspace";
    if (c->count != 2 || c->words[1].open || px_files_resolve_goes_up(c->words[1].text))
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

/* A cd that certainly runs before the rest: `cd A && B`, not `cd A; B` nor `X || cd A && B`, and in no pipe. */
static void follow(struct place *p, const struct px_shell_line_command *c, const struct px_shell_line_command *before, unsigned flags)
{
    bool certain = c->join == PX_LINE_AND && !(before && (before->join == PX_LINE_OR || before->join == PX_LINE_PIPE));
    if (is_cd(c)) {
        p->known = p->known && certain && enter(p, c);
        p->moved = true;
    } else if (flags & PX_RULES_WRAPS && flags & PX_RULES_BUILTIN) {
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

static enum px_approval judge_line(struct judge *j, const struct px_shell_line *line, struct place *place, struct px_buf *out);

/* sh -c LINE: also bash -lc, as models write it. */
static const char *line_within(const struct px_shell_line_command *c, unsigned flags)
{
    bool fits = flags & PX_RULES_SHELL && c->count == 3 && !c->words[1].open && !c->words[2].open;
    return fits && (strcmp(c->words[1].text, "-c") == 0 || strcmp(c->words[1].text, "-lc") == 0) ? c->words[2].text : NULL;
}

/* Checks the line given to a shell instead of the shell itself, and prints it in its place. */
static enum px_approval judge_within(struct judge *j, const char *text, const struct place *place, struct px_buf *out)
{
    struct px_shell_line *line = NULL;
    if (!text || j->depth == NESTED_MAX || px_shell_line_parse(text, &line))
        return PX_BLOCKED;
    struct place inner = *place;
    j->depth++;
    (void)px_buf_puts(out, "( ");
    enum px_approval found = line->opaque || line->count == 0 ? PX_BLOCKED : judge_line(j, line, &inner, out);
    (void)px_buf_puts(out, " )");
    j->depth--;
    px_shell_line_free(line);
    return found;
}

/* Reports the first blocked command. */
static void blame(struct judge *j, const char *before, const char *name, const char *after)
{
    if (!j->why[0])
        (void)px_fmt(j->why, sizeof j->why, "%s'%.60s'%s", before, name, after);
}

static enum px_approval judge_command(struct judge *j, const struct px_shell_line_command *c, const struct place *place, struct px_buf *out)
{
    px_auto_buf struct px_buf text = PX_BUF(PLAN_MAX);
    const char *cwd = place->known ? place->cwd : NULL;
    unsigned flags = px_rules_flags(c);
    bool told = j->why[0];
    enum px_approval found = px_rules_command(j->w, c, cwd, flags);
    enum px_approval within = found == PX_PRE_APPROVED ? PX_BLOCKED : judge_within(j, line_within(c, flags), place, &text);
    if (within > found) {
        found = within;
        px_shell_line_print_redirects(c, &text);
    } else {
        px_buf_done(&text);
        text = PX_BUF(PLAN_MAX);
        px_shell_line_print(c, &text);
    }
    (void)px_buf_puts(out, text.err < 0 ? "" : px_buf_text(&text));
    out->err = text.err < 0 ? text.err : out->err;
    if (found != PX_BLOCKED && !told)
        j->why[0] = '\0';       /* of a nested line, which is ignored then */
    else if (found == PX_BLOCKED)
        blame(j, "", c->words[0].text, " fits no shell rule of the worker, which has no default");
    for (size_t i = 0; i < c->redirects_count; i++) {
        enum px_approval file = px_rules_redirect(j->w, &c->redirects[i], cwd);
        if (file == PX_BLOCKED)
            blame(j, "redirects to or from ", c->redirects[i].target.text, ", which is in no path of the worker");
        found = px_rules_stricter(found, file);
    }
    return found;
}

static enum px_approval judge_line(struct judge *j, const struct px_shell_line *line, struct place *place, struct px_buf *out)
{
    enum px_approval found = PX_PRE_APPROVED;
    for (size_t i = 0; i < line->count; i++) {
        const struct px_shell_line_command *c = &line->commands[i];
        found = px_rules_stricter(found, judge_command(j, c, place, out));
        px_shell_line_print_join(c->join, out);
        follow(place, c, i ? c - 1 : NULL, px_rules_flags(c));
    }
    return found;
}

/* ---- what is run ---- */

/* The words themselves for a single command, else a shell with the text printed from them. */
static bool is_plain(const struct px_shell_line *line, const char *plan)
{
    const struct px_shell_line_command *c = &line->commands[0];
    if (line->count != 1 || c->redirects_count || c->count == 0 || px_rules_flags(c) & PX_RULES_BUILTIN || *plan != '\'')
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

static char **words_of(const struct px_shell_line *line, const char *plan)
{
    const char *const shell[] = {"/bin/sh", "-c", plan}, *words[PX_LINE_WORDS];
    if (!is_plain(line, plan))
        return copy_words(shell, PX_COUNT_OF(shell));
    for (size_t i = 0; i < line->commands[0].count; i++)
        words[i] = line->commands[0].words[i].text;
    return copy_words(words, line->commands[0].count);
}

/* The line as written, for the shell that its author most likely means. */
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

static enum px_approval judge_opaque(const struct px_worker *w, const struct px_shell_line *line, const char *text, char ***ret_argv,
                                     struct px_err *e)
{
    char why[160];
    enum px_approval found = px_rules_unknown(w);
    (void)px_fmt(why, sizeof why, "has %s, which the shell rules cannot judge, and the worker has no default", line->opaque);
    if (found != PX_BLOCKED && !(*ret_argv = words_of_opaque(text)))
        return blocked("is too long", e);
    return found == PX_BLOCKED ? blocked(why, e) : found;
}

static enum px_approval judge_parts(const struct px_worker *w, const struct px_shell_line *line, char ***ret_argv, struct px_err *e)
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
    PX_ERR(e);
    struct px_shell_line *line = NULL;
    enum px_approval tool = px_worker_tool(w, "shell", e);
    const char *why = tool == PX_BLOCKED ? NULL : px_shell_line_parse(command, &line);
    if (tool == PX_BLOCKED || why)
        return why ? blocked(why, e) : PX_BLOCKED;
    enum px_approval found = line->opaque       ? judge_opaque(w, line, command, ret_argv, e)
                             : line->count == 0 ? blocked("is empty", e)
                                                : judge_parts(w, line, ret_argv, e);
    px_shell_line_free(line);
    return px_rules_stricter(found, tool);
}

const char *px_approval_name(enum px_approval approval)
{
    static const char *const names[] = {"blocked", "needs_approval", "pre_approved"};
    return names[approval];
}
