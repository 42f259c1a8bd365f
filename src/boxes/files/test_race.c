/* A directory is swapped for a link that leads out, a million times, while everything that px/files.h can do goes through it. */
#include <px/files.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "harness/test.h"

enum { SWAPS = 1000000, EXCHANGE = 2 /* RENAME_EXCHANGE */, SECRET_BYTES = 6 };

/* in/ is the root, in/d the directory, in/evil the link to outside/ beside it. */
struct place {
    int top, in;
    struct px_files *files;
    bool over;
    int failed;                 /* errno of a swap */
};

static void put(int dir, const char *name, const char *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(fd);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}

static void make(struct place *p)
{
    struct px_err e = {0};
    p->top = px_test_dir();
    ASSERT_OK(mkdirat(p->top, "in", 0755) | mkdirat(p->top, "in/d", 0755) | mkdirat(p->top, "outside", 0755));
    p->in = openat(p->top, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(p->in, "a.md", "mine");
    put(p->in, "d/x.md", "mine");
    put(p->top, "outside/x.md", "secret");
    ASSERT_OK(symlinkat("../outside", p->in, "evil"));
    struct px_files_root root = {.name = "in", .use_fd = true, .fd = p->in, .writable = true};
    ASSERT_PX(px_files_new(&root, 1, &p->files, &e), e);
}

static void *swap(void *user)
{
    struct place *p = user;
    for (int i = 0; i < SWAPS && p->failed == 0; i++)
        p->failed = (int)px_sys(SYS_renameat2, p->in, "d", p->in, "evil", EXCHANGE);
    __atomic_store_n(&p->over, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Somebody who opens by the name does get the secret meanwhile; otherwise nothing would be proved. */
static bool is_led_astray(const struct place *p)
{
    char text[16] = "";
    px_auto_fd int fd = openat(p->in, "d/x.md", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strcmp(text, "secret") == 0;
}

static bool looks(const struct place *p)
{
    struct px_files_text text = {0};
    struct px_files_stat st = {0};
    struct px_files_entries found = {0};
    struct px_err e = {0};
    bool good = px_files_read(p->files, "in/d/x.md", 0, 100, &text, &e) == 0;
    if (good)
        ASSERT_STR(text.data, "mine");
    px_files_text_done(&text);
    if (px_files_stat(p->files, "in/d/x.md", &st, &e) == 0)
        ASSERT(st.size != SECRET_BYTES);
    if (px_files_list(p->files, &(struct px_files_query){.path = "in/d"}, &found, &e) == 0)
        for (size_t i = 0; i < found.count; i++)
            ASSERT(strncmp(found.items[i].path, "in/d/", 5) == 0 && found.items[i].size != SECRET_BYTES);
    px_files_entries_done(&found);
    if (px_files_search(p->files, &(struct px_files_query){.text = "secret"}, &found, &e) == 0)
        ASSERT_EQ(found.count, 0);
    px_files_entries_done(&found);
    return good;
}

static void changes(const struct place *p)
{
    const struct px_files_edit edit = {"secret", "x", SECRET_BYTES, 1};
    struct px_err e = {0};
    (void)px_files_write(p->files, "in/d/x.md", "mine", 4, NULL, &e);
    (void)px_files_write(p->files, "in/d/new/y.md", "mine", 4, NULL, &e);
    (void)px_files_make_directory(p->files, "in/d/made", &e);
    ASSERT_EQ(px_files_edit(p->files, "in/d/x.md", &edit, 1, false, NULL, &e), -1);
    (void)px_files_copy(p->files, "in/a.md", "in/d/c.md", &e);
    (void)px_files_move(p->files, "in/d/c.md", "in/d/m.md", &e);
    (void)px_files_delete(p->files, "in/d/m.md", &e);
    (void)px_files_delete(p->files, "in/d/x.md", &e);
    (void)px_files_move(p->files, "in/d/x.md", "in/stolen.md", &e);
    (void)px_files_delete(p->files, "in/stolen.md", &e);
    (void)px_files_write(p->files, "in/d/x.md", "mine", 4, NULL, &e);
}

static void check_outside(const struct place *p)
{
    char text[16] = "";
    px_auto_fd int fd = openat(p->top, "outside/x.md", O_RDONLY | O_CLOEXEC);
    ASSERT_OK(fd);
    ASSERT_EQ(read(fd, text, sizeof text - 1), SECRET_BYTES);
    ASSERT_STR(text, "secret");
    ASSERT_EQ(unlinkat(p->top, "outside/x.md", 0), 0);
    ASSERT_EQ(unlinkat(p->top, "outside", AT_REMOVEDIR), 0);    /* that was all there was */
}

TEST_DEADLINE(a_million_swaps_let_nothing_out, 600)
{
    struct place p = {0};
    pthread_t thread;
    unsigned good = 0, astray = 0;
    make(&p);
    ASSERT_EQ(pthread_create(&thread, NULL, swap, &p), 0);
    while (!__atomic_load_n(&p.over, __ATOMIC_ACQUIRE)) {
        astray += is_led_astray(&p);
        good += looks(&p);
        changes(&p);
    }
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    if (p.failed == -EINVAL)
        SKIP("this file system cannot exchange two names");
    ASSERT_EQ(p.failed, 0);
    check_outside(&p);
    ASSERT(good > 0 && astray > 0);
    px_files_free(p.files);
    (void)px_fd_close(p.in);
    (void)px_fd_close(p.top);
}
