/* The shell tool of a worker, and the description for other tools. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "policy/policy.h"
#include "worker/worker.h"

enum { TIMEOUT_S = 30, TIMEOUT_MAX_S = 300, ANSWER_MAX = 8 << 20 };

static bool suffix_fits(const struct px_yaml *list, const char *path)
{
    const char *dot = strrchr(path, '.');
    for (const struct px_yaml *n = list ? list->first : NULL; n; n = n->next)
        if (dot && strcasecmp(dot, n->text) == 0)
            return true;
    return list == NULL;
}

int px_worker_attach(const struct px_worker *w, const char *path, int *ret_fd, uint64_t *ret_bytes,
                     struct px_err *e)
{
    PX_ERR(e);
    struct stat st;
    if (!suffix_fits(w->attachment_suffixes, path))
        return px_fail(e, PX_E_ATTACHMENT, 0, "'%.200s' has a suffix that must not be attached", path);
    px_auto_fd int fd = -EBADF;
    if (px_files_open(w->files, path, &fd, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return px_fail(e, PX_E_FILE_IO, -errno, "'%.200s' cannot be looked at", path);
    *ret_bytes = (uint64_t)st.st_size;
    *ret_fd = px_fd_take(&fd);
    return 0;
}

int px_worker_child(const struct px_worker *w, const char *name, char **ret_path, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf path = PX_BUF(8192);
    const struct px_yaml *n = w->children ? w->children->first : NULL;
    while (n && strcmp(n->text, name) != 0)
        n = n->next;
    if (!n || strchr(name, '/')) {
        (void)px_fail(e, PX_E_WORKER, 0, "%s does not name '%.100s' among its workers", w->name, name);
        return px_fix(
            e, "Add it to the list `workers` of the caller's file; its own file is NAME.yaml beside it.");
    }
    px_buf_printf(&path, "%s/%s.yaml", w->place, name);
    *ret_path = px_buf_take(&path);
    return *ret_path ? 0 : px_no_memory(e);
}

/* ---- a box ---- */

/* The child gets the file that was opened in the caller's sandbox; files/bind.c describes how it is named. */
static int bind_attachment(struct px_policy *policy, int fd, const char *path, struct px_err *e)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char word[8192], link[64];
    if (strchr(name, ':'))
        return px_fail(e, PX_E_ATTACHMENT, 0, "'%.200s' has a colon in its name", path);
    (void)px_fmt(link, sizeof link, "/proc/self/fd/%d", fd);
    if (geteuid() != 0) {
        char real[4096];
        ssize_t n = readlink(link, real, sizeof real - 1);
        if (n < 0 || memchr(real, ':', (size_t)n))
            return px_fail(e, PX_E_ATTACHMENT, 0, "'%.200s' cannot be had in a box", path);
        real[n] = '\0';
        if (px_fmt(word, sizeof word, "%s:/attachments/%s:ro", real, name) < 0)
            return px_fail(e, PX_E_LIMIT, 0, "the name of '%.200s' is too long", path);
    } else if (px_fmt(word, sizeof word, "%s:/attachments/%s:ro", link, name) < 0) {
        return px_fail(e, PX_E_LIMIT, 0, "the name of '%.200s' is too long", path);
    }
    if (px_policy_set(policy, "bind", word, e) < 0)
        return -1;
    int r = px_policy_pin(policy, fd);
    return r < 0 ? px_fail(e, PX_E_ATTACHMENT, r, "'%.200s' cannot be had in a box", path) : 0;
}

struct open_files {
    int fds[PX_WORKER_ATTACHMENTS];
    size_t count;
};

