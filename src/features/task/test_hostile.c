/* task/test_hostile.c - a box that can reach WORK_ROOT/.px writes arbitrary files there: links, FIFOs, hard links,
 * records. px must then change nothing outside the work root, never block, and never crash. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "harness/test.h"
#include "kernel/tree.h"
#include "task/workspace.h"

enum { ROUNDS = 300, MSEC_MAX = 2000, MUTATIONS = 3, PATHS = 64, RECORD = 8 };

#define LAYER "0123456789abcdef0123456789abcdef"

static struct {
    int top;
    char path[256];
    uint64_t random;
    struct px_buf *seen;
    char (*paths)[PATH_MAX];
    size_t count;
} t;

/* splitmix64 */
static unsigned pick(size_t below)
{
    uint64_t z = t.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ z >> 31) % below);
}

static void put(const char *path, const void *data, size_t len)
{
    px_auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)!write(fd, data, len);
}

/* ---- what must stay as it is ---- */

static int describe(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    char text[64] = "";
    (void)type;
    (void)ftw;
    if (S_ISREG(st->st_mode))
        (void)px_read_file(AT_FDCWD, path, text, sizeof text);
    px_buf_printf(t.seen, "%s %o %u %llu %s\n", path, st->st_mode, (unsigned)st->st_uid,
                  (unsigned long long)st->st_ino, text);
    return 0;
}

static void look_outside(struct px_buf *out)
{
    char path[300];
    t.seen = out;
    (void)px_fmt(path, sizeof path, "%s/outside", t.path);
    ASSERT_EQ(nftw(path, describe, 8, FTW_PHYS), 0);
    struct stat st = {0};
    if (fstatat(t.top, "w", &st, AT_SYMLINK_NOFOLLOW) == 0)
        px_buf_printf(out, "w %o\n", st.st_mode);
    ASSERT_EQ(out->err, 0);
}

static void make_outside(void)
{
    static const char *const dirs[] = {"outside", "outside/users", "outside/empty", "outside/stage", "outside/" LAYER,
                                       "outside/" LAYER "/users", "outside/" LAYER "/tree", "outside/tasks"};
    static const char *const files[] = {"outside/file", "outside/record", "outside/stage/record", "outside/stage/0",
                                        "outside/users/t", "outside/" LAYER "/tree/file", "outside/t",
                                        "outside/layers"};
    for (size_t i = 0; i < PX_COUNT_OF(dirs); i++)
        ASSERT_OK(mkdirat(t.top, dirs[i], 0755));
    for (size_t i = 0; i < PX_COUNT_OF(files); i++) {
        char path[400];
        (void)px_fmt(path, sizeof path, "%s/%s", t.path, files[i]);
        put(path, "as it was", 9);
    }
}

/* ---- what a box would write ---- */

static const char *const targets[] = {
    "outside", "outside/tree", "outside/file", "outside/stage", "outside/empty", "outside/users", "outside/" LAYER,
    "outside/" LAYER "/tree", "outside/record", "w", "w/.px", "w/.px/layers",
};

static const char *const names[] = {
    "unsettled/t", "unsettled/evil", "unsettled/u", "tasks/evil", "tasks/t", "tasks/t/stage", "tasks/t/layers",
    "tasks/u/layers", "tasks/t/.new-layers", "tasks/u/stage", "tasks/t/copy", "layers/.new-t",
    "layers/.new-evil", "layers/" LAYER, "layers/" LAYER "/users", "layers/" LAYER "/tree",
    "layers/" LAYER "/users/t", "layers/.new-t/users", "trash/x", "trash/t", "layers", "tasks", "trash",
    "unsettled", "layers/..t", ".px-mark", "tasks/t/stage/record", "tasks/t/stage/0", "tasks/t/stage/tree",
};

static const char *const ops[] = {
    "n 0 0 ../../../outside/new", "n 0 0 " LAYER, "n 0 1 ../" LAYER, "n 0 0 .", "n 0 0 ",
    "d 32768 0 ../../outside/file", "d 16384 0 ..", "d 16384 0 ../../outside/empty",
    "c 33279 0 ../../outside/file", "c 16895 0 ..", "c 16895 0 ../", "c 16895 0 .", "c 16895 0 a/..",
    "p 33188 0 ../../outside/file", "p 33188 0 ..", "m 0 0 ../../outside/made", "m 0 0 /../../outside/made",
    "c 33279 0 link/file", "p 33188 0 link/file", "d 32768 0 link/file", "m 0 0 link/made",
    "l 0 0 px-branch 1\n1 0\n" LAYER "\n", "l 0 0 px-branch 1\n1 0\n../../../outside\n",
    "l 0 0 px-branch 1\n60000 0\n", "j 0 0 key {}", "j 0 0 nothing", "x 0 0 x", "s 0 0 no",
    "p 99999999999 0 a", "", "p",
};

