#include "transfer/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "base/text.h"
#include "transfer/index.h"
#include "transfer/url.h"

enum { SHOWN_MAX = 64, SETTINGS_MAX = 1 << 20, PROXY_PORT = 80 };

struct showing {
    const struct px_settings_to *to;    /* NULL: nothing is shown, */
    struct px_index *index;     /* ... and the hosts in the settings are added to this */
    const char *home;           /* NULL: the user has none */
    char *shown[SHOWN_MAX];
    size_t count;
    struct px_err *e;
};

/* ---- paths ---- */

static bool is_there(const struct showing *s, const char *path)
{
    static const char *const always[] = {"/usr",    "/bin", "/lib", "/lib64",   "/sbin",
                                         "/proc",   "/dev", "/sys", "/etc/ssl", "/etc/ca-certificates",
                                         "/etc/pki"};
    for (size_t i = 0; i < PX_COUNT_OF(always); i++)
        if (px_path_within(path, always[i]))
            return true;
    for (size_t i = 0; i < s->count; i++)
        if (px_path_within(path, s->shown[i]))
            return true;
    return false;
}

/* Shows an existing path once; ignores anything else: the tool reports missing files. */
static int show(struct showing *s, const char *text)
{
    char path[PATH_MAX];
    if (!s->to)
        return 0;
    if (px_url_path(text, path, sizeof path) < 0 || px_equal(path, "/") || is_there(s, path) ||
        access(path, R_OK) < 0)
        return 0;
    char *kept = s->count < SHOWN_MAX ? strdup(path) : NULL;
    if (!kept)
        return px_fail(s->e, PX_E_LIMIT, E2BIG, "the settings of uv and pip name more than %d paths", SHOWN_MAX);
    s->shown[s->count++] = kept;
    return s->to->path(s->to->box, path, s->e);
}

/* Local paths among the words of a setting: "/srv/wheels", "file:///srv/wheels", "~/wheels". */
static int show_words(struct showing *s, const char *text)
{
    static const char between[] = " \t\r\n,;=\"'[]{}()<>|";
    while (*(text += strspn(text, between))) {
        char word[PATH_MAX];
        size_t n = strcspn(text, between);
        bool home = n > 2 && px_starts_with(text, "~/") && s->home;
        if ((*text == '/' || home || px_starts_with(text, "file://")) &&
            px_fmt(word, sizeof word, "%s%.*s", home ? s->home : "", (int)n - home, text + home) >= 0 &&
            show(s, word) < 0)
            return -1;
        text += n;
    }
    return 0;
}

/* ---- files ---- */

/* "no-index = true" of pip.conf and uv.toml. */
static bool says_no_index(const char *line)
{
    char value[16];
    line += strspn(line, " \t");
    if (!px_starts_with(line, "no-index"))
        return false;
    line += strlen("no-index");
    line += strspn(line, " \t=:");
    return px_fmt(value, sizeof value, "%.*s", (int)strcspn(line, " \t\r#;"), line) >= 0 && px_truthy(value);
}

/* Lines that are comments name nothing. */
static int add_lines(struct px_index *index, char *text)
{
    int r = 0;
    for (char *line = text, *next; r == 0 && *line; line = next) {
        size_t n = strcspn(line, "\n");
        next = line + n + (line[n] == '\n');
        line[n] = '\0';
        index->without = index->without || says_no_index(line);
        index->proxies = px_starts_with(line + strspn(line, " \t"), "proxy");
        if (!strchr("#;", line[strspn(line, " \t")]))
            r = px_index_add_text(index, line);
        index->proxies = false;
    }
    return r;
}

static int show_file(struct showing *s, const char *path)
{
    struct px_buf text = {0};
    if (px_buf_read_file(AT_FDCWD, path, SETTINGS_MAX, &text) != 0)
        return 0;
    int r = show(s, path) < 0 || show_words(s, px_buf_text(&text)) < 0 ? -1 : 0;
    if (s->index && text.len > 0)
        r = add_lines(s->index, text.data);
    px_buf_done(&text);
    return r;
}

static int show_files(struct showing *s)
{
    static const char *const system_files[] = {"/etc/pip.conf", "/etc/xdg/pip/pip.conf", "/etc/uv/uv.toml",
                                               "/etc/xdg/uv/uv.toml"};
    static const char *const home_files[] = {".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml"};
    static const char *const config_files[] = {"pip/pip.conf", "uv/uv.toml"};
    const char *config = getenv("XDG_CONFIG_HOME");
    char path[PATH_MAX];
    for (size_t i = 0; i < PX_COUNT_OF(system_files); i++)
        if (show_file(s, system_files[i]) < 0)
            return -1;
    for (size_t i = 0; s->home && i < PX_COUNT_OF(home_files); i++)
        if (px_fmt(path, sizeof path, "%s/%s", s->home, home_files[i]) >= 0 && show_file(s, path) < 0)
            return -1;
    for (size_t i = 0; config && *config == '/' && i < PX_COUNT_OF(config_files); i++)
        if (px_fmt(path, sizeof path, "%s/%s", config, config_files[i]) >= 0 && show_file(s, path) < 0)
            return -1;
    /* The words of a .netrc are passwords, not paths. */
    return s->home && px_fmt(path, sizeof path, "%s/.netrc", s->home) >= 0 ? show(s, path) : 0;
}

