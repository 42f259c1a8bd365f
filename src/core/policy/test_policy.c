/* policy/test_policy.c - every field's grammar, the presets' values, the bounds. */
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "harness/test.h"

enum { MIB = 1 << 20 };

static struct px_policy preset(const char *name)
{
    struct px_policy p;
    struct px_err e = {0};

    ASSERT_PX(px_policy_init(&p, name, &e), e);
    return p;
}

static void set(struct px_policy *p, const char *field, const char *value)
{
    struct px_err e = {0};

    if (px_policy_put(p, field, value, &e) < 0)
        FAIL("--%s '%s': PX%03d %s", field, value ? value : "(none)", e.code, e.what);
}

/* Refused with this code, in words that name the field, and without an error to fill as well. */
static void refuse(struct px_policy *p, const char *field, const char *value, int code)
{
    struct px_err e = {0};

    if (px_policy_put(p, field, value, &e) >= 0)
        FAIL("--%s '%s' is accepted", field, value ? value : "(none)");
    if (e.code != code)
        FAIL("--%s '%.80s' is PX%03d (%s), not PX%03d", field, value ? value : "(none)", e.code, e.what,
             code);
    if (!e.what[0] || (!e.why[0] && code != PX_E_VALUE && code != PX_E_USAGE) || !e.fix[0])
        FAIL("--%s '%.80s': what '%s', why '%s', fix '%s'", field, value ? value : "(none)", e.what, e.why,
             e.fix);
    ASSERT_EQ(px_policy_put(p, field, value, NULL), -1);
}

/* ---- presets: the rows of the decided table that this build has ---- */

static const struct px_tmpfs *tmpfs_at(const struct px_policy *p, const char *target)
{
    for (size_t i = 0; i < p->tmpfs.count; i++)
        if (px_equal(p->tmpfs.items[i].target, target))
            return &p->tmpfs.items[i];
    FAIL("preset %s has no tmpfs at %s", p->preset, target);
}

struct row {
    const char *name, *work_target;
    int net, limits;
    uint64_t memory, cpus, pids, cpu_time, timeout, output;
    uint64_t tmp_bytes; /* 0: any, but one there is */
    bool noexec;
};

static void check_preset(const struct row *row)
{
    struct px_policy p = preset(row->name);

    ASSERT_STR(p.preset, row->name);
    ASSERT_STR(p.base, "host");
    ASSERT(p.rootfs == NULL && p.work_dir == NULL && p.workdir == NULL);
    ASSERT_STR(p.work_target, row->work_target);
    ASSERT_STR(p.hostname, "sandbox");
    ASSERT_EQ(p.user.uid, 1000);
    ASSERT_EQ(p.user.gid, 1000);
    ASSERT_EQ(p.net, row->net);
    ASSERT_EQ(p.require, PX_TIER_FULL);
    ASSERT_EQ(p.limits, row->limits);
    ASSERT_EQ(p.memory_bytes, row->memory);
    ASSERT_EQ(p.cpus_milli, row->cpus);
    ASSERT_EQ(p.pids, row->pids);
    ASSERT_EQ(p.cpu_time_msec, row->cpu_time);
    ASSERT_EQ(p.timeout_msec, row->timeout);
    ASSERT_EQ(p.output_bytes, row->output);
    ASSERT_EQ(p.nofile, 4096);
    ASSERT_EQ(p.disk_bytes, 0);
    ASSERT_EQ(p.file_bytes, row->memory); /* no file can be larger than what it would be kept in */
    ASSERT_EQ(p.binds.count, 0);
    ASSERT(!p.tty && !p.interactive && !p.timings && !p.output_end && !p.pids_counted);
    if (row->tmp_bytes)
        ASSERT_EQ(tmpfs_at(&p, "/tmp")->bytes, row->tmp_bytes);
    ASSERT_EQ(tmpfs_at(&p, "/tmp")->noexec, row->noexec);
    ASSERT_EQ(tmpfs_at(&p, "/home/sandbox")->noexec, row->noexec);
    ASSERT(tmpfs_at(&p, "/dev/shm")->noexec);
    for (size_t i = 0; i < p.tmpfs.count; i++)
        ASSERT(p.tmpfs.items[i].bytes > 0 && p.tmpfs.items[i].bytes <= 1024u * MIB);
    px_policy_done(&p);
}

TEST(presets_have_the_decided_values)
{
    static const struct row rows[] = {
        {"default", "/workspace", PX_NET_NONE, PX_LIMITS_REQUIRE, 0, 0, 1024, 0, 0, 0, 64 * MIB, false},
        {"project", "/app", PX_NET_OUTBOUND, PX_LIMITS_REQUIRE, 0, 0, 4096, 0, 0, 0, 0, false},
        {"session", "/home/sandbox", PX_NET_LOOPBACK, PX_LIMITS_REQUIRE, 0, 0, 1024, 0, 10000, 0, 0, false},
        {"worker", "/workspace", PX_NET_NONE, PX_LIMITS_REQUIRE, 0, 0, 256, 0, 30000, 50 << 10, 64 * MIB,
         false},
        {"untrusted", "/workspace", PX_NET_NONE, PX_LIMITS_REQUIRE, 512u * MIB, 1000, 100, 0, 60000, MIB,
         64 * MIB, true},
        {"task", "/workspace", PX_NET_NONE, PX_LIMITS_TRY, 4096ull * MIB, 0, 256, 20000, 30000, MIB, 64 * MIB,
         false},
    };

    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        check_preset(&rows[i]);
}

