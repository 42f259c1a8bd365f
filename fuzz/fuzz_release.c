/* fuzz/fuzz_release.c - any bytes as an os-release file: a family that exists, and a name that no terminal obeys. */
#include <string.h>

#include "fuzz.h"
#include "host/release.h"

static void check_release(const struct px_release *r)
{
    CHECK((int)r->family >= 0 && r->family < PX_FAMILY_COUNT);
    CHECK(memchr(r->name, 0, sizeof r->name) && r->name[0]);
    for (const char *p = r->name; *p; p++)
        CHECK((unsigned char)*p >= 0x20 && *p != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char own[] = "ID=alpine\nPRETTY_NAME=\"Alpine Linux\"\n";
    struct px_release r;
    char *text = calloc(1, size + sizeof own);

    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    px_release_parse(text, size, &r);
    check_release(&r);

    /* Lines that follow a file of another distribution do not change what its own lines said. */
    memcpy(text, own, sizeof own - 1);
    if (size > 0)
        memcpy(text + sizeof own - 1, data, size);
    px_release_parse(text, sizeof own - 1, &r);
    CHECK(r.family == PX_FAMILY_ALPINE && strcmp(r.name, "Alpine Linux") == 0);
    px_release_parse(text, sizeof own - 1 + size, &r);
    check_release(&r);
    CHECK(r.family != PX_FAMILY_OTHER);         /* a later line of a known kind may say another, none takes it away */
    free(text);
    return 0;
}
