/* Why a command of the shell tool failed, for the model. */
#include <px/worker.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

enum { NOTE_MAX = 16 << 10 };

static bool says(const struct px_bytes *text, const char *words)
{
    return text->data && memmem(text->data, text->len, words, strlen(words));
}

static bool says_any(const struct px_bytes *text, const char *const *words)
{
    for (; *words; words++)
        if (says(text, *words))
            return true;
    return false;
}

static bool told_any(const struct px_result *r, const char *const *words)
{
    return says_any(&r->err, words) || says_any(&r->out, words);
}

/* What px stopped; the command's output cannot change it. */
static void add_denials(const struct px_result *r, struct px_buf *out)
{
    for (size_t i = 0; i < r->denials_count && i < PX_DENIALS_MAX; i++) {
        const struct px_denial *d = &r->denials[i];
        px_buf_printf(out, "Denied by the sandbox: %s%s%s (%s)", d->op, d->target ? " " : "",
                      d->target ? d->target : "", d->rule);
        if (d->grant)
            px_buf_printf(out, "; %s would allow it", d->grant);
        px_buf_putc(out, '\n');
    }
    for (size_t i = 0; i < r->limits_hit_count && i < PX_LIMITS_MAX; i++)
        px_buf_printf(out, "Limit reached: %s\n", r->limits_hit[i].limit);
}

/* Lists the writable roots; if the command mentioned a git directory (`git`), also that it is read-only. */
static void add_writable(const struct px_files *files, bool git, struct px_buf *out)
{
    struct px_files_root root;
    size_t n = 0;
    bool protected = false;
    for (size_t i = 0; px_files_root_at(files, i, &root) == 0; i++) {
        if (!root.writable)
            continue;
        px_buf_puts(out, n++ ? ", " : "Note: This worker's writable paths are: ");
        px_buf_quote(out, root.name, strlen(root.name));
        protected = protected || !root.git_writable;
    }
    px_buf_puts(out, n ? "\n" : "Note: This worker has no writable paths.\n");
    if (git && protected)
        px_buf_puts(out, "Note: Git directories (.git) in them are read-only unless git_writable (px mcp: --git-writable) "
                         "allows writing.\n");
}

int px_shell_note(const struct px_files *files, bool network, const struct px_result *result, char **ret_text,
                  struct px_err *e)
{
    PX_ERR(e);
    static const char *const no_write[] = {"Permission denied", "Read-only file system",
                                           "Operation not permitted", NULL};
    static const char *const git[] = {".git/", ".git'", NULL};
    static const char *const no_net[] = {
        "Network is unreachable",      "Could not resolve host",
        "Name or service not known",   "Temporary failure in name resolution",
        "Temporary failure resolving", "network is unreachable",
        "Couldn't connect to server",  "Could not connect to server",
        "ENETUNREACH",                 "EAI_AGAIN",
        NULL};
    px_auto_buf struct px_buf out = PX_BUF(NOTE_MAX);
    *ret_text = NULL;
    if (result->exit_code == 0)
        return 0;
    add_denials(result, &out);
    if (told_any(result, no_write))
        add_writable(files, told_any(result, git), &out);
    if (!network && told_any(result, no_net))
        px_buf_puts(&out, "Note: Network access is disabled for this worker.\n");
    if (out.err < 0)
        return px_no_memory(e);
    *ret_text = out.len ? px_buf_take(&out) : NULL;
    return 0;
}
