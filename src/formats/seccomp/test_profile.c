/* A user's profile: its meaning, its errors, and what the kernel does with its program and the floor. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "seccomp/profile.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "kernel/seccomp.h"
#include "seccomp/draft.h"
#include "seccomp/sample.inc"
#include "seccomp/test_oracle.h"

static struct px_profile *parsed_as_is(const char *text)
{
    struct px_profile *p = NULL;
    struct px_err e = {0};

    ASSERT_PX(px_profile_parse(text, strlen(text), "p.json", &p, &e), e);
    return p;
}

static struct px_profile *parsed(const char *text)
{
    px_auto_buf struct px_buf json = PX_BUF(1 << 16);

    px_buf_puts(&json, text);
    oracle_quote(&json);
    return parsed_as_is(px_buf_text(&json));
}

static int parse_error(const char *text, struct px_err *e)
{
    px_auto_buf struct px_buf json = PX_BUF(2 << 20);
    struct px_profile *p = NULL;

    px_buf_puts(&json, text);
    oracle_quote(&json);
    int r = px_profile_parse(px_buf_text(&json), json.len, "p.json", &p, e);
    ASSERT(p == NULL);
    return r;
}

static struct px_bpf_outcome run(const struct px_profile *p, const struct seccomp_data *data)
{
    uint16_t len = 0;
    const struct sock_filter *code = px_profile_program(p, &len);

    return px_bpf_run(code, len, data);
}

static uint32_t verdict(const struct px_profile *p, int number, uint64_t a, uint64_t b)
{
    struct seccomp_data data = {.nr = number, .arch = AUDIT_ARCH_X86_64, .args = {a, b}};
    struct px_bpf_outcome out = run(p, &data);

    ASSERT(!out.broken);
    return out.action;
}

/* ---- what it means ---- */

/* Calls newer than the profile are ENOSYS in px but not in libseccomp: for these px must be at least as strict. */
static void check_libseccomp(const struct oracle *o, const struct seccomp_data *data, uint32_t action)
{
    struct px_bpf_outcome theirs = px_bpf_run(o->code, o->length, data);

    ASSERT(!theirs.broken);
    if (data->nr > o->highest)
        ASSERT(oracle_rank(action) <= oracle_rank(theirs.action));
    else if (oracle_is_reliable(o, data->nr) && action != theirs.action)
        FAIL("call %d(%llx, %llx, %llx, %llx, %llx, %llx): %x, and %x for libseccomp", data->nr, data->args[0], data->args[1],
             data->args[2], data->args[3], data->args[4], data->args[5], action, theirs.action);
}

static void check_call(const struct oracle *o, const struct px_profile *p, const struct seccomp_data *data)
{
    struct px_bpf_outcome out = run(p, data);
    uint32_t expected = oracle_verdict(o, data);

    if (out.broken || out.action != expected)
        FAIL("call %d(%llx, %llx, %llx, %llx, %llx, %llx): %s%x instead of %x", data->nr, data->args[0], data->args[1],
             data->args[2], data->args[3], data->args[4], data->args[5], out.broken ? "broken, " : "", out.action, expected);
    if (data->nr >= 0 && data->nr <= ORACLE_HIGHEST)
        check_libseccomp(o, data, out.action);
}

static void check_meaning(const char *text, int tries, uint64_t *state)
{
    struct px_profile *p = parsed_as_is(text);
    struct oracle o;

    oracle_init(&o, text, true);
    for (int n = 0; n <= ORACLE_HIGHEST + 20; n++) {
        int some = n <= ORACLE_HIGHEST ? tries : 1;
        for (int i = 0; i < some; i++) {
            struct seccomp_data data = {.nr = n, .arch = AUDIT_ARCH_X86_64};
            if (n <= ORACLE_HIGHEST)
                data = oracle_call(&o, n, state);
            check_call(&o, p, &data);
        }
    }
    oracle_done(&o);
    px_profile_free(p);
}

TEST(profile_of_real_size_means_what_it_says)
{
    uint64_t state = 0x9e3779b97f4a7c15;
    struct px_profile *p = parsed_as_is(sample);

    ASSERT_EQ(px_profile_warnings(p), 0);
    px_profile_free(p);
    check_meaning(sample, 200, &state);
}

