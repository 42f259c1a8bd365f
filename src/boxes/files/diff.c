/* Two texts of the file sandbox, or a file and what might become of it, as a unified diff. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "changes/unified.h"
#include "files/files.h"

enum { DIFF_MAX = 64 << 20 };

static int write_diff(const char *path, const struct px_diff_side *before, const struct px_diff_side *after,
                      char **ret_diff, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(DIFF_MAX);
    if (px_unified_write(path, before, after, PX_DIFF_PLAIN, &out) < 0)
        return px_files_error_memory(e);
    *ret_diff = out.data ? px_buf_take(&out) : strdup("");
    return *ret_diff ? 0 : px_files_error_memory(e);
}

int px_files_diff(const struct px_files *files, const char *path, const char *to, const char *text,
                  size_t len, char **ret_diff, struct px_err *e)
{
    PX_ERR(e);
    struct px_files_text old = {0}, new = {0};
    struct px_window window;
    int r = px_files_read(files, path, 0, UINT64_MAX, &old, e);
    if (r >= 0 && to)
        r = px_files_read(files, to, 0, UINT64_MAX, &new, e);
    else if (r >= 0 && px_files_window_find(text, len, 0, 0, &window) < 0)
        r = px_files_error_not_text("compare", path, e);
    if (r >= 0) {
        struct px_diff_side before = {old.data, old.len, 0100644};
        struct px_diff_side after = {to ? new.data : text, to ? new.len : len, 0100644};
        r = write_diff(path, &before, &after, ret_diff, e);
    }
    px_files_text_done(&old);
    px_files_text_done(&new);
    return r < 0 ? -1 : 0;
}
