/* Workers: their files, what they may run, and the answers of the shell tool. */
#include <fcntl.h>
#include <px/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "config/yaml.h"
#include "harness/test.h"
#include "worker/worker.h"

static const char sandbox[] =
    "sandbox:\n  paths:\n    portfolio: {root: ./portfolio, mode: rw, suffixes: [.md], max_file_bytes: 20}\n"
    "    pipeline:\n      root: ./pipeline\n";

/* A directory of its own with a worker's file in it, and the worker. */
struct world {
    char dir[256], path[300];
    struct px_worker *worker;
};

static int load(struct world *w, const char *text, struct px_err *e)
{
    if (px_test_dir_path()[0] == '\0') {        /* one for all loads of a test */
        px_auto_fd int dir = px_test_dir();
        ASSERT_OK(dir);
    }
    (void)snprintf(w->dir, sizeof w->dir, "%s", px_test_dir_path());
    (void)snprintf(w->path, sizeof w->path, "%s/pipeline", w->dir);
    (void)mkdir(w->path, 0755);         /* read-only, so it must be there */
    (void)snprintf(w->path, sizeof w->path, "%s/w.yaml", w->dir);
    px_auto_fd int fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT(fd >= 0 && px_write_full(fd, text, strlen(text)) == 0);
    return px_worker_load(w->path, w->dir, &w->worker, e);
}

static void done(struct world *w)
{
    px_worker_free(w->worker);
}

static void refused(const char *text, const char *words)
{
    struct world w = {0};
    struct px_err e = {0};
    int r = load(&w, text, &e);
    done(&w);
    if (r >= 0 || !strstr(e.what, words))
        FAIL("'%.80s' gave '%s', not '%s'", text, r < 0 ? e.what : "a worker", words);
}

TEST(a_file_that_is_wrong_is_refused_with_its_line)
{
    refused("", "line 1: this has no sandbox with paths");
    refused("[1]", "must be a map");
    refused("sandbox: {}\n", "no sandbox with paths");
    refused("sandbox:\n  paths:\n    a: {root: x}\n  color: red\n", "line 4: 'color' is no key");
    refused("sandbox:\n  paths:\n    a: {root: x}\ncolor:\n  red: 1\n", "line 4: 'color' is no key");
    refused("sandbox:\n  paths:\n    a: {root: x, mode: rwx}\n", "line 3: 'mode' must be ro or rw");
    refused("sandbox:\n  paths:\n    a: {mode: rw}\n", "line 3: 'a' needs a root");
    refused("sandbox:\n  network: yes\n", "line 2: 'network' must be true or false");
    refused("sandbox:\n  network: \"true\"\n", "line 2: 'network' must be true or false");
    refused("sandbox:\n  network: false\n  network: true\n", "line 3: the key 'network' is there twice");
    refused("sandbox: &x\n  paths: {a: {root: y}}\nname: *x\n", "line 3: aliases are not taken");
    refused("name: one\n---\nname: two\n", "second document");
    refused("name: \"a\\0b\"\n", "line 1: a text has a NUL in it");
    refused("name: [\n", "w.yaml, line");
    refused("sandbox: [a]\n", "line 1: 'sandbox' must be a map");
    refused("sandbox:\n  paths:\n    typo: {root: ./pipelin}\n", "the directory of root 'typo' cannot be opened");
    refused("sandbox:\n  network: {}\n", "line 2: 'network' must name a host");
    refused("sandbox:\n  network: {allow: []}\n", "line 2: 'network' must name a host");
    refused("sandbox:\n  network: {open: [a]}\n", "line 2: 'open' is no key");
    refused("sandbox:\n  network: [a]\n", "line 2: 'network' must be a single value");
    refused("sandbox:\n  memory: lots\n", "line 2: 'memory' must be a size");
    refused("sandbox:\n  env: {'A=B': c}\n", "line 2: 'A=B' must be a name and its value");
    refused("sandbox:\n  env: {A: [b]}\n", "line 2: 'A' must be a name and its value");
    refused("sandbox:\n  base: ./x\n", "line 2: 'base' must be the name of a base");
    refused("tool_rules: {shel: {allowed: false}}\n", "line 1: 'shel' is no tool");
    refused("tool_rules: {shell: false}\n", "line 1: 'shell' is no tool with a map");
    refused("tool_rules: {shell: {allowed: no}}\n", "line 1: 'allowed' must be true or false");
    refused("shell_rules:\n  - {approval_required: false}\n", "line 2: this needs a pattern");
    refused("shell_rules:\n  - {pattern: \"a 'b\"}\n", "quote that is not closed");
}

