/* state/identity.h - attributes of a file that no copy of it has. */
#pragma once

#include <stdint.h>

/* The inode and the time of birth; 0 or -errno. Some file systems get another device number at each mount, so the
 * device is used only where there is no time of birth. */
int px_state_identity(int fd, uint64_t ret[3]);
