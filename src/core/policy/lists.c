/* The types of a policy's fields that may be given several times: binds, tmpfs, variables. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/policy.h"

enum { SOURCE_MAX = 4096, ENV_FILE_MAX = 1 << 20 };

/* ---- lists ---- */

/* Room for one more item of `size` bytes, zeroed; NULL when memory or the bound is exhausted. */
static void *grow_list(void **items, size_t *count, size_t size, size_t max)
{
    if (*count >= max)
        return NULL;
    char *bigger = realloc(*items, (*count + 1) * size);
    if (!bigger)
        return NULL;
    *items = bigger;
    memset(bigger + *count * size, 0, size);
    return bigger + (*count)++ * size;
}

static int too_many(const struct px_field *field, size_t max, struct px_err *e)
{
    return px_fail(e, PX_E_LIMIT, 0, "--%s: more than %zu of them, or out of memory", field->name, max);
}

void px_policy_print_texts(const void *at, const struct px_field *field, struct px_json *json)
{
    const struct px_text_list *list = at;
    px_json_array(json, field->name);
    for (size_t i = 0; i < list->count; i++)
        px_json_text(json, NULL, list->items[i]);
    px_json_end(json);
}

void px_policy_done_texts(void *at)
{
    struct px_text_list *list = at;
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct px_text_list){0};
}

/* ---- binds: SRC[:DST][:ro|rw] ---- */

static int parse_bind(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    struct px_bind_list *list = at;
    char copy[2 * SOURCE_MAX];
    bool writable = true;

    if (px_fmt(copy, sizeof copy, "%s", text) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "--%s: the text is too long", field->name);
    char *mode = strrchr(copy, ':');
    if (mode && (px_equal(mode, ":ro") || px_equal(mode, ":rw"))) {
        writable = px_equal(mode, ":rw");
        *mode = '\0';
    }
    char *target = strchr(copy, ':');
    if (target)
        *target++ = '\0';
    if (copy[0] == '\0') {
        px_fail(e, PX_E_VALUE, 0, "--%s: '%s' names no source", field->name, text);
        return px_fix(e, "Write SRC[:DST][:ro|rw], such as -v ./project:/workspace:ro.");
    }
    if (!target && copy[0] != '/') {
        px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is relative and names no place in the box", field->name, text);
        return px_fix(e, "Name the place too: -v %s:/workspace.", copy);
    }
    struct px_bind bind = {.writable = writable};
    if (px_policy_place(field, target ? target : copy, &bind.target, e) < 0)
        return -1;
    bind.source = strdup(copy);
    struct px_bind *item = bind.source ? grow_list((void **)&list->items, &list->count, sizeof *item, PX_LIST_MAX) : NULL;
    if (!item) {
        free(bind.source);
        free(bind.target);
        return too_many(field, PX_LIST_MAX, e);
    }
    *item = bind;
    return 0;
}

static void print_binds(const void *at, const struct px_field *field, struct px_json *json)
{
    const struct px_bind_list *list = at;
    px_json_array(json, field->name);
    for (size_t i = 0; i < list->count; i++) {
        px_json_object(json, NULL);
        px_json_text(json, "source", list->items[i].source);
        px_json_text(json, "target", list->items[i].target);
        px_json_text(json, "mode", list->items[i].writable ? "rw" : "ro");
        px_json_end(json);
    }
    px_json_end(json);
}

static void done_binds(void *at)
{
    struct px_bind_list *list = at;
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].source);
        free(list->items[i].target);
    }
    free(list->items);
    *list = (struct px_bind_list){0};
}

const struct px_field_type px_policy_bind_type = {"bind", parse_bind, print_binds, done_binds};

/* ---- tmpfs: DST[:size=N][,noexec] ---- */

static int parse_tmpfs_option(const struct px_field *field, char *word, struct px_tmpfs *out, struct px_err *e)
{
    if (px_starts_with(word, "size=")) {
        /* The kernel uses signed numbers. */
        if (px_parse_bytes(word + 5, &out->bytes) < 0 || out->bytes == 0 || out->bytes > INT64_MAX)
            return px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is not a size", field->name, word + 5);
        return 0;
    }
    if (px_equal(word, "noexec") || px_equal(word, "exec")) {
        out->noexec = px_equal(word, "noexec");
        return 0;
    }
    px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is not an option of a tmpfs", field->name, word);
    return px_fix(e, "Write DST[:size=N][,noexec], such as --tmpfs /scratch:size=64m.");
}

/* A second tmpfs at the same path replaces the first, so that a user's size overrides the preset's. */
static struct px_tmpfs *tmpfs_slot(struct px_tmpfs_list *list, const char *target)
{
    for (size_t i = 0; i < list->count; i++)
        if (px_equal(list->items[i].target, target)) {
            free(list->items[i].target);
            return &list->items[i];
        }
    return grow_list((void **)&list->items, &list->count, sizeof *list->items, PX_LIST_MAX);
}

