/* tests/harness/test.h - unit tests in C: one process for each test.
 *
 * Why:     a test that crashes, hangs, leaks a descriptor or leaves a process behind must fail alone and by name.
 * Owns:    the test's process group, its output, its temporary directories; all are gone before the next test begins.
 * Mustn't: be linked into the product.
 *
 *     TEST(pipe_is_closed_on_exec)
 *     {
 *         int ends[2];
 *         ASSERT_OK(px_pipe(ends));
 *         ...
 *     }
 *
 * The harness has main(): `prog [-l] [-v] [name-substring]` lists or runs the tests whose names contain the text. It prints
 * one line for each failed or skipped test (every test with -v), the output of failed ones, and last the line
 * "N passed, N failed, N skipped". The exit status is 1 if anything failed or nothing ran, 2 for a wrong command line.
 *
 * An assertion may also fail in a process that a test forked: the test fails even if it does not look at the child. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PX_TEST_DEADLINE_SEC = 60 };

struct px_test {
    const char *name;
    const char *file;
    int line;
    int deadline_sec;
    void (*run)(void);
};

/* The section holds pointers, not structs: they are packed alike whatever alignment or sanitizer is in force. */
#define TEST_DEADLINE(test_name, seconds)                                                                   \
    static void test_##test_name(void);                                                                     \
    static const struct px_test test_entry_##test_name = {#test_name, __FILE__, __LINE__, seconds,          \
                                                          test_##test_name};                                \
    static const struct px_test *const test_link_##test_name                                                \
        __attribute__((used, section("px_tests"))) = &test_entry_##test_name;                               \
    static void test_##test_name(void)
#define TEST(test_name) TEST_DEADLINE(test_name, PX_TEST_DEADLINE_SEC)

#define ASSERT(condition)                                                           \
    do {                                                                            \
        if (!(condition))                                                           \
            px_test_fail(__FILE__, __LINE__, "%s is not true", #condition);         \
    } while (0)

/* Integers of any type and sign; both values are printed. */
#define ASSERT_EQ(a, b) \
    px_test_equal(__FILE__, __LINE__, #a, #b, (px_test_int)(a), (px_test_int)(b))

/* Strings that may be NULL. */
#define ASSERT_STR(a, b) px_test_equal_text(__FILE__, __LINE__, #a, (a), (b))

/* Something that returns >= 0 or -errno. */
#define ASSERT_OK(expression) px_test_ok(__FILE__, __LINE__, #expression, (long)(expression))

/* Something that returns >= 0, or < 0 with a struct px_err filled. */
#define ASSERT_PX(expression, err)                                                                          \
    do {                                                                                                    \
        if ((expression) < 0)                                                                               \
            px_test_fail(__FILE__, __LINE__, "%s: PX%03d %s: %s", #expression, (err).code, (err).what,      \
                         (err).why);                                                                        \
    } while (0)

#define FAIL(...) px_test_fail(__FILE__, __LINE__, __VA_ARGS__)

/* Ends the test; the reason says what this machine lacks. */
#define SKIP(...) px_test_skip(__VA_ARGS__)

/* A descriptor (O_DIRECTORY, close-on-exec, the test's to close) of a fresh directory that is removed after the test. */
int px_test_dir(void);
/* The path of the directory made last; "" if there is none. */
const char *px_test_dir_path(void);

/* Makes the n-th allocation from now on (1 is the next) fail, once; 0 switches it off. Skips the test where the harness was
 * built without -DPX_TEST_WRAP, which needs -Wl,--wrap= for malloc, calloc, realloc and strdup at the link. */
void px_test_fail_alloc(unsigned n);
/* Whether that allocation has come and failed; a loop over n ends when it has not. */
bool px_test_alloc_failed(void);

/* Behind the macros. */
__extension__ typedef __int128 px_test_int;

_Noreturn void px_test_fail(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void px_test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void px_test_equal(const char *file, int line, const char *a_text, const char *b_text, px_test_int a, px_test_int b);
void px_test_equal_text(const char *file, int line, const char *a_text, const char *a, const char *b);
void px_test_ok(const char *file, int line, const char *text, long result);