TEST(untrusted_has_its_own_directories)
{
    struct px_policy p = preset("untrusted");

    ASSERT_EQ(p.tmpfs.count, 5);
    ASSERT_EQ(tmpfs_at(&p, "/home/sandbox")->bytes, 64 * MIB);
    ASSERT_EQ(tmpfs_at(&p, "/var/tmp")->bytes, 32 * MIB);
    ASSERT_EQ(tmpfs_at(&p, "/run")->bytes, 16 * MIB);
    for (size_t i = 0; i < p.tmpfs.count; i++)
        ASSERT(p.tmpfs.items[i].noexec); /* nothing that can be written can be executed */
    px_policy_done(&p);
}

TEST(environment_of_the_presets)
{
    static const char *const names[] = {"default", "project", "session", "worker", "untrusted", "task"};

    for (size_t i = 0; i < PX_COUNT_OF(names); i++) {
        struct px_policy p = preset(names[i]);
        bool task = px_equal(names[i], "task");
        ASSERT_EQ(p.env.count, task);
        ASSERT_STR(px_policy_env(&p, "NO_PROXY"), task ? "*" : NULL);
        px_policy_done(&p);
    }
}

TEST(no_preset_is_the_default_one)
{
    struct px_policy p = preset(NULL);
    struct px_err e = {0};

    ASSERT_STR(p.preset, "default");
    px_policy_done(&p);
    px_policy_done(&p);
    ASSERT_EQ(px_policy_init(&p, "nonsense", &e), -1);
    ASSERT_EQ(e.code, PX_E_VALUE);
    ASSERT(strstr(e.fix, "untrusted") && strstr(e.fix, "default") && strstr(e.fix, "task"));
    ASSERT_EQ(px_policy_init(&p, "", NULL), -1);
    ASSERT_EQ(px_policy_init(&p, "Default", NULL), -1);
}

/* ---- the table ---- */

