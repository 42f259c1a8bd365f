/* catalog/delete.c - names and records that somebody wants to be rid of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "store/document.h"

enum { TARGETS_MAX = 1024, PREFIX_MIN = 8, RECORD_MAX = 8 << 20, ANSWER_MAX = 16 << 20 };

static const char *const kinds[PX_RECORD_KINDS] = {"base", "image", "env"};

/* A record, or one of its names. */
struct target {
    enum px_record_kind kind;
    struct px_oid id;
    const char *name;           /* the caller's word; NULL: the record with all its names */
    bool last;                  /* no other name leads to it: it goes */
};

struct deletion {
    struct px_sandbox *s;
    struct target *targets;
    size_t count;
    const char *word;           /* that is looked for now */
    const struct target *of;    /* whose other names are looked for */
    struct px_err *e;
};

static int too_many(struct px_err *e)
{
    return px_fail(e, PX_E_LIMIT, E2BIG, "more than %d bases, images and environments at once", TARGETS_MAX);
}

static int add(struct deletion *d, enum px_record_kind kind, const struct px_oid *id, const char *name)
{
    for (size_t i = 0; i < d->count; i++) {
        const struct target *t = &d->targets[i];
        if (t->kind == kind && px_hash_oid_equal(&t->id, id) && (!t->name || (name && px_equal(t->name, name))))
            return 0;
    }
    if (d->count == TARGETS_MAX)
        return too_many(d->e);
    d->targets[d->count++] = (struct target){.kind = kind, .id = *id, .name = name, .last = !name};
    return 0;
}

/* ---- which ---- */

static int by_name(void *user, enum px_record_kind kind, const char *name, const struct px_oid *id)
{
    struct deletion *d = user;
    return px_equal(name, d->word) ? add(d, kind, id, d->word) : 0;
}

/* A record may be one that nobody can read: then it has no members. */
static json_t *record_of(struct px_sandbox *s, enum px_record_kind kind, const struct px_oid *id)
{
    px_auto_buf struct px_buf text = PX_BUF(RECORD_MAX);
    struct px_err ignored = {0};
    json_t *record = NULL;
    if (px_record_get(s->store, kind, id, &text, &ignored) != 0 ||
        px_document_read(px_buf_text(&text), text.len, "a record", PX_E_RECORD, &record, &ignored) < 0)
        return NULL;
    return record;
}

static int by_id(void *user, enum px_record_kind kind, const struct px_oid *id)
{
    struct deletion *d = user;
    if (px_starts_with(d->word, "sha256:") && kind == PX_RECORD_IMAGE) {
        px_auto(px_document) json_t *record = record_of(d->s, kind, id);
        return px_equal(px_document_text(record, "image_digest"), d->word) ? add(d, kind, id, NULL) : 0;
    }
    return strlen(d->word) >= PREFIX_MIN && px_starts_with(id->hex, d->word) ? add(d, kind, id, NULL) : 0;
}

static int unclear(const struct deletion *d, const char *why)
{
    (void)px_fail(d->e, PX_E_VALUE, 0, "'%.200s' is not one thing", d->word);
    (void)px_why(d->e, "%s", why);
    return px_fix(d->e, "`px sandbox list` shows them. Give more digits of the id that you mean.");
}

/* The names of a project's image and of its environment are one: its directory. */
static int check_clear(const struct deletion *d, size_t first)
{
    for (size_t i = first; i < d->count; i++)
        for (size_t k = first; k < i; k++) {
            if (!d->targets[i].name)
                return unclear(d, "More than one id begins so.");
            if ((d->targets[i].kind == PX_RECORD_BASE) != (d->targets[k].kind == PX_RECORD_BASE))
                return unclear(d, "A base and something else have this name.");
        }
    return 0;
}

static int find(struct deletion *d, const char *word)
{
    size_t first = d->count;
    d->word = word;
    if (px_name_each(d->s->store, by_name, d, d->e) < 0)
        return -1;
    for (int kind = 0; d->count == first && kind < PX_RECORD_KINDS; kind++)
        if (px_record_each(d->s->store, (enum px_record_kind)kind, by_id, d, d->e) < 0)
            return -1;
    if (d->count > first)
        return check_clear(d, first);
    (void)px_fail(d->e, PX_E_VALUE, 0, "nothing in the store has the name or id '%.200s'", word);
    (void)px_why(d->e, "It is the whole name, or at least %d digits of the id, or the digest of an image.", PREFIX_MIN);
    return px_fix(d->e, "`px sandbox list` shows names and ids.");
}

