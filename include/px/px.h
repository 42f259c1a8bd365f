/* px/px.h - run a command in a box, from C.
 *
 * A box is described by a policy, started, waited for, and answered by a result:
 *
 *     struct px_err e = {0};
 *     struct px_policy *policy = NULL;
 *     struct px_box *box = NULL;
 *     const char *argv[] = {"echo", "hello", NULL};
 *
 *     if (px_policy_new("default", &policy, &e) < 0 || px_policy_set(policy, "timeout", "10s", &e) < 0 ||
 *         px_box_start(policy, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0)
 *         return complain(&e);
 *     const struct px_result *r = px_box_result(box);
 *     printf("%s, exit %d: %.*s", px_status_name(r->status), r->exit_code, (int)r->out.len, r->out.data);
 *     px_box_free(box);
 *     px_policy_free(policy);
 *
 * Errors:  functions return 0, or -1 and fill *e. `e` may be NULL in every function.
 * Owns:    a `ret_` pointer is yours and is written only on success; a returned pointer is borrowed from the object.
 *          A box owns its result.
 * Threads: any thread may call any function, unless its header says otherwise. An object belongs to one thread at a time;
 *          different objects may be used from different threads at once.
 * Leaves:  the library has no globals, starts no thread that outlives the call, installs no signal handler, and never
 *          touches the working directory, the umask, the environment, or a descriptor that it did not open. It reaps only
 *          its own children, by pidfd. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <px/errors.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PX_API __attribute__((visibility("default")))

/* ---- errors ---- */

struct px_err {
    int code;                   /* 0, or the stable number users see as PX017; px/errors.h names them */
    int sys;                    /* errno at the moment of failure; 0 if none */
    char what[512];             /* what happened, in the names the user gave us */
    char why[512];              /* the cause */
    char fix[768];              /* what to do now, one action per line */
    char details[512];          /* for machines: members of a JSON object, such as "reason":"missing_lock"; "" if there are none */
};

/* The rows of px-errors(7): NULL if there is no such code. */
struct px_explain {
    int code;
    const char *name, *what, *why, *fix;
};
PX_API int px_explain(int code, struct px_explain *ret_text);
/* The code after `code` in the table; 0 after the last. px_explain_next(0) is the first. */
PX_API int px_explain_next(int code);
/* A line for a terminal: like vasprintf, but arguments of %s and %c are untrusted and are quoted: control characters,
 * bidirectional marks and invalid UTF-8 become \xNN, so that they cannot control the terminal or look like another
 * line. It supports %s %c %d %i %u %x %o %f %%. Free the text with free(); NULL: no memory. */
PX_API char *px_words(const char *fmt, va_list args);

/* ---- policy: what the box may see and do ---- */

struct px_policy;

/* preset: "default", "session", "worker", "untrusted", "task", "project" (NULL means default). */
PX_API int px_policy_new(const char *preset, struct px_policy **ret_policy, struct px_err *e);
PX_API void px_policy_free(struct px_policy *policy);
/* Sets one field by its name in px-policy(5), with the command line's grammar: ("memory", "512m"). Repeatable fields add. */
PX_API int px_policy_set(struct px_policy *policy, const char *field, const char *value, struct px_err *e);
/* The value of one field as JSON, as px_policy_json prints it: "none" in its quotes, 30, true, ["A=1"]; null if it has none.
 * free() it. */
PX_API int px_policy_get(const struct px_policy *policy, const char *field, char **ret_json, struct px_err *e);
/* Another policy with the same preset and all that was set since. */
PX_API int px_policy_copy(const struct px_policy *policy, struct px_policy **ret_copy, struct px_err *e);
/* The policy as a JSON object; free() it. */
PX_API int px_policy_json(const struct px_policy *policy, char **ret_json, struct px_err *e);
/* Warnings for its author, one a line, or NULL: unknown names in a profile, for example. free() it. */
PX_API int px_policy_warnings(const struct px_policy *policy, char **ret_text, struct px_err *e);
/* Contradictions, options without effect, and options that allow more than they seem to, one a line; NULL: none. free()
 * it. Not in the launcher. */
PX_API int px_policy_check(const struct px_policy *policy, char **ret_text, struct px_err *e);
/* The system call filter in force, in the containers' JSON format; free() it. Not in the launcher. */
PX_API int px_policy_seccomp(const struct px_policy *policy, char **ret_json, struct px_err *e);
/* Does the slow part of a start now: unpacks an archive for the root. Otherwise the start does it. */
PX_API int px_policy_prepare(const struct px_policy *policy, struct px_err *e);
/* Whether the small launcher can run it: no profile to parse, no OCI runtime, no keeper, no root from the store. */
PX_API bool px_policy_is_small(const struct px_policy *policy);
/* Names of the presets in order; NULL past the end. */
PX_API const char *px_preset_name(size_t index);

