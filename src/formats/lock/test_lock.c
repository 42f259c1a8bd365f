/* lock/test_lock.c - the five lock formats, the selection, ids with known values, and errors with their lines. */
#include "lock/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/test.h"
#include "pep/manifest.h"
#include "pep/marker.h"
#include "pep/tags.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HASH2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static const struct px_marker_env environment = {
    .implementation_name = "cpython", .implementation_version = "3.11.2", .os_name = "posix", .platform_machine = "x86_64",
    .platform_python_implementation = "CPython", .platform_system = "Linux", .python_full_version = "3.11.2", .python_version = "3.11",
    .sys_platform = "linux",
};
static const struct px_tags debian = {.python_minor = 11, .libc_major = 2, .libc_minor = 36, .machine = "x86_64"};

static struct px_lock read_pins(enum px_pins_format format, const char *text)
{
    struct px_lock pins;
    struct px_err e = {0};
    ASSERT_PX(px_lock_parse(format, text, strlen(text), px_lock_files[format], &pins, &e), e);
    return pins;
}

/* "name version file ..." of what this environment takes. */
static void check_chosen_by(const struct px_lock *pins, const struct px_marker_env *by, const char *const *groups, const char *expected)
{
    struct px_chosen *list = NULL;
    size_t count = 0;
    struct px_err e = {0};
    px_auto_buf struct px_buf text = PX_BUF(4096);
    ASSERT_PX(px_lock_select(pins, by, &debian, groups, &list, &count, &e), e);
    for (size_t i = 0; i < count; i++)
        px_buf_printf(&text, "%s %s %s\n", list[i].pin->name, list[i].pin->version, list[i].file ? list[i].file->name : "-");
    ASSERT_STR(px_buf_text(&text), expected);
    free(list);
}

static void check_chosen(const struct px_lock *pins, const char *const *groups, const char *expected)
{
    check_chosen_by(pins, &environment, groups, expected);
}

/* ---- px.lock ---- */

#define PX_HEAD "version = 1\n[metadata]\npx_version = \"0\"\nmode = \"p0-pinned\"\nmanifest_fingerprint = \"" HASH "\"\n" \
                "[project]\nname = \"demo\"\n[python]\nrequirement = \">=3.11\"\n"

TEST(px_store_lock)
{
    struct px_lock pins = read_pins(PX_PINS_PX, PX_HEAD
        "[[dependencies]]\nname = \"Foo_Bar\"\nspecifier = \"foo-bar==1.2 ; sys_platform == 'linux'\"\nextras = [\"x\"]\ndirect = false\n"
        "requires = [\"six\"]\n[dependencies.artifact]\nfilename = \"foo_bar-1.2-py3-none-any.whl\"\nurl = \"vendor/foo_bar-1.2-py3-none-any.whl\"\n"
        "sha256 = \"" HASH "\"\nsize = 7\n[[dependencies]]\nname = \"win\"\nspecifier = \"win==1 ; os_name == 'nt'\"\n");
    ASSERT_EQ(pins.count, 2);
    ASSERT_STR(pins.mode, "p0-pinned");
    ASSERT_STR(pins.project, "demo");
    ASSERT_STR(pins.items[0].name, "foo-bar");
    ASSERT_STR(pins.items[0].version, "1.2");
    ASSERT(!pins.items[0].direct && pins.items[1].direct);
    ASSERT_EQ(pins.items[0].files[0].size, 7);
    ASSERT_STR(pins.items[0].files[0].sha256.hex, HASH);
    ASSERT_STR(pins.items[0].requires[0], "six");
    check_chosen(&pins, NULL, "foo-bar 1.2 foo_bar-1.2-py3-none-any.whl\n");
    px_lock_done(&pins);
}

TEST(px_lock_with_plain_texts)
{
    struct px_lock pins = read_pins(PX_PINS_PX, "version = 1\ndependencies = [\"six==1.16\", \"tomli==2 ; python_version < '3.11'\"]\n");
    ASSERT_EQ(pins.count, 2);
    check_chosen(&pins, NULL, "six 1.16 -\n");
    px_lock_done(&pins);
}

TEST(px_lock_of_another_version_is_read_as_far_as_its_head)
{
    struct px_lock pins = read_pins(PX_PINS_PX, "version = 2\n[graph]\nnodes = []\n");
    ASSERT_EQ(pins.version, 2);
    ASSERT_EQ(pins.count, 0);
    px_lock_done(&pins);
}

