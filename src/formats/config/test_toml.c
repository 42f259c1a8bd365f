/* config/test_toml.c - reads TOML strictly, and edits it without changing other bytes. */
#include "config/toml.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "harness/test.h"

static struct px_toml *read_text(const char *text)
{
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    if (px_toml_parse(text, strlen(text), &t, &fault) < 0)
        px_test_fail(__FILE__, __LINE__, "%u:%u: %s", fault.line, fault.column, fault.message);
    return t;
}

static uint32_t get(const struct px_toml *t, const char *a, const char *b)
{
    const char *path[] = {a, b};
    return px_toml_find(t, path, b ? 2 : 1);
}

TEST(values)
{
    struct px_toml *t = read_text("a = -1_000\nb.c = \"x\\u00e9\\n\"\nh = 0xff\n[d]\ne = [ 'x', # why\n 'y', ]\nf = 1979-05-27T07:32:00Z\n"
                                  "g = 1_0.5e3\n'quoted key' = true\n[[i]]\nj = 1\n[[i]]\nj = 2\n");
    ASSERT_EQ(px_toml_at(t, get(t, "a", NULL))->number, -1000);
    ASSERT_STR(px_toml_text(t, get(t, "b", "c")), "x\xc3\xa9\n");
    ASSERT_EQ(px_toml_at(t, get(t, "h", NULL))->number, 255);
    ASSERT_EQ(px_toml_at(t, get(t, "d", "e"))->count, 2);
    ASSERT_EQ(px_toml_at(t, get(t, "d", "f"))->type, PX_TOML_DATETIME);
    ASSERT_STR(t->strings.data + px_toml_at(t, get(t, "d", "g"))->text, "10.5e3");
    ASSERT(px_toml_at(t, get(t, "d", "quoted key"))->truth);
    uint32_t items = get(t, "i", NULL);
    ASSERT_EQ(px_toml_at(t, items)->count, 2);
    ASSERT_EQ(px_toml_at(t, px_toml_get(t, px_toml_at(t, items)->last, "j"))->number, 2);
    ASSERT_EQ(get(t, "nothing", NULL), PX_TOML_NONE);
    ASSERT_EQ(get(t, "a", "b"), PX_TOML_NONE);
    px_toml_free(t);
}

static const struct {
    const char *text;
    uint32_t line, column;
} wrong[] = {
    {"a = 1\na = 2\n", 2, 1},           {"a = 01\n", 1, 5},              {"a = \"x\n\"\n", 1, 7},       {"[a]\n[a]\n", 2, 2},
    {"a.b = 1\n[a]\n", 2, 2},           {"[a]\nb = 1\n[a.b]\n", 3, 4},   {"a = {b = 1}\na.c = 2\n", 2, 1}, {"a = [1, 2\n", 2, 1},
    {"a = 9223372036854775808\n", 1, 5}, {"a = 2023-02-29\n", 1, 5},      {"a = \"\\q\"\n", 1, 7},       {"a = \"\xff\"\n", 1, 6},
    {"a = [[a]]\nb", 1, 7},             {"a = {b = 1,}\n", 1, 12},       {"a\n", 1, 2},                 {"= 1\n", 1, 1},
    {"a = 1 b = 2\n", 1, 7},            {"a = [1]\n[[a]]\n", 2, 3},      {"[a.b.c]\nz = 9\n[a]\nb.c.t = 1\n", 4, 1}, {"a = 1\r", 1, 6},
    {"a = 1__0\n", 1, 6},               {"a = 1.\n", 1, 5},              {"# \x01\n", 1, 3},            {"a = \"\\ud800\"\n", 1, 6},
    {"[[a]\n", 1, 4},                   {"a = '''x\n", 1, 5},            {"a = 25:00:00\n", 1, 5},      {"[]\n", 1, 2},
};

TEST(what_is_wrong_is_said_with_its_place)
{
    for (size_t i = 0; i < PX_COUNT_OF(wrong); i++) {
        struct px_toml *t = NULL;
        struct px_toml_fault fault;
        int r = px_toml_parse(wrong[i].text, strlen(wrong[i].text), &t, &fault);
        if (r != -EINVAL || fault.line != wrong[i].line || fault.column != wrong[i].column || !fault.message[0])
            px_test_fail(__FILE__, __LINE__, "case %zu: %d at %u:%u: %s", i, r, fault.line, fault.column, fault.message);
    }
}