/* An allow-list asks for the network that it narrows, a published port for one to listen in; never against what was said. */
TEST(the_network_that_is_meant)
{
    struct px_err e = {0};
    struct px_policy p = preset(NULL);
    ASSERT_PX(px_policy_put(&p, "publish", "18080:80", &e), e);
    ASSERT_EQ(p.net, PX_NET_LOOPBACK);
    ASSERT_PX(px_policy_put(&p, "allow-net", "good.test", &e), e);
    ASSERT_EQ(p.net, PX_NET_OUTBOUND);
    ASSERT_PX(px_policy_check_network(&p, &e), e);
    ASSERT_PX(px_policy_put(&p, "net", "loopback", &e), e);
    ASSERT_PX(px_policy_put(&p, "allow-net", "other.test", &e), e);
    ASSERT_EQ(p.net, PX_NET_LOOPBACK);
    ASSERT_EQ(px_policy_check_network(&p, &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
    px_policy_done(&p);
}

/* What belongs to a network is said where that is made; and the name of a box is one. */
TEST(the_network_of_another_box)
{
    static const char *const contradict[][2] = {{"allow-net", "good.test"}, {"deny-net", "good.test"}, {"publish", "1:2"},
                                                {"dns", "192.0.2.1"}, {"host-port", "1"}, {"allow-host-loopback", "true"}};
    struct px_err e = {0};
    for (size_t i = 0; i < PX_COUNT_OF(contradict); i++) {
        struct px_policy p = preset(NULL);
        ASSERT_PX(px_policy_put(&p, "net", "box:web", &e), e);
        ASSERT_EQ(p.net, PX_NET_BOX);
        ASSERT_PX(px_policy_check_network(&p, &e), e);
        ASSERT_PX(px_policy_put(&p, contradict[i][0], contradict[i][1], &e), e);
        ASSERT_EQ(px_policy_check_network(&p, &e), -1);
        ASSERT_EQ(e.code, PX_E_USAGE);
        ASSERT(strstr(e.what, contradict[i][0]) && strstr(e.what, "box:web"));
        px_policy_done(&p);
    }
    struct px_policy p = preset(NULL);
    static const char *const bad[] = {"box:",  "box:UPPER", "box:a/b", "box:../x",       "pid:",
                                      "pid:0", "pid:-1",    "pid:1x",  "pid:4294967296", "boxes"};
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++)
        refuse(&p, "net", bad[i], PX_E_VALUE);
    ASSERT_PX(px_policy_put(&p, "net", "pid:77", &e), e);
    ASSERT_STR(p.net_box, "pid:77");
    ASSERT_PX(px_policy_put(&p, "net", "none", &e), e);
    ASSERT(p.net == PX_NET_NONE && !p.net_box);
    px_policy_done(&p);
}

TEST(published_ports_are_read_strictly)
{
    static const char *const bad[] = {"", "80", ":80", "80:", "80:0", "65536:80", "a:80", "1.2.3:1:2", "::1:1:2", "[1.2.3.4]:1:2",
                                      "[::1:1:2", "1:2:3:4", "1:2/sctp", "1:2/", "-1:2", " 1:2"};
    struct px_publish p;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (px_policy_parse_publish(bad[i], &p) != -EINVAL)
            FAIL("'%s' is taken", bad[i]);
    ASSERT_EQ(px_policy_parse_publish("0:80", &p), 0);          /* one that is free */
    ASSERT(p.host == 0 && p.box == 80);
    ASSERT_EQ(px_policy_parse_publish("1:2/udp", &p), 0);
    ASSERT(p.udp && p.host == 1 && p.box == 2);
    ASSERT_EQ(px_policy_parse_publish("[::1]:18080:80/tcp", &p), 0);
    ASSERT(!p.udp && p.host == 18080 && p.box == 80 && !px_address_is_v4(&p.address));
    ASSERT_EQ(px_policy_parse_publish("1:2", &p), 0);
    ASSERT_EQ(px_address_get_v4(&p.address), 0x7f000001);
}

TEST(fields_of_the_design_that_are_not_built_are_refused)
{
    struct px_policy p = preset(NULL);
    int absent = 0;

    for (const struct px_field *f = px_policy_fields; f->name; f++)
        if (f->flags & PX_FIELD_ABSENT) {
            refuse(&p, f->name, "x", PX_E_NOT_BUILT);
            refuse(&p, f->name, NULL, PX_E_NOT_BUILT);
            absent++;
        }
    ASSERT(absent > 0);
    ASSERT_STR(p.base, "host"); /* they share the first member's offset, which must stay untouched */
    px_policy_done(&p);
}

TEST(names_and_letters_are_unique)
{
    for (const struct px_field *f = px_policy_fields; f->name; f++) {
        ASSERT(f->help && f->help[0]);
        ASSERT(f->flags & PX_FIELD_FLAG ? !f->arg : f->arg != NULL);
        for (const struct px_field *g = f + 1; g->name; g++)
            if (px_equal(f->name, g->name) || (f->letter && f->letter == g->letter))
                FAIL("--%s and --%s are the same", f->name, g->name);
    }
}

TEST(unknown_fields)
{
    struct px_policy p = preset(NULL);

    refuse(&p, "memori", "1m", PX_E_USAGE);
    refuse(&p, "", "1m", PX_E_USAGE);
    refuse(&p, "memory ", "1m", PX_E_USAGE);
    refuse(&p, "\x1b[2J", "1m", PX_E_USAGE);
    px_policy_done(&p);
}

TEST(every_field_needs_its_value)
{
    struct px_policy p = preset(NULL);

    for (const struct px_field *f = px_policy_fields; f->name; f++)
        if (!(f->flags & (PX_FIELD_ABSENT | PX_FIELD_FLAG | PX_FIELD_OPTIONAL)))
            refuse(&p, f->name, NULL, PX_E_VALUE);
        else if (f->flags & PX_FIELD_FLAG && !(f->flags & PX_FIELD_ABSENT))
            set(&p, f->name, NULL);
    ASSERT(p.tty && p.interactive && p.timings && p.output_end);
    px_policy_done(&p);
}

/* ---- numbers ---- */

TEST(limits)
{
    struct px_policy p = preset("untrusted");

    set(&p, "memory", "1.5g");
    set(&p, "cpus", "0.5");
    set(&p, "cpu-time", "1m30s");
    set(&p, "pids", "7");
    set(&p, "disk", "10m");
    set(&p, "file-size", "4k");
    set(&p, "nofile", "64");
    set(&p, "timeout", "250ms");
    set(&p, "output-limit", "2KiB");
    ASSERT_EQ(p.memory_bytes, 1536ull * MIB);
    ASSERT_EQ(p.cpus_milli, 500);
    ASSERT_EQ(p.cpu_time_msec, 90000);
    ASSERT_EQ(p.pids, 7);
    ASSERT_EQ(p.disk_bytes, 10 * MIB);
    ASSERT_EQ(p.file_bytes, 4096);
    ASSERT_EQ(p.nofile, 64);
    ASSERT_EQ(p.timeout_msec, 250);
    ASSERT_EQ(p.output_bytes, 2048);
    px_policy_done(&p);
}

static const char *const number_fields[] = {"memory",    "cpus",   "cpu-time", "pids",        "disk",
                                            "file-size", "nofile", "timeout",  "output-limit"};

TEST(numbers_that_are_none)
{
    static const char *const wrong[] = {"",    " ",          "-1",       "+1",
                                        "1 ",  " 1",         "1x",       "0x10",
                                        "1e3", "unlimited ", "infinite", "99999999999999999999999"};
    struct px_policy p = preset(NULL);

    for (size_t i = 0; i < PX_COUNT_OF(number_fields); i++)
        for (size_t k = 0; k < PX_COUNT_OF(wrong); k++)
            refuse(&p, number_fields[i], wrong[k], PX_E_VALUE);
    px_policy_done(&p);
}

TEST(unlimited_is_spelled_out)
{
    struct px_policy p = preset("untrusted");

    for (size_t i = 0; i < PX_COUNT_OF(number_fields); i++)
        set(&p, number_fields[i], "unlimited");
    ASSERT_EQ(p.memory_bytes, PX_UNLIMITED);
    ASSERT_EQ(p.timeout_msec, PX_UNLIMITED);
    ASSERT_EQ(p.pids, PX_UNLIMITED);
    for (size_t i = 0; i < PX_COUNT_OF(number_fields); i++)
        refuse(&p, number_fields[i], "0", PX_E_VALUE); /* never by accident */
    px_policy_done(&p);
}

/* What is refused changes nothing: a caller who goes on all the same must not have lost a limit. */
TEST(a_refused_number_leaves_the_old_one)
{
    struct px_policy p = preset("untrusted");

    refuse(&p, "memory", "0", PX_E_VALUE);
    refuse(&p, "pids", "0", PX_E_VALUE);
    refuse(&p, "timeout", "0ms", PX_E_VALUE);
    refuse(&p, "cpus", "x", PX_E_VALUE);
    ASSERT_EQ(p.memory_bytes, 512ull * MIB);
    ASSERT_EQ(p.pids, 100);
    ASSERT_EQ(p.timeout_msec, 60000);
    ASSERT_EQ(p.cpus_milli, 1000);
    px_policy_done(&p);
}

TEST(the_least_of_a_limit)
{
    static const struct {
        const char *field, *value, *fix;
    } rows[] = {
        {"memory", "64", "Did you mean 64m? A number without a letter is bytes."},
        {"memory", "256k", "Did you mean 256m?"},
        {"memory", "0.5m", "Write 4m or more."},
        {"memory", "4194303", "Write 4m or more."},
        {"cpus", "0.009", "Write 0.01 or more."},
    };
    struct px_policy p = preset("untrusted");
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_err e = {0};
        ASSERT(px_policy_put(&p, rows[i].field, rows[i].value, &e) < 0);
        ASSERT_EQ(e.code, PX_E_VALUE);
        ASSERT_STR(e.fix, rows[i].fix);
    }
    ASSERT_EQ(p.memory_bytes, 512ull * MIB);
    ASSERT_EQ(p.cpus_milli, 1000);
    set(&p, "memory", "4m");
    set(&p, "cpus", "0.01");
    px_policy_done(&p);
}

