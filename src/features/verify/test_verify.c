#include "verify/verify.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/text.h"
#include "harness/test.h"
#include "kernel/pidfd.h"

/* ---- the table ---- */

/* Layers that cannot be switched off and so are not in policy/without.def. */
static const char *const always[] = {"root",    "streams",    "mounts", "ids", "groups",
                                     "px-init", "supervisor", "tmpfs",  "base", "px-net"};

static bool is_layer(const char *word)
{
    for (int w = 0; w < PX_WITHOUT_COUNT; w++)
        if (strcmp(px_policy_without_word((enum px_without)w), word) == 0)
            return true;
    for (size_t i = 0; i < PX_COUNT_OF(always); i++)
        if (strcmp(always[i], word) == 0)
            return true;
    return false;
}

static int must_be_layer(void *user, const char *text, size_t len)
{
    const struct px_verify_row *row = user;
    char word[64];
    (void)snprintf(word, sizeof word, "%.*s", (int)len, text);
    if (!is_layer(word))
        FAIL("%s is held by '%s', which is no layer", row->name, word);
    return 0;
}

static int must_be_option(void *user, const char *text, size_t len)
{
    const struct px_verify_row *row = user;
    char name[64];
    size_t n = strcspn(text, "=");
    (void)snprintf(name, sizeof name, "%.*s", (int)(n < len ? n : len), text);
    if (*text == '@')
        return 0;
    if (n >= len || !px_field_find(px_policy_fields, name, strlen(name)))
        FAIL("%s has the option '%.*s', which is no NAME=VALUE of a policy", row->name, (int)len, text);
    return 0;
}

TEST(every_row_is_whole)
{
    static const char *const categories[] = {"security", "resources", "network", "functional", "edge_cases"};
    for (size_t i = 0; i < px_verify_rows_count; i++) {
        const struct px_verify_row *row = &px_verify_rows[i];
        bool known = false;
        for (size_t k = 0; k < PX_COUNT_OF(categories); k++)
            known = known || strcmp(categories[k], px_verify_category(row)) == 0;
        for (size_t k = 0; k < i; k++)
            if (strcmp(px_verify_rows[k].name, row->name) == 0)
                FAIL("two rows are called %s", row->name);
        if (!known || !(row->tiers & (PX_IN_FULL | PX_IN_LANDLOCK)))
            FAIL("%s: category %s, tiers %x", row->name, px_verify_category(row), row->tiers);
        (void)px_verify_each(row->held_by, '+', must_be_layer, (void *)(uintptr_t)row);
        (void)px_verify_each(row->options, ' ', must_be_option, (void *)(uintptr_t)row);
        if (row->broken_by[0] != '!')
            (void)px_verify_each(row->broken_by, ' ', must_be_option, (void *)(uintptr_t)row);
    }
}

/* Every check must be able to fail, and every mechanism must have a check. */
TEST(every_row_can_be_broken_and_every_mechanism_is_seen)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < px_verify_rows_count; i++) {
        const struct px_verify_row *row = &px_verify_rows[i];
        uint64_t layers = px_verify_mechanisms(row->held_by);
        if (row->how == PX_HOW_SUITE)
            continue;
        if (!*row->broken_by && !layers)
            FAIL("nothing breaks %s", row->name);
        if (row->broken_by[0] == '!' && strlen(row->broken_by) < 10)
            FAIL("%s gives no reason why nothing can break it", row->name);
        seen |= *row->broken_by ? 0 : layers;
    }
    for (int w = 0; w < PX_WITHOUT_COUNT; w++)
        if (!(seen >> w & 1))
            FAIL("no check looks at %s", px_policy_without_word((enum px_without)w));
}

TEST(every_shell_check_has_an_act)
{
    for (size_t i = 0; i < px_verify_rows_count; i++) {
        const struct px_verify_row *row = &px_verify_rows[i];
        if (row->kind != PX_CHECK_SHELL)
            continue;
        if (!row->sides[0].text)
            FAIL("%s does nothing", row->name);
        for (int side = 0; side < 2; side++) {
            const struct px_side *s = &row->sides[side];
            bool asks = s->exit || s->says || s->out || s->err || s->noexec || s->timed_out || s->memory;
            if (s->text && !asks && strcmp(s->text, "exit 0") != 0)
                FAIL("%s: any answer would do", row->name);
        }
    }
}

