/* px doctor: what this host can enforce, as a table for a person or as JSON. */
#include "args.h"

#include <px/doctor.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char below[] = "                             ";
static const char green[] = "\033[32m", yellow[] = "\033[33m", red[] = "\033[31m", plain[] = "";

static void print_line(const char *colour, const char *group, const char *name, const char *state, const char *need,
                       const char *text)
{
    print("%-11s%-19s", group, name);
    print_own(colour);          /* own: one of three */
    print(*need || *text ? "%-9s" : "%s", state);
    print_own(*colour ? "\033[0m" : "");
    if (*text)
        print(" %-13s %s", need, text);
    else if (*need)
        print(" %s", need);
    print("\n");
}

static const char *state_colour(const char *state)
{
    return state[0] == 'e' ? green : state[0] == 'd' ? yellow : red;    /* enforced, degraded, absent */
}

static void print_row(const struct px_doctor_row *row, bool colour, bool verbose)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%s%s%s", row->found, *row->found && *row->why ? "; " : "", row->why);
    print_line(colour ? state_colour(row->state) : plain, row->group, row->name, row->state, row->needed_for, text);
    if (!verbose)
        return;
    if (*row->permitted)
        print("%spermitted: %s\n", below, row->permitted);
    if (*row->forbidden)
        print("%sforbidden: %s\n", below, row->forbidden);
    if (*row->raise)
        print("%sraise: %s\n", below, row->raise);
}

static void print_box(const struct px_doctor_box *box, bool colour)
{
    char name[64], text[1400];
    if (box->require)
        (void)snprintf(name, sizeof name, "require %s", box->require);
    else
        (void)snprintf(name, sizeof name, "preset %s", box->preset);
    if (box->starts)
        (void)snprintf(text, sizeof text, "tier %s", box->tier);
    else
        (void)snprintf(text, sizeof text, "PX%03d %s", box->code, box->why);
    print_line(!colour ? plain : box->starts ? green : red, "boxes", name, box->starts ? "starts" : "refused",
               box->require ? box->require : "", text);
}

static void print_table(const struct px_doctor *doctor, bool verbose)
{
    const struct px_doctor_verdict *v = px_doctor_verdict(doctor);
    bool colour = in_colour(STDOUT_FILENO);
    print("%s, Linux %s\n", v->distribution, v->kernel);
    for (size_t i = 0; px_doctor_inside(doctor, i); i++)
        print("%s\n", px_doctor_inside(doctor, i));
    print("\n");
    print_line(plain, "GROUP", "WHAT", "STATE", "NEEDED FOR", "FOUND");
    for (size_t i = 0; px_doctor_row(doctor, i); i++)
        print_row(px_doctor_row(doctor, i), colour, verbose);
    for (size_t i = 0; px_doctor_box(doctor, i); i++)
        print_box(px_doctor_box(doctor, i), colour);
    print("\n");
    for (size_t i = 0; px_doctor_raise(doctor, i); i++)
        print(i ? "  - %s.\n" : "What would raise it:\n  - %s.\n", px_doctor_raise(doctor, i));
    if (px_doctor_raise(doctor, 0))
        print("\n");
}

static int show(const struct cli *cli, const struct px_doctor *doctor)
{
    const struct px_doctor_verdict *v = px_doctor_verdict(doctor);
    if (cli->verbose >= 0)
        print_table(doctor, cli->verbose > 0);
    print("tier: %s%s%s\n", v->tier, *v->raise ? "; to raise it: " : "", v->raise);
    return flush() == 0 && v->full ? 0 : 1;
}

static int show_json(const struct cli *cli, const struct px_doctor *doctor)
{
    struct px_err e = {0};
    char *text = NULL;
    if (px_doctor_json(doctor, &text, &e) < 0)
        return say_error(cli, &e, 1);
    int written = print_text(text);
    free(text);
    return written == 0 && px_doctor_verdict(doctor)->full ? 0 : 1;
}

static int run_doctor(struct args *a)
{
    struct px_err e = {0};
    struct px_doctor *doctor = NULL;
    if (px_doctor_run(&doctor, &e) < 0)
        return say_error(a->cli, &e, 1);
    int status = a->cli->json ? show_json(a->cli, doctor) : show(a->cli, doctor);
    px_doctor_free(doctor);
    return status;
}

const struct verb doctor_verbs[] = {
    {"", "[--json] [-v|-q]", "what this host can enforce, proved", run_doctor},
    {0},
};
