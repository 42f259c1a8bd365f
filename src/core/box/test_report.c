/* box/test_report.c - from events to the one result, and the result as JSON that any reader accepts. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "box/supervise.h"
#include "harness/test.h"

/* ---- a box that never ran ---- */

static struct px_box *new_box(enum px_end end)
{
    struct px_box *box = calloc(1, sizeof *box);

    ASSERT(box != NULL);
    box->plan = calloc(1, sizeof *box->plan);
    ASSERT(box->plan != NULL);
    box->cgroup = (struct px_cgroup)PX_CGROUP_NONE;
    box->end = end;
    box->have_report = end == PX_END_EXIT;
    box->start_nsec = 1000000000;
    box->end_nsec = 3500000000;
    (void)snprintf(box->id, sizeof box->id, "0123456789abcdef");
    for (int i = 0; i < PX_FLOW_COUNT; i++)
        px_headtail_init(&box->flow[i].kept, 100, 100);
    return box;
}

static void free_box(struct px_box *box)
{
    for (int i = 0; i < PX_FLOW_COUNT; i++)
        px_headtail_done(&box->flow[i].kept);
    px_buf_done(&box->out_text);
    px_buf_done(&box->err_text);
    free(box->plan);
    free(box);
}

static void say(struct px_box *box, int stream, const void *data, size_t len)
{
    ASSERT_OK(px_headtail_add(&box->flow[stream].kept, data, len));
    box->flow[stream].total += len;
}

static int exited(int code)
{
    return code << 8;
}

/* ---- how it ended ---- */

static void check_end(enum px_end end, int wait_status, enum px_status status, int exit_code, int signal)
{
    struct px_box *box = new_box(end);

    box->report.wait_status = wait_status;
    px_report_make(box);
    const struct px_result *r = &box->result;
    if (r->status != status || r->exit_code != exit_code || r->signal != signal)
        FAIL("end %d, wait status %d: %s, exit %d, signal %d", end, wait_status, px_status_name(r->status),
             r->exit_code, r->signal);
    ASSERT(r->reason && r->reason[0]);
    ASSERT_EQ(r->timed_out, status == PX_STATUS_TIMEOUT);
    ASSERT_EQ(r->wall_nsec, 2500000000);
    ASSERT_STR(r->id, "0123456789abcdef");
    ASSERT_STR(r->memory_source, "maxrss");
    free_box(box);
}

TEST(ends)
{
    check_end(PX_END_EXIT, exited(0), PX_STATUS_OK, 0, 0);
    check_end(PX_END_EXIT, exited(1), PX_STATUS_NONZERO, 1, 0);
    check_end(PX_END_EXIT, exited(255), PX_STATUS_NONZERO, 255, 0);
    check_end(PX_END_EXIT, exited(124), PX_STATUS_NONZERO, 124,
              0); /* the number says nothing about the cause */
    check_end(PX_END_EXIT, SIGSEGV, PX_STATUS_SIGNALLED, 128 + SIGSEGV, SIGSEGV);
    check_end(PX_END_EXIT, SIGSEGV | 0x80, PX_STATUS_SIGNALLED, 128 + SIGSEGV,
              SIGSEGV); /* with the core mark */
    check_end(PX_END_EXIT, SIGSYS, PX_STATUS_SIGNALLED, 128 + SIGSYS, SIGSYS);
    check_end(PX_END_TIMEOUT, 0, PX_STATUS_TIMEOUT, 124, SIGKILL);
    check_end(PX_END_KILLED, 0, PX_STATUS_SIGNALLED, 128 + SIGKILL, SIGKILL);
    check_end(PX_END_OUTPUT, 0, PX_STATUS_OUTPUT, 128 + SIGKILL, SIGKILL);
    check_end(PX_END_MEMORY, 0, PX_STATUS_MEMORY, 128 + SIGKILL, SIGKILL);
    check_end(PX_END_LOST, 0, PX_STATUS_INTERNAL, 128 + SIGKILL, SIGKILL);
}

