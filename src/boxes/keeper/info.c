/* What a keeper reports about its box. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "keeper/keeper_internal.h"

enum { MSEC = 1000000 };        /* in nanoseconds */

/* ---- pieces ---- */

static void print_limit(struct px_json *j, const char *name, uint64_t msec)
{
    if (msec)
        px_json_decimal(j, name, msec, 3);
    else
        px_json_null(j, name);
}

static void print_words(struct px_json *j, const char *text, size_t length)
{
    px_json_array(j, "argv");
    for (size_t at = 0; at < length;) {
        size_t n = strnlen(text + at, length - at);
        px_json_bytes(j, NULL, text + at, n);
        at += n + 1;
    }
    px_json_end(j);
}

static void print_command(struct px_json *j, const struct px_keeper_command *c)
{
    px_json_object(j, NULL);
    px_json_uint(j, "command", c->number);
    px_json_bool(j, "detached", true);
    px_json_bool(j, "running", c->box != NULL);
    px_json_int(j, "pid", c->pid);
    px_json_int(j, "started", c->started_sec);
    print_words(j, c->text, c->length);
    if (c->box)
        px_json_null(j, "exit_code");
    else
        px_json_int(j, "exit_code", c->exit_code);
    px_json_uint(j, "log_bytes_lost", c->log[0].lost + c->log[1].lost);
    px_json_end(j);
}

static void print_commands(const struct px_keeper *k, struct px_json *j)
{
    px_json_array(j, "commands");
    for (const struct px_keeper_client *g = k->guests; g; g = g->next) {
        px_json_object(j, NULL);
        px_json_uint(j, "command", g->number);
        px_json_bool(j, "detached", false);
        px_json_bool(j, "running", true);
        px_json_int(j, "pid", g->pid);
        px_json_int(j, "started", g->started_sec);
        print_words(j, g->text, g->length);
        px_json_null(j, "exit_code");
        px_json_end(j);
    }
    for (const struct px_keeper_command *c = k->commands; c; c = c->next)
        print_command(j, c);
    px_json_end(j);
}

