/* fuzz/fuzz_oci.c - the documents of an image: index, manifest, config.
 *
 * The first byte says which. What is accepted has digests of sixty-four digits, no more layers than there is room
 * for, texts that keep their promises; and an image made of it is written, and read back as what it was. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "fuzz.h"
#include "image/documents.h"
#include "image/select.h"

static void check_digest(const struct px_oid *oid)
{
    CHECK(strlen(oid->hex) == 64 && strspn(oid->hex, "0123456789abcdef") == 64);
}

static void try_index(const char *text, size_t size)
{
    px_auto_buf struct px_buf words = PX_BUF(4096);
    struct px_err e = {0};
    struct px_index index;
    struct px_descriptor found;
    if (px_documents_index_read(text, size, PX_MEDIA_NONE, &index, &e) < 0) {
        CHECK(e.code == PX_E_IMAGE);
        return;
    }
    CHECK(index.count <= PX_INDEX_ENTRIES_MAX);
    for (size_t i = 0; i < index.count; i++)
        check_digest(&index.entries[i].is.digest);
    px_documents_index_offers(&index, &words);
    if (px_select_entry(&index, NULL, false, &found, &e) == 0)
        CHECK(found.media == PX_MEDIA_INDEX || found.media == PX_MEDIA_MANIFEST);
    px_documents_index_done(&index);
}

/* Once more, as px writes it. */
static void write_again(const struct px_oci_manifest *m)
{
    px_auto_buf struct px_buf out = PX_BUF(PX_IMAGE_JSON_MAX);
    static struct px_image image;
    struct px_oci_manifest again;
    struct px_err e = {0};
    memset(&image, 0, sizeof image);
    image.config_digest = m->config.digest;
    image.config_size = m->config.size;
    image.annotations = m->annotations;
    image.layer_count = m->layer_count;
    for (size_t i = 0; i < m->layer_count; i++)
        image.layers[i] = (struct px_layer){
            .digest = m->layers[i].digest, .size = m->layers[i].size, .compression = m->layers[i].compression};
    if (px_documents_manifest_write(&image, &out, &e) < 0)
        return;                 /* names of annotations may be longer than px writes them */
    CHECK(px_documents_manifest_read(out.data, out.len, PX_MEDIA_MANIFEST, &again, &e) == 0);
    CHECK(again.layer_count == m->layer_count && again.config.size == m->config.size);
    for (size_t i = 0; i < m->layer_count; i++)
        CHECK(px_hash_oid_equal(&again.layers[i].digest, &m->layers[i].digest) &&
              again.layers[i].compression == m->layers[i].compression);
    CHECK(again.annotations.count == m->annotations.count);
    px_documents_manifest_done(&again);
}

static void try_manifest(const char *text, size_t size)
{
    struct px_err e = {0};
    struct px_oci_manifest m;
    if (px_documents_manifest_read(text, size, PX_MEDIA_NONE, &m, &e) < 0) {
        CHECK(e.code == PX_E_IMAGE);
        return;
    }
    CHECK(m.layer_count <= PX_IMAGE_LAYERS_MAX && m.config.size <= PX_IMAGE_JSON_MAX);
    check_digest(&m.config.digest);
    for (size_t i = 0; i < m.layer_count; i++) {
        check_digest(&m.layers[i].digest);
        CHECK(m.layers[i].media == PX_MEDIA_LAYER);
    }
    write_again(&m);
    px_documents_manifest_done(&m);
}

static void try_config(const char *text, size_t size, size_t layers)
{
    struct px_oid diff_ids[8];
    struct px_image_config config;
    struct px_err e = {0};
    if (px_documents_config_read(text, size, layers, diff_ids, &config, &e) < 0) {
        CHECK(e.code == PX_E_IMAGE);
        return;
    }
    for (size_t i = 0; i < layers; i++)
        check_digest(&diff_ids[i]);
    for (size_t i = 0; i < config.env.count; i++)
        CHECK(strchr(config.env.items[i], '=') && config.env.items[i][0] != '=');
    for (size_t i = 1; i < config.labels.count; i++)
        CHECK(strcmp(config.labels.items[i - 1], config.labels.items[i]) < 0);
    CHECK(!config.workdir || !*config.workdir || *config.workdir == '/');
    CHECK(px_equal(config.os, "linux"));
    px_documents_config_done(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = fuzz_text(data + 1, size - 1);
    switch (data[0] % 3) {
    case 0:
        try_index(text, size - 1);
        break;
    case 1:
        try_manifest(text, size - 1);
        break;
    default:
        try_config(text, size - 1, data[0] / 3 % 8);
        break;
    }
    free(text);
    return 0;
}
