/* image-tool WORD ARGUMENT... - the functions of src/formats/image/oci.h one by one, for tests/images/images.py. PX_HOME is the store.
 *
 *     make COMPRESSION [@NAME=TEXT...] DIR...    an image with annotations and a layer for each directory
 *     read PATH [NAME]                 load ID
 *     write ID FORMAT PATH [NAME]      verify ID      tree ID      pull REFERENCE    push ID REFERENCE   ref TEXT
 *     worktree DIR STATUS              app DIR COMPRESSION          the files of a project, and a layer of them
 *
 * Prints a JSON object, or "PXnnn what / why / fix" on standard error and ends with 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "image/documents.h"
#include "image/oci.h"
#include "transfer/worktree.h"

struct call {
    struct px_store *store;
    int argc;
    char **argv;                /* behind the word */
    struct px_image image;
    struct px_json *j;          /* an open object */
    struct px_err *e;
};

static const struct px_progress_to nobody = {NULL, NULL};

static void put_list(struct px_json *j, const char *name, const struct px_image_text *list)
{
    px_json_array(j, name);
    for (size_t i = 0; i < list->count; i++)
        px_json_text(j, NULL, list->items[i]);
    px_json_end(j);
}

static void put_layers(const struct call *c)
{
    px_json_array(c->j, "layers");
    for (size_t i = 0; i < c->image.layer_count; i++) {
        const struct px_layer *l = &c->image.layers[i];
        px_json_object(c->j, NULL);
        px_json_text(c->j, "digest", l->digest.hex);
        px_json_text(c->j, "diff_id", l->diff_id.hex);
        px_json_uint(c->j, "size", l->size);
        px_json_text(c->j, "compression", px_compression_word(l->compression));
        px_json_end(c->j);
    }
    px_json_end(c->j);
}

static int show(struct call *c)
{
    const struct px_image_config *config = &c->image.config;
    px_json_text(c->j, "manifest", c->image.manifest.hex);
    px_json_text(c->j, "config", c->image.config_digest.hex);
    px_json_text(c->j, "architecture", config->architecture);
    px_json_text(c->j, "created", config->created);
    px_json_text(c->j, "user", config->user);
    px_json_text(c->j, "workdir", config->workdir);
    put_list(c->j, "env", &config->env);
    put_list(c->j, "entrypoint", &config->entrypoint);
    put_list(c->j, "cmd", &config->cmd);
    put_list(c->j, "labels", &config->labels);
    put_list(c->j, "annotations", &c->image.annotations);
    put_layers(c);
    return 0;
}

static int load(struct call *c)
{
    struct px_oid id;
    if (c->argc < 1 || px_hash_oid_parse(c->argv[0], false, &id) < 0)
        return px_fail(c->e, PX_E_USAGE, 0, "which image?");
    return px_image_load(c->store, &id, &c->image, c->e);
}

static int load_and_show(struct call *c)
{
    return load(c) < 0 ? -1 : show(c);
}

