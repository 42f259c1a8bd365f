#include "resolve/resolved.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "lock/lock_internal.h"
#include "pep/marker.h"
#include "pep/tags.h"
#include "pep/version.h"
#include "store/document.h"
#include "transfer/url.h"

enum { URL_BYTES = 4096, NAME_BYTES = 256, EXTRAS_MAX = 32, MARKER_BYTES = 4096 };

static int bad_answer(struct px_lock_reading *r, const char *package, const char *why)
{
    px_fail(r->e, PX_E_LOCK, 0, "%s's answer cannot be used for '%.100s'", r->shown, package ? package : "a package");
    (void)px_detail(r->e, "reason", "resolve_failed");
    return px_why(r->e, "%s", why);
}

/* ---- where a file is ---- */

/* "https://user:secret@host/x" -> "https://host/x"; without the fragment. */
static const char *public_url(struct px_lock_reading *r, const char *url)
{
    char out[URL_BYTES];
    size_t length = strcspn(url, "#");
    const char *host = strstr(url, "://");
    size_t head = host ? (size_t)(host + 3 - url) : 0, authority = host ? strcspn(url + head, "/?#") : 0, skip = 0;
    for (size_t i = 0; i < authority; i++)
        if (url[head + i] == '@')
            skip = i + 1;
    if (px_fmt(out, sizeof out, "%.*s%.*s", (int)head, url, (int)(length - head - skip), url + head + skip) < 0)
        return NULL;
    return px_lock_keep(r, out, strlen(out));
}

/* NULL: a path outside of the project; or no memory. */
static const char *portable_place(struct px_lock_reading *r, const char *root, const char *url)
{
    char path[URL_BYTES];
    if (*url != '/' && !px_starts_with(url, "file://"))
        return strstr(url, "://") ? public_url(r, url) : px_lock_keep(r, url, strlen(url));
    if (px_url_path(url, path, sizeof path) < 0 || !px_path_within(path, root) || px_equal(path, root))
        return NULL;
    const char *below = path + strlen(root) + (root[1] ? 1 : 0);
    return px_lock_keep(r, below, strlen(below));
}

/* ---- pins ---- */

static int set_specifier(struct px_lock_reading *r, struct px_lock_pin *pin)
{
    char text[NAME_BYTES * 2];
    if (px_fmt(text, sizeof text, "%s==%s", pin->name, pin->version) < 0)
        return bad_answer(r, pin->name, "Its version is too long.");
    pin->specifier = px_lock_keep(r, text, strlen(text));
    return pin->specifier ? 0 : -1;
}

static struct px_lock_pin *add_pin(struct px_lock_reading *r, const char *name, const char *version)
{
    struct px_version parts;
    if (!name || !version || px_version_parse(version, strlen(version), &parts) < 0) {
        (void)bad_answer(r, name, "It has no name or no version that is one.");
        return NULL;
    }
    const char *kept = px_lock_keep(r, version, strlen(version));
    struct px_lock_pin *pin = kept ? px_lock_add(r, 0, name, kept) : NULL;
    return pin && set_specifier(r, pin) == 0 ? pin : NULL;
}

/* The file of the pin that was added last. */
static int add_file(struct px_lock_reading *r, const char *root, const char *name, const char *url, const char *sha256,
                    uint64_t size)
{
    char hash[80];
    const struct px_lock_pin *pin = &r->pins->items[r->pins->count - 1];
    const char *base = NULL;
    if (!sha256 || px_fmt(hash, sizeof hash, "sha256:%s", sha256) < 0)
        return bad_answer(r, pin->name, "It names a file without its sha256.");
    if (name) {
        base = px_lock_keep(r, name, strlen(name));
    } else if (url) {
        char plain[URL_BYTES];
        const char *last = px_lock_base_name(r, url);
        if (last && px_url_decode(last, strlen(last), plain, sizeof plain) == 0)
            base = px_lock_keep(r, plain, strlen(plain));
    }
    if (!base)
        return bad_answer(r, pin->name, "It names no file.");
    return px_lock_add_file(r, 0, base, url ? portable_place(r, root, url) : NULL, hash, size);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_text(struct px_lock_reading *r, const char ***list, size_t *count, const char *text)
{
    for (size_t i = 0; i < *count; i++)
        if (px_equal((*list)[i], text))
            return 0;
    const char **bigger = px_lock_grow(r, *list, count, sizeof *bigger, PX_PIN_FILES_MAX);
    if (!bigger)
        return -1;
    *list = bigger;
    bigger[*count - 1] = px_lock_keep(r, text, strlen(text));
    return bigger[*count - 1] ? 0 : -1;
}

/* ---- pip ---- */

/* The names of its dependencies in this environment. */
static int pip_requires(struct px_lock_reading *r, const json_t *metadata, const struct px_marker_env *env,
                        struct px_lock_pin *pin)
{
    const json_t *item, *list = json_object_get(metadata, "requires_dist");
    const char *extras[EXTRAS_MAX + 1] = {NULL};
    struct px_marker_env with = *env;
    size_t i;
    for (i = 0; i < pin->extras_count && i < EXTRAS_MAX; i++)
        extras[i] = pin->extras[i];
    with.extras = extras;
    json_array_foreach(list, i, item) {
        struct px_requirement q;
        char name[NAME_BYTES], marker[MARKER_BYTES];
        const char *text = json_string_value(item);
        if (!text || px_marker_requirement_parse(text, &q) < 0 ||
            px_marker_package_name(q.name, q.name_length, name, sizeof name) < 0 ||
            px_fmt(marker, sizeof marker, "%.*s", (int)q.marker_length, q.marker) < 0)
            continue;           /* the resolver has parsed it; here it is only informative */
        if (px_marker_holds(marker, &with) == 1 && add_text(r, &pin->requires, &pin->requires_count, name) < 0)
            return -1;
    }
    if (pin->requires_count)
        qsort(pin->requires, pin->requires_count, sizeof *pin->requires, compare_texts);
    return 0;
}

static int pip_extras(struct px_lock_reading *r, const json_t *entry, struct px_lock_pin *pin)
{
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(entry, "requested_extras"), i, item) {
        if (json_is_string(item) && add_text(r, &pin->extras, &pin->extras_count, json_string_value(item)) < 0)
            return -1;
    }
    if (pin->extras_count)
        qsort(pin->extras, pin->extras_count, sizeof *pin->extras, compare_texts);
    return 0;
}

