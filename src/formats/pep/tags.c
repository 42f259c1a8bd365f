#include "pep/tags.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"

enum { TAG_MAX = 64, OLDEST_ABI3 = 2 };

/* ---- file names ---- */

int px_tags_wheel_parse(const char *file_name, struct px_wheel_name *ret_name)
{
    const char *parts[7];
    size_t n = strlen(file_name), count = 0;
    if (n < 5 || !px_equal(file_name + n - 4, ".whl") || strchr(file_name, '/'))
        return -EINVAL;
    const char *end = file_name + n - 4;
    parts[count++] = file_name;
    for (const char *p = file_name; p < end; p++)
        if (*p == '-') {
            if (count == 6)
                return -EINVAL;
            parts[count++] = p + 1;
        }
    if (count < 5)
        return -EINVAL;
    parts[count] = end + 1;
#define LENGTH(i) (size_t)(parts[(i) + 1] - parts[i] - 1)
    *ret_name = (struct px_wheel_name){
        .name = parts[0], .version = parts[1], .python = parts[count - 3], .abi = parts[count - 2], .platform = parts[count - 1],
        .name_length = LENGTH(0), .version_length = LENGTH(1), .python_length = LENGTH(count - 3), .abi_length = LENGTH(count - 2),
        .platform_length = LENGTH(count - 1),
    };
    for (size_t i = 0; i < count; i++)
        if (LENGTH(i) == 0)
            return -EINVAL;
#undef LENGTH
    return 0;
}

/* ---- platforms, best first: the newest C library, down to the oldest, then plain linux ---- */

struct platforms {
    char names[160][TAG_MAX];
    int count;
};

static void add_platform(struct platforms *list, const char *prefix, const char *machine)
{
    if (list->count < (int)PX_COUNT_OF(list->names) && px_fmt(list->names[list->count], TAG_MAX, "%s_%s", prefix, machine) >= 0)
        list->count++;
}

static void list_glibc(const struct px_tags *t, struct platforms *list)
{
    static const struct {
        unsigned minor;
        const char *alias;
    } aliases[] = {{17, "manylinux2014"}, {12, "manylinux2010"}, {5, "manylinux1"}};
    bool old = px_equal(t->machine, "x86_64") || px_equal(t->machine, "i686");
    for (unsigned minor = t->libc_minor; minor >= (old ? 5U : 17U); minor--) {
        char prefix[TAG_MAX];
        (void)px_fmt(prefix, sizeof prefix, "manylinux_%u_%u", t->libc_major, minor);
        add_platform(list, prefix, t->machine);
        for (size_t i = 0; i < PX_COUNT_OF(aliases); i++)
            if (aliases[i].minor == minor)
                add_platform(list, aliases[i].alias, t->machine);
    }
}

static void list_platforms(const struct px_tags *t, struct platforms *list)
{
    list->count = 0;
    if (!t->musl && t->libc_major == 2)
        list_glibc(t, list);
    for (int minor = (int)t->libc_minor; t->musl && minor >= 0; minor--) {
        char prefix[TAG_MAX];
        (void)px_fmt(prefix, sizeof prefix, "musllinux_%u_%d", t->libc_major, minor);
        add_platform(list, prefix, t->machine);
    }
    add_platform(list, "linux", t->machine);
}

static int platform_rank(const struct platforms *list, const char *name, size_t length)
{
    for (int i = 0; i < list->count; i++)
        if (strlen(list->names[i]) == length && memcmp(list->names[i], name, length) == 0)
            return i;
    return -1;
}

/* ---- one tag ---- */

/* "cp311" with prefix "cp3" -> 11; -1 else. */
static int minor_of(const char *text, size_t length, const char *prefix)
{
    size_t n = strlen(prefix);
    char digits[8];
    uint64_t minor;
    if (length <= n || memcmp(text, prefix, n) != 0 || px_fmt(digits, sizeof digits, "%.*s", (int)(length - n), text + n) < 0 ||
        (digits[0] == '0' && digits[1]) || px_parse_u64(digits, 99, &minor) < 0)
        return -1;
    return (int)minor;
}

static bool is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* The index in the order py311, py3, py310, ... py30; -1 if absent. */
static int generic_rank(const struct px_tags *t, const char *python, size_t length)
{
    if (is(python, length, "py3"))
        return 1;
    int minor = minor_of(python, length, "py3");
    if (minor < 0 || minor > (int)t->python_minor)
        return -1;
    return minor == (int)t->python_minor ? 0 : (int)t->python_minor - minor + 1;
}

struct tag {
    const char *python, *abi, *platform;
    size_t python_length, abi_length, platform_length;
};

/* The rank in the order of packaging tools: own ABI, stable ABI, none; older stable ABIs; then pure Python. */
static int tag_rank(const struct px_tags *t, const struct platforms *list, const struct tag *tag)
{
    bool any = is(tag->platform, tag->platform_length, "any"), none = is(tag->abi, tag->abi_length, "none");
    int place = platform_rank(list, tag->platform, tag->platform_length), own = (int)t->python_minor;
    int cp = minor_of(tag->python, tag->python_length, "cp3"), generic = generic_rank(t, tag->python, tag->python_length);
    int p = list->count, older = own - OLDEST_ABI3;             /* stable ABIs of 3.2 ... 3.(own - 1) */
    int after = (3 + older) * p;                                /* the rank of the first pure tag */

    if (!any && place < 0)
        return -1;
    if (!any && cp == own) {
        if (minor_of(tag->abi, tag->abi_length, "cp3") == own)
            return place;
        return is(tag->abi, tag->abi_length, "abi3") ? p + place : none ? 2 * p + place : -1;
    }
    if (!any && cp >= OLDEST_ABI3 && cp < own && is(tag->abi, tag->abi_length, "abi3"))
        return (3 + own - 1 - cp) * p + place;
    if (!none)
        return -1;
    if (!any)
        return generic < 0 ? -1 : after + generic * p + place;
    after += (own + 2) * p;
    return cp == own ? after : generic < 0 ? -1 : after + 1 + generic;
}

/* ---- a file: every combination of its tags ---- */

/* The next of a.b.c; false past the end. */
static bool next_part(const char **p, const char *end, const char **ret_part, size_t *ret_length)
{
    if (*p > end)
        return false;
    const char *stop = memchr(*p, '.', (size_t)(end - *p));
    *ret_part = *p;
    *ret_length = (size_t)((stop ? stop : end) - *p);
    *p = stop ? stop + 1 : end + 1;
    return true;
}

int px_tags_rank(const struct px_tags *tags, const char *file_name)
{
    struct px_wheel_name w;
    struct platforms list;
    struct tag tag;
    int best = INT_MAX;
    if (px_tags_wheel_parse(file_name, &w) < 0)
        return -EINVAL;
    list_platforms(tags, &list);
    for (const char *a = w.python; next_part(&a, w.python + w.python_length, &tag.python, &tag.python_length);)
        for (const char *b = w.abi; next_part(&b, w.abi + w.abi_length, &tag.abi, &tag.abi_length);)
            for (const char *c = w.platform; next_part(&c, w.platform + w.platform_length, &tag.platform, &tag.platform_length);) {
                int rank = tag_rank(tags, &list, &tag);
                if (rank >= 0 && rank < best)
                    best = rank;
            }
    return best == INT_MAX ? -ENOENT : best;
}
