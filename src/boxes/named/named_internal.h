/* named/named_internal.h - a box with a name: where it is written down, and what its keeper and its users say to each other.
 *
 *   user                                        keeper (one process, as long as the box lives)
 *   connects to PX_HOME/run/boxes/NAME/socket   holds the lock beside it; a directory whose lock is free is nobody's
 *   HOME -------------------------------------> the box itself (box/handover.h) and what its commands start from
 *   runs its command in it, directly
 *   BEGAN + the command's pidfd --------------> counts and lists it until it has ended
 *   INFO, SIGNAL, RUN, WAIT, INPUT, STOP -----> answers
 *                                               BYE to whoever took the box, when it ends
 *
 * Why:     a box that outlives its starter needs somebody to hold it, to end it and to clean up, and no more than that.
 * Owns:    see each part.
 * Mustn't: be reached by anybody but the owner: not by another user, and not from inside a box. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <px/living.h>

#include "base/buf.h"
#include "base/json.h"
#include "policy/policy.h"

enum { PX_KEEP_VERSION = 1, PX_KEEP_TEXT_MAX = 16 << 20, PX_KEEP_GRACE_MSEC = 2000 };

/* ---- directory.c: PX_HOME/run/boxes ---- */

struct px_named_place {
    int boxes, dir, lock;       /* -EBADF: not there */
    char name[PX_BOX_NAME_MAX];
};
#define PX_KEEP_NOWHERE {.boxes = -EBADF, .dir = -EBADF, .lock = -EBADF}

/* The directory of all boxes; made if missing and `make` is true, else 0 with *ret_boxes -EBADF. */
int px_named_boxes(const char *home, bool make, int *ret_boxes, struct px_err *e);
/* Takes a name, or an unused one if name is NULL; held until px_named_let_go, or until this process ends. */
int px_named_claim(const char *home, const char *name, struct px_named_place *ret_place, struct px_err *e);
/* Removes the directory with its content, and releases the name. */
void px_named_let_go(struct px_named_place *place);
/* Removes the directories of dead keepers. */
void px_named_sweep(int boxes);
/* Whether a keeper holds it: 1, 0, -ENOENT. */
int px_named_held(int boxes, const char *name);
/* A socket bound to or connected with place->dir/socket; or -errno. No path is too long for it. */
int px_named_listen(int dir);
int px_named_connect(int dir);

/* ---- wire.c: messages ---- */

enum px_keep_kind {
    PX_KEEP_HOME = 1,
    PX_KEEP_BEGAN,              /* number: pid in the box; err.what: its words, a line each; descriptor: pidfd. No answer. */
    PX_KEEP_INFO,               /* number: with everything. Answer: text (as a descriptor, here and below) */
    PX_KEEP_LOOK,               /* number: enum px_keeper_look. Answer: text, an array of structs of px/living.h */
    PX_KEEP_SIGNAL,             /* number: the signal; command: which, 0 all. Answer: number, how many got it */
    PX_KEEP_SIGNAL_PROCESS,     /* command: the pid in the box */
    PX_KEEP_RUN,                /* text: policy and words. Answer: command */
    PX_KEEP_WAIT,               /* Answer, when it has ended: number, the exit code; text: the result */
    PX_KEEP_INPUT,              /* Answer: descriptor */
    PX_KEEP_END_INPUT,
    PX_KEEP_STOP,               /* Answer when all is gone */
    PX_KEEP_ANSWER,
    PX_KEEP_BYE,                /* err.what: why the box ended */
};

enum px_keeper_look { PX_KEEP_STATE, PX_KEEP_COMMANDS, PX_KEEP_PROCESSES };

/* A fixed part; long texts are in a memfd, the one descriptor that a message may have. */
struct px_named_message {
    uint32_t version, kind, command;
    int32_t number;
    struct px_err err;          /* of an answer; code 0: none */
};

/* 0 or -errno. Never waits. */
int px_named_send(int socket, const struct px_named_message *m, int fd);
/* 1: a message, with *ret_fd or -EBADF; 0: the peer has closed, or has another version; -EAGAIN: nothing yet. */
int px_named_receive(int socket, struct px_named_message *m, int *ret_fd);
/* The same with a bound; -ETIMEDOUT. */
int px_named_await(int socket, int msec, struct px_named_message *m, int *ret_fd);
/* A text as a sealed memfd, and back. */
int px_named_text_file(const char *text, size_t length);
int px_named_text_read(int fd, struct px_buf *out);
/* 1 if the peer is the same user, not in a box, and (unless confined_too) not more confined than we are; 0 if not;
 * -ESRCH if it has ended. */
int px_named_trusts(int socket, bool confined_too);

/* ---- policy_text.c: a command's policy and words as texts ---- */

/* What is needed for a command, with nothing left to look up: pairs of field and value, each with its NUL; then an
 * empty text. */
void px_named_pack(const struct px_policy *policy, bool with_memory, struct px_buf *out);
void px_named_pack_words(const char *const argv[], struct px_buf *out);
/* *ret_words: where the words begin in text. */
int px_named_unpack(const char *text, size_t length, struct px_policy **ret_policy, size_t *ret_words, struct px_err *e);
/* Pointers into text from `at` on, NULL-terminated; free() it. */
const char **px_named_words(const char *text, size_t length, size_t at);

/* ---- log.c: the output of a detached command, in files of one size; the oldest are removed ---- */

struct px_named_log {
    int dir, fd;                /* borrowed; the file being written, or -EBADF */
    unsigned command;
    enum px_stream stream;
    uint64_t first, next;       /* files first to next - 1 are there */
    uint64_t size, size_max, files_max;         /* of the present file; bounds */
    uint64_t lost;              /* bytes that could not be written */
};

void px_named_log_init(struct px_named_log *log, int dir, unsigned command, enum px_stream stream, uint64_t bytes_max);
void px_named_log_write(struct px_named_log *log, const char *data, size_t size);
void px_named_log_done(struct px_named_log *log);         /* closes */
void px_named_log_remove(struct px_named_log *log);       /* unlinks */
long px_named_log_read(int dir, unsigned command, enum px_stream stream, struct px_log_at *at, void *out, size_t size);

/* ---- keeper/processes.c: the processes of a box, seen from the host ---- */

enum { PX_KEEP_PROCESSES_MAX = 4096 };

struct px_keeper_process {
    int host_pid, pid, parent;  /* outside, inside, inside (0: not known) */
    uint64_t started_ticks, rss_bytes;
};
/* Everything below pid 1 of the box, without it; free() it. */
size_t px_keeper_processes(int init_pid, struct px_keeper_process **ret_list);
/* The command line of one, on one line; how long it is. */
size_t px_keeper_command_line(int host_pid, char *out, size_t size);
uint64_t px_keeper_age_msec(const struct px_keeper_process *p);
void px_keeper_print_processes(const struct px_keeper_process *list, size_t count, struct px_json *j);
/* Signals the process with that pid in the box (0: all of them); returns how many. init_pidfd shows whether init_pid
 * still is the box's. */
int px_keeper_signal_inside(int init_pid, int init_pidfd, int pid, int signal);
