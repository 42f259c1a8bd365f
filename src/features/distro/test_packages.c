#include "distro/packages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "distro/apt.h"
#include "distro/deb.h"
#include "harness/test.h"
#include "image/identity.h"
#include "image/sbom.h"

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define ONES "1111111111111111111111111111111111111111111111111111111111111111"

static struct px_package package(const char *name, const char *version, const char *arch)
{
    struct px_package p = {.name = (char *)name, .version = (char *)version, .arch = (char *)arch, .size = 7};
    (void)px_hash_oid_parse(ONES, false, &p.sha256);
    return p;
}

static int add(struct px_packages *list, const char *name, const char *version, const char *arch)
{
    struct px_package p = package(name, version, arch);
    return px_packages_add(list, &p);
}

/* ---- locks ---- */

TEST(lock_survives_a_round_trip)
{
    struct px_packages list = {0}, again = {0};
    struct px_err e = {0};
    char *base = NULL, *arch = NULL;
    ASSERT_OK(add(&list, "libstdc++6", "1:12.2.0-14+deb12u1~x", "amd64"));
    ASSERT_OK(add(&list, "adduser", "3.134", "all"));
    ASSERT_OK(px_packages_sort(&list));
    ASSERT_STR(list.items[0].name, "adduser");
    ASSERT_EQ(px_packages_bytes(&list), 14);
    json_t *lock = px_packages_lock(&list, "debian-12", "amd64");
    char *text = json_dumps(lock, JSON_COMPACT);
    ASSERT_OK(px_packages_read(text, strlen(text), &again, &base, &arch, &e));
    ASSERT_EQ(again.count, 2);
    ASSERT_STR(again.items[1].version, "1:12.2.0-14+deb12u1~x");
    ASSERT_STR(again.items[1].sha256.hex, ONES);
    ASSERT_STR(base, "debian-12");
    ASSERT_STR(arch, "amd64");
    free(base);
    free(arch);
    free(text);
    json_decref(lock);
    px_packages_done(&list);
    px_packages_done(&again);
}

TEST(names_that_could_mean_something_else_are_refused)
{
    struct px_packages list = {0};
    ASSERT_EQ(add(&list, "-x", "1", "all"), -EINVAL);
    ASSERT_EQ(add(&list, "a b", "1", "all"), -EINVAL);
    ASSERT_EQ(add(&list, "a/../b", "1", "all"), -EINVAL);
    ASSERT_EQ(add(&list, "a", "1;rm", "all"), -EINVAL);
    ASSERT_EQ(add(&list, "a", "1", "am/d64"), -EINVAL);
    ASSERT_EQ(add(&list, "", "1", "all"), -EINVAL);
    ASSERT_EQ(add(&list, "a", "", "all"), -EINVAL);
    struct px_package none = package("a", "1", "all");
    none.size = 0;
    ASSERT_EQ(px_packages_add(&list, &none), -EINVAL);
    ASSERT_OK(add(&list, "a", "1", "all"));
    ASSERT_OK(add(&list, "a", "2", "all"));
    ASSERT_EQ(px_packages_sort(&list), -EEXIST);
    px_packages_done(&list);
}

TEST(locks_that_are_none_are_refused)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"arch\":\"amd64\",\"base\":\"debian-12\",\"lock_version\":1,\"packages\":[]}",
        "{\"arch\":\"amd64\",\"base\":\"../x\",\"lock_version\":1,\"packages\":[]}",
        "{\"arch\":\"amd64\",\"base\":\"debian-12\",\"lock_version\":1,\"packages\":[{\"arch\":\"all\",\"name\":\"a\",\"sha256\":\"00\",\"size\":1,"
        "\"version\":\"1\"}]}",
        "{\"arch\":\"amd64\",\"base\":\"debian-12\",\"lock_version\":1,\"packages\":[{\"arch\":\"all\",\"name\":\"a\",\"sha256\":\"" ZEROS
        "\",\"size\":-1,\"version\":\"1\"}]}",
    };
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++) {
        struct px_packages list = {0};
        struct px_err e = {0};
        char *base = NULL, *arch = NULL;
        ASSERT_EQ(px_packages_read(bad[i], strlen(bad[i]), &list, &base, &arch, &e), -1);
        ASSERT_EQ(e.code, PX_E_RECORD);
    }
}

/* ---- apt ---- */

TEST(what_apt_would_fetch_is_read)
{
    struct px_packages list = {0};
    ASSERT_OK(px_apt_uris("'http://x/pool/p/passwd_1%3a4.13_amd64.deb' passwd_1%3a4.13_amd64.deb 972056 SHA256:" ZEROS
                          "\n"
                          "'file:/srv/a_b.deb' libstdc++6_12.2.0-14+deb12u1_amd64.deb 12 SHA256:" ONES "\n\n",
                          &list));
    ASSERT_EQ(list.count, 2);
    ASSERT_STR(list.items[0].name, "libstdc++6");
    ASSERT_STR(list.items[1].version, "1:4.13");
    ASSERT_STR(list.items[1].file, "passwd_1%3a4.13_amd64.deb");
    ASSERT_STR(list.items[0].uri, "file:/srv/a_b.deb");
    ASSERT_EQ(list.items[1].size, 972056);
    px_packages_done(&list);
}

