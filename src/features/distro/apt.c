#include "distro/apt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"

enum { LINE_MAX_BYTES = 8192 };

const char *const px_apt_dirs[] = {"empty", "lists", "lists/partial", "cache", "archives", "archives/partial", NULL};

/* APT::Sandbox::User is off: user _apt could not enter our directory. dpkg is never called: nothing is installed
 * here. */
static const char conf[] =
    "Dir::Etc::main \"/dev/null\";\n"
    "Dir::Etc::parts \"" PX_APT_DIR "/empty\";\n"
    "Dir::Etc::sourcelist \"" PX_APT_DIR "/sources.list\";\n"
    "Dir::Etc::sourceparts \"" PX_APT_DIR "/empty\";\n"
    "Dir::Etc::preferences \"/dev/null\";\n"
    "Dir::Etc::preferencesparts \"" PX_APT_DIR "/empty\";\n"
    "Dir::Etc::trusted \"/dev/null\";\n"
    "Dir::Etc::trustedparts \"" PX_APT_DIR "/empty\";\n"
    "Dir::State \"" PX_APT_DIR "\";\n"
    "Dir::State::lists \"" PX_APT_DIR "/lists\";\n"
    "Dir::State::status \"" PX_APT_DIR "/status\";\n"
    "Dir::Cache \"" PX_APT_DIR "/cache\";\n"
    "Dir::Cache::archives \"" PX_APT_DIR "/archives\";\n"
    "Dir::Log \"" PX_APT_DIR "/cache\";\n"
    "Dir::Bin::dpkg \"/bin/false\";\n"
    "APT::Sandbox::User \"\";\n"
    "APT::Install-Recommends \"false\";\n"
    "APT::Install-Suggests \"false\";\n"
    "APT::Get::Assume-Yes \"true\";\n"
    "APT::Get::Download-Only \"true\";\n"
    "APT::Update::Error-Mode \"any\";\n"
    "Acquire::Languages \"none\";\n"
    "Acquire::ForceHash \"SHA256\";\n"
    "Acquire::Retries \"3\";\n";

void px_apt_conf(const char *arch, const char *acquire, struct px_buf *out)
{
    px_buf_puts(out, acquire ? acquire : "");
    px_buf_puts(out, conf);
    px_buf_printf(out, "APT::Architecture \"%s\";\nAPT::Architectures { \"%s\"; };\n", arch, arch);
}

/* ---- sources ---- */

void px_apt_mirrors_done(struct px_apt_mirrors *m)
{
    free(m->archive);
    free(m->security);
    *m = (struct px_apt_mirrors){0};
}

/* One word without control bytes, quotes or brackets, which sources.list would interpret. */
static bool plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f || strchr("[]\"'#\\", text[i]))
            return false;
    return len > 0;
}

/* deb [OPTIONS] URI SUITE main, with the base's keyring unless the options name another. */
static int add_source(const struct px_base_row *base, const char *mirror, const char *suite_end, struct px_buf *out)
{
    const char *uri = mirror, *options = "";
    size_t options_len = 0;
    if (*mirror == '[') {
        const char *close = strchr(mirror, ']');
        if (!close)
            return -EINVAL;
        options = mirror + 1;
        options_len = (size_t)(close - options);
        uri = close + 1 + strspn(close + 1, " ");
        for (size_t at = 0; at < options_len; at += strcspn(options + at, " ]") + 1)
            if (!plain(options + at, strcspn(options + at, " ]")))
                return -EINVAL;
    }
    if (!plain(uri, strlen(uri)))
        return -EINVAL;
    if (options_len > 0)
        px_buf_printf(out, "deb [%.*s] ", (int)options_len, options);
    else
        px_buf_printf(out, "deb [signed-by=%s] ", base->keyring);
    px_buf_printf(out, "%s %s%s main\n", uri, base->suite, suite_end);
    return out->err;
}

int px_apt_sources(const struct px_base_row *base, const struct px_apt_mirrors *mirrors, struct px_buf *out)
{
    const char *archive = mirrors->archive ? mirrors->archive : base->mirror;
    const char *security = mirrors->security ? mirrors->security : base->security;
    int r = add_source(base, archive, "", out);
    r = r < 0 ? r : add_source(base, archive, "-updates", out);
    return r < 0 ? r : add_source(base, security, "-security", out);
}

/* The next line into `line`, cut if it is very long; false at the end. */
static bool next_line(const char **text, char *line, size_t size)
{
    if (**text == '\0')
        return false;
    size_t n = strcspn(*text, "\n"), kept = n < size - 1 ? n : size - 1;
    memcpy(line, *text, kept);
    line[kept] = '\0';
    *text += n + ((*text)[n] == '\n');
    return true;
}

