/* env/test_infer.c - inferred capabilities with their reasons, and the libraries of files. */
#include "env/infer.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "env/libraries.h"
#include "harness/test.h"

/* "postgres xml" */
static const char *effective(const struct px_infer_ask *ask)
{
    static char text[1024];
    struct px_inferred got;
    size_t at = 0;
    ASSERT_OK(px_infer(ask, &got));
    text[0] = '\0';
    for (size_t i = 0; i < got.effective_count; i++) {
        ASSERT_OK(px_fmt(text + at, sizeof text - at, "%s%s", i ? " " : "", got.effective[i]));
        at = strlen(text);
    }
    px_infer_done(&got);
    return text;
}

static const struct px_infer_package psycopg2 = {.name = "psycopg2"};
static const struct px_infer_wish yes = {"postgres", true}, no = {"postgres", false};

TEST(what_was_said_wins)
{
    ASSERT_STR(effective(&(struct px_infer_ask){.automatic = true, .packages = &psycopg2, .package_count = 1}),
               "postgres");
    ASSERT_STR(effective(&(struct px_infer_ask){.packages = &psycopg2, .package_count = 1}), "");
    ASSERT_STR(effective(&(struct px_infer_ask){.wishes = &yes, .wish_count = 1}), "postgres");
    ASSERT_STR(effective(&(struct px_infer_ask){
                   .wishes = &no, .wish_count = 1, .automatic = true, .packages = &psycopg2, .package_count = 1}),
               "");
    ASSERT_STR(effective(&(struct px_infer_ask){
                   .wishes = &yes, .wish_count = 1, .automatic = true, .packages = &psycopg2, .package_count = 1}),
               "postgres");
    ASSERT_STR(effective(&(struct px_infer_ask){.automatic = true}), "");
}

TEST(a_library_that_one_base_has_and_another_has_not)
{
    static const char *const needed[] = {"libkrb5.so.3", "libssl.so.3"};
    static const struct px_infer_package package = {.name = "thing", .needed = needed, .needed_count = 2};
    struct px_infer_ask ask = {.automatic = true, .packages = &package, .package_count = 1};
    ASSERT_STR(effective(&ask), "");
    ask.base = "debian-12";
    ASSERT_STR(effective(&ask), "");
    ask.base = "debian-13";
    ASSERT_STR(effective(&ask), "kerberos");
}

