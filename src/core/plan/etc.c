/* The /etc of a box: files that px generates, and for programs of the host the files of the host's /etc that they
 * read. */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "plan/steps.h"

enum {
    RO = PX_STEPS_RO,
    COPY_BYTES = 2 << 20,       /* of a file of the host that is copied; ld.so.cache */
    BUNDLE_BYTES = 1 << 20,     /* of its certificate bundle */
    READ_BYTES = 512 << 10,     /* of the files in the tables below */
    JAVA_TEXT = 32,             /* of a name "java-17-openjdk" */
    JAVAS_MAX = 4,
};

/* ---- generated files ---- */

void px_etc_made(struct px_plan *plan, const struct px_policy *policy)
{
    char text[512];
    px_auto_buf struct px_buf servers = PX_BUF(512);
    uint32_t uid = policy->user.uid, gid = policy->user.gid;

    px_steps_dirs(plan, "/etc", true, 0);
    (void)px_fmt(text, sizeof text,
                 "root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:%u:%u:sandbox:%s:/bin/bash\n"
                 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n", uid, gid, px_rootfs_home);
    px_steps_file(plan, "/etc/passwd", text);
    (void)px_fmt(text, sizeof text, "root:x:0:\ntty:x:5:\nsandbox:x:%u:\nnogroup:x:65534:\n", gid);
    px_steps_file(plan, "/etc/group", text);
    (void)px_fmt(text, sizeof text, "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 %s\n", policy->hostname);
    px_steps_file(plan, "/etc/hosts", text);
    (void)px_fmt(text, sizeof text, "%s\n", policy->hostname);
    px_steps_file(plan, "/etc/hostname", text);
    px_plan_resolv(policy, &servers);
    px_steps_file(plan, "/etc/resolv.conf", px_buf_text(&servers));
    px_steps_file(plan, "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n");
}

/* ---- files of the host ---- */

/* Programs of /usr need these. */
static const char *const needed[] = {"/etc/alternatives", "/etc/ld.so.cache"};

/* Where programs look for the CA certificates of the host. The first path is where every box has them. */
static const char *const bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",                       /* Debian, Alpine, Arch, Gentoo */
    "/etc/ssl/cert.pem",                                        /* Alpine, Arch */
    "/etc/pki/tls/certs/ca-bundle.crt",                         /* Fedora and its relatives */
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",                                   /* openSUSE */
};

/* What ordinary programs read there; a directory ends with a slash. Nothing that may hold secrets: Maven's
 * settings.xml, R's Renviron.site and the password files of Java's management stay out. */
static const char *const read_by_programs[] = {
    "/etc/services", "/etc/protocols", "/etc/mime.types", "/etc/fonts/",
    "/etc/maven/m2.conf", "/etc/maven/logging/simplelogger.properties",
    "/etc/R/Renviron", "/etc/R/ldpaths", "/etc/R/Makeconf", "/etc/R/repositories",
};

/* The same below each Debian directory /etc/java-17-openjdk. */
static const char *const read_by_java[] = {
    "security/", "logging.properties",
};

const char *px_etc_bundle(size_t index)
{
    return index < PX_COUNT_OF(bundles) ? bundles[index] : NULL;
}

bool px_etc_wants_bundle(const struct px_policy *policy)
{
    return policy->net != PX_NET_NONE && policy->net != PX_NET_LOOPBACK;
}

/* Whether the policy mounts something there, which then has precedence. */
static bool is_taken(const struct px_policy *policy, const char *path)
{
    bool work = policy->work_dir || policy->changes;
    if (work && (px_path_within(policy->work_target, path) || px_path_within(path, policy->work_target)))
        return true;
    for (size_t i = 0; i < policy->binds.count; i++)
        if (px_path_within(policy->binds.items[i].target, path) || px_path_within(path, policy->binds.items[i].target))
            return true;
    for (size_t i = 0; i < policy->tmpfs.count; i++)
        if (px_path_within(policy->tmpfs.items[i].target, path) || px_path_within(path, policy->tmpfs.items[i].target))
            return true;
    return false;
}

/* Resolves links, and checks that everybody can reach and read the file: the child that copies it has no user id of
 * the host. */
static bool find_public(const char *path, mode_t kind, char real[PATH_MAX], struct stat *st)
{
    char above[PATH_MAX];
    struct stat dir;
    const mode_t others = kind == S_IFDIR ? S_IROTH | S_IXOTH : S_IROTH;
    if (stat(path, st) < 0 || (st->st_mode & S_IFMT) != kind || (st->st_mode & others) != others || !realpath(path, real))
        return false;
    (void)px_fmt(above, sizeof above, "%s", real);
    for (char *end = strrchr(above, '/'); end && end > above; end = strrchr(above, '/')) {
        *end = '\0';
        if (stat(above, &dir) < 0 || !(dir.st_mode & S_IXOTH))
            return false;
    }
    return true;
}

