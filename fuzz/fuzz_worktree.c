/* fuzz/fuzz_worktree.c - what px-git answers, and what becomes of the names of projects.
 *
 * An answer is a list of clean paths, sorted, each once, or it is refused; whatever a project is called, its image has a name that is a
 * reference. */
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "fuzz.h"
#include "image/oci.h"
#include "pack/pack.h"
#include "transfer/worktree.h"

static void check_path(const char *path)
{
    CHECK(*path && *path != '/' && path[strlen(path) - 1] != '/' && !strstr(path, "//"));
    for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        CHECK(strncmp(at, "./", 2) != 0 && strncmp(at, "../", 3) != 0 && strcmp(at, ".") != 0 && strcmp(at, "..") != 0);
}

static void try_answer(const uint8_t *data, size_t size)
{
    struct px_worktree w;
    struct px_pack_command command;
    struct px_err e = {0};
    char *text = fuzz_text(data, size);
    if (size > 0)
        text[size - 1] = '\0';  /* most inputs would end here otherwise */
    if (px_worktree_read(text, size, &w, &e) < 0) {
        CHECK(e.code && e.what[0]);
        return;
    }
    for (size_t i = 0; i < w.files.count; i++) {
        check_path(w.files.items[i]);
        CHECK(i == 0 || strcmp(w.files.items[i - 1], w.files.items[i]) < 0);
        CHECK(px_worktree_has(&w, w.files.items[i]));
    }
    for (size_t i = 0; i < w.specials.count; i++)
        check_path(w.specials.items[i]);
    px_auto_fd int list = px_worktree_list(&w);
    CHECK(list >= 0);
    px_pack_command("demo", &w, NULL, &command);
    CHECK(command.words[0]);
    px_worktree_done(&w);
}

static void try_name(const char *text, size_t size)
{
    char out[PX_PACK_NAME_SIZE];
    struct px_image_ref ref;
    struct px_err e = {0};
    px_pack_name(text, text + size / 2, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", out);
    CHECK(px_image_ref_parse(out, &ref, &e) == 0);
    CHECK(strcmp(ref.registry, "px.local") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    try_answer(data, size);
    try_name(text, size);
    free(text);
    return 0;
}