TEST(profile_plain_calls_are_decided_by_number)
{
    struct px_profile *p = parsed_as_is(sample);

    for (int n = 0; n <= 1024; n++) {
        struct seccomp_data data = {.nr = n, .arch = AUDIT_ARCH_X86_64};
        bool conditional = n == SYS_clone || n == SYS_personality || n == SYS_socket || n == SYS_socketpair || n == SYS_ioctl ||
                           n == SYS_prctl || n == SYS_mlock2 || n == SYS_setpriority || n == SYS_sync_file_range;
        ASSERT_EQ(run(p, &data).looked_at_arguments, conditional);
    }
    px_profile_free(p);
}

TEST(profile_other_architectures_are_killed_and_x32_does_not_exist)
{
    static const uint32_t arches[] = {AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, 0};
    struct px_profile *p = parsed("{'defaultAction': 'SCMP_ACT_ALLOW', 'architectures': ['SCMP_ARCH_X86']}");

    for (int n = 0; n <= 1024; n++) {
        for (size_t i = 0; i < PX_COUNT_OF(arches); i++) {
            struct seccomp_data data = {.nr = n, .arch = arches[i]};
            ASSERT_EQ(run(p, &data).action, SECCOMP_RET_KILL_PROCESS);
        }
        ASSERT_EQ(verdict(p, 0x40000000 | n, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
        ASSERT_EQ(verdict(p, n, 0, 0), n <= ORACLE_HIGHEST ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOSYS);
    }
    px_profile_free(p);
}

TEST(profile_newer_calls_do_not_exist_unless_it_kills)
{
    struct px_profile *p =
        parsed("{'defaultAction': 'SCMP_ACT_ERRNO', 'defaultErrnoRet': 13, 'syscalls': [" ORACLE_STARTS "]}");

    ASSERT_EQ(verdict(p, SYS_read, 0, 0), SECCOMP_RET_ERRNO | 13);
    ASSERT_EQ(verdict(p, SYS_faccessat, 0, 0), SECCOMP_RET_ALLOW);
    ASSERT_EQ(verdict(p, SYS_faccessat + 1, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
    ASSERT_EQ(verdict(p, 5000, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
    px_profile_free(p);
    p = parsed("{'defaultAction': 'SCMP_ACT_KILL_PROCESS', 'syscalls': [" ORACLE_STARTS "]}");
    ASSERT_EQ(verdict(p, SYS_faccessat + 1, 0, 0), SECCOMP_RET_KILL_PROCESS);
    ASSERT_EQ(verdict(p, 5000, 0, 0), SECCOMP_RET_KILL_PROCESS);
    px_profile_free(p);
}

/* px takes the stricter of the two readings. */
TEST(profile_mixed_rules_take_the_stricter_answer_and_warn)
{
    struct px_profile *p = parsed("{'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': ["
                                  "{'names': ['ioctl'], 'action': 'SCMP_ACT_LOG'},"
                                  "{'names': ['ioctl'], 'action': 'SCMP_ACT_KILL',"
                                  " 'args': [{'index': 1, 'value': 7, 'op': 'SCMP_CMP_EQ'}]},"
                                  "{'names': ['ioctl'], 'action': 'SCMP_ACT_ERRNO', 'errnoRet': 5,"
                                  " 'args': [{'index': 1, 'value': 7, 'op': 'SCMP_CMP_LE'}]}]}");

    ASSERT_EQ(verdict(p, SYS_ioctl, 0, 7), SECCOMP_RET_KILL_THREAD);
    ASSERT_EQ(verdict(p, SYS_ioctl, 0, 6), SECCOMP_RET_ERRNO | 5);
    ASSERT_EQ(verdict(p, SYS_ioctl, 0, 8), SECCOMP_RET_LOG);
    ASSERT_EQ(px_profile_warnings(p), 1);
    ASSERT(strstr(px_profile_warning(p, 0), "ioctl has a rule without conditions") != NULL);
    px_profile_free(p);
}

TEST(profile_64_bit_values_are_exact)
{
    static const uint64_t edges[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
                                     0x8000000000000000, 0xfffffffffffffffe, 0xffffffffffffffff};
    static const char *const ops[] = {"NE", "LT", "LE", "EQ", "GE", "GT"};

    for (size_t v = 0; v < PX_COUNT_OF(edges); v++)
        for (size_t op = 0; op < PX_COUNT_OF(ops); op++) {
            char text[512];
            ASSERT_OK(px_fmt(text, sizeof text,
                             "{'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': [{'name': 'read', 'action': "
                             "'SCMP_ACT_ERRNO', 'args': [{'index': 5, 'value': %llu, 'op': 'SCMP_CMP_%s'}]}]}",
                             (unsigned long long)edges[v], ops[op]));
            struct px_profile *p = parsed(text);
            for (size_t a = 0; a < PX_COUNT_OF(edges); a++) {
                uint64_t x = edges[a], y = edges[v];
                const bool holds[] = {x != y, x < y, x <= y, x == y, x >= y, x > y};
                struct seccomp_data data = {.nr = SYS_read, .arch = AUDIT_ARCH_X86_64, .args = {[5] = x}};
                ASSERT_EQ(run(p, &data).action, holds[op] ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_ALLOW);
            }
            px_profile_free(p);
        }
}

/* ---- random profiles ---- */

TEST(profile_random_ones_mean_what_they_say)
{
    uint64_t state = 0x2545f4914f6cdd1d;

    for (int i = 0; i < 300; i++) {
        px_auto_buf struct px_buf text = PX_BUF(1 << 16);
        oracle_profile(&text, 24, 3, &state);
        check_meaning(px_buf_text(&text), 12, &state);
    }
}

/* ---- long programs ---- */

static void profile_of_values(struct px_buf *out, unsigned rules)
{
    px_buf_puts(out, "{'defaultAction': 'SCMP_ACT_ERRNO', 'syscalls': [" ORACLE_STARTS
                     ", {'names': ['write'], 'action': 'SCMP_ACT_ALLOW'}");
    for (unsigned i = 0; i < rules; i++)
        px_buf_printf(out, ", {'names': ['%s'], 'action': 'SCMP_ACT_ALLOW', 'args': [{'index': %u, 'value': %u,"
                           " 'op': 'SCMP_CMP_%s'}]}",
                      oracle_names[i % PX_COUNT_OF(oracle_names)], i % 6, 1000 + 3 * i, i % 5 ? "EQ" : "GT");
    px_buf_puts(out, "]}");
    oracle_quote(out);
}

TEST(profile_jumps_reach_across_long_programs)
{
    static const unsigned counts[] = {50, 60, 70, 200, 400, 600};
    uint64_t state = 0x853c49e6748fea9b;

    for (size_t i = 0; i < PX_COUNT_OF(counts); i++) {
        px_auto_buf struct px_buf text = PX_BUF(1 << 20);
        profile_of_values(&text, counts[i]);
        check_meaning(px_buf_text(&text), 40, &state);
    }
}

TEST(profile_bounds)
{
    struct px_err e = {0};
    px_auto_buf struct px_buf values = PX_BUF(1 << 20), rules = PX_BUF(1 << 20), large = PX_BUF(2 << 20);

    profile_of_values(&values, 1500);
    ASSERT_EQ(parse_error(values.data, &e), -1);
    ASSERT_EQ(e.code, PX_E_PROFILE);
    ASSERT_STR(e.what, "profile 'p.json' has too many rules with conditions");
    ASSERT(strstr(e.why, "4096 instructions") != NULL);

    px_buf_puts(&rules, "{'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': [");
    for (int i = 0; i < 4097; i++)
        px_buf_printf(&rules, "%s{'name': 'read', 'action': 'SCMP_ACT_ALLOW'}", i ? "," : "");
    px_buf_puts(&rules, "]}");
    ASSERT_EQ(parse_error(rules.data, &e), -1);
    ASSERT_STR(e.what, "profile 'p.json': syscalls[4096] is one rule too many: px takes 4096");

    while (large.len <= PX_DRAFT_BYTES_MAX)
        px_buf_puts(&large, "                                                                ");
    ASSERT_EQ(parse_error(large.data, &e), -1);
    ASSERT_STR(e.what, "profile 'p.json' is larger than 1048576 bytes");
}

/* As many uses as a file can hold, each rule about other calls. */
TEST(profile_worst_case_ends)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 20);
    uint64_t state = 0xda942042e4dd58b5;
    struct px_err e = {0};
    unsigned i = 0;

    px_buf_puts(&text, "{'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': [");
    while (text.len < (1 << 20) - 400) {
        px_buf_printf(&text, "%s{'action': 'SCMP_ACT_LOG', 'args': [{'index': 0, 'value': %u, 'op': 'SCMP_CMP_EQ'}],"
                             " 'names': ['read'", i ? "," : "", i % 4000);
        for (int k = 0; k < 20; k++)
            px_buf_printf(&text, ",'%s'", oracle_names[oracle_random(&state) % PX_COUNT_OF(oracle_names)]);
        px_buf_puts(&text, "]}");
        i++;
    }
    px_buf_puts(&text, "]}");
    ASSERT_OK(text.err);
    ASSERT_EQ(parse_error(text.data, &e), -1);
    ASSERT_EQ(e.code, PX_E_PROFILE);
}

/* ---- what is wrong ---- */

#define AROUND(entry) "{'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': [" ORACLE_STARTS ", " entry "]}"
#define ARG(arg) AROUND("{'names': ['read'], 'action': 'SCMP_ACT_LOG', 'args': [{'index': 0, 'value': 1, 'op': "   \
                        "'SCMP_CMP_EQ'}, " arg "]}")

static const struct {
    const char *text, *what;
} errors[] = {
    {"", "profile 'p.json', line 1, column 0: "},
    {"{\n  'defaultAction': 'SCMP_ACT_ALLOW',\n  'syscalls': [}\n}", "profile 'p.json', line 3, column "},
    {"{'defaultAction': 'SCMP_ACT_ALLOW'} x", "profile 'p.json', line 1, column "},
    {"{'defaultAction': 'SCMP_ACT_ALLOW', 'defaultAction': 'SCMP_ACT_KILL'}", "profile 'p.json', line 1, column "},
    {"{\n'syscalls':\n  -1}", "profile 'p.json', line 3, column 3: no number of a profile is negative"},
    {"[]", "profile 'p.json': the profile must be an object"},
    {"{}", "profile 'p.json': defaultAction is missing"},
    {"{'defaultAction': 1}", "profile 'p.json': defaultAction must be a text"},
    {"{'defaultAction': 'allow'}", "profile 'p.json': defaultAction is 'allow', which is not a word px knows there"},
    {"{'defaultAction': 'SCMP_ACT_NOTIFY'}",
     "profile 'p.json': defaultAction is SCMP_ACT_NOTIFY, which needs a supervisor of the profile's own"},
    {"{'defaultAction': 'SCMP_ACT_ALLOW', 'defaultErrnoRet': 1}",
     "profile 'p.json': defaultErrnoRet does not go with SCMP_ACT_ALLOW"},
    {"{'defaultAction': 'SCMP_ACT_ERRNO', 'defaultErrnoRet': 4096}",
     "profile 'p.json': defaultErrnoRet is 4096, more than 4095"},
    {"{'defaultAction': 'SCMP_ACT_ERRNO', 'defaultErrno': 'EWHAT'}",
     "profile 'p.json': defaultErrno is 'EWHAT', which is not an error px knows; write its number"},
    {"{'defaultAction': 'SCMP_ACT_ALLOW', 'architectures': ['SCMP_ARCH_X86', 'x86']}",
     "profile 'p.json': architectures[1] is 'x86', which is not a word px knows there"},
    {"{'defaultAction': 'SCMP_ACT_ALLOW', 'archMap': [{'architecture': 'SCMP_ARCH_X86', 'subArchitectures': [0]}]}",
     "profile 'p.json': archMap[0].subArchitectures[0] must be a text"},
    {"{'defaultAction': 'SCMP_ACT_ALLOW', 'archMap': [{}]}", "profile 'p.json': archMap[0].architecture is missing"},
    {"{'defaultAction': 'SCMP_ACT_ALLOW', 'architectures': ['SCMP_ARCH_X86'],"
     " 'archMap': [{'architecture': 'SCMP_ARCH_X86'}]}", "profile 'p.json': the profile has both architectures and archMap"},
    {"{'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': {}}", "profile 'p.json': syscalls must be a list"},
    {AROUND("[]"), "profile 'p.json': syscalls[1] must be an object"},
    {AROUND("{'names': ['read']}"), "profile 'p.json': syscalls[1].action is missing"},
    {AROUND("{'action': 'SCMP_ACT_LOG'}"), "profile 'p.json': syscalls[1].names is missing"},
    {AROUND("{'action': 'SCMP_ACT_LOG', 'names': ['read', 7]}"), "profile 'p.json': syscalls[1].names[1] must be a text"},
    {AROUND("{'action': 'SCMP_ACT_LOG', 'names': 'read'}"), "profile 'p.json': syscalls[1].names must be a list"},
    {AROUND("{'action': 'SCMP_ACT_LOG', 'names': [], 'name': 'read'}"),
     "profile 'p.json': syscalls[1] has both name and names"},
    {AROUND("{'action': 'SCMP_ACT_TRACE', 'name': 'read'}"),
     "profile 'p.json': syscalls[1].action is SCMP_ACT_TRACE, which needs a supervisor of the profile's own"},
    {AROUND("{'action': 'SCMP_ACT_ERRNO', 'errnoRet': 1.5, 'name': 'read'}"),
     "profile 'p.json': syscalls[1].errnoRet must be a whole number"},
    {AROUND("{'action': 'SCMP_ACT_KILL', 'errnoRet': 1, 'name': 'read'}"),
     "profile 'p.json': syscalls[1].errnoRet does not go with SCMP_ACT_KILL"},
    {AROUND("{'action': 'SCMP_ACT_LOG', 'name': 'read', 'includes': []}"),
     "profile 'p.json': syscalls[1].includes must be an object"},
    {AROUND("{'action': 'SCMP_ACT_LOG', 'name': 'read', 'includes': {'caps': [1]}}"),
     "profile 'p.json': syscalls[1].includes.caps[0] must be a text"},
    {AROUND("{'action': 'SCMP_ACT_LOG', 'name': 'read', 'excludes': {'minKernel': 'five'}}"),
     "profile 'p.json': syscalls[1].excludes.minKernel is 'five', not a version such as 5.12"},
    {ARG("7"), "profile 'p.json': syscalls[1].args[1] must be an object"},
    {ARG("{'index': 6, 'value': 1, 'op': 'SCMP_CMP_EQ'}"), "profile 'p.json': syscalls[1].args[1].index is 6, more than 5"},
    {ARG("{'value': 1, 'op': 'SCMP_CMP_EQ'}"), "profile 'p.json': syscalls[1].args[1].index is missing"},
    {ARG("{'index': 1, 'op': 'SCMP_CMP_EQ'}"), "profile 'p.json': syscalls[1].args[1].value is missing"},
    {ARG("{'index': 1, 'value': 1}"), "profile 'p.json': syscalls[1].args[1].op is missing"},
    {ARG("{'index': 1, 'value': 1, 'op': 'EQ'}"),
     "profile 'p.json': syscalls[1].args[1].op is 'EQ', which is not a word px knows there"},
    {ARG("{'index': 1, 'value': '1', 'op': 'SCMP_CMP_EQ'}"),
     "profile 'p.json': syscalls[1].args[1].value must be a whole number"},
    {ARG("{'index': 1, 'value': 18446744073709551616, 'op': 'SCMP_CMP_EQ'}"), "profile 'p.json', line 1, column "},
    {"{'defaultAction': 'SCMP_ACT_ERRNO'}",
     "profile 'p.json' refuses execve, exit_group, rt_sigprocmask, futex, faccessat, clock_gettime"},
    {"{'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': [{'name': 'execve', 'action': 'SCMP_ACT_KILL',"
     " 'args': [{'index': 0, 'value': 1, 'op': 'SCMP_CMP_EQ'}]}]}", "profile 'p.json' refuses execve"},
};

TEST(profile_errors_name_the_place)
{
    for (size_t i = 0; i < PX_COUNT_OF(errors); i++) {
        struct px_err e = {0};

        ASSERT_EQ(parse_error(errors[i].text, &e), -1);
        ASSERT_EQ(e.code, PX_E_PROFILE);
        if (strncmp(e.what, errors[i].what, strlen(errors[i].what)) != 0)
            FAIL("error %zu: <%s> instead of <%s>", i, e.what, errors[i].what);
        ASSERT(e.why[0] && e.fix[0]);
    }
}

TEST(profile_errors_list_the_words_there_are)
{
    struct px_err e = {0};
    const char *text = "{'defaultAction': 'ALLOW\x1b[2J'}";

    ASSERT_EQ(parse_error(text, &e), -1);     /* JSON does not allow control bytes */
    text = "{'defaultAction': 'ALLOW\\u001b[2J'}";
    ASSERT_EQ(parse_error(text, &e), -1);
    ASSERT(strstr(e.what, "\x1b") == NULL);
    ASSERT(strstr(e.fix, "SCMP_ACT_ALLOW, SCMP_ACT_LOG, SCMP_ACT_ERRNO") != NULL);
}

TEST(profile_null_counts_as_absent_and_empty_lists_as_none)
{
    struct px_profile *p = parsed(AROUND("{'names': ['read'], 'action': 'SCMP_ACT_ERRNO', 'errnoRet': null, 'args': null,"
                                         " 'includes': {'caps': [], 'arches': null, 'minKernel': ''}, 'excludes': null,"
                                         " 'comment': '', 'name': null}"));

    ASSERT_EQ(px_profile_warnings(p), 0);
    ASSERT_EQ(verdict(p, SYS_read, 0, 0), SECCOMP_RET_ERRNO | EPERM);
    px_profile_free(p);
}

TEST(profile_kernel_and_architecture_and_privileges)
{
    static const struct {
        const char *group;
        bool applies;
    } rows[] = {
        {"'includes': {'minKernel': '3.1'}", true},
        {"'includes': {'minKernel': '900.1'}", false},
        {"'excludes': {'minKernel': '3.1'}", false},
        {"'excludes': {'minKernel': '900.1'}", true},
        {"'includes': {'arches': ['arm64', 'amd64']}", true},
        {"'includes': {'arches': ['arm64']}", false},
        {"'excludes': {'arches': ['amd64']}", false},
        {"'excludes': {'arches': ['arm64']}", true},
        {"'includes': {'caps': ['CAP_SYS_ADMIN']}", false},
        {"'excludes': {'caps': ['CAP_SYS_ADMIN']}", true},
        {"'includes': {'arches': ['amd64'], 'minKernel': '900.1'}", false},
    };

    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        char text[512];
        ASSERT_OK(px_fmt(text, sizeof text, AROUND("{'name': 'read', 'action': 'SCMP_ACT_TRAP', %s}"), rows[i].group));
        struct px_profile *p = parsed(text);
        ASSERT_EQ(verdict(p, SYS_read, 0, 0), rows[i].applies ? SECCOMP_RET_TRAP : SECCOMP_RET_ALLOW);
        px_profile_free(p);
    }
}

TEST(profile_podman_names_its_errors)
{
    struct px_profile *p = parsed(
        "{'defaultAction': 'SCMP_ACT_ERRNO', 'defaultErrno': 'ENOSYS', 'syscalls': [" ORACLE_STARTS ","
        "{'names': ['read'], 'action': 'SCMP_ACT_ERRNO', 'errno': 'EINVAL'},"
        "{'names': ['write'], 'action': 'SCMP_ACT_ERRNO', 'errno': 'EWHAT', 'errnoRet': 9}]}");

    ASSERT_EQ(verdict(p, SYS_read, 0, 0), SECCOMP_RET_ERRNO | EINVAL);
    ASSERT_EQ(verdict(p, SYS_write, 0, 0), SECCOMP_RET_ERRNO | 9);
    ASSERT_EQ(verdict(p, SYS_close, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
    px_profile_free(p);
}

/* ---- warnings ---- */

TEST(profile_warns_of_what_it_does_not_use)
{
    struct px_profile *p = parsed("{'defaultAction': 'SCMP_ACT_ALLOW', 'flags': [], 'syscalls': ["
                                  "{'names': ['reed', 'socketcall', 'read'], 'action': 'SCMP_ACT_LOG',"
                                  " 'arg': [], 'includes': {'minkernel': '1.1'},"
                                  " 'args': [{'index': 0, 'value': 1, 'valuetwo': 1, 'op': 'SCMP_CMP_GE'},"
                                  " {'index': 0, 'value': 3, 'op': 'SCMP_CMP_LE'}]}]}");
    static const char *const expected[] = {
        "flags is not a member that px uses",
        "syscalls[0].arg is not a member that px uses",
        "syscalls[0].args[0].valuetwo is not a member that px uses",
        "syscalls[0].args has two conditions on one argument: each counts on its own, as in runc",
        "syscalls[0] names 'reed', a system call that px does not know: it stays refused",
        "syscalls[0].includes.minkernel is not a member that px uses",
    };

    ASSERT_EQ(px_profile_warnings(p), PX_COUNT_OF(expected));
    for (size_t i = 0; i < PX_COUNT_OF(expected); i++)
        ASSERT_STR(px_profile_warning(p, i), expected[i]);
    ASSERT_STR(px_profile_warning(p, PX_COUNT_OF(expected)), NULL);
    ASSERT_EQ(verdict(p, SYS_read, 0, 0), SECCOMP_RET_LOG);     /* at most 3, although not at least 1 */
    px_profile_free(p);
}

TEST(profile_warnings_are_bounded_and_harmless)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 16);

    px_buf_puts(&text, "{'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': [{'action': 'SCMP_ACT_LOG', 'names': ['\\u001b[2J'");
    for (int i = 0; i < 1000; i++)
        px_buf_printf(&text, ", 'call_%d'", i);
    px_buf_puts(&text, "]}]}");
    struct px_profile *p = parsed(px_buf_text(&text));
    ASSERT_EQ(px_profile_warnings(p), 1001);
    ASSERT(strstr(px_profile_warning(p, 0), "\\x1b[2J") != NULL);
    ASSERT(px_profile_warning(p, PX_DRAFT_WARNINGS_MAX - 1) != NULL);
    ASSERT_STR(px_profile_warning(p, PX_DRAFT_WARNINGS_MAX), NULL);
    ASSERT_STR(px_profile_warning(p, 5000), NULL);
    px_profile_free(p);
}

/* libseccomp knows all these names, but none exists on this architecture. */
TEST(profile_calls_of_other_architectures_are_such)
{
    static const char *const names[] = {
#define PX_ELSEWHERE(name) #name,
#include "elsewhere.def"
#undef PX_ELSEWHERE
    };

    for (size_t i = 0; i < PX_COUNT_OF(names); i++) {
        int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, names[i]);
        if (number >= 0)
            FAIL("%s is call %d of this architecture", names[i], number);
        if (number == __NR_SCMP_ERROR && strcmp(names[i], "riscv_hwprobe") != 0)
            FAIL("libseccomp has never heard of %s", names[i]);
    }
}

/* ---- files ---- */

static void write_sample(int dir, const char *name, size_t padding)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ASSERT_OK(fd);
    ASSERT_OK(px_write_full(fd, sample, strlen(sample)));
    for (size_t i = 0; i < padding; i++)
        ASSERT_OK(px_write_full(fd, " ", 1));
}

