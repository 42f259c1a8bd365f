/* REGISTRY[:PORT]/REPOSITORY[:TAG][@sha256:HEX]: the grammar of references (SECURITY J19), and the names of Docker Hub. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "image/oci.h"

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* a-z0-9 words with one '.', one or two '_' or any number of '-' between them. */
static bool good_component(const char *text, size_t len)
{
    if (len == 0 || !letter(text[0]) || !letter(text[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (letter(text[i]))
            continue;
        size_t run = 1;
        while (i + run < len && text[i + run] == text[i])
            run++;
        bool good = text[i] == '-' || (text[i] == '_' && run <= 2) || (text[i] == '.' && run == 1);
        if (!good || !letter(text[i + run]))
            return false;
        i += run;
    }
    return true;
}

static bool good_repository(const char *text)
{
    while (true) {
        size_t n = strcspn(text, "/");
        if (!good_component(text, n))
            return false;
        if (!text[n])
            return true;
        text += n + 1;
    }
}

/* A host name or an address ("[::1]" too), with an optional port. */
static bool good_registry(const char *text)
{
    const char *rest = text;
    uint64_t port;
    if (*text == '[') {
        size_t n = strspn(text + 1, "0123456789abcdefABCDEF:.");
        if (n == 0 || text[n + 1] != ']')
            return false;
        rest = text + n + 2;
    } else {
        for (rest = text; *rest && *rest != ':'; rest++)
            if (!isascii((unsigned char)*rest) || (!isalnum((unsigned char)*rest) && *rest != '.' && *rest != '-'))
                return false;
        if (rest == text || *text == '-' || *text == '.' || rest[-1] == '-')
            return false;
    }
    return !*rest || (*rest == ':' && px_parse_u64(rest + 1, 65535, &port) == 0 && port > 0);
}

static bool good_tag(const char *text)
{
    size_t n = 0;
    for (; text[n]; n++)
        if (!isascii((unsigned char)text[n]) ||
            !(isalnum((unsigned char)text[n]) || text[n] == '_' || (n > 0 && strchr(".-", text[n]))))
            return false;
    return n > 0 && n <= 128;
}

/* The first part is a registry only if it could not be the name of a repository: "localhost", or with a '.' or a ':'.
 * No default registry is assumed: the meaning of a short name differs from machine to machine. */
static const char *split_registry(const char *name, char *out, size_t size)
{
    size_t n = strcspn(name, "/");
    bool registry = name[n] == '/' && (memchr(name, '.', n) || memchr(name, ':', n) || *name == '[' ||
                                       (n == 9 && memcmp(name, "localhost", 9) == 0));
    return !registry || px_fmt(out, size, "%.*s", (int)n, name) < 0 ? NULL : name + n + 1;
}

static const char hub[] = "docker.io";

/* "docker.io" is not the address of Docker Hub, and its official images omit the prefix "library/". */
static const char *split_hub(const char *rest, struct px_image_ref *ref, char *room, size_t size)
{
    if (px_equal(ref->registry, "index.docker.io"))
        (void)px_fmt(ref->registry, sizeof ref->registry, hub);
    if (!px_equal(ref->registry, hub) || strchr(rest, '/'))
        return rest;
    return px_fmt(room, size, "library/%s", rest) < 0 ? NULL : room;
}

const char *px_image_ref_address(const struct px_image_ref *ref)
{
    return px_equal(ref->registry, hub) ? "registry-1.docker.io" : ref->registry;
}

static int split(const char *text, struct px_image_ref *ref)
{
    char name[sizeof ref->registry + sizeof ref->repository + sizeof ref->tag];
    const char *at = strchr(text, '@');
    if (px_fmt(name, sizeof name, "%.*s", (int)(at ? at - text : (long)strlen(text)), text) < 0 ||
        (at && px_hash_oid_parse(at + 1, true, &ref->digest) < 0))
        return -EINVAL;
    char *slash = strrchr(name, '/'), *colon = strchr(slash ? slash : name, ':');
    if (colon && (!good_tag(colon + 1) || px_fmt(ref->tag, sizeof ref->tag, "%s", colon + 1) < 0))
        return -EINVAL;
    if (colon)
        *colon = '\0';
    const char *rest = split_registry(name, ref->registry, sizeof ref->registry);
    if (!rest || !good_registry(ref->registry) || !good_repository(rest))
        return -EINVAL;
    char room[sizeof ref->repository];
    rest = split_hub(rest, ref, room, sizeof room);
    if (!rest)
        return -EINVAL;
    if (px_fmt(ref->repository, sizeof ref->repository, "%s", rest) < 0)
        return -EINVAL;
    if (!colon && !at)
        (void)px_fmt(ref->tag, sizeof ref->tag, "latest");
    return 0;
}

int px_image_ref_parse(const char *text, struct px_image_ref *ret_ref, struct px_err *e)
{
    struct px_image_ref ref = {0};
    if (strlen(text) > 512 || split(text, &ref) < 0) {
        (void)px_fail(e, PX_E_VALUE, 0, "'%.200s' is not a reference of an image", text);
        return px_fix(e, "Write REGISTRY[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST], in small letters: "
                         "registry.example:5000/team/app:1.2, or docker.io/library/debian:12.");
    }
    *ret_ref = ref;
    return 0;
}

int px_image_ref_typed(const char *text, struct px_image_ref *ret_ref, struct px_err *e)
{
    char registry[sizeof ret_ref->registry], whole[640];
    struct px_err ignored = {0};
    bool named = strlen(text) > 512 || split_registry(text, registry, sizeof registry);
    if (!named && px_fmt(whole, sizeof whole, "%s/%s", hub, text) >= 0 && px_image_ref_parse(whole, ret_ref, &ignored) == 0)
        return 0;
    return px_image_ref_parse(text, ret_ref, e);        /* errors quote what the user typed */
}
