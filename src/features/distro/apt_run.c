#include "distro/apt_run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "host/release.h"
#include "host/tool.h"
#include "start/buildbox.h"

enum { RELEASE_MAX = 16 * 1024, STATUS_MAX = 64 << 20, COPY = 1 << 16 };

/* ---- its boxes ---- */

/* A mirror, and a key in its options, may be files on this machine. */
static int show_local(struct px_buildbox *box, const char *mirror, struct px_err *e)
{
    char path[PATH_MAX];
    const char *key = mirror && *mirror == '[' ? strstr(mirror, "signed-by=/") : NULL;
    const char *file = mirror ? strstr(mirror, "file:/") : NULL;
    if (key && px_fmt(path, sizeof path, "%.*s", (int)strcspn(key + 10, " ]"), key + 10) >= 0 &&
        access(path, R_OK) == 0 && px_buildbox_show(box, path, path, false, e) < 0)
        return -1;
    if (!file)
        return 0;
    file += 5;
    file += strspn(file, "/") - 1;
    return access(file, R_OK) == 0 ? px_buildbox_show(box, file, file, false, e) : 0; /* apt reports missing files */
}

static int fetch_box(struct px_apt *s, const char *doing, struct px_buildbox *box, struct px_err *e)
{
    *box = (struct px_buildbox){.out_fd = -EBADF};
    if (px_buildbox_fetch(box, doing, e) < 0 || px_buildbox_show(box, s->path, PX_APT_DIR, true, e) < 0 ||
        px_buildbox_env(box, "LC_ALL", "C", e) < 0 || show_local(box, s->mirrors.archive, e) < 0)
        return -1;
    return px_equal(s->mirrors.archive, s->mirrors.security) ? 0 : show_local(box, s->mirrors.security, e);
}

int px_apt_run(struct px_apt *s, const char *doing, const char *const argv[], void (*tick)(void *), struct px_buf *out,
                   struct px_err *e)
{
    struct px_buildbox box;
    int r = fetch_box(s, doing, &box, e);
    if (r == 0 && s->settled)
        r = px_buildbox_env(&box, "APT_CONFIG", PX_APT_DIR "/apt.conf", e);
    box.tick = tick;
    box.user = s;
    box.out = out;
    r = r < 0 ? r : px_buildbox_run(&box, argv, e);
    px_buildbox_done(&box);
    return r;
}

/* ---- its settings ---- */

static bool host_is(const struct px_base_row *base)
{
    char text[RELEASE_MAX], id[64], release[64];
    ssize_t n = px_read_file(AT_FDCWD, "/etc/os-release", text, sizeof text);
    return n > 0 && px_release_value(text, (size_t)n, "ID", id, sizeof id) &&
           px_release_value(text, (size_t)n, "VERSION_ID", release, sizeof release) &&
           px_bases_for(id, release) == base;
}

static int take_env(const char *name, char **place, struct px_err *e)
{
    const char *value = getenv(name);
    if (!value || !*value)
        return 0;
    *place = strdup(value);
    return *place ? 0 : px_no_memory(e);
}

/* The caller's mirrors, else the host's if it runs the same distribution, else the distribution's. */
static int choose_mirrors(struct px_apt *s, struct px_buf *acquire, struct px_err *e)
{
    static const char *const targets[] = {
        "apt-get", "indextargets", "--format", "$(REPO_URI) $(SUITE) $(COMPONENT)", "Created-By: Packages", NULL};
    static const char *const settings[] = {"apt-config", "dump", "Acquire", NULL};
    px_auto_buf struct px_buf hosts = PX_BUF(1 << 20), dump = PX_BUF(1 << 20);
    struct px_apt_mirrors asked = {0};
    if (take_env("PX_APT_MIRROR", &asked.archive, e) < 0 || take_env("PX_APT_SECURITY_MIRROR", &asked.security, e) < 0)
        return -1;
    if (!asked.archive && host_is(s->f->base) &&
        px_apt_run(s, "asking for the host's mirrors", targets, NULL, &hosts, e) < 0)
        return -1;
    if (px_apt_run(s, "asking for the host's proxies", settings, NULL, &dump, e) < 0)
        return -1;
    px_apt_keep_acquire(px_buf_text(&dump), acquire);
    s->mirrors = asked;
    return px_apt_host_mirrors(s->f->base, px_buf_text(&hosts), &s->mirrors) < 0 ? px_no_memory(e) : 0;
}