TEST(status_names)
{
    static const char *const names[] = {"ok",     "nonzero", "signalled", "timeout", "memory",
                                        "output", "disk",    "denied",    "internal"};

    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        ASSERT_STR(px_status_name((enum px_status)i), names[i]);
    ASSERT_STR(px_status_name((enum px_status)99), "internal");
    ASSERT_STR(px_status_name((enum px_status) - 1), "internal");
}

static const struct px_limit_hit *find_hit(const struct px_result *r, const char *limit)
{
    for (size_t i = 0; i < r->limits_hit_count; i++)
        if (strcmp(r->limits_hit[i].limit, limit) == 0)
            return &r->limits_hit[i];
    return NULL;
}

TEST(limits_that_were_hit)
{
    struct px_box *box = new_box(PX_END_TIMEOUT);

    px_report_make(box);
    ASSERT(find_hit(&box->result, "timeout") != NULL);
    ASSERT_EQ(find_hit(&box->result, "timeout")->value, 2500);
    free_box(box);

    box = new_box(PX_END_EXIT);
    box->report.wait_status = exited(1);
    box->report.disk_full = 2;
    px_report_make(box);
    ASSERT_EQ(box->result.status, PX_STATUS_DISK);
    ASSERT(find_hit(&box->result, "tmpfs") != NULL);
    free_box(box);

    box = new_box(PX_END_EXIT);
    box->report.wait_status = exited(0); /* full, and the program coped: a success that tells of the limit */
    box->report.disk_full = 1;
    box->disk_bytes = 1000;
    px_report_make(box);
    ASSERT_EQ(box->result.status, PX_STATUS_OK);
    ASSERT(find_hit(&box->result, "disk") != NULL);
    free_box(box);

    box = new_box(PX_END_EXIT);
    box->report.wait_status = SIGXFSZ;
    box->file_bytes = 4096;
    px_report_make(box);
    ASSERT_EQ(find_hit(&box->result, "file-size")->value, 4096);
    free_box(box);

    box = new_box(PX_END_EXIT);
    box->report.wait_status = SIGXCPU;
    box->report.user_usec = 1500000;
    box->report.sys_usec = 600000;
    box->cpu_time_msec = 2000;
    px_report_make(box);
    ASSERT_EQ(find_hit(&box->result, "cpu-time")->value, 2100000);
    ASSERT_EQ(box->result.cpu_user_usec, 1500000);
    free_box(box);

    box = new_box(PX_END_OUTPUT);
    box->flow[2].limit = 10;
    box->flow[2].total = 11;
    px_report_make(box);
    ASSERT_EQ(find_hit(&box->result, "output-limit")->value, 11);
    ASSERT(strstr(find_hit(&box->result, "output-limit")->counter, "stderr") != NULL);
    free_box(box);
}

/* The kernel's count and px-init's: whichever saw more. */
TEST(usage_is_the_larger_of_two_accounts)
{
    struct px_box *box = new_box(PX_END_EXIT);

    box->usage =
        (struct rusage){.ru_utime = {1, 500000}, .ru_stime = {0, 1000}, .ru_maxrss = 1000, .ru_inblock = 2};
    box->report.user_usec = 10;
    box->report.sys_usec = 2000;
    box->report.maxrss_kib = 2000;
    box->report.write_blocks = 4;
    px_report_make(box);
    ASSERT_EQ(box->result.cpu_user_usec, 1500000);
    ASSERT_EQ(box->result.cpu_sys_usec, 2000);
    ASSERT_EQ(box->result.memory_peak_bytes, 2000 * 1024);
    ASSERT_EQ(box->result.io_read_bytes, 1024);
    ASSERT_EQ(box->result.io_write_bytes, 2048);
    free_box(box);
}

/* ---- output ---- */

