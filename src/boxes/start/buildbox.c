#include "start/buildbox.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <px/px.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "net/rule.h"
#include "policy/policy.h"
#include "transfer/index.h"

enum { TICK_MSEC = 200, SAID_MAX = 360 };

/* ---- its policy ---- */

struct setting {
    const char *field, *value;
};

static int make(struct px_buildbox *box, const char *doing, const struct setting *settings, struct px_err *e)
{
    *box = (struct px_buildbox){.doing = doing, .out_fd = -EBADF};
    if (px_policy_new("default", &box->policy, e) < 0)
        return -1;
    for (; settings->field; settings++)
        if (px_policy_set(box->policy, settings->field, settings->value, e) < 0)
            return -1;
    return 0;
}

/* Limits against a tool out of control, far above what packages need. Limits that the host cannot enforce do not
 * stop a build. */
static const struct setting fetch_settings[] = {
    {"limits", "try"}, {"memory", "4g"},        {"disk", "unlimited"},
    {"timeout", "1h"}, {"output-limit", "16m"}, {NULL, NULL},
};
static const struct setting setup_settings[] = {
    {"build", "true"}, {"persist", "true"}, {"net", "none"}, {"limits", "try"}, {"memory", "4g"}, {"disk", "unlimited"},
    {"timeout", "1h"}, {"output-limit", "16m"}, {"hostname", "px"}, {NULL, NULL},
};

/* The files by which the host resolves names, those that exist. */
static const char *const host_files[] = {"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf",
                                         "/etc/apt"};
static const char *const certificates[] = {"/etc/ssl", "/etc/ca-certificates", "/etc/pki"};

static int show_present(struct px_buildbox *box, const char *const *files, size_t count, struct px_err *e)
{
    for (size_t i = 0; i < count; i++)
        if (access(files[i], R_OK) == 0 && px_buildbox_show(box, files[i], files[i], false, e) < 0)
            return -1;
    return 0;
}

int px_buildbox_fetch(struct px_buildbox *box, const char *doing, struct px_err *e)
{
    static const char *const passed[] = {"http_proxy", "https_proxy", "ftp_proxy", "no_proxy"};
    if (make(box, doing, fetch_settings, e) < 0 || px_policy_set(box->policy, "net", "host", e) < 0 ||
        show_present(box, host_files, PX_COUNT_OF(host_files), e) < 0 ||
        show_present(box, certificates, PX_COUNT_OF(certificates), e) < 0)
        return -1;
    for (size_t i = 0; i < PX_COUNT_OF(passed); i++)
        if (getenv(passed[i]) && px_buildbox_env(box, passed[i], getenv(passed[i]), e) < 0)
            return -1;
    return 0;
}

/* The user's own index, through px-net; with PX_INDEX_NET=host the user chooses the host's network. */
static int open_index(struct px_buildbox *box, const struct px_index *index, struct px_err *e)
{
    if (index->whole)
        return px_policy_set(box->policy, "net", "host", e) < 0
                   ? -1
                   : show_present(box, host_files, PX_COUNT_OF(host_files), e);
    if (index->count == 0)
        return px_policy_set(box->policy, "net", "none", e);
    box->own = calloc(1, sizeof *box->own);
    if (!box->own)
        return px_no_memory(e);
    if (px_index_net(index, box->own) < 0)
        return px_fail(e, PX_E_LIMIT, E2BIG, "the settings of uv and pip name more than %d ports of this machine",
                       PX_NET_OWN_PORTS_MAX);
    box->policy->own_net = box->own;
    return px_policy_set(box->policy, "net", "outbound", e);
}

int px_buildbox_index(struct px_buildbox *box, const char *doing, struct px_err *e)
{
    px_auto_free struct px_index *index = NULL;
    if (make(box, doing, fetch_settings, e) < 0 || px_index_load(&index, e) < 0 || open_index(box, index, e) < 0)
        return -1;
    return show_present(box, certificates, PX_COUNT_OF(certificates), e);
}

