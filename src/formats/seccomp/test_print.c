/* The printed filter allows exactly what the program allows: it is read back by px, and compiled by libseccomp. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "seccomp/print.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "seccomp/profile.h"
#include "seccomp/sample.inc"
#include "seccomp/test_oracle.h"

static const enum px_filter filters[] = {
    PX_FILTER_DEFAULT, PX_FILTER_WORKSPACE, PX_FILTER_STRICT, PX_FILTER_STRICT_WORKSPACE,
    PX_FILTER_FLOOR, PX_FILTER_FLOOR_WORKSPACE,
};

/* Programs that answer for the same filter. */
struct views {
    enum px_filter filter;
    const struct px_profile *profile;   /* NULL: the filter alone */
    struct px_profile *again;           /* what was printed */
    struct oracle oracle;               /* the same by libseccomp */
};

static uint32_t answer(const struct px_profile *p, const struct seccomp_data *data)
{
    uint16_t len = 0;
    const struct sock_filter *code = px_profile_program(p, &len);
    struct px_bpf_outcome out = px_bpf_run(code, len, data);

    ASSERT(!out.broken);
    return out.action;
}

/* The kernel's result for both programs. */
static uint32_t effective(const struct views *v, const struct seccomp_data *data)
{
    uint16_t len = 0;
    const struct sock_filter *code = px_seccomp_program(v->filter, &len);
    uint32_t own = px_bpf_run(code, len, data).action;
    uint32_t users = v->profile ? answer(v->profile, data) : SECCOMP_RET_ALLOW;

    return oracle_rank(users) <= oracle_rank(own) ? users : own;
}

static void check_call(const struct views *v, const struct seccomp_data *data)
{
    uint32_t action = effective(v, data), again = answer(v->again, data);
    uint32_t theirs = px_bpf_run(v->oracle.code, v->oracle.length, data).action;
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, data->nr);
    bool known = name != NULL;          /* libseccomp may be older than our table */

    free(name);
    if (oracle_rank(action) != oracle_rank(again))
        FAIL("call %d(%llx, %llx, %llx): read back it is %x instead of %x", data->nr, data->args[0], data->args[1],
             data->args[2], again, action);
    if (!oracle_is_reliable(&v->oracle, data->nr))
        return;
    if (known ? oracle_rank(action) != oracle_rank(theirs) : oracle_rank(action) < oracle_rank(theirs))
        FAIL("call %d(%llx, %llx, %llx): libseccomp makes it %x instead of %x", data->nr, data->args[0], data->args[1],
             data->args[2], theirs, action);
}

static int print(enum px_filter filter, const struct px_profile *profile, struct px_buf *out, struct px_err *e)
{
    struct px_json json = {.out = out, .pretty = true};
    int r = px_profile_print(filter, profile, &json, NULL, e);

    ASSERT(r < 0 || (out->err == 0 && json.depth <= 0));
    return r;
}

static void check_numbers(struct views *v, int tries, uint64_t *state)
{
    struct seccomp_data data;

    for (int n = 0; n <= ORACLE_HIGHEST; n++)
        for (int i = 0; i < tries; i++) {
            data = oracle_call(&v->oracle, n, state);
            check_call(v, &data);
        }
}

/* False if the filter is too large to be printed, or what is printed too large to be read. */
static bool check_views(enum px_filter filter, const struct px_profile *profile, int tries, uint64_t *state)
{
    px_auto_buf struct px_buf text = PX_BUF(8 << 20);
    struct views v = {.filter = filter, .profile = profile};
    struct px_err e = {0};

    if (print(filter, profile, &text, &e) < 0) {
        ASSERT_EQ(e.code, PX_E_LIMIT);
        return false;
    }
    if (text.len > 1 << 20)
        return false;
    if (px_profile_parse(px_buf_text(&text), text.len, "printed", &v.again, &e) < 0) {
        ASSERT(strstr(e.what, "too many rules") != NULL);
        return false;
    }
    oracle_init(&v.oracle, px_buf_text(&text), false);
    check_numbers(&v, tries, state);
    px_profile_free(v.again);
    oracle_done(&v.oracle);
    return true;
}

