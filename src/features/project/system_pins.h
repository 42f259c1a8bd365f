/* project/system_pins.h - what a project's lock pins of the system: the packages of its base and of its capabilities.
 *
 * Why:     the archives of distributions change; a commit must give the same sandbox later and on other machines.
 * Owns:    nothing.
 * Mustn't: write a lock of another tool, or any lock for a command that is frozen. */
#pragma once

#include <stdbool.h>

struct px_err;
struct px_snapshot;
struct px_pinned;
struct px_project;

/* The pins for the project's base and this machine's architecture; empty if there are none. PX121: an invalid
 * package. */
int px_system_pins_read(const struct px_project *p, const struct px_snapshot *look, struct px_pinned *ret_pinned,
                   struct px_err *e);
/* Writes it into px.lock if it differs. */
int px_system_pins_write(const struct px_project *p, const struct px_snapshot *look, const struct px_pinned *pinned,
                    bool *ret_wrote, struct px_err *e);
/* The same for the project's sandbox on this machine, as far as it is known; fetches and builds nothing. */
int px_system_pins_settle(struct px_project *p, const struct px_snapshot *look, bool *ret_wrote, struct px_err *e);
