/* fuzz/fuzz_toml.c - any text as a TOML document; what is read can be changed and then reads as the change says. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "config/toml.h"
#include "fuzz.h"

static void check_nodes(const struct px_toml *t)
{
    for (uint32_t i = 1; i < t->count; i++) {
        const struct px_toml_node *n = px_toml_at(t, i);
        CHECK(n->parent < i || n->parent < t->count);
        CHECK(n->from <= n->to && n->to <= t->length);
        CHECK(n->next == 0 || n->next > i);
        if (px_toml_at(t, n->parent)->type == PX_TOML_TABLE && !memchr(px_toml_key(t, i), '\0', n->key_length))
            CHECK(px_toml_get(t, n->parent, px_toml_key(t, i)) == i);
    }
}

/* -EIO is the proof of an edit failing: it must never be needed. */
static void check_edits(const struct px_toml *t)
{
    static const char *const path[] = {"tool", "px", "sandbox", "capabilities", "xml"};
    px_auto_buf struct px_buf set = PX_BUF(1 << 20), removed = PX_BUF(1 << 20);
    CHECK(px_toml_set(t, path, 5, "true", &set) != -EIO);
    CHECK(px_toml_remove(t, path, 1, &removed) != -EIO);
    static const char *const list[] = {"project", "dependencies"};
    for (uint32_t i = 0; i < 4; i++) {
        px_auto_buf struct px_buf put = PX_BUF(1 << 20), cut = PX_BUF(1 << 20);
        CHECK(px_toml_item(t, list, 2, i, "six>=1", &put) != -EIO);
        CHECK(px_toml_item(t, list, 2, i, NULL, &cut) != -EIO);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    int r = px_toml_parse(text, size, &t, &fault);
    CHECK(r == 0 || r == -EINVAL);
    if (r == 0) {
        check_nodes(t);
        check_edits(t);
    } else {
        CHECK(fault.line > 0 && fault.column > 0 && fault.message[0]);
    }
    px_toml_free(t);
    free(text);
    return 0;
}
