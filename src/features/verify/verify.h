/* verify/verify.h - the implementation of px/verify.h: the table of checks, the fixtures, and the verdicts.
 *
 * Why:     a sandbox must enforce what it claims. Every promise has a row that tests it, and every row has a switch
 *          that makes it fail, so that a pass is meaningful.
 * Owns:    the fixtures (fixtures.c), which are removed after the run; the policies and boxes (run.c).
 * Mustn't: trust a program's output beyond the known words, or leave anything behind. */
#pragma once

#include <errno.h>
#include <sys/types.h>

#include <px/verify.h>

#include "base/buf.h"
#include "helper/helper.h"
#include "policy/policy.h"

/* ---- verify_table.c: data/checks.def and data/attacks.def as one list ---- */

enum px_check_kind { PX_CHECK_SHELL, PX_CHECK_ATTACK, PX_CHECK_TWIN };

enum px_check_how {             /* the words of attacks.def */
    PX_HOW_PLAIN, PX_HOW_FILTER, PX_HOW_CGROUP, PX_HOW_MEMORY, PX_HOW_ROOT, PX_HOW_STREAMS, PX_HOW_GONE, PX_HOW_READY,
    PX_HOW_PORT, PX_HOW_TIMEOUT, PX_HOW_FORGED, PX_HOW_FLOOD, PX_HOW_COUNTED, PX_HOW_SERVED, PX_HOW_SUITE,
};

enum { PX_IN_FULL = 1, PX_IN_LANDLOCK = 2, PX_IN_OCI = 4, PX_IN_GVISOR = 8 };

enum { PX_EXIT_REFUSED = -1 };

struct px_side {
    const char *text;           /* NULL: there is no such side */
    const char *options;
    int exit;                   /* or PX_EXIT_REFUSED */
    const char *says, *says_too, *lacks, *out, *err;
    bool timed_out, memory, truncated, gone, kept, noexec;
};

struct px_verify_row {
    const char *name;
    const char *category;       /* NULL: px_verify_category knows */
    enum px_check_kind kind;
    enum px_check_how how;
    unsigned tiers;             /* PX_IN_ bits: where it is promised */
    const char *options, *needs, *held_by, *broken_by;
    struct px_side sides[2];    /* of a shell's check */
};

extern const struct px_verify_row px_verify_rows[];
extern const size_t px_verify_rows_count;
const char *px_verify_category(const struct px_verify_row *row);
/* Calls `word` for each part of a list with separators; stops at the first that is not 0 and returns that. */
int px_verify_each(const char *list, char separator, int (*word)(void *user, const char *text, size_t len), void *user);
/* Whether "a+b" contains the word. */
bool px_verify_has(const char *held_by, const char *word);
/* The mechanisms of policy/without.def in held_by, as bits. */
uint64_t px_verify_mechanisms(const char *held_by);

/* ---- verify_fixtures.c: what no box may reach ---- */

struct px_fixtures {
    char top[200];              /* a directory of this run; "": there are none */
    char mark[32], digits[16], queue[40], token[96];
    int top_fd, tcp, udp, abstract, path_socket, terminal, leaked, life, victim_fd;
    int victim;                 /* pid; it also removes everything if the caller dies */
    unsigned port, free_port;
    int key, shm, msg, sem;     /* System V; -1: could not be made */
    bool has_queue, has_device;
    long planted;               /* key in the session keyring; < 0: none */
    unsigned serial;            /* of work directories */
};

#define PX_FIXTURES_NONE                                                                                                     \
    {.top_fd = -1, .tcp = -1, .udp = -1, .abstract = -1, .path_socket = -1, .terminal = -1, .leaked = -1, .life = -1,        \
     .victim_fd = -1, .shm = -1, .msg = -1, .sem = -1, .planted = -1}

int px_fixtures_make(struct px_fixtures *f, const char *attack, const char *secret, struct px_err *e);
void px_fixtures_remove(struct px_fixtures *f);         /* may be called again */
/* 0 or -errno: a file, a directory, with this mode whatever the umask is */
int px_fixtures_put(int dir, const char *name, const char *text, mode_t mode);
int px_fixtures_put_dir(int dir, const char *name);
/* A fresh directory below top: its path; -1 if there is none. */
int px_fixtures_work_dir(struct px_fixtures *f, char *out, size_t size, struct px_err *e);
void px_fixtures_drop(struct px_fixtures *f, const char *path);
/* The variables that tell px-attack where everything lies. */
int px_fixtures_tell(const struct px_fixtures *f, struct px_policy *policy, struct px_err *e);
/* Processes with this text in their command line. */
int px_fixtures_count(const char *text);
bool px_fixtures_reachable(unsigned port);              /* on the host's loopback */
/* What a box changed in the fixtures; NULL: nothing. */
const char *px_fixtures_harm(const struct px_fixtures *f, bool net_shared);

/* ---- verify_outside.c: servers that boxes of some rows may reach (net/outside.h) ---- */

struct px_outside {
    struct px_helper helper;
    int network;                /* its namespace, for policy->outside_net; 0: there is none */
    char why[400];              /* why there is none, and what to do */
};

#define PX_OUTSIDE_NONE {.helper = {.pidfd = -EBADF, .socket = -EBADF}}

/* Adds files to the fixtures: outside/get URL, and outside/signer.pem, the certificate of the server's CA. */
void px_outside_start(struct px_outside *o, const struct px_fixtures *f);
void px_outside_end(struct px_outside *o);              /* may be called again */

/* ---- verify_judge.c: from a result to a verdict ---- */

/* What is known about the boxes of this run. */
struct px_surroundings {
    const char *tier;           /* "full", "landlock", "oci:crun" */
    unsigned in;                /* the PX_IN_ bit of it */
    bool no_listener;           /* denials are not reported */
    bool overlay, tmp_noexec, net_shared, net_carried, own_filter, strict, no_landlock, groups_kept, single_id;
    bool certificates;          /* of authorities, in the base */
};

struct px_verdict {
    enum px_check_result result;
    bool not_started;           /* there was no box to judge */
    struct px_buf proof, reason;
};

void px_judge_result(const struct px_verify_row *row, int side, const struct px_result *r, const struct px_surroundings *s,
                     const struct px_side *expected, struct px_verdict *v);
/* The box did not start. */
void px_judge_error(const struct px_verify_row *row, const struct px_err *error, struct px_verdict *v);
/* A failure of something not promised here becomes a difference. */
void px_judge_promise(const struct px_verify_row *row, const struct px_surroundings *s, struct px_verdict *v);
void px_judge_fail(struct px_verdict *v, enum px_check_result result, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
