/* The environment for an image: the project's without packages that only development needs. Dependencies come from each
 * package's METADATA, so that it does not matter which tool wrote the lock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "env/env_internal.h"
#include "pep/manifest.h"
#include "pep/marker.h"
#include "pep/wheel.h"

enum { METADATA_MAX = 4 << 20, LINES_MAX = 2000, LINE_MAX_BYTES = 4096, EXTRAS_MAX = 64, NAME_BYTES = 256 };

struct node {                   /* a package */
    char **needs;               /* its Requires-Dist */
    size_t need_count;
    bool wanted;
    char *extras[EXTRAS_MAX + 1];               /* its wanted extras; ends with a NULL */
    size_t extra_count;
};

struct walk {
    const struct px_env *env;
    const struct px_marker_env *markers;
    struct node *nodes;
    struct px_err *e;
};

static void forget_extras(struct node *n)
{
    for (size_t i = 0; i < n->extra_count; i++)
        free(n->extras[i]);
    memset(n->extras, 0, sizeof n->extras);
    n->extra_count = 0;
}

static void walk_done(struct walk *w)
{
    for (size_t i = 0; w->nodes && i < w->env->count; i++) {
        forget_extras(&w->nodes[i]);
        for (size_t k = 0; k < w->nodes[i].need_count; k++)
            free(w->nodes[i].needs[k]);
        free(w->nodes[i].needs);
    }
    free(w->nodes);
}

/* ---- what a package needs ---- */

static bool is_info(const char *name)
{
    size_t n = strlen(name);
    return n > 10 && px_equal(name + n - 10, ".dist-info");
}

/* An installed wheel has one such directory. 1: it has none. */
static int find_info(int site, char *out, size_t size)
{
    int copy = px_open_beneath(site, ".", O_RDONLY | O_DIRECTORY, 0), r = 1;
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        (void)px_fd_close(copy);
        return copy < 0 ? copy : -ENOMEM;
    }
    for (struct dirent *entry; r == 1 && (entry = readdir(list));)
        if (is_info(entry->d_name))
            r = px_fmt(out, size, "%s/METADATA", entry->d_name) < 0 ? 1 : 0;
    (void)closedir(list);
    return r;
}

/* A line that is too long to be a requirement is skipped. */
static int take_needs(struct node *n, const struct px_buf *text)
{
    char line[LINE_MAX_BYTES];
    int r = 0;
    n->needs = calloc(LINES_MAX, sizeof *n->needs);
    for (unsigned i = 0; n->needs && i < LINES_MAX && r != 1; i++) {
        r = px_wheel_header(px_buf_text(text), text->len, "Requires-Dist", i, line, sizeof line);
        if (r == 0 && !(n->needs[n->need_count++] = strdup(line)))
            return -ENOMEM;
    }
    return n->needs ? 0 : -ENOMEM;
}

static int read_needs(struct px_sandbox *s, const struct px_env_package *p, struct node *n, struct px_err *e)
{
    px_auto_fd int root = -EBADF;
    px_auto_buf struct px_buf text = PX_BUF(METADATA_MAX);
    char path[NAME_MAX + 16];
    if (px_tree_open(s->store, &p->tree, &root, e) < 0)
        return -1;
    px_auto_fd int site = px_open_beneath(root, "site-packages", O_RDONLY | O_DIRECTORY, 0);
    int r = site < 0 ? site : find_info(site, path, sizeof path);
    if (r == 0)
        r = px_wheel_paths_read(site, path, METADATA_MAX, &text);
    if (r == 0)
        r = take_needs(n, &text);
    return r < 0 ? px_fail(e, PX_E_BUILD, r, "cannot read what %s needs", p->name) : 0;
}

/* ---- who is wanted ---- */

/* 1: it is new. Stores the extra as written, and its canonical name. */
static int add_extra(struct node *n, const char *text)
{
    for (size_t i = 0; i < n->extra_count; i++)
        if (px_equal(n->extras[i], text))
            return 0;
    if (n->extra_count == EXTRAS_MAX)
        return 0;
    return (n->extras[n->extra_count] = strdup(text)) ? (n->extra_count++, 1) : -ENOMEM;
}