/* All of them are checked before anything starts. */
static int take_attachments(const struct px_worker_run *how, struct open_files *o, struct px_policy *policy,
                            struct px_err *e)
{
    const struct px_worker *from = how->from;
    uint64_t bytes, total = 0;
    for (size_t i = 0; how->attachments && how->attachments[i]; i++) {
        if (i >= from->max_attachments || i >= PX_WORKER_ATTACHMENTS)
            return px_fail(e, PX_E_ATTACHMENT, 0, "there are more than %zu attachments", i);
        if (px_worker_attach(from, how->attachments[i], &o->fds[i], &bytes, e) < 0)
            return -1;
        o->count++;
        total += bytes;
        if (total > from->max_attachment_bytes)
            return px_fail(e, PX_E_ATTACHMENT, 0, "the attachments have more than %llu bytes together",
                           (unsigned long long)from->max_attachment_bytes);
        if (bind_attachment(policy, o->fds[i], how->attachments[i], e) < 0)
            return -1;
    }
    return 0;
}

/* A setting for each item of a list, or for each NAME=VALUE of a map. */
static int set_each(struct px_policy *policy, const char *field, const struct px_yaml *list, struct px_err *e)
{
    for (const struct px_yaml *n = list ? list->first : NULL; n; n = n->next) {
        px_auto_buf struct px_buf word = PX_BUF(PX_YAML_BYTES);
        px_buf_printf(&word, "%s%s%s", n->key ? n->key : "", n->key ? "=" : "", n->text);
        if (word.err < 0)
            return px_no_memory(e);
        if (px_policy_set(policy, field, px_buf_text(&word), e) < 0)
            return -1;
    }
    return 0;
}

static int set_box(const struct px_worker *w, struct px_policy *policy, struct px_err *e)
{
    if ((w->memory && px_policy_set(policy, "memory", w->memory, e) < 0) ||
        (w->box_base && px_policy_set(policy, "base", w->box_base, e) < 0))
        return -1;
    if (set_each(policy, "allow-net", w->allow_net, e) < 0 || set_each(policy, "deny-net", w->deny_net, e) < 0)
        return -1;
    return set_each(policy, "env", w->env, e);
}

/* The available network: without an OS sandbox the host's, which cannot be limited to names. */
static const char *network_of(const struct px_worker *w, bool full)
{
    if (!w->network)
        return "none";
    return full || w->allow_net || w->deny_net ? "outbound" : "host";
}

/* Without an OS sandbox paths are the host's: the working directory is the one that the roots are relative to. */
static int set_fields(const struct px_worker *w, unsigned timeout_s, bool full, struct px_policy *policy,
                      struct px_err *e)
{
    char timeout[16];
    (void)px_fmt(timeout, sizeof timeout, "%us", timeout_s);
    const char *const rows[][2] = {{"workdir", full ? "/workspace" : w->base},
                                   {"timeout", timeout},
                                   {"output-limit", "25k"},     /* bytes of the beginning, and as many of the end */
                                   {"net", network_of(w, full)},
                                   {"require", full ? "full" : "landlock"}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_policy_set(policy, rows[i][0], rows[i][1], e) < 0)
            return -1;
    if (set_box(w, policy, e) < 0)
        return -1;
    return px_files_bind(w->files, full ? "/workspace" : NULL, policy, e);
}

static int make_policy(const struct px_worker *w, unsigned timeout_s, bool full, struct px_policy **ret_policy, struct px_err *e)
{
    if (px_policy_new("worker", ret_policy, e) < 0)
        return -1;
    if (set_fields(w, timeout_s, full, *ret_policy, e) == 0)
        return 0;
    px_policy_free(*ret_policy);
    *ret_policy = NULL;
    return -1;
}

int px_worker_policy(const struct px_worker *w, struct px_policy **ret_policy, struct px_err *e)
{
    PX_ERR(e);
    return make_policy(w, TIMEOUT_S, true, ret_policy, e);
}

static int start(const struct px_worker *w, const char *const argv[], const struct px_worker_run *how, bool full,
                 struct px_box **ret_box, struct px_err *e)
{
    struct open_files o = {0};
    struct px_policy *policy = NULL;
    unsigned timeout_s = how->timeout_s ? how->timeout_s : TIMEOUT_S;
    if (timeout_s > TIMEOUT_MAX_S)
        timeout_s = TIMEOUT_MAX_S;
    int r = make_policy(w, timeout_s, full, &policy, e);
    r = r < 0 ? r : take_attachments(how, &o, policy, e);
    r = r < 0 ? r : px_box_start(policy, argv, NULL, ret_box, e);
    for (size_t i = 0; i < o.count; i++)
        (void)close(o.fds[i]);
    px_policy_free(policy);
    return r;
}