int px_buildbox_setup(struct px_buildbox *box, const char *doing, const char *root, const char *changes,
                       struct px_err *e)
{
    if (make(box, doing, setup_settings, e) < 0)
        return -1;
    if (px_policy_set(box->policy, "rootfs", root, e) < 0)
        return -1;
    return px_policy_set(box->policy, "overlay", changes, e);
}

int px_buildbox_here(struct px_buildbox *box, const char *doing, struct px_err *e)
{
    return make(box, doing, fetch_settings, e) < 0 ? -1 : px_policy_set(box->policy, "net", "none", e);
}

void px_buildbox_done(struct px_buildbox *box)
{
    px_policy_free(box->policy);
    box->policy = NULL;
    free(box->own);
    box->own = NULL;
}

int px_buildbox_show(struct px_buildbox *box, const char *source, const char *target, bool writable, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(2 * PATH_MAX);
    px_buf_printf(&text, "/:%s:%s", target, writable ? "rw" : "ro");
    char *name = strdup(source);
    if (!name || text.err < 0 || px_policy_set(box->policy, "bind", px_buf_text(&text), e) < 0) {
        free(name);
        return px_fail(e, PX_E_LIMIT, text.err < 0 ? text.err : ENOMEM, "cannot show '%s' to a box", source);
    }
    struct px_bind_list *binds = &box->policy->binds;   /* the syntax of --bind cannot express a colon */
    free(binds->items[binds->count - 1].source);
    binds->items[binds->count - 1].source = name;
    return 0;
}

int px_buildbox_env(struct px_buildbox *box, const char *name, const char *value, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 16);
    px_buf_printf(&text, "%s=%s", name, value);
    if (text.err < 0)
        return px_fail(e, PX_E_LIMIT, text.err, "the variable %s is too long", name);
    return px_policy_set(box->policy, "env", px_buf_text(&text), e);
}

int px_buildbox_path(int fd, const char *below, char *out, size_t size, struct px_err *e)
{
    char link[64], path[PATH_MAX];
    (void)px_fmt(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || path[0] != '/')
        return px_fail(e, PX_E_IO, n < 0 ? errno : ENOENT, "a directory of the store has no name");
    path[n] = '\0';
    if (px_fmt(out, size, "%s%s%s", path, *below ? "/" : "", below) < 0)
        return px_fail(e, PX_E_IO, ENAMETOOLONG, "the name of a directory of the store is too long");
    return 0;
}

/* ---- its output ---- */

static const char *next_line(const char *line)
{
    size_t n = strcspn(line, "\n");
    return line + n + (line[n] == '\n');
}

/* The first line with one of the marks of apt and dpkg, by their weight; the last line if there is none. */
static const char *telling_line(const char *text)
{
    static const char *const marks[] = {"No space left on device", "E: ", "dpkg: error", "error:", "Error"};
    const char *last = text;
    for (size_t m = 0; m < PX_COUNT_OF(marks); m++)
        for (const char *line = text; *line; line = next_line(line)) {
            const char *found = strstr(line, marks[m]);
            if (found && found < line + strcspn(line, "\n"))
                return line;
        }
    for (const char *line = text; *line; line = next_line(line))
        if (*line != '\n')
            last = line;
    return last;
}

/* What a script itself wrote is before dpkg's line about it, and dpkg's own explanation is indented after it. */
static void quote_lines(const char *text, struct px_buf *out)
{
    const char *line = telling_line(text), *before = line;
    for (const char *at = text; at < line; at = next_line(at))
        before = at;
    const char *end = next_line(line);
    end = *end == ' ' ? next_line(end) : end;
    for (const char *at = px_starts_with(line, "dpkg: error") ? before : line; at < end; at = next_line(at)) {
        size_t n = strcspn(at, "\n"), room = out->len < SAID_MAX ? SAID_MAX - out->len : 0;
        px_buf_puts(out, out->len > 0 && *at != ' ' ? " / " : "");
        (void)px_buf_quote(out, at, n < room ? n : room);
    }
}

