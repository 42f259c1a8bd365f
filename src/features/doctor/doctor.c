/* doctor/doctor.c - px/doctor.h: tries every mechanism, then starts real boxes, and derives the tier from both. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <px/doctor.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "doctor/doctor.h"
#include "host/tool.h"
#include "probe/probe_internal.h"

enum { VERSION_MSEC = 2000, ROWS_MAX = 80, BOXES_MAX = 16, WORDS_MAX = 1280 };

struct entry {
    struct px_doctor_row row;   /* points into the rest */
    struct px_probe_row seen;
    enum px_probe_need need;
    char raise[256];            /* of a tool; mechanisms have constant strings */
};

struct box_entry {
    struct px_doctor_box box;
    char tier[PX_NAME_MAX];
    char why[WORDS_MAX];
    char fix[WORDS_MAX];
};

struct px_doctor {
    struct px_doctor_verdict verdict;
    struct px_release release;
    struct px_probe_host host;
    struct entry rows[ROWS_MAX];
    size_t rows_count;
    struct box_entry boxes[BOXES_MAX];
    size_t boxes_count;
    const char *raises[PX_RAISE_COUNT];
    size_t raises_count;
    char kernel[sizeof(((struct utsname *)0)->release)];
    char raise[WORDS_MAX];
};

static const char *const state_names[] = {"absent", "degraded", "enforced"};
static const char *const need_names[] = {"full", "landlock", "limits", "network", "nice to have"};

/* ---- rows ---- */

/* The texts of an entry are filled; NULL if the table is full, which a test would show. */
static struct entry *add_entry(struct px_doctor *d, const char *group, const char *name, enum px_probe_need need)
{
    if (d->rows_count >= ROWS_MAX)
        return NULL;
    struct entry *e = &d->rows[d->rows_count++];
    e->need = need;
    e->row = (struct px_doctor_row){
        .group = group, .name = name, .needed_for = need_names[need], .found = e->seen.found, .forbidden = e->seen.forbidden,
        .permitted = e->seen.permitted, .why = e->seen.why, .raise = e->raise,
    };
    return e;
}

static void probe_all(struct px_doctor *d)
{
    const struct px_probe *probe;
    for (size_t i = 0; (probe = px_probe_at(i)); i++) {
        struct entry *e = add_entry(d, probe->group, probe->name, probe->need);
        if (!e)
            return;
        px_probe_run(probe, &d->host, &e->seen);
        e->row.state = state_names[e->seen.state];
        e->row.raise = px_raise_words(e->seen.raise, d->release.family);
    }
}

static void look_for(struct px_doctor *d, const struct px_tool *tool)
{
    char path[1024];
    struct entry *e = add_entry(d, "tools", tool->name, tool->need);
    if (!e)
        return;
    e->row.state = state_names[PX_PROBE_ABSENT];
    if (!px_tool_find(tool->name, path, sizeof path)) {
        px_probe_say(e->seen.why, "there is no %s in PATH; it is for %s", tool->name, tool->feature);
        px_doctor_tool_words(tool, d->release.family, e->raise, sizeof e->raise);
        return;
    }
    int r = tool->silent ? px_fmt(e->seen.found, sizeof e->seen.found, "%s", path)
                         : px_tool_version(path, VERSION_MSEC, e->seen.found, sizeof e->seen.found);
    if (r < 0) {
        px_probe_say(e->seen.why, "unknown: %s --version gave no answer (%s)", path, px_probe_errno(r).text);
        return;
    }
    px_probe_say(e->seen.permitted, tool->silent ? "%s is there and may be run" : "running %s --version worked", path);
    e->row.state = state_names[PX_PROBE_ENFORCED];
}

/* ---- boxes ---- */

static void take_error(struct box_entry *b, const struct px_err *e)
{
    b->box.code = e->code;
    (void)px_fmt(b->why, sizeof b->why, "%s: %s", e->what, e->why);
    (void)px_fmt(b->fix, sizeof b->fix, "%.*s", (int)strcspn(e->fix, "\n"), e->fix);
}