static const char *pip_sha256(const json_t *archive)
{
    const char *newer = px_document_text(json_object_get(archive, "hashes"), "sha256");
    const char *older = px_document_text(archive, "hash");
    return newer ? newer : older && px_starts_with(older, "sha256=") ? older + 7 : NULL;
}

static int pip_entry(struct px_lock_reading *r, const json_t *entry, const struct px_resolved_for *what)
{
    const json_t *metadata = json_object_get(entry, "metadata"), *download = json_object_get(entry, "download_info");
    const json_t *archive = json_object_get(download, "archive_info");
    const char *url = px_document_text(download, "url");
    struct px_lock_pin *pin = add_pin(r, px_document_text(metadata, "name"), px_document_text(metadata, "version"));
    if (!pin)
        return -1;
    if (pip_extras(r, entry, pin) < 0 || pip_requires(r, metadata, what->env, pin) < 0)
        return -1;
    if (json_is_object(archive))
        return add_file(r, what->root, NULL, url, pip_sha256(archive), 0);
    return bad_answer(r, pin->name, "It is a directory or a repository; a lock needs files with a hash.");
}

static int read_pip(struct px_lock_reading *r, const json_t *report, const struct px_resolved_for *what)
{
    const json_t *entry, *install = json_object_get(report, "install");
    size_t i;
    if (!json_is_array(install))
        return bad_answer(r, NULL, "Its report has no list of what it would install.");
    json_array_foreach(install, i, entry) {
        if (pip_entry(r, entry, what) < 0)
            return -1;
    }
    return 0;
}

int px_resolved_from_pip(const char *report, size_t length, const struct px_resolved_for *what,
                         struct px_lock *ret_pins, struct px_err *e)
{
    px_auto(px_document) json_t *document = NULL;
    struct px_lock pins = {.format = PX_PINS_PX, .version = 1};
    struct px_lock_reading r = {.pins = &pins, .shown = "pip", .e = e};
    if (px_document_read(report, length, "pip's report", PX_E_LOCK, &document, e) < 0)
        return px_detail(e, "reason", "resolve_failed");
    if (read_pip(&r, document, what) < 0) {
        px_lock_done(&pins);
        return -1;
    }
    *ret_pins = pins;
    return 0;
}

/* ---- uv ---- */

static int take_chosen(struct px_lock_reading *r, const struct px_chosen *c, const struct px_resolved_for *what)
{
    struct px_lock_pin *pin = add_pin(r, c->pin->name, c->pin->version);
    if (!pin)
        return -1;
    if (!c->file || c->pin->source)
        return bad_answer(r, c->pin->name,
                          c->file ? "It is a directory or a repository; a lock needs files with a hash."
                                  : "None of its files fits this Python and system.");
    return add_file(r, what->root, c->file->name, c->file->url, *c->file->sha256.hex ? c->file->sha256.hex : NULL,
                    c->file->size);
}

int px_resolved_from_pylock(const char *text, size_t length, const struct px_resolved_for *what,
                            struct px_lock *ret_pins, struct px_err *e)
{
    struct px_lock read = {0}, pins = {.format = PX_PINS_PX, .version = 1};
    struct px_lock_reading r = {.pins = &pins, .shown = "uv", .e = e};
    px_auto_free struct px_chosen *list = NULL;
    size_t count = 0;
    if (px_lock_parse(PX_PINS_PYLOCK, text, length, "uv's answer", &read, e) < 0)
        return px_detail(e, "reason", "resolve_failed");
    int status = px_lock_select(&read, what->env, what->tags, NULL, &list, &count, e);
    for (size_t i = 0; status == 0 && i < count; i++)
        status = take_chosen(&r, &list[i], what);
    px_lock_done(&read);
    if (status < 0) {
        px_lock_done(&pins);
        return -1;
    }
    *ret_pins = pins;
    return 0;
}

int px_resolved_empty(struct px_lock *ret_pins, struct px_err *e)
{
    (void)e;
    *ret_pins = (struct px_lock){.format = PX_PINS_PX, .version = 1};
    return 0;
}
