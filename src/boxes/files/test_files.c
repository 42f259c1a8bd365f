/* The whole of px/files.h on real trees: the rows of the specification and hostile trees. */
#include <px/files.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "files/files.h"
#include "files/roots.h"
#include "harness/test.h"
#include "kernel/tree.h"

static const char *const documents[] = {".md", ".pdf", NULL};

struct site {
    int dir, one, two;
    struct px_files *files;
};

static void put(int dir, const char *name, const char *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_OK(fd);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}

static const char *get(int dir, const char *name, char out[256])
{
    return px_read_file(dir, name, out, 256) < 0 ? NULL : out;
}

/* portfolio is one/ (rw, .md and .pdf, at most 20 bytes), pipeline is two/ (ro); secret.md lies beside them. */
static struct site make(void)
{
    struct site s = {.dir = px_test_dir()};
    struct px_err e = {0};
    ASSERT_OK(mkdirat(s.dir, "one", 0755) | mkdirat(s.dir, "two", 0755));
    s.one = openat(s.dir, "one", O_RDONLY | O_CLOEXEC);
    s.two = openat(s.dir, "two", O_RDONLY | O_CLOEXEC);
    put(s.dir, "secret.md", "secret");
    put(s.one, "a.md", "hello");
    put(s.two, "b.txt", "b");
    struct px_files_root roots[] = {{.name = "portfolio",
                                     .use_fd = true,
                                     .fd = s.one,
                                     .writable = true,
                                     .suffixes = documents,
                                     .max_file_bytes = 20},
                                    {.name = "pipeline", .use_fd = true, .fd = s.two}};
    ASSERT_PX(px_files_new(roots, 2, &s.files, &e), e);
    return s;
}

static void done(struct site *s)
{
    px_files_free(s->files);
    px_fd_done(&s->dir);
    px_fd_done(&s->one);
    px_fd_done(&s->two);
}
#define auto_site __attribute__((cleanup(done)))

static int read_path(const struct site *s, const char *path, struct px_err *e)
{
    struct px_files_text text = {0};
    int r = px_files_read(s->files, path, 0, 100, &text, e);
    px_files_text_done(&text);
    return r;
}

static int write_path(const struct site *s, const char *path, const char *text, struct px_err *e)
{
    return px_files_write(s->files, path, text, strlen(text), NULL, e);
}

static void expect_message(const struct site *s, const struct px_err *e, const char *class, const char *message)
{
    px_auto_free char *text = NULL;
    ASSERT_STR(px_files_class(e->code), class);
    ASSERT_OK(px_files_message(e, &text, NULL));
    ASSERT_STR(text, message);
    px_auto_free char *json = NULL;
    ASSERT_OK(px_files_error_json(s->files, e, &json, NULL));
    ASSERT(!strstr(json, px_test_dir_path()));
}

/* ---- words ---- */

TEST(errors_are_the_specification_s_word_for_word)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    put(s.one, "x.txt", "x");
    put(s.one, "large.md", "123456789012345678901");
    ASSERT_EQ(read_path(&s, "/etc/passwd", &e), -1);
    expect_message(&s, &e, "PathNotInSandboxError",
                   "Cannot access '/etc/passwd': path is outside sandbox.\nReadable paths: portfolio, pipeline");
    ASSERT_EQ(write_path(&s, "pipeline/b.txt", "x", &e), -1);
    expect_message(&s, &e, "PathNotWritableError",
                   "Cannot write to 'pipeline/b.txt': path is read-only.\nWritable paths: portfolio");
    ASSERT_EQ(read_path(&s, "portfolio/x.txt", &e), -1);
    expect_message(&s, &e, "SuffixNotAllowedError",
                   "Cannot access 'portfolio/x.txt': suffix not allowed.\nAllowed suffixes: .md, .pdf");
    ASSERT_EQ(read_path(&s, "portfolio/large.md", &e), -1);
    expect_message(&s, &e, "FileTooLargeError",
                   "Cannot read 'portfolio/large.md': file too large (21 bytes).\nMaximum allowed: 20 bytes");
    ASSERT_EQ(write_path(&s, "portfolio/a.md", "123456789012345678901", &e), -1);
    expect_message(&s, &e, "FileTooLargeError",
                   "Cannot write 'portfolio/a.md': file too large (21 bytes).\nMaximum allowed: 20 bytes");
    ASSERT_EQ(read_path(&s, "portfolio/none.md", &e), -1);
    expect_message(&s, &e, "FileNotFoundError", "File not found: portfolio/none.md");
    ASSERT_EQ(read_path(&s, "portfolio/", &e), -1);
    expect_message(&s, &e, "NotAFileError", "Not a file: portfolio/");
    ASSERT_EQ(read_path(&s, "portfolio", &e), -1);
    expect_message(&s, &e, "NotAFileError", "Not a file: portfolio");
    ASSERT_EQ(write_path(&s, "pipeline", "x", &e), -1);
    expect_message(&s, &e, "PathNotWritableError",
                   "Cannot write to 'pipeline': path is read-only.\nWritable paths: portfolio");
}

