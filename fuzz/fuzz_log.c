/* fuzz/fuzz_log.c - the last message of a runtime's log: in bounds, ended, and none without the word for it. */
#include <string.h>

#include "fuzz.h"
#include "runtime/log.h"

static void check(const char *text, size_t len, size_t size)
{
    char *out = malloc(size), *copy = malloc(len ? len : 1);
    CHECK(out && copy);
    memcpy(copy, text, len);    /* no byte more than the log has: a sanitizer sees a step too far */
    bool any = px_log_last(copy, len, out, size);
    CHECK(memchr(out, '\0', size));
    CHECK(any || out[0] == '\0');
    CHECK(!any || memmem(copy, len, "\"msg\":", 6));
    free(out);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char around[] = "{\"level\":\"error\",\"msg\":\"";
    char *line = malloc(sizeof around + size);
    CHECK(line);
    memcpy(line, around, sizeof around - 1);
    memcpy(line + sizeof around - 1, data, size);
    for (size_t room = 1; room <= 64; room *= 8) {
        check((const char *)data, size, room);
        check(line, sizeof around - 1 + size, room);
    }
    free(line);
    return 0;
}
