/* base/test_field.c - one table, all its uses. */
#include "base/field.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "harness/test.h"

struct request {
    char *name;
    uint64_t memory_bytes_max;
    uint64_t timeout_msec;
    uint64_t pids_max;
    uint64_t cpus_milli;
    bool tty;
    int network;
    char *overlay;
    bool secret;
};

static const char *const networks[] = {"none", "loopback", "outbound", NULL};

static const struct px_field fields[] = {
    // clang-format off
    { "name",    0,   &px_field_text,   offsetof(struct request, name),             0,                   "NAME", "call the box NAME", NULL },
    { "memory",  'm', &px_field_bytes,  offsetof(struct request, memory_bytes_max), 0,                   "SIZE", "end the run above this much memory", NULL },
    { "timeout", 0,   &px_field_msec,   offsetof(struct request, timeout_msec),     0,                   "TIME", "end the run after this long", NULL },
    { "pids",    0,   &px_field_count,  offsetof(struct request, pids_max),         0,                   "N",    "at most N processes", NULL },
    { "cpus",    0,   &px_field_milli,  offsetof(struct request, cpus_milli),       0,                   "N",    "at most N processors", NULL },
    { "tty",     't', &px_field_bool,   offsetof(struct request, tty),              PX_FIELD_FLAG,       NULL,   "run on a terminal", NULL },
    { "network", 0,   &px_field_choice, offsetof(struct request, network),          0,                   "MODE", "what the box may reach", networks },
    { "overlay", 0,   &px_field_text,   offsetof(struct request, overlay),          PX_FIELD_OPTIONAL,   "DIR",  "keep changes in DIR", NULL },
    { "secret",  's', &px_field_bool,   offsetof(struct request, secret),           PX_FIELD_FLAG | PX_FIELD_HIDDEN, NULL, "not for everyone", NULL },
    { "future",  'f', NULL,             0,                                          PX_FIELD_ABSENT,     "X",    "one day", NULL },
    { NULL,      0,   NULL,             0,                                          0,                   NULL,   NULL, NULL },
    // clang-format on
};

static int set(struct request *r, const char *name, const char *text, struct px_err *e)
{
    const struct px_field *f = px_field_find(fields, name, strlen(name));

    ASSERT(f != NULL);
    return px_field_set(f, r, text, e);
}

TEST(find)
{
    ASSERT(px_field_find(fields, "memory", 6) == &fields[1]);
    ASSERT(px_field_find(fields, "memory=5", 6) == &fields[1]);
    ASSERT(px_field_find(fields, "mem", 3) == NULL);
    ASSERT(px_field_find(fields, "memoryx", 7) == NULL);
    ASSERT(px_field_find(fields, "", 0) == NULL);
}

TEST(every_type_parses)
{
    struct request r = {0};
    struct px_err e = {0};

    ASSERT_PX(set(&r, "name", "first", &e), e);
    ASSERT_PX(set(&r, "name", "second", &e), e);        /* the first is freed: a sanitizer sees it if not */
    ASSERT_PX(set(&r, "memory", "1.5g", &e), e);
    ASSERT_PX(set(&r, "timeout", "1m30s", &e), e);
    ASSERT_PX(set(&r, "pids", "64", &e), e);
    ASSERT_PX(set(&r, "cpus", "1.5", &e), e);
    ASSERT_PX(set(&r, "tty", NULL, &e), e);
    ASSERT_PX(set(&r, "network", "outbound", &e), e);
    ASSERT_PX(set(&r, "overlay", NULL, &e), e);
    ASSERT_STR(r.name, "second");
    ASSERT_EQ(r.memory_bytes_max, 1610612736);
    ASSERT_EQ(r.timeout_msec, 90000);
    ASSERT_EQ(r.pids_max, 64);
    ASSERT_EQ(r.cpus_milli, 1500);
    ASSERT(r.tty);
    ASSERT_EQ(r.network, 2);
    ASSERT_STR(r.overlay, "");
    px_field_done(fields, &r);
    ASSERT(r.name == NULL && r.overlay == NULL);
    px_field_done(fields, &r);
}

TEST(unlimited)
{
    static const char *const names[] = {"memory", "timeout", "pids", "cpus"};
    struct request r = {0};
    struct px_err e = {0};

    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        ASSERT_PX(set(&r, names[i], "unlimited", &e), e);
    ASSERT_EQ(r.memory_bytes_max, UINT64_MAX);
    ASSERT_EQ(r.timeout_msec, UINT64_MAX);
    ASSERT_EQ(r.pids_max, UINT64_MAX);
    ASSERT_EQ(r.cpus_milli, UINT64_MAX);
}

TEST(no_number_means_unlimited)
{
    struct request r = {.memory_bytes_max = 1, .timeout_msec = 1, .pids_max = 1, .cpus_milli = 1};
    struct px_err e = {0};

    ASSERT_EQ(set(&r, "memory", "18446744073709551615", &e), -1);
    ASSERT_EQ(set(&r, "timeout", "18446744073709551615ms", &e), -1);
    ASSERT_EQ(set(&r, "pids", "18446744073709551615", &e), -1);
    ASSERT_EQ(set(&r, "cpus", "18446744073709551.615", &e), -1);
    ASSERT_EQ(r.memory_bytes_max + r.timeout_msec + r.pids_max + r.cpus_milli, 4);
    ASSERT_PX(set(&r, "memory", "18446744073709551614", &e), e);
}

