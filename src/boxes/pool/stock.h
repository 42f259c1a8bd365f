/* pool/stock.h - makes the boxes of one policy one after the other, from a template that is kept between them.
 *
 * Why:     the plan of a policy on this host is computed once, not for each box. It is checked again from time to
 *          time, because the host changes: a package is installed, a module adds a file to /proc.
 * Owns:    the template. The policy and the builder are its user's.
 * Mustn't: give a box anything that another box can change. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <px/px.h>

#include "box/template.h"

struct px_stock {
    const struct px_policy *policy;
    struct px_template *template;       /* NULL: none yet */
    uint64_t checked_nsec;      /* when it was last compared with the host */
};

/* Makes one more container. image: of px-init, shared among the boxes, or NULL. */
int px_stock_box(struct px_stock *stock, const int *image, struct px_template_builder *who, struct px_box **ret_home, struct px_err *e);
void px_stock_done(struct px_stock *stock);
