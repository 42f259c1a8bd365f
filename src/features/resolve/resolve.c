#include "resolve/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "env/env.h"
#include "env/messages.h"
#include "host/tool.h"
#include "resolve/messages.h"
#include "resolve/resolved.h"
#include "start/buildbox.h"
#include "transfer/settings.h"

enum { ANSWER_MAX = 16 << 20, SAID_MAX = 1 << 20, WORDS_MAX = 4096 + 32, ARGUMENTS_MAX = 1 << 20 };

#define SCRATCH_DIR "/px/tmp"
#define TARGET_DIR "/px/tmp/target"
#define REPORT_FILE "/px/tmp/report.json"
#define KEEP_NAME "constraints.txt"
#define KEEP_FILE SCRATCH_DIR "/" KEEP_NAME

/* ---- words ---- */

struct words {
    const char *items[WORDS_MAX];
    size_t count, bytes;
};

static int add_words(struct words *w, const char *const *list, size_t count, struct px_err *e)
{
    for (size_t i = 0; i < count; i++) {
        w->bytes += strlen(list[i]) + 1;
        if (w->count + 1 >= WORDS_MAX || w->bytes > ARGUMENTS_MAX)
            return px_fail(e, PX_E_LIMIT, E2BIG, "the project has too many requirements");
        w->items[w->count++] = list[i];
    }
    w->items[w->count] = NULL;
    return 0;
}

/* ---- what went wrong ---- */

static int missing(const char *python, struct px_err *e)
{
    px_fail(e, PX_E_LOCK, 0, "there is neither uv nor pip to resolve the project's requirements");
    (void)px_detail(e, "reason", "resolver_missing");
    (void)px_why(e, "'%s' has no module pip, and uv is not installed.", python);
    return px_fix(e, "Install one of them: apt install python3-pip, or uv.");
}

/* Adds a hint for a package whose code failed. had: the capabilities that it had; NULL: none. */
static void add_hint(char *why, size_t size, const char *said, const char *had)
{
    static const char rust[] = "\nIt is built with Rust, for which px has no crates: take a version that has a wheel.";
    struct px_missing m;
    size_t n = strlen(why);
    if (px_messages_missing(why, n, &m) && !px_env_has_word(had, m.capability))
        (void)px_fmt(why + n, size - n, "\n%s comes with the capability '%s': px sandbox add %s.", m.what, m.capability,
                     m.capability);
    else if (strstr(said, "metadata-generation-failed") && strstr(said, "maturin"))
        (void)px_fmt(why + n, size - n, "%s", rust);
}

/* what: "resolve the project's requirements". */
static int failed(const char *python, const char *tool, const char *what, const struct px_buf *said, const char *had,
                  struct px_err *e)
{
    char why[sizeof e->why];
    if (e->code == PX_E_NETWORK)
        return px_fix(e, "Run `px doctor` to see what this kernel has.\n"
                         "Or give the code of packages this host's whole network: PX_INDEX_NET=host px sync.");
    if (e->code != PX_E_BUILD)
        return -1;
    if (strstr(e->why, "No module named pip"))
        return missing(python, e);
    (void)px_fmt(why, sizeof why, "%s", e->why);
    add_hint(why, sizeof why, said ? px_buf_text(said) : "", had);
    px_fail(e, PX_E_LOCK, 0, "%s cannot %s", tool, what);
    (void)px_detail(e, "reason", "resolve_failed");
    (void)px_detail(e, "resolver", tool);
    (void)px_why_lines(e, why);
    return px_fix(e, "Correct the requirements in pyproject.toml, or the index that %s is set to.", tool);
}

/* ---- the box ---- */

static int show_path(struct px_buildbox *box, const char *path, struct px_err *e)
{
    return px_buildbox_show(box, path, path, false, e);
}

/* system: a root instead of this machine's programs, whose changes are dropped; NULL: this machine's. */
static int make_box(const char *root, const char *system, const char *doing, int scratch, struct px_buildbox *box,
                    struct px_err *e)
{
    char path[PATH_MAX];
    if (px_buildbox_index(box, doing, e) < 0)
        return -1;
    if (system && (px_policy_set(box->policy, "rootfs", system, e) < 0 || px_policy_set(box->policy, "overlay", "", e) < 0))
        return -1;
    const struct px_settings_to to = {.box = box, .path = show_path, .variable = px_buildbox_env};
    if (px_settings_show(&to, root, e) < 0)
        return -1;
    if (scratch >= 0 &&
        (px_buildbox_path(scratch, "", path, sizeof path, e) < 0 ||
         px_buildbox_show(box, path, SCRATCH_DIR, true, e) < 0 || px_buildbox_env(box, "TMPDIR", SCRATCH_DIR, e) < 0))
        return -1;
    return px_policy_set(box->policy, "workdir", root, e);
}