TEST(words_choose_checks)
{
    ASSERT(px_verify_chosen(NULL, "etc_readonly"));
    ASSERT(px_verify_chosen("etc_readonly", "etc_readonly"));
    ASSERT(px_verify_chosen("etc", "etc_readonly"));
    ASSERT(px_verify_chosen("A1_,D1_u", "D1_unshare"));
    ASSERT(!px_verify_chosen("A1_,D1_u", "D1_clone"));
    ASSERT(!px_verify_chosen("", "D1_clone"));
    ASSERT(!px_verify_chosen(",,", "D1_clone"));
    ASSERT(!px_verify_chosen("etc_readonly_not", "etc_readonly"));
    ASSERT(px_verify_has("seccomp+landlock", "landlock") && !px_verify_has("seccomp+landlock", "land"));
    struct px_check row;
    ASSERT_EQ(px_verify_row(0, &row), 0);
    ASSERT_EQ(px_verify_row(100000, &row), -1);
}

/* ---- judging ---- */

static const struct px_verify_row *find(const char *name)
{
    for (size_t i = 0; i < px_verify_rows_count; i++)
        if (strcmp(px_verify_rows[i].name, name) == 0)
            return &px_verify_rows[i];
    FAIL("there is no row %s", name);
}

static struct px_result ended(int code, const char *out, const char *err)
{
    return (struct px_result){
        .status = code == 0 ? PX_STATUS_OK : PX_STATUS_NONZERO, .reason = "exited", .exit_code = code,
        .out = {out, strlen(out)}, .err = {err, strlen(err)},
    };
}

static struct px_verdict judged(const char *name, int side, const struct px_result *r)
{
    const struct px_verify_row *row = find(name);
    const struct px_surroundings full = {.tier = "full", .in = PX_IN_FULL};
    struct px_verdict v = {.proof = PX_BUF(2048), .reason = PX_BUF(4096)};
    px_judge_result(row, side, r, &full, &row->sides[side], &v);
    return v;
}

static enum px_check_result verdict(const char *name, int side, const struct px_result *r)
{
    struct px_verdict v = judged(name, side, r);
    px_buf_done(&v.proof);
    px_buf_done(&v.reason);
    return v.result;
}

TEST(a_shell_check_is_judged_by_every_word)
{
    struct px_result refused = ended(1, "", "touch: cannot touch '/etc/x': Read-only file system\n");
    struct px_result denied = ended(1, "", "touch: cannot touch '/etc/x': Permission denied\n");
    struct px_result done = ended(0, "Read-only file system\n", "");
    ASSERT_EQ(verdict("etc_readonly", 0, &refused), PX_CHECK_PASSED);
    ASSERT_EQ(verdict("etc_readonly", 0, &denied), PX_CHECK_FAILED);
    ASSERT_EQ(verdict("etc_readonly", 0, &done), PX_CHECK_FAILED); /* its output does not help it */
    struct px_result made = ended(0, "made\n", ""), more = ended(0, "made\nmade\n", "");
    ASSERT_EQ(verdict("etc_readonly", 1, &made), PX_CHECK_PASSED);
    ASSERT_EQ(verdict("etc_readonly", 1, &more), PX_CHECK_FAILED);
    struct px_result absent = ended(77, "", "");
    ASSERT_EQ(verdict("jq_available", 0, &absent), PX_CHECK_SKIPPED);
    ASSERT_EQ(verdict("exit_code_preserved", 0, &absent), PX_CHECK_FAILED);
}

TEST(an_attack_is_judged_by_the_result)
{
    struct px_result stopped = ended(0, "stopped\n", ""), silent = ended(0, "", ""), worked = ended(0, "worked\n", "");
    ASSERT_EQ(verdict("D2_clone3", 0, &stopped), PX_CHECK_PASSED);
    ASSERT_EQ(verdict("D2_clone3", 0, &silent), PX_CHECK_FAILED);
    ASSERT_EQ(verdict("D2_clone3", 0, &worked), PX_CHECK_FAILED);
    ASSERT_EQ(verdict("D2_twin_threads", 0, &worked), PX_CHECK_PASSED);
    ASSERT_EQ(verdict("D1_unshare", 0, &stopped), PX_CHECK_FAILED); /* the filter's listener does not see it */
    stopped.denials[0] = (struct px_denial){.op = "syscall", .target = "unshare", .rule = "seccomp", .count = 1};
    stopped.denials_count = 1;
    ASSERT_EQ(verdict("D1_unshare", 0, &stopped), PX_CHECK_PASSED);
    ASSERT_EQ(verdict("I12_denials", 0, &stopped), PX_CHECK_FAILED); /* not all were counted */
    stopped.denials[0].count = 20000;
    ASSERT_EQ(verdict("I12_denials", 0, &stopped), PX_CHECK_PASSED);
}

