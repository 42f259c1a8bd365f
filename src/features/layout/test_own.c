/* layout/test_own.c - which packages of its own a project has, read from pyproject.toml and the names of its files. */
#include "layout/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "layout/fixture.h"
#include "layout/locate.h"
#include "store/canonical.h"

#define HEAD "[tool.px]\n[project]\nname = \"demo\"\nversion = \"1.0\"\n"
#define BUILD "[build-system]\nrequires = [\"setuptools\"]\n"
#define NAMED ",\"name\":\"demo\",\"version\":\"1.0\"}]"
#define BARE "{\"packages\":[{\"entry_points\":\"\"" NAMED

static int find(struct px_own *ret_own, struct px_err *e)
{
    char real[PATH_MAX];
    struct px_located site;
    ASSERT(realpath(px_test_dir_path(), real));
    ASSERT_PX(px_locate_find(real, &site, e), *e);
    int r = px_own_find(&site, ret_own, e);
    px_locate_done(&site);
    return r;
}

/* expected: the facts as canonical JSON; NULL: there is no package. */
static void check_limits(const char *expected, size_t limits)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 16);
    struct px_own own = {0};
    struct px_err e = {0};
    ASSERT_PX(find(&own, &e), e);
    ASSERT_EQ(own.facts != NULL, expected != NULL);
    if (expected) {
        ASSERT_OK(px_canonical(own.facts, &text));
        ASSERT_STR(px_buf_text(&text), expected);
    }
    ASSERT_EQ(json_array_size(own.limits), limits);
    px_own_done(&own);
}

static void check(const char *expected)
{
    check_limits(expected, 0);
}

static void refused(const char *words)
{
    struct px_own own = {0};
    struct px_err e = {0};
    ASSERT_EQ(find(&own, &e), -1);
    ASSERT_EQ(e.code, PX_E_MANIFEST);
    ASSERT(strstr(e.what, words));
    ASSERT(strstr(e.what, "pyproject.toml:"));
}

TEST(layouts_that_are_found)
{
    px_auto_fd int dir = px_test_dir();
    put(dir, "pyproject.toml", HEAD);
    put(dir, "demo.py", "");                            /* a script, as far as is known */
    check(NULL);
    ASSERT_OK(unlinkat(dir, "demo.py", 0));
    put(dir, "pyproject.toml", HEAD BUILD);             /* declared as a package, whatever its modules */
    check(BARE ",\"paths\":[\".\"]}");
    put(dir, "src/other/__init__.py", "");
    check(BARE ",\"paths\":[\"src\"]}");
    put(dir, "demo/__init__.py", "");
    check(BARE ",\"paths\":[\".\"]}");
    put(dir, "src/demo.py", "");
    check(BARE ",\"paths\":[\"src\"]}");
    put(dir, "pyproject.toml", HEAD);                   /* a module of the project's name in src suffices */
    check(BARE ",\"paths\":[\"src\"]}");
}

TEST(layouts_that_are_said)
{
    static const struct {
        const char *said, *path;
    } rows[] = {
        {"[tool.setuptools]\npackage-dir = {\"\" = \"lib\"}\n", "lib"},
        {"[tool.setuptools.package-dir]\ndemo = \"lib/demo\"\n", "lib"},
        {"[tool.setuptools.packages.find]\nwhere = [\"lib\"]\n", "lib"},
        {"[tool.setuptools]\npackages = [\"demo\"]\n", "."},
        {"[tool.setuptools]\npackages = [\"demo\"]\npackage-dir = {\"\" = \"./lib/\"}\n", "lib"},
        {"[tool.setuptools]\npy-modules = [\"demo\"]\n", "."},
        {"[tool.hatch.build.targets.wheel]\npackages = [\"lib/demo\"]\n", "lib"},
        {"[tool.hatch.build.targets.wheel]\nsources = [\"lib\"]\n", "lib"},
        {"[tool.hatch.build]\ndev-mode-dirs = [\"lib\"]\n", "lib"},
        {"[tool.poetry]\npackages = [{include = \"demo\", from = \"lib\"}]\n", "lib"},
        {"[tool.poetry]\npackages = [{include = \"demo\"}]\n", "."},
        {"[tool.pdm.build]\npackage-dir = \"lib\"\n", "lib"},
        {"[tool.uv.build-backend]\nmodule-root = \"\"\n", "."},
        {"[tool.maturin]\npython-source = \"lib\"\n", "lib"},
        {"[tool.flit.module]\nname = \"other\"\n", "src"},
    };
    px_auto_fd int dir = px_test_dir();
    put(dir, "lib/demo/__init__.py", "");
    put(dir, "src/other/__init__.py", "");
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        char text[512], expected[512];
        ASSERT_OK(px_fmt(text, sizeof text, HEAD "%s", rows[i].said));
        ASSERT_OK(px_fmt(expected, sizeof expected, BARE ",\"paths\":[\"%s\"]}", rows[i].path));
        put(dir, "pyproject.toml", text);
        check(expected);
    }
}