static int show_program(struct px_buildbox *box, const char *path, bool always, struct px_err *e)
{
    return !always && (px_path_within(path, "/usr") || px_path_within(path, "/bin"))
               ? 0
               : px_buildbox_show(box, path, path, false, e);
}

struct question {
    struct px_sandbox *sandbox;
    const char *root;           /* of the project */
    const char *what;           /* "resolve the project's requirements" */
    const struct px_target *target;
    const struct px_names *asked;
    const struct px_names *keep;        /* "name==version" of fixed packages; NULL: none */
    const struct px_env_ask *env;               /* of the project; NULL: none */
    const char *system;         /* see make_box */
    const char *had;            /* the capabilities whose development packages that has */
    struct px_resolver_python python;
    int scratch;
    struct px_buf *said;
};

static void keep_said(void *user, const char *text, size_t length)
{
    px_resolve_quote(text, length, user);
}

static int ask(const struct question *q, const char *tool, const char *doing, const char *uv, const struct words *w,
               struct px_buf *out, struct px_err *e)
{
    struct px_buildbox box = {.out_fd = -EBADF};
    int r = make_box(q->root, q->system, doing, q->scratch, &box, e);
    if (r == 0 && uv)
        r = show_program(&box, uv, q->system != NULL, e);
    box.out = out;
    box.quote = px_resolve_words;
    box.said = keep_said;
    box.said_user = q->said;
    if (r == 0 && px_buildbox_run(&box, w->items, e) < 0)
        r = failed(q->python.path, tool, q->what, q->said, q->had, e);
    px_buildbox_done(&box);
    return r;
}

/* ---- pip: its words and its answer would come mixed, so that the answer goes by a file ---- */

/* pip resolves for the Python that runs it. For another Python it accepts only wheels: it cannot run a source archive
 * for it. */
static int add_foreign(const struct question *q, struct words *w, struct px_err *e)
{
    const struct px_python *runtime = q->target->runtime;
    const char *const other[] = {
        "--python-version", q->target->minor, "--only-binary", ":all:", "--target", TARGET_DIR};
    static const char *const musl[] = {"--platform", "musllinux_1_2_x86_64", "--platform", "musllinux_1_1_x86_64"};
    if (!runtime->musl && runtime->minor == q->python.minor)
        return 0;
    return add_words(w, other, PX_COUNT_OF(other), e) < 0 ||
                   (runtime->musl && add_words(w, musl, PX_COUNT_OF(musl), e) < 0)
               ? -1
               : 0;
}

/* The requirements that apply on the target, without their markers: pip would evaluate those for its own Python. */
static int strip_markers(const struct question *q, struct px_names *ret_list, char ***ret_texts, struct px_err *e)
{
    char **texts = calloc(q->asked->count + 1, sizeof *texts);
    size_t n = 0;
    *ret_texts = texts;
    for (size_t i = 0; texts && i < q->asked->count; i++) {
        struct px_requirement parts;
        const char *text = q->asked->items[i];
        if (px_marker_requirement_parse(text, &parts) < 0 || px_marker_holds(parts.marker, &q->target->env) == 0)
            continue;
        const char *semicolon = parts.marker_length ? memrchr(text, ';', (size_t)(parts.marker - text)) : NULL;
        texts[n] = semicolon ? strndup(text, (size_t)(semicolon - text)) : strdup(text);
        if (!texts[n++])
            break;
    }
    *ret_list = (struct px_names){.items = (const char **)texts, .count = n};
    return texts && (n == 0 || texts[n - 1]) ? 0 : px_no_memory(e);
}

static int ask_pip(const struct question *q, const struct px_names *asked, struct px_buf *out, struct px_err *e)
{
    static const char *const end[] = {"--"}, *const only[] = {"--constraint", KEEP_FILE};
    static const char script[] = "\"$@\" >&2 && exec cat " REPORT_FILE;
    const char *const head[] = {"/bin/sh",
                                "-c",
                                script,
                                "sh",
                                q->python.path,
                                "-I",
                                "-m",
                                "pip",
                                "install",
                                "--dry-run",
                                "--ignore-installed",
                                "--report",
                                REPORT_FILE,
                                "--progress-bar",
                                "off",
                                "--disable-pip-version-check",
                                "--no-input",
                                "--no-cache-dir"};
    struct words w = {.count = 0};
    if (add_words(&w, head, PX_COUNT_OF(head), e) < 0 || add_foreign(q, &w, e) < 0 ||
        (q->keep && add_words(&w, only, PX_COUNT_OF(only), e) < 0) || add_words(&w, end, 1, e) < 0 ||
        add_words(&w, asked->items, asked->count, e) < 0)
        return -1;
    return ask(q, "pip", "resolving with pip", NULL, &w, out, e);
}

