/* Finds archives in the store, on this machine, or fetches them. A file that does not match the lock stays a temporary
 * file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "env/env_internal.h"
#include "transfer/fetch.h"
#include "transfer/index.h"

enum { COPY = 1 << 16, REDIRECTS_MAX = 5, TRIES = 3 };
#define ARCHIVE_MAX (UINT64_C(8) << 30)

static int refuse_hash(const struct px_chosen *c, struct px_err *e)
{
    (void)px_fail(e, PX_E_LOCK_FORMAT, 0, "the lock has no sha256 for %s %s", c->pin->name, c->pin->version);
    (void)px_why(e,
                 "Without a hash nobody can tell whether the file is the one that was locked.");
    (void)px_detail(e, "package", c->pin->name);
    (void)px_detail(e, "reason", "missing_hash");
    return px_fix(e, "Write the hashes into it with the tool that wrote it.\nOr remove it, and run `px sync`, which writes a lock with hashes.");
}

/* other: a file of that name with another hash; "": none. */
static int not_found(const struct px_chosen *c, const char *other, struct px_err *e)
{
    (void)px_fail(e, PX_E_BUILD, 0, "no file for %s %s is to be had", c->pin->name, c->pin->version);
    if (*other) {
        (void)px_detail(e, "reason", PX_ENV_OTHER_FILE);
        (void)px_why(e, "'%.120s' is in a --find-links directory, and its sha256 is not one of the lock's.", other);
        return px_fix(e, "Do not use it: it is damaged or was replaced. Fetch it again.\nIf it is the right one, run `px sync` to lock it anew.");
    }
    if (c->pin->source)
        (void)px_why(e, "The lock takes it from '%.200s', which px does not build from.", c->pin->source);
    else
        (void)px_why(e, "%s",
                     c->pin->file_count && !c->file
                         ? "None of the lock's files fits the Python of the base."
                         : "The lock does not say where it is, and it is in no --find-links directory.");
    return px_fix(e, "Run `px sync` to write a lock that names its files.\n"
                     "Or give the directory they are in: PIP_FIND_LINKS, --find-links.");
}

/* ---- from this machine ---- */