TEST(nothing_is_written_below_a_file)
{
    static const char below[] = "Cannot write to 'portfolio/a.md/x.md': a part of its path is no directory.";
    auto_site struct site s = make();
    struct px_err e = {0};
    char out[256];
    ASSERT_EQ(write_path(&s, "portfolio/a.md/x.md", "x", &e), -1);
    expect_message(&s, &e, "NotAFileError", below);
    ASSERT_EQ(px_files_make_directory(s.files, "portfolio/a.md/x.md", &e), -1);
    expect_message(&s, &e, "NotAFileError", below);
    ASSERT_EQ(px_files_copy(s.files, "portfolio/a.md", "portfolio/a.md/x.md", &e), -1);
    expect_message(&s, &e, "NotAFileError", below);
    ASSERT_EQ(write_path(&s, "pipeline/b.txt/x", "x", &e), -1);
    expect_message(&s, &e, "PathNotWritableError",
                   "Cannot write to 'pipeline/b.txt/x': path is read-only.\nWritable paths: portfolio");
    ASSERT_EQ(read_path(&s, "portfolio/a.md/x.md", &e), -1);
    expect_message(&s, &e, "FileNotFoundError", "File not found: portfolio/a.md/x.md");
    ASSERT_STR(get(s.one, "a.md", out), "hello");
}

TEST(a_directory_is_not_moved_into_itself)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    ASSERT_OK(mkdirat(s.one, "d", 0755) | mkdirat(s.one, "dd", 0755));
    ASSERT_EQ(px_files_move(s.files, "portfolio/d", "portfolio/d/e/f", &e), -1);
    expect_message(&s, &e, "NotAFileError", "Cannot move 'portfolio/d': a directory cannot be moved into itself.");
    ASSERT_EQ(faccessat(s.one, "d/e", F_OK, 0), -1);
    ASSERT_EQ(px_files_move(s.files, "portfolio/d", "portfolio/d", &e), -1);
    ASSERT_EQ(e.code, PX_E_EXISTS);
    ASSERT_PX(px_files_move(s.files, "portfolio/d", "portfolio/dd/d", &e), e);
}

TEST(no_writable_root_is_none)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    px_auto(px_files) struct px_files *child = NULL;
    ASSERT_PX(px_files_derive(s.files, &(struct px_files_narrow){.inherit = true, .read_only = true}, &child, &e), e);
    ASSERT_EQ(px_files_write(child, "portfolio/a.md", "x", 1, NULL, &e), -1);
    expect_message(&s, &e, "PathNotWritableError",
                   "Cannot write to 'portfolio/a.md': path is read-only.\nWritable paths: none");
}

TEST(hostile_text_in_a_path_is_quoted_and_cut)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    char path[3000];
    ASSERT_EQ(read_path(&s, "x\n\x1b[31m\xff", &e), -1);
    ASSERT_STR(e.what, "Cannot access 'x\\x0a\\x1b[31m\\xff': path is outside sandbox.");
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    ASSERT_EQ(read_path(&s, path, &e), -1);
    ASSERT(strstr(e.what, "ppp...': path is outside sandbox."));
}

/* ---- reading and writing ---- */

TEST(limits_are_inclusive)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    char out[256];
    put(s.one, "full.md", "12345678901234567890");
    ASSERT_PX(read_path(&s, "portfolio/full.md", &e), e);
    ASSERT_PX(write_path(&s, "portfolio/n.MD", "12345678901234567890", &e), e);
    ASSERT_EQ(write_path(&s, "portfolio/a.md", "123456789012345678901", &e), -1);
    ASSERT_STR(get(s.one, "a.md", out), "hello");
    ASSERT_EQ(write_path(&s, "portfolio/none", "x", &e), -1);
    ASSERT_EQ(e.code, PX_E_SUFFIX);
    ASSERT_EQ(write_path(&s, "portfolio/.md", "x", &e), -1);
    ASSERT_EQ(e.code, PX_E_SUFFIX);
}

TEST(a_write_keeps_the_mode_but_no_set_id_bit_and_breaks_no_other_name)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    struct stat st;
    char out[256];
    ASSERT_OK(linkat(s.dir, "secret.md", s.one, "hard.md", 0));
    ASSERT_PX(write_path(&s, "portfolio/hard.md", "mine", &e), e);
    ASSERT_STR(get(s.dir, "secret.md", out), "secret");
    ASSERT_OK(fchmodat(s.one, "a.md", 06751, 0));
    ASSERT_PX(write_path(&s, "portfolio/a.md", "new", &e), e);
    ASSERT_OK(fstatat(s.one, "a.md", &st, 0));
    ASSERT_EQ(st.st_mode & 07777, 0751);
    ASSERT_STR(get(s.one, "a.md", out), "new");
}

static size_t count_entries(int dir)
{
    struct px_files *f = NULL;
    struct px_files_entries list = {0};
    struct px_err e = {0};
    struct px_files_root root = {.name = "all", .use_fd = true, .fd = dir};
    ASSERT_PX(px_files_new(&root, 1, &f, &e), e);
    ASSERT_PX(px_files_list(f, &(struct px_files_query){.directories = true}, &list, &e), e);
    size_t n = list.count;
    px_files_entries_done(&list);
    px_files_free(f);
    return n;
}

