/* Kills a process at every system call, fails every system call, and fills the disk: everything visible is complete,
 * and the next run succeeds. */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "kernel/tree.h"
#include "store/fixture.h"

/* ---- a file system of the test's own, in memory ---- */

static void write_map(const char *path, unsigned id)
{
    char text[64];

    ASSERT_OK(px_fmt(text, sizeof text, "%u %u 1", id, id));
    ASSERT_OK(px_write_file(AT_FDCWD, path, text));
}

/* Mounted over the test's directory; it is unmounted when the process ends. */
static void own_disk(const char *options)
{
    unsigned uid = geteuid(), gid = getegid();

    if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0)
        SKIP("this host gives no mount namespace");
    if (uid) {
        (void)px_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
        write_map("/proc/self/uid_map", uid);
        write_map("/proc/self/gid_map", gid);
    }
    ASSERT_OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    ASSERT_OK(mount("tmpfs", px_test_dir_path(), "tmpfs", 0, options));
}

static int home_fd(void)
{
    int fd = open(px_test_dir_path(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT(fd >= 0);
    return fd;
}

/* ---- a child that is stopped at its calls ---- */

struct fate {
    unsigned long at;           /* from 1: which of the counted calls */
    bool kill;
    int error;                  /* the result of the failed call */
};

/* Counts only calls on files: failures of other calls do not concern the disk. */
static bool counts(const struct fate *fate, unsigned long long number)
{
    static const unsigned short calls[] = {
        SYS_openat,    SYS_openat2,   SYS_mkdirat,    SYS_write,      SYS_pwrite64,  SYS_read,      SYS_pread64,
        SYS_fsync,     SYS_syncfs,    SYS_fchmod,     SYS_fchmodat,   SYS_renameat,  SYS_renameat2, SYS_unlinkat,
        SYS_flock,     SYS_fstat,     SYS_newfstatat, SYS_getdents64, SYS_ftruncate, SYS_fstatfs,   SYS_readlinkat,
        SYS_utimensat, SYS_faccessat, SYS_faccessat2, SYS_getrandom,
    };

    for (size_t i = 0; i < PX_COUNT_OF(calls); i++)
        if (number == calls[i])
            return true;
    return fate->kill;
}

static void set_result(pid_t pid, bool entry, int error)
{
    struct user_regs_struct regs;

    ASSERT_OK(ptrace(PTRACE_GETREGS, pid, 0, &regs));
    if (entry)
        regs.orig_rax = (unsigned long long)-1;
    else
        regs.rax = (unsigned long long)-error;
    ASSERT_OK(ptrace(PTRACE_SETREGS, pid, 0, &regs));
}

/* True at the chosen call. */
static bool strike(pid_t pid, const struct fate *fate, unsigned long *seen)
{
    struct user_regs_struct regs;
    int status;

    ASSERT_OK(ptrace(PTRACE_GETREGS, pid, 0, &regs));
    if (!counts(fate, regs.orig_rax) || ++*seen != fate->at)
        return false;
    if (fate->kill) {
        ASSERT_OK(kill(pid, SIGKILL));
        return true;
    }
    set_result(pid, true, 0);
    ASSERT_OK(ptrace(PTRACE_SYSCALL, pid, 0, 0));
    ASSERT_EQ(waitpid(pid, &status, __WALL), pid);
    set_result(pid, false, fate->error);
    return true;
}

/* The child's exit status, or -1 if it was killed. *ret_struck: whether the chosen call was reached. */
static int run_fated(int (*run)(void), const struct fate *fate, bool *ret_struck)
{
    unsigned long seen = 0;
    bool entry = true, struck = false;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
            _exit(9);
        (void)raise(SIGSTOP);
        _exit(run());
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        SKIP("this host does not let a process trace its child");
    ASSERT_OK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
    for (;;) {
        ASSERT_OK(ptrace(PTRACE_SYSCALL, pid, 0, 0));
        ASSERT_EQ(waitpid(pid, &status, __WALL), pid);
        if (WIFEXITED(status) || WIFSIGNALED(status))
            break;
        if (WSTOPSIG(status) != (SIGTRAP | 0x80))
            continue;
        if (entry && !struck && strike(pid, fate, &seen)) {
            struck = true;
            if (!fate->kill)
                continue;       /* already waited for */
            ASSERT_EQ(waitpid(pid, &status, __WALL), pid);
            break;
        }
        entry = !entry;
    }
    *ret_struck = struck;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- what is done: 0, 1 with an error that says what it is, 2 without ---- */

static int verdict(int r, const struct px_err *e)
{
    return r >= 0 ? 0 : e->code && e->what[0] && e->why[0] && e->fix[0] ? 1 : 2;
}

static int fill(int dir)
{
    if (mkdirat(dir, "usr", 0755) < 0)
        return -1;
    int fd = openat(dir, "usr/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    int r = fd < 0 ? -1 : px_write_full(fd, "text", 4);
    (void)px_fd_close(fd);
    return r < 0 ? -1 : symlinkat("file", dir, "usr/link");
}

static int build_tree(struct px_store *store, const struct px_oid *id, struct px_err *e)
{
    struct px_tree_build *build = NULL;
    int r = px_tree_begin(store, id, &build, e);

    if (r != 0)
        return r;
    if (fill(px_tree_build_fd(build)) < 0) {
        px_tree_drop(build);
        return px_fail(e, PX_E_STORE_WRITE, EIO, "filling a tree");
    }
    return px_tree_commit(build, "{\"a\":1}", e);
}

static int build_everything(void)
{
    struct px_store *store = NULL;
    struct px_err e = {0};
    struct px_oid blob, tree = oid_of("tree"), id = oid_of("record");
    char json[512];
    int r = px_store_open(px_test_dir_path(), &store, &e);

    if (r >= 0)
        r = px_blob_put(store, "blob", 4, &blob, &e);
    if (r >= 0)
        r = build_tree(store, &tree, &e);
    if (r >= 0) {
        record_text(json, sizeof json, &blob, &tree);
        r = px_record_put(store, PX_RECORD_IMAGE, &id, json, &e);
    }
    if (r >= 0)
        r = px_name_put(store, PX_RECORD_IMAGE, "name", &id, &e);
    px_store_close(store);
    return verdict(r, &e);
}

static int collect_everything(void)
{
    struct px_store *store = NULL;
    struct px_gc gc = {.unnamed = true};
    struct px_err e = {0};
    int r = px_store_open(px_test_dir_path(), &store, &e);

    if (r >= 0)
        r = px_store_gc(store, &gc, &e);
    px_store_close(store);
    return verdict(r, &e);
}

/* ---- what must hold afterwards ---- */

static void check_whole(void)
{
    struct px_store *store = open_store();
    struct px_store_check check = {0};
    struct px_oid id;
    struct px_err e = {0};
    px_auto_buf struct px_buf text = PX_BUF(1024);

    ASSERT_PX(px_store_verify(store, &check, &e), e);
    ASSERT_EQ(check.corrupt, 0);                /* records and what they need among it */
    int named = px_name_get(store, PX_RECORD_IMAGE, "name", &id, &e);
    ASSERT_PX(named, e);
    if (named == 0)
        ASSERT_EQ(px_record_get(store, PX_RECORD_IMAGE, &id, &text, &e), 0);
    px_store_close(store);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    ASSERT_EQ(entries_of("store/trash"), 0);
    ASSERT_EQ(entries_of("store/corrupt"), 0);
}

static void check_built(void)
{
    struct px_store *store = open_store();
    struct px_oid id, tree = oid_of("tree"), blob = oid_of("blob");
    struct px_err e = {0};

    ASSERT_EQ(px_name_get(store, PX_RECORD_IMAGE, "name", &id, &e), 0);
    ASSERT(px_tree_has(store, &tree) && px_blob_has(store, &blob));
    px_store_close(store);
}

static void prepare_nothing(void)
{
}

/* A named record, an unnamed one, and objects without a reference. */
static void prepare_rubbish(void)
{
    ASSERT_EQ(build_everything(), 0);
    struct px_store *store = open_store();
    struct px_oid blob = put_text(store, "unnamed"), tree = oid_of("unnamed"), id = oid_of("unnamed"),
                  orphan = oid_of("orphan");
    put_tree(store, &tree, "more");
    put_tree(store, &orphan, "most");
    (void)put_text(store, "orphan");
    put_record(store, PX_RECORD_BASE, &id, &blob, &tree);
    px_store_close(store);
}

static void check_collected(void)
{
    check_built();
    ASSERT_EQ(entries_of("store/blobs/sha256"), 1);
    ASSERT_EQ(entries_of("store/trees"), 1);
    ASSERT_EQ(entries_of("sandbox/bases"), 0);
    ASSERT_EQ(entries_of("sandbox/images"), 1);
}

struct story {
    void (*prepare)(void);
    int (*run)(void);
    void (*check)(void);
    bool named;                 /* the name exists before and must exist after every failure */
};

static const struct story building = {prepare_nothing, build_everything, check_built, false};
static const struct story collecting = {prepare_rubbish, collect_everything, check_collected, true};

static void tell_story(const struct story *story, const struct fate *kind)
{
    struct fate fate = *kind;
    px_auto_fd int home = home_fd();
    bool struck = true;

    for (fate.at = 1; struck; fate.at++) {
        ASSERT_OK(px_kernel_tree_empty(home));
        story->prepare();
        int status = run_fated(story->run, &fate, &struck);
        if (fate.kill ? status > 0 : status != 0 && status != 1)
            FAIL("call %lu: exit status %d", fate.at, status);
        check_whole();
        if (status == 0)
            story->check();
        if (story->named)
            check_built();
        ASSERT_EQ(story->run(), 0);
        story->check();
        check_whole();
    }
    ASSERT(fate.at > 50);       /* the run had an effect */
}

TEST_DEADLINE(killed_at_every_call_of_building, 600)
{
    px_auto_fd int dir = px_test_dir();

    own_disk("mode=0700");
    tell_story(&building, &(struct fate){.kill = true});
}

TEST_DEADLINE(killed_at_every_call_of_collecting, 600)
{
    px_auto_fd int dir = px_test_dir();

    own_disk("mode=0700");
    tell_story(&collecting, &(struct fate){.kill = true});
}

TEST_DEADLINE(every_call_of_building_fails_once, 600)
{
    px_auto_fd int dir = px_test_dir();

    own_disk("mode=0700");
    tell_story(&building, &(struct fate){.error = ENOSPC});
    tell_story(&building, &(struct fate){.error = EIO});
}

TEST_DEADLINE(every_call_of_collecting_fails_once, 600)
{
    px_auto_fd int dir = px_test_dir();

    own_disk("mode=0700");
    tell_story(&collecting, &(struct fate){.error = ENOSPC});
    tell_story(&collecting, &(struct fate){.error = EIO});
}

/* ---- other file systems ---- */

static int open_only(void)
{
    struct px_store *store = NULL;
    struct px_err e = {0};
    int r = px_store_open(px_test_dir_path(), &store, &e);

    px_store_close(store);
    return r >= 0 ? 0 : e.code == PX_E_STORE_WRITE && strstr(e.why, "file system") ? 1 : 2;
}

/* The child believes that its directory is on a file system with this number. */
static int run_on(long magic)
{
    int status, told = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
            _exit(9);
        (void)raise(SIGSTOP);
        _exit(open_only());
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        SKIP("this host does not let a process trace its child");
    ASSERT_OK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
    for (;;) {
        struct user_regs_struct regs;
        ASSERT_OK(ptrace(PTRACE_SYSCALL, pid, 0, 0));
        ASSERT_EQ(waitpid(pid, &status, __WALL), pid);
        if (WIFEXITED(status) || WIFSIGNALED(status))
            break;
        ASSERT_OK(ptrace(PTRACE_GETREGS, pid, 0, &regs));
        if (regs.orig_rax == SYS_fstatfs && told++ % 2) /* its exit */
            ASSERT_OK(ptrace(PTRACE_POKEDATA, pid, regs.rsi, magic));
    }
    ASSERT(told > 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

STORE_TEST(a_network_file_system_is_refused)
{
    px_auto_fd int dir = px_test_dir();

    ASSERT_EQ(run_on(0x6969), 1);               /* NFS */
    ASSERT_EQ(run_on(0xfe534d42), 1);           /* SMB */
    ASSERT_EQ(run_on(0x01021997), 1);           /* 9p */
    ASSERT(!is_there("store"));
    ASSERT_EQ(run_on(0xef53), 0);               /* ext4 */
    ASSERT_EQ(run_on(0x794c7630), 0);           /* overlayfs, as in a container */
}

/* ---- no room ---- */

static void fill_up(void)
{
    static char block[4096];
    px_auto_fd int home = home_fd();
    int i = 0, r;

    do {
        char name[32];
        ASSERT_OK(px_fmt(name, sizeof name, "fill-%d", i++));
        px_auto_fd int fd = openat(home, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        for (r = 0; fd >= 0 && r == 0;)
            r = px_write_full(fd, block, sizeof block);
        r = fd < 0 ? -1 : 0;    /* also the last inode */
    } while (r == 0 && i < 10000);
}

TEST_DEADLINE(a_full_disk_is_an_error_and_can_be_cleaned, 120)
{
    static char data[64 << 10];
    px_auto_fd int dir = px_test_dir();
    struct px_err e = {0};
    struct px_oid oid;
    int stored = 0, r = 0;

    own_disk("mode=0700,size=2m,nr_inodes=300");
    ASSERT_EQ(build_everything(), 0);
    struct px_store *store = open_store();
    for (; r >= 0 && stored < 1000; stored += r >= 0) {
        memcpy(data, &stored, sizeof stored);
        r = px_blob_put(store, data, sizeof data, &oid, &e);
    }
    ASSERT_EQ(e.code, PX_E_STORE_WRITE);
    ASSERT_EQ(e.sys, ENOSPC);
    ASSERT_EQ(entries_of("store/tmp"), 0);
    ASSERT_EQ(entries_of("store/blobs/sha256"), stored + 1);
    px_store_close(store);
    check_whole();
    fill_up();
    ASSERT_EQ(collect_everything(), 0);
    check_collected();
    check_whole();
    ASSERT_EQ(build_everything(), 0);
}

TEST_DEADLINE(another_disk_inside_the_store_is_refused, 60)
{
    px_auto_fd int dir = px_test_dir();
    struct px_store *store = NULL;
    struct px_err e;
    char path[4096];

    own_disk("mode=0700");
    px_store_close(open_store());
    ASSERT_OK(px_fmt(path, sizeof path, "%s/sandbox", px_test_dir_path()));
    ASSERT_OK(mount("tmpfs", path, "tmpfs", 0, "mode=0700"));
    ASSERT_FAILS(px_store_open(px_test_dir_path(), &store, &e), e, PX_E_STORE_WRITE);
    ASSERT(strstr(e.why, "another file system"));
}