TEST(words)
{
    struct px_policy p = preset(NULL);

    set(&p, "net", "host");
    ASSERT_EQ(p.net, PX_NET_HOST);
    set(&p, "net", "none");
    ASSERT_EQ(p.net, PX_NET_NONE);
    set(&p, "require", "landlock");
    ASSERT_EQ(p.require, PX_TIER_LANDLOCK);
    set(&p, "limits", "try");
    ASSERT_EQ(p.limits, PX_LIMITS_TRY);
    refuse(&p, "net", "bridge", PX_E_VALUE);
    refuse(&p, "net", "", PX_E_VALUE);
    refuse(&p, "net", "None", PX_E_VALUE);
    refuse(&p, "require", "none", PX_E_VALUE);
    refuse(&p, "limits", "ignore", PX_E_VALUE);
    refuse(&p, "tty", "maybe", PX_E_VALUE);
    ASSERT_EQ(p.net, PX_NET_NONE);
    px_policy_done(&p);
}

/* ---- binds ---- */

static void check_bind(const char *text, const char *source, const char *target, bool writable)
{
    struct px_policy p = preset(NULL);

    set(&p, "bind", text);
    ASSERT_EQ(p.binds.count, 1);
    ASSERT_STR(p.binds.items[0].source, source);
    ASSERT_STR(p.binds.items[0].target, target);
    ASSERT_EQ(p.binds.items[0].writable, writable);
    px_policy_done(&p);
}

TEST(binds)
{
    check_bind("/a", "/a", "/a", true);
    check_bind("/a:ro", "/a", "/a", false);
    check_bind("/a:rw", "/a", "/a", true);
    check_bind("/a:/b", "/a", "/b", true);
    check_bind("/a:/b:ro", "/a", "/b", false);
    check_bind("./a:/b", "./a", "/b", true);
    check_bind("a b:/b c:ro", "a b", "/b c", false);
    check_bind("/a:/x//y/./z/", "/a", "/x/y/z", true);
    check_bind("/a:/b:c", "/a", "/b:c", true);
    check_bind("/a:/ro", "/a", "/ro", true);
}

