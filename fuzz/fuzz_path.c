/* fuzz/fuzz_path.c - px_path_clean and px_path_within against their definitions. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/path.h"
#include "fuzz.h"

/* By definition: absolute and without a ".." between slashes. */
static bool is_acceptable(const char *text)
{
    if (text[0] != '/')
        return false;
    for (const char *at = text; (at = strstr(at, "/..")); at++)
        if (at[3] == 0 || at[3] == '/')
            return false;
    return true;
}

static void check_shape(const char *path)
{
    size_t len = strlen(path);

    CHECK(path[0] == '/');
    CHECK(len == 1 || path[len - 1] != '/');
    CHECK(!strstr(path, "//") && !strstr(path, "/./"));
    CHECK(len < 2 || strcmp(path + len - 2, "/.") != 0);
    CHECK(is_acceptable(path));
}

/* The result holds the same parts in the same order: dropping slashes and "." parts from both leaves the same bytes. */
static size_t squeeze(const char *path, char *out)
{
    size_t len = 0;

    while (*path) {
        size_t part = strcspn(path, "/");

        if (part > 0 && !(part == 1 && path[0] == '.')) {
            memcpy(out + len, path, part);
            len += part;
            out[len++] = '/';
        }
        path += part + (path[part] == '/');
    }
    return len;
}

static void check_parts(const char *text, const char *clean)
{
    size_t size = strlen(text) + 2;
    char *a = malloc(size), *b = malloc(size);

    CHECK(a && b);
    size_t a_len = squeeze(text, a), b_len = squeeze(clean, b);
    CHECK(a_len == b_len && memcmp(a, b, a_len) == 0);
    free(a);
    free(b);
}

static void check_clean(const char *text)
{
    size_t size = strlen(text) + 2;
    char *out = malloc(size), *again = malloc(size);

    CHECK(out && again);
    out[0] = '#';
    out[1] = 0;
    int r = px_path_clean(text, out, size);
    CHECK(r == (is_acceptable(text) ? 0 : -EINVAL));
    if (r < 0) {
        CHECK(strcmp(out, "#") == 0);
    } else {
        check_shape(out);
        check_parts(text, out);
        CHECK(strlen(out) <= strlen(text));
        CHECK(px_path_clean(out, again, size) == 0 && strcmp(out, again) == 0);
        CHECK(px_path_clean(text, again, strlen(out)) == -ENAMETOOLONG);
        CHECK(px_path_clean(text, again, strlen(out) + 1) == 0 && strcmp(out, again) == 0);
        memcpy(again, text, strlen(text) + 1);
        CHECK(px_path_clean(again, again, size) == 0 && strcmp(out, again) == 0);
        CHECK(px_path_within(out, "/") && px_path_within(out, out));
    }
    free(out);
    free(again);
}

/* Each path is within itself cut at a slash, and not within itself cut elsewhere. */
static void check_within(const char *text)
{
    size_t len = strlen(text);
    char *path = malloc(len + 2), *dir = malloc(len + 2);

    CHECK(path && dir);
    if (len < 4096 && px_path_clean(text, path, len + 2) == 0 && strcmp(path, "/") != 0)
        for (size_t cut = 1; cut < strlen(path); cut++) {
            memcpy(dir, path, cut);
            dir[cut] = 0;
            if (dir[cut - 1] != '/')            /* only a cleaned directory is a question */
                CHECK(px_path_within(path, dir) == (path[cut] == '/'));
            CHECK(!px_path_within(dir, path));
        }
    free(path);
    free(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    check_clean(text);
    check_within(text);
    free(text);
    return 0;
}
