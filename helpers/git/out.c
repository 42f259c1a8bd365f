/* What px-git writes down, and the words for what the library refused. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "helpers/git/git.h"

int git_flush(struct look *l, struct px_err *e)
{
    int r = px_write_full(GIT_OUT, l->out, l->held);
    l->held = 0;
    if (r == 0)
        return 0;
    if (r != -EFBIG)
        return px_fail(e, PX_E_IO, r, "cannot write the list of the project's files");
    px_fail(e, PX_E_LIMIT, 0, "the project has more files than an image of it may have");
    return px_why(e, "Their names alone take more than %d MiB.", PX_GIT_BYTES_MAX >> 20);
}

int git_record(struct look *l, enum px_git_record kind, const char *text, struct px_err *e)
{
    size_t n = strlen(text);
    if (n + 2 > sizeof l->out)
        return px_fail(e, PX_E_LIMIT, 0, "a name in the project is too long");
    if (l->held + n + 2 > sizeof l->out && git_flush(l, e) < 0)
        return -1;
    l->out[l->held] = (char)kind;
    memcpy(l->out + l->held + 1, text, n + 1);
    l->held += n + 2;
    return 0;
}

int git_refused(const char *doing, struct px_err *e)
{
    const git_error *said = git_error_last();
    px_fail(e, PX_E_BUILD, 0, "cannot %s", doing);
    (void)px_detail(e, "reason", "git_unreadable");
    (void)px_why(e, "libgit2 says: %.300s.", said && said->message ? said->message : "nothing");
    return px_fix(e, "See what `git status` says there.\n"
                     "What lies outside of the repository is not read. Objects that it borrows come in by `git repack -a -d`; then remove "
                     ".git/objects/info/alternates.");
}