TEST(a_refused_write_leaves_nothing)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    ASSERT_OK(mkdirat(s.one, "dir.md", 0755));
    ASSERT_OK(mknodat(s.one, "pipe.md", S_IFIFO | 0644, 0));
    ASSERT_OK(symlinkat("../secret.md", s.one, "out.md"));
    ASSERT_OK(symlinkat("..", s.one, "up"));
    size_t before = count_entries(s.one);
    static const char *const paths[] = {"portfolio/dir.md",
                                        "portfolio/pipe.md",
                                        "portfolio/out.md",
                                        "portfolio/up/new/x.md",
                                        "portfolio/new/x.txt",
                                        "pipeline/new/x.md",
                                        "portfolio/a.md/x.md",
                                        "portfolio/../x.md",
                                        "portfolio/",
                                        "portfolio",
                                        "x.md",
                                        "",
                                        "portfolio/pipe.md/x.md"};
    for (size_t i = 0; i < PX_COUNT_OF(paths); i++)
        if (write_path(&s, paths[i], "x", &e) != -1)
            FAIL("'%s' was written", paths[i]);
    ASSERT_EQ(px_files_write(s.files, "portfolio/new/x.md", "\xff", 1, NULL, &e), -1);
    ASSERT_EQ(e.code, PX_E_NOT_TEXT);
    ASSERT_EQ(count_entries(s.one), before);
    char out[256];
    ASSERT_STR(get(s.dir, "secret.md", out), "secret");
    ASSERT_PX(write_path(&s, "portfolio/new/deep/x.md", "x", &e), e);       /* the permitted twin */
    ASSERT_STR(get(s.one, "new/deep/x.md", out), "x");
}

TEST(what_is_no_text_names_the_other_way)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    put(s.one, "b.md", "\xff\xfe");
    ASSERT_EQ(read_path(&s, "portfolio/b.md", &e), -1);
    ASSERT_EQ(e.code, PX_E_NOT_TEXT);
    ASSERT(strstr(e.fix, "attachment"));
    int fd = -EBADF;
    ASSERT_PX(px_files_open(s.files, "portfolio/b.md", &fd, &e), e);
    ASSERT(px_fd_close(fd) == -EBADF);
}

TEST(questions_are_never_errors)
{
    static const struct {
        const char *path;
        bool read, write;
    } rows[] = {
        {"portfolio/a.md", true, true},     {"portfolio/new.md", true, true},   {"portfolio/x.txt", false, false},
        {"pipeline/b.txt", true, false},    {"portfolio", true, false},        {"portfolio/", true, false},
        {"/etc/passwd", false, false},      {"", false, false},                 {"portfolio/out.md", false, false},
        {"portfolio/in.md", true, true},    {"portfolio/pipe.md", false, false}, {"portfolio/../x", false, false},
    };
    auto_site struct site s = make();
    ASSERT_OK(symlinkat("../secret.md", s.one, "out.md") | symlinkat("a.md", s.one, "in.md"));
    ASSERT_OK(mknodat(s.one, "pipe.md", S_IFIFO | 0644, 0));
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_files_can_read(s.files, rows[i].path) != rows[i].read ||
            px_files_can_write(s.files, rows[i].path) != rows[i].write)
            FAIL("'%s'", rows[i].path);
}

TEST(special_files_neither_block_nor_answer)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    ASSERT_OK(mknodat(s.one, "pipe.md", S_IFIFO | 0644, 0));
    ASSERT_OK(mknodat(s.one, "socket.md", S_IFSOCK | 0644, 0));
    static const char *const names[] = {"portfolio/pipe.md", "portfolio/socket.md"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++) {
        ASSERT_EQ(read_path(&s, names[i], &e), -1);
        ASSERT_EQ(e.code, PX_E_NOT_FILE);
        ASSERT_EQ(px_files_copy(s.files, names[i], "portfolio/c.md", &e), -1);
        ASSERT_EQ(px_files_move(s.files, names[i], "portfolio/c.md", &e), -1);
        ASSERT_EQ(px_files_delete(s.files, names[i], &e), -1);
        ASSERT_EQ(e.code, PX_E_NOT_FILE);
    }
    if (mknodat(s.one, "zero.md", S_IFCHR | 0666, (dev_t)0x105) == 0) {
        ASSERT_EQ(read_path(&s, "portfolio/zero.md", &e), -1);
        ASSERT_EQ(write_path(&s, "portfolio/zero.md", "x", &e), -1);
    }
}

/* A file of an exbibyte costs nothing to make, and must cost nothing to refuse. */
TEST(a_huge_file_is_refused_by_its_size)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    px_auto_fd int fd = openat(s.two, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    off_t size = (off_t)1 << 40;
    while (size > PX_FILES_BYTES_MAX && ftruncate(fd, size) < 0)
        size >>= 1;
    ASSERT(size > PX_FILES_BYTES_MAX);
    ASSERT_EQ(read_path(&s, "pipeline/huge", &e), -1);
    ASSERT_EQ(e.code, PX_E_TOO_LARGE);
    ASSERT_EQ(px_files_copy(s.files, "pipeline/huge", "portfolio/h.md", &e), -1);
    struct px_files_entries list = {0};
    ASSERT_PX(px_files_search(s.files, &(struct px_files_query){.path = "pipeline", .text = "b"}, &list, &e), e);
    ASSERT_EQ(list.count, 1);
    ASSERT_EQ(list.files_skipped, 1);
    px_files_entries_done(&list);
}

