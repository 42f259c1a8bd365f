/* project/test_locate.c - which project a directory belongs to, whether its lock fits, and what resolvers answer. */
#include "layout/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "layout/fixture.h"
#include "lock/drift.h"
#include "pep/marker.h"
#include "pep/tags.h"
#include "resolve/resolved.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct px_marker_env environment = {.os_name = "posix", .platform_system = "Linux", .python_full_version = "3.11.2",
                                                 .python_version = "3.11", .sys_platform = "linux"};
static const struct px_tags debian = {.python_minor = 11, .libc_major = 2, .libc_minor = 36, .machine = "x86_64"};

static int find(const char *below, struct px_located *ret_site, struct px_err *e)
{
    char path[PATH_MAX], real[PATH_MAX];
    ASSERT_OK(px_fmt(path, sizeof path, "%s/%s", px_test_dir_path(), below));
    ASSERT(realpath(path, real));
    return px_locate_find(real, ret_site, e);
}

/* Where a directory's project begins, as a path below the test's directory; "" is that directory itself. */
static void check_root(const char *below, const char *expected, bool workspace)
{
    struct px_located site;
    struct px_err e = {0};
    char real[PATH_MAX];
    ASSERT_PX(find(below, &site, &e), e);
    ASSERT(realpath(px_test_dir_path(), real));
    const char *rest = site.root + strlen(real);
    ASSERT_STR(rest + (*rest == '/'), expected);
    ASSERT_EQ(site.workspace, workspace);
    px_locate_done(&site);
}

#define PX "[tool.px]\n"

TEST(the_nearest_project_counts)
{
    px_auto_fd int dir = px_test_dir();
    put(dir, "pyproject.toml", PX);
    put(dir, "src/deep/x", "");
    put(dir, "inner/pyproject.toml", "[project]\nname = \"i\"\n" PX);
    put(dir, "inner/src/x", "");
    put(dir, "other/pyproject.toml", "[project]\nname = 7\n");      /* has no [tool.px], so it is ignored */
    put(dir, "locked/px.lock", "version = 1\n");
    check_root("", "", false);
    check_root("src/deep", "", false);
    check_root("inner", "inner", false);
    check_root("inner/src", "inner", false);
    check_root("other", "", false);
    check_root("locked", "locked", false);
}

TEST(members_belong_to_their_workspace)
{
    px_auto_fd int dir = px_test_dir();
    struct px_located site;
    struct px_err e = {0};
    put(dir, "pyproject.toml", "[tool.px.workspace]\nname = \"All\"\nmembers = [\"libs/b\", \"./libs/a/\", \"libs/a\"]\n");
    put(dir, "libs/a/pyproject.toml", "[project]\nname = \"a\"\ndependencies = [\"six\", \"b\"]\n" PX);
    put(dir, "libs/a/px.lock", "version = 1\n");
    put(dir, "libs/a/src/x", "");
    put(dir, "libs/b/pyproject.toml", "[project]\nname = \"b\"\ndependencies = [\"six\", \"attrs\"]\n");
    put(dir, "libs/ab/pyproject.toml", PX);
    put(dir, "docs/x", "");
    check_root("libs/a", "", true);
    check_root("libs/a/src", "", true);
    check_root("libs/b", "", true);
    check_root("libs/ab", "libs/ab", false);
    check_root("docs", "", true);
    check_root("", "", true);

    ASSERT_PX(find("libs/a/src", &site, &e), e);
    ASSERT_EQ(site.member_count, 2);
    ASSERT(site.members[0].here && !site.members[1].here);
    ASSERT_STR(site.members[0].path, "libs/a");
    ASSERT_STR(px_locate_name(&site), "All");
    ASSERT_STR(px_locate_lock_file(&site), "px.workspace.lock");
    struct px_names list;
    ASSERT_PX(px_locate_requirements(&site, &list, &e), e);
    ASSERT_EQ(list.count, 2);
    ASSERT_STR(list.items[0], "attrs");
    ASSERT_STR(list.items[1], "six");
    free(list.items);
    px_locate_done(&site);
}

/* The range that Python 3.11.2 does not satisfy in these two manifests; the second is a member's, "" for none. */
static void check_misses(int dir, const char *root, const char *member, const char *expected)
{
    struct px_located site;
    struct px_err e = {0};
    put(dir, "pyproject.toml", root);
    if (*member)
        put(dir, "a/pyproject.toml", member);
    ASSERT_PX(find("", &site, &e), e);
    const char *missed = px_locate_misses(&site, "3.11.2");
    ASSERT_STR(missed ? missed : "", expected);
    px_locate_done(&site);
}