/* The value in the specification: without dependencies the id is the hash of the fingerprint's text. */
TEST(lock_id_is_the_known_one)
{
    static const char manifest[] =
        "[project]\nname = \"px\"\nrequires-python = \">=3.11\"\n[build-system]\nrequires = [\"setuptools>=70\", \"wheel\"]\n";
    struct px_manifest m;
    struct px_oid fingerprint, id;
    struct px_err e = {0};
    ASSERT_PX(px_manifest_parse(manifest, strlen(manifest), "pyproject.toml", &m, &e), e);
    ASSERT_PX(px_manifest_fingerprint(&m, &fingerprint, &e), e);
    px_manifest_done(&m);
    struct px_lock pins = {.fingerprint = fingerprint.hex};
    ASSERT_OK(px_lock_compute_id(&pins, &id));
    ASSERT(px_starts_with(fingerprint.hex, "b2f1fe75"));
    ASSERT(px_starts_with(id.hex, "90d0f392"));
}

TEST(every_part_of_a_pin_is_in_the_id)
{
#define ONE(name, specifier, file, hash, size) PX_HEAD "[[dependencies]]\nname = \"" name "\"\nspecifier = \"" specifier "\"\n" \
    "[dependencies.artifact]\nfilename = \"" file "\"\nsha256 = \"" hash "\"\nsize = " size "\n"
    static const char *const locks[] = {
        ONE("a", "a==1", "a-1-py3-none-any.whl", HASH, "1"), ONE("b", "a==1", "a-1-py3-none-any.whl", HASH, "1"),
        ONE("a", "a==2", "a-1-py3-none-any.whl", HASH, "1"), ONE("a", "a==1", "a-2-py3-none-any.whl", HASH, "1"),
        ONE("a", "a==1", "a-1-py3-none-any.whl", HASH2, "1"), ONE("a", "a==1", "a-1-py3-none-any.whl", HASH, "2"),
        PX_HEAD,
    };
    struct px_oid ids[PX_COUNT_OF(locks)];
    for (size_t i = 0; i < PX_COUNT_OF(locks); i++) {
        struct px_lock pins = read_pins(PX_PINS_PX, locks[i]);
        ASSERT_OK(px_lock_compute_id(&pins, &ids[i]));
        px_lock_done(&pins);
        for (size_t k = 0; k < i; k++)
            ASSERT(!px_hash_oid_equal(&ids[i], &ids[k]));
    }
}

TEST(what_is_written_reads_the_same)
{
    static const char text[] = PX_HEAD
        "[[dependencies]]\nname = \"a\"\nspecifier = \"a==1\"\nextras = [\"y\", \"z\"]\nmarker = \"os_name == \\\"posix\\\"\"\nrequires = [\"b\"]\n"
        "[dependencies.artifact]\nfilename = \"a-1-py3-none-any.whl\"\nurl = \"https://host/a\\\\b?\\u001b\\n\"\nsha256 = \"" HASH "\"\nsize = 9\n";
    struct px_oid first, second;
    px_auto_buf struct px_buf out = PX_BUF(1 << 16), again = PX_BUF(1 << 16);
    struct px_lock pins = read_pins(PX_PINS_PX, text);
    ASSERT_OK(px_lock_compute_id(&pins, &first));
    ASSERT_OK(px_lock_write(&pins, &out));
    px_lock_done(&pins);
    pins = read_pins(PX_PINS_PX, px_buf_text(&out));
    ASSERT_OK(px_lock_compute_id(&pins, &second));
    ASSERT_STR(first.hex, second.hex);
    ASSERT_OK(px_lock_write(&pins, &again));
    ASSERT_STR(px_buf_text(&out), px_buf_text(&again));
    px_lock_done(&pins);
}

#define SYSTEM "\n[system]\nbase = \"debian-12\"\narch = \"amd64\"\nfrom = \"debian bookworm\"\ncapabilities = [\"postgres\"]\n" \
               "base_packages = [\n    {name = \"libc6\", version = \"2.36-9\", arch = \"amd64\", sha256 = \"" HASH "\", size = 7},\n]\n" \
               "packages = [\n    {name = \"libpq5\", version = \"15.8-0\", arch = \"amd64\", sha256 = \"" HASH2 "\", size = 8},\n" \
               "    {name = \"zlib1g\", version = \"1:1.2\", arch = \"all\", sha256 = \"" HASH "\", size = 9},\n]\n"

