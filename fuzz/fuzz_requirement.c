/* fuzz/fuzz_requirement.c - any text as a requirement, a marker, a version, a range and a wheel's name. */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "pep/marker.h"
#include "pep/tags.h"
#include "pep/version.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const extras[] = {"x", NULL};
    const struct px_marker_env env = {.os_name = "posix", .python_version = "3.11", .extras = extras};
    const struct px_tags tags = {.python_minor = 11, .libc_major = 2, .libc_minor = 36, .machine = "x86_64"};
    char *text = fuzz_text(data, size);
    struct px_requirement q;
    struct px_version v;

    if (px_marker_requirement_parse(text, &q) == 0) {
        CHECK(q.name >= text && q.name + q.name_length <= text + size);
        CHECK(q.name_length > 0);
    }
    int r = px_marker_holds(text, &env);
    CHECK(r == 0 || r == 1 || r == -EINVAL);
    if (px_version_parse(text, strlen(text), &v) == 0) {
        CHECK(px_version_compare(&v, &v) == 0);
        CHECK(v.release_count > 0);
    }
    r = px_version_fits("1.2.3", text);
    CHECK(r == 0 || r == 1 || r == -EINVAL);
    r = px_tags_rank(&tags, text);
    CHECK(r >= 0 || r == -EINVAL || r == -ENOENT);
    free(text);
    return 0;
}
