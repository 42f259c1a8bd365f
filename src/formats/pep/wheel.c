/* Turns an unpacked wheel into the tree of a package: checks everything first, then moves files to their places. */
#include "pep/wheel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/node.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "pep/marker.h"
#include "pep/tags.h"
#include "pep/version.h"

enum { TEXT_MAX = 32 << 20, SCRIPT_MAX = 4 << 20, WORD_MAX = 256, TAGS_MAX = 256 };

struct installing {
    int root, site;             /* site: root/site-packages */
    const struct px_wheel_ask *ask;
    struct px_wheel_name parts; /* of the file name */
    char info[WORD_MAX];        /* NAME-VERSION.dist-info */
    char data[WORD_MAX];        /* NAME-VERSION.data */
    struct px_err *e;
};

static int refuse(const struct installing *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int refuse(const struct installing *w, const char *fmt, ...)
{
    char words[WORD_MAX];
    va_list list;
    va_start(list, fmt);
    (void)vsnprintf(words, sizeof words, fmt, list);
    va_end(list);
    (void)px_fail(w->e, PX_E_ARCHIVE, 0, "the wheel '%s' was refused: %s", w->ask->file_name, words);
    (void)px_why(w->e, "It does not follow the rules of wheels (PEP 427), or was changed after it was made.");
    return px_fix(w->e,
                  "Fetch it again, take another version of %s, or have its author make it anew (`python3 -m build`).",
                  w->ask->name);
}

static int cannot(const struct installing *w, int sys, const char *path)
{
    return px_fail(w->e, sys == -ENOMEM ? PX_E_MEMORY : PX_E_STORE_WRITE, sys, "cannot install '%s' of the wheel '%s'",
                   path, w->ask->file_name);
}

/* ---- which wheel it is ---- */

static bool same_name(const char *text, size_t length, const char *canonical)
{
    char name[WORD_MAX];
    return px_marker_package_name(text, length, name, sizeof name) == 0 && px_equal(name, canonical);
}

static bool same_version(const char *text, size_t length, const char *other)
{
    struct px_version a, b;
    return px_version_parse(text, length, &a) == 0 && px_version_parse(other, strlen(other), &b) == 0 &&
           px_version_compare(&a, &b) == 0;
}

static int check_file_name(struct installing *w)
{
    const struct px_wheel_name *p = &w->parts;
    if (px_tags_wheel_parse(w->ask->file_name, &w->parts) < 0)
        return refuse(w, "its file name is not that of a wheel");
    if (!same_name(p->name, p->name_length, w->ask->name) ||
        !same_version(p->version, p->version_length, w->ask->version))
        return refuse(w, "it is not %s %s, which the lock names", w->ask->name, w->ask->version);
    return 0;
}

static int find_info(struct installing *w, const struct px_paths *files)
{
    for (size_t i = 0; i < files->count; i++) {
        const char *path = files->items[i], *slash = strchr(path, '/');
        size_t n = slash ? (size_t)(slash - path) : 0;
        if (n <= 10 || memcmp(path + n - 10, ".dist-info", 10) != 0 ||
            (w->info[0] && strncmp(w->info, path, n) == 0 && !w->info[n]))
            continue;
        if (w->info[0] || n >= sizeof w->info)
            return refuse(w, "it has two .dist-info directories");
        memcpy(w->info, path, n);
    }
    const char *dash = strrchr(w->info, '-');
    while (dash && dash > w->info && memcmp(dash, "-info", 5) == 0)     /* the length of ".dist-info" */
        dash = memrchr(w->info, '-', (size_t)(dash - w->info));
    if (!w->info[0] || !dash)
        return refuse(w, "it has no .dist-info directory");
    const char *version = dash + 1;
    if (!same_name(w->info, (size_t)(dash - w->info), w->ask->name) ||
        !same_version(version, strlen(version) - 10, w->ask->version))
        return refuse(w, "its directory '%.100s' is not that of %s %s", w->info, w->ask->name, w->ask->version);
    (void)px_fmt(w->data, sizeof w->data, "%.*s.data", (int)(strlen(w->info) - 10), w->info);
    return 0;
}

/* Reads a file of the .dist-info directory; 1: it does not exist. */
static int read_info(const struct installing *w, const char *name, struct px_buf *out)
{
    char path[2 * WORD_MAX];
    (void)px_fmt(path, sizeof path, "%s/%s", w->info, name);
    int r = px_wheel_paths_read(w->site, path, TEXT_MAX, out);
    if (r == -ENOENT)
        return 1;
    return r < 0 ? refuse(w, "its %s cannot be read", name) : 0;
}

static int check_metadata(const struct installing *w)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    char name[WORD_MAX], version[WORD_MAX];
    int r = read_info(w, "METADATA", &text);
    if (r != 0)
        return r < 0 ? -1 : refuse(w, "it has no METADATA");
    if (px_wheel_header(px_buf_text(&text), text.len, "Name", 0, name, sizeof name) != 0 ||
        !same_name(name, strlen(name), w->ask->name) ||
        px_wheel_header(px_buf_text(&text), text.len, "Version", 0, version, sizeof version) != 0 ||
        !same_version(version, strlen(version), w->ask->version))
        return refuse(w, "its METADATA is not that of %s %s", w->ask->name, w->ask->version);
    return 0;
}

