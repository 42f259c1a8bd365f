/* box/supervise.h - one running box: started from a plan, watched by one epoll, ended as a whole.
 *
 * Why:     one state machine decides how a run ended: the first event wins and nothing is inferred from what the program wrote.
 * Owns:    every descriptor of the box, its cgroups, its id range, the captured output.
 * Mustn't: block in step, wait without a bound, kill by pid number, or grow with the program's output. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include <px/px.h>

#include "base/buf.h"
#include "box/disk.h"
#include "box/hooks.h"
#include "box/pace.h"
#include "box/upper.h"
#include "child/child.h"
#include "init/wire.h"
#include "kernel/cgroup.h"
#include "kernel/idmap.h"
#include "plan/plan.h"

enum { PX_CHUNK = 4096, PX_FLOW_COUNT = 3 };

/* One direction of bytes between the caller and the box. */
struct px_flow {
    int from, to;               /* -EBADF: closed, or (to) kept in `kept` */
    bool from_ours, to_ours;    /* which of the two px closes */
    bool from_watched, to_watched;
    bool from_file, to_file;    /* regular files, which epoll refuses and which are always ready */
    bool closed;                /* nothing more will come */
    bool splice;                /* from pipe to pipe: the kernel moves the pages */
    bool stalled;               /* ... and the caller's pipe is full */
    bool capture;               /* keep the bytes; `to` may be there as well */
    struct px_headtail kept;
    /* the command has ended, but others in its container may hold the pipe: only `rest` is still its own */
    bool bounded;
    uint64_t rest;
    bool dropped;               /* bytes were lost: over the limit, or no memory to keep them */
    uint64_t total, limit;      /* bytes seen; where the run ends or the rest is dropped (0: no limit) */
    uint32_t len, at;           /* what waits in chunk */
    char *chunk;                /* PX_CHUNK bytes at the end of the box */
};

/* The source of an epoll event; the streams add their index. */
enum { PX_EVENT_PIDFD, PX_EVENT_TIMER, PX_EVENT_OOM, PX_EVENT_FILES, PX_EVENT_REFUSED, PX_EVENT_PARTNER, PX_EVENT_REPLY, PX_EVENT_CARRIER,
       PX_EVENT_FROM = 16, PX_EVENT_TO = 32 };

enum px_end { PX_END_NONE, PX_END_EXIT, PX_END_TIMEOUT, PX_END_MEMORY, PX_END_OUTPUT, PX_END_DISK, PX_END_KILLED, PX_END_LOST };

struct px_json;

enum { PX_UPPERS = 2 };

struct px_box {
    struct px_box *home;        /* the container in which this is a command; NULL: it has a box of its own */
    int inside_pid;             /* its pid inside the container */
    bool keep_ids;              /* a container: there is only one id */
    struct px_pool *pool;       /* the container came from this pool, serves this command alone, and ends with it */
    void (*let_go)(struct px_box *box);         /* px_box_free of a box from a pool */
    bool ordered;               /* the next one was already ordered from the pool */
    bool guest;                 /* a container that another process made, and cleans up after */
    uint64_t oom_before, pids_before;   /* kills and refused forks in the container's cgroup before this command */
    struct px_plan *plan;       /* NULL once the box runs, unless it is needed for the result */
    char **argv;                /* of the payload, for the result; one allocation */
    int *writable;              /* the caller's files that the box may write, opened before it could move them */
    size_t writable_count;
    struct px_loan *loans;      /* those whose owner is changed while the box runs (box/lend.h) */
    size_t loans_count;
    int stripped;               /* files in kept changes that lost set-id bits or capabilities before the start */
    struct px_disk disk;        /* the limit on the writable binds */
    /* directories of the caller that take changes: of the root, of a directory */
    struct px_upper upper[PX_UPPERS];
    int changes;                /* the upper directory of --changes */
    int record;                 /* a container that another process made: the record of its network driver */
    /* a container with limited writable binds: a file with its px_disk once that has ended it */
    int verdict;
    struct px_after *after;     /* NULL: none */
    struct px_carrier *carrier; /* NULL: none */
    bool carrier_gone;
    void *carrier_mark;         /* a command: the driver's counts when it began; NULL: no driver */
    void *carrier_told;         /* what the result borrows */
    struct px_idmap ids;
    struct px_cgroup cgroup;
    bool has_cgroup;
    char id[20];
    struct px_partner *partner; /* NULL: no OCI runtime */
    /* settings taken from the policy, which may be gone by now */
    uint64_t timeout_msec, cpu_time_msec, file_bytes, disk_bytes, memory_bytes, pids;
    bool output_end, tty;
    int scratch_lock;           /* weaker tiers: the flock on the box's home directory */
    struct px_root_lease *root; /* the lease that keeps a stored root */
    void (*root_free)(struct px_root_lease *root);
    /* weaker tiers: px-init ends the process tree, so it must not be killed before it has */
    bool reaper;
    bool sigpipe_ignored;       /* by the program that uses the library: writes need no special care */
    /* the running box */
    int pid, pidfd;             /* of pid 1 */
    int payload;                /* pidfd of the command */
    int ready_event;            /* always readable; watched while a regular file has work for us */
    bool ready_watched;
    int control, epoll, timer, oom_event, terminal;
    int listener;               /* of the system call filter: a notification for each refused call */
    int notes;                  /* a container: refused calls of processes that belong to none of its commands */
    bool alone;                 /* a container made for one command */
    bool own_filter, strict;
    struct px_init_refused refused[PX_INIT_REFUSED_MAX];
    size_t refused_count;
    struct px_flow flow[PX_FLOW_COUNT];         /* in, out, err */
    enum px_end end;            /* the first event that ended the run */
    bool reaped, finished;
    int output_error;           /* why output could not be forwarded: -ENOSPC and the like */
    bool have_report;
    struct px_init_report report;
    int init_status;
    struct rusage usage;
    bool forced;                /* pid 1 itself was killed */
    uint64_t start_nsec, end_nsec;
    uint64_t deadline_nsec;     /* of the run */
    uint64_t grace_nsec;        /* after SIGTERM or SIGHUP */
    uint64_t force_nsec;        /* when killing the command alone was not enough */
    uint64_t stuck_nsec;        /* when even SIGKILL was not */
    uint64_t disk_nsec;         /* when the writable binds are measured again */
    uint64_t carrier_nsec;      /* when the network driver is killed */
    uint64_t pace_nsec;         /* when output and refused calls are read again; 0: now */
    struct px_pace pace;
    uint64_t eof_nsec;          /* when the end of input is written to the terminal again */
    int eof_count;
    int64_t start_realtime_sec;
    uint64_t *stamps;
    uint64_t clone_nsec, ready_nsec;
    struct px_buf out_text, err_text;
    struct px_result result;
    char hint[PX_SOURCE_TEXT];  /* one of the result's: the plan's */
    /* Last, so that the pages of a box without output are never touched. */
    char chunks[PX_FLOW_COUNT][PX_CHUNK];
};