TEST(which_python_is_asked_for)
{
    px_auto_fd int dir = px_test_dir();
#define ALL "[tool.px.workspace]\nmembers = [\"a\"]\n"
    check_misses(dir, PX, "", "");
    check_misses(dir, "[project]\nrequires-python = \">=3.11,<4\"\n" PX, "", "");
    check_misses(dir, "[project]\nrequires-python = \">=3.12\"\n" PX, "", ">=3.12");
    check_misses(dir, "[project]\nrequires-python = \"<3.11\"\n" PX, "", "<3.11");
    check_misses(dir, PX "python = \"3.11\"\n", "", "");
    check_misses(dir, PX "python = \"3.12\"\n", "", "3.12");
    check_misses(dir, PX "python = \">=4\"\n", "", ">=4");
    check_misses(dir, ALL "python = \"3.11\"\n", "[project]\nname = \"a\"\n", "");
    check_misses(dir, ALL "python = \"3.13\"\n", "[project]\nname = \"a\"\n", "3.13");
    check_misses(dir, ALL, "[project]\nrequires-python = \">=3.14\"\n", ">=3.14");
#undef ALL
}

TEST(what_cannot_be_found_or_used)
{
    static const struct {
        const char *file, *text;
        int code;
        const char *says;
    } rows[] = {
        {"x", "", PX_E_NO_PROJECT, "No px project found"},
        {"pyproject.toml", "[tool.px\n", PX_E_MANIFEST, "pyproject.toml:1:"},
        {"pyproject.toml", "[tool.px.workspace]\nmembers = [\"../out\"]\n", PX_E_MANIFEST, "../out"},
        {"pyproject.toml", "[tool.px.workspace]\nmembers = [\"/etc\"]\n", PX_E_MANIFEST, "/etc"},
        {"pyproject.toml", "[tool.px.workspace]\nmembers = [\".\"]\n", PX_E_MANIFEST, "'.'"},
        {"pyproject.toml", "[tool.px.workspace]\nmembers = [\"gone\"]\n", PX_E_MANIFEST, "gone"},
        {"pyproject.toml", "[tool.px]\npython = 3\n", PX_E_MANIFEST, "pyproject.toml:2:"},
    };
    px_auto_fd int dir = px_test_dir();
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_located site;
        struct px_err e = {0};
        put(dir, rows[i].file, rows[i].text);
        if (find("", &site, &e) == 0)
            FAIL("case %zu was found", i);
        if (e.code != rows[i].code || !strstr(e.what, rows[i].says))
            FAIL("case %zu: PX%03d %s", i, e.code, e.what);
    }
}

/* ---- drift ---- */

#define HEAD "version = 1\n[metadata]\nmode = \"p0-pinned\"\n[project]\nname = \"demo\"\n[python]\nrequirement = \">=3.11\"\n"
#define PIN(name, version, more) "[[dependencies]]\nname = \"" name "\"\nspecifier = \"" name "==" version "\"\n" more

static const struct {
    enum px_pins_format format;
    const char *requirement, *lock, *says;      /* NULL: it fits */
} fits[] = {
    {PX_PINS_PX, "six>=1", HEAD PIN("six", "1.16", ""), NULL},
    {PX_PINS_PX, "Six", HEAD PIN("six", "1.16", ""), NULL},
    {PX_PINS_PX, "six>=2", HEAD PIN("six", "1.16", ""), "the lock has six 1.16, the manifest asks for six>=2"},
    {PX_PINS_PX, "attrs", HEAD PIN("attrs", "1", "") PIN("six", "1.16", ""), "six is in the lock, and nothing asks for it"},
    {PX_PINS_PX, "attrs", HEAD PIN("attrs", "1", "requires = [\"six\"]\n") PIN("six", "1.16", "direct = false\n"), NULL},
    {PX_PINS_PX, "attrs", HEAD PIN("attrs", "1", "requires = [\"six\"]\n"), "attrs needs six, which is not in the lock"},
    {PX_PINS_PX, "attrs", HEAD PIN("attrs", "1", "requires = [\"six ; os_name == 'nt'\"]\n"), NULL},
    {PX_PINS_PX, "six", HEAD, "six is not in the lock"},
    {PX_PINS_PX, "six ; os_name == 'nt'", HEAD, NULL},
    {PX_PINS_PX, "six", "version = 3\n", "the lock has version 3, and px knows 1 and 2"},
    {PX_PINS_PX, "six", "version = 1\n[metadata]\nmode = \"x\"\n[project]\nname = \"demo\"\n[python]\nrequirement = \">=3.11\"\n" PIN("six", "1", ""),
     "the lock's mode is 'x' and not 'p0-pinned'"},
    {PX_PINS_PX, "six", "version = 1\n[metadata]\nmode = \"p0-pinned\"\n[project]\nname = \"other\"\n[python]\nrequirement = \">=3.11\"\n" PIN("six", "1", ""),
     "the lock is of 'other' and not of 'demo'"},
    {PX_PINS_PX, "six", "version = 1\n[metadata]\nmode = \"p0-pinned\"\n[project]\nname = \"demo\"\n[python]\nrequirement = \">=3.12\"\n" PIN("six", "1", ""),
     "the lock is for Python '>=3.12', the manifest says '>=3.11'"},
    {PX_PINS_REQUIREMENTS, "six", "six==1\nattrs==2\n", NULL},
    {PX_PINS_REQUIREMENTS, "six>1", "six==1\n", "the lock has six 1, the manifest asks for six>1"},
};

