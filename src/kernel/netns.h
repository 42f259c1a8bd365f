/* kernel/netns.h - the loopback device of a network namespace. Runs in the child: 0 or -errno. */
#pragma once

int px_netns_loopback_up(void);
