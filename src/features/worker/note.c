/* Why a command of the shell tool failed, for whoever asked for it. */
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

/* What the engine stopped; nothing that the command writes can add to it. */
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

static void add_writable(const struct px_files *files, struct px_buf *out)
{
    struct px_files_root root;
    size_t n = 0;
    for (size_t i = 0; px_files_root_at(files, i, &root) == 0; i++) {
        if (!root.writable)
            continue;
        px_buf_puts(out, n++ ? ", " : "Note: This worker's writable paths are: ");
        px_buf_quote(out, root.name, strlen(root.name));
    }
    px_buf_puts(out, n ? "\n" : "Note: This worker has no writable paths.\n");
}

int px_shell_note(const struct px_files *files, bool network, const struct px_result *result, char **ret_text,
                  struct px_err *e)
{
    static const char *const no_write[] = {"Permission denied", "Read-only file system",
                                           "Operation not permitted", NULL};
    static const char *const no_net[] = {
        "Network is unreachable",      "Could not resolve host",
        "Name or service not known",   "Temporary failure in name resolution",
        "Temporary failure resolving", NULL};
    px_auto_buf struct px_buf out = PX_BUF(NOTE_MAX);
    *ret_text = NULL;
    if (result->exit_code == 0)
        return 0;
    add_denials(result, &out);
    if (says_any(&result->err, no_write) || says_any(&result->out, no_write))
        add_writable(files, &out);
    if (!network && (says_any(&result->err, no_net) || says_any(&result->out, no_net)))
        px_buf_puts(&out, "Note: Network access is disabled for this worker.\n");
    if (out.err < 0)
        return px_fail(e, PX_E_MEMORY, 0, "px ran out of memory");
    *ret_text = out.len ? px_buf_take(&out) : NULL;
    return 0;
}
