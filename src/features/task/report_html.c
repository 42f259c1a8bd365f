/* One self-contained page: numbers, a timeline, the tasks, the actions with their diffs. */
#include <string.h>

#include "base/text.h"
#include "task/report.h"

enum { ROWS_MAX = 120, SHOWN_MAX = 5000, WIDTH = 1000, ROW = 9 };

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>px task report</title>\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    "<style>\n"
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1040px;padding:0 1em;color:#1b1f24;background:#fff}\n"
    "h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}\n"
    ".n{display:inline-block;margin:0 1.6em .6em 0}.n b{display:block;font-size:1.5em}\n"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25em .6em .25em 0;border-bottom:1px solid #e3e6ea;"
    "vertical-align:top}td.r,th.r{text-align:right}\n"
    "code,pre{font:12px/1.4 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}pre{margin:.4em 0;background:#f5f6f8;padding:.6em}\n"
    "svg{width:100%;height:auto;background:#f5f6f8}.ok{fill:#2e8b57}.bad{fill:#c8453b}.late{fill:#d98e04}.no{fill:#7b8494}\n"
    "@media(prefers-color-scheme:dark){body{color:#e4e7eb;background:#15181c}td,th{border-color:#2c3138}pre,svg{background:#1e2227}}\n"
    "</style></head><body>\n<h1>px task report</h1>\n";

