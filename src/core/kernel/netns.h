/* kernel/netns.h - the network namespace of a box: its loopback, routes and rules, and its sockets for the network
 * driver.
 *
 * Why:     the process that made the namespace can set it up as long as it has not dropped its privileges.
 * Owns:    nothing: every socket is closed or passed on.
 * Mustn't: build messages: it runs in the child, which has no memory of its own. 0 or -errno. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int px_netns_loopback_up(void);
/* Lets every program of the namespace bind ports below 1024, which are this namespace's own. Where /proc/sys cannot
 * be written, they stay closed, as outside. */
void px_netns_low_ports(int proc_sys);
/* Sends netlink messages unchanged, and returns the kernel's error for the first that it refused. */
int px_netns_netlink(int protocol, const void *messages, size_t length);
/* A socket that listens (TCP), or is bound (UDP), on the loopback address of its family, or (port 0) neither. A descriptor. */
int px_netns_socket(int family, int type, uint16_t port);
/* A socket that receives the log of the packet filter, set up by these messages. Returns a descriptor. */
int px_netns_log(const void *messages, size_t length);
