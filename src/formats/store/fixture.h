/* store/fixture.h - what the tests of the store share: a store in the test's own directory, and sample content.
 *
 * Why:     keeps the tests short.
 * Owns:    nothing.
 * Mustn't: be linked into the product. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "store/store.h"

/* A busy disk is slow. */
#define STORE_TEST(name) TEST_DEADLINE(name, 180)

/* The store in the directory that px_test_dir made last. */
static inline struct px_store *open_store(void)
{
    struct px_err e = {0};
    struct px_store *store = NULL;

    ASSERT_PX(px_store_open(px_test_dir_path(), &store, &e), e);
    return store;
}

static inline struct px_oid oid_of(const char *text)
{
    struct px_oid oid;

    ASSERT_OK(px_hash_bytes(text, strlen(text), &oid));
    return oid;
}

static inline struct px_oid put_text(struct px_store *store, const char *text)
{
    struct px_err e = {0};
    struct px_oid oid;

    ASSERT_PX(px_blob_put(store, text, strlen(text), &oid, &e), e);
    return oid;
}

static inline void write_text(int dir, const char *name, const char *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    ASSERT(fd >= 0);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}

/* Returns static memory that the next call overwrites. */
static inline const char *file_text(int dir, const char *name)
{
    static char text[4096];

    ASSERT_OK(px_read_file(dir, name, text, sizeof text));
    return text;
}

static inline int at_home(const char *path)
{
    px_auto_fd int home = open(px_test_dir_path(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(home, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT(fd >= 0);
    return fd;
}

static inline bool is_there(const char *path)
{
    px_auto_fd int home = open(px_test_dir_path(), O_PATH | O_DIRECTORY | O_CLOEXEC);

    return faccessat(home, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* How many names a directory of the store has. */
static inline int entries_of(const char *path)
{
    char command_path[4096];
    int count = -2;

    ASSERT_OK(px_fmt(command_path, sizeof command_path, "%s/%s", px_test_dir_path(), path));
    DIR *dir = opendir(command_path);
    ASSERT(dir);
    while (readdir(dir))
        count++;
    (void)closedir(dir);
    return count;
}

static inline void fill_tree(int dir, const char *text)
{
    ASSERT_OK(mkdirat(dir, "usr", 0755));
    write_text(dir, "usr/file", text);
    ASSERT_OK(symlinkat("usr/file", dir, "link"));
}

static inline void put_tree(struct px_store *store, const struct px_oid *id, const char *text)
{
    struct px_err e = {0};
    struct px_tree_build *build = NULL;
    int r = px_tree_begin(store, id, &build, &e);

    ASSERT_PX(r, e);
    if (r == 1)
        return;
    fill_tree(px_tree_build_fd(build), text);
    ASSERT_PX(px_tree_commit(build, "{\"text\":1}", &e), e);
}

/* A record that needs one blob and one tree (either may be NULL). */
static inline void record_text(char *out, size_t size, const struct px_oid *blob, const struct px_oid *tree)
{
    ASSERT_OK(px_fmt(out, size, "{\"refs\":{\"blobs\":[%s%s%s],\"trees\":[%s%s%s]}}", blob ? "\"" : "",
                     blob ? blob->hex : "", blob ? "\"" : "", tree ? "\"" : "", tree ? tree->hex : "",
                     tree ? "\"" : ""));
}

static inline void put_record(struct px_store *store, enum px_record_kind kind, const struct px_oid *id,
                              const struct px_oid *blob, const struct px_oid *tree)
{
    struct px_err e = {0};
    char json[512];

    record_text(json, sizeof json, blob, tree);
    ASSERT_PX(px_record_put(store, kind, id, json, &e), e);
}

/* Waits for a child, which must exit with 0. */
static inline void reap(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    ASSERT_EQ(status, 0);
}

#define ASSERT_FAILS(expression, err, number)                                                                 \
    do {                                                                                                      \
        (err) = (struct px_err){0};                                                                           \
        ASSERT_EQ((expression), -1);                                                                          \
        ASSERT_EQ((err).code, number);                                                                        \
        ASSERT((err).what[0] && ((err).why[0] || (number) == PX_E_VALUE) && (err).fix[0]);                                                \
    } while (0)
