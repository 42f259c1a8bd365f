/* fuzz/fuzz_profile.c - profiles of arbitrary bytes, and arbitrary profiles.
 *
 * The first byte says which: the rest is the file itself, or a program that makes a well-formed one. Whatever is accepted must
 * have a program that ends with an answer for every call, kills other architectures, and lets through together with the floor
 * exactly what the printed filter lets through when it is read back. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "fuzz.h"
#include "kernel/seccomp.h"
#include "seccomp/print.h"
#include "seccomp/profile.h"
#include "tests/harness/bpf.h"

struct input {
    const uint8_t *data;
    size_t size, at;
};

static unsigned next_byte(struct input *in)
{
    return in->at < in->size ? in->data[in->at++] : 0;
}

static uint64_t next_value(struct input *in)
{
    static const uint64_t edges[] = {0, 1, 0x5412, 0x7e020000, 0xffffffff, 0x100000000, 0xffffffff00000000, 0xffffffffffffffff};
    unsigned kind = next_byte(in);
    uint64_t value = 0;

    if (kind < 128)
        return edges[kind % 8];
    for (unsigned i = 0; i < 1 + kind % 8; i++)
        value = value << 8 | next_byte(in);
    return value;
}

static const char *pick(struct input *in, const char *const *words, size_t count)
{
    return words[next_byte(in) % count];
}
#define PICK(in, words) pick(in, words, sizeof(words) / sizeof((words)[0]))

static const char *const actions[] = {"ALLOW", "ERRNO", "KILL", "KILL_PROCESS", "TRAP", "LOG", "KILL_THREAD", "TRACE"};
static const char *const ops[] = {"NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"};
static const char *const names[] = {"read", "ioctl", "clone", "socket", "prctl", "personality",
                                    "open", "chmod", "statx", "keyctl", "nonsense", "stat64"};

static void add_entry(struct px_buf *out, struct input *in)
{
    unsigned shape = next_byte(in);

    px_buf_printf(out, ",{\"action\":\"SCMP_ACT_%s\",\"names\":[\"%s\",\"%s\"]", PICK(in, actions), PICK(in, names),
                  PICK(in, names));
    if (shape & 1)
        px_buf_printf(out, ",\"includes\":{\"minKernel\":\"%u.%u\",\"arches\":[\"%s\"]}", next_byte(in), next_byte(in),
                      next_byte(in) & 1 ? "amd64" : "arm");
    if (shape & 2)
        px_buf_printf(out, ",\"excludes\":{\"caps\":[\"CAP_CHOWN\"]},\"comment\":\"\"");
    px_buf_puts(out, ",\"args\":[");
    for (unsigned i = 0; i < (shape >> 2) % 4; i++) {
        unsigned long long value = next_value(in), two = next_value(in);
        px_buf_printf(out, "%s{\"index\":%u,\"value\":%llu,\"valueTwo\":%llu,\"op\":\"SCMP_CMP_%s\"}", i ? "," : "",
                      next_byte(in) % 6, value, two, PICK(in, ops));
    }
    px_buf_puts(out, "]}");
}

static void make_profile(struct px_buf *out, struct input *in)
{
    px_buf_printf(out, "{\"defaultAction\":\"SCMP_ACT_%s\",\"syscalls\":[{\"action\":\"SCMP_ACT_ALLOW\",\"names\":[\"execve\","
                       "\"exit_group\",\"rt_sigprocmask\",\"futex\",\"faccessat\",\"clock_gettime\"]}",
                  PICK(in, actions));
    while (in->at < in->size)
        add_entry(out, in);
    px_buf_puts(out, "]}");
}

/* ---- properties ---- */

static uint32_t answer(const struct sock_filter *code, uint16_t len, const struct seccomp_data *data)
{
    struct px_bpf_outcome out = px_bpf_run(code, len, data);

    CHECK(!out.broken);
    return out.action;
}

static uint32_t answer_of(const struct px_profile *p, const struct seccomp_data *data)
{
    uint16_t len = 0;
    const struct sock_filter *code = px_profile_program(p, &len);

    return answer(code, len, data);
}

static bool permits(uint32_t action)
{
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

static struct seccomp_data next_call(struct input *in, int number)
{
    struct seccomp_data data = {.nr = number, .arch = AUDIT_ARCH_X86_64};

    for (int i = 0; i < 6; i++)
        data.args[i] = next_value(in);
    return data;
}

static void check_program(const struct px_profile *p, struct input *in)
{
    for (int n = -1; n < 600; n++) {
        struct seccomp_data data = next_call(in, n);

        CHECK(n >= 0 && n <= 467 ? true : !permits(answer_of(p, &data)));
        data.arch = AUDIT_ARCH_I386;
        CHECK(answer_of(p, &data) == SECCOMP_RET_KILL_PROCESS);
    }
}

static void check_print(const struct px_profile *p, struct input *in)
{
    px_auto_buf struct px_buf text = PX_BUF(16 << 20);
    struct px_json json = {.out = &text};
    struct px_profile *again = NULL;
    struct px_err e = {0};
    uint16_t len = 0;
    const struct sock_filter *floor = px_seccomp_program(PX_FILTER_FLOOR, &len);

    if (px_profile_print(PX_FILTER_FLOOR, p, &json, NULL, &e) < 0) {
        CHECK(e.code == PX_E_LIMIT);
        return;
    }
    CHECK(text.err == 0);
    if (px_profile_parse(px_buf_text(&text), text.len, "printed", &again, &e) < 0) {
        CHECK(e.code == PX_E_PROFILE);  /* too long: what is printed says each thing bit by bit */
        return;
    }
    for (int n = 0; n < 468; n++) {
        struct seccomp_data data = next_call(in, n);
        bool both = permits(answer_of(p, &data)) && permits(answer(floor, len, &data));
        CHECK(permits(answer_of(again, &data)) == both);
    }
    px_profile_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.data = data, .size = size};
    bool raw = next_byte(&in) & 1;
    px_auto_buf struct px_buf made = PX_BUF(4 << 20);
    char *text = fuzz_text(data + in.at, size - in.at);
    struct px_profile *p = NULL;
    struct px_err e = {0};

    if (!raw)
        make_profile(&made, &in);
    int r = raw ? px_profile_parse(text, size - in.at, "raw", &p, &e)
                : px_profile_parse(px_buf_text(&made), made.len, "made", &p, &e);
    CHECK(r == 0 ? p != NULL : p == NULL && e.code == PX_E_PROFILE && e.what[0] && e.fix[0]);
    for (size_t i = 0; p && px_profile_warning(p, i); i++)
        CHECK(strpbrk(px_profile_warning(p, i), "\x1b\n\r") == NULL);
    in.at = 0;                  /* the arguments to try come from the same bytes */
    if (p) {
        check_program(p, &in);
        if (size % 8 == 0)      /* it takes most of the time */
            check_print(p, &in);
    }
    px_profile_free(p);
    free(text);
    return 0;
}