/* Words of a line in place; how many there were. */
static size_t split(char *line, char **words, size_t max)
{
    size_t count = 0;
    for (char *at = line + strspn(line, " "); *at && count < max;) {
        words[count++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
        at += strspn(at, " ");
    }
    return count;
}

static int take_mirror(char **place, char *uri)
{
    size_t n = strlen(uri);
    while (n > 0 && uri[n - 1] == '/')
        uri[--n] = '\0';
    if (*place || !plain(uri, n))
        return 0;
    *place = strdup(uri);
    return *place ? 0 : -ENOMEM;
}

int px_apt_host_mirrors(const struct px_base_row *base, const char *text, struct px_apt_mirrors *mirrors)
{
    char line[LINE_MAX_BYTES], *words[4], security[64];
    if (px_fmt(security, sizeof security, "%s-security", base->suite) < 0)
        return -EINVAL;
    while (next_line(&text, line, sizeof line)) {
        if (split(line, words, PX_COUNT_OF(words)) != 3 || !px_equal(words[2], "main"))
            continue;
        char **place = px_equal(words[1], base->suite) ? &mirrors->archive
                       : px_equal(words[1], security)  ? &mirrors->security
                                                       : NULL;
        if (place && take_mirror(place, words[0]) < 0)
            return -ENOMEM;
    }
    return 0;
}

void px_apt_keep_acquire(const char *text, struct px_buf *out)
{
    static const char *const kept[] = {"::Proxy",    "::Timeout",   "::Retries",  "::ProxyAutoDetect",
                                       "::No-Proxy", "::ForceIPv4", "::ForceIPv6"};
    char line[LINE_MAX_BYTES];
    while (next_line(&text, line, sizeof line)) {
        size_t name = strcspn(line, " "), len = strlen(line);
        /* Acquire::http::Proxy "http://proxy:3128";  without characters that could begin another line of the file */
        if (!px_starts_with(line, "Acquire::") || len < name + 4 || line[name + 1] != '"' ||
            strcmp(line + len - 2, "\";") != 0 || memchr(line + name + 2, '"', len - name - 4) ||
            memchr(line, '\\', len))
            continue;
        for (size_t i = 0; i < PX_COUNT_OF(kept); i++) {
            const char *at = strstr(line, kept[i]);
            if (at && at < line + name) {
                px_buf_printf(out, "%s\n", line);
                break;
            }
        }
    }
}

/* ---- what it would fetch ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int px_apt_unquote(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex(from[1]), low = high < 0 ? -1 : hex(from[2]);
        if (low < 0 || high * 16 + low == 0)
            return -EINVAL;
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return 0;
}

/* NAME_VERSION_ARCH.deb, each quoted by itself, so that there are exactly two underscores. */
static int split_file(char *file, char **name, char **version, char **arch)
{
    size_t n = strlen(file);
    char *first = strchr(file, '_'), *second = first ? strchr(first + 1, '_') : NULL;
    if (!second || strchr(second + 1, '_') || n < 4 || strcmp(file + n - 4, ".deb") != 0)
        return -EINVAL;
    file[n - 4] = *first = *second = '\0';
    *name = file;
    *version = first + 1;
    *arch = second + 1;
    return px_apt_unquote(*name) < 0 || px_apt_unquote(*version) < 0 || px_apt_unquote(*arch) < 0 ? -EINVAL : 0;
}

static int add_uri(char *line, struct px_packages *list)
{
    char *words[5], file[256];
    struct px_package p = {0};
    if (split(line, words, PX_COUNT_OF(words)) != 4)
        return -EINVAL;
    size_t n = strlen(words[0]);
    if (n < 3 || words[0][0] != '\'' || words[0][n - 1] != '\'' || !px_starts_with(words[3], "SHA256:") ||
        px_hash_oid_parse(words[3] + 7, false, &p.sha256) < 0 || px_parse_u64(words[2], UINT32_MAX, &p.size) < 0)
        return -EINVAL;
    words[0][n - 1] = '\0';
    p.uri = words[0] + 1;
    p.file = file;
    if (strchr(words[1], '/') || px_fmt(file, sizeof file, "%s", words[1]) < 0 ||
        split_file(words[1], &p.name, &p.version, &p.arch) < 0)
        return -EINVAL;
    return px_packages_add(list, &p);
}

int px_apt_uris(const char *text, struct px_packages *list)
{
    char line[LINE_MAX_BYTES];
    while (next_line(&text, line, sizeof line)) {
        int r = *line ? add_uri(line, list) : 0;
        if (r < 0)
            return r;
    }
    return px_packages_sort(list);
}
