/* pep/test_manifest.c - values read from pyproject.toml, known fingerprints, and errors with their lines. */
#include "pep/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/test.h"

static struct px_manifest read_text(const char *text)
{
    struct px_manifest m;
    struct px_err e = {0};
    ASSERT_PX(px_manifest_parse(text, strlen(text), "pyproject.toml", &m, &e), e);
    return m;
}

static struct px_oid fingerprint(const char *text)
{
    struct px_oid id;
    struct px_err e = {0};
    struct px_manifest m = read_text(text);
    ASSERT_PX(px_manifest_fingerprint(&m, &id, &e), e);
    px_manifest_done(&m);
    return id;
}

#define DEMO "[project]\nname = \"demo\"\nrequires-python = \">=3.11\"\n"

TEST(fingerprints_are_the_known_ones)
{
    ASSERT_STR(fingerprint(DEMO).hex, "5af44fb5dc33fae4432f4cfd68eca700efe0dff9cf839268dcf40ca24c953924");
    ASSERT_STR(fingerprint("[project]\nname = \" Demo \"\n").hex, "5af44fb5dc33fae4432f4cfd68eca700efe0dff9cf839268dcf40ca24c953924");
    struct px_oid px = fingerprint("[project]\nname = \"px\"\nrequires-python = \">=3.11\"\n[build-system]\nrequires = [\"wheel\", \"setuptools>=70\"]\n");
    ASSERT(px_starts_with(px.hex, "b2f1fe75"));
}

TEST(the_sandbox_and_the_order_are_not_in_it)
{
    static const char *const same[] = {
        DEMO "dependencies = [\"a\", \"b>1\"]\n",
        DEMO "dependencies = [\"b>1\", \"a\", \"a\"]\n",
        DEMO "dependencies = [\" a \", \"b>1\"]\nversion = \"7\"\n",
        DEMO "dependencies = [\"a\", \"b>1\"]\n[tool.px.sandbox]\nbase = \"alpine-3.20\"\n[tool.px.sandbox.capabilities]\nxml = true\n",
    };
    static const char *const others[] = {
        DEMO "dependencies = [\"a\", \"b>2\"]\n",
        DEMO "dependencies = [\"a\", \"b>1\"]\n[tool.px]\npython = \"3.12\"\n",
        DEMO "dependencies = [\"a\", \"b>1\"]\n[tool.px.env]\nX = 1\n",
        DEMO "dependencies = [\"a\", \"b>1\"]\n[tool.px]\npin-manifest = true\n",
        DEMO "dependencies = [\"a\"]\n[dependency-groups]\ndev = [\"b>1\"]\n",
    };
    struct px_oid first = fingerprint(same[0]);
    for (size_t i = 0; i < PX_COUNT_OF(same); i++)
        ASSERT_STR(fingerprint(same[i]).hex, first.hex);
    for (size_t i = 0; i < PX_COUNT_OF(others); i++)
        if (px_equal(fingerprint(others[i]).hex, first.hex))
            FAIL("case %zu has the same fingerprint", i);
}