static int read_path(const char *name, struct px_profile **ret_profile, struct px_err *e)
{
    char path[512];

    ASSERT_OK(px_fmt(path, sizeof path, "%s/%s", px_test_dir_path(), name));
    return px_profile_read(path, ret_profile, e);
}

TEST(profile_is_read_from_a_regular_file)
{
    px_auto_fd int dir = px_test_dir();
    struct px_profile *p = NULL;
    struct px_err e = {0};

    write_sample(dir, "good", 0);
    ASSERT_PX(read_path("good", &p, &e), e);
    px_profile_free(px_take(&p));
    ASSERT_OK(mkfifoat(dir, "fifo", 0600));
    ASSERT_EQ(read_path("fifo", &p, &e), -1);
    ASSERT_EQ(e.code, PX_E_PROFILE);
    ASSERT_EQ(read_path("none", &p, &e), -1);
    ASSERT_EQ(e.sys, ENOENT);
    ASSERT_EQ(read_path(".", &p, &e), -1);
    ASSERT_EQ(e.sys, EISDIR);
    write_sample(dir, "exact", PX_DRAFT_BYTES_MAX - strlen(sample));
    ASSERT_PX(read_path("exact", &p, &e), e);
    px_profile_free(px_take(&p));
    write_sample(dir, "large", PX_DRAFT_BYTES_MAX - strlen(sample) + 1);
    ASSERT_EQ(read_path("large", &p, &e), -1);
    ASSERT_EQ(e.sys, EFBIG);
    ASSERT(p == NULL);
}

