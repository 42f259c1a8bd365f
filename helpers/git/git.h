/* helpers/git/git.h - px-git: which files of a directory belong to a project, and whether they are as they were committed.
 *
 * Why:     a repository comes from anywhere, and reading one means parsers for its objects, index, packs, settings and
 *          patterns. libgit2 has them and starts no program, whatever the repository's settings say; here it can read that
 *          directory and nothing else, and write nothing but its answer.
 * Owns:    the repository it opened.
 * Mustn't: obey settings of the user or the machine, or leave out a file without saying so. */
#pragma once

#include <git2.h>
#include <git2/sys/repository.h>
#include <stdbool.h>
#include <stddef.h>

#include "transfer/git_wire.h"

enum { GIT_SOCKET = 3, GIT_TOP = 4, GIT_OUT = 5, GIT_ELSEWHERE = 6 };

struct look {
    const char *top;            /* absolute: where the repository's files begin, or the project itself */
    const char *sub;            /* the project in it: "" or "a/b" */
    bool repository, status;
    git_repository *repo;
    git_index *index;           /* NULL: no repository */
    size_t rules;               /* bytes of .ignore files so far */
    size_t held;                /* in `out` */
    char out[64 << 10];
};

/* confine.c: gives up everything else, for good. 0 or -errno. */
int git_confine(bool elsewhere);

/* out.c: what is written down; git_flush before the end. -1. */
int git_record(struct look *l, enum px_git_record kind, const char *text, struct px_err *e);
int git_flush(struct look *l, struct px_err *e);
/* The library's own words about what it just refused. */
int git_refused(const char *doing, struct px_err *e);

/* walk.c: all files that are not ignored. */
int git_walk(struct look *l, struct px_err *e);
/* What never belongs to a project: caches, environments, what was built; by the name of a part of the path. */
bool git_is_skipped(const char *name);
/* The same for what is left out unless git tracks it. top: it lies in the project's own directory. */
bool git_is_made(const char *name, bool top);

/* rules.c: the lines of the file .ignore of a directory ("" or "a/b/", from the top) count from now on. */
int git_rules(struct look *l, int dir, const char *path, struct px_err *e);

/* status.c: the commit, and every line of what is not as it was committed. */
int git_head(struct look *l, char commit[PX_GIT_COMMIT_SIZE], struct px_err *e);
int git_dirty(struct look *l, struct px_err *e);
