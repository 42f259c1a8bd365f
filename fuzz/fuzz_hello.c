/* fuzz/fuzz_hello.c - the first bytes of connections. */
#include <string.h>

#include "fuzz.h"
#include "helpers/net/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[PX_NET_NAME_MAX], again[PX_NET_NAME_MAX];
    char *copy = fuzz_text(data, size);
    const uint8_t *bytes = (const uint8_t *)copy;
    enum px_hello r = px_hello_look(bytes, size, name);
    CHECK(r != PX_HELLO_MORE || size < PX_HELLO_MAX);
    if (r == PX_HELLO_NAMED)
        CHECK(px_net_name_clean(name, strlen(name), again) == 0 && strcmp(name, again) == 0);
    /* What was said of the whole was not said differently of a beginning: that only needs more, or says the same. */
    if (size > 1 && r != PX_HELLO_MORE) {
        enum px_hello part = px_hello_look(bytes, size / 2, again);
        CHECK(part == PX_HELLO_MORE || part == PX_HELLO_BAD || part == r || r == PX_HELLO_BAD);
        CHECK(part != PX_HELLO_NAMED || r != PX_HELLO_NAMED || strcmp(name, again) == 0);
    }
    free(copy);
    return 0;
}
