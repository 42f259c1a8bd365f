/* Whether a worker may run a command: one plain command, and the first rule that fits it. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "engine/worker.h"
#include "files/files.h"

enum { WORDS_MAX = 1024, TEXT_MAX = 96 << 10 };

void px_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

static const char blanks[] = " \t\r\n";

/* One word from *at on. 0, or why not. */
static const char *take_word(const char **at, struct px_buf *word)
{
    char quote = 0;
    for (; **at && (quote || !strchr(blanks, **at)); (*at)++) {
        char c = **at;
        if (c == quote) {
            quote = 0;
        } else if (!quote && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == '\\' && quote != '\'' && (*at)[1] && (!quote || strchr("\"\\$`", (*at)[1]))) {
            (void)px_buf_putc(word, *++*at);
        } else if (c == '\\' && !quote && !(*at)[1]) {
            return "ends with a backslash";
        } else {
            (void)px_buf_putc(word, c);
        }
    }
    return quote ? "has a quote that is not closed" : NULL;
}

const char *px_worker_split(const char *text, char ***ret_words)
{
    char **words = calloc(WORDS_MAX + 1, sizeof *words);
    const char *why = words ? NULL : "is too long";
    for (size_t n = 0; !why && *(text += strspn(text, blanks));) {
        struct px_buf word = PX_BUF(TEXT_MAX);
        if (n == WORDS_MAX)
            why = "has too many words";
        else
            why = take_word(&text, &word);
        if (!why) {
            (void)px_buf_add(&word, "", 0);
            words[n] = word.data ? px_buf_take(&word) : strdup("");
            why = words[n++] ? NULL : "is too long";
        }
        px_buf_done(&word);
    }
    if (why)
        px_words_free(words);
    else
        *ret_words = words;
    return why;
}

/* What a shell would make more than one plain command of. There is no shell; who writes it expects one. */
static const char *find_meta(const char *text)
{
    static const char *const metas[] = {"|", ">", "<", ";", "&", "`", "$(", "${", NULL};
    for (const char *const *m = metas; *m; m++)
        if (strstr(text, *m))
            return *m;
    return NULL;
}

static bool has_prefix(char *const *argv, char *const *prefix)
{
    for (; *prefix; argv++, prefix++)
        if (!*argv || strcmp(*argv, *prefix) != 0)
            return false;
    return true;
}

/* The argument as a path of the worker's files: relative ones are below the working directory, where the roots lie. One
 * with ".." is not judged: the kernel goes up from where a link leads, the file sandbox from where it lies. */
static bool lies_in(const struct px_worker *w, const struct px_yaml *roots, const char *argument)
{
    struct px_place place;
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
static bool option_lies_in(const struct px_worker *w, const struct px_yaml *roots, const char *option)
{
    const char *value = strchr(option, '=');
    struct px_files_root root;
    if (value && !strchr(value + 1, '=') && !strchr(value, ':') && lies_in(w, roots, value + 1))
        return true;
    for (size_t i = 0; px_files_root_at(w->files, i, &root) == 0; i++)
        if (ends_with(option, root.name))
            return false;
    return !strchr(option, '/') && !ends_with(option, ".");
}

static bool fits(const struct px_worker *w, const struct px_rule *rule, char *const *argv)
{
    if (!has_prefix(argv, rule->prefix))
        return false;
    size_t words = 0;
    while (rule->prefix[words])
        words++;
    bool options = true;        /* until "--" */
    for (size_t i = words; rule->paths && argv[i]; i++) {
        if (options && argv[i][0] == '-' ? !option_lies_in(w, rule->paths, argv[i]) : !lies_in(w, rule->paths, argv[i]))
            return false;
        options = options && strcmp(argv[i], "--") != 0;
    }
    return true;
}

static enum px_approval blocked(char **argv, const char *why, struct px_err *e)
{
    px_words_free(argv);
    (void)px_fail(e, PX_E_BLOCKED, 0, "the command %s", why);
    return PX_BLOCKED;
}

enum px_approval px_worker_judge(const struct px_worker *w, const char *command, char ***ret_argv,
                                 struct px_err *e)
{
    char **argv = NULL, words[64];
    const char *meta = find_meta(command);
    const char *why = meta ? NULL : px_worker_split(command, &argv);
    if (meta)
        (void)px_fmt(words, sizeof words, "has '%s' in it, and there is no shell", meta);
    if (meta || why)
        return blocked(argv, meta ? words : why, e);
    if (!argv[0])
        return blocked(argv, "is empty", e);
    bool approval = w->default_approval, found = w->has_default;
    for (size_t i = 0; i < w->rules_count; i++)
        if (fits(w, &w->rules[i], argv)) {
            approval = w->rules[i].approval;
            found = true;
            break;
        }
    if (!found)
        return blocked(argv, "fits no shell rule of the worker, which has no default", e);
    *ret_argv = argv;
    return approval ? PX_NEEDS_APPROVAL : PX_PRE_APPROVED;
}

const char *px_approval_name(enum px_approval approval)
{
    static const char *const names[] = {"blocked", "needs_approval", "pre_approved"};
    return names[approval];
}
