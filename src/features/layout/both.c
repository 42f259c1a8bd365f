#include "layout/both.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "layout/locate.h"
#include "layout/state_file.h"

#define NEXT "next.lock"

static int drop(int place)
{
    return unlinkat(place, NEXT, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Checks now what px_layout_replace_file will find later, when the manifest can no longer be restored. */
static bool can_replace(int root, const char *name)
{
    struct stat st;
    return fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno == ENOENT : S_ISREG(st.st_mode);
}

int px_both_write(const struct px_both *both, bool *ret_written)
{
    struct px_err ignored = {0};
    if (!can_replace(both->root, both->lock_file))
        return -ELOOP;
    px_auto_fd int place = px_layout_state_file_place(both->root, &ignored);
    int r = place < 0 ? -ENOTDIR : px_layout_replace_file(place, NEXT, both->lock->data, both->lock->len);
    if (r == 0)
        r = px_layout_replace_file(both->dir, PX_MANIFEST_FILE, both->manifest->data, both->manifest->len);
    *ret_written = r == 0;
    if (r == 0)
        r = px_layout_replace_file(both->root, both->lock_file, both->lock->data, both->lock->len);
    int gone = place < 0 || (r < 0 && *ret_written) ? 0 : drop(place);
    return r < 0 ? r : gone;
}

int px_both_left(int root, size_t max, struct px_buf *out)
{
    px_auto_fd int place = px_layout_state_file_look(root);
    return place < 0 || px_buf_read_file(place, NEXT, max, out) != 0;
}

int px_both_settle(int root, const char *lock_file, size_t max, bool keep)
{
    px_auto_buf struct px_buf text = PX_BUF(max);
    px_auto_fd int place = px_layout_state_file_look(root);
    if (place < 0)
        return 0;
    int r = keep ? px_buf_read_file(place, NEXT, max, &text) : 0;
    if (keep && r == 0)
        r = px_layout_replace_file(root, lock_file, text.data, text.len);
    return r != 0 ? r > 0 ? 0 : r : drop(place);
}
