/* pep/test_wheel.c - the rules of wheels. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "pep/wheel.h"

/* ---- texts ---- */

TEST(headers)
{
    static const char text[] =
        "Metadata-Version: 2.1\r\nname: demo \nTag: a\nTag:b\nEmpty:\nLong: \n\nName: not this\n";
    char out[8];
    ASSERT_EQ(px_wheel_header(text, strlen(text), "Name", 0, out, sizeof out), 0);
    ASSERT_STR(out, "demo");
    ASSERT_EQ(px_wheel_header(text, strlen(text), "Tag", 1, out, sizeof out), 0);
    ASSERT_STR(out, "b");
    ASSERT_EQ(px_wheel_header(text, strlen(text), "Tag", 2, out, sizeof out), 1);
    ASSERT_EQ(px_wheel_header(text, strlen(text), "Name", 1, out, sizeof out), 1);
    ASSERT_EQ(px_wheel_header(text, strlen(text), "Empty", 0, out, sizeof out), -EINVAL);
    ASSERT_EQ(px_wheel_header("Name: longer than that\n", 23, "Name", 0, out, sizeof out), -EINVAL);
}

#define EMPTY_HASH "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"

TEST(record_lines)
{
    static const char good[] = "b/c.py," EMPTY_HASH ",0\r\n\"a,\"\"b\"\".py\"," EMPTY_HASH "=,\nx.dist-info/RECORD,,\n";
    struct px_record_lines lines = {0};
    size_t line = 0;
    ASSERT_EQ(px_wheel_record(good, strlen(good), &lines, &line), 0);
    ASSERT_EQ(lines.count, 3);
    ASSERT_STR(lines.items[0].path, "a,\"b\".py");
    ASSERT_STR(lines.items[1].sha256.hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ASSERT(lines.items[1].has_size && !lines.items[0].has_size && !lines.items[2].sha256.hex[0]);
    ASSERT(px_wheel_record_find(&lines, "b/c.py") && !px_wheel_record_find(&lines, "b"));
    px_auto_buf struct px_buf out = PX_BUF(1 << 12);
    px_wheel_record_write(&out, lines.items[0].path, &lines.items[0].sha256, 0);
    ASSERT_STR(px_buf_text(&out), "\"a,\"\"b\"\".py\"," EMPTY_HASH ",0\n");
    px_wheel_record_done(&lines);
    static const char *const wrong[] = {
        "a\n",
        "a,\n",
        "a,,,\n",
        ",,\n",
        "a,md5=x,1\n",
        "a,sha256=x,1\n",
        "a,,x\n",
        "a,,1\na,,1\n",
        "\"a,,\n",
        "\"a\"b,,\n",
        "a\"b,,\n",
        "a," EMPTY_HASH "==,0\n",
        "a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFV,0\n",
        "a\001,,\n",
        "a,,-1\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (px_wheel_record(wrong[i], strlen(wrong[i]), &lines, &line) != -EINVAL)
            px_test_fail(__FILE__, __LINE__, "'%s' was accepted", wrong[i]);
}

static int keep_script(void *user, const struct px_script *script)
{
    px_buf_printf(user, "%s=%s:%s;", script->name, script->module, script->object);
    return 0;
}

TEST(entry_points)
{
    static const char text[] =
        "# why\n[other]\nx = not here\n[console_scripts]\ndemo = demo.cli:main\n d-2=demo:App.run [extra]\n\n[gui_scripts]\nw = w:m\n";
    px_auto_buf struct px_buf out = PX_BUF(1 << 12);
    size_t line = 0;
    ASSERT_EQ(px_wheel_scripts(text, strlen(text), keep_script, &out, &line), 0);
    ASSERT_STR(px_buf_text(&out), "demo=demo.cli:main;d-2=demo:App.run;w=w:m;");
    static const char *const wrong[] = {
        "a",         "a =",       "a = b",    "a = b:",   "= b:c",    "../a = b:c", "a = b;import os:c",
        "a = b:c()", "a = b:c d", ".. = b:c", "a = .b:c", "a = b.:c", "a = 1b:c",   "a/b = b:c"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char all[128];
        (void)px_fmt(all, sizeof all, "[console_scripts]\n%s\n", wrong[i]);
        if (px_wheel_scripts(all, strlen(all), keep_script, &out, &line) != -EINVAL || line != 2)
            px_test_fail(__FILE__, __LINE__, "'%s' was accepted", wrong[i]);
    }
}

/* ---- installing ---- */

struct file {
    const char *path, *text;
};

static const struct px_wheel_ask demo = {"demo_pkg-1.0-py2.py3-none-any.whl", "demo-pkg", "1.0"};

/* Makes the directories of a path, then the file, and its line of RECORD. */
static void put(int site, const char *path, const char *text, struct px_buf *record)
{
    char part[256];
    struct px_oid oid;
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        (void)px_fmt(part, sizeof part, "%.*s", (int)(slash - path), path);
        (void)mkdirat(site, part, 0755);
    }
    ASSERT_OK(px_wheel_paths_write(site, path, text, strlen(text), 0644));
    ASSERT_OK(px_hash_bytes(text, strlen(text), &oid));
    if (record)
        px_wheel_record_write(record, path, &oid, strlen(text));
}

#define INFO "demo_pkg-1.0.dist-info/"
#define DATA "demo_pkg-1.0.data/"
static const struct file wheel_files[] = {
    {"demo/__init__.py", "x = 1\n"},
    {INFO "METADATA", "Metadata-Version: 2.1\nName: Demo_Pkg\nVersion: 1.0.0\n\nlong words\n"},
    {INFO "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n"},
    {INFO "entry_points.txt", "[console_scripts]\ndemo = demo:main\n"},
    {DATA "purelib/demo/more.py", "y = 2\n"},
    {DATA "scripts/tool", "#!python\nprint(1)\n"},
    {DATA "scripts/shell", "#!/bin/sh\ntrue\n"},
    {DATA "headers/demo.h", "int x;\n"},
    {DATA "data/share/demo/text", "words\n"},
};
enum { WHEEL_FILES = sizeof wheel_files / sizeof wheel_files[0] };

/* The wheel with one file left out, changed or added. */
static int install_in(int root, const char *without, const struct file *with, const char *more_record, struct px_err *e)
{
    px_auto_buf struct px_buf record = PX_BUF(1 << 16);
    ASSERT_OK(mkdirat(root, "site-packages", 0755));
    px_auto_fd int site = openat(root, "site-packages", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < WHEEL_FILES; i++)
        if (!px_equal(without, wheel_files[i].path))
            put(site, wheel_files[i].path, wheel_files[i].text, &record);
    if (with)
        put(site, with->path, with->text, &record);
    px_buf_puts(&record, more_record);
    px_buf_puts(&record, INFO "RECORD,,\n");
    put(site, INFO "RECORD", px_buf_text(&record), NULL);
    return px_wheel_install(root, &demo, e);
}

static int install(int *ret_root, struct px_err *e)
{
    *ret_root = px_test_dir();
    return install_in(*ret_root, NULL, NULL, "", e);
}

static void expect_text(int root, const char *path, const char *text)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 16);
    ASSERT_OK(px_wheel_paths_read(root, path, 1 << 16, &out));
    ASSERT_STR(px_buf_text(&out), text);
}