static int run_pip(const struct question *q, struct px_buf *out, struct px_err *e)
{
    struct px_names asked;
    char **texts = NULL;
    int r = strip_markers(q, &asked, &texts, e);
    if (r == 0)
        r = asked.count ? ask_pip(q, &asked, out, e) : px_buf_puts(out, "{\"install\":[]}");
    for (size_t i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
    return r;
}

/* ---- uv: it wants its requirements in a file ---- */

static int run_uv(const struct question *q, const char *uv, struct px_buf *out, struct px_err *e)
{
    static const char script[] =
        "uv=$1 python=$2 version=$3 platform=$4 only=$5; shift 5; printf '%s\\n' \"$@\" | exec \"$uv\" pip compile --quiet"
        " --no-header --no-annotate --no-cache --no-python-downloads --format pylock.toml --python \"$python\""
        " --python-version \"$version\" ${platform:+--python-platform \"$platform\"} ${only:+--constraint \"$only\"} -";
    const char *const head[] = {"/bin/sh", "-c", script, "sh", uv, q->python.path, q->target->minor,
                                q->target->runtime->musl ? "x86_64-unknown-linux-musl" : "", q->keep ? KEEP_FILE : ""};
    struct words w = {.count = 0};
    if (add_words(&w, head, PX_COUNT_OF(head), e) < 0 || add_words(&w, q->asked->items, q->asked->count, e) < 0)
        return -1;
    return ask(q, "uv", "resolving with uv", uv, &w, out, e);
}

/* ---- both ---- */

/* Whether the metadata of a source archive could not be built. */
static bool build_failed(const struct px_buf *said)
{
    static const char *const marks[] = {"subprocess-exited-with-error", "metadata-generation-failed", "Failed to build",
                                        "Failed to download and build", "build backend"};
    for (size_t i = 0; i < PX_COUNT_OF(marks); i++)
        if (said->len && strstr(px_buf_text(said), marks[i]))
            return true;
    return false;
}

/* The code of packages needs headers and programs that this machine may not have. Tries again on the project's base
 * with the development packages of its capabilities. Without such a root the first error stays. */
static int try_on_base(const struct question *q, const char *uv, struct px_buf *out, struct px_err *e)
{
    const struct px_python *runtime = q->target->runtime;
    struct question again = *q;
    struct px_lease *lease = NULL;
    struct px_err ignored = {0};
    px_auto_free char *had = NULL;
    char system[PATH_MAX];
    if (!q->env || !build_failed(q->said) ||
        px_env_build_root(q->sandbox, q->env, q->asked, system, sizeof system, &had, &lease, &ignored) != 0)
        return -1;
    again.had = had;
    q->said->len = 0;
    again.system = system;
    again.python.minor = runtime->minor;
    (void)px_fmt(again.python.path, sizeof again.python.path, "%s", runtime->program);
    *e = (struct px_err){0};
    int r = uv ? run_uv(&again, uv, out, e) : run_pip(&again, out, e);
    px_lease_drop(lease);
    return r;
}

static int resolve_in(const struct question *q, struct px_lock *ret_pins, const char **ret_tool, struct px_err *e)
{
    const struct px_resolved_for what = {.root = q->root, .env = &q->target->env, .tags = &q->target->tags};
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    char uv[PATH_MAX];
    bool with_uv = px_tool_find("uv", uv, sizeof uv);
    *ret_tool = with_uv ? "uv" : "pip";
    if ((with_uv ? run_uv(q, uv, &out, e) : run_pip(q, &out, e)) < 0 &&
        try_on_base(q, with_uv ? uv : NULL, &out, e) < 0)
        return -1;
    return (with_uv ? px_resolved_from_pylock : px_resolved_from_pip)(px_buf_text(&out), out.len, &what, ret_pins, e);
}

/* A temporary directory, removed with this process; its lock makes syncs of one project run one after the other. */
static int scratch_begin(struct px_sandbox *s, const char *root, struct px_tree_build **ret_scratch, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(PATH_MAX + 64);
    struct px_oid id;
    px_buf_printf(&words, "resolve %s", root);
    if (words.err < 0 || px_hash_bytes(words.data, words.len, &id) < 0)
        return px_no_memory(e);
    return px_tree_begin(s->store, &id, ret_scratch, e);
}

/* For uv and pip; uv reads it as pip does. */
static int write_keep(const struct question *q, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(ANSWER_MAX);
    for (size_t i = 0; q->keep && i < q->keep->count; i++)
        px_buf_printf(&text, "%s\n", q->keep->items[i]);
    if (!q->keep)
        return 0;
    px_auto_fd int fd = openat(q->scratch, KEEP_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int r = text.err < 0 ? text.err : fd < 0 ? -errno : px_write_full(fd, px_buf_text(&text), text.len);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot write down which packages stay") : 0;
}

static int resolve(struct px_sandbox *s, struct question *q, struct px_lock *ret_pins, const char **ret_tool,
                   struct px_err *e)
{
    struct px_tree_build *scratch = NULL;
    *ret_tool = NULL;
    if (q->asked->count == 0)
        return px_resolved_empty(ret_pins, e);
    if (px_target_resolver(&q->python, e) < 0 || scratch_begin(s, q->root, &scratch, e) < 0)
        return -1;
    q->scratch = px_tree_build_fd(scratch);
    int r = write_keep(q, e) < 0 ? -1 : resolve_in(q, ret_pins, ret_tool, e);
    px_tree_drop(scratch);
    return r;
}

int px_resolve(struct px_sandbox *s, const struct px_located *site, const struct px_target *target,
               const struct px_names *keep, struct px_lock *ret_pins, const char **ret_tool, struct px_buf *said, struct px_err *e)
{
    struct px_names asked;
    if (px_locate_requirements(site, &asked, e) < 0)
        return -1;
    px_auto_free const char **list = asked.items;
    const struct px_env_ask env = {
        .manifest = &site->manifest, .base = target->runtime->base, .python = target->runtime};
    struct question q = {.sandbox = s,
                         .env = &env,
                         .root = site->root,
                         .what = "resolve the project's requirements",
                         .target = target,
                         .asked = &asked,
                         .keep = keep,
                         .scratch = -EBADF,
                         .said = said};
    return resolve(s, &q, ret_pins, ret_tool, e);
}

int px_resolve_names(struct px_sandbox *s, const char *root, const struct px_target *target,
                     const struct px_names *asked, struct px_lock *ret_pins, struct px_err *e)
{
    px_auto_buf struct px_buf said = PX_BUF(SAID_MAX);
    const char *tool;
    struct question q = {.root = root,
                         .what = "find what a build needs",
                         .target = target,
                         .asked = asked,
                         .scratch = -EBADF,
                         .said = &said};
    return resolve(s, &q, ret_pins, &tool, e);
}

/* ---- files by name ---- */

static int add_pins(struct words *w, const struct px_chosen *list, size_t count, char ***ret_texts, struct px_err *e)
{
    char **texts = calloc(count + 1, sizeof *texts);
    int r = 0;
    if (!texts)
        return px_no_memory(e);
    for (size_t i = 0; r == 0 && i < count; i++) {
        px_auto_buf struct px_buf text = PX_BUF(1024);
        px_buf_printf(&text, "%s==%s", list[i].pin->name, list[i].pin->version);
        texts[i] = px_buf_take(&text);
        r = texts[i] ? add_words(w, (const char *const *)&texts[i], 1, e)
                     : px_no_memory(e);
    }
    *ret_texts = texts;
    return r;
}

static int run_download(const char *root, const char *python, const struct words *w, int dir, struct px_err *e)
{
    struct px_buildbox box = {.out_fd = -EBADF};
    char path[PATH_MAX];
    int r = make_box(root, NULL, "downloading with pip", -EBADF, &box, e) < 0 ||
                    px_buildbox_path(dir, "", path, sizeof path, e) < 0 ||
                    px_buildbox_show(&box, path, SCRATCH_DIR, true, e) < 0 ||
                    px_buildbox_env(&box, "TMPDIR", SCRATCH_DIR, e) < 0
                ? -1
                : 0;
    box.quote = px_resolve_words;
    if (r == 0 && px_buildbox_run(&box, w->items, e) < 0)
        r = failed(python, "pip", "find files that the lock names", NULL, NULL, e);
    px_buildbox_done(&box);
    return r;
}

int px_resolve_download(const char *root, const struct px_target *target, const struct px_chosen *list, size_t count,
                        int dir, struct px_err *e)
{
    struct question q = {.target = target};
    static const char *const end[] = {"--dest", SCRATCH_DIR, "--"};
    struct words w = {.count = 0};
    char **texts = NULL;
    if (count == 0)
        return 0;
    if (px_target_resolver(&q.python, e) < 0)
        return -1;
    const char *const head[] = {q.python.path,
                                "-I",
                                "-m",
                                "pip",
                                "download",
                                "--no-deps",
                                "--quiet",
                                "--disable-pip-version-check",
                                "--no-input",
                                "--no-cache-dir",
                                "--python-version",
                                target->minor,
                                "--only-binary",
                                ":all:"};
    size_t own = target->runtime->minor == q.python.minor && !target->runtime->musl
                     ? 4
                     : 0; /* then source archives are accepted as well */
    int r = add_words(&w, head, PX_COUNT_OF(head) - own, e) < 0 || add_words(&w, end, PX_COUNT_OF(end), e) < 0 ||
                    add_pins(&w, list, count, &texts, e) < 0
                ? -1 : run_download(root, q.python.path, &w, dir, e);
    for (size_t i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
    return r;
}