static int add_extras(struct node *n, const char *list, size_t length)
{
    char word[NAME_BYTES], plain[NAME_BYTES];
    int any = 0;
    for (size_t at = 0, size; at < length; at += size + 1) {
        const char *from = list + at;
        size = 0;
        while (at + size < length && from[size] != ',')
            size++;
        size_t skip = strspn(from, " \t"), used = size;
        while (used > skip && strchr(" \t", from[used - 1]))
            used--;
        if (used <= skip || px_fmt(word, sizeof word, "%.*s", (int)(used - skip), from + skip) < 0)
            continue;
        int a = add_extra(n, word);
        int b = px_marker_package_name(word, strlen(word), plain, sizeof plain) < 0 ? 0 : add_extra(n, plain);
        if (a < 0 || b < 0)
            return -ENOMEM;
        any |= a | b;
    }
    return any;
}

static struct node *find_node(const struct walk *w, const struct px_requirement *q)
{
    char name[NAME_BYTES];
    if (px_marker_package_name(q->name, q->name_length, name, sizeof name) < 0)
        return NULL;
    for (size_t i = 0; i < w->env->count; i++)
        if (px_equal(w->env->packages[i].name, name))
            return &w->nodes[i];
    return NULL;
}

/* 1: something was added. A requirement that cannot be parsed, or is for another system, adds nothing. */
static int want(const struct walk *w, const char *text, const struct node *by)
{
    struct px_marker_env markers = *w->markers;
    struct px_requirement q;
    char marker[LINE_MAX_BYTES];
    markers.extras = by ? (const char *const *)by->extras : NULL;
    if (px_marker_requirement_parse(text, &q) < 0 ||
        px_fmt(marker, sizeof marker, "%.*s", (int)q.marker_length, q.marker ? q.marker : "") < 0 ||
        px_marker_holds(marker, &markers) != 1)
        return 0;
    struct node *n = find_node(w, &q);
    if (!n)
        return 0;
    int fresh = n->wanted ? 0 : 1, more = add_extras(n, q.extras ? q.extras : "", q.extras_length);
    n->wanted = true;
    return more < 0 ? more : fresh | more;
}

static int follow_once(const struct walk *w)
{
    int any = 0;
    for (size_t i = 0; i < w->env->count; i++)
        for (size_t k = 0; w->nodes[i].wanted && k < w->nodes[i].need_count; k++) {
            int r = want(w, w->nodes[i].needs[k], &w->nodes[i]);
            if (r < 0)
                return r;
            any |= r;
        }
    return any;
}

static int mark(const struct walk *w, const struct px_names *roots, bool *ret_wanted)
{
    int r = 0;
    for (size_t i = 0; i < w->env->count; i++) {
        w->nodes[i].wanted = false;
        forget_extras(&w->nodes[i]);
    }
    for (size_t i = 0; r >= 0 && i < roots->count; i++)
        r = want(w, roots->items[i], NULL);
    while (r >= 0 && (r = follow_once(w)) == 1)
        ;
    for (size_t i = 0; i < w->env->count; i++)
        ret_wanted[i] = w->nodes[i].wanted;
    return r < 0 ? px_no_memory(w->e) : 0;
}

/* ---- the whole ---- */

int px_env_ship(struct px_sandbox *s, const struct px_names *needed, const struct px_names *development,
                const struct px_marker_env *markers, struct px_env *env, struct px_err *e)
{
    struct walk w = {.env = env, .markers = markers, .e = e, .nodes = calloc(env->count + 1, sizeof *w.nodes)};
    px_auto_free bool *kept = calloc(env->count + 1, sizeof *kept);
    px_auto_free bool *dropped = calloc(env->count + 1, sizeof *dropped);
    int r = w.nodes && kept && dropped ? 0 : px_no_memory(e);
    for (size_t i = 0; r == 0 && i < env->count; i++)
        r = read_needs(s, &env->packages[i], &w.nodes[i], e);
    if (r == 0)
        r = mark(&w, needed, kept) < 0 || mark(&w, development, dropped) < 0 ? -1 : 0;
    walk_done(&w);
    for (size_t i = 0; r == 0 && i < env->count; i++)
        kept[i] = kept[i] || !dropped[i];
    return r < 0 ? -1 : px_env_keep(s, env, kept, e);
}