TEST(everything_has_its_place)
{
    struct px_err e = {0};
    struct stat st;
    int root = -EBADF;
    ASSERT_PX(install(&root, &e), e);
    expect_text(root, "site-packages/demo/__init__.py", "x = 1\n");
    expect_text(root, "site-packages/demo/more.py", "y = 2\n");
    expect_text(root, "bin/tool", "#!/bin/sh\n'''exec' \"${0%/*}/python\" \"$0\" \"$@\"\n' '''\nprint(1)\n");
    expect_text(root, "bin/shell", "#!/bin/sh\ntrue\n");
    expect_text(root, "include/demo-pkg/demo.h", "int x;\n");
    expect_text(root, "share/demo/text", "words\n");
    expect_text(root, "site-packages/" INFO "INSTALLER", "px\n");
    for (int i = 0; i < 3; i++) {
        static const char *const scripts[] = {"bin/tool", "bin/shell", "bin/demo"};
        ASSERT_OK(fstatat(root, scripts[i], &st, AT_SYMLINK_NOFOLLOW));
        ASSERT_EQ(st.st_mode & 0777, 0755);
    }
    ASSERT_EQ(faccessat(root, "site-packages/" DATA, F_OK, AT_SYMLINK_NOFOLLOW), -1);
    (void)px_fd_close(root);
}

/* The new RECORD names every file of the tree but itself with its hash. */
TEST(record_is_rewritten)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 16);
    struct px_record_lines lines = {0};
    struct px_paths files = {0};
    struct px_err e = {0};
    size_t line = 0;
    int root = -EBADF;
    ASSERT_PX(install(&root, &e), e);
    ASSERT_OK(px_wheel_paths_read(root, "site-packages/" INFO "RECORD", 1 << 16, &text));
    ASSERT_OK(px_wheel_record(px_buf_text(&text), text.len, &lines, &line));
    ASSERT_OK(px_wheel_paths_list(root, ".", &files));
    ASSERT_EQ(lines.count, files.count);
    ASSERT(px_wheel_record_find(&lines, "../bin/demo") && px_wheel_record_find(&lines, "demo/more.py"));
    ASSERT(!px_wheel_record_find(&lines, INFO "RECORD")->sha256.hex[0]);
    px_wheel_paths_done(&files);
    px_wheel_record_done(&lines);
    (void)px_fd_close(root);
}

