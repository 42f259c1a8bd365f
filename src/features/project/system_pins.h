/* project/system_pins.h - what a project's lock pins of the system: the packages of its base and of its capabilities.
 *
 * Why:     the archives of distributions move; a commit has to give the same sandbox on another day and another machine.
 * Owns:    nothing.
 * Mustn't: write a lock of another tool, or any lock for a command that is frozen. */
#pragma once

#include <stdbool.h>

struct px_err;
struct px_snapshot;
struct px_pinned;
struct px_project;

/* What holds for the project's base and this machine's processor; empty if nothing does. PX121: it names what is no
 * package. */
int px_system_pins_read(const struct px_project *p, const struct px_snapshot *look, struct px_pinned *ret_pinned,
                   struct px_err *e);
/* Writes it into px.lock, if that says something else. */
int px_system_pins_write(const struct px_project *p, const struct px_snapshot *look, const struct px_pinned *pinned,
                    bool *ret_wrote, struct px_err *e);
/* The same for what the sandbox of the project is on this machine, as far as that is known: nothing is fetched or
 * built. */
int px_system_pins_settle(struct px_project *p, const struct px_snapshot *look, bool *ret_wrote, struct px_err *e);
