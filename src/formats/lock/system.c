/* [system] of px.lock: the packages of the base and of the capabilities, one a line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "lock/lock_internal.h"

/* ---- reading ---- */

static int read_package(struct px_lock_reading *r, uint32_t node, struct px_pin_system *p)
{
    const char *sha256 = px_lock_text(r, node, "sha256");
    p->name = px_lock_text(r, node, "name");
    p->version = px_lock_text(r, node, "version");
    p->arch = px_lock_text(r, node, "arch");
    if (!p->name || !p->version || !p->arch || !sha256 || px_hash_oid_parse(sha256, false, &p->sha256) < 0)
        return px_lock_wrong(r, node, "a package of the system without its name, version, arch or sha256");
    return px_lock_number(r, node, "size", &p->size);
}

static int read_packages(struct px_lock_reading *r, uint32_t table, const char *key, struct px_pin_system **list,
                         size_t *count)
{
    uint32_t at;
    if (px_lock_array(r, table, key, &at) < 0)
        return -1;
    for (; at; at = px_toml_at(r->toml, at)->next) {
        struct px_pin_system *bigger = px_lock_grow(r, *list, count, sizeof *bigger, PX_PIN_SYSTEM_MAX);
        if (!bigger)
            return -1;
        *list = bigger;
        if (read_package(r, at, &bigger[*count - 1]) < 0)
            return -1;
    }
    return 0;
}

int px_lock_read_system(struct px_lock_reading *r)
{
    struct px_pins_system *s = &r->pins->system;
    uint32_t table = px_toml_get(r->toml, 0, "system");
    if (!table)
        return 0;
    if (px_toml_at(r->toml, table)->type != PX_TOML_TABLE)
        return px_lock_wrong(r, table, "a table is expected here");
    s->base = px_lock_text(r, table, "base");
    s->arch = px_lock_text(r, table, "arch");
    s->from = px_lock_text(r, table, "from");
    if (!s->base || !s->arch)
        return px_lock_wrong(r, table, "[system] does not say its base and arch");
    if (px_lock_texts(r, table, "capabilities", &s->capabilities, &s->capability_count) < 0 ||
        read_packages(r, table, "base_packages", &s->base_packages, &s->base_count) < 0)
        return -1;
    return read_packages(r, table, "packages", &s->packages, &s->count);
}

/* ---- writing ---- */

static void put(struct px_buf *out, const char *key, const char *text, const char *end)
{
    px_buf_printf(out, "%s = ", key);
    px_toml_put_string(out, text);
    px_buf_puts(out, end);
}

static void put_packages(struct px_buf *out, const char *key, const struct px_pin_system *list, size_t count)
{
    px_buf_printf(out, "%s = [\n", key);
    for (size_t i = 0; i < count; i++) {
        px_buf_puts(out, "    {");
        put(out, "name", list[i].name, ", ");
        put(out, "version", list[i].version, ", ");
        put(out, "arch", list[i].arch, ", ");
        put(out, "sha256", list[i].sha256.hex, ", ");
        px_buf_printf(out, "size = %llu},\n", (unsigned long long)list[i].size);
    }
    px_buf_puts(out, "]\n");
}

void px_lock_put_system(const struct px_pins_system *system, struct px_buf *out)
{
    if (!system->base)
        return;
    px_buf_puts(out, "\n[system]\n");
    put(out, "base", system->base, "\n");
    put(out, "arch", system->arch, "\n");
    if (system->from)
        put(out, "from", system->from, "\n");
    px_buf_puts(out, "capabilities = [");
    for (size_t i = 0; i < system->capability_count; i++) {
        px_buf_puts(out, i ? ", " : "");
        px_toml_put_string(out, system->capabilities[i]);
    }
    px_buf_puts(out, "]\n");
    put_packages(out, "base_packages", system->base_packages, system->base_count);
    put_packages(out, "packages", system->packages, system->count);
}

/* ---- another one ---- */

int px_lock_replace_system(const char *text, size_t length, const struct px_pins_system *system, struct px_buf *out)
{
    struct px_toml *toml = NULL;
    struct px_toml_fault fault;
    size_t from = length, to = length;
    int r = px_toml_parse(text, length, &toml, &fault);
    if (r < 0)
        return r;
    uint32_t table = px_toml_get(toml, 0, "system");
    if (table && px_toml_at(toml, table)->made == PX_TOML_BY_HEADER) {
        from = px_toml_at(toml, table)->line_at;
        to = px_toml_at(toml, table)->body_to;
    } else if (table) {
        r = -EEXIST;
    }
    px_toml_free(toml);
    if (r < 0)
        return r;
    px_buf_add(out, text, from);
    px_buf_add(out, text + to, length - to);
    while (out->len > 0 && out->data[out->len - 1] == '\n')
        out->len--;
    px_buf_putc(out, '\n');
    px_lock_put_system(system, out);
    return out->err;
}
