/* start/test_overlay.c - what only a program can ask for: build boxes; and changes as the result of the C API tells
 * them. */
#include <px/px.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void copy_file(const char *from, int dir, const char *to)
{
    char room[65536];
    px_auto_fd int in = open(from, O_RDONLY | O_CLOEXEC), out = openat(dir, to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    ASSERT_OK(in);
    ASSERT_OK(out);
    for (ssize_t n; (n = read(in, room, sizeof room)) > 0;)
        ASSERT_EQ(write(out, room, (size_t)n), n);
}

/* A root of one static program, in the directory "root" of a fresh one, whose path is the answer. */
static const char *make_root(int *ret_top)
{
    static const char program[] = "/bin/busybox";
    if (access(program, X_OK) < 0)
        SKIP("there is no %s here", program);
    int top = px_test_dir();
    ASSERT_OK(mkdirat(top, "root", 0755));
    ASSERT_OK(mkdirat(top, "root/bin", 0755));
    ASSERT_OK(mkdirat(top, "root/etc", 0755));
    copy_file(program, top, "root/bin/busybox");
    ASSERT_OK(symlinkat("busybox", top, "root/bin/sh"));
    *ret_top = top;
    return px_test_dir_path();
}

static int start(const char *const *fields, const char *text, struct px_box **ret_box, struct px_err *e)
{
    const char *const argv[] = {"/bin/sh", "-c", text, NULL};
    struct px_policy *policy = NULL;
    ASSERT_PX(px_policy_new("default", &policy, e), *e);
    for (; fields[0]; fields += 2)
        ASSERT_PX(px_policy_set(policy, fields[0], fields[1], e), *e);
    int r = px_box_start(policy, argv, NULL, ret_box, e);
    px_policy_free(policy);
    return r;
}

/* Skips where this machine or its file system has no such boxes. */
static struct px_box *run(const char *const *fields, const char *text)
{
    struct px_box *box = NULL;
    struct px_err e = {0};
    int r = start(fields, text, &box, &e);
    bool unfit = strstr(e.why, "attributes of users") || strstr(e.why, "id-mapped");
    if (r < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS || unfit))
        SKIP("no such box can be made here: %s %s", e.what, e.why);
    ASSERT_PX(r, e);
    ASSERT_PX(px_box_wait(box, &e), e);
    return box;
}

static void join(char out[PATH_MAX], const char *top, const char *name)
{
    ASSERT_OK(px_fmt(out, PATH_MAX, "%s/%s", top, name));
}

TEST_DEADLINE(a_build_box_owns_everything_and_is_nobody, 60)
{
    int top;
    char root[PATH_MAX], upper[PATH_MAX];
    const char *path = make_root(&top);
    struct stat st;
    join(root, path, "root");
    join(upper, path, "upper");
    struct px_box *box =
        run(FIELDS("rootfs", root, "overlay", upper, "persist", "true", "build", "true"),
            "b=/bin/busybox; set -e; $b id -u; $b id -g; echo 1 >/file; $b chown 5:6 /file; $b stat -c %u:%g:%a /file\n"
            "$b chmod 4755 /file; $b stat -c %a /file; $b mknod /disk b 8 0; test ! -e /disk; $b mkfifo /pipe\n"
            "$b stat -c %u:%g /bin/busybox; $b cat /proc/self/uid_map | $b tr -s ' ' | $b cut -d ' ' -f 2\n"
            "echo $HOME $PWD; test ! -e /etc/passwd; $b grep CapEff /proc/self/status");
    const struct px_result *r = px_box_result(box);
    ASSERT_STR(r->err.data, "");
    ASSERT_STR(r->out.data, "0\n0\n0:0:644\n4755\n0:0\n0\n/root /\nCapEff:\t0000000000000000\n");
    ASSERT_EQ(r->exit_code, 0);
    px_box_free(box);
    ASSERT_OK(fstatat(top, "upper/upper/file", &st, 0));
    ASSERT_EQ(st.st_uid, geteuid()); /* the caller's, and no set-id bit is left */
    ASSERT_EQ(st.st_mode & 07777, 0755);
    ASSERT_EQ(fstatat(top, "root/file", &st, 0), -1);
    ASSERT_EQ(close(top), 0);
}

