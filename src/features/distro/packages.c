#include "distro/packages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "store/canonical.h"
#include "store/document.h"

enum { TEXT_MAX = 255 };

static void package_done(struct px_package *p)
{
    free(p->name);
    free(p->version);
    free(p->arch);
    free(p->uri);
    free(p->file);
}

void px_packages_done(struct px_packages *list)
{
    for (size_t i = 0; i < list->count; i++)
        package_done(&list->items[i]);
    free(list->items);
    *list = (struct px_packages){0};
}

/* ---- adding ---- */

/* Starts with a letter or digit and has nothing but those and the bytes in `more`. */
static bool is_word(const char *text, const char *more)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        bool plain = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9') ||
                     (text[i] >= 'A' && text[i] <= 'Z');
        if (!plain && (i == 0 || !strchr(more, text[i])))
            return false;
    }
    return n > 0 && n <= TEXT_MAX;
}

static int grow(struct px_packages *list)
{
    if (list->count >= PX_PACKAGES_MAX)
        return -E2BIG;
    if (list->count & (list->count - 1))        /* room doubles whenever the count is a power of two */
        return 0;
    void *items = reallocarray(list->items, list->count ? 2 * list->count : 1, sizeof *list->items);
    if (!items)
        return -ENOMEM;
    list->items = items;
    return 0;
}

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

int px_packages_add(struct px_packages *list, const struct px_package *package)
{
    const struct px_package *from = package;
    if (!is_word(from->name, "+-.") || !is_word(from->version, "+-.:~") || !is_word(from->arch, "-") || from->size == 0)
        return -EINVAL;
    int r = grow(list);
    if (r < 0)
        return r;
    struct px_package p = {.name = copy(from->name),
                           .version = copy(from->version),
                           .arch = copy(from->arch),
                           .sha256 = from->sha256,
                           .size = from->size,
                           .uri = copy(from->uri),
                           .file = copy(from->file)};
    if (!p.name || !p.version || !p.arch || (from->uri && !p.uri) || (from->file && !p.file)) {
        package_done(&p);
        return -ENOMEM;
    }
    list->items[list->count++] = p;
    return 0;
}

int px_packages_copy(const struct px_packages *from, struct px_packages *to)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < from->count; i++)
        r = px_packages_add(to, &from->items[i]);
    return r;
}

static int compare(const void *a, const void *b)
{
    const struct px_package *p = a, *q = b;
    int by_name = strcmp(p->name, q->name);
    return by_name ? by_name : strcmp(p->arch, q->arch);
}

int px_packages_sort(struct px_packages *list)
{
    if (list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, compare);
    for (size_t i = 1; i < list->count; i++)
        if (compare(&list->items[i - 1], &list->items[i]) == 0)
            return -EEXIST;
    return 0;
}

uint64_t px_packages_bytes(const struct px_packages *list)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < list->count; i++)
        sum += list->items[i].size;
    return sum;
}

/* ---- as JSON ---- */

static json_t *rows(const struct px_packages *list, bool whole)
{
    json_t *out = json_array();
    for (size_t i = 0; out && i < list->count; i++) {
        const struct px_package *p = &list->items[i];
        json_t *row = json_pack("{ssssss}", "arch", p->arch, "name", p->name, "version", p->version);
        bool ok = row && (!whole || (json_object_set_new(row, "sha256", json_string(p->sha256.hex)) == 0 &&
                                     json_object_set_new(row, "size", json_integer((json_int_t)p->size)) == 0));
        if (json_array_append_new(out, row) < 0 || !ok) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

json_t *px_packages_names(const struct px_packages *list)
{
    return rows(list, false);
}

json_t *px_packages_exact(const struct px_packages *list)
{
    return rows(list, true);
}

int px_packages_id(const struct px_packages *list, struct px_oid *ret_id)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_LOCK_MAX);
    px_auto(px_document) json_t *all = px_packages_exact(list);
    int r = all ? px_canonical(all, &text) : -ENOMEM;
    return r < 0 ? r : px_hash_bytes(text.data, text.len, ret_id);
}

json_t *px_packages_lock(const struct px_packages *list, const char *base, const char *arch)
{
    return json_pack("{sssssiso}", "arch", arch, "base", base, "lock_version", PX_LOCK_VERSION, "packages",
                     rows(list, true));
}

/* ---- from JSON ---- */

static int read_row(const json_t *row, struct px_packages *list)
{
    const char *arch = px_document_text(row, "arch"), *name = px_document_text(row, "name");
    const char *hash = px_document_text(row, "sha256"), *version = px_document_text(row, "version");
    struct px_package p = {.name = (char *)name, .version = (char *)version, .arch = (char *)arch};
    if (!arch || !name || !hash || !version || px_hash_oid_parse(hash, false, &p.sha256) < 0 ||
        px_document_number(row, "size", UINT32_MAX, &p.size) != 1)
        return -EINVAL;
    return px_packages_add(list, &p);
}

static int read_rows(const json_t *packages, struct px_packages *list, struct px_err *e)
{
    for (size_t i = 0; i < json_array_size(packages); i++) {
        int r = read_row(json_array_get(packages, i), list);
        if (r < 0)
            return px_fail(e, PX_E_RECORD, r == -EINVAL ? 0 : r, "package %zu of the lock is not what it should be",
                           i + 1);
    }
    if (px_packages_sort(list) < 0)
        return px_fail(e, PX_E_RECORD, 0, "a package comes twice in the lock");
    return list->count > 0 ? 0 : px_fail(e, PX_E_RECORD, 0, "the lock has no packages");
}

static int read_lock(const json_t *lock, struct px_packages *list, char **ret_base, char **ret_arch, struct px_err *e)
{
    const char *base = px_document_text(lock, "base"), *arch = px_document_text(lock, "arch");
    uint64_t version = 0;
    if (!base || !arch || px_document_number(lock, "lock_version", UINT32_MAX, &version) != 1 || !is_word(base, "-.") ||
        !is_word(arch, "-"))
        return px_fail(e, PX_E_RECORD, 0, "the lock does not say which base it is of");
    if (version != PX_LOCK_VERSION)
        return px_fail(e, PX_E_SANDBOX_FORMAT, 0, "the lock has version %u, and this px knows version %d",
                       (unsigned)version, PX_LOCK_VERSION);
    if (read_rows(json_object_get(lock, "packages"), list, e) < 0)
        return -1;
    px_auto_free char *base_copy = strdup(base);
    px_auto_free char *arch_copy = strdup(arch);
    if (!base_copy || !arch_copy)
        return px_no_memory(e);
    *ret_base = px_take(&base_copy);
    *ret_arch = px_take(&arch_copy);
    return 0;
}

int px_packages_read(const char *text, size_t len, struct px_packages *ret_list, char **ret_base, char **ret_arch,
                     struct px_err *e)
{
    px_auto(px_document) json_t *lock = NULL;
    struct px_packages list = {0};
    if (px_document_read(text, len, "the lock", PX_E_RECORD, &lock, e) < 0)
        return -1;
    if (read_lock(lock, &list, ret_base, ret_arch, e) < 0) {
        px_packages_done(&list);
        (void)px_fix(e, "Give a lock that `px sandbox base build` wrote.");
        return -1;
    }
    *ret_list = list;
    return 0;
}
