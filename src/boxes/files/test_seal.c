/* What a sealed process can still do, act by act: each attack beside what it was sealed for. */
#include <px/files.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "harness/test.h"

struct site {
    int top, rw, ro, outside;   /* `outside` is a descriptor of a directory that nobody gave away */
    struct px_files *files;
};

static void put(int dir, const char *name, const char *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_OK(fd);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}

static void make(struct site *s)
{
    struct px_err e = {0};
    s->top = px_test_dir();
    ASSERT_OK(mkdirat(s->top, "rw", 0755) | mkdirat(s->top, "ro", 0755) | mkdirat(s->top, "outside", 0755));
    s->rw = openat(s->top, "rw", O_RDONLY | O_CLOEXEC);
    s->ro = openat(s->top, "ro", O_RDONLY | O_CLOEXEC);
    s->outside = openat(s->top, "outside", O_RDONLY | O_CLOEXEC);
    put(s->rw, "a.md", "a");
    put(s->ro, "b.md", "b");
    put(s->outside, "secret", "secret");
    const struct px_files_root roots[] = {{.name = "rw", .use_fd = true, .fd = s->rw, .writable = true},
                                          {.name = "ro", .use_fd = true, .fd = s->ro}};
    ASSERT_PX(px_files_new(roots, 2, &s->files, &e), e);
}

static void done(struct site *s)
{
    px_files_free(s->files);
    const int fds[] = {s->top, s->rw, s->ro, s->outside};
    for (size_t i = 0; i < PX_COUNT_OF(fds); i++)
        (void)px_fd_close(fds[i]);
}
#define auto_site __attribute__((cleanup(done)))

/* Runs in a process of its own, sealed; it ends there. */
static void sealed(const struct site *s, void (*act)(const struct site *s))
{
    pid_t pid = fork();
    int status = -1;
    ASSERT_OK(pid);
    if (pid == 0) {
        struct px_err e = {0};
        int r = px_files_seal(s->files, &e);
        ASSERT_PX(r, e);
        if (r == 1)
            act(s);
        _exit(r == 1 ? 0 : 77);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("this kernel has no Landlock");
    ASSERT_EQ(status, 0);
}

static void use_files(const struct site *s)
{
    struct px_err e = {0};
    struct px_files_text text = {0};
    struct px_files_entries found = {0};
    const struct px_files_edit edit = {"a", "b", 1, 1};
    ASSERT_PX(px_files_read(s->files, "ro/b.md", 0, 10, &text, &e), e);
    ASSERT_PX(px_files_write(s->files, "rw/n/c.md", "c", 1, NULL, &e), e);
    ASSERT_PX(px_files_edit(s->files, "rw/a.md", &edit, 1, false, NULL, &e), e);
    ASSERT_PX(px_files_copy(s->files, "ro/b.md", "rw/d.md", &e), e);
    ASSERT_PX(px_files_move(s->files, "rw/d.md", "rw/n/e.md", &e), e);
    ASSERT_PX(px_files_make_directory(s->files, "rw/m", &e), e);
    ASSERT_PX(px_files_delete(s->files, "rw/n/e.md", &e), e);
    ASSERT_PX(px_files_search(s->files, &(struct px_files_query){.text = "b"}, &found, &e), e);
    ASSERT_EQ(found.count, 2);
    px_files_entries_done(&found);
    px_files_text_done(&text);
}

TEST(what_it_was_sealed_for_works)
{
    auto_site struct site s = {0};
    make(&s);
    sealed(&s, use_files);
}

#define REFUSED(call, error)                                                                                        \
    do {                                                                                                            \
        errno = 0;                                                                                                  \
        ASSERT_EQ((call), -1);                                                                                      \
        ASSERT_EQ(errno, (error));                                                                                  \
    } while (0)

/* By plain calls, as if everything above them had been taken over. */
static void reach_for_files(const struct site *s)
{
    REFUSED(openat(AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC), EACCES);
    REFUSED(openat(s->outside, "secret", O_RDONLY | O_CLOEXEC), EACCES);
    REFUSED(openat(s->outside, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), EACCES);
    REFUSED(openat(s->rw, "../outside/secret", O_RDONLY | O_CLOEXEC), EACCES);
    REFUSED(openat(s->ro, "b.md", O_WRONLY | O_CLOEXEC), EACCES);
    REFUSED(openat(s->ro, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), EACCES);
    REFUSED(openat(AT_FDCWD, "/proc/self/environ", O_RDONLY | O_CLOEXEC), EACCES);
    REFUSED(mkdirat(s->ro, "new", 0755), EACCES);
    REFUSED(unlinkat(s->ro, "b.md", 0), EACCES);
    REFUSED(unlinkat(s->outside, "secret", 0), EACCES);
    ASSERT(px_sys(SYS_renameat2, s->outside, "secret", s->rw, "secret", 0) < 0);
    ASSERT(px_sys(SYS_renameat2, s->rw, "a.md", s->outside, "a.md", 0) < 0);
    px_auto_fd int mine = openat(s->rw, "a.md", O_RDWR | O_CLOEXEC);    /* the twin */
    ASSERT_OK(mine);
}

TEST(no_other_file_can_be_reached_by_any_call)
{
    auto_site struct site s = {0};
    make(&s);
    sealed(&s, reach_for_files);
    ASSERT_OK(faccessat(s.outside, "secret", F_OK, 0));
    ASSERT_OK(faccessat(s.ro, "b.md", F_OK, 0));
}

#ifndef __SANITIZE_ADDRESS__ /* there the filter is not loaded */
static void reach_for_more(const struct site *s)
{
    char *const argv[] = {(char *)"/bin/true", NULL};
    REFUSED(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), EPERM);
    REFUSED(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), EPERM);
    REFUSED(execve("/bin/true", argv, argv + 1), EPERM);
    ASSERT_EQ(px_sys(SYS_clone, SIGCHLD, 0, 0, 0, 0), -EPERM);
    ASSERT_EQ(px_sys(SYS_vfork), -EPERM);
    REFUSED(kill(getppid(), SIGTERM), EPERM);
    REFUSED(ptrace(PTRACE_ATTACH, getppid(), 0, 0), EPERM);
    REFUSED(setuid(0), EPERM);
    REFUSED(chdir("/"), EPERM);
    REFUSED(linkat(s->rw, "a.md", s->rw, "hard.md", 0), EPERM);
    REFUSED(symlinkat("/etc", s->rw, "link"), EPERM);
    REFUSED(mknodat(s->rw, "pipe", S_IFIFO | 0644, 0), EPERM);
    REFUSED(openat(s->rw, "suid", O_WRONLY | O_CREAT | O_CLOEXEC, 04755), EPERM);
    px_auto_fd int mine = openat(s->rw, "plain", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);      /* the twin */
    ASSERT_OK(mine);
    REFUSED(fchmod(mine, 04755), EPERM);
    ASSERT_OK(fchmod(mine, 0700));
    ASSERT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    ASSERT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
}

TEST(no_process_socket_or_set_id_file_can_be_made)
{
    auto_site struct site s = {0};
    make(&s);
    sealed(&s, reach_for_more);
}
#endif