/* ---- whether it can go ---- */

/* Another name, and one that stays. */
static int is_other(void *user, enum px_record_kind kind, const char *name, const struct px_oid *id)
{
    const struct deletion *d = user;
    if (kind != d->of->kind || !px_hash_oid_equal(id, &d->of->id))
        return 0;
    for (size_t i = 0; i < d->count; i++) {
        const struct target *t = &d->targets[i];
        if (t->kind == kind && px_hash_oid_equal(id, &t->id) && (!t->name || px_equal(t->name, name)))
            return 0;
    }
    return 1;
}

/* By what everybody who uses it has a lease of. */
int px_catalog_record_in_use(struct px_sandbox *s, enum px_record_kind kind, const struct px_oid *id, struct px_err *e)
{
    px_auto(px_document) json_t *record = record_of(s, kind, id);
    bool image = kind == PX_RECORD_IMAGE;
    struct px_oid object;
    if (px_hash_oid_parse(px_document_text(record, image ? "image_digest" : "tree"), image, &object) < 0)
        return 0;
    return px_store_in_use(s->store, &object, e);
}

static int check_free(struct deletion *d, struct target *t)
{
    d->of = t;
    int others = t->name ? px_name_each(d->s->store, is_other, d, d->e) : 0;
    if (others != 0)
        return others < 0 ? -1 : 0;
    t->last = true;
    int used = px_catalog_record_in_use(d->s, t->kind, &t->id, d->e);
    if (used <= 0)
        return used;
    (void)px_fail(d->e, PX_E_STORE_BUSY, 0, "%s %.16s%s%.200s is in use", kinds[t->kind], t->id.hex,
                  t->name ? ", " : "", t->name ? t->name : "");
    (void)px_why(d->e, "A box or a px that is running has a lease of it.");
    return px_fix(d->e, "Wait for it, or end it: `px box list` shows boxes that stay.\nThen run the command again.");
}

/* ---- doing ---- */

static int delete(struct deletion *d, const struct target *t, struct px_json *j)
{
    if (t->name && px_name_remove(d->s->store, t->kind, t->name, d->e) < 0)
        return -1;
    if (t->last && px_record_remove(d->s->store, t->kind, &t->id, d->e) < 0)
        return -1;
    px_json_object(j, NULL);
    px_json_text(j, "kind", kinds[t->kind]);
    px_json_text(j, "id", t->id.hex);
    if (t->name)
        px_json_text(j, "name", t->name);
    else
        px_json_null(j, "name");
    px_json_bool(j, "last", t->last);
    px_json_end(j);
    return 0;
}

/* Everything is looked for and can go before anything does. */
static int run(struct deletion *d, const char *const *words, struct px_json *j)
{
    for (size_t i = 0; words[i]; i++)
        if (find(d, words[i]) < 0)
            return -1;
    for (size_t i = 0; i < d->count; i++)
        if (check_free(d, &d->targets[i]) < 0)
            return -1;
    for (size_t i = 0; i < d->count; i++)
        if (delete(d, &d->targets[i], j) < 0)
            return -1;
    return 0;
}

int px_sandbox_delete(struct px_sandbox *s, const char *const *words, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf text = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &text};
    struct deletion d = {.s = s, .e = e, .targets = calloc(TARGETS_MAX, sizeof *d.targets)};
    if (!d.targets)
        return px_no_memory(e);
    px_json_object(&j, NULL);
    px_json_int(&j, "schema", 1);
    px_json_array(&j, "removed");
    int r = run(&d, words, &j);
    px_json_end(&j);
    px_json_end(&j);
    (void)px_buf_putc(&text, '\n');
    free(d.targets);
    if (r == 0 && !(*ret_json = px_buf_take(&text)))
        r = px_no_memory(e);
    return r;
}
