/* tests/env.c - environments by their C interface, for tests/envs/run.py: one verb, its words, JSON on standard output.
 *
 * Status 0, or `PXnnn what happened` on one line and status 1. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "env/env.h"
#include "env/infer.h"
#include "env/libraries.h"
#include "lock/lock.h"
#include "pep/manifest.h"

enum { FILE_MAX = 16 << 20, PACKAGES_MAX = 64 };

static int said(const struct px_err *e)
{
    (void)printf("PX%03d %s; %s\n", e->code, e->what, e->why);
    return 1;
}

static char *slurp(const char *path, size_t *ret_length)
{
    FILE *f = fopen(path, "re");
    char *text = malloc(FILE_MAX);
    if (!f || !text) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(3);
    }
    *ret_length = fread(text, 1, FILE_MAX - 1, f);
    text[*ret_length] = '\0';
    (void)fclose(f);
    return text;
}

static void print_package(struct px_json *j, const struct px_env_package *p)
{
    px_json_object(j, NULL);
    px_json_text(j, "name", p->name);
    px_json_text(j, "version", p->version);
    px_json_text(j, "file", p->file);
    px_json_text(j, "sha256", p->sha256.hex);
    px_json_text(j, "build", p->build.hex);
    px_json_text(j, "tree", p->tree.hex);
    px_json_array(j, "needed");
    for (size_t i = 0; i < p->needed_count; i++)
        px_json_text(j, NULL, p->needed[i]);
    px_json_end(j);
    px_json_end(j);
}

static void print_env(const struct px_env *env, const struct px_inferred *inferred)
{
    px_auto_buf struct px_buf text = PX_BUF(FILE_MAX);
    struct px_json j = {.out = &text};
    px_json_object(&j, NULL);
    px_json_text(&j, "profile", env->profile.hex);
    px_json_text(&j, "tree", env->tree.hex);
    px_json_text(&j, "path", env->path);
    px_json_bool(&j, "cached", env->cached);
    px_json_array(&j, "packages");
    for (size_t i = 0; i < env->count; i++)
        print_package(&j, &env->packages[i]);
    px_json_end(&j);
    px_env_explain(inferred, &j, "capabilities");
    px_json_array(&j, "effective");
    for (size_t i = 0; i < inferred->effective_count; i++)
        px_json_text(&j, NULL, inferred->effective[i]);
    px_json_end(&j);
    px_json_end(&j);
    (void)printf("%s\n", px_buf_text(&text));
}

/* build HOME LOCK MANIFEST FROZEN [FIND-LINKS...]; MANIFEST "-": none. The name of the lock says what it is. */
static int do_build(int argc, char **argv)
{
    const char *name = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
    struct px_manifest manifest = {0};
    struct px_lock pins = {0};
    struct px_sandbox *s = NULL;
    struct px_err e = {0};
    struct px_env env = {0};
    struct px_inferred inferred;
    size_t length = 0;
    int format = 0;
    while (format < PX_PINS_FORMATS && strcmp(name, px_lock_files[format]) != 0)
        format++;
    char *lock = slurp(argv[1], &length), *dir = strdup(argv[1]);
    if (format == PX_PINS_FORMATS || !dir)
        return 3;
    dir[strlen(dir) - strlen(name) - 1] = '\0';
    if (px_lock_parse((enum px_pins_format)format, lock, length, name, &pins, &e) < 0)
        return said(&e);
    const struct px_env_ask ask = {.manifest = strcmp(argv[2], "-") != 0 ? &manifest : NULL,
                                   .pins = &pins,
                                   .project_dir = dir,
                                   .find_links = argc > 4 ? (const char *const *)argv + 4 : NULL,
                                   .frozen = argv[3][0] == '1'};
    if (ask.manifest) {
        char *text = slurp(argv[2], &length);
        if (px_manifest_parse(text, length, "pyproject.toml", &manifest, &e) < 0)
            return said(&e);
        free(text);
    }
    int r = px_sandbox_open(argv[0], &s, &e);
    if (r == 0)
        r = px_env_build(s, &ask, &env, &e);
    if (r == 0 && px_env_check(s, env.profile.hex, &ask, false, &e) != 1)
        return 3;
    if (r == 0 && (r = px_env_infer(ask.manifest, &pins, NULL, &env, &inferred, &e)) == 0) {
        print_env(&env, &inferred);
        px_infer_done(&inferred);
    }
    px_env_done(&env);
    px_sandbox_close(s);
    px_lock_done(&pins);
    px_manifest_done(&manifest);
    free(lock);
    free(dir);
    return r < 0 ? said(&e) : 0;
}