/* Whether "cp311" is one of the "cp310.cp311" of a file name. */
static bool has_word(const char *words, size_t length, const char *word, size_t word_length)
{
    for (size_t at = 0, n; at <= length; at += n + 1) {
        const char *dot = memchr(words + at, '.', length - at);
        n = dot ? (size_t)(dot - words) - at : length - at;
        if (n == word_length && memcmp(words + at, word, n) == 0)
            return true;
    }
    return false;
}

/* Whether both have a part in common: some tools write the file name's compressed set in a Tag,
 * "manylinux_2_17_x86_64.manylinux2014_x86_64". */
static bool has_one_of(const char *words, size_t length, const char *list, size_t list_length)
{
    for (size_t at = 0, n; at <= list_length; at += n + 1) {
        const char *dot = memchr(list + at, '.', list_length - at);
        n = dot ? (size_t)(dot - list) - at : list_length - at;
        if (has_word(words, length, list + at, n))
            return true;
    }
    return false;
}

static bool is_tag_of_name(const struct installing *w, const char *tag)
{
    const struct px_wheel_name *p = &w->parts;
    const char *first = strchr(tag, '-'), *second = first ? strchr(first + 1, '-') : NULL;
    return second && has_one_of(p->python, p->python_length, tag, (size_t)(first - tag)) &&
           has_one_of(p->abi, p->abi_length, first + 1, (size_t)(second - first - 1)) &&
           has_one_of(p->platform, p->platform_length, second + 1, strlen(second + 1));
}

/* Tools add tags to a wheel's file name after the build, so the file name and WHEEL need only share a tag. */
static int check_tags(const struct installing *w, const struct px_buf *text)
{
    char tag[WORD_MAX];
    unsigned n = 0;
    int r;
    while ((r = px_wheel_header(px_buf_text(text), text->len, "Tag", n, tag, sizeof tag)) == 0 && n++ < TAGS_MAX)
        if (is_tag_of_name(w, tag))
            return 0;
    return r < 0 || n > 0 ? refuse(w, "the tags of its file name are not those inside") : 0;
}

static int check_wheel(const struct installing *w)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    char version[WORD_MAX], pure[WORD_MAX];
    int r = read_info(w, "WHEEL", &text);
    if (r != 0)
        return r < 0 ? -1 : refuse(w, "it has no WHEEL");
    if (px_wheel_header(px_buf_text(&text), text.len, "Wheel-Version", 0, version, sizeof version) != 0 ||
        !px_starts_with(version, "1."))
        return refuse(w, "its format is not version 1 of wheels");
    if (px_wheel_header(px_buf_text(&text), text.len, "Root-Is-Purelib", 0, pure, sizeof pure) != 0 ||
        (strcasecmp(pure, "true") != 0 && strcasecmp(pure, "false") != 0))
        return refuse(w, "it does not say whether it is pure");
    return check_tags(w, &text);
}

/* ---- what is in it ---- */

/* RECORD cannot hold its own hash; its signatures are made after it. */
static bool is_record(const struct installing *w, const char *path)
{
    static const char *const names[] = {"/RECORD", "/RECORD.jws", "/RECORD.p7s"};
    size_t n = strlen(w->info);
    if (strncmp(path, w->info, n) != 0)
        return false;
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (px_equal(path + n, names[i]))
            return true;
    return false;
}

