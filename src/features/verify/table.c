#include "verify/verify.h"

#include <string.h>

#include "base/text.h"

enum { F = PX_IN_FULL, L = PX_IN_LANDLOCK, O = PX_IN_OCI, G = PX_IN_GVISOR };
enum { FL = F | L, FO = F | O, FG = F | G, FLO = F | L | O, FLG = F | L | G, FOG = F | O | G, FLOG = F | L | O | G };

#define REFUSED PX_EXIT_REFUSED
#define SIDE(...) {__VA_ARGS__}
#define NONE {.text = NULL}
#define PX_CHECK(check, category, tiers, options, needs, act, twin, held_by, broken_by) \
    {#check, #category, PX_CHECK_SHELL, PX_HOW_PLAIN, tiers, options, needs, held_by, broken_by, {act, twin}},
#define PX_ATTACK(check, function, how, tiers, options, held_by, broken_by, bare) \
    {#check, NULL, PX_CHECK_ATTACK, PX_HOW_##how, tiers, options, "", held_by, broken_by, {NONE, NONE}},
#define PX_TWIN(check, function, how, tiers, options, broken_by) \
    {#check, NULL, PX_CHECK_TWIN, PX_HOW_##how, tiers, options, "", "base", broken_by, {NONE, NONE}},

const struct px_verify_row px_verify_rows[] = {
#include "checks.def"
#include "attacks.def"
};
const size_t px_verify_rows_count = PX_COUNT_OF(px_verify_rows);

/* The catalogue's sections G and I are about networks and resources, all others about security. */
const char *px_verify_category(const struct px_verify_row *row)
{
    if (row->category)
        return row->category;
    return row->name[0] == 'G' ? "network" : row->name[0] == 'I' ? "resources" : "security";
}

int px_verify_each(const char *list, char separator, int (*word)(void *user, const char *text, size_t len), void *user)
{
    const char stop[2] = {separator, '\0'};
    int r = 0;
    for (const char *p = list; p && *p && r == 0;) {
        size_t n = strcspn(p, stop);
        if (n > 0)
            r = word(user, p, n);
        p += n + (p[n] != '\0');
    }
    return r;
}

static int is_word(void *user, const char *text, size_t len)
{
    const char *wanted = user;
    return strlen(wanted) == len && memcmp(wanted, text, len) == 0;
}

bool px_verify_has(const char *held_by, const char *word)
{
    char copy[64];
    return px_fmt(copy, sizeof copy, "%s", word) >= 0 && px_verify_each(held_by, '+', is_word, copy) != 0;
}

uint64_t px_verify_mechanisms(const char *held_by)
{
    uint64_t bits = 0;
    for (int w = 0; w < PX_WITHOUT_COUNT; w++)
        if (px_verify_has(held_by, px_policy_without_word((enum px_without)w)))
            bits |= 1ull << w;
    return bits;
}

static int begins(void *user, const char *text, size_t len)
{
    return strncmp(user, text, len) == 0;
}

PX_API bool px_verify_chosen(const char *only, const char *name)
{
    char copy[64];
    return !only || (px_fmt(copy, sizeof copy, "%s", name) >= 0 && px_verify_each(only, ',', begins, copy) != 0);
}

PX_API int px_verify_row(size_t index, struct px_check *ret_row)
{
    for (size_t i = 0; i < px_verify_rows_count; i++) {
        const struct px_verify_row *row = &px_verify_rows[i];
        if (row->how == PX_HOW_SUITE || index-- > 0)
            continue;
        *ret_row = (struct px_check){.name = row->name, .category = px_verify_category(row), .held_by = row->held_by};
        return 0;
    }
    return -1;
}

PX_API const char *px_check_result_name(enum px_check_result result)
{
    static const char *const names[] = {"passed", "failed", "skipped", "differs"};
    return (size_t)result < PX_COUNT_OF(names) ? names[result] : "failed";
}
