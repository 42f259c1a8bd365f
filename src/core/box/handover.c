#include "box/handover.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/supervise.h"

enum { VERSION = 5, FDS_MAX = 7 };

/* Which cgroups of the box are sent after the control socket and the pidfd, and which limits the unified one holds;
 * whether the network record and the disk verdict come last. */
enum { GROUP_V2 = 1, GROUP_V1_MEMORY = 2, GROUP_V1_PIDS = 4, MEMORY_ON_V2 = 8, PIDS_ON_V2 = 16, RECORD = 32, VERDICT = 64 };

/* Both sides must have the same version. Only the used part of `words` is sent, a few hundred bytes, so that many
 * messages fit into one socket buffer. */
struct message {
    uint32_t version, length;   /* length: of what follows the head */
    char id[20];
    uint32_t keep_ids, refused; /* refused: there is no box, and `why` follows */
    uint32_t groups;
    uint32_t mechanisms, missing;
    uint64_t pids;
    union {
        char words[2 * PX_MECHANISMS_MAX * PX_NAME_MAX];        /* mechanisms, then what is missing, each with NUL */
        struct px_err why;
    } rest;
};

enum { HEAD = offsetof(struct message, rest) };

/* ---- sending ---- */

static size_t add_words(char *out, const char words[][PX_NAME_MAX], size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = strnlen(words[i], PX_NAME_MAX - 1);
        memcpy(out + at, words[i], n);
        out[at + n] = '\0';
        at += n + 1;
    }
    return at;
}

static void add_group(struct message *m, uint32_t flag, int fd, int *fds, size_t *count)
{
    if (fd < 0)
        return;
    m->groups |= flag;
    fds[(*count)++] = fd;
}

static size_t collect_fds(struct message *m, const struct px_box *home, int fds[FDS_MAX])
{
    const struct px_cgroup *g = &home->cgroup;
    size_t count = 0;
    fds[count++] = home->control;
    fds[count++] = home->pidfd;
    if (home->has_cgroup) {
        add_group(m, GROUP_V2, g->v2.fd, fds, &count);
        add_group(m, GROUP_V1_MEMORY, g->v1[PX_CG_MEMORY].fd, fds, &count);
        add_group(m, GROUP_V1_PIDS, g->v1[PX_CG_PIDS].fd, fds, &count);
        m->groups |= (g->on_v2[PX_CG_MEMORY] ? MEMORY_ON_V2 : 0) | (g->on_v2[PX_CG_PIDS] ? PIDS_ON_V2 : 0);
    }
    add_group(m, RECORD, home->carrier ? home->carrier->record : -EBADF, fds, &count);
    add_group(m, VERDICT, home->verdict, fds, &count);
    return count;
}

int px_handover_send(int socket, const struct px_box *home)
{
    const struct px_result *r = &home->result;
    struct message m;
    memset(&m, 0, HEAD);
    m.version = VERSION;
    m.keep_ids = home->keep_ids;
    m.pids = home->pids;
    memcpy(m.id, home->id, sizeof m.id);
    m.mechanisms = (uint32_t)r->mechanisms_count;
    m.missing = (uint32_t)r->missing_count;
    m.length = (uint32_t)add_words(m.rest.words, r->mechanisms, m.mechanisms);
    m.length += (uint32_t)add_words(m.rest.words + m.length, r->missing, m.missing);

    int fds[FDS_MAX];
    size_t count = collect_fds(&m, home, fds);
    return px_pass_send(socket, &m, HEAD + m.length, fds, count, MSG_DONTWAIT);
}

