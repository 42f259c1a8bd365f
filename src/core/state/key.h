/* state/key.h - PX_HOME/key: 32 random bytes by which px recognises what it has written itself.
 *
 * Why:     a mark that anybody could compute would prove nothing.
 * Owns:    the file. It is made once, and never changed.
 * Mustn't: use a key that another user could have read or written. */
#pragma once

#include "base/mac.h"

struct px_err;

/* home NULL: PX_HOME, else HOME/.px. Makes the key, and PX_HOME, if they do not exist. */
int px_state_key(const char *home, uint8_t ret[PX_MAC_SIZE], struct px_err *e);
