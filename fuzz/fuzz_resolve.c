/* fuzz/fuzz_resolve.c - path texts: whatever they say, what comes out lies below a root and says the same again. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "files/files.h"
#include "fuzz.h"

static struct px_root roots[] = {{.name = (char *)"a", .name_len = 1},
                                 {.name = (char *)"a/b", .name_len = 3},
                                 {.name = (char *)"ab", .name_len = 2}};
static const struct px_files files = {.roots = roots, .count = 3};

static void check_rel(const char *rel)
{
    CHECK(rel[0] != '/');
    for (const char *at = rel; *at;) {
        size_t n = strcspn(at, "/");
        CHECK(n > 0 && !(n == 1 && at[0] == '.') && !(n == 2 && memcmp(at, "..", 2) == 0));
        CHECK(at[n] == 0 || at[n + 1] != 0);
        at += n + (at[n] == '/');
    }
}

static void check_again(const struct px_place *place)
{
    struct px_place again;
    char *name = px_files_resolve_name(place);
    CHECK(name);
    CHECK(px_files_resolve_split(&files, name, &again) == 0);
    CHECK(again.root == place->root && strcmp(again.rel, place->rel) == 0);
    free(name);
}

/* Half of the inputs are spelled with the letters of the grammar: plain random bytes seldom say anything in it. */
static void spell(char *text, size_t len, const char *letters)
{
    for (size_t i = 1; len > 0 && text[0] & 1 && i < len; i++)
        text[i] = letters[(unsigned char)text[i] % strlen(letters)];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct px_place place;

    spell(text, size, "ab/.:~/.");
    char *rooted = malloc(strlen(text) + 3);
    CHECK(rooted);
    (void)snprintf(rooted, strlen(text) + 3, "a/%s", text);
    for (int i = 0; i < 2; i++) {
        const char *path = i ? rooted : text;
        int r = px_files_resolve_split(&files, path, &place);
        CHECK(r == 0 || r == -EXDEV || r == -ENAMETOOLONG);
        if (path[0] == '/' || path[0] == '~' || path[0] == '\0')
            CHECK(r == -EXDEV);
        if (!strstr(path, "..") && i == 1 && strlen(path) < 1000)
            CHECK(r == 0);
        if (r == 0) {
            check_rel(place.rel);
            check_again(&place);
        }
    }
    free(rooted);
    free(text);
    return 0;
}