static int make(struct call *c)
{
    enum px_compression compression;
    struct px_image *image = &c->image;
    if (c->argc < 2 || px_compression_parse(c->argv[0], &compression) < 0)
        return px_fail(c->e, PX_E_USAGE, 0, "make COMPRESSION DIR...");
    for (int i = 1; i < c->argc; i++) {
        if (c->argv[i][0] == '@') {
            if (px_documents_text_add(&image->annotations, c->argv[i] + 1) < 0)
                return px_fail(c->e, PX_E_MEMORY, 0, "no memory");
            continue;
        }
        px_auto_fd int dir = open(c->argv[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const struct px_pack pack = {.dirfd = dir, .compression = compression};
        if (dir < 0 || px_layer_pack(c->store, &pack, nobody, &image->layers[image->layer_count], c->e) < 0)
            return -1;
        image->comments[image->layer_count++] = "a layer of the test";
    }
    image->config.user = strdup("1000:1000");
    image->config.workdir = strdup("/app");
    if (px_documents_text_add(&image->config.env, "PATH=/usr/bin:/bin") < 0 ||
        px_documents_text_add(&image->config.entrypoint, "/bin/sh") < 0 || px_documents_text_add(&image->config.cmd, "-c") < 0 ||
        px_documents_text_add(&image->config.labels, "org.example.b=2") < 0 ||
        px_documents_text_add(&image->config.labels, "org.example.a=\xc3\xa4 \"quoted\"") < 0 ||
        px_documents_text_add(&image->annotations, "org.opencontainers.image.title=test") < 0)
        return px_fail(c->e, PX_E_MEMORY, 0, "no memory");
    return px_image_seal(c->store, image, c->e) < 0 ? -1 : show(c);
}

static int read_path(struct call *c)
{
    if (c->argc < 1)
        return px_fail(c->e, PX_E_USAGE, 0, "read PATH [NAME]");
    return px_image_read(c->store, c->argv[0], c->argc > 1 ? c->argv[1] : NULL, nobody, &c->image, c->e) < 0 ? -1
                                                                                                             : show(c);
}

static int write_path(struct call *c)
{
    static const char *const formats[] = {"oci", "oci-archive", "docker-archive"};
    if (load(c) < 0)
        return -1;
    for (int f = 0; c->argc >= 3 && f < PX_IMAGE_FORMATS; f++)
        if (px_equal(formats[f], c->argv[1]))
            return px_image_write(c->store, &c->image, (enum px_image_format)f, c->argv[2],
                                  c->argc > 3 ? c->argv[3] : NULL, nobody, c->e);
    return px_fail(c->e, PX_E_USAGE, 0, "write ID FORMAT PATH [NAME]");
}

static int verify(struct call *c)
{
    return load(c) < 0 ? -1 : px_image_verify(c->store, &c->image, c->e);
}

static int tree(struct call *c)
{
    struct px_oid id;
    char path[4096];
    if (load(c) < 0 || px_image_tree(c->store, &c->image, nobody, &id, c->e) < 0 ||
        px_tree_path(c->store, &id, path, sizeof path, c->e) < 0)
        return -1;
    px_json_text(c->j, "tree", id.hex);
    px_json_text(c->j, "path", path);
    return 0;
}

static int pull(struct call *c)
{
    struct px_image_ref ref;
    if (c->argc < 1 || px_image_ref_parse(c->argv[0], &ref, c->e) < 0 ||
        px_registry_pull(c->store, &ref, nobody, &c->image, c->e) < 0)
        return -1;
    return show(c);
}

static int push(struct call *c)
{
    struct px_image_ref ref;
    if (load(c) < 0 || c->argc < 2 || px_image_ref_parse(c->argv[1], &ref, c->e) < 0)
        return -1;
    return px_registry_push(c->store, &c->image, &ref, nobody, c->e);
}

static int parse_ref(struct call *c)
{
    struct px_image_ref ref;
    if (c->argc < 1 || px_image_ref_parse(c->argv[0], &ref, c->e) < 0)
        return -1;
    px_json_text(c->j, "registry", ref.registry);
    px_json_text(c->j, "repository", ref.repository);
    px_json_text(c->j, "tag", ref.tag);
    px_json_text(c->j, "digest", ref.digest.hex);
    return 0;
}

static void put_paths(struct px_json *j, const char *name, const struct px_worktree_paths *paths)
{
    px_json_array(j, name);
    for (size_t i = 0; i < paths->count; i++)
        px_json_text(j, NULL, paths->items[i]);
    px_json_end(j);
}

static int worktree(struct call *c)
{
    struct px_worktree w = {0};
    if (c->argc != 2)
        return 2;
    if (px_worktree_look(c->argv[0], px_equal(c->argv[1], "1"), &w, c->e) < 0)
        return -1;
    px_json_bool(c->j, "repository", w.repository);
    px_json_text(c->j, "commit", w.commit);
    put_paths(c->j, "files", &w.files);
    put_paths(c->j, "dirty", &w.dirty);
    put_paths(c->j, "specials", &w.specials);
    px_worktree_done(&w);
    return 0;
}

static int app(struct call *c)
{
    struct px_worktree w = {0};
    struct px_layer layer;
    if (c->argc != 2)
        return 2;
    px_auto_fd int dir = open(c->argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct px_pack pack = {.dirfd = dir, .prefix = "app/", .listed = true};
    if (px_compression_parse(c->argv[1], &pack.compression) < 0)
        return 2;
    if (px_worktree_look(c->argv[0], false, &w, c->e) < 0)
        return -1;
    px_auto_fd int list = pack.list = px_worktree_list(&w);
    int r = list < 0 ? -1 : px_layer_pack(c->store, &pack, nobody, &layer, c->e);
    px_worktree_done(&w);
    if (r < 0)
        return -1;
    px_json_text(c->j, "digest", layer.digest.hex);
    px_json_text(c->j, "diff_id", layer.diff_id.hex);
    return 0;
}

static const struct {
    const char *word;
    int (*run)(struct call *c);
} words[] = {
    {"make", make}, {"read", read_path}, {"load", load_and_show}, {"write", write_path}, {"verify", verify},
    {"tree", tree}, {"pull", pull},      {"push", push},          {"ref", parse_ref},
    {"worktree", worktree}, {"app", app},
};

static int run(struct call *c, const char *word)
{
    for (size_t i = 0; i < PX_COUNT_OF(words); i++)
        if (px_equal(words[i].word, word))
            return px_store_open(NULL, &c->store, c->e) < 0 ? -1 : words[i].run(c);
    return px_fail(c->e, PX_E_USAGE, 0, "there is no word '%s'", word);
}

int main(int argc, char **argv)
{
    px_auto_buf struct px_buf text = PX_BUF(16 << 20);
    struct px_err e = {0};
    struct px_json j = {.out = &text};
    struct call c = {.argc = argc - 2, .argv = argv + 2, .j = &j, .e = &e};
    px_json_object(&j, NULL);
    int r = argc < 2 ? 2 : run(&c, argv[1]);
    px_image_done(&c.image);
    if (c.store)
        px_store_close(c.store);
    if (r < 0)
        (void)fprintf(stderr, "PX%03d %s\n%s\n%s\n", e.code, e.what, e.why, e.fix);
    if (r != 0)
        return r < 0 ? 1 : 2;
    px_json_end(&j);
    (void)printf("%s\n", px_buf_text(&text));
    return 0;
}