/* 0 if the box started and ended as expected. */
static int run_box(const struct px_policy *policy, struct box_entry *b, struct px_err *e)
{
    static const char *const argv[] = {"true", NULL};
    struct px_box *box = NULL;
    int r = px_box_start(policy, argv, NULL, &box, e);
    if (r >= 0)
        r = px_box_wait(box, e);
    if (r >= 0) {
        const struct px_result *result = px_box_result(box);
        (void)px_fmt(b->tier, sizeof b->tier, "%s", result->tier);
        if (result->status != PX_STATUS_OK)
            r = px_fail(e, PX_E_INTERNAL, 0, "`true` ran in the box, but it ended with: %s", result->reason);
    }
    px_box_free(box);
    return r;
}

static void try_box(struct px_doctor *d, const char *preset, const char *require)
{
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    if (d->boxes_count >= BOXES_MAX)
        return;
    struct box_entry *b = &d->boxes[d->boxes_count++];
    b->box = (struct px_doctor_box){.preset = preset, .require = require, .tier = b->tier, .why = b->why};
    int r = px_policy_new(preset, &policy, &e);
    if (r >= 0)
        r = px_policy_set(policy, "timeout", "5s", &e);
    if (r >= 0 && require)
        r = px_policy_set(policy, "require", require, &e);
    if (r >= 0)
        r = run_box(policy, b, &e);
    b->box.starts = r >= 0;
    if (r < 0) {
        b->tier[0] = '\0';
        take_error(b, &e);
    }
    px_policy_free(policy);
}

static void try_boxes(struct px_doctor *d)
{
    const char *preset;
    try_box(d, "default", "full");
    try_box(d, "default", "landlock");
    for (size_t i = 0; (preset = px_preset_name(i)); i++)
        try_box(d, preset, NULL);
}

/* ---- the verdict ---- */

static void add_raise(struct px_doctor *d, const char *words)
{
    for (size_t i = 0; i < d->raises_count; i++)
        if (px_equal(d->raises[i], words))
            return;
    if (*words && d->raises_count < PX_COUNT_OF(d->raises))
        d->raises[d->raises_count++] = words;
}

/* What the full tier needs first, then what the others do. Missing programs have their own rows. */
static void gather_raises(struct px_doctor *d)
{
    for (int need = PX_NEED_FULL; need <= PX_NEED_NICE; need++)
        for (size_t i = 0; i < d->rows_count; i++) {
            const struct entry *e = &d->rows[i];
            if ((int)e->need == need && e->row.raise != e->raise && e->seen.state != PX_PROBE_ENFORCED)
                add_raise(d, e->row.raise);
        }
}

static const struct entry *first_gap(const struct px_doctor *d)
{
    for (size_t i = 0; i < d->rows_count; i++)
        if (d->rows[i].need == PX_NEED_FULL && d->rows[i].seen.state != PX_PROBE_ENFORCED)
            return &d->rows[i];
    return NULL;
}

/* Reports the full tier only if its box started and every probe passed. If the box started but a probe failed, or no
 * tier works, the answer is none: the doctor must not overstate. */
static void judge(struct px_doctor *d)
{
    const struct box_entry *full = &d->boxes[0], *weaker = &d->boxes[1];
    const struct entry *gap = first_gap(d);
    bool landlock = weaker->box.starts && px_equal(weaker->tier, "landlock");
    d->verdict.full = full->box.starts && px_equal(full->tier, "full") && !gap;
    d->verdict.tier = d->verdict.full ? "full" : landlock ? "landlock" : "none";
    if (d->verdict.full)
        return;
    if (gap && *gap->row.raise)
        (void)px_fmt(d->raise, sizeof d->raise, "%s", gap->row.raise);
    else if (gap)
        (void)px_fmt(d->raise, sizeof d->raise, "%s %s does not hold: %s", gap->row.group, gap->row.name, gap->row.why);
    else
        (void)px_fmt(d->raise, sizeof d->raise, "%s", full->fix);
}

PX_API int px_doctor_run(struct px_doctor **ret_doctor, struct px_err *e)
{
    PX_ERR(e);
    struct utsname host;
    const struct px_tool *tool;
    struct px_doctor *d = calloc(1, sizeof *d);
    if (!d)
        return px_no_memory(e);
    px_release_read(&d->release);
    if (uname(&host) < 0 || px_fmt(d->kernel, sizeof d->kernel, "%s", host.release) < 0)
        d->kernel[0] = '\0';
    d->verdict = (struct px_doctor_verdict){.kernel = d->kernel, .distribution = d->release.name, .raise = d->raise};
    px_probe_host_init(&d->host);
    probe_all(d);
    px_probe_host_done(&d->host);       /* before the boxes: they take ids of their own */
    try_boxes(d);
    for (size_t i = 0; (tool = px_doctor_tool_at(i)); i++)
        look_for(d, tool);
    gather_raises(d);
    judge(d);
    *ret_doctor = d;
    return 0;
}