/* What px does not support is reported, and the rest still works. */
TEST(limits)
{
    static const char *const rows[] = {
        BUILD "[tool.setuptools]\npackage-dir = {demo = \"code\"}\n",
        BUILD "[tool.setuptools.packages.find]\nwhere = [\"missing\"]\n",
        BUILD "[tool.setuptools.packages.find]\nwhere = 3\n",
        BUILD "[tool.poetry]\npackages = [{include = \"demo\", to = \"x\"}]\n",
        BUILD "[tool.setuptools]\next-modules = [{name = \"a\", sources = [\"a.c\"]}]\n",
        "[build-system]\nbuild-backend = \"mesonpy\"\n",
    };
    px_auto_fd int dir = px_test_dir();
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        char text[512];
        ASSERT_OK(px_fmt(text, sizeof text, HEAD "%s", rows[i]));
        put(dir, "pyproject.toml", text);
        check_limits(BARE ",\"paths\":[\".\"]}", 1);
    }
    put(dir, "pyproject.toml", HEAD BUILD);
    put(dir, "setup.py", "setup(ext_modules=[Extension('a', ['a.c'])])\n");
    check_limits(BARE ",\"paths\":[\".\"]}", 1);
    put(dir, "pyproject.toml", "[tool.px]\n[project]\nname = \"Sci Lab!\"\n" BUILD);
    check_limits(NULL, 1);
    put(dir, "pyproject.toml", "[tool.px]\n[project]\nname = \"Sci Lab!\"\n");
    check(NULL);
}

TEST(entry_points)
{
    px_auto_fd int dir = px_test_dir();
    put(dir, "pyproject.toml",
        "[tool.px]\n[project]\nname = \"demo\"\n[project.scripts]\nb = \"demo:main\"\na = \"demo.cli:App.run\"\n"
        "[project.gui-scripts]\nc = \"demo:show\"\n[project.entry-points.\"demo.plugins\"]\n\"a b\" = \"demo.one\"\n");
    check("{\"packages\":[{\"entry_points\":\"[console_scripts]\\nb = demo:main\\na = demo.cli:App.run\\n\\n"
          "[gui_scripts]\\nc = demo:show\\n\\n[demo.plugins]\\na b = demo.one\\n\","
          "\"name\":\"demo\",\"version\":\"0+unknown\"}],"
          "\"paths\":[\".\"]}");
}

TEST(poetry_alone)
{
    px_auto_fd int dir = px_test_dir();
    put(dir, "demo/__init__.py", "");
    put(dir, "pyproject.toml",
        "[tool.px]\n[tool.poetry]\nname = \"demo\"\nversion = \"1.0\"\n[tool.poetry.scripts]\na = \"demo:f\"\n");
    check("{\"packages\":[{\"entry_points\":\"[console_scripts]\\na = demo:f\\n\"" NAMED ",\"paths\":[\".\"]}");
    put(dir, "pyproject.toml",
        "[tool.px]\n[tool.poetry]\nname = \"demo\"\nversion = \"1.0\"\n"
        "scripts.a = {reference = \"a.sh\", type = \"file\"}\n" BUILD);
    check_limits(BARE ",\"paths\":[\".\"]}", 1);
}

