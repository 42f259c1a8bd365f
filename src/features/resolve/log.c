/* The log of uv's and pip's output. */
#include <errno.h>

#include "base/err.h"
#include "base/fd.h"
#include "layout/state_file.h"
#include "resolve/messages.h"
#include "state/state.h"

int px_resolve_log(int dir, const struct px_buf *said)
{
    struct px_err ignored = {0};
    px_auto_fd int place = px_layout_state_file_place(dir, &ignored);
    px_auto_fd int logs = place < 0 ? -EBADF : px_state_part(place, "logs", true);
    return logs < 0 ? logs : px_state_write(logs, "sync.log", said->data, said->len);
}
