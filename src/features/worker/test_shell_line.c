/* Command lines: how they are parsed, how they are printed for a shell, and what is left to the shell. */
#include <px/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "worker/shell_line.h"

/* The whole line as a shell would get it; "?..." if it is opaque, "!..." if it is none. */
static char *printed(const char *text)
{
    struct px_shell_line *line = NULL;
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    const char *why = px_shell_line_parse(text, &line);
    if (why || line->opaque)
        (void)px_buf_printf(&out, "%c%s", why ? '!' : '?', why ? why : line->opaque);
    for (size_t i = 0; !why && !line->opaque && i < line->count; i++) {
        px_shell_line_print(&line->commands[i], &out);
        px_shell_line_print_join(line->commands[i].join, &out);
    }
    if (!why)
        px_shell_line_free(line);
    (void)px_buf_add(&out, "", 0);
    return px_buf_take(&out);
}

static void prints(const char *text, const char *wanted)
{
    px_auto_free char *got = printed(text);
    bool fits = *wanted == '?' || *wanted == '!' ? px_starts_with(got, wanted) : strcmp(got, wanted) == 0;
    if (!fits)
        FAIL("<%s> gives <%s>, not <%s>", text, got, wanted);
}

TEST(quotes_make_plain_text_of_everything)
{
    static const char *const rows[][2] = {
        {"grep -E 'x|y' f", "'grep' '-E' 'x|y' 'f'"},
        {"git commit -m \"a & b; c > d\"", "'git' 'commit' '-m' 'a & b; c > d'"},
        {"python3 -c 'import os; print(1)'", "'python3' '-c' 'import os; print(1)'"},
        {"jq '.a | .b[\"c\"]' f", "'jq' '.a | .b[\"c\"]' 'f'"},
        {"echo 'it'\\''s' \"it's\" it\\'s", "'echo' 'it'\\''s' 'it'\\''s' 'it'\\''s'"},
        {"a '' \"\" \"\\\"\\\\\\$\\`\\x\"", "'a' '' '' '\"\\$`\\x'"},
        {"a '$HOME `id` $(id) ${x}' \\$HOME \\`", "'a' '$HOME `id` $(id) ${x}' '$HOME' '`'"},
        {"a\\ b \\\n c\\\nd", "'a b' 'cd'"},
        {"a $ \"b$\" c$ '$'", "'a' '$' 'b$' 'c$' '$'"},
        {"a '*' \\* \"?\" '[a]' \\~ '~'", "'a' '*' '*' '?' '[a]' '~' '~'"},
        {"find . -name x -o {} HEAD@{1} a,b {x}", "'find' '.' '-name' 'x' '-o' '{}' 'HEAD@{1}' 'a,b' '{x}'"},
        {"a '\n' \"\n\"", "'a' '\n' '\n'"},
        {"[ -f x ]", "'[' '-f' 'x' ']'"},
        {"'if' \"for\" \\while X='1' a=b", "'if' 'for' 'while' 'X=1' 'a=b'"},
        {"'A=b' c", "'A=b' 'c'"},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        prints(rows[i][0], rows[i][1]);
}

TEST(operators_join_commands)
{
    static const char *const rows[][2] = {
        {"a|b", "'a' | 'b'"},
        {"a && b || c; d", "'a' && 'b' || 'c'; 'd'"},
        {" a ;\n\n b\r\n# c\n d # e\n", "'a'; 'b'; 'd'"},
        {"a |\n b &&\n c ||\n\n d", "'a' | 'b' && 'c' || 'd'"},
        {"a#b c'#'d", "'a#b' 'c#d'"},
        {"a>b<c>>d", "'a' 1>'b' 0<'c' 1>>'d'"},
        {"a 2> b 3>c d2>e", "'a' 'd2' 2>'b' 3>'c' 1>'e'"},
        {"a 2>&1 | b >&2 0<&3", "'a' 2>&1 | 'b' 1>&2 0>&3"},
        {"a &> b; c &>>d; e>|f", "'a' 1>'b' 2>&1; 'c' 1>>'d' 2>&1; 'e' 1>'f'"},
        {"> a", " 1>'a'"},
        {"a > 'b c' d", "'a' 'd' 1>'b c'"},
        {"", ""},
        {" \n# only this", ""},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        prints(rows[i][0], rows[i][1]);
}

TEST(patterns_stay_outside_the_quotes)
{
    prints("ls *.md n/?'*' [a-c]x [!.]", "'ls' *'.md' 'n/'?'*' [a-c]'x' [!.]");
    prints("cat ~ ~/x 'a'~ a~b", "'cat' ~ ~/'x' 'a~' 'a~b'");
    prints("a [ b", "'a' '[' 'b'");
    prints("a > *", "'a' 1>*");
}

TEST(what_only_a_shell_knows_is_opaque)
{
    static const char *const rows[] = {
        "a $(b)", "a `b`", "a $HOME", "a ${X}", "a \"$X\"", "a \"`b`\"", "a $1", "a $?", "a $'x'", "a $[1]", "a $\"x\"", "a & b", "a &", "(a)", "a (b)",
        "a <(b)", "a >(b)", "a << E", "a <<< b", "a <> b", "a >& b", "a 2>&-", "a 12>b", "a |& b", "X=1 a", "X=1", "X+=1 a", "if a; then b; fi",
        "for x in a", "while a", "{ a; }", "! a", "[[ a ]]", "time a", "function f", "f() { a; }", "a {b,c}", "a {1..3}", "a ~root/x",
        "a [[:alpha:]]", "a; b | $(c)", "case x in", "a\n$X"};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        prints(rows[i], "?");
}

TEST(what_is_no_line_is_refused)
{
    static const char *const rows[] = {"a 'b", "a \"b", "a \\", "|", "a |", "a | | b", "a &&", "&& a", "a ;; b", "; a", "a || ", "a >", "a > ; b",
                                       "a 2>", "a >>&1", "a >#b", "a > 2>&1", "a\n&& b"};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        prints(rows[i], "!");
}

TEST(a_line_is_bounded)
{
    px_auto_free char *text = calloc(1, PX_LINE_BYTES + 2);
    ASSERT(text != NULL);
    memset(text, 'a', PX_LINE_BYTES + 1);
    prints(text, "!is too long");
    for (size_t i = 0; i < PX_LINE_WORDS + 1; i++)
        memcpy(text + 2 * i, "a ", 2);
    text[2 * PX_LINE_WORDS + 2] = '\0';
    prints(text, "!has too many words");
    memset(text, ' ', PX_LINE_BYTES);
    for (size_t i = 0; i < PX_LINE_COMMANDS + 1; i++)
        memcpy(text + 2 * i, "a;", 2);
    text[2 * PX_LINE_COMMANDS + 2] = '\0';
    prints(text, "!has too many commands");
    for (size_t i = 0; i < PX_LINE_REDIRECTS + 1; i++)
        memcpy(text + 2 * i, ">a", 2);
    text[2 * PX_LINE_REDIRECTS + 2] = '\0';
    prints(text, "!has too many redirections");
}

TEST(words_of_a_rule_know_quotes_alone)
{
    char **words = NULL;
    ASSERT(px_shell_line_split(" a|b 'c d' $e \\* ~ {f,g} ", &words) == NULL);
    static const char *const wanted[] = {"a|b", "c d", "$e", "*", "~", "{f,g}"};
    for (size_t i = 0; i < PX_COUNT_OF(wanted); i++)
        ASSERT_STR(words[i], wanted[i]);
    ASSERT(words[PX_COUNT_OF(wanted)] == NULL);
    px_words_free(words);
    ASSERT(px_shell_line_split("a 'b", &words) != NULL);
    ASSERT(px_shell_line_split("a \\", &words) != NULL);
}