/* Host codes of data/errors.def: the machine cannot isolate. Root in a container may not bind anything, not even an
 * open file. */
static bool is_missing(const struct px_err *e)
{
    return (e->code >= PX_E_USERNS && e->code <= PX_E_TIER) || (e->code == PX_E_BIND && e->sys == EPERM && geteuid() == 0);
}

static int tell_cause(const struct px_err *cause, struct px_err *e)
{
    return px_why(e, "%s", cause->code == PX_E_BIND ? "This root may mount nothing: it lacks CAP_SYS_ADMIN, as in a container." : cause->what);
}

static int no_weaker_box(const struct px_err *cause, struct px_err *e)
{
    (void)px_fail(e, PX_E_OS_SANDBOX, 0, "OS sandbox unavailable, and no weaker one can be had here");
    (void)tell_cause(cause, e);
    return px_fix(e, "Run px as an ordinary user: the host's root gets no weaker sandbox.\n"
                     "Run `px doctor` to see what is missing.");
}

/* Without a sandbox an attachment cannot be shown at its own path. */
int px_worker_start(const struct px_worker *w, const char *const argv[], const struct px_worker_run *how,
                    struct px_box **ret_box, struct px_err *e)
{
    PX_ERR(e);
    struct px_err cause = {0};
    int r = start(w, argv, how, true, ret_box, &cause);
    bool weaker = r < 0 && is_missing(&cause);
    bool attached = how->attachments && how->attachments[0];
    if (weaker && !w->require_os_sandbox && !attached) {
        struct px_err again = {0};
        r = start(w, argv, how, false, ret_box, &again);
        if (r < 0 && is_missing(&again) && geteuid() == 0)
            return no_weaker_box(&cause, e);
        if (r < 0 && e)
            *e = again;
        return r;
    }
    if (r < 0 && e)
        *e = cause;
    if (!weaker)
        return r;
    (void)px_fail(e, PX_E_OS_SANDBOX, 0, w->require_os_sandbox ? "OS sandbox required but unavailable"
                                                                : "attachments need the OS sandbox, which is unavailable");
    return tell_cause(&cause, e);
}

/* The names of the specification; px's own values are additional members. */
int px_worker_result(const struct px_worker *w, const struct px_box *box, unsigned timeout_s, char **ret_json,
                     struct px_err *e)
{
    PX_ERR(e);
    const struct px_result *r = px_box_result(box);
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX), err = PX_BUF(ANSWER_MAX);
    px_auto_free char *note = NULL, *all = NULL, *said = NULL, *errors = NULL;
    struct px_json j = {.out = &out};
    size_t said_len, errors_len;
    if (px_shell_note(w->files, w->network, r, &note, e) < 0 || px_box_json(box, false, &all, e) < 0 ||
        px_box_output(box, 1, &said, &said_len, e) < 0 || px_box_output(box, 2, &errors, &errors_len, e) < 0)
        return -1;
    px_buf_add(&err, errors, errors_len);
    if (r->timed_out)
        px_buf_printf(&err, "Command timed out after %u seconds", timeout_s ? timeout_s : TIMEOUT_S);
    if (note)
        px_buf_printf(&err, "\n\n%s", note);
    px_json_object(&j, NULL);
    px_json_bool(&j, "ok", r->exit_code == 0);
    px_json_bytes(&j, "stdout", said, said_len);
    px_json_bytes(&j, "stderr", err.data, err.len);
    px_json_int(&j, "exit_code", r->timed_out ? -1 : r->exit_code);
    px_json_bool(&j, "truncated", r->out_truncated || r->err_truncated);
    px_json_text(&j, "note", note);
    px_json_value(&j, "result", all);
    px_json_end(&j);
    px_buf_putc(&out, '\n');
    *ret_json = err.err < 0 ? NULL : px_buf_take(&out);
    return *ret_json ? 0 : px_no_memory(e);
}
