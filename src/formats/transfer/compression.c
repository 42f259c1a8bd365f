/* What libpx and px-layer share about layers. */
#include <errno.h>

#include "base/text.h"
#include "transfer/layer.h"

static const struct {
    const char *word, *media;
} rows[PX_COMPRESSIONS] = {
    [PX_COMPRESS_GZIP] = {"gzip", "application/vnd.oci.image.layer.v1.tar+gzip"},
    [PX_COMPRESS_ZSTD] = {"zstd", "application/vnd.oci.image.layer.v1.tar+zstd"},
    [PX_COMPRESS_NONE] = {"none", "application/vnd.oci.image.layer.v1.tar"},
};

const char *px_compression_word(enum px_compression c)
{
    return rows[c].word;
}

const char *px_compression_media(enum px_compression c)
{
    return rows[c].media;
}

int px_compression_parse(const char *word, enum px_compression *ret_c)
{
    for (unsigned i = 0; i < PX_COMPRESSIONS; i++)
        if (px_equal(word, rows[i].word)) {
            *ret_c = (enum px_compression)i;
            return 0;
        }
    return -EINVAL;
}

/* Larger than real environments, and far smaller than a disk. */
const struct px_unpack_limits px_unpack_limits_default = {.bytes = 64ULL << 30, .entries = 1 << 20, .ratio = 200};