/* One row of the field table, for front ends. */
struct px_field_info {
    const char *name;           /* "memory" */
    char letter;                /* 'm', or 0 */
    const char *type;           /* "size" */
    const char *arg;            /* "SIZE", or NULL for a flag */
    const char *help;
    const char *const *words;   /* the choices, or NULL */
    bool flag;                  /* takes no value */
    bool repeat;
    bool absent;                /* known, but refused by this build */
    bool optional;              /* the value may be left out */
    bool hidden;                /* not in any help */
    bool command;               /* px_box_exec and px_living_exec look at it; else it is the box's */
    bool project;               /* px_project_run.policy may set it; else it is the project's */
};
PX_API int px_policy_field(size_t index, struct px_field_info *ret_info);  /* -1 past the end */

/* ---- plan: what px would do, without doing it ---- */

PX_API int px_plan_json(const struct px_policy *policy, const char *const argv[], char **ret_json, struct px_err *e);

/* ---- box: one running command ---- */

struct px_box;

enum px_stream { PX_STDIN = 0, PX_STDOUT = 1, PX_STDERR = 2 };

/* Where the box's streams go. All zero (or NULL for the whole): no standard input, output kept in the result up to the
 * policy's output limit. The caller keeps a descriptor given here; px copies bytes to and from it and never passes it
 * to the box. */
struct px_io {
    bool use_in, use_out, use_err;  /* use the descriptor below; false: none (in), or store it in the result (out,
                                     * err) */
    int in, out, err;
    bool keep;                  /* also store in the result what is copied to out and err */
    unsigned short rows, cols;  /* of the terminal, if the policy's "tty" is set (then err is unused); 0: 24 x 80 */
    bool bind_to_thread;        /* the box also dies with the calling thread (PR_SET_PDEATHSIG); it always dies with the process */
};

PX_API int px_box_start(const struct px_policy *policy, const char *const argv[], const struct px_io *io,
                        struct px_box **ret_box, struct px_err *e);
/* Waits until the box has ended: copies streams, enforces limits. 0 when px_box_result() is final. */
PX_API int px_box_wait(struct px_box *box, struct px_err *e);

/* A box that stays: it has no command, and keeps its files, processes and network until it is killed or freed (or this
 * process ends). px_box_exec runs commands in it, several at once; each is a px_box with its own result, and must be
 * freed before the home, the box that stays. 512 can run at once; one more fails with PX005. Denials of a command are
 * in its result; those of processes that outlived their command are in the home's. Of `command` only these apply:
 * environment, working directory, terminal, timeout, output limit, and limits of a process, which can only be narrower
 * than the home's. */
PX_API int px_box_stay(const struct px_policy *policy, struct px_box **ret_home, struct px_err *e);
PX_API int px_box_exec(struct px_box *home, const struct px_policy *command, const char *const argv[], const struct px_io *io,
                       struct px_box **ret_box, struct px_err *e);

/* Changes what a box with px's network ("net" outbound, or "publish") can reach from now on; existing connections stay.
 * "allow-net" and "deny-net" add a rule, or (value NULL) remove all their rules: an empty allow-list allows nothing.
 * "publish" adds a port, in a box that stays or that already has one. For a command this changes its home. */
PX_API int px_box_network(struct px_box *box, const char *field, const char *value, struct px_err *e);

/* A port of the host that is forwarded to the box, in the order of publishing; NULL past the end. */
struct px_port {
    char address[48];           /* of the host */
    uint16_t host, box;
    bool udp;
    bool chosen;                /* the policy had 0 for the host's: px chose a free one */
};
PX_API const struct px_port *px_box_port(const struct px_box *box, size_t index);

/* For event loops: poll this descriptor for reading; whenever it is ready call px_box_step, which never blocks and
 * returns 1 while the box runs, 0 when it has ended and the result is final, -1 with an error. */
PX_API int px_box_fd(const struct px_box *box);
PX_API int px_box_step(struct px_box *box, struct px_err *e);
/* The pid of the command's process on the host (of pid 1 for a box that stays); 0 if it has ended. For display only:
 * the functions below are safe against reuse of the pid. */
PX_API int px_box_pid(const struct px_box *box);

/* Sends a signal to the command's process group. SIGKILL ends the box at once, or a command in a box that stays with
 * everything that it started; SIGTERM and SIGHUP do so after 2 s if the command does not end. */
PX_API int px_box_signal(struct px_box *box, int signal, struct px_err *e);
/* Ends the box and everything in it now; the result has the reason "killed". */
PX_API int px_box_kill(struct px_box *box, struct px_err *e);
PX_API int px_box_resize(struct px_box *box, unsigned short rows, unsigned short cols, struct px_err *e);
/* Kills what is still running. NULL is fine. */
PX_API void px_box_free(struct px_box *box);

/* ---- scratch: directories that live as long as who has made them ---- */

/* Creates a private directory below `tmp`, locked (flock) while *ret_lock is open. If the process is killed the lock is
 * released, and the next call with `sweep` removes the directory. Give a box a directory inside it to write to, not the
 * directory itself: its mode must stay. */
PX_API int px_scratch_make(const char *tmp, bool sweep, char **ret_path, int *ret_lock, struct px_err *e);
/* Removes it with its content; the caller closes the lock. */
PX_API void px_scratch_drop(const char *path);

