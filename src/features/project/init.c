/* project/init.c - makes a directory a project of px. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "config/toml.h"
#include "pep/marker.h"
#include "project/snapshot.h"

enum { NAME_BYTES = 128 };

#define SECTION "[tool.px]"

struct init {
    char root[PATH_MAX];
    int dir;
    const char *name;
    bool created, changed;
};

/* ---- a new file ---- */

/* The directory's name as a package's, as far as it can be one. */
static int choose_name(const struct init *i, char *out, size_t size, struct px_err *e)
{
    const char *slash = strrchr(i->root, '/'), *text = i->name ? i->name : slash ? slash + 1 : "";
    char words[NAME_BYTES];
    size_t n = 0;
    if (i->name) {
        if (px_marker_package_name(text, strlen(text), out, size) == 0)
            return 0;
        px_fail(e, PX_E_VALUE, 0, "'%.100s' cannot be a project's name", text);
        return px_fix(e, "Use letters, digits, '-', '_' and '.', with a letter or digit first and last.");
    }
    for (; *text && n + 1 < sizeof words; text++) {
        bool good = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || (*text >= '0' && *text <= '9');
        if (good || (n > 0 && words[n - 1] != '-'))
            words[n++] = good ? *text : '-';
    }
    while (n > 0 && words[n - 1] == '-')
        n--;
    return n > 0 && px_marker_package_name(words, n, out, size) == 0 ? 0 : px_fmt(out, size, "app");
}

static int new_text(const struct init *i, struct px_buf *out, struct px_err *e)
{
    char name[NAME_BYTES];
    if (choose_name(i, name, sizeof name, e) < 0)
        return -1;
    px_buf_printf(
        out,
        "[project]\nname = \"%s\"\nversion = \"0.1.0\"\nrequires-python = \">=3.11\"\ndependencies = []\n\n" SECTION
        "\n",
        name);
    return 0;
}

/* ---- a file that is there ---- */

static bool has_section(const char *text, size_t length)
{
    static const char *const path[] = {"tool", "px"};
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    bool has = px_toml_parse(text, length, &t, &fault) == 0 && px_toml_find(t, path, 2) != PX_TOML_NONE;
    px_toml_free(t);
    return has;
}

/* Appends a header; the bytes before it stay the same. */
static void append(const struct px_buf *text, struct px_buf *out)
{
    const char *line_end = text->data && strstr(text->data, "\r\n") ? "\r\n" : "\n";
    px_buf_add(out, px_buf_text(text), text->len);
    if (text->len && px_buf_text(text)[text->len - 1] != '\n')
        px_buf_puts(out, line_end);
    if (text->len)
        px_buf_puts(out, line_end);
    px_buf_printf(out, SECTION "%s", line_end);
}

static int set(const struct px_buf *text, struct px_buf *out)
{
    static const char *const path[] = {"tool", "px"};
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    int r = px_toml_parse(px_buf_text(text), text->len, &t, &fault);
    r = r < 0 ? r : px_toml_set(t, path, 2, "{}", out);
    px_toml_free(t);
    return r;
}

static int add_section(const struct px_buf *text, struct px_buf *out, struct px_err *e)
{
    append(text, out);
    if (out->err == 0 && has_section(out->data, out->len))
        return 0;
    px_buf_done(out);           /* [tool] is written as a value: then px is one of its members */
    *out = PX_BUF(PX_TOML_BYTES_MAX);
    int r = set(text, out);
    return r < 0 ? px_fail(e, PX_E_MANIFEST, r, "cannot add " SECTION " to '" PX_MANIFEST_FILE "'") : 0;
}

/* ---- the whole ---- */

static int edit(struct init *i, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_TOML_BYTES_MAX), out = PX_BUF(PX_TOML_BYTES_MAX);
    struct px_manifest m;
    int r = px_buf_read_file(i->dir, PX_MANIFEST_FILE, PX_TOML_BYTES_MAX, &text);
    if (r < 0)
        return px_fail(e, PX_E_MANIFEST, r, "cannot read '" PX_MANIFEST_FILE "'");
    i->created = r > 0;
    if (!i->created) {
        if (px_manifest_parse(px_buf_text(&text), text.len, PX_MANIFEST_FILE, &m, e) < 0)
            return -1;
        bool is_px = m.is_px;
        px_manifest_done(&m);
        if (is_px)
            return 0;
    }
    if ((i->created ? new_text(i, &out, e) : add_section(&text, &out, e)) < 0)
        return -1;
    i->changed = true;
    r = out.err < 0 ? out.err : px_layout_replace_file(i->dir, PX_MANIFEST_FILE, out.data, out.len);
    return r < 0 ? px_fail(e, PX_E_IO, r, "cannot write '%.200s/" PX_MANIFEST_FILE "'", i->root) : 0;
}

int px_project_init(const char *dir, const char *name, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct init i = {.dir = -EBADF, .name = name};
    if (!realpath(dir ? dir : ".", i.root))
        return px_fail(e, PX_E_IO, errno, "cannot find '%.200s'", dir ? dir : ".");
    px_auto_fd int fd = open(i.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return px_fail(e, PX_E_IO, errno, "cannot open '%.200s'", i.root);
    i.dir = fd;
    if (edit(&i, e) < 0)
        return -1;
    json_t *details = json_pack("{s:s, s:s, s:b, s:b}", "root", i.root, "manifest", PX_MANIFEST_FILE, "created",
                                i.created, "changed", i.changed);
    return px_project_answer("init", "ok",
                     i.created   ? "wrote " PX_MANIFEST_FILE
                     : i.changed ? "added " SECTION " to " PX_MANIFEST_FILE
                                 : "this is a px project already",
                     details, false, ret_json, e);
}