TEST(packages_of_the_system_are_pinned)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 16), other = PX_BUF(1 << 16), back = PX_BUF(1 << 16);
    struct px_oid first, second;
    struct px_lock plain = read_pins(PX_PINS_PX, PX_HEAD), pins = read_pins(PX_PINS_PX, PX_HEAD SYSTEM);
    ASSERT(!plain.system.base);
    ASSERT_EQ(pins.system.base_count, 1);
    ASSERT_EQ(pins.system.count, 2);
    ASSERT_STR(pins.system.packages[1].version, "1:1.2");
    ASSERT_STR(pins.system.packages[0].sha256.hex, HASH2);
    ASSERT_EQ(pins.system.base_packages[0].size, 7);
    ASSERT_STR(pins.system.capabilities[0], "postgres");
    ASSERT_OK(px_lock_compute_id(&plain, &first));
    ASSERT_OK(px_lock_compute_id(&pins, &second));
    ASSERT_STR(first.hex, second.hex);          /* an environment does not depend on them */
    px_lock_put_system(&pins.system, &out);
    ASSERT_STR(px_buf_text(&out), SYSTEM);
    /* Only the table moves to the end; the text around it stays. */
    static const char between[] = PX_HEAD SYSTEM "\n[[workspace.members]]\nname = \"a\"\n";
    pins.system.capability_count = 0;
    ASSERT_OK(px_lock_replace_system(between, strlen(between), &pins.system, &other));
    ASSERT(px_starts_with(px_buf_text(&other), PX_HEAD));
    ASSERT(strstr(px_buf_text(&other), "[[workspace.members]]\nname = \"a\"\n\n[system]\nbase = "));
    ASSERT(strstr(px_buf_text(&other), "capabilities = []\n"));
    pins.system.capability_count = 1;
    ASSERT_OK(px_lock_replace_system(PX_HEAD SYSTEM, strlen(PX_HEAD SYSTEM), &pins.system, &back));
    ASSERT_STR(px_buf_text(&back), PX_HEAD SYSTEM);
    px_lock_done(&plain);
    px_lock_done(&pins);
}

#define BUILD PX_HEAD "[[dependencies]]\nname = \"a\"\nspecifier = \"a==1\"\n[[build]]\nrequires = [\"flit_core >=3\", \"x\"]\n" \
    "[[build.packages]]\nname = \"flit-core\"\nspecifier = \"flit-core==3.9\"\n[build.packages.artifact]\n" \
    "filename = \"flit_core-3.9-py3-none-any.whl\"\nsha256 = \"" HASH "\"\nsize = 1\n[[build]]\nrequires = [\"b\"]\n"

TEST(what_builds_are_given)
{
    static const char *const asked[] = {"flit_core >=3", "x"}, *const other[] = {"b"};
    struct px_oid id, with, builds;
    struct px_err e = {0};
    struct px_lock pins = read_pins(PX_PINS_PX, BUILD), copy;
    ASSERT_EQ(pins.build_count, 2);
    const struct px_lock *found = px_lock_build_find(&pins, asked, 2);
    ASSERT(found && found->count == 1);
    ASSERT_STR(found->items[0].name, "flit-core");
    ASSERT_STR(found->items[0].files[0].sha256.hex, HASH);
    ASSERT(px_lock_build_find(&pins, asked, 1) == NULL);
    ASSERT(px_lock_build_find(&pins, other, 1)->count == 0);
    px_lock_builds_sort(&pins);
    ASSERT_STR(pins.builds[0].requires[0], "b");
    ASSERT_PX(px_lock_copy(&pins, &copy, &e), e);
    ASSERT_OK(px_lock_compute_id(&pins, &id));
    ASSERT_OK(px_lock_compute_id(&copy, &with));
    ASSERT_STR(id.hex, with.hex);
    ASSERT_OK(px_lock_builds_id(&copy, &builds));
    ASSERT_PX(px_lock_build_add(&copy, asked, 1, px_lock_build_find(&pins, asked, 2), &e), e);
    ASSERT(px_lock_build_find(&copy, asked, 1)->count == 1);
    ASSERT_OK(px_lock_compute_id(&copy, &with));
    ASSERT(!px_hash_oid_equal(&id, &with));
    px_lock_done(&pins);
    px_lock_done(&copy);
}

