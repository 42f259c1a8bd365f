/* px-fetch: reads orders from its socket and answers them, until the socket is closed. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pass.h"
#include "base/text.h"
#include "helpers/fetch/fetch.h"

/* One message, and the descriptor that came with it, or -1. */
static ssize_t take(void *out, size_t size, int *ret_fd)
{
    struct px_passed passed;
    ssize_t n = px_pass_receive(FETCH_SOCKET, out, size, 0, ret_fd, 1, &passed);
    return passed.flags & (MSG_TRUNC | MSG_CTRUNC) ? -1 : n;
}

static int answer_all(CURL *curl, const struct px_fetch_setup *setup)
{
    static struct px_fetch_order order;
    static struct px_fetch_report report;
    while (true) {
        px_auto_fd int fd = -1;
        ssize_t n = take(&order, sizeof order, &fd);
        if (n <= 0)
            return n == 0 ? 0 : 1;
        if (n != sizeof order || (order.role != PX_FETCH_NO_FILE) != (fd >= 0))
            return 1;
        order.url[sizeof order.url - 1] = order.headers[sizeof order.headers - 1] = '\0';
        memset(&report, 0, sizeof report);
        fetch_transfer(curl, setup, &order, fd, &report);
        do
            n = send(FETCH_SOCKET, &report, sizeof report, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n != sizeof report)
            return 1;
    }
}

int main(void)
{
    static struct px_fetch_setup setup;
    int none = -1;
    uint8_t ready = 0;
    if (take(&setup, sizeof setup, &none) != sizeof setup || curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        return 1;
    setup.ca_file[sizeof setup.ca_file - 1] = setup.ca_dir[sizeof setup.ca_dir - 1] = '\0';
    setup.proxy[sizeof setup.proxy - 1] = setup.no_proxy[sizeof setup.no_proxy - 1] = '\0';
    CURL *curl = curl_easy_init();
    int r = curl ? fetch_confine(&setup) : -ENOMEM;
    if (r < 0) {
        (void)dprintf(2, "px-fetch: cannot confine itself: errno %d\n", -r);
        return 1;
    }
    if (send(FETCH_SOCKET, &ready, sizeof ready, MSG_NOSIGNAL) != sizeof ready)
        return 1;
    r = answer_all(curl, &setup);
    curl_easy_cleanup(curl);
    return r;
}
