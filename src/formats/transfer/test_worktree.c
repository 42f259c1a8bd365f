#include "transfer/worktree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

static int parse(const char *text, size_t size, struct px_worktree *w, struct px_err *e)
{
    char *copy = malloc(size + 1);
    ASSERT(copy);
    memcpy(copy, text, size);
    return px_worktree_read(copy, size, w, e);
}

TEST(an_answer_is_read)
{
    static const char text[] = "Fb\0D M b\0Sp\0Fa/c\0Fa.b\0D?? x y";
    struct px_worktree w;
    struct px_err e = {0};
    ASSERT_PX(parse(text, sizeof text, &w, &e), e);
    ASSERT_EQ(w.files.count, 3);
    ASSERT_STR(w.files.items[0], "a.b");
    ASSERT_STR(w.files.items[1], "a/c");
    ASSERT_STR(w.files.items[2], "b");
    ASSERT_EQ(w.dirty.count, 2);
    ASSERT_STR(w.dirty.items[1], "?? x y");
    ASSERT_STR(w.specials.items[0], "p");
    ASSERT(px_worktree_has(&w, "a/c") && !px_worktree_has(&w, "a"));
    px_auto_fd int list = px_worktree_list(&w);
    char back[64] = "";
    ASSERT_EQ(px_read_full(list, back, sizeof back), 10);
    ASSERT(memcmp(back, "a.b\0a/c\0b", 10) == 0);
    px_worktree_done(&w);
    ASSERT_PX(parse("", 0, &w, &e), e);
    ASSERT_EQ(w.files.count, 0);
    ASSERT(!px_worktree_has(&w, "a"));
    px_worktree_done(&w);
}

TEST(answers_that_are_none)
{
    static const struct {
        const char *text;
        size_t size;
    } bad[] = {{"Fa", 2},     {"F", 2},      {"Xa", 3},   {"", 1},       {"F/a", 4},  {"F../a", 6}, {"Fa/../b", 8}, {"Fa//b", 6},
               {"Fa/", 4},    {"F.", 3},     {"Fa/./b", 7}, {"Dx", 3},   {"D M ", 5}, {"DQQ a", 6}, {"Fa\0Fa", 6},  {"S", 2}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct px_worktree w;
        struct px_err e = {0};
        ASSERT_EQ(parse(bad[i].text, bad[i].size, &w, &e), -1);
        ASSERT_EQ(e.code, PX_E_INTERNAL);
    }
}

/* ---- where the repository is ---- */

static void put(int dir, const char *path, const char *text)
{
    px_auto_fd int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}

struct site {
    int dir;
    char path[4096];
};

static struct site make_site(void)
{
    struct site s = {.dir = px_test_dir()};
    char link[64];
    ASSERT(px_fmt(link, sizeof link, "/proc/self/fd/%d", s.dir) >= 0);
    ASSERT(realpath(link, s.path));
    return s;
}

static int find(const struct site *s, const char *below, struct px_git_place *place, struct px_err *e)
{
    char path[4400];
    ASSERT(px_fmt(path, sizeof path, "%s%s", s->path, below) >= 0);
    return px_worktree_git_find(path, place, e);
}

TEST(the_next_repository_above_counts)
{
    struct site s = make_site();
    struct px_git_place place;
    struct px_err e = {0};
    ASSERT_OK(mkdirat(s.dir, "a", 0755));
    ASSERT_OK(mkdirat(s.dir, "a/b", 0755));
    ASSERT_OK(mkdirat(s.dir, ".git", 0755));
    ASSERT_PX(find(&s, "/a/b", &place, &e), e);
    ASSERT(place.repository);
    ASSERT_STR(place.top, s.path);
    ASSERT_STR(place.sub, "a/b");
    ASSERT_PX(find(&s, "", &place, &e), e);
    ASSERT_STR(place.sub, "");
    ASSERT_OK(mkdirat(s.dir, "a/.git", 0755));
    ASSERT_PX(find(&s, "/a/b", &place, &e), e);
    ASSERT_STR(place.sub, "b");
    px_fd_close(s.dir);
}

TEST(a_git_directory_elsewhere_has_to_know)
{
    struct site s = make_site();
    struct px_git_place place;
    struct px_err e = {0};
    char text[4400];
    ASSERT_OK(mkdirat(s.dir, "git", 0755));
    ASSERT_OK(mkdirat(s.dir, "git/worktrees", 0755));
    ASSERT_OK(mkdirat(s.dir, "git/worktrees/w", 0755));
    ASSERT_OK(mkdirat(s.dir, "tree", 0755));
    put(s.dir, "tree/.git", "gitdir: ../git/worktrees/w\n");
    ASSERT_EQ(find(&s, "/tree", &place, &e), -1);
    ASSERT_EQ(e.code, PX_E_BUILD);
    put(s.dir, "git/worktrees/w/commondir", "../..\n");
    put(s.dir, "git/worktrees/w/gitdir", "/elsewhere/.git\n");
    ASSERT_EQ(find(&s, "/tree", &place, &e), -1);
    ASSERT(px_fmt(text, sizeof text, "%s/tree/.git\n", s.path) >= 0);
    put(s.dir, "git/worktrees/w/gitdir", text);
    ASSERT_PX(find(&s, "/tree", &place, &e), e);
    ASSERT(px_fmt(text, sizeof text, "%s/git", s.path) >= 0);
    ASSERT_STR(place.elsewhere, text);
    /* A git directory whose commondir does not contain it. */
    put(s.dir, "git/worktrees/w/commondir", "../../../tree\n");
    ASSERT_EQ(find(&s, "/tree", &place, &e), -1);
    ASSERT_OK(unlinkat(s.dir, "tree/.git", 0));
    ASSERT_OK(symlinkat("../git", s.dir, "tree/.git"));
    ASSERT_EQ(find(&s, "/tree", &place, &e), -1);
    px_fd_close(s.dir);
}