TEST(print_our_own_filters)
{
    uint64_t state = 0x9e3779b97f4a7c15;

    for (size_t i = 0; i < PX_COUNT_OF(filters); i++)
        ASSERT(check_views(filters[i], NULL, 100, &state));
}

TEST(print_is_a_profile_without_warnings)
{
    for (size_t i = 0; i < PX_COUNT_OF(filters); i++) {
        px_auto_buf struct px_buf text = PX_BUF(1 << 20);
        struct px_profile *p = NULL;
        struct px_err e = {0};

        ASSERT_PX(print(filters[i], NULL, &text, &e), e);
        ASSERT_PX(px_profile_parse(px_buf_text(&text), text.len, "printed", &p, &e), e);
        ASSERT_EQ(px_profile_warnings(p), 0);
        px_profile_free(p);
    }
}

/* Plain refusals keep their numbers, as programs decide by them. */
TEST(print_keeps_the_numbers_of_plain_refusals)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 20);
    struct px_profile *p = NULL;
    struct px_err e = {0};
    struct seccomp_data data = {.arch = AUDIT_ARCH_X86_64};

    ASSERT_PX(print(PX_FILTER_STRICT_WORKSPACE, NULL, &text, &e), e);
    ASSERT_PX(px_profile_parse(px_buf_text(&text), text.len, "printed", &p, &e), e);
    for (data.nr = 0; data.nr <= ORACLE_HIGHEST; data.nr++) {
        uint16_t len = 0;
        const struct sock_filter *code = px_seccomp_program(PX_FILTER_STRICT_WORKSPACE, &len);
        struct px_bpf_outcome out = px_bpf_run(code, len, &data);
        if (!out.looked_at_arguments && !(data.nr > 335 && data.nr < 424))      /* those have no names */
            ASSERT_EQ(answer(p, &data), out.action);
    }
    px_profile_free(p);
}

TEST(print_a_profile_with_the_floor)
{
    uint64_t state = 0x2545f4914f6cdd1d;
    struct px_profile *p = NULL;
    struct px_err e = {0};

    ASSERT_PX(px_profile_parse(sample, strlen(sample), "sample", &p, &e), e);
    ASSERT(check_views(PX_FILTER_FLOOR, p, 100, &state));
    ASSERT(check_views(PX_FILTER_FLOOR_WORKSPACE, p, 100, &state));
    px_profile_free(p);
}

TEST_DEADLINE(print_random_profiles_with_the_floor, 120)
{
    uint64_t state = 0x853c49e6748fea9b;
    int printed = 0;

    for (int i = 0; i < 60; i++) {
        px_auto_buf struct px_buf text = PX_BUF(1 << 16);
        struct px_profile *p = NULL;
        struct px_err e = {0};

        oracle_profile(&text, 6, 2, &state);
        ASSERT_PX(px_profile_parse(px_buf_text(&text), text.len, "random", &p, &e), e);
        printed += check_views(PX_FILTER_FLOOR_WORKSPACE, p, 8, &state);
        px_profile_free(p);
    }
    if (printed < 20)           /* at least a third, or the test checks too little */
        FAIL("only %d were printed", printed);
}

TEST(print_survives_the_lack_of_memory)
{
    struct px_profile *p = NULL;
    struct px_err e = {0};

    ASSERT_PX(px_profile_parse(sample, strlen(sample), "sample", &p, &e), e);
    for (unsigned n = 1;; n += 1 + n / 8) {
        px_auto_buf struct px_buf text = PX_BUF(1 << 20);
        struct px_json json = {.out = &text};

        px_test_fail_alloc(n);
        int r = px_profile_print(PX_FILTER_FLOOR, p, &json, NULL, &e);
        bool failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r == 0 || e.code == PX_E_MEMORY);
        if (!failed)
            break;
        ASSERT(r < 0 || text.err == -ENOMEM);
    }
    px_profile_free(p);
}
