/* The list at the end of a zip archive, and the headers in front of each entry, which have to say the same. Readers
 * of zip files differ in which of the two they believe and in how they look for the end; an archive that they could
 * read differently is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "helpers/layer/zip.h"

enum {
    END_SIZE = 22, END64_SIZE = 56, LOCATOR_SIZE = 20, LISTED_SIZE = 46, COMMENT_MAX = 65535,
    LIST_BYTES_MAX = 64 << 20,
    HOST_UNIX = 3,
};
#define SIGN_END 0x06054b50U
#define SIGN_END64 0x06064b50U
#define SIGN_LOCATOR 0x07064b50U
#define SIGN_LISTED 0x02014b50U

int zip_refuse(const struct zip *z, const struct zip_entry *entry, const char *reason, struct px_err *e)
{
    struct shown name = show(entry ? z->names + entry->name : "", entry ? entry->name_length : 0);
    if (entry)
        (void)px_fail(e, PX_E_ARCHIVE, 0, "the archive's entry '%s' was refused: %s", name.text, reason);
    else
        (void)px_fail(e, PX_E_ARCHIVE, 0, "the zip archive was refused: %s", reason);
    return px_fix(e, "Make the archive anew, with the tool that is meant for it (`python3 -m build` for a wheel).");
}

int zip_read(const struct zip *z, uint64_t at, void *out, size_t size, struct px_err *e)
{
    uint8_t *to = out;
    if (at > z->size || size > z->size - at)
        return zip_refuse(z, NULL, "it ends in the middle", e);
    while (size > 0) {
        ssize_t n = pread(z->fd, to, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? px_fail(e, PX_E_IO, errno, "cannot read the archive")
                         : zip_refuse(z, NULL, "it ends in the middle", e);
        to += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

/* ---- the end ---- */

struct end {
    uint64_t at;                /* where the list must end */
    uint64_t count, list_at, list_size;
};

/* The end record is the one whose comment ends with the archive; a second such place in it would be read by somebody
 * else. */
static int find_end(const struct zip *z, uint8_t record[END_SIZE], uint64_t *ret_at, struct px_err *e)
{
    size_t span = z->size < END_SIZE + COMMENT_MAX ? (size_t)z->size : END_SIZE + COMMENT_MAX;
    uint8_t *tail = malloc(span ? span : 1);
    unsigned found = 0;
    if (!tail)
        return px_no_memory(e);
    int r = span < END_SIZE ? zip_refuse(z, NULL, "it is not one", e) : zip_read(z, z->size - span, tail, span, e);
    for (size_t at = 0; r == 0 && at + END_SIZE <= span; at++)
        if (zip_u32(tail + at) == SIGN_END && at + END_SIZE + zip_u16(tail + at + 20) == span) {
            memcpy(record, tail + at, END_SIZE);
            *ret_at = z->size - span + at;
            found++;
        }
    free(tail);
    if (r == 0 && found != 1)
        return zip_refuse(z, NULL, found ? "it has two ends" : "it is not one, or something is behind its end", e);
    return r;
}

/* The larger record, where the small one has no room: directly before it, and of the size that it has had from the
 * first. */
static int take_end64(const struct zip *z, struct end *end, struct px_err *e)
{
    uint8_t locator[LOCATOR_SIZE], big[END64_SIZE];
    if (end->at < LOCATOR_SIZE + END64_SIZE || zip_read(z, end->at - LOCATOR_SIZE, locator, sizeof locator, e) < 0 ||
        zip_read(z, end->at - LOCATOR_SIZE - END64_SIZE, big, sizeof big, e) < 0)
        return zip_refuse(z, NULL, "its end is damaged", e);
    uint64_t at = end->at - LOCATOR_SIZE - END64_SIZE;
    if (zip_u32(locator) != SIGN_LOCATOR || zip_u32(locator + 4) != 0 || zip_u64(locator + 8) != at ||
        zip_u32(locator + 16) != 1 || zip_u32(big) != SIGN_END64 || zip_u64(big + 4) != END64_SIZE - 12 ||
        zip_u32(big + 16) != 0 || zip_u32(big + 20) != 0 || zip_u64(big + 24) != zip_u64(big + 32))
        return zip_refuse(z, NULL, "its end is damaged", e);
    const struct end said = {at, zip_u64(big + 32), zip_u64(big + 48), zip_u64(big + 40)};
    if ((end->count != UINT16_MAX && end->count != said.count) ||
        (end->list_at != UINT32_MAX && end->list_at != said.list_at) ||
        (end->list_size != UINT32_MAX && end->list_size != said.list_size))
        return zip_refuse(z, NULL, "its two ends differ", e);
    *end = said;
    return 0;
}

/* Whether a larger record stands where one would. */
static bool has_locator(const struct zip *z, const struct end *end)
{
    uint8_t sign[4];
    return end->at >= LOCATOR_SIZE && zip_read(z, end->at - LOCATOR_SIZE, sign, sizeof sign, NULL) == 0 &&
           zip_u32(sign) == SIGN_LOCATOR;
}

