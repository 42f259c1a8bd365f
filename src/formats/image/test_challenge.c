#include "image/challenge.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/test.h"
#include "image/oci.h"
#include "image/registry.h"

TEST(challenges_of_registries)
{
    static const struct {
        const char *header;
        enum px_challenge_kind kind;
        const char *realm, *service, *scope;
    } rows[] = {
        {"Basic realm=\"a registry\"", PX_CHALLENGE_BASIC, "a registry", "", ""},
        {"Bearer realm=\"https://h/t\",service=\"s\",scope=\"repository:a/b:pull\"", PX_CHALLENGE_BEARER, "https://h/t",
         "s", "repository:a/b:pull"},
        {"bearer REALM=https://h/t , Service=s", PX_CHALLENGE_BEARER, "https://h/t", "s", ""},
        {"Basic realm=\"x\", Bearer realm=\"y\"", PX_CHALLENGE_BEARER, "y", "", ""},
        {"Bearer realm=\"y\", Basic realm=\"x\"", PX_CHALLENGE_BEARER, "y", "", ""},
        {"Negotiate, NTLM, Basic realm=x, charset=\"UTF-8\"", PX_CHALLENGE_BASIC, "x", "", ""},
        {"Negotiate abc==", PX_CHALLENGE_NONE, "", "", ""},
        {"Bearer realm=\"a\\\"b\\\\c, d=e\"", PX_CHALLENGE_BEARER, "a\"b\\c, d=e", "", ""},
        {"Digest realm=\"x\"", PX_CHALLENGE_NONE, "", "", ""},
        {"", PX_CHALLENGE_NONE, "", "", ""},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_challenge c;
        ASSERT_OK(px_challenge_parse(rows[i].header, &c));
        ASSERT_EQ(c.kind, rows[i].kind);
        ASSERT_STR(c.realm, rows[i].realm);
        ASSERT_STR(c.service, rows[i].service);
        ASSERT_STR(c.scope, rows[i].scope);
    }
}

TEST(texts_that_are_no_challenge)
{
    static const char *const rows[] = {
        "=",        "Bearer realm=\"x",     "Bearer realm=",         "Bearer realm=a,realm=b",
        "\"x\"",    "Basic realm=\"\x1b\"", "Bearer realm=\"x\"y\"", "Bearer realm=\"x\\",
        "Basic (x)"};
    struct px_challenge c;
    char longer[3000] = "Bearer realm=";
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_challenge_parse(rows[i], &c) != -EINVAL)
            FAIL("'%s' was understood", rows[i]);
    memset(longer + 13, 'x', sizeof longer - 14);
    ASSERT_EQ(px_challenge_parse(longer, &c), -EINVAL);
}

TEST(places_that_px_goes_to)
{
    struct px_url_place p;
    ASSERT_OK(px_url_place("https://Host.Example/v2/?a=b@c", &p));
    ASSERT_STR(p.host, "host.example");
    ASSERT_EQ(p.port, 443);
    ASSERT(p.tls && !p.loopback);
    ASSERT_OK(px_url_place("http://127.8.9.10:5000", &p));
    ASSERT(!p.tls && p.loopback && p.port == 5000);
    ASSERT_OK(px_url_place("http://[::1]:80/", &p));
    ASSERT_STR(p.host, "[::1]");
    ASSERT_OK(px_url_place("http://LOCALHOST/", &p));
}

TEST(places_that_px_does_not_go_to)
{
    static const char *const rows[] = {
        "",
        "https://",
        "https:///x",
        "http://host.example/",
        "http://128.0.0.1/",
        "http://127.0.0.1.x/",
        "http://127.0.0.01/",
        "http://127.0.0/",
        "http://127.0.0.256/",
        "http://[::2]/",
        "https://a@host.example/",
        "https://a:b@host/",
        "https://host:0/",
        "https://host:65536/",
        "https://host:/",
        "https://host:1x/",
        "https://ho st/",
        "https://host/\n",
        "https://host\\@127.0.0.1/",
        "https://host#x",
        "ftp://host/",
        "file:///etc/passwd",
        "HTTPS://host/",
        "https://host%2eexample/",
        "https://[::1/",
        "https://host/\x7f",
        "https://\xc3\xa4/",
        "//host/",
        "http://localhost.example/",
    };
    struct px_url_place p;
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_url_place(rows[i], &p) != -EINVAL)
            FAIL("'%s' was accepted", rows[i]);
}

