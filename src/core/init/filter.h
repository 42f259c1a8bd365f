/* init/filter.h - what confines px-init and each command of a box that stays, beyond its namespaces: filters and a profile.
 *
 * Why:     they come in one file, are loaded at different times, and one of them may have a listener (init/denials.h).
 * Owns:    the file, until it is taken for notes; the programs.
 * Mustn't: use anything but raw calls; make one that the filter refuses once that is loaded. */
#pragma once

struct px_init_started;

/* Loads what the file holds for px-init, and takes it for notes from then on; 0 or -errno, and how far it came. */
int px_filter_init(int fd, struct px_init_started *ready);
/* In the child that becomes a command: its AppArmor profile, and its own filter if there is one. */
int px_filter_confine(void);
int px_filter_command(void);
/* Takes the listener of that filter, once the child has loaded it. */
void px_filter_listener(int row);