TEST(depth_and_size_of_a_file_are_bounded)
{
    char deep[512] = "a: ";
    struct px_yaml *root = NULL;
    struct px_err e = {0};
    memset(deep + 3, '[', 100);
    ASSERT_EQ(px_yaml_parse("x", deep, 103, &root, &e), -1);
    ASSERT(strstr(e.what, "nested too deeply"));
    px_auto_free char *wide = calloc(1, 3 * PX_YAML_NODES + 8);
    wide[0] = '[';
    for (size_t i = 0; i <= PX_YAML_NODES; i++)
        memcpy(wide + 1 + 2 * i, "a,", 2);
    ASSERT_EQ(px_yaml_parse("x", wide, strlen(wide), &root, &e), -1);
    ASSERT(strstr(e.what, "too much in it"));
}

static void judged(const struct px_worker *w, const char *command, enum px_approval wanted, const char *first)
{
    struct px_err e = {0};
    char **argv = NULL;
    enum px_approval got = px_worker_judge(w, command, &argv, &e);
    if (got != wanted)
        FAIL("'%s' is %s, not %s (%s)", command, px_approval_name(got), px_approval_name(wanted), e.what);
    if (got == PX_BLOCKED)
        ASSERT_EQ(e.code, PX_E_BLOCKED);
    else if (!first || strcmp(argv[0], first) != 0)
        FAIL("'%s' begins with '%s'", command, argv[0]);
    if (got != PX_BLOCKED)
        px_words_free(argv);
}

