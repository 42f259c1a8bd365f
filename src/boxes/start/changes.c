/* start/changes.c - px exec --changes: reports what the command did to a directory, and merges it if asked.
 *
 *
 * The box works on an overlay over the directory (plan/mounts.c). When the box has ended, its upper directory comes
 * here, and changes/changes.c compares and merges it. Changes that are kept have a note with the directory they
 * belong to, and the time since when others may not have changed it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "box/supervise.h"
#include "changes/changes.h"
#include "plan/mounts.h"
#include "start/resolve.h"

enum { DIFF_MAX = 64 << 20, NOTE_MAX = 8192 };

struct changes {
    struct px_after after; /* first: the box only knows this */
    int lower;
    struct timespec since;
    bool apply;
    char *kept; /* where they are kept; NULL: they are not */
    char *note;
    uint64_t diff_max, merge_max;
    struct px_changes list;
    struct px_change *told;
    struct px_buf diff;
};

static void done(struct px_after *after)
{
    struct changes *c = (struct changes *)(void *)after;
    (void)px_fd_close(c->lower);
    px_changes_done(&c->list);
    px_buf_done(&c->diff);
    free(c->told);
    free(c->kept);
    free(c->note);
    free(c);
}

/* ---- before ---- */

/* "kept\nSECONDS NANOSECONDS\nDIRECTORY\n": the note of an earlier run. 1 if there is one. */
static int read_note(struct changes *c, const char *dir, struct px_err *e)
{
    px_auto_free char *text = calloc(1, NOTE_MAX);
    px_auto_fd int kept = open(c->kept, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = !text || kept < 0 ? -1 : px_read_file(kept, PX_UPPER_MARK, text, NOTE_MAX);
    if (n <= 0 || !px_starts_with(text, PX_UPPER_KEPT))
        return 0;
    uint64_t sec, nsec;
    char *line = text + strlen(PX_UPPER_KEPT), *blank = strchr(line, ' '), *end = strchr(line, '\n');
    char *of = end ? end + 1 : NULL, *stop = of ? strrchr(of, '\n') : NULL;
    if (!blank || !stop || blank > end)
        return px_fail(e, PX_E_OVERLAY, 0, "'%s' does not say what its changes belong to", c->kept);
    *blank = *end = *stop = '\0';
    if (px_parse_u64(line, INT64_MAX, &sec) < 0 || px_parse_u64(blank + 1, 999999999, &nsec) < 0)
        return px_fail(e, PX_E_OVERLAY, 0, "'%s' does not say what its changes belong to", c->kept);
    if (!px_equal(of, dir)) {
        px_fail(e, PX_E_OVERLAY, 0, "the changes kept in '%s' belong to another directory", c->kept);
        px_why(e, "They were made to '%s'.", of);
        return px_fix(e, "Choose another name for --keep, or work on that directory.");
    }
    c->since = (struct timespec){.tv_sec = (time_t)sec, .tv_nsec = (long)nsec};
    return 1;
}

static int make_note(struct changes *c, const char *dir, struct px_err *e)
{
    px_auto_buf struct px_buf note = PX_BUF(NOTE_MAX / 2);
    px_buf_printf(&note, "%lld %ld\n%s\n", (long long)c->since.tv_sec, c->since.tv_nsec, dir);
    c->after.note = c->note = px_buf_take(&note);
    return c->note ? 0 : px_no_memory(e);
}

/* PX_HOME and PX_HOME/changes; box/upper.c makes the directory itself. */
static int make_home(const char *kept, struct px_err *e)
{
    char path[PATH_MAX];
    if (px_fmt(path, sizeof path, "%s", kept) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "--keep: the path is too long");
    char *slash[2];
    for (int i = 0; i < 2; i++)
        *(slash[i] = strrchr(path, '/')) = '\0'; /* PX_HOME/changes/NAME has both */
    for (int i = 1; i >= 0; i--) {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return px_fail(e, PX_E_OVERLAY, errno, "cannot make '%s'", path);
        *slash[i] = '/';
    }
    return 0;
}

static int prepare(struct changes *c, const struct px_policy *policy, struct px_err *e)
{
    px_auto_free char *dir = realpath(policy->changes, NULL);
    c->lower = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    if (c->lower < 0)
        return px_fail(e, PX_E_BIND, errno, "cannot work on '%s'", policy->changes);
    if (clock_gettime(CLOCK_REALTIME, &c->since) < 0)
        return px_fail(e, PX_E_INTERNAL, errno, "there is no clock");
    if (!policy->keep)
        return 0;
    c->kept = strdup(policy->keep);
    if (!c->kept)
        return px_no_memory(e);
    if (make_home(c->kept, e) < 0 || read_note(c, dir, e) < 0)
        return -1;
    return make_note(c, dir, e);
}

/* ---- after ---- */

static int tell(struct changes *c, struct px_result *r, struct px_err *e)
{
    c->told = calloc(c->list.count + 1, sizeof *c->told);
    if (!c->told)
        return px_no_memory(e);
    for (size_t i = 0; i < c->list.count; i++) {
        const struct px_changes_item *item = &c->list.items[i];
        if (item->listed)
            c->told[r->changes_count++] =
                (struct px_change){item->path, px_changes_word(item->kind), px_changes_is_link(item)};
    }
    r->changes = c->told;
    c->diff = PX_BUF(c->diff_max);
    int err = px_changes_diff(&c->list, PX_DIFF_GIT, PX_DIFF_BUDGET, &c->diff, &r->diff_truncated);
    if (err < 0)
        return px_fail(e, PX_E_CHANGES, err, "the changes cannot be shown");
    r->diff = (struct px_bytes){px_buf_text(&c->diff), c->diff.len};
    return 0;
}

static void keep(struct px_box *box, struct changes *c)
{
    for (int i = 0; c->kept && i < PX_UPPERS; i++)
        if (box->upper[i].ours && box->upper[i].changes)
            box->upper[i].keep = true;
}

/* Never apply the changes of a command that a limit killed. */
static bool ended_by_itself(const struct px_result *r)
{
    return r->status == PX_STATUS_OK || r->status == PX_STATUS_NONZERO;
}

static int compare_and_merge(struct px_box *box, struct changes *c, struct px_err *e)
{
    struct px_result *r = &box->result;
    r->has_changes = true;
    int err = box->changes < 0 ? -ESTALE : px_changes_read(box->changes, c->lower, &c->list);
    if (err < 0) {
        px_fail(e, PX_E_CHANGES, err, "what the command did cannot be read");
        return err == -E2BIG
                   ? px_why(e, "There are more than %d changed files, or their names are too long.", PX_CHANGES_MAX)
                   : -1;
    }
    if (tell(c, r, e) < 0)
        return -1;
    if (c->apply && !ended_by_itself(r)) {
        if (r->hints_count < PX_COUNT_OF(r->hints))
            r->hints[r->hints_count++] = "nothing was applied, as the command did not end by itself";
        keep(box, c);
    } else if (c->apply) {
        if (px_changes_weigh(&c->list, c->merge_max, c->lower, e) < 0 || px_changes_apply(&c->list, &c->since, e) < 0)
            return -1;
        r->changes_applied = true;
    }
    return 0;
}

static int ended(struct px_box *box, struct px_err *e)
{
    struct changes *c = (struct changes *)(void *)box->after;
    int r = compare_and_merge(box, c, e);
    if (r < 0)
        keep(box, c); /* what could not be merged is not lost */
    for (int i = 0; i < PX_UPPERS; i++)
        if (box->upper[i].changes && box->upper[i].keep)
            box->result.changes_kept = c->kept;
    return r;
}

int px_start_changes(const struct px_policy *policy, struct px_after **ret_after, struct px_err *e)
{
    struct changes *c = calloc(1, sizeof *c);
    if (!c)
        return px_no_memory(e);
    *c = (struct changes){.after = {.ended = ended, .done = done}, .lower = -EBADF, .apply = policy->apply};
    c->diff_max = policy->output_bytes == 0                                                    ? PX_OUTPUT_DEFAULT
                  : px_policy_limited(policy->output_bytes) && policy->output_bytes < DIFF_MAX ? policy->output_bytes
                                                                                               : DIFF_MAX;
    c->merge_max = px_mounts_merge_bytes(policy);
    if (prepare(c, policy, e) < 0) {
        done(&c->after);
        return -1;
    }
    *ret_after = &c->after;
    return 0;
}
