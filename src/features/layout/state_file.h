/* layout/state_file.h - .px/state.json: which environment was made last, from which lock, with which Python.
 *
 * Why:     whether an environment still fits is known without building it again.
 * Owns:    the texts of struct px_made_env, until px_layout_state_file_env_done.
 * Mustn't: be believed without a look at what it names; nor be written by a command that only reads. */
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
/* Whole, or not at all; makes .px, with a .gitignore that keeps it out of the history, and lets .px/envs/current
 * lead to env_path. */
int px_layout_state_file_write(int dir, bool workspace, const struct px_made_env *env, struct px_err *e);
/* .px, open, and made if it is not there; a link in its place is PX007. */
int px_layout_state_file_place(int dir, struct px_err *e);
int px_layout_state_file_look(int dir);                /* the same where it is there; a link in its place is none. -errno */
/* A file beside others of the project: what was there stays until all of the new bytes are on the disk. Keeps the
 * mode of a file that
 * is replaced. -errno. */
int px_layout_replace_file(int dir, const char *name, const void *data, unsigned long size);
