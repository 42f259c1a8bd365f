/* fuzz/fuzz_keep.c - commands on their way to a keeper: what comes out again is what went in, and nonsense is refused. */
#include <string.h>

#include "fuzz.h"
#include "named/named_internal.h"

/* Of one byte a field, a value or the end of both: gets further than random bytes do. */
static char *guided_text(const uint8_t *data, size_t size, size_t *ret_size)
{
    static const char *const words[] = {"user",      "7:8", "workdir",      "/x/y", "env",        "A=b",  "=",      "A",
                                        "pids",      "9",   "timeout",      "3s",   "unlimited",  "",     "limits", "sh",
                                        "memory",    "1k",  "output-limit", "try",  "output-end", "true", "nofile", "tty"};
    struct px_buf out = PX_BUF(1 << 20);

    for (size_t i = 0; i < size; i++) {
        const char *word = words[data[i] % (sizeof words / sizeof words[0])];

        px_buf_add(&out, word, strlen(word) + 1);
    }
    *ret_size = out.len;
    char *text = px_buf_take(&out);
    return text ? text : fuzz_text(data, 0);
}

static void check_text(char *text, size_t size)
{
    struct px_policy *policy = NULL, *again = NULL;
    struct px_err e = {0};
    size_t at = 0, at2 = 0;

    if (px_named_unpack(text, size, &policy, &at, &e) < 0) {
        CHECK(e.code != 0);
        free(text);
        return;
    }
    CHECK(at <= size);
    const char **words = px_named_words(text, size, at);
    struct px_buf out = PX_BUF(1 << 24);

    CHECK(words != NULL);
    px_named_pack(policy, true, &out);
    px_named_pack_words(words, &out);
    CHECK(out.err == 0);
    CHECK(px_named_unpack(out.data, out.len, &again, &at2, &e) == 0);
    CHECK(out.len - at2 == size - at && memcmp(out.data + at2, text + at, size - at) == 0);
    CHECK(again->user.uid == policy->user.uid && again->env.count == policy->env.count);
    CHECK(again->timeout_msec == policy->timeout_msec);
    px_buf_done(&out);
    px_policy_free(again);
    px_policy_free(policy);
    free(words);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t guided;
    char *text = guided_text(data, size, &guided);

    check_text(text, guided);
    check_text(fuzz_text(data, size), size);
    return 0;
}
