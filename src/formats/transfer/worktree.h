/* transfer/worktree.h - which files of a directory belong to a project, and how they differ from what was committed; the
 * work is done by px-git, a confined helper.
 *
 * Why:     an image contains the files of the project: those that git ignores are left out, and uncommitted changes
 *          are reported.
 * Owns:    what struct px_worktree holds, until px_worktree_done.
 * Mustn't: parse anything of a repository in this process but the one line of a .git file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "transfer/git_wire.h"

struct px_err;

struct px_worktree_paths {
    const char **items;         /* in the text of the worktree */
    size_t count;
};
struct px_worktree {
    bool repository;            /* the project is in one, and not ignored by it */
    char commit[PX_GIT_COMMIT_SIZE];            /* "" if there is none */
    struct px_worktree_paths files;      /* files and links, from the project's directory, by their bytes, none twice */
    struct px_worktree_paths dirty;      /* " M a/b", "?? c" */
    struct px_worktree_paths specials;   /* sockets, pipes, devices */
    char *text;
    size_t text_size;
};

/* dir: the project's directory, absolute and without links. With `status` the files are compared with what was
 * committed. PX903 with details.reason git_unreadable if the repository cannot be read, or its git directory does not
 * refer back to this directory. */
int px_worktree_look(const char *dir, bool status, struct px_worktree *ret_worktree, struct px_err *e);
void px_worktree_done(struct px_worktree *worktree);

/* What px-git wrote: takes the text, whose last byte is a NUL, and gives the lists. PX_E_INTERNAL if px-git would not
 * write this. */
int px_worktree_read(char *text, size_t size, struct px_worktree *ret_worktree, struct px_err *e);
/* Removes a file, or everything below a directory, from the files, and from the changes if it was never committed.
 * path: from the project's directory. */
void px_worktree_leave_out(struct px_worktree *worktree, const char *path);
/* The files as the list that px_layer_pack takes: "a\0b/c\0", in memory. >= 0 or -errno. */
int px_worktree_list(const struct px_worktree *worktree);
/* Whether this file is one of them. */
bool px_worktree_has(const struct px_worktree *worktree, const char *path);

/* transfer/worktree_git.c: where the repository of a directory is. */
struct px_git_place {
    char top[4096];             /* the directory with .git in it, or the project's own */
    char sub[4096];             /* from there to the project; "" if it is the same */
    char elsewhere[4096];       /* the git directory, if it is not in top; "" */
    bool repository;
};
int px_worktree_git_find(const char *dir, struct px_git_place *ret_place, struct px_err *e);
