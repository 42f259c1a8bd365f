/* transfer/layer_wire.h - px-layer's command line, and its messages on the socket.
 *
 * Why:     both ends are of one build; but the answer of a compromised helper must be harmless.
 * Owns:    nothing.
 * Mustn't: hold pointers. A reader bounds every text itself and parses every digest.
 *
 *     px-layer unpack SIZE WHITEOUTS BYTES ENTRIES RATIO      4: the archive, 5: the directory
 *     px-layer unzip SIZE BYTES ENTRIES RATIO                 the same
 *     px-layer receive BYTES ENTRIES TOP                      4: a tar as a stream, 5: a new directory
 *     px-layer pack FORMAT UPPER PREFIX [SKIP...]             4: the directory, 5: where the bytes go; without it only
 *                                                             the name counts
 *     px-layer pack-listed FORMAT PREFIX                      4: the directory, 5: where the bytes go, 6: names of the
 *                                                             files to pack, in order, a NUL behind each
 *     px-layer send NAME                                      4: where the bytes of a tar go, 5: a file or a directory
 *     px-layer try JOB ACT                                    4: a directory; for a test, see helpers/layer/try.c */
#pragma once

#include <stdint.h>

#include <px/px.h>

#include "store/hash.h"

enum px_layer_said { PX_LAYER_PROGRESS = 1, PX_LAYER_DONE, PX_LAYER_FAILED };

struct px_layer_message {
    uint32_t kind;
    uint32_t reserved;
    uint64_t done, total;       /* PROGRESS */
    struct px_oid packed, diff_id;
    uint64_t packed_bytes, bytes, entries, dropped;
    struct px_err err;          /* FAILED */
};