int px_buildbox_fix(struct px_err *e, const char *otherwise)
{
    static const struct {
        const char *said, *fix;
    } causes[] = {
        {"No space left", "Check the free space of PX_HOME; `px sandbox gc` frees what is not needed."},
        {"Disk quota exceeded", "Check the quota of PX_HOME; `px sandbox gc` frees what is not needed."},
        {"Unable to locate package", "Check the name: the base's distribution has no package of this name."},
        {"has no installation candidate", "Check the name: the base's distribution has no package of this name."},
    };
    for (size_t i = 0; i < PX_COUNT_OF(causes); i++)
        if (strstr(e->why, causes[i].said))
            return px_fix(e, "%s", causes[i].fix);
    return px_fix(e, "%s", otherwise);
}

/* The host that its code tried and may not reach comes first: its own message is only a reset connection. */
static void quote_refusal(const struct px_buildbox *box, const struct px_result *r, struct px_buf *out)
{
    if (!box->own || r->denials_count == 0 || !r->denials[0].target)
        return;
    px_buf_puts(out, "It may not reach ");
    (void)px_buf_quote(out, r->denials[0].target, strnlen(r->denials[0].target, 100));
    px_buf_puts(out, ", which is not an index of yours; if it is one, name it: PX_INDEX_HOSTS=NAME:PORT. ");
}

static int failed(const struct px_buildbox *box, const struct px_result *r, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(8 * SAID_MAX);
    const char *text = r->err.len > 0 ? r->err.data : r->out.data;
    quote_refusal(box, r, &words);
    px_auto_buf struct px_buf lines = PX_BUF(8 * SAID_MAX);
    if (box->said && text)
        box->said(box->said_user, text, r->err.len > 0 ? r->err.len : r->out.len);
    if (box->quote)
        box->quote(text ? text : "", &lines);
    if (lines.len == 0)
        quote_lines(text ? text : "", &lines);
    px_buf_puts(&words, px_buf_text(&lines));
    (void)px_fail(e, PX_E_BUILD, 0, "%s failed", box->doing);
    if (r->status != PX_STATUS_NONZERO)
        (void)px_why(e, "Its box ended with %s (%s). %s", px_status_name(r->status), r->reason ? r->reason : "no reason",
                     px_buf_text(&words));
    else if (words.len > 0)
        (void)px_why_lines(e, px_buf_text(&words));
    else
        (void)px_why(e, "It ended with status %d and said nothing.", r->exit_code);
    return px_buildbox_fix(e, "Correct what the line above names, then run the command again.");
}

/* ---- running ---- */

static int wait_for(struct px_buildbox *box, struct px_box *running, struct px_err *e)
{
    struct pollfd ready = {.fd = px_box_fd(running), .events = POLLIN};
    for (;;) {
        int n = poll(&ready, 1, box->tick ? TICK_MSEC : -1);
        if (n < 0 && errno != EINTR)
            return px_fail(e, PX_E_IO, errno, "cannot wait for a box");
        int alive = n > 0 ? px_box_step(running, e) : 1;
        if (alive <= 0)
            return alive;
        if (box->tick)
            box->tick(box->user);
    }
}

static int judge(struct px_buildbox *box, struct px_box *running, struct px_err *e)
{
    if (wait_for(box, running, e) < 0)
        return -1;
    const struct px_result *r = px_box_result(running);
    if (r->status != PX_STATUS_OK)
        return failed(box, r, e);
    if (box->out && (r->out_truncated || px_buf_add(box->out, r->out.data, r->out.len) < 0))
        return px_fail(e, PX_E_BUILD, E2BIG, "%s gave too long an answer", box->doing);
    return 0;
}

int px_buildbox_run(struct px_buildbox *box, const char *const argv[], struct px_err *e)
{
    struct px_io io = {.use_out = box->out_fd >= 0, .out = box->out_fd};
    struct px_box *running = NULL;
    if (px_box_start(box->policy, argv, &io, &running, e) < 0)
        return -1;
    int r = judge(box, running, e);
    px_box_free(running);
    return r;
}
