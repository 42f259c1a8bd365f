/* px explain: the rows of data/errors.def for a person, or as JSON; what px run would do is cli/project/run.c. */
#include "args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "PX017", "px17", "17" */
static int parse_code(const char *text)
{
    int code = 0;
    if ((text[0] == 'P' || text[0] == 'p') && (text[1] == 'X' || text[1] == 'x'))
        text += 2;
    if (*text == '\0' || strlen(text) > 4)
        return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return 0;
        code = code * 10 + (*text - '0');
    }
    return code;
}

static int list(void)
{
    struct px_explain row;
    for (int code = px_explain_next(0); code; code = px_explain_next(code))
        if (px_explain(code, &row) == 0)
            print("PX%03d  %s\n", row.code, row.what);
    return flush();
}

int explain_error(struct args *a)
{
    const struct cli *cli = a->cli;
    struct px_explain row;
    if (a->count == 0)
        return list();
    int code = parse_code(a->names[0]);
    if (code == 0 || px_explain(code, &row) < 0)
        return usage_error(cli, USAGE_STATUS, "Run `px explain` for the list of codes.", "there is no error '%s'", a->names[0]);
    struct px_err e = {.code = row.code};
    (void)snprintf(e.what, sizeof e.what, "%s", row.what);
    (void)snprintf(e.why, sizeof e.why, "%s", row.why);
    (void)snprintf(e.fix, sizeof e.fix, "%s", row.fix);
    if (cli->json)
        return say_error(cli, &e, 0);
    print("PX%03d  %s\n", e.code, e.what);
    if (*e.why)
        print("\nWhy:\n  - %s\n", e.why);
    print("\nFix:\n");
    for (const char *p = e.fix; *p;) {
        size_t n = strcspn(p, "\n");
        print("  - %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
    return flush();
}
