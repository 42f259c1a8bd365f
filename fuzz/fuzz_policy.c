/* fuzz/fuzz_policy.c - arbitrary names and values into a policy: refused with words, or taken and printed; a plan of it is made.
 *
 * The input is lines "NAME VALUE"; the first line names the preset where there is such a one. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <px/px.h>

#include "fuzz.h"

enum { LINES_MAX = 64 };

/* An error has a number and words, all within their arrays. */
static void check_error(const struct px_err *e)
{
    struct px_explain text;

    CHECK(e->code > 0 && px_explain(e->code, &text) == 0);
    CHECK(memchr(e->what, 0, sizeof e->what) && memchr(e->why, 0, sizeof e->why) &&
          memchr(e->fix, 0, sizeof e->fix));
    CHECK(e->what[0] && e->fix[0]);
    for (const char *p = e->what; *p; p++)
        CHECK((unsigned char)*p >= 0x20 || *p == '\n'); /* no terminal obeys what a stranger typed */
}

/* A name of the table for short names, so that random bytes meet every grammar; the name itself otherwise. */
static const char *field_name(const char *name)
{
    struct px_field_info info;
    size_t count = 0;

    while (px_policy_field(count, &info) == 0)
        count++;
    if (strlen(name) > 1)
        return name;
    CHECK(px_policy_field((unsigned char)name[0] % count, &info) == 0);
    return info.name;
}

static char *print(const struct px_policy *policy)
{
    char *json = NULL;

    CHECK(px_policy_json(policy, &json, NULL) == 0 && json);
    return json;
}

/* One field: what is refused leaves the policy as it was. */
static void set_field(struct px_policy *policy, const char *name, const char *value)
{
    struct px_err e = {0};

    name = field_name(name);
    if (strcmp(name, "env-file") == 0) /* reads files of this machine; its grammar is --env's */
        return;
    char *before = print(policy);
    if (px_policy_set(policy, name, value, &e) < 0) {
        char *after = print(policy);
        check_error(&e);
        CHECK(strcmp(before, after) == 0);
        CHECK(px_policy_set(policy, name, value, NULL) == -1);
        free(after);
    } else {
        CHECK(e.code == 0);
    }
    free(before);
}

/* Looks at the host (whether a source exists) but changes nothing. */
static void make_plan(const struct px_policy *policy, const char *word)
{
    const char *const argv[] = {word, word, NULL};
    struct px_err e = {0};
    char *json = NULL;

    if (px_plan_json(policy, argv, &json, &e) < 0)
        check_error(&e);
    else
        CHECK(json && json[0] == '{');
    free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *line = text;
    struct px_policy *policy = NULL;
    size_t first = strcspn(text, "\n");

    char *preset = fuzz_text((const uint8_t *)text, first);
    if (px_policy_new(preset, &policy, NULL) < 0)
        CHECK(px_policy_new(NULL, &policy, NULL) == 0);
    free(preset);
    for (int i = 0; i < LINES_MAX && *line; i++) {
        char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : end;
        *end = '\0';
        char *value = line + strcspn(line, " ");
        bool has_value = *value != '\0';
        if (has_value)
            *value++ = '\0';
        set_field(policy, line, has_value ? value : NULL);
        line = next;
    }
    make_plan(policy, size > 0 && text[0] ? text : "true");
    px_policy_free(policy);
    free(text);
    return 0;
}
