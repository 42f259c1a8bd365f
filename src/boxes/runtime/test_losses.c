/* runtime/test_losses.c - every field of the policy, in every format: it changes what is exported, or is named as lost. */
#include "runtime/losses.h"

#include <px/runtime.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/field.h"
#include "base/text.h"
#include "harness/test.h"
#include "policy/policy.h"

static const char *const formats[] = {"oci", "bwrap", "docker", "seatbelt", NULL};

/* A field, a value, what stands there otherwise (NULL: nothing), and by which word besides the field's name a loss may be told.
 * Of fields about px itself nothing is expected: which they are is decided here a second time. */
static const struct sample {
    const char *field, *value, *other, *word;
    const char *beside[2];      /* another field that it needs, and its value; NULL: a directory */
    bool of_px;
} samples[] = {
    {.field = "base", .value = "@"},
    {.field = "rootfs", .value = "@"},
    {.field = "overlay", .value = ""},
    {.field = "persist", .of_px = true},
    {.field = "work-dir", .value = "@"},
    {.field = "work-target", .value = "/there", .other = "/here", .beside = {"work-dir"}},
    {.field = "bind", .value = "@:/w"},
    {.field = "bind", .value = "@:/w:ro", .other = "@:/w"},
    {.field = "tmpfs", .value = "/t:size=1m"},
    {.field = "tmpfs", .value = "/t:size=1m", .other = "/t:size=2m"},
    {.field = "tmpfs", .value = "/t:size=1m,noexec", .other = "/t:size=1m", .word = "noexec"},
    {.field = "tmpfs", .value = "/dev/shm:size=3m,noexec", .other = "/dev/shm:size=5m,noexec"},
    {.field = "workdir", .value = "/tmp"},
    {.field = "env", .value = "NAME=value"},
    {.field = "env-file", .of_px = true},       /* it fills env */
    {.field = "net", .value = "outbound"},
    {.field = "net", .value = "outbound:pasta"},
    {.field = "net", .value = "host"},
    {.field = "allow-net", .value = "example.org:443", .beside = {"net", "outbound"}},
    {.field = "deny-net", .value = "example.org", .beside = {"net", "outbound"}},
    {.field = "allow-host-loopback", .value = "true", .beside = {"net", "outbound"}},
    {.field = "host-port", .value = "8080", .beside = {"net", "outbound"}},
    {.field = "publish", .value = "8080:80", .beside = {"net", "outbound"}},
    {.field = "dns", .value = "192.0.2.1", .beside = {"net", "outbound"}},
    {.field = "http-proxy", .value = "http://192.0.2.1:3128"},
    {.field = "memory", .value = "64m"},
    {.field = "cpus", .value = "0.5"},
    {.field = "cpu-time", .value = "7s"},
    {.field = "pids", .value = "77"},
    {.field = "disk", .value = "7m"},
    {.field = "file-size", .value = "7m"},
    {.field = "nofile", .value = "77"},
    {.field = "timeout", .value = "7s"},
    {.field = "output-limit", .value = "7k"},
    {.field = "output-end", .value = "true"},
    {.field = "limits", .of_px = true},
    {.field = "tty", .of_px = true},
    {.field = "interactive", .of_px = true},
    {.field = "user", .value = "77:78"},
    {.field = "hostname", .value = "named"},
    {.field = "runtime", .of_px = true},
    {.field = "require", .of_px = true},
    {.field = "seccomp", .value = "strict"},
    {.field = "apparmor", .value = "some-profile"},
    {.field = "name", .of_px = true},
    {.field = "detach", .of_px = true},
    {.field = "idle", .value = "7s"},
    {.field = "max-life", .value = "7s"},
    {.field = "changes", .value = "@"},
    {.field = "apply", .of_px = true},
    {.field = "discard", .of_px = true},
    {.field = "keep", .of_px = true},
    {.field = "timings", .of_px = true},
    {.field = "build", .of_px = true},
    {.field = "without", .of_px = true},
};

/* The export of a plain policy with this one field, or NULL if it is refused. "@" is a directory. */
static char *export_with(const char *field, const char *value, const char *const beside[2], const char *to)
{
    static const char *const argv[] = {"true", NULL};
    struct px_policy policy;
    struct px_err e = {0};
    char text[512] = "", *out = NULL;
    ASSERT_PX(px_policy_init(&policy, NULL, &e), e);
    if (beside && beside[0])
        ASSERT_PX(px_policy_put(&policy, beside[0], beside[1] ? beside[1] : px_test_dir_path(), &e), e);
    if (value)
        (void)snprintf(text, sizeof text, "%s%s", *value == '@' ? px_test_dir_path() : "", value + (*value == '@'));
    if (value)
        ASSERT_PX(px_policy_put(&policy, field, text, &e), e);
    int r = px_policy_export(&policy, argv, to, &out, &e);
    if (r < 0 && e.code != PX_E_NOT_BUILT && e.code != PX_E_ROOTFS)
        FAIL("%s %s to %s: PX%03d %s", field, text, to, e.code, e.what);
    px_policy_done(&policy);
    return r < 0 ? NULL : out;
}

/* Splits off the line that names what is lost. */
static char *cut_losses(char *text)
{
    char *from = strstr(text, "Not in force there: ");
    from = from ? from : strstr(text, "\"px.not-in-this-file\": \"");
    ASSERT(from);
    size_t n = strcspn(from, "\n");
    char *losses = strndup(from, n);
    memmove(from, from + n, strlen(from + n) + 1);
    ASSERT(losses);
    return losses;
}

/* "a, b." or "a b" */
static bool names(const char *losses, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = strstr(losses, word); at; at = strstr(at + 1, word))
        if (strchr(" ,\"", at[-1]) && strchr(" ,.\"", at[n]))
            return true;
    return false;
}

static void check(const struct sample *s, const char *to)
{
    char *with = export_with(s->field, s->value, s->beside, to), *without = export_with(s->field, s->other, s->beside, to);
    if (with && without) {
        char *losses = cut_losses(with), *before = cut_losses(without);
        bool named = names(losses, s->field) || (s->word && names(losses, s->word));
        if (strcmp(with, without) == 0 && !named)
            FAIL("%s to %s: '%s' is neither said nor named as lost: %s", s->field, to, s->value, losses);
        free(losses);
        free(before);
    }
    free(with);
    free(without);
}

TEST(what_is_not_said_is_named)
{
    (void)px_fd_close(px_test_dir());
    for (size_t i = 0; i < PX_COUNT_OF(samples); i++)
        for (const char *const *to = formats; !samples[i].of_px && *to; to++)
            check(&samples[i], *to);
}

TEST(every_field_is_tried)
{
    for (const struct px_field *f = px_policy_fields; f->name; f++) {
        bool known = f->flags & PX_FIELD_ABSENT;
        for (size_t i = 0; i < PX_COUNT_OF(samples); i++)
            known = known || px_equal(samples[i].field, f->name);
        if (!known)
            FAIL("the field %s has no sample here", f->name);
    }
}

TEST(nothing_is_named_that_nobody_set)
{
    char *text = export_with("memory", "unlimited", NULL, "bwrap"), *losses = cut_losses(text);
    ASSERT(!names(losses, "memory") && !names(losses, "publish") && !names(losses, "net"));
    ASSERT(names(losses, "landlock"));
    free(losses);
    free(text);
}
