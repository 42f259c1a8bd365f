#include "distro/deb.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"

enum { HEAD = 60, MAGIC = 8, MEMBERS_MAX = 16, NAME = 16, SIZE_AT = 48, SIZE_DIGITS = 10, END_AT = 58 };

struct member {
    char name[NAME + 1];
    uint64_t at, size;
};

static int read_at(int fd, uint64_t at, void *out, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = pread(fd, (char *)out + got, size - got, (off_t)(at + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        got += (size_t)n;
    }
    return 0;
}

/* A field of text, padded with blanks. */
static int take_field(const char *from, size_t width, char *out)
{
    memcpy(out, from, width);
    out[width] = '\0';
    while (width > 0 && out[width - 1] == ' ')
        out[--width] = '\0';
    return width > 0 && !memchr(out, ' ', width) ? 0 : -EINVAL;
}

/* The member at `at`, wholly inside the file. */
static int read_member(int fd, uint64_t size, uint64_t at, struct member *m)
{
    char head[HEAD], digits[SIZE_DIGITS + 1];
    if (size - at < HEAD)
        return -EINVAL;
    int r = read_at(fd, at, head, sizeof head);
    if (r < 0)
        return r;
    if (memcmp(head + END_AT, "`\n", 2) != 0 || take_field(head, NAME, m->name) < 0 ||
        take_field(head + SIZE_AT, SIZE_DIGITS, digits) < 0 || px_parse_u64(digits, size, &m->size) < 0)
        return -EINVAL;
    size_t n = strlen(m->name);
    if (m->name[n - 1] == '/')          /* how some archivers end a name */
        m->name[n - 1] = '\0';
    m->at = at + HEAD;
    return m->size <= size - m->at ? 0 : -EINVAL;
}

static bool is_archive(const char *name, const char *stem)
{
    static const char *const ends[] = {"", ".gz", ".xz", ".zst", ".bz2"};
    size_t n = strlen(stem);
    if (strncmp(name, stem, n) != 0)
        return false;
    for (size_t i = 0; i < PX_COUNT_OF(ends); i++)
        if (strcmp(name + n, ends[i]) == 0)
            return true;
    return false;
}

static int read_members(int fd, uint64_t size, struct px_deb *deb)
{
    char magic[MAGIC], version[2];
    struct member m;
    uint64_t at = MAGIC;
    if (size < MAGIC || read_at(fd, 0, magic, sizeof magic) < 0 || memcmp(magic, "!<arch>\n", MAGIC) != 0)
        return -EINVAL;
    for (int i = 0; i < MEMBERS_MAX && at < size && deb->data_size == 0; i++) {
        int r = read_member(fd, size, at, &m);
        if (r < 0)
            return r;
        if (i == 0 && (strcmp(m.name, "debian-binary") != 0 || m.size < 4 || read_at(fd, m.at, version, 2) < 0 ||
                       memcmp(version, "2.", 2) != 0))
            return -EINVAL;
        if (is_archive(m.name, "control.tar")) {
            deb->control = m.at;
            deb->control_size = m.size;
        } else if (is_archive(m.name, "data.tar")) {
            deb->data = m.at;
            deb->data_size = m.size;
        }
        at = m.at + m.size + (m.size & 1);
    }
    return deb->control_size > 0 && deb->data_size > 0 ? 0 : -EINVAL;
}

int px_deb_read(int fd, uint64_t size, const char *name, struct px_deb *ret_deb, struct px_err *e)
{
    struct px_deb deb = {0};
    int r = read_members(fd, size, &deb);
    if (r < 0) {
        px_fail(e, PX_E_ARCHIVE, r == -EINVAL || r == -ENODATA ? 0 : r, "'%s' is not a Debian package", name);
        return px_fix(e, "Fetch it again; `dpkg-deb --info` shows what others make of it.");
    }
    *ret_deb = deb;
    return 0;
}
