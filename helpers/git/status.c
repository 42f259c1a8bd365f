/* The commit that is checked out, and what differs from it. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "helpers/git/git.h"

int git_head(struct look *l, char commit[PX_GIT_COMMIT_SIZE], struct px_err *e)
{
    git_oid id;
    int r = git_reference_name_to_id(&id, l->repo, "HEAD");
    commit[0] = '\0';
    if (r == GIT_ENOTFOUND || r == GIT_EUNBORNBRANCH) {
        git_error_clear();
        return 0;
    }
    if (r < 0)
        return git_refused("find the commit that is checked out", e);
    (void)git_oid_tostr(commit, PX_GIT_COMMIT_SIZE, &id);
    return 0;
}

struct letter {
    unsigned flag;
    char letter;
};

static char letter_of(const struct letter *rows, size_t count, unsigned status)
{
    for (size_t i = 0; i < count; i++)
        if (status & rows[i].flag)
            return rows[i].letter;
    return ' ';
}

static void letters(unsigned status, char out[3])
{
    static const struct letter index[] = {{GIT_STATUS_INDEX_NEW, 'A'},
                                          {GIT_STATUS_INDEX_MODIFIED, 'M'},
                                          {GIT_STATUS_INDEX_DELETED, 'D'},
                                          {GIT_STATUS_INDEX_RENAMED, 'R'},
                                          {GIT_STATUS_INDEX_TYPECHANGE, 'T'}};
    static const struct letter files[] = {{GIT_STATUS_WT_NEW, '?'},
                                          {GIT_STATUS_WT_DELETED, 'D'},
                                          {GIT_STATUS_WT_TYPECHANGE, 'T'},
                                          {GIT_STATUS_WT_RENAMED, 'R'},
                                          {GIT_STATUS_WT_MODIFIED | GIT_STATUS_WT_UNREADABLE, 'M'}};
    out[0] = letter_of(index, PX_COUNT_OF(index), status);
    out[1] = letter_of(files, PX_COUNT_OF(files), status);
    if (status & GIT_STATUS_CONFLICTED)
        out[0] = out[1] = 'U';
    else if (out[1] == '?' && out[0] == ' ')
        out[0] = '?';
    out[2] = '\0';
}

/* What is not packed anyhow makes no project dirty as long as git does not know it. */
static bool is_unpacked(const char *path)
{
    char part[NAME_MAX + 1];
    bool top = true;
    for (size_t n; *path; path += n + (path[n] == '/'), top = false) {
        n = strcspn(path, "/");
        if (px_fmt(part, sizeof part, "%.*s", (int)n, path) >= 0 && (git_is_skipped(part) || git_is_made(part, top)))
            return true;
    }
    return false;
}

static int put_line(struct look *l, const git_status_entry *entry, struct px_err *e)
{
    const git_diff_delta *delta = entry->index_to_workdir ? entry->index_to_workdir : entry->head_to_index;
    const char *path = delta ? delta->new_file.path ? delta->new_file.path : delta->old_file.path : NULL;
    char line[5000], xy[3];
    size_t n = strlen(l->sub);
    if (!path || strlen(path) <= n)
        return 0;
    path += n ? n + 1 : 0;
    letters(entry->status, xy);
    if (px_equal(xy, "??") && is_unpacked(path))
        return 0;
    (void)snprintf(line, sizeof line, "%s %s", xy, path);       /* for people: its end may be missing */
    return git_record(l, PX_GIT_DIRTY, line, e);
}

int git_dirty(struct look *l, struct px_err *e)
{
    char *paths[] = {(char *)(uintptr_t)l->sub};
    git_status_options how = GIT_STATUS_OPTIONS_INIT;
    git_status_list *list = NULL;
    how.flags = GIT_STATUS_OPT_INCLUDE_UNTRACKED | GIT_STATUS_OPT_RECURSE_UNTRACKED_DIRS |
                GIT_STATUS_OPT_DISABLE_PATHSPEC_MATCH;
    if (*l->sub)
        how.pathspec = (git_strarray){.strings = paths, .count = 1};
    if (git_status_list_new(&list, l->repo, &how) < 0)
        return git_refused("compare the project with its last commit", e);
    int r = 0;
    size_t count = git_status_list_entrycount(list);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = put_line(l, git_status_byindex(list, i), e);
    git_status_list_free(list);
    return r;
}
