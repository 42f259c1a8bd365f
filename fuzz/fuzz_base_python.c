/* fuzz/fuzz_base_python.c - any bytes as an interpreter and as a C library: a version comes of it or none, and nothing beyond is read. */
#include <errno.h>
#include <string.h>

#include "env/base_python.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char version[32] = "";
    unsigned major = 0, minor = 0;
    int r = px_env_base_python_version((const char *)data, size, 11, version, sizeof version);
    CHECK(r == -ENOENT || (r >= 0 && strncmp(version, "3.11.", 5) == 0 && strspn(version + 5, "0123456789") == strlen(version + 5)));
    r = px_env_base_python_glibc((const char *)data, size, &major, &minor);
    CHECK(r == -ENOENT || (r == 0 && major <= 999 && minor <= 999));
    return 0;
}
