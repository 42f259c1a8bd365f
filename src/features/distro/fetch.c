#include "distro/fetch.h"
#include "start/buildbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "distro/apt_run.h"
#include "kernel/copy.h"

enum { ANSWER_MAX = 8 << 20 };

const char *px_distro_fetch_arch(void)
{
    static const struct {
        const char *machine, *arch;
    } names[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}};
    struct utsname host;
    for (size_t i = 0; uname(&host) == 0 && i < PX_COUNT_OF(names); i++)
        if (px_equal(host.machine, names[i].machine))
            return names[i].arch;
    return NULL;
}

static void tell(const struct px_fetch *f, const char *what, uint64_t done, uint64_t total)
{
    if (f->sandbox->progress.tell)
        f->sandbox->progress.tell(f->sandbox->progress.user, what, done, total);
}

/* ---- asking, fetching ---- */

/* The fix if the network did not answer. */
static int unreachable(struct px_err *e)
{
    (void)px_detail(e, "reason", "archive_unreachable");
    return px_buildbox_fix(e, "Check the network, or set PX_APT_MIRROR and PX_APT_SECURITY_MIRROR to mirrors that can be reached.");
}

/* head, then the words. */
static int ask(struct px_apt *s, const char *doing, const char *const *head, size_t head_count,
               const char *const *wants, void (*tick)(void *), struct px_buf *out, struct px_err *e)
{
    size_t count = 0;
    while (wants[count])
        count++;
    px_auto_free const char **argv = calloc(head_count + count + 1, sizeof *argv);
    if (!argv)
        return px_no_memory(e);
    memcpy(argv, head, head_count * sizeof *head);
    memcpy(argv + head_count, wants, count * sizeof *wants);
    return px_apt_run(s, doing, argv, tick, out, e);
}

static int ask_install(struct px_apt *s, const char *const *wants, bool fetch, void (*tick)(void *), struct px_buf *out,
                       struct px_err *e)
{
    const char *const head[] = {"apt-get", "-qq", fetch ? "--no-remove" : "--print-uris", "install"};
    return ask(s, fetch ? "fetching packages" : "resolving packages", head, PX_COUNT_OF(head), wants, tick, out, e);
}

/* Downloads these packages without dependencies, into apt's working directory. */
static int ask_download(struct px_apt *s, const char *const *wants, bool fetch, void (*tick)(void *),
                        struct px_buf *out, struct px_err *e)
{
    static const char script[] = "cd " PX_APT_DIR "/archives && exec \"$@\"";
    const char *const head[] = {"/bin/sh", "-c", script, "sh", "apt-get", fetch ? "-qq" : "--print-uris", "download"};
    return ask(s, fetch ? "fetching packages" : "looking for packages", head, PX_COUNT_OF(head), wants, tick, out, e);
}

static uint64_t bytes_in(int dir, const char *name)
{
    px_auto_fd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct stat st;
    uint64_t sum = 0;
    if (!d)
        return 0;
    fd = -EBADF;
    for (struct dirent *entry; (entry = readdir(d));)
        if (fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_size;
    (void)closedir(d);
    return sum;
}

/* Links packages of the store into apt's directory: apt does not fetch them again, but checks them. */
static int offer_known(struct px_apt *s, const struct px_packages *list, struct px_err *e)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct px_package *p = &list->items[i];
        char name[512];
        if (!p->file || !px_blob_has(s->f->sandbox->store, &p->sha256))
            continue;
        px_auto_fd int from = -EBADF;
        uint64_t size;
        if (px_blob_open(s->f->sandbox->store, &p->sha256, &from, &size, e) < 0)
            return -1;
        if (px_fmt(name, sizeof name, "archives/%s", p->file) < 0)
            continue;
        px_auto_fd int to = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        int r = to < 0 ? -errno : px_copy_part(from, 0, size, to);
        if (r < 0)
            return px_fail(e, PX_E_STORE_WRITE, r, "cannot copy the package %s", p->name);
    }
    return 0;
}

