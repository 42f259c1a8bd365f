/* Lists of strings, media types by name, and this machine's architecture. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/text.h"
#include "image/documents.h"

int px_documents_text_add(struct px_image_text *list, const char *item)
{
    char **grown = realloc(list->items, (list->count + 2) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    list->items = grown;
    grown[list->count] = strdup(item);
    if (!grown[list->count])
        return -ENOMEM;
    grown[++list->count] = NULL;
    return 0;
}

void px_documents_text_done(struct px_image_text *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct px_image_text){0};
}

static const struct {
    const char *type;
    enum px_media media;
    enum px_compression compression;
} types[] = {
    {PX_MEDIA_INDEX_TYPE, PX_MEDIA_INDEX, PX_COMPRESS_NONE},
    {PX_MEDIA_DOCKER_LIST_TYPE, PX_MEDIA_INDEX, PX_COMPRESS_NONE},
    {PX_MEDIA_MANIFEST_TYPE, PX_MEDIA_MANIFEST, PX_COMPRESS_NONE},
    {PX_MEDIA_DOCKER_MANIFEST_TYPE, PX_MEDIA_MANIFEST, PX_COMPRESS_NONE},
    {PX_MEDIA_CONFIG_TYPE, PX_MEDIA_CONFIG, PX_COMPRESS_NONE},
    {"application/vnd.docker.container.image.v1+json", PX_MEDIA_CONFIG, PX_COMPRESS_NONE},
    {"application/vnd.oci.image.layer.v1.tar", PX_MEDIA_LAYER, PX_COMPRESS_NONE},
    {"application/vnd.oci.image.layer.v1.tar+gzip", PX_MEDIA_LAYER, PX_COMPRESS_GZIP},
    {"application/vnd.oci.image.layer.v1.tar+zstd", PX_MEDIA_LAYER, PX_COMPRESS_ZSTD},
    {"application/vnd.docker.image.rootfs.diff.tar", PX_MEDIA_LAYER, PX_COMPRESS_NONE},
    {"application/vnd.docker.image.rootfs.diff.tar.gzip", PX_MEDIA_LAYER, PX_COMPRESS_GZIP},
    {"application/vnd.docker.image.rootfs.diff.tar.zstd", PX_MEDIA_LAYER, PX_COMPRESS_ZSTD},
    {"application/vnd.oci.image.layer.nondistributable.v1.tar", PX_MEDIA_FOREIGN, PX_COMPRESS_NONE},
    {"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", PX_MEDIA_FOREIGN, PX_COMPRESS_GZIP},
    {"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", PX_MEDIA_FOREIGN, PX_COMPRESS_ZSTD},
    {"application/vnd.docker.image.rootfs.foreign.diff.tar", PX_MEDIA_FOREIGN, PX_COMPRESS_NONE},
    {"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", PX_MEDIA_FOREIGN, PX_COMPRESS_GZIP},
};

enum px_media px_media_find(const char *type, enum px_compression *ret_compression)
{
    if (!type || !*type)
        return PX_MEDIA_NONE;
    for (size_t i = 0; i < PX_COUNT_OF(types); i++)
        if (px_equal(types[i].type, type)) {
            if (ret_compression)
                *ret_compression = types[i].compression;
            return types[i].media;
        }
    return PX_MEDIA_OTHER;
}

const char *px_image_architecture(void)
{
    static const struct {
        const char *machine, *architecture;
    } rows[] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"riscv64", "riscv64"}, {"ppc64le", "ppc64le"}, {"s390x", "s390x"}};
    struct utsname name;
    for (size_t i = 0; uname(&name) == 0 && i < PX_COUNT_OF(rows); i++)
        if (px_equal(rows[i].machine, name.machine))
            return rows[i].architecture;
    return "unknown";
}
