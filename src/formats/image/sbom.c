#include "image/sbom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "store/document.h"

struct row {
    const char *name, *version, *arch, *sha256;
    size_t list;                /* which it came from */
    bool python;
};

struct rows {
    struct row *items;
    size_t count;
};

static int compare(const void *a, const void *b)
{
    const struct row *p = a, *q = b;
    int order = (int)p->python - (int)q->python;
    order = order ? order : strcmp(p->name, q->name);
    order = order ? order : strcmp(p->arch, q->arch);
    return order ? order : p->list < q->list ? 1 : -1;          /* the later one first */
}

static int add_list(struct rows *rows, const json_t *list, size_t number, bool python)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *from = json_array_get(list, i);
        struct row r = {px_document_text(from, "name"), px_document_text(from, "version"),
                        px_document_text(from, "arch"), px_document_text(from, "sha256"), number, python};
        if (!r.name || !r.version || !r.arch)
            return -EINVAL;
        rows->items[rows->count++] = r;
    }
    return 0;
}

static bool same_package(const struct row *a, const struct row *b)
{
    return a->python == b->python && px_equal(a->name, b->name) && px_equal(a->arch, b->arch);
}

static int collect(const struct px_sbom *sbom, struct rows *rows)
{
    size_t kept = 0, total = json_array_size(sbom->python);
    for (size_t l = 0; l < PX_COUNT_OF(sbom->packages); l++)
        total += json_array_size(sbom->packages[l]);
    rows->items = calloc(total + 1, sizeof *rows->items);
    int r = rows->items ? add_list(rows, sbom->python, 0, true) : -ENOMEM;
    for (size_t l = 0; r == 0 && l < PX_COUNT_OF(sbom->packages); l++)
        r = add_list(rows, sbom->packages[l], l, false);
    if (r < 0)
        return r;
    qsort(rows->items, rows->count, sizeof *rows->items, compare);
    for (size_t i = 0; i < rows->count; i++)
        if (kept == 0 || !same_package(&rows->items[kept - 1], &rows->items[i]))
            rows->items[kept++] = rows->items[i];
    rows->count = kept;
    return 0;
}

/* pkg:deb/debian/libpq5@15.1-0%2Bdeb12u1?arch=amd64, pkg:pypi/six@1.16.0 */
static void put_purl(struct px_json *j, const char *os_id, const struct row *r)
{
    px_auto_buf struct px_buf purl = PX_BUF(4096);
    const char *const texts[] = {r->name, r->version};
    if (r->python)
        px_buf_puts(&purl, "pkg:pypi/");
    else
        px_buf_printf(&purl, "pkg:%s/%s/", px_equal(os_id, "alpine") ? "apk" : "deb", os_id);
    for (size_t t = 0; t < PX_COUNT_OF(texts); t++) {
        px_buf_puts(&purl, t ? "@" : "");
        for (const char *c = texts[t]; *c; c++)
            px_buf_printf(&purl, strchr("+:", *c) ? "%%%02X" : "%c", (unsigned char)*c);
    }
    if (!r->python)
        px_buf_printf(&purl, "?arch=%s", r->arch);
    px_json_array(j, "externalRefs");
    px_json_object(j, NULL);
    px_json_text(j, "referenceCategory", "PACKAGE-MANAGER");
    px_json_text(j, "referenceLocator", px_buf_text(&purl));
    px_json_text(j, "referenceType", "purl");
    px_json_end(j);
    px_json_end(j);
}

static void put_package(struct px_json *j, const char *os_id, const struct row *r, size_t number)
{
    char id[64];
    (void)px_fmt(id, sizeof id, "SPDXRef-Package-%zu", number);
    px_json_object(j, NULL);
    px_json_text(j, "SPDXID", id);
    if (r->sha256) {
        px_json_array(j, "checksums");
        px_json_object(j, NULL);
        px_json_text(j, "algorithm", "SHA256");
        px_json_text(j, "checksumValue", r->sha256);
        px_json_end(j);
        px_json_end(j);
    }
    px_json_text(j, "copyrightText", "NOASSERTION");
    px_json_text(j, "downloadLocation", "NOASSERTION");
    if (os_id || r->python)
        put_purl(j, os_id, r);
    px_json_bool(j, "filesAnalyzed", false);
    px_json_text(j, "licenseConcluded", "NOASSERTION");
    px_json_text(j, "licenseDeclared", "NOASSERTION");
    px_json_text(j, "name", r->name);
    px_json_text(j, "versionInfo", r->version);
    px_json_end(j);
}

static void put_relationships(struct px_json *j, size_t count)
{
    char id[64];
    px_json_array(j, "relationships");
    for (size_t i = 0; i < count; i++) {
        (void)px_fmt(id, sizeof id, "SPDXRef-Package-%zu", i + 1);
        px_json_object(j, NULL);
        px_json_text(j, "relatedSpdxElement", id);
        px_json_text(j, "relationshipType", "DESCRIBES");
        px_json_text(j, "spdxElementId", "SPDXRef-DOCUMENT");
        px_json_end(j);
    }
    px_json_end(j);
}

static void put_document(struct px_json *j, const struct px_sbom *sbom, const struct rows *rows)
{
    char where[128];
    (void)px_fmt(where, sizeof where, "urn:px:sbx:%.64s", sbom->sbx_id);
    px_json_object(j, NULL);
    px_json_text(j, "SPDXID", "SPDXRef-DOCUMENT");
    px_json_object(j, "creationInfo");
    px_json_text(j, "created", "1970-01-01T00:00:00Z");
    px_json_array(j, "creators");
    px_json_text(j, NULL, "Tool: px-" PX_VERSION);
    px_json_end(j);
    px_json_end(j);
    px_json_text(j, "dataLicense", "CC0-1.0");
    px_json_text(j, "documentNamespace", where);
    px_json_text(j, "name", sbom->name);
    px_json_array(j, "packages");
    for (size_t i = 0; i < rows->count; i++)
        put_package(j, sbom->os_id, &rows->items[i], i + 1);
    px_json_end(j);
    put_relationships(j, rows->count);
    px_json_text(j, "spdxVersion", "SPDX-2.3");
    px_json_end(j);
}

int px_sbom_write(const struct px_sbom *sbom, struct px_buf *out)
{
    struct rows rows = {0};
    struct px_json j = {.out = out};
    int r = collect(sbom, &rows);
    if (r == 0) {
        put_document(&j, sbom, &rows);
        px_buf_putc(out, '\n');
        r = out->err;
    }
    free(rows.items);
    return r;
}