TEST(bounds)
{
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    px_auto_buf struct px_buf deep = PX_BUF(1 << 24);
    px_buf_puts(&deep, "a = ");
    for (int i = 0; i < 100000; i++)
        px_buf_putc(&deep, '[');
    ASSERT_EQ(px_toml_parse(deep.data, deep.len, &t, &fault), -EINVAL);
    px_auto_buf struct px_buf wide = PX_BUF(1 << 24);
    for (int i = 0; i < 100000; i++)
        px_buf_printf(&wide, "k%d = %d\n", i, i);
    ASSERT_OK(px_toml_parse(wide.data, wide.len, &t, &fault));
    ASSERT_EQ(px_toml_at(t, px_toml_get(t, 0, "k99999"))->number, 99999);
    px_toml_free(t);
}

/* ---- edits ---- */

enum act { SET, REMOVE };

static const struct {
    const char *before;
    enum act act;
    const char *path;           /* parts with a blank between them */
    const char *value;
    int answer;
    const char *after;
} edits[] = {
    {"", SET, "tool px sandbox capabilities postgres", "true", 0, "[tool.px.sandbox.capabilities]\npostgres = true\n"},
    {"[project]\nname = 'x'  # mine\n", SET, "tool px", "1", 0, "[project]\nname = 'x'  # mine\n\n[tool]\npx = 1\n"},
    {"[a]\n  b = 1 # x\n\n[c]\nd = 2\n", SET, "a e", "true", 0, "[a]\n  b = 1 # x\n  e = true\n\n[c]\nd = 2\n"},
    {"[a.b]\nc = 1\n", SET, "a d", "2", 0, "[a]\nd = 2\n\n[a.b]\nc = 1\n"},
    {"[a]\nb = {}\n", SET, "a b c", "true", 0, "[a]\nb = { c = true }\n"},
    {"[a]\nb = { x = 1 } # y\n", SET, "a b c", "true", 0, "[a]\nb = { x = 1, c = true } # y\n"},
    {"[a]\nb = { x.y = 1 }\n", SET, "a b x z", "2", 0, "[a]\nb = { x.y = 1, x.z = 2 }\n"},
    {"[a]\nb.x = 1 # y\nz = 3\n", SET, "a b c", "true", 0, "[a]\nb.x = 1 # y\nb.c = true\nz = 3\n"},
    {"[a]\nb = false # y\n", SET, "a b", "true", 0, "[a]\nb = true # y\n"},
    {"[a]\nb = true\n", SET, "a b", "true", 1, ""},
    {"[a]\nb = 1\n", SET, "a b c", "true", -EEXIST, ""},
    {"[a.b]\nc = 1\n", SET, "a b", "true", -EEXIST, ""},
    {"[a]\r\nb = 1\r\n", SET, "a c", "2", 0, "[a]\r\nb = 1\r\nc = 2\r\n"},
    {"[a]\nb = 1", SET, "a c", "2", 0, "[a]\nb = 1\nc = 2\n"},
    {"[a]\nx = 1\n[a.z]\ny = 2\n\n[b]\n", SET, "a c d", "2", 0, "[a]\nx = 1\n[a.z]\ny = 2\n\n[a.c]\nd = 2\n\n[b]\n"},
    {"x = 1\n[b]\n", SET, "c", "2", 0, "x = 1\nc = 2\n[b]\n"},
    {"[a]\n", SET, "a b.c", "1", 0, "[a]\n\"b.c\" = 1\n"},
    {"[a]\nb = 1 # gone\nc = 2\n", REMOVE, "a b", NULL, 0, "[a]\nc = 2\n"},
    {"[a]\nb = { x = 1, y = 2 }\n", REMOVE, "a b x", NULL, 0, "[a]\nb = { y = 2 }\n"},
    {"[a]\nb = { x = 1, y = 2 }\n", REMOVE, "a b y", NULL, 0, "[a]\nb = { x = 1 }\n"},
    {"[a]\nb = [\n 1,\n 2 ] # gone\nc = 2\n", REMOVE, "a b", NULL, 0, "[a]\nc = 2\n"},
    {"[a]\nb.c = 1\nb.d = 1\n", REMOVE, "a b c", NULL, 0, "[a]\nb.d = 1\n"},
    {"[a]\n", REMOVE, "a b", NULL, 1, ""},
    {"[a]\n", REMOVE, "a", NULL, -EEXIST, ""},
};

static size_t split(char *text, const char *parts[8])
{
    size_t n = 0;
    for (char *save = NULL, *word = strtok_r(text, " ", &save); word && n < 8; word = strtok_r(NULL, " ", &save))
        parts[n++] = word;
    return n;
}

static int act_on(const struct px_toml *t, enum act act, const char *const *path, size_t n, const char *value, struct px_buf *out)
{
    switch (act) {
    case SET: return px_toml_set(t, path, n, value, out);
    case REMOVE: return px_toml_remove(t, path, n, out);
    }
    return -EINVAL;
}

