/* Reads the config of an image. It is untrusted: px reads the members that it knows and checks each (SECURITY J18).
 * Volumes, exposed ports, health checks and build triggers are ignored. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "image/documents.h"
#include "store/document.h"

#define refuse(e, ...) px_fail(e, PX_E_IMAGE, 0, __VA_ARGS__)

/* ---- what each text may be ---- */

static bool only(const char *text, const char *others, size_t max)
{
    size_t n = 0;
    for (; text[n]; n++)
        if (!isascii((unsigned char)text[n]) || (!isalnum((unsigned char)text[n]) && !strchr(others, text[n])))
            return false;
    return n <= max;
}

static bool good_word(const char *text)
{
    return only(text, "._-", 64);
}

static bool good_time(const char *text)
{
    return only(text, ":.+-", 64);
}

/* "1000", "app:staff": looked up in the image's /etc/passwd and /etc/group, never in the host's. */
static bool good_user(const char *text)
{
    return only(text, "._:-", 256) && *text != '-';
}

static bool good_workdir(const char *text)
{
    char clean[PATH_MAX];
    return !*text || px_path_clean(text, clean, sizeof clean) == 0;
}

static bool good_signal(const char *text)
{
    return only(text, "+-", 32) && *text != '-';
}

static bool good_variable(const char *text)
{
    return *text != '=' && strchr(text, '=') != NULL;
}

static bool any_text(const char *text)
{
    return text != NULL;
}

/* ---- reading ---- */

static int read_text(const json_t *object, const char *name, bool (*good)(const char *), char **out, struct px_err *e)
{
    const json_t *value = json_object_get(object, name);
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value) || !good(json_string_value(value)))
        return refuse(e, "the image's config has a %s that is not one: '%.100s'", name,
                      json_is_string(value) ? json_string_value(value) : "(not a text)");
    *out = strdup(json_string_value(value));
    return *out ? 0 : px_no_memory(e);
}

static int read_list(const json_t *object, const char *name, bool (*good)(const char *), struct px_image_text *out,
                     struct px_err *e)
{
    const json_t *list = json_object_get(object, name);
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list) || json_array_size(list) > PX_CONFIG_TEXTS_MAX)
        return refuse(e, "the image's config has a %s that is not a list of at most %d texts", name,
                      PX_CONFIG_TEXTS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || !good(text))
            return refuse(e, "the image's config has a %s with an item that is not one: '%.100s'", name,
                          text ? text : "(not a text)");
        if (px_documents_text_add(out, text) < 0)
            return px_no_memory(e);
    }
    return 0;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_labels(const json_t *labels, struct px_image_text *out, struct px_err *e)
{
    const char *key;
    json_t *value;
    if (!labels || json_is_null(labels))
        return 0;
    if (!json_is_object(labels) || json_object_size(labels) > PX_CONFIG_TEXTS_MAX)
        return refuse(e, "the image's config has labels that are not an object, or too many");
    json_object_foreach((json_t *)labels, key, value)
    { /* the library's macro wants it writable, and writes nothing */
        px_auto_buf struct px_buf item = PX_BUF(PX_IMAGE_JSON_MAX);
        if (!json_is_string(value) || !*key || strchr(key, '='))
            return refuse(e, "the image's label '%.100s' is not a name with a text", key);
        (void)px_buf_printf(&item, "%s=%s", key, json_string_value(value));
        if (item.err < 0 || px_documents_text_add(out, px_buf_text(&item)) < 0)
            return px_no_memory(e);
    }
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, compare_items);
    return 0;
}

static int read_diff_ids(const json_t *root, size_t layer_count, struct px_oid *diff_ids, struct px_err *e)
{
    const json_t *rootfs = json_object_get(root, "rootfs"), *list = json_object_get(rootfs, "diff_ids");
    if (!px_equal(px_document_text(rootfs, "type"), "layers") || !json_is_array(list))
        return refuse(e, "the image's config does not say what its layers are");
    if (json_array_size(list) != layer_count)
        return refuse(e, "the image has %zu layers and its config speaks of %zu", layer_count, json_array_size(list));
    for (size_t i = 0; i < layer_count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || px_hash_oid_parse(text, true, &diff_ids[i]) < 0)
            return refuse(e, "the image's config has the diff id '%.100s', which is not sha256: and 64 digits",
                          text ? text : "");
    }
    return 0;
}

static int read_settings(const json_t *config, struct px_image_config *out, struct px_err *e)
{
    if (!config || json_is_null(config))
        return 0;
    if (!json_is_object(config))
        return refuse(e, "the image's config has a config that is not an object");
    return read_text(config, "User", good_user, &out->user, e) < 0 ||
                   read_text(config, "WorkingDir", good_workdir, &out->workdir, e) < 0 ||
                   read_text(config, "StopSignal", good_signal, &out->stop_signal, e) < 0 ||
                   read_list(config, "Env", good_variable, &out->env, e) < 0 ||
                   read_list(config, "Entrypoint", any_text, &out->entrypoint, e) < 0 ||
                   read_list(config, "Cmd", any_text, &out->cmd, e) < 0 ||
                   read_labels(json_object_get(config, "Labels"), &out->labels, e) < 0
               ? -1
               : 0;
}

static int read_config(const json_t *root, size_t layer_count, struct px_oid *diff_ids, struct px_image_config *out,
                       struct px_err *e)
{
    if (!json_is_object(root) || json_object_get(root, "manifests") || json_object_get(root, "layers"))
        return refuse(e, "the image's config is not one");
    if (read_text(root, "architecture", good_word, &out->architecture, e) < 0 ||
        read_text(root, "os", good_word, &out->os, e) < 0 ||
        read_text(root, "created", good_time, &out->created, e) < 0)
        return -1;
    if (!px_equal(out->os, "linux"))
        return refuse(e, "the image is for '%.40s', not for linux", out->os ? out->os : "");
    return read_diff_ids(root, layer_count, diff_ids, e) < 0 ? -1
                                                             : read_settings(json_object_get(root, "config"), out, e);
}

int px_documents_config_read(const char *text, size_t len, size_t layer_count, struct px_oid *diff_ids,
                   struct px_image_config *ret_config, struct px_err *e)
{
    px_auto(px_document) json_t *root = NULL;
    struct px_image_config config = {0};
    if (px_document_read(text, len, "the image's config", PX_E_IMAGE, &root, e) < 0)
        return -1;
    if (read_config(root, layer_count, diff_ids, &config, e) < 0) {
        px_documents_config_done(&config);
        return -1;
    }
    *ret_config = config;
    return 0;
}

void px_documents_config_done(struct px_image_config *c)
{
    char **texts[] = {&c->architecture, &c->os, &c->created, &c->user, &c->workdir, &c->stop_signal};
    struct px_image_text *lists[] = {&c->env, &c->entrypoint, &c->cmd, &c->labels};
    for (size_t i = 0; i < PX_COUNT_OF(texts); i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
    for (size_t i = 0; i < PX_COUNT_OF(lists); i++)
        px_documents_text_done(lists[i]);
}
