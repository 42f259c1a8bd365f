/* fuzz/fuzz_registry.c - the texts around a registry: challenges, addresses, references, credentials. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "fuzz.h"
#include "image/registry.h"

static void try_challenge(const char *text)
{
    struct px_challenge c;
    if (px_challenge_parse(text, &c) < 0)
        return;
    const char *texts[] = {c.realm, c.service, c.scope};
    for (size_t i = 0; i < PX_COUNT_OF(texts); i++)
        for (const char *p = texts[i]; *p; p++)
            CHECK(*p >= ' ' && *p <= '~');
    CHECK(c.kind != PX_CHALLENGE_NONE || !*c.realm);
}

/* Nothing that is accepted leads anywhere else than it says. */
static void try_place(const char *text)
{
    struct px_url_place p;
    if (px_url_place(text, &p) < 0)
        return;
    CHECK(p.tls || p.loopback);
    CHECK(p.port > 0 && p.port < 65536 && *p.host);
    CHECK(!strpbrk(p.host, "@/\\?# \t\r\n%"));
    const char *at = strchr(text, '@'), *path = strpbrk(text + (p.tls ? 8 : 7), "/?");
    CHECK(!at || (path && path < at));
    CHECK(px_url_same_place(&p, &p) && px_credentials_shared(&p, &p));
}

static void try_ref(const char *text)
{
    struct px_image_ref ref;
    struct px_err e = {0};
    bool whole = px_image_ref_parse(text, &ref, &e) == 0;
    if (px_image_ref_typed(text, &ref, &e) < 0) {
        CHECK(e.code == PX_E_VALUE && !whole);
        return;
    }
    CHECK(*ref.registry && *ref.repository && (*ref.tag || *ref.digest.hex));
    CHECK(!strstr(ref.repository, "..") && ref.repository[0] != '/' && ref.repository[0] != '-');
    CHECK(strspn(ref.repository, "abcdefghijklmnopqrstuvwxyz0123456789._-/") == strlen(ref.repository));
    CHECK(!strpbrk(ref.registry, "/@?#% ") && ref.registry[0] != '-');
}

static void try_login(const char *text)
{
    char user[256], password[2048], encoded[3400];
    if (px_credentials_decode(text, user, sizeof user, password, sizeof password) < 0)
        return;
    CHECK(*user && !strchr(user, ':'));
    CHECK(px_credentials_encode(user, password, encoded, sizeof encoded) == 0);
    char user2[256], password2[2048];
    CHECK(px_credentials_decode(encoded, user2, sizeof user2, password2, sizeof password2) == 0);
    CHECK(px_equal(user, user2) && px_equal(password, password2));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(const char *) = {try_challenge, try_place, try_ref, try_login};
    if (size == 0)
        return 0;
    char *text = fuzz_text(data + 1, size - 1);
    tries[data[0] % PX_COUNT_OF(tries)](text);
    free(text);
    return 0;
}
