/* The types of a policy's fields with one value: how each is parsed, printed and freed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "policy/policy.h"

enum { PATH_TEXT_MAX = 4096 };

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
    if (px_equal(copy, "root") || px_equal(copy, "0") || px_equal(group, "root") || px_equal(group, "0")) {
        (void)px_fail(e, PX_E_USER, 0, "--%s: '%s': no program of a box is root", field->name, text);
        return px_why(e, "Boxes have ordinary ids only, from 1 on.");
    }
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

const struct px_field_type px_policy_user_type = {"user", parse_user, print_user, NULL};

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

/* A path in the box other than the root. */
int px_policy_place(const struct px_field *field, const char *text, char **ret_path, struct px_err *e)
{
    char clean[PATH_TEXT_MAX];
    if (px_path_clean(text, clean, sizeof clean) < 0 || px_equal(clean, "/")) {
        px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is not a path inside the box", field->name, text);
        return px_fix(e, "Write an absolute path without '..', such as /workspace.");
    }
    *ret_path = strdup(clean);
    return *ret_path ? 0 : px_no_memory(e);
}

static int parse_place(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    char *path = NULL;
    if (px_policy_place(field, text, &path, e) < 0)
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

const struct px_field_type px_policy_inside_type = {"path", parse_inside, print_text, done_text};
const struct px_field_type px_policy_place_type = {"path", parse_place, print_text, done_text};

/* Letters, digits, '-' and '.'. */
static int parse_hostname(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");
    if (n == 0 || text[n] != '\0' || n > 63 || text[0] == '-' || text[0] == '.')
        return px_fail(e, PX_E_VALUE, 0, "--%s: '%s' is not a host name", field->name, text);
    return px_field_text.parse(at, field, text, e);
}

const struct px_field_type px_policy_hostname_type = {"name", parse_hostname, print_text, done_text};

/* ---- the name of a box ---- */

static int parse_box_name(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    if (px_policy_name_ok(text))
        return px_field_text.parse(at, field, text, e);
    (void)px_fail(e, PX_E_NAME, 0, "--%s: '%.80s' is not a name for a box", field->name, text);
    return px_fix(e, "Write a name of small letters, digits and '-', such as my-box.");
}

const struct px_field_type px_policy_box_name_type = {"name", parse_box_name, print_text, done_text};

/* ---- confinement ---- */

static int parse_runtime(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    static const char *const names[] = {"native", "runc", "crun", "runsc"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (px_equal(text, names[i]))
            return px_field_text.parse(at, field, text, e);
    px_fail(e, PX_E_VALUE, 0, "--%s: there is no runtime '%s'", field->name, text);
    return px_fix(e, "Write native, runc, crun or runsc.");
}

/* A filter's name or a file. A word that is neither is more likely a typing error than a file. */
static int parse_seccomp(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    if (px_equal(text, "default") || px_equal(text, "strict") || strchr(text, '/') || strchr(text, '.'))
        return px_field_text.parse(at, field, text, e);
    px_fail(e, PX_E_VALUE, 0, "--%s: there is no profile '%s'", field->name, text);
    return px_fix(e, "Write default, strict, or the path of a profile, such as ./profile.json.");
}

/* As the kernel accepts it: one word, no control characters. */
static int parse_apparmor(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p == 0x7f)
            return px_fail(e, PX_E_VALUE, 0, "--%s: the name of a profile has no blanks", field->name);
    if (*text == '\0' || strlen(text) > 255)
        return px_fail(e, PX_E_VALUE, 0, "--%s: a profile's name has 1 to 255 characters", field->name);
    return px_field_text.parse(at, field, text, e);
}

/* "" means memory; a relative directory is made absolute. */
static int parse_overlay(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    char where[PATH_TEXT_MAX], whole[2 * PATH_TEXT_MAX];
    if (*text == '\0' || *text == '/')
        return px_field_text.parse(at, field, text, e);
    if (!getcwd(where, sizeof where) || px_fmt(whole, sizeof whole, "%s/%s", where, text) < 0)
        return px_fail(e, PX_E_VALUE, errno, "--%s: '%s' has no full path", field->name, text);
    return px_field_text.parse(at, field, whole, e);
}

/* The directory of all state: PX_HOME, else HOME/.px. */
static int home_directory(char *out, size_t size)
{
    const char *px = getenv("PX_HOME"), *home = getenv("HOME");
    if (px && *px == '/')
        return px_fmt(out, size, "%s", px);
    return home && *home == '/' ? px_fmt(out, size, "%s/.px", home) : -ENOENT; /* state: upper.c checks what is there */
}

/* Changes are kept under a name that the caller chose, or under a generated one. */
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

const struct px_field_type px_policy_keep_type = {"name", parse_keep, print_text, done_text};
const struct px_field_type px_policy_overlay_type = {"directory", parse_overlay, print_text, done_text};
const struct px_field_type px_policy_runtime_type = {"name", parse_runtime, print_text, done_text};
const struct px_field_type px_policy_seccomp_type = {"profile", parse_seccomp, print_text, done_text};
const struct px_field_type px_policy_apparmor_type = {"name", parse_apparmor, print_text, done_text};

static const char *const without_words[PX_WITHOUT_COUNT] = {
#define PX_WITHOUT(name, word, ...) [PX_WITHOUT_##name] = word,
#include "policy/without.def"
#undef PX_WITHOUT
};

const char *px_policy_without_word(enum px_without what)
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

/* Printed only where it is set. */
static void print_build(const void *at, const struct px_field *field, struct px_json *json)
{
    if (*(const bool *)at)
        px_json_bool(json, field->name, true);
}

static int parse_build(void *at, const struct px_field *field, const char *text, struct px_err *e)
{
    return px_field_bool.parse(at, field, text, e);
}

const struct px_field_type px_policy_build_type = {"switch", parse_build, print_build, NULL};
const struct px_field_type px_policy_without_type = {"mechanisms", parse_without, print_without, NULL};