TEST(what_px_net_has_not_refused_proves_nothing)
{
    struct px_result stopped = ended(0, "stopped\n", ""), worked = ended(0, "worked\n", "");
    ASSERT_EQ(verdict("G5_names", 0, &stopped), PX_CHECK_FAILED); /* perhaps the servers were not there */
    stopped.denials[0] = (struct px_denial){.op = "syscall", .target = "unshare", .rule = "seccomp", .count = 1};
    stopped.denials_count = 1;
    ASSERT_EQ(verdict("G5_names", 0, &stopped), PX_CHECK_FAILED);
    stopped.denials[1] = (struct px_denial){.op = "resolve", .target = "denied.test", .rule = "allow-net", .count = 1};
    stopped.denials_count = 2;
    ASSERT_EQ(verdict("G5_names", 0, &stopped), PX_CHECK_PASSED);
    ASSERT_EQ(verdict("G5_twin_names", 0, &worked), PX_CHECK_PASSED);
}

TEST(a_check_that_lacks_a_program_says_which)
{
    struct px_result absent = ended(77, "", "");
    struct px_verdict v = judged("https_request", 0, &absent);
    ASSERT_EQ(v.result, PX_CHECK_SKIPPED);
    ASSERT(px_starts_with(px_buf_text(&v.reason), "there is no curl or python3 in this base; install it there"));
    px_buf_done(&v.proof);
    px_buf_done(&v.reason);
}

TEST(a_box_that_cannot_start_says_what_helps)
{
    static const struct {
        const char *name;
        int code;
        const char *fix;
    } rows[] = {{"I2_anonymous", PX_E_CGROUP, "Delegate=yes"}, {"exit_code_preserved", PX_E_NOT_FOUND, "--base"}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_verdict v = {.proof = PX_BUF(2048), .reason = PX_BUF(4096)};
        px_judge_error(find(rows[i].name), &(struct px_err){.code = rows[i].code}, &v);
        ASSERT_EQ(v.result, PX_CHECK_SKIPPED);
        ASSERT(strstr(px_buf_text(&v.reason), rows[i].fix) != NULL);
        px_buf_done(&v.reason);
    }
}

TEST(what_a_program_says_of_its_end_is_not_believed)
{
    struct px_result forged = ended(0, "{\"status\":\"timeout\",\"timed_out\":true}\nstopped\n", "px: timeout\n");
    ASSERT_EQ(verdict("H3_ignore", 0, &forged), PX_CHECK_FAILED);
    ASSERT_EQ(verdict("I2_anonymous", 0, &forged), PX_CHECK_PASSED); /* it stopped by itself, and used little */
    forged.memory_peak_bytes = 300ull << 20;
    ASSERT_EQ(verdict("I2_anonymous", 0, &forged), PX_CHECK_FAILED);
    struct px_result three = ended(3, "{\"exit_code\":0}", "");
    ASSERT_EQ(verdict("H13_forge", 0, &three), PX_CHECK_PASSED);
    ASSERT_EQ(verdict("H13_forge", 0, &forged), PX_CHECK_FAILED);
}

TEST(words_of_a_program_are_shown_harmless)
{
    struct px_result hostile = ended(1, "\033]52;c;eA==\007\033[2J\r\xff<&>\"\n", "");
    struct px_verdict v = judged("D2_clone3", 0, &hostile);
    ASSERT_EQ(v.result, PX_CHECK_FAILED);
    for (const char *p = px_buf_text(&v.reason); *p; p++)
        ASSERT((unsigned char)*p >= 0x20 && *p != 0x7f);
    ASSERT(strstr(px_buf_text(&v.reason), "\\x1b") != NULL);
    px_buf_done(&v.proof);
    px_buf_done(&v.reason);
}

static enum px_check_result promised(const char *name, const struct px_surroundings *s)
{
    struct px_verdict v = {.proof = PX_BUF(2048), .reason = PX_BUF(4096)};
    px_judge_fail(&v, PX_CHECK_FAILED, "it was not stopped");
    px_judge_promise(find(name), s, &v);
    px_buf_done(&v.reason);
    return v.result;
}