TEST(what_apt_should_not_say_is_refused)
{
    static const char *const bad[] = {
        "E: something\n",
        "'http://x/a.deb' a_1_all.deb 12 MD5Sum:8d98f0c882f269aaee8437bcfe89346e\n",
        "'http://x/a.deb' a_1_all.deb 12 SHA256:12\n",
        "'http://x/a.deb' ../a_1_all.deb 12 SHA256:" ZEROS "\n",
        "'http://x/a.deb' a_1_all.deb -12 SHA256:" ZEROS "\n",
        "'http://x/a.deb' a_1.deb 12 SHA256:" ZEROS "\n",
        "'http://x/a.deb' a_1_b_all.deb 12 SHA256:" ZEROS "\n",
        "'http://x/a.deb' a%2_1_all.deb 12 SHA256:" ZEROS "\n",
        "'http://x/a.deb' a%00_1_all.deb 12 SHA256:" ZEROS "\n",
        "'' a_1_all.deb 12 SHA256:" ZEROS "\n",
    };
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++) {
        struct px_packages list = {0};
        ASSERT_EQ(px_apt_uris(bad[i], &list), -EINVAL);
        px_packages_done(&list);
    }
}

TEST(mirrors_of_the_caller_the_host_and_the_distribution)
{
    const struct px_base_row *base = px_bases_find("debian-12");
    struct px_apt_mirrors m = {0};
    px_auto_buf struct px_buf text = PX_BUF(4096);
    ASSERT_OK(px_apt_host_mirrors(base,
                                  "http://one/debian/ bookworm main\nhttp://one/debian/ bookworm-updates main\n"
                                  "http://two/debian bookworm contrib\nhttp://sec/ bookworm-security main\nnonsense\n",
                                  &m));
    ASSERT_STR(m.archive, "http://one/debian");
    ASSERT_STR(m.security, "http://sec");
    ASSERT_OK(px_apt_sources(base, &m, &text));
    ASSERT(strstr(text.data,
                  "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://one/debian bookworm main\n"));
    ASSERT(strstr(text.data, " http://one/debian bookworm-updates main\n") &&
           strstr(text.data, " http://sec bookworm-security main\n"));
    px_apt_mirrors_done(&m);
    px_buf_done(&text);
    text = PX_BUF(4096);
    ASSERT_OK(px_apt_sources(base, &m, &text));
    ASSERT(strstr(text.data, base->mirror) && strstr(text.data, base->security));
}

TEST(options_of_a_mirror_are_the_callers_word)
{
    const struct px_base_row *base = px_bases_find("debian-12");
    px_auto_buf struct px_buf text = PX_BUF(4096);
    struct px_apt_mirrors m = {.archive = (char *)"[trusted=yes] file:///srv/m",
                               .security = (char *)"[signed-by=/k.gpg arch=amd64] http://s"};
    ASSERT_OK(px_apt_sources(base, &m, &text));
    ASSERT(strstr(text.data, "deb [trusted=yes] file:///srv/m bookworm main\n"));
    ASSERT(strstr(text.data, "deb [signed-by=/k.gpg arch=amd64] http://s bookworm-security main\n"));
    static const char *const bad[] = {"",
                                      " ",
                                      "http://a b",
                                      "http://a\ndeb http://evil x y",
                                      "[trusted=yes",
                                      "[a\nb] http://x",
                                      "[a]]http://x",
                                      "http://x#y",
                                      "[] http://x [trusted=yes]"};
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++) {
        px_auto_buf struct px_buf out = PX_BUF(4096);
        struct px_apt_mirrors other = {.archive = (char *)bad[i]};
        ASSERT_EQ(px_apt_sources(base, &other, &out), -EINVAL);
    }
}

TEST(only_the_way_to_the_world_is_taken_from_the_host)
{
    px_auto_buf struct px_buf out = PX_BUF(4096);
    px_apt_keep_acquire(
        "Acquire \"\";\nAcquire::http::Proxy \"http://p:3128\";\nAcquire::https::Verify-Peer \"false\";\n"
        "Acquire::Retries \"5\";\nAcquire::http::Proxy::host \"DIRECT\";\nAcquire::AllowInsecureRepositories \"true\";\n"
        "Acquire::http::Proxy \"a\"; APT::Sandbox::User \"x\";\nDir::State \"::Proxy\";\n",
        &out);
    ASSERT_STR(
        px_buf_text(&out),
        "Acquire::http::Proxy \"http://p:3128\";\nAcquire::Retries \"5\";\nAcquire::http::Proxy::host \"DIRECT\";\n");
}

/* ---- packages ---- */