TEST(profile_survives_the_lack_of_memory)
{
    for (unsigned n = 1;; n++) {
        struct px_profile *p = NULL;
        struct px_err e = {0};

        px_test_fail_alloc(n);
        int r = px_profile_parse(sample, strlen(sample), "p.json", &p, &e);
        bool failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r == 0 || (p == NULL && e.code == PX_E_MEMORY));
        px_profile_free(p);
        if (!failed)
            break;
        ASSERT_EQ(r, -1);
    }
}

/* ---- the kernel ---- */

struct end {
    long value;                 /* the call's return value, if it returned */
    int signal;                 /* the signal that killed it, or 0 */
};

/* The floor and the profile are loaded in a child, which then makes one call. */
static struct end attempt(const struct px_profile *p, long nr, long a, long b, long c)
{
    const struct rlimit no_core = {0};
    struct end end = {.signal = -1};
    int ends[2], status = 0;
    uint16_t floor_len = 0, len = 0;
    const struct sock_filter *floor = px_seccomp_program(PX_FILTER_FLOOR_WORKSPACE, &floor_len);
    const struct sock_filter *program = px_profile_program(p, &len);

    ASSERT_OK(px_pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &no_core);
        long value = -10000;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && px_seccomp_load(floor, floor_len) == 0 &&
            px_seccomp_load(program, len) == 0) {
            value = syscall(nr, a, b, c);
            value = value < 0 ? -errno : value;
        }
        _exit(write(ends[1], &value, sizeof value) == sizeof value ? 0 : 1);
    }
    (void)close(ends[1]);
    ASSERT(child > 0 && waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status))
        end.signal = WTERMSIG(status);
    else if (read(ends[0], &end.value, sizeof end.value) == sizeof end.value)
        end.signal = 0;
    (void)close(ends[0]);
    return end;
}