/* As maturin writes it: one Tag with all that the file name has. */
TEST(tags_in_one_line)
{
    static const struct file wheel = {INFO "WHEEL",
                                      "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py2.py3-none-linux_x86_64.any\n"};
    struct px_err e = {0};
    px_auto_fd int root = px_test_dir();
    ASSERT_PX(install_in(root, INFO "WHEEL", &wheel, "", &e), e);
}

TEST(wheels_that_are_refused)
{
    static const struct {
        const char *without, *record, *word;
        struct file with;
    } rows[] = {
        {INFO "METADATA", "", "no METADATA", {0}},
        {INFO "WHEEL", "", "no WHEEL", {0}},
        {NULL, "ghost.py,,\n", "ghost.py", {0}},
        {INFO "METADATA", "", "not that of", {INFO "METADATA", "Name: other\nVersion: 1.0\n"}},
        {INFO "METADATA", "", "not that of", {INFO "METADATA", "Name: demo-pkg\nVersion: 1.1\n"}},
        {INFO "WHEEL", "", "version 1", {INFO "WHEEL", "Wheel-Version: 2.0\nRoot-Is-Purelib: true\n"}},
        {INFO "WHEEL", "", "pure", {INFO "WHEEL", "Wheel-Version: 1.0\n"}},
        {INFO "WHEEL",
         "",
         "tags",
         {INFO "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: cp311-cp311-linux_x86_64\n"}},
        {INFO "entry_points.txt", "", "entry_points", {INFO "entry_points.txt", "[console_scripts]\n../x = a:b\n"}},
        {INFO "entry_points.txt", "", "two scripts", {INFO "entry_points.txt", "[console_scripts]\ntool = a:b\n"}},
        {NULL, "", "two .dist-info", {"other-1.dist-info/METADATA", "x"}},
        {NULL, "", "no known place", {DATA "elsewhere/x", "x"}},
        {NULL, "", "same place", {DATA "platlib/demo/__init__.py", "x"}},
        {NULL, "demo/__init__.py,,\n", "RECORD", {0}},
    };
    px_auto_fd int top = px_test_dir();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct px_err e = {0};
        char name[16];
        (void)px_fmt(name, sizeof name, "%zu", i);
        ASSERT_OK(mkdirat(top, name, 0755));
        px_auto_fd int root = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = install_in(root, rows[i].without, rows[i].with.path ? &rows[i].with : NULL, rows[i].record, &e);
        if (r != -1 || e.code != PX_E_ARCHIVE || !strstr(e.what, rows[i].word))
            px_test_fail(__FILE__, __LINE__, "row %zu: %d PX%d %s", i, r, e.code, e.what);
    }
}

TEST(contents_that_are_not_what_record_says)
{
    struct px_err e = {0};
    static const struct file more[] = {{"demo/extra.py", "x"}};
    px_auto_buf struct px_buf record = PX_BUF(1 << 16);
    px_auto_fd int root = px_test_dir();
    ASSERT_OK(mkdirat(root, "site-packages", 0755));
    px_auto_fd int site = openat(root, "site-packages", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < WHEEL_FILES; i++)
        put(site, wheel_files[i].path, wheel_files[i].text, &record);
    px_buf_puts(&record, INFO "RECORD,,\n");
    put(site, INFO "RECORD", px_buf_text(&record), NULL);
    put(site, more->path, more->text, NULL);
    ASSERT_EQ(px_wheel_install(root, &demo, &e), -1);
    ASSERT(strstr(e.what, "demo/extra.py") && e.code == PX_E_ARCHIVE);
    ASSERT_OK(unlinkat(site, more->path, 0));
    ASSERT_OK(unlinkat(site, "demo/__init__.py", 0));
    put(site, "demo/__init__.py", "x = 3\n", NULL);
    ASSERT_EQ(px_wheel_install(root, &demo, &e), -1);
    ASSERT(strstr(e.what, "demo/__init__.py"));
    const struct px_wheel_ask other = {"demo_pkg-1.1-py3-none-any.whl", "demo-pkg", "1.0"};
    ASSERT_EQ(px_wheel_install(root, &other, &e), -1);
}
