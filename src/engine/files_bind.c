/* The roots of a file sandbox in a box: the same directories, for the shell tool beside the file tools. */
#include <px/files.h>

#include "base/err.h"
#include "base/text.h"
#include "files/files.h"

/* By the descriptor, not by its name: what the file tools hold open is what the box gets, whoever renames things meanwhile. */
int px_files_bind(const struct px_files *files, const char *target, struct px_policy *policy, struct px_err *e)
{
    char word[8192];
    for (size_t i = 0; i < files->count; i++) {
        const struct px_root *root = &files->roots[i];
        if (px_fmt(word, sizeof word, "/proc/self/fd/%d:%s/%s:%s", root->fd, target, root->name,
                   root->writable ? "rw" : "ro") < 0)
            return px_fail(e, PX_E_LIMIT, 0, "the name of root '%s' is too long for a bind", root->name);
        if (px_policy_set(policy, "bind", word, e) < 0)
            return -1;
    }
    return 0;
}
