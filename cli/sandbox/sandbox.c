/* px sandbox: environments, the store they live in, and what boxes hold. */
#include "cli/sandbox/project.h"
#include "cli/sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- one call ---- */

int sandbox_begin(struct cli *cli, struct sandbox_call *ret_call)
{
    *ret_call = (struct sandbox_call){.cli = cli};
    progress_begin(&ret_call->progress, cli->verbose < 0);
    if (px_sandbox_open(NULL, &ret_call->sandbox, &ret_call->e) < 0)
        return -1;
    px_sandbox_progress(ret_call->sandbox, progress_tell, &ret_call->progress);
    return 0;
}

static int answer(const struct sandbox_call *call, int (*show)(const json_t *answer, bool quiet))
{
    json_t *value = json_loads(call->json ? call->json : "{}", 0, NULL);
    int status = show && value ? show(value, call->cli->json) : 0;
    json_decref(value);
    if (call->cli->json && call->json && print_text(call->json) < 0)
        return 1;
    return flush() ? 1 : status;
}

int sandbox_end(struct sandbox_call *call, int r, int (*show)(const json_t *answer, bool quiet))
{
    progress_end(&call->progress);
    int status = r < 0 ? say_error(call->cli, &call->e, 1) : answer(call, show);
    free(call->json);
    px_sandbox_close(call->sandbox);
    return status;
}

const char *size_text(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    uint64_t scaled = bytes * 10;
    while (scaled >= 10240 && unit + 1 < sizeof units / sizeof units[0]) {
        scaled /= 1024;
        unit++;
    }
    if (unit == 0)
        (void)snprintf(out, 32, "%llu %s", (unsigned long long)bytes, units[0]);
    else
        (void)snprintf(out, 32, "%llu.%llu %s", (unsigned long long)(scaled / 10), (unsigned long long)(scaled % 10),
                       units[unit]);
    return out;
}

/* ---- the command ---- */

#define IMAGE(member) offsetof(struct sandbox_image, member)

static const struct option_row base_rows[] = {
    {"lock", 0, OPTION_TEXT, offsetof(struct px_base_build, lock), "FILE", "exactly the packages that it names"},
    {"force", 0, OPTION_FLAG, offsetof(struct px_base_build, force), NULL, "again from the packages it names, and compare"},
    {0},
};
static const struct option_row image_rows[] = {
    {"base", 0, OPTION_TEXT, IMAGE(how.base), "NAME", "the base (the project's, or debian-12)"},
    {"with", 0, OPTION_LIST, IMAGE(with), "CAPABILITY[,CAPABILITY]", "what it can do beside the base"},
    {"tag", 0, OPTION_TEXT, IMAGE(how.tag), "NAME", "its name"},
    {"out", 'o', OPTION_TEXT, IMAGE(how.out), "PATH", "write it there; a name in .tar is an archive, any other a directory"},
    {"format", 0, OPTION_TEXT, IMAGE(how.format), "FORMAT", "oci, oci-archive or docker-archive"},
    {"compression", 0, OPTION_TEXT, IMAGE(how.compression), "HOW", "gzip, zstd or none (gzip)"},
    {"push", 0, OPTION_FLAG, IMAGE(how.push), NULL, "to the registry that the tag names"},
    {"force", 0, OPTION_FLAG, IMAGE(how.force), NULL, "make it also if it is there"},
    {0},
};
static const struct option_row look_rows[] = {
    {"verify", 0, OPTION_FLAG, offsetof(struct sandbox_look, verify), NULL,
     "read every byte again; the exit status is 1 if something is not as it was stored"},
    {0},
};
static const struct option_row gc_rows[] = {
    {"dry-run", 'n', OPTION_FLAG, offsetof(struct px_gc_request, dry_run), NULL, "say what would be removed"},
    {"min-age", 0, OPTION_TEXT, offsetof(struct px_gc_request, min_age), "TIME", "only what is older"},
    {"max-size", 0, OPTION_TEXT, offsetof(struct px_gc_request, max_size), "SIZE",
     "also images and bases without a name, the longest unused first"},
    {0},
};
static const struct option_row clean_rows[] = {
    {"dry-run", 'n', OPTION_FLAG, offsetof(struct px_gc_request, dry_run), NULL, "say what would be removed"},
    {0},
};
static const struct option_row check_rows[] = {
    {"only", 0, OPTION_TEXT, offsetof(struct sandbox_checks, only), "NAME[,NAME]", "these checks, or those whose names begin so"},
    {"list", 0, OPTION_FLAG, offsetof(struct sandbox_checks, list), NULL, "the checks, their categories and what holds them"},
    {"junit", 0, OPTION_TEXT, offsetof(struct sandbox_checks, junit), "FILE", "a report for test runners"},
    {"jobs", 0, OPTION_NUMBER, offsetof(struct sandbox_checks, jobs), "NUMBER", "boxes at once (2)", .most = 64},
    {"guard", 0, OPTION_NUMBER, offsetof(struct sandbox_checks, guard), "SECONDS", "a box that takes longer has failed (60)", .most = 3600},
    {"self-test", 0, OPTION_FLAG, offsetof(struct sandbox_checks, self_test), NULL,
     "switch off what holds each check, and see that it fails then"},
    {0},
};