TEST(everything_is_read)
{
    struct px_manifest m = read_text(
        "[project]\nname = \"demo\"\nversion = \"1.2\"\ndependencies = [\"a\"]\n[project.scripts]\nrun = \"demo:main\"\n"
        "[dependency-groups]\ntest = [\"pytest\", {include-group = \"base\"}]\nbase = [\"six\"]\nunused = [\"zzz\"]\n"
        "[tool.px]\npython = \"3.11\"\n[tool.px.dependencies]\ninclude-groups = [\"test\"]\n[tool.px.env]\nB = 2\nA = \" x \"\nEMPTY = \"\"\n"
        "[tool.px.workspace]\nname = \"all\"\nmembers = [\"libs/core\"]\n"
        "[tool.px.sandbox]\nbase = \"  \"\nauto = false\n[tool.px.sandbox.capabilities]\npostgres = true\nxml = false\n");
    struct px_names list;
    struct px_err e = {0};
    ASSERT_STR(m.name, "demo");
    ASSERT_STR(m.version, "1.2");
    ASSERT_STR(m.requires_python, ">=3.11");
    ASSERT(m.is_px && m.is_workspace && m.sandbox_defined && !m.sandbox_auto && !m.sandbox_base);
    ASSERT_STR(m.workspace_name, "all");
    ASSERT_EQ(m.members.count, 1);
    ASSERT_EQ(m.env.count, 2);
    ASSERT_STR(m.env.items[0].key, "A");
    ASSERT_STR(m.env.items[0].value, "x");
    ASSERT_STR(m.env.items[1].value, "2");
    ASSERT_EQ(m.wish_count, 2);
    ASSERT(m.wishes[0].enabled && !m.wishes[1].enabled);
    ASSERT_STR(m.scripts.items[0].value, "demo:main");
    ASSERT_PX(px_manifest_requirements(&m, true, &list, &e), e);
    ASSERT_EQ(list.count, 3);
    ASSERT_STR(list.items[0], "a");
    ASSERT_STR(list.items[1], "pytest");
    ASSERT_STR(list.items[2], "six");
    free(list.items);
    px_manifest_done(&m);
}

TEST(extras_that_are_selected_count)
{
    struct px_manifest m = read_text(
        "[project]\nname = \"De.mo\"\n[project.optional-dependencies]\nA_b = [\"x>1\", \"de-mo[C, a.b]\"]\nc = [\"y\"]\nd = [\"z\"]\n"
        "e = [\"demo2[c]\", \"de_mo\"]\n[tool.px.dependencies]\nextras = [\"e\"]\n");
    ASSERT_EQ(m.extra_requirements.count, 1);
    ASSERT_STR(m.extra_requirements.items[0], "demo2[c]");
    ASSERT_STR(m.extras.items[0], "e");
    ASSERT(m.extras.items[1] == NULL);
    px_manifest_done(&m);
    m = read_text("[project]\nname = \"demo\"\n[project.optional-dependencies]\nA_b = [\"x>1\", \"demo[C]\"]\nc = [\"y\"]\nd = [\"z\"]\n"
                  "[tool.px.dependencies]\nextras = [\"a-b\"]\n");
    ASSERT_EQ(m.extra_requirements.count, 2);
    ASSERT_STR(m.extra_requirements.items[1], "y");
    ASSERT_STR(m.extras.items[0], "a-b");
    px_manifest_done(&m);
}

TEST(nothing_is_enough)
{
    struct px_manifest m = read_text("");
    ASSERT(!m.name && !m.is_px && !m.is_workspace && m.sandbox_auto && !m.sandbox_defined);
    px_manifest_done(&m);
}

