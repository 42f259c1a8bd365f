#include "image/documents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/test.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DESCRIPTOR(type) "{\"mediaType\":\"" type "\",\"digest\":\"sha256:" HEX "\",\"size\":7}"

static const char manifest[] =
    "{\"schemaVersion\":2,\"config\":" DESCRIPTOR(PX_MEDIA_CONFIG_TYPE) ",\"layers\":["
    DESCRIPTOR("application/vnd.oci.image.layer.v1.tar+zstd") "],\"annotations\":{\"b\":\"2\",\"a\":\"1\"}}";
static const char config[] =
    "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:" HEX "\"]},"
    "\"config\":{\"Env\":[\"A=b\"],\"Entrypoint\":[\"/x\"],\"Labels\":{\"l\":\"v\"},\"User\":\"1:2\","
    "\"WorkingDir\":\"/w\"}}";

TEST(media_types)
{
    enum px_compression c = PX_COMPRESS_NONE;
    ASSERT_EQ(px_media_find(NULL, NULL), PX_MEDIA_NONE);
    ASSERT_EQ(px_media_find("", NULL), PX_MEDIA_NONE);
    ASSERT_EQ(px_media_find("text/html", NULL), PX_MEDIA_OTHER);
    ASSERT_EQ(px_media_find("application/vnd.docker.image.rootfs.diff.tar.gzip", &c), PX_MEDIA_LAYER);
    ASSERT_EQ(c, PX_COMPRESS_GZIP);
    ASSERT_EQ(px_media_find("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", &c), PX_MEDIA_FOREIGN);
    ASSERT_EQ(px_media_find(PX_MEDIA_DOCKER_LIST_TYPE, NULL), PX_MEDIA_INDEX);
}

TEST(a_manifest_is_read)
{
    struct px_err e = {0};
    struct px_oci_manifest m;
    ASSERT_PX(px_documents_manifest_read(manifest, sizeof manifest - 1, PX_MEDIA_MANIFEST, &m, &e), e);
    ASSERT_EQ(m.layer_count, 1);
    ASSERT_EQ(m.layers[0].compression, PX_COMPRESS_ZSTD);
    ASSERT_STR(m.layers[0].digest.hex, HEX);
    ASSERT_EQ(m.config.size, 7);
    ASSERT_STR(m.annotations.items[0], "a=1");
    ASSERT_STR(m.annotations.items[1], "b=2");
    px_documents_manifest_done(&m);
    ASSERT_EQ(px_documents_manifest_read(manifest, sizeof manifest - 1, PX_MEDIA_INDEX, &m, &e), -1);
    ASSERT_EQ(px_documents_manifest_read(manifest, sizeof manifest - 2, PX_MEDIA_MANIFEST, &m, &e), -1);
}

TEST(a_config_is_read)
{
    struct px_err e = {0};
    struct px_oid diff_id;
    struct px_image_config c;
    ASSERT_PX(px_documents_config_read(config, sizeof config - 1, 1, &diff_id, &c, &e), e);
    ASSERT_STR(diff_id.hex, HEX);
    ASSERT_STR(c.user, "1:2");
    ASSERT_STR(c.workdir, "/w");
    ASSERT_STR(c.env.items[0], "A=b");
    ASSERT(c.env.items[1] == NULL);
    ASSERT_STR(c.labels.items[0], "l=v");
    px_documents_config_done(&c);
    ASSERT_EQ(px_documents_config_read(config, sizeof config - 1, 0, &diff_id, &c, &e), -1);
}

/* Fails each allocation in turn: the call must return an error and leak nothing. (Allocations of jansson are not
 * wrapped.) */
TEST(memory_may_run_out)
{
    for (unsigned n = 1; n < 60; n++) {
        struct px_err e = {0};
        struct px_oid diff_id;
        struct px_image_config c;
        struct px_oci_manifest m;
        px_test_fail_alloc(n);
        int r = px_documents_config_read(config, sizeof config - 1, 1, &diff_id, &c, &e);
        px_test_fail_alloc(0);
        if (r == 0)
            px_documents_config_done(&c);
        else
            ASSERT(e.code != 0);
        px_test_fail_alloc(n);
        r = px_documents_manifest_read(manifest, sizeof manifest - 1, PX_MEDIA_NONE, &m, &e);
        px_test_fail_alloc(0);
        if (r == 0)
            px_documents_manifest_done(&m);
    }
}

TEST(documents_are_written_in_order)
{
    px_auto_buf struct px_buf out = PX_BUF(PX_IMAGE_JSON_MAX);
    struct px_err e = {0};
    struct px_image *image = calloc(1, sizeof *image);
    ASSERT(image != NULL);
    image->config.architecture = strdup("amd64");
    image->config.os = strdup("linux");
    image->config.created = strdup("1970-01-01T00:00:00Z");
    ASSERT_OK(px_documents_text_add(&image->config.labels, "b=2"));
    ASSERT_OK(px_documents_text_add(&image->config.labels, "a=1=1"));
    ASSERT_PX(px_documents_config_write(image, &out, &e), e);
    ASSERT_STR(
        px_buf_text(&out),
        "{\"architecture\":\"amd64\",\"config\":{\"Labels\":{\"a\":\"1=1\",\"b\":\"2\"}},\"created\":"
        "\"1970-01-01T00:00:00Z\",\"history\":[],\"os\":\"linux\",\"rootfs\":{\"diff_ids\":[],\"type\":\"layers\"}}");
    ASSERT_OK(px_documents_text_add(&image->config.labels, "b=3"));
    out.len = 0;
    ASSERT_EQ(px_documents_config_write(image, &out, &e), -1);
    ASSERT_EQ(e.code, PX_E_VALUE);
    px_image_done(image);
    free(image);
}