TEST(credentials_and_who_sees_them)
{
    static const struct {
        const char *registry, *realm;
        bool shared;
    } rows[] = {
        {"https://registry.host.example/", "https://registry.host.example/t", true},
        {"https://registry.host.example/", "https://auth.host.example/t", true},
        {"https://registry.host.example/", "https://host.example/t", true},
        {"https://registry.host.example/", "https://xhost.example/t", false},
        {"https://registry.host.example/", "https://other.example/t", false},
        {"https://host.example/", "https://other.example/t", false},
        {"https://host.example/", "https://auth.host.example/t", true},
        {"https://10.1.2.3/", "https://9.1.2.3/t", false},
        {"https://localhost/", "http://localhost:1/t", false},
        {"http://localhost/", "http://localhost:1/t", true},
        {"http://127.0.0.1/", "http://127.0.0.2/t", false},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_url_place registry, realm;
        ASSERT_OK(px_url_place(rows[i].registry, &registry));
        ASSERT_OK(px_url_place(rows[i].realm, &realm));
        if (px_credentials_shared(&registry, &realm) != rows[i].shared)
            FAIL("%s and %s: wrong", rows[i].registry, rows[i].realm);
    }
}

TEST(base64_of_credentials)
{
    static const char *const rows[][3] = {
        {"a", "", "YTo="}, {"a", "b", "YTpi"}, {"alice", "secret", "YWxpY2U6c2VjcmV0"}, {"a", "b:c", "YTpiOmM="}};
    static const char *const wrong[] = {"", "YTo", "YT=o", "Y===", "!!!!", "OmI=", "YQ==", "YQA6Yg=="};
    char text[64], user[16], password[16];
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        ASSERT_OK(px_credentials_encode(rows[i][0], rows[i][1], text, sizeof text));
        ASSERT_STR(text, rows[i][2]);
        ASSERT_OK(px_credentials_decode(text, user, sizeof user, password, sizeof password));
        ASSERT_STR(user, rows[i][0]);
        ASSERT_STR(password, rows[i][1]);
    }
    for (size_t i = 0; i < PX_COUNT_OF(wrong); i++)
        if (px_credentials_decode(wrong[i], user, sizeof user, password, sizeof password) != -EINVAL)
            FAIL("'%s' was understood", wrong[i]);
    ASSERT_EQ(px_credentials_encode("alice", "secret", text, 16), -EINVAL);
}

/* The address, repository and tag of names typed for Docker Hub and for other registries. */
TEST(references_and_addresses)
{
    static const struct {
        const char *text, *address, *repository, *tag;
    } rows[] = {
        {"ubuntu:24.04", "registry-1.docker.io", "library/ubuntu", "24.04"},
        {"ubuntu", "registry-1.docker.io", "library/ubuntu", "latest"},
        {"team/app:1", "registry-1.docker.io", "team/app", "1"},
        {"docker.io/library/ubuntu:24.04", "registry-1.docker.io", "library/ubuntu", "24.04"},
        {"docker.io/alpine:3.20", "registry-1.docker.io", "library/alpine", "3.20"},
        {"index.docker.io/alpine:3.20", "registry-1.docker.io", "library/alpine", "3.20"},
        {"registry.example/alpine", "registry.example", "alpine", "latest"},
        {"localhost/app:1", "localhost", "app", "1"},
        {"127.0.0.1:5000/a/b:1", "127.0.0.1:5000", "a/b", "1"},
    };
    struct px_image_ref ref;
    struct px_err e = {0};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        ASSERT_PX(px_image_ref_typed(rows[i].text, &ref, &e), e);
        ASSERT_STR(px_image_ref_address(&ref), rows[i].address);
        ASSERT_STR(ref.repository, rows[i].repository);
        ASSERT_STR(ref.tag, rows[i].tag);
    }
    ASSERT_PX(px_image_ref_typed("debian@sha256:0123456789012345678901234567890123456789012345678901234567890123", &ref, &e), e);
    ASSERT_STR(ref.repository, "library/debian");
    ASSERT_STR(ref.tag, "");
}

TEST(names_that_are_no_references)
{
    static const char *const rows[] = {"", "Ubuntu", "a//b", "/a", "../a", "a:b:c", "ubuntu:", "ubuntu@sha256:12", "docker.io/", "docker.io/A", "-a"};
    struct px_image_ref ref;
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_err e = {0};
        ASSERT_EQ(px_image_ref_typed(rows[i], &ref, &e), -1);
        ASSERT_EQ(e.code, PX_E_VALUE);
    }
    struct px_err e = {0};
    ASSERT_EQ(px_image_ref_parse("ubuntu:24.04", &ref, &e), -1);        /* of a file that px found */
}