/* A copy: with a watch on the host's own file a box would see when others read it. */
static void add_copy(struct px_plan *plan, const char *real, const char *path, const struct stat *st)
{
    px_steps_dirs(plan, path, false, 0);
    px_steps_file(plan, path, "");
    px_steps_bind(plan, real, path, RO, st)->flags |= PX_STEP_COPY;
}

/* The CA certificates for https. A bundle that not everybody may read is left out. */
static void add_bundle(struct px_plan *plan, const struct px_policy *policy)
{
    const char *place = bundles[0];
    char real[PATH_MAX];
    struct stat st;
    if (!px_etc_wants_bundle(policy) || is_taken(policy, "/etc/ssl") || is_taken(policy, "/etc/pki"))
        return;
    for (size_t i = 0; i < PX_COUNT_OF(bundles); i++) {
        if (!find_public(bundles[i], S_IFREG, real, &st) || st.st_size > BUNDLE_BYTES)
            continue;
        px_steps_dirs(plan, bundles[i], false, 0);
        if (!px_steps_has(plan, PX_OP_BIND, place))
            add_copy(plan, real, place, &st);
        if (i > 0)
            px_steps_link(plan, place, bundles[i]);
    }
    if (px_steps_has(plan, PX_OP_BIND, place) && !px_steps_has(plan, PX_OP_SYMLINK, bundles[1]))
        px_steps_link(plan, place, bundles[1]);
}

/* ---- files that programs read ---- */

static void each_java(px_etc_function *function, struct px_plan *plan, const struct px_policy *policy)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    DIR *etc = access("/usr/lib/jvm", F_OK) == 0 ? opendir("/etc") : NULL;
    struct dirent *entry;
    for (int found = 0; etc && found < JAVAS_MAX && (entry = readdir(etc));) {
        size_t n = strlen(entry->d_name);
        if (!px_starts_with(entry->d_name, "java-") || n > JAVA_TEXT || strspn(entry->d_name, letters) != n)
            continue;
        found++;
        for (size_t i = 0; i < PX_COUNT_OF(read_by_java); i++) {
            char path[JAVA_TEXT + 64];
            if (px_fmt(path, sizeof path, "/etc/%s/%s", entry->d_name, read_by_java[i]) > 0)
                function(plan, policy, path);
        }
    }
    if (etc)
        (void)closedir(etc);
}

void px_etc_each(px_etc_function *function, struct px_plan *plan, const struct px_policy *policy)
{
    for (size_t i = 0; i < PX_COUNT_OF(read_by_programs); i++)
        function(plan, policy, read_by_programs[i]);
    each_java(function, plan, policy);
    if (px_etc_wants_bundle(policy) && !is_taken(policy, "/etc/ssl"))
        function(plan, policy, "/etc/ssl/certs/java/cacerts");
}

/* Left out where the policy mounts something, and where not everybody can read it. */
static void add_read(struct px_plan *plan, const struct px_policy *policy, const char *name)
{
    char path[PATH_MAX], real[PATH_MAX];
    struct stat st;
    size_t n = strlen(name);
    bool directory = name[n - 1] == '/';
    (void)px_fmt(path, sizeof path, "%.*s", (int)(n - directory), name);
    if (is_taken(policy, path) || !find_public(path, directory ? S_IFDIR : S_IFREG, real, &st))
        return;
    if (directory && px_equal(path, real)) {
        px_steps_dirs(plan, path, true, 0);
        px_steps_bind(plan, path, path, RO, &st);
    } else if (!directory && st.st_size <= READ_BYTES) {
        add_copy(plan, real, path, &st);
    }
}

static void add_needed(struct px_plan *plan, const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return;
    if (S_ISREG(st.st_mode) && st.st_mode & S_IROTH && st.st_size <= COPY_BYTES) {
        add_copy(plan, path, path, &st);        /* every program opens it */
        return;
    }
    if (S_ISDIR(st.st_mode))
        px_steps_dir(plan, path, 0755, 0);
    else
        px_steps_file(plan, path, "");
    px_steps_bind(plan, path, path, RO, &st);
}

void px_etc_host(struct px_plan *plan, const struct px_policy *policy)
{
    char zone[PATH_MAX];
    for (size_t i = 0; i < PX_COUNT_OF(needed); i++)
        add_needed(plan, needed[i]);
    add_bundle(plan, policy);
    px_etc_each(add_read, plan, policy);
    px_steps_link(plan, "../usr/lib/os-release", "/etc/os-release");
    ssize_t n = readlink("/etc/localtime", zone, sizeof zone - 1);
    if (n > 0) {
        zone[n] = '\0';
        if (px_starts_with(zone, "/usr/"))
            px_steps_link(plan, zone, "/etc/localtime");
    }
}
