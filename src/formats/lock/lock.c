/* What all lock formats share: strings, lists, ids. The formats are in px.c, others.c and requirements.c. */
#include "lock/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "lock/lock_internal.h"
#include "pep/marker.h"

enum { NAME_BYTES = 256 };

const char *const px_lock_files[PX_PINS_FORMATS] = {"px.lock", "uv.lock", "pylock.toml", "poetry.lock", "requirements.txt"};

/* ---- texts: a chain of blocks, freed together ---- */

struct block {
    struct block *next;
    size_t used, size;
    char data[];
};

enum { BLOCK_BYTES = 64 << 10 };

static char *take_bytes(struct px_lock *pins, size_t size)
{
    struct block *block = pins->arena;
    if (!block || block->size - block->used < size) {
        size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        block = malloc(sizeof *block + room);
        if (!block)
            return NULL;
        *block = (struct block){.next = pins->arena, .size = room};
        pins->arena = block;
    }
    char *at = block->data + block->used;
    block->used += size;
    return at;
}

const char *px_lock_keep(struct px_lock_reading *r, const char *text, size_t length)
{
    char *copy = take_bytes(r->pins, length + 1);
    if (!copy) {
        r->lost = true;
        px_no_memory(r->e);
        return NULL;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void *px_lock_grow(struct px_lock_reading *r, void *list, size_t *count, size_t size, size_t max)
{
    if (*count >= max) {
        px_fail(r->e, PX_E_LOCK_FORMAT, 0, "%s: a list has more than %zu items", r->shown, max);
        return NULL;
    }
    /* Capacity is a power of two, so that appending takes amortised constant time. */
    bool full = (*count & (*count - 1)) == 0;
    char *bigger = full ? realloc(list, (*count ? *count * 2 : 1) * size) : list;
    if (!bigger) {
        px_no_memory(r->e);
        return NULL;
    }
    memset(bigger + *count * size, 0, size);
    ++*count;
    return bigger;
}

/* ---- TOML ---- */

int px_lock_wrong(struct px_lock_reading *r, uint32_t node, const char *what)
{
    uint32_t line = 1, column = 1;
    if (r->toml)
        px_toml_place(r->toml, px_toml_at(r->toml, node)->from, &line, &column);
    else
        line = node;
    return px_fail(r->e, PX_E_LOCK_FORMAT, 0, "%s:%u: %s", r->shown, line, what);
}

const char *px_lock_text(struct px_lock_reading *r, uint32_t table, const char *key)
{
    uint32_t node = px_toml_get(r->toml, table, key);
    const char *text = node ? px_toml_text(r->toml, node) : NULL;
    if (text && strlen(text) != px_toml_at(r->toml, node)->text_length) {
        r->lost = true;
        (void)px_lock_wrong(r, node, "a text with a NUL in it");
        return NULL;
    }
    return text ? px_lock_keep(r, text, strlen(text)) : NULL;
}

int px_lock_number(struct px_lock_reading *r, uint32_t table, const char *key, uint64_t *ret_number)
{
    uint32_t node = px_toml_get(r->toml, table, key);
    if (!node)
        return 0;
    if (px_toml_at(r->toml, node)->type != PX_TOML_INTEGER || px_toml_at(r->toml, node)->number < 0)
        return px_lock_wrong(r, node, "a number is expected here");
    *ret_number = (uint64_t)px_toml_at(r->toml, node)->number;
    return 0;
}

int px_lock_array(struct px_lock_reading *r, uint32_t table, const char *key, uint32_t *ret_first)
{
    uint32_t node = px_toml_get(r->toml, table, key);
    *ret_first = PX_TOML_NONE;
    if (!node)
        return 0;
    if (px_toml_at(r->toml, node)->type != PX_TOML_ARRAY)
        return px_lock_wrong(r, node, "an array is expected here");
    *ret_first = px_toml_at(r->toml, node)->first;
    return 0;
}

int px_lock_texts(struct px_lock_reading *r, uint32_t table, const char *key, const char ***ret_list, size_t *ret_count)
{
    uint32_t at;
    if (px_lock_array(r, table, key, &at) < 0)
        return -1;
    for (; at; at = px_toml_at(r->toml, at)->next) {
        const char *text = px_toml_text(r->toml, at);
        if (!text)
            return px_lock_wrong(r, at, "a string is expected here");
        const char **list = px_lock_grow(r, *ret_list, ret_count, sizeof *list, PX_PIN_FILES_MAX);
        if (!list)
            return -1;
        *ret_list = list;
        list[*ret_count - 1] = px_lock_keep(r, text, strlen(text));
        if (!list[*ret_count - 1])
            return -1;
    }
    return 0;
}

/* ---- pins ---- */

struct px_lock_pin *px_lock_add(struct px_lock_reading *r, uint32_t node, const char *name, const char *version)
{
    char canonical[NAME_BYTES];
    struct px_lock *pins = r->pins;
    if (!name || px_marker_package_name(name, strlen(name), canonical, sizeof canonical) < 0) {
        (void)px_lock_wrong(r, node, "a package without a proper name");
        return NULL;
    }
    struct px_lock_pin *items = px_lock_grow(r, pins->items, &pins->count, sizeof *items, PX_PINS_MAX);
    if (!items)
        return NULL;
    pins->items = items;
    struct px_lock_pin *pin = &items[pins->count - 1];
    pin->name = px_lock_keep(r, canonical, strlen(canonical));
    pin->version = version ? version : "";
    pin->marker = "";
    pin->direct = true;
    return pin->name ? pin : NULL;
}

const char *px_lock_base_name(struct px_lock_reading *r, const char *url)
{
    size_t end = strcspn(url, "?#"), from = end;
    while (from > 0 && url[from - 1] != '/')
        from--;
    return px_lock_keep(r, url + from, end - from);
}

int px_lock_add_file(struct px_lock_reading *r, uint32_t node, const char *name, const char *url, const char *hash, uint64_t size)
{
    struct px_lock_pin *pin = &r->pins->items[r->pins->count - 1];
    if (!name && url)
        name = px_lock_base_name(r, url);
    if (!name || !*name || strchr(name, '/'))
        return px_lock_wrong(r, node, "a file without a proper name");
    struct px_pin_file *files = px_lock_grow(r, pin->files, &pin->file_count, sizeof *files, PX_PIN_FILES_MAX);
    if (!files)
        return -1;
    pin->files = files;
    struct px_pin_file *file = &files[pin->file_count - 1];
    *file = (struct px_pin_file){.name = name, .url = url, .size = size};
    if (hash && px_starts_with(hash, "sha256:") && px_hash_oid_parse(hash, true, &file->sha256) < 0)
        return px_lock_wrong(r, node, "a sha256 has 64 digits 0-9a-f");
    return 0;
}

/* ---- the whole ---- */

typedef int read_format(struct px_lock_reading *r);

static int read_toml(struct px_lock_reading *r, enum px_pins_format format, const char *text, size_t length)
{
    static read_format *const readers[] = {px_lock_read_px, px_lock_read_uv, px_lock_read_pylock, px_lock_read_poetry};
    struct px_toml_fault fault;
    int status = px_toml_parse(text, length, &r->toml, &fault);
    if (status == -EINVAL) {
        px_fail(r->e, PX_E_LOCK_FORMAT, 0, "%s:%u:%u: %s", r->shown, fault.line, fault.column, fault.message);
        return px_why(r->e, "The file is not valid TOML.");
    }
    if (status < 0)
        return px_fail(r->e, PX_E_LOCK_FORMAT, status, "cannot read '%s'", r->shown);
    status = readers[format](r);
    px_toml_free(r->toml);
    return status;
}

int px_lock_parse(enum px_pins_format format, const char *text, size_t length, const char *shown, struct px_lock *ret_pins,
                  struct px_err *e)
{
    struct px_lock pins = {.format = format};
    struct px_lock_reading r = {.pins = &pins, .shown = shown, .e = e};
    int status = px_hash_bytes(text, length, &pins.bytes);
    if (status < 0)
        return px_fail(e, PX_E_MEMORY, status, "%s", shown);
    status = format == PX_PINS_REQUIREMENTS ? px_lock_read_requirements(&r, text, length) : read_toml(&r, format, text, length);
    if (status < 0 || r.lost) {
        px_lock_done(&pins);
        return -1;
    }
    *ret_pins = pins;
    return 0;
}

void px_lock_done(struct px_lock *pins)
{
    for (size_t i = 0; i < pins->count; i++) {
        free(pins->items[i].extras);
        free(pins->items[i].requires);
        free(pins->items[i].files);
        free(pins->items[i].needs);
    }
    free(pins->items);
    free(pins->system.capabilities);
    free(pins->system.base_packages);
    free(pins->system.packages);
    for (size_t i = 0; i < pins->build_count; i++) {
        free(pins->builds[i].requires);
        px_lock_done(&pins->builds[i].pins);
    }
    free(pins->builds);
    for (struct block *block = pins->arena, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *pins = (struct px_lock){0};
}

/* ---- ids ---- */

const char *px_lock_id(const struct px_lock *pins)
{
    return pins->lock_id ? pins->lock_id : pins->bytes.hex;
}

static void hash_text(struct px_hash *h, const char *text)
{
    if (text)
        px_hash_add(h, text, strlen(text));
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each of the sorted texts with its NUL. */
int px_lock_hash_texts(struct px_hash *h, const char *const *list, size_t count)
{
    if (count == 0)
        return 0;
    px_auto_free const char **sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, list, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_texts);
    for (size_t i = 0; i < count; i++)
        px_hash_add(h, sorted[i], strlen(sorted[i]) + 1);
    return 0;
}

/* PYTHON-ABI-PLATFORM of a wheel's name, one after the other; nothing for a source archive. */
static void hash_tags(struct px_hash *h, const char *file_name)
{
    const char *dash = NULL, *end = strstr(file_name, ".whl");
    int dashes = 0;
    for (const char *p = end; end && p > file_name && dashes < 3; p--)
        if (p[-1] == '-') {
            dash = p;
            dashes++;
        }
    for (const char *p = dash; dashes == 3 && p < end; p++)
        if (*p != '-')
            px_hash_add(h, p, 1);
}

static int hash_pin(struct px_hash *h, const struct px_lock_pin *pin)
{
    hash_text(h, pin->name);
    hash_text(h, pin->specifier);
    hash_text(h, pin->marker);
    int r = px_lock_hash_texts(h, pin->extras, pin->extras_count);
    if (r >= 0)
        r = px_lock_hash_texts(h, pin->requires, pin->requires_count);
    if (r < 0 || pin->file_count == 0)
        return r;
    const struct px_pin_file *file = &pin->files[0];
    unsigned char size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (unsigned char)(file->size >> 8 * i);
    hash_text(h, file->name);
    hash_text(h, file->url);
    hash_text(h, file->sha256.hex);
    px_hash_add(h, size, sizeof size);
    hash_tags(h, file->name);
    hash_text(h, pin->build_options_hash);
    return 0;
}

int px_lock_hash_list(struct px_hash *h, const struct px_lock *pins)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < pins->count; i++)
        r = hash_pin(h, &pins->items[i]);
    return r;
}

int px_lock_compute_id(const struct px_lock *pins, struct px_oid *ret_id)
{
    struct px_hash h;
    px_hash_begin(&h);
    hash_text(&h, pins->fingerprint);
    int r = px_lock_hash_list(&h, pins);
    if (r >= 0)
        r = px_lock_hash_builds(&h, pins);
    if (r < 0) {
        px_hash_drop(&h);
        return r;
    }
    return px_hash_end(&h, ret_id);
}
