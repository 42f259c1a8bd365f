/* What the engine reads when the box is gone. A slot is filled before it is counted. */
#include <string.h>

#include "base/text.h"
#include "helpers/net/relay.h"

static bool same(const struct px_net_denial *d, enum px_net_op op, enum px_net_why why, const char *target)
{
    return d->op == op && d->why == why && px_equal(d->target, target);
}

void relay_deny(struct relay *r, enum px_net_op op, enum px_net_why why, const char *target, const char *grant)
{
    for (size_t i = 0; i < PX_NET_DENIALS_MAX; i++) {
        struct px_net_denial *d = &r->record->denials[i];
        if (d->count > 0 && !same(d, op, why, target))
            continue;
        if (d->count == 0) {
            d->op = op;
            d->why = why;
            if (px_fmt(d->target, sizeof d->target, "%s", target) < 0 || px_fmt(d->grant, sizeof d->grant, "%s", grant) < 0)
                return;
        }
        d->count++;
        return;
    }
    r->record->denials_lost++;
}

/* The row of a name; the last row is for all that came too late. */
int relay_traffic(struct relay *r, const char *name)
{
    struct px_net_record *record = r->record;
    uint32_t n = record->traffic_count;
    for (uint32_t i = 0; i < n; i++)
        if (px_equal(record->traffic[i].name, name))
            return (int)i;
    if (n >= PX_NET_TRAFFIC_MAX)
        return PX_NET_TRAFFIC_MAX - 1;
    if (n < PX_NET_TRAFFIC_MAX - 1)
        (void)px_fmt(record->traffic[n].name, sizeof record->traffic[n].name, "%s", name);
    record->traffic_count = n + 1;
    return (int)n;
}