static int edit_path(const struct site *s, const char *path, const char *old, const char *new, struct px_err *e)
{
    struct px_files_edit edit = {old, new, strlen(old), strlen(new)};
    return px_files_edit(s->files, path, &edit, 1, false, NULL, e);
}

/* What a box with that directory could not write otherwise. */
TEST(what_root_makes_belongs_to_the_owner_of_the_directory)
{
    enum { OWNER = 1300 };
    static const char *const made[] = {"new.md", "deep", "deep/er", "deep/er/f.md", "dir", "copy.md"};
    auto_site struct site s = make();
    struct px_err e = {0};
    struct stat st;
    if (geteuid() != 0)
        SKIP("only root can give files away");
    put(s.one, "mine.md", "x");
    ASSERT_EQ(fchown(s.one, OWNER, OWNER), 0);
    ASSERT_PX(px_files_write(s.files, "portfolio/new.md", "x", 1, NULL, &e), e);
    ASSERT_PX(px_files_write(s.files, "portfolio/deep/er/f.md", "x", 1, NULL, &e), e);
    ASSERT_PX(px_files_make_directory(s.files, "portfolio/dir", &e), e);
    ASSERT_PX(px_files_copy(s.files, "portfolio/mine.md", "portfolio/copy.md", &e), e);
    ASSERT_PX(edit_path(&s, "portfolio/mine.md", "x", "y", &e), e);
    for (size_t i = 0; i < PX_COUNT_OF(made); i++) {
        ASSERT_EQ(fstatat(s.one, made[i], &st, AT_SYMLINK_NOFOLLOW), 0);
        if (st.st_uid != OWNER || st.st_gid != OWNER)
            FAIL("%s belongs to %u:%u", made[i], st.st_uid, st.st_gid);
    }
    ASSERT_EQ(fstatat(s.one, "mine.md", &st, 0), 0);
    ASSERT_EQ(st.st_uid, 0);
    ASSERT_EQ(fchown(s.one, 0, 0), 0);
}

/* ---- edits, moves ---- */

TEST(an_edit_needs_exactly_one_match)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    char out[256];
    put(s.one, "a.md", "x\ny x\nx");
    ASSERT_EQ(edit_path(&s, "portfolio/a.md", "z\n\tz", "", &e), -1);
    expect_message(&s, &e, "EditError", "Cannot edit 'portfolio/a.md': text not found.\nSearched for: 'z\\n\\x09z'");
    put(s.one, "w.md", "x\r\ny\r\n");
    ASSERT_EQ(edit_path(&s, "portfolio/w.md", "x\ny", "", &e), -1);
    expect_message(&s, &e, "EditError",
                   "Cannot edit 'portfolio/w.md': text not found. The lines of the file end in \\r\\n, those of the text in \\n.\nSearched for: 'x\\ny'");
    ASSERT_EQ(edit_path(&s, "portfolio/w.md", "z", "", &e), -1);
    expect_message(&s, &e, "EditError", "Cannot edit 'portfolio/w.md': text not found.\nSearched for: 'z'");
    ASSERT_EQ(edit_path(&s, "portfolio/a.md", "x\r\ny", "", &e), -1);
    ASSERT(strstr(e.what, "The lines of the text end in \\r\\n, those of the file do not."));
    ASSERT_EQ(edit_path(&s, "portfolio/a.md", "x", "", &e), -1);
    expect_message(&s, &e, "EditError",
                   "Cannot edit 'portfolio/a.md': text found 3 times, it must be unique.\nSearched for: 'x'");
    ASSERT_EQ(edit_path(&s, "portfolio/a.md", "", "x", &e), -1);
    ASSERT_EQ(edit_path(&s, "portfolio/a.md", "y", "123456789012345678901", &e), -1);
    ASSERT_EQ(e.code, PX_E_TOO_LARGE);
    ASSERT_STR(get(s.one, "a.md", out), "x\ny x\nx");
    ASSERT_PX(edit_path(&s, "portfolio/a.md", "y", "z", &e), e);
    ASSERT_STR(get(s.one, "a.md", out), "x\nz x\nx");
    ASSERT_EQ(edit_path(&s, "pipeline/b.txt", "b", "c", &e), -1);
    ASSERT_EQ(e.code, PX_E_READ_ONLY);
}