static int write_file(struct px_apt *s, const char *name, const char *data, size_t len, struct px_err *e)
{
    px_auto_fd int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    int r = fd < 0 ? -errno : px_write_full(fd, data, len);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot write apt's %s", name) : 0;
}

static int write_sources(struct px_apt *s, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 16);
    const struct px_base_row *base = s->f->base;
    int r = px_apt_sources(base, &s->mirrors, &text);
    if (r < 0) {
        (void)px_fail(e, PX_E_VALUE, r, "PX_APT_MIRROR or PX_APT_SECURITY_MIRROR is not a mirror");
        return px_fix(
            e,
            "Write a URI, such as http://mirror.example/debian; options of apt go before it: [trusted=yes] URI.");
    }
    if (strstr(px_buf_text(&text), base->keyring) && access(base->keyring, R_OK) < 0) {
        (void)px_fail(e, PX_E_BASE, errno, "the keys of %s's archive are not here: %s", base->os_id, base->keyring);
        return px_fix(e, "Install them: apt install debian-archive-keyring.");
    }
    return write_file(s, "sources.list", text.data, text.len, e);
}

static int copy_status(struct px_apt *s, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(STATUS_MAX);
    char piece[COPY];
    ssize_t n = 0;
    for (off_t at = 0; s->f->installed >= 0 && (n = pread(s->f->installed, piece, sizeof piece, at)) > 0; at += n)
        px_buf_add(&text, piece, (size_t)n);
    if (n < 0 || text.err < 0)
        return px_fail(e, PX_E_BASE, n < 0 ? errno : text.err, "the base's list of packages cannot be read");
    return write_file(s, "status", px_buf_text(&text), text.len, e);
}

static int write_settings(struct px_apt *s, struct px_err *e)
{
    px_auto_buf struct px_buf conf = PX_BUF(1 << 20), acquire = PX_BUF(1 << 16);
    for (const char *const *dir = px_apt_dirs; *dir; dir++)
        if (mkdirat(s->dir, *dir, 0755) < 0)
            return px_fail(e, PX_E_STORE_WRITE, errno, "cannot make a directory for apt");
    if (choose_mirrors(s, &acquire, e) < 0)
        return -1;
    px_apt_conf(px_distro_fetch_arch(), px_buf_text(&acquire), &conf);
    if (conf.err < 0 || acquire.err < 0)
        return px_fail(e, PX_E_LIMIT, conf.err < 0 ? conf.err : acquire.err, "the host's settings of apt are too long");
    if (write_file(s, "apt.conf", conf.data, conf.len, e) < 0 || write_sources(s, e) < 0)
        return -1;
    s->settled = true;
    return copy_status(s, e);
}

static int need_apt(const struct px_fetch *f, struct px_err *e)
{
    char path[PATH_MAX];
    if (!px_distro_fetch_arch()) {
        (void)px_fail(e, PX_E_BASE, 0, "there is no %s for this machine's processor", f->base->name);
        return px_why(e, "px builds bases for x86_64 and aarch64.");
    }
    if (px_tool_find("apt-get", path, sizeof path))
        return 0;
    (void)px_fail(e, PX_E_BASE, 0, "packages of %s are fetched by apt-get, and this machine has none", f->base->name);
    return px_fix(e, "Install apt, or take a base from elsewhere: px sandbox base import %s docker-archive.tar",
                  f->base->name);
}

int px_apt_begin(struct px_apt *s, const struct px_fetch *f, struct px_err *e)
{
    *s = (struct px_apt){.f = f, .dir = -EBADF};
    if (need_apt(f, e) < 0)
        return -1;
    if (mkdirat(s->f->scratch, "apt", 0755) < 0 ||
        (s->dir = openat(s->f->scratch, "apt", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return px_fail(e, PX_E_STORE_WRITE, errno, "cannot make a directory for apt");
    return px_buildbox_path(s->dir, "", s->path, sizeof s->path, e) < 0 ? -1 : write_settings(s, e);
}

void px_apt_end(struct px_apt *s)
{
    px_fd_done(&s->dir);
    px_apt_mirrors_done(&s->mirrors);
}