TEST(drift)
{
    for (size_t i = 0; i < PX_COUNT_OF(fits); i++) {
        struct px_err e = {0};
        struct px_lock pins;
        struct px_drift found;
        const struct px_names list = {.items = (const char **)&fits[i].requirement, .count = 1};
        const struct px_drift_asked asked = {.project = "demo", .python = ">=3.11", .requirements = &list, .env = &environment};
        ASSERT_PX(px_lock_parse(fits[i].format, fits[i].lock, strlen(fits[i].lock), "lock", &pins, &e), e);
        ASSERT_PX(px_drift_find(&asked, &pins, &found, &e), e);
        if ((found.count > 0) != (fits[i].says != NULL) || (found.count && !px_equal(found.items[0], fits[i].says)))
            FAIL("case %zu: %s", i, found.count ? found.items[0] : "it fits");
        px_drift_done(&found);
        px_lock_done(&pins);
    }
}

/* ---- answers of resolvers ---- */

static const struct px_resolved_for here = {.root = "/home/me/demo", .env = &environment, .tags = &debian};

#define ENTRY(url, name, more) "{\"download_info\":{\"url\":\"" url "\",\"archive_info\":{\"hash\":\"sha256=" HASH "\"}}," \
    "\"metadata\":{\"name\":\"" name "\",\"version\":\"1.0\"" more "}}"

TEST(pips_report)
{
    static const char report[] = "{\"version\":\"1\",\"install\":["
        ENTRY("https://user:secret@host/x/Zed-1.0-py3-none-any.whl#frag", "Zed",
              ",\"requires_dist\":[\"B_b>=1\",\"w ; os_name == 'nt'\",\"ex ; extra == 'y'\"]") ","
        ENTRY("file:///home/me/demo/my%20wheels/b_b-1.0-py3-none-any.whl", "b_b", "") ","
        ENTRY("file:///srv/wheels/c-1.0-py3-none-any.whl", "c", "") "]}";
    struct px_lock pins;
    struct px_err e = {0};
    ASSERT_PX(px_resolved_from_pip(report, strlen(report), &here, &pins, &e), e);
    ASSERT_EQ(pins.count, 3);
    ASSERT_STR(pins.items[0].name, "zed");
    ASSERT_STR(pins.items[0].specifier, "zed==1.0");
    ASSERT_STR(pins.items[0].files[0].url, "https://host/x/Zed-1.0-py3-none-any.whl");
    ASSERT_STR(pins.items[0].files[0].name, "Zed-1.0-py3-none-any.whl");
    ASSERT_EQ(pins.items[0].requires_count, 1);
    ASSERT_STR(pins.items[0].requires[0], "b-b");
    ASSERT_STR(pins.items[1].files[0].url, "my wheels/b_b-1.0-py3-none-any.whl");
    ASSERT(!pins.items[2].files[0].url);
    ASSERT_STR(pins.items[2].files[0].sha256.hex, HASH);
    px_lock_done(&pins);
}

