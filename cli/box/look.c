/* px box list, show, signal and stop. */
#include "cli/box/box.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <px/living.h>

#include "base/text.h"

/* ---- numbers for people ---- */

static const char *age(uint64_t msec, char out[24])
{
    static const struct {
        unsigned long long seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    unsigned long long seconds = msec / 1000;
    for (size_t i = 0; i < 4; i++)
        if (seconds >= 2 * units[i].seconds || i == 3) {
            (void)snprintf(out, 24, "%llu%c", seconds / units[i].seconds, units[i].unit);
            break;
        }
    return out;
}

static const char *limit(uint64_t msec, char out[24])
{
    return msec ? age(msec, out) : "none";
}

static const char *size(uint64_t bytes, char out[24])
{
    static const char units[] = "KMGT";
    uint64_t value = bytes / 1024;
    size_t i = 0;
    for (; value >= 10240 && i < 3; i++)
        value /= 1024;
    (void)snprintf(out, 24, "%llu%ciB", (unsigned long long)value, units[i]);
    return out;
}

/* ---- list ---- */

/* A keeper that does not answer is worth a line, too. */
static void list_one(const char *name, bool json, bool first)
{
    struct px_living *living = NULL;
    struct px_living_state s = {0};
    struct px_err e = {0};
    char *text = NULL, a[24], m[24];
    int r = px_living_open(NULL, name, &living, &e);
    if (r >= 0)
        r = json ? px_living_info(living, false, &text, &e) : px_living_state(living, &s, &e);
    if (json && r >= 0) {
        text[strcspn(text, "\n")] = '\0';
        print_own(first ? "" : ",");
        print_own(text);        /* own: JSON has escapes */
    } else if (json) {
        print("%s{\"schema\":1,\"name\":\"%s\",\"state\":\"unreachable\"}", first ? "" : ",", name);
    } else if (r >= 0) {
        print("%-20s %-16s %6s %8u %9u %9s  %s\n", s.name, s.id, age(s.age_msec, a), s.commands_running, s.processes,
              size(s.memory_bytes, m), s.stopping ? "stopping" : "running");
    } else {
        print("%-20s %-16s %6s %8s %9s %9s  %s\n", name, "-", "-", "-", "-", "-", "unreachable");
    }
    free(text);
    px_living_close(living);
}

int box_list(struct args *a)
{
    const struct box_words *w = a->request;
    const struct cli *cli = a->cli;
    struct px_err e = {0};
    char **names = NULL;
    size_t count = 0;
    if (px_living_list(NULL, &names, &count, &e) < 0)
        return say_error(cli, &e, 1);
    if (w->names && !cli->json) {     /* from the directory alone: nobody is asked who might not answer */
        for (size_t i = 0; i < count; i++)
            print("%s\n", names[i]);
        free(names);
        return flush();
    }
    if (cli->json)
        print("{\"boxes\":[");
    else
        print("%-20s %-16s %6s %8s %9s %9s  %s\n", "NAME", "ID", "AGE", "COMMANDS", "PROCESSES", "MEMORY", "STATE");
    for (size_t i = 0; i < count; i++)
        list_one(names[i], cli->json, i == 0);
    if (cli->json)
        print("]}\n");
    free(names);
    return flush();
}

/* ---- show ---- */

static void show_commands(const struct px_living_command *list, size_t count)
{
    print("\n%-8s %-9s %6s %-10s  %s\n", "COMMAND", "KIND", "PID", "STATE", "WORDS");
    for (size_t i = 0; i < count; i++) {
        char state[24] = "running";
        if (!list[i].running)
            (void)snprintf(state, sizeof state, "exit %d", list[i].exit_code);
        print("%-8u %-9s %6d %-10s  %s\n", list[i].number, list[i].detached ? "detached" : "attended", list[i].pid, state,
              list[i].text);
    }
}

static void show_processes(const struct px_living_process *list, size_t count)
{
    print("\n%6s %6s %6s %9s  %s\n", "PID", "PARENT", "AGE", "MEMORY", "COMMAND LINE");
    for (size_t i = 0; i < count; i++) {
        char a[24], m[24];
        print("%6d %6d %6s %9s  %s\n", list[i].pid, list[i].parent, age(list[i].age_msec, a), size(list[i].rss_bytes, m),
              list[i].text);
    }
}

static void show_state(const struct px_living_state *s)
{
    char a[24], b[24], m[24];
    print("name       %s\nid         %s\n", s->name, s->id);
    print("state      %s\npreset     %s\n", s->stopping ? "stopping" : "running", s->preset);
    print("age        %s, at most %s\n", age(s->age_msec, a), limit(s->max_life_msec, b));
    print("idle       %s, at most %s\n", s->idle_for_msec ? age(s->idle_for_msec, a) : "no", limit(s->idle_msec, b));
    print("commands   %u running, %u run\n", s->commands_running, s->commands_run);
    print("processes  %u\nmemory     %s (%s)\n", s->processes, size(s->memory_bytes, m), s->memory_source);
    print("host       pid 1 is %d, the keeper %d\n", s->pid, s->keeper_pid);
}

static int show_text(struct px_living *living, struct px_err *e)
{
    struct px_living_state s;
    struct px_living_command *running = NULL;
    struct px_living_process *processes = NULL;
    size_t command_count = 0, process_count = 0;
    int r = px_living_state(living, &s, e);
    if (r >= 0)
        r = px_living_commands(living, &running, &command_count, e);
    if (r >= 0)
        r = px_living_processes(living, &processes, &process_count, e);
    if (r >= 0) {
        show_state(&s);
        if (command_count)
            show_commands(running, command_count);
        if (process_count)
            show_processes(processes, process_count);
    }
    free(running);
    free(processes);
    return r;
}

int box_show(struct args *a)
{
    const struct cli *cli = a->cli;
    struct px_err e = {0};
    struct px_living *living = NULL;
    char *text = NULL;
    int status = 0, r = px_living_open(NULL, a->names[0], &living, &e);
    if (r >= 0)
        r = cli->json ? px_living_info(living, true, &text, &e) : show_text(living, &e);
    px_living_close(living);
    if (r >= 0 && text)
        status = print_text(text) < 0;
    free(text);
    return r < 0 ? say_error(cli, &e, 1) : flush() || status;
}

/* ---- signal ---- */

static int signal_number(const char *text)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"KILL", SIGKILL},  {"TERM", SIGTERM},
                 {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"STOP", SIGSTOP}, {"CONT", SIGCONT},  {"TSTP", SIGTSTP},
                 {"ABRT", SIGABRT}, {"ALRM", SIGALRM}, {"PIPE", SIGPIPE}, {"CHLD", SIGCHLD},  {"WINCH", SIGWINCH}};
    uint64_t number = 0;
    if (px_parse_u64(text, 64, &number) == 0 && number > 0)
        return (int)number;
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, text) == 0)
            return names[i].number;
    return -1;
}

