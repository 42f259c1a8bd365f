/* fuzz/fuzz_request.c - requests about files in JSON: an answer or an error with a class, whatever comes in. */
#include <px/files.h>
#include <string.h>

#include "files/files.h"
#include "fuzz.h"

/* Nothing can be reached, so that a request that is understood is harmless and is refused for its path alone. */
static const struct px_files nothing;

static void check_error(const struct px_err *e)
{
    char *json = NULL;

    CHECK(e->code != 0 && e->what[0]);
    CHECK(px_files_error_json(&nothing, e, &json, NULL) == 0);
    CHECK(strlen(json) > 0 && strchr(json, '\n') == json + strlen(json) - 1);
    free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const forms[] = {"%s",
                                        "{\"path\":%s}",
                                        "{\"path\":\"%s\"}",
                                        "{\"edits\":[{\"old_text\":%s,\"new_text\":\"\"}]}",
                                        "{\"exclude\":[%s],\"text\":\"x\"}",
                                        "{\"offset\":%s}",
                                        "{\"%s\":1}"};
    struct px_files_op_info op;
    char *text = fuzz_text(data, size), *request = malloc(size + 64);

    CHECK(request);
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        (void)snprintf(request, size + 64, forms[form], text);
        struct px_files_answer answer = {0};
        struct px_err e = {0};

        /* The operations take turns: what is read is the same for all. */
        if (px_files_op_at((size + form) % 16, &op) < 0)
            op.name = "no such operation";
        if (px_files_call_json(&nothing, op.name, request, strlen(request), &answer, &e) < 0)
            check_error(&e);
        else
            CHECK(answer.json && strncmp(answer.json, "{\"ok\":true", 10) == 0);
        px_files_answer_done(&answer);
    }
    free(request);
    free(text);
    return 0;
}
