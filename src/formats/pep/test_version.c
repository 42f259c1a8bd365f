/* pep/test_version.c - versions, markers and wheel names by the standards' own examples; tests/oracles compares at random. */
#include "pep/version.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "harness/test.h"
#include "pep/marker.h"
#include "pep/tags.h"

TEST(order)
{
    static const char *const rising[] = {"1.dev0", "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456",
        "1.0b2", "1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0", "1.0+abc.5", "1.0+abc.7", "1.0+5",
        "1.0.post456.dev34", "1.0.post456", "1.0.15", "1.1.dev1", "1!0.1"};
    struct px_version a, b;
    for (size_t i = 1; i < PX_COUNT_OF(rising); i++) {
        ASSERT_OK(px_version_parse(rising[i - 1], strlen(rising[i - 1]), &a));
        ASSERT_OK(px_version_parse(rising[i], strlen(rising[i]), &b));
        if (px_version_compare(&a, &b) >= 0 || px_version_compare(&b, &a) <= 0)
            px_test_fail(__FILE__, __LINE__, "%s is not below %s", rising[i - 1], rising[i]);
    }
}

TEST(ranges)
{
    static const struct {
        const char *version, *range;
        int fits;
    } rows[] = {
        {"2.2.post3", "~=2.2", 1}, {"3.0", "~=2.2", 0}, {"1.4.5a4", "~=1.4.5a4", 1}, {"1.5", "~=1.4.5", 0}, {"1.1.post1", "==1.1", 0},
        {"1.1.post1", "==1.1.*", 1}, {"1.1a1", "==1.1.*", 1}, {"1.7.0.post1", ">1.7", 0}, {"1.7.1", ">1.7", 1}, {"2.0a1", "<2", 0},
        {"1.0+local", "==1.0", 1}, {"1.0", "==1.0+local", 0}, {"3.11.2", ">=3.11,<4", 1}, {"1", "", 1}, {"1", " , ", 1},
        {"1", "1", -EINVAL}, {"1", ">", -EINVAL}, {"1", "~=1", -EINVAL}, {"1", ">=1.*", -EINVAL}, {"x", ">1", -EINVAL}, {"x", "===x", 1},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_version_fits(rows[i].version, rows[i].range) != rows[i].fits)
            px_test_fail(__FILE__, __LINE__, "%s %s", rows[i].version, rows[i].range);
}

TEST(a_version_alone_asks_for_its_releases)
{
    static const struct {
        const char *range;
        int fits;
    } rows[] = {{"3.11", 1}, {"3", 1}, {"3.11.2", 1}, {"3.11.4", 0}, {"3.1", 0}, {"3.12", 0}, {" 3.11 ", -EINVAL}, {">=3.11", 1},
                {"<3.11", 0}, {"", 1}, {"banana", -EINVAL}, {"3.11rc1", -EINVAL}, {"^3.11", -EINVAL}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_version_asked("3.11.2", rows[i].range) != rows[i].fits)
            px_test_fail(__FILE__, __LINE__, "'%s'", rows[i].range);
}

TEST(markers)
{
    static const char *const extras[] = {"Sec_urity", NULL};
    const struct px_marker_env env = {.os_name = "posix", .python_version = "3.11", .sys_platform = "linux", .extras = extras};
    ASSERT_EQ(px_marker_holds("", &env), 1);
    ASSERT_EQ(px_marker_holds("python_version < '3.9' or (os_name == \"posix\" and extra == 'sec-urity')", &env), 1);
    ASSERT_EQ(px_marker_holds("extra == 'other'", &env), 0);
    ASSERT_EQ(px_marker_holds("sys_platform in 'win32 linux' and sys_platform not in 'darwin'", &env), 1);
    ASSERT_EQ(px_marker_holds("python_version >= '3.9' and platform_release == ''", &env), 1);
    ASSERT_EQ(px_marker_holds("'a' == 'a'", &env), -EINVAL);
    ASSERT_EQ(px_marker_holds("nothing == 'a'", &env), -EINVAL);
    ASSERT_EQ(px_marker_holds("os_name == 'posix", &env), -EINVAL);
    ASSERT_EQ(px_marker_holds("(((os_name == 'posix'))", &env), -EINVAL);
}

TEST(requirements)
{
    struct px_requirement q;
    char name[64];
    ASSERT_OK(px_marker_requirement_parse(" Foo.Bar [a,b] (>=1, <2) ; python_version > '3'", &q));
    ASSERT_OK(px_marker_package_name(q.name, q.name_length, name, sizeof name));
    ASSERT_STR(name, "foo-bar");
    ASSERT(q.extras_length == 3 && memcmp(q.extras, "a,b", 3) == 0);
    ASSERT(q.range_length == 7 && memcmp(q.range, ">=1, <2", 7) == 0);
    ASSERT(px_starts_with(q.marker, "python_version"));
    ASSERT_OK(px_marker_requirement_parse("pip @ https://example.org/pip.whl ; os_name == 'x'", &q));
    ASSERT(q.url_length == strlen("https://example.org/pip.whl"));
    ASSERT_EQ(px_marker_requirement_parse("a b", &q), -EINVAL);
    ASSERT_EQ(px_marker_requirement_parse("-a", &q), -EINVAL);
    ASSERT_EQ(px_marker_requirement_parse("a[b", &q), -EINVAL);
    ASSERT_EQ(px_marker_requirement_parse("a ;", &q), -EINVAL);
}

TEST(wheels)
{
    const struct px_tags tags = {.python_minor = 11, .libc_major = 2, .libc_minor = 36, .machine = "x86_64"};
    int own = px_tags_rank(&tags, "a-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl");
    int stable = px_tags_rank(&tags, "a-1-cp38-abi3-manylinux2014_x86_64.whl");
    int pure = px_tags_rank(&tags, "a-1-py2.py3-none-any.whl");
    ASSERT(own >= 0 && own < stable && stable < pure);
    ASSERT_EQ(px_tags_rank(&tags, "a-1-cp312-cp312-linux_x86_64.whl"), -ENOENT);
    ASSERT_EQ(px_tags_rank(&tags, "a-1-cp311-cp311-musllinux_1_2_x86_64.whl"), -ENOENT);
    ASSERT_EQ(px_tags_rank(&tags, "a-1-cp311-cp311-manylinux_2_37_x86_64.whl"), -ENOENT);
    ASSERT_EQ(px_tags_rank(&tags, "a-1.whl"), -EINVAL);
    ASSERT_EQ(px_tags_rank(&tags, "../a-1-py3-none-any.whl"), -EINVAL);
    const struct px_tags alpine = {.python_minor = 12, .musl = true, .libc_major = 1, .libc_minor = 2, .machine = "x86_64"};
    ASSERT_EQ(px_tags_rank(&alpine, "a-1-cp312-cp312-musllinux_1_1_x86_64.whl"), 1);
}
