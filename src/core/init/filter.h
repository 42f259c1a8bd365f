/* init/filter.h - what confines px-init and each command of a container, beyond namespaces: seccomp filters and an
 * AppArmor profile.
 *
 * Why:     they come in one file, are loaded at different times, and one of them may have a listener
 *          (init/denials.h).
 * Owns:    the file, until it is reused for notes; the programs.
 * Mustn't: use anything but raw system calls; make one that the filter refuses once that is loaded. */
#pragma once

struct px_init_started;

/* Loads what the file holds for px-init; afterwards the file is used for notes. 0 or -errno; `ready` says how far it
 * came. */
int px_filter_init(int fd, struct px_init_started *ready);
/* In the child that becomes a command: sets its AppArmor profile, and loads its own filter if there is one. */
int px_filter_confine(void);
int px_filter_command(void);
/* Receives the listener of that filter, once the child has loaded it. */
void px_filter_listener(int row);
