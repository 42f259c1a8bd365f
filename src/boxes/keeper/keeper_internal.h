/* keeper/keeper_internal.h - what the parts of a keeper share.
 *
 * Owns:    the box, its name, the connections of its users, and its detached commands.
 * Mustn't: wait for a user, or keep anything of the process that started it. */
#pragma once

#include "box/supervise.h"
#include "named/named_internal.h"

/* More users than a box can have commands, so that one too many gets an error, and queries and stops still have
 * room. */
enum { PX_KEEPER_USERS_MAX = PX_INIT_COMMANDS_MAX + 128, PX_KEEPER_GUESTS_MAX = 1024, PX_KEEPER_COMMANDS_MAX = 256, PX_KEEPER_ENDED_MAX = 32 };

/* A connection. */
struct px_keeper_user {
    struct px_keeper_user *next;
    int socket;
    bool took_home, wants_stop, gone;
    unsigned waits_for;         /* a detached command; 0: none */
};

/* A command that a user runs itself. */
struct px_keeper_client {
    struct px_keeper_client *next;
    unsigned number;
    int pid, pidfd;             /* in the box; readable when it has ended */
    int64_t started_sec;
    char *text;                 /* its words, each with its NUL */
    size_t length;
};

/* A detached command. */
struct px_keeper_command {
    struct px_keeper_command *next;
    unsigned number;
    struct px_box *box;         /* NULL once it has ended */
    int pipe[2];                /* of stdout and stderr, from the box's flow to the keeper */
    struct px_named_log log[2];
    int input;                  /* the writing end of its standard input, or -EBADF */
    int pid;
    int64_t started_sec;
    char *text;
    size_t length;
    int exit_code;
    char *result;               /* as JSON, once it has ended */
    struct px_err failed;       /* or why there is no result */
};

struct px_keeper {
    struct px_named_place place;
    const struct px_policy *policy;
    struct px_box *home;
    int listener, defaults;
    int starter;                /* until it has closed its end */
    struct px_keeper_user *users;
    size_t users_count;
    struct px_keeper_client *guests;
    size_t guests_count;
    struct px_keeper_command *commands;           /* the newest first */
    unsigned numbers;           /* of commands so far */
    int64_t started_sec;
    uint64_t started_nsec, idle_since_nsec;     /* 0: something runs */
    uint64_t idle_nsec, max_life_nsec;          /* 0: no limit */
    char why[256];              /* it ends, and why; "" while it lives */
    uint64_t kill_nsec;         /* when everything in it is killed */
    struct px_err stuck;        /* it would not die */
};

/* keep.c */
void px_keeper_begin_end(struct px_keeper *k, const char *why);   /* SIGTERM to all, and the clock for the rest */

/* keep_serve.c: takes what a user has sent, a few messages at a time. Whoever cannot be answered is marked as gone. */
void px_keeper_serve(struct px_keeper *k, struct px_keeper_user *u);
void px_keeper_answer(struct px_keeper_user *u, const struct px_named_message *m, int fd);
void px_keeper_answer_end(struct px_keeper_user *u, const struct px_keeper_command *c);      /* to who waits for a command */
int px_keeper_signal_commands(const struct px_keeper *k, unsigned number, int signal);   /* 0: all; how many */

/* keep_command.c */
int px_keeper_command_run(struct px_keeper *k, const char *text, size_t length, unsigned *ret_number, struct px_err *e);
/* Moves what there is to move; true when it has just ended. */
bool px_keeper_command_step(struct px_keeper_command *c);
struct px_keeper_command *px_keeper_command_find(struct px_keeper *k, unsigned number);
void px_keeper_command_forget_old(struct px_keeper *k);
void px_keeper_command_free(struct px_keeper_command *c);
size_t px_keeper_command_running(const struct px_keeper *k);

/* keep_info.c */
int px_keeper_look(const struct px_keeper *k, int which, struct px_buf *out);
int px_keeper_info(const struct px_keeper *k, bool all, struct px_buf *out);