#define MEMBER(name, size) name "0           0     0     100644  " size "`\n"
#define BINARY "!<arch>\n" MEMBER("debian-binary   ", "4         ") "2.0\n"

static int read_deb(const char *text, size_t len, struct px_deb *ret)
{
    px_auto_fd int fd = px_fd_memory("deb", text, len, 0);
    struct px_err e = {0};
    int r = px_deb_read(fd, len, "a", ret, &e);
    ASSERT(r == 0 || e.code == PX_E_ARCHIVE);
    return r;
}

TEST(archives_of_a_package_are_found)
{
    static const char good[] =
        BINARY MEMBER("control.tar.xz  ", "3         ") "abc\n" MEMBER("data.tar.zst/   ", "2         ") "de";
    struct px_deb deb = {0};
    ASSERT_OK(read_deb(good, sizeof good - 1, &deb));
    ASSERT_EQ(deb.control_size, 3);
    ASSERT_EQ(deb.data_size, 2);
    ASSERT_EQ(memcmp(good + deb.control, "abc", 3), 0);
    ASSERT_EQ(memcmp(good + deb.data, "de", 2), 0);
}

TEST(what_is_not_a_package_is_refused)
{
    static const char *const bad[] = {
        "",
        "!<arch>\n",
        BINARY,
        "!<arch>\n" MEMBER("control.tar.xz  ", "3         ") "abc\n" MEMBER("data.tar        ", "2         ") "de",
        BINARY MEMBER("control.tar.xz  ", "3         ") "abc\n" MEMBER("data.tar        ", "9         ") "de",
        BINARY MEMBER("control.tar.xz  ", "3         ") "abc\n" MEMBER("data.tar        ", "-1        ") "de",
        BINARY MEMBER("control.tar.xz  ", "99999999999") "abc\n",
        BINARY MEMBER("control.tar.lzma", "3         ") "abc\n" MEMBER("data.tar", "2") "de",
        BINARY MEMBER("data.tar.xz     ", "2         ") "de",
        BINARY MEMBER("control.tar.xz  ", "3         ") "abc\n",
    };
    struct px_deb deb;
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++)
        ASSERT_EQ(read_deb(bad[i], strlen(bad[i]), &deb), -1);
}

/* ---- what things are called ---- */

TEST(golden_vectors_of_sandbox_ids)
{
    const char *const two[] = {"imagecodecs", "postgres"};
    struct px_oid id;
    ASSERT_OK(px_identity_sbx_id("base", two, 2, NULL, "profile", 1, &id));
    ASSERT_STR(id.hex, "3fdc21967cb2b1c24dabaa931aae17f842363747b16297adff346ba12f8863ab");
    ASSERT_OK(px_identity_sbx_id("base", NULL, 0, NULL, "profile", 1, &id));
    ASSERT_STR(id.hex, "f8e459558397097b7461ccee34f8470a91ac2f568d6174b3fdd197d6d482d9dc");
    ASSERT_OK(px_identity_sbx_id("base", two, 2, "packages", "profile", 1, &id));
    ASSERT_STR(id.hex, "02b59d6c63efe67c8b7d0342258e85f5ca284053c34368c8a9aecd275b150dce");
    ASSERT_OK(px_identity_sbx_id("base", NULL, 0, NULL, "profile", 2, &id));
    ASSERT(strcmp(id.hex, "f8e459558397097b7461ccee34f8470a91ac2f568d6174b3fdd197d6d482d9dc") != 0);
    ASSERT_OK(px_identity_profile_empty(&id));
    ASSERT_STR(id.hex, "767ee2128bd1c8c22b4716022d097a5aa772bc343320636e99974e98b11ea598");
}

TEST(list_of_packages_in_an_image)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 16), again = PX_BUF(1 << 16);
    json_t *base = json_pack("[{ssssss},{ssssss}]", "arch", "all", "name", "b", "version", "1", "arch", "amd64", "name",
                             "libx++", "version", "1:2+3");
    json_t *more = json_pack("[{ssssssss}]", "arch", "all", "name", "b", "version", "2", "sha256", ONES);
    struct px_sbom sbom = {.name = "debian-12+x", .sbx_id = ZEROS, .os_id = "debian", .packages = {base, more}};
    ASSERT_OK(px_sbom_write(&sbom, &out));
    ASSERT_OK(px_sbom_write(&sbom, &again));
    ASSERT_STR(out.data, again.data);
    json_t *read = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
    const json_t *rows = json_object_get(read, "packages");
    ASSERT_EQ(json_array_size(rows), 2);
    ASSERT_STR(json_string_value(json_object_get(json_array_get(rows, 0), "versionInfo")), "2");
    ASSERT(strstr(out.data, "pkg:deb/debian/libx%2B%2B@1%3A2%2B3?arch=amd64"));
    ASSERT(!strstr(out.data, "\"versionInfo\":\"1\""));
    json_decref(read);
    json_decref(base);
    json_decref(more);
}