static void write_record(const char *path, const char *id)
{
    struct px_workspace_root root = PX_SPACE_NO_ROOT;
    struct px_workspace s = {.root = &root};
    char work[300], logs[300], mac[PX_MAC_HEX];
    px_auto_buf struct px_buf record = PX_BUF(4096);
    px_buf_add(&record, "px-redo 2", 10);
    for (unsigned n = 1 + pick(3); n > 0; n--) {
        const char *op = ops[pick(PX_COUNT_OF(ops))];
        px_buf_add(&record, op, strlen(op) + 1);
    }
    (void)px_fmt(work, sizeof work, "%s/w", t.path);
    (void)px_fmt(logs, sizeof logs, "%s/l", t.path);
    (void)px_fmt(s.id, sizeof s.id, "%s", id);
    /* Even a record that px has signed must do no harm. */
    if (pick(3) > 0 && px_workspace_root_open(work, logs, 0, &root, NULL) == 0) {
        px_workspace_sign(&s, record.data, record.len, mac);
        px_buf_printf(&record, "s 0 0 %s", mac);
        px_buf_putc(&record, '\0');
        px_workspace_root_done(&root);
    }
    put(path, record.data, record.len);
}

static void write_text(const char *path)
{
    static const char *const texts[] = {
        "", "px-branch 1\n1 0\n" LAYER "\n", "px-branch 1\n1 0\n../../../outside/0123456789abcdef\n",
        "px-branch 1\n2 2\n" LAYER "\n", "px-branch 1\n-1 0\n", "px-branch 1\n1 1\n" LAYER "\n" LAYER "\n",
        "px-redo 1\0n 0 0 ../../../outside/new", "\n\n\n",
    };
    const char *text = texts[pick(PX_COUNT_OF(texts))];
    put(path, text, strlen(text));
}

static int remember(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    if (t.count < PATHS)
        (void)px_fmt(t.paths[t.count++], PATH_MAX, "%s", path);
    return 0;
}

/* A path below .px: one that is there, or one that px may look for. */
static void choose(char out[PATH_MAX])
{
    char own[300];
    (void)px_fmt(own, sizeof own, "%s/w/.px", t.path);
    t.count = 0;
    (void)nftw(own, remember, 8, FTW_PHYS);
    if (t.count > 0 && pick(2) == 0)
        memcpy(out, t.paths[pick(t.count)], PATH_MAX);
    else
        (void)px_fmt(out, PATH_MAX, "%s/%s", own, names[pick(PX_COUNT_OF(names))]);
}

/* The test itself must not go through the links that it has made. */
static bool is_inside(const char *path)
{
    char parent[PATH_MAX], real[PATH_MAX], work[300];
    (void)px_fmt(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    (void)px_fmt(work, sizeof work, "%s/w", t.path);
    return realpath(parent, real) && px_starts_with(real, work);
}

static void clear(const char *path)
{
    char away[300];
    (void)px_fmt(away, sizeof away, "%s/w/away-%u", t.path, pick(UINT32_MAX));
    (void)rename(path, away);
}

static void mutate(void)
{
    char path[PATH_MAX], target[400];
    choose(path);
    (void)px_fmt(target, sizeof target, "%s/%s", t.path, targets[pick(PX_COUNT_OF(targets))]);
    unsigned way = pick(12);
    struct stat st;
    if (way <= RECORD && way > RECORD - 3) {
        way = RECORD;
        (void)px_fmt(path, sizeof path, "%s/w/.px/tasks/t/stage/record", t.path);
    }
    if (!is_inside(path) || (way == 1 && (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))))
        return;
    if (way != 1 && way != 2)
        clear(path);
    switch (way) {
    case 0:
        break;
    case 1:
        (void)!chmod(path, pick(2) ? 0777 : 0);
        break;
    case 2:
        (void)!mkdir(path, 0700);
        break;
    case 3:
        (void)!mkfifo(path, 0600);
        break;
    case 4:
        (void)!link(target, path);
        break;
    case 5:
        write_text(path);
        break;
    case RECORD:
        write_record(path, "t");
        break;
    default:
        (void)!symlink(target, path);
    }
}

/* ---- what px does with it ---- */