static int parse_tmpfs(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    struct px_tmpfs tmpfs = {.bytes = 64 << 20};
    char copy[SOURCE_MAX];

    if (px_fmt(copy, sizeof copy, "%s", text) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "--%s: the text is too long", field->name);
    char *words = strchr(copy, ':');
    if (words)
        *words++ = '\0';
    while (words && *words) {
        char *end = strchr(words, ',');
        if (end)
            *end++ = '\0';
        if (parse_tmpfs_option(field, words, &tmpfs, e) < 0)
            return -1;
        words = end;
    }
    if (px_policy_place(field, copy, &tmpfs.target, e) < 0)
        return -1;
    struct px_tmpfs *slot = tmpfs_slot(at, tmpfs.target);
    if (!slot) {
        free(tmpfs.target);
        return too_many(field, PX_LIST_MAX, e);
    }
    *slot = tmpfs;
    return 0;
}

static void print_tmpfs(const void *at, const struct px_field *field, struct px_json *json)
{
    const struct px_tmpfs_list *list = at;
    px_json_array(json, field->name);
    for (size_t i = 0; i < list->count; i++) {
        px_json_object(json, NULL);
        px_json_text(json, "target", list->items[i].target);
        px_json_uint(json, "size", list->items[i].bytes);
        px_json_bool(json, "noexec", list->items[i].noexec);
        px_json_end(json);
    }
    px_json_end(json);
}

static void done_tmpfs(void *at)
{
    struct px_tmpfs_list *list = at;
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].target);
    free(list->items);
    *list = (struct px_tmpfs_list){0};
}

const struct px_field_type px_policy_tmpfs_type = {"tmpfs", parse_tmpfs, print_tmpfs, done_tmpfs};

/* ---- environment: NAME=VALUE, or NAME for the caller's value ---- */

static size_t name_length(const char *variable)
{
    return strcspn(variable, "=");
}

static int put_variable(struct px_text_list *list, const char *text, const struct px_field *field, struct px_err *e)
{
    char *copy = strdup(text);
    if (!copy)
        return px_no_memory(e);
    size_t n = name_length(text);
    for (size_t i = 0; i < list->count; i++)
        if (name_length(list->items[i]) == n && memcmp(list->items[i], text, n) == 0) {
            free(list->items[i]);
            list->items[i] = copy;
            return 0;
        }
    char **slot = grow_list((void **)&list->items, &list->count, sizeof *slot, PX_ENV_MAX);
    if (!slot) {
        free(copy);
        return too_many(field, PX_ENV_MAX, e);
    }
    *slot = copy;
    return 0;
}

static int parse_env(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    size_t n = name_length(text);
    if (n == 0)
        return px_fail(e, PX_E_ENVIRONMENT, 0, "--%s: '%s' names no variable", field->name, text);
    if (text[n] == '=')
        return put_variable(at, text, field, e);
    const char *value = getenv(text);
    if (!value)
        return 0;               /* as docker does: a variable that the caller does not have is left out */
    px_auto_free char *whole = malloc(n + strlen(value) + 2);
    if (!whole)
        return px_no_memory(e);
    memcpy(whole, text, n);
    whole[n] = '=';
    memcpy(whole + n + 1, value, strlen(value) + 1);
    return put_variable(at, whole, field, e);
}

const struct px_field_type px_policy_env_type = {"variable", parse_env, px_policy_print_texts, px_policy_done_texts};

static const char env_blanks[] = " \t\v\f\r";

/* As in docker: blanks before a name are skipped, and a name contains none. */
static const char *line_fault(const char *line)
{
    if (*line == '#')
        return NULL;
    if (*line == '=')
        return "names no variable";
    return strcspn(line, " \t=\n") < strcspn(line, "=\n") ? "has a blank in the name of its variable" : NULL;
}

/* All lines are checked before any is added. A line may be a secret, so no message shows it. */
static int check_env_file(const struct px_field *field, const char *path, const char *text, struct px_err *e)
{
    unsigned number = 1;
    for (const char *line = text; *line; number++) {
        const char *fault = line_fault(line + strspn(line, env_blanks));
        if (fault) {
            (void)px_fail(e, PX_E_ENVIRONMENT, 0, "--%s: line %u of '%s' %s", field->name, number, path, fault);
            return px_fix(e, "Write NAME=VALUE, without export before it and without blanks around the =.");
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return 0;
}

/* A file of NAME=VALUE lines; '#' starts a comment line. Goes into the same list as --env. */
static int parse_env_file(void *at, const struct px_field *field, const char *path, struct px_err *e)
{
    px_auto_free char *text = malloc(ENV_FILE_MAX);
    if (!text)
        return px_no_memory(e);
    ssize_t n = px_read_file(AT_FDCWD, path, text, ENV_FILE_MAX);
    if (n < 0)
        return px_fail(e, PX_E_IO, (int)n, "--%s: cannot read '%s'", field->name, path);
    if (strlen(text) != (size_t)n)
        return px_fail(e, PX_E_ENVIRONMENT, 0, "--%s: '%s' has a NUL byte in it", field->name, path);
    if (check_env_file(field, path, text, e) < 0)
        return -1;
    for (char *line = text; *line;) {
        char *end = line + strcspn(line, "\n");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
        line += strspn(line, env_blanks);
        if (*line && *line != '#' && parse_env(at, field, line, e) < 0)
            return -1;
        line = next;
    }
    return 0;
}

static void print_nothing(const void *at, const struct px_field *field, struct px_json *json)
{
    (void)at;
    (void)field;
    (void)json;
}

const struct px_field_type px_policy_env_file_type = {"file", parse_env_file, print_nothing, NULL};