static int send_signal(const struct cli *cli, const char *name, int number, const struct box_words *w)
{
    struct px_err e = {0};
    struct px_living *living = NULL;
    unsigned count = 1;
    int r = px_living_open(NULL, name, &living, &e);
    if (r >= 0)
        r = w->process ? px_living_signal_process(living, number, (int)w->process, &e)
                       : px_living_signal(living, number, (unsigned)w->command, &count, &e);
    px_living_close(living);
    if (r < 0)
        return say_error(cli, &e, 1);
    if (cli->json)
        print("{\"name\":\"%s\",\"signalled\":%u}\n", name, count);
    else if (count == 0)
        say("px: no command runs in box '%s', so none got the signal", name);
    return flush();
}

int box_signal(struct args *a)
{
    const struct box_words *w = a->request;
    int number = signal_number(a->names[1]);
    if (number < 0)
        return usage_error(a->cli, USAGE_STATUS, "Write a name or a number: px box signal build TERM.", "there is no signal '%s'", a->names[1]);
    if (w->command && w->process)
        return usage_error(a->cli, USAGE_STATUS, NULL, "--command and --process exclude each other");
    return send_signal(a->cli, a->names[0], number, w);
}

/* ---- stop ---- */

/* One that has ended by itself meanwhile. */
static bool is_gone(const char *name)
{
    enum { NO_BOX = 41 };
    struct px_living *open = NULL;
    struct px_err e = {0};
    int r = px_living_open(NULL, name, &open, &e);
    px_living_close(open);
    return r < 0 && e.code == NO_BOX;
}

/* All are asked before the first is waited for. `all`: nobody has named them, so one that ended meanwhile is no error. */
static int stop_all(const struct cli *cli, const char *const *names, size_t count, bool all)
{
    struct px_living **open = calloc(count + 1, sizeof *open);
    int status = 0;
    if (!open)
        return fail(cli, PX_E_MEMORY, 1, NULL, "px cannot stop %zu boxes at once", count);
    for (size_t i = 0; i < count; i++) {
        struct px_err e = {0};
        if ((px_living_open(NULL, names[i], &open[i], &e) < 0 || px_living_ask_stop(open[i], &e) < 0) &&
            !(all && is_gone(names[i])))
            status = say_error(cli, &e, 1);
    }
    for (size_t i = 0; i < count; i++) {
        struct px_err e = {0};
        if (open[i] && px_living_stop(open[i], &e) < 0 && !(all && is_gone(names[i])))
            status = say_error(cli, &e, 1);
        px_living_close(open[i]);
    }
    free(open);
    if (cli->json && status == 0)
        print("{\"stopped\":%zu}\n", count);
    return flush() || status;
}

int box_stop(struct args *a)
{
    const struct box_words *w = a->request;
    struct px_err e = {0};
    char **names = NULL;
    size_t count = 0;
    if (w->all == (a->count > 0))
        return usage_error(a->cli, USAGE_STATUS, "Write px box stop NAME... or px box stop --all.", "px box stop needs names, or --all");
    if (!w->all)
        return stop_all(a->cli, a->names, a->count, false);
    if (px_living_list(NULL, &names, &count, &e) < 0)
        return say_error(a->cli, &e, 1);
    int status = stop_all(a->cli, (const char *const *)names, count, true);
    free(names);
    return status;
}