TEST(kept_output)
{
    struct px_box *box = new_box(PX_END_EXIT);

    say(box, 1, "a\0b", 3);
    px_report_make(box);
    ASSERT_EQ(box->result.out.len, 3);
    ASSERT(memcmp(box->result.out.data, "a\0b", 4) == 0); /* and a NUL behind it */
    ASSERT_EQ(box->result.out_total, 3);
    ASSERT(!box->result.out_truncated && !box->result.err_truncated);
    ASSERT_EQ(box->result.err.len, 0);
    ASSERT_STR(box->result.err.data, "");
    free_box(box);
}

TEST(output_that_was_too_much)
{
    struct px_box *box = new_box(PX_END_EXIT);
    char text[1000];

    memset(text, 'x', sizeof text);
    text[0] = 'H';
    text[sizeof text - 1] = 'T';
    box->flow[1].limit = 100;
    say(box, 1, text, sizeof text);
    px_report_make(box);
    ASSERT_EQ(box->result.out.len, 200);
    ASSERT_EQ(box->result.out.data[0], 'H');
    ASSERT_EQ(box->result.out.data[199], 'T');
    ASSERT_EQ(box->result.out_total, 1000);
    ASSERT(box->result.out_truncated);
    free_box(box);
}

/* "Truncated" means that something is missing, neither more nor less. */
TEST(truncated_means_that_something_is_missing)
{
    char text[300];

    memset(text, 'x', sizeof text);
    for (size_t n = 0; n <= sizeof text; n += 50) {
        struct px_box *box = new_box(PX_END_EXIT);
        box->flow[1].limit = 100;
        say(box, 1, text, n);
        px_report_make(box);
        if (box->result.out_truncated != (box->result.out.len < box->result.out_total))
            FAIL("%zu of %zu bytes are kept, and truncated is %d", box->result.out.len, n,
                 box->result.out_truncated);
        free_box(box);
    }
}

/* ---- a reader of JSON that knows no mercy ---- */

struct reader {
    const char *at;
    const char *end;
    int depth;
};

static bool value(struct reader *r);

static bool word(struct reader *r, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
        return false;
    r->at += n;
    return true;
}

static void blanks(struct reader *r)
{
    while (r->at < r->end && strchr(" \t\n\r", *r->at) && *r->at)
        r->at++;
}

static bool escape(struct reader *r)
{
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    if (c != 'u')
        return c && strchr("\"\\/bfnrt", c);
    for (int i = 0; i < 4; i++)
        if (r->at == r->end || !strchr("0123456789abcdefABCDEF", *r->at) || !*r->at++)
            return false;
    return true;
}

static bool string(struct reader *r)
{
    if (!word(r, "\""))
        return false;
    while (r->at < r->end && *r->at != '"') {
        size_t n = px_utf8_length(r->at, (size_t)(r->end - r->at));
        if (n == 0 || (unsigned char)*r->at < 0x20)
            return false;
        r->at += n;
        if (n == 1 && r->at[-1] == '\\' && !escape(r))
            return false;
    }
    return word(r, "\"");
}

static size_t digits(struct reader *r)
{
    size_t n = 0;

    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        n++;
    return n;
}

static bool number(struct reader *r)
{
    (void)word(r, "-");
    const char *first = r->at;
    size_t n = digits(r);
    if (n == 0 || (n > 1 && *first == '0'))
        return false;
    if (word(r, ".") && digits(r) == 0)
        return false;
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
            r->at++;
        return digits(r) > 0;
    }
    return true;
}

static bool members(struct reader *r, char close, bool named)
{
    const char closing[2] = {close, '\0'};

    blanks(r);
    if (word(r, closing))
        return true;
    do {
        blanks(r);
        if (named) {
            if (!string(r))
                return false;
            blanks(r);
            if (!word(r, ":"))
                return false;
        }
        if (!value(r))
            return false;
        blanks(r);
    } while (word(r, ","));
    return word(r, closing);
}