TEST(edits_are_all_or_none_and_a_dry_run_changes_nothing)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    struct px_files_done d = {0};
    struct px_files_edit edits[] = {{"hello", "a b", 5, 3}, {"b", "c", 1, 1}, {"nope", "", 4, 0}};
    char out[256];
    ASSERT_EQ(px_files_edit(s.files, "portfolio/a.md", edits, 3, false, &d, &e), -1);
    ASSERT_STR(get(s.one, "a.md", out), "hello");
    ASSERT_PX(px_files_edit(s.files, "portfolio/a.md", edits, 2, true, &d, &e), e);
    ASSERT_STR(get(s.one, "a.md", out), "hello");
    ASSERT_STR(d.diff,
               "--- a/portfolio/a.md\n+++ b/portfolio/a.md\n@@ -1 +1 @@\n-hello\n\\ No newline at end of file\n+a c\n"
               "\\ No newline at end of file\n");
    px_files_done_free(&d);
    ASSERT_PX(px_files_edit(s.files, "portfolio/a.md", edits, 2, false, &d, &e), e);
    ASSERT_EQ(d.old_chars, 6);
    ASSERT_EQ(d.new_chars, 4);
    px_files_done_free(&d);
    ASSERT_STR(get(s.one, "a.md", out), "a c");
}

TEST(half_a_character_cannot_be_replaced)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    put(s.one, "a.md", "\xc3\xa4");
    ASSERT_EQ(edit_path(&s, "portfolio/a.md", "\xa4", "x", &e), -1);
    ASSERT_EQ(e.code, PX_E_NOT_TEXT);
}

TEST(moving_and_copying_never_replace)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    char out[256];
    put(s.one, "b.md", "b");
    put(s.two, "c.md", "c");
    ASSERT_EQ(px_files_move(s.files, "portfolio/a.md", "portfolio/b.md", &e), -1);
    ASSERT_EQ(e.code, PX_E_EXISTS);
    ASSERT_EQ(px_files_copy(s.files, "portfolio/a.md", "portfolio/b.md", &e), -1);
    ASSERT_EQ(e.code, PX_E_EXISTS);
    ASSERT_EQ(px_files_copy(s.files, "portfolio/a.md", "pipeline/a.md", &e), -1);
    ASSERT_EQ(e.code, PX_E_READ_ONLY);
    ASSERT_EQ(px_files_move(s.files, "pipeline/c.md", "portfolio/c.md", &e), -1);
    ASSERT_EQ(e.code, PX_E_READ_ONLY);
    ASSERT_EQ(px_files_move(s.files, "portfolio/a.md", "portfolio/a.txt", &e), -1);
    ASSERT_EQ(e.code, PX_E_SUFFIX);
    ASSERT_STR(get(s.one, "b.md", out), "b");
    ASSERT_PX(px_files_copy(s.files, "pipeline/c.md", "portfolio/x/y/c.md", &e), e);
    ASSERT_STR(get(s.one, "x/y/c.md", out), "c");
    ASSERT_PX(px_files_move(s.files, "portfolio/a.md", "portfolio/x/z.md", &e), e);
    ASSERT_STR(get(s.one, "x/z.md", out), "hello");
    ASSERT(get(s.one, "a.md", out) == NULL);
    ASSERT_PX(px_files_move(s.files, "portfolio/x", "portfolio/w", &e), e);
    ASSERT_STR(get(s.one, "w/y/c.md", out), "c");
}

TEST(a_link_is_moved_and_deleted_itself)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    char out[256];
    ASSERT_OK(symlinkat("../secret.md", s.one, "out.md"));
    ASSERT_PX(px_files_move(s.files, "portfolio/out.md", "portfolio/far.md", &e), e);
    ASSERT_EQ(read_path(&s, "portfolio/far.md", &e), -1);
    ASSERT_EQ(px_files_copy(s.files, "portfolio/far.md", "portfolio/c.md", &e), -1);
    ASSERT_PX(px_files_delete(s.files, "portfolio/far.md", &e), e);
    ASSERT_STR(get(s.dir, "secret.md", out), "secret");
    ASSERT_EQ(px_files_delete(s.files, "portfolio/", &e), -1);
    ASSERT_EQ(px_files_delete(s.files, "portfolio/none.md", &e), -1);
    ASSERT_EQ(e.code, PX_E_NO_FILE);
    ASSERT_PX(px_files_delete(s.files, "portfolio/a.md", &e), e);
}

/* ---- lists ---- */

static const char *list_text(const struct px_files *f, const struct px_files_query *q, struct px_buf *out)
{
    struct px_files_entries list = {0};
    struct px_err e = {0};
    ASSERT_PX(px_files_list(f, q, &list, &e), e);
    for (size_t i = 0; i < list.count; i++) {
        px_buf_puts(out, i ? " " : "");
        px_buf_puts(out, list.items[i].path);
    }
    px_files_entries_done(&list);
    return px_buf_text(out);
}

#define LISTS(expected, f, ...)                                                                     \
    do {                                                                                            \
        px_auto_buf struct px_buf out = PX_BUF(4096);                                               \
        ASSERT_STR(list_text(f, &(struct px_files_query){__VA_ARGS__}, &out), expected);            \
    } while (0)