TEST(what_is_wrong_is_named_with_its_line)
{
    static const struct {
        const char *text, *begins;
    } rows[] = {
        {"[project\n", "pyproject.toml:1:"},
        {"\n\nproject = 1\n", "pyproject.toml:3:"},
        {"[project]\n\nname = 3\n", "pyproject.toml:3:"},
        {"[project]\nname = \"x\"\ndependencies = \"six\"\n", "pyproject.toml:3:"},
        {"[project]\ndependencies = [\n1]\n", "pyproject.toml:2:"},
        {"[project]\n#\ndependencies = [\"=bad=\"]\n", "pyproject.toml:3:"},
        {"[tool.px.sandbox]\nauto = \"yes\"\n", "pyproject.toml:2:"},
        {"[tool.px.sandbox.capabilities]\n\nxml = 1\n", "pyproject.toml:3:"},
        {"[tool.px]\nworkspace = 1\n", "pyproject.toml:2:"},
        {"[project]\n\nrequires-python = \"banana\"\n", "pyproject.toml:3: 'requires-python' is not a range"},
        {"[project]\nrequires-python = \"3.11\"\n", "pyproject.toml:2: 'requires-python' is not a range"},
        {"[tool.px]\npython = \"^3.11\"\n", "pyproject.toml:2: 'python' is not a range"},
        {"[tool.px.workspace]\npython = \">=\"\n", "pyproject.toml:2: 'python' is not a range"},
        {"[dependency-groups]\na = [{include-group = \"a\"}]\n", "pyproject.toml:2:"},
        {"[dependency-groups]\na = [{include-group = \"nobody\"}]\n", "pyproject.toml:2:"},
        {"[tool.px.env]\nX = [1]\n", "pyproject.toml:2:"},
        {"[project]\nname = \"d\"\noptional-dependencies = 1\n", "pyproject.toml:3:"},
        {"[project]\nname = \"d\"\n[project.optional-dependencies]\na = [\"d[a]\"]\n[tool.px.dependencies]\nextras = [\"a\"]\n", "pyproject.toml:4: 'a' includes itself"},
        {"[project]\nname = \"d\"\n[project.optional-dependencies]\na = [\"d[b]\"]\n[tool.px.dependencies]\nextras = [\"a\"]\n", "pyproject.toml:4: 'a' asks for"},
        {"[tool.px.dependencies]\nextras = [\"a\"]\n", "pyproject.toml: 'extras' names 'a'"},
        {"[tool.px.sandbox]\nworking-tree = \"rw\"\n", "pyproject.toml:2: 'working-tree' is neither"},
        {"a = \"\\u0000\"\n[project]\nname = \"x\\u0000y\"\n", "pyproject.toml:3:"},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_manifest m;
        struct px_err e = {0};
        if (px_manifest_parse(rows[i].text, strlen(rows[i].text), "pyproject.toml", &m, &e) == 0)
            FAIL("case %zu was taken", i);
        if (e.code != PX_E_MANIFEST || !px_starts_with(e.what, rows[i].begins))
            FAIL("case %zu: PX%03d %s", i, e.code, e.what);
    }
}

TEST(keys_that_px_does_not_have)
{
    static const struct {
        const char *text, *what, *fix;          /* NULL: accepted */
    } rows[] = {
        {"[tool.px.sandbox]\n\nbsae = \"x\"\n", "pyproject.toml:3: 'bsae' is not a key that px knows here", "Write base."},
        {"[tool.px.sandbox]\ncolour = 1\n", "pyproject.toml:2: 'colour' is not a key that px knows here", "Remove it."},
        {"[tool.px.sandbox.capabilites]\nxml = true\n", "pyproject.toml:1: 'capabilites' is not a key that px knows here",
         "Write capabilities."},
        {"[tool.px.sandbx]\nbase = \"x\"\n", "pyproject.toml:1: 'sandbx' is not a key that px knows here", "Write sandbox."},
        {"[tool.px]\npyhton = \"3.11\"\n", "pyproject.toml:2: 'pyhton' is not a key that px knows here", "Write python."},
        {"[tool.px.worker]\na = 1\n[tool.px.release-notes]\nb = 2\n[tool.px.sandbox]\nauto = true\n", NULL, NULL},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_manifest m = {0};
        struct px_err e = {0};
        int r = px_manifest_parse(rows[i].text, strlen(rows[i].text), "pyproject.toml", &m, &e);
        if (r != (rows[i].what ? -1 : 0) || (r < 0 && (!px_equal(e.what, rows[i].what) || !px_equal(e.fix, rows[i].fix))))
            FAIL("case %zu: %s / %s", i, e.what, e.fix);
        if (r == 0)
            px_manifest_done(&m);
    }
}

TEST(no_memory_is_an_error_and_nothing_leaks)
{
    static const char text[] = DEMO "dependencies = [\"a\", \"b\"]\n[dependency-groups]\ndev = [\"c\"]\n[tool.px.env]\nA = 1\n"
                                    "[tool.px.sandbox.capabilities]\nxml = true\n";
    for (unsigned n = 1;; n++) {
        struct px_manifest m;
        struct px_err e = {0};
        px_test_fail_alloc(n);
        int r = px_manifest_parse(text, sizeof text - 1, "pyproject.toml", &m, &e);
        bool failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r < 0 || !failed);
        if (r == 0)
            px_manifest_done(&m);
        else
            ASSERT(e.code == PX_E_MEMORY || e.code == PX_E_MANIFEST);
        if (!failed)
            break;
    }
}