static uint64_t read_number(int dir, const char *file)
{
    char text[64];
    uint64_t value = 0;
    if (dir < 0 || px_read_file(dir, file, text, sizeof text) <= 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return px_parse_u64(text, UINT64_MAX, &value) < 0 ? 0 : value;
}

/* From the cgroup if there is one; else the sum over its processes, which counts shared pages more than once. */
static const char *read_memory(const struct px_keeper *k, const struct px_keeper_process *list, size_t count, uint64_t *ret_bytes)
{
    const struct px_cgroup *cg = &k->home->cgroup;
    *ret_bytes = 0;
    if (k->home->has_cgroup && cg->on_v2[PX_CG_MEMORY]) {
        *ret_bytes = read_number(cg->v2.fd, "memory.current");
        return "cgroup2.current";
    }
    if (k->home->has_cgroup && cg->v1[PX_CG_MEMORY].fd >= 0) {
        *ret_bytes = read_number(cg->v1[PX_CG_MEMORY].fd, "memory.usage_in_bytes");
        return "cgroup1.usage";
    }
    for (size_t i = 0; i < count; i++)
        *ret_bytes += list[i].rss_bytes;
    return "rss";
}

static void print_names(struct px_json *j, const char *name, const char (*list)[PX_NAME_MAX], size_t count)
{
    px_json_array(j, name);
    for (size_t i = 0; i < count; i++)
        px_json_text(j, NULL, list[i]);
    px_json_end(j);
}

/* The refused calls that belong to no command; each command's own are in its result. */
static void print_denials(const struct px_keeper *k, struct px_json *j)
{
    struct px_result r = {0};
    struct px_carrier *carrier = k->home->carrier;
    px_report_denials(k->home, &r);
    px_auto_free void *told = carrier ? carrier->tell(carrier, NULL, &r) : NULL;        /* of all commands together */
    px_report_print_denials(j, &r);
}

enum { PORT_TEXT = sizeof(struct px_port) + 32 };

/* With the host ports that the kernel chose. */
static void show_ports(const struct px_keeper *k, char texts[][PORT_TEXT], char *items[])
{
    for (size_t i = 0; i < k->policy->publish.count; i++) {
        const struct px_port *p = px_box_port(k->home, i);
        items[i] = p && p->chosen ? texts[i] : k->policy->publish.items[i];
        if (items[i] == texts[i])
            (void)px_fmt(texts[i], PORT_TEXT, strchr(p->address, ':') ? "[%s]:%u:%u%s" : "%s:%u:%u%s", p->address, p->host, p->box,
                         p->udp ? "/udp" : "");
    }
}

/* Values of variables are often secrets, and no reader needs them. */
static void print_policy(const struct px_keeper *k, struct px_json *j)
{
    struct px_policy shown = *k->policy;
    char texts[PX_NET_PORTS_MAX][PORT_TEXT], *items[PX_NET_PORTS_MAX];
    show_ports(k, texts, items);
    shown.env = (struct px_text_list){0};
    shown.publish.items = items;
    px_json_object(j, "policy");
    px_field_print(px_policy_fields, &shown, j);
    px_json_array(j, "env_names");
    for (size_t i = 0; i < k->policy->env.count; i++)
        px_json_bytes(j, NULL, k->policy->env.items[i], strcspn(k->policy->env.items[i], "="));
    px_json_end(j);
    px_json_end(j);
}

/* ---- in numbers ---- */

static void fill_state(const struct px_keeper *k, struct px_living_state *s)
{
    px_auto_free struct px_keeper_process *list = NULL;
    size_t count = px_keeper_processes(k->home->pid, &list);
    uint64_t now = px_now_nsec();
    *s = (struct px_living_state){
        .stopping = k->why[0],
        .started = k->started_sec,
        .age_msec = (now - k->started_nsec) / MSEC,
        .idle_for_msec = k->idle_since_nsec ? (now - k->idle_since_nsec) / MSEC : 0,
        .idle_msec = k->idle_nsec / MSEC,
        .max_life_msec = k->max_life_nsec / MSEC,
        .commands_run = k->numbers,
        .commands_running = (unsigned)(k->guests_count + px_keeper_command_running(k)),
        .processes = (unsigned)count,
        .pid = k->home->pid,
        .keeper_pid = getpid(),
    };
    (void)px_fmt(s->memory_source, sizeof s->memory_source, "%s", read_memory(k, list, count, &s->memory_bytes));
    (void)px_fmt(s->name, sizeof s->name, "%s", k->place.name);
    (void)px_fmt(s->id, sizeof s->id, "%s", k->home->id);
    (void)px_fmt(s->preset, sizeof s->preset, "%s", k->policy->preset);
}

/* As much as there is room for, without control characters. */
static void safe_text(char out[256], const char *text, size_t length)
{
    px_auto_buf struct px_buf line = PX_BUF(4096);
    (void)px_buf_quote(&line, text, length < 250 ? length : 250);
    size_t n = line.err < 0 ? 0 : line.len < 255 ? line.len : 255;
    if (n)
        memcpy(out, line.data, n);
    out[n] = '\0';
}

static void safe_words(char out[256], const char *text, size_t length)
{
    char copy[256] = "";
    size_t n = length < sizeof copy ? length : sizeof copy;
    for (size_t i = 0; i < n; i++)
        copy[i] = text[i] ? text[i] : ' ';
    while (n > 0 && copy[n - 1] == ' ')
        n--;
    safe_text(out, copy, n);
}

static void look_commands(const struct px_keeper *k, struct px_buf *out)
{
    for (const struct px_keeper_client *g = k->guests; g; g = g->next) {
        struct px_living_command c = {.number = g->number, .running = true, .pid = g->pid, .started = g->started_sec};
        safe_words(c.text, g->text, g->length);
        px_buf_add(out, &c, sizeof c);
    }
    for (const struct px_keeper_command *d = k->commands; d; d = d->next) {
        struct px_living_command c = {.number = d->number, .detached = true, .running = d->box, .pid = d->pid,
                                      .exit_code = d->exit_code, .started = d->started_sec};
        safe_words(c.text, d->text, d->length);
        px_buf_add(out, &c, sizeof c);
    }
}

static void look_processes(const struct px_keeper *k, struct px_buf *out)
{
    px_auto_free struct px_keeper_process *list = NULL;
    size_t count = px_keeper_processes(k->home->pid, &list);
    for (size_t i = 0; i < count; i++) {
        char line[512];
        struct px_living_process p = {.pid = list[i].pid, .parent = list[i].parent, .host_pid = list[i].host_pid,
                                      .age_msec = px_keeper_age_msec(&list[i]), .rss_bytes = list[i].rss_bytes};
        safe_text(p.text, line, px_keeper_command_line(list[i].host_pid, line, sizeof line));
        px_buf_add(out, &p, sizeof p);
    }
}

int px_keeper_look(const struct px_keeper *k, int which, struct px_buf *out)
{
    struct px_living_state state;
    if (which == PX_KEEP_COMMANDS) {
        look_commands(k, out);
    } else if (which == PX_KEEP_PROCESSES) {
        look_processes(k, out);
    } else {
        fill_state(k, &state);
        px_buf_add(out, &state, sizeof state);
    }
    return out->err;
}

/* ---- as JSON ---- */

static void print_box(const struct px_keeper *k, struct px_json *j)
{
    struct px_living_state s;
    fill_state(k, &s);
    px_json_int(j, "schema", 1);
    px_json_text(j, "name", s.name);
    px_json_text(j, "id", s.id);
    px_json_text(j, "state", s.stopping ? "stopping" : "running");
    px_json_text(j, "preset", s.preset);
    px_json_int(j, "started", s.started);
    px_json_decimal(j, "age_s", s.age_msec, 3);
    print_limit(j, "idle_s", s.idle_msec);
    print_limit(j, "max_life_s", s.max_life_msec);
    print_limit(j, "idle_for_s", s.idle_for_msec);
    px_json_int(j, "pid", s.pid);
    px_json_int(j, "keeper_pid", s.keeper_pid);
    px_json_uint(j, "commands_run", s.commands_run);
    px_json_uint(j, "commands_running", s.commands_running);
    px_json_uint(j, "processes_running", s.processes);
    px_json_uint(j, "memory_bytes", s.memory_bytes);
    px_json_text(j, "memory_source", s.memory_source);
}

int px_keeper_info(const struct px_keeper *k, bool all, struct px_buf *out)
{
    struct px_json j = {.out = out};
    const struct px_result *r = &k->home->result;
    px_auto_free struct px_keeper_process *list = NULL;

    px_json_object(&j, NULL);
    print_box(k, &j);
    if (all) {
        print_commands(k, &j);
        size_t count = px_keeper_processes(k->home->pid, &list);
        px_keeper_print_processes(list, count, &j);
        print_denials(k, &j);
        px_json_object(&j, "isolation");
        px_json_text(&j, "tier", r->tier);
        print_names(&j, "mechanisms", r->mechanisms, r->mechanisms_count);
        print_names(&j, "missing", r->missing, r->missing_count);
        px_json_end(&j);
        print_policy(k, &j);
    }
    px_json_end(&j);
    px_buf_putc(out, '\n');
    return out->err;
}