TEST(only_what_is_not_promised_may_differ)
{
    struct px_surroundings full = {.in = PX_IN_FULL}, landlock = {.in = PX_IN_LANDLOCK}, oci = {.in = PX_IN_OCI};
    ASSERT_EQ(promised("G1_interfaces", &full), PX_CHECK_FAILED);
    ASSERT_EQ(promised("G1_interfaces", &landlock), PX_CHECK_DIFFERS);
    ASSERT_EQ(promised("E4_securebits", &oci), PX_CHECK_DIFFERS);
    ASSERT_EQ(promised("D1_unshare", &landlock), PX_CHECK_FAILED);
    full.net_shared = true;
    ASSERT_EQ(promised("G1_interfaces", &full), PX_CHECK_DIFFERS);
    ASSERT_EQ(promised("G1_none", &full), PX_CHECK_FAILED); /* it has a network of its own, whatever the policy says */
    ASSERT_EQ(promised("F7_abstract", &full), PX_CHECK_FAILED);
    full.no_landlock = true;
    ASSERT_EQ(promised("F7_abstract_host_net", &full), PX_CHECK_DIFFERS);
    ASSERT_EQ(promised("A11_mknod", &full), PX_CHECK_FAILED); /* one layer is gone, the other has to hold */
}

/* ---- reports ---- */

static struct px_verify_report sample(struct px_check *checks)
{
    static const char hostile[] = "\"a\" & \x01\x1b[2J \xff \xc2\x9b]]>";
    checks[0] = (struct px_check){"A<1>", "security", "seccomp", PX_CHECK_FAILED, NULL, hostile, 1500000000};
    checks[1] = (struct px_check){"B", "functional", "root", PX_CHECK_PASSED, "<ok> & 'fine' \xef\xbf\xbf", NULL, 5000000};
    checks[2] = (struct px_check){"C", "network", "root", PX_CHECK_DIFFERS, NULL, NULL, 0};
    return (struct px_verify_report){.preset = "default", .base = "/a\"b", .runtime = "native", .tier = "full",
                                     .checks = checks, .count = 3, .passed = 1, .failed = 1, .skipped = 1};
}

TEST(junit_is_well_formed_whatever_is_in_it)
{
    struct px_check checks[3];
    struct px_verify_report report = sample(checks);
    px_auto_free char *xml = NULL;
    ASSERT_EQ(px_verify_junit(&report, &xml, NULL), 0);
    for (const char *p = xml; *p; p++)
        ASSERT((unsigned char)*p >= 0x20 || *p == '\n');
    ASSERT(strstr(xml, "name=\"A&lt;1&gt;\"") != NULL);
    ASSERT(strstr(xml, "message=\"&quot;a&quot; &amp; ??[2J ? ?]]&gt;\"") != NULL);
    ASSERT(strstr(xml, "<system-out>&lt;ok&gt; &amp; &apos;fine&apos; ?</system-out>") != NULL);
    ASSERT(strstr(xml, "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"1.505\"") != NULL);
    ASSERT(strstr(xml, "<skipped message=\"differs: \"/>") != NULL);
    ASSERT(strstr(xml, "value=\"/a&quot;b\"") != NULL);
}

TEST(json_has_every_word)
{
    struct px_check checks[3];
    struct px_verify_report report = sample(checks);
    px_auto_free char *json = NULL;
    ASSERT_EQ(px_verify_json(&report, &json, NULL), 0);
    ASSERT(px_starts_with(json, "{\"schema\":1,\"preset\":\"default\",\"base\":\"/a\\\"b\",\"runtime\":\"native\","));
    ASSERT(strstr(json, "\"differs\":[{\"name\":\"C\",\"reason\":null}],\"passed\":1,\"failed\":1,\"skipped\":1}\n") != NULL);
    ASSERT(strstr(json, "\"result\":\"failed\"") != NULL && strstr(json, "\"seconds\":1.500") != NULL);
    for (const char *p = json; *p && p[1]; p++)
        ASSERT((unsigned char)*p >= 0x20);
}

TEST(reports_without_memory)
{
    struct px_check checks[3];
    struct px_verify_report report = sample(checks);
    for (unsigned n = 1;; n++) {
        char *text = NULL;
        struct px_err e = {0};
        px_test_fail_alloc(n);
        int r = px_verify_junit(&report, &text, &e);
        bool failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r == 0 ? text != NULL : e.code == PX_E_MEMORY);
        free(text);
        if (!failed)
            break;
    }
}

/* ---- fixtures ---- */

