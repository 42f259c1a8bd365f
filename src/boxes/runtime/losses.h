/* runtime/losses.h - which fields of a policy an exported file has no words for.
 *
 * Why:     who runs the file must not take something for held that is not.
 * Owns:    nothing.
 * Mustn't: leave a field out: each has a row, and a test tries each with every format. */
#pragma once

struct px_buf;
struct px_plan;
struct px_policy;

enum px_format { PX_FORMAT_OCI, PX_FORMAT_BWRAP, PX_FORMAT_DOCKER, PX_FORMAT_SEATBELT };

/* Their names, with `between` between them. */
void px_losses(const struct px_policy *policy, const struct px_plan *plan, enum px_format format, const char *between,
               struct px_buf *out);
