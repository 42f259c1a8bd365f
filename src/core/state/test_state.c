/* state/test_state.c - which directories px takes for its own. */
#include "state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "state/key.h"

struct fixture {
    int top;
    char home[64];
    struct px_state_place place;
};

static struct fixture begin(void)
{
    struct fixture f = {.top = px_test_dir()};
    (void)px_fmt(f.home, sizeof f.home, "/proc/self/fd/%d/home", f.top);
    ASSERT_OK(setenv("PX_HOME", f.home, 1));
    f.place = (struct px_state_place){.parent = f.top, .name = "own", .shown = "own", .kind = "test"};
    return f;
}

static void make_own(struct fixture *f)
{
    struct px_err e = {0};
    struct px_state s = PX_STATE_NONE;
    ASSERT_PX(px_state_open(&f->place, true, &s, &e), e);
    (void)px_fd_close(s.fd);
}

static void expect_refused(struct fixture *f, bool make)
{
    struct px_err e = {0};
    struct px_state s = PX_STATE_NONE;
    ASSERT_EQ(px_state_open(&f->place, make, &s, &e), -1);
    ASSERT_EQ(e.code, PX_E_STATE);
    ASSERT_EQ(s.fd, -EBADF);
}

static void put(int dir, const char *path, const char *text)
{
    px_auto_fd int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_OK(fd);
    ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

TEST(made_and_known_again)
{
    struct fixture f = begin();
    struct px_err e = {0};
    struct px_state a = PX_STATE_NONE, b = PX_STATE_NONE, c = PX_STATE_NONE;
    struct stat st;
    ASSERT_EQ(px_state_open(&f.place, false, &a, &e), 1);
    (void)umask(0177);          /* even that */
    ASSERT_PX(px_state_open(&f.place, true, &a, &e), e);
    (void)umask(022);
    put(a.fd, "file", "x");
    ASSERT_OK(renameat(f.top, "own", f.top, "moved"));
    f.place.name = "moved";
    ASSERT_PX(px_state_open(&f.place, false, &b, &e), e);
    ASSERT_EQ(memcmp(a.seal, b.seal, sizeof a.seal), 0);
    f.place.name = "another";
    ASSERT_PX(px_state_open(&f.place, true, &c, &e), e);
    ASSERT(memcmp(a.seal, c.seal, sizeof a.seal) != 0);
    ASSERT_OK(fstatat(f.top, "moved", &st, 0));
    ASSERT_EQ(st.st_mode & 07777, 0700u);
    ASSERT_OK(fstatat(f.top, "home/key", &st, 0));
    ASSERT_EQ(st.st_mode & 07777, 0600u);
    (void)px_fd_close(a.fd);
    (void)px_fd_close(b.fd);
    (void)px_fd_close(c.fd);
    (void)px_fd_close(f.top);
}

TEST(an_empty_one_is_taken_one_with_files_is_not)
{
    struct fixture f = begin();
    ASSERT_OK(mkdirat(f.top, "own", 0700));
    put(f.top, "own/.new-.px-mark", "of a px that was killed");
    make_own(&f);
    f.place.name = "full";
    ASSERT_OK(mkdirat(f.top, "full", 0700));
    put(f.top, "full/thesis", "x");
    expect_refused(&f, true);
    ASSERT_OK(faccessat(f.top, "full/thesis", F_OK, 0));
    ASSERT_EQ(faccessat(f.top, "full/.px-mark", F_OK, 0), -1);
    (void)px_fd_close(f.top);
}

/* A copy has the same mark, but is another directory. */
TEST(a_copy_is_refused)
{
    struct fixture f = begin();
    char mark[128] = "";
    make_own(&f);
    ASSERT_OK(px_read_file(f.top, "own/.px-mark", mark, sizeof mark));
    ASSERT_OK(mkdirat(f.top, "copy", 0700));
    put(f.top, "copy/.px-mark", mark);
    f.place.name = "copy";
    expect_refused(&f, false);
    expect_refused(&f, true);
    f.place.name = "own";
    make_own(&f);
    f.place.kind = "other";     /* nor is one of another kind */
    expect_refused(&f, true);
    f.place.kind = "test";
    put(f.top, "own/.px-mark", "");
    expect_refused(&f, true);
    (void)px_fd_close(f.top);
}

TEST(another_key_is_another_machine)
{
    struct fixture f = begin();
    struct px_err e = {0};
    uint8_t a[PX_MAC_SIZE], b[PX_MAC_SIZE];
    make_own(&f);
    ASSERT_PX(px_state_key(NULL, a, &e), e);
    ASSERT_OK(unlinkat(f.top, "home/key", 0));
    expect_refused(&f, true);
    ASSERT_PX(px_state_key(NULL, b, &e), e);
    ASSERT(memcmp(a, b, sizeof a) != 0);
    ASSERT_OK(fchmodat(f.top, "home/key", 0644, 0));
    ASSERT_EQ(px_state_key(NULL, a, &e), -1);
    ASSERT_EQ(e.code, PX_E_STATE);
    ASSERT_OK(unlinkat(f.top, "home/key", 0));
    ASSERT_OK(symlinkat("/dev/zero", f.top, "home/key"));
    ASSERT_EQ(px_state_key(NULL, a, &e), -1);
    ASSERT_OK(unlinkat(f.top, "home/key", 0));
    ASSERT_OK(mkfifoat(f.top, "home/key", 0600));
    ASSERT_EQ(px_state_key(NULL, a, &e), -1);
    (void)px_fd_close(f.top);
}

TEST(links_modes_and_owners)
{
    struct fixture f = begin();
    make_own(&f);
    ASSERT_OK(symlinkat("own", f.top, "link"));
    f.place.name = "link";
    expect_refused(&f, true);
    put(f.top, "file", "");
    f.place.name = "file";
    expect_refused(&f, true);
    f.place.name = "own";
    ASSERT_OK(fchmodat(f.top, "own", 0770, 0));
    expect_refused(&f, true);
    ASSERT_OK(fchmodat(f.top, "own", 0700, 0));
    ASSERT_OK(unlinkat(f.top, "own/.px-mark", 0));
    ASSERT_OK(mkfifoat(f.top, "own/.px-mark", 0600));       /* not waited for */
    expect_refused(&f, true);
    if (geteuid() == 0) {
        ASSERT_OK(unlinkat(f.top, "own/.px-mark", 0));
        ASSERT_OK(fchownat(f.top, "own", 1234, 1234, 0));
        expect_refused(&f, true);
    }
    (void)px_fd_close(f.top);
}

/* Many begin at the same time: all of them agree on the key and on the mark. */
TEST(those_who_begin_together_agree)
{
    enum { AT_ONCE = 12 };
    struct fixture f = begin();
    pid_t pids[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        pids[i] = fork();
        ASSERT_OK(pids[i]);
        if (pids[i] == 0) {
            struct px_state s = PX_STATE_NONE;
            _exit(px_state_open(&f.place, true, &s, NULL) == 0 ? 0 : 1);
        }
    }
    for (int i = 0; i < AT_ONCE; i++) {
        int status = -1;
        ASSERT_EQ(waitpid(pids[i], &status, 0), pids[i]);
        ASSERT_EQ(status, 0);
    }
    make_own(&f);
    (void)px_fd_close(f.top);
}

TEST(parts_and_files)
{
    struct fixture f = begin();
    char text[16];
    ASSERT_OK(mkdirat(f.top, "outside", 0700));
    ASSERT_OK(mkdirat(f.top, "own", 0700));
    ASSERT_OK(symlinkat("../outside", f.top, "own/link"));
    px_auto_fd int own = openat(f.top, "own", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    px_auto_fd int part = px_state_part(own, "part", true);
    ASSERT_OK(part);
    ASSERT_EQ(px_state_part(own, "none", false), -ENOENT);
    ASSERT_EQ(px_state_part(own, "link", true), -ELOOP);
    ASSERT_EQ(px_state_part(own, "link/new", true), -ELOOP);
    ASSERT_EQ(px_state_part(own, "part/new", true), -EINVAL);
    ASSERT_EQ(px_state_part(own, "../outside", false), -ENOENT);        /* own is its root */
    ASSERT_OK(fchmodat(own, "part", 0702, 0));
    ASSERT_EQ(px_state_part(own, "part", false), -EPERM);

    put(f.top, "outside/victim", "as it was");
    ASSERT_OK(linkat(f.top, "outside/victim", own, ".new-file", 0));
    ASSERT_OK(symlinkat("../outside/victim", own, "file"));
    ASSERT_EQ(px_state_read(own, "file", text, sizeof text), -ELOOP);
    ASSERT_OK(px_state_write(own, "file", "new", 3));
    ASSERT_EQ(px_state_read(own, "file", text, sizeof text), 3);
    ASSERT_OK(px_read_file(f.top, "outside/victim", text, sizeof text));
    ASSERT_STR(text, "as it was");
    ASSERT_OK(mkfifoat(own, "fifo", 0600));
    ASSERT_EQ(px_state_read(own, "fifo", text, sizeof text), -EINVAL);
    ASSERT_EQ(px_state_read(own, "file", text, 3), -EFBIG);
    (void)px_fd_close(f.top);
}

TEST(paths_of_the_user)
{
    struct fixture f = begin();
    char absolute[64];
    ASSERT_OK(mkdirat(f.top, "real", 0755));
    ASSERT_OK(symlinkat("real", f.top, "link"));
    ASSERT_OK(fchdir(f.top));
    static const char *const good[] = {"a/b//c/", "./a", "real/../real/x", "."};
    for (size_t i = 0; i < PX_COUNT_OF(good); i++) {
        px_auto_fd int fd = px_state_path(good[i]);
        ASSERT_OK(fd);
    }
    ASSERT_EQ(px_state_path("link"), -ELOOP);
    ASSERT_EQ(px_state_path("link/below"), -ELOOP);
    ASSERT_EQ(faccessat(f.top, "real/below", F_OK, 0), -1);
    ASSERT_EQ(px_state_path(""), -ENOENT);
    put(f.top, "file", "");
    ASSERT_EQ(px_state_path("file"), -ENOTDIR);
    (void)px_fmt(absolute, sizeof absolute, "/proc/self/fd/%d/link/below", f.top);
    px_auto_fd int fd = px_state_path(absolute);
    ASSERT_OK(fd);
    ASSERT_OK(chdir("/"));
    (void)px_fd_close(f.top);
}
