/* runtime/test_log.c - the last message of a runtime's log, whatever else is in it. */
#include "runtime/log.h"

#include <string.h>

#include "harness/test.h"

static const char *last(const char *text)
{
    static char out[64];
    (void)px_log_last(text, strlen(text), out, sizeof out);
    return out;
}

TEST(the_last_message_counts)
{
    ASSERT_STR(last("{\"level\":\"warning\",\"msg\":\"first\",\"time\":\"t\"}\n"
                    "{\"level\":\"error\",\"msg\":\"second\"}\n"), "second");
    ASSERT_STR(last("{\"msg\": \"with a blank\", \"level\": \"error\"}"), "with a blank");
    ASSERT_STR(last("{\"msg\":\"kept\"}\nnot json\n\n"), "kept");
}

TEST(escapes_become_what_they_stand_for)
{
    ASSERT_STR(last("{\"msg\":\"mount \\\"tmpfs\\\" at \\\"/dev\\\"\"}"), "mount \"tmpfs\" at \"/dev\"");
    ASSERT_STR(last("{\"msg\":\"a\\nb\\tc\\\\d\\/e\"}"), "a b c\\d/e");
    ASSERT_STR(last("{\"msg\":\"\\u00e4 and \\u0000\"}"), "? and ?");
}

TEST(nothing_is_said_without_a_message)
{
    char out[8] = "before";
    ASSERT(!px_log_last("", 0, out, sizeof out));
    ASSERT_STR(out, "");
    ASSERT(!px_log_last("{\"level\":\"error\"}\n", 18, out, sizeof out));
    ASSERT(!px_log_last("{\"msg\":5}\n{\"msg\":\"\"}\n{\"msg\":", 28, out, sizeof out));
    ASSERT_STR(out, "");
}

TEST(what_is_cut_off_stays_in_bounds)
{
    static const char line[] = "{\"msg\":\"0123456789\"}";
    char out[5];
    ASSERT(px_log_last(line, sizeof line - 1, out, sizeof out));
    ASSERT_STR(out, "0123");
    static const char *const cut[] = {"{\"msg\":\"ab\\", "{\"msg\":\"ab\\u", "{\"msg\":\"ab\\u12", "{\"msg\":\"ab"};
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        ASSERT(px_log_last(cut[i], strlen(cut[i]), out, sizeof out));
        ASSERT(out[0] == 'a' && out[1] == 'b');
    }
}