TEST(answers_that_cannot_be_used)
{
    static const char *const reports[] = {
        "", "[]", "{}", "{\"install\":{}}", "{\"install\":[{}]}", "{\"install\":[{\"metadata\":{\"name\":\"a\"}}]}",
        "{\"install\":[{\"metadata\":{\"name\":\"a\",\"version\":\"1\"},\"download_info\":{\"url\":\"file:///d\",\"dir_info\":{}}}]}",
        "{\"install\":[{\"metadata\":{\"name\":\"a\",\"version\":\"1\"},\"download_info\":{\"url\":\"https://h/a.whl\",\"archive_info\":{}}}]}",
        "{\"install\":[{\"metadata\":{\"name\":\"a\",\"version\":\"1\"},\"download_info\":{\"archive_info\":{\"hash\":\"sha256=" HASH "\"}}}]}",
        "{\"install\":[{\"metadata\":{\"name\":\"a\",\"version\":\"1\"},\"download_info\":{\"url\":\"https://h/a%2f..%2fb\",\"archive_info\":{\"hash\":\"sha256=" HASH "\"}}}]}",
        "{\"install\":[" ENTRY("https://h/a%d1.whl", "a", "") "]}", "{\"install\":[" ENTRY("https://h/a%00.whl", "a", "") "]}",
        "{\"install\":[{\"metadata\":{\"name\":\"a\",\"version\":\"1,2\"},\"download_info\":{\"url\":\"https://h/a.whl\",\"archive_info\":{\"hash\":\"sha256=" HASH "\"}}}]}",
    };
    for (size_t i = 0; i < PX_COUNT_OF(reports); i++) {
        struct px_lock pins;
        struct px_err e = {0};
        if (px_resolved_from_pip(reports[i], strlen(reports[i]), &here, &pins, &e) == 0)
            FAIL("case %zu was taken", i);
        ASSERT(e.code == PX_E_LOCK || e.code == PX_E_LOCK_FORMAT);
    }
}

TEST(a_lock_is_the_same_in_any_order_and_place)
{
    static const char *const reports[] = {
        "{\"install\":[" ENTRY("https://h/b-1.0-py3-none-any.whl", "b", "") "," ENTRY("https://h/a-1.0-py3-none-any.whl", "a", "") "]}",
        "{\"install\":[" ENTRY("https://h/a-1.0-py3-none-any.whl", "a", "") "," ENTRY("https://h/b-1.0-py3-none-any.whl", "b", "") "]}",
    };
    px_auto_buf struct px_buf first = PX_BUF(1 << 16);
    px_auto_fd int dir = px_test_dir();
    put(dir, "one/pyproject.toml", "[project]\nname = \"d\\\"x\"\nrequires-python = \">=3.11\"\ndependencies = [\"a\"]\n" PX);
    put(dir, "two/pyproject.toml", "[project]\nname = \"d\\\"x\"\nrequires-python = \">=3.11\"\ndependencies = [\"a\"]\n" PX);
    for (size_t i = 0; i < 2; i++) {
        px_auto_buf struct px_buf out = PX_BUF(1 << 16);
        struct px_located site;
        struct px_lock pins;
        struct px_err e = {0};
        ASSERT_PX(find(i ? "two" : "one", &site, &e), e);
        ASSERT_PX(px_resolved_from_pip(reports[i], strlen(reports[i]), &here, &pins, &e), e);
        ASSERT_PX(px_resolved_write(&site, &pins, i ? &out : &first, &e), e);
        px_lock_done(&pins);
        px_locate_done(&site);
        if (i) {
            ASSERT_STR(px_buf_text(&out), px_buf_text(&first));
            ASSERT(strstr(px_buf_text(&out), "name = \"b\"\nspecifier = \"b==1.0\"\ndirect = false\n"));
            ASSERT(!strstr(px_buf_text(&out), px_test_dir_path()));
        }
    }
}

TEST(a_workspaces_lock_names_members_and_owners)
{
    static const char report[] = "{\"install\":[" ENTRY("https://h/six-1.0-py3-none-any.whl", "six", "") "]}";
    px_auto_buf struct px_buf out = PX_BUF(1 << 16);
    px_auto_fd int dir = px_test_dir();
    struct px_located site;
    struct px_lock pins;
    struct px_err e = {0};
    put(dir, "pyproject.toml", "[tool.px.workspace]\nname = \"all\"\nmembers = [\"b\", \"a\"]\n");
    put(dir, "a/pyproject.toml", "[project]\nname = \"a\"\ndependencies = [\"six\"]\n");
    put(dir, "b/pyproject.toml", "[project]\nname = \"b\"\ndependencies = [\"a\"]\n");
    ASSERT_PX(find("", &site, &e), e);
    ASSERT_PX(px_resolved_from_pip(report, strlen(report), &here, &pins, &e), e);
    ASSERT_PX(px_resolved_write(&site, &pins, &out, &e), e);
    ASSERT(strstr(px_buf_text(&out), "[[workspace.members]]\nname = \"a\"\npath = \"a\"\n"));
    ASSERT(strstr(px_buf_text(&out), "[[workspace.owners]]\nname = \"six\"\nowners = [\"a\"]\n"));
    px_lock_done(&pins);
    px_locate_done(&site);
}
