/* resolve/test_messages.c - which lines of real outputs of uv and pip are quoted. */
#include "resolve/messages.h"

#include <string.h>

#include "base/text.h"
#include "harness/test.h"

static const struct {
    const char *said, *words;
} rows[] = {
    /* pip: two requirements that exclude each other */
    {"Processing ./alpha-1.0-py3-none-any.whl\n"
     "INFO: pip is looking at multiple versions of gamma to determine which version is compatible.\n"
     "ERROR: Cannot install alpha==1.0 and gamma==1 because these package versions have conflicting dependencies.\n"
     "\n"
     "The conflict is caused by:\n"
     "    alpha 1.0 depends on beta>=2\n"
     "    gamma 1 depends on beta<2\n"
     "\n"
     "To fix this you could try to:\n"
     "1. loosen the range of package versions you've specified\n"
     "\n"
     "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/\n",
     "ERROR: Cannot install alpha==1.0 and gamma==1 because these package versions have conflicting dependencies.\n"
     "alpha 1.0 depends on beta>=2\n"
     "gamma 1 depends on beta<2"},
    /* pip: an index that does not answer */
    {"Looking in indexes: http://127.0.0.1:9/\n"
     "WARNING: Retrying (Retry(total=1, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection."
     "HTTPConnection object at 0x7fade723a090>: Failed to establish a new connection: [Errno 111] Connection refused')': /idna/\n"
     "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection."
     "HTTPConnection object at 0x7fade5aef410>: Failed to establish a new connection: [Errno 111] Connection refused')': /idna/\n"
     "ERROR: Could not find a version that satisfies the requirement idna (from versions: none)\n"
     "ERROR: No matching distribution found for idna\n",
     "Looking in indexes: http://127.0.0.1:9/\n"
     "The connection was broken: Failed to establish a new connection: [Errno 111] Connection refused\n"
     "ERROR: Could not find a version that satisfies the requirement idna (from versions: none)\n"
     "ERROR: No matching distribution found for idna"},
    /* pip: a source archive whose code failed */
    {"  error: subprocess-exited-with-error\n"
     "  \n"
     "  × Getting requirements to build wheel did not run successfully.\n"
     "  │ exit code: 1\n"
     "  ╰─> [3 lines of output]\n"
     "      Traceback (most recent call last):\n"
     "      Exception: Can not find valid pkg-config name.\n"
     "      Specify MYSQLCLIENT_CFLAGS and MYSQLCLIENT_LDFLAGS env vars manually\n"
     "      [end of output]\n"
     "  \n"
     "  note: This error originates from a subprocess, and is likely not a problem with pip.\n",
     "Getting requirements to build wheel did not run successfully.\n"
     "Exception: Can not find valid pkg-config name.\n"
     "Specify MYSQLCLIENT_CFLAGS and MYSQLCLIENT_LDFLAGS env vars manually"},
    /* uv: the same three */
    {"  × No solution found when resolving dependencies:\n"
     "  ╰─▶ Because alpha==1.0 depends on beta>=2 and gamma==1 depends on beta<2,\n"
     "      we can conclude that alpha==1.0 and gamma==1 are incompatible.\n",
     "No solution found when resolving dependencies:\n"
     "Because alpha==1.0 depends on beta>=2 and gamma==1 depends on beta<2, "
     "we can conclude that alpha==1.0 and gamma==1 are incompatible."},
    {"error: Failed to fetch: `http://127.0.0.1:9/idna/`\n  Caused by: Request failed after 3 retries\n"
     "  Caused by: tcp connect error\n  Caused by: Connection refused (os error 111)\n",
     "error: Failed to fetch: `http://127.0.0.1:9/idna/`\nCaused by: Request failed after 3 retries\nCaused by: tcp connect error\n"
     "Caused by: Connection refused (os error 111)"},
    {"  × Failed to build `thing==1`\n  ├─▶ The build backend returned an error\n  ╰─▶ Call to `setup.py` failed (exit status: 1)\n"
     "\n      [stderr]\n      Traceback (most recent call last):\n      RuntimeError: no compiler\n",
     "Failed to build `thing==1`\nThe build backend returned an error\nCall to `setup.py` failed (exit status: 1)\n"
     "RuntimeError: no compiler"},
    /* the same three, by uv 0.13 */
    {"error: No solution found when resolving dependencies\n"
     "  cause: Because alpha==1.0 depends on beta>=2 and you require alpha==1.0, we can conclude that you require beta>=2.\n"
     "         And because you require beta<2, we can conclude that your requirements are unsatisfiable.\n",
     "error: No solution found when resolving dependencies\n"
     "cause: Because alpha==1.0 depends on beta>=2 and you require alpha==1.0, we can conclude that you require beta>=2. "
     "And because you require beta<2, we can conclude that your requirements are unsatisfiable."},
    {"error: Request failed after 1 retry in 1.8s\n  cause: Failed to fetch: http://127.0.0.1:9/simple/idna/\n"
     "  cause: tcp connect error\n  cause: Connection refused (os error 111)\n",
     "error: Request failed after 1 retry in 1.8s\ncause: Failed to fetch: http://127.0.0.1:9/simple/idna/\n"
     "cause: tcp connect error\ncause: Connection refused (os error 111)"},
    {"error: Failed to build `thing==1`\n  cause: The build backend returned an error\n"
     "  cause: Call to `setup.py` failed (exit status: 1)\n\n         [stderr]\n         Traceback (most recent call last):\n"
     "         RuntimeError: no compiler\n\nhint: Build failures usually indicate a problem with the package or the build environment\n",
     "error: Failed to build `thing==1`\ncause: The build backend returned an error\n"
     "cause: Call to `setup.py` failed (exit status: 1)\nRuntimeError: no compiler"},
    /* nothing that is known, and what must not reach a terminal */
    {"/usr/bin/python3: No module named pip\n", ""},
    {"", ""},
    {"ERROR: \033]0;owned\007\r\n", "ERROR: \\x1b]0;owned\\x07\\x0d"},
};

TEST(the_lines_that_tell_why)
{
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        px_auto_buf struct px_buf out = PX_BUF(4096);
        px_resolve_words(rows[i].said, &out);
        if (!px_equal(px_buf_text(&out), rows[i].words))
            FAIL("case %zu: %s", i, px_buf_text(&out));
    }
}

TEST(they_are_bounded)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 20), out = PX_BUF(4096);
    for (int i = 0; i < 2000; i++)
        px_buf_printf(&text, "ERROR: line %d åäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäöåäö\n", i);
    px_resolve_words(px_buf_text(&text), &out);
    ASSERT(out.len > 100 && out.len <= PX_RESOLVE_WORDS_MAX);
    ASSERT(px_starts_with(px_buf_text(&out), "ERROR: line 0 åäö") && !strstr(px_buf_text(&out), "\\x"));
}

TEST(all_of_it_is_quoted_and_its_end_is_kept)
{
    px_auto_buf struct px_buf out = PX_BUF(4096), small = PX_BUF(416);
    static const char text[] = "one\n\033[2Jtwo\0three\n";
    char many[1000];
    px_resolve_quote(text, sizeof text - 1, &out);
    ASSERT_STR(px_buf_text(&out), "one\n\\x1b[2Jtwo\\x00three\n");
    memset(many, 1, sizeof many);
    memcpy(many + sizeof many - 4, "end\n", 4);
    px_resolve_quote(many, sizeof many, &small);
    ASSERT(small.err == 0 && px_starts_with(px_buf_text(&small), "[...]\\x01") && strstr(px_buf_text(&small), "\\x01end\n"));
}
