/* tests/oracles/ask.c - our readers behind a pipe, for tests/oracles/oracles.py, which knows others that answer the same questions.
 *
 *     ask toml FILE...      a line of JSON each, values with their types as the TOML community's tests write them
 *     ask elf FILE...       STATUS<TAB>SONAME<TAB>NEEDED...
 *     ask hello             VERDICT<BLANK>NAME for each line: the first bytes of a connection, in hexadecimal digits
 *     ask version|fits|marker|wheel     a line of answer for each line of questions, parts between tabs */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "config/toml.h"
#include "env/elf.h"
#include "helpers/net/hello.h"
#include "pep/marker.h"
#include "pep/tags.h"
#include "pep/version.h"

enum { FILE_MAX = 16 << 20, LINE_BYTES = 1 << 16 };

static void print_node(const struct px_toml *t, uint32_t id, const char *name, struct px_json *j)
{
    static const char *const types[] = {"string", "integer", "float", "bool", "datetime", "datetime-local", "date-local", "time-local"};
    const struct px_toml_node *n = px_toml_at(t, id);
    if (n->type == PX_TOML_TABLE || n->type == PX_TOML_ARRAY) {
        (n->type == PX_TOML_TABLE ? px_json_object : px_json_array)(j, name);
        for (uint32_t c = n->first; c; c = px_toml_at(t, c)->next)
            print_node(t, c, n->type == PX_TOML_TABLE ? px_toml_key(t, c) : NULL, j);
        px_json_end(j);
        return;
    }
    char number[32];
    (void)px_fmt(number, sizeof number, "%lld", (long long)n->number);
    px_json_object(j, name);
    px_json_text(j, "type", types[n->type]);
    if (n->type == PX_TOML_INTEGER || n->type == PX_TOML_BOOL)
        px_json_text(j, "value", n->type == PX_TOML_INTEGER ? number : n->truth ? "true" : "false");
    else
        px_json_bytes(j, "value", t->strings.data + n->text, n->text_length);
    px_json_end(j);
}

static void ask_toml(const char *path)
{
    px_auto_free char *text = malloc(FILE_MAX);
    px_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = text && fd >= 0 ? px_read_full(fd, text, FILE_MAX) : -1;
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    px_auto_buf struct px_buf out = PX_BUF(64 << 20);
    struct px_json j = {.out = &out};
    if (n < 0 || px_toml_parse(text, (size_t)n, &t, &fault) < 0) {
        puts("no");
        return;
    }
    print_node(t, 0, NULL, &j);
    puts(out.err < 0 ? "too deep" : px_buf_text(&out));
    px_toml_free(t);
}

static void ask_elf(const char *path)
{
    px_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct px_elf elf;
    int r = fd < 0 ? -1 : px_elf_read(fd, &elf);
    printf("%d", r);
    if (r == 0) {
        printf("\t%s", px_elf_text(&elf, elf.soname));
        for (uint32_t i = 0; i < elf.needed_count; i++)
            printf("\t%s", px_elf_text(&elf, elf.needed[i]));
        px_elf_done(&elf);
    }
    putchar('\n');
}

static int ask_order(const char *a, const char *b)
{
    struct px_version x, y;
    if (px_version_parse(a, strlen(a), &x) < 0 || px_version_parse(b, strlen(b), &y) < 0)
        return -22;
    int order = px_version_compare(&x, &y);
    return order < 0 ? -1 : order > 0;
}

static int ask_line(const char *what, const char *a, const char *b)
{
    static const char *const extras[] = {"test-x", NULL};
    const struct px_marker_env env = {"cpython", "3.11.2", "posix", "x86_64", "CPython", "", "", "Linux", "3.11.2", "3.11", "linux", extras};
    const struct px_tags tags = {.python_minor = 11, .libc_major = 2, .libc_minor = 36, .machine = "x86_64"};
    if (px_equal(what, "marker"))
        return px_marker_holds(a, &env);
    if (px_equal(what, "wheel"))
        return px_tags_rank(&tags, a);
    return px_equal(what, "version") ? ask_order(a, b) : px_version_fits(a, b);
}

static void ask_hello(const char *line)
{
    static const char *const verdicts[] = {"more", "other", "named", "nameless", "address", "hidden", "bad"};
    static uint8_t bytes[LINE_BYTES / 2];
    char name[PX_NET_NAME_MAX];
    unsigned value;
    size_t n = 0;
    while (sscanf(line + 2 * n, "%2x", &value) == 1)
        bytes[n++] = (uint8_t)value;
    enum px_hello verdict = px_hello_look(bytes, n, name);
    printf("%s %s\n", verdicts[verdict], verdict == PX_HELLO_NAMED ? name : "-");
}

int main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    const char *what = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc; i++)
        (px_equal(what, "toml") ? ask_toml : ask_elf)(argv[i]);
    while (argc == 2 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (px_equal(what, "hello")) {
            ask_hello(line);
            continue;
        }
        char *b = strchr(line, '\t');
        if (b)
            *b++ = '\0';
        printf("%d\n", ask_line(what, line, b ? b : ""));
    }
    return 0;
}
