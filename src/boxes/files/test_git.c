/* Git directories of a writable root: as they are named, as they are reached, and as they look. */
#include <px/files.h>

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

struct site {
    int dir;                    /* the root r */
    struct px_files *files, *loose;     /* the second with git_writable */
};

static void put(int dir, const char *name, const char *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(fd);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}

static void make_dirs(int dir, const char *const names[])
{
    for (; *names; names++)
        ASSERT_OK(mkdirat(dir, *names, 0755));
}

static struct site make(void)
{
    struct site s = {.dir = px_test_dir()};
    struct px_err e = {0};
    struct px_files_root root = {.name = "r", .use_fd = true, .fd = s.dir, .writable = true};
    ASSERT_PX(px_files_new(&root, 1, &s.files, &e), e);
    root.git_writable = true;
    ASSERT_PX(px_files_new(&root, 1, &s.loose, &e), e);
    put(s.dir, "a", "hello");
    return s;
}

static void done(struct site *s)
{
    px_files_free(s->files);
    px_files_free(s->loose);
    px_fd_done(&s->dir);
}
#define auto_site __attribute__((cleanup(done)))

/* No operation that writes may have it, and everything stays as it is. */
static void check_refused(const struct px_files *f, const char *path)
{
    struct px_err e = {0};
    ASSERT(!px_files_can_write(f, path));
    ASSERT_EQ(px_files_write(f, path, "x", 1, NULL, &e), -1);
    if (e.code != PX_E_READ_ONLY)
        FAIL("%s: PX%03d %s", path, e.code, e.what);
    ASSERT_EQ(px_files_copy(f, "r/a", path, &e), -1);
    ASSERT_EQ(e.code, PX_E_READ_ONLY);
    ASSERT_EQ(px_files_move(f, "r/a", path, &e), -1);
    ASSERT_EQ(e.code, PX_E_READ_ONLY);
    ASSERT_EQ(px_files_move(f, path, "r/elsewhere", &e), -1);
    ASSERT_EQ(e.code, PX_E_READ_ONLY);
    ASSERT_EQ(px_files_delete(f, path, &e), -1);
    ASSERT_EQ(e.code, PX_E_READ_ONLY);
    ASSERT_EQ(px_files_make_directory(f, path, &e), -1);
    ASSERT_EQ(e.code, PX_E_READ_ONLY);
}

static void check_all(const struct site *s, const char *const refused[], const char *const allowed[])
{
    struct px_err e = {0};
    for (; *refused; refused++)
        check_refused(s->files, *refused);
    for (; *allowed; allowed++) {
        ASSERT(px_files_can_write(s->files, *allowed));
        ASSERT_PX(px_files_write(s->files, *allowed, "x", 1, NULL, &e), e);
    }
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(a_git_directory_can_be_read_and_not_written)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    struct px_files_text text = {0};
    struct px_files *more = NULL;
    make_dirs(s.dir, WORDS(".git", "sub", "sub/.git"));
    put(s.dir, ".git/config", "of git");
    ASSERT_OK(symlinkat(".git", s.dir, "way"));
    ASSERT_PX(px_files_read(s.files, "r/.git/config", 0, 10, &text, &e), e);
    px_files_text_done(&text);
    check_all(&s, WORDS("r/.git/config", "r/.git/new", "r/.git", "r:.git/x", "r/way/config", "r/sub/.git/x", "r/x/.git/y",
                        "r/.GIT/x", "r/.Git"),
              WORDS("r/.gitignore", "r/.github/x", "r/git/x", "r/sub/x.git"));
    ASSERT_EQ(px_files_derive(s.files, &(struct px_files_narrow){.write = WORDS("r/.git")}, &more, &e), -1);
    ASSERT_PX(px_files_write(s.loose, "r/.git/config", "x", 1, NULL, &e), e);
    ASSERT_PX(px_files_derive(s.loose, &(struct px_files_narrow){.inherit = true, .protect_git = true}, &more, &e), e);
    check_refused(more, "r/.git/config");
    px_files_free(more);
}

TEST(a_git_that_is_a_link_protects_what_it_leads_to)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    make_dirs(s.dir, WORDS("store", "store/real", "store/real/hooks", "other"));
    ASSERT_OK(symlinkat("store/real", s.dir, ".git"));
    check_all(&s, WORDS("r/.git", "r/.git/hooks/x", "r/store/real/hooks/x", "r/store/real", "r/store"),
              WORDS("r/store/x", "r/other/x", "r/store/real2"));
    ASSERT_PX(px_files_write(s.loose, "r/.git/hooks/x", "x", 1, NULL, &e), e);
    ASSERT_PX(px_files_delete(s.loose, "r/.git", &e), e);
}

TEST(a_git_that_is_a_file_protects_what_it_names)
{
    auto_site struct site s = make();
    make_dirs(s.dir, WORDS("sub", "sub/bare", "sub/bare/trees", "sub/bare/trees/one", "work"));
    put(s.dir, "work/.git", "gitdir: ../sub/bare/trees/one\n");
    put(s.dir, ".git", "gitdir: sub/bare/trees/one\n");
    put(s.dir, "sub/bare/trees/one/commondir", "../..\n");
    check_all(&s, WORDS("r/.git", "r/work/.git", "r/sub/bare/trees/one/HEAD", "r/sub/bare/hooks/x", "r/sub/bare/config",
                        "r/sub"),
              WORDS("r/sub/x", "r/work/x"));
    static const char *const harmless[] = {"gitdir: ../outside", "gitdir: /nowhere/at/all", "gitdir: ", "nonsense", "",
                                           "gitdir: none/there"};
    for (size_t i = 0; i < PX_COUNT_OF(harmless); i++) {
        put(s.dir, ".git", harmless[i]);
        check_all(&s, WORDS("r/.git"), WORDS("r/sub/bare/y"));
    }
}

TEST(a_git_file_may_name_its_directory_from_the_root_of_the_host)
{
    auto_site struct site s = make();
    char link[64], text[PATH_MAX + 32], top[PATH_MAX];
    make_dirs(s.dir, WORDS("bare", "bare/hooks"));
    (void)px_fmt(link, sizeof link, "/proc/self/fd/%d", s.dir);
    ssize_t n = readlink(link, top, sizeof top - 1);
    ASSERT(n > 0);
    top[n] = '\0';
    ASSERT_OK(px_fmt(text, sizeof text, "gitdir: %s/bare/\n", top));
    put(s.dir, ".git", text);
    check_all(&s, WORDS("r/bare/hooks/x", "r/bare"), WORDS("r/bare2"));
}

TEST(what_looks_like_a_git_directory_is_one)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    make_dirs(s.dir, WORDS("any", "any/objects", "any/refs", "any/hooks", "tree", "no", "no/objects"));
    put(s.dir, "any/HEAD", "ref: refs/heads/main\n");
    put(s.dir, "tree/HEAD", "ref: refs/heads/main\n");
    put(s.dir, "tree/commondir", "../any\n");
    check_all(&s, WORDS("r/any/hooks/x", "r/any/config", "r/any", "r/tree/x"),
              WORDS("r/no/objects/x", "r/no/config", "r/any2"));
    ASSERT_PX(px_files_write(s.loose, "r/any/config", "x", 1, NULL, &e), e);
}