/* A repository is untrusted: its strings must not become unwanted paths, files or lines of a script. */
TEST(hostile_words)
{
    static const struct {
        const char *said, *words;
    } rows[] = {
        {"[tool.setuptools.packages.find]\nwhere = [\"../other\"]\n", "not in the project"},
        {"[tool.setuptools.packages.find]\nwhere = [\"/etc\"]\n", "not in the project"},
        {"[tool.setuptools.packages.find]\nwhere = [\"out\"]\n", "not in the project"},
        {"[tool.setuptools.packages.find]\nwhere = [\"out/below\"]\n", "not in the project"},
        {"[tool.setuptools]\npackage-dir = {\"\" = \"a/../../b\"}\n", "not in the project"},
        {"[tool.hatch.build.targets.wheel]\npackages = [\"/etc/demo\"]\n", "not in the project"},
        {"[tool.hatch.build.targets.wheel]\npackages = [\"../demo\"]\n", "not in the project"},
        {"[tool.setuptools.packages.find]\nwhere = [\"a'+b\"]\n", "quotes"},
        {"[tool.setuptools.packages.find]\nwhere = [\"a\\nimport os\"]\n", "control characters"},
        {"[project.scripts]\n\"../x\" = \"demo:main\"\n", "name of a program"},
        {"[project.scripts]\n\"a/b\" = \"demo:main\"\n", "name of a program"},
        {"[project.scripts]\n\"-rf\" = \"demo:main\"\n", "name of a program"},
        {"[project.scripts]\n\"a\\nb\" = \"demo:main\"\n", "name of a program"},
        {"[project.scripts]\n\"\" = \"demo:main\"\n", "name of a program"},
        {"[project.scripts]\npython = \"demo:main\"\n", "environment's Python"},
        {"[project.scripts]\n\"python3.11\" = \"demo:main\"\n", "environment's Python"},
        {"[project.scripts]\na = \"demo\"\n", "does not name a function"},
        {"[project.scripts]\na = \"demo:main(); import os\"\n", "does not name a function"},
        {"[project.scripts]\na = \"demo:main\\nimport os\"\n", "place of an object"},
        {"[project.scripts]\na = 3\n", "place of an object"},
        {"[project.gui-scripts]\na = \"1demo:main\"\n", "does not name a function"},
        {"[project.entry-points.console_scripts]\na = \"demo:main\"\n", "group of entry points"},
        {"[project.entry-points.\"a]\\n[b\"]\na = \"demo:main\"\n", "group of entry points"},
        {"[project.entry-points.a]\n\"b = c\" = \"demo:main\"\n", "name of an entry point"},
        {"[project.entry-points]\na = 3\n", "not a table"},
    };
    px_auto_fd int dir = px_test_dir();
    ASSERT_OK(symlinkat("/etc", dir, "out"));
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        char text[512];
        ASSERT_OK(px_fmt(text, sizeof text, HEAD "%s", rows[i].said));
        put(dir, "pyproject.toml", text);
        refused(rows[i].words);
    }
    put(dir, "pyproject.toml", HEAD BUILD);             /* a src that leads out of the project is ignored */
    ASSERT_OK(symlinkat("/etc", dir, "src"));
    check(BARE ",\"paths\":[\".\"]}");
}

TEST(members_of_a_workspace)
{
    px_auto_fd int dir = px_test_dir();
    put(dir, "pyproject.toml",
        "[tool.px.workspace]\nname = \"w\"\nmembers = [\"app\", \"libs/core\", \"tools\", \"twin\"]\n");
    put(dir, "app/pyproject.toml",
        "[project]\nname = \"app\"\ndependencies = [\"Core_Lib>=1\"]\n[project.scripts]\nrun-app = \"app:main\"\n");
    put(dir, "libs/core/pyproject.toml", "[project]\nname = \"core-lib\"\nversion = \"2.0-1\"\n");
    put(dir, "libs/core/src/core/__init__.py", "");
    put(dir, "tools/pyproject.toml", "[project]\nname = \"tools\"\n");
    put(dir, "twin/pyproject.toml", "[project]\nname = \"Core.Lib\"\n" BUILD);
    check_limits("{\"packages\":[{\"entry_points\":\"[console_scripts]\\nrun-app = app:main\\n\",\"name\":\"app\","
                 "\"version\":\"0+unknown\"},{\"entry_points\":\"\",\"name\":\"core-lib\",\"version\":\"2.0-1\"}],"
                 "\"paths\":[\"app\",\"libs/core/src\"]}",
                 1);
}