static int hash_file(int dir, const char *path, struct px_oid *ret_oid, uint64_t *ret_size)
{
    px_auto_fd int fd = px_open_beneath(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    return fd < 0 ? fd : px_hash_fd(fd, UINT64_MAX >> 1, ret_oid, ret_size);
}

static int check_file(const struct installing *w, const struct px_record_lines *record, const char *path)
{
    const struct px_record_line *line = px_wheel_record_find(record, path);
    struct px_oid oid;
    uint64_t size = 0;
    if (is_record(w, path))
        return 0;
    if (!line || !line->sha256.hex[0])
        return refuse(w, "'%.100s' is not in its RECORD", path);
    int r = hash_file(w->site, path, &oid, &size);
    if (r < 0)
        return cannot(w, r, path);
    if (!px_hash_oid_equal(&oid, &line->sha256) || (line->has_size && line->size != size))
        return refuse(w, "'%.100s' is not what its RECORD says", path);
    return 0;
}

static int compare_text(const void *key, const void *item)
{
    return strcmp(key, *(char *const *)item);
}

static int check_record(const struct installing *w, const struct px_paths *files)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    struct px_record_lines record = {0};
    size_t line = 0;
    int r = read_info(w, "RECORD", &text);
    if (r != 0)
        return r < 0 ? -1 : refuse(w, "it has no RECORD");
    r = px_wheel_record(px_buf_text(&text), text.len, &record, &line);
    if (r < 0)
        return r == -ENOMEM ? cannot(w, r, "RECORD") : refuse(w, "its RECORD cannot be read: line %zu", line);
    for (size_t i = 0; r == 0 && i < files->count; i++)
        r = check_file(w, &record, files->items[i]);
    for (size_t i = 0; r == 0 && i < record.count; i++)
        if (!bsearch(record.items[i].path, files->items, files->count, sizeof *files->items, compare_text))
            r = refuse(w, "its RECORD names '%.100s', which it does not hold", record.items[i].path);
    px_wheel_record_done(&record);
    return r;
}

/* ---- where it goes ---- */

/* Installs a script of the wheel. A Python script is changed to run the python next to it. */
static int adapt_script(const struct installing *w, const char *path)
{
    px_auto_buf struct px_buf text = PX_BUF(SCRIPT_MAX + 1024), made = PX_BUF(SCRIPT_MAX + 2048);
    struct stat st;
    int r = fstatat(w->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    if (r == 0 && st.st_size <= SCRIPT_MAX)
        r = px_wheel_paths_read(w->root, path, SCRIPT_MAX, &text);
    if (r < 0)
        return cannot(w, r, path);
    if (text.len >= 8 && memcmp(text.data, "#!python", 8) == 0) {
        size_t line = strcspn(text.data, "\n");
        px_buf_puts(&made, px_wheel_shebang);
        if (line < text.len)
            px_buf_add(&made, text.data + line + 1, text.len - line - 1);
        r = made.err < 0 ? made.err : (int)px_sys(SYS_unlinkat, w->root, path, 0);
        if (r == 0)
            r = px_wheel_paths_write(w->root, path, px_buf_text(&made), made.len, 0755);
    } else {
        r = px_node_chmod_at(w->root, path, S_IFREG, 0755);
    }
    return r < 0 ? cannot(w, r, path) : 0;
}

static int adapt_scripts(const struct installing *w)
{
    struct px_paths files = {0};
    int r = px_wheel_paths_list(w->root, "bin", &files);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return cannot(w, r, "scripts");
    for (size_t i = 0; r == 0 && i < files.count; i++) {
        char path[PX_WHEEL_PATH_MAX + 8];
        r = px_fmt(path, sizeof path, "bin/%s", files.items[i]) < 0 ? -1 : adapt_script(w, path);
    }
    px_wheel_paths_done(&files);
    return r;
}

/* The target directory of NAME.data/KEY. */
static int move_data(const struct installing *w)
{
    char from[2 * WORD_MAX], headers[WORD_MAX + 32];
    (void)px_fmt(headers, sizeof headers, "include/%s", w->ask->name);
    const struct {
        const char *key, *to;
    } schemes[] = {{"purelib", "site-packages"},
                   {"platlib", "site-packages"},
                   {"scripts", "bin"},
                   {"headers", headers},
                   {"data", "."}};
    for (size_t i = 0; i < PX_COUNT_OF(schemes); i++) {
        (void)px_fmt(from, sizeof from, "%s/%s", w->data, schemes[i].key);
        int r = faccessat(w->site, from, F_OK, AT_SYMLINK_NOFOLLOW) < 0
                    ? 1
                    : px_wheel_paths_move(w->site, from, w->root, schemes[i].to);
        if (r == -EEXIST || r == -ENOTDIR)
            return refuse(w, "two of its files have the same place, in '%s'", schemes[i].key);
        if (r < 0)
            return cannot(w, r, from);
    }
    long r = px_sys(SYS_unlinkat, w->site, w->data, AT_REMOVEDIR);
    if (r == -ENOTEMPTY || r == -ENOTDIR)
        return refuse(w, "'%.100s' holds something that is for no known place", w->data);
    return r < 0 && r != -ENOENT ? cannot(w, (int)r, w->data) : 0;
}

static int make_script(void *user, const struct px_script *script)
{
    const struct installing *w = user;
    px_auto_buf struct px_buf text = PX_BUF(1 << 14);
    char path[WORD_MAX + 8];
    px_wheel_script_write(&text, script);
    int r = px_fmt(path, sizeof path, "bin/%s", script->name) < 0 ? -ENAMETOOLONG : text.err;
    if (r >= 0)
        r = px_wheel_paths_make(w->root, "bin");
    if (r >= 0)
        r = px_wheel_paths_write(w->root, path, text.data, text.len, 0755);
    if (r == -EEXIST)
        return refuse(w, "it has two scripts '%.100s'", script->name);
    return r < 0 ? cannot(w, r, path) : 0;
}

static int make_scripts(struct installing *w)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    size_t line = 0;
    int r = read_info(w, "entry_points.txt", &text);
    if (r != 0)
        return r < 0 ? -1 : 0;
    r = px_wheel_scripts(px_buf_text(&text), text.len, make_script, w, &line);
    return r == -EINVAL ? refuse(w, "its entry_points.txt cannot be used: line %zu", line) : r;
}

