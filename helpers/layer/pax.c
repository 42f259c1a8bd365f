/* Extended headers: "LENGTH KEY=VALUE\n" records. What px needs is taken, what two readers would take differently is
 * refused, and the rest (times, owners, attributes, comments) is passed over: none of it is part of the normal form. */
#include <string.h>

#include "helpers/layer/layer.h"

struct record {
    const char *key, *value;
    size_t key_length, value_length;
};

/* The length of the record at data, or 0. */
static size_t split(const char *data, size_t length, struct record *ret)
{
    size_t size = 0, at = 0;
    for (; at < length && at < 8 && data[at] >= '0' && data[at] <= '9'; at++)
        size = size * 10 + (size_t)(data[at] - '0');
    if (at == 0 || at >= length || data[at] != ' ' || size <= at + 1 || size > length || data[size - 1] != '\n')
        return 0;
    const char *key = data + at + 1, *equal = memchr(key, '=', size - at - 1);
    if (!equal || equal == key || memchr(key, '\0', (size_t)(equal - key)))
        return 0;
    *ret = (struct record){key, equal + 1, (size_t)(equal - key), (size_t)(data + size - 1 - (equal + 1))};
    return size;
}

static bool is_key(const struct record *r, const char *key)
{
    return r->key_length == strlen(key) && memcmp(r->key, key, r->key_length) == 0;
}

static bool has_prefix(const struct record *r, const char *prefix)
{
    return r->key_length >= strlen(prefix) && memcmp(r->key, prefix, strlen(prefix)) == 0;
}

static const char *take_text(const struct record *r, char out[NAME_SIZE], size_t *ret_length, bool *has)
{
    if (*has)
        return "its extended header says its name twice";
    if (r->value_length == 0 || r->value_length >= NAME_SIZE)
        return "its extended header has a name of no length or too great a length";
    memcpy(out, r->value, r->value_length);
    out[r->value_length] = '\0';
    *ret_length = r->value_length;
    *has = true;
    return NULL;
}

static const char *take_size(const struct record *r, struct pax *out)
{
    uint64_t value = 0;
    if (out->has_size)
        return "its extended header says its size twice";
    if (r->value_length == 0 || r->value_length > 19)         /* 20 digits may overflow */
        return "its extended header has a size that is not one";
    for (size_t i = 0; i < r->value_length; i++) {
        if (r->value[i] < '0' || r->value[i] > '9')
            return "its extended header has a size that is not one";
        value = value * 10 + (uint64_t)(r->value[i] - '0');
    }
    out->size = value;
    out->has_size = true;
    return NULL;
}

static const char *take(const struct record *r, bool global, struct pax *out)
{
    bool path = is_key(r, "path"), linkpath = is_key(r, "linkpath"), size = is_key(r, "size");
    if (has_prefix(r, "GNU.sparse.") || is_key(r, "SCHILY.realsize") || is_key(r, "SUN.holesdata"))
        return "it is a sparse file; make the archive without --sparse";
    if (global && (path || linkpath || size))
        return "a header for all entries names one of them";
    if (path)
        return take_text(r, out->path, &out->path_length, &out->has_path);
    if (linkpath)
        return take_text(r, out->linkpath, &out->linkpath_length, &out->has_linkpath);
    return size ? take_size(r, out) : NULL;
}

const char *pax_parse(const char *data, size_t length, bool global, struct pax *out)
{
    size_t attributes = 0;
    while (length > 0) {
        struct record r;
        size_t size = split(data, length, &r);
        if (size == 0)
            return "its extended header has a record that is not one";
        if (has_prefix(&r, "SCHILY.xattr.") || has_prefix(&r, "LIBARCHIVE.xattr."))
            attributes += size;
        if (attributes > XATTR_MAX)
            return "its extended attributes are larger than 64 KiB";
        const char *reason = take(&r, global, out);
        if (reason)
            return reason;
        data += size;
        length -= size;
    }
    return NULL;
}