/* The map's outer id of 0 is never the host's 0, whoever calls. */
TEST_DEADLINE(a_build_box_has_no_root_of_the_host, 60)
{
    int top;
    char root[PATH_MAX], upper[PATH_MAX];
    const char *path = make_root(&top);
    join(root, path, "root");
    join(upper, path, "upper");
    struct px_box *box = run(FIELDS("rootfs", root, "overlay", upper, "build", "true"),
                             "/bin/busybox awk '$1 <= 0 && $1 + $3 > 0 { print $2 - $1 }' /proc/self/uid_map");
    const struct px_result *r = px_box_result(box);
    ASSERT(r->out.len > 1 && strcmp(r->out.data, "0\n") != 0);
    px_box_free(box);
    ASSERT_EQ(faccessat(top, "upper", F_OK, 0), -1); /* made by us, and gone with the box */
    ASSERT_EQ(close(top), 0);
}

static void refuse(const char *const *fields)
{
    struct px_box *box = NULL;
    struct px_err e = {0};
    ASSERT_EQ(start(fields, "echo RAN", &box, &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
}

TEST(a_build_box_sees_nothing_of_the_callers)
{
    int top;
    char root[PATH_MAX], upper[PATH_MAX], bind[PATH_MAX];
    const char *path = make_root(&top);
    join(root, path, "root");
    join(upper, path, "upper");
    ASSERT_OK(px_fmt(bind, sizeof bind, "%s:/it", path));
#define BUILD "rootfs", root, "overlay", upper, "build", "true"
    refuse(FIELDS(BUILD, "bind", bind));
    refuse(FIELDS(BUILD, "work-dir", path));
    refuse(FIELDS(BUILD, "changes", path));
    refuse(FIELDS(BUILD, "net", "host"));
    refuse(FIELDS("rootfs", root, "build", "true"));
    ASSERT_EQ(close(top), 0);
}

TEST(no_front_end_is_offered_a_build_box)
{
    struct px_field_info info;
    for (size_t i = 0; px_policy_field(i, &info) == 0; i++)
        ASSERT(strcmp(info.name, "build") != 0);
}

TEST_DEADLINE(the_result_tells_changes, 60)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int file = openat(dir, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(write(file, "1\n", 2), 2);
    struct px_box *box = run(FIELDS("changes", px_test_dir_path()), "echo 2 >>f; mkdir d; echo n >d/n");
    const struct px_result *r = px_box_result(box);
    ASSERT(r->has_changes && !r->changes_applied && !r->diff_truncated && !r->changes_kept);
    ASSERT_EQ(r->changes_count, 2);
    ASSERT_STR(r->changes[0].path, "d/n");
    ASSERT_STR(r->changes[0].kind, "added");
    ASSERT_STR(r->changes[1].path, "f");
    ASSERT_STR(r->changes[1].kind, "modified");
    ASSERT(strstr(r->diff.data, "\n+2\n") != NULL && strlen(r->diff.data) == r->diff.len);
    px_box_free(box);
    struct stat st;
    ASSERT_EQ(fstatat(dir, "d", &st, 0), -1);
    ASSERT_OK(fstatat(dir, "f", &st, 0));
    ASSERT_EQ(st.st_size, 2);
}

/* A box that is dropped before its end changes nothing and leaves nothing. */
TEST_DEADLINE(changes_of_a_box_that_is_freed_early_are_gone, 60)
{
    px_auto_fd int dir = px_test_dir();
    struct px_box *box = NULL;
    struct px_err e = {0};
    int r = start(FIELDS("changes", px_test_dir_path(), "apply", "true"), "echo 1 >f; sleep 1000", &box, &e);
    if (r < 0)
        SKIP("no such box can be made here: %s %s", e.what, e.why);
    px_box_free(box);
    ASSERT_EQ(faccessat(dir, "f", F_OK, 0), -1);
}