TEST(lists_are_sorted_files_of_all_roots)
{
    auto_site struct site s = make();
    ASSERT_OK(mkdirat(s.one, "sub", 0755) | mkdirat(s.one, "sub/.git", 0755));
    put(s.one, "sub/.git/x", "");
    put(s.one, ".hidden", "");
    put(s.one, "sub/b.md", "");
    ASSERT_OK(symlinkat("../secret.md", s.one, "out.md") | symlinkat("a.md", s.one, "in.md") |
              symlinkat("sub", s.one, "dir"));
    LISTS("pipeline/b.txt portfolio/.hidden portfolio/a.md portfolio/in.md portfolio/sub/.git/x portfolio/sub/b.md",
          s.files, .path = NULL);
    LISTS("portfolio/a.md portfolio/in.md", s.files, .path = "portfolio", .pattern = "*.md");
    LISTS("portfolio/a.md portfolio/in.md portfolio/sub/b.md", s.files, .path = "portfolio/", .pattern = "**/*.md");
    LISTS("portfolio/sub/b.md", s.files, .path = "portfolio/dir", .pattern = "*");
    LISTS("portfolio/sub portfolio/sub/b.md", s.files, .path = "portfolio", .pattern = "sub/**", .directories = true,
          .exclude = (const char *const[]){"**/.git", NULL});
    LISTS("portfolio/.hidden", s.files, .path = "portfolio", .max_results = 1);
    struct px_err e = {0};
    struct px_files_entries list = {0};
    ASSERT_EQ(px_files_list(s.files, &(struct px_files_query){.path = "portfolio/out.md"}, &list, &e), -1);
    ASSERT_EQ(px_files_list(s.files, &(struct px_files_query){.path = "portfolio/a.md"}, &list, &e), -1);
    ASSERT_STR(e.what, "Not a directory: portfolio/a.md");
    ASSERT_EQ(px_files_list(s.files, &(struct px_files_query){.path = ".."}, &list, &e), -1);
    ASSERT_EQ(px_files_list(s.files, &(struct px_files_query){.pattern = "../*"}, &list, &e), -1);
    ASSERT_EQ(e.code, PX_E_PATTERN);
}

/* output/deep is a root of its own: what lies in output under that name is not reached. */
TEST(a_root_inside_another_hides_what_lies_there)
{
    auto_site struct site s = make();
    px_auto(px_files) struct px_files *f = NULL;
    struct px_err e = {0};
    struct px_files_text text = {0};
    struct px_files_root roots[] = {{.name = "output", .use_fd = true, .fd = s.one},
                                    {.name = "output/deep", .use_fd = true, .fd = s.two}};
    ASSERT_OK(mkdirat(s.one, "deep", 0755) | mkdirat(s.one, "deepx", 0755));
    put(s.one, "deep/b.txt", "hidden");
    put(s.one, "deepx/c.txt", "beside");
    ASSERT_PX(px_files_new(roots, 2, &f, &e), e);
    LISTS("output/a.md output/deep/b.txt output/deepx/c.txt", f, .path = NULL);
    LISTS("output/a.md output/deep/b.txt output/deepx/c.txt", f, .path = "output");
    LISTS("output/deep/b.txt", f, .path = "output/deep");
    LISTS("output/deep/b.txt output/deepx/c.txt", f, .path = "output", .pattern = "deep*/*");
    LISTS("output/a.md", f, .path = "output", .pattern = "*");
    ASSERT_PX(px_files_read(f, "output/deep/b.txt", 0, 9, &text, &e), e);
    ASSERT_STR(text.data, "b");
    px_files_text_done(&text);
    ASSERT_PX(px_files_read(f, "output:deepx/c.txt", 0, 9, &text, &e), e);
    ASSERT_STR(text.data, "beside");
    px_files_text_done(&text);
}

TEST_DEADLINE(a_tree_that_never_ends_is_cut, 120)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    struct px_files_entries list = {0};
    px_auto_fd int at = openat(s.two, ".", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) {    /* deeper than a path can be long */
        ASSERT_OK(mkdirat(at, "dddd", 0755));
        int next = openat(at, "dddd", O_RDONLY | O_CLOEXEC);
        ASSERT_OK(next);
        (void)px_fd_close(at);
        at = next;
    }
    ASSERT_PX(px_files_list(s.files, &(struct px_files_query){.path = "pipeline"}, &list, &e), e);
    ASSERT_EQ(list.count, 1);
    ASSERT_STR(list.truncated, "too deep");
    px_files_entries_done(&list);
    ASSERT_OK(px_kernel_tree_empty(s.two));
}

TEST(searches_find_lines)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    struct px_files_entries list = {0};
    put(s.two, "n.txt", "one\nTwo two\nthree \xc3\xa4\n");
    put(s.two, "bin", "two");
    px_auto_fd int fd = openat(s.two, "bin", O_WRONLY | O_APPEND | O_CLOEXEC);
    ASSERT_OK(px_write_full(fd, "\0two", 4));
    ASSERT_PX(px_files_search(s.files, &(struct px_files_query){.text = "two"}, &list, &e), e);
    ASSERT_EQ(list.count, 1);
    ASSERT_STR(list.items[0].path, "pipeline/n.txt");
    ASSERT_EQ(list.items[0].line, 2);
    ASSERT_STR(list.items[0].text, "Two two");
    ASSERT_EQ(list.files_skipped, 1);
    px_files_entries_done(&list);
    ASSERT_PX(px_files_search(s.files, &(struct px_files_query){.text = "T", .ignore_case = true, .path = "pipeline"},
                              &list, &e),
              e);
    ASSERT_EQ(list.count, 2);
    px_files_entries_done(&list);
    ASSERT_EQ(px_files_search(s.files, &(struct px_files_query){.text = ""}, &list, &e), -1);
    ASSERT_EQ(px_files_search(s.files, &(struct px_files_query){.text = "a\nb"}, &list, &e), -1);
}