static size_t leftovers(const char *pattern)
{
    glob_t found = {0};
    size_t n = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return n;
}

static void nothing_is_left(const char *top, const char *mark, int key)
{
    static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm"};
    char path[300];
    ASSERT_EQ(access(top, F_OK), -1);
    for (size_t i = 0; i < PX_COUNT_OF(places); i++) {
        (void)snprintf(path, sizeof path, "%s/*%s*", places[i], mark);
        ASSERT_EQ(leftovers(path), 0);
    }
    ASSERT(shmget(key, 0, 0) < 0 && msgget(key, 0) < 0 && semget(key, 0, 0) < 0);
}

TEST(fixtures_come_and_go)
{
    struct px_fixtures f;
    struct px_err e = {0};
    char top[200], mark[32];
    ASSERT_PX(px_fixtures_make(&f, "/proc/self/exe", "hush", &e), e);
    (void)snprintf(top, sizeof top, "%s", f.top);
    (void)snprintf(mark, sizeof mark, "%s", f.mark);
    int key = f.key;
    ASSERT(px_fixtures_harm(&f, false) == NULL);
    ASSERT(px_fixtures_reachable(f.port) && !px_fixtures_reachable(f.free_port));
    char dir[256], name[300];
    ASSERT_PX(px_fixtures_work_dir(&f, dir, sizeof dir, &e), e);
    (void)snprintf(name, sizeof name, "%s/planted", dir);
    ASSERT_EQ(access(name, R_OK), 0);
    px_fixtures_drop(&f, dir);
    ASSERT_EQ(access(dir, F_OK), -1);
    px_fixtures_remove(&f);
    px_fixtures_remove(&f);
    nothing_is_left(top, mark, key);
}

TEST(harm_is_seen)
{
    struct px_fixtures f;
    struct px_err e = {0};
    ASSERT_PX(px_fixtures_make(&f, "/proc/self/exe", NULL, &e), e);
    px_auto_fd int file = openat(f.top_fd, "bin/sacrifice", O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(write(file, "y", 1), 1);
    ASSERT(strstr(px_fixtures_harm(&f, false), "file") != NULL);
    ASSERT_EQ(pwrite(file, "x", 1, 0), 1);
    ASSERT(px_fixtures_harm(&f, false) == NULL);
    ASSERT_OK(px_pidfd_signal(f.victim_fd, SIGKILL));
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, (id_t)f.victim, &info, WEXITED | WNOWAIT), 0);
    ASSERT(strstr(px_fixtures_harm(&f, false), "process") != NULL);
    px_fixtures_remove(&f);
}

/* The caller is killed: the victim cleans up. */
TEST(fixtures_go_when_the_caller_dies)
{
    int ends[2];
    struct {
        char top[200], mark[32];
        int key, victim;
    } told = {0};
    ASSERT_OK(px_pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        struct px_fixtures f;
        if (px_fixtures_make(&f, "/proc/self/exe", NULL, NULL) < 0)
            _exit(1);
        memcpy(told.top, f.top, sizeof told.top);
        memcpy(told.mark, f.mark, sizeof told.mark);
        told.key = f.key;
        told.victim = f.victim;
        (void)px_write_full(ends[1], &told, sizeof told);
        for (;;)
            pause();
    }
    (void)px_fd_close(ends[1]);
    ASSERT_EQ(px_read_full(ends[0], &told, sizeof told), (ssize_t)sizeof told);
    ASSERT_EQ(access(told.top, F_OK), 0);
    ASSERT_EQ(kill(child, SIGKILL), 0);
    char byte;                  /* the victim holds the last writing end: its death ends the pipe */
    while (read(ends[0], &byte, 1) > 0)
        ;
    (void)px_fd_close(ends[0]);
    ASSERT_EQ(waitpid(child, NULL, 0), child);
    nothing_is_left(told.top, told.mark, told.key);
}

TEST(fixtures_that_cannot_be_made)
{
    struct px_fixtures f;
    struct px_err e = {0};
    ASSERT_EQ(px_fixtures_make(&f, "/no/such/program", NULL, &e), -1);
    ASSERT_EQ(e.code, PX_E_IO);
    ASSERT(strstr(e.fix, "/no/such/program") != NULL);
    ASSERT_STR(f.top, "");
}

/* ---- whole runs ---- */

static int default_policy(void *user, struct px_policy **ret_policy, struct px_err *e)
{
    const char *const *fields = user;
    if (px_policy_new(NULL, ret_policy, e) < 0)
        return -1;
    return fields && px_policy_set(*ret_policy, fields[0], fields[1], e) < 0 ? -1 : 0;
}

