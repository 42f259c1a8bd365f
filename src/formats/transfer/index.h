/* transfer/index.h - the hosts that packages come from: those in the user's own settings, never those in a file of a
 * project.
 *
 * Why:     a lock, a manifest and the code of a package are written by others. They can make px and its boxes
 *          connect to these hosts only: not to loopback, metadata services or an internal network.
 * Owns:    nothing.
 * Mustn't: read a file of a project. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "transfer/fetch.h"

struct px_net_own;
struct px_err;

enum { PX_INDEX_MAX = 64 };

struct px_index {
    struct {
        struct px_url_place place;
        bool proxy;
    } rows[PX_INDEX_MAX];
    size_t count;
    bool proxies; /* what is added now is a proxy */
    bool without; /* a file of settings says no-index: PyPI is not among them */
    bool whole;   /* PX_INDEX_NET=host: boxes have the host's network */
};

/* Every address in the variables and files of settings of uv and pip, proxies, PX_INDEX_HOSTS; and PyPI with
 * the host of its files unless PIP_NO_INDEX or UV_NO_INDEX is set or such a file says no-index. */
int px_index_load(struct px_index **ret_index, struct px_err *e);

/* Every http and https address in a text; one host, "NAME", "NAME:PORT", "[ADDRESS]:PORT". Other text is ignored.
 * -E2BIG. */
int px_index_add_text(struct px_index *x, const char *text);
int px_index_add_host(struct px_index *x, const char *host, unsigned port);

/* Whether a URL is on one of the hosts. */
bool px_index_has(const struct px_index *x, const struct px_url_place *place);
/* The same for a box. */
int px_index_net(const struct px_index *x, struct px_net_own *ret_net);
