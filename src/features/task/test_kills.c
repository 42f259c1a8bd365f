/* task/test_kills.c - kills a process before each system call that changes a file, in a fork, a removal, a checkout, a
 * commit and a commit that merges layers. Afterwards the operation is complete or undone, and nothing is left over. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "task/journal.h"
#include "task/workspace.h"

enum { LAYERS = PX_SPACE_DEEP };

struct place {
    int top;
    char path[64];
    struct px_workspace_root root;
};

static void open_place(struct place *p)
{
    struct px_err e = {0};
    char work[128], logs[128], home[128];
    (void)px_fmt(p->path, sizeof p->path, "/proc/self/fd/%d", p->top);
    (void)px_fmt(work, sizeof work, "%s/w", p->path);
    (void)px_fmt(logs, sizeof logs, "%s/l", p->path);
    (void)px_fmt(home, sizeof home, "%s/h", p->path);
    ASSERT_OK(setenv("PX_HOME", home, 1));
    ASSERT_PX(px_workspace_root_open(work, logs, 1 << 20, &p->root, &e), e);
}

static void put(int dir, const char *name, const char *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(fd);
    ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Every workspace has the same text in its two files, whatever it is. */
static void make_plain(struct place *p, const char *id)
{
    struct px_workspace s;
    struct px_err e = {0};
    ASSERT_PX(px_workspace_open(&p->root, id, PX_SPACE_MAKE, &s, &e), e);
    put(s.tree.fds[0], "a", "0");
    put(s.tree.fds[0], "b", "0");
    px_workspace_close(&s);
}

