/* tests/oracles/ask_files.c - the file sandbox behind a pipe, for tests/oracles/files.py, which has a model of it.
 *
 *     ask-files ROOT...     roots as `px file --root` takes them; a line of answer for each line of questions:
 *         path<TAB>TEXT             whether it can be read and written, where it leads, and its content or the class of the error
 *         glob<TAB>PATTERN<TAB>PATH 1, 0, or `bad`
 *         list<TAB>PATH<TAB>PATTERN the paths, or the class of the error
 *     Bytes that are no printable ASCII, and %, are %XX in questions and answers. */
#include <px/files.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "files/glob.h"

enum { LINE_BYTES = 1 << 16, PARTS = 3, FUEL = 1 << 20 };

static void decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        char digits[3] = {0};
        if (*at == '%' && at[1] && at[2]) {
            memcpy(digits, at + 1, 2);
            *to++ = (char)strtol(digits, NULL, 16);
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

static void say(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c > ' ' && *c < 0x7f && *c != '%')
            putchar(*c);
        else
            printf("%%%02x", *c);
}

static void ask_path(const struct px_files *files, const char *path)
{
    px_auto_free char *place = NULL;
    struct px_files_text text = {0};
    struct px_err e = {0};
    printf("%d%d\t", px_files_can_read(files, path), px_files_can_write(files, path));
    if (px_files_resolve(files, path, &place, NULL, &e) == 0)
        say(place);
    else
        printf("!%s", px_files_class(e.code));
    putchar('\t');
    if (px_files_read(files, path, 0, 1000, &text, &e) == 0)
        say(text.data);
    else
        printf("!%s", px_files_class(e.code));
    putchar('\n');
    px_files_text_done(&text);
}

static void ask_glob(const char *pattern, const char *path)
{
    struct px_glob glob;
    uint64_t fuel = FUEL;
    if (px_glob_init(&glob, pattern) < 0)
        puts("bad");
    else
        puts(px_glob_match(&glob, path, &fuel) ? "1" : "0");
}

static void ask_list(const struct px_files *files, const char *path, const char *pattern)
{
    struct px_files_entries found = {0};
    struct px_err e = {0};
    if (px_files_list(files, &(struct px_files_query){.path = path, .pattern = pattern}, &found, &e) < 0) {
        printf("!%s\n", px_files_class(e.code));
        return;
    }
    for (size_t i = 0; i < found.count; i++) {
        if (i > 0)
            putchar(' ');
        say(found.items[i].path);
    }
    puts(found.truncated ? " ..." : "");
    px_files_entries_done(&found);
}

int main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    struct px_files *files = NULL;
    struct px_err e = {0};
    if (px_files_parse((const char *const *)argv + 1, (size_t)argc - 1, false, &files, &e) < 0) {
        fprintf(stderr, "%s\n", e.what);
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        char *part[PARTS] = {line, NULL, NULL};
        line[strcspn(line, "\n")] = '\0';
        for (int i = 1; i < PARTS && part[i - 1] && (part[i] = strchr(part[i - 1], '\t')); i++)
            *part[i]++ = '\0';
        for (int i = 1; i < PARTS && part[i]; i++)
            decode(part[i]);
        if (px_equal(line, "path") && part[1])
            ask_path(files, part[1]);
        else if (px_equal(line, "glob") && part[2])
            ask_glob(part[1], part[2]);
        else if (px_equal(line, "list") && part[2])
            ask_list(files, part[1], part[2]);
        else
            puts("what?");
    }
    px_files_free(files);
    return 0;
}