static int read_end(const struct zip *z, struct end *end, struct px_err *e)
{
    uint8_t b[END_SIZE] = {0};
    if (find_end(z, b, &end->at, e) < 0)
        return -1;
    if (zip_u16(b + 4) != 0 || zip_u16(b + 6) != 0 || zip_u16(b + 8) != zip_u16(b + 10))
        return zip_refuse(z, NULL, "it is a part of several", e);
    end->count = zip_u16(b + 10);
    end->list_size = zip_u32(b + 12);
    end->list_at = zip_u32(b + 16);
    bool full = end->count == UINT16_MAX || end->list_size == UINT32_MAX || end->list_at == UINT32_MAX;
    if ((full || has_locator(z, end)) && take_end64(z, end, e) < 0)
        return -1;
    if (end->list_at > end->at || end->list_size != end->at - end->list_at)
        return zip_refuse(z, NULL, "its list is not where its end says", e);
    return 0;
}

/* ---- the list ---- */

static const char *check_name(const char *name, size_t length, uint16_t flags, bool *ret_directory)
{
    char clean[NAME_SIZE];
    const char *reason = NULL;
    *ret_directory = length > 0 && name[length - 1] == '/';
    for (size_t i = 0, n; i < length; i += n) {
        n = px_utf8_length(name + i, length - i);
        if (n == 0 || (n > 1 && !(flags & ZIP_UTF8)))
            return "its name is not marked as UTF-8, so readers differ about it";
        if ((unsigned char)name[i] < ' ' || name[i] == 127 || name[i] == '\\')
            return "its name has a control character or a backslash";
    }
    if (name_clean(name, length, *ret_directory, clean, &reason) < 0)
        return reason;
    return strlen(clean) + *ret_directory != length ? "its name has a '.' for a part" : NULL;
}

/* What a file is, where its writer came from a system that says so. */
static const char *check_mode(const uint8_t *b, struct zip_entry *entry)
{
    uint32_t mode = b[5] == HOST_UNIX ? zip_u32(b + 38) >> 16 : 0, type = mode & S_IFMT;
    if (type == S_IFLNK)
        return "it is a link";
    if (type != 0 && type != (entry->directory ? S_IFDIR : S_IFREG))
        return "it is neither a file nor a directory";
    entry->executable = type == S_IFREG && mode & 0111;
    return NULL;
}

static const char *check_listed(const uint8_t *b, struct zip_entry *entry)
{
    if (entry->flags & ~(ZIP_LEVEL | ZIP_DESCRIPTOR | ZIP_UTF8))
        return "it is encrypted, or uses something that px does not know";
    if (entry->method != ZIP_STORED && entry->method != ZIP_DEFLATED)
        return "it is compressed in a way that px does not know";
    if (zip_u16(b + 34) != 0)
        return "it is in another part of the archive";
    if (entry->method == ZIP_STORED && entry->packed != entry->size)
        return "it is stored, but its two lengths differ";
    if (entry->directory && (entry->size != 0 || entry->packed > 2))
        return "it is a directory, but has data";
    return check_mode(b, entry);
}

/* One entry of the list at b; how long it is, or -1. */
static long take_listed(struct zip *z, const uint8_t *b, size_t left, size_t *names, struct px_err *e)
{
    if (left < LISTED_SIZE || zip_u32(b) != SIGN_LISTED)
        return zip_refuse(z, NULL, "its list is damaged", e);
    size_t name_length = zip_u16(b + 28), extra = zip_u16(b + 30), comment = zip_u16(b + 32);
    size_t length = LISTED_SIZE + name_length + extra + comment;
    if (length > left)
        return zip_refuse(z, NULL, "its list is damaged", e);
    struct zip_entry *entry = &z->entries[z->count++];
    *entry = (struct zip_entry){.at = zip_u32(b + 42),
                                .packed = zip_u32(b + 20),
                                .size = zip_u32(b + 24),
                                .crc = zip_u32(b + 16),
                                .name = (uint32_t)*names,
                                .flags = zip_u16(b + 8),
                                .method = zip_u16(b + 10),
                                .name_length = (uint16_t)name_length};
    memcpy(z->names + *names, b + LISTED_SIZE, name_length);
    z->names[*names + name_length] = '\0';
    *names += name_length + 1;
    const char *reason = check_name(z->names + entry->name, name_length, entry->flags, &entry->directory);
    if (!reason)
        reason = zip_extra(b + LISTED_SIZE + name_length, extra, &entry->size, &entry->packed, &entry->at);
    if (!reason)
        reason = check_listed(b, entry);
    return reason ? zip_refuse(z, entry, reason, e) : (long)length;
}