/* Escapes untrusted text for HTML. */
static void put_text(struct px_buf *out, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t n = px_utf8_length(text + at, len - at);
        unsigned char c = (unsigned char)text[at];
        if (n == 0 || (n == 1 && c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            px_buf_puts(out, "&#xFFFD;");
        else if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
            px_buf_printf(out, "&#%d;", c);
        else
            px_buf_add(out, text + at, n);
        at += n ? n : 1;
    }
}

static void put_string(struct px_buf *out, const char *text)
{
    put_text(out, text ? text : "", text ? strlen(text) : 0);
}

static void put_number(struct px_buf *out, const char *name, uint64_t value)
{
    px_buf_printf(out, "<span class=\"n\"><b>%llu</b>%s</span>\n", (unsigned long long)value, name);
}

/* Seconds with three decimals, independent of the locale. */
static void put_seconds(struct px_buf *out, double seconds)
{
    uint64_t msec = seconds > 0 && seconds < 1e12 ? (uint64_t)(seconds * 1000 + 0.5) : 0;
    px_buf_printf(out, "%llu.%03llu", (unsigned long long)(msec / 1000), (unsigned long long)(msec % 1000));
}

static void put_time(struct px_buf *out, const char *name, double seconds)
{
    px_buf_puts(out, "<span class=\"n\"><b>");
    put_seconds(out, seconds);
    px_buf_printf(out, " s</b>%s</span>\n", name);
}

static const char *class_of(const struct px_report_action *a)
{
    if (px_equal(a->error, "timeout"))
        return "late";
    if (px_equal(a->error, "not_allowed") || px_equal(a->error, "invalid_command"))
        return "no";
    return a->exit_code == 0 && !a->error ? "ok" : "bad";
}

/* ---- the timeline: a row for each task, a bar for each action ---- */

static uint64_t scaled(double value, double span)
{
    double x = span > 0 ? value / span * WIDTH * 10 : 0;
    return x > 0 ? (uint64_t)(x < WIDTH * 10 ? x : WIDTH * 10) : 0;
}

static void put_bar(struct px_buf *out, const struct px_report_action *a, double start, double span)
{
    uint64_t x = scaled(a->begin - start, span), w = scaled(a->seconds, span);
    w = w < 10 ? 10 : w;
    px_buf_printf(out, "<rect class=\"%s\" x=\"%llu.%llu\" y=\"%zu\" width=\"%llu.%llu\" height=\"%d\"/>\n", class_of(a),
                  (unsigned long long)(x / 10), (unsigned long long)(x % 10), a->task % ROWS_MAX * ROW + 1,
                  (unsigned long long)(w / 10), (unsigned long long)(w % 10), ROW - 2);
}

static void put_timeline(struct px_buf *out, const struct px_report *r)
{
    double start = r->count ? r->actions[0].begin : 0, end = start;
    size_t rows = r->tasks_count < ROWS_MAX ? r->tasks_count : (size_t)ROWS_MAX;
    for (size_t i = 0; i < r->count; i++)
        if (r->actions[i].begin + r->actions[i].seconds > end)
            end = r->actions[i].begin + r->actions[i].seconds;
    px_buf_puts(out, "<h2>Timeline</h2>\n<p>");
    put_seconds(out, end - start);
    px_buf_printf(out, " s from left to right, a row for each task.</p>\n<svg viewBox=\"0 0 %d %zu\" role=\"img\">\n", WIDTH,
                  rows * ROW + 1);
    for (size_t i = 0; i < r->count && i < SHOWN_MAX; i++)
        put_bar(out, &r->actions[i], start, end - start);
    px_buf_puts(out, "</svg>\n");
}

/* ---- tables ---- */

static void put_tasks(struct px_buf *out, const struct px_report *r)
{
    px_buf_puts(out, "<h2>Tasks</h2>\n<table><tr><th>task<th class=\"r\">actions<th class=\"r\">failed<th class=\"r\">seconds</tr>\n");
    for (size_t i = 0; i < r->tasks_count && i < SHOWN_MAX; i++) {
        const struct px_report_task *t = &r->tasks[i];
        if (t->actions == 0)
            continue;
        px_buf_puts(out, "<tr><td>");
        put_string(out, t->name);
        px_buf_printf(out, "<td class=\"r\">%llu<td class=\"r\">%llu<td class=\"r\">", (unsigned long long)t->actions,
                      (unsigned long long)t->failed);
        put_seconds(out, t->seconds);
        px_buf_puts(out, "</tr>\n");
    }
    px_buf_puts(out, "</table>\n");
}

static void put_command(struct px_buf *out, const json_t *cmd)
{
    px_buf_puts(out, "<code>");
    for (size_t i = 0; i < json_array_size(cmd); i++) {
        const json_t *word = json_array_get(cmd, i);
        px_buf_puts(out, i ? " " : "");
        put_text(out, json_string_value(word) ? json_string_value(word) : "", json_string_length(word));
    }
    px_buf_puts(out, "</code>");
}

static void put_action(struct px_buf *out, const struct px_report *r, const struct px_report_action *a)
{
    const json_t *diff = a->key ? json_object_get(r->diffs, a->key) : NULL;
    px_buf_puts(out, "<tr><td>");
    put_string(out, r->tasks[a->task].name);
    px_buf_puts(out, "<td>");
    put_command(out, json_object_get(a->line, "cmd"));
    if (diff) {
        px_buf_puts(out, "<details><summary>diff</summary><pre>");
        put_text(out, json_string_value(diff), json_string_length(diff));
        px_buf_puts(out, "</pre></details>");
    }
    px_buf_printf(out, "<td class=\"r\">%d<td>", a->exit_code);
    put_string(out, a->error);
    px_buf_puts(out, "<td class=\"r\">");
    put_seconds(out, a->seconds);
    px_buf_printf(out, "<td class=\"r\">%zu</tr>\n", json_array_size(json_object_get(a->line, "changed_files")));
}

static void put_actions(struct px_buf *out, const struct px_report *r)
{
    px_buf_puts(out, "<h2>Actions</h2>\n<table><tr><th>task<th>command<th class=\"r\">exit<th>error<th class=\"r\">seconds"
                     "<th class=\"r\">files</tr>\n");
    for (size_t i = 0; i < r->count && i < SHOWN_MAX; i++)
        put_action(out, r, &r->actions[i]);
    px_buf_puts(out, "</table>\n");
    if (r->all > SHOWN_MAX)
        px_buf_printf(out, "<p>%llu more are counted above and not shown.</p>\n", (unsigned long long)(r->all - SHOWN_MAX));
}

int px_task_report_html(const struct px_report *r, struct px_buf *out)
{
    px_buf_puts(out, head);
    put_number(out, "tasks", px_task_report_tasks(r));
    put_number(out, "actions", r->all);
    put_number(out, "ok", r->ok);
    put_number(out, "failed", r->nonzero);
    put_number(out, "timeouts", r->timeouts);
    put_number(out, "refused", r->refused);
    put_time(out, "half of them took less", px_task_report_quantile(r, 0.5));
    put_time(out, "95 of 100 took less", px_task_report_quantile(r, 0.95));
    put_time(out, "the longest", r->longest);
    put_timeline(out, r);
    put_tasks(out, r);
    put_actions(out, r);
    px_buf_puts(out, "</body></html>\n");
    return out->err;
}