static bool value(struct reader *r)
{
    blanks(r);
    if (r->at == r->end || r->depth > 100)
        return false;
    r->depth++;
    bool ok = *r->at == '"'   ? string(r)
              : *r->at == '{' ? word(r, "{") && members(r, '}', true)
              : *r->at == '[' ? word(r, "[") && members(r, ']', false)
                              : word(r, "true") || word(r, "false") || word(r, "null") || number(r);
    r->depth--;
    return ok;
}

static bool is_json(const char *text)
{
    struct reader r = {.at = text, .end = text + strlen(text)};

    if (!value(&r))
        return false;
    blanks(&r);
    return r.at == r.end;
}

TEST(the_reader_itself)
{
    static const char *const good[] = {"{}", "[]", " [1, -2.5, 1e9, 0.001] ",
                                       "{\"a\":[null,true,{\"b\":\"\\u00ff\\n\"}]}", "\"\xc3\xa4\""};
    static const char *const bad[] = {"",      "{",   "[1,]",      "{\"a\"}",          "{a:1}",
                                      "01",    "1.",  "\"\n\"",    "\"\xff\"",         "\"\\x\"",
                                      "[1] 2", "nul", "\"\\u12\"", "\"\xed\xa0\x80\"", "{\"a\":1,}",
                                      "'a'"};

    for (size_t i = 0; i < PX_COUNT_OF(good); i++)
        if (!is_json(good[i]))
            FAIL("'%s' is refused", good[i]);
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++)
        if (is_json(bad[i]))
            FAIL("'%s' is accepted", bad[i]);
}

static char *print(struct px_box *box, char *const argv[], bool exact)
{
    struct px_err e = {0};
    char *json = NULL;

    ASSERT_PX(px_report_json(&box->result, argv, exact, &json, &e), e);
    if (!is_json(json))
        FAIL("this is no JSON: %s", json);
    size_t n = strlen(json);
    ASSERT(n > 1 && json[n - 1] == '\n' && strchr(json, '\n') == json + n - 1); /* one object, one line */
    return json;
}

TEST(json_of_any_bytes)
{
    char all[256],
        *argv[] = {(char *)"prog", (char *)"\xff\xfe \"\\", (char *)"a\nb\x01\x7f", (char *)"", NULL};
    struct px_box *box = new_box(PX_END_EXIT);

    px_headtail_done(&box->flow[1].kept);
    px_headtail_init(&box->flow[1].kept, 4096, 0);
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    say(box, 1, all, sizeof all);
    say(box, 1, "\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\xe2\x82",
        12); /* surrogate, too large, overlong, cut off */
    say(box, 2, "\x1b[2J\xf0\x9f\x98\x80", 8);
    px_report_make(box);
    for (int exact = 0; exact < 2; exact++) {
        px_auto_free char *json = print(box, argv, exact);
        ASSERT_EQ(strstr(json, "_base64\"") != NULL, exact);
        ASSERT(strstr(json, "\xf0\x9f\x98\x80") != NULL); /* what is valid stays as it is */
        ASSERT(strstr(json, "\x1b") == NULL);
    }
    free_box(box);
}

/* Output that is cut at any byte of a character still makes a document. */
TEST(json_of_text_cut_anywhere)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
    char *argv[] = {(char *)"x", NULL};

    for (size_t from = 0; from < sizeof text; from++)
        for (size_t to = from; to < sizeof text; to++) {
            struct px_box *box = new_box(PX_END_EXIT);
            say(box, 1, text + from, to - from);
            px_report_make(box);
            free(print(box, argv, true));
            free_box(box);
        }
}

static size_t decode(const char *text, unsigned char *out)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;

    for (; *text && *text != '"'; text += 4) {
        uint32_t bits = 0;
        int pads = 0;
        for (int i = 0; i < 4; i++) {
            const char *p = text[i] == '=' ? NULL : strchr(alphabet, text[i]);
            ASSERT(p != NULL || text[i] == '=');
            pads += !p;
            bits = bits << 6 | (p ? (uint32_t)(p - alphabet) : 0);
        }
        for (int i = 0; i < 3 - pads; i++)
            out[n++] = (unsigned char)(bits >> (16 - 8 * i));
    }
    return n;
}

