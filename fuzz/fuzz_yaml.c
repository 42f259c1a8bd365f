/* fuzz/fuzz_yaml.c - any bytes as a worker's file of either kind. */
#include <string.h>

#include "base/err.h"
#include "config/yaml.h"
#include "fuzz.h"
#include "worker/worker.h"

static size_t check_node(const struct px_yaml *n, size_t depth)
{
    size_t count = 0;

    CHECK(depth <= PX_YAML_DEPTH + 1);
    for (; n; n = n->next) {
        CHECK(n->line > 0 && (n->kind == PX_YAML_TEXT) == (n->text != NULL));
        count += 1 + check_node(n->first, depth + 1);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct px_yaml *root = NULL;
    struct px_err e = {0};
    char *text = fuzz_text(data, size);

    if (px_yaml_parse("x", text, size, &root, &e) < 0)
        CHECK(e.code != 0 && e.what[0]);
    else
        CHECK(check_node(root, 0) <= PX_YAML_NODES);
    px_yaml_free(root);
    root = NULL;
    if (px_worker_toml("x", text, size, &root, &e) == 0)
        CHECK(check_node(root, 0) <= PX_YAML_NODES);
    px_yaml_free(root);
    free(text);
    return 0;
}
