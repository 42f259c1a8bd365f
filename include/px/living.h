/* px/living.h - boxes with a name, which outlive the program that started them.
 *
 * Each has one small process, its keeper, while it runs, and a directory PX_HOME/run/boxes/NAME (PX_HOME is ~/.px
 * unless the variable is set) that only its owner can enter. `px box start` starts one; so can any program, in a
 * process that becomes the keeper:
 *
 *     if (px_keeper_new(NULL, policy, &keeper, &e) < 0)
 *         return complain(&e);
 *     ...tell somebody px_keeper_name(keeper)...
 *     px_keeper_run(keeper, -1, -1, &e);           // until the box is gone
 *     px_keeper_free(keeper);
 *
 * Any program of the same user can run commands in it, several at once:
 *
 *     if (px_living_open(NULL, "build", &living, &e) < 0 || px_living_policy(living, &command, &e) < 0 ||
 *         px_living_exec(living, command, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0)
 *         return complain(&e);
 *     ...px_box_result(box)...
 *     px_box_free(box);                        // before px_living_close
 *
 * A command ends when the program that started it ends, unless it was detached: then the keeper owns it, and its
 * output is in bounded logs in the box's directory. Errors: PX041 for names, PX040 for a box that has ended.
 *
 * Owns:    a px_living owns its connection, not the box; a px_keeper owns the box and ends it. Boxes of px_living_exec are
 *          freed before px_living_close.
 * Threads: as in px/px.h. Several threads open the same box by a px_living each. */
#pragma once

#include <px/px.h>