PX_API void px_doctor_free(struct px_doctor *doctor)
{
    free(doctor);
}

/* ---- looking at it ---- */

PX_API const struct px_doctor_verdict *px_doctor_verdict(const struct px_doctor *doctor)
{
    return &doctor->verdict;
}

PX_API const struct px_doctor_row *px_doctor_row(const struct px_doctor *doctor, size_t index)
{
    return index < doctor->rows_count ? &doctor->rows[index].row : NULL;
}

PX_API const struct px_doctor_box *px_doctor_box(const struct px_doctor *doctor, size_t index)
{
    return index < doctor->boxes_count ? &doctor->boxes[index].box : NULL;
}

PX_API const char *px_doctor_inside(const struct px_doctor *doctor, size_t index)
{
    return index < doctor->host.inside_count ? doctor->host.inside[index] : NULL;
}

PX_API const char *px_doctor_raise(const struct px_doctor *doctor, size_t index)
{
    return index < doctor->raises_count ? doctor->raises[index] : NULL;
}

/* ---- JSON ---- */

/* An empty string is printed as null. */
static void print_text(struct px_json *j, const char *name, const char *text)
{
    px_json_text(j, name, *text ? text : NULL);
}

static void print_row(struct px_json *j, const struct px_doctor_row *row)
{
    px_json_object(j, NULL);
    px_json_text(j, "group", row->group);
    px_json_text(j, "name", row->name);
    px_json_text(j, "state", row->state);
    print_text(j, "found", row->found);
    px_json_text(j, "needed_for", row->needed_for);
    px_json_object(j, "proof");
    print_text(j, "forbidden", row->forbidden);
    print_text(j, "permitted", row->permitted);
    px_json_end(j);
    print_text(j, "why", row->why);
    print_text(j, "raise", row->raise);
    px_json_end(j);
}

static void print_box(struct px_json *j, const struct px_doctor_box *box)
{
    char code[16];
    px_json_object(j, NULL);
    if (box->require)
        px_json_text(j, "require", box->require);
    else
        px_json_text(j, "preset", box->preset);
    px_json_bool(j, "starts", box->starts);
    print_text(j, "tier", box->tier);
    px_json_text(j, "code", box->code && px_fmt(code, sizeof code, "PX%03d", box->code) >= 0 ? code : NULL);
    print_text(j, "why", box->why);
    px_json_end(j);
}

static void print_boxes(struct px_json *j, const struct px_doctor *d, const char *name, bool tiers)
{
    px_json_array(j, name);
    for (size_t i = 0; i < d->boxes_count; i++)
        if ((d->boxes[i].box.require != NULL) == tiers)
            print_box(j, &d->boxes[i].box);
    px_json_end(j);
}

static void print_list(struct px_json *j, const struct px_doctor *d, const char *name,
                       const char *(*at)(const struct px_doctor *, size_t))
{
    px_json_array(j, name);
    for (size_t i = 0; at(d, i); i++)
        px_json_text(j, NULL, at(d, i));
    px_json_end(j);
}

PX_API int px_doctor_json(const struct px_doctor *doctor, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_json j = {.out = &out};
    px_json_object(&j, NULL);
    px_json_int(&j, "schema", 1);
    px_json_text(&j, "tier", doctor->verdict.tier);
    px_json_bool(&j, "full", doctor->verdict.full);
    px_json_text(&j, "kernel", doctor->verdict.kernel);
    px_json_text(&j, "distribution", doctor->verdict.distribution);
    print_list(&j, doctor, "inside", px_doctor_inside);
    px_json_array(&j, "rows");
    for (size_t i = 0; i < doctor->rows_count; i++)
        print_row(&j, &doctor->rows[i].row);
    px_json_end(&j);
    print_boxes(&j, doctor, "tiers", true);
    print_boxes(&j, doctor, "presets", false);
    print_list(&j, doctor, "raise", px_doctor_raise);
    px_json_end(&j);
    px_buf_putc(&out, '\n');
    if (out.err < 0)
        return px_fail(e, PX_E_MEMORY, out.err, "the report is too large to print");
    *ret_json = px_buf_take(&out);
    return 0;
}
