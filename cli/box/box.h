/* cli/box/box.h - the verbs of px box, one function each. They get the words behind the verb and return the exit status. */
#pragma once

#include "cli.h"
#include "words.h"

/* cli/box/box.c: SIGTERM, SIGINT and SIGHUP as a descriptor. */
int stop_signals(void);

/* cli/box/look.c */
int box_list(struct cli *cli, int argc, char **argv);
int box_show(struct cli *cli, int argc, char **argv);
int box_signal(struct cli *cli, int argc, char **argv);
int box_stop(struct cli *cli, int argc, char **argv);

/* cli/box/logs.c */
int box_logs(struct cli *cli, int argc, char **argv);
int box_attach(struct cli *cli, int argc, char **argv);

/* cli/box/copy.c */
int box_copy(struct cli *cli, int argc, char **argv);