static int change(struct place *p, const char *id, const char *text)
{
    struct px_workspace s;
    struct px_changes changes = {0};
    char name[32], line[64];
    (void)px_fmt(name, sizeof name, "upper-%s", text);
    (void)px_fmt(line, sizeof line, "{\"action\":\"k%s\"}", text);
    char key[16];
    (void)px_fmt(key, sizeof key, "k%s", text);
    px_auto_fd int upper = openat(p->top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (upper < 0 || px_workspace_open(&p->root, id, PX_SPACE_FIND, &s, NULL) < 0)
        return -1;
    int r = px_changes_compare(upper, &s.tree, NULL, &changes);
    if (r >= 0)
        r = px_workspace_commit(&s, &changes, NULL, &(struct px_space_note){key, line}, NULL);
    px_changes_done(&changes);
    px_workspace_close(&s);
    return r;
}

static void make_upper(struct place *p, const char *text)
{
    char name[32];
    (void)px_fmt(name, sizeof name, "upper-%s", text);
    ASSERT_OK(mkdirat(p->top, name, 0755));
    px_auto_fd int upper = openat(p->top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(upper, "a", text);
    put(upper, "b", text);
}

static int fork_space(struct place *p, const char *from, const char *to)
{
    struct px_workspace s;
    if (px_workspace_open(&p->root, from, PX_SPACE_FIND, &s, NULL) < 0)
        return -1;
    int r = px_workspace_fork(&s, to, NULL);
    px_workspace_close(&s);
    return r;
}

static int remove_space(struct place *p, const char *id)
{
    struct px_workspace s;
    if (px_workspace_open(&p->root, id, PX_SPACE_FIND, &s, NULL) < 0)
        return -1;
    int r = px_workspace_remove(&s, NULL);
    px_workspace_close(&s);
    return r;
}

/* ---- what is killed ---- */

static void one_plain(struct place *p)
{
    make_plain(p, "t");
}

static void a_branch(struct place *p)
{
    make_plain(p, "t");
    ASSERT_EQ(fork_space(p, "t", "u"), 0);
}

/* The maximum number of layers, written by hand: that is faster than as many commits. */
static void a_deep_branch(struct place *p)
{
    struct px_space_stack stack = {.count = LAYERS}, origin = {0};
    px_auto_buf struct px_buf text = PX_BUF(4096);
    ASSERT_OK(mkdirat(p->root.own, "tasks/t", 0700));
    px_auto_fd int own = openat(p->root.own, "tasks/t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < LAYERS; i++) {
        char path[64], number[8];
        (void)px_fmt(stack.ids[i], sizeof stack.ids[i], "%032d", i);
        (void)px_fmt(path, sizeof path, "layers/%032d/tree", i);
        (void)px_fmt(number, sizeof number, "%d", i);
        ASSERT_EQ(px_workspace_use(&p->root, stack.ids[i], "t"), 0);
        ASSERT_OK(mkdirat(p->root.own, path, 0755));
        px_auto_fd int tree = openat(p->root.own, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        put(tree, "a", number);
        put(tree, "b", number);
    }
    ASSERT_EQ(px_workspace_stack_text(&stack, &origin, &text), 0);
    put(own, "layers", px_buf_text(&text));
    make_upper(p, "99");
}

static void a_plain_and_a_change(struct place *p)
{
    make_plain(p, "t");
    make_upper(p, "99");
}

static int do_fork(struct place *p)
{
    return fork_space(p, "t", "v");
}

static int do_remove(struct place *p)
{
    return remove_space(p, "t");
}

static int do_change(struct place *p)
{
    return change(p, "t", "99");
}

/* A copy of the files as the caller of px_workspace_checkout makes it. */
static int do_checkout(struct place *p)
{
    struct px_workspace s;
    if (px_workspace_open(&p->root, "t", PX_SPACE_FIND, &s, NULL) < 0 || mkdirat(s.own, "copy", 0755) < 0)
        return -1;
    px_auto_fd int copy = openat(s.own, "copy", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(copy, "a", "0");
    put(copy, "b", "0");
    int r = px_workspace_checkout(&s, "copy", NULL);
    px_workspace_close(&s);
    return r;
}

static const struct kind {
    const char *name;
    void (*before)(struct place *p);
    int (*act)(struct place *p);
} kinds[] = {
    {"a fork of a plain workspace", one_plain, do_fork},
    {"a fork of a branch", a_deep_branch, do_fork},
    {"the removal of a plain workspace", one_plain, do_remove},
    {"the removal of a branch", a_branch, do_remove},
    {"the removal of a deep branch", a_deep_branch, do_remove},
    {"a checkout", a_branch, do_checkout},
    {"a checkout of a deep branch", a_deep_branch, do_checkout},
    {"a change of a plain workspace", a_plain_and_a_change, do_change},
    {"a change that flattens", a_deep_branch, do_change},
};

/* ---- killing ---- */

static bool creates(pid_t pid, const struct __ptrace_syscall_info *info)
{
    uint64_t flags = info->entry.args[2];
    if (info->entry.nr == SYS_openat2) /* its flags come first in what the third argument points to */
        flags = (uint64_t)ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)info->entry.args[2], NULL);
    return (flags & O_CREAT) != 0;
}

/* At the entry of a call that changes something. */
static bool changes_files(pid_t pid)
{
    static const uint64_t calls[] = {SYS_mkdirat, SYS_mkdir,  SYS_renameat, SYS_renameat2, SYS_unlinkat,  SYS_write,     SYS_pwrite64,
                                     SYS_linkat,  SYS_fchmod, SYS_fchmodat, SYS_chmod,     SYS_ftruncate, SYS_symlinkat, SYS_utimensat,
                                     SYS_mknodat, SYS_fsetxattr};
    struct __ptrace_syscall_info info = {0};
    ASSERT(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0);
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return false;
    if (info.entry.nr == SYS_openat || info.entry.nr == SYS_openat2)
        return creates(pid, &info);
    for (size_t i = 0; i < PX_COUNT_OF(calls); i++)
        if (info.entry.nr == calls[i])
            return true;
    return false;
}

/* What a kill would leave: a copy of the directory, in which nobody holds a lock. */
static int copy_now(int home, int nth)
{
    char from[64], to[64];
    char *const words[] = {"cp", "-a", from, to, NULL};
    (void)px_fmt(from, sizeof from, "/proc/self/fd/%d/all", home);
    (void)px_fmt(to, sizeof to, "/proc/self/fd/%d/%d", home, nth);
    int status = -1;
    pid_t pid = fork();
    ASSERT_OK(pid);
    if (pid == 0) {
        (void)fcntl(home, F_SETFD, 0);
        (void)execvp(words[0], words);
        _exit(127);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
    (void)px_fmt(to, sizeof to, "%d", nth);
    return openat(home, to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The process stops, and continues to the entry of its next call that changes something; false: it has ended. */
static bool next_stop(pid_t pid)
{
    int status = 0;
    do {
        ASSERT_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            ASSERT_EQ(WEXITSTATUS(status), 0);
            return false;
        }
    } while (!changes_files(pid));
    return true;
}

static pid_t start_traced(const struct kind *k, struct place *p)
{
    int status = 0;
    pid_t pid = fork();
    ASSERT_OK(pid);
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
            _exit(99);
        _exit(k->act(p) < 0 ? 98 : 0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        SKIP("nobody may be traced here");
    ASSERT_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD), 0);
    return pid;
}

static int count_names(int dir, const char *path)
{
    int count = 0, fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    ASSERT(list != NULL);
    for (struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    (void)closedir(list);
    return count;
}

static void check_whole(struct place *p, const char *id)
{
    struct px_workspace s;
    struct px_err e = {0};
    char text[2][8] = {"", ""};
    ASSERT_PX(px_workspace_open(&p->root, id, PX_SPACE_FIND, &s, &e), e);
    for (int i = 0; i < 2; i++) {
        px_auto_fd int fd = px_layers_open(&s.tree, i ? "b" : "a");
        ASSERT_OK(fd);
        ASSERT(read(fd, text[i], sizeof text[i] - 1) > 0);
    }
    ASSERT_STR(text[0], text[1]);
    ASSERT_EQ(px_journal_has(p->root.logs, id, "\"k99\""), strcmp(text[0], "99") == 0);
    px_workspace_close(&s);
}

static void check_after(struct place *p)
{
    static const char *const ids[] = {"t", "u", "v"}, *const parts[] = {"tasks", "layers", "trash", "unsettled"};
    px_workspace_sweep(&p->root);
    ASSERT_EQ(count_names(p->root.own, "unsettled"), 0);
    for (size_t i = 0; i < PX_COUNT_OF(ids); i++)
        if (px_workspace_exists(&p->root, ids[i]))
            check_whole(p, ids[i]);
    for (size_t i = 0; i < PX_COUNT_OF(ids); i++)
        if (px_workspace_exists(&p->root, ids[i]))
            ASSERT_EQ(remove_space(p, ids[i]), 0);
    /* only a locked name: an empty directory, handled at its next use */
    for (size_t i = 0; i < PX_COUNT_OF(ids); i++) {
        char path[16];
        (void)px_fmt(path, sizeof path, "tasks/%s", ids[i]);
        (void)unlinkat(p->root.own, path, AT_REMOVEDIR);
    }
    for (size_t i = 0; i < PX_COUNT_OF(parts); i++)
        if (count_names(p->root.own, parts[i]) != 0)
            FAIL("something is left in .px/%s", parts[i]);
    ASSERT_EQ(count_names(p->root.dir, "."), 0);
}

/* A copied .px is refused, so its content is moved into one that px makes there. */
static void make_ours(struct place *p)
{
    static const char *const parts[] = {"tasks", "layers", "trash", "unsettled"};
    ASSERT_OK(renameat(p->top, "w/.px", p->top, "copied"));
    open_place(p);
    px_auto_fd int copied = openat(p->top, "copied", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < PX_COUNT_OF(parts); i++)
        ASSERT_OK(renameat(copied, parts[i], p->root.own, parts[i]));
    px_workspace_root_done(&p->root);
}

static void check_copy(const struct place *from, int home, int nth)
{
    struct place p = {.top = copy_now(home, nth)};
    ASSERT_OK(p.top);
    make_ours(&p);
    open_place(&p);
    memcpy(p.root.seal, from->root.seal, sizeof p.root.seal);   /* records were written there */
    check_after(&p);
    px_workspace_root_done(&p.root);
    (void)px_fd_close(p.top);
}

static void kill_everywhere(const char *name)
{
    const struct kind *k = kinds;
    while (strcmp(k->name, name) != 0)
        k++;
    px_auto_fd int home = px_test_dir();
    ASSERT_OK(mkdirat(home, "all", 0755));
    struct place p = {.top = openat(home, "all", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    open_place(&p);
    k->before(&p);
    pid_t pid = start_traced(k, &p);
    int nth = 0;
    while (next_stop(pid))
        check_copy(&p, home, nth++);
    check_copy(&p, home, nth);
    ASSERT(nth > 5);
    px_workspace_root_done(&p.root);
    (void)px_fd_close(p.top);
}

TEST(killed_in_a_fork)
{
    kill_everywhere("a fork of a plain workspace");
}

TEST(killed_in_a_fork_of_a_branch)
{
    kill_everywhere("a fork of a branch");
}

TEST(killed_in_a_removal)
{
    kill_everywhere("the removal of a plain workspace");
}

TEST(killed_in_the_removal_of_a_branch)
{
    kill_everywhere("the removal of a branch");
}

TEST(killed_in_the_removal_of_a_deep_branch)
{
    kill_everywhere("the removal of a deep branch");
}

TEST(killed_in_a_change)
{
    kill_everywhere("a change of a plain workspace");
}

TEST(killed_in_a_change_that_flattens)
{
    kill_everywhere("a change that flattens");
}

TEST(killed_in_a_checkout)
{
    kill_everywhere("a checkout");
}

TEST(killed_in_a_checkout_of_a_deep_branch)
{
    kill_everywhere("a checkout of a deep branch");
}