/* ---- the new RECORD ---- */

/* Paths in RECORD are relative to site-packages; files outside begin with "..". */
static int record_file(const struct installing *w, const char *path, struct px_buf *out)
{
    char shown[PX_WHEEL_PATH_MAX + 8];
    struct px_oid oid;
    uint64_t size = 0;
    bool inside = px_starts_with(path, "site-packages/");
    (void)px_fmt(shown, sizeof shown, "%s%s", inside ? "" : "../", inside ? path + strlen("site-packages/") : path);
    int r = hash_file(w->root, path, &oid, &size);
    if (r < 0)
        return cannot(w, r, path);
    px_wheel_record_write(out, shown, &oid, size);
    return 0;
}

static int write_record(const struct installing *w)
{
    px_auto_buf struct px_buf text = PX_BUF(2 * TEXT_MAX);
    struct px_paths files = {0};
    char path[2 * WORD_MAX], installer[2 * WORD_MAX];
    (void)px_fmt(path, sizeof path, "%s/RECORD", w->info);
    (void)px_fmt(installer, sizeof installer, "%s/INSTALLER", w->info);
    (void)px_sys(SYS_unlinkat, w->site, installer, 0);
    int r = (int)px_sys(SYS_unlinkat, w->site, path, 0);
    if (r == 0)
        r = px_wheel_paths_write(w->site, installer, "px\n", 3, 0644);
    if (r == 0)
        r = px_wheel_paths_list(w->root, ".", &files);
    if (r < 0)
        return cannot(w, r, path);
    for (size_t i = 0; r == 0 && i < files.count; i++)
        r = record_file(w, files.items[i], &text);
    px_wheel_paths_done(&files);
    if (r < 0)
        return -1;
    px_wheel_record_write(&text, path, NULL, 0);
    r = text.err < 0 ? text.err : px_wheel_paths_write(w->site, path, text.data, text.len, 0644);
    return r < 0 ? cannot(w, r, path) : 0;
}

int px_wheel_install(int root, const struct px_wheel_ask *ask, struct px_err *e)
{
    struct installing w = {.root = root, .ask = ask, .e = e};
    struct px_paths files = {0};
    if (check_file_name(&w) < 0)
        return -1;
    px_auto_fd int site = px_open_beneath(root, "site-packages", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    w.site = site;
    int r = site < 0 ? site : px_wheel_paths_list(site, ".", &files);
    if (r == -E2BIG || r == -ELOOP || r == -ENAMETOOLONG || r == -EINVAL)
        return refuse(&w, "it holds more files, or deeper ones, than px installs");
    if (r < 0)
        return cannot(&w, r, "site-packages");
    r = find_info(&w, &files) < 0 || check_wheel(&w) < 0 || check_metadata(&w) < 0 || check_record(&w, &files) < 0 ? -1
                                                                                                                   : 0;
    px_wheel_paths_done(&files);
    if (r < 0 || move_data(&w) < 0 || adapt_scripts(&w) < 0 || make_scripts(&w) < 0)
        return -1;
    return write_record(&w);
}