/* ---- result ---- */

enum px_status {
    PX_STATUS_OK,               /* exit 0 */
    PX_STATUS_NONZERO,
    PX_STATUS_SIGNALLED,
    PX_STATUS_TIMEOUT,
    PX_STATUS_MEMORY,
    PX_STATUS_OUTPUT,
    PX_STATUS_DISK,
    PX_STATUS_DENIED,
    PX_STATUS_INTERNAL,
};
PX_API const char *px_status_name(enum px_status status);

struct px_bytes {
    const char *data;           /* NUL-terminated for convenience; may contain NULs */
    size_t len;
};

enum { PX_LIMITS_MAX = 8, PX_DENIALS_MAX = 24, PX_MECHANISMS_MAX = 40, PX_NAME_MAX = 64 };

struct px_limit_hit {
    const char *limit;          /* "memory", "pids", "disk", ... : the field's name */
    const char *counter;        /* what was read: "memory.events oom_kill" */
    uint64_t value;             /* its value */
};

/* What px itself stopped; the program's output cannot add one. */
struct px_denial {
    const char *op;             /* "syscall", "fork", "memory", "resolve", "connect", "send" */
    const char *target;         /* "mount", "example.org:443"; NULL if there is none */
    const char *rule;           /* "seccomp", "pids", "memory", "allow-net" */
    const char *grant;          /* the option that would allow it; NULL: no box may */
    uint64_t count;
};

/* The traffic to and from one name, or one address that was used without a name. */
struct px_traffic {
    const char *name;           /* NULL: all others together */
    uint64_t connections, sent_bytes, received_bytes;
};

/* What the command did to the directory of --changes. */
struct px_change {
    const char *path;           /* relative to the directory; that of a directory ends with '/' */
    const char *kind;           /* "added", "modified", "deleted", "mode", "special" (a FIFO or a socket: never applied) */
    bool link;                  /* a symbolic link, or one that was deleted */
};

struct px_result {
    char id[20];
    enum px_status status;
    const char *reason;         /* a short phrase for status; never output of the program */
    int exit_code;              /* what the shell would show: the command's, 124, or 128 + signal */
    int signal;                 /* that ended the command, or 0 */
    bool timed_out, oom_killed;
    struct px_bytes out, err;   /* the stored output */
    uint64_t out_total, err_total;
    bool out_truncated, err_truncated;
    uint64_t wall_nsec, cpu_user_usec, cpu_sys_usec;
    uint64_t memory_peak_bytes;
    const char *memory_source;  /* "cgroup2.peak", "cgroup1.max_usage" or "maxrss" */
    uint64_t pids_peak;         /* 0: not known */
    uint64_t io_read_bytes, io_write_bytes;
    struct px_limit_hit limits_hit[PX_LIMITS_MAX];
    size_t limits_hit_count;
    struct px_denial denials[PX_DENIALS_MAX];
    size_t denials_count;
    bool has_network;           /* px carried the box's traffic, so the next members are valid */
    const struct px_traffic *traffic;
    size_t traffic_count;
    const char *tier;           /* "full" or "landlock"; "rlimits" of an action without a jail (px/task.h) */
    char mechanisms[PX_MECHANISMS_MAX][PX_NAME_MAX];
    size_t mechanisms_count;
    char missing[PX_MECHANISMS_MAX][PX_NAME_MAX];
    size_t missing_count;
    const char *hints[4];
    size_t hints_count;
    bool has_changes;           /* the policy's "changes" was set, so the next members are valid */
    const struct px_change *changes;
    size_t changes_count;
    struct px_bytes diff;       /* unified, as `git apply` and `patch -p1` read it */
    bool diff_truncated;        /* files whose diff exceeds the output limit are left out */
    bool changes_applied;
    const char *changes_kept;   /* the directory that has them; NULL: dropped or applied */
};

/* Valid when the box has ended; borrowed until px_box_free. */
PX_API const struct px_result *px_box_result(const struct px_box *box);
/* As one JSON object on one line; free() it. With `exact` it also has the stored output as base64. */
PX_API int px_box_json(const struct px_box *box, bool exact, char **ret_json, struct px_err *e);

/* The stored standard output (1) or standard error (2) as text: where bytes are missing, a line has their number.
 * free() it. */
PX_API int px_box_output(const struct px_box *box, int stream, char **ret_text, size_t *ret_len, struct px_err *e);

/* The time of each step of the start, as a table; only if the policy's "timings" is set. free() it. */
PX_API int px_box_timings(const struct px_box *box, char **ret_text, struct px_err *e);

/* Finds the candidate most similar to a misspelt word: it differs in at most two letters and in fewer than half of
 * them. Try each candidate in turn; `found` stays NULL if none is similar. */
struct px_near {
    const char *written, *found;
    size_t letters;             /* in which `found` differs */
};
PX_API void px_near_try(struct px_near *near, const char *word);

PX_API const char *px_version(void);

#ifdef __cplusplus
}
#endif