/* ---- roots ---- */

TEST(roots_that_do_not_fit_are_refused)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    struct px_files *f = NULL;
    ASSERT_OK(mkdirat(s.one, "sub", 0755));
    px_auto_fd int sub = openat(s.one, "sub", O_PATH | O_CLOEXEC), file = openat(s.one, "a.md", O_PATH | O_CLOEXEC);
    struct px_files_root a = {.name = "a", .use_fd = true, .fd = s.one}, b = {.name = "b", .use_fd = true, .fd = s.two};
    ASSERT_EQ(px_files_new(&a, 0, &f, &e), -1);
    ASSERT_EQ(e.code, PX_E_ROOT);
    ASSERT_EQ(px_files_new((struct px_files_root[]){a, a}, 2, &f, &e), -1);
    b.name = "a/b";
    ASSERT_PX(px_files_new((struct px_files_root[]){a, b}, 2, &f, &e), e);
    px_files_free(px_take(&f));
    b.fd = sub;
    ASSERT_EQ(px_files_new((struct px_files_root[]){a, b}, 2, &f, &e), -1);
    ASSERT_STR(e.what, "the directories of the roots 'a' and 'a/b' overlap");
    b.fd = file;
    ASSERT_EQ(px_files_new(&b, 1, &f, &e), -1);
    static const char *const names[] = {"",     "/",  "a/", "/a",  "a//b", ".",   "..",
                                        "a/..", ".a", "-a", "a:b", "a b",  "a\n", "~"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++) {
        b = (struct px_files_root){.name = names[i], .use_fd = true, .fd = s.two};
        if (px_files_new(&b, 1, &f, &e) != -1)
            FAIL("'%s' is a name", names[i]);
    }
    static const char *const suffixes[] = {"md", ".", ".a/b", ".tar.gz", ""};
    for (size_t i = 0; i < PX_COUNT_OF(suffixes); i++) {
        a.suffixes = (const char *const[]){suffixes[i], NULL};
        if (px_files_new(&a, 1, &f, &e) != -1)
            FAIL("'%s' is a suffix", suffixes[i]);
    }
}

TEST(words_make_roots)
{
    int dir = px_test_dir();
    struct px_files *f = NULL;
    struct px_files_root r;
    struct px_err e = {0};
    char word[PATH_MAX + 64];
    ASSERT_OK(px_fmt(word, sizeof word, "n=%s/x:y:rw:suffixes=.md,.PDF:max=1k:create", px_test_dir_path()));
    ASSERT_PX(px_files_parse((const char *const[]){word}, 1, false, &f, &e), e);
    ASSERT_OK(px_files_root_at(f, 0, &r));
    ASSERT(r.writable && r.max_file_bytes == 1024 && !r.dir);
    ASSERT_STR(r.suffixes[1], ".pdf");
    ASSERT_OK(faccessat(dir, "x:y", F_OK, 0));
    px_files_free(f);
    static const char *const bad[] = {
        "x", "x=", "=/", "x=/nonexistent", "x=/:max=0", "x=/:max=x", "x=/:suffixes=", "x=/:suffixes=.a,"};
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++)
        if (px_files_parse(&bad[i], 1, false, &f, &e) != -1)
            FAIL("'%s' is a root", bad[i]);
    (void)px_fd_close(dir);
}

