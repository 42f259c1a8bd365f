/* env/test_tables.c - the tables are sorted, only whole names match, and messages of programs are parsed. */
#include "env/tables.h"

#include <string.h>

#include "base/text.h"
#include "env/messages.h"
#include "harness/test.h"

TEST(tables_are_sorted)
{
    static const char *const names[] = {
#define PX_DIST(name, ...) name,
#include "dists.def"
#undef PX_DIST
        "",
#define PX_SONAME(name, ...) name,
#include "sonames.def"
#undef PX_SONAME
        "",
#define PX_HEADER(name, ...) name,
#include "headers.def"
#undef PX_HEADER
    };
    for (size_t i = 1; i < PX_COUNT_OF(names); i++)
        if (*names[i] && strcmp(names[i - 1], names[i]) >= 0)
            px_test_fail(__FILE__, __LINE__, "'%s' comes before '%s'", names[i - 1], names[i]);
}

TEST(whole_names_only)
{
    ASSERT_STR(px_tables_dist_find("psycopg2")->capabilities, "postgres");
    ASSERT_STR(px_tables_dist_find("pillow")->capabilities, "imagecodecs fonts");
    ASSERT(px_tables_dist_find("ldap3") == NULL);
    ASSERT(px_tables_dist_find("tifffile") == NULL);
    ASSERT(px_tables_dist_find("") == NULL);
    ASSERT_STR(px_tables_soname_find("libpq.so.5")->capability, "postgres");
    ASSERT_STR(px_tables_soname_find("libpq.so.6")->capability, "postgres");
    ASSERT(px_tables_soname_find("libpq-1a2b3c4d.so.5.16") == NULL);
    ASSERT(px_tables_soname_find("libpq") == NULL);
    ASSERT(px_tables_soname_find("libpq.something") == NULL);
    ASSERT_STR(px_tables_soname_of_flag("pq")->capability, "postgres");
    ASSERT_STR(px_tables_header_capability("libpq-fe.h"), "postgres");
    ASSERT_STR(px_tables_probe_capability(PX_PROBE_PROGRAM, "pg_config"), "postgres");
    ASSERT(px_tables_probe_capability(PX_PROBE_PKG_CONFIG, "pg_config") == NULL);
    ASSERT_STR(px_tables_probe_capability(PX_PROBE_TOOL, "pg_config"), "postgres");
    ASSERT_STR(px_tables_probe_capability(PX_PROBE_PROGRAM, "git"), "git");
    ASSERT(px_tables_probe_capability(PX_PROBE_TOOL, "git") == NULL);
}

TEST(messages)
{
    static const struct {
        const char *text, *what, *capability;
        bool build;
    } rows[] = {
        {"x\n./a: error while loading shared libraries: libpq.so.5: cannot open shared object file: No such file or directory\n",
         "libpq.so.5", "postgres"},
        {"Traceback\nImportError: libpq.so.5: cannot open shared object file: No such file or directory", "libpq.so.5", "postgres"},
        {"Error loading shared library libxml2.so.2: No such file or directory (needed by /x)", "libxml2.so.2", "xml"},
        {"a.c:1:10: fatal error: libpq-fe.h: No such file or directory\n", "libpq-fe.h", "postgres", true},
        {"a.c:1:10: fatal error: 'libpq-fe.h' file not found\n", "libpq-fe.h", "postgres", true},
        {"/usr/bin/ld: cannot find -lpq: No such file or directory\n", "pq", "postgres", true},
        {"Package libpq was not found in the pkg-config search path.\n", "libpq", "postgres", true},
        {"../meson.build:9:0: ERROR: Dependency \"libpq\" not found, tried pkgconfig\n", "libpq", "postgres", true},
        {"Error: pg_config executable not found.\n", "pg_config", "postgres", true},
        {"sh: 1: pg_config: not found\n", "pg_config", "postgres", true},
        {"FileNotFoundError: [Errno 2] No such file or directory: 'pg_config'\n", "pg_config", "postgres", true},
        {"sh: 1: git: not found\n", "git", "git"},
        {"fatal error: mine.h: No such file or directory\n", NULL, NULL},
        {"ImportError: libmine.so.1: cannot open shared object file", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_missing missing = {.capability = NULL};
        bool found = px_messages_missing(rows[i].text, strlen(rows[i].text), &missing);
        if (found != (rows[i].what != NULL) || (found && (!px_equal(missing.what, rows[i].what) || !px_equal(missing.capability, rows[i].capability) || missing.build != rows[i].build)))
            px_test_fail(__FILE__, __LINE__, "case %zu: %d %s %s", i, found, missing.what, missing.capability ? missing.capability : "-");
    }
}