static void count_checks(void *user, const struct px_check *check)
{
    (void)user;
    ASSERT(check->name != NULL);
}

/* For the shell's checks any program that exits with 0 can replace px-attack. */
static struct px_verify_report *verified(const char *only, const char *const *fields, bool self_test)
{
    struct px_verify ask = {.make_policy = default_policy, .on_check = count_checks, .user = (void *)(uintptr_t)fields,
                            .attack = "/bin/true", .only = only, .self_test = self_test};
    struct px_verify_report *report = NULL;
    struct px_err e = {0};
    if (px_verify_run(&ask, &report, &e) < 0) {
        if (e.code == PX_E_USERNS || e.code == PX_E_NAMESPACE || e.code == PX_E_MOUNT)
            SKIP("no box can be made here: %s", e.what);
        FAIL("PX%03d %s: %s", e.code, e.what, e.why);
    }
    return report;
}

TEST(checks_pass_in_a_whole_box)
{
    struct px_verify_report *report = verified("etc_readonly,exit_code,stderr,workspace", NULL, false);
    ASSERT_STR(report->tier, "full");
    ASSERT_EQ(report->failed, 0);
    ASSERT_EQ(report->passed, 6); /* and that nothing was touched */
    px_verify_free(report);
}

/* The caller's network options do not matter, and there is no network outside of this machine. Descriptors in flight
 * count for the next sender of the same user, which may have a lower limit: px-outside must not be that sender. */
TEST(names_are_tried_without_a_network)
{
    static const char *const fields[] = {"allow-net", "*"};
    int way[2], many[PX_PASS_MAX] = {0};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, way), 0);
    for (int i = 0; i < 20; i++)
        ASSERT_OK(px_pass_send(way[0], "x", 1, many, PX_PASS_MAX, MSG_DONTWAIT));
    struct px_verify_report *report = verified("dns_resolution", fields, false);
    (void)px_fd_close(way[0]);
    (void)px_fd_close(way[1]);
    ASSERT_STR(report->checks[0].name, "dns_resolution");
    if (report->checks[0].result == PX_CHECK_SKIPPED)
        SKIP("%s", report->checks[0].reason);
    ASSERT_EQ(report->checks[0].result, PX_CHECK_PASSED);
    px_verify_free(report);
}

TEST(checks_fail_in_a_broken_one)
{
    static const char *const without[] = {"without", "read-only"};
    struct px_verify_report *report = verified("etc_readonly,exit_code", without, false);
    ASSERT_EQ(report->failed, 1);
    ASSERT_STR(report->checks[0].name, "etc_readonly");
    ASSERT_EQ(report->checks[0].result, PX_CHECK_FAILED);
    px_verify_free(report);
}

TEST(the_self_test_breaks_what_it_tests)
{
    struct px_verify_report *report = verified("etc_readonly,stderr", NULL, true);
    ASSERT_EQ(report->failed, 0);
    ASSERT_EQ(report->passed, 2);
    ASSERT(strstr(report->checks[0].proof, "without read-only") != NULL);
    px_verify_free(report);
}

TEST(an_attack_that_says_nothing_has_not_been_stopped)
{
    struct px_verify_report *report = verified("D2_clone3", NULL, false);
    ASSERT_EQ(report->checks[0].result, PX_CHECK_FAILED);
    px_verify_free(report);
}

TEST(a_run_can_be_stopped)
{
    px_auto_fd int stop = eventfd(1, EFD_CLOEXEC);
    struct px_verify ask = {.make_policy = default_policy, .attack = "/bin/true", .use_stop = true, .stop = stop};
    struct px_verify_report *report = NULL;
    struct px_err e = {0};
    if (px_verify_run(&ask, &report, &e) < 0)
        SKIP("no box can be made here: %s", e.what);
    ASSERT(report->stopped);
    ASSERT_EQ(report->failed, 0);
    ASSERT_EQ(report->passed, 0);
    px_verify_free(report);
}

TEST(nothing_to_run_is_an_error)
{
    struct px_verify ask = {.make_policy = default_policy, .attack = "/bin/true", .only = "no_such_check"};
    struct px_verify_report *report = NULL;
    struct px_err e = {0};
    ASSERT_EQ(px_verify_run(&ask, &report, &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
    ASSERT(strstr(e.what, "no_such_check") != NULL);
}
