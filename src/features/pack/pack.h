/* pack/pack.h - the parts of px_project_pack that can be tested alone: names and commands.
 *
 * Owns:    nothing.
 * Mustn't: look at files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct px_worktree;

enum { PX_PACK_NAME_SIZE = 512, PX_PACK_COMMAND_MAX = 4 };

/* "px.local/demo:1.2.3": a valid reference for any project name. version NULL or "": the first digits of the
 * profile. */
void px_pack_name(const char *name, const char *version, const char *profile, char out[PX_PACK_NAME_SIZE]);

/* The default command of an image with these files, from /app: the package of the project's name, the only script of
 * its own packages (layout/own.h; NULL: none), a main.py, or Python. */
struct px_pack_command {
    char module[256];
    const char *words[PX_PACK_COMMAND_MAX];
};
void px_pack_command(const char *name, const struct px_worktree *files, const json_t *own,
                     struct px_pack_command *ret_command);
