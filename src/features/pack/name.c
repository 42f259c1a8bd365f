/* pack/name.c - the name of a packed image, and its command. */
#include <string.h>

#include "base/text.h"
#include "layout/own.h"
#include "pack/pack.h"
#include "transfer/worktree.h"

enum { WORD_MAX = 128, PROFILE_DIGITS = 32 };

/* ---- its name ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Makes a repository name: lower-case letters and digits, separated by one '.', one or two '_', or dashes. Other
 * characters become dashes. */
static void put_word(const char *text, const char *otherwise, char out[WORD_MAX + 1])
{
    size_t n = 0;
    while (*text && n < WORD_MAX) {
        size_t run = 0;
        while (text[run] && !is_plain(lower(text[run])))
            run++;
        if (run == 0) {
            out[n++] = lower(*text++);
            continue;
        }
        const char *between = strncmp(text, ".", run) == 0 && run == 1   ? "."
                              : run <= 2 && strncmp(text, "__", run) == 0 ? (run == 1 ? "_" : "__")
                                                                          : "-";
        text += run;
        if (n > 0 && *text && n + strlen(between) < WORD_MAX) {
            memcpy(out + n, between, strlen(between));
            n += strlen(between);
        } else if (n > 0) {
            break;
        }
    }
    out[n] = '\0';
    if (n == 0)
        (void)px_fmt(out, WORD_MAX + 1, "%s", otherwise);
}

void px_pack_name(const char *name, const char *version, const char *profile, char out[PX_PACK_NAME_SIZE])
{
    char word[WORD_MAX + 1], tag[WORD_MAX + 1], digits[PROFILE_DIGITS + 1];
    (void)px_fmt(digits, sizeof digits, "%.*s", PROFILE_DIGITS, profile);
    put_word(name ? name : "", "px", word);
    put_word(version ? version : "", digits, tag);
    (void)px_fmt(out, PX_PACK_NAME_SIZE, "px.local/%s:%s", word, tag);
}

/* ---- what it runs ---- */

/* "My-App" is imported as my_app. */
static bool module_of(const char *name, char *out, size_t size)
{
    size_t n = 0;
    for (; name && name[n] && n + 1 < size; n++)
        out[n] = is_plain(lower(name[n])) ? lower(name[n]) : '_';
    out[n] = '\0';
    return n > 0;
}

static bool has(const struct px_worktree *files, const char *module, const char *file)
{
    char path[512];
    return px_fmt(path, sizeof path, "%s%s%s", module, *module ? "/" : "", file) >= 0 && px_worktree_has(files, path);
}

/* Beside pyproject.toml, then in the directories of the project's own packages. */
static bool find_module(const char *module, const struct px_worktree *files, const json_t *own,
                        struct px_pack_command *c)
{
    const json_t *paths = json_object_get(own, "paths");
    char dir[512];
    for (size_t i = 0; i <= json_array_size(paths); i++) {
        const char *path = i ? json_string_value(json_array_get(paths, i - 1)) : "";
        if (px_fmt(dir, sizeof dir, "%s%s%s", path, *path ? "/" : "", module) < 0 ||
            !(has(files, dir, "__main__.py") || has(files, dir, "cli.py")))
            continue;
        (void)px_fmt(c->module, sizeof c->module, "%s%s", module, has(files, dir, "__main__.py") ? "" : ".cli");
        c->words[1] = "-m";
        c->words[2] = c->module;
        return true;
    }
    return false;
}

struct only {
    size_t count;
    char *name;
    size_t size;
};

static int take_only(void *user, const char *name)
{
    struct only *o = user;
    return o->count++ > 0 || px_fmt(o->name, o->size, "%s", name) < 0 ? -1 : 0;
}

/* If the project has one script, it is the command. */
static bool find_script(const json_t *own, struct px_pack_command *c)
{
    struct only only = {.name = c->module, .size = sizeof c->module};
    if (px_own_scripts(own, take_only, &only) != 0 || only.count != 1)
        return false;
    c->words[0] = c->module;
    return true;
}

void px_pack_command(const char *name, const struct px_worktree *files, const json_t *own,
                     struct px_pack_command *ret_command)
{
    static const char *const programs[] = {"main.py", "app.py", "__main__.py"};
    struct px_pack_command *c = ret_command;
    char module[sizeof c->module - 4];
    *c = (struct px_pack_command){.words = {"python"}};
    if ((module_of(name, module, sizeof module) && find_module(module, files, own, c)) || find_script(own, c))
        return;
    for (size_t i = 0; !c->words[1] && i < PX_COUNT_OF(programs); i++)
        if (has(files, "", programs[i]))
            c->words[1] = programs[i];
}