/* ---- the others ---- */

TEST(uv_lock_follows_the_graph)
{
    static const char text[] =
        "version = 1\nrequires-python = \">=3.11\"\n[[package]]\nname = \"demo\"\nversion = \"0\"\nsource = { virtual = \".\" }\n"
        "dependencies = [{ name = \"a\", extra = [\"x\"] }, { name = \"w\", marker = \"os_name == 'nt'\" }]\n"
        "[package.optional-dependencies]\nweb = [{ name = \"never\" }]\n[package.dev-dependencies]\ndev = [{ name = \"d\" }]\n"
        "[[package]]\nname = \"a\"\nversion = \"1\"\nsource = { registry = \"i\" }\n[package.optional-dependencies]\nx = [{ name = \"b\" }]\ny = [{ name = \"never\" }]\n"
        "[[package]]\nname = \"b\"\nversion = \"2\"\nwheels = [{ url = \"https://h/b-2-cp311-cp311-win32.whl\", hash = \"sha256:" HASH "\" },\n"
        " { url = \"https://h/b-2-cp311-cp311-manylinux_2_17_x86_64.whl\", hash = \"sha256:" HASH2 "\", size = 5 }]\n"
        "[[package]]\nname = \"d\"\nversion = \"3\"\nsdist = { url = \"https://h/d-3.tar.gz\", hash = \"sha256:" HASH "\" }\n"
        "[[package]]\nname = \"w\"\nversion = \"4\"\n[[package]]\nname = \"never\"\nversion = \"5\"\n";
    static const char *const none[] = {NULL};
    struct px_lock pins = read_pins(PX_PINS_UV, text);
    check_chosen(&pins, NULL, "a 1 -\nb 2 b-2-cp311-cp311-manylinux_2_17_x86_64.whl\nd 3 d-3.tar.gz\n");
    check_chosen(&pins, none, "a 1 -\nb 2 b-2-cp311-cp311-manylinux_2_17_x86_64.whl\n");
    struct px_marker_env with = environment;
    with.extras = (const char *const[]){"web", NULL};
    check_chosen_by(&pins, &with, none, "a 1 -\nb 2 b-2-cp311-cp311-manylinux_2_17_x86_64.whl\nnever 5 -\n");
    ASSERT_STR(px_lock_id(&pins), pins.bytes.hex);
    px_lock_done(&pins);
}

TEST(pylock)
{
    struct px_lock pins = read_pins(PX_PINS_PYLOCK,
        "lock-version = \"1.0\"\nrequires-python = \">=3.11\"\n[[packages]]\nname = \"a\"\nversion = \"1\"\n"
        "wheels = [{ name = \"a-1-py3-none-any.whl\", path = \"wheels/a-1-py3-none-any.whl\", hashes = { sha256 = \"" HASH "\" }, size = 3 }]\n"
        "[[packages]]\nname = \"b\"\nversion = \"2\"\nmarker = \"sys_platform == 'win32'\"\n"
        "[[packages]]\nname = \"c\"\nversion = \"3\"\nsdist = { url = \"https://h/c-3.tar.gz\", hashes = { sha512 = \"00\" } }\n");
    check_chosen(&pins, NULL, "a 1 a-1-py3-none-any.whl\nc 3 c-3.tar.gz\n");
    ASSERT_STR(pins.items[0].files[0].url, "wheels/a-1-py3-none-any.whl");
    ASSERT_STR(pins.items[2].files[0].sha256.hex, "");
    px_lock_done(&pins);
}

TEST(poetry_lock)
{
    struct px_lock pins = read_pins(PX_PINS_POETRY,
        "[[package]]\nname = \"A\"\nversion = \"1\"\noptional = false\npython-versions = \">=3\"\n"
        "files = [{file = \"A-1-py3-none-any.whl\", hash = \"sha256:" HASH "\"}]\n"
        "[[package]]\nname = \"extra\"\nversion = \"2\"\noptional = true\n"
        "[[package]]\nname = \"w\"\nversion = \"2\"\nmarkers = \"os_name == 'nt'\"\n"
        "[[package]]\nname = \"v\"\nversion = \"2\"\nmarkers = {main = \"os_name == 'posix'\", dev = \"os_name == 'nt'\"}\n"
        "[metadata]\nlock-version = \"2.1\"\npython-versions = \">=3.11\"\n");
    check_chosen(&pins, NULL, "a 1 A-1-py3-none-any.whl\nv 2 -\n");
    px_lock_done(&pins);
}

