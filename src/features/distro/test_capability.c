#include "distro/capability.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/test.h"

/* [a-z0-9]+(-[a-z0-9]+)*, as Python's packages are named. */
static bool is_name(const char *text)
{
    bool dash = true;
    for (; *text; text++) {
        bool plain = (*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9');
        if (!plain && (*text != '-' || dash))
            return false;
        dash = !plain;
    }
    return !dash;
}

static void check_list(const char *capability, const char *list)
{
    const char *allowed = "abcdefghijklmnopqrstuvwxyz0123456789+-._";
    if (*list == '\0')
        return;
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n < 2 || strspn(at, allowed) < n || at[n - 1] == ' ' || (at[n] == ' ' && at[n + 1] == '\0'))
            px_test_fail(__FILE__, __LINE__, "%s: '%s' is not a list of packages", capability, list);
        for (const char *again = at + n; *again; again += strcspn(again, " ")) {
            again += *again == ' ';
            if (strncmp(again, at, n) == 0 && (again[n] == ' ' || again[n] == '\0'))
                px_test_fail(__FILE__, __LINE__, "%s: a package comes twice in '%s'", capability, list);
        }
        at += n + (at[n] == ' ');
    }
}

TEST(table_of_capabilities_is_sorted_and_well_formed)
{
    const struct px_capability *c, *last = NULL;
    for (size_t i = 0; (c = px_capability_at(i)); last = c, i++) {
        ASSERT(is_name(c->name));
        ASSERT(!last || strcmp(last->name, c->name) < 0);
        ASSERT(c->summary[0] != '\0');
        ASSERT(px_capability_find(c->name) == c);
        for (int column = 0; column < PX_BASE_COLUMNS; column++) {
            check_list(c->name, c->packages[column].run);
            check_list(c->name, c->packages[column].build);
        }
        ASSERT(*c->packages[PX_BASE_DEBIAN12].run);     /* the default base can do everything */
        ASSERT(*c->packages[PX_BASE_DEBIAN13].run || px_equal(c->name, "htmltopdf"));   /* Debian 13 has no wkhtmltopdf */
    }
    ASSERT(px_capability_count() >= 90 && px_capability_count() <= PX_CAPABILITIES_MAX);
    for (const char *const *name =
             (const char *const[]){"postgres", "mysql", "imagecodecs", "xml", "ldap", "ffi", "curl", NULL};
         *name; name++)
        ASSERT(px_capability_find(*name));
    ASSERT(!px_capability_find("postgresql") && !px_capability_find("") && !px_capability_find("post"));
}

TEST(table_of_bases)
{
    const struct px_base_row *row;
    for (size_t i = 0; (row = px_bases_at(i)); i++) {
        ASSERT(px_bases_find(row->name) == row);
        ASSERT(px_bases_for(row->os_id, row->os_release) == row);
        ASSERT(!row->suite || (row->wants && row->mirror && row->security && row->keyring));
    }
    ASSERT_STR(px_bases_for("alpine", "3.20.3")->name, "alpine-3.20");
    ASSERT_STR(px_bases_for("debian", "13")->name, "debian-13");
    ASSERT(!px_bases_for("alpine", "3.2") && !px_bases_for("alpine", "3.201") &&
           !px_bases_for("ubuntu", "12"));
    ASSERT(!px_bases_for("debian", NULL) && !px_bases_for(NULL, NULL) && !px_bases_find("debian"));
}

TEST(sets_are_sorted_and_know_each_once)
{
    struct px_capability_set set;
    struct px_err e = {0};
    const char *const names[] = {"xml", "postgres", "curl", "postgres", NULL};
    ASSERT_OK(px_capability_set_make(names, &set, &e));
    ASSERT_EQ(set.count, 3);
    ASSERT_STR(set.items[0]->name, "curl");
    ASSERT_STR(set.items[1]->name, "postgres");
    ASSERT_STR(set.items[2]->name, "xml");
    ASSERT_OK(px_capability_set_check(&set, px_bases_find("debian-12"), &e));
    ASSERT_OK(px_capability_set_make(NULL, &set, &e));
    ASSERT_EQ(set.count, 0);
    ASSERT_OK(px_capability_set_check(&set, px_bases_find("alpine-3.20"), &e));
}

TEST(what_cannot_be_had_is_px901)
{
    struct px_capability_set set;
    struct px_err e = {0};
    ASSERT_EQ(px_capability_set_make((const char *const[]){"postgers", NULL}, &set, &e), -1);
    ASSERT_EQ(e.code, PX_E_CAPABILITY);
    ASSERT(strstr(e.fix, "Write postgres."));
    ASSERT_EQ(px_capability_set_make((const char *const[]){"Postgres", NULL}, &set, &e), -1);
    ASSERT_EQ(px_capability_set_make((const char *const[]){"something-else-entirely", NULL}, &set, &e), -1);
    ASSERT(!strstr(e.fix, "Write"));
    ASSERT_OK(px_capability_set_make((const char *const[]){"systemd", NULL}, &set, &e));
    ASSERT_EQ(px_capability_set_check(&set, px_bases_find("alpine-3.20"), &e), -1);
    ASSERT_EQ(e.code, PX_E_CAPABILITY);
    ASSERT_OK(px_capability_set_make((const char *const[]){"postgres", NULL}, &set, &e));
    ASSERT_EQ(px_capability_set_check(&set, px_bases_find("alpine-3.20"), &e), -1);
    ASSERT(strstr(e.what, "postgres") && strstr(e.what, "alpine-3.20"));
}