int px_handover_refuse(int socket, const struct px_err *why)
{
    struct message m;
    memset(&m, 0, HEAD);
    m.version = VERSION;
    m.refused = 1;
    m.length = sizeof m.rest.why;
    m.rest.why = *why;
    long n = px_sys(SYS_sendto, socket, &m, HEAD + m.length, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
    return n < 0 ? (int)n : 0;
}

/* ---- receiving ---- */

static size_t fds_wanted(const struct message *m)
{
    return m->refused ? 0 : 2 + (size_t)__builtin_popcount(m->groups & (GROUP_V2 | GROUP_V1_MEMORY | GROUP_V1_PIDS | RECORD | VERDICT));
}

static bool is_whole(const struct message *m, long n)
{
    uint64_t nuls = 0;
    if (n < HEAD || m->version != VERSION || n != HEAD + (long)m->length)
        return false;
    if (m->refused)
        return m->length == sizeof m->rest.why;
    for (uint32_t i = 0; i < m->length; i++)
        nuls += m->rest.words[i] == '\0';
    return m->mechanisms <= PX_MECHANISMS_MAX && m->missing <= PX_MECHANISMS_MAX &&
           nuls == (uint64_t)m->mechanisms + m->missing && (m->length == 0 || m->rest.words[m->length - 1] == '\0');
}

/* 0; -EAGAIN: nothing has arrived; -EPROTO: the peer has closed or has another version; -EMFILE. */
static int receive_message(int socket, struct message *m, int fds[FDS_MAX])
{
    struct px_passed passed;
    memset(m, 0, HEAD);
    long n = px_pass_receive(socket, m, sizeof *m, MSG_DONTWAIT, fds, FDS_MAX, &passed);
    if (n <= 0)
        return n < 0 ? (int)n : -EPROTO;
    if (!is_whole(m, n))
        return -EPROTO;
    /* A process at its descriptor limit receives fewer descriptors than were sent. */
    return passed.flags & MSG_CTRUNC ? -EMFILE : passed.count == fds_wanted(m) ? 0 : -EPROTO;
}

static const char *take_words(const char *from, char words[][PX_NAME_MAX], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(from);
        memcpy(words[i], from, n < PX_NAME_MAX ? n + 1 : PX_NAME_MAX);
        words[i][PX_NAME_MAX - 1] = '\0';
        from += n + 1;
    }
    return from;
}

/* The cgroups belong to another process. They may be read, and killed through, while the box lives. */
static void take_groups(struct px_box *home, const struct message *m, const int *fds)
{
    struct px_cgroup *g = &home->cgroup;
    if (m->groups & GROUP_V2)
        g->v2.fd = *fds++;
    if (m->groups & GROUP_V1_MEMORY)
        g->v1[PX_CG_MEMORY].fd = *fds++;
    if (m->groups & GROUP_V1_PIDS)
        g->v1[PX_CG_PIDS].fd = *fds++;
    g->on_v2[PX_CG_MEMORY] = m->groups & MEMORY_ON_V2;
    g->on_v2[PX_CG_PIDS] = m->groups & PIDS_ON_V2;
    home->has_cgroup = m->groups & (GROUP_V2 | GROUP_V1_MEMORY | GROUP_V1_PIDS);
    if (m->groups & RECORD)
        home->record = *fds++;
    if (m->groups & VERDICT)
        home->verdict = *fds;
}

static struct px_box *to_home(const struct message *m, const int fds[FDS_MAX])
{
    struct px_box *home = px_supervise_guest();
    if (!home)
        return NULL;
    struct px_result *r = &home->result;
    memcpy(home->id, m->id, sizeof home->id);
    home->keep_ids = m->keep_ids;
    home->pids = m->pids;
    home->control = fds[0];
    home->pidfd = fds[1];
    take_groups(home, m, fds + 2);
    r->tier = "full";
    r->mechanisms_count = m->mechanisms;
    r->missing_count = m->missing;
    (void)take_words(take_words(m->rest.words, r->mechanisms, m->mechanisms), r->missing, m->missing);
    return home;
}

int px_handover_take(int socket, struct px_box **ret_home, struct px_err *e)
{
    int fds[FDS_MAX];
    struct message m;
    int r = receive_message(socket, &m, fds);
    if (r == -EAGAIN)
        return 0;
    if (r == 0 && !m.refused) {
        *ret_home = to_home(&m, fds);
        if (*ret_home)
            return 1;
        r = -ENOMEM;
    }
    for (int i = 0; i < FDS_MAX; i++)
        (void)px_fd_close(fds[i]);
    if (r == 0) {
        *e = m.rest.why;
        return -1;
    }
    if (r == -ENOMEM || r == -EMFILE)
        return px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_IO, r, "a box was ready, but this process has no room for it");
    return px_fail(e, PX_E_GONE, r == -EPROTO ? 0 : r, "no box was handed over");
}

int px_handover_receive(int socket, int msec, struct px_box **ret_home, struct px_err *e)
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    uint64_t end = px_now_nsec() + (uint64_t)msec * 1000000;
    int r;
    while ((r = px_handover_take(socket, ret_home, e)) == 0) {
        uint64_t now = px_now_nsec();   /* another thread may have taken the message that woke us */
        if (now >= end)
            return px_fail(e, PX_E_GONE, ETIMEDOUT, "no box was handed over");
        (void)px_sys(SYS_poll, &ready, 1, (int)((end - now) / 1000000) + 1);
    }
    return r < 0 ? -1 : 0;
}
