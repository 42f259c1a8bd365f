/* fuzz/fuzz_line.c - any text as a command line of a worker: what is printed for a shell reads back as the same line. */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "px/worker.h"
#include "worker/shell_line.h"

static void print_line(const struct px_shell_line *line, struct px_buf *out)
{
    for (size_t i = 0; i < line->count; i++) {
        px_shell_line_print(&line->commands[i], out);
        px_shell_line_print_join(line->commands[i].join, out);
    }
    (void)px_buf_add(out, "", 0);
}

static void check_words(const struct px_shell_line *line, size_t size)
{
    size_t words = 0;
    for (size_t i = 0; i < line->count; i++) {
        const struct px_shell_line_command *c = &line->commands[i];
        words += c->count;
        for (size_t k = 0; k < c->count; k++)
            CHECK(strlen(c->words[k].text) <= size && c->words[k].sh[0]);
        CHECK((c->join == PX_LINE_END) == (i + 1 == line->count));
    }
    CHECK(words == line->words_count && words <= PX_LINE_WORDS);
}

/* Printed, read and printed once more it is the same text, and no part of it is opaque. */
static void check_again(const struct px_shell_line *line)
{
    struct px_buf once = PX_BUF(64 * PX_LINE_BYTES), twice = PX_BUF(64 * PX_LINE_BYTES);
    struct px_shell_line *again = NULL;
    print_line(line, &once);
    CHECK(once.err == 0);
    if (once.len <= PX_LINE_BYTES && line->redirects_count <= PX_LINE_REDIRECTS / 2) {
        CHECK(px_shell_line_parse(px_buf_text(&once), &again) == NULL);
        CHECK(again->opaque == NULL && again->count == line->count && again->words_count == line->words_count);
        for (size_t i = 0; i < line->words_count; i++)
            CHECK(strcmp(line->words[i].text, again->words[i].text) == 0 && line->words[i].open == again->words[i].open);
        print_line(again, &twice);
        CHECK(strcmp(px_buf_text(&once), px_buf_text(&twice)) == 0);
        px_shell_line_free(again);
    }
    px_buf_done(&once);
    px_buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct px_shell_line *line = NULL;
    char *text = fuzz_text(data, size), **words = NULL;

    if (!px_shell_line_parse(text, &line)) {
        if (!line->opaque) {
            check_words(line, size);
            check_again(line);
        }
        px_shell_line_free(line);
    }
    if (!px_shell_line_split(text, &words)) {
        for (size_t i = 0; words[i]; i++)
            CHECK(strlen(words[i]) <= size);
        px_words_free(words);
    }
    free(text);
    return 0;
}
