/* helpers/fetch/fetch.h - px-fetch: HTTP requests for px, with the network and no files.
 *
 * Why:     what servers send is read here, where there is nothing to take: no file but those of TLS and name
 *          resolution, and no program to start.
 * Owns:    the connections.
 * Mustn't: follow redirections, keep cookies, or look at an environment. */
#pragma once

#include <curl/curl.h>

#include "transfer/fetch_wire.h"

enum { FETCH_SOCKET = 3 };

/* Confines this process permanently; setup names the certificates that stay readable. 0 or -errno. */
int fetch_confine(const struct px_fetch_setup *setup);

/* Makes one request; fd is the source or the sink, or -1. Fills report, whose kind is the outcome. */
void fetch_transfer(CURL *curl, const struct px_fetch_setup *setup, const struct px_fetch_order *order, int fd,
                    struct px_fetch_report *report);
