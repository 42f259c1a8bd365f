/* Roots from words: NAME=DIR[:ro|rw][:create][:suffixes=.md,.pdf][:max=10m]. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "files/files.h"

enum { SUFFIXES_MAX = 65 };

struct words {
    char *text;                 /* a copy, cut to pieces */
    const char *suffixes[SUFFIXES_MAX + 1];
};

static int bad_option(const char *word, const char *option, struct px_err *e)
{
    return px_fail(e, PX_E_ROOT, 0, "'%s' is no option of a root, in --root '%s'", option, word);
}

static int take_suffixes(char *text, struct words *w, const char *word, struct px_err *e)
{
    size_t n = 0;
    for (char *at = text; at; n++) {
        char *comma = strchr(at, ',');
        if (n >= SUFFIXES_MAX)
            return bad_option(word, "suffixes", e);
        w->suffixes[n] = at;
        if (comma)
            *comma++ = '\0';
        at = comma;
    }
    return 0;
}

/* 1 if the text is an option, 0 if it is not, so that it belongs to the directory's name; -1 with an error. */
static int take_option(char *text, struct words *w, struct px_files_root *root, const char *word, struct px_err *e)
{
    if (strcmp(text, "rw") == 0 || strcmp(text, "ro") == 0)
        root->writable = text[1] == 'w';
    else if (strcmp(text, "create") == 0)
        root->create = true;
    else if (px_starts_with(text, "suffixes=")) {
        root->suffixes = w->suffixes;
        return take_suffixes(text + 9, w, word, e) < 0 ? -1 : 1;
    } else if (px_starts_with(text, "max=")) {
        if (px_parse_bytes(text + 4, &root->max_file_bytes) < 0 || root->max_file_bytes == 0)
            return bad_option(word, text, e);
    } else
        return 0;
    return 1;
}

/* Options are taken off the end, so that a directory may have a colon in its name. */
static int parse_one(const char *word, struct words *w, struct px_files_root *root, struct px_err *e)
{
    w->text = strdup(word);
    if (!w->text)
        return px_files_error_memory(e);
    char *equals = strchr(w->text, '=');
    if (!equals || equals[1] == '\0') {
        (void)px_fail(e, PX_E_ROOT, 0, "--root '%s' does not say which directory", word);
        return px_why(e, "A root is a name, an equals sign and a directory.");
    }
    *equals = '\0';
    root->name = w->text;
    root->dir = equals + 1;
    for (char *colon; (colon = strrchr(equals + 1, ':'));) {
        int r = take_option(colon + 1, w, root, word, e);
        if (r < 0)
            return -1;
        if (r == 0)
            break;
        *colon = '\0';
    }
    return 0;
}

int px_files_parse(const char *const *words, size_t count, bool git_writable, struct px_files **ret_files,
                   struct px_err *e)
{
    PX_ERR(e);
    if (count > PX_FILES_ROOTS_MAX)
        return px_files_new(NULL, count, ret_files, e);
    struct words *w = calloc(count + 1, sizeof *w);
    struct px_files_root *roots = calloc(count + 1, sizeof *roots);
    int r = -1;
    if (w && roots) {
        size_t i = 0;
        while (i < count && parse_one(words[i], &w[i], &roots[i], e) == 0)
            roots[i++].git_writable = git_writable;
        r = i == count ? px_files_new(roots, count, ret_files, e) : -1;
        for (i = 0; i < count; i++)
            free(w[i].text);
    } else {
        (void)px_files_error_memory(e);
    }
    free(w);
    free(roots);
    return r;
}
