/* env/test_profile.c - the ids of environments. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "env/profile.h"
#include "harness/test.h"
#include "pep/manifest.h"
#include "store/document.h"
#include "store/store.h"

static void payload_of(const struct px_profile *p, struct px_buf *out)
{
    ASSERT_OK(px_env_profile_payload(p, out));
}

static struct px_oid hash_text(const char *before, const char *text, const char *after)
{
    px_auto_buf struct px_buf all = PX_BUF(1 << 16);
    struct px_oid oid;
    px_buf_printf(&all, "%s%s%s", before, text, after);
    ASSERT_OK(all.err);
    ASSERT_OK(px_hash_bytes(all.data, all.len, &oid));
    return oid;
}

/* The fields are the reference's: in its own wrapping they hash to its golden id. In px's wrapping they are an ordinary
 * object. */
TEST(golden_profile)
{
    static const struct px_profile_package packages[] = {{"a", "1", "p"}};
    const struct px_profile profile = {.runtime = "r", .packages = packages, .count = 1};
    px_auto_buf struct px_buf text = PX_BUF(1 << 16);
    payload_of(&profile, &text);
    ASSERT_STR(
        px_buf_text(&text),
        "{\"env_vars\":{},\"packages\":[{\"name\":\"a\",\"pkg_build_oid\":\"p\",\"version\":\"1\"}],\"runtime_oid\":\"r\","
        "\"sys_path_order\":[\"p\"]}");
    struct px_oid golden =
        hash_text("{\"header\":", px_buf_text(&text), ",\"kind\":\"profile\",\"payload_kind\":\"profile\"}");
    ASSERT_STR(golden.hex, "1ee9094c40fedc5bd61b540111146117786eb44f1d1e9f3d650b5d346c472680");
    struct px_oid ours = hash_text("{\"kind\":\"profile\",\"payload\":", px_buf_text(&text), "}");
    ASSERT_STR(ours.hex, "b08662fda679e0cd7fda19d7a8d8390511fb99d5691682d02e9399a0f3bc5dc8");

    struct px_store *store = NULL;
    struct px_err e = {0};
    struct px_oid kept;
    px_auto_fd int dir = px_test_dir();
    ASSERT_PX(px_store_open(px_test_dir_path(), &store, &e), e);
    ASSERT_PX(px_env_profile_put(store, &profile, &kept, &e), e);
    ASSERT_STR(kept.hex, ours.hex);
    px_store_close(store);
}

/* The order of packages does not matter; the order of sys.path does. */
TEST(order_counts_where_python_looks_and_nowhere_else)
{
    static const struct px_profile_package one[] = {{"a", "1", "p"}, {"b", "2", "q"}, {"c", "1", "p"}};
    static const struct px_profile_package other[] = {{"b", "2", "q"}, {"a", "1", "p"}, {"c", "1", "p"}};
    px_auto_buf struct px_buf x = PX_BUF(1 << 16), y = PX_BUF(1 << 16);
    payload_of(&(struct px_profile){.runtime = "r", .packages = one, .count = 3}, &x);
    payload_of(&(struct px_profile){.runtime = "r", .packages = other, .count = 3}, &y);
    ASSERT(strstr(px_buf_text(&x), "\"sys_path_order\":[\"p\",\"q\"]"));
    ASSERT(strstr(px_buf_text(&y), "\"sys_path_order\":[\"q\",\"p\"]"));
    *strstr(x.data, "\"sys_path_order\"") = *strstr(y.data, "\"sys_path_order\"") = '\0';
    ASSERT_STR(x.data, y.data);
}

TEST(variables)
{
    struct px_pair pairs[] = {{"A", "from the manifest"}, {"B", "2"}, {"PATH", "/mine"}};
    const struct px_pairs said = {pairs, 3};
    struct px_err e = {0};
    json_t *env = NULL;
    ASSERT_PX(px_env_profile_env(&said, "{\"A\":\"from outside\",\"C\":\"3\",\"PX_PYTHON\":\"mine\"}", &env, &e), e);
    ASSERT_STR(json_string_value(json_object_get(env, "A")), "from outside");
    ASSERT_STR(json_string_value(json_object_get(env, "B")), "2");
    ASSERT_EQ(json_object_size(env), 3);
    json_decref(env);
    static const char *const wrong[] = {
        "[]", "1", "{\"A\":1}", "{\"A B\":\"x\"}", "{\"\":\"x\"}", "{\"1\":\"x\"}", "{", "{\"A\":\"x\",\"A\":\"y\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        e = (struct px_err){0};
        ASSERT_EQ(px_env_profile_env(&said, wrong[i], &env, &e), -1);
        ASSERT(e.code == PX_E_VALUE || e.code == PX_E_MANIFEST);
    }
}

TEST(runtimes)
{
    char abi[16];
    ASSERT(px_env_python_find("debian-12") && px_env_python_find("alpine-3.20") && !px_env_python_find("nowhere"));
    px_env_python_abi(px_env_python_find("debian-12"), abi, sizeof abi);
    ASSERT_STR(abi, "cp311");
}
