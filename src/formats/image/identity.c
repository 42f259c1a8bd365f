#include "image/identity.h"

#include <errno.h>

#include "base/buf.h"
#include "base/json.h"

enum { IDENTITY_MAX = 1 << 20 };

int px_identity_sbx_id(const char *base_os_oid, const char *const *capabilities, size_t count, const char *system_deps,
              const char *profile_oid, int sbx_version, struct px_oid *ret_id)
{
    px_auto_buf struct px_buf text = PX_BUF(IDENTITY_MAX);
    struct px_json j = {.out = &text};
    px_json_object(&j, NULL);
    px_json_object(&j, "sandbox");
    px_json_text(&j, "base_os_oid", base_os_oid);
    px_json_array(&j, "capabilities");
    for (size_t i = 0; i < count; i++)
        px_json_text(&j, NULL, capabilities[i]);
    px_json_end(&j);
    px_json_text(&j, "profile_oid", profile_oid);
    px_json_int(&j, "sbx_version", sbx_version);
    if (system_deps)
        px_json_text(&j, "system_deps", system_deps);
    px_json_end(&j);
    px_json_end(&j);
    return text.err < 0 ? text.err : px_hash_bytes(text.data, text.len, ret_id);
}

int px_identity_profile_empty(struct px_oid *ret_oid)
{
    static const char text[] =
        "{\"kind\":\"profile\",\"payload\":{\"env\":{},\"packages\":[],\"profile_version\":1,\"runtime\":null}}";
    return px_hash_bytes(text, sizeof text - 1, ret_oid);
}