TEST(the_first_rule_that_fits_decides)
{
    struct world w = {0};
    struct px_err e = {0};
    char text[1024];
    (void)snprintf(
        text, sizeof text, "%s%s", sandbox,
        "shell_rules:\n  - {pattern: git push}\n  - {pattern: git, approval_required: false}\n"
        "  - {pattern: cat, approval_required: false, sandbox_paths: [pipeline]}\n  - {pattern: cat}\n");
    ASSERT_EQ(load(&w, text, &e), 0);
    judged(w.worker, "git status", PX_PRE_APPROVED, "git");
    judged(w.worker, "  'gi't  \"sta\\\"tus\" ", PX_PRE_APPROVED, "git");
    judged(w.worker, "git\r\n", PX_PRE_APPROVED, "git");
    judged(w.worker, "git\rpush\r\n", PX_NEEDS_APPROVAL, "git");
    judged(w.worker, "git push origin", PX_NEEDS_APPROVAL, "git");
    judged(w.worker, "git pushed", PX_PRE_APPROVED, "git");
    judged(w.worker, "gitk", PX_BLOCKED, NULL);
    judged(w.worker, "cat -n pipeline/a pipeline/b", PX_PRE_APPROVED, "cat");
    judged(w.worker, "cat pipeline/a portfolio/b.md", PX_NEEDS_APPROVAL, "cat");
    judged(w.worker, "cat pipeline/../../x", PX_NEEDS_APPROVAL, "cat");
    judged(w.worker, "cat /etc/passwd", PX_NEEDS_APPROVAL, "cat");
    const char *const never[] = {"",        "  ",       "git a | b", "git > x",   "git < x",
                                 "git; ls", "git & ls", "git `ls`",  "git $(ls)", "git ${HOME}",
                                 "git 'a",  "git \"a",  "git \\"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        judged(w.worker, never[i], PX_BLOCKED, NULL);
    done(&w);
    (void)snprintf(text, sizeof text, "%s%s", sandbox, "shell_default: {approval_required: false}\n");
    w = (struct world){0};
    ASSERT_EQ(load(&w, text, &e), 0);
    judged(w.worker, "anything at all", PX_PRE_APPROVED, "anything");
    done(&w);
}

/* After a link the kernel goes up from its target, the rules from its path; and an option may contain a path. */
TEST(a_rule_with_paths_judges_every_word)
{
    struct world w = {0};
    struct px_err e = {0};
    char text[1024];
    (void)snprintf(text, sizeof text, "%s%s", sandbox,
                   "shell_rules:\n  - {pattern: cat, approval_required: false, sandbox_paths: [pipeline]}\n"
                   "  - {pattern: cat}\n");
    ASSERT_EQ(load(&w, text, &e), 0);
    static const char *const inside[] = {"cat pipeline/a", "cat -n -- pipeline/a", "cat - pipeline/a",
                                         "cat -vET --number pipeline/a..b", "cat --from=pipeline/a",
                                         "cat --sort=time pipeline/..a", "cat ./pipeline/a", "cat pipeline",
                                         "cat --from=./pipeline/a"};
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        judged(w.worker, inside[i], PX_PRE_APPROVED, "cat");
    static const char *const elsewhere[] = {
        "cat pipeline/x/../s", "cat pipeline/..", "cat pipeline/../pipeline/a", "cat pipeline:../a", "cat pipeline:..",
        "cat '-er portfolio/s' pipeline/a", "cat -fportfolio/s", "cat -f/etc/passwd", "cat --file=portfolio/s",
        "cat --file=/etc/passwd", "cat --from=pipeline/x/../s", "cat --dir=portfolio", "cat -Cportfolio", "cat -Cpipeline",
        "cat -C..", "cat -C.", "cat --dir=.", "cat -- -x", "cat ./portfolio/s", "cat portfolio", "cat .", "cat ./", "cat ./pipeline/../s", "cat --dir=./",
        "cat ./etc/passwd", "cat --a=b=portfolio/s", "cat -x=pipeline/a:portfolio/s"};
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        judged(w.worker, elsewhere[i], PX_NEEDS_APPROVAL, "cat");
    done(&w);
}

static void plans(const struct px_worker *w, const char *command, enum px_approval wanted, const char *plan)
{
    struct px_err e = {0};
    char **argv = NULL;
    enum px_approval got = px_worker_judge(w, command, &argv, &e);
    if (got != wanted)
        FAIL("'%s' is %s, not %s (%s)", command, px_approval_name(got), px_approval_name(wanted), e.what);
    if (got == PX_BLOCKED)
        return;
    size_t n = 0;
    while (argv[n])
        n++;
    if (plan && (strcmp(argv[0], "/bin/sh") != 0 || n != (*plan == '$' ? 5 : 3) || strcmp(argv[n - 1], *plan == '$' ? command : plan) != 0))
        FAIL("'%s' runs '%s'", command, argv[n - 1]);
    if (!plan && strcmp(argv[0], "/bin/sh") == 0)
        FAIL("'%s' runs a shell", command);
    px_words_free(argv);
}

/* Each command of a line is judged; a shell gets the text that was made of what was judged, never the line itself. */
TEST(every_command_of_a_line_is_judged)
{
    struct world w = {0};
    struct px_err e = {0};
    char text[2048];
    (void)snprintf(text, sizeof text, "%s%s", sandbox,
                   "shell_rules:\n  - {pattern: git push}\n  - {pattern: git, approval_required: false}\n"
                   "  - {pattern: cat, approval_required: false, sandbox_paths: [pipeline]}\n  - {pattern: cat}\n"
                   "  - {pattern: env, approval_required: false}\n  - {pattern: xargs git, approval_required: false}\n"
                   "  - {pattern: find . -exec git, approval_required: false}\n  - {pattern: find ., approval_required: false}\n"
                   "  - {pattern: printf, approval_required: false}\n  - {pattern: cd secret}\n  - {pattern: head, sandbox_paths: [portfolio]}\n  - {pattern: head, approval_required: false}\n");
    ASSERT_EQ(load(&w, text, &e), 0);
    static const struct {
        const char *command;
        enum px_approval wanted;
        const char *plan;       /* of the shell; NULL: no shell */
    } rows[] = {
        {"git commit -m 'a | b; c & $(d) > `e`'", PX_PRE_APPROVED, NULL},
        {"git log | cat", PX_PRE_APPROVED, "'git' 'log' | 'cat'"},
        {"git a && git push || true", PX_NEEDS_APPROVAL, "'git' 'a' && 'git' 'push' || 'true'"},
        {"git a; rm b", PX_BLOCKED, NULL},
        {"rm | git a", PX_BLOCKED, NULL},
        {"git a > portfolio/x 2>&1", PX_PRE_APPROVED, "'git' 'a' 1>'portfolio/x' 2>&1"},
        {"git a &> /dev/null", PX_PRE_APPROVED, "'git' 'a' 1>'/dev/null' 2>&1"},
        {"git a > /tmp/x", PX_PRE_APPROVED, "'git' 'a' 1>'/tmp/x'"},
        {"git a > /tmp/../etc/x", PX_BLOCKED, NULL},
        {"git a > /etc/x", PX_BLOCKED, NULL},
        {"git a > x", PX_BLOCKED, NULL},
        {"git a < portfolio/../x", PX_BLOCKED, NULL},
        {"> portfolio/x", PX_PRE_APPROVED, " 1>'portfolio/x'"},
        {"cat pipeline/a > pipeline/b", PX_PRE_APPROVED, "'cat' 'pipeline/a' 1>'pipeline/b'"},
        {"cat pipeline/a > portfolio/b", PX_NEEDS_APPROVAL, "'cat' 'pipeline/a' 1>'portfolio/b'"},
        {"cat < portfolio/b", PX_NEEDS_APPROVAL, "'cat' 0<'portfolio/b'"},
        {"git add *.md", PX_PRE_APPROVED, "'git' 'add' *'.md'"},
        {"git p?sh", PX_NEEDS_APPROVAL, "'git' 'p'?'sh'"},
        {"cat pipeline/*", PX_NEEDS_APPROVAL, "'cat' 'pipeline/'*"},
        {"g* a", PX_BLOCKED, NULL},
        {"cd pipeline && cat a", PX_PRE_APPROVED, "'cd' 'pipeline' && 'cat' 'a'"},
        {"cd /workspace/pipeline && cat a > b", PX_PRE_APPROVED, "'cd' '/workspace/pipeline' && 'cat' 'a' 1>'b'"},
        {"cd pipeline/x && cat a && git a | cat b", PX_PRE_APPROVED, "'cd' 'pipeline/x' && 'cat' 'a' && 'git' 'a' | 'cat' 'b'"},
        {"cd portfolio && cat pipeline/a", PX_NEEDS_APPROVAL, "'cd' 'portfolio' && 'cat' 'pipeline/a'"},
        {"cd portfolio && cat -n", PX_NEEDS_APPROVAL, "'cd' 'portfolio' && 'cat' '-n'"},
        {"cd pipeline; cat pipeline/a", PX_NEEDS_APPROVAL, "'cd' 'pipeline'; 'cat' 'pipeline/a'"},
        {"git a || cd pipeline && cat a", PX_NEEDS_APPROVAL, "'git' 'a' || 'cd' 'pipeline' && 'cat' 'a'"},
        {"cd pipeline && cat a; cat a", PX_NEEDS_APPROVAL, "'cd' 'pipeline' && 'cat' 'a'; 'cat' 'a'"},
        {"cd pipeline/.. && cat pipeline/a", PX_NEEDS_APPROVAL, "'cd' 'pipeline/..' && 'cat' 'pipeline/a'"},
        {"cd / && cat pipeline/a", PX_NEEDS_APPROVAL, "'cd' '/' && 'cat' 'pipeline/a'"},
        {"cd portfolio; git a > x", PX_BLOCKED, NULL},
        {"env git push", PX_NEEDS_APPROVAL, NULL},
        {"/usr/bin/env git a", PX_BLOCKED, NULL},
        {"git a | xargs git push", PX_PRE_APPROVED, "'git' 'a' | 'xargs' 'git' 'push'"},
        {"git a | xargs rm", PX_BLOCKED, NULL},
        {"find . -name x", PX_PRE_APPROVED, NULL},
        {"find . -name *.md", PX_PRE_APPROVED, "'find' '.' '-name' *'.md'"},
        {"find . -exec rm {} +", PX_NEEDS_APPROVAL, NULL},
        {"find . -exec git a {} +", PX_PRE_APPROVED, NULL},
        {"printf x", PX_PRE_APPROVED, NULL},
        {"printf -v PATH x; git a", PX_NEEDS_APPROVAL, "'printf' '-v' 'PATH' 'x'; 'git' 'a'"},
        {"cd s*", PX_NEEDS_APPROVAL, "'cd' 's'*"},
        {"head pipeline/a", PX_PRE_APPROVED, NULL},
        {"head portfolio/a.md", PX_NEEDS_APPROVAL, NULL},
        {"head p*/a.md", PX_NEEDS_APPROVAL, "'head' 'p'*'/a.md'"},
        {"cd portfolio; head a.md", PX_NEEDS_APPROVAL, "'cd' 'portfolio'; 'head' 'a.md'"},
        {"find . -ex*", PX_NEEDS_APPROVAL, "'find' '.' '-ex'*"},
        {"bash -lc 'git a | cat'", PX_PRE_APPROVED, "( 'git' 'a' | 'cat' )"},
        {"sh -c 'cd pipeline && cat a' > portfolio/x", PX_PRE_APPROVED, "( 'cd' 'pipeline' && 'cat' 'a' ) 1>'portfolio/x'"},
        {"bash -c 'git push'", PX_NEEDS_APPROVAL, "( 'git' 'push' )"},
        {"bash -c 'rm x'", PX_BLOCKED, NULL},
        {"bash -c 'git $X'", PX_BLOCKED, NULL},
        {"bash -c 'git a' rm", PX_BLOCKED, NULL},
        {"sh -c \"sh -c 'git a'\"", PX_PRE_APPROVED, "( ( 'git' 'a' ) )"},
        {"git $(ls)", PX_BLOCKED, NULL},
        {"PATH=x git a", PX_BLOCKED, NULL},
        {"export PATH=x; git a", PX_BLOCKED, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        plans(w.worker, rows[i].command, rows[i].wanted, rows[i].plan);
    done(&w);
}

TEST(tool_rules_say_which_tools_there_are)
{
    struct world w = {0};
    struct px_err e = {0};
    char text[1024];
    (void)snprintf(text, sizeof text, "%s%s", sandbox,
                   "tool_rules:\n  write_file: {approval_required: true}\n  read_file: {allowed: false}\n  delete_file: {allowed: true}\n"
                   "shell_default: {approval_required: false}\n");
    ASSERT_EQ(load(&w, text, &e), 0);
    static const struct {
        const char *tool;
        enum px_approval wanted;
    } rows[] = {{"write_file", PX_NEEDS_APPROVAL}, {"write", PX_NEEDS_APPROVAL}, {"read", PX_BLOCKED},     {"delete_file", PX_PRE_APPROVED},
                {"edit_file", PX_PRE_APPROVED},    {"shell", PX_PRE_APPROVED},   {"nonsense", PX_BLOCKED}, {"worker_call", PX_PRE_APPROVED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (px_worker_tool(w.worker, rows[i].tool, &e) != rows[i].wanted)
            FAIL("%s", rows[i].tool);
    judged(w.worker, "ls | cat", PX_PRE_APPROVED, "/bin/sh");
    judged(w.worker, "ls > portfolio/x", PX_NEEDS_APPROVAL, "/bin/sh");
    judged(w.worker, "ls > /dev/null", PX_PRE_APPROVED, "/bin/sh");
    judged(w.worker, "ls < portfolio/x", PX_BLOCKED, NULL);
    judged(w.worker, "ls $X", PX_BLOCKED, NULL);
    done(&w);
    static const char *const shells[] = {"tool_rules: {shell: {allowed: false}}\n", "tool_rules: {shell: {approval_required: true}}\n"};
    for (size_t i = 0; i < 2; i++) {
        w = (struct world){0};
        (void)snprintf(text, sizeof text, "%s%s%s", sandbox, "shell_default: {approval_required: false}\n", shells[i]);
        ASSERT_EQ(load(&w, text, &e), 0);
        judged(w.worker, "ls", i ? PX_NEEDS_APPROVAL : PX_BLOCKED, "ls");
        judged(w.worker, "ls $X", i ? PX_NEEDS_APPROVAL : PX_BLOCKED, "/bin/sh");
        done(&w);
    }
}

/* What cannot be judged gets the strictest answer that a command of this worker can get, and then runs as it was written. */
TEST(what_cannot_be_judged_is_the_strictest)
{
    static const char *const opaque[] = {"git $(ls)", "git $X", "for x in a; do git b; done", "git a &", "A=b git c", "git ${x}", "git <<E\nx\nE"};
    static const struct {
        const char *rules;
        enum px_approval wanted;
    } rows[] = {
        {"shell_default: {approval_required: false}\n", PX_PRE_APPROVED},
        {"shell_default: {approval_required: true}\n", PX_NEEDS_APPROVAL},
        {"shell_rules: [{pattern: git push}]\nshell_default: {approval_required: false}\n", PX_NEEDS_APPROVAL},
        {"shell_rules: [{pattern: git, approval_required: false}]\n", PX_BLOCKED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = {0};
        struct px_err e = {0};
        char text[1024];
        (void)snprintf(text, sizeof text, "%s%s", sandbox, rows[i].rules);
        ASSERT_EQ(load(&w, text, &e), 0);
        for (size_t k = 0; k < sizeof opaque / sizeof opaque[0]; k++)
            plans(w.worker, opaque[k], rows[i].wanted, "$");
        plans(w.worker, "export A=b; git c", rows[i].wanted, "'export' 'A=b'; 'git' 'c'");
        plans(w.worker, "git a > /etc/x", rows[i].wanted, "'git' 'a' 1>'/etc/x'");
        done(&w);
    }
}

/* Runs it and returns the answer for the model. */
static char *run(const struct world *w, const char *const argv[], struct px_err *e)
{
    struct px_worker_run how = {.timeout_s = 100};
    struct px_box *box = NULL;
    char *json = NULL;
    if (px_worker_start(w->worker, argv, &how, &box, e) < 0 || px_box_wait(box, e) < 0 ||
        px_worker_result(w->worker, box, 100, &json, e) < 0)
        FAIL("%s", e->what);
    px_box_free(box);
    return json;
}

static void told(const struct world *w, const char *script, const char *words, const char *not_words)
{
    struct px_err e = {0};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    px_auto_free char *json = run(w, argv, &e);
    if (!strstr(json, words) || (not_words && strstr(json, not_words)))
        FAIL("'%s' gave %s", script, json);
}

TEST(a_command_sees_the_paths_and_is_told_what_it_may)
{
    struct world w = {0};
    struct px_err e = {0};
    char text[1024];
    (void)snprintf(text, sizeof text, "%s%s", sandbox, "  require_os_sandbox: true\n");
    ASSERT_EQ(load(&w, text, &e), 0);
    told(&w, "pwd; ls; echo hi >portfolio/x.md && cat portfolio/x.md",
         "\"stdout\":\"/workspace\\npipeline\\nportfolio\\nhi\\n\"", "Note:");
    told(&w, "echo hi >pipeline/x", "\\n\\nNote: This worker's writable paths are: portfolio", NULL);
    told(&w, "echo hi >pipeline/x; true", "\"note\":null", "Note:");
    told(&w, "echo Network is unreachable >&2; exit 1", "Note: Network access is disabled for this worker.",
         NULL);
    told(&w, "echo \"curl: (7) Couldn't connect to server\" >&2; exit 7", "Note: Network access is disabled", NULL);
    told(&w, "mkdir -p portfolio/.git/objects; echo >portfolio/.git/HEAD; exit 1", "\"note\":null", "Note:");
    told(&w, "echo x >portfolio/.git/HEAD", "Note: Git directories (.git) in them are read-only", NULL);
    told(&w, "echo x >pipeline/x", "writable paths", "Git directories");
    told(&w, "head -c 200000 /dev/zero", "\"truncated\":true", NULL);
    told(&w, "head -c 51200 /dev/zero", "\"truncated\":false", "left out");
    told(&w, "head -c 51201 /dev/zero", "[... 1 bytes left out ...]\\n", "\"truncated\":false");
    told(&w, "seq 1 100000", "\\n[... 537695 bytes left out ...]\\n", NULL);
    told(&w, "seq 1 100000 >&2", "\\n[... 537695 bytes left out ...]\\n", NULL);
    told(&w, "exit 7", "\"exit_code\":7", "Note:");
    done(&w);
}

TEST(a_command_has_the_variables_of_the_file)
{
    struct world w = {0};
    struct px_err e = {0};
    char text[1024];
    (void)snprintf(text, sizeof text, "%s%s", sandbox, "  env: {GREETING: \"hello you\", NUMBER: 7, HOME: /tmp}\n  base: host\n");
    ASSERT_EQ(load(&w, text, &e), 0);
    told(&w, "echo $GREETING $NUMBER $HOME", "\"stdout\":\"hello you 7 /tmp\\n\"", NULL);
    done(&w);
    w = (struct world){0};
    (void)snprintf(text, sizeof text, "%s%s", sandbox, "  base: no-such-base\n");
    ASSERT_EQ(load(&w, text, &e), 0);
    const char *const argv[] = {"/bin/true", NULL};
    struct px_worker_run how = {0};
    struct px_box *box = NULL;
    ASSERT_EQ(px_worker_start(w.worker, argv, &how, &box, &e), -1);
    ASSERT(strstr(e.what, "no-such-base"));
    done(&w);
}

TEST(attachments_are_files_of_the_caller)
{
    struct world w = {0};
    struct px_err e = {0};
    char text[1024], path[300];
    uint64_t bytes = 0;
    int fd = -1;
    (void)snprintf(text, sizeof text, "%s%s", sandbox,
                   "attachment_policy: {max_attachments: 1, allowed_suffixes: [.md]}\nworkers: [child]\n");
    ASSERT_EQ(load(&w, text, &e), 0);
    (void)snprintf(path, sizeof path, "%s/portfolio/a.md", w.dir);
    px_auto_fd int made = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT(made >= 0 && px_write_full(made, "hello", 5) == 0);
    ASSERT_EQ(px_worker_attach(w.worker, "portfolio/a.md", &fd, &bytes, &e), 0);
    ASSERT_EQ(bytes, 5);
    ASSERT_EQ(close(fd), 0);
    const char *const never[] = {"/etc/passwd.md",       "~/a.md",          "none/a.md", "portfolio",
                                 "portfolio/../../a.md", "portfolio/a.txt", path};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        ASSERT_EQ(px_worker_attach(w.worker, never[i], &fd, &bytes, &e), -1);
    char *child = NULL;
    ASSERT_EQ(px_worker_child(w.worker, "child", &child, &e), 0);
    ASSERT(strstr(child, "/child.yaml"));
    free(child);
    ASSERT_EQ(px_worker_child(w.worker, "../child", &child, &e), -1);
    const char *const argv[] = {"/bin/cat", "/attachments/a.md", NULL};
    const char *const attached[] = {"portfolio/a.md", NULL}, *const two[] = {"portfolio/a.md",
                                                                             "portfolio/a.md", NULL};
    struct px_worker_run how = {.attachments = attached, .from = w.worker};
    struct px_box *box = NULL;
    ASSERT_EQ(px_worker_start(w.worker, argv, &how, &box, &e), 0);
    ASSERT_EQ(px_box_wait(box, &e), 0);
    ASSERT_EQ(strcmp(px_box_result(box)->out.data, "hello"), 0);
    px_box_free(box);
    how.attachments = two;
    ASSERT_EQ(px_worker_start(w.worker, argv, &how, &box, &e), -1);
    ASSERT_EQ(e.code, PX_E_ATTACHMENT);
    done(&w);
}