static int read_list(struct zip *z, const uint8_t *list, const struct end *end, struct px_err *e)
{
    size_t at = 0, names = 0;
    for (uint64_t i = 0; i < end->count; i++) {
        long n = take_listed(z, list + at, (size_t)end->list_size - at, &names, e);
        if (n < 0)
            return -1;
        at += (size_t)n;
    }
    return at == end->list_size ? 0 : zip_refuse(z, NULL, "its list is longer than it says", e);
}

/* ---- all entries together ---- */

static int compare_places(const void *a, const void *b)
{
    const struct zip_entry *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* A slash sorts before everything else, so that a directory stands right before what is in it. */
static int compare_names(const void *a, const void *b)
{
    const unsigned char *x = *(const unsigned char *const *)a, *y = *(const unsigned char *const *)b;
    while (*x && *x == *y) {
        x++;
        y++;
    }
    int p = *x == '/' ? 1 : *x ? *x + 1 : 0, q = *y == '/' ? 1 : *y ? *y + 1 : 0;
    return p - q;
}

/* "a" and "a", "a" and "a/", "a" and "a/b": one name cannot be two things. */
static int check_twice(const struct zip *z, struct px_err *e)
{
    const char **names = calloc(z->count + 1, sizeof *names);
    int r = names ? 0 : px_no_memory(e);
    for (size_t i = 0; names && i < z->count; i++)
        names[i] = z->names + z->entries[i].name;
    if (names && z->count)
        qsort(names, z->count, sizeof *names, compare_names);
    for (size_t i = 1; r == 0 && i < z->count; i++) {
        size_t n = strlen(names[i - 1]);
        bool same = strcmp(names[i - 1], names[i]) == 0;
        bool below = names[i - 1][n - 1] != '/' && strncmp(names[i - 1], names[i], n) == 0 && names[i][n] == '/';
        if (same || below) {
            struct shown name = show(names[i], strlen(names[i]));
            r = px_fail(e, PX_E_ARCHIVE, 0, "the archive's entry '%s' was refused: %s", name.text,
                        same ? "it is there twice" : "what it lies in is a file of the same archive");
        }
    }
    free(names);
    return r;
}

static int check_sizes(const struct zip *z, const struct px_unpack_limits *limits, struct px_err *e)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < z->count; i++) {
        if (z->entries[i].size > limits->bytes || sum > limits->bytes - z->entries[i].size)
            return zip_refuse(z, &z->entries[i], "the archive's files are larger than px unpacks", e);
        sum += z->entries[i].size;
    }
    if (limits->ratio && sum > RATIO_FROM && sum / limits->ratio > z->size)
        return zip_refuse(z, NULL, "it would grow far more than archives of real files do", e);
    return 0;
}

/* Entry after entry, without a gap, up to the list: so nothing overlaps, and nothing is hidden. */
static int check_places(struct zip *z, uint64_t list_at, struct px_err *e)
{
    uint64_t at = 0;
    if (z->count)
        qsort(z->entries, z->count, sizeof *z->entries, compare_places);
    for (size_t i = 0; i < z->count; i++) {
        uint64_t next = i + 1 < z->count ? z->entries[i + 1].at : list_at;
        if (z->entries[i].at != at)
            return zip_refuse(z, &z->entries[i], "it overlaps another, or something is hidden in front of it", e);
        if (zip_local(z, &z->entries[i], next, e) < 0)
            return -1;
        at = next;
    }
    return at == list_at ? 0 : zip_refuse(z, NULL, "something is hidden in it", e);
}

static int load(struct zip *z, const struct end *end, struct px_err *e)
{
    size_t size = (size_t)end->list_size;
    uint8_t *list = malloc(size ? size : 1);
    z->entries = calloc(end->count + 1, sizeof *z->entries);
    z->names = malloc(size + 1);
    int r = list && z->entries && z->names ? 0 : px_no_memory(e);
    if (r == 0)
        r = zip_read(z, end->list_at, list, size, e);
    if (r == 0)
        r = read_list(z, list, end, e);
    free(list);
    return r;
}

void zip_done(struct zip *z)
{
    free(z->entries);
    free(z->names);
    *z = (struct zip){.fd = -EBADF};
}

int zip_open(int fd, uint64_t size, const struct px_unpack_limits *limits, struct zip *ret_zip, struct px_err *e)
{
    struct zip z = {.fd = fd, .size = size};
    struct end end = {0};
    if (read_end(&z, &end, e) < 0)
        return -1;
    if (end.list_size > LIST_BYTES_MAX || end.count > limits->entries || end.count > end.list_size / LISTED_SIZE)
        return zip_refuse(&z, NULL, "it has more entries than px unpacks, or fewer than it says", e);
    if (load(&z, &end, e) < 0 || check_sizes(&z, limits, e) < 0 || check_twice(&z, e) < 0 ||
        check_places(&z, end.list_at, e) < 0) {
        zip_done(&z);
        return -1;
    }
    *ret_zip = z;
    return 0;
}
