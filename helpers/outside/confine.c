/* What px-outside keeps: its sockets. It can make none, and has no file. */
#include <errno.h>

#include "base/text.h"
#include "helpers/confine.h"
#include "helpers/outside/outside.h"

enum { MEMORY_BYTES = 256 << 20, FILES = WEB_MAX + 64 };

// clang-format off
static const struct sock_filter filter[] = {
    CONFINE_HEAD CONFINE_COMMON
    CONFINE_ALLOW(SYS_poll) CONFINE_ALLOW(SYS_ppoll) CONFINE_ALLOW(SYS_accept4) CONFINE_ALLOW(SYS_recvfrom)
    CONFINE_ALLOW(SYS_shutdown) CONFINE_ALLOW(SYS_gettimeofday) CONFINE_ALLOW(SYS_time)
    CONFINE_TAIL};
// clang-format on

int outside_confine(void)
{
    return confine(&(struct confine){
        .filter = filter, .filter_length = PX_COUNT_OF(filter), .memory_bytes = MEMORY_BYTES, .files = FILES});
}