static void check_attempt(const struct px_profile *p, long nr, long a, long b, long c, long expected)
{
    struct end end = attempt(p, nr, a, b, c);

    ASSERT_EQ(end.signal, 0);
    ASSERT_EQ(end.value, expected);
}

TEST(profile_kernel_takes_the_stricter_of_profile_and_floor)
{
    struct px_profile *all = parsed("{'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': ["
                                    "{'names': ['getppid'], 'action': 'SCMP_ACT_ERRNO', 'errnoRet': 11},"
                                    "{'names': ['getpgrp'], 'action': 'SCMP_ACT_KILL_PROCESS'},"
                                    "{'names': ['lseek'], 'action': 'SCMP_ACT_ERRNO', 'errnoRet': 12,"
                                    " 'args': [{'index': 1, 'value': 4294967296, 'op': 'SCMP_CMP_GE'}]}]}");

    check_attempt(all, SYS_getuid, 0, 0, 0, (long)getuid());
    check_attempt(all, SYS_getppid, 0, 0, 0, -11);
    check_attempt(all, SYS_lseek, -1, 0x100000000, 0, -12);
    check_attempt(all, SYS_lseek, -1, 0xffffffff, 0, -EBADF);
    check_attempt(all, SYS_unshare, CLONE_NEWUSER, 0, 0, -EPERM);
    check_attempt(all, SYS_socket, AF_VSOCK, SOCK_STREAM, 0, -EAFNOSUPPORT);
    check_attempt(all, SYS_ioctl, -1, TIOCSTI, 0, -EPERM);
    check_attempt(all, SYS_chmod, (long)"/proc/none", 04755, 0, -EPERM);
    check_attempt(all, SYS_io_uring_setup, 1, 0, 0, -EPERM);
    check_attempt(all, SYS_openat2, AT_FDCWD, 0, 0, -ENOSYS);
    check_attempt(all, 0x40000000 | SYS_getpid, 0, 0, 0, -ENOSYS);
    ASSERT_EQ(attempt(all, SYS_getpgrp, 0, 0, 0).signal, SIGSYS);
    px_profile_free(all);
}

TEST(profile_kernel_loads_long_programs)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 20);

    profile_of_values(&text, 600);
    struct px_profile *p = parsed_as_is(px_buf_text(&text));
    uint16_t len = 0;
    (void)px_profile_program(p, &len);
    ASSERT(len > 2500);
    check_attempt(p, SYS_getuid, 0, 0, 0, -EPERM);
    check_attempt(p, SYS_finit_module, -1, 0, 0, -EPERM);       /* the last of the names */
    px_profile_free(p);
}
