/* fuzz/fuzz_pins.c - any text as a lock of any of the five kinds, or as pip's report; what px.lock holds is written
 * and read the same. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "fuzz.h"
#include "lock/lock.h"
#include "pep/marker.h"
#include "pep/tags.h"
#include "resolve/resolved.h"

static const struct px_marker_env env = {.os_name = "posix", .python_version = "3.11", .sys_platform = "linux"};
static const struct px_tags tags = {.python_minor = 11, .libc_major = 2, .libc_minor = 36, .machine = "x86_64"};

static void check_choice(const struct px_lock *pins)
{
    struct px_chosen *list = NULL;
    size_t count = 0;
    struct px_err e = {0};
    if (px_lock_select(pins, &env, &tags, NULL, &list, &count, &e) < 0) {
        CHECK(e.code != 0);
        return;
    }
    for (size_t i = 1; i < count; i++)
        CHECK(strcmp(list[i - 1].pin->name, list[i].pin->name) < 0);
    free(list);
}

static void check_writing(const struct px_lock *pins)
{
    px_auto_buf struct px_buf out = PX_BUF(4 << 20);
    struct px_lock again;
    struct px_err e = {0};
    struct px_oid first, second;
    for (size_t i = 0; i < pins->count; i++)
        if (!pins->items[i].specifier)
            return;
    (void)px_lock_write(pins, &out);
    px_lock_put_system(&pins->system, &out);
    if (out.err < 0)
        return;
    CHECK(px_lock_parse(PX_PINS_PX, px_buf_text(&out), out.len, "px.lock", &again, &e) == 0);
    CHECK(px_lock_compute_id(pins, &first) == 0 && px_lock_compute_id(&again, &second) == 0);
    CHECK(again.count == pins->count && strcmp(first.hex, second.hex) == 0);
    CHECK(again.system.count == pins->system.count && again.system.base_count == pins->system.base_count);
    px_lock_done(&again);
}

static void check_report(const char *text, size_t size)
{
    const struct px_resolved_for what = {.root = "/p", .env = &env, .tags = &tags};
    struct px_lock pins;
    struct px_err e = {0};
    if (px_resolved_from_pip(text, size, &what, &pins, &e) < 0)
        return;
    for (size_t i = 0; i < pins.count; i++)
        CHECK(!pins.items[i].files[0].url || pins.items[i].files[0].url[0] != '/');
    check_writing(&pins);
    px_lock_done(&pins);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    for (int format = 0; format < PX_PINS_FORMATS; format++) {
        struct px_lock pins;
        struct px_err e = {0};
        if (px_lock_parse((enum px_pins_format)format, text, size, "a lock", &pins, &e) < 0) {
            CHECK(e.code != 0 && e.what[0]);
            continue;
        }
        check_choice(&pins);
        if (format == PX_PINS_PX && pins.version == 1)
            check_writing(&pins);
        px_lock_done(&pins);
    }
    check_report(text, size);
    free(text);
    return 0;
}