TEST(binds_that_are_none)
{
    static const char *const wrong[] = {"",       ":",   ":/b",  ":/b:ro", "a",          "./a",
                                        "a:ro",   "/a:", "/a:b", "/a:/",   "/a:/b/../c", "/a:..",
                                        "/a::ro", "/",   "/:ro", "/a:/..", "../x"};
    struct px_policy p = preset(NULL);

    for (size_t i = 0; i < PX_COUNT_OF(wrong); i++)
        refuse(&p, "bind", wrong[i], PX_E_VALUE);
    ASSERT_EQ(p.binds.count, 0);
    px_policy_done(&p);
}

TEST(binds_add_up_to_their_bound)
{
    struct px_policy p = preset(NULL);
    char text[64];

    for (int i = 0; i < PX_LIST_MAX; i++) {
        (void)snprintf(text, sizeof text, "/s%d:/t%d", i, i);
        set(&p, "bind", text);
    }
    ASSERT_EQ(p.binds.count, PX_LIST_MAX);
    refuse(&p, "bind", "/one:/too-many", PX_E_LIMIT);
    ASSERT_EQ(p.binds.count, PX_LIST_MAX);
    ASSERT_STR(p.binds.items[0].target, "/t0");
    ASSERT_STR(p.binds.items[PX_LIST_MAX - 1].source, "/s255");
    px_policy_done(&p);
}

/* ---- tmpfs ---- */

static void check_tmpfs(const char *text, const char *target, uint64_t bytes, bool noexec)
{
    struct px_policy p = preset(NULL);
    size_t before = p.tmpfs.count;

    set(&p, "tmpfs", text);
    ASSERT_EQ(p.tmpfs.count, before + 1);
    ASSERT_STR(p.tmpfs.items[before].target, target);
    ASSERT_EQ(p.tmpfs.items[before].bytes, bytes);
    ASSERT_EQ(p.tmpfs.items[before].noexec, noexec);
    px_policy_done(&p);
}

TEST(tmpfs)
{
    check_tmpfs("/x", "/x", 64 * MIB, false);
    check_tmpfs("/x:size=1m", "/x", MIB, false);
    check_tmpfs("/x:size=1m,noexec", "/x", MIB, true);
    check_tmpfs("/x:noexec", "/x", 64 * MIB, true);
    check_tmpfs("/x:noexec,exec", "/x", 64 * MIB, false);
    check_tmpfs("/x:size=1m,size=2m", "/x", 2 * MIB, false);
    check_tmpfs("/x//y/", "/x/y", 64 * MIB, false);
}

TEST(tmpfs_that_are_none)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "/",
                                        "/x/..",
                                        "/x:size=",
                                        "/x:size=0",
                                        "/x:size=-1",
                                        "/x:size=unlimited",
                                        "/x:mode=777",
                                        "/x:noexec;size=1m",
                                        "/x:size=1m noexec",
                                        ":size=1m",
                                        "/x:,",
                                        "/x:size=9223372036854775808",
                                        "/x:size=9223372036854775809",
                                        "/x:size=99999999t"};
    struct px_policy p = preset(NULL);
    size_t before = p.tmpfs.count;

    for (size_t i = 0; i < PX_COUNT_OF(wrong); i++)
        refuse(&p, "tmpfs", wrong[i], PX_E_VALUE);
    ASSERT_EQ(p.tmpfs.count, before);
    px_policy_done(&p);
}

TEST(a_second_tmpfs_at_a_place_replaces_the_first)
{
    struct px_policy p = preset("untrusted");
    size_t before = p.tmpfs.count;

    set(&p, "tmpfs", "/tmp:size=5m");
    ASSERT_EQ(p.tmpfs.count, before);
    ASSERT_EQ(tmpfs_at(&p, "/tmp")->bytes, 5 * MIB);
    ASSERT(!tmpfs_at(&p, "/tmp")->noexec);
    px_policy_done(&p);
}

TEST(tmpfs_add_up_to_their_bound)
{
    struct px_policy p = preset(NULL);
    char text[64];

    for (int i = (int)p.tmpfs.count; i < PX_LIST_MAX; i++) {
        (void)snprintf(text, sizeof text, "/t%d", i);
        set(&p, "tmpfs", text);
    }
    refuse(&p, "tmpfs", "/too-many", PX_E_LIMIT);
    set(&p, "tmpfs", "/t100:size=1m"); /* replacing needs no room */
    ASSERT_EQ(p.tmpfs.count, PX_LIST_MAX);
    px_policy_done(&p);
}

/* ---- variables ---- */

