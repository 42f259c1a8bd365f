/* pool/stock.h - the boxes of one policy, made one after the other from a template that is kept between them.
 *
 * Why:     what a policy means on this host is worked out once, not once a box; and looked at again from time to time, because
 *          the host goes on: a package is installed, a module adds a file to /proc.
 * Owns:    the template. The policy and the traveller are its user's.
 * Mustn't: give a box anything that another box can change. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <px/px.h>

#include "box/template.h"

struct px_stock {
    const struct px_policy *policy;
    struct px_template *template;       /* NULL: none yet */
    uint64_t checked_nsec;      /* when it was last found to be what the host is */
};

/* One more box that stays. image: of px-init, shared among the boxes, or NULL. */
int px_stock_box(struct px_stock *stock, const int *image, struct px_template_builder *who, struct px_box **ret_home, struct px_err *e);
void px_stock_done(struct px_stock *stock);