TEST(requirements)
{
    struct px_lock pins = read_pins(PX_PINS_REQUIREMENTS,
        "# made by a tool\r\nsix==1.16 \\\r\n    --hash=sha256:" HASH " \\\r\n    --hash=sha256:" HASH2 "  # via x\r\n\n"
        "Foo.Bar[x]===2 ; os_name == 'posix'\nwin == 1; os_name == 'nt'\n");
    ASSERT_EQ(pins.count, 3);
    ASSERT_EQ(pins.items[0].file_count, 2);
    ASSERT_STR(pins.items[0].files[1].sha256.hex, HASH2);
    check_chosen(&pins, NULL, "foo-bar 2 -\nsix 1.16 -\n");
    px_lock_done(&pins);
}

/* ---- broken ones ---- */

static const struct {
    enum px_pins_format format;
    const char *text, *begins;
} broken[] = {
    {PX_PINS_PX, "", "px.lock:1: the lock does not say its version"},
    {PX_PINS_PX, "version = \"1\"\n", "px.lock:1:"},
    {PX_PINS_PX, "version = 1\nversion = 1\n", "px.lock:2:"},
    {PX_PINS_PX, "<<<<<<< ours\nversion = 1\n", "px.lock:1:"},
    {PX_PINS_PX, "version = 1\ndependencies = 5\n", "px.lock:2:"},
    {PX_PINS_PX, "version = 1\ndependencies = [\n \"six>=1\"]\n", "px.lock:3:"},
    {PX_PINS_PX, "version = 1\ndependencies = [\"six==1.*\"]\n", "px.lock:2:"},
    {PX_PINS_PX, "version = 1\ndependencies = [\"six==1,<2\"]\n", "px.lock:2:"},
    {PX_PINS_PX, "version = 1\n[[dependencies]]\nname = \"a\"\n", "px.lock:2:"},
    {PX_PINS_PX, "version = 1\n[[dependencies]]\nspecifier = \"a==1\"\n[dependencies.artifact]\nfilename = \"a.whl\"\n", "px.lock:4:"},
    {PX_PINS_PX, "version = 1\n[[dependencies]]\nspecifier = \"a==1\"\n[dependencies.artifact]\nfilename = \"../a.whl\"\nsha256 = \"" HASH "\"\n", "px.lock:4:"},
    {PX_PINS_PX, "version = 1\n[[dependencies]]\nspecifier = \"a==1\"\n[dependencies.artifact]\nfilename = \"a.whl\"\nsha256 = \"xyz\"\n", "px.lock:4:"},
    {PX_PINS_PX, "version = 1\n[[dependencies]]\nspecifier = \"a==1\"\n[dependencies.artifact]\nfilename = \"a.whl\"\nsha256 = \"" HASH "\"\nsize = -1\n", "px.lock:7:"},
    {PX_PINS_PX, "version = 1\n[[dependencies]]\nspecifier = \"a==1\"\nextras = [1]\n", "px.lock:4:"},
    {PX_PINS_PX, "version = 1\n[[dependencies]]\nspecifier = \"a==1\"\nname = \"a\\u0000b\"\n", "px.lock:4:"},
    {PX_PINS_UV, "version = 9\n", "uv.lock:1:"},
    {PX_PINS_UV, "version = 1\n[[package]]\nversion = \"1\"\n", "uv.lock:2:"},
    {PX_PINS_UV, "version = 1\n[[package]]\nname = \"a\"\ndependencies = [{ version = \"1\" }]\n", "uv.lock:4:"},
    {PX_PINS_UV, "version = 1\n[[package]]\nname = \"a\"\nwheels = [{ url = \"https://h/\" }]\n", "uv.lock:4:"},
    {PX_PINS_PYLOCK, "lock-version = \"2.0\"\n", "pylock.toml:1:"},
    {PX_PINS_PYLOCK, "lock-version = \"1.0\"\npackages = 1\n", "pylock.toml:2:"},
    {PX_PINS_POETRY, "[metadata]\nlock-version = \"1.1\"\n", "poetry.lock:1:"},
    {PX_PINS_POETRY, "[[package]]\nname = \"..\"\n[metadata]\nlock-version = \"2.1\"\n", "poetry.lock:1:"},
    {PX_PINS_REQUIREMENTS, "six==1\n\nfoo>=2\n", "requirements.txt:3:"},
    {PX_PINS_REQUIREMENTS, "six==1\n-r other.txt\n", "requirements.txt:2:"},
    {PX_PINS_REQUIREMENTS, "six==1 --no-binary x\n", "requirements.txt:1:"},
    {PX_PINS_REQUIREMENTS, "six==1 --hash=sha256:12\n", "requirements.txt:1:"},
    {PX_PINS_REQUIREMENTS, "!!\n", "requirements.txt:1:"},
};

