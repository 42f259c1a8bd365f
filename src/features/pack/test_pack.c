#include "pack/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/test.h"
#include "image/oci.h"
#include "transfer/worktree.h"

#define PROFILE "2adca48036f333ab702aaf8e588beceaa3cb0675076dd09ead69a58063f11e00"

TEST(names_that_registries_take)
{
    static const struct {
        const char *name, *version, *expected;
    } rows[] = {
        {"demo", "1.2.3", "px.local/demo:1.2.3"},
        {"My App!", "1", "px.local/my-app:1"},
        {"demo", NULL, "px.local/demo:2adca48036f333ab702aaf8e588becea"},
        {"demo", "", "px.local/demo:2adca48036f333ab702aaf8e588becea"},
        {"demo", "1.0+Local.7", "px.local/demo:1.0-local.7"},
        {"a.b_c__d-e--f", "1", "px.local/a.b_c__d-e-f:1"},
        {"a..b___c_.d", "1", "px.local/a-b-c-d:1"},
        {"-.demo._", "..1..", "px.local/demo:1"},
        {"!!!", "???", "px.local/px:2adca48036f333ab702aaf8e588becea"},
        {"", "1", "px.local/px:1"},
        {NULL, NULL, "px.local/px:2adca48036f333ab702aaf8e588becea"},
        {"\xc3\xa4pfel", "1", "px.local/pfel:1"},
        {"a/b:c@d", "1/2", "px.local/a-b-c-d:1-2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[PX_PACK_NAME_SIZE];
        struct px_image_ref ref;
        struct px_err e = {0};
        px_pack_name(rows[i].name, rows[i].version, PROFILE, out);
        ASSERT_STR(out, rows[i].expected);
        ASSERT_PX(px_image_ref_parse(out, &ref, &e), e);
    }
}

TEST(long_names_are_cut)
{
    char name[1000], out[PX_PACK_NAME_SIZE];
    struct px_image_ref ref;
    struct px_err e = {0};
    for (size_t shift = 0; shift < 4; shift++) {
        for (size_t i = 0; i < sizeof name; i++)
            name[i] = "a_-."[(i + shift) % 4];
        name[sizeof name - 1] = '\0';
        px_pack_name(name, name, PROFILE, out);
        ASSERT_PX(px_image_ref_parse(out, &ref, &e), e);
    }
}

/* ---- what an image runs ---- */

static void expect(const char *name, const char *files, size_t size, const char *one, const char *two)
{
    char *text = malloc(size);
    struct px_worktree w;
    struct px_pack_command c;
    struct px_err e = {0};
    ASSERT(text);
    memcpy(text, files, size);
    ASSERT_PX(px_worktree_read(text, size, &w, &e), e);
    px_pack_command(name, &w, NULL, &c);
    ASSERT_STR(c.words[0], "python");
    ASSERT_STR(c.words[1], one);
    ASSERT_STR(c.words[1] ? c.words[2] : NULL, two);
    px_worktree_done(&w);
}
#define EXPECT(name, files, one, two) expect(name, files, sizeof files, one, two)

/* In the directories of the project's own packages, too; or its only script. */
TEST(what_an_image_of_a_package_runs)
{
    static const struct {
        const char *entries, *files;
        const char *words[4];
    } rows[] = {
        {"", "Fsrc/demo/__main__.py", {"python", "-m", "demo"}},
        {"[console_scripts]\\none = demo:main\\n", "Fsrc/demo/__main__.py", {"python", "-m", "demo"}},
        {"[console_scripts]\\none = demo:main\\n", "Fmain.py", {"one"}},
        {"[console_scripts]\\none = demo:main\\ntwo = demo:main\\n", "Fmain.py", {"python", "main.py"}},
        {"[other]\\none = demo:main\\n", "Fdemo.py", {"python"}},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        char text[256];
        struct px_worktree w;
        struct px_pack_command c;
        struct px_err e = {0};
        ASSERT_OK(px_fmt(text, sizeof text, "{\"packages\":[{\"entry_points\":\"%s\"}],\"paths\":[\"src\"]}", rows[i].entries));
        json_t *own = json_loads(text, 0, NULL);
        char *files = strdup(rows[i].files);
        ASSERT(own && files);
        ASSERT_PX(px_worktree_read(files, strlen(files) + 1, &w, &e), e);
        px_pack_command("demo", &w, own, &c);
        for (size_t k = 0; k < 4; k++)
            ASSERT_STR(c.words[k], rows[i].words[k]);
        px_worktree_done(&w);
        json_decref(own);
    }
}

TEST(what_an_image_runs)
{
    EXPECT("My-App", "Fmain.py\0Fmy_app/__main__.py\0Fmy_app/cli.py", "-m", "my_app");
    EXPECT("my.app", "Fmain.py\0Fmy_app/cli.py", "-m", "my_app.cli");
    EXPECT("demo", "Fapp.py\0Fmain.py", "main.py", NULL);
    EXPECT("demo", "Fapp.py\0Fdemo/__init__.py", "app.py", NULL);
    EXPECT(NULL, "F__main__.py", "__main__.py", NULL);
    EXPECT("", "Fx", NULL, NULL);
    EXPECT("demo", "Fsrc/main.py", NULL, NULL);
}
