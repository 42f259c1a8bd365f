#include "box/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/field.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

enum { PATH_TEXT_MAX = 4096, ENV_FILE_MAX = 1 << 20 };

/* ---- lists ---- */

/* Room for one more item of `size` bytes, zeroed; NULL when memory or the bound is exhausted. */
static void *grow(void **items, size_t *count, size_t size, size_t max)
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

/* Copies `text` as a clean absolute path. */
static int copy_target(const struct px_field *field, const char *text, char **ret_path, struct px_err *e)
{
    char clean[PATH_TEXT_MAX];
    if (px_path_clean(text, clean, sizeof clean) < 0 || px_equal(clean, "/")) {
        px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is not a path inside the box", field->name, text);
        return px_fix(e, "Write an absolute path without '..', such as /workspace.");
    }
    *ret_path = strdup(clean);
    return *ret_path ? 0 : px_fail(e, PX_E_MEMORY, ENOMEM, "--%s", field->name);
}

/* ---- binds: SRC[:DST][:ro|rw] ---- */

static int parse_bind(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    struct px_bind_list *list = at;
    char copy[2 * PATH_TEXT_MAX];
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
    if (copy_target(field, target ? target : copy, &bind.target, e) < 0)
        return -1;
    bind.source = strdup(copy);
    struct px_bind *item = bind.source ? grow((void **)&list->items, &list->count, sizeof *item, PX_LIST_MAX) : NULL;
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

static const struct px_field_type bind_type = {"bind", parse_bind, print_binds, done_binds};

/* ---- tmpfs: DST[:size=N][,noexec] ---- */

static int parse_tmpfs_option(const struct px_field *field, char *word, struct px_tmpfs *out, struct px_err *e)
{
    if (px_starts_with(word, "size=")) {
        if (px_parse_bytes(word + 5, &out->bytes) < 0 || out->bytes == 0)
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

/* A second tmpfs at the same place replaces the first, so that a user's size wins over the preset's. */
static struct px_tmpfs *tmpfs_slot(struct px_tmpfs_list *list, const char *target)
{
    for (size_t i = 0; i < list->count; i++)
        if (px_equal(list->items[i].target, target)) {
            free(list->items[i].target);
            return &list->items[i];
        }
    return grow((void **)&list->items, &list->count, sizeof *list->items, PX_LIST_MAX);
}

static int parse_tmpfs(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    struct px_tmpfs tmpfs = {.bytes = 64 << 20};
    char copy[PATH_TEXT_MAX];

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
    if (copy_target(field, copy, &tmpfs.target, e) < 0)
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

static const struct px_field_type tmpfs_type = {"tmpfs", parse_tmpfs, print_tmpfs, done_tmpfs};

/* ---- environment: NAME=VALUE, or NAME for the caller's value ---- */

static size_t name_length(const char *variable)
{
    return strcspn(variable, "=");
}

static int put_variable(struct px_env_list *list, const char *text, const struct px_field *field, struct px_err *e)
{
    char *copy = strdup(text);
    if (!copy)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "--%s", field->name);
    size_t n = name_length(text);
    for (size_t i = 0; i < list->count; i++)
        if (name_length(list->items[i]) == n && memcmp(list->items[i], text, n) == 0) {
            free(list->items[i]);
            list->items[i] = copy;
            return 0;
        }
    char **slot = grow((void **)&list->items, &list->count, sizeof *slot, PX_ENV_MAX);
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
        return 0;               /* docker's habit: a variable that the caller does not have is left out */
    px_auto_free char *whole = malloc(n + strlen(value) + 2);
    if (!whole)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "--%s", field->name);
    memcpy(whole, text, n);
    whole[n] = '=';
    memcpy(whole + n + 1, value, strlen(value) + 1);
    return put_variable(at, whole, field, e);
}

static void print_env(const void *at, const struct px_field *field, struct px_json *json)
{
    const struct px_env_list *list = at;
    px_json_array(json, field->name);
    for (size_t i = 0; i < list->count; i++)
        px_json_text(json, NULL, list->items[i]);
    px_json_end(json);
}

static void done_env(void *at)
{
    struct px_env_list *list = at;
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct px_env_list){0};
}

static const struct px_field_type env_type = {"variable", parse_env, print_env, done_env};

/* A file of NAME=VALUE lines; '#' starts a comment line. Goes into the same list as --env. */
static int parse_env_file(void *at, const struct px_field *field, const char *path, struct px_err *e)
{
    px_auto_free char *text = malloc(ENV_FILE_MAX);
    if (!text)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "--%s", field->name);
    ssize_t n = px_read_file(AT_FDCWD, path, text, ENV_FILE_MAX);
    if (n < 0)
        return px_fail(e, PX_E_IO, (int)n, "--%s: cannot read '%s'", field->name, path);
    if (strlen(text) != (size_t)n)
        return px_fail(e, PX_E_ENVIRONMENT, 0, "--%s: '%s' has a NUL byte in it", field->name, path);
    for (const char *line = text; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n'))
        if (*line == '=')       /* the only fault a line can have; all or nothing. It may be a secret, so it is not repeated. */
            return px_fail(e, PX_E_ENVIRONMENT, 0, "--%s: a line of '%s' names no variable", field->name, path);
    for (char *line = text; *line;) {
        char *end = line + strcspn(line, "\n");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
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

static const struct px_field_type env_file_type = {"file", parse_env_file, print_nothing, NULL};

/* ---- user: UID[:GID], decimal digits only ---- */

static int parse_user(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    struct px_user *user = at;
    char copy[32];
    uint64_t uid, gid;
    if (px_fmt(copy, sizeof copy, "%s", text) < 0)
        return px_fail(e, PX_E_USER, 0, "--%s: '%s' is not UID or UID:GID", field->name, text);
    char *group = strchr(copy, ':');
    if (group)
        *group++ = '\0';
    if (px_parse_u64(copy, 65533, &uid) < 0 || px_parse_u64(group ? group : copy, 65533, &gid) < 0 || uid == 0 || gid == 0)
        return px_fail(e, PX_E_USER, 0, "--%s: '%s' is not UID or UID:GID", field->name, text);
    *user = (struct px_user){(uint32_t)uid, (uint32_t)gid};
    return 0;
}

static void print_user(const void *at, const struct px_field *field, struct px_json *json)
{
    const struct px_user *user = at;
    px_json_object(json, field->name);
    px_json_uint(json, "uid", user->uid);
    px_json_uint(json, "gid", user->gid);
    px_json_end(json);
}

static const struct px_field_type user_type = {"user", parse_user, print_user, NULL};

/* ---- paths inside ---- */

static int parse_inside(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    char clean[PATH_TEXT_MAX];
    if (px_path_clean(text, clean, sizeof clean) < 0) {
        px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is not an absolute path", field->name, text);
        return px_fix(e, "Write a path of the box from its root, without '..', such as /workspace.");
    }
    return px_field_text.parse(at, field, clean, e);
}

/* A place of its own in the box, so not the root. */
static int parse_place(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    char *path = NULL;
    if (copy_target(field, text, &path, e) < 0)
        return -1;
    int r = px_field_text.parse(at, field, path, e);
    free(path);
    return r;
}

static void print_text(const void *at, const struct px_field *field, struct px_json *json)
{
    px_field_text.print(at, field, json);
}

static void done_text(void *at)
{
    px_field_text.done(at);
}

static const struct px_field_type inside_type = {"path", parse_inside, print_text, done_text};
static const struct px_field_type place_type = {"path", parse_place, print_text, done_text};

/* Letters, digits, '-' and '.', as the kernel's and everybody's idea of a host name. */
static int parse_hostname(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");
    if (n == 0 || text[n] != '\0' || n > 63 || text[0] == '-' || text[0] == '.')
        return px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is not a host name", field->name, text);
    return px_field_text.parse(at, field, text, e);
}

static const struct px_field_type hostname_type = {"name", parse_hostname, print_text, done_text};

/* ---- a box that stays ---- */

bool px_policy_name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n > 0 && n < PX_BOX_NAME_MAX && name[n] == '\0' && name[0] != '-';
}

static int parse_box_name(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    if (px_policy_name_ok(text))
        return px_field_text.parse(at, field, text, e);
    return px_fail(e, PX_E_NAME, 0, "--%s: '%.80s' is not a name for a box", field->name, text);
}

static const struct px_field_type box_name_type = {"name", parse_box_name, print_text, done_text};

/* ---- what holds it ---- */

static int parse_runtime(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    static const char *const names[] = {"native", "runc", "crun", "runsc"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (px_equal(text, names[i]))
            return px_field_text.parse(at, field, text, e);
    px_fail(e, PX_E_VALUE, 0, "--%s: there is no runtime '%s'", field->name, text);
    return px_fix(e, "Write native, runc, crun or runsc.");
}

/* A name of ours or a file; a bare word that is neither is more likely a slip than a file. */
static int parse_seccomp(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    if (px_equal(text, "default") || px_equal(text, "strict") || strchr(text, '/') || strchr(text, '.'))
        return px_field_text.parse(at, field, text, e);
    px_fail(e, PX_E_VALUE, 0, "--%s: there is no profile '%s'", field->name, text);
    return px_fix(e, "Write default, strict, or the path of a profile, such as ./profile.json.");
}

/* As the kernel takes it: one word, no control characters. */
static int parse_apparmor(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p == 0x7f)
            return px_fail(e, PX_E_VALUE, 0, "--%s: the name of a profile has no blanks", field->name);
    if (*text == '\0' || strlen(text) > 255)
        return px_fail(e, PX_E_VALUE, 0, "--%s: a profile's name has 1 to 255 characters", field->name);
    return px_field_text.parse(at, field, text, e);
}

/* "" stands for memory; a directory is meant from where the caller stands. */
static int parse_overlay(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    char where[PATH_TEXT_MAX], whole[2 * PATH_TEXT_MAX];
    if (*text == '\0' || *text == '/')
        return px_field_text.parse(at, field, text, e);
    if (!getcwd(where, sizeof where) || px_fmt(whole, sizeof whole, "%s/%s", where, text) < 0)
        return px_fail(e, PX_E_VALUE, errno, "--%s: '%s' has no full path", field->name, text);
    return px_field_text.parse(at, field, whole, e);
}

/* The home of all state: PX_HOME, else HOME/.px. */
static int home_directory(char *out, size_t size)
{
    const char *px = getenv("PX_HOME"), *home = getenv("HOME");
    if (px && *px == '/')
        return px_fmt(out, size, "%s", px);
    return home && *home == '/' ? px_fmt(out, size, "%s/.px", home) : -ENOENT;
}

/* Changes are kept by a name of the caller's, or by one that is made up. */
static int parse_keep(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    char home[PATH_TEXT_MAX], name[PX_BOX_NAME_MAX], whole[2 * PATH_TEXT_MAX];
    uint64_t random = 0;
    if (*text && !px_policy_name_ok(text))
        return px_fail(e, PX_E_VALUE, 0, "--%s: '%.80s' is not a name", field->name, text);
    if (*text == '\0' && px_sys(SYS_getrandom, &random, sizeof random, 0) != sizeof random)
        return px_fail(e, PX_E_VALUE, EIO, "--%s: no name can be made up", field->name);
    int r = *text ? px_fmt(name, sizeof name, "%s", text) : px_fmt(name, sizeof name, "%016llx", (unsigned long long)random);
    if (r >= 0)
        r = home_directory(home, sizeof home);
    if (r < 0 || px_fmt(whole, sizeof whole, "%s/changes/%s", home, name) < 0) {
        px_fail(e, PX_E_VALUE, 0, "--%s: there is no place for it", field->name);
        return px_fix(e, "Set PX_HOME, or HOME, to a directory of your own.");
    }
    return px_field_text.parse(at, field, whole, e);
}

static const struct px_field_type keep_type = {"name", parse_keep, print_text, done_text};
static const struct px_field_type overlay_type = {"directory", parse_overlay, print_text, done_text};
static const struct px_field_type runtime_type = {"name", parse_runtime, print_text, done_text};
static const struct px_field_type seccomp_type = {"profile", parse_seccomp, print_text, done_text};
static const struct px_field_type apparmor_type = {"name", parse_apparmor, print_text, done_text};

static const char *const without_words[PX_WITHOUT_COUNT] = {
#define PX_WITHOUT(name, word, ...) [PX_WITHOUT_##name] = word,
#include "box/without.def"
#undef PX_WITHOUT
};

const char *px_without_word(enum px_without what)
{
    return without_words[what];
}

static int parse_without(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    uint64_t *bits = at, more = 0;
    for (const char *word = text; *word;) {
        size_t n = strcspn(word, ","), i = 0;
        while (i < PX_WITHOUT_COUNT && !(strlen(without_words[i]) == n && memcmp(without_words[i], word, n) == 0))
            i++;
        if (i == PX_WITHOUT_COUNT)
            return px_fail(e, PX_E_VALUE, 0, "--%s: there is no mechanism '%.*s'", field->name, (int)(n < 64 ? n : 64), word);
        more |= 1ull << i;
        word += n + (word[n] == ',');
    }
    *bits |= more;
    return 0;
}

static void print_without(const void *at, const struct px_field *field, struct px_json *json)
{
    uint64_t bits = *(const uint64_t *)at;
    if (!bits)
        return;
    px_json_array(json, field->name);
    for (size_t i = 0; i < PX_WITHOUT_COUNT; i++)
        if (bits >> i & 1)
            px_json_text(json, NULL, without_words[i]);
    px_json_end(json);
}

/* Shown only where it is. */
static void print_build(const void *at, const struct px_field *field, struct px_json *json)
{
    if (*(const bool *)at)
        px_json_bool(json, field->name, true);
}

static int parse_build(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    return px_field_bool.parse(at, field, text, e);
}

static const struct px_field_type build_type = {"switch", parse_build, print_build, NULL};
static const struct px_field_type without_type = {"mechanisms", parse_without, print_without, NULL};

bool px_policy_own_filter(const struct px_policy *policy)
{
    return !policy->seccomp || px_equal(policy->seccomp, "default") || px_equal(policy->seccomp, "strict");
}

bool px_policy_strict(const struct px_policy *policy)
{
    return policy->seccomp && px_equal(policy->seccomp, "strict");
}

bool px_policy_native(const struct px_policy *policy)
{
    return !policy->runtime || px_equal(policy->runtime, "native");
}

/* ---- the table ---- */

static const char *const net_words[] = {"none", "loopback", "outbound", "host", NULL};
static const char *const tier_words[] = {"full", "landlock", NULL};     /* that can be asked for */

const char *px_tier_word(enum px_tier tier)
{
    return tier == PX_TIER_RLIMITS ? "rlimits" : tier_words[tier];
}

static const char *const limits_words[] = {"require", "try", NULL};

#define AT(member) offsetof(struct px_policy, member)
#define REPEAT PX_FIELD_REPEAT
#define FLAG PX_FIELD_FLAG
#define ABSENT PX_FIELD_ABSENT
#define TEXT &px_field_text
#define ABSENT_AT 0             /* never written: the field is refused */

// clang-format off
const struct px_field px_policy_fields[] = {
    { "base",         0,   TEXT,             AT(base),          0,      "NAME|DIR",       "what the box's root is made of: host, a base of the store, or a directory", NULL },
    { "rootfs",       0,   TEXT,             AT(rootfs),        0,      "DIR|FILE",       "use this directory, or what is in this archive, as the root, read-only", NULL },
    { "overlay",      0,   &overlay_type,    AT(overlay),       PX_FIELD_OPTIONAL, "DIR", "make the root writable; what changes goes to memory, or to DIR", NULL },
    { "persist",      0,   &px_field_bool,   AT(persist),       FLAG,   NULL,             "keep the changes in the overlay's DIR, for later runs", NULL },
    { "work-dir",     0,   TEXT,             AT(work_dir),      0,      "DIR",            "bind this directory writable and start in it", NULL },
    { "work-target",  0,   &place_type,      AT(work_target),   0,      "PATH",           "where --work-dir appears in the box", NULL },
    { "bind",         'v', &bind_type,       AT(binds),         REPEAT, "SRC[:DST][:ro|rw]", "show a file or directory of the host in the box", NULL },
    { "tmpfs",        0,   &tmpfs_type,      AT(tmpfs),         REPEAT, "DST[:size=N][,noexec]", "an empty, bounded, writable directory", NULL },
    { "deny",         0,   TEXT,             ABSENT_AT,         ABSENT | REPEAT, "GLOB",  "hide files from the box", NULL },
    { "workdir",      'w', &inside_type,     AT(workdir),       0,      "PATH",           "working directory in the box", NULL },
    { "env",          'e', &env_type,        AT(env),           REPEAT, "NAME[=VALUE]",   "set a variable, or pass the caller's on", NULL },
    { "env-file",     0,   &env_file_type,   AT(env),           REPEAT, "FILE",           "set variables from NAME=VALUE lines", NULL },
    { "net",          0,   &px_policy_net_type, AT(net),        0,      "MODE",           "none, loopback, outbound, host, or box:NAME for that of another box", net_words },
    { "allow-net",    0,   &px_policy_rule_type, AT(allow_net), REPEAT, "HOST[:PORT]",    "allow connections to this name or address only", NULL },
    { "deny-net",     0,   &px_policy_rule_type, AT(deny_net),  REPEAT, "HOST[:PORT]",    "refuse connections to this name or address", NULL },
    { "allow-host-loopback", 0, &px_field_bool, AT(allow_host_loopback), FLAG, NULL,      "reach the host's loopback at 10.0.2.2", NULL },
    { "host-port",    0,   &px_policy_port_type, AT(host_ports), REPEAT, "PORT",          "reach this port of the host's loopback at 10.0.2.2", NULL },
    { "publish",      'p', &px_policy_publish_type, AT(publish), REPEAT, "[IP:]HOST:BOX[/udp]", "forward a port of the host to one of the box", NULL },
    { "dns",          0,   &px_policy_server_type, AT(dns),     REPEAT, "ADDRESS",        "name server for the box", NULL },
    { "http-proxy",   0,   &px_policy_proxy_type, AT(http_proxy), 0,    "URL",            "set the proxy variables", NULL },
    { "memory",       'm', &px_field_bytes,  AT(memory_bytes),  0,      "SIZE",           "end the run above this much memory (needs a cgroup)", NULL },
    { "cpus",         0,   &px_field_milli,  AT(cpus_milli),    0,      "NUMBER",         "share of processors, such as 0.5 (needs a cgroup)", NULL },
    { "cpu-time",     0,   &px_field_msec,   AT(cpu_time_msec), 0,      "TIME",           "processor time a process may use", NULL },
    { "pids",         0,   &px_field_count,  AT(pids),          0,      "NUMBER",         "processes and threads at once", NULL },
    { "disk",         0,   &px_field_bytes,  AT(disk_bytes),    0,      "SIZE",           "bytes in all writable directories of the box together", NULL },
    { "file-size",    0,   &px_field_bytes,  AT(file_bytes),    0,      "SIZE",           "largest file that can be written", NULL },
    { "nofile",       0,   &px_field_count,  AT(nofile),        0,      "NUMBER",         "open files of a process", NULL },
    { "timeout",      0,   &px_field_msec,   AT(timeout_msec),  0,      "TIME",           "end the run after this long; exit status 124", NULL },
    { "output-limit", 0,   &px_field_bytes,  AT(output_bytes),  0,      "SIZE",           "bytes of output per stream", NULL },
    { "output-end",   0,   &px_field_bool,   AT(output_end),    FLAG,   NULL,             "end the run at the output limit instead of dropping the rest", NULL },
    { "limits",       0,   &px_field_choice, AT(limits),        0,      "HOW",            "require: a limit that cannot be had is an error; try: report it", limits_words },
    { "tty",          't', &px_field_bool,   AT(tty),           FLAG,   NULL,             "run on a terminal of its own", NULL },
    { "interactive",  'i', &px_field_bool,   AT(interactive),   FLAG,   NULL,             "pass standard input on", NULL },
    { "user",         'u', &user_type,       AT(user),          0,      "UID[:GID]",      "ids inside the box", NULL },
    { "hostname",     0,   &hostname_type,   AT(hostname),      0,      "NAME",           "host name inside the box", NULL },
    { "runtime",      0,   &runtime_type,    AT(runtime),       0,      "NAME",           "native, or an OCI runtime: runc, crun, runsc", NULL },
    { "require",      0,   &px_field_choice, AT(require),       0,      "TIER",           "weakest isolation that will do: full or landlock", tier_words },
    { "seccomp",      0,   &seccomp_type,    AT(seccomp),       0,      "PROFILE|FILE",   "system call filter: default, strict, or a profile in JSON", NULL },
    { "apparmor",     0,   &apparmor_type,   AT(apparmor),      0,      "PROFILE",        "confine by an AppArmor profile, too", NULL },
    { "device",       0,   TEXT,             ABSENT_AT,         ABSENT | REPEAT, "PATH",  "show a device in the box", NULL },
    { "name",         0,   &box_name_type,   AT(name),          0,      "NAME",           "with --detach: name the box", NULL },
    { "detach",       'd', &px_field_bool,   AT(detach),        FLAG,   NULL,             "leave the command running in a box that stays", NULL },
    { "idle",         0,   &px_field_msec,   AT(idle_msec),     0,      "TIME",           "end a box that stays once no command ran for this long", NULL },
    { "max-life",     0,   &px_field_msec,   AT(max_life_msec), 0,      "TIME",           "end a box that stays after this long", NULL },
    { "changes",      0,   &overlay_type,    AT(changes),       0,      "DIR",            "work on DIR without changing it, and show what was done", NULL },
    { "apply",        0,   &px_field_bool,   AT(apply),         FLAG,   NULL,             "with --changes: do the same to DIR at the end", NULL },
    { "discard",      0,   &px_field_bool,   AT(discard),       FLAG,   NULL,             "with --changes: drop what was done (the default)", NULL },
    { "keep",         0,   &keep_type,       AT(keep),          PX_FIELD_OPTIONAL, "NAME", "with --changes: keep it under this name, and go on from there", NULL },
    { "timings",      0,   &px_field_bool,   AT(timings),       FLAG,   NULL,             "print what each step of the start cost", NULL },
    { "build",        0,   &build_type,      AT(build),         FLAG | PX_FIELD_HIDDEN | PX_FIELD_INTERNAL, NULL, "run a package manager", NULL },
    { "without",      0,   &without_type,    AT(without),       REPEAT | PX_FIELD_HIDDEN, "MECHANISM[,...]", "switch a mechanism off, for a test", NULL },
    { NULL, 0, NULL, 0, 0, NULL, NULL, NULL },
};
// clang-format on

/* ---- the whole ---- */

int px_policy_put(struct px_policy *policy, const char *name, const char *value, struct px_err *e)
{
    const struct px_field *field = px_field_find(px_policy_fields, name, strlen(name));
    if (!field) {
        px_fail(e, PX_E_USAGE, 0, "there is no field '%s'", name);
        return px_fix(e, "px-policy(5) and `px exec --help` list the fields.");
    }
    bool number = field->type == &px_field_bytes || field->type == &px_field_msec || field->type == &px_field_count ||
                  field->type == &px_field_milli;
    uint64_t *place = (uint64_t *)(void *)((char *)policy + field->offset);
    uint64_t before = number && !(field->flags & PX_FIELD_ABSENT) ? *place : 0;
    if (px_field_set(field, policy, value, e) < 0)
        return -1;
    if (px_equal(name, "build") && policy->build)
        policy->user = (struct px_user){0, 0};          /* no user can ask for it */
    px_policy_imply_network(policy, name);
    /* A limit of nothing is never meant; "no limit" has its own word, so that it cannot happen by accident. */
    if (number && *place == 0) {
        *place = before;
        px_fail(e, PX_E_VALUE, 0, "--%s: it must be more than 0", name);
        return px_fix(e, "Write unlimited if there should be no limit.");
    }
    return 0;
}

static const struct px_preset_row *find_preset(const char *name)
{
    for (const struct px_preset_row *row = px_preset_rows; row->preset; row++)
        if (!row->field && px_equal(row->preset, name))
            return row;
    return NULL;
}

/* "default, project, ..." for the error. */
static void list_presets(char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (const struct px_preset_row *row = px_preset_rows; row->preset; row++)
        if (!row->field && px_fmt(out + at, size - at, "%s%s", at ? ", " : "", row->preset) >= 0)
            at += strlen(out + at);
}

static int set_defaults(struct px_policy *policy, struct px_err *e)
{
    static const char *const rows[][2] = {
        {"base", "host"},         {"work-target", "/workspace"}, {"hostname", "sandbox"}, {"user", "1000:1000"},
        {"nofile", "4096"},       {"runtime", "native"},         {"seccomp", "default"},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_policy_put(policy, rows[i][0], rows[i][1], e) < 0)
            return -1;
    return 0;
}

int px_policy_init(struct px_policy *policy, const char *preset, struct px_err *e)
{
    *policy = (struct px_policy){.said = PX_BUF(8 << 20)};
    const struct px_preset_row *row = find_preset(preset ? preset : "default");
    if (!row) {
        char names[256];
        list_presets(names, sizeof names);
        px_fail(e, PX_E_VALUE, 0, "--preset: there is no preset '%s'", preset);
        return px_fix(e, "The presets are: %s.", names);
    }
    policy->preset = strdup(row->preset);
    if (!policy->preset)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "policy");
    int r = set_defaults(policy, e);
    for (row++; r == 0 && row->preset && row->field; row++)
        r = px_policy_put(policy, row->field, row->value, e);
    policy->pids_counted = policy->net_said = false;
    if (r < 0)
        px_policy_done(policy);
    return r;
}

void px_policy_tell(const struct px_policy *policy, struct px_buf *out)
{
    px_buf_add(out, policy->preset, strlen(policy->preset) + 1);
    px_buf_add(out, policy->said.data, policy->said.len);
    if (policy->said.err < 0)
        out->err = policy->said.err;
}

int px_policy_pin(struct px_policy *policy, int fd)
{
    struct px_bind *bind = &policy->binds.items[policy->binds.count - 1];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    bind->pinned = true;
    bind->dev = st.st_dev;
    bind->ino = st.st_ino;
    return 0;
}

void px_policy_done(struct px_policy *policy)
{
    free(policy->preset);
    px_buf_done(&policy->said);
    px_field_done(px_policy_fields, policy);
    *policy = (struct px_policy){0};
}

const char *px_policy_env(const struct px_policy *policy, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < policy->env.count; i++)
        if (strncmp(policy->env.items[i], name, n) == 0 && policy->env.items[i][n] == '=')
            return policy->env.items[i] + n + 1;
    return NULL;
}

