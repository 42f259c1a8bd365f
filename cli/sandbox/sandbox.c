/* px sandbox: environments, the store they live in, and what boxes hold. */
#include "cli/sandbox/project.h"
#include "cli/sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const struct {
    const char *name;
    int (*run)(struct cli *cli, int argc, char **argv);
} verbs[] = {
    {"verify", sandbox_verify},
    {"list", sandbox_list},
    {"status", sandbox_status},
    {"gc", sandbox_gc},
    {"clean", sandbox_clean},
    {"delete", sandbox_delete},
    {"base", sandbox_base},
    {"build", sandbox_build},
    {"update", sandbox_update},
    {"capabilities", sandbox_capabilities},
    {"add", sandbox_add},
    {"remove", sandbox_remove},
    {"explain", sandbox_explain},
};

int cmd_sandbox(struct cli *cli, int argc, char **argv)
{
    static const char write[] =
        "Write px sandbox add, remove, explain, base, build, update, capabilities, list, status, delete, gc, clean or verify.\npx sandbox --help says more.";
    struct px_near near = {.written = argc > 0 ? argv[0] : ""};
    char fix[256];
    for (size_t i = 0; argc > 0 && i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, argv[0]) == 0)
            return verbs[i].run(cli, argc - 1, argv + 1);
        px_near_try(&near, verbs[i].name);
    }
    return usage_error(cli, USAGE_STATUS, likely_verb(&near, "sandbox", write, fix, sizeof fix),
                       argc > 0 ? "px sandbox knows no '%s'" : "px sandbox needs to know what to do%s",
                       argc > 0 ? argv[0] : "");
}
