/* fuzz/fuzz_wheel.c - the texts in a wheel: what is accepted is clean, and a RECORD that px writes reads back as it
 * was. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "pep/wheel.h"

static void try_header(const char *text, size_t size)
{
    static const char *const names[] = {"Name", "Version", "Tag", "Wheel-Version", ""};
    char out[32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (unsigned n = 0; n < 3; n++) {
            int r = px_wheel_header(text, size, names[i], n, out, sizeof out);
            CHECK(r == 0 || r == 1 || r == -EINVAL);
            CHECK(r != 0 || (out[0] && out[0] != ' ' && strlen(out) < sizeof out && !strchr(out, '\n')));
        }
}

static void try_record(const char *text, size_t size)
{
    px_auto_buf struct px_buf again = PX_BUF(1 << 22);
    struct px_record_lines lines = {0}, back = {0};
    size_t line = 0;
    int r = px_wheel_record(text, size, &lines, &line);
    CHECK(r == 0 || r == -EINVAL);
    if (r < 0)
        return;
    for (size_t i = 0; i < lines.count; i++) {
        CHECK(lines.items[i].path[0] && (i == 0 || strcmp(lines.items[i - 1].path, lines.items[i].path) < 0));
        CHECK(px_wheel_record_find(&lines, lines.items[i].path) == &lines.items[i]);
        px_wheel_record_write(&again, lines.items[i].path, lines.items[i].sha256.hex[0] ? &lines.items[i].sha256 : NULL,
                              lines.items[i].size);
    }
    CHECK(again.err == 0);
    CHECK(px_wheel_record(px_buf_text(&again), again.len, &back, &line) == 0 && back.count == lines.count);
    for (size_t i = 0; i < lines.count; i++)
        CHECK(strcmp(lines.items[i].path, back.items[i].path) == 0 &&
              strcmp(lines.items[i].sha256.hex, back.items[i].sha256.hex) == 0);
    px_wheel_record_done(&lines);
    px_wheel_record_done(&back);
}

/* What stands in a script is names and dots, whatever the text tried. */
static int look_at_script(void *user, const struct px_script *script)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 14);
    (void)user;
    CHECK(script->name[0] && !strchr(script->name, '/') && strcmp(script->name, "..") != 0);
    CHECK(!strpbrk(script->module, " ;:()'\"\n\t#=") && !strpbrk(script->object, " ;:()'\"\n\t#="));
    px_wheel_script_write(&text, script);
    CHECK(text.err == 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char section[] = "[console_scripts]\n";
    char *text = fuzz_text(data, size), *under = malloc(size + sizeof section);
    size_t line;
    CHECK(under != NULL);
    memcpy(under, section, sizeof section - 1);
    memcpy(under + sizeof section - 1, data, size);
    try_header(text, size);
    try_record(text, size);
    (void)px_wheel_scripts(text, size, look_at_script, NULL, &line);
    (void)px_wheel_scripts(under, size + sizeof section - 1, look_at_script, NULL, &line);
    free(text);
    free(under);
    return 0;
}