/* A file of this machine is read in place; others were downloaded into apt's directory. */
static int open_package(struct px_apt *s, const struct px_package *p)
{
    char path[PATH_MAX];
    if (!px_starts_with(p->uri, "file:/"))
        return px_fmt(path, sizeof path, "archives/%s", p->file) < 0
                   ? -ENAMETOOLONG
                   : openat(s->dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (px_fmt(path, sizeof path, "%s", p->uri + 5) < 0 || px_apt_unquote(path) < 0)
        return -ENAMETOOLONG;
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int keep(struct px_apt *s, const struct px_package *p, struct px_err *e)
{
    struct px_blob_writer *w = NULL;
    struct px_oid oid;
    uint64_t size;
    struct stat st;
    px_auto_fd int fd = open_package(s, p);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != p->size)
        return px_fail(e, PX_E_BUILD, fd < 0 ? errno : EBADMSG, "the package %s did not come as it was promised",
                       p->name);
    if (px_blob_begin(s->f->sandbox->store, p->size, &w, e) < 0)
        return -1;
    int r = px_copy_part(fd, 0, p->size, px_blob_writer_fd(w));
    if (r < 0) {
        px_blob_drop(w);
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot keep the package %s", p->name);
    }
    return px_blob_commit(w, &p->sha256, &oid, &size, e);
}

static int keep_all(struct px_apt *s, const struct px_packages *list, struct px_err *e)
{
    for (size_t i = 0; i < list->count; i++)
        if (!px_blob_has(s->f->sandbox->store, &list->items[i].sha256) && keep(s, &list->items[i], e) < 0)
            return -1;
    return 0;
}

/* Stores each package as it arrives, so that after an interruption only the rest is fetched. An incomplete file fails
 * here and is tried again at the end. */
static void keep_arrived(struct px_apt *s)
{
    for (size_t i = 0; i < s->coming->count; i++)
        if (!px_blob_has(s->f->sandbox->store, &s->coming->items[i].sha256))
            (void)keep(s, &s->coming->items[i], NULL);
}

static void expect(struct px_apt *s, const struct px_packages *list)
{
    s->coming = list;
    s->total = px_packages_bytes(list);
}

static void on_tick(void *user)
{
    struct px_apt *s = user;
    uint64_t done = bytes_in(s->dir, "archives") + bytes_in(s->dir, "archives/partial");
    tell(s->f, "fetching packages", done < s->total ? done : s->total, s->total);
    keep_arrived(s);
}

/* Fetches the packages; if apt fetches only some, those are stored. */
static int arrive(struct px_apt *s, int fetched, struct px_err *e)
{
    if (fetched == 0)
        return keep_all(s, s->coming, e);
    keep_arrived(s);
    return unreachable(e);
}

static int fetch(struct px_apt *s, const char *const *wants, const struct px_packages *list, struct px_err *e)
{
    px_auto_buf struct px_buf said = PX_BUF(ANSWER_MAX);
    size_t missing = 0;
    for (size_t i = 0; i < list->count; i++)
        missing += !px_blob_has(s->f->sandbox->store, &list->items[i].sha256);
    expect(s, list);
    if (missing == 0)
        return 0;
    if (offer_known(s, list, e) < 0)
        return -1;
    return arrive(s, ask_install(s, wants, true, on_tick, &said, e), e);
}

static int read_lists(struct px_apt *s, struct px_err *e)
{
    static const char *const update[] = {"apt-get", "-qq", "update", NULL};
    tell(s->f, "reading package lists", 0, 0);
    return px_apt_run(s, "reading package lists", update, NULL, NULL, e) < 0 ? unreachable(e) : 0;
}

static int take_uris(const struct px_buf *uris, struct px_packages *list, struct px_err *e)
{
    int r = px_apt_uris(px_buf_text(uris), list);
    return r < 0 ? px_fail(e, PX_E_BUILD, r, "apt-get's answer could not be understood") : 0;
}

static int resolve(struct px_apt *s, const char *const *wants, struct px_packages *list, struct px_err *e)
{
    px_auto_buf struct px_buf uris = PX_BUF(ANSWER_MAX);
    if (read_lists(s, e) < 0 || ask_install(s, wants, false, NULL, &uris, e) < 0)
        return -1;
    return take_uris(&uris, list, e);
}

int px_distro_fetch_packages(const struct px_fetch *f, const char *const *wants, struct px_packages *ret_list,
                      struct px_err *e)
{
    struct px_apt s = {.dir = -EBADF};
    struct px_packages list = {0};
    int r = px_apt_begin(&s, f, e) < 0 || resolve(&s, wants, &list, e) < 0 || fetch(&s, wants, &list, e) < 0 ? -1 : 0;
    px_apt_end(&s);
    if (r < 0)
        px_packages_done(&list);
    else
        *ret_list = list;
    return r;
}

/* ---- what is known to the byte ---- */

static const struct px_package *same(const struct px_packages *list, const struct px_package *p)
{
    for (size_t i = 0; i < list->count; i++)
        if (px_equal(list->items[i].name, p->name) && px_equal(list->items[i].arch, p->arch))
            return &list->items[i];
    return NULL;
}

/* The archive no longer has these versions. */
static int gone(struct px_err *e)
{
    (void)px_detail(e, "reason", "package_gone");
    return px_fix(e, "Take today's packages: `px update --system` in a project, `px sandbox update` elsewhere.\n"
                     "Or set PX_APT_MIRROR and PX_APT_SECURITY_MIRROR to an archive that still has it.");
}

static int compare(const struct px_packages *want, const struct px_packages *have, struct px_err *e)
{
    for (size_t i = 0; i < want->count; i++) {
        const struct px_package *p = same(have, &want->items[i]);
        if (!p || !px_hash_oid_equal(&p->sha256, &want->items[i].sha256)) {
            (void)px_fail(e, PX_E_BUILD, 0, "the package %s %s is not to be had as the lock names it",
                          want->items[i].name, want->items[i].version);
            (void)px_why(e, "The archive has other bytes for it, or none.");
            return gone(e);
        }
    }
    return 0;
}

static void free_words(const char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free((char *)words[i]);
    free(words);
}

/* name:arch=version for each. */
static const char **exact_words(const struct px_packages *list)
{
    const char **words = calloc(list->count + 1, sizeof *words);
    for (size_t i = 0; words && i < list->count; i++) {
        const struct px_package *p = &list->items[i];
        px_auto_buf struct px_buf text = PX_BUF(1024);
        px_buf_printf(&text, "%s%s%s=%s", p->name, px_equal(p->arch, "all") ? "" : ":",
                      px_equal(p->arch, "all") ? "" : p->arch, p->version);
        if (!(words[i] = px_buf_take(&text))) {
            free_words(words);
            return NULL;
        }
    }
    return words;
}

/* apt's message names the missing version. */
static int find_exact(struct px_apt *s, const char *const *words, struct px_packages *found, struct px_err *e)
{
    px_auto_buf struct px_buf uris = PX_BUF(ANSWER_MAX);
    if (read_lists(s, e) < 0)
        return -1;
    if (ask_download(s, words, false, NULL, &uris, e) == 0)
        return take_uris(&uris, found, e);
    if (e->code != PX_E_BUILD)
        return -1;
    struct px_err said = *e;
    (void)px_fail(e, PX_E_BUILD, 0, "packages are not to be had as the lock names them");
    (void)px_why(e, "%s", said.why);
    return gone(e);
}

static int fetch_exact(struct px_apt *s, const char *const *words, const struct px_packages *found, struct px_err *e)
{
    px_auto_buf struct px_buf said = PX_BUF(ANSWER_MAX);
    expect(s, found);
    return arrive(s, ask_download(s, words, true, on_tick, &said, e), e);
}

/* Asks the archive only for packages that are not in the store: it may no longer have the others. */
static int list_missing(const struct px_fetch *f, const struct px_packages *list, struct px_packages *missing,
                        struct px_err *e)
{
    for (size_t i = 0; i < list->count; i++)
        if (!px_blob_has(f->sandbox->store, &list->items[i].sha256) && px_packages_add(missing, &list->items[i]) < 0)
            return px_no_memory(e);
    return 0;
}

static int fetch_missing(const struct px_fetch *f, const struct px_packages *missing, struct px_err *e)
{
    struct px_apt s = {.dir = -EBADF};
    struct px_packages found = {0};
    const char **words = exact_words(missing);
    int r = words ? 0 : px_no_memory(e);
    if (r == 0)
        r = px_apt_begin(&s, f, e) < 0 || find_exact(&s, words, &found, e) < 0 || compare(missing, &found, e) < 0 ||
                    fetch_exact(&s, words, &found, e) < 0
                ? -1
                : 0;
    px_apt_end(&s);
    px_packages_done(&found);
    free_words(words);
    return r;
}

int px_distro_fetch_locked(const struct px_fetch *f, const struct px_packages *list, struct px_err *e)
{
    struct px_packages missing = {0};
    int r = list_missing(f, list, &missing, e);
    if (r == 0 && missing.count > 0)
        r = fetch_missing(f, &missing, e);
    px_packages_done(&missing);
    return r;
}
