/* transfer/fetch_wire.h - the messages between px and px-fetch: one for a request, some for progress, one for the
 * answer.
 *
 * Owns:    nothing.
 * Mustn't: be larger than one message of the helper's socket. Both ends are of one build; strings end with a NUL. */
#pragma once

#include "transfer/fetch.h"

enum { PX_FETCH_TEXT_MAX = 24 << 10, PX_FETCH_MESSAGE_MAX = 64 << 10 };

enum px_fetch_role { PX_FETCH_NO_FILE, PX_FETCH_SOURCE, PX_FETCH_SINK };

/* The first message, before the helper confines itself; "" where nothing is set. */
struct px_fetch_setup {
    char ca_file[4096], ca_dir[4096];
    char proxy[4096], no_proxy[4096];
};

struct px_fetch_order {
    uint32_t method, role;
    uint64_t offset, size;      /* of the source; of the sink: where it begins, and nothing */
    uint64_t answer_max;
    uint64_t outward; /* 1: only to public addresses */
    char url[PX_FETCH_URL_MAX];
    char headers[PX_FETCH_TEXT_MAX];            /* one a line, '\n' behind each */
};

enum px_fetch_kind { PX_FETCH_PROGRESS, PX_FETCH_DONE, PX_FETCH_FAILED };

/* A PROGRESS has done and total and nothing else. */
struct px_fetch_report {
    uint32_t kind;
    uint64_t done, total;
    struct px_fetch_answer answer;              /* FAILED: words has the reason */
};
_Static_assert(sizeof(struct px_fetch_report) < PX_FETCH_MESSAGE_MAX &&
                   sizeof(struct px_fetch_order) < PX_FETCH_MESSAGE_MAX &&
                   sizeof(struct px_fetch_setup) < PX_FETCH_MESSAGE_MAX,
               "one message");