TEST(variables)
{
    struct px_policy p = preset(NULL);

    ASSERT_EQ(setenv("PX_TEST_HERE", "va=lue", 1), 0);
    ASSERT_EQ(unsetenv("PX_TEST_NOT_HERE"), 0);
    set(&p, "env", "A=1");
    set(&p, "env", "EMPTY=");
    set(&p, "env", "B=x=y z\n");
    set(&p, "env", "A=2");
    set(&p, "env", "PX_TEST_HERE");
    set(&p, "env", "PX_TEST_NOT_HERE"); /* left out, as other tools do */
    ASSERT_EQ(p.env.count, 4);
    ASSERT_STR(px_policy_env(&p, "A"), "2");
    ASSERT_STR(px_policy_env(&p, "EMPTY"), "");
    ASSERT_STR(px_policy_env(&p, "B"), "x=y z\n");
    ASSERT_STR(px_policy_env(&p, "PX_TEST_HERE"), "va=lue");
    ASSERT_STR(px_policy_env(&p, "PX_TEST_NOT_HERE"), NULL);
    ASSERT_STR(px_policy_env(&p, "EMPT"), NULL);
    ASSERT_STR(px_policy_env(&p, "A=2"), NULL);
    refuse(&p, "env", "", PX_E_ENVIRONMENT);
    refuse(&p, "env", "=", PX_E_ENVIRONMENT);
    refuse(&p, "env", "=x", PX_E_ENVIRONMENT);
    ASSERT_EQ(p.env.count, 4);
    px_policy_done(&p);
}

TEST(variables_add_up_to_their_bound)
{
    struct px_policy p = preset(NULL);
    char text[64];

    for (int i = 0; i < PX_ENV_MAX; i++) {
        (void)snprintf(text, sizeof text, "V%d=%d", i, i);
        set(&p, "env", text);
    }
    refuse(&p, "env", "ONE=more", PX_E_LIMIT);
    set(&p, "env", "V7=seven");
    ASSERT_EQ(p.env.count, PX_ENV_MAX);
    ASSERT_STR(px_policy_env(&p, "V7"), "seven");
    ASSERT_STR(px_policy_env(&p, "V4095"), "4095");
    px_policy_done(&p);
}

static const char *make_file(const void *data, size_t size)
{
    static char path[300];
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int fd = openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ASSERT(fd >= 0);
    ASSERT_OK(px_write_full(fd, data, size));
    (void)snprintf(path, sizeof path, "%s/file", px_test_dir_path());
    return path;
}

TEST(variables_from_a_file)
{
    static const char text[] = "# a comment\nA=1\n\nB=two words \r\nA=3\n#C=4\nPX_TEST_HERE\n D=5\n \t\r\n  # E=1\nF= x = y\nLAST=6";
    struct px_policy p = preset(NULL);

    ASSERT_EQ(setenv("PX_TEST_HERE", "here", 1), 0);
    set(&p, "env", "KEPT=1");
    set(&p, "env-file", make_file(text, sizeof text - 1));
    ASSERT_STR(px_policy_env(&p, "KEPT"), "1");
    ASSERT_STR(px_policy_env(&p, "A"), "3");
    ASSERT_STR(px_policy_env(&p, "B"), "two words ");
    ASSERT_STR(px_policy_env(&p, "C"), NULL);
    ASSERT_STR(px_policy_env(&p, "PX_TEST_HERE"), "here");
    ASSERT_STR(px_policy_env(&p, "D"), "5"); /* blanks before a name do not count */
    ASSERT_STR(px_policy_env(&p, "F"), " x = y");
    ASSERT_STR(px_policy_env(&p, "LAST"), "6");
    ASSERT_EQ(p.env.count, 7);
    px_policy_done(&p);
}

TEST(files_of_variables_that_are_none)
{
    struct px_policy p = preset(NULL);

    refuse(&p, "env-file", "/no/such/file", PX_E_IO);
    refuse(&p, "env-file", "/", PX_E_IO);
    refuse(&p, "env-file", "", PX_E_IO);
    refuse(&p, "env-file", make_file("A=1\0B=2\n", 8), PX_E_ENVIRONMENT);
    refuse(&p, "env-file", make_file("A=1\n=2\n", 7), PX_E_ENVIRONMENT);
    static const char *const blanks[] = {"A=1\nexport B=2\n", "A=1\nB = 2\n", "A=1\n\tB\t=2\n", "A=1\nB C", "A=1\n  =2"};
    for (size_t i = 0; i < PX_COUNT_OF(blanks); i++)
        refuse(&p, "env-file", make_file(blanks[i], strlen(blanks[i])), PX_E_ENVIRONMENT);
    ASSERT_EQ(p.env.count, 0); /* a file is taken whole or not at all */
    px_policy_done(&p);
}

TEST(a_file_of_variables_is_bounded)
{
    struct px_policy p = preset(NULL);
    size_t size = 2 << 20;
    px_auto_free char *text = malloc(size);

    ASSERT(text != NULL);
    memset(text, 'A', size);
    refuse(&p, "env-file", make_file(text, size), PX_E_IO);
    refuse(&p, "env-file", "/dev/zero", PX_E_IO); /* without an end */
    px_policy_done(&p);
}

/* ---- the rest ---- */