TEST(packages_of_the_system_that_are_none)
{
    static const char *const bad[] = {
        "system = 1\n", "[system]\nbase = \"debian-12\"\n", "[system]\nbase = \"b\"\narch = \"a\"\npackages = [\"x\"]\n",
        "[system]\nbase = \"b\"\narch = \"a\"\npackages = {}\n",
        "[system]\nbase = \"b\"\narch = \"a\"\npackages = [{name = \"x\", version = \"1\", arch = \"all\", sha256 = \"12\", size = 1}]\n",
        "[system]\nbase = \"b\"\narch = \"a\"\npackages = [{name = \"x\", version = \"1\", arch = \"all\", sha256 = \"" HASH "\", size = -1}]\n",
    };
    px_auto_buf struct px_buf out = PX_BUF(1 << 16);
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++) {
        struct px_lock pins;
        struct px_err e = {0};
        char text[1024];
        ASSERT(px_fmt(text, sizeof text, "version = 1\n%s", bad[i]) > 0);
        ASSERT_EQ(px_lock_parse(PX_PINS_PX, text, strlen(text), "px.lock", &pins, &e), -1);
        ASSERT_EQ(e.code, PX_E_LOCK_FORMAT);
    }
    ASSERT_EQ(px_lock_replace_system("system.base = 1\n", 16, &(struct px_pins_system){0}, &out), -EEXIST);
}

TEST(what_is_broken_is_named_with_its_line)
{
    for (size_t i = 0; i < PX_COUNT_OF(broken); i++) {
        struct px_lock pins;
        struct px_err e = {0};
        if (px_lock_parse(broken[i].format, broken[i].text, strlen(broken[i].text), px_lock_files[broken[i].format], &pins, &e) == 0)
            FAIL("case %zu was taken", i);
        if (e.code != PX_E_LOCK_FORMAT || !px_starts_with(e.what, broken[i].begins))
            FAIL("case %zu: PX%03d %s", i, e.code, e.what);
    }
}

TEST(choices_that_cannot_be_made)
{
    static const char *const texts[] = {
        "version = 1\ndependencies = [\"a==1\", \"a==2\"]\n",
        "version = 1\n[[dependencies]]\nspecifier = \"a==1\"\nmarker = \"nonsense\"\n",
    };
    for (size_t i = 0; i < PX_COUNT_OF(texts); i++) {
        struct px_chosen *list = NULL;
        size_t count = 0;
        struct px_err e = {0};
        struct px_lock pins = read_pins(PX_PINS_PX, texts[i]);
        ASSERT(px_lock_select(&pins, &environment, &debian, NULL, &list, &count, &e) < 0);
        ASSERT_EQ(e.code, PX_E_LOCK_FORMAT);
        px_lock_done(&pins);
    }
}

TEST(no_memory_is_an_error_and_nothing_leaks)
{
    static const char text[] = PX_HEAD "[[dependencies]]\nname = \"a\"\nspecifier = \"a==1\"\nextras = [\"x\"]\nrequires = [\"b\"]\n"
        "[dependencies.artifact]\nfilename = \"a-1-py3-none-any.whl\"\nsha256 = \"" HASH "\"\nsize = 9\n";
    for (unsigned n = 1;; n++) {
        struct px_lock pins;
        struct px_err e = {0};
        px_test_fail_alloc(n);
        int r = px_lock_parse(PX_PINS_PX, text, sizeof text - 1, "px.lock", &pins, &e);
        bool failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r < 0 || !failed);
        if (r == 0)
            px_lock_done(&pins);
        else
            ASSERT(e.code == PX_E_MEMORY || e.code == PX_E_LOCK_FORMAT);
        if (!failed)
            break;
    }
}
