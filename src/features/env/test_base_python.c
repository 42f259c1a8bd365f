/* env/test_base_python.c - the Python of a root, by its files alone. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "env/base_python.h"
#include "harness/test.h"

#define HOST "/usr/bin/python3.11"
#define HOST_LIBRARY "/lib/x86_64-linux-gnu/libc.so.6"

static void make_directories(int root)
{
    static const char *const names[] = {"usr", "usr/bin", "usr/local", "usr/local/bin", "usr/lib64"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        ASSERT_OK(mkdirat(root, names[i], 0755));
}

/* The first `most` bytes of a file of this machine. */
static void copy(int root, const char *from, const char *to, size_t most)
{
    px_auto_fd int in = open(from, O_RDONLY | O_CLOEXEC);
    px_auto_fd int out = openat(root, to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    ASSERT(in >= 0 && out >= 0);
    for (ssize_t n = 1; n > 0 && most > 0; most -= (size_t)n)
        n = sendfile(out, in, NULL, most < 1 << 20 ? most : 1 << 20);
}

static void write_text(int root, const char *name, const char *text)
{
    px_auto_fd int fd = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    ASSERT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

TEST(python_of_this_machine)
{
    px_auto_fd int root = px_test_dir();
    static struct px_base_python found;
    if (access(HOST, R_OK) < 0 || access(HOST_LIBRARY, R_OK) < 0)
        SKIP("there is no " HOST " here");
    make_directories(root);
    ASSERT_EQ(px_env_base_python_find(root, "somewhere", &found), 1);
    copy(root, HOST, "usr/bin/python3.11", SIZE_MAX);
    /* without its C library no wheel can be chosen */
    ASSERT_EQ(px_env_base_python_find(root, "somewhere", &found), 1);
    copy(root, HOST_LIBRARY, "usr/lib64/libc.so.6", SIZE_MAX);
    write_text(root, "usr/bin/python3.12", "#!/bin/sh\n");             /* no interpreter */
    ASSERT_OK(px_env_base_python_find(root, "somewhere", &found));
    ASSERT_STR(found.python.program, "/usr/bin/python3.11");
    ASSERT_STR(found.python.base, "somewhere");
    ASSERT(px_starts_with(found.python.version, "3.11."));
    ASSERT_EQ(found.python.minor, 11);
    ASSERT_EQ(found.python.libc_major, 2);
    ASSERT(found.python.libc_minor >= 17 && !found.python.musl);
    copy(root, HOST, "usr/local/bin/python3.11", SIZE_MAX);
    ASSERT_OK(px_env_base_python_find(root, "somewhere", &found));
    ASSERT_STR(found.python.program, "/usr/local/bin/python3.11");      /* as PATH would have it */
}

TEST(an_interpreter_by_its_path)
{
    px_auto_fd int root = px_test_dir();
    static struct px_base_python found;
    if (access(HOST, R_OK) < 0 || access(HOST_LIBRARY, R_OK) < 0)
        SKIP("there is no " HOST " here");
    make_directories(root);
    copy(root, HOST, "usr/local/python3.11", SIZE_MAX);
    copy(root, HOST_LIBRARY, "usr/lib64/libc.so.6", SIZE_MAX);
    ASSERT_OK(px_env_base_python_at(root, "somewhere", "/usr/local/python3.11", 11, &found));
    ASSERT_STR(found.python.program, "/usr/local/python3.11");
    ASSERT(px_starts_with(found.python.version, "3.11."));
    ASSERT_EQ(px_env_base_python_at(root, "somewhere", "/usr/local/python3.12", 12, &found), 1);
    ASSERT_EQ(px_env_base_python_at(root, "somewhere", "/usr/lib64/libc.so.6", 11, &found), 1);
}

TEST(what_is_cut_off_is_none)
{
    static struct px_base_python found;
    px_auto_fd int root = px_test_dir();
    if (access(HOST, R_OK) < 0)
        SKIP("there is no " HOST " here");
    make_directories(root);
    for (size_t most = 0; most <= 64; most += 16) {
        copy(root, HOST, "usr/bin/python3.11", most);
        ASSERT_EQ(px_env_base_python_find(root, "", &found), 1);
    }
}

TEST(links_out_of_the_root_lead_nowhere)
{
    static struct px_base_python found;
    px_auto_fd int root = px_test_dir();
    make_directories(root);
    ASSERT_OK(symlinkat(HOST, root, "usr/bin/python3.11"));
    ASSERT_EQ(px_env_base_python_find(root, "", &found), 1);
    ASSERT_OK(mkfifoat(root, "usr/bin/python3.10", 0644));              /* does not block on it */
    ASSERT_OK(mkdirat(root, "usr/bin/python3.9", 0755));
    ASSERT_EQ(px_env_base_python_find(root, "", &found), 1);
}

TEST(versions_in_bytes)
{
    static const char good[] = "x\0" "3.11.x\0" "3.11.14\0", early[] = "\0" "3.11.0rc1", none[] = "13.11.2\0 3.11.2\0", end[] = "\0" "3.11.2";
    static const char glibc[] = "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n", other[] = "GNU C Library (x) release version 2";
    char out[32];
    unsigned major, minor;
    ASSERT(px_env_base_python_version(good, sizeof good, 11, out, sizeof out) >= 0);
    ASSERT_STR(out, "3.11.14");
    ASSERT(px_env_base_python_version(early, sizeof early, 11, out, sizeof out) >= 0);
    ASSERT_STR(out, "3.11.0");
    ASSERT_EQ(px_env_base_python_version(none, sizeof none, 11, out, sizeof out), -ENOENT);
    ASSERT_EQ(px_env_base_python_version(end, sizeof end - 1, 11, out, sizeof out), -ENOENT);
    ASSERT_OK(px_env_base_python_glibc(glibc, sizeof glibc, &major, &minor));
    ASSERT_EQ(major * 100 + minor, 236);
    ASSERT_EQ(px_env_base_python_glibc(other, sizeof other, &major, &minor), -ENOENT);
    ASSERT_EQ(px_env_base_python_glibc("", 0, &major, &minor), -ENOENT);
}