TEST(exact_output_comes_back_byte_for_byte)
{
    char *argv[] = {(char *)"x", NULL};
    unsigned char bytes[64], back[128];

    for (size_t n = 0; n < sizeof bytes; n++) {
        struct px_box *box = new_box(PX_END_EXIT);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)(i * 37 + n);
        say(box, 1, bytes, n);
        px_report_make(box);
        px_auto_free char *json = print(box, argv, true);
        const char *text = strstr(json, "\"stdout_base64\":\"");
        ASSERT(text != NULL);
        ASSERT_EQ(decode(text + 17, back), n);
        ASSERT(memcmp(back, bytes, n) == 0);
        free_box(box);
    }
}

TEST(json_of_every_end)
{
    char *argv[] = {(char *)"x", NULL};

    for (int end = PX_END_EXIT; end <= PX_END_LOST; end++) {
        struct px_box *box = new_box((enum px_end)end);
        box->plan->mechanisms_count = 40;
        box->plan->missing_count = 40;
        for (int i = 0; i < 40; i++) {
            memset(box->plan->mechanisms[i], 'm', 63);
            memset(box->plan->missing[i], '"', 63);
        }
        px_report_make(box);
        px_auto_free char *json = print(box, argv, false);
        char wanted[64];
        (void)snprintf(wanted, sizeof wanted, "\"status\":\"%s\"", px_status_name(box->result.status));
        ASSERT(strstr(json, wanted) != NULL);
        ASSERT(strstr(json, "\"schema\":1,") != NULL);
        static const char *const keys[] = {"id",
                                           "argv",
                                           "reason",
                                           "exit_code",
                                           "signal",
                                           "timed_out",
                                           "oom_killed",
                                           "stdout",
                                           "stderr",
                                           "truncated",
                                           "wall_s",
                                           "cpu_user_s",
                                           "cpu_sys_s",
                                           "memory_peak_bytes",
                                           "memory_source",
                                           "pids_peak",
                                           "io_read_bytes",
                                           "io_write_bytes",
                                           "limits_hit",
                                           "denials",
                                           "hints",
                                           "changed_files",
                                           "diff",
                                           "isolation",
                                           "tier",
                                           "mechanisms",
                                           "missing"};
        for (size_t i = 0; i < PX_COUNT_OF(keys); i++) {
            (void)snprintf(wanted, sizeof wanted, "\"%s\":", keys[i]);
            if (!strstr(json, wanted))
                FAIL("the result has no %s", keys[i]);
        }
        free_box(box);
    }
}

TEST(json_without_memory)
{
    char *argv[] = {(char *)"x", NULL};
    struct px_box *box = new_box(PX_END_EXIT);

    say(box, 1, "hello", 5);
    px_report_make(box);
    for (unsigned n = 1; n < 100; n++) {
        struct px_err e = {0};
        char *json = NULL;
        px_test_fail_alloc(n);
        int r = px_report_json(&box->result, argv, true, &json, &e);
        bool came = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT_EQ(r, came ? -1 : 0);
        ASSERT_EQ(json != NULL, !came);
        ASSERT_EQ(e.code, came ? PX_E_MEMORY : 0);
        free(json);
        if (!came) {
            free_box(box);
            return;
        }
    }
    FAIL("a hundred allocations and no end");
}

/* Output that was there and could not be kept is not "nothing": the result must say that something is missing. */
TEST(output_without_memory_is_truncated)
{
    struct px_box *box = new_box(PX_END_EXIT);

    say(box, 1, "hello", 5);
    px_test_fail_alloc(1);
    px_report_make(box);
    bool came = px_test_alloc_failed();
    px_test_fail_alloc(0);
    ASSERT(came);
    ASSERT_EQ(box->result.out_total, 5);
    if (box->result.out.len < 5)
        ASSERT(box->result.out_truncated);
    free_box(box);
}
