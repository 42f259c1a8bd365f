/* Starts px-outside, the server outside of the boxes, and reads its output. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "net/outside.h"
#include "verify/verify.h"

enum { READY_MSEC = 60000 };

static void no_outside(struct px_outside *o, const char *why, const char *fix)
{
    (void)px_fmt(o->why, sizeof o->why, "there are no servers to reach: %.200s. %.160s", why, fix);
}

/* Fetches by curl or Python, without proxies. */
static const char get_script[] =
    "if command -v curl >/dev/null; then exec curl -sS --noproxy '*' -m 40 --cacert /outside/signer.pem \"$1\"; fi\n"
    "exec python3 -c '\n"
    "import ssl, sys, urllib.request as request\n"
    "secure = request.HTTPSHandler(context=ssl.create_default_context(cafile=\"/outside/signer.pem\"))\n"
    "page = request.build_opener(request.ProxyHandler({}), secure).open(sys.argv[1], timeout=40)\n"
    "print(page.read().decode(), end=\"\")\n"
    "' \"$1\"\n";

static int put_files(const struct px_fixtures *f, const char *pem)
{
    int r = px_fixtures_put_dir(f->top_fd, "outside");
    if (r >= 0)
        r = px_fixtures_put(f->top_fd, "outside/get", get_script, 0755);
    return r < 0 ? r : px_fixtures_put(f->top_fd, "outside/signer.pem", pem, 0644);
}

static int fail(struct px_outside *o, const char *step, int error)
{
    char why[160];
    (void)px_fmt(why, sizeof why, "px-outside could not %.64s: %.80s", step, px_errno_text(error));
    no_outside(o, why, "px doctor says what this kernel and this user lack.");
    return -1;
}

static int hear(struct px_outside *o, struct px_outside_ready *ready, const struct px_fixtures *f)
{
    char confined;
    px_auto_fd int network = -EBADF;
    long n = px_helper_receive(&o->helper, ready, sizeof *ready, &network, READY_MSEC);
    if (n != sizeof *ready || (ready->error == 0 && network < 0))
        return fail(o, "say what it has made", n < 0 ? (int)n : -EPROTO);
    ready->step[sizeof ready->step - 1] = ready->pem[sizeof ready->pem - 1] = '\0';
    if (ready->error != 0)
        return fail(o, ready->step, ready->error);
    n = px_helper_receive(&o->helper, &confined, 1, NULL, READY_MSEC);
    if (n != 1)
        return fail(o, "confine itself", n < 0 ? (int)n : -EPROTO);
    int r = put_files(f, ready->pem);
    network = px_fd_above_stdio(px_fd_take(&network));
    if (r < 0 || network < 0)
        return fail(o, "have its files made", r < 0 ? r : network);
    o->network = px_fd_take(&network);
    return 0;
}

void px_outside_start(struct px_outside *o, const struct px_fixtures *f)
{
    static const char *const no_arguments[] = {NULL};
    px_auto_free struct px_outside_ready *ready = calloc(1, sizeof *ready);
    struct px_err e = {0};
    *o = (struct px_outside)PX_OUTSIDE_NONE;
    if (!ready)
        no_outside(o, "memory is short", "");
    else if (px_helper_start("px-outside", no_arguments, NULL, 0, &o->helper, &e) < 0)
        no_outside(o, e.what, e.fix);
    else if (hear(o, ready, f) < 0)
        px_outside_end(o);
}

void px_outside_end(struct px_outside *o)
{
    (void)px_helper_done(&o->helper);
    if (o->network > 0)
        (void)px_fd_close(o->network);
    o->network = 0;
}