TEST(a_child_can_only_do_less)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    px_auto(px_files) struct px_files *none = NULL, *some = NULL, *less = NULL;
    ASSERT_OK(mkdirat(s.one, "sub", 0755) | mkdirat(s.one, "sub/in", 0755) | mkdirat(s.one, "other", 0755));
    put(s.one, "sub/a.md", "a");
    put(s.one, "other/a.md", "a");
    ASSERT_PX(px_files_derive(s.files, &(struct px_files_narrow){0}, &none, &e), e);
    ASSERT(!px_files_can_read(none, "portfolio/a.md"));
    ASSERT_EQ(px_files_write(none, "portfolio/a.md", "", 0, NULL, &e), -1);
    ASSERT_PX(px_files_derive(s.files,
                              &(struct px_files_narrow){.read = (const char *const[]){"portfolio", NULL},
                                                        .write = (const char *const[]){"portfolio/sub", NULL}},
                              &some, &e),
              e);
    ASSERT(px_files_can_read(some, "portfolio/a.md") && !px_files_can_write(some, "portfolio/a.md"));
    ASSERT(px_files_can_read(some, "portfolio/sub/a.md") && px_files_can_write(some, "portfolio/sub/a.md"));
    ASSERT(!px_files_can_read(some, "pipeline/b.txt"));
    ASSERT(!px_files_can_write(some, "portfolio/sub/a.txt"));
    ASSERT_PX(px_files_derive(some, &(struct px_files_narrow){.write = (const char *const[]){"portfolio/sub/in", NULL}},
                              &less, &e),
              e);
    struct px_files *made = NULL;
    ASSERT_PX(px_files_derive(some, &(struct px_files_narrow){.write = (const char *const[]){"portfolio/sub/new/task", NULL}}, &made, &e), e);
    ASSERT(px_files_can_write(made, "portfolio/sub/new/task/x.md") && faccessat(s.one, "sub/new/task", F_OK, 0) == 0);
    px_files_free(made);
    ASSERT_EQ(px_files_derive(some, &(struct px_files_narrow){.read_only = true, .write = (const char *const[]){"portfolio/sub/none", NULL}},
                              &made, &e), -1);
    ASSERT_EQ(px_files_derive(some, &(struct px_files_narrow){.write = (const char *const[]){"portfolio/none", NULL}}, &made, &e), -1);
    ASSERT(faccessat(s.one, "sub/none", F_OK, 0) < 0 && faccessat(s.one, "none", F_OK, 0) < 0);
    ASSERT(px_files_can_write(less, "portfolio/sub/in/x.md") && !px_files_can_read(less, "portfolio/sub/a.md"));
    LISTS("portfolio/sub/a.md", some, .path = "portfolio/sub");
    LISTS("", less, .path = "portfolio");
    struct px_files *more = NULL;
    static const char *const wider[] = {
        "portfolio", "portfolio/other", "pipeline", "portfolio/sub/..", "portfolio/none", "portfolio/a.md", "/", "",
        ".."};
    for (size_t i = 0; i < PX_COUNT_OF(wider); i++)
        if (px_files_derive(some, &(struct px_files_narrow){.write = (const char *const[]){wider[i], NULL}}, &more,
                            &e) != -1)
            FAIL("'%s' could be widened", wider[i]);
}

/* Through a link in the outer directory the inner one would be writable. */
TEST(a_child_has_no_read_only_hole_in_a_writable_directory)
{
    auto_site struct site s = make();
    struct px_err e = {0};
    struct px_files *f = NULL;
    ASSERT_OK(mkdirat(s.one, "sub", 0755));
    ASSERT_EQ(px_files_derive(s.files,
                              &(struct px_files_narrow){.write = (const char *const[]){"portfolio", NULL},
                                                        .read = (const char *const[]){"portfolio/sub", NULL}},
                              &f, &e),
              -1);
    ASSERT_EQ(e.code, PX_E_ROOT);
}

/* ---- memory ---- */

TEST(no_allocation_is_taken_for_granted)
{
    auto_site struct site s = make();
    struct px_files_edit edit = {"hello", "hullo", 5, 5};
    put(s.one, "e.md", "hello");
    for (unsigned n = 1;; n++) {
        struct px_files_ask asks[] = {
            {.op = "read", .path = "portfolio/a.md"},
            {.op = "list"},
            {.op = "search", .query.text = "l"},
            {.op = "edit", .path = "portfolio/e.md", .edits = &edit, .edits_count = 1, .dry_run = true},
            {.op = "write", .path = "portfolio/w.md", .content = "w", .content_len = 1},
            {.op = "resolve", .path = "portfolio/x/y/z"},
            {.op = "stat", .path = "portfolio/a.md"},
            {.op = "roots"},
        };
        bool failed = false;
        for (size_t i = 0; i < PX_COUNT_OF(asks); i++) {
            struct px_files_answer a = {0};
            struct px_err e = {0};
            px_test_fail_alloc(n);
            int r = px_files_call(s.files, &asks[i], &a, &e);
            failed |= px_test_alloc_failed();
            px_test_fail_alloc(0);
            ASSERT(r == 0 ? a.text && a.json : e.code == PX_E_MEMORY);
            px_files_answer_done(&a);
        }
        struct px_files *f = NULL;
        px_test_fail_alloc(n);
        (void)px_files_derive(s.files, &(struct px_files_narrow){.inherit = true}, &f, NULL);
        failed |= px_test_alloc_failed();
        px_test_fail_alloc(0);
        px_files_free(f);
        if (!failed)
            break;
    }
    ASSERT_EQ(count_entries(s.one), 3);
}

/* ---- a second layer ---- */

static void inside(const struct site *s)
{
    struct px_err e = {0};
    int r = px_files_confine(s->files, &e);
    ASSERT_PX(r, e);
    if (r == 0)
        return;
    ASSERT_PX(read_path(s, "portfolio/a.md", &e), e);
    ASSERT_PX(write_path(s, "portfolio/n/b.md", "x", &e), e);
    ASSERT_PX(px_files_move(s->files, "portfolio/n/b.md", "portfolio/c.md", &e), e);
    ASSERT_EQ(openat(s->dir, "secret.md", O_RDONLY | O_CLOEXEC), -1);
    ASSERT_EQ(errno, EACCES);
    ASSERT_EQ(openat(s->two, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), -1);
    ASSERT_EQ(errno, EACCES);
}

TEST(a_confined_process_reaches_nothing_else)
{
    auto_site struct site s = make();
    pid_t pid = fork();
    ASSERT_OK(pid);
    if (pid == 0) {
        inside(&s);
        _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}