TEST(names_count_whole_and_by_the_file_that_is_selected)
{
    static const struct {
        const char *name, *file;
        bool counts;
    } rows[] = {
        {"psycopg2", "psycopg2-2.9.9.tar.gz", true},
        {"psycopg2", "psycopg2-2.9.9-cp311-cp311-linux_x86_64.whl", true},
        {"psycopg2-binary", "psycopg2_binary-2.9.9-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", false},
        {"psycopg2-binary", "psycopg2_binary-2.9.9-cp311-cp311-linux_x86_64.whl", true},
        {"psycopg2-binary", "psycopg2-binary-2.9.9.tar.gz", true},
        {"psycopg2-binary", NULL, true},
        {"pillow", "pillow-10.0.0-cp311-cp311-manylinux_2_28_x86_64.whl", false},
        {"pillow", NULL, true},
        {"mysqlclient", "mysqlclient-2.2.0.tar.gz", true},
        {"pymysql", "PyMySQL-1.1.0-py3-none-any.whl", false},
        {"ldap3", "ldap3-2.9-py2.py3-none-any.whl", false},
        {"demo", NULL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (px_infer_counts(rows[i].name, rows[i].file) != rows[i].counts)
            px_test_fail(__FILE__, __LINE__, "%s as %s", rows[i].name, rows[i].file ? rows[i].file : "-");
}

TEST(reasons_name_their_source)
{
    static const char *const needed[] = {"libc.so.6", "libnothing.so.1", "libpq.so.5", "libz.so.1"};
    const struct px_infer_package packages[] = {{"demo", "demo-1-cp311-cp311-linux_x86_64.whl", needed, 4},
                                                {.name = "psycopg2"}};
    const struct px_infer_ask ask = {
        .wishes = &yes, .wish_count = 1, .automatic = true, .packages = packages, .package_count = 2};
    struct px_inferred got;
    ASSERT_OK(px_infer(&ask, &got));
    ASSERT_EQ(got.count, 3);    /* zlib and the C library are in the base, the other is not known */
    ASSERT_EQ(got.effective_count, 1);
    static const char *const details[] = {"[tool.px.sandbox.capabilities]", "psycopg2", "demo: libpq.so.5"};
    for (size_t i = 0; i < 3; i++) {
        ASSERT_STR(got.reasons[i].capability, "postgres");
        ASSERT_EQ(got.reasons[i].source, (int)i);
        ASSERT_STR(got.reasons[i].detail, details[i]);
        ASSERT(got.reasons[i].counts);
    }
    px_infer_done(&got);
}

/* ---- files ---- */

/* A library with a soname that needs another; "" for none. */
static void write_library(int dir, const char *name, const char *soname, const char *needed, uint16_t machine)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr load, dynamic;
        Elf64_Dyn entries[5];
        char strings[128];
    } s = {0};
    size_t at = 1, n = 0;
    memcpy(s.header.e_ident, ELFMAG "\2\1\1", 7);
    s.header.e_machine = machine;
    s.header.e_phoff = offsetof(__typeof__(s), load);
    s.header.e_phentsize = sizeof s.load;
    s.header.e_phnum = 2;
    s.load = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_filesz = sizeof s};
    s.dynamic =
        (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_offset = offsetof(__typeof__(s), entries), .p_filesz = sizeof s.entries};
    const char *const texts[] = {soname, needed};
    const Elf64_Sxword tags[] = {DT_SONAME, DT_NEEDED};
    for (int i = 0; i < 2; i++)
        if (texts[i][0]) {
            s.entries[n++] = (Elf64_Dyn){.d_tag = tags[i], .d_un.d_val = at};
            memcpy(s.strings + at, texts[i], strlen(texts[i]));
            at += strlen(texts[i]) + 1;
        }
    s.entries[n++] = (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_val = 0x1000 + offsetof(__typeof__(s), strings)};
    s.entries[n++] = (Elf64_Dyn){.d_tag = DT_STRSZ, .d_un.d_val = sizeof s.strings};
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    ASSERT(fd >= 0);
    ASSERT_OK(px_write_full(fd, &s, sizeof s));
}

static void write_text(int dir, const char *name, const char *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    ASSERT(fd >= 0);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}

TEST(what_files_need_from_elsewhere)
{
    px_auto_fd int dir = px_test_dir();
    struct px_libraries got;
    ASSERT_OK(mkdirat(dir, "pkg", 0755));
    ASSERT_OK(mkdirat(dir, "pkg.libs", 0755));
    write_library(dir, "pkg/_ext.so", "", "libpq.so.5", EM_X86_64);
    write_library(dir, "pkg/_more.so", "", "libxml2-abc.so.2", EM_X86_64);
    write_library(dir, "pkg/_by_soname.so", "", "libbrought.so.1", EM_X86_64);
    write_library(dir, "pkg/_other.so", "", "libcurl.so.4", EM_AARCH64);
    write_library(dir, "pkg.libs/libxml2-abc.so.2", "libxml2-abc.so.2", "", EM_X86_64);
    write_library(dir, "pkg.libs/file-name", "libbrought.so.1", "libldap-2.5.so.0", EM_X86_64);
    write_text(dir, "libpq.so.5", "not ELF, so it brings nothing\n");
    write_text(dir, "pkg/libjpeg.so.62", "\177ELF, but damaged");
    ASSERT_OK(symlinkat("/usr/lib", dir, "away"));
    ASSERT_OK(px_libraries_scan(dir, EM_X86_64, &got));
    ASSERT_EQ(got.count, 2);
    ASSERT_STR(got.items[0], "libldap-2.5.so.0");
    ASSERT_STR(got.items[1], "libpq.so.5");
    px_libraries_done(&got);
}