/* ---- variables ---- */

static bool is_passed(const char *name)
{
    /* Variables that would turn a query into an installation, change the format of its answer, or name paths where the
     * box cannot write. */
    static const char *const not [] = {"PIP_TARGET",
                                       "PIP_USER",
                                       "PIP_PREFIX",
                                       "PIP_ROOT",
                                       "PIP_REPORT",
                                       "PIP_QUIET",
                                       "PIP_VERBOSE",
                                       "PIP_LOG",
                                       "PIP_REQUIRE_VIRTUALENV",
                                       "PIP_PYTHON",
                                       "PIP_CACHE_DIR",
                                       "PIP_NO_CACHE_DIR",
                                       "PIP_DEST",
                                       "PIP_SRC",
                                       "PIP_REQUIREMENT",
                                       "PIP_EDITABLE",
                                       "UV_CACHE_DIR",
                                       "UV_PYTHON",
                                       "UV_PROJECT",
                                       "UV_WORKING_DIRECTORY",
                                       "UV_PROJECT_ENVIRONMENT",
                                       "UV_TOOL_DIR",
                                       "UV_TOOL_BIN_DIR",
                                       "UV_OUTPUT_FILE",
                                       "UV_LOG_CONTEXT"};
    static const char *const others[] = {"HTTP_PROXY",     "HTTPS_PROXY",   "ALL_PROXY",      "NO_PROXY",
                                         "http_proxy",     "https_proxy",   "ftp_proxy",      "no_proxy",
                                         "all_proxy",      "SSL_CERT_FILE", "SSL_CERT_DIR",   "REQUESTS_CA_BUNDLE",
                                         "CURL_CA_BUNDLE", "NETRC",         "XDG_CONFIG_HOME"};
    for (size_t i = 0; i < PX_COUNT_OF(not); i++)
        if (px_equal(name, not[i]))
            return false;
    for (size_t i = 0; i < PX_COUNT_OF(others); i++)
        if (px_equal(name, others[i]))
            return true;
    return px_starts_with(name, "PIP_") || px_starts_with(name, "UV_");
}

static bool is_proxy(const char *name)
{
    size_t n = strlen(name);
    return n > 6 && strcasecmp(name + n - 6, "_proxy") == 0 && strcasecmp(name, "no_proxy") != 0;
}

/* Adds the hosts in a variable. A proxy may be given without "http://". */
static int add_variable(struct px_index *index, const char *name, const char *value)
{
    index->proxies = is_proxy(name);
    int r = index->proxies && *value && !strstr(value, "://") ? px_index_add_host(index, value, PROXY_PORT)
                                                              : px_index_add_text(index, value);
    index->proxies = false;
    return r;
}

static int show_variable(struct showing *s, const char *entry)
{
    char name[128];
    const char *equals = strchr(entry, '=');
    if (!equals || px_fmt(name, sizeof name, "%.*s", (int)(equals - entry), entry) < 0 || !is_passed(name))
        return 0;
    if (s->index && add_variable(s->index, name, equals + 1) < 0)
        return -1;
    if (s->to && s->to->variable(s->to->box, name, equals + 1, s->e) < 0)
        return -1;
    if (show_words(s, equals + 1) < 0)
        return -1;
    bool is_file = px_equal(name, "PIP_CONFIG_FILE") || px_equal(name, "UV_CONFIG_FILE");
    return is_file ? show_file(s, equals + 1) : 0;
}

static const char *home_of_user(void)
{
    const char *home = getenv("HOME");
    return home && *home == '/' ? home : NULL;
}

static int show_all(struct showing *s)
{
    int r = 0;
    for (char **entry = environ; r == 0 && entry && *entry; entry++)
        r = show_variable(s, *entry);
    return r == 0 ? show_files(s) : r;
}

int px_settings_show(const struct px_settings_to *to, const char *root, struct px_err *e)
{
    struct showing s = {.to = to, .home = home_of_user(), .e = e};
    int r = show(&s, root);
    if (r == 0 && s.home)
        r = to->variable(to->box, "HOME", s.home, e);
    if (r == 0)
        r = show_all(&s);
    for (size_t i = 0; i < s.count; i++)
        free(s.shown[i]);
    return r;
}

int px_settings_hosts(struct px_index *index)
{
    struct showing s = {.index = index, .home = home_of_user()};
    return show_all(&s);
}