static int copy_all(int from, int to, uint64_t max)
{
    char piece[COPY];
    uint64_t at = 0;
    ssize_t n;
    while ((n = pread(from, piece, sizeof piece, (off_t)at)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        int r = n < 0 ? -errno : (at += (uint64_t)n) > max ? -EFBIG : px_write_full(to, piece, (size_t)n);
        if (r < 0)
            return r;
    }
    return 0;
}

static uint64_t most(const struct px_chosen *c)
{
    return c->file && c->file->size ? c->file->size : ARCHIVE_MAX;
}

/* "" means no hash: any file matches. */
static const struct px_oid *expected(const struct px_chosen *c)
{
    return c->file && c->file->sha256.hex[0] ? &c->file->sha256 : NULL;
}

static int other_file(const struct px_env_package *p, const struct px_oid *expect, struct px_err *e)
{
    (void)px_fail(e, PX_E_OBJECT, 0, "%s is not the file that the lock names", p->file);
    (void)px_why(e, "Its sha256 is not %s.", expect ? expect->hex : "one of the lock's");
    return px_fix(e, "Do not use it. If its author replaced it, run `px sync` to lock it anew.");
}

/* A lock with hashes but no names: checks that the stored file has one of them. */
static bool is_one_of(const struct px_lock_pin *pin, const struct px_oid *oid)
{
    for (size_t i = 0; i < pin->file_count; i++)
        if (px_hash_oid_equal(&pin->files[i].sha256, oid))
            return true;
    return pin->file_count == 0;
}

static int commit(struct px_blob_writer *writer, const struct px_chosen *c, struct px_env_package *p, struct px_err *e)
{
    struct px_err mine = {0};
    uint64_t size = 0;
    if (px_blob_commit(writer, expected(c), &p->sha256, &size, &mine) < 0) {
        if (mine.code == PX_E_OBJECT && expected(c))
            return other_file(p, expected(c), e);
        *e = mine;
        return -1;
    }
    return c->file || is_one_of(c->pin, &p->sha256) ? 0 : other_file(p, NULL, e);
}

static int take_file(struct px_env_work *w, const struct px_chosen *c, int fd, struct px_env_package *p,
                     struct px_err *e)
{
    struct px_blob_writer *writer = NULL;
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return px_fail(e, PX_E_BUILD, 0, "'%s' is not a file", p->file);
    if (px_blob_begin(w->s->store, ARCHIVE_MAX, &writer, e) < 0)
        return -1;
    int r = copy_all(fd, px_blob_writer_fd(writer), ARCHIVE_MAX);
    if (r < 0) {
        px_blob_drop(writer);
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot keep '%s'", p->file);
    }
    return commit(writer, c, p, e);
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The path in a file: address, in place. */
static int unquote(char *path)
{
    char *to = path;
    for (const char *from = path; *from; from++) {
        int high = *from == '%' ? hex_value(from[1]) : -1, low = high >= 0 ? hex_value(from[2]) : -1;
        if (*from == '%' && (low < 0 || high + low == 0))
            return -EINVAL;
        *to++ = *from == '%' ? (char)(high * 16 + low) : *from;
        from += *from == '%' ? 2 : 0;
    }
    *to = '\0';
    return 0;
}

static int open_path(const struct px_env_work *w, const char *url, struct px_err *e)
{
    char path[PATH_MAX];
    bool address = px_starts_with(url, "file://");
    const char *text = address ? url + strlen("file://") : url;
    int r = text[0] == '/'         ? px_fmt(path, sizeof path, "%s", text)
            : w->ask->project_dir && !address ? px_fmt(path, sizeof path, "%s/%s", w->ask->project_dir, text)
                                   : -EINVAL;
    path[r < 0 ? 0 : strcspn(path, address ? "#?" : "")] = '\0';
    if (r < 0 || (address && unquote(path) < 0))
        return px_fail(e, PX_E_LOCK_FORMAT, 0, "'%.200s' in the lock is not a path of this machine", url);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? px_fail(e, PX_E_BUILD, errno, "cannot open '%.200s', which the lock names", path) : fd;
}

/* ---- from elsewhere ---- */

static int unreachable(const struct px_env_package *p, const char *url, const char *why, struct px_err *e)
{
    (void)px_fail(e, PX_E_BUILD, 0, "cannot fetch %s", p->file);
    (void)px_why(e, "%.200s: %s", url, why);
    return px_fix(
        e,
        "Check the network and the index, then run the command again.\nOr put the file in a --find-links directory.");
}

/* A lock is untrusted: only addresses on the user's own index hosts are used. */
static int not_index(const struct px_env_package *p, const char *url, const struct px_url_place *place,
                     struct px_err *e)
{
    (void)px_fail(e, PX_E_BUILD, 0, "cannot fetch %s: %.100s is not an index of yours", p->file, place->host);
    (void)px_detail(e, "reason", "foreign_index");
    (void)px_why(e, "The lock names %.200s, and no setting of pip or uv names that host.", url);
    return px_fix(e,
                  "If you trust it, name it: PX_INDEX_HOSTS=%.100s:%u, or as an index in the settings of pip or uv.\n"
                  "Or put the file in a --find-links directory.",
                  place->host, place->port);
}

/* Refuses a redirection from https to http, and from another machine to this one. */
static int follow(const struct px_env_package *p, const struct px_fetch_answer *answer, char *url, size_t size,
                  struct px_err *e)
{
    struct px_url_place from, to;
    if (px_url_place(url, &from) < 0 || px_url_place(answer->location, &to) < 0 || (from.tls && !to.tls) ||
        (to.loopback && !from.loopback) || px_fmt(url, size, "%s", answer->location) < 0)
        return unreachable(p, url, "it leads to an address that px does not go to", e);
    return 0;
}

/* 0: complete, 1: the connection was lost, -1. */
static int fetch_once(struct px_env_work *w, const struct px_chosen *c, const struct px_env_package *p, int sink,
                      struct px_err *e)
{
    px_auto_free struct px_fetch_answer *answer = calloc(1, sizeof *answer);
    char url[PX_FETCH_URL_MAX], what[128];
    (void)px_fmt(what, sizeof what, "fetching %.60s %.40s", c->pin->name, c->pin->version);
    if (!answer || px_fmt(url, sizeof url, "%s", c->file->url) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "the address of %s is too long", p->file);
    url[strcspn(url, "#")] = '\0';
    for (unsigned n = 0; n <= REDIRECTS_MAX; n++) {
        struct px_url_place place;
        if (px_url_place(url, &place) < 0)
            return unreachable(p, url, "only https is used, and http for this machine itself", e);
        if (n == 0 && !px_index_has(w->index, &place))
            return not_index(p, url, &place, e);
        const struct px_fetch_request request = {.method = PX_FETCH_GET,
                                                 .url = url,
                                                 .source = -1,
                                                 .sink = sink,
                                                 .answer_max = most(c),
                                                 .progress = w->s->progress,
                                                 .what = what,
                                                 .outward = n > 0 && !px_index_has(w->index, &place)};
        if (ftruncate(sink, 0) < 0 || px_fetch(w->fetch, &request, answer, e) < 0)
            return e->code ? -1 : unreachable(p, url, "there is no room for it", e);
        if (answer->cut)
            return 1;
        if (answer->status == 200)
            return 0;
        if (answer->status < 300 || answer->status > 399) {
            char words[64];
            (void)px_fmt(words, sizeof words, "the server said %u", answer->status);
            return unreachable(p, url, words, e);
        }
        if (follow(p, answer, url, sizeof url, e) < 0)
            return -1;
    }
    return unreachable(p, url, "it leads on too often", e);
}

static int fetch_file(struct px_env_work *w, const struct px_chosen *c, struct px_env_package *p, struct px_err *e)
{
    struct px_blob_writer *writer = NULL;
    if (w->ask->offline)
        return unreachable(p, c->file->url, "it would have to be fetched, and this run is offline", e);
    if (!w->index && px_index_load(&w->index, e) < 0)
        return -1;
    if ((!w->fetch && px_fetch_open(&w->fetch, e) < 0) || px_blob_begin(w->s->store, most(c), &writer, e) < 0)
        return -1;
    int r = 1;
    for (int i = 0; r == 1 && i < TRIES; i++)
        r = fetch_once(w, c, p, px_blob_writer_fd(writer), e);
    if (r != 0) {
        px_blob_drop(writer);
        return r < 0 ? -1 : unreachable(p, c->file->url, "the connection ended before the file did", e);
    }
    return commit(writer, c, p, e);
}

void px_env_source_end(struct px_env_work *w)
{
    px_fetch_close(w->fetch);
    w->fetch = NULL;
    free(w->index);
    w->index = NULL;
}

/* ---- */

static bool is_remote(const char *url)
{
    return px_starts_with(url, "https:") || px_starts_with(url, "http:");
}

static int name_package(const struct px_chosen *c, const char *file, struct px_env_package *p, struct px_err *e)
{
    size_t n = strlen(file);
    p->name = strdup(c->pin->name);
    p->version = strdup(c->pin->version);
    p->file = strdup(file);
    p->wheel = n > 4 && px_equal(file + n - 4, ".whl");
    return p->name && p->version && p->file ? 0 : px_no_memory(e);
}

int px_env_need_hash(const struct px_chosen *chosen, struct px_err *e)
{
    bool without = chosen->file ? !expected(chosen) : chosen->pin->file_count == 0;
    return without && !chosen->pin->source ? refuse_hash(chosen, e) : 0;
}

int px_env_source(struct px_env_work *w, const struct px_chosen *chosen, struct px_env_package *p, struct px_err *e)
{
    char file_name[256] = "";
    px_auto_fd int fd = -EBADF;
    if (w->ask->frozen && px_env_need_hash(chosen, e) < 0)
        return -1;
    if (chosen->file && expected(chosen) && px_blob_has(w->s->store, expected(chosen))) {
        p->sha256 = *expected(chosen);
        return name_package(chosen, chosen->file->name, p, e);
    }
    int r = px_env_links(w, chosen, file_name, &fd, e);
    if (r < 0 || (r == 1 && (!chosen->file || !chosen->file->url)))
        return r < 0 ? -1 : not_found(chosen, file_name, e);
    if (name_package(chosen, r == 0 ? file_name : chosen->file->name, p, e) < 0)
        return -1;
    if (r == 1 && is_remote(chosen->file->url))
        return fetch_file(w, chosen, p, e);
    if (r == 1 && (fd = open_path(w, chosen->file->url, e)) < 0)
        return -1;
    return take_file(w, chosen, fd, p, e);
}