TEST(bool_words)
{
    static const char *const words[] = {"true", "yes", "1", "on", "false", "no", "0", "off"};
    static const char *const wrong[] = {"", "True", "TRUE", "y", "2", "true ", "enabled"};
    struct px_err e = {0};

    for (size_t i = 0; i < PX_COUNT_OF(words); i++) {
        struct request r = {.tty = i >= 4};

        ASSERT_PX(set(&r, "tty", words[i], &e), e);
        ASSERT_EQ(r.tty, i < 4);
    }
    for (size_t i = 0; i < PX_COUNT_OF(wrong); i++) {
        struct request r = {.tty = true};

        ASSERT_EQ(set(&r, "tty", wrong[i], &e), -1);
        ASSERT_EQ(e.code, PX_E_VALUE);
        ASSERT(r.tty);
    }
}

static bool same(const struct request *a, const struct request *b)
{
    return a->name == b->name && a->memory_bytes_max == b->memory_bytes_max && a->timeout_msec == b->timeout_msec &&
           a->pids_max == b->pids_max && a->cpus_milli == b->cpus_milli && a->tty == b->tty && a->network == b->network &&
           a->overlay == b->overlay && a->secret == b->secret;
}

static void check_refused(const char *name, const char *text, const char *what, const char *fix_part)
{
    struct request r = {.memory_bytes_max = 5, .timeout_msec = 5, .pids_max = 5, .cpus_milli = 5, .network = 1};
    struct request before = r;
    struct px_err e = {0};

    ASSERT_EQ(set(&r, name, text, &e), -1);
    ASSERT_STR(e.what, what);
    ASSERT(e.fix[0] != 0);
    if (!strstr(e.fix, fix_part))
        FAIL("the fix for %s is '%s'", name, e.fix);
    ASSERT(same(&r, &before));
    ASSERT_EQ(set(&r, name, text, NULL), -1);
}

TEST(refusals_say_what_is_allowed)
{
    check_refused("memory", "12q", "--memory: '12q' is not a size", "512m");
    check_refused("memory", "", "--memory: '' is not a size", "512m");
    check_refused("memory", "99999999t", "--memory: '99999999t' is too large", "512m");
    check_refused("timeout", "soon", "--timeout: 'soon' is not a time", "1m30s");
    check_refused("pids", "-1", "--pids: '-1' is not a count", "64");
    check_refused("cpus", "1.2345", "--cpus: '1.2345' is not a number", "1.5");
    check_refused("tty", "maybe", "--tty: 'maybe' is neither true nor false", "true");
    check_refused("network", "host", "--network: 'host' is not one of its words", "none, loopback, outbound.");
    check_refused("network", "", "--network: '' is not one of its words", "none, loopback, outbound.");
    check_refused("memory", "\x1b[2J\n", "--memory: '\\x1b[2J\\x0a' is not a size", "512m");
    check_refused("memory", NULL, "--memory needs a value", "--memory SIZE");
    check_refused("future", "x", "--future is not part of this build", "NEWS");
    check_refused("future", NULL, "--future is not part of this build", "NEWS");
}

TEST(text_without_memory)
{
    struct request r = {0};
    struct px_err e = {0};

    ASSERT_PX(set(&r, "name", "old", &e), e);
    px_test_fail_alloc(1);
    ASSERT_EQ(set(&r, "name", "new", &e), -1);
    ASSERT_EQ(e.code, PX_E_MEMORY);
    ASSERT_STR(r.name, "old");
    px_field_done(fields, &r);
}

TEST(print)
{
    px_auto_buf struct px_buf out = PX_BUF(1000);
    struct px_json j = {.out = &out};
    char name[] = "a\"b";
    struct request r = {.name = name, .memory_bytes_max = 1024, .timeout_msec = 1500, .pids_max = UINT64_MAX,
                        .cpus_milli = 2500, .tty = true, .network = 1};

    px_json_object(&j, NULL);
    px_field_print(fields, &r, &j);
    px_json_end(&j);
    ASSERT_EQ(out.err, 0);
    ASSERT_STR(px_buf_text(&out), "{\"name\":\"a\\\"b\",\"memory\":1024,\"timeout\":1.500,\"pids\":\"unlimited\",\"cpus\":2.500,"
                                  "\"tty\":true,\"network\":\"loopback\",\"overlay\":null,\"secret\":false}");
}

TEST(print_of_a_choice_out_of_range)
{
    for (int value = -1; value < 4; value += 4) {
        px_auto_buf struct px_buf out = PX_BUF(1000);
        struct px_json j = {.out = &out};
        struct request r = {.network = value};

        px_json_object(&j, NULL);
        px_field_print(fields, &r, &j);
        px_json_end(&j);
        ASSERT(strstr(px_buf_text(&out), "\"network\":null") != NULL);
    }
}