static void act(const struct px_workspace_root *root)
{
    static const char *const ids[] = {"t", "u", "evil"};
    struct px_workspace s;
    px_workspace_sweep(root);
    for (size_t i = 0; i < PX_COUNT_OF(ids); i++) {
        if (px_workspace_open(root, ids[i], i == 2 ? PX_SPACE_MAKE : PX_SPACE_FIND, &s, NULL) < 0)
            continue;
        char name[300];
        struct px_changes changes;
        (void)px_fmt(name, sizeof name, "%s/upper", t.path);
        px_auto_fd int upper = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (px_changes_compare(upper, &s.tree, NULL, &changes) == 0) {
            (void)px_workspace_commit(&s, &changes, NULL, NULL, NULL);
            px_changes_done(&changes);
        }
        (void)px_workspace_fork(&s, "new", NULL);
        px_workspace_close(&s);
    }
    for (size_t i = 0; i < PX_COUNT_OF(ids); i++)
        if (px_workspace_open(root, ids[i], PX_SPACE_FIND, &s, NULL) == 0) {
            (void)px_workspace_remove(&s, NULL);
            px_workspace_close(&s);
        }
}

static int open_root(struct px_workspace_root *ret, struct px_err *e)
{
    char work[300], logs[300];
    (void)px_fmt(work, sizeof work, "%s/w", t.path);
    (void)px_fmt(logs, sizeof logs, "%s/l", t.path);
    return px_workspace_root_open(work, logs, 0, ret, e);
}

/* A plain workspace with a link that leads out, and a branch. */
static void make_work(void)
{
    struct px_workspace_root root;
    struct px_workspace s;
    struct px_err e = {0};
    ASSERT_PX(open_root(&root, &e), e);
    ASSERT_PX(px_workspace_open(&root, "u", PX_SPACE_MAKE, &s, &e), e);
    ASSERT_PX(px_workspace_fork(&s, "v", &e), e);
    px_workspace_close(&s);
    ASSERT_PX(px_workspace_open(&root, "t", PX_SPACE_MAKE, &s, &e), e);
    ASSERT_OK(symlinkat("../../outside", s.tree.fds[0], "link"));
    ASSERT_OK(mkdirat(s.own, "stage", 0700));
    ASSERT_OK(mkdirat(s.own, "stage/tree", 0700));
    px_auto_fd int staged = openat(s.own, "stage/0", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_OK(staged);
    px_workspace_close(&s);
    px_workspace_root_done(&root);
}

static void begin(void)
{
    static char(paths)[PATHS][PATH_MAX];
    char home[300];
    t.top = px_test_dir();
    t.paths = paths;
    (void)px_fmt(home, sizeof home, "/proc/self/fd/%d", t.top);
    ASSERT(realpath(home, t.path) != NULL);
    (void)px_fmt(home, sizeof home, "%s/home", t.path);
    ASSERT_OK(setenv("PX_HOME", home, 1));
    make_outside();
    ASSERT_OK(mkdirat(t.top, "w", 0755));
    ASSERT_OK(mkdirat(t.top, "upper", 0755));
    (void)px_fmt(home, sizeof home, "%s/upper/new", t.path);
    put(home, "text", 4);
}

static void end_round(void)
{
    px_auto_fd int work = openat(t.top, "w", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ASSERT_OK(work);
    ASSERT_OK(px_kernel_tree_empty(work));
}

TEST_DEADLINE(whatever_lies_in_it_nothing_outside_changes, 60)
{
    begin();
    px_auto_buf struct px_buf before = PX_BUF(1 << 16);
    look_outside(&before);
    const char *more = getenv("PX_TEST_ROUNDS");        /* for a longer run by hand */
    const uint64_t end = px_now_nsec() + (uint64_t)MSEC_MAX * 1000000;
    int opened = 0, i = 0;
    for (; i < (more ? atoi(more) : ROUNDS) && (more || px_now_nsec() < end); i++) {
        struct px_workspace_root root;
        px_auto_buf struct px_buf after = PX_BUF(1 << 16);
        t.random = (uint64_t)i << 32;
        make_work();
        for (unsigned n = 1 + pick(MUTATIONS); n > 0; n--)
            mutate();
        if (open_root(&root, NULL) == 0) {
            opened++;
            act(&root);
            px_workspace_root_done(&root);
        }
        end_round();
        look_outside(&after);
        if (strcmp(px_buf_text(&before), px_buf_text(&after)) != 0)
            FAIL("round %d: before:\n%safter:\n%s", i, px_buf_text(&before), px_buf_text(&after));
    }
    ASSERT(opened > i / 4);
    (void)px_fd_close(t.top);
}
