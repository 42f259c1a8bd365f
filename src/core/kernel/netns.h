/* kernel/netns.h - the network namespace of a box: its loopback, routes and rules, and sockets of it for somebody outside.
 *
 * Why:     whoever has made the namespace can give it what no other may, as long as it has not given up its privileges.
 * Owns:    nothing: every socket is closed or handed on.
 * Mustn't: build messages: it runs in the child, which has none of its own memory. 0 or -errno. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int px_netns_loopback_up(void);
/* Lets every program of the namespace bind ports below 1024, which belong to this namespace alone. Where /proc/sys cannot be
 * written they stay closed, as they are outside. */
void px_netns_low_ports(int proc_sys);
/* Sends messages of netlink as they are, and returns what the kernel said to the first that it refused. */
int px_netns_netlink(int protocol, const void *messages, size_t length);
/* A socket that listens (TCP), or is bound (UDP), on the loopback address of its family, or (port 0) neither. A descriptor. */
int px_netns_socket(int family, int type, uint16_t port);
/* A socket to which the log of the packet filter comes, set up by these messages. A descriptor. */
int px_netns_log(const void *messages, size_t length);