static int check_changes(const struct px_policy *policy, struct px_err *e)
{
    if (!policy->changes && (policy->apply || policy->discard || policy->keep)) {
        px_fail(e, PX_E_USAGE, 0, "--apply, --discard and --keep say what becomes of changes");
        return px_fix(e, "Name the directory that is worked on: --changes DIR.");
    }
    if (policy->apply && policy->discard)
        return px_fail(e, PX_E_USAGE, 0, "--apply and --discard exclude each other");
    if (policy->changes && !*policy->changes)
        return px_fail(e, PX_E_VALUE, 0, "--changes: the directory has no name");
    if (policy->changes && policy->work_dir)
        return px_fail(e, PX_E_USAGE, 0, "--changes and --work-dir both want to be at %s", policy->work_target);
    if (policy->changes && !px_policy_native(policy))
        return px_fail(e, PX_E_NOT_BUILT, 0, "--changes is not part of this build for --runtime %s", policy->runtime);
    return 0;
}

int px_policy_check_overlay(const struct px_policy *policy, struct px_err *e)
{
    bool writable = policy->work_dir || policy->changes;
    if (check_changes(policy, e) < 0)
        return -1;
    for (size_t i = 0; i < policy->binds.count; i++)
        writable = writable || policy->binds.items[i].writable;
    if (policy->build && (writable || policy->net > PX_NET_LOOPBACK || !policy->overlay || !px_policy_own_filter(policy)))
        return px_fail(e, PX_E_USAGE, 0, "a build box has an overlay, no network, no filter and no files of the caller to write");
    if (policy->persist && (!policy->overlay || !*policy->overlay)) {
        px_fail(e, PX_E_USAGE, 0, "--persist needs a directory to keep the changes in");
        return px_fix(e, "Name one: --overlay=DIR --persist.");
    }
    if (policy->overlay && !px_policy_root_dir(policy)) {
        px_fail(e, PX_E_ROOTFS, 0, "--overlay needs a root of its own");
        px_why(e, "The files of the host base belong to the host's root, who does not exist in a box: "
                  "nobody there could change them.");
        return px_fix(e, "Add --rootfs DIR, or --base NAME.");
    }
    if (policy->overlay && !px_policy_native(policy))
        return px_fail(e, PX_E_NOT_BUILT, 0, "--overlay is not part of this build for --runtime %s", policy->runtime);
    return 0;
}

const char *px_policy_root_dir(const struct px_policy *policy)
{
    return policy->rootfs ? policy->rootfs : px_equal(policy->base, "host") ? NULL : policy->base;
}