/* box/box.c: from its start to its end. */
int px_supervise_start(struct px_plan *plan, const struct px_policy *policy, const struct px_io *io, struct px_box **ret_box,
                       struct px_err *e);      /* takes the plan, also on failure */
/* Starts another command in a container. The container must outlive the command. */
int px_supervise_exec(struct px_box *home, const struct px_policy *policy, const char *const argv[], const struct px_io *io,
                      struct px_box **ret_box, struct px_err *e);
void px_supervise_free(struct px_box *box);
struct px_box *px_supervise_guest(void);        /* an empty one, for box/handover.c */
char **px_supervise_copy_argv(char *const argv[]);      /* one allocation */
/* box/supervise.c: watching it, and ending it. */
int px_supervise_watch(struct px_box *box, struct px_err *e);  /* the box runs: from now on its events are handled */
int px_supervise_hear_oom(struct px_box *box);  /* called before the limit is in force, or an event is lost */
int px_supervise_step(struct px_box *box, int wait_msec, struct px_err *e);    /* 1 alive, 0 gone, -1 */
int px_supervise_signal(struct px_box *box, int signal);
void px_supervise_kill(struct px_box *box, enum px_end why);
void px_supervise_end_input(struct px_box *box);       /* of a terminal */
int px_supervise_resize(struct px_box *box, unsigned short rows, unsigned short cols);
void px_supervise_abandon(struct px_box *box);  /* kills what still runs, and waits for it */
/* box/prepare.c: before it runs. */
int px_supervise_prepare(struct px_box *box, const struct px_policy *policy, struct px_err *e);
uint64_t px_supervise_files_max(void);  /* the files that a process with the caller's own id may have open */
/* box/timings.c */
int px_supervise_timings(const struct px_box *box, char **ret_text, struct px_err *e);

/* box/command.c: requests to px-init of a container. */
int px_command_start(struct px_box *box, const struct px_policy *policy, const char *const argv[], const struct px_io *io,
                     struct px_err *e);
int px_command_signal(struct px_box *box, int signal);
/* any command of the container */
int px_command_signal_pid(const struct px_box *home, int inside_pid, int signal);
/* box/launch.c: starting the processes of a plan. */
/* A descriptor with the message it came with; -EPROTO if there was none. */
int px_launch_receive_fd(int control, void *data, size_t size);
/* The sealed image of px-init, which a caller that makes many boxes can share among them (plan.image). A descriptor
 * or -errno. */
int px_launch_image(void);
int px_launch(struct px_box *box, const struct px_policy *policy, const struct px_io *io, struct px_err *e);
/* The errors for failures that an OCI runtime may see as well. */
int px_launch_exec_failed(int err, bool found, const char *command, struct px_err *e);
int px_launch_bind_failed(const struct px_plan *plan, const struct px_step *s, int err, struct px_err *e);
/* box/flow.c: moving bytes. */
int px_flow_open(struct px_box *box, const struct px_policy *policy, const struct px_io *io, int ret_stdio[3], struct px_err *e);
void px_flow_ready(struct px_box *box, int index);
bool px_flow_files(const struct px_box *box);   /* a regular file is ready, which epoll does not report */
bool px_flow_busy(const struct px_box *box);    /* output still on its way */
void px_flow_drain(struct px_box *box);         /* the box has ended: read what the pipes still hold */
/* a command of a container has ended: only what is in the pipes now is read */
void px_flow_bound(struct px_box *box);
void px_flow_close(struct px_box *box, int index);
void px_flow_watch(struct px_box *box);
int px_flow_terminal(struct px_box *box);        /* box->terminal is open: sets both directions */
/* box/report.c: the result. */
void px_report_isolation(struct px_box *box);  /* which mechanisms are in force: known as soon as the box runs */
void px_report_home(struct px_box *box);        /* the same for a command, from its container; before it starts */
/* a mechanism that begins with `word` is in force */
bool px_report_has(const struct px_result *r, const char *word);
void px_report_make(struct px_box *box);
/* adds them; of a container also while it lives */
void px_report_denials(const struct px_box *box, struct px_result *r);
/* the same for its network traffic; at the end */
void px_report_network(struct px_box *box, struct px_result *r);
void px_report_changes(struct px_json *j, const char *name, const struct px_change *changes, size_t count);
void px_report_print_denials(struct px_json *j, const struct px_result *r);
int px_report_json(const struct px_result *r, char *const argv[], bool exact, char **ret_json, struct px_err *e);
