/* catalog/catalog.c - opening and closing. */
#include <stdlib.h>

#include <px/sandbox.h>

#include "base/err.h"
#include "catalog/catalog.h"

static void on_aside(void *user, const char *line)
{
    const struct px_sandbox *s = user;
    if (s->progress.tell)
        s->progress.tell(s->progress.user, line, 0, 0);
}

int px_sandbox_open(const char *home, struct px_sandbox **ret_sandbox, struct px_err *e)
{
    PX_ERR(e);
    struct px_sandbox *s = calloc(1, sizeof *s);
    if (!s)
        return px_no_memory(e);
    if (px_store_open(home, &s->store, e) < 0) {
        free(s);
        return -1;
    }
    px_store_on_aside(s->store, (struct px_store_aside){on_aside, s});
    *ret_sandbox = s;
    return 0;
}

void px_sandbox_close(struct px_sandbox *sandbox)
{
    if (!sandbox)
        return;
    px_store_close(sandbox->store);
    free(sandbox);
}

void px_sandbox_progress(struct px_sandbox *sandbox,
                         void (*tell)(void *user, const char *what, uint64_t done, uint64_t total), void *user)
{
    sandbox->progress = (struct px_progress_to){.tell = tell, .user = user};
}
