#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "files/files.h"
#include "files/roots.h"
#include "harness/test.h"

/* output and output/deep are two directories; the second lies in the first by its name only. */
static struct px_files *make(int *ret_dir)
{
    struct px_files *f = NULL;
    struct px_err e = {0};
    int dir = px_test_dir();
    ASSERT_OK(mkdirat(dir, "one", 0755) | mkdirat(dir, "two", 0755) | mkdirat(dir, "one/sub", 0755));
    px_auto_fd int one = openat(dir, "one", O_PATH | O_CLOEXEC), two = openat(dir, "two", O_PATH | O_CLOEXEC);
    struct px_files_root roots[] = {{.name = "output", .use_fd = true, .fd = one, .writable = true},
                                    {.name = "output/deep", .use_fd = true, .fd = two}};
    ASSERT_PX(px_files_new(roots, 2, &f, &e), e);
    *ret_dir = dir;
    return f;
}

TEST(a_text_becomes_a_root_and_a_path_below_it)
{
    static const struct {
        const char *path, *root, *rel;  /* root NULL: outside */
    } rows[] = {
        {"output/a", "output", "a"},
        {"output:a", "output", "a"},
        {"output/deep/a", "output/deep", "a"},
        {"output/deep:a", "output", "deep:a"},
        {"output:deep/a", "output/deep", "a"},
        {"output/deepx", "output", "deepx"},
        {"output//a///b/", "output", "a/b"},
        {"output/./a/.", "output", "a"},
        {"output/x/../a", "output", "a"},
        {"output/", "output", ""},
        {"output", "output", ""},
        {"output//etc/passwd", "output", "etc/passwd"},
        {"output:/etc/passwd", "output", "etc/passwd"},
        {"output/a:b", "output", "a:b"},
        {"output/..a", "output", "..a"},
        {"output/~", "output", "~"},
        {"outputx/a", NULL, NULL},
        {"output/../output/a", NULL, NULL},
        {"output/deep/../a", NULL, NULL},
        {"output/x/../deep/a", "output/deep", "a"},
        {"output/..", NULL, NULL},
        {"..", NULL, NULL},
        {"../output/a", NULL, NULL},
        {"", NULL, NULL},
        {".", NULL, NULL},
        {"./output/a", "output", "a"},
        {".//./output/a", "output", "a"},
        {"./output", "output", ""},
        {"./output/deep/a", "output/deep", "a"},
        {"./", NULL, NULL},
        {"./output:a", NULL, NULL},
        {"./../output/a", NULL, NULL},
        {".///etc/passwd", NULL, NULL},
        {"./~/a", NULL, NULL},
        {"./output/../output/a", NULL, NULL},
        {"/output/a", NULL, NULL},
        {"~/a", NULL, NULL},
        {"Output/a", NULL, NULL},
        {":a", NULL, NULL},
        {"nope:a", NULL, NULL},
        {"output:../a", NULL, NULL},
    };
    int dir;
    px_auto(px_files) struct px_files *f = make(&dir);
    (void)px_fd_close(dir);
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_place p;
        int r = px_files_resolve_split(f, rows[i].path, &p);
        if (r != (rows[i].root ? 0 : -EXDEV))
            FAIL("'%s' gave %d", rows[i].path, r);
        if (r == 0 && (strcmp(p.root->name, rows[i].root) != 0 || strcmp(p.rel, rows[i].rel) != 0))
            FAIL("'%s' is '%s' in %s", rows[i].path, p.rel, p.root->name);
    }
}

TEST(a_text_that_is_too_long_is_refused)
{
    int dir;
    px_auto(px_files) struct px_files *f = make(&dir);
    (void)px_fd_close(dir);
    struct px_place p;
    for (size_t len = PATH_MAX - 3; len < PATH_MAX + 3; len++) {
        px_auto_free char *text = malloc(len + 1);
        ASSERT(text);
        memset(text, 'a', len);
        memcpy(text, "output/", 7);
        text[len] = '\0';
        ASSERT_EQ(px_files_resolve_split(f, text, &p), len < PATH_MAX ? 0 : -ENAMETOOLONG);
    }
}

static void link_to(int dir, const char *target, const char *name)
{
    ASSERT_OK(symlinkat(target, dir, name));
}

TEST(links_lead_where_they_lead_if_it_is_inside)
{
    static const struct {
        const char *path, *rel;         /* NULL: outside */
    } rows[] = {
        {"output/in", "sub"},       {"output/in/x", "sub/x"},         {"output/twice/x", "sub/x"},
        {"output/sub/up", "sub"},   {"output/sub/up/x", "sub/x"},     {"output/out/x", NULL},
        {"output/abs", NULL},       {"output/abs_in", NULL},          {"output/loop", NULL},
        {"output/self/x", NULL},    {"output/dangle", "nothing"},     {"output/dangle/x", "nothing/x"},
        {"output/long/x", "sub/x"}, {"output/none/../in/x", "sub/x"}, {"output/sub/out2", NULL},
    };
    int dir;
    px_auto(px_files) struct px_files *f = make(&dir);
    char target[PATH_MAX];
    px_auto_fd int one = openat(dir, "one", O_RDONLY | O_CLOEXEC);
    link_to(one, "sub", "in");
    link_to(one, "in", "twice");
    link_to(one, "../sub", "sub/up");
    link_to(one, "../two", "out");
    link_to(one, "../../two", "sub/out2");
    link_to(one, "/etc", "abs");
    ASSERT_OK(px_fmt(target, sizeof target, "%s/one/sub", px_test_dir_path()));
    link_to(one, target, "abs_in");
    link_to(one, "loop", "loop");
    link_to(one, "self/.", "self");
    link_to(one, "nothing", "dangle");
    link_to(one, "././././sub/../sub", "long");
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_place p;
        int r = px_files_resolve_place(f, rows[i].path, 0, &p);
        if (rows[i].rel ? r != 0 || strcmp(p.rel, rows[i].rel) != 0 : r != -EXDEV && r != -ELOOP)
            FAIL("'%s' gave %d, '%s'", rows[i].path, r, r == 0 ? p.rel : "");
    }
    (void)px_fd_close(dir);
}

TEST(the_last_link_can_be_meant_itself)
{
    int dir;
    px_auto(px_files) struct px_files *f = make(&dir);
    struct px_place p;
    ASSERT_OK(symlinkat("/etc", dir, "one/out"));
    ASSERT_OK(symlinkat("sub", dir, "one/in"));
    ASSERT_OK(symlinkat("/etc", dir, "one/sub/out"));
    (void)px_fd_close(dir);
    ASSERT_OK(px_files_resolve_place(f, "output/out", PX_RESOLVE_KEEP_LAST, &p));
    ASSERT_STR(p.rel, "out");
    ASSERT_OK(px_files_resolve_place(f, "output/in/out", PX_RESOLVE_KEEP_LAST, &p));
    ASSERT_STR(p.rel, "sub/out");
    ASSERT_EQ(px_files_resolve_place(f, "output/out/x", PX_RESOLVE_KEEP_LAST, &p), -EXDEV);
}
