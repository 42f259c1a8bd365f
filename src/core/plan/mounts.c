#include "plan/mounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/path.h"
#include "base/text.h"
#include "plan/steps.h"

static const char scratch[] = "/.scratch";

enum { UPPER_BYTES = 1 << 30 }; /* for changes, where no limit is set */

struct px_place {
    const char *target;
    const struct px_tmpfs *tmpfs;       /* NULL: a bind */
    const char *source;                 /* of a bind, with the object that was inspected */
    struct stat st;
    bool writable;
    bool changes;                       /* a bind that shows a copy */
    const struct px_place *around;      /* the nearest mount that it lies in; NULL: the skeleton or the base */
};

/* ---- collecting ---- */

static bool within_any(const char *path, const char *const list[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (px_path_within(path, list[i]))
            return true;
    return false;
}

static int check_target(const char *what, const char *target, bool tmpfs, struct px_err *e)
{
    static const char *const kernel_made[] = {"/proc", "/dev", "/sys"};
    if (!within_any(target, kernel_made, PX_COUNT_OF(kernel_made)) || (tmpfs && px_equal(target, "/dev/shm")))
        return 0;
    px_fail(e, PX_E_BIND, 0, "cannot put %s at '%s': the box makes that directory itself", what, target);
    return px_fix(e, "Choose another place in the box, such as /workspace.");
}

static int refuse_link(const struct px_bind *b, struct px_err *e)
{
    char said[PX_SOURCE_TEXT];
    px_source_tell(b->source, said);
    px_fail(e, PX_E_BIND, 0, "cannot bind to '%.100s': %s", b->target, said);
    px_why(e, "A box that could write there may have made the link; it decides what the next box is shown.");
    return px_fix(e, "Name what it leads to, if that is meant.");
}

/* The error of a pinned bind may be shown to someone who must not learn its name. */
static int check_source(const struct px_bind *b, struct stat *ret_st, struct px_err *e)
{
    const char *source = b->source;
    int r = b->pinned && stat(source, ret_st) < 0 ? -errno : 0;
    if (!b->pinned)
        r = px_source_look(source, ret_st);
    if (b->pinned && (r < 0 || ret_st->st_dev != b->dev || ret_st->st_ino != b->ino)) {
        (void)px_fail(e, PX_E_BIND, r, "what belongs at '%s' was removed or replaced meanwhile", b->target);
        return px_fix(e, "Put it back, and try again.");
    }
    if (r == -ELOOP)
        return refuse_link(b, e);
    if (r < 0)
        return px_fail(e, PX_E_BIND, r, "cannot bind '%s'", source);
    if (S_ISDIR(ret_st->st_mode) || S_ISREG(ret_st->st_mode))
        return 0;
    px_fail(e, PX_E_BIND, 0, "cannot bind '%s': it is a %s", source,
            S_ISSOCK(ret_st->st_mode) ? "socket, and a socket is a door into the host" : "device or a pipe");
    return px_fix(e, "Bind a file or a directory.");
}

static const struct px_place *find_at(const struct px_mounts *places, const char *target)
{
    for (size_t i = 0; i < places->count; i++)
        if (px_equal(places->items[i].target, target))
            return &places->items[i];
    return NULL;
}

static int add_bind(struct px_mounts *places, const struct px_bind *b, struct px_err *e)
{
    struct px_place place = {.target = b->target, .source = b->source, .writable = b->writable};
    if (check_target("a bind", b->target, false, e) < 0 || check_source(b, &place.st, e) < 0)
        return -1;
    if (find_at(places, b->target)) {
        px_fail(e, PX_E_BIND, 0, "two binds want the same place, '%s'", b->target);
        return px_fix(e, "Give each bind a place of its own.");
    }
    if (!b->pinned && !places->way[0])
        px_source_way(b->source, places->way);
    places->items[places->count++] = place;
    return 0;
}

static int add_changes(struct px_mounts *places, const struct px_policy *policy, struct px_err *e)
{
    const struct px_bind bind = {.source = policy->changes, .target = policy->work_target, .writable = true};
    if (add_bind(places, &bind, e) < 0)
        return -1;
    struct px_place *place = &places->items[places->count - 1];
    place->changes = true;
    return S_ISDIR(place->st.st_mode) ? 0 : px_fail(e, PX_E_BIND, 0, "--changes: '%s' is not a directory", policy->changes);
}

/* A bind at the path of a tmpfs replaces it, such as a work directory at the home directory. */
static int add_tmpfs(struct px_mounts *places, const struct px_tmpfs *t, struct px_err *e)
{
    if (check_target("a tmpfs", t->target, true, e) < 0)
        return -1;
    if (!find_at(places, t->target))
        places->items[places->count++] = (struct px_place){.target = t->target, .tmpfs = t, .writable = true};
    return 0;
}

static int compare_targets(const void *a, const void *b)
{
    return strcmp(((const struct px_place *)a)->target, ((const struct px_place *)b)->target);
}

static int collect_mounts(struct px_mounts *places, struct px_err *e)
{
    const struct px_policy *policy = places->policy;
    if (policy->changes && add_changes(places, policy, e) < 0)
        return -1;
    const struct px_bind work = {.source = policy->work_dir, .target = policy->work_target, .writable = true};
    if (policy->work_dir && add_bind(places, &work, e) < 0)
        return -1;
    for (size_t i = 0; i < policy->binds.count; i++)
        if (add_bind(places, &policy->binds.items[i], e) < 0)
            return -1;
    for (size_t i = 0; i < policy->tmpfs.count; i++)
        if (add_tmpfs(places, &policy->tmpfs.items[i], e) < 0)
            return -1;
    qsort(places->items, places->count, sizeof *places->items, compare_targets);
    for (size_t i = 0; i < places->count; i++)
        for (size_t j = 0; j < i; j++)  /* sorted: the last match is the nearest */
            if (px_path_within(places->items[i].target, places->items[j].target))
                places->items[i].around = &places->items[j];
    return 0;
}

/* Whether it lies in a tree that px did not make: the base's, or one of the caller's. */
static bool is_foreign(const struct px_mounts *places, const struct px_place *p)
{
    static const char *const base[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/etc/alternatives"};
    bool host = px_policy_root_dir(places->policy) == NULL;
    return p->around ? !p->around->tmpfs : host && within_any(p->target, base, PX_COUNT_OF(base));
}

static int check_foreign(const struct px_mounts *places, struct px_err *e)
{
    for (size_t i = 0; i < places->count; i++)
        if (places->items[i].changes && is_foreign(places, &places->items[i])) {
            px_fail(e, PX_E_BIND, 0, "cannot show a copy at '%s': it lies in another tree", places->items[i].target);
            return px_fix(e, "Choose a place of its own: --work-target /workspace.");
        }
    return 0;
}

int px_mounts_init(struct px_mounts *places, const struct px_policy *policy, struct px_err *e)
{
    size_t most = policy->binds.count + policy->tmpfs.count + 2;
    *places = (struct px_mounts){.items = calloc(most, sizeof *places->items), .policy = policy};
    if (!places->items)
        return px_no_memory(e);
    if (collect_mounts(places, e) == 0 && check_foreign(places, e) == 0)
        return 0;
    px_mounts_done(places);
    return -1;
}

void px_mounts_done(struct px_mounts *places)
{
    free(places->items);
    *places = (struct px_mounts){0};
}

/* ---- planning ---- */

static void add_mount_point(struct px_plan *plan, const struct px_place *p, unsigned flags)
{
    bool file = !p->tmpfs && !S_ISDIR(p->st.st_mode);
    px_steps_dirs(plan, p->target, !file, flags);
    if (file && !px_steps_has(plan, PX_OP_FILE, p->target))
        px_steps_file(plan, p->target, "");
}

static bool shared_disk(const struct px_mounts *places)
{
    return px_policy_limited(places->policy->disk_bytes);
}

bool px_mounts_below(const struct px_mounts *places, const char *dir)
{
    for (size_t i = 0; i < places->count; i++)
        if (px_path_within(places->items[i].target, dir))
            return true;
    return false;
}

void px_mounts_skeleton(struct px_plan *plan, const struct px_mounts *places)
{
    for (size_t i = 0; i < places->count; i++)
        if (!places->items[i].around && !is_foreign(places, &places->items[i]))
            add_mount_point(plan, &places->items[i], 0);
    if (shared_disk(places))
        px_steps_dir(plan, scratch, 0700, 0);
}

bool px_mounts_shares_upper(const struct px_policy *policy)
{
    return policy->overlay && *policy->overlay == '\0' && px_policy_limited(policy->disk_bytes);
}

uint64_t px_mounts_inodes(uint64_t bytes)
{
    return bytes / 4096 < 1024 ? 1024 : bytes / 4096;
}

static struct px_step *add_tmpfs_step(struct px_plan *plan, const char *target, uint64_t bytes)
{
    struct px_step *s = px_steps_at(plan, PX_OP_TMPFS, target);
    s->num = bytes;
    s->num2 = px_mounts_inodes(bytes);
    s->attr = PX_STEPS_RW;
    return s;
}

/* With --disk all writable directories are parts of one tmpfs, so that the limit holds for their sum. */
static struct px_step *add_scratch_part(struct px_plan *plan, const char *target, size_t index)
{
    char part[64];
    (void)px_fmt(part, sizeof part, "%s/%zu", scratch, index);
    px_steps_dir(plan, part, px_equal(target, px_rootfs_home) ? 0755 : 01777, PX_STEP_OWNED);
    uint32_t src = px_steps_text(plan, part);
    struct px_step *s = px_steps_at(plan, PX_OP_BIND, target);
    s->src = src;
    s->flags = PX_STEP_INSIDE;
    s->attr = PX_STEPS_RW;
    return s;
}

uint64_t px_mounts_upper_bytes(const struct px_policy *policy)
{
    return px_policy_limited(policy->disk_bytes)     ? policy->disk_bytes
           : px_policy_limited(policy->memory_bytes) ? policy->memory_bytes
                                                     : UPPER_BYTES;
}

uint64_t px_mounts_merge_bytes(const struct px_policy *policy)
{
    bool limited = px_policy_limited(policy->disk_bytes) || px_policy_limited(policy->memory_bytes);
    return limited || (policy->changes && !policy->keep) ? px_mounts_upper_bytes(policy) : UINT64_MAX;
}

/* Where the changes go: a directory that keeps them, a part of the one tmpfs that all share, or a tmpfs of its own. */
static void add_upper(struct px_plan *plan, const struct px_mounts *places, size_t index)
{
    const struct px_policy *policy = places->policy;
    char part[64] = "";
    bool shared = shared_disk(places) && !policy->keep;
    if (shared) {
        (void)px_fmt(part, sizeof part, "%s/%zu", scratch, index);
        px_steps_dir(plan, part, 0755, PX_STEP_OWNED);
    }
    uint32_t src = policy->keep ? px_steps_text(plan, policy->keep) : px_steps_text(plan, part);
    struct px_step *s = px_steps_at(plan, PX_OP_UPPER, places->items[index].target);
    s->src = src;
    s->attr = PX_STEPS_RW;
    s->flags = shared ? PX_STEP_INSIDE : 0;
    if (!src) {
        s->num = px_mounts_upper_bytes(policy);
        s->num2 = px_mounts_inodes(s->num);
    }
    plan->writable_binds = plan->writable_binds || policy->keep;
    px_plan_has(plan, "changes=%s", policy->keep ? "kept" : "memory");
}

/* A layer that cannot be inspected now has changed; the child will report it. */
static void add_layer(struct px_plan *plan, const char *path)
{
    struct stat st = {0};
    (void)stat(path, &st);
    uint32_t src = px_steps_host_path(plan, path);
    struct px_step *s = px_steps_add(plan, PX_OP_LAYER);
    s->src = src;
    s->attr = PX_STEPS_RW;
    s->num = st.st_dev;
    s->num2 = st.st_ino;
}

static void add_changed(struct px_plan *plan, const struct px_mounts *places, size_t index)
{
    const struct px_place *p = &places->items[index];
    px_steps_add(plan, PX_OP_FILE_IDS)->flags = PX_STEP_OWNED;
    for (size_t i = 0; i < places->policy->layers_count; i++)
        add_layer(plan, places->policy->layers[i]);
    add_upper(plan, places, index);
    uint32_t src = px_steps_host_path(plan, p->source);
    struct px_step *s = px_steps_at(plan, PX_OP_CHANGES, p->target);
    s->src = src;
    s->attr = PX_STEPS_RW;
    s->num = p->st.st_dev;
    s->num2 = p->st.st_ino;
    s->flags = places->policy->keep ? 0 : PX_STEP_VOLATILE;
    px_steps_add(plan, PX_OP_FILE_IDS);
    plan->binds = plan->changes = true;
}

static void add_place(struct px_plan *plan, const struct px_mounts *places, size_t index)
{
    const struct px_place *p = &places->items[index];
    struct px_step *s;

    /* inside a tmpfs: made once that is mounted, and owned by the payload */
    if (p->around && p->around->tmpfs)
        add_mount_point(plan, p, PX_STEP_OWNED);
    if (p->changes) {
        add_changed(plan, places, index);
        return;
    }
    if (!p->tmpfs) {
        s = px_steps_bind(plan, p->source, p->target, p->writable ? PX_STEPS_RW : PX_STEPS_RO, &p->st);
        s->flags |= PX_STEP_CALLER;
        plan->binds = true;
        plan->writable_binds = plan->writable_binds || p->writable;
    } else if (shared_disk(places)) {
        s = add_scratch_part(plan, p->target, index);
    } else {
        s = add_tmpfs_step(plan, p->target, p->tmpfs->bytes);
        s->flags |= px_equal(p->target, px_rootfs_home) ? PX_STEP_OWNED : 0;
    }
    if (p->tmpfs && p->tmpfs->noexec)
        s->attr |= PX_MOUNT_NOEXEC;
    if (is_foreign(places, p))
        s->flags |= PX_STEP_FOREIGN;
}

void px_mounts_mounts(struct px_plan *plan, const struct px_mounts *places)
{
    bool upper = px_mounts_shares_upper(places->policy);
    (void)px_fmt(plan->hint, sizeof plan->hint, "%s", places->way);
    if (shared_disk(places))
        add_tmpfs_step(plan, scratch, places->policy->disk_bytes)->flags |= upper ? PX_STEP_UPPER : 0;
    for (size_t i = 0; i < places->count; i++)
        add_place(plan, places, i);
    if (shared_disk(places))
        px_steps_at(plan, PX_OP_DETACH, scratch)->flags = places->policy->overlay ? PX_STEP_UPPER : 0;
}