#ifdef __cplusplus
extern "C" {
#endif

struct px_living;
struct px_keeper;

/* `home` is always the directory of px's state: NULL for $PX_HOME, or ~/.px. */

/* ---- using one ---- */

PX_API int px_living_open(const char *home, const char *name, struct px_living **ret_living, struct px_err *e);
PX_API void px_living_close(struct px_living *living);
/* The defaults of its commands: the environment, directory and limits that it was started with. You may change it, and
 * free it. */
PX_API int px_living_policy(struct px_living *living, struct px_policy **ret_policy, struct px_err *e);
PX_API int px_living_exec(struct px_living *living, const struct px_policy *command, const char *const argv[],
                          const struct px_io *io, struct px_box **ret_box, struct px_err *e);
/* Why the box ended, if it ended while a command of ours ran; "" if that is not known. */
PX_API const char *px_living_why(struct px_living *living);

/* The box's state; its commands (running ones, and the latest detached ones); its processes except pid 1. free() the
 * lists. Strings of the box are truncated and safe for a terminal. */
struct px_living_state {
    char name[64], id[20], preset[32];
    bool stopping;
    int64_t started;            /* seconds of CLOCK_REALTIME */
    uint64_t age_msec, idle_for_msec;
    uint64_t idle_msec, max_life_msec;          /* bounds; 0: none */
    uint64_t memory_bytes;
    char memory_source[24];
    unsigned commands_run, commands_running, processes;
    int pid, keeper_pid;        /* of pid 1 and of the keeper, on the host */
};
struct px_living_command {
    unsigned number;
    bool detached, running;
    int pid;                    /* in the box */
    int exit_code;              /* if it has ended */
    int64_t started;
    char text[256];
};
struct px_living_process {
    int pid, parent, host_pid;
    uint64_t age_msec, rss_bytes;
    char text[256];
};
PX_API int px_living_state(struct px_living *living, struct px_living_state *ret_state, struct px_err *e);
PX_API int px_living_commands(struct px_living *living, struct px_living_command **ret_list, size_t *ret_count,
                              struct px_err *e);
PX_API int px_living_processes(struct px_living *living, struct px_living_process **ret_list, size_t *ret_count,
                               struct px_err *e);
/* As one JSON object; free() it. With `all` also its commands, its processes, denials that belong to no command, its
 * isolation and its policy. */
PX_API int px_living_info(struct px_living *living, bool all, char **ret_json, struct px_err *e);
/* Signals the process groups of that command, or of all (0); SIGKILL goes to everything that they started. *ret_count:
 * how many commands got it. */
PX_API int px_living_signal(struct px_living *living, int signal, unsigned command, unsigned *ret_count, struct px_err *e);
/* Signals one process, by its pid in the box. Never pid 1. */
PX_API int px_living_signal_process(struct px_living *living, int signal, int pid, struct px_err *e);
/* SIGTERM to every process in it, 2 s later SIGKILL. px_living_stop returns when everything has ended;
 * px_living_ask_stop returns at once, so that several boxes can end in parallel. */
PX_API int px_living_ask_stop(struct px_living *living, struct px_err *e);
PX_API int px_living_stop(struct px_living *living, struct px_err *e);

/* ---- commands that nobody waits for ---- */

/* Standard input is an open pipe if the policy's "interactive" is set, else there is none. */
PX_API int px_living_detach(struct px_living *living, const struct px_policy *command, const char *const argv[],
                            unsigned *ret_command, struct px_err *e);
/* A command of 0 is the latest detached one. 1: it has ended, and its result is *ret_json (free() it); 0: not within msec. */
PX_API int px_living_wait(struct px_living *living, unsigned command, int msec, int *ret_exit_code, char **ret_json,
                          struct px_err *e);
/* The write end of its standard input; close() it. -1 with an error if it has none. */
PX_API int px_living_input(struct px_living *living, unsigned command, struct px_err *e);
/* Ends its standard input, when all descriptors of px_living_input are closed. */
PX_API int px_living_end_input(struct px_living *living, unsigned command, struct px_err *e);

/* A position in a log. All zero is the oldest stored byte. */
struct px_log_at {
    uint64_t segment, offset;
    bool gap;                   /* set when bytes before it were dropped */
};
/* Reads from there; the number of bytes, 0 if there are no more now. */
PX_API long px_living_log(struct px_living *living, unsigned command, enum px_stream stream, struct px_log_at *at, void *out,
                          size_t size, struct px_err *e);

/* ---- files ---- */

/* Copies a file or a directory into the box or out of it, through a command in it (tar; for a single file sh and cat will do).
 * An existing directory as the target gets the source into it; what else is there is replaced by a file, and never merged with
 * a directory. Relative paths of the box begin in the directory of its commands. From the box only regular files and
 * directories come, without set-id bits and no more than size_max ("512m"; NULL: 4g); *ret_skipped counts what was left out:
 * links, devices. A path of the host that is a link which a box may have made is refused. On failure nothing is left on the host. */
PX_API void px_living_cancel_on(struct px_living *living, int fd);      /* a copy is cancelled when it is readable; -1:
                                                                         * never */
PX_API int px_living_copy_in(struct px_living *living, const char *host_path, const char *box_path, struct px_err *e);
PX_API int px_living_copy_out(struct px_living *living, const char *box_path, const char *host_path, const char *size_max,
                              uint64_t *ret_skipped, struct px_err *e);

/* ---- all of them ---- */

/* Names of the boxes of this user, sorted; removes what dead keepers left. free() the array, which contains the
 * strings. */
PX_API int px_living_list(const char *home, char ***ret_names, size_t *ret_count, struct px_err *e);

/* ---- keeping one ---- */

/* Starts the box. The policy is borrowed until the keeper is freed. "timeout" and "output-limit" are defaults of its
 * commands; "name", "idle" and "max-life" are the keeper's; the rest applies to the box. */
PX_API int px_keeper_new(const char *home, const struct px_policy *policy, struct px_keeper **ret_keeper, struct px_err *e);
PX_API const char *px_keeper_name(const struct px_keeper *keeper);
PX_API const char *px_keeper_id(const struct px_keeper *keeper);
/* Serves until the box has ended and everything of it is removed. A readable stop_fd (-1: none) is a request to stop.
 * Takes ownership of starter_fd (-1: none), a socket of the starter: a byte on it confirms the box, a hang-up before
 * that ends it. */
PX_API int px_keeper_run(struct px_keeper *keeper, int stop_fd, int starter_fd, struct px_err *e);
/* Ends the box if it is still running. */
PX_API void px_keeper_free(struct px_keeper *keeper);

#ifdef __cplusplus
}
#endif