static struct px_libraries scan(const char *path)
{
    struct px_libraries found = {0};
    px_auto_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = dir < 0 ? -errno : px_libraries_scan(dir, EM_X86_64, &found);
    if (r < 0) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(-r));
        exit(3);
    }
    return found;
}

/* infer DIR...: what the files of each need, and the capabilities that this gives; the names of the directories say
 * nothing */
static int do_infer(int argc, char **argv)
{
    px_auto_buf struct px_buf text = PX_BUF(FILE_MAX);
    struct px_json j = {.out = &text};
    struct px_infer_package packages[PACKAGES_MAX] = {0};
    struct px_inferred inferred;
    struct px_libraries found[PACKAGES_MAX];
    for (int i = 0; i < argc && i < PACKAGES_MAX; i++) {
        found[i] = scan(argv[i]);
        packages[i] = (struct px_infer_package){"unknown", "unknown-1-py3-none-any.whl",
                                                (const char *const *)found[i].items, found[i].count};
    }
    const struct px_infer_ask ask = {.automatic = true, .packages = packages, .package_count = (size_t)argc};
    if (px_infer(&ask, &inferred) < 0)
        return 3;
    px_json_array(&j, NULL);
    for (size_t i = 0; i < inferred.count; i++) {
        px_json_object(&j, NULL);
        px_json_text(&j, "capability", inferred.reasons[i].capability);
        px_json_text(&j, "source", px_infer_source_words[inferred.reasons[i].source]);
        px_json_text(&j, "detail", inferred.reasons[i].detail);
        px_json_end(&j);
    }
    px_json_end(&j);
    (void)printf("%s\n", px_buf_text(&text));
    px_infer_done(&inferred);
    for (int i = 0; i < argc && i < PACKAGES_MAX; i++)
        px_libraries_done(&found[i]);
    return 0;
}

/* check HOME PROFILE: {"usable":1} */
static int do_check(int argc, char **argv)
{
    struct px_sandbox *s = NULL;
    struct px_err e = {0};
    (void)argc;
    int r = px_sandbox_open(argv[0], &s, &e);
    if (r == 0)
        r = px_env_check(s, argv[1], NULL, false, &e);
    px_sandbox_close(s);
    if (r < 0)
        return said(&e);
    (void)printf("{\"usable\":%d}\n", r);
    return 0;
}

/* gc HOME CLEAN: what was removed */
static int do_gc(int argc, char **argv)
{
    struct px_gc gc = {.unnamed = argv[1][0] == '1', .min_age_sec = argv[1][0] == '1' ? 0 : 3600};
    struct px_store *store = NULL;
    struct px_err e = {0};
    (void)argc;
    int r = px_store_open(argv[0], &store, &e);
    if (r == 0)
        r = px_store_gc(store, &gc, &e);
    px_store_close(store);
    if (r < 0)
        return said(&e);
    (void)printf("{\"trees\":%llu,\"records\":%llu}\n", (unsigned long long)gc.trees, (unsigned long long)gc.records);
    return 0;
}

/* name HOME NAME PROFILE: keeps it */
static int do_name(int argc, char **argv)
{
    struct px_store *store = NULL;
    struct px_err e = {0};
    struct px_oid id;
    (void)argc;
    int r = px_hash_oid_parse(argv[2], false, &id) < 0 ? 3 : px_store_open(argv[0], &store, &e);
    if (r == 0)
        r = px_name_put(store, PX_RECORD_ENV, argv[1], &id, &e);
    px_store_close(store);
    return r < 0 ? said(&e) : r;
}

static const struct {
    const char *name;
    int least;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"build", 4, do_build}, {"infer", 1, do_infer}, {"check", 2, do_check}, {"gc", 2, do_gc}, {"name", 3, do_name}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(argv[1], verbs[i].name) == 0 && argc - 2 >= verbs[i].least)
            return verbs[i].run(argc - 2, argv + 2);
    (void)fprintf(stderr, "usage: env build|infer|check|gc|name WORD...\n");
    return 2;
}
