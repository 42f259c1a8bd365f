/* layout/state_file.h - .px/state.json: which environment was made last, from which lock, with which Python.
 *
 * Why:     shows whether an environment still fits without building it.
 * Owns:    the texts of struct px_made_env, until px_layout_state_file_env_done.
 * Mustn't: be trusted without checking what it names; or be written by a command that only reads. */
#pragma once

#include <stdbool.h>

struct px_err;

struct px_made_env {
    char *id, *lock_id, *platform, *site_packages, *env_path, *profile_oid;
    char *python_path, *python_version;
    char *runtime_path, *runtime_version, *runtime_platform;
};
void px_layout_state_file_env_done(struct px_made_env *env);

/* dir: the project's root. 0; 1: there is none; -1: PX201 invalid_state. */
int px_layout_state_file_read(int dir, bool workspace, struct px_made_env *ret_env, struct px_err *e);
/* Writes it atomically; creates .px with a .gitignore, and links .px/envs/current to env_path. */
int px_layout_state_file_write(int dir, bool workspace, const struct px_made_env *env, struct px_err *e);
/* Opens .px, creates it if missing; a link there is PX007. */
int px_layout_state_file_place(int dir, struct px_err *e);
int px_layout_state_file_look(int dir);                /* opens an existing .px; a link counts as missing. -errno */
/* Replaces a file of the project atomically, after the new bytes are fsynced. Keeps the mode of the old file.
 * -errno. */
int px_layout_replace_file(int dir, const char *name, const void *data, unsigned long size);
