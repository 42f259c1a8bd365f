#include "seccomp/draft.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "seccomp/entry.h"
#include "seccomp/reader.h"

void px_draft_done(struct px_draft *d)
{
    free(d->rule);
    free(d->use);
    for (size_t i = 0; i < PX_DRAFT_WARNINGS_MAX; i++)
        free(d->warning[i]);
    *d = (struct px_draft){0};
}

void px_draft_warn(struct px_draft *d, const char *fmt, ...)
{
    char words[512];
    struct px_buf text = PX_BUF(4 * sizeof words);
    va_list args;

    if (d->warnings++ >= PX_DRAFT_WARNINGS_MAX)
        return;
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    (void)px_buf_quote(&text, words, strlen(words));
    d->warning[d->warnings - 1] = px_buf_take(&text);
}

/* Makes room for one more element; NULL without memory. */
static void *grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    size_t more = *room ? 2 * *room : 64;
    void *larger = realloc(array, more * size);
    if (larger)
        *room = more;
    return larger;
}

int px_draft_add_rule(struct px_draft *d, struct px_rule **ret_rule)
{
    struct px_rule *larger = grow(d->rule, d->rules, &d->rules_room, sizeof *d->rule);

    if (!larger)
        return -ENOMEM;
    d->rule = larger;
    *ret_rule = &d->rule[d->rules++];
    memset(*ret_rule, 0, sizeof **ret_rule);
    return 0;
}

int px_draft_add_use(struct px_draft *d, uint16_t number, uint16_t rule)
{
    struct px_use *larger = grow(d->use, d->uses, &d->uses_room, sizeof *d->use);

    if (!larger)
        return -ENOMEM;
    d->use = larger;
    d->use[d->uses++] = (struct px_use){.number = number, .rule = rule};
    return 0;
}

/* ---- the top of the file ---- */

static const struct px_word architectures[] = {
    {"SCMP_ARCH_X86_64", 0}, {"SCMP_ARCH_X86", 0}, {"SCMP_ARCH_X32", 0}, {"SCMP_ARCH_ARM", 0}, {"SCMP_ARCH_AARCH64", 0},
    {"SCMP_ARCH_LOONGARCH64", 0}, {"SCMP_ARCH_M68K", 0}, {"SCMP_ARCH_MIPS", 0}, {"SCMP_ARCH_MIPS64", 0},
    {"SCMP_ARCH_MIPS64N32", 0}, {"SCMP_ARCH_MIPSEL", 0}, {"SCMP_ARCH_MIPSEL64", 0}, {"SCMP_ARCH_MIPSEL64N32", 0},
    {"SCMP_ARCH_PARISC", 0}, {"SCMP_ARCH_PARISC64", 0}, {"SCMP_ARCH_PPC", 0}, {"SCMP_ARCH_PPC64", 0},
    {"SCMP_ARCH_PPC64LE", 0}, {"SCMP_ARCH_RISCV64", 0}, {"SCMP_ARCH_S390", 0}, {"SCMP_ARCH_S390X", 0}, {"SCMP_ARCH_SH", 0},
    {"SCMP_ARCH_SHEB", 0}, {"SCMP_ARCH_SPARC", 0}, {"SCMP_ARCH_SPARC64", 0},
    {NULL, 0},
};

static int read_entries(struct px_reader *r, json_t *top)
{
    json_t *entries = NULL;

    if (px_reader_array(r, top, "syscalls", &entries) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        r->entry = (int)i;
        if (px_entry_read(r, json_array_get(entries, i)) < 0)
            return -1;
    }
    r->entry = PX_NOWHERE;
    return 0;
}

static int check_architectures(const struct px_reader *r, const char *member, json_t *array)
{
    uint32_t ignored;
    char place[64];

    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *name = px_reader_text_at(r, member, array, i);
        if (!name || px_fmt(place, sizeof place, "%s[%zu]", member, i) < 0 ||
            px_reader_word(r, place, architectures, name, &ignored) < 0)
            return -1;
    }
    return 0;
}

static int check_map_row(const struct px_reader *r, json_t *row)
{
    json_t *below = NULL;
    const char *name = NULL;
    uint32_t ignored;

    if (!json_is_object(row))
        return px_reader_wrong(r, NULL, "must be an object");
    if (px_reader_text(r, row, "architecture", &name) < 0 || px_reader_array(r, row, "subArchitectures", &below) < 0)
        return -1;
    if (!name)
        return px_reader_wrong(r, "architecture", "is missing");
    if (px_reader_word(r, "architecture", architectures, name, &ignored) < 0)
        return -1;
    return check_architectures(r, "subArchitectures", below);
}

static int check_map(const struct px_reader *r, json_t *map)
{
    struct px_reader inner = *r;
    char place[32];

    inner.group = place;
    for (size_t i = 0; i < json_array_size(map); i++)
        if (px_fmt(place, sizeof place, "archMap[%zu]", i) < 0 || check_map_row(&inner, json_array_get(map, i)) < 0)
            return -1;
    return 0;
}

/* Architectures are checked and then ignored: calls of another architecture always kill the process. */
static int read_architectures(const struct px_reader *r, json_t *top)
{
    json_t *list = NULL, *map = NULL;

    if (px_reader_array(r, top, "architectures", &list) < 0 || px_reader_array(r, top, "archMap", &map) < 0)
        return -1;
    if (json_array_size(list) > 0 && json_array_size(map) > 0)
        return px_reader_wrong(r, NULL, "has both architectures and archMap");
    return check_architectures(r, "architectures", list) < 0 ? -1 : check_map(r, map);
}

static int read_top(struct px_reader *r, json_t *top)
{
    static const char *const known[] = {"defaultAction", "defaultErrnoRet", "defaultErrno", "architectures", "archMap",
                                        "syscalls", "comment", NULL};

    if (!json_is_object(top))
        return px_reader_wrong(r, NULL, "must be an object");
    px_reader_warn_of_others(r, top, known);
    if (px_entry_action(r, top, "defaultAction", "defaultErrnoRet", "defaultErrno", &r->draft->action) < 0 ||
        read_architectures(r, top) < 0)
        return -1;
    return read_entries(r, top);
}

int px_draft_read(const char *text, size_t len, const char *name, struct px_draft *ret_draft, struct px_err *e)
{
    struct px_reader r = {.draft = ret_draft, .name = name, .entry = PX_NOWHERE, .arg = PX_NOWHERE, .e = e};

    *ret_draft = (struct px_draft){0};
    json_t *top = px_reader_load(&r, text, len);
    if (!top)
        return -1;
    int answer = read_top(&r, top);
    json_decref(top);
    if (answer < 0)
        px_draft_done(ret_draft);
    return answer;
}