TEST(edits_change_what_was_meant)
{
    for (size_t i = 0; i < PX_COUNT_OF(edits); i++) {
        px_auto_buf struct px_buf out = PX_BUF(1 << 20);
        char words[128];
        const char *path[8];
        ASSERT_OK(px_fmt(words, sizeof words, "%s", edits[i].path));
        size_t n = split(words, path);
        struct px_toml *t = read_text(edits[i].before);
        int r = act_on(t, edits[i].act, path, n, edits[i].value, &out);
        if (r != edits[i].answer || (r == 0 && !px_equal(px_buf_text(&out), edits[i].after)))
            px_test_fail(__FILE__, __LINE__, "case %zu: %d instead of %d:\n%s", i, r, edits[i].answer, px_buf_text(&out));
        px_toml_free(t);
    }
}

/* ---- items of lists: `i` of [p] d becomes the text, or goes ---- */

static const struct {
    const char *before;
    uint32_t index;
    const char *text;
    int answer;
    const char *after;
} items[] = {
    {"[p]\nx = 1\n", 0, "a", 0, "[p]\nx = 1\nd = [\"a\"]\n"},
    {"[p]\nd = [] # c\n", 0, "a", 0, "[p]\nd = [\"a\"] # c\n"},
    {"[p]\nd = [\n  # none\n]\n", 0, "a", 0, "[p]\nd = [\"a\"\n  # none\n]\n"},
    {"[p]\nd = ['a']\n", 1, "b\"", 0, "[p]\nd = ['a', \"b\\\"\"]\n"},
    {"[p]\nd = ['a', ]\n", 1, "b", 0, "[p]\nd = ['a', \"b\", ]\n"},
    {"[p]\nd = [\n\t'a', # c,]\n]\n", 1, "b", 0, "[p]\nd = [\n\t'a', # c,]\n\t\"b\",\n]\n"},
    {"[p]\nd = [\n  'a' # c\n]\n", 1, "b", 0, "[p]\nd = [\n  'a', # c\n  \"b\"\n]\n"},
    {"[p]\r\nd = [\r\n  'a',\r\n]\r\n", 1, "b", 0, "[p]\r\nd = [\r\n  'a',\r\n  \"b\",\r\n]\r\n"},
    {"[p]\nd = [\n  'a']\n", 1, "b", 0, "[p]\nd = [\n  'a', \"b\"]\n"},
    {"[p]\nd = [\n  'a'\n  , # c\n]\n", 1, "b", 0, "[p]\nd = [\n  'a'\n  , # c\n  \"b\",\n]\n"},
    {"p = { d = ['a'], e = 1 }\n", 1, "b", 0, "p = { d = ['a', \"b\"], e = 1 }\n"},
    {"[p]\nd = ['a', {i = 'x'}]\n", 2, "b", 0, "[p]\nd = ['a', {i = 'x'}, \"b\"]\n"},
    {"[p]\nd = ['a', 'b']\n", 0, "c", 0, "[p]\nd = [\"c\", 'b']\n"},
    {"[p]\nd = ['a', 'b']\n", 0, NULL, 0, "[p]\nd = ['b']\n"},
    {"[p]\nd = ['a', 'b']\n", 1, NULL, 0, "[p]\nd = ['a']\n"},
    {"[p]\nd = ['a']\n", 0, NULL, 0, "[p]\nd = []\n"},
    {"[p]\nd = ['a',]\n", 0, NULL, 0, "[p]\nd = []\n"},
    {"[p]\nd = [\n  'a', # x\n  # y\n  'b'\n]\n", 0, NULL, 0, "[p]\nd = [\n  # y\n  'b'\n]\n"},
    {"[p]\nd = [\n  'a', # x\n  'b'\n]\n", 1, NULL, 0, "[p]\nd = [\n  'a', # x\n]\n"},
    {"[p]\nd = [\n  'a', 'b',\n  'c']\n", 2, NULL, 0, "[p]\nd = [\n  'a', 'b']\n"},
    {"[p]\nd = ['a']\n", 1, NULL, 1, ""},
    {"[p]\n", 0, NULL, 1, ""},
    {"[p]\nd = 1\n", 0, "a", -EEXIST, ""},
    {"[[p.d]]\n", 0, "a", -EEXIST, ""},
};

TEST(items_of_lists_change_in_their_style)
{
    static const char *const path[] = {"p", "d"};
    for (size_t i = 0; i < PX_COUNT_OF(items); i++) {
        px_auto_buf struct px_buf out = PX_BUF(1 << 20);
        struct px_toml *t = read_text(items[i].before);
        int r = px_toml_item(t, path, 2, items[i].index, items[i].text, &out);
        if (r != items[i].answer || (r == 0 && !px_equal(px_buf_text(&out), items[i].after)))
            px_test_fail(__FILE__, __LINE__, "case %zu: %d instead of %d:\n%s", i, r, items[i].answer, px_buf_text(&out));
        px_toml_free(t);
    }
}
