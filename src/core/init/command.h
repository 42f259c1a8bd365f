/* init/command.h - one command of a container, from its request to its report. Part of px-init: raw system calls
 * only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A bit for each of the first 32 directories that has no block or no inode left. */
uint32_t px_command_full(char **directories);
/* Takes one request from the control socket; 0, or -1 when the supervisor has hung up. */
int px_command_take(int control);
/* Adds the reply sockets of the running commands, at most PX_INIT_COMMANDS_MAX; returns how many. NULL: only counts. */
struct pollfd;
int px_command_watch(struct pollfd *fds);
/* Kills the command whose requester has hung up: nobody enforces its timeout or reads its output any more. A
 * requester that closes only its sending end (POLLRDHUP) asks for the same kill, before any request in the control
 * socket is read. */
void px_command_left(const struct pollfd *news);
/* Reports the end of a process to its requester, if there is one. */
struct rusage;
void px_command_ended(int pid, int wait_status, const struct rusage *used);
/* Reaps commands only, and of those only the ones that end by themselves. */
void px_command_reap(void);
/* The row of the running command with that pid, which is also its session id; -1: none. */
int px_command_row(int pid);
/* The same, for a command that is being killed. */
bool px_command_ends(int pid);
/* Sends one message with one descriptor (-1: none) without blocking. 0 or -errno. */
int px_command_send_fd(int socket, const void *data, size_t size, int fd);