TEST(users)
{
    static const char *const wrong[] = {"",
                                        "0",
                                        "0:1",
                                        "1:0",
                                        "root",
                                        "1:",
                                        ":1",
                                        "1:2:3",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "-1",
                                        "65534",
                                        "1:65534",
                                        "4294967295",
                                        "4294967297",
                                        "99999999999999999999",
                                        "1:x",
                                        "0x1",
                                        "11111111111111111111111111111111111111111111111111"};
    struct px_policy p = preset(NULL);

    set(&p, "user", "5");
    ASSERT_EQ(p.user.uid, 5);
    ASSERT_EQ(p.user.gid, 5);
    set(&p, "user", "65533:1");
    ASSERT_EQ(p.user.uid, 65533);
    ASSERT_EQ(p.user.gid, 1);
    for (size_t i = 0; i < PX_COUNT_OF(wrong); i++)
        refuse(&p, "user", wrong[i], PX_E_USER);
    ASSERT_EQ(p.user.uid, 65533);
    px_policy_done(&p);
}

TEST(host_names)
{
    char name[65] = {0};
    struct px_policy p = preset(NULL);

    memset(name, 'a', 63);
    set(&p, "hostname", name);
    ASSERT_STR(p.hostname, name);
    set(&p, "hostname", "a-b.c1");
    name[63] = 'a';
    refuse(&p, "hostname", name, PX_E_VALUE);
    refuse(&p, "hostname", "", PX_E_VALUE);
    refuse(&p, "hostname", "-a", PX_E_VALUE);
    refuse(&p, "hostname", ".a", PX_E_VALUE);
    refuse(&p, "hostname", "a b", PX_E_VALUE);
    refuse(&p, "hostname", "a\n127.0.0.1 evil", PX_E_VALUE); /* it becomes a line of /etc/hosts */
    refuse(&p, "hostname", "\xc3\xa4", PX_E_VALUE);
    ASSERT_STR(p.hostname, "a-b.c1");
    px_policy_done(&p);
}

TEST(paths_inside)
{
    struct px_policy p = preset(NULL);

    set(&p, "workdir", "/a//b/./c/");
    ASSERT_STR(p.workdir, "/a/b/c");
    set(&p, "workdir", "/");
    ASSERT_STR(p.workdir, "/");
    set(&p, "work-target", "/x/");
    ASSERT_STR(p.work_target, "/x");
    refuse(&p, "workdir", "a", PX_E_VALUE);
    refuse(&p, "workdir", "", PX_E_VALUE);
    refuse(&p, "workdir", "/a/../b", PX_E_VALUE);
    refuse(&p, "work-target", "../b", PX_E_VALUE);
    refuse(&p, "work-target", "/", PX_E_VALUE); /* it would cover the whole box */
    ASSERT_STR(p.workdir, "/");
    px_policy_done(&p);
}

TEST(the_last_one_wins)
{
    struct px_policy p = preset(NULL);

    set(&p, "base", "/one");
    set(&p, "base", "host");
    set(&p, "rootfs", "/one");
    set(&p, "rootfs", "/two");
    set(&p, "memory", "8m");
    set(&p, "memory", "16m");
    ASSERT_STR(p.base, "host");
    ASSERT_STR(p.rootfs, "/two");
    ASSERT_EQ(p.memory_bytes, 16 * MIB);
    px_policy_done(&p);
}

TEST(huge_texts)
{
    struct px_policy p = preset(NULL);
    size_t size = 1 << 20;
    px_auto_free char *text = malloc(size + 1);
    static const char *const fields[] = {"bind",     "tmpfs",  "workdir", "work-target", "user",
                                         "hostname", "memory", "net",     "tty"};

    ASSERT(text != NULL);
    for (int k = 0; k < 3; k++) {
        memset(text, k == 0 ? '/' : k == 1 ? 'a' : ':', size);
        text[0] = '/';
        text[1] = 'a';
        text[size] = '\0';
        for (size_t i = 0; i < PX_COUNT_OF(fields); i++)
            if (!(k == 0 &&
                  strncmp(fields[i], "work", 4) == 0)) /* "/a////..." is only a long way to write /a */
                ASSERT_EQ(px_policy_put(&p, fields[i], text, NULL), -1);
    }
    ASSERT_EQ(p.binds.count, 0);
    px_policy_done(&p);
}

/* ---- as JSON ---- */

TEST(printed_as_it_was_set)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_json j = {.out = &out};
    struct px_policy p = preset("untrusted");

    set(&p, "bind", "/a:/b:ro");
    set(&p, "env", "A=\xff\"");
    set(&p, "user", "5:6");
    set(&p, "timeout", "unlimited");
    px_json_object(&j, NULL);
    px_field_print(px_policy_fields, &p, &j);
    px_json_end(&j);
    ASSERT_EQ(out.err, 0);
    const char *text = px_buf_text(&out);
    ASSERT(strstr(text, "\"bind\":[{\"source\":\"/a\",\"target\":\"/b\",\"mode\":\"ro\"}]") != NULL);
    ASSERT(strstr(text, "\"env\":[\"A=\xef\xbf\xbd\\\"\"]") != NULL);
    ASSERT(strstr(text, "\"user\":{\"uid\":5,\"gid\":6}") != NULL);
    ASSERT(strstr(text, "\"timeout\":\"unlimited\"") != NULL);
    ASSERT(strstr(text, "{\"target\":\"/run\",\"size\":16777216,\"noexec\":true}") != NULL);
    ASSERT(strstr(text, "env-file") == NULL);
    px_policy_done(&p);
}