const struct verb sandbox_verbs[] = {
    {"add", "CAPABILITY...", "say yes to it in pyproject.toml, [tool.px.sandbox.capabilities]", sandbox_add, .least = 1,
     .most = NAMES_ANY, .needs = "a capability"},
    {"remove", "CAPABILITY...", "not any more; one that the lock asks for is set to false", sandbox_remove, .least = 1,
     .most = NAMES_ANY, .needs = "a capability"},
    {"explain", "", "the project's base, sbx_id and capabilities, and where each of them comes from", sandbox_explain},
    {"build", "[OPTIONS]", "an image from a base and capabilities; without them the one that px run --sandbox uses", sandbox_build,
     image_rows, .size = sizeof(struct sandbox_image)},
    {"update", "", "the bases that px built and the images with a tag, from today's packages; names move to them", sandbox_update},
    {"list", "", "bases, images and environments, their names and sizes", sandbox_list},
    {"status", "[OPTIONS]", "what the store holds", sandbox_status, look_rows, .size = sizeof(struct sandbox_look)},
    {"delete", "NAME|ID...", "a name of px sandbox list, and with its last name what it names; or one by its id", sandbox_delete,
     .least = 1, .most = NAMES_ANY, .needs = "a name or an id"},
    {"gc", "[OPTIONS]", "remove what no base, image or running box needs", sandbox_gc, gc_rows, .size = sizeof(struct px_gc_request)},
    {"clean", "[OPTIONS]", "remove what has no name, or is of a project whose directory is gone, and what only that needs",
     sandbox_clean, clean_rows, .size = sizeof(struct px_gc_request)},
    {"base build", "[NAME] [OPTIONS]", "make a base (debian-12, debian-13) of packages, once", sandbox_base_build, base_rows,
     .size = sizeof(struct px_base_build), .most = 1},
    {"base import", "NAME SOURCE", "an archive, a directory, an image or docker://REFERENCE as a base", sandbox_base_import,
     .least = 2, .most = 2, .needs = "a name and a source"},
    {"base list", "", "those there are", sandbox_base_list},
    {"base lock", "[NAME]", "the packages one is made of", sandbox_base_lock, .most = 1},
    {"base remove", "NAME", "one less", sandbox_base_remove, .least = 1, .most = 1, .needs = "the name of a base"},
    {"capabilities", "", "the names --with knows", sandbox_capabilities},
    {"verify", "[OPTIONS]", "run forbidden acts and their permitted twins in real boxes of the policy of the options", sandbox_verify,
     check_rows, .size = sizeof(struct sandbox_checks), .command = COMMAND_NEXT, .policy = &args_every_field},
    {0},
};
