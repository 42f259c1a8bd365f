/* px/runtime.h - a policy in the format of an OCI runtime.
 *
 * Owns:    the text is yours to free(); the policy is only read.
 * Threads: as in px/px.h. */
#pragma once

#include <px/px.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The policy in another program's format; free() it. to: "oci", the config.json of a bundle whose root is the directory
 * `rootfs` beside it (empty for the host base) or the policy's own. What the format cannot express is named in its
 * annotations. */
PX_API int px_policy_export(const struct px_policy *policy, const char *const argv[], const char *to, char **ret_text,
                            struct px_err *e);

#ifdef __cplusplus
}
#endif