/* ---- without memory ---- */

/* A policy with something of every kind; the number of calls that failed. */
static int build(struct px_policy *p, const char *file)
{
    static const char *const rows[][2] = {
        {"base", "/base"},    {"rootfs", "/root"}, {"work-dir", "/work"},   {"work-target", "/w"},
        {"bind", "/a:/b:ro"}, {"bind", "/c"},      {"tmpfs", "/x:size=1m"}, {"tmpfs", "/tmp"},
        {"workdir", "/w"},    {"env", "A=1"},      {"env", "A=2"},          {"env", "PX_TEST_HERE"},
        {"hostname", "name"}, {"user", "5"},       {"memory", "8m"},
    };
    int failed = 0;

    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        failed += px_policy_put(p, rows[i][0], rows[i][1], NULL) < 0;
    return failed + (px_policy_put(p, "env-file", file, NULL) < 0);
}

static void fail_each_allocation(const char *file)
{
    for (unsigned n = 1; n < 1000; n++) {
        struct px_policy p;
        struct px_err e = {0};
        px_test_fail_alloc(n);
        int r = px_policy_init(&p, "task", &e), failed = 0;
        if (r < 0) {
            ASSERT(px_test_alloc_failed());
            ASSERT(e.code == PX_E_MEMORY || e.code == PX_E_LIMIT);
        } else {
            failed = build(&p, file);
            px_policy_done(&p);
        }
        bool came = px_test_alloc_failed();
        px_test_fail_alloc(0);
        if (r >= 0 && failed != came)
            FAIL("allocation %u failed and %d fields say so", n, failed);
        if (!came)
            return;
    }
    FAIL("a thousand allocations and no end");
}

TEST(every_allocation_may_fail)
{
    const char *file = make_file("B=1\nC=2\n", 8);

    ASSERT_EQ(setenv("PX_TEST_HERE", "here", 1), 0);
    for (int i = 0; i < 64; i++)
        fail_each_allocation(
            file); /* until the allocator's own stores are full and nothing but a leak grows */
    size_t before = mallinfo2().uordblks;
    fail_each_allocation(file);
    ASSERT_EQ(mallinfo2().uordblks, before);
}

/* ---- what the rows say of their fields ---- */

static void check_flag(unsigned flag, const char *words)
{
    char found[1024] = " ";
    for (const struct px_field *f = px_policy_fields; f->name; f++)
        if (f->flags & flag)
            ASSERT(px_fmt(found + strlen(found), sizeof found - strlen(found), "%s ", f->name) >= 0);
    ASSERT_STR(found, words);
}

TEST(flags_of_the_fields)
{
    check_flag(PX_POLICY_PATH, " base rootfs work-dir bind env-file seccomp ");
    check_flag(PX_POLICY_DIR, " rootfs overlay changes ");
    check_flag(PX_POLICY_COMMAND, " workdir env env-file timeout output-limit output-end tty interactive detach ");
    check_flag(PX_POLICY_SENT, " env cpu-time pids file-size nofile timeout output-limit output-end tty interactive ");
    check_flag(PX_POLICY_PROJECT,
               " bind tmpfs workdir env env-file net allow-net deny-net allow-host-loopback host-port publish dns http-proxy memory "
               "cpus cpu-time pids disk file-size nofile timeout output-limit output-end limits tty interactive user hostname require "
               "seccomp apparmor timings ");
}

static void check_get(const struct px_policy *policy, const char *field, const char *value)
{
    struct px_err e = {0};
    char *text = NULL;
    ASSERT_PX(px_policy_get(policy, field, &text, &e), e);
    ASSERT_STR(text, value);
    free(text);
}

TEST(a_field_is_read_back)
{
    static const char *const rows[][2] = {{"net", "loopback"}, {"memory", "64m"}, {"timeout", "1500ms"}, {"tty", "true"},
                                          {"env", "A=\"1\""},  {"env", "B=2"}};
    struct px_policy *policy = NULL, *copy = NULL;
    struct px_err e = {0};
    char *text = NULL;
    ASSERT_PX(px_policy_new("default", &policy, &e), e);
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        ASSERT_PX(px_policy_set(policy, rows[i][0], rows[i][1], &e), e);
    ASSERT_PX(px_policy_copy(policy, &copy, &e), e);
    px_policy_free(policy);
    check_get(copy, "net", "\"loopback\"");
    check_get(copy, "memory", "67108864");
    check_get(copy, "timeout", "1.500");
    check_get(copy, "tty", "true");
    check_get(copy, "interactive", "false");
    check_get(copy, "env", "[\"A=\\\"1\\\"\",\"B=2\"]");
    check_get(copy, "env-file", "null");
    check_get(copy, "work-dir", "null");
    ASSERT_EQ(px_policy_get(copy, "device", &text, &e), -1);
    ASSERT_EQ(px_policy_get(copy, "no-such-field", &text, &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
    px_policy_free(copy);
}
